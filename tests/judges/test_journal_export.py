"""The released form of a journal, and several journals as one."""

import asyncio
import json
import sqlite3
from pathlib import Path

import msgspec
import pytest

from judge.errors import InputError, UsageError
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.journal_store import request_digest
from judge.judges.journal_tools import export_journal, exported_lines, merge_journals, read_journal, verify_journal
from judge.judges.model import ModelOptions
from judge.judges.records import Completion
from tests.judges.test_journal import completion, request

ODD = "Grade: 1 \u2028 \x85 </script> \U0001f600"


def filled(path: Path, answers: dict[str, Completion | str], judge: str = "b/m") -> Path:
    async def run(journal: Journal) -> None:
        for question, answer in answers.items():
            asked = request(question)
            given = answer if isinstance(answer, Completion) else completion(answer)
            await journal.write(request_digest(judge, {"t": 0.0}, asked), judge, {"t": 0.0}, asked, given)

    with Journal(path) as journal:
        asyncio.run(run(journal))
    return path


@pytest.fixture
def path(tmp_path: Path, no_pause: None) -> Path:
    return filled(tmp_path / "journal.sqlite", {f"question {n}": f"Grade: {n}" for n in range(3)} | {"odd": ODD})


def test_what_is_exported_is_what_is_recorded(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    out = tmp_path / "new" / "journal.jsonl"
    assert export_journal(path, out) == 4
    assert out.read_bytes().count(b"\n") == 4
    assert b"".join(exported_lines(path)) == out.read_bytes()
    assert list(read_journal(out)) == list(read_journal(path)) == list(read_journal(path))
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [line["digest"] for line in lines] == sorted(line["digest"] for line in lines)
    assert {line["completion"]["text"] for line in lines} == {"Grade: 0", "Grade: 1", "Grade: 2", ODD}
    assert path.read_bytes() == before
    assert [one.name for one in out.parent.iterdir()] == ["journal.jsonl"]


def test_an_export_is_replayed(path: Path, tmp_path: Path) -> None:
    export_journal(path, tmp_path / "j.jsonl")
    model = open_model(f"replay/{tmp_path / 'j.jsonl'}", ModelOptions())
    assert model.name == "b/m"
    assert asyncio.run(model.complete(request("question 2"))) == completion("Grade: 2")


def test_an_export_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal may hold a key that was not set when its answer was recorded, and so was not removed then."""
    monkeypatch.setenv("OPENAI_API_KEY", "sesame-open-up")
    told = msgspec.structs.replace(completion("Grade: 1"), raw='{"echo": "sesame-open-up"}')
    export_journal(filled(tmp_path / "journal.sqlite", {"a": told, "b": "Grade: 2"}), tmp_path / "j.jsonl")
    assert b"sesame" not in (tmp_path / "j.jsonl").read_bytes()
    texts = {entry.completion.text: entry.completion.raw for entry in read_journal(tmp_path / "j.jsonl")}
    assert texts == {"Grade: 1": '{"echo": "***"}', "Grade: 2": None}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace('"text":"Grade: 2"', '"text":"Grade: 0"'), "its content is not what was recorded"),
        (lambda text: text + "{}\n", "line 5: .*missing required field"),
        (lambda text: text + '{"digest": [', "line 5: "),
    ],
)
def test_a_damaged_export_is_refused_with_its_line(path: Path, tmp_path: Path, change: object, why: str) -> None:
    out = tmp_path / "j.jsonl"
    export_journal(path, out)
    out.write_text(change(out.read_text(encoding="utf-8")), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(InputError, match=rf"j\.jsonl: .*{why}"):
        list(read_journal(out))
    with pytest.raises(InputError, match=rf"j\.jsonl: .*{why}"):
        merge_journals([path, out], tmp_path / "new.sqlite")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["j.jsonl", "journal.sqlite"]


def test_a_damaged_journal_is_not_exported(path: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE completion SET completion = replace(completion, 'Grade: 0', 'Grade: 3')")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match=r"its content is not what was recorded; .*judge journal salvage"):
        export_journal(path, tmp_path / "j.jsonl")
    assert [one.name for one in tmp_path.iterdir()] == ["journal.sqlite"]


def test_nothing_is_written_over(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for there in (path, tmp_path / "link"):
        for write in (lambda to: export_journal(path, to), lambda to: merge_journals([path], to)):
            with pytest.raises(UsageError, match="is there already"):
                write(there)
    assert not (tmp_path / "elsewhere").exists()


def test_a_merge_keeps_the_first_answer_and_lists_the_others(tmp_path: Path) -> None:
    """One question is answered alike but for the time that it took, which is no other answer."""
    slow = msgspec.structs.replace(completion("Grade: 1"), latency=9.0)
    a = filled(tmp_path / "a.sqlite", {"same": "Grade: 1", "other": "Grade: 2", "only a": "Grade: 0"})
    b = filled(tmp_path / "b.sqlite", {"same": slow, "other": "Grade: 3", "only b": "Grade: 1"})
    with Journal(b) as journal:
        journal.add_fact("room", "100", "b/m")
    with Journal(a) as journal:
        journal.add_fact("room", "200", "b/m")
    assert export_journal(b, tmp_path / "b.jsonl") == 3
    for second in (b, tmp_path / "b.jsonl"):
        new = tmp_path / f"{second.name}.merged"
        taken, repeated, (conflict,) = merge_journals([a, second], new)
        assert (taken, repeated) == (4, 2)
        assert conflict["digest"] == request_digest("b/m", {"t": 0.0}, request("other"))
        assert conflict["path"] == str(second)
        held = {entry.messages[0].content: entry.completion.text for entry in read_journal(new)}
        assert held == {"same": "Grade: 1", "other": "Grade: 2", "only a": "Grade: 0", "only b": "Grade: 1"}
        assert verify_journal(new).problems == ()
        with Journal(new) as journal:
            assert journal.facts("b/m") == {("room", "100"), ("room", "200")}
    assert merge_journals([b, a], tmp_path / "ba")[2][0]["path"] == str(a)


def test_what_is_no_journal_is_not_merged(path: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no journal at all" * 100, encoding="utf-8")
    for bad, why in ((tmp_path / "text", "cannot be read as a journal"), (tmp_path / "absent", "no such journal")):
        with pytest.raises(InputError, match=why):
            merge_journals([path, bad], tmp_path / "new.sqlite")
        assert not (tmp_path / "new.sqlite").exists()
