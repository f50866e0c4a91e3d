"""`judge bench`: a judge measured on public labels, from the files of a dataset to its card."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import kendalltau, t
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, roc_auc_score

from judge.cli import main
from judge.extra.bench.card import JudgeCard, parse_card
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.page import card_page, judge_grids
from judge.io.files import json_bytes, sha256
from judge.judges.records import Request
from judge.records import Estimate
from tests.conftest import PROJECT, complaint, json_lines, put
from tests.extra.bench.bench_world import Ruled, dataset, items, write

Known = Callable[..., None]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, no_pause: None) -> Known:
    """Says which datasets there are, and which judge answers."""

    def say(*datasets: Dataset, judge: Ruled | None = None) -> None:
        monkeypatch.setattr("judge.extra.bench.DATASETS", {each.name: each for each in datasets})
        if judge is not None:
            monkeypatch.setattr("judge.ask.opening.open_model", lambda name, options: judge)

    return say


def bench(folder: Path, out: Path, *more: str, model: str = "server/ruled") -> int:
    return main(["bench", "--data", str(folder), "--out", str(out), *(["--model", model] if model else []), *more])


def card_of(out: Path) -> JudgeCard:
    return parse_card((out / "card.json").read_bytes(), "card.json")


def judged(known: Known, tmp_path: Path, judge: Ruled, rows: list[LabeledResponse], of: Dataset) -> tuple[Any, Any]:
    """What the card says of the one dataset, and the rows of its items."""
    known(of, judge=judge)
    assert bench(write(tmp_path / "data", rows), tmp_path / "out") == 0
    (card,) = card_of(tmp_path / "out").datasets
    return card, json_lines(tmp_path / "out" / "items.jsonl")


def last_digit(request: Request) -> int:
    return int(request.response.rstrip(".").rpartition(" ")[2]) % 4


def test_the_card_has_what_the_answers_say(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str((len(request.response) + last_digit(request)) % 4))
    known(dataset(), judge=judge)
    folder, out = write(tmp_path / "data", items()), tmp_path / "out"
    assert bench(folder, out, "--price", "1/2") == 0
    card, rows = card_of(out), json_lines(out / "items.jsonl")
    (of,) = card.datasets
    gold, score = [row["positive"] for row in rows], [row["score"] for row in rows]
    assert [row["gold"] for row in rows] == [item.grade for item in items()]
    assert of.judge["auc"].value == pytest.approx(roc_auc_score(gold, score))
    # The prompt's positive grades are 2 and 3.
    called = [grade >= 2 for grade in score]
    assert [row["says_positive"] for row in rows] == called
    assert of.judge["kappa"].value == pytest.approx(cohen_kappa_score(gold, called))
    assert of.judge["balanced_accuracy"].value == pytest.approx(balanced_accuracy_score(gold, called))
    assert (of.items, of.units, of.positives, of.answered, of.expected, of.missing) == (40, 10, 20, 40, 0, {})
    assert (of.compared, of.judge["auc"].topics) == ("positive", 10)
    # Half of the items are positive; the lower of the two commonest grades is 0.
    assert of.constant["percent"] == 0.5 and of.constant["auc"] == 0.5 and of.constant["kappa"] == 0
    assert of.files == {"tiny.jsonl": sha256((folder / "tiny.jsonl").read_bytes())}
    # Equal responses of a unit with equal evidence are asked about once.
    calls = judge.calls
    assert card.expense is not None and (card.expense.calls, card.expense.prompt_tokens) == (calls, 10 * calls)
    assert card.expense.cost == pytest.approx(calls * (10 * 1e-6 + 1 * 2e-6))
    assert card.models_returned == ("ruled-1",)
    assert card.items_digest == sha256((out / "items.jsonl").read_bytes())


def test_expected_grades_rank_where_the_judge_gives_probabilities(known: Known, tmp_path: Path) -> None:
    def rule(request: Request) -> dict[str, float]:
        share = (len(request.response) % 7) / 10
        return {"0": 1 - share, "1": 0.0, "2": 0.0, "3": share}

    of, rows = judged(known, tmp_path, Ruled(rule), items(), dataset())
    assert of.expected == 40
    texts = [str(item.response) for item in items()]
    assert [row["score"] for row in rows] == pytest.approx([3 * (len(text) % 7) / 10 for text in texts])
    gold, score = [row["positive"] for row in rows], [row["score"] for row in rows]
    assert of.judge["auc"].value == pytest.approx(roc_auc_score(gold, score))


def test_a_scale_of_the_same_grades_is_compared_grade_by_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str((len(request.response) + last_digit(request)) % 4))
    ordinal = dataset(grades=(0, 1, 2, 3), positive=(2, 3), rung=None)
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2, 3)), ordinal)
    gold, grade = [row["gold"] for row in rows], [row["grade"] for row in rows]
    assert of.compared == "grades"
    assert of.judge["kappa"].value == pytest.approx(cohen_kappa_score(gold, grade))
    assert of.judge["wkappa"].value == pytest.approx(cohen_kappa_score(gold, grade, weights="quadratic"))
    assert of.judge["alpha_ordinal"].low is not None
    positive = [row["positive"] for row in rows], [row["says_positive"] for row in rows]
    assert of.judge["kappa_positive"].value == pytest.approx(cohen_kappa_score(*positive))


def test_citations_are_judged_grade_by_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: ("none", "partial", "full")[last_digit(request) % 3])
    support = dataset(criterion="support", grades=(0, 1, 2), positive=(2,))
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2)), support)
    gold, grade = [row["gold"] for row in rows], [row["grade"] for row in rows]
    assert (of.prompt, of.compared) == ("support/graded", "grades")
    assert of.judge["percent"].value == pytest.approx(np.mean(np.array(gold) == grade))
    assert of.judge["wkappa"].value == pytest.approx(cohen_kappa_score(gold, grade, weights="quadratic"))


def test_the_other_end_of_a_scale_can_be_the_good_one(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str(last_digit(request)))
    turned = dataset(grades=(3, 2, 1, 0), positive=(0, 1), rung=None)
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2, 3)), turned)
    # The prompt's high grades are good, the data's low ones: the numbers are the same, the grades are not.
    assert of.compared == "positive"
    assert all(row["positive"] == (row["gold"] <= 1) for row in rows)
    assert all(row["score"] == row["grade"] for row in rows)


def test_a_prompt_of_your_own_may_turn_the_scale(known: Known, tmp_path: Path) -> None:
    """A prompt on which low grades are good ranks as one on which high grades are; its path is nowhere."""
    judge = Ruled(lambda request: "yes" if len(request.response) % 3 == 0 else "no")
    known(dataset(), judge=judge)
    folder = write(tmp_path / "data", items())
    assert bench(folder, tmp_path / "high", "--prompt", "groundedness/yes_no") == 0
    text = (PROJECT / "prompts" / "groundedness" / "yes_no.md").read_text(encoding="utf-8")
    text = text.replace('polarity = "higher"', 'polarity = "lower"').replace("positive = [1]", "positive = [0]")
    text = text.replace("grade = 1\n", "grade = 9\n").replace("grade = 0\n", "grade = 1\n")
    (tmp_path / "turned.md").write_text(text.replace("grade = 9\n", "grade = 0\n"), encoding="utf-8")
    assert bench(folder, tmp_path / "low", "--prompt", str(tmp_path / "turned.md")) == 0
    high, low = (card_of(tmp_path / name).datasets[0] for name in ("high", "low"))
    rows = [json_lines(tmp_path / name / "items.jsonl") for name in ("high", "low")]
    assert [row["grade"] for row in rows[0]] == [1 - row["grade"] for row in rows[1]]
    assert [row["says_positive"] for row in rows[0]] == [row["says_positive"] for row in rows[1]]
    assert high.judge == low.judge and (high.judge["auc"].value or 0) != 0.5
    assert (low.prompt, low.prompt_digest == high.prompt_digest) == ("groundedness/turned", False)
    assert str(tmp_path) not in (tmp_path / "low" / "card.json").read_text(encoding="utf-8")


def test_a_missing_answer_is_counted_and_is_no_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: "what?" if "number 3" in request.response else str(last_digit(request)))
    of, rows = judged(known, tmp_path, judge, items(), dataset())
    missing = [row for row in rows if row["score"] is None]
    assert (of.answered, of.missing, len(missing)) == (36, {"unreadable": 4}, 4)
    assert all((row["grade"], row["says_positive"], row["reason"]) == (None, None, "unreadable") for row in missing)
    assert of.judge["auc"].n == 36
    # In the worst case the missing positive items come last and the missing negative ones first.
    gold = [row["positive"] for row in rows]
    score = [row["score"] if row["score"] is not None else -9 if row["positive"] else 9 for row in rows]
    assert of.worst_case["auc"] == pytest.approx(roc_auc_score(gold, score))
    assert of.worst_case["kappa"] < of.judge["kappa"].value
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "90.0 %" in page and "tiny: 4 items unreadable" in page


def test_a_judge_without_any_answer_has_a_card_that_says_so(known: Known, tmp_path: Path) -> None:
    known(dataset(), judge=Ruled(lambda request: "what?"))
    assert bench(write(tmp_path / "data", items()), tmp_path / "out") == 1
    (of,) = card_of(tmp_path / "out").datasets
    assert (of.answered, of.judge["auc"].value, of.judge["auc"].reason) == (0, None, "no positive items")
    assert of.against_overlap == "not compared"


def test_word_overlap_is_measured_beside_the_judge(known: Known, tmp_path: Path) -> None:
    """A judge that knows the answers is better than word overlap, which is at chance here."""
    rows = items(20)
    grades = {str(row.response): row.grade for row in rows}
    judge = Ruled(lambda request: "3" if grades[request.response] else "0")
    rows = [msgspec.structs.replace(row, grade=grades[str(row.response)]) for row in rows]
    of, _ = judged(known, tmp_path, judge, rows, dataset())
    assert of.judge["auc"].value == 1
    assert of.over_overlap.value == pytest.approx(1 - of.overlap["auc"].value)
    rungs = [rung.rung for rung in card_of(tmp_path / "out").rungs]
    assert (of.against_overlap, rungs) == ("better", ["hard"])
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "On the hard rung the judge is better than word overlap: it is better where word overlap fails" in page


def test_word_overlap_itself_has_no_rival(known: Known, tmp_path: Path) -> None:
    known(dataset())
    assert bench(write(tmp_path / "data", items()), tmp_path / "out", model="baseline/overlap") == 0
    card = card_of(tmp_path / "out")
    assert (card.rungs, card.datasets[0].overlap, card.datasets[0].over_overlap) == ((), None, None)
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "This judge is word overlap, the baseline that a judge has to beat above the easy rung." in page


def test_people_are_measured_against_each_other(known: Known, tmp_path: Path) -> None:
    """Three assessors, of whom the third always errs: against the consensus of the others 2 of 3 grades are equal."""
    rows = [msgspec.structs.replace(row, grades=(row.grade, row.grade, 1 - row.grade)) for row in items()]
    of, _ = judged(known, tmp_path, Ruled(lambda request: "3"), rows, dataset())
    # The first two face one equal and one other grade, whose mean .5 is rounded up to 1; the third faces two others.
    equal = sum((row.grade == 1) * 2 for row in rows)
    assert of.people["percent"].value == pytest.approx(equal / (3 * len(rows)))
    assert of.people["percent"].n == 120
    # The judge always says 3 (positive) and faces the same: the first two's others are 1, the third's are the grade.
    ones = sum(2 + row.grade for row in rows)
    assert of.beside_people["percent"].value == pytest.approx(ones / (3 * len(rows)))
    assert of.beside_people["percent"].n == 120


@pytest.mark.long
def test_a_judge_as_good_as_a_person_agrees_beside_people_as_they_do(known: Known, tmp_path: Path) -> None:
    """With the consensus of all, of which it is not a part, it would seem to agree more than people do."""
    rng = np.random.default_rng(1)
    rows, says = [], {}
    for row in items(200):
        *grades, said = (row.grade if rng.random() < 0.75 else 1 - row.grade for _ in range(4))
        text = f"{row.item_id}: {row.response}"
        gold = int(sum(grades) >= 2)
        rows.append(msgspec.structs.replace(row, grade=gold, grades=tuple(grades), response=text))
        says[text] = "3" if said else "0"
    of, _ = judged(known, tmp_path, Ruled(lambda request: says[request.response]), rows, dataset())
    judge, people, beside = (measures["kappa"].value for measures in (of.judge, of.people, of.beside_people))
    # 800 items of a judge and three people; one standard error of a kappa is about .03.
    assert beside == pytest.approx(people, abs=0.06)
    assert judge > people + 0.06


def test_runs_are_ordered_by_their_means_over_the_units(known: Known, tmp_path: Path) -> None:
    """A run of fewer than half of the units has no place among them."""
    rng = np.random.default_rng(4)
    rows = [
        LabeledResponse(f"t{unit}/a/r{run}/{k}", f"t{unit}", int(rng.integers(4)), (), f"{unit}{run}{k} cars", ("Car",))
        for run in range(7)
        for unit in range(9 if run < 6 else 4)
        for k in range(run % 3 + 1)
    ]
    says = {str(row.response): str(min(3, row.grade + int(rng.integers(3)))) for row in rows} | {"010 cars": "what?"}
    says |= {text: "what?" for text in says if text[1] == "5"}
    known(dataset(grades=(0, 1, 2, 3), positive=(2, 3), runs=True), judge=Ruled(lambda request: says[request.response]))
    assert bench(write(tmp_path / "data", rows), tmp_path / "out") == 0
    card, answered = card_of(tmp_path / "out"), json_lines(tmp_path / "out" / "items.jsonl")
    of_units: dict[str, dict[str, list[Any]]] = {}
    for row in answered:
        if row["score"] is not None and "/r6/" not in row["item_id"]:
            of_units.setdefault(row["item_id"][3:7], {}).setdefault(row["unit"], []).append(row)
    for by, sides in (("mean grade", ("gold", "score")), ("share of positives", ("positive", "says_positive"))):
        means = {
            # Fractions, so that means may tie.
            run: [float(sum(sum(Fraction(row[side]) for row in of) / len(of) for of in units.values()) / len(units))
                  for side in sides]
            for run, units in of_units.items()
        }  # fmt: skip
        assert {run: pytest.approx(both) for run, both in means.items()} == card.datasets[0].run_scores[by]
        measures = card.datasets[0].runs[by]
        # Nothing that the judge did not answer counts, for word overlap neither.
        assert (measures["tau_b"].n, measures["tau_b"].topics, measures["overlap_tau_b"].n) == (5, 9, 5)
        assert measures["tau_b"].value == pytest.approx(kendalltau(*zip(*means.values(), strict=True)).statistic)
        assert None not in (measures["people_halves"].value, measures["judge_halves"].value)
        assert measures["overlap_tau_b"].reason == "one side ranks all runs the same"
    assert "## Runs" in card_page(card) and "Published for tiny: Same .5 (A 2026)." in card_page(card)
    assert [grid.title for grid in judge_grids([card, card])][3:] == [
        "Tau-b of runs by mean grade", "Tau-b of runs by share of positives",
    ]  # fmt: skip


def test_the_intervals_of_several_rungs_hold_together(known: Known, tmp_path: Path) -> None:
    """Bonferroni: of two rungs each interval is 97.5 %, wider than that of its dataset alone by the quantiles of t."""
    rng = np.random.default_rng(3)
    rows = items(12)
    texts = {str(row.response): str(int(rng.integers(0, 4))) for row in rows}
    known(
        dataset("tiny", rung="middle"),
        dataset("other", rung="hard"),
        judge=Ruled(lambda request: "what?" if "number 3" in request.response else texts[request.response]),
    )
    write(tmp_path / "data", rows, "other")
    assert bench(write(tmp_path / "data", rows), tmp_path / "out") == 0
    card = card_of(tmp_path / "out")
    for rung, of in zip(card.rungs, card.datasets, strict=True):
        assert of.over_overlap is not None and None not in (of.over_overlap.low, rung.over_overlap.low)
        assert rung.over_overlap.value == of.over_overlap.value
        # Between -1 and 1 ends are on Fisher's z.
        wide, alone = (
            math.atanh(each.high or 0) - math.atanh(each.low or 0) for each in (rung.over_overlap, of.over_overlap)
        )
        ratios = [t.ppf(1 - 0.05 / 4, df) / t.ppf(1 - 0.05 / 2, df) for df in (7, 11)]
        assert min(ratios) - 1e-9 <= wide / alone <= max(ratios) + 1e-9
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "The intervals of the 2 rungs are 97.5 %, so that all hold together at 95 %." in page
    assert "(of the items that it answered)" in page.splitlines()[2]


def test_a_rerun_asks_nothing_and_writes_the_same_bytes(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str(last_digit(request)))
    known(dataset(), judge=judge)
    folder, out = write(tmp_path / "data", items()), tmp_path / "out"
    assert bench(folder, out) == 0
    calls = judge.calls
    before = {path.name: path.read_bytes() for path in out.iterdir() if "journal" not in path.name}
    assert bench(folder, out) == 0
    after = {path.name: path.read_bytes() for path in out.iterdir() if "journal" not in path.name}
    assert judge.calls == calls and before == after
    # Another folder of another name gives the same card, since no path and no date is in it.
    assert bench(write(tmp_path / "elsewhere" / "deep", items()), tmp_path / "again") == 0
    for name in ("card.json", "card.md", "items.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == before[name]
        assert str(tmp_path).encode() not in before[name]


def test_a_limit_draws_by_seed_and_later_asks_only_the_rest(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str(last_digit(request)))
    known(dataset(), judge=judge)
    folder, out = write(tmp_path / "data", items()), tmp_path / "out"
    assert bench(folder, out, "--limit", "12") == 0
    drawn = [row["item_id"] for row in json_lines(out / "items.jsonl")]
    every = [item.item_id for item in items()]
    assert len(drawn) == 12 and drawn == [name for name in every if name in drawn]
    (of,) = card_of(out).datasets
    assert (of.items, of.total, card_of(out).limit) == (12, 40, 12)
    assert "12 of 40" in (out / "card.md").read_text(encoding="utf-8")
    assert bench(folder, tmp_path / "other", "--limit", "12", "--resampling-seed", "7") == 0
    assert [row["item_id"] for row in json_lines(tmp_path / "other" / "items.jsonl")] != drawn
    assert bench(folder, tmp_path / "same", "--limit", "12") == 0
    assert [row["item_id"] for row in json_lines(tmp_path / "same" / "items.jsonl")] == drawn
    before = judge.calls
    assert bench(folder, out) == 0
    whole = Ruled(judge.rule)
    known(dataset(), judge=whole)
    assert bench(folder, tmp_path / "whole") == 0
    # The items of the trial were not asked again.
    assert judge.calls - before < whole.calls
    assert (out / "card.json").read_bytes() == (tmp_path / "whole" / "card.json").read_bytes()


def test_a_dry_run_sends_and_writes_nothing(known: Known, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge = Ruled(lambda request: "1")
    known(dataset(), judge=judge)
    assert bench(write(tmp_path / "data", items()), tmp_path / "out", "--dry-run", "--limit", "10") == 0
    out, err = capsys.readouterr()
    assert judge.calls == 0 and not (tmp_path / "out").exists()
    assert "judgments           10: 10 of tiny\n" in out and "cost                about $" in out
    assert err.endswith("nothing was sent and nothing was written\n")


def test_a_budget_stops_and_the_next_call_goes_on(known: Known, tmp_path: Path) -> None:
    known(dataset(), judge=Ruled(lambda request: str(last_digit(request))))
    folder, out = write(tmp_path / "data", items()), tmp_path / "out"
    assert bench(folder, out, "--max-cost", "0.00006", "--concurrency", "1") == 3
    (of,) = card_of(out).datasets
    assert of.missing == {"budget": 40 - of.answered} and 0 < of.answered < 40
    assert bench(folder, out) == 0
    assert card_of(out).datasets[0].answered == 40


def test_stored_labels_scores_and_flags(known: Known, tmp_path: Path) -> None:
    rows = items(grades=(0, 1, 2, 3))
    of_labels = {row.item_id: float(row.grade) for row in rows} | {"0-0": 7.0}
    del of_labels["0-1"]
    stored = {
        "labels": of_labels,
        "scores": {row.item_id: row.grade / 3 for row in rows},
        "flags": {row.item_id: float(row.grade >= 2) for row in rows},
    }
    known(dataset(grades=(0, 1, 2, 3), positive=(2, 3), stored=stored))
    folder, out = write(tmp_path / "data", rows), tmp_path / "out"
    assert bench(folder, out, "--stored", model="") == 0
    cards = {name: card_of(out / name) for name in stored}
    of = {name: card.datasets[0] for name, card in cards.items()}
    assert {name: each.compared for name, each in of.items()} == {
        "labels": "grades", "scores": "scores", "flags": "positive"
    }  # fmt: skip
    assert of["labels"].missing == {"not_judged": 1, "off_scale": 1}
    assert of["labels"].judge["wkappa"].value == 1 and of["scores"].judge.keys() == {"auc"}
    assert of["scores"].judge["auc"].value == of["flags"].judge["auc"].value == 1
    assert of["flags"].judge["kappa"].value == 1
    assert cards["flags"].kind == "stored" and cards["flags"].expense is None and of["flags"].prompt is None
    assert of["labels"].overlap is not None
    assert not (out / "journal.sqlite").exists()


def test_labels_without_texts_can_only_be_stored(known: Known, tmp_path, capsys) -> None:
    rows = items(texts=False)
    bare = dataset("bare", stored={"a": {row.item_id: row.grade for row in rows}})
    known(dataset(), bare, judge=Ruled(lambda request: "1"))
    write(tmp_path / "data", items())
    folder = write(tmp_path / "data", rows, "bare")
    assert bench(folder, tmp_path / "out") == 0
    assert "note: bare left out: its texts were not released with the labels; --stored" in capsys.readouterr().err
    assert [each.name for each in card_of(tmp_path / "out").datasets] == ["tiny"]
    assert bench(folder, tmp_path / "other", "--dataset", "bare") == 2
    assert "judge: bare: its texts were not released" in capsys.readouterr().err
    assert bench(folder, tmp_path / "stored", "--stored", model="") == 0
    (of,) = card_of(tmp_path / "stored" / "a").datasets
    assert of.overlap is None and of.judge["auc"].value == 1


HOSTILE = "a\x1b[31m<img src=x>|`$(rm)`\n# \u202eb"


def test_hostile_texts_and_names_stay_harmless(known: Known, tmp_path, capsys) -> None:
    rows = [
        msgspec.structs.replace(row, item_id=f"{HOSTILE}{row.item_id}", unit=HOSTILE + row.unit, response=HOSTILE * 3)
        for row in items()
    ]
    known(dataset(stored={HOSTILE: {row.item_id: row.grade for row in rows}}), judge=Ruled(lambda request: "2"))
    folder = write(tmp_path / "data", rows)
    assert bench(folder, tmp_path / "out") == 0
    assert bench(folder, tmp_path / "stored", "--stored", model="") == 0
    (page,) = (tmp_path / "stored").glob("*/card.md")
    for text in (page.read_text(encoding="utf-8"), (tmp_path / "out" / "card.md").read_text(encoding="utf-8")):
        assert all(line.isprintable() for line in text.split("\n")) and "<img" not in text
        assert sum(line.startswith("# ") for line in text.split("\n")) == 1
    assert "\x1b" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(("typed", "said"), [
    ("--dataset tinny", "no dataset called 'tinny'; did you mean tiny? (there are tiny, absent, spoken, novel)"),
    ("--dataset absent", "absent is not there: get example/absent"),
    ("--dataset spoken", "spoken: server/ruled has no ear"),
    ("--dataset novel", "novel: no prompt of novelty comes with judge: --prompt names one of your own"),
    ("--prompt relevance/graded", "relevance/graded: no dataset is about relevance"),
    (
        "--prompt groundedness/graded --prompt groundedness/yes_no",
        "two prompts for groundedness: groundedness/graded and groundedness/yes_no; give each an --out of its own",
    ),
    ("--stored", "expected either a judge to ask (--model) or those whose labels are there (--stored)"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_written(typed, said, known, tmp_path, capsys) -> None:
    judge = Ruled(lambda request: "1")
    sets = (
        dataset(),
        dataset("absent"),
        dataset("spoken", criterion="naturalness"),
        dataset("novel", criterion="novelty"),
    )
    known(*sets, judge=judge)
    folder = write(write(write(tmp_path / "data", items()), items(), "spoken"), items(), "novel")
    assert said in complaint(capsys, bench(folder, tmp_path / "out", *typed.split()))
    assert judge.calls == 0 and not (tmp_path / "out").exists()


def test_prompts_with_the_conversation_need_a_dataset_that_has_it(known: Known, tmp_path, capsys) -> None:
    seen: list[str] = []

    def rule(request: Request) -> str:
        seen.append(request.messages[-1].content)
        return "3"

    talk = dataset("talk", criterion="relevance", grades=(0, 1, 2, 3), positive=(2, 3), rung=None)
    known(talk, judge=Ruled(rule))
    rows = items(grades=(0, 1, 2, 3))
    assert bench(write(tmp_path / "data", rows, "talk"), tmp_path / "out", "--dataset", "talk") == 2
    assert "talk: relevance/graded shows the conversation, and the dataset has none" in capsys.readouterr().err
    spoken = [msgspec.structs.replace(row, utterance="And trains?", context=(("Hi.", "Hello."),)) for row in rows]
    assert bench(write(tmp_path / "data", spoken, "talk"), tmp_path / "out", "--dataset", "talk") == 0
    assert all("And trains?" in text and "User: Hi.\nSystem: Hello." in text for text in seen)


def test_nothing_there_is_told_with_the_way_to_the_list(known: Known, tmp_path, capsys) -> None:
    known(dataset(), judge=Ruled(lambda request: "1"))
    (tmp_path / "empty").mkdir()
    assert bench(tmp_path / "empty", tmp_path / "out") == 2
    assert "none of the 1 datasets is there; `judge bench datasets` says" in capsys.readouterr().err
    assert "nowhere: not a folder that can be read" in complaint(capsys, bench(tmp_path / "nowhere", tmp_path / "out"))


def test_the_list_says_what_is_there_and_how_to_get_the_rest(known: Known, tmp_path, capsys) -> None:
    known(dataset(), dataset("absent", rung="easy"))
    write(tmp_path / "data", items())
    assert main(["bench", "datasets", "--data", str(tmp_path / "data"), "--format", "json"]) == 0
    (grid,) = json.loads(capsys.readouterr().out)
    rows = [(row["dataset"], row["there"], row["rung"], row["licence"], row["source"]) for row in grid["rows"]]
    assert rows == [("tiny", True, "hard", "CC0", "example/tiny"), ("absent", False, "easy", "CC0", "example/absent")]


def test_a_folder_with_other_results_is_left_alone(known: Known, tmp_path, capsys) -> None:
    known(dataset(), judge=Ruled(lambda request: "1"))
    folder, out = write(tmp_path / "data", items()), tmp_path / "out"
    assert bench(folder, out) == 0
    known(dataset(), judge=Ruled(lambda request: "1", name="server/other"))
    assert bench(folder, out, model="server/other") == 2
    assert "holds the card of server/ruled: choose another --out" in capsys.readouterr().err
    put(tmp_path / "run" / "manifest.json", "{}")
    assert "holds the results of `judge run`" in complaint(capsys, bench(folder, tmp_path / "run"))
    assert bench(folder, folder) == 2


def test_a_card_survives_the_way_through_json(known: Known, tmp_path: Path) -> None:
    known(dataset(), judge=Ruled(lambda request: str(last_digit(request))))
    assert bench(write(tmp_path / "data", items()), tmp_path / "out") == 0
    content = (tmp_path / "out" / "card.json").read_bytes()
    card = parse_card(content, "card.json")
    assert json_bytes(card) == content
    assert card_page(card) == (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert json.loads(content)["schema"] == 1
    assert isinstance(card.datasets[0].judge["auc"], Estimate)


# ---------------------------------------------------------------- real data


@pytest.mark.long
def test_word_overlap_orders_the_runs_of_rag_2024_as_well_as_other_topics_do(shared: Path, tmp_path: Path) -> None:
    names = ("rag24-support", "rag24-nuggets")
    assert bench(shared, tmp_path / "out", "--dataset", *names, model="baseline/overlap") == 0
    cards = card_of(tmp_path / "out").datasets
    by_runs = [each.runs["mean grade"] for each in cards]
    found = [[of["tau_b"].n, *(round(of[name].value or 0, 2) for name in ("tau_b", "people_halves", "judge_halves"))]
             for of in by_runs]  # fmt: skip
    assert found == [[40, 0.62, 0.43, 0.45], [44, 0.75, 0.54, 0.53]]
    same = [[round(each.judge[name].value or 0, 3) for name in ("percent", "kappa", "wkappa", "auc")] for each in cards]
    assert same == [[0.497, 0.257, 0.464, 0.837], [0.397, 0.228, 0.466, 0.826]]


@pytest.mark.long
def test_stored_judges_of_llmjudge_have_their_published_agreement(shared: Path, tmp_path: Path) -> None:
    """Kappa and alpha of arXiv 2502.13908, Tables 3 and 4."""
    assert bench(shared, tmp_path / "out", "--dataset", "llmjudge", "--stored", model="") == 0
    found: dict[str, Any] = {}
    for name in ("willia-umbrela1", "h2oloo-fewself"):
        judge = card_of(tmp_path / "out" / name).datasets[0].judge
        found[name] = (round(judge["kappa"].value or 0, 4), round(judge["alpha_ordinal"].value or 0, 4))
    assert found == {"willia-umbrela1": (0.2863, 0.4918), "h2oloo-fewself": (0.2774, 0.4958)}
