"""Replies read again by another parser than the one that a folder was judged with."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask import questions
from judge.ask.records import Unreadable, Verdict
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.jobs.reparsing import ASKED_AGAIN, ReparsePlan, reparse
from judge.judges.journal import Journal
from judge.judges.records import Completion
from tests.cli.test_journal import OVERLAP, run
from tests.mock import start_mock


def test_the_same_parser_changes_nothing(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reparse(ReparsePlan(folder=judged)).data == {"read": 76, "without_reply": 1, "changes": [], "warnings": ()}
    assert main(["journal", "reparse", str(judged)]) == 0
    assert capsys.readouterr().out == "read again          76\nwithout a reply     1\nchanged             0\n"


def test_another_grade_is_listed_with_the_one_before(out: Path, monkeypatch, capsys) -> None:
    """A parser that reads every 0 as 1, and finds nothing in a 3."""
    judged = out
    parse = questions.parse

    def another(completion: Completion, *more: Any) -> Verdict | Unreadable:
        verdict = parse(completion, *more)
        if isinstance(verdict, Verdict) and verdict.grade == 0:
            return msgspec.structs.replace(verdict, grade=1)
        return Unreadable("refused", "no") if isinstance(verdict, Verdict) and verdict.grade == 3 else verdict

    grades = [result["grade"] for result in results(judged)]
    monkeypatch.setattr(questions, "parse", another)
    printout = reparse(ReparsePlan(folder=judged))
    assert printout.parts[1] == (
        ("groundedness", "0 → 1", grades.count(0)),
        ("groundedness", "3 → refused", grades.count(3)),
    )
    before = {path.name: path.read_bytes() for path in judged.iterdir() if path.is_file()}
    assert main(["journal", "reparse", str(judged)]) == 1
    said = capsys.readouterr()
    assert f"changed             {grades.count(0) + grades.count(3)}\n" in said.out
    change = printout.data["changes"][0]
    assert f"  {change.response_id} of {change.turn_id}, groundedness/graded by baseline/overlap: " in said.out
    assert "the same `judge run` command takes this over" in said.err
    assert {path.name: path.read_bytes() for path in judged.iterdir() if path.is_file()} == before
    # What it says is what the same command makes of the same replies.
    assert run(judged, *OVERLAP) == 0
    after = [result["grade"] for result in results(judged)]
    assert (after.count(0), after.count(1), after.count(3)) == (0, grades.count(0) + grades.count(1), 0)


def results(out: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in (out / "judgments.jsonl").read_bytes().splitlines()]


def test_a_reply_that_is_not_there_is_counted(out: Path) -> None:
    """Another journal in place of the folder's own."""
    (out / "journal.sqlite").unlink()
    with pytest.raises(InputError, match="no such journal"):
        reparse(ReparsePlan(folder=out))
    Journal(out / "journal.sqlite").close()
    assert reparse(ReparsePlan(folder=out)).data == {"read": 0, "without_reply": 77, "changes": [], "warnings": ()}


def test_what_is_no_folder_or_no_prompt_of_it_is_refused(judged: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no judgments\.jsonl there"):
        reparse(ReparsePlan(folder=tmp_path))
    with pytest.raises(UsageError, match=r"no judgment is under naturalness/graded, only under groundedness/graded"):
        reparse(ReparsePlan(folder=judged, prompts=["naturalness"]))


def test_second_replies_members_and_both_forms_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start_mock("--pbad", "0.2", "--fault", "length=0.1", "--fault", "white-space=0.1") as mock:
        server = ("--model", "server/mock", "--base-url", mock.base_url)
        assert run(tmp_path / "one", *server) in (0, 3)
        assert run(tmp_path / "jury", *server, "--jury", "majority", "--samples", "2") in (0, 3)
    one, jury = reparse(ReparsePlan(folder=tmp_path / "one")).data, reparse(ReparsePlan(folder=tmp_path / "jury")).data
    assert (one["read"], one["changes"]) == (76, [])
    assert (jury["read"], jury["changes"]) == (2 * 76, [])
    repaired = [result["response_id"] for result in results(tmp_path / "one") if result["repaired"]]
    assert repaired
    # Where the parser would take the first reply today, the second one counts no more.
    parse = questions.parse

    def lenient(completion: Completion, *more: Any) -> Verdict | Unreadable:
        verdict = parse(completion, *more)
        return Verdict(-1, None) if isinstance(verdict, Unreadable) and verdict.reason == "unreadable" else verdict

    monkeypatch.setattr(questions, "parse", lenient)
    changed = reparse(ReparsePlan(folder=tmp_path / "one")).data["changes"]
    assert {change.response_id for change in changed if change.before.isdigit()} == set(repaired)
    assert {change.after for change in changed} == {"-1"}
    # Where it takes no reply of then, each second question is another one, which was never asked.
    monkeypatch.setattr(questions, "parse", lambda completion, *more: Unreadable("unreadable", "no"))
    assert [change.after for change in reparse(ReparsePlan(folder=tmp_path / "one")).data["changes"]] == [
        ASKED_AGAIN
    ] * 76
