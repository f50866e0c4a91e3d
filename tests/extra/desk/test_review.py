"""A review desk: what is shown, what is saved, and what a wording gives on dev items."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from judge.ask.criteria import prompt_path
from judge.calibrate.disagreements import ShownPassage, parse_disagreements
from judge.calibrate.findings import AgreementRow, ComparisonRow
from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.desk.app import Seat
from judge.extra.desk.rerun import BeforeAfter, ReviewPlan, Rewording, Shelf, cost, diff_lines
from judge.extra.desk.review import Cases, Filter, Review, filter_of
from judge.gold.rows import read_gold
from judge.gold.seal import write_split
from judge.io.files import jsonl_bytes
from judge.io.page import chip
from judge.records import Estimate
from tests import calibration_world as worlds
from tests.calibrate.test_disagreements import EVIL, found
from tests.conftest import complaint
from tests.extra.desk.visiting import Visitor
from tests.jobs.test_calibration import GRADED, tried
from tests.mock import Mock

SEAT = Seat("review", "Review", "a" * 32)
WORLD = worlds.items()
BASE = prompt_path(GRADED)
TEXT = BASE.read_text(encoding="utf-8")
BETTER = TEXT.replace("You assess groundedness", "Be strict. You assess groundedness")


# What a rerun may say of the new wording


@pytest.mark.parametrize(("gain", "p", "p_max_t", "verdict"), [
    ((0.05, 0.25), 0.01, 0.02, "better"),
    ((-0.25, -0.05), 0.01, 0.02, "worse"),
    ((-0.05, 0.25), 0.20, 0.30, "open"),
    # The interval leaves 0 out, and the test does not: nothing is said.
    ((0.01, 0.25), 0.08, 0.12, "open"),
    # The new wording and the old one are one planned pair, so its own p decides.
    ((0.01, 0.25), 0.04, 0.12, "better"),
    # Of 5 topics no p is below 2 / 2**5 = .0625, whatever the interval says.
    ((0.05, 0.25), 2 / 2**5, None, "untested"),
    ((None, None), None, 0.02, "open"),
])  # fmt: skip
def test_a_wording_is_better_only_where_interval_and_test_say_so(gain, p, p_max_t, verdict) -> None:
    low, high = gain
    estimate = Estimate(0.15, low, high, 40, 10)
    row = ComparisonRow(
        a="new", b="old", difference=estimate, p=p, p_max_t=p_max_t, p_holm=p_max_t, exact=True,
        criterion="groundedness", split="dev", statistic="wkappa",
    )  # fmt: skip
    found = BeforeAfter(cast(AgreementRow, None), cast(AgreementRow, None), row, estimate, {}, None, ())
    assert found.verdict == verdict
    assert found._replace(difference=None).verdict == "untested"


# Which disagreements, in which order


def three() -> Any:
    rows = [
        worlds.row("1_1", "R1", 0),
        worlds.row("1_1", "R2", 2),
        worlds.row("1_1", "R3", 3),
        worlds.row("1_1", "R4", 1),
    ]
    a = {"R1": 2, "R2": 1, "R3": None, "R4": 1}
    b = {"R1": 1, "R2": 2, "R3": 0, "R4": 2}
    return found(rows, *(worlds.labels(name, {("1_1", key): grade for key, grade in grades.items()})
                         for name, grades in (("a", a), ("b", b))))  # fmt: skip


def ids(by: Filter) -> list[str]:
    cases = Cases(three())
    return [cases.items[place].response_id for place in cases.kept(by)]


@pytest.mark.parametrize(("by", "expected"), [
    # Distances: R3 3 (b), R1 2 (a), R2 1 (a), R4 1 (b); the file has them in this order.
    (Filter(), ["R3", "R1", "R2", "R4"]),
    (Filter(direction="higher"), ["R1", "R4"]),
    (Filter(direction="lower"), ["R3", "R2"]),
    (Filter(direction="missing"), ["R3"]),
    # Of a alone: R1 is 2 away, R2 1, R3 has no grade.
    (Filter(judge=0), ["R1", "R2", "R3"]),
    (Filter(judge=0, direction="lower"), ["R2"]),
    (Filter(judge=1), ["R3", "R1", "R4"]),
    (Filter(criterion="relevance"), []),
])  # fmt: skip
def test_a_filter_keeps_the_worst_first(by: Filter, expected: list[str]) -> None:
    assert ids(by) == expected


def test_what_an_address_cannot_mean_counts_as_not_set() -> None:
    assert filter_of({"judge": "1", "direction": "lower", "criterion": "x"}, 2) == Filter("x", 1, "lower")
    for judge in ("2", "-1", "a", "²", "9" * 5000):
        assert filter_of({"judge": judge, "direction": "up"}, 2) == Filter()


def test_lines_that_are_no_disagreements_are_listed() -> None:
    assert parse_disagreements(jsonl_bytes(three()), "d.jsonl") == three()
    with pytest.raises(InputError, match=r"d\.jsonl: 2 lines not as `judge calibrate` writes") as caught:
        parse_disagreements(b'{"turn_id": "1_1"}\n' + jsonl_bytes(three()) + b"x\n", "d.jsonl")
    assert [problem.path for problem in caught.value.problems] == ["line 1: $", "line 6: $"]


# Wordings


def test_a_difference_shows_changed_lines_and_what_is_near() -> None:
    old = "\n".join("abcdefgh")
    lines = diff_lines(old, old.replace("d", "D\nE"))
    assert list(lines) == [
        ("gap", "1 line that both have"), ("same", "b"), ("same", "c"), ("old", "d"), ("new", "D"), ("new", "E"),
        ("same", "e"), ("same", "f"), ("gap", "2 lines that both have"),
    ]  # fmt: skip
    assert diff_lines(old, old) == ()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "home", [GRADED, "groundedness/unknown"], [])


def test_a_wording_becomes_a_file_of_its_own(shelf: Shelf, tmp_path: Path) -> None:
    base = shelf.prompts()[0][GRADED]
    assert shelf.free_name(base) == "graded-v2"
    saved = shelf.save(base, "graded-v2", BETTER.replace("\n", "\r\n"))
    assert saved.path == tmp_path / "home" / "groundedness" / "graded-v2.md"
    assert saved.path.read_text(encoding="utf-8") == BETTER
    assert list(shelf.prompts()[0]) == [GRADED, "groundedness/graded-v2"]
    assert (shelf.free_name(base), shelf.free_name(saved)) == ("graded-v3", "graded-v3")
    assert BASE.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(("variant", "text", "said"), [
    ("graded", BETTER, "groundedness/graded is a prompt that this desk does not write over"),
    ("Graded", BETTER, "does not write over"),
    ("yes_no", BETTER, "does not write over"),
    ("../evil", BETTER, "not a usable prompt"),
    ("", BETTER, "not a usable prompt"),
    ("new", TEXT.replace("{{answer}}", ""), "not a usable prompt, 1 problem"),
    ("new", TEXT.replace('"groundedness"', '"relevance"'), "criterion is 'relevance': expected 'groundedness'"),
    ("new", BETTER + "\0", "NUL"),
])  # fmt: skip
def test_what_is_no_prompt_or_has_a_name_already_is_not_saved(shelf, tmp_path, variant, text, said) -> None:
    with pytest.raises((InputError, UsageError), match=re.escape(said)):
        shelf.save(shelf.prompts()[0][GRADED], variant, text, replace=True)
    assert not list(tmp_path.rglob("*.md"))


def test_a_saved_wording_is_replaced_only_if_that_is_said(shelf: Shelf) -> None:
    base = shelf.prompts()[0][GRADED]
    saved = shelf.save(base, "new", BETTER)
    with pytest.raises(UsageError, match="is saved here already"):
        shelf.save(base, "new", TEXT)
    assert shelf.save(base, "new", BETTER) == saved
    assert shelf.save(saved, "new", TEXT, replace=True).path.read_text(encoding="utf-8") == TEXT


def test_a_wording_that_was_damaged_since_is_said(shelf: Shelf, tmp_path: Path) -> None:
    saved = shelf.save(shelf.prompts()[0][GRADED], "new", BETTER)
    saved.path.write_text("+++\n", encoding="utf-8")
    prompts, problems = shelf.prompts()
    assert list(prompts) == [GRADED] and "new.md: not a usable prompt" in problems[0]


# The desk


def write_world(folder: Path) -> Path:
    """A calibration on the dev part of a split, and the pool."""
    write_split(worlds.gold_rows(WORLD), 0.5, 1, folder / "split")
    of = worlds.pool(WORLD)
    first = msgspec.structs.replace(of.responses[0], text=EVIL)
    worlds.write_pool(folder / "run", msgspec.structs.replace(of, responses=(first, *of.responses[1:])))
    grades = worlds.labeled(WORLD, 0.6, 2)
    said = [
        msgspec.structs.replace(worlds.judgment(one.turn_id, one.response_id, grades[one.response_id]), rationale=EVIL)
        for one in WORLD
    ]
    (folder / "run" / "judgments.jsonl").write_bytes(worlds.jsonl(said))
    tried(gold=[folder / "split"], judgments=[folder / "run"], pool=folder / "run", out=folder / "cal")
    return folder


class World:
    """Such a folder, and the mock server that is asked."""

    def __init__(self, folder: Path, mock: Mock | None = None) -> None:
        self.folder = folder
        self.dev = read_gold(folder / "split" / "dev.jsonl")
        self.mock = mock

    def plan(self, **more: Any) -> ReviewPlan:
        asked: dict[str, Any] = {"models": ["baseline/overlap"]}
        if self.mock is not None:
            asked = {"models": ["server/m"], "base_url": self.mock.base_url}
        asked |= {"gold": [self.folder / "split"], "pool": self.folder / "run"}
        return ReviewPlan(folder=self.folder / "cal", **(asked | more))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("made"))


@pytest.fixture
def world(made: Path, tmp_path: Path) -> World:
    return World(shutil.copytree(made, tmp_path / "world"))


@pytest.fixture
def asked(world: World, mock: Mock) -> World:
    return World(world.folder, mock)


def reworded(review: Review, model: str = "server/m", items: int | None = None) -> Rewording:
    """The bundled prompt and a stricter one that is saved."""
    base = review.shelf.prompts()[0][GRADED]
    return Rewording(base, review.shelf.save(base, "strict", BETTER), model, items)


def ended(review: Review) -> Review:
    review.job.wait()
    return review


def test_the_pages_show_every_disagreement_and_no_markup_of_strangers(world: World) -> None:
    review = Review(world.plan(), SEAT)
    assert {item.topic_id for item in review.cases.items} <= {row.topic_id for row in world.dev}
    with Visitor(review.app) as visitor:
        first = visitor.enter("/review/", SEAT.token)
        assert first.text.count('class="case"') == min(50, len(review.cases.items))
        for place in range(len(review.cases.items)):
            shown = visitor.get(f"/review/item/{place}")
            assert shown.status_code == 200 and "<img" not in shown.text and "alert(1)" in shown.text
        assert visitor.get(f"/review/item/{len(review.cases.items)}").status_code == 404
        assert "Nothing is like this" in visitor.get("/review/?direction=missing").text
        assert visitor.get("/review/?page=999999&judge=x&direction=%00").status_code == 200
        assert visitor.get("/review/prompt?name=../../etc/passwd").status_code == 404
        assert "Nothing has been asked yet" in visitor.get("/review/rerun").text


def test_grades_stand_on_chips_with_the_names_of_judges_and_three_passages_are_open(tmp_path: Path) -> None:
    passages = tuple(ShownPassage(f"p{n}", "A text.") for n in range(5))
    lines = [msgspec.structs.replace(item, passages=passages) for item in three()]
    (tmp_path / "disagreements.jsonl").write_bytes(jsonl_bytes(lines))
    with Visitor(Review(ReviewPlan(folder=tmp_path), SEAT).app) as visitor:
        listed = visitor.enter("/review/", SEAT.token).text
        words = [" ".join(re.sub("<[^>]*>", " ", line).split()) for line in listed.splitlines() if "opinion" in line]
        assert words[:6] == [
            *("assessors 3", "a no grade: unable", "b 0 3 lower", "assessors 0", "a 2 2 higher", "b 1 1 higher")
        ]
        assert words[6:9] == ["assessors 2", "a 1 1 lower", "1 agrees"]
        shown = visitor.get("/review/item/0").text
        assert listed.count(str(chip(3))) == 1 and shown.count(str(chip(3))) == 2 and shown.count(str(chip(0))) == 1
        assert re.findall("<details( open)?>", shown) == [" open"] * 3 + [""] * 2


def test_a_wording_is_saved_asked_on_dev_items_and_set_beside_the_old_one(asked: World) -> None:
    assert asked.mock is not None
    review, mock = Review(asked.plan(), SEAT), asked.mock
    with Visitor(review.app) as visitor:
        visitor.enter("/review/", SEAT.token)
        edit = visitor.get(f"/review/prompt?name={GRADED}")
        bad = visitor.submit(edit, "/review/save", base=GRADED, variant="v", text=TEXT.replace("{{answer}}", ""))
        assert "Not saved." in bad.text and "the text ends without {{answer}}" in bad.text
        saved = visitor.submit(edit, "/review/save", base=GRADED, variant="strict", text=BETTER)
        ask = visitor.get(saved.headers["location"])
        n = len(asked.dev)
        assert f"{n} dev items under two wordings are {2 * n} judgments" in ask.text
        assert f"<strong>{2 * n} calls</strong>" in ask.text and "price of this judge is not known" in ask.text
        assert mock.stats()["paid"] == 0
        # A number that is none must not become all items.
        for items in ("0", "-5", "1e2"):
            wrong = {"old": GRADED, "new": "groundedness/strict", "model": "server/m", "items": items}
            assert "a whole number above zero" in visitor.submit(ask, "/review/ask", **wrong).text
        assert review.job.question is None
        fields = {"old": GRADED, "new": "groundedness/strict", "model": "server/m", "items": ""}
        assert visitor.submit(ask, "/review/ask", **fields).headers["location"] == "/review/rerun"
        ended(review)
        shown = visitor.get("/review/rerun").text
        assert review.job.error is None and review.job.outcome is not None
        assert mock.stats()["paid"] == 2 * n
        # The same numbers as `judge calibrate` gives.
        outcome = review.job.outcome
        calibration = json.loads((asked.plan().home / "rerun" / "calibration.json").read_bytes())
        by = {one["prompt"]: one for one in calibration["agreement"] if one["judge"] == "server/m"}
        assert outcome.new.statistics["wkappa"].value == by["groundedness/strict"]["statistics"]["wkappa"]["value"]
        old, new = (row.statistics["wkappa"].value for row in (outcome.old, outcome.new))
        assert all(told in shown for told in (f"{new:.2f}", "that both wordings graded", "paired by item"))
        assert outcome.gain is not None and outcome.gain.value == pytest.approx(new - old)
        assert '<span class="line">Be strict. You assess groundedness' in shown
        changes = [change for kind in outcome.changes.values() for change in kind]
        assert {item.topic_id for item, *_ in changes} <= {row.topic_id for row in asked.dev}
        assert not (asked.folder / "split" / "openings.jsonl").exists()
        # Asked again, nothing is paid again.
        again = visitor.get(f"/review/rerun?old={GRADED}&new=groundedness/strict")
        assert "<strong>0 calls</strong>" in again.text
        visitor.submit(again, "/review/ask", **fields)
        ended(review)
        assert mock.stats()["paid"] == 2 * n
        # Another desk on the same folder finds the wording and what is paid.
        prompts = Review(asked.plan(), SEAT).shelf.prompts()[0]
        question = Rewording(prompts[GRADED], prompts["groundedness/strict"], "server/m", 10)
        forecast = cost(asked.plan(), question)
        assert (forecast.counts["responses"], forecast.models[0].recalled, forecast.models[0].calls) == (10, 20, 0)


def test_a_chosen_number_of_items_is_spread_over_the_topics(asked: World) -> None:
    assert asked.mock is not None
    review = Review(asked.plan(), SEAT)
    review.job.start(reworded(review, items=12))
    outcome = ended(review).job.outcome
    assert outcome is not None and outcome.old.gold == outcome.new.gold == 12
    assert asked.mock.stats()["paid"] == 24
    topics = {line.topic_id for line in asked.dev}
    assert outcome.old.topics == len(topics) == 12


def test_a_rerun_can_be_stopped_and_keeps_what_is_paid(asked: World) -> None:
    asked.mock.config(latency=0.05)
    review = Review(asked.plan(), SEAT)
    question = reworded(review)
    review.job.start(question)
    while review.job.progress is None:
        time.sleep(0.01)
    with pytest.raises(UsageError, match="under way"):
        review.job.start(question)
    review.job.stop()
    ended(review)
    paid = asked.mock.stats()["paid"]
    assert review.job.error is not None and "what was paid for is kept" in review.job.error
    assert 0 < paid < 2 * len(asked.dev)
    assert cost(asked.plan(), question).models[0].recalled == paid
    with Visitor(review.app) as visitor:
        visitor.enter("/review/", SEAT.token)
        assert "No result." in visitor.get("/review/rerun").text


def test_a_judge_that_reads_no_prompt_says_so(world: World) -> None:
    review = Review(world.plan(), SEAT)
    reworded(review)
    with Visitor(review.app) as visitor:
        visitor.enter("/review/", SEAT.token)
        ask = visitor.get(f"/review/rerun?old={GRADED}&new=groundedness/strict")
        assert "reads no prompt" in ask.text and "at no cost" in ask.text
        visitor.submit(ask, "/review/ask", old=GRADED, new="groundedness/strict", model="baseline/overlap")
        ended(review)
        shown = visitor.get("/review/rerun").text
    assert "reads no prompt" in shown and "0 now right, 0 now wrong, 0 wrong otherwise" in shown


def test_grades_of_a_test_part_are_refused(world: World) -> None:
    split = world.folder / "split"
    copy = world.folder / "copy.jsonl"
    shutil.copy(split / "test.jsonl", copy)
    for gold in ([split / "test.jsonl"], [split / "dev.jsonl", copy], [copy]):
        with pytest.raises(UsageError, match="a prompt is improved on dev grades alone"):
            Review(world.plan(gold=gold), SEAT)
    # The whole gold that the split was made of holds the test part as well.
    with pytest.raises(UsageError, match="this gold is not split, so it may hold test grades"):
        Review(world.plan(gold=[worlds.write_gold(world.folder / "whole.jsonl", worlds.gold_rows(WORLD))]), SEAT)
    # A file that becomes one later is refused when it is read.
    shutil.copy(split / "dev.jsonl", copy)
    review = Review(world.plan(gold=[copy]), SEAT)
    question = reworded(review, "baseline/overlap")
    shutil.copy(split / "test.jsonl", copy)
    review.job.start(question)
    assert "dev grades alone" in str(ended(review).job.error)


def test_without_a_judge_the_desk_shows_and_saves_only(world: World) -> None:
    review = Review(ReviewPlan(folder=world.folder / "cal"), SEAT)
    reworded(review)
    with Visitor(review.app) as visitor:
        visitor.enter("/review/", SEAT.token)
        ask = visitor.get(f"/review/rerun?old={GRADED}&new=groundedness/strict")
        assert "This desk cannot ask" in ask.text and "Be strict." in ask.text
        edit = visitor.get(f"/review/prompt?name={GRADED}")
        refused = visitor.submit(edit, "/review/ask", old=GRADED, new="groundedness/strict")
        assert refused.status_code == 500 and review.job.question is None


def test_options_that_do_not_go_together_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for options, said in (
        (["--model", "server/m"], "asking again needs --gold"),
        (["--max-cost", "1"], "--max-cost"),
        ([], "has no disagreements.jsonl: `judge calibrate --out` writes it"),
    ):
        assert said in complaint(capsys, main(["serve", "review", str(tmp_path), "--port", "0", *options]))
