"""`--json`: one JSON value on stdout and nothing else, wherever a command lists or counts."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.models.catalog import CATALOG
from tests.conftest import PROJECT

OVERLAP = ["--model", "baseline/overlap", "--criteria", "groundedness"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*command, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_lists_and_counts_are_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--runs", "runs", "--topics", "topics.json", "--passages", "passages.jsonl"]
    pooled = told(capsys, "pool", *inputs, "-o", "pool")
    assert (pooled["responses"], pooled["runs"], pooled["without_texts"]) == (77, 7, 1)
    assert list(pooled["excluded"]) == sorted(pooled["excluded"])
    forecast = told(capsys, "run", *inputs, *OVERLAP, "-o", "out", "--dry-run")
    assert (forecast["judge"], forecast["judgments"], forecast["without_evidence"]) == ("baseline/overlap", 77, 1)
    assert (forecast["cost"], forecast["most"]) == (0.0, 0.0) and forecast["unpriced"] == []
    rows = told(capsys, "run", *inputs, *OVERLAP, "-o", "out")
    assert rows == told(capsys, "leaderboard", "out")
    assert told(capsys, "journal", "verify", "out") == {"sound": 76, "without_checksum": 0, "problems": []}
    drawn = told(capsys, "gold", "plan", "--pool", "out", "--n", "40", "--per-run", "5", "--seed", "1", "-o", "p.jsonl")
    assert drawn["file"] == "p.jsonl"
    assert drawn["responses"]["drawn"] == len(Path("p.jsonl").read_text(encoding="utf-8").splitlines()) <= 77
    extracted = told(
        capsys, "passages", "extract", "--pool", "out", "--passages", "passages.jsonl", "-o", "x.jsonl", code=1
    )
    assert extracted["wanted"] == extracted["extracted"] + len(extracted["missing"])
    converted = told(capsys, "convert", "runs/harbor-grounded.json", "--to", "trec-run", "-o", "trec")
    assert converted["files"] == ["trec/harbor-grounded.provenance.run"]
    assert all(change["times"] > 0 for change in converted["changes"])


def test_models_and_prompts_are_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = told(capsys, "models", "list")
    assert [model["model"] for model in models] == [f"local/{name}" for name in CATALOG]
    shutil.copy(PROJECT / "prompts" / "groundedness" / "graded.md", "good.md")
    Path("bad.md").write_text("no prompt", encoding="utf-8")
    checked = told(capsys, "prompts", "check", "good.md", "bad.md", "none.md", code=1)
    assert [(row["file"], row["prompt"], len(row["problems"])) for row in checked] == [
        ("good.md", "groundedness/good", 0), ("bad.md", None, 1), ("none.md", None, 1),
    ]  # fmt: skip
