"""A certificate's second year, from files to files: what carries, what is refused, and what the ledger holds."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.ask.criteria import find_criterion, load_criterion, prompt_path
from judge.ask.prompt_edit import with_examples
from judge.calibrate.certificate import make_certificate, read_certificate
from judge.cli import main
from judge.errors import UsageError
from judge.gold.rows import read_gold, text_digest
from judge.gold.seal import write_split
from judge.io.files import json_bytes
from judge.jobs.calibration import CalibrationOutcome, CalibrationPlan, calibrate_judges
from judge.records import Example
from tests.calibration_world import Item, gold_rows, items, jsonl, judgment, labeled, write_gold, write_output
from tests.conftest import complaint, printed, put, read_ledger

FIRST = items(topics=80, each=5, noise=0.02)
SECOND = [
    msgspec.structs.replace(one, turn_id=f"new{one.turn_id}") for one in items(topics=80, each=5, noise=0.02, seed=5)
]
JUDGE = "server/m"


def year(folder: Path, world: list[Item], noise: float = 0.05) -> dict[str, Any]:
    """Gold of some responses, and the judgments of a judge that errs at random as often as said."""
    gold = write_gold(folder / "gold.jsonl", gold_rows(world))
    judgments = write_output(folder / "run", world, {JUDGE: labeled(world, noise, 2)})
    return {"gold": [gold], "judgments": [judgments]}


def tried(**options: Any) -> CalibrationOutcome:
    return calibrate_judges(CalibrationPlan(**{"replicates": 200, "permutations": 200, **options}))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    tried(**year(tmp_path / "first", FIRST), out=tmp_path / "cal")
    return tmp_path / "cal" / "certificate.json"


def aged(path: Path) -> Path:
    """The certificate as it was before anything was kept for a second year."""
    of = read_certificate(path)
    entry = msgspec.structs.replace(of.certified[0], topic_digests=(), design_effect=None, labeled=None)
    return put(path.with_name("aged.json"), json_bytes(make_certificate([entry], of.date)))


def test_the_new_certificate_tells_what_became_of_the_old_one(certificate: Path, tmp_path: Path) -> None:
    found = tried(**year(tmp_path / "second", SECOND), certificate=certificate, out=tmp_path / "cal2")
    (row,) = found.calibration.carried or ()
    assert (row.word, row.margin, row.shared, row.support.word) == ("CARRIES", 0.1, (), "WITHIN")
    assert row.certified == read_certificate(certificate).certified[0].estimate
    assert row.found == found.certificate.certified[0].estimate
    assert row.certificate == read_certificate(certificate).digest
    stored = read_certificate(tmp_path / "cal2" / "certificate.json").certified[0].carried
    assert stored == row
    assert found.carries
    said = (tmp_path / "cal2" / "calibration.md").read_text(encoding="utf-8")
    assert "CARRIES to other topics" in said
    assert "The items are WITHIN what was labeled" in said
    assert json.loads((tmp_path / "cal2" / "calibration.json").read_bytes())["carried"][0]["word"] == "CARRIES"


def test_a_worse_judge_does_not_carry_and_the_command_says_so_by_its_exit_code(certificate, tmp_path, capsys) -> None:
    given = year(tmp_path / "second", SECOND, noise=0.8)
    command = ["calibrate", "--gold", *map(str, given["gold"]), "--judgments", *map(str, given["judgments"])]
    text = printed(capsys, main([*command, "--certificate", str(certificate.parent)]), expected=1)
    assert "DOES NOT CARRY to other topics: wkappa" in " ".join(text.split())


def test_another_judge_and_another_criterion_are_refused_with_all_that_differs(certificate, tmp_path) -> None:
    given = year(tmp_path / "second", SECOND)
    other = write_output(tmp_path / "other", SECOND, {"server/n": labeled(SECOND, 0.1, 2)}, "groundedness/yes_no")
    with pytest.raises(UsageError) as caught:
        tried(gold=given["gold"], judgments=[other], certificate=certificate)
    text = str(caught.value)
    assert text.startswith(f"{certificate}: certifies another judge than these judgments are of: ")
    for part in ("judge server/m certified, server/n here", "prompt groundedness/graded certified", "prompt digest"):
        assert part in text
    rows = gold_rows(SECOND, criterion="naturalness")
    judged = write_output(tmp_path / "third", SECOND, {JUDGE: labeled(SECOND, 0.1, 2)}, "naturalness/graded")
    with pytest.raises(UsageError, match="naturalness is not certified"):
        tried(gold=[write_gold(tmp_path / "n.jsonl", rows)], judgments=[judged], certificate=certificate)


def test_a_second_judge_beside_the_certified_one_is_refused(certificate: Path, tmp_path: Path) -> None:
    given = year(tmp_path / "second", SECOND)
    two = {JUDGE: labeled(SECOND, 0.1, 2), "server/n": labeled(SECOND, 0.1, 3)}
    both = write_output(tmp_path / "both", SECOND, two)
    with pytest.raises(UsageError, match="more than one judge: give the judgments of server/m alone"):
        tried(gold=given["gold"], judgments=[both], certificate=certificate)


def test_gold_of_certified_topics_alone_is_refused_and_some_are_left_out(certificate: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"every topic of the gold is one that it was made on \(1, 2, 3"):
        tried(**year(tmp_path / "again", FIRST), certificate=certificate)
    # The responses of the last two topics get the ids of two certified ones.
    mixed = [*SECOND[:-10], *FIRST[:10]]
    mixed = [msgspec.structs.replace(one, response_id=f"R{place:05}") for place, one in enumerate(mixed, 1)]
    found = tried(**year(tmp_path / "mixed", mixed), certificate=certificate)
    (row,) = found.calibration.carried or ()
    assert (row.shared, row.found.topics) == (("1", "2"), 80 - 2)
    assert any(
        "2 topics with an id of a certified topic (1, 2) left out" in text for text in found.calibration.warnings
    )


def test_an_example_of_a_topic_with_a_reused_id_is_no_example_of_the_test(tmp_path: Path) -> None:
    shown = (("passages", ("start1",)), ("response", ("term1",)))
    example = Example("1_1", text_digest("of the first year"), 3, shown)
    text = prompt_path("groundedness/graded").read_text(encoding="utf-8")
    mine = put(tmp_path / "mine.md", with_examples(text, find_criterion("groundedness/graded"), [example]))
    digest = load_criterion(mine).digest

    def judged(folder: Path, world: list[Item]) -> dict[str, Any]:
        given = year(folder, world)
        made = [
            judgment(one.turn_id, one.response_id, one.gold, JUDGE, "groundedness/mine", digest=digest) for one in world
        ]
        put(folder / "run" / "judgments.jsonl", jsonl(made))
        return {**given, "prompts": [mine]}

    tried(**judged(tmp_path / "first", FIRST), out=tmp_path / "cal")
    # The last topic has the id of a certified one, of which the example is.
    mixed = [*SECOND[:-5], *FIRST[:5]]
    mixed = [msgspec.structs.replace(one, response_id=f"R{place:05}") for place, one in enumerate(mixed, 1)]
    given = judged(tmp_path / "second", mixed)
    write_split(gold_rows(mixed), 0.99, 1, tmp_path / "split")
    assert {row.topic_id for row in read_gold(tmp_path / "split" / "test.jsonl")} >= {"1"}
    sealed = {**given, "gold": [tmp_path / "split" / "dev.jsonl"], "test": tmp_path / "split" / "test.jsonl"}
    with pytest.raises(UsageError, match=r"shows 1 example of the test part \(1_1\)"):
        tried(**sealed)
    (row,) = tried(**sealed, certificate=tmp_path / "cal").calibration.carried or ()
    assert row.shared == ("1",)


def test_a_certificate_from_before_still_works_and_says_what_is_not_checked(certificate, tmp_path) -> None:
    found = tried(**year(tmp_path / "second", SECOND), certificate=aged(certificate))
    (row,) = found.calibration.carried or ()
    assert (row.word, row.support.word) == ("CARRIES", "UNKNOWN")
    assert any("from before topics were kept in it" in text for text in found.calibration.warnings)


def test_the_ledger_of_sealed_gold_holds_the_margin(certificate: Path, tmp_path: Path) -> None:
    given = year(tmp_path / "second", SECOND)
    split = tmp_path / "split"
    write_split(gold_rows(SECOND), 0.6, 1, split)
    sealed = {
        "gold": [split / "dev.jsonl"], "test": split / "test.jsonl", "judgments": given["judgments"],
        "certificate": certificate,
    }  # fmt: skip
    found = tried(**sealed, margin=0.15)
    (row,) = found.calibration.carried or ()
    assert (row.margin, row.found.topics) == (0.15, 48)
    (entry,) = read_ledger(split / "seal.json")
    assert entry.margins == {read_certificate(certificate).digest: 0.15}
    with pytest.raises(UsageError, match=r"openings\.jsonl: line 1 sets the margin of certificate .* at 0\.15"):
        tried(**sealed)
    # The same question is no new look, and one about another certificate sets its own margin, though late.
    late = "the margin was set after the sealed grades had been opened for 1 other question"
    again = tried(**sealed, margin=0.15)
    assert (len(read_ledger(split / "seal.json")), late in again.calibration.warnings) == (1, False)
    other = tried(**{**sealed, "certificate": aged(certificate)}, margin=0.2)
    assert late in other.calibration.warnings
    assert [entry.margins for entry in read_ledger(split / "seal.json")][1] == {
        read_certificate(aged(certificate)).digest: 0.2
    }


def test_a_look_without_a_certificate_has_no_margins_in_the_ledger(tmp_path: Path) -> None:
    given = year(tmp_path / "first", FIRST)
    write_split(gold_rows(FIRST), 0.5, 1, tmp_path / "split")
    dev, test = tmp_path / "split" / "dev.jsonl", tmp_path / "split" / "test.jsonl"
    tried(gold=[dev], test=test, judgments=given["judgments"], margin=0.15)
    assert b"margins" not in (tmp_path / "split" / "openings.jsonl").read_bytes()


def test_the_earlier_certificate_is_not_replaced(certificate: Path, tmp_path: Path) -> None:
    before = certificate.read_bytes()
    given = year(tmp_path / "second", SECOND)
    for out in (certificate.parent, tmp_path / "cal" / ".." / "cal"):
        with pytest.raises(UsageError, match=r"holds the earlier certificate, which would be replaced"):
            tried(**given, certificate=certificate, out=out)
    assert certificate.read_bytes() == before


def test_it_goes_with_judgments_that_are_there(certificate: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is compared with judgments that are there"):
        tried(
            gold=[tmp_path / "gold.jsonl"], models=["baseline/overlap"], prompts=["groundedness/graded"],
            pool=tmp_path, out=tmp_path / "out", certificate=certificate,
        )  # fmt: skip


def test_the_plan_of_a_second_year_is_labels_and_topics(certificate: Path, capsys) -> None:
    text = printed(capsys, main(["plan", "--certificate", str(certificate.parent), "--margin", "0.15"]))
    rows = text.splitlines()
    assert rows[0].startswith("groundedness, server/m: wkappa 0.")
    assert "labels a topic  topics  labels" in rows
    assert [line.split()[0] for line in rows[-2:]] == ["4.0", "5.0"]
    found = json.loads(printed(capsys, main(["plan", "--certificate", str(certificate), "--json"])))
    assert (found[0]["criterion"], found[0]["margin"]) == ("groundedness", 0.1)
    assert "expected an output folder" in complaint(capsys, main(["plan"]))
    assert "a certificate says all" in complaint(
        capsys, main(["plan", "--certificate", str(certificate), "--turns", "3"])
    )
    assert "--margin" in complaint(capsys, main(["plan", str(certificate.parent), "--margin", "0.1"]))
