import sys
from typing import Any

import pytest

from judge.errors import UsageError
from judge.jobs.run_inputs import Plan, RunInputs, check_engine, open_engine
from judge.judges.model import ModelOptions


@pytest.fixture
def _ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray as if it were installed."""
    monkeypatch.setattr("judge.jobs.run_inputs.need_extra", lambda name, what: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize(("options", "said"), [
    ({"address": "head:6379"}, "--address and --workers are for an engine"),
    ({"workers": 2}, "--address and --workers are for an engine"),
    ({"engine": "spark"}, "engine: invalid choice: 'spark'"),
    ({"engine": "ray", "workers": 0}, "workers: expected 1 or more, found 0"),
    ({"engine": "ray", "address": "head"}, "head: expected HOST:PORT"),
    ({"engine": "ray", "address": "ray://head:10001"}, "ray://head:10001: expected HOST:PORT"),
    ({"engine": "ray", "address": "head:0"}, "head:0: expected HOST:PORT"),
    ({"engine": "ray", "address": "head:65536"}, "head:65536: expected HOST:PORT"),
    ({"engine": "ray", "address": "he\x1b[1mad"}, r"he\\x1b\[1mad: expected HOST:PORT"),
])  # fmt: skip
@pytest.mark.usefixtures("_ray")
def test_options_that_fit_no_engine_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RunInputs(Plan(runs="absent", **options))


@pytest.mark.parametrize("address", [None, "local", "head:6379", "[::1]:6379"])
@pytest.mark.usefixtures("_ray")
def test_addresses(address: str | None) -> None:
    check_engine("ray", address, 3)


@pytest.mark.usefixtures("_ray")
def test_the_address_of_the_environment_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(UsageError, match="auto: expected HOST:PORT"):
        check_engine("ray", None, None)


def test_an_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        UsageError, match=r"--engine ray needs ray, which is not installed: `pip install 'trec-judge\[ray\]'`"
    ):
        check_engine("ray", None, None)


def test_without_an_engine_the_loop_asks() -> None:
    with open_engine(None, None, None, ["baseline/overlap"], ModelOptions()) as engine:
        assert engine is None
