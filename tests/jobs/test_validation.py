"""Validation as a job: the same as `judge validate`, from Python."""

import json
from pathlib import Path

import pytest

import judge
from judge.cli import main
from tests.conftest import PROJECT

RUNS, TOPICS = PROJECT / "examples" / "runs", PROJECT / "examples" / "topics.json"


def test_the_job_gives_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["--topics", str(TOPICS), "--strict", "--token-limit", "40"]
    assert main(["validate", "--runs", str(RUNS), *told, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    outcome = judge.validate_runs(
        judge.ValidationPlan(runs=str(RUNS), topics=str(TOPICS), strict=True, token_limit=40, lengths=True)
    )
    assert sum(file.errors for file in outcome.files) == printed["errors"] > 0
    assert [file.file for file in outcome.files] == [file["file"] for file in printed["files"]]
    assert outcome.errors and not outcome.unreadable
    assert outcome.unchecked == {"absent_evidence", "passage_text_differs", "unknown_passage"}


def test_pages_and_copies_are_written_where_the_plan_says(tmp_path: Path) -> None:
    plan = judge.ValidationPlan(
        runs=str(RUNS), topics=str(TOPICS), report_dir=str(tmp_path / "pages"), fixed_dir=str(tmp_path / "fixed")
    )
    outcome = judge.validate_runs(plan)
    assert outcome.fixed is not None and outcome.fixed.fixes > 0
    assert (tmp_path / "pages" / "index.md").exists()
    assert {path.name for path in (tmp_path / "fixed").iterdir()} > {"fixes.tsv"}
    with pytest.raises(judge.UsageError, match="different folders"):
        judge.validate_runs(judge.ValidationPlan(runs=RUNS, report_dir=tmp_path / "x", fixed_dir=tmp_path / "x"))
