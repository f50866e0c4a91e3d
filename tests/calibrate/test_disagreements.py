"""Disagreements of judges and assessors: which items, in which order, with what beside them, and as files."""

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from judge.ask.results import Label, Labels
from judge.calibrate import disagreements
from judge.calibrate.panel import Panel
from judge.errors import InputError
from judge.gold.rows import GoldRow
from judge.gold.seal import item_of
from judge.io.files import jsonl_bytes
from judge.pool.records import Pool
from judge.records import Level, Scale
from judge.runs.records import Exchange, Turn
from tests.calibration_world import items, labels, panel_of, pool, row

LOWER = Scale((Level(0, "no", ""), Level(1, "yes", "")), "lower", (0,), None)
"""A scale of two grades whose low end is good."""


def panel(rows: Sequence[GoldRow], *judged: Labels, scale: Scale | None = None) -> Panel:
    columns = [replace(one, scale=scale) for one in judged]
    return panel_of(rows, *columns, baselines=["baseline/overlap"], binary=scale is not None)


def found(rows: Sequence[GoldRow], *judged: Labels, **more: object) -> tuple[disagreements.Disagreement, ...]:
    return disagreements.disagreements([panel(rows, *judged)], **more)  # type: ignore[arg-type]


def ids(of: Sequence[disagreements.Disagreement]) -> list[str]:
    return [item.response_id for item in of]


def test_the_greatest_distance_comes_first_then_the_most_judges_then_natural_order() -> None:
    rows = [row("1_1", f"R{number}", 1) for number in (2, 10, 3, 4, 5, 6)]
    a = {"R2": 2, "R10": 2, "R3": 3, "R4": 1, "R5": 2, "R6": None}
    b = {"R2": 1, "R10": 1, "R3": 1, "R4": 1, "R5": 0, "R6": 1}
    said = [
        labels(name, {("1_1", key): grade for key, grade in grades.items()}) for name, grades in (("a", a), ("b", b))
    ]
    of = found(rows, *said)
    # R3: 3 - 1 = 2. R5: both err by 1. R2 and R10: one errs by 1. R6: no grade. R4: all agree.
    assert ids(of) == ["R3", "R5", "R2", "R10", "R6"]
    assert [(item.distance, item.erring) for item in of] == [(2, 1), (1, 2), (1, 1), (1, 1), (0, 1)]
    assert [judge.difference for judge in of[1].judges] == [1, -1]
    assert (of[-1].judges[0].grade, of[-1].judges[0].reason, of[-1].judges[0].difference) == (None, "unable", None)


def test_several_assessors_stand_beside_their_consensus() -> None:
    rows = [row("1_1", "R1", 0, "ann"), row("1_1", "R1", 3, "ben", made="postedit"), row("1_1", "R1", 3, "cy")]
    (item,) = found(rows, labels("m", {("1_1", "R1"): 0}))
    # The mode of 0, 3 and 3 is 3, so the judge is 0 - 3 = -3 away although one assessor agrees with it.
    assert (item.gold_grade, item.distance, item.judges[0].difference) == (3, 3, -3)
    assert [(one.assessor, one.grade, one.made) for one in item.gold] == [
        ("ann", 0, "blind"), ("ben", 3, "postedit"), ("cy", 3, "blind")
    ]  # fmt: skip
    markdown = disagreements.disagreements_markdown([item], 1)
    assert (
        "| **assessors' consensus** | 3 |  |\n| assessor ann | 0 |  |\n| assessor ben (postedit) | 3 |  |" in markdown
    )


def test_an_adjudicated_grade_is_the_reference_and_comments_are_no_markup() -> None:
    hostile = "see <b>bob</b>\n# [x](javascript:1)"
    rows = [
        row("1_1", "R1", 0, "ann", comment=hostile),
        row("1_1", "R1", 1, "ben"),
        row("1_1", "R1", 3, "dee", made="adjudicated", comment="both miss it"),
    ]
    (item,) = found(rows, labels("m", {("1_1", "R1"): 0}))
    assert (item.gold_grade, item.distance) == (3, 3)
    assert [one.comment for one in item.gold] == [hostile, None, "both miss it"]
    markdown = disagreements.disagreements_markdown([item], 1)
    assert "| **adjudicated grade** | 3 |  |\n| assessor ann | 0 |  |\n" in markdown
    assert "| assessor dee (adjudicated) | 3 |  |" in markdown
    assert "**Comment of assessor dee**\n\n> both miss it" in markdown
    assert "**Comment of assessor ann**" in markdown and "Comment of assessor ben" not in markdown
    assert "> see &lt;b&gt;bob&lt;/b&gt;  \n> \\# \\[x\\](javascript:1)\n" in markdown
    (again,) = disagreements.parse_disagreements(jsonl_bytes([item]), "d")
    assert again == item


