import sys

import pytest

from judge.errors import UsageError
from judge.harness.engine import check_engine, open_engine
from judge.models.model import ModelOptions


@pytest.fixture
def _ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray as if it were installed."""
    monkeypatch.setattr("judge.harness.engine.need_extra", lambda name, what: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize(
    ("engine", "address", "workers", "cascade", "said"),
    [
        (None, "head:6379", None, False, "--address and --workers are for an engine"),
        (None, None, 2, False, "--address and --workers are for an engine"),
        ("spark", None, None, False, "engine 'spark': expected one of ray"),
        ("ray", None, None, True, "--engine ray cannot ask a cascade"),
        ("ray", None, 0, False, "0 workers: expected one or more"),
        ("ray", "head", None, False, "head: expected HOST:PORT"),
        ("ray", "ray://head:10001", None, False, "ray://head:10001: expected HOST:PORT"),
        ("ray", "head:0", None, False, "head:0: expected HOST:PORT"),
        ("ray", "head:65536", None, False, "head:65536: expected HOST:PORT"),
        ("ray", "he\x1b[1mad", None, False, r"he\\x1b\[1mad: expected HOST:PORT"),
    ],
)
@pytest.mark.usefixtures("_ray")
def test_options_that_fit_no_engine_are_refused(
    engine: str | None, address: str | None, workers: int | None, cascade: bool, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        check_engine(engine, address, workers, cascade=cascade)


@pytest.mark.parametrize("address", [None, "local", "head:6379", "[::1]:6379"])
@pytest.mark.usefixtures("_ray")
def test_addresses(address: str | None) -> None:
    check_engine("ray", address, 3, cascade=False)


@pytest.mark.usefixtures("_ray")
def test_the_address_of_the_environment_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(UsageError, match="auto: expected HOST:PORT"):
        check_engine("ray", None, None, cascade=False)


def test_an_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        UsageError, match=r"--engine ray needs ray, which is not installed: `pip install 'judge\[ray\]'`"
    ):
        check_engine("ray", None, None, cascade=False)


def test_without_an_engine_the_loop_asks() -> None:
    with open_engine(None, None, None, ["baseline/overlap"], ModelOptions()) as engine:
        assert engine is None
