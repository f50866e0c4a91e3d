"""A pool on disk: found in a folder or by its file, packed or not, with what is wanted of it."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from judge.errors import InputError
from judge.io import files
from judge.io.files import jsonl_bytes
from judge.pool.bank import BESIDE, excluded_tsv, passages_jsonl, pool_jsonl, read_pool_folder
from judge.pool.records import Pool, PooledResponse, PooledRun, RunEntry, is_new, pool_places
from judge.records import Passage
from judge.runs.records import Exclusion, TokenCount
from tests.conftest import put, refused

FILES = ("pool.jsonl", *BESIDE)
RESPONSE = PooledResponse("R00000", "1_1", "1", "One.", ("p:1",), TokenCount(2, 2, 1, None), False, ())
POOL = Pool(
    (RESPONSE,),
    {"p:1": Passage("p:1", "Text.", "collection")},
    (Exclusion("r", "1_1", 2, "depth", ""),),
    (PooledRun("r", "automatic", "team", "ikat2024", "0" * 64, True, ("1_1",)),),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pool.jsonl").write_bytes(pool_jsonl(POOL))
    (tmp_path / "passages.jsonl").write_bytes(passages_jsonl(POOL))
    (tmp_path / "excluded.tsv").write_bytes(excluded_tsv(POOL.exclusions))
    (tmp_path / "runs.jsonl").write_bytes(jsonl_bytes(POOL.runs))
    return tmp_path


def test_the_folder_and_its_file_give_the_same_pool(folder: Path) -> None:
    for path in (folder, folder / "pool.jsonl"):
        assert read_pool_folder(path, "passages.jsonl", "excluded.tsv", "runs.jsonl") == POOL


def test_only_what_is_wanted_is_read(folder: Path) -> None:
    (folder / "excluded.tsv").unlink()
    (folder / "runs.jsonl").unlink()
    assert read_pool_folder(folder, "passages.jsonl") == Pool(POOL.responses, POOL.passages, (), ())
    (folder / "passages.jsonl").unlink()
    assert read_pool_folder(folder) == Pool(POOL.responses, {}, (), ())
    with pytest.raises(InputError, match=r"passages\.jsonl: cannot be read"):
        read_pool_folder(folder, "passages.jsonl")


def test_a_packed_file_is_unpacked(folder: Path) -> None:
    packed = put(folder / "pool.jsonl.gz", gzip.compress((folder / "pool.jsonl").read_bytes()))
    assert read_pool_folder(packed, "passages.jsonl").responses == POOL.responses


def test_large_files_of_short_lines_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pool.jsonl").write_bytes(pool_jsonl(POOL) + b"\n" * 500)
    longest = max(len(line) for name in FILES for line in (folder / name).read_bytes().split(b"\n"))
    monkeypatch.setattr(files, "_largest", longest)
    assert (folder / "pool.jsonl").stat().st_size > longest
    assert read_pool_folder(folder, *BESIDE) == POOL
    monkeypatch.setattr(files, "_largest", longest - 1)
    with pytest.raises(InputError, match=rf"line \d holds more than {longest - 1:,} bytes"):
        read_pool_folder(folder, *BESIDE)


@pytest.mark.parametrize("change", [b"\xef\xbb\xbf%b", b"\n%b", b"%b\n\n"], ids=["mark", "blank before", "blank after"])
def test_marks_and_blank_lines_are_no_damage(change: bytes, folder: Path) -> None:
    for name in ("pool.jsonl", "passages.jsonl", "runs.jsonl"):
        (folder / name).write_bytes(change % (folder / name).read_bytes())
    assert read_pool_folder(folder, *BESIDE) == POOL


def test_strings_that_occur_again_are_held_once(folder: Path) -> None:
    entries = tuple(RunEntry(run_id, 1, "citations", "0" * 64) for run_id in ("a", "b"))
    responses = [
        structs.replace(RESPONSE, response_id=f"R0000{n}", text=f"{n}", passages=("p:1", "q"), runs=entries)
        for n in (1, 2)
    ]
    (folder / "pool.jsonl").write_bytes(pool_jsonl(structs.replace(POOL, responses=tuple(responses))))
    pool = read_pool_folder(folder, "passages.jsonl")
    first, second = pool.responses
    assert pool.responses == tuple(responses)
    assert first.turn_id is second.turn_id and first.topic_id is second.topic_id
    assert first.passages[0] is second.passages[0] is next(iter(pool.passages))
    assert first.passages[1] is second.passages[1]
    assert first.runs[0].run_id is second.runs[0].run_id
    assert first.runs[0].text_sha256 is first.runs[1].text_sha256


def test_so_many_problems_are_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.io.files.MAX_PROBLEMS", 3)
    (folder / "pool.jsonl").write_bytes(pool_jsonl(POOL) * 9)
    assert [problem.path for problem in refused(read_pool_folder, folder)] == [
        *("line 2: $.response_id", "line 3: $.response_id", "line 4: $.response_id", "line 4")
    ]


def test_damage_is_placed_in_the_folder(folder: Path) -> None:
    (folder / "pool.jsonl").write_bytes(b"{}\n")
    assert [problem.file for problem in refused(read_pool_folder, folder)] == [f"{folder}/pool.jsonl"]


@given(st.lists(st.sampled_from(["R00000", "R00001", "R00002", "of no pool", "another"])))
def test_responses_that_were_seen_are_a_set(response_ids: list[str]) -> None:
    seen, expected = bytearray(), set[str]()
    places = {"R00000": 0, "R00001": 1, "R00002": 2}
    for response_id in response_ids:
        assert is_new(response_id, seen, places) == (response_id not in expected)
        expected.add(response_id)
        assert sum(seen) == len(expected)


def test_places_are_those_of_the_pool() -> None:
    assert pool_places(POOL) == {"R00000": 0}