def test_an_assessor_with_a_row_for_each_run_counts_once() -> None:
    rows = [row("1_1", "R1", 2, run_id=run) for run in ("a", "b")]
    (item,) = found(rows, labels("m", {("1_1", "R1"): 1}))
    assert [one.grade for one in item.gold] == [2]


def test_scales_that_differ_are_compared_as_positive_or_not() -> None:
    rows = [row("1_1", "R1", 3), row("1_1", "R2", 2), row("1_1", "R3", 0)]
    said = labels("m", {("1_1", "R1"): 1, ("1_1", "R2"): 0, ("1_1", "R3"): 1})
    # On the judge's scale 0 is positive: R1 is 0 - 1 = -1, R2 agrees though 0 is not 2, R3 agrees though 1 is not 0.
    (item,) = disagreements.disagreements([panel(rows, said, scale=LOWER)])
    assert (item.response_id, item.gold_grade, item.judges[0].grade, item.judges[0].difference) == ("R1", 3, 1, -1)
    assert item.compared == "positive"
    markdown = disagreements.disagreements_markdown([item], 3)
    assert "### 1. 1_1 R1: positive or not" in markdown
    # The judge's scale has two grades, whose labels say more than 1 beside the assessor's 3.
    assert "| assessor ann | 3 |  |\n| m | yes | lower |" in markdown
    (same,) = disagreements.disagreements([panel_of(rows[2:], said, scale=LOWER)])
    assert "| assessor ann | no |  |\n| m | yes | higher |" in disagreements.disagreements_markdown([same], 1)


def test_of_several_samples_the_first_counts() -> None:
    said = [Label("1_1", "R1", 2, rationale="first"), Label("1_1", "R1", 0, sample=1, rationale="second")]
    (item,) = found([row("1_1", "R1", 1)], labels("m", said))
    assert (item.judges[0].grade, item.judges[0].rationale) == (2, "first")


def test_baselines_that_nobody_asked_for_make_no_disagreement() -> None:
    rows = [row("1_1", "R1", 1), row("1_1", "R2", 1)]
    keys = ("1_1", "R1"), ("1_1", "R2")
    said = labels("m", dict.fromkeys(keys, 1)), labels("baseline/overlap", dict.fromkeys(keys, 3))
    assert found(rows, *said) == ()
    assert disagreements.disagreement_files((), 2)["disagreements.jsonl"] == b""
    assert b"On 0 of 2 items" in disagreements.disagreement_files((), 2)["disagreements.md"]


@pytest.mark.parametrize("way", ["split", "seal"])
def test_no_item_of_the_test_part_is_listed(way: str) -> None:
    dev = row("1_1", "R1", 1, split="dev")
    test = row("2_1", "R2", 1, split="test" if way == "split" else "dev")
    said = labels("m", {("1_1", "R1"): 0, ("2_1", "R2"): 0})
    assert ids(found([dev, test], said, sealed=[item_of(test)] if way == "seal" else [])) == ["R1"]


def test_response_passages_and_conversation_stand_beside_the_grades() -> None:
    world = items(1, 2)
    of = pool(world)
    known = next(iter(of.passages))
    of = Pool(of.responses, {known: of.passages[known]}, ())
    turn = Turn("1_1", "1", "Which?", None, (Exchange("Hello?", "Yes."),), ())
    rows = [row(one.turn_id, one.response_id, 0) for one in world]
    said = labels("m", {(one.turn_id, one.response_id): 1 for one in world})
    first, second = found(rows, said, pool=of, turns={"1_1": turn})
    assert (first.text, first.utterance, first.context) == (of.responses[0].text, "Which?", turn.context)
    assert [(one.id, one.text) for one in first.passages] == [(known, of.passages[known].text)]
    # Its passage is not in the pool, its turn not among the topics.
    assert [(one.id, one.text) for one in second.passages] == [("passage2", None)]
    assert (second.utterance, second.context) == (None, ())


