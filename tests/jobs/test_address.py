"""The address of a judge is recorded beside its judgments, which depend on it in nothing."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.io.installed import bundled
from judge.jobs.run import Plan
from judge.jobs.run_inputs import RunInputs
from judge.judges.backends import options_beside
from judge.judges.journal_tools import read_journal
from judge.judges.model import ModelOptions
from tests.calibration_world import FAST
from tests.conftest import INPUTS, complaint, run_example
from tests.mock import start_mock

SAME = {"judgments.jsonl", "failures.jsonl", "leaderboard.tsv", "leaderboard.md", "response_groundedness.llm.qrel"}


@pytest.mark.parametrize(
    ("variable", "given", "shown"),
    [
        (None, None, None),
        ("http://ann@localhost:1/v1", "http://localhost:2/v1", "http://localhost:2/v1"),
        ("http://localhost:1/v1", None, "http://localhost:1/v1"),
    ],
)
def test_the_address_is_recorded(variable: str | None, given: str | None, shown: str | None, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.delenv("OPENAI_CUSTOM_HEADERS", raising=False)
    if variable is None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    else:
        monkeypatch.setenv("OPENAI_BASE_URL", variable)
    plan = Plan(runs=bundled("examples") / "runs", criteria=["naturalness"], model="openai/gpt-4o-mini", base_url=given)
    assert RunInputs(plan).configured["options"]["base_url"] == shown


def run(out: Path, model: str, *more: str) -> int:
    return run_example(out, "--criteria", "groundedness", "--model", model, *more)


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.name in SAME}


@pytest.mark.long
@pytest.mark.parametrize("model", ["server/mock", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini"])
def test_what_was_paid_for_at_one_address_is_recalled_without_any(model: str, tmp_path, monkeypatch, capsys) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    with start_mock() as mock:
        assert run(out, model, "--base-url", mock.base_url) == 0
        address = mock.base_url
    before = contents(out)
    assert {entry.completion.endpoint for entry in read_journal(out / "journal.sqlite")} == {address}
    assert before.keys() == SAME
    monkeypatch.delenv("OPENAI_API_KEY")
    for more in ((), ("--base-url", "http://127.0.0.1:9/v1"), ("--dry-run",)):
        assert run(out, model, *more) == 0, capsys.readouterr().err
        assert contents(out) == before
    # A call that has to be made needs what was left out.
    capsys.readouterr()
    assert run(out, model, "--criteria", "groundedness", "--criteria", "naturalness", "--replace") == 2
    assert complaint(capsys, run(other, model)).count("needs ") == 2
    assert not other.exists()


@pytest.mark.long
def test_a_calibration_is_made_again_where_its_judge_has_no_address(tmp_path: Path) -> None:
    pool, out, gold = tmp_path / "pool", tmp_path / "out", tmp_path / "gold.jsonl"
    shutil.copy(bundled("gold") / "example.synthetic.jsonl", gold)
    assert main(["pool", *INPUTS, "--out", str(pool)]) == 0
    named = f"calibrate --gold {gold} --pool {pool} --prompt naturalness --criterion naturalness --model server/mock"
    asking = [*named.split(), "--out", str(out), *FAST]
    with start_mock() as mock:
        assert main([*asking, "--base-url", mock.base_url]) == 0
    before = {name: (out / name).read_bytes() for name in ("judgments.jsonl", "agreement.tsv")}
    assert main(asking) == 0
    assert {name: (out / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    ("models", "asked_there"),
    [
        (("checker/overlap", "server/m"), [False, True]),
        (("checker/chat/m", "server/m"), [True, True]),
        (("checker/chat/m", "local/smollm2-135m"), [True, False]),
        (("checker/overlap", "local/smollm2-135m"), [False, False]),
    ],
)
def test_the_address_is_that_of_the_judges_that_run_elsewhere(models: list[str], asked_there: list[bool]) -> None:
    options = ModelOptions(base_url="http://a:1/v1")
    assert [options_beside(name, options).base_url is not None for name in models] == asked_there
    refused = nullcontext() if any(asked_there) else pytest.raises(UsageError, match="judges that run elsewhere; --mod")
    with refused:
        RunInputs(Plan(runs=bundled("examples") / "runs", model=models, base_url=options.base_url))
