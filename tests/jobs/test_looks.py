"""Every look at sealed gold is on record, names what it compares, and stands in the certificate."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from judge.calibrate.certificate import read_certificate
from judge.calibrate.certified import Certified
from judge.errors import InputError
from judge.gold.rows import read_gold
from judge.gold.seal import write_split
from tests.calibration_world import gold_rows, items, labeled, pool, write_output, write_pool
from tests.conftest import PROJECT, read_ledger
from tests.jobs.conftest import Asked
from tests.jobs.test_calibration import LATER, YES_NO, asking, tried

pytestmark = pytest.mark.slow

WORLD = items()
Options = dict[str, Any]


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    return write_output(tmp_path / "run", WORLD, {"server/good": labeled(WORLD, 0.1, 2)})


def sealed(split: Path, **options: Any) -> Options:
    return {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl", **options}


def smaller_pool(tmp_path: Path, split: Path, kept: int) -> Path:
    """The pool with all responses of dev and the first ones of test."""
    wanted = {row.response_id for row in read_gold(split / "dev.jsonl")}
    wanted |= {row.response_id for row in read_gold(split / "test.jsonl")[:kept]}
    write_pool(tmp_path / f"pool{kept}", pool([item for item in WORLD if item.response_id in wanted]))
    return tmp_path / f"pool{kept}"


def entry(found: Any) -> Certified:
    (certified,) = found.certificate.certified
    return certified


def test_labels_of_few_sealed_responses_show_nothing(tmp_path: Path, split: Path) -> None:
    test = [row.response_id for row in read_gold(split / "test.jsonl")]
    grades = {name: grade for name, grade in labeled(WORLD, 0.1, 2).items() if name not in test[3:]}
    few = write_output(tmp_path / "few", WORLD, {"server/m": grades})
    with pytest.raises(InputError, match="compares 3 of the sealed grades"):
        tried(**sealed(split, judgments=[few]))
    assert read_ledger(split / "seal.json") == ()


def test_every_other_set_of_responses_is_another_question(tmp_path: Path, split: Path, judgments: Path) -> None:
    options = sealed(split, judgments=[judgments])
    with pytest.raises(InputError, match=r"compares 9 of the sealed grades.*the seal was not opened"):
        tried(**options, pool=smaller_pool(tmp_path, split, 9))
    assert read_ledger(split / "seal.json") == ()
    numbers = [
        entry(tried(**options, pool=smaller_pool(tmp_path, split, kept))).looks.number for kept in (10, 19, 10, 21)
    ]
    assert numbers == [1, 2, 2, 3]
    assert [line.compared for line in read_ledger(split / "seal.json")] == [
        {"groundedness": 10}, {"groundedness": 19}, {"groundedness": 21}
    ]  # fmt: skip


def test_a_judge_by_another_name_is_no_other_candidate(tmp_path: Path, split: Path) -> None:
    grades = labeled(WORLD, 0.5, 1)
    found = []
    for name in ("server/a", "server/b"):
        judged = write_output(tmp_path / name, WORLD, {name: grades})
        looks = entry(tried(**sealed(split, judgments=[judged]))).looks
        found.append((looks.number, looks.candidates))
    assert found == [(1, 1), (2, 1)]


def test_other_positive_grades_are_another_question(tmp_path: Path, split: Path) -> None:
    prompt = (PROJECT / "prompts" / "groundedness" / "graded.md").read_text(encoding="utf-8")
    assert "positive = [2, 3]" in prompt
    said = {name: int(grade >= 2) for name, grade in labeled(WORLD, 0.1, 2).items()}
    judged = write_output(tmp_path / "run", WORLD, {"server/m": said}, YES_NO)
    numbers = []
    for positive in ("[2, 3]", "[3]"):
        # The name of the file stays; which of the gold's grades count as positive does not.
        (tmp_path / "gold.md").write_text(prompt.replace("[2, 3]", positive), encoding="utf-8")
        found = tried(**sealed(split, judgments=[judged], gold_scale=tmp_path / "gold.md"))
        numbers.append(entry(found).looks.number)
    assert numbers == [1, 2]


def test_a_budget_cannot_open_the_grades_one_by_one(tmp_path: Path, split: Path, asked: Asked) -> None:
    asked.cost = 0.01
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl")
    dev = len(read_gold(split / "dev.jsonl"))
    with pytest.raises(InputError, match="of the sealed grades, and so few could be read off"):
        tried(**options, max_cost=0.01 * dev + 0.015, concurrency=1)
    assert read_ledger(split / "seal.json") == ()
    assert entry(tried(**options)).looks.number == 1


def test_a_judge_that_answers_anew_is_another_question(tmp_path: Path, split: Path, asked: Asked) -> None:
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl")
    assert entry(tried(**options)).looks.number == 1
    shutil.rmtree(tmp_path / "out")
    assert entry(tried(**options)).looks.number == 1
    shutil.rmtree(tmp_path / "out")
    asked.wrong = {"0"}
    again = entry(tried(**options))
    assert (again.looks.number, again.looks.candidates) == (2, 2)


def test_a_copied_split_and_another_seed_leave_their_traces(tmp_path: Path, split: Path, judgments: Path) -> None:
    shutil.copytree(split, tmp_path / "copy")
    write_split(gold_rows(WORLD), 0.5, 2, tmp_path / "second")
    first, copied, second = (
        entry(tried(LATER, **sealed(folder, judgments=[judgments]), replicates=200 + place))
        for place, folder in enumerate((split, tmp_path / "copy", tmp_path / "second"))
    )
    assert copied.seal == first.seal
    # Two first lines of one ledger: one of the two folders is a copy.
    assert (copied.looks.number, first.looks.number) == (1, 1)
    assert copied.looks.head != first.looks.head
    assert (first.seal.seed, second.seal.seed) == (1, 2)
    assert second.seal.responses == first.seal.responses
    assert second.seal.commitment != first.seal.commitment


def test_every_certificate_that_is_written_can_be_read(tmp_path: Path, split: Path, judgments: Path) -> None:
    bad = write_output(tmp_path / "bad", WORLD, {"server/bad": labeled(WORLD, 0.9, 3)})
    half = write_output(tmp_path / "half", WORLD, {"server/half": labeled(WORLD[:40], 0.1, 4)})
    for number, (files, more) in enumerate(
        [
            ([bad], {"requirements": ["wkappa.lo>=0.8", "bias.hi<=0.1"]}),
            ([judgments, bad, half], {"requirements": ["wkappa.lo>=0.4", "mae.hi<=0.5"]}),
        ]
    ):
        for options in (sealed(split), {"gold": [split / "dev.jsonl"]}):
            out = tmp_path / f"out{number}{len(options)}"
            found = tried(**options, judgments=files, out=out, **more)
            assert read_certificate(out / "certificate.json") == found.certificate


def test_asking_into_a_folder_of_something_else_opens_nothing(tmp_path: Path, split: Path) -> None:
    write_pool(tmp_path / "pool", pool(WORLD))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "certificate.json").write_text("{}", encoding="utf-8")
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl", out=tmp_path / "out")
    with pytest.raises(InputError, match=r"certificate.json: not listed in calibration.sha256"):
        tried(**options)
    assert read_ledger(split / "seal.json") == ()
