"""A recording on the disk, looked up by what was asked; a run of a judge of one's own, whose journal is one."""

import asyncio
import gc
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.ask.account import Settings
from judge.ask.loop import assess
from judge.ask.records import Failure, tasks
from judge.errors import InputError, StructureUnsupported, UsageError
from judge.io.installed import bundled
from judge.judges.backends import open_model
from judge.judges.backends.replay import Replay
from judge.judges.journal import Journal
from judge.judges.journal_store import new_row, request_digest
from judge.judges.journal_tools import export_journal, read_journal
from judge.judges.records import Request
from tests.ask.test_loop import Scripted, criterion, pool
from tests.conftest import annex
from tests.judges.test_journal import completion, request

pytestmark = pytest.mark.slow

PARAMETERS = {"temperature": 0.0}
MORE_PARAMETERS = {"temperature": 1.0}


def asked(question: str, sample: int = 0) -> Request:
    return msgspec.structs.replace(request(question), sample=sample)


def recorded(path: Path, *rows: tuple[str, str, dict[str, float]], judge: str = "b/m") -> Path:
    """A journal of questions with their answers and parameters."""
    with Journal(path) as journal:
        journal.record(
            new_row(
                request_digest(judge, parameters, asked(question)),
                *(judge, parameters, asked(question), completion(answer)),
            )
            for question, answer, parameters in rows
        )
    return path


def exported(path: Path) -> Path:
    out = path.with_suffix(".jsonl")
    export_journal(path, out)
    return out


