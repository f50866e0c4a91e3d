"""Results on the disk are the results that were put there, in the order of their places."""

import errno
import gc
import io
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.records import Failure, Judgment
from judge.ask.results import ResultWriter, StoredResults, read_results, stored
from judge.errors import InputError, OperationalError
from judge.io.files import jsonl_bytes
from judge.io.table import Table
from tests import calibration_world as world


def judgment(number: int, rationale: str | None = None) -> Judgment:
    return world.judgment("1_1", f"R{number}", number % 4, rationale=rationale)


def failure(number: int, raw: str) -> Failure:
    return world.failure("1_1", f"R{number}", "unreadable", raw=raw)


def test_each_result_has_its_place_whatever_the_order() -> None:
    results = (judgment(0), failure(1, "a\nb"), judgment(2, "naïve\u2028\n"))
    writer = ResultWriter(3)
    for place in (2, 0, 1):
        writer.put(place, results[place])
    read = writer.results()
    assert len(writer) == len(read) == 3
    assert tuple(read) == results == tuple(read)
    assert [read[0], read[1], read[-1]] == list(results)
    assert read[1:] == Table(results[1:])
    assert read == results and read != results[:2] and read != (*results[:2], judgment(7))


def test_a_place_without_a_result_is_no_result() -> None:
    writer = ResultWriter(2)
    writer.put(1, judgment(1))
    with pytest.raises(ValueError, match="not come"):
        writer.results()


def test_the_last_result_of_a_place_counts() -> None:
    writer = ResultWriter(1)
    writer.put(0, failure(0, "late"))
    writer.put(0, judgment(0))
    assert len(writer) == 1
    assert list(writer.results()) == [judgment(0)]


def test_several_sequences_are_one() -> None:
    first, second = stored([judgment(0), judgment(1)]), stored([judgment(2)])
    both = StoredResults.joined([first, StoredResults(), second])
    assert both == (judgment(0), judgment(1), judgment(2))
    assert (both[1], both[2], both[-3]) == (judgment(1), judgment(2), judgment(0))
    with pytest.raises(IndexError):
        both[3]
    assert stored(both) is both


def test_two_readers_do_not_disturb_each_other() -> None:
    read = stored(judgment(number) for number in range(5))
    assert [one.response_id + other.response_id for one in read for other in read][:6] == [
        *("R0R0", "R0R1", "R0R2", "R0R3", "R0R4", "R1R0")
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=8), st.integers(0, 5000))
def test_texts_come_back_as_they_were(texts: list[str], length: int) -> None:
    results = [judgment(0, "x" * length), *(judgment(number, text) for number, text in enumerate(texts))]
    assert list(stored(results)) == results


def test_results_that_fill_many_blocks_come_back_whatever_the_order() -> None:
    lengths = [1_000 * (number % 90) + (200_000 if number == 57 else 1) for number in range(120)]
    results = [judgment(number, "x" * length) for number, length in enumerate(lengths)]
    writer = ResultWriter(len(results))
    for place in sorted(range(len(results)), key=lambda place: place * 7 % len(results)):
        writer.put(place, results[place])
    read = writer.results()
    assert list(read) == results == list(read)
    assert [read[place] for place in (119, 57, 0)] == [results[place] for place in (119, 57, 0)]


def test_large_results_lie_in_the_folder_without_a_name(tmp_path: Path) -> None:
    long = "x" * 3_000_000
    results = [judgment(number, long + str(number)) for number in range(8)]
    read = stored(results, tmp_path)
    assert list(read) == results
    assert read[5] == results[5]
    assert list(tmp_path.iterdir()) == []


def test_another_process_gets_the_results_themselves() -> None:
    results = [judgment(0), failure(1, "x")]
    assert pickle.loads(pickle.dumps(stored(results))) == Table(results)


class FullDisk(io.BytesIO):
    """A file on a disk without room, which says so when it is closed too."""

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        super().close()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.SpooledTemporaryFile", lambda *_, **__: FullDisk())
    writer = ResultWriter(folder=Path("out"))
    with pytest.raises(OperationalError, match=r"^out: cannot be written: No space left on device$"):
        writer.add(judgment(0))
    # An exception while the file is closed would be a warning, which is an error here.
    del writer
    gc.collect()


def test_a_file_that_is_edited_between_two_readings_is_told(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    path.write_bytes(jsonl_bytes([judgment(1), judgment(2)]))
    results = read_results(path, tmp_path / "failures.jsonl")
    assert [result.grade for result in results if isinstance(result, Judgment)] == [1, 2]
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b'"grade":1', b'"grade":3'))
    os.utime(path, ns=(0, 0))
    with pytest.raises(InputError, match=r"judgments\.jsonl: has changed since it was read"):
        list(results)
