"""What a run leaves of the user's environment for Ray."""

import os
from pathlib import Path

import pytest

from judge.ask.ray.variables import set_variables


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a token, and an environment that the test alone changes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    monkeypatch.setattr(os, "environ", kept)
    monkeypatch.setattr(Path, "expanduser", lambda path: tmp_path / str(path).removeprefix("~/"))
    return tmp_path


def said_by_ray() -> dict[str, str]:
    return {name: os.environ[name] for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN") if name in os.environ}


def test_a_cluster_of_a_run_has_a_token_of_its_own_that_is_in_no_file(home: Path) -> None:
    set_variables(own=True)
    first = said_by_ray()
    assert first["RAY_AUTH_MODE"] == "token"
    assert len(first["RAY_AUTH_TOKEN"]) == 64
    # Ray reads it once: the next run of this process has the same.
    set_variables(own=True)
    assert said_by_ray() == first
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "user",
    [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "t"}, {"RAY_AUTH_TOKEN_PATH": "/token"}],
)
def test_what_the_user_says_of_tokens_holds(user: dict[str, str]) -> None:
    os.environ.update(user)
    set_variables(own=True)
    assert said_by_ray() == {"RAY_AUTH_MODE": "token"} | {name: user[name] for name in user if "PATH" not in name}


def test_the_token_in_the_users_home_holds(home: Path) -> None:
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("t")
    set_variables(own=True)
    assert said_by_ray() == {"RAY_AUTH_MODE": "token"}


def test_a_cluster_that_runs_is_asked_with_what_the_user_says() -> None:
    set_variables(own=False)
    assert said_by_ray() == {}


def test_ray_is_kept_from_writing_and_else_as_the_user_has_it() -> None:
    os.environ.update(RAY_LOG_TO_STDERR="1", RAY_BACKEND_LOG_LEVEL="debug", RAY_USAGE_STATS_ENABLED="1")
    set_variables(own=False)
    assert os.environ["RAY_LOG_TO_STDERR"] == "0"
    assert os.environ["RAY_BACKEND_LOG_LEVEL"] == "fatal"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"
