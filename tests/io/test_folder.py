"""An output folder and its record: what a job may replace, what it removes, and what a stop leaves."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import InputError, OperationalError, UsageError
from judge.io import folder as folders
from judge.io.files import jsonl_bytes, sha256

pytestmark = pytest.mark.slow

RECORD = "job.sha256"
SEAL = "seal"
"""The file that vouches for the others: their names and contents."""
FOREIGN = {"notes.txt": b"mine", "qrels/mine.qrel": b"mine", ".hidden": b"mine", "other.sha256": b"mine"}


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def checked(folder: Path, record: str = RECORD) -> int:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", record], cwd=folder, check=False, capture_output=True
    )
    return done.returncode


class Killed(BaseException):
    """Nothing runs after it that touches a file."""


@contextmanager
def stopped(after: int, *, kill: bool) -> Iterator[None]:
    """Stop at one of the steps that touch files: by kill -9, or since the disk is full."""
    steps = 0

    def troubled(step: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if kill and steps > after:
                raise Killed
            if steps == after + 1 and step is not unlink:
                raise OSError(errno.ENOSPC, "No space left on device")
            return step(*given, **options)

        return made

    unlink = Path.unlink
    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdir", "replace", "unlink", "rmdir"):
            patch.setattr(Path, name, troubled(getattr(Path, name)))
        # At this step the content waits under its temporary name.
        patch.setattr(os, "fsync", troubled(lambda file: None))
        yield


FILES = st.dictionaries(
    st.sampled_from(["a.tsv", "b.json", "qrels/a.qrel", "qrels/filtered/a.qrel"]), st.sampled_from([b"", b"1", b"22"])
)


def sealed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {**files, SEAL: json.dumps({name: content.decode() for name, content in files.items()}).encode()}


def is_vouched_for(folder: Path) -> bool:
    """Whether the folder holds what its seal says, if it has one."""
    there = contents(folder)
    return all(there.get(name) == content.encode() for name, content in json.loads(there.get(SEAL, b"{}")).items())


def in_pieces(files: Mapping[str, bytes]) -> dict[str, folders.FileContent]:
    return {name: folders.Pieces(lambda content=content: [content[:1], content[1:]]) for name, content in files.items()}


@settings(deadline=None)
@given(
    st.lists(st.tuples(FILES, st.integers(0, 40), st.booleans(), st.booleans(), st.booleans()), max_size=4),
    FILES,
    st.sampled_from([{}, FOREIGN]),
)
def test_after_any_calls_and_stops_the_folder_holds_the_last_files(calls, final, foreign) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = put(Path(place), foreign)
        for files, steps, kill, more, large in calls:
            given = files if more else sealed(files)
            try:
                with stopped(steps, kill=kill):
                    folders.replace_folder(
                        folder, {**given, **(in_pieces(files) if large else {})}, RECORD, last=SEAL, more=more
                    )
            except (Killed, OperationalError, InputError):
                pass
            assert is_vouched_for(folder)
            assert contents(folder).items() >= foreign.items()
        folders.replace_folder(folder, sealed(final) | in_pieces(final), RECORD, last=SEAL)
        there = contents(folder)
        record = there.pop(RECORD).decode()
        assert there == foreign | sealed(final)
        assert record == "".join(f"{sha256(sealed(final)[name])}  {name}\n" for name in sorted(sealed(final)))


def test_a_folder_that_is_left_empty_goes(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "qrels/filtered/b.qrel": b"2"}, RECORD)
    folders.replace_folder(tmp_path, {"a.tsv": b"1"}, RECORD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv", RECORD]


def test_what_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    before = {name: (tmp_path / name).stat().st_ino for name in ("a.tsv", "b.tsv")}
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"2"}, RECORD)
    assert (tmp_path / "a.tsv").stat().st_ino == before["a.tsv"]
    assert (tmp_path / "b.tsv").stat().st_ino != before["b.tsv"]


def test_a_large_file_is_made_once_and_its_digest_is_known_then(tmp_path: Path) -> None:
    made = []

    def make() -> list[bytes]:
        made.append(1)
        return [b"1", b"2"]

    content = folders.Pieces(make)
    folders.replace_folder(tmp_path, {"a.tsv": content}, RECORD, more=True)
    folders.replace_folder(tmp_path, {"a.tsv": content, "b.tsv": b"3"}, RECORD)
    assert len(made) == 1
    assert contents(tmp_path).keys() == {"a.tsv", "b.tsv", RECORD}
    assert checked(tmp_path) == 0


def test_a_large_file_that_cannot_be_made_leaves_none_and_the_next_call_makes_all(tmp_path: Path) -> None:
    def fail() -> Iterator[bytes]:
        yield b"1"
        raise InputError("changed while it was read")

    with pytest.raises(InputError, match="changed while it was read"):
        folders.replace_folder(
            tmp_path, {"a.tsv": folders.Pieces(lambda: [b"1"]), "b.tsv": folders.Pieces(fail)}, RECORD
        )
    assert contents(tmp_path).keys() == {RECORD}
    folders.replace_folder(tmp_path, {"b.tsv": b"2"}, RECORD)
    assert contents(tmp_path).keys() == {"b.tsv", RECORD}
    assert checked(tmp_path) == 0


def test_a_large_file_that_another_process_wrote_meanwhile_does_not_become_ours(tmp_path: Path) -> None:
    def other() -> Iterator[bytes]:
        place = tmp_path / folders.temporary_name("a.tsv")
        with folders.open_new(place) as file:
            file.write(b"9")
        yield b"2"

    files = {"a.tsv": folders.Pieces(lambda: [b"1"]), "b.tsv": folders.Pieces(other)}
    with pytest.raises(OperationalError, match=r"a\.tsv: another process is writing this file"):
        folders.replace_folder(tmp_path, files, RECORD)
    assert contents(tmp_path).keys() == {RECORD}


def test_a_file_of_the_job_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1"}, RECORD)
    (tmp_path / "a.tsv").write_bytes(b"damaged")
    folders.replace_folder(tmp_path, {"a.tsv": b"1"}, RECORD)
    assert contents(tmp_path)["a.tsv"] == b"1"


def refused(
    folder: Path, files: Mapping[str, bytes], match: str, kind: type[Exception] = InputError, **more: Any
) -> None:
    """The call is refused and leaves everything as it was."""
    before = contents(folder)
    with pytest.raises(kind, match=match):
        folders.replace_folder(folder, files, RECORD, **more)
    assert contents(folder) == before


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    put(tmp_path, {"b.tsv": b"mine"})
    refused(tmp_path, {"a.tsv": b"1", "b.tsv": b"2"}, r"b\.tsv: not listed in job\.sha256, so somebody else's")
    # The same bytes lose nobody anything.
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"mine"}, RECORD)
    assert checked(tmp_path) == 0


def test_without_its_record_nothing_in_a_folder_is_the_jobs_own(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    (tmp_path / RECORD).unlink()
    refused(tmp_path, {"a.tsv": b"2"}, "not listed")
    folders.replace_folder(tmp_path, {"a.tsv": b"1"}, RECORD)
    assert contents(tmp_path).keys() == {"a.tsv", "b.tsv", RECORD}


def test_two_jobs_in_one_folder_keep_apart(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"pool.txt": b"1", "a.tsv": b"1"}, "first.sha256")
    refused(tmp_path, {"pool.txt": b"2"}, "not listed")
    folders.replace_folder(tmp_path, {"b.tsv": b"1"}, RECORD)
    folders.replace_folder(tmp_path, {"pool.txt": b"3"}, "first.sha256")
    assert contents(tmp_path).keys() == {"pool.txt", "b.tsv", "first.sha256", RECORD}
    assert checked(tmp_path) == checked(tmp_path, "first.sha256") == 0


def test_what_vouches_goes_with_the_first_change_unless_it_is_somebody_elses(tmp_path: Path) -> None:
    put(tmp_path, {"a/seal": b"mine"})
    folders.replace_folder(tmp_path / "a", {"a.tsv": b"1"}, RECORD, last=SEAL, more=True)
    assert contents(tmp_path / "a").keys() == {"a.tsv", SEAL, RECORD}
    folders.replace_folder(tmp_path / "b", {"a.tsv": b"1", SEAL: b"1"}, RECORD, last=SEAL)
    folders.replace_folder(tmp_path / "b", {"a.tsv": b"1"}, RECORD, last=SEAL, more=True)
    assert contents(tmp_path / "b").keys() == {"a.tsv", SEAL, RECORD}
    folders.replace_folder(tmp_path / "b", {"a.tsv": b"2"}, RECORD, last=SEAL, more=True)
    assert contents(tmp_path / "b").keys() == {"a.tsv", RECORD}


def test_a_stale_file_that_somebody_changed_stops_the_job(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    (tmp_path / "b.tsv").write_bytes(b"mine now")
    refused(tmp_path, {"a.tsv": b"2"}, r"b\.tsv: changed since it was written, and not made any more")


def test_an_input_is_neither_removed_nor_written_over_and_stays_the_jobs_own(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "b.tsv")
    refused(tmp_path, {"b.tsv": b"2"}, "would be written over what it is made of", UsageError, inputs=[link])
    refused(tmp_path, {"link": b"2"}, "would be written over what it is made of", UsageError, inputs=[link])
    link.unlink()
    folders.replace_folder(tmp_path, {"a.tsv": b"2"}, RECORD, inputs=[tmp_path / "b.tsv", tmp_path / "never.tsv"])
    assert contents(tmp_path)["b.tsv"] == b"1"
    assert checked(tmp_path) == 0
    folders.replace_folder(tmp_path, {"a.tsv": b"2"}, RECORD)
    assert contents(tmp_path).keys() == {"a.tsv", RECORD}


def test_an_input_that_was_changed_is_the_jobs_no_longer(tmp_path: Path) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    (tmp_path / "b.tsv").write_bytes(b"mine now")
    folders.replace_folder(tmp_path, {"a.tsv": b"2"}, RECORD, inputs=[tmp_path / "b.tsv"])
    assert checked(tmp_path) == 0
    folders.replace_folder(tmp_path, {"a.tsv": b"2"}, RECORD)
    assert contents(tmp_path)["b.tsv"] == b"mine now"


@pytest.mark.parametrize("line", ["", "[]", "0" * 64, f"{'0' * 63}  a.tsv", f"{'0' * 64} a.tsv", "\udcff"])
def test_a_damaged_record_is_refused(tmp_path: Path, line: str) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", "b.tsv": b"1"}, RECORD)
    (tmp_path / RECORD).write_bytes((tmp_path / RECORD).read_bytes() + line.encode(errors="surrogateescape") + b"\n")
    refused(tmp_path, {"a.tsv": b"2"}, r"job\.sha256: (line 3: |not UTF-8)")


@pytest.mark.parametrize("name", ["./a.tsv", "x/../a.tsv", "../out/a.tsv", "../precious", "{}/precious", ".", RECORD])
def test_a_record_by_hand_removes_nothing_else(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"precious": b"1", "out/a.tsv": b"1", "out/x/y": b""})
    out = tmp_path / "out"
    (out / RECORD).write_text(f"{sha256(b'1')}  {name.format(tmp_path)}\n", encoding="utf-8")
    folders.replace_folder(out, {"a.tsv": b"1"}, RECORD)
    assert contents(tmp_path).keys() == {"precious", "out/a.tsv", "out/x/y", f"out/{RECORD}"}


@pytest.mark.parametrize("linked", ["a.tsv", "qrels"])
def test_what_lies_behind_a_link_is_not_removed(tmp_path: Path, linked: str) -> None:
    out, away = tmp_path / "out", tmp_path / "away"
    folders.replace_folder(out, {"a.tsv": b"1", "qrels/a.qrel": b"1", "b.tsv": b"1"}, RECORD)
    (out / linked).rename(away)
    (out / linked).symlink_to(away)
    before = {path: path.read_bytes() for path in (away, *away.rglob("*")) if path.is_file()}
    folders.replace_folder(out, {"b.tsv": b"2"}, RECORD)
    assert {path: path.read_bytes() for path in before} == before
    assert checked(out) == 0


def test_nothing_is_written_into_a_linked_folder(tmp_path: Path) -> None:
    out, away = tmp_path / "out", tmp_path / "away"
    put(tmp_path, {"away/x": b"mine"})
    out.mkdir()
    (out / "qrels").symlink_to(away)
    with pytest.raises(InputError, match="qrels: a link where a folder has to be"):
        folders.replace_folder(out, {"a.tsv": b"1", "qrels/a.qrel": b"1"}, RECORD)
    assert contents(tmp_path) == {"away/x": b"mine"}


@pytest.mark.parametrize("plant", [os.link, os.symlink])
@pytest.mark.parametrize("name", ["a.tsv", RECORD])
def test_nothing_is_written_through_a_link_at_the_temporary_name(tmp_path: Path, plant, name: str) -> None:
    put(tmp_path, {"victim": b"mine"})
    plant(tmp_path / "victim", tmp_path / folders.temporary_name(name))
    folders.replace_folder(tmp_path / "out", {}, RECORD)
    (tmp_path / folders.temporary_name(name)).rename(tmp_path / "out" / folders.temporary_name(name))
    folders.replace_folder(tmp_path / "out", {"a.tsv": b"1"}, RECORD)
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (tmp_path / "out/a.tsv").read_bytes() == b"1"


def test_a_file_that_another_process_began_does_not_become_ours(tmp_path, monkeypatch) -> None:
    def other(place: int) -> None:
        folders.open_new(tmp_path / folders.temporary_name("a.tsv")).close()

    monkeypatch.setattr("os.fsync", other)
    with pytest.raises(OperationalError, match="another process is writing this file"):
        folders.write_atomic(tmp_path / "a.tsv", b"1")
    assert not (tmp_path / "a.tsv").exists()


def test_a_job_goes_on_in_a_linked_folder(tmp_path: Path) -> None:
    put(tmp_path, {"away/x": b""})
    (tmp_path / "out").symlink_to(tmp_path / "away")
    folders.replace_folder(tmp_path / "out", {"a.tsv": b"1", "qrels/a.qrel": b"1"}, RECORD)
    folders.replace_folder(tmp_path / "out", {"a.tsv": b"2"}, RECORD)
    assert contents(tmp_path / "away").keys() == {"x", "a.tsv", RECORD}


@pytest.mark.parametrize("way", ["a.tsv/x", RECORD + "/x", "qrels"])
def test_what_is_in_the_way_stops_the_job(tmp_path: Path, way: str) -> None:
    put(tmp_path, {way: b"mine"})
    refused(tmp_path, {"a.tsv": b"1", "qrels/a.qrel": b"1"}, "a folder where a file|a file where a folder")


@pytest.mark.parametrize(("stale", "taken"), [("qrels/a.qrel", "qrels"), ("b.tsv", "b.tsv/x")])
def test_what_somebody_made_in_the_place_of_a_stale_file_or_its_folder_is_left_alone(
    tmp_path: Path, stale: str, taken: str
) -> None:
    folders.replace_folder(tmp_path, {"a.tsv": b"1", stale: b"1"}, RECORD)
    (tmp_path / stale).unlink()
    shutil.rmtree(tmp_path / "qrels", ignore_errors=True)
    put(tmp_path, {taken: b"mine"})
    folders.replace_folder(tmp_path, {"a.tsv": b"1"}, RECORD)
    assert contents(tmp_path).keys() == {"a.tsv", taken, RECORD}


def test_the_files_of_a_job_go_with_their_record_and_no_other_file_does(tmp_path: Path) -> None:
    """Left alone: what somebody changed since, what the record does not list, and what lies outside the folder."""
    outside = put(tmp_path / "outside", {"kept.txt": b"1"})
    folder = put(tmp_path / "out", FOREIGN)
    folders.replace_folder(folder, {"a.txt": b"1", "pictures/b.svg": b"2", "c.md": b"3"}, RECORD)
    (folder / "c.md").write_bytes(b"my notes")
    (folder / "link").symlink_to(outside)
    with (folder / RECORD).open("a", encoding="utf-8") as record:
        record.writelines(f"{sha256(b'1')}  {name}\n" for name in ("../outside/kept.txt", "link/kept.txt"))
    folders.remove_recorded(folder, RECORD)
    assert contents(folder) == FOREIGN | {"c.md": b"my notes"}
    assert contents(outside) == {"kept.txt": b"1"}


PIECES = st.lists(st.binary(max_size=5) | st.sampled_from([b"\n", b"a\n", b"\nb"]), max_size=8)


@given(PIECES)
def test_the_lines_and_the_digest_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    content = folders.Pieces(lambda: pieces)
    assert list(folders.lines_of(content)) == whole.split(b"\n") == list(folders.lines_of(whole))
    assert folders.content_digest(content) == hashlib.sha256(whole).hexdigest() == folders.content_digest(whole)
    assert bytes(content) == whole


def test_a_file_is_replaced_unless_it_is_its_content_to_the_last_byte(tmp_path: Path) -> None:
    path, pieces = tmp_path / "a", folders.Pieces(lambda: [b"one\n", b"", b"two"])
    for stored, same in ((b"one\ntwo", True), (b"one\ntwo\n", False), (b"one\ntw", False), (b"one\ntwi", False)):
        for content in (pieces, bytes(pieces)):
            folders.replace_folder(tmp_path, {"a": content}, "record")
            path.write_bytes(stored)
            before = path.stat().st_ino
            folders.replace_folder(tmp_path, {"a": content}, "record")
            assert (path.stat().st_ino == before) is same


@given(st.integers(0, 2500))
def test_records_and_lines_in_pieces_are_the_same(number: int) -> None:
    records = [{"n": place} for place in range(number)]
    assert b"".join(folders.jsonl_pieces(records)) == jsonl_bytes(records)
    lines = [f"{place} ä\n" for place in range(number)]
    assert b"".join(folders.text_pieces(lines)) == "".join(lines).encode()


def test_pieces_of_lines_are_made_before_the_last_line_is_there() -> None:
    assert next(folders.text_pieces(f"{place}\n" for place in count())).startswith(b"0\n1\n")
    assert next(folders.text_pieces(repeat("")), None) == b""
