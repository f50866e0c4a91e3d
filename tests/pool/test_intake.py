import subprocess
import sys
from pathlib import Path

import pytest

from judge.io.steps import Step
from judge.jobs.validation import ValidationPlan, validate_runs
from judge.pool.intake import Submitted, read_runs
from judge.runs.profiles import limits_of
from judge.runs.topics import read_topics

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples"
BAD = {
    "cut.json": '{"run_name": "cut", "turns": [',
    "other.json": '{"some": "thing"}',
    "strange.jsonl": '{"metadata": {"team_id": "t", "run_id": "s"}, "turn_id": "9-1_1", "responses": [{"rank": 1, '
    '"text": "Yes.", "citations": {}, "ptkb_provenance": ["\\ud800"]}], "references": {}}\n',
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for path in (EXAMPLE / "runs").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name, content in BAD.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def in_processes(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    for module in ("judge.pool.intake", "judge.jobs.validation"):
        monkeypatch.setattr(f"{module}.processes_for", lambda files: number)


def facts(submitted: Submitted) -> tuple[object, ...]:
    """Everything but the counter, which has no equality."""
    return tuple(getattr(submitted, name) for name in submitted.__struct_fields__ if name != "count_tokens")


def test_runs_read_in_several_processes_are_those_read_in_one(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = read_topics(EXAMPLE / "topics.json")
    read, told = {}, {}
    for number in (1, 2):
        in_processes(monkeypatch, number)
        steps: list[Step] = []
        read[number] = read_runs(runs, topics, limits=limits_of(token_limit=20), steps=steps.append)
        told[number] = steps
    assert facts(read[1]) == facts(read[2])
    assert told[1] == told[2]
    assert len(read[1].candidates) > 10
    assert {"truncated_json", "unknown_format", "over_token_limit"} <= {problem.code for problem in read[1].problems}


def test_the_processes_that_read_runs_or_screen_load_neither_numpy_nor_pydantic() -> None:
    modules = "judge.pool.admission, judge.pool.screen, judge.runs.check.validate"
    code = f"import sys, {modules}; sys.exit('numpy' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("lengths", [False, True])
def test_what_is_wrong_is_the_same(runs: Path, lengths: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in (1, 2):
        in_processes(monkeypatch, number)
        plan = ValidationPlan(runs=runs, topics=EXAMPLE / "topics.json", token_limit=20, lengths=lengths)
        found.append(validate_runs(plan))
    assert found[0] == found[1]
    assert found[0].exit == 2
