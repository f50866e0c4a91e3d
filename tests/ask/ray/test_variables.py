"""What a run makes of the user's environment for Ray, and that it is put back."""

import contextlib
import os
from pathlib import Path

import pytest

from judge.ask.ray.variables import variables


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a token, and an environment that the test alone changes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    monkeypatch.setattr(os, "environ", kept)
    monkeypatch.setattr(Path, "expanduser", lambda path: tmp_path / str(path).removeprefix("~/"))
    return tmp_path


def test_a_cluster_of_a_run_has_a_token_of_its_own_that_is_in_no_file(home: Path) -> None:
    tokens = []
    for _ in range(2):
        with variables(own=True):
            tokens.append(os.environ["RAY_AUTH_TOKEN"])
        assert "RAY_AUTH_TOKEN" not in os.environ
    assert [len(token) for token in tokens] == [64, 64]
    assert len(set(tokens)) == 2
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("variable", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
def test_the_token_that_the_user_names_holds(variable: str) -> None:
    os.environ[variable] = "t"
    with variables(own=True):
        assert os.environ.get("RAY_AUTH_TOKEN", "t") == os.environ[variable] == "t"
    assert os.environ[variable] == "t"


def test_the_token_in_the_users_home_holds(home: Path) -> None:
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("t")
    with variables(own=True):
        assert "RAY_AUTH_TOKEN" not in os.environ


def test_a_cluster_that_runs_gets_no_token_of_ours() -> None:
    with variables(own=False):
        assert "RAY_AUTH_TOKEN" not in os.environ


def test_ray_is_kept_from_writing_and_else_as_the_user_has_it() -> None:
    os.environ.update(RAY_LOG_TO_STDERR="1", RAY_BACKEND_LOG_LEVEL="debug", RAY_USAGE_STATS_ENABLED="1")
    with variables(own=False):
        assert "RAY_LOG_TO_STDERR" not in os.environ
        assert "RAY_BACKEND_LOG_LEVEL" not in os.environ
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_environment_is_put_back(own: bool, fails: bool) -> None:
    os.environ.update(RAY_LOG_TO_STDERR="1", RAY_NUM_REDIS_GET_RETRIES="7", HOME="h")
    before = dict(os.environ)
    with contextlib.suppress(ZeroDivisionError), variables(own=own):
        assert dict(os.environ) != before
        # As Ray does.
        os.environ.update(
            RAY_AUTH_MODE="token", RAY_CLIENT_MODE="0", PYTHONBREAKPOINT="ray.util.rpdb._driver_set_trace"
        )
        if fails:
            raise ZeroDivisionError
    assert dict(os.environ) == before
