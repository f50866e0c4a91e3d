from pathlib import Path

import pytest

from judge.io.paths import published


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/here/runs/a.json", "runs/a.json"),
        ("/srv/here", "."),
        ("--out=/srv/here/out", "--out=out"),
        ("/srv/here2/runs", "/srv/here2/runs"),
        ("/homes/ann/runs", "~/runs"),
        ("--runs=/homes/ann", "--runs=~"),
        ("local//homes/ann/model.gguf", "local/~/model.gguf"),
        ("/homes/anna/runs", "/homes/anna/runs"),
        ("/mnt/homes/ann/runs", "/mnt/homes/ann/runs"),
        ("/home/bob/runs and /Users/eve", "~bob/runs and ~eve"),
        ("runs/a.json", "runs/a.json"),
        ("/data/runs", "/data/runs"),
        ("", ""),
    ],
)
def test_paths_are_published_without_homes(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/srv/here"))
    monkeypatch.setattr(Path, "home", lambda: Path("/homes/ann"))
    assert published(text) == shown
    assert published(shown) == shown


def test_without_a_home_paths_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nobody)
    assert published("/homes/ann/runs") == "/homes/ann/runs"
