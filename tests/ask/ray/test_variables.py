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


def test_a_cluster_of_a_run_has_a_token_of_its_own_that_is_in_no_file(home: Path) -> None:
    set_variables(own=True)
    first = os.environ["RAY_AUTH_TOKEN"]
    assert len(first) == 64
    # Ray reads it once: the next run of this process has the same.
    set_variables(own=True)
    assert os.environ["RAY_AUTH_TOKEN"] == first
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("variable", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
def test_the_token_that_the_user_names_holds(variable: str) -> None:
    os.environ[variable] = "t"
    set_variables(own=True)
    assert os.environ.get("RAY_AUTH_TOKEN", "t") == os.environ[variable] == "t"


def test_the_token_in_the_users_home_holds(home: Path) -> None:
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("t")
    set_variables(own=True)
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_a_cluster_that_runs_gets_no_token_of_ours() -> None:
    set_variables(own=False)
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_ray_is_kept_from_writing_and_else_as_the_user_has_it() -> None:
    os.environ.update(RAY_LOG_TO_STDERR="1", RAY_BACKEND_LOG_LEVEL="debug", RAY_USAGE_STATS_ENABLED="1")
    set_variables(own=False)
    assert "RAY_LOG_TO_STDERR" not in os.environ
    assert "RAY_BACKEND_LOG_LEVEL" not in os.environ
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "1"
