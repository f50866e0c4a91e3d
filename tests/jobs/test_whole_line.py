"""The main job once from files to files, quickly enough for every edit; test_run.py says what it promises."""

import json
from pathlib import Path

from judge.jobs.run import carry_out
from judge.jobs.run_inputs import Plan, RunInputs
from tests.conftest import PROJECT

EXAMPLE = PROJECT / "examples"


def test_the_example_goes_from_runs_to_a_leaderboard(tmp_path: Path) -> None:
    plan = Plan(
        runs=EXAMPLE / "runs",
        topics=EXAMPLE / "topics.json",
        passages=[EXAMPLE / "passages.jsonl"],
        criteria=["groundedness"],
        model="baseline/overlap",
        limit=6,
        out=tmp_path / "out",
    )
    assert len(carry_out(RunInputs(plan)).results) == 6
    asked = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["asked"]
    assert asked == {"judgments": 6, "limit": 6, "max_tokens": 1024}
    assert len((tmp_path / "out" / "qrels" / "response_groundedness.llm.qrel").read_text().splitlines()) == 6
