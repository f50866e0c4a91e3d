"""A calibration from files to files: stored labels, asked judges, sealed grades."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.criteria import find_criterion
from judge.calibrate.certificate import PARAMETERS, read_certificate
from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.gold.rows import read_gold
from judge.gold.seal import read_salt, read_seal, salted
from judge.io.text import digest
from judge.jobs.calibration import CalibrationOutcome, CalibrationPlan, calibrate_judges, forecast_calibration
from judge.jobs.manifest import SCHEMA
from judge.judges.backends.baseline import Overlap
from judge.pool.build import normalize
from judge.pool.lists import read_families
from tests.calibration_world import (
    contents,
    failure,
    gold_rows,
    items,
    jsonl,
    judgment,
    labeled,
    pool,
    row,
    table,
    write_columns,
    write_gold,
    write_output,
    write_pool,
)
from tests.conftest import PROJECT, put, read_ledger, refused
from tests.jobs.conftest import Asked
from tests.mock import Mock, start_mock

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = datetime(2027, 1, 1, tzinfo=UTC)
WORLD = items()
GRADED, YES_NO = "groundedness/graded", "groundedness/yes_no"


def tried(now: datetime = NOW, **options: Any) -> CalibrationOutcome:
    return calibrate_judges(CalibrationPlan(**{"replicates": 200, "permutations": 200, **options}), now)


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write_gold(tmp_path / "gold.jsonl", gold_rows(WORLD))


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    return write_output(
        tmp_path / "run", WORLD, {"server/good": labeled(WORLD, 0.1, 2), "server/bad": labeled(WORLD, 0.9, 3)}
    )


def asking(tmp_path: Path, gold: Path, **options: Any) -> dict[str, Any]:
    if not (tmp_path / "pool").exists():
        write_pool(tmp_path / "pool", pool(WORLD))
    return {"gold": [gold], "models": ["baseline/overlap"], "prompts": [GRADED], "pool": tmp_path / "pool",
            "out": tmp_path / "out", **options}  # fmt: skip


# Labels that are there


def test_stored_judgments_meet_gold_and_baselines(gold: Path, judgments: Path) -> None:
    found = tried(gold=[gold], judgments=[judgments])
    assert [(one.name, one.baseline, one.n) for one in found.calibration.agreement] == [
        ("server/bad graded", False, 120), ("server/good graded", False, 120), ("constant", True, 120),
        ("baseline/overlap graded", True, 120),
    ]  # fmt: skip
    (verdict,) = found.calibration.verdicts
    assert (verdict.judge, verdict.word, found.trusted) == ("server/good graded", "TRUSTED", True)
    (one,) = found.certificate.certified
    assert (found.certificate.date, one.judge, one.prompt, one.tried) == ("2026-03-01", "server/good", GRADED, 2)
    assert (one.verdict, one.prompt_digest) == ("TRUSTED", find_criterion(GRADED).digest)
    assert (one.parameters, one.models_returned) == (None, ("m-2026",))
    assert (one.seal, one.binary) == (None, False)
    assert one.resampling == {"seed": 2023, "replicates": 200, "permutations": 200}


def test_a_judge_without_a_grade_of_gold_has_a_verdict_too(tmp_path: Path, gold: Path, split: Path) -> None:
    judged = write_output(tmp_path / "run", WORLD, {"server/m": {"R00001": 1}})
    for path, side in (
        (write_gold(tmp_path / "rest.jsonl", gold_rows(WORLD[10:])), "all"),
        (split / "dev.jsonl", "dev"),
    ):
        rows = [one for one in read_gold(path) if one.response_id != "R00001"]
        found = tried(gold=[write_gold(tmp_path / "gold.jsonl", rows)], judgments=[judged])
        (one,) = found.calibration.verdicts
        assert (one.word, one.judge, one.split, found.trusted) == ("INCONCLUSIVE", "server/m graded", side, False)
        assert one.reasons == ("no judge has grades that the statistic is defined for",)
        assert one.requirements == ("wkappa.lo>=0.4",)
        assert any("0 judged gold items on 0 topics" in text for text in found.calibration.warnings)
        (entry,) = found.certificate.certified
        assert (entry.verdict, entry.n, entry.tried) == ("INCONCLUSIVE", 0, 0)


def test_one_criterion_without_a_verdict_is_enough_to_trust_no_run(tmp_path: Path, judgments: Path) -> None:
    rows = [*gold_rows(WORLD), *gold_rows(WORLD, criterion="naturalness")]
    silent = write_output(tmp_path / "silent", WORLD, {"server/good": {}})
    silent.write_bytes(jsonl([judgment("99_1", "R99999", 1, "server/good", "naturalness/graded")]))
    found = tried(gold=[write_gold(tmp_path / "gold.jsonl", rows)], judgments=[judgments, silent])
    assert {one.criterion: one.word for one in found.calibration.verdicts} == {
        "groundedness": "TRUSTED", "naturalness": "INCONCLUSIVE"
    }  # fmt: skip
    assert not found.trusted


def test_the_chosen_judge_is_set_against_the_baseline_that_costs_nothing(gold: Path, tmp_path: Path) -> None:
    text = "is not shown to agree better than baseline/overlap graded, which costs nothing"
    for noise, said in ((0.9, True), (0.0, False)):
        judged = write_output(tmp_path / f"{noise}", WORLD, {"server/m": labeled(WORLD, noise, 2)})
        found = tried(gold=[gold], judgments=[judged]).calibration
        (pair,) = found.comparisons
        separate = pair.p_max_t is not None and pair.p_max_t < 0.05 and (pair.difference.value or 0) > 0
        assert any(text in one for one in found.warnings) == (not separate)
        if said:
            assert any(f"groundedness: server/m graded {text}" in one for one in found.warnings)


def test_white_space_under_a_schema_is_a_warning_of_the_journal_too(mock: Mock, gold: Path, tmp_path: Path) -> None:
    mock.config(faults={"white-space": 1.0})
    plan = asking(tmp_path, gold, models=["server/mock"], base_url=mock.base_url)
    told = "server/mock: not asked for grades in the form json, in which its endpoint gave none."
    assert any(told in warning for warning in tried(**plan).calibration.warnings)
    asked = mock.stats()["requests"]
    assert any(told in warning for warning in tried(**plan).calibration.warnings)
    assert mock.stats()["requests"] == asked


def test_one_candidate_was_not_chosen_and_so_has_no_optimism(gold: Path, split: Path, tmp_path: Path) -> None:
    judged = write_output(tmp_path / "one", WORLD, {"server/m": labeled(WORLD, 0.3, 2)})
    for options in ({"gold": [gold]}, {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl"}):
        (choice,) = tried(judgments=[judged], **options).calibration.selections
        assert choice.optimism is None


def test_the_order_of_gold_files_is_no_other_gold(tmp_path: Path, judgments: Path) -> None:
    files = [write_gold(tmp_path / name, rows) for name, rows in
             (("a.jsonl", gold_rows(WORLD[:60])), ("b.jsonl", gold_rows(WORLD[60:])))]  # fmt: skip
    one, other, half = (tried(gold=some, judgments=[judgments]) for some in (files, files[::-1], files[:1]))
    assert one.certificate == other.certificate
    assert one.certificate.certified[0].gold != half.certificate.certified[0].gold


def test_warnings_are_about_the_items_that_were_judged(tmp_path: Path, gold: Path) -> None:
    half = write_output(tmp_path / "half", WORLD, {"server/m": labeled(WORLD[:60], 0.1, 2)})
    found = tried(gold=[gold], judgments=[half]).calibration
    assert found.warnings[0].startswith("groundedness: 60 judged gold items on 12 topics cannot make a judge trusted")


def test_parameters_and_versions_are_those_of_the_manifest_beside_the_judgments(gold: Path, judgments: Path) -> None:
    configuration = {"options": {**dict.fromkeys(PARAMETERS), "temperature": 0.7, "depth": 1}, "parser": 41,
                     "renderer": 42}  # fmt: skip
    manifest = {"schema": SCHEMA, "judge_version": "x", "configuration": configuration}
    judgments.with_name("manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (one,) = tried(gold=[gold], judgments=[judgments]).certificate.certified
    assert one.parameters == {**dict.fromkeys(PARAMETERS), "temperature": 0.7}
    assert (one.parser, one.renderer) == (41, 42)


@pytest.mark.parametrize("manifest", ["{", '{"schema": 3, "configuration": {"options": 7, "parser": "x"}}'])
def test_a_strange_manifest_beside_judgments_certifies_nothing(gold: Path, judgments: Path, manifest: str) -> None:
    judgments.with_name("manifest.json").write_text(manifest, encoding="utf-8")
    (one,) = tried(gold=[gold], judgments=[judgments]).certificate.certified
    assert one.parameters is None


def test_columns_are_judges_too(tmp_path: Path, judgments: Path) -> None:
    keys = {(one.turn_id, one.response_id): one for one in WORLD}
    human = write_columns(tmp_path / "nist.qrel", {key: one.gold for key, one in keys.items()})
    machine = write_columns(tmp_path / "umbrela.txt", {key: one.deserved for key, one in keys.items()})
    found = tried(gold=[human], judgments=[machine], criterion="relevance", scale="0-3")
    assert [one.name for one in found.calibration.agreement] == ["umbrela", "constant"]
    assert found.calibration.agreement[0].reference == "nist"
    assert "do not say how their grades were made" in found.calibration.warnings[0]
    both = tried(gold=[human], judgments=[machine, judgments], criterion="groundedness")
    assert {one.judge for one in both.calibration.agreement} >= {"umbrela", "server/good", "constant"}


def test_columns_do_not_say_which_of_several_criteria_they_are_about(tmp_path: Path) -> None:
    keys = {(one.turn_id, one.response_id): one.deserved for one in WORLD}
    machine = write_columns(tmp_path / "umbrela.txt", keys)
    rows = [*gold_rows(WORLD), *gold_rows(WORLD, criterion="naturalness")]
    options: dict[str, Any] = {"gold": [write_gold(tmp_path / "gold.jsonl", rows)], "judgments": [machine]}
    with pytest.raises(
        UsageError, match=r"grades of groundedness, naturalness, and files of columns .*--criterion NAME"
    ):
        tried(**options)
    found = tried(**options, criterion="groundedness").calibration
    assert {one.criterion for one in found.agreement} == {"groundedness"}


def test_two_pools_with_other_ids_are_one_table(tmp_path: Path) -> None:
    grades = labeled(WORLD, 0.2, 5)
    a = write_output(tmp_path / "a", WORLD, {"server/a": grades})
    b = write_output(tmp_path / "b", WORLD, {"server/b": grades}, shift=1000)
    texts = pool(WORLD).responses
    rows = [
        msgspec.structs.replace(one, response_id=None, text_sha256=digest(normalize(text.text)))
        for one, text in zip(gold_rows(WORLD), texts, strict=True)
    ]
    found = tried(gold=[write_gold(tmp_path / "gold.jsonl", rows)], judgments=[a, b]).calibration
    first, second = found.agreement[:2]
    assert (first.n, second.n) == (120, 120)
    assert first.statistics == second.statistics
    assert found.comparisons[0].difference.value == 0


def test_failures_and_silence_are_counted_by_reason(tmp_path: Path, gold: Path) -> None:
    write_pool(tmp_path / "run", pool(WORLD))
    said = [judgment(one.turn_id, one.response_id, one.gold) for one in WORLD[:100]]
    said += [judgment(one.turn_id, one.response_id, -1, unable=True) for one in WORLD[100:104]]
    (tmp_path / "run" / "judgments.jsonl").write_bytes(jsonl(said))
    failed = [failure(one.turn_id, one.response_id, "unreadable") for one in WORLD[104:114]]
    (tmp_path / "run" / "failures.jsonl").write_bytes(jsonl(failed))
    found = tried(gold=[gold], judgments=[tmp_path / "run" / "judgments.jsonl"], out=tmp_path / "out")
    line = table(tmp_path / "out" / "agreement.tsv")[0]
    assert (line["n"], line["gold"], line["without_grade"]) == ("100", "120", "unreadable:10,not_judged:6,unable:4")
    assert float(line["percent"]) == 1.0
    assert float(line["worst_percent"]) == pytest.approx(100 / 120, abs=1e-6)
    assert found.calibration.agreement[0].coverage == 100 / 120


def test_one_criterion_or_one_prompt_can_be_picked(tmp_path: Path, gold: Path) -> None:
    write_pool(tmp_path / "run", pool(WORLD))
    said = [judgment(one.turn_id, one.response_id, grade, "server/m", prompt)
            for one in WORLD for prompt, grade in ((GRADED, one.gold), (YES_NO, int(one.gold > 1)))]  # fmt: skip
    path = put(tmp_path / "run" / "judgments.jsonl", jsonl(said))
    with pytest.raises(UsageError, match="--gold-scale PROMPT"):
        tried(gold=[gold], judgments=[path])
    both = tried(gold=[gold], judgments=[path], gold_scale=GRADED).calibration
    assert [(one.name, one.grades, one.primary) for one in both.agreement if not one.baseline] == [
        ("server/m graded", (0, 1), "kappa"), ("server/m yes_no", (0, 1), "kappa")
    ]  # fmt: skip
    assert {one.statistics["kappa"].value for one in both.agreement if not one.baseline} == {1.0}
    one = tried(gold=[gold], judgments=[path], criterion=GRADED).calibration
    assert [(one.name, one.grades) for one in one.agreement if not one.baseline] == [("server/m graded", (0, 1, 2, 3))]


def test_grades_on_different_scales_are_never_said_to_be_compared_as_grades(tmp_path: Path, gold: Path) -> None:
    text = "groundedness: scales differ, so grades are compared as positive or not; nothing here is about grades"
    said = {one.response_id: int(one.gold > 1) for one in WORLD}
    path = write_output(tmp_path / "run", WORLD, {"server/m": said}, YES_NO)
    collapsed = tried(gold=[gold], judgments=[path], gold_scale=GRADED)
    assert text in collapsed.calibration.warnings
    assert collapsed.certificate.certified[0].binary
    assert {one.binary for one in collapsed.calibration.agreement} == {True}
    same = tried(gold=[gold], judgments=[write_output(tmp_path / "same", WORLD, {"server/m": said})])
    assert text not in same.calibration.warnings
    assert not same.certificate.certified[0].binary
    assert {one.binary for one in same.calibration.agreement} == {False}


def test_only_the_prompt_that_was_picked_is_in_the_question_to_sealed_grades(tmp_path: Path, split: Path) -> None:
    write_pool(tmp_path / "run", pool(WORLD))
    said = [judgment(one.turn_id, one.response_id, grade, "server/m", prompt)
            for one in WORLD for prompt, grade in ((GRADED, one.gold), (YES_NO, int(one.gold > 1)))]  # fmt: skip
    path = put(tmp_path / "run" / "judgments.jsonl", jsonl(said))
    numbers = []
    for prompt in (GRADED, YES_NO, GRADED):
        found = tried(gold=[split / "dev.jsonl"], test=split / "test.jsonl", judgments=[path], criterion=prompt,
                      gold_scale=GRADED)  # fmt: skip
        numbers.append(found.calibration.selections[0].openings)
    assert numbers == [1, 2, 2]


def test_a_changed_prompt_is_said(gold: Path, judgments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old = find_criterion(GRADED).digest
    judgments.write_text(judgments.read_text(encoding="utf-8").replace(old, "0" * 64), encoding="utf-8")
    found = tried(gold=[gold], judgments=[judgments])
    said = [one for one in found.calibration.warnings if "has changed since these judgments were made" in one]
    # It is published with the findings, which show nobody's folders.
    assert said
    assert all(one.startswith("run/judgments.jsonl: ") for one in said)
    assert found.certificate.certified[0].prompt_digest == "0" * 64


def test_judgments_under_a_prompt_of_ones_own_ask_for_its_file(tmp_path: Path, gold: Path, judgments: Path) -> None:
    judgments.write_text(judgments.read_text(encoding="utf-8").replace('"graded"', '"mine"'), encoding="utf-8")
    with pytest.raises(UsageError, match="--prompt PATH"):
        tried(gold=[gold], judgments=[judgments])
    own = put(tmp_path / "mine.md", (PROJECT / "prompts" / "groundedness" / "graded.md").read_bytes())
    found = tried(gold=[gold], judgments=[judgments], prompts=[str(own)])
    assert found.calibration.verdicts[0].judge == "server/good mine"
    own = own.rename(tmp_path / "graded.md")
    own.write_bytes(own.read_bytes() + b"\n")
    with pytest.raises(UsageError, match="both called groundedness/graded"):
        tried(gold=[gold], judgments=[judgments], prompts=[GRADED, str(own)])


def test_nothing_is_written_if_labels_are_off_their_scale(tmp_path: Path, gold: Path) -> None:
    path = write_output(tmp_path / "run", WORLD, {"server/m": {"R00001": 1, "R00002": 9}})
    with pytest.raises(InputError, match="cannot be compared"):
        tried(gold=[gold], judgments=[path], out=tmp_path / "out")
    bad = write_columns(tmp_path / "bad.txt", {("1_1", "R00001"): 9})
    with pytest.raises(InputError):
        tried(gold=[gold], judgments=[bad], criterion="groundedness", scale="0-3", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_same_again_gives_the_same_bytes_and_keeps_the_date(tmp_path: Path, gold: Path, judgments: Path) -> None:
    options: dict[str, Any] = {"gold": [gold], "judgments": [judgments], "out": tmp_path / "out"}
    tried(**options)
    first = contents(tmp_path / "out")
    tried(LATER, **options)
    assert contents(tmp_path / "out") == first
    assert read_certificate(tmp_path / "out" / "certificate.json").date == "2026-03-01"
    tried(LATER, **options, requirements=["wkappa.lo>=0.5"])
    assert read_certificate(tmp_path / "out" / "certificate.json").date == "2027-01-01"


def test_nothing_of_an_earlier_calibration_stays_beside_another(tmp_path: Path, gold: Path, judgments: Path) -> None:
    out = tmp_path / "out"
    tried(gold=[gold], judgments=[judgments], out=out)
    assert (out / "comparisons.tsv").exists()
    (out / "comparisons.txt").write_text("the user's own", encoding="utf-8")
    columns = write_columns(tmp_path / "m.txt", {(one.turn_id, one.response_id): one.gold for one in WORLD})
    tried(gold=[gold], judgments=[columns], criterion="groundedness", out=out)
    assert not (out / "comparisons.tsv").exists()
    assert (out / "comparisons.txt").exists()
    own = tmp_path / "own"
    put(own / "comparisons.tsv", "the user's own")
    tried(gold=[gold], judgments=[columns], criterion="groundedness", out=own)
    assert (own / "comparisons.tsv").read_text(encoding="utf-8") == "the user's own"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either existing judgments"),
        ({"judgments": ["x"], "models": ["baseline/overlap"]}, "either existing judgments"),
        ({"models": ["baseline/overlap"]}, "asking needs --prompt, --pool"),
        ({"judgments": ["x"], "epsilon": 1.0}, "epsilon: expected a number below 1, found 1.0"),
        ({"judgments": ["x"], "samples": 1001}, "samples: expected 1,000 or less, found 1001"),
        ({"judgments": ["x"], "replicates": 199}, "replicates: expected 200 or more, found 199"),
        ({"judgments": ["x"], "permutations": 1_000_001}, "permutations: expected 1,000,000 or less"),
        ({"judgments": ["x"], "requirements": ["wkappa>=1"]}, "a point estimate is no gate"),
        ({"judgments": ["x"], "scale": "3"}, "expected the lowest and the highest grade"),
        ({"judgments": ["x"], "prompts": ["groundedness/absent"]}, "no prompt called"),
        ({"judgments": ["x"], "criterion": "groundedness/absent"}, "no prompt called"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_read(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tried(gold=["absent.jsonl"], **options)


# Sealed grades


def test_the_chosen_judge_is_reported_on_sealed_grades_and_each_question_counts(split: Path, judgments: Path) -> None:
    options: dict[str, Any] = {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl", "judgments": [judgments]}
    first, again = tried(**options), tried(LATER, **options)
    assert first.calibration == again.calibration
    test = read_gold(split / "test.jsonl")
    topics = len({one.topic_id for one in test})
    assert first.calibration.warnings[0].startswith(
        f"groundedness: {len(test)} judged gold items on {topics} topics cannot"
    )
    assert [one.judge for one in first.calibration.agreement if one.split == "test"] == [
        "server/good", "constant", "baseline/overlap"
    ]  # fmt: skip
    assert (first.calibration.verdicts[0].split, first.certificate.certified[0].looks.number) == ("test", 1)
    assert len(read_ledger(split / "seal.json")) == 1
    judgments.write_bytes(judgments.read_bytes() + b"\n")
    second = tried(**options)
    assert second.certificate.certified[0].looks.number == 2
    assert any("opened for 2 different questions" in one for one in second.calibration.warnings)
    # A threshold must not be tuned to what was seen, and another draw is another question.
    for number, changed in enumerate(({"requirements": ["wkappa.lo>=0.5"]}, {"resampling_seed": 1}), 3):
        (entry,) = tried(**options | changed).certificate.certified
        assert entry.looks.number == number
    assert entry.resampling == {"seed": 1, "replicates": 200, "permutations": 200}
    assert (entry.seal.commitment, entry.seal.seed) == (read_seal(split / "seal.json").commitment, 1)
    assert len(read_ledger(split / "seal.json")) == 4


def test_sealed_grades_are_no_plain_gold(tmp_path: Path, split: Path, judgments: Path) -> None:
    # Under another name and without their split, they are still about the sealed items.
    disguised = write_gold(split / "mine.jsonl", gold_rows(WORLD, "bob"))
    for files in ([split / "test.jsonl"], [split / "dev.jsonl", split / "test.jsonl"], [disguised]):
        with pytest.raises(UsageError, match="sealed test grades: they are opened with --test"):
            tried(gold=files, judgments=[judgments], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert read_ledger(split / "seal.json") == ()
    assert tried(gold=[split / "dev.jsonl"], judgments=[judgments]).calibration.verdicts[0].split == "dev"


def test_a_damaged_seal_beside_gold_is_said_and_no_gold_is_lost(gold: Path, split: Path, judgments: Path) -> None:
    (split / "seal.json").write_text("{", encoding="utf-8")
    for files in ([split / "dev.jsonl"], [gold, split / "dev.jsonl"]):
        with pytest.raises(InputError, match="not a seal"):
            tried(gold=files, judgments=[judgments])


def test_test_grades_without_a_seal_are_said_to_be_open(tmp_path: Path, split: Path, judgments: Path) -> None:
    text = "groundedness: the test grades are not sealed, so nobody can tell how often they were looked at"
    rows = [*read_gold(split / "dev.jsonl"), *read_gold(split / "test.jsonl")]
    found = tried(gold=[write_gold(tmp_path / "all.jsonl", rows)], judgments=[judgments])
    assert text in found.calibration.warnings
    assert (found.calibration.verdicts[0].split, found.certificate.certified[0].seal) == ("test", None)
    sealed = tried(gold=[split / "dev.jsonl"], test=split / "test.jsonl", judgments=[judgments])
    assert text not in sealed.calibration.warnings


def reseal(split: Path, old: bytes, new: bytes) -> None:
    """Change sealed grades, and the seal with them."""
    test, seal = split / "test.jsonl", split / "seal.json"
    test.write_bytes(test.read_bytes().replace(old, new))
    commitment = salted(read_salt(split / "test.salt"), test.read_bytes())
    seal.write_bytes(msgspec.json.encode(msgspec.structs.replace(read_seal(seal), commitment=commitment)))


@pytest.mark.parametrize("kind", ["judgments", "columns"])
def test_sealed_grades_off_their_scale_are_counted_and_neither_shown_nor_logged(
    tmp_path: Path, split: Path, judgments: Path, kind: str
) -> None:
    off_scale = (split / "test.jsonl").read_bytes().count(b'"grade":2')
    reseal(split, b'"grade":2', b'"grade":77')
    options: dict[str, Any] = {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl", "judgments": [judgments]}
    if kind == "columns":
        columns = write_columns(tmp_path / "m.txt", {(one.turn_id, one.response_id): one.deserved for one in WORLD})
        options |= {"judgments": [columns], "criterion": "groundedness", "scale": "0-3"}
    with pytest.raises(
        InputError, match=rf"{off_scale} problems of the sealed grades.*the seal was not opened"
    ) as caught:
        tried(**options)
    assert not caught.value.problems
    assert "77" not in str(caught.value).replace(str(tmp_path), "")
    assert read_ledger(split / "seal.json") == ()


def test_a_seal_elsewhere_is_found_where_it_is_said_to_be(tmp_path: Path, split: Path, judgments: Path) -> None:
    (split / "seal.json").rename(tmp_path / "moved.json")
    options: dict[str, Any] = {"gold": [split / "dev.jsonl"], "test": split / "test.jsonl", "judgments": [judgments]}
    with pytest.raises(InputError, match=r"seal\.json"):
        tried(**options)
    assert tried(**options, seal=tmp_path / "moved.json").certificate.certified[0].looks.number == 1


def test_a_mistake_costs_no_look_at_the_sealed_grades(tmp_path: Path, gold: Path, split: Path, judgments: Path) -> None:
    options: dict[str, Any] = {"test": split / "test.jsonl", "judgments": [judgments]}
    with pytest.raises(UsageError, match=r"goes with the dev\.jsonl"):
        tried(gold=[gold], **options)
    off = write_output(tmp_path / "off", WORLD, {"server/m": {"R00001": 9}})
    with pytest.raises(InputError):
        tried(gold=[split / "dev.jsonl"], test=split / "test.jsonl", judgments=[off])
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="output folder"):
        tried(gold=[split / "dev.jsonl"], out=tmp_path / "file", **options)
    assert read_ledger(split / "seal.json") == ()


# Labels off the scale


@pytest.mark.parametrize("kind", ["judgments", "columns"])
def test_labels_off_their_scale_stop_a_calibration_or_count_as_missing(tmp_path: Path, gold: Path, kind: str) -> None:
    grades = {**labeled(WORLD, 0.1, 2), "R00001": 5, "R00002": -1}
    options: dict[str, Any] = {"gold": [gold], "judgments": [write_output(tmp_path / "run", WORLD, {"m": grades})]}
    if kind == "columns":
        columns = write_columns(tmp_path / "m.txt", {(one.turn_id, one.response_id): grades[one.response_id]
                                                     for one in WORLD})  # fmt: skip
        options |= {"judgments": [columns], "criterion": "groundedness", "scale": "0-3"}
    assert [problem.code for problem in refused(tried, **options)] == ["off_scale", "off_scale"]
    found = tried(**options, off_scale="missing")
    row = found.calibration.agreement[0]
    assert (row.n, row.gold, row.without_grade) == (118, 120, {"off_scale": 2})
    assert row.worst_case["wkappa"] < row.statistics["wkappa"].value
    assert f"groundedness: 2 of 120 labels by {row.name} are off the scale and count as missing" in (
        found.calibration.warnings
    )
    certified = found.certificate.certified[0]
    assert (certified.n, certified.graded) == (118, 120)


def test_gold_off_its_scale_is_a_problem_in_any_case(tmp_path: Path, judgments: Path) -> None:
    rows = [msgspec.structs.replace(one, grade=7) if one.response_id == "R00001" else one for one in gold_rows(WORLD)]
    gold = write_gold(tmp_path / "gold.jsonl", rows)
    problems = refused(tried, gold=[gold], judgments=[judgments], off_scale="missing")
    assert [problem.code for problem in problems] == ["off_scale"]


# Judges that are asked


def test_two_prompts_over_a_pool_and_the_journal_pays_once(tmp_path: Path, gold: Path, asked: Asked) -> None:
    options = asking(tmp_path, gold, prompts=[GRADED, YES_NO], gold_scale=GRADED)
    found = tried(**options)
    assert [(one.name, one.n) for one in found.calibration.agreement] == [
        ("baseline/overlap graded", 120), ("baseline/overlap yes_no", 120), ("constant", 120)
    ]  # fmt: skip
    assert len(asked.requests) == 240
    first = contents(tmp_path / "out")
    assert first["failures.jsonl"] == b""
    assert len(first["judgments.jsonl"].splitlines()) == 240
    again = tried(LATER, **options)
    assert len(asked.requests) == 240
    assert again.calibration == found.calibration
    assert contents(tmp_path / "out") == first


def test_what_was_asked_is_what_is_stored(tmp_path: Path, gold: Path, asked: Asked) -> None:
    now = tried(**asking(tmp_path, gold))
    stored = tried(gold=[gold], judgments=[tmp_path / "out" / "judgments.jsonl"], pool=tmp_path / "pool")
    assert stored.calibration.agreement == now.calibration.agreement
    (one,) = now.certificate.certified
    assert one.parameters == {**dict.fromkeys(PARAMETERS), "temperature": 0.0}
    assert one.models_returned == ("overlap-1",)


def test_an_interrupted_trial_goes_on_where_it_stopped(tmp_path: Path, gold: Path, asked: Asked) -> None:
    asked.fail_after = 50
    with pytest.raises(OperationalError):
        tried(**asking(tmp_path, gold))
    assert "agreement.tsv" not in contents(tmp_path / "out")
    asked.fail_after = None
    assert tried(**asking(tmp_path, gold)).calibration.agreement[0].n == 120
    assert set(Counter(one.response_id for one in asked.requests).values()) == {1}


def test_on_sealed_grades_only_the_chosen_is_asked(tmp_path: Path, split: Path, asked: Asked) -> None:
    asked.wrong = {"yes"}
    options = asking(tmp_path, split / "dev.jsonl", prompts=[YES_NO, GRADED], gold_scale=GRADED,
                     test=split / "test.jsonl")  # fmt: skip
    found = tried(**options)
    assert found.calibration.selections[0].chosen == "baseline/overlap graded"
    assert found.calibration.verdicts[0].split == "test"
    test = {json.loads(line)["response_id"] for line in (split / "test.jsonl").read_text(encoding="utf-8").splitlines()}
    by_labels = Counter((one.labels, one.response_id in test) for one in asked.requests)
    graded, yes_no = find_criterion(GRADED).scale.labels, find_criterion(YES_NO).scale.labels
    assert by_labels == {
        (graded, False): 120 - len(test), (yes_no, False): 120 - len(test), (graded, True): len(test)
    }  # fmt: skip
    assert (found.certificate.certified[0].looks.number, len(read_ledger(split / "seal.json"))) == (1, 1)
    before = contents(tmp_path / "out")
    tried(LATER, **options)
    assert contents(tmp_path / "out") == before
    assert len(read_ledger(split / "seal.json")) == 1


def test_patience_is_no_other_question(tmp_path: Path, split: Path, asked: Asked) -> None:
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl")
    tried(**options)
    tried(**options, timeout=7.0, threads=2)
    assert len(read_ledger(split / "seal.json")) == 1
    tried(**options, temperature=0.5)
    assert len(read_ledger(split / "seal.json")) == 2


def test_open_test_grades_are_asked_about_only_of_the_chosen_too(tmp_path: Path, asked: Asked) -> None:
    rows = gold_rows(WORLD)
    rows = [msgspec.structs.replace(one, split="dev" if int(one.topic_id) <= 12 else "test") for one in rows]
    asked.wrong = {"yes"}
    options = asking(tmp_path, write_gold(tmp_path / "gold.jsonl", rows), prompts=[YES_NO, GRADED], gold_scale=GRADED)
    assert tried(**options).calibration.selections[0].openings is None
    assert len(asked.requests) == 2 * 60 + 60


def test_a_budget_holds_over_all_judges_and_prompts(tmp_path: Path, split: Path, asked: Asked) -> None:
    asked.cost = 0.01
    options = asking(tmp_path, split / "dev.jsonl", prompts=[GRADED], test=split / "test.jsonl",
                     max_cost=0.3)  # fmt: skip
    with pytest.raises(OperationalError, match="the test grades stay closed"):
        tried(**options)
    assert len(asked.requests) <= 32
    assert read_ledger(split / "seal.json") == ()


def test_a_budget_needs_a_price_of_each_judge(tmp_path, gold: Path, asked: Asked, monkeypatch) -> None:
    monkeypatch.setattr(Overlap, "price", lambda self: None)
    with pytest.raises(UsageError, match=r"price of baseline/overlap is not known here.*--price IN/OUT gives it"):
        tried(**asking(tmp_path, gold, max_cost=0.3))
    with pytest.raises(UsageError, match="--price server/a=…: there is no such model among baseline/overlap"):
        tried(**asking(tmp_path, gold, price="server/a=1/1"))
    assert asked.requests == []
    tried(**asking(tmp_path, gold, max_cost=0.3, price="10000/10000"))
    assert 0 < len(asked.requests) < 60


def test_what_dev_cost_is_not_spent_again_on_test(tmp_path: Path, split: Path, asked: Asked) -> None:
    asked.cost = 0.01
    dev = len((split / "dev.jsonl").read_text(encoding="utf-8").splitlines())
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl",
                     max_cost=dev * 0.01 + 0.1)  # fmt: skip
    found = tried(**options)
    assert len(asked.requests) <= dev + 12
    row = next(one for one in found.calibration.agreement if one.split == "test" and not one.baseline)
    assert row.without_grade["budget"] >= 120 - dev - 12


def test_no_certificate_stands_beside_answers_it_is_not_about(tmp_path, gold: Path, asked: Asked, monkeypatch) -> None:
    tried(**asking(tmp_path, gold))
    before = contents(tmp_path / "out")

    def stopped(*given: object) -> None:
        raise OperationalError("the world has failed")

    monkeypatch.setattr("judge.jobs.calibration.calibrate", stopped)
    for samples, certified in ((1, True), (2, False)):
        with pytest.raises(OperationalError, match="the world has failed"):
            tried(**asking(tmp_path, gold, samples=samples))
        after = contents(tmp_path / "out")
        assert (after["judgments.jsonl"] == before["judgments.jsonl"]) is certified
        assert ("certificate.json" in after) is certified


def test_the_same_model_twice_is_asked_once(tmp_path: Path, gold: Path, asked: Asked) -> None:
    found = tried(**asking(tmp_path, gold, models=["baseline/overlap"] * 2))
    assert len(asked.requests) == 120
    assert [one.judge for one in found.calibration.agreement] == ["baseline/overlap", "constant"]


def test_a_dry_run_counts_what_will_be_asked_and_opens_no_seal(tmp_path: Path, split: Path, asked: Asked) -> None:
    plan = CalibrationPlan(
        **asking(tmp_path, split / "dev.jsonl", prompts=[YES_NO, GRADED], gold_scale=GRADED,
                 test=split / "test.jsonl", samples=2)
    )  # fmt: skip
    dev = len((split / "dev.jsonl").read_text(encoding="utf-8").splitlines())
    before = forecast_calibration(plan)
    (row,) = before.models
    # Two prompts, each asked twice.
    assert (row.judgments, row.expected.calls) == (4 * dev, 4 * dev)
    assert before.counts == {"responses": dev, "unmatched": 0, "test_judgments": 2 * (120 - dev)}
    assert not (tmp_path / "out").exists() and not asked.requests
    assert read_ledger(split / "seal.json") == ()
    found = calibrate_judges(plan, NOW).calibration
    assert found.agreement[0].test_retest is not None and found.agreement[0].test_retest.value == 1.0
    assert len(asked.requests) == row.expected.calls + before.counts["test_judgments"]
    (after,) = forecast_calibration(plan).models
    assert (after.recalled, after.expected.calls) == (4 * dev, 0)
    assert len(read_ledger(split / "seal.json")) == 1


def test_a_dry_run_counts_open_test_grades_and_grades_of_responses_that_are_not_pooled(tmp_path, asked: Asked) -> None:
    rows = gold_rows(WORLD)
    rows = [msgspec.structs.replace(one, split="dev" if int(one.topic_id) <= 12 else "test") for one in rows]
    strange = msgspec.structs.replace(rows[0], turn_id=f"{rows[0].topic_id}_99")
    options = asking(tmp_path, write_gold(tmp_path / "gold.jsonl", [*rows, strange]), prompts=[GRADED])
    found = forecast_calibration(CalibrationPlan(**options))
    assert found.counts == {"responses": 60, "unmatched": 1, "test_judgments": 60}


def test_a_dry_run_needs_no_key_and_refuses_what_the_calibration_would(tmp_path, gold: Path, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options = asking(tmp_path, gold, models=["openai/gpt-4.1-mini"])
    (row,) = forecast_calibration(CalibrationPlan(**options)).models
    assert row.expected.calls == 120 and (row.expected.whole_cost or 0) > 0
    with pytest.raises(UsageError, match="--dry-run goes with --model"):
        forecast_calibration(CalibrationPlan(gold=[gold], judgments=[gold]))
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be used as an output folder"):
        forecast_calibration(CalibrationPlan(**options | {"out": tmp_path / "file"}))
    put(tmp_path / "out" / "manifest.json", "{}")
    with pytest.raises(InputError, match="choose another --out"):
        forecast_calibration(CalibrationPlan(**options))


@pytest.mark.parametrize("dry", [False, True])
def test_what_would_stop_a_calibration_stops_it_first(tmp_path, gold, split, asked, dry) -> None:
    carry_out = forecast_calibration if dry else calibrate_judges

    def refused(kind: type[JudgeError], message: str, **options: Any) -> None:
        with pytest.raises(kind, match=message):
            carry_out(CalibrationPlan(**asking(tmp_path, split / "dev.jsonl") | options))
        assert not asked.requests

    other = [msgspec.structs.replace(one, criterion="naturalness") for one in gold_rows(WORLD)]
    unjudged = write_gold(tmp_path / "other.jsonl", other)
    refused(UsageError, "no grade of a response under a criterion", gold=[unjudged])
    refused(UsageError, "--gold-scale PROMPT", prompts=[GRADED, YES_NO])
    off = [msgspec.structs.replace(one, grade=9) for one in gold_rows(WORLD)]
    refused(InputError, "cannot be compared", gold=[write_gold(tmp_path / "off.jsonl", off)])
    refused(UsageError, "--test goes with the dev.jsonl", gold=[gold], test=split / "test.jsonl")
    refused(InputError, "absent.jsonl", test=split / "absent.jsonl")
    (split / "seal.json").rename(split / "elsewhere.json")
    refused(InputError, "seal.json", test=split / "test.jsonl")
    changed = split / "test.jsonl"
    changed.write_bytes(changed.read_bytes() + b"\n")
    refused(InputError, "has been changed or belongs to another split", test=changed, seal=split / "elsewhere.json")
    assert read_ledger(split / "elsewhere.json") == ()


def test_topics_that_lack_a_graded_turn_stop_a_calibration_before_a_call(tmp_path: Path, gold: Path) -> None:
    words = dict.fromkeys(("utterance", "response", "resolved_utterance"), "word")
    turn = words | {"turn_id": 1, "ptkb_provenance": [], "response_provenance": []}
    (tmp_path / "topics.json").write_text(json.dumps([{"number": "1", "title": "t", "ptkb": {}, "turns": [turn]}]))
    with start_mock() as mock:
        options = {"models": ["server/m"], "base_url": mock.base_url}
        plan = asking(tmp_path, gold, prompts=["relevance/graded"], topics=tmp_path / "topics.json", **options)
        with pytest.raises(UsageError, match=r"topics.json: lacks turns that relevance/graded shows: 1_2, 1_3"):
            tried(**plan)
        assert mock.stats()["paid"] == 0


def test_paid_answers_are_recalled_without_a_server_and_without_an_address(tmp_path: Path, gold: Path) -> None:
    with start_mock() as mock:
        plan = asking(tmp_path, gold, models=["server/m"], base_url=mock.base_url)
        first = tried(**plan)
    before = contents(tmp_path / "out")
    assert tried(LATER, **plan).calibration == first.calibration
    assert contents(tmp_path / "out") == before
    assert tried(**plan | {"base_url": None}).calibration.agreement == first.calibration.agreement
    with pytest.raises(UsageError, match="needs --base-url"):
        tried(**plan | {"base_url": None, "out": tmp_path / "elsewhere"})


def test_a_recording_is_asked_again_on_test_grades(tmp_path: Path, split: Path, asked: Asked) -> None:
    options = asking(tmp_path, split / "dev.jsonl", test=split / "test.jsonl")
    live = tried(**options)
    count = len(asked.requests)
    recording = f"replay/{tmp_path / 'out' / 'journal.sqlite'}"
    replayed = tried(**{**options, "models": [recording], "out": tmp_path / "again"})
    assert len(asked.requests) == count
    assert replayed.calibration.agreement[0].judge == "baseline/overlap"
    test = [next(one for one in found.calibration.agreement if one.split == "test").n for found in (live, replayed)]
    assert test[0] == test[1] > 0


def test_a_model_that_cannot_be_asked_a_prompt_is_refused_first(tmp_path: Path, gold: Path, asked: Asked) -> None:
    with pytest.raises(UsageError, match=r"can grade groundedness and support only \(--criteria groundedness\)"):
        tried(**asking(tmp_path, gold, prompts=[GRADED, "naturalness/graded"]))
    with pytest.raises(UsageError, match="a topics file is needed"):
        tried(**asking(tmp_path, gold, prompts=["relevance/graded"]))
    assert asked.requests == []


# Families


def test_families_by_run_or_judge(tmp_path: Path) -> None:
    path = put(tmp_path / "families.tsv", "\ufeffape\tgpt\r\n\r\nserver/m\tllama 3\nape\tgpt\n".encode())
    assert read_families(path) == {"ape": "gpt", "server/m": "llama 3"}
    for line in (b"ape", b"ape\t", b"\tgpt", b"ape\tgpt\tx", b"ape\tgpt\nape\tllama"):
        path.write_bytes(b"a\tb\n" + line + b"\n")
        with pytest.raises(InputError, match=r"line [23]: expected a run or judge"):
            read_families(path)


def test_families_reach_the_diagnostics(tmp_path: Path, gold: Path, judgments: Path) -> None:
    path = put(tmp_path / "families.tsv", "ape\tgpt\nbee\tgpt\nserver/good\tgpt\n")
    found = tried(gold=[gold], judgments=[judgments], families=path).calibration
    assert [
        (row.name, row.facts["family"], row.facts["runs"], row.facts["is_self"]) for row in found.findings["families"]
    ] == [
        ("server/bad graded", "gpt", 2, False), ("server/good graded", "gpt", 2, True),
        ("baseline/overlap graded", "gpt", 2, False),
    ]  # fmt: skip


def test_a_criterion_without_a_counterpart_is_named(tmp_path: Path, judgments: Path) -> None:
    rows = [*gold_rows(WORLD), row("1_1", "R00001", 9, criterion="naturalness")]
    found = tried(gold=[write_gold(tmp_path / "g.jsonl", rows)], judgments=[judgments]).calibration
    assert {one.criterion for one in found.agreement} == {"groundedness"}
    assert "naturalness: gold, but no judgments; nothing is said about it" in found.warnings