@pytest.fixture(params=["journal", "export"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    journal = recorded(tmp_path / "journal", ("one", "1", PARAMETERS), ("two", "2", MORE_PARAMETERS))
    return exported(journal) if request.param == "export" else journal


def answer(recording: Replay, question: str, sample: int = 0) -> str | None:
    try:
        return asyncio.run(recording.complete(asked(question, sample))).text
    except StructureUnsupported:
        return None


def test_what_was_asked_has_its_answer_and_its_parameters(path: Path) -> None:
    recording = Replay(path)
    assert recording.name == "b/m"
    assert [answer(recording, "one"), answer(recording, "two"), answer(recording, "three")] == ["1", "2", None]
    assert answer(recording, "one", sample=1) is None
    found = [recording.parameters(asked(question)) for question in ("one", "two", "three")]
    assert found == [PARAMETERS, MORE_PARAMETERS, {}]
    asyncio.run(recording.aclose())
    assert answer(recording, "two") == "2"


@pytest.mark.long
@given(st.dictionaries(st.text("ab \u2028é", max_size=3), st.text(max_size=3), min_size=1, max_size=20))
def test_every_answer_is_found_whatever_the_order(answers: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = recorded(Path(folder) / "j", *((question, text, PARAMETERS) for question, text in answers.items()))
        for path in (journal, exported(journal)):
            recording = Replay(path)
            assert {question: answer(recording, question) for question in answers} == answers
            assert answer(recording, "another") is None
            asyncio.run(recording.aclose())


def test_the_same_question_under_other_parameters_is_refused(tmp_path: Path) -> None:
    rows = [("q", "1", PARAMETERS), ("other", "3", PARAMETERS), ("q", "2", MORE_PARAMETERS)]
    journal = recorded(tmp_path / "journal", *rows)
    digests = sorted(request_digest("b/m", parameters, asked("q")) for _, _, parameters in (rows[0], rows[2]))
    for path in (journal, exported(journal)):
        with pytest.raises(UsageError, match=rf"\({digests[0][:12]}, {digests[1][:12]}\)"):
            Replay(path)


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    path = exported(recorded(tmp_path / "journal", ("one", "1", PARAMETERS)))
    path.write_bytes(path.read_bytes() * 2)
    recording = Replay(path)
    assert answer(recording, "one") == "1"
    asyncio.run(recording.aclose())


def test_another_judge_of_the_file_is_no_part_of_the_recording(tmp_path: Path) -> None:
    path = recorded(tmp_path / "journal", ("one", "1", PARAMETERS))
    recorded(path, ("one", "2", MORE_PARAMETERS), ("two", "2", PARAMETERS), judge="b/other")
    recording = Replay(path, "b/m")
    assert [answer(recording, "one"), answer(recording, "two")] == ["1", None]
    asyncio.run(recording.aclose())


@pytest.mark.parametrize(
    ("judge", "questions", "parameters"),
    [("b/m", "ab", PARAMETERS), ("b/other", ("one", "two"), PARAMETERS), ("b/m", ("one", "two"), MORE_PARAMETERS)],
)
def test_a_recording_that_changes_is_not_read_on(path, judge, questions, parameters) -> None:
    recording = Replay(path)
    path.unlink()
    other = recorded(path.parent / "other", *((asked, "0", parameters) for asked in questions), judge=judge)
    (exported(other) if path.suffix else other).rename(path)
    with pytest.raises(InputError, match="has changed since it was read: run the command again"):
        for question in ("one", "two"):
            answer(recording, question)
    asyncio.run(recording.aclose())


@pytest.mark.parametrize("closed", [False, True])
def test_a_recording_may_be_forgotten_in_another_thread_than_the_one_that_read_it(path: Path, closed: bool) -> None:
    left: list[Replay] = []

    def read() -> None:
        recording = Replay(path)
        assert answer(recording, "one") == "1"
        if closed:
            asyncio.run(recording.aclose())
        left.append(recording)

    with warnings.catch_warnings():
        # pytest makes a warning of an error that nobody can catch.
        warnings.simplefilter("error")
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        left.clear()
        gc.collect()


def test_a_recording_may_be_the_journal_that_is_written(tmp_path: Path) -> None:
    path = recorded(tmp_path / "journal", ("one", "1", PARAMETERS))
    recording = Replay(path)
    with Journal(path) as journal:
        # The journal answers for what is recorded, so only the parameters are asked of the recording.
        assert recording.parameters(asked("one")) == PARAMETERS
        assert request_digest("b/m", PARAMETERS, asked("one")) in journal
        with pytest.raises(InputError, match="another judge process is using it"):
            answer(recording, "one")
    assert answer(recording, "one") == "1"
    asyncio.run(recording.aclose())


def test_a_function_judges_a_run_and_is_asked_once(tmp_path: Path) -> None:
    calls: list[str] = []

    def grade(messages: list[dict[str, str]]) -> str | int:
        calls.append(messages[-1]["content"])
        if len(calls) == 3:
            raise ValueError("not this one")
        return 9 if len(calls) == 1 else "It reads well.\nGrade: 2"

    def run(**more: Any) -> Any:
        model = judge.FunctionJudge("mine/v1", grade)
        plan = judge.Plan(
            runs=bundled("examples") / "runs", criteria=["naturalness"], model=model, concurrency=1,
            out=tmp_path / "out", **more,
        )  # fmt: skip
        return judge.run(plan)

    outcome = run()
    assert {result.judge for result in outcome.results} == {"mine/v1"}
    assert [failure.reason for failure in outcome.failures] == ["provider_error"]
    assert "not this one" in outcome.failures[0].detail
    assert [result.grade for result in outcome.results].count(None) == 1
    assert {entry.judge for entry in read_journal(tmp_path / "out" / "journal.sqlite")} == {"mine/v1"}
    asked = len(calls)
    # The failed call is made again, and nothing else.
    assert not run().failures and len(calls) == asked + 1
    annex("scale")
    with pytest.raises(judge.UsageError, match="by their names"):
        run(engine="ray", replace=True)


def test_what_could_not_be_read_of_a_function_is_asked_for_again(tmp_path: Path) -> None:
    """It was mended under the same name; the grades that it gave stay."""
    said: dict[str, object] = {"t0": 1, "t1": "no idea", "t2": "Grade: 9", "t3": "Grade: 3"}
    asked: list[str] = []

    def grade(messages: list[dict[str, str]]) -> object:
        text = next(text for text in said if text in messages[-1]["content"] or text in messages[1]["content"])
        asked.append(text)
        return said[text]

    def grades() -> list[int | None]:
        one = pool(list(said))
        with Journal(tmp_path / "journal") as journal:
            results = assess(tasks(one, [criterion()]), judge.FunctionJudge("mine/v1", grade), journal, one)
            return [result.grade for result in results]

    assert grades() == [1, None, None, 3]
    said |= {"t0": 3, "t1": 2, "t2": "Grade: 2"}
    asked.clear()
    assert grades() == [1, 2, 2, 3]
    assert sorted(set(asked)) == ["t1", "t2"]
    asked.clear()
    assert grades() == [1, 2, 2, 3]
    assert asked == []


HANGING = """
import sys, time
import judge

def hang(messages):
    time.sleep(600)

judge.run(judge.Plan(runs=sys.argv[1], criteria=["naturalness"], limit=3, attempts=1, timeout=1.0,
                     model=judge.FunctionJudge("mine/v1", hang), out=sys.argv[2]))
"""


def test_a_function_that_never_returns_ends_with_its_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HANGING, str(bundled("examples") / "runs"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "no answer within 1 s" in done.stderr


ONE = pool(["a", "b", "c"])
QUICK = Settings(concurrency=2, attempts=1)


def record(path: Path, model: Scripted) -> tuple[object, ...]:
    with Journal(path) as journal:
        return tuple(assess(tasks(ONE, [criterion()]), model, journal, ONE, settings=QUICK))


def test_a_replayed_run_is_the_recorded_run(tmp_path: Path) -> None:
    original = record(tmp_path / "recorded", Scripted({"a": ["hm", "Grade: 1"], "b": ["Grade: 3"]}))
    replay = open_model(f"replay/{tmp_path / 'recorded'}")
    assert replay.name == "fake/scripted"
    with Journal(tmp_path / "new") as journal:
        assert assess(tasks(ONE, [criterion()]), replay, journal, ONE, settings=QUICK) == original


def test_what_was_not_recorded_fails_and_is_not_invented(tmp_path: Path) -> None:
    record(tmp_path / "recorded", Scripted())
    more = pool(["a", "new"])
    with Journal(tmp_path / "new") as journal:
        replay = open_model(f"replay/{tmp_path / 'recorded'}")
        _, missing = assess(tasks(more, [criterion()]), replay, journal, more, settings=QUICK)
    assert isinstance(missing, Failure)
    assert missing.reason == "provider_error"
    assert "holds no completion" in missing.detail


def test_two_judges_in_a_file_must_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "recorded"
    record(path, Scripted())
    other = Scripted(default="Grade: 0")
    other.name = "fake/other"
    record(path, other)
    with pytest.raises(UsageError, match=r"several judges.*fake/other, fake/scripted"):
        open_model(f"replay/{path}")
    assert open_model(f"replay/{path}::fake/other").name == "fake/other"
    with pytest.raises(UsageError, match="no judge 'fake/third'"):
        open_model(f"replay/{path}::fake/third")


def test_no_recording(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such journal"):
        open_model(f"replay/{tmp_path / 'absent'}")
    with Journal(tmp_path / "empty"):
        pass
    with pytest.raises(UsageError, match="is empty"):
        open_model(f"replay/{tmp_path / 'empty'}")
