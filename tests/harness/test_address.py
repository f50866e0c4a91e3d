"""The address to which the environment moves a judge is a part of its configuration."""

import pytest

from judge.files.bundle import bundled
from judge.harness.run import Plan, prepare
from judge.models.model import ModelOptions


@pytest.mark.parametrize(
    ("variable", "given", "shown"),
    [
        (None, None, None),
        ("http://ann@localhost:1/v1", "http://localhost:2/v1", "http://localhost:2/v1"),
        ("http://localhost:1/v1", None, "http://localhost:1/v1"),
    ],
)
def test_two_addresses_are_two_configurations(
    variable: str | None, given: str | None, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.delenv("OPENAI_CUSTOM_HEADERS", raising=False)
    if variable is None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    else:
        monkeypatch.setenv("OPENAI_BASE_URL", variable)
    plan = Plan(
        runs=bundled("examples") / "runs",
        criteria=["naturalness"],
        model="openai/gpt-4o-mini",
        options=ModelOptions(base_url=given),
    )
    assert prepare(plan).configured["options"]["base_url"] == shown


def test_further_servers_of_the_same_model_make_no_other_configuration() -> None:
    def configured(*replicas: str) -> dict[str, object]:
        options = ModelOptions(base_url="http://localhost:1/v1", replicas=replicas)
        plan = Plan(runs=bundled("examples") / "runs", criteria=["naturalness"], model="server/m", options=options)
        return prepare(plan).configured

    assert configured("http://localhost:2/v1", "http://localhost:3/v1") == configured()