def test_without_a_pool_nothing_is_known_of_the_texts() -> None:
    (item,) = found([row("1_1", "R1", 0)], labels("m", {("1_1", "R1"): 1}))
    assert (item.text, item.passages, item.judges[0].rationale, item.judges[0].prompt) == (None, (), None, None)
    assert "`--pool` names the pool" in disagreements.disagreements_markdown([item], 1)


def test_a_line_has_these_fields() -> None:
    (item,) = found([row("1_1", "R1", 0)], labels("m", [Label("1_1", "R1", 2, None, 1.5, rationale="No.")]))
    assert json.loads(disagreements.disagreement_files([item], 1)["disagreements.jsonl"]) == {
        "turn_id": "1_1", "topic_id": "1", "response_id": "R1", "criterion": "groundedness", "split": "all",
        "gold_grade": 0, "gold": [{"assessor": "ann", "grade": 0, "made": "blind"}],
        "judges": [{"judge": "m", "prompt": None, "grade": 2, "expected": 1.5, "rationale": "No.", "reason": None,
                    "difference": 2}],
        "compared": "grades", "distance": 2, "text": None, "passages": [], "utterance": None, "context": [],
    }  # fmt: skip


def test_lines_that_are_no_disagreements_are_listed() -> None:
    lines = found([row("1_1", "R1", 0)], labels("m", {("1_1", "R1"): 2}))
    assert disagreements.parse_disagreements(jsonl_bytes(lines), "d.jsonl") == lines
    with pytest.raises(InputError, match=r"d\.jsonl: 2 lines not as `judge calibrate` writes") as caught:
        disagreements.parse_disagreements(b'{"turn_id": "1_1"}\n' + jsonl_bytes(lines) + b"x\n", "d.jsonl")
    assert [problem.path for problem in caught.value.problems] == ["line 1: $", "line 3: $"]


def test_the_report_shows_the_worst_of_each_criterion_and_says_how_many_more() -> None:
    rows = [row("1_1", f"R{number}", 0) for number in range(disagreements.MOST_SHOWN + 3)]
    of = found(rows, labels("m", {("1_1", one.response_id or ""): 1 for one in rows}))
    more = [replace(one, criterion="relevance") for one in of[:2]]
    markdown = disagreements.disagreements_markdown([*of, *more], len(rows))
    assert markdown.count("\n### ") == disagreements.MOST_SHOWN + 2
    assert "\n3 more under groundedness are in `disagreements.jsonl`.\n" in markdown
    assert "more under relevance" not in markdown
    assert f"| m | {disagreements.MOST_SHOWN + 3} | 0 | 0 |" in markdown


EVIL = (
    '<img src=x onerror=alert(1)>\n# not a heading\n| a | b |\n![x](http://x)\n1. one\n- two\n===\n```\n\x1b[2J\u202e"'
)


def test_texts_of_strangers_are_no_markup() -> None:
    world = items(1, 1)
    of = pool(world)
    of = Pool((replace(of.responses[0], text=EVIL),), of.passages, ())
    said = labels("<b>m</b>\n# x", [Label("1_1", world[0].response_id, 1, rationale=EVIL)])
    turns = {"1_1": Turn("1_1", "1", EVIL, None, (Exchange(EVIL, EVIL),), ())}
    markdown = disagreements.disagreements_markdown(
        found([row("1_1", world[0].response_id, 0, EVIL)], said, pool=of, turns=turns), 1
    )
    assert "<" not in markdown and "\x1b" not in markdown and "\u202e" not in markdown and "```" not in markdown
    for line in markdown.splitlines():
        assert not line.startswith("> ") or (line[2] not in "-+=#|!" and not line.startswith("> 1.")), line
    assert {line[:4] for line in markdown.splitlines() if line.startswith("#")} == {"# Wh", "## g", "### "}


def test_a_long_text_is_cut_and_says_so() -> None:
    (item,) = found([row("1_1", "R1", 0)], labels("m", [Label("1_1", "R1", 1, rationale="x" * 2_500)]))
    assert "> … 500 more characters in `disagreements.jsonl`" in disagreements.disagreements_markdown([item], 1)
