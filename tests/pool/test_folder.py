"""A pool on disk: found in a folder or by its file, packed or not, with what is wanted of it."""

import gzip
from pathlib import Path

import pytest

from judge.errors import InputError
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl, runs_jsonl
from judge.pool.folder import read_pool_folder
from judge.pool.records import Pool, PooledResponse, PooledRun
from judge.records import Passage
from judge.runs.records import Exclusion, TokenCount

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
    (tmp_path / "runs.jsonl").write_bytes(runs_jsonl(POOL))
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
    packed = folder / "pool.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "pool.jsonl").read_bytes()))
    assert read_pool_folder(packed, "passages.jsonl").responses == POOL.responses


def test_damage_is_placed_in_the_folder(folder: Path) -> None:
    (folder / "pool.jsonl").write_bytes(b"{}\n")
    with pytest.raises(InputError) as caught:
        read_pool_folder(folder)
    assert [problem.file for problem in caught.value.problems] == [f"{folder}/pool.jsonl"]
