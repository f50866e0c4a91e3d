"""Indexing and extracting passages as jobs: what they write is what `judge passages` writes."""

from pathlib import Path

import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.jobs.passages import ExtractPlan, IndexPlan, extract_passages, index_passages

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RUNS, COLLECTION = str(EXAMPLES / "runs"), str(EXAMPLES / "passages.jsonl")
ABSENT = "clueweb22-en9999-02-00093"
"""The id that a response cites and the collection has not."""


def test_an_index_is_that_of_the_command(tmp_path: Path) -> None:
    assert index_passages(IndexPlan(collection=[COLLECTION], out=str(tmp_path / "job"))) == 42
    assert main(["passages", "index", "--collection", COLLECTION, "-o", str(tmp_path / "command")]) == 0
    assert (tmp_path / "job").read_bytes() == (tmp_path / "command").read_bytes()


def test_passages_of_runs_are_those_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = extract_passages(ExtractPlan(runs=RUNS, passages=[COLLECTION], out=str(tmp_path / "job")))
    command = ["passages", "extract", "--runs", RUNS, "--passages", COLLECTION, "-o", str(tmp_path / "command")]
    assert main(command) == 1
    said = f"{tmp_path / 'command'}: {outcome.extracted} of {outcome.wanted} passages\n1 not found:\n  {ABSENT}\n"
    assert capsys.readouterr().err == said
    assert (tmp_path / "job").read_bytes() == (tmp_path / "command").read_bytes()
    assert outcome.missing == {ABSENT}
    assert (outcome.unlisted, outcome.differing) == (frozenset(), frozenset())


def test_a_pool_needs_the_passages_of_its_runs(tmp_path: Path) -> None:
    main(["pool", "--runs", RUNS, "--out", str(tmp_path / "pool")])
    by_pool = extract_passages(ExtractPlan(pool=str(tmp_path / "pool"), passages=[COLLECTION], out=tmp_path / "a"))
    extract_passages(ExtractPlan(runs=RUNS, passages=[COLLECTION], out=tmp_path / "b"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (by_pool.errors, by_pool.missing) == (0, {ABSENT})


def test_errors_in_the_runs_are_told_before_the_collection_is_read(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "broken.json").write_text("{", encoding="utf-8")
    (runs / "sound.json").write_bytes((EXAMPLES / "runs" / "harbor-grounded.json").read_bytes())
    told: list[int] = []
    outcome = extract_passages(ExtractPlan(runs=runs, passages=[COLLECTION], out=tmp_path / "a"), told.append)
    assert (told, outcome.errors) == ([1], 1)
    with pytest.raises(InputError, match="cannot be used"):
        extract_passages(ExtractPlan(runs=runs, passages=[tmp_path / "none"], out=tmp_path / "b"), told.append)
    assert told == [1, 1]
    assert not (tmp_path / "b").exists()


def test_a_plan_names_one_source(tmp_path: Path) -> None:
    for index in ({}, {"hashes": "a", "collection": ["b"]}):
        with pytest.raises(UsageError, match="a hash list or of a collection"):
            index_passages(IndexPlan(out=tmp_path / "a", **index))
    for users in ({}, {"runs": "a", "pool": "b"}):
        with pytest.raises(UsageError, match="for runs or for a pool"):
            extract_passages(ExtractPlan(passages=[COLLECTION], out=tmp_path / "a", **users))
    assert list(tmp_path.iterdir()) == []


def test_no_input_is_written_over(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(Path(COLLECTION).read_bytes())
    before = copy.read_bytes()
    with pytest.raises(UsageError, match="would replace the input"):
        index_passages(IndexPlan(collection=[str(copy)], out=str(copy)))
    with pytest.raises(UsageError, match="would replace the input"):
        extract_passages(ExtractPlan(runs=RUNS, passages=[str(copy)], out=str(copy)))
    assert copy.read_bytes() == before
