"""`judge bench`: a judge measured on public labels, from the files of a dataset to its card."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from judge.cli import main
from judge.extra.bench.card import JudgeCard, parse_card
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.page import card_page, judge_grids
from judge.io.files import json_bytes, sha256
from judge.judges.records import Request
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
    gold = [row["positive"] for row in rows]
    assert [row["gold"] for row in rows] == [item.grade for item in items()]
    assert [row["grade"] for row in rows] == [row["score"] for row in rows]
    # The prompt's positive grades are 2 and 3.
    called = [row["grade"] >= 2 for row in rows]
    assert of.judge.statistics["kappa"].value == pytest.approx(cohen_kappa_score(gold, called))
    assert (of.judge.gold, of.judge.n, of.judge.topics, of.judge.without_grade) == (40, 40, 10, {})
    assert (of.judge.judge, of.judge.prompt, of.judge.binary) == ("server/ruled", "groundedness/graded", True)
    assert [row.judge for row in of.agreement] == ["server/ruled", "constant", "baseline/overlap"]
    # Half of the items are positive; the lower of the two commonest grades is 0.
    constant = of.agreement[1].statistics
    assert constant["percent"].value == 0.5 and constant["kappa"].value == 0
    assert of.files == {"tiny.jsonl": sha256((folder / "tiny.jsonl").read_bytes())}
    # Equal responses of a unit with equal evidence are asked about once.
    calls = judge.calls
    assert card.spending is not None and (card.spending.calls, card.spending.prompt_tokens) == (calls, 10 * calls)
    assert card.spending.cost == pytest.approx(calls * (10 * 1e-6 + 1 * 2e-6))
    assert card.models_returned == ("ruled-1",)
    assert card.items_digest == sha256((out / "items.jsonl").read_bytes())


def test_a_servers_own_name_of_its_model_is_on_the_card_only_on_demand(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: "2")
    judge.returned = "/srv/team-gull/m"
    known(dataset(), judge=judge)
    folder = write(tmp_path / "data", items())
    for options, name in (((), "unpublished-model-1"), (("--model-names",), "/srv/team-gull/m")):
        out = tmp_path / f"out{len(options)}"
        assert bench(folder, out, *options) == 0
        card = card_of(out)
        assert card.models_returned == (name,)
        assert any(f"{name!r} (40)" in note for note in card.notes)
        made = "".join(path.read_text() for path in out.rglob("*.*") if path.suffix in (".json", ".jsonl", ".md"))
        assert ("team-gull" in made) == bool(options)


def test_expected_grades_rank_where_the_judge_gives_probabilities(known: Known, tmp_path: Path) -> None:
    def rule(request: Request) -> dict[str, float]:
        share = (len(request.response) % 7) / 10
        return {"0": 1 - share, "1": 0.0, "2": 0.0, "3": share}

    of, rows = judged(known, tmp_path, Ruled(rule), items(), dataset())
    texts = [str(item.response) for item in items()]
    assert [row["score"] for row in rows] == pytest.approx([3 * (len(text) % 7) / 10 for text in texts])
    gold, score = [row["positive"] for row in rows], [row["score"] for row in rows]
    assert of.judge.statistics["auc"].value == pytest.approx(roc_auc_score(gold, score))


def test_a_scale_of_the_same_grades_is_compared_grade_by_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str((len(request.response) + last_digit(request)) % 4))
    ordinal = dataset(grades=(0, 1, 2, 3), positive=(2, 3), rung=None)
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2, 3)), ordinal)
    gold, grade = [row["gold"] for row in rows], [row["grade"] for row in rows]
    assert not of.judge.binary
    found = of.judge.statistics
    assert found["kappa"].value == pytest.approx(cohen_kappa_score(gold, grade))
    assert found["wkappa"].value == pytest.approx(cohen_kappa_score(gold, grade, weights="quadratic"))
    assert found["alpha_ordinal"].low is not None


def test_citations_are_judged_grade_by_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: ("none", "partial", "full")[last_digit(request) % 3])
    support = dataset(criterion="support", grades=(0, 1, 2), positive=(2,))
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2)), support)
    gold, grade = [row["gold"] for row in rows], [row["grade"] for row in rows]
    assert (of.judge.prompt, of.judge.binary) == ("support/graded", False)
    assert of.judge.statistics["percent"].value == pytest.approx(np.mean(np.array(gold) == grade))
    assert of.judge.statistics["wkappa"].value == pytest.approx(cohen_kappa_score(gold, grade, weights="quadratic"))


def test_the_other_end_of_a_scale_can_be_the_good_one(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: str(last_digit(request)))
    turned = dataset(grades=(3, 2, 1, 0), positive=(0, 1), rung=None)
    of, rows = judged(known, tmp_path, judge, items(grades=(0, 1, 2, 3)), turned)
    # The prompt's high grades are good, the data's low ones: the numbers are the same, the grades are not.
    assert of.judge.binary
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
    assert [row["score"] for row in rows[0]] == [1 + row["score"] for row in rows[1]]
    kappa = (each.judge.statistics["kappa"] for each in (high, low))
    assert next(kappa) == next(kappa) and high.judge.statistics["kappa"].value
    assert (low.judge.prompt, low.prompt_digest == high.prompt_digest) == ("groundedness/turned", False)
    assert str(tmp_path) not in (tmp_path / "low" / "card.json").read_text(encoding="utf-8")


def test_a_missing_answer_is_counted_and_is_no_grade(known: Known, tmp_path: Path) -> None:
    judge = Ruled(lambda request: "what?" if "number 3" in request.response else str(last_digit(request)))
    of, rows = judged(known, tmp_path, judge, items(), dataset())
    missing = [row for row in rows if row["score"] is None]
    assert (of.judge.n, of.judge.without_grade, len(missing)) == (36, {"unreadable": 4}, 4)
    assert all((row["grade"], row["reason"]) == (None, "unreadable") for row in missing)
    # In the worst case each of them is of the other class.
    gold = [row["positive"] for row in rows]
    called = [row["grade"] >= 2 if row["grade"] is not None else not row["positive"] for row in rows]
    assert of.judge.worst_case["kappa"] == pytest.approx(cohen_kappa_score(gold, called))
    assert of.judge.worst_case["kappa"] < of.judge.statistics["kappa"].value
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert "| 4 unreadable |" in page


def test_a_judge_without_any_answer_has_a_card_that_says_so(known: Known, tmp_path: Path) -> None:
    known(dataset(), judge=Ruled(lambda request: "what?"))
    data = write(tmp_path / "data", items())
    # It is given up after three questions, until the same command is given again.
    assert bench(data, tmp_path / "out") == 3
    assert bench(data, tmp_path / "out") == 1
    (of,) = card_of(tmp_path / "out").datasets
    assert (of.judge.n, of.judge.statistics["kappa"].value, of.judge.without_grade) == (0, None, {"unreadable": 40})


def test_word_overlap_is_measured_beside_the_judge(known: Known, tmp_path: Path) -> None:
    """A judge that knows the answers is better than word overlap, which is at chance here."""
    rows = items(20)
    grades = {str(row.response): row.grade for row in rows}
    judge = Ruled(lambda request: "3" if grades[request.response] else "0")
    rows = [msgspec.structs.replace(row, grade=grades[str(row.response)]) for row in rows]
    of, _ = judged(known, tmp_path, judge, rows, dataset())
    (pair,) = of.comparisons
    overlap = of.agreement[2].statistics["kappa"].value
    assert {pair.a, pair.b} == {"server/ruled graded", "baseline/overlap graded"} and pair.p < 0.01
    page = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert of.judge.statistics["kappa"].value == 1 and f"| {1 - overlap:.3f} |" in page
    assert not any("is not shown to agree better" in note for note in card_of(tmp_path / "out").notes)


def test_a_judge_that_is_not_better_than_word_overlap_is_said_to_be_so(known: Known, tmp_path, capsys) -> None:
    known(dataset(), judge=Ruled(lambda request: str(last_digit(request))))
    assert bench(write(tmp_path / "data", items()), tmp_path / "out") == 0
    said = "server/ruled graded is not shown to agree better than baseline/overlap graded, which costs nothing"
    assert f"note: tiny: groundedness: {said}\n" in capsys.readouterr().err
    assert f"- tiny: groundedness: {said}\n" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")


def test_word_overlap_itself_has_no_rival(known: Known, tmp_path: Path) -> None:
    known(dataset())
    assert bench(write(tmp_path / "data", items()), tmp_path / "out", model="baseline/overlap") == 0
    (of,) = card_of(tmp_path / "out").datasets
    assert ([row.judge for row in of.agreement], of.comparisons) == (["baseline/overlap", "constant"], ())


def test_people_are_measured_against_each_other(known: Known, tmp_path: Path) -> None:
    """Three assessors, of whom the third always errs: each against the consensus of the others."""
    rows = [msgspec.structs.replace(row, grades=(row.grade, row.grade, 1 - row.grade)) for row in items()]
    of, _ = judged(known, tmp_path, Ruled(lambda request: "3"), rows, dataset())
    # The first two face one equal and one other grade, whose mean .5 is rounded up to 1; the third faces two others.
    people = [grade for row in rows for grade in row.grades]
    others = [other for row in rows for other in (1, 1, row.grade)]
    assert of.judge.ceiling.value == pytest.approx(cohen_kappa_score(people, others))
    assert (of.judge.ceiling.n, of.judge.reference) == (40, "consensus of up to 3 assessors")


def test_runs_are_ordered_by_their_mean_grades(known: Known, tmp_path: Path) -> None:
    """A run of fewer than half of the units has no place among them."""
    rng = np.random.default_rng(4)
    rows = [
        LabeledResponse(f"t{unit}/a/r{run}/{k}", f"t{unit}", int(rng.integers(4)), (), f"{unit}{run}{k} cars", ("Car",))
        for run in range(7)
        for unit in range(9 if run < 6 else 4)
        for k in range(run % 3 + 1)
    ]
    says = {str(row.response): str(min(3, row.grade + int(rng.integers(3)))) for row in rows} | {"010 cars": "what?"}
    known(dataset(grades=(0, 1, 2, 3), positive=(2, 3), runs=True), judge=Ruled(lambda request: says[request.response]))
    assert bench(write(tmp_path / "data", rows), tmp_path / "out") == 0
    card, answered = card_of(tmp_path / "out"), json_lines(tmp_path / "out" / "items.jsonl")
    of_runs: dict[str, list[Any]] = {}
    for row in answered:
        if row["grade"] is not None and "/r6/" not in row["item_id"]:
            of_runs.setdefault(row["item_id"][3:7], []).append(row)
    means = [[sum(row[side] for row in of) / len(of) for of in of_runs.values()] for side in ("gold", "grade")]
    judge, overlap = card.datasets[0].systems
    assert (judge.judge, overlap.judge, judge.facts["runs"]) == ("server/ruled", "baseline/overlap", 6)
    assert judge.statistics["tau_b"].value == pytest.approx(kendalltau(*means).statistic)
    assert None not in (judge.facts["half_human"], judge.facts["half_judge"])
    assert overlap.statistics["tau_b"].reason == "one side ranks all runs the same"
    page = card_page(card)
    assert "## Runs" in page and "published for tiny: Same .5 (A 2026)." in page
    assert [grid.title for grid in judge_grids([card, card])] == ["Agreement", "Tau-b of runs"]


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
    assert (of.judge.gold, of.total, card_of(out).limit) == (12, 40, 12)
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
    assert of.judge.without_grade == {"budget": 40 - of.judge.n} and 0 < of.judge.n < 40
    assert bench(folder, out) == 0
    assert card_of(out).datasets[0].judge.n == 40


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
    assert {name: each.judge.binary for name, each in of.items()} == {"labels": False, "scores": True, "flags": True}
    assert of["labels"].judge.without_grade == {"not_judged": 1, "off_scale": 1}
    assert of["labels"].judge.statistics["wkappa"].value == 1
    # A score of a half or more says positive: 2 / 3 and 1.
    assert of["scores"].judge.statistics["auc"].value == of["scores"].judge.statistics["kappa"].value == 1
    assert of["flags"].judge.statistics["kappa"].value == 1
    assert cards["flags"].options is None and cards["flags"].spending is None and of["flags"].judge.prompt is None
    assert of["labels"].agreement[-1].judge == "baseline/overlap"
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
    assert of.comparisons == () and of.judge.statistics["kappa"].value == 1


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
    assert json.loads(content)["schema"] == 4


# ---------------------------------------------------------------- real data


@pytest.mark.long
def test_word_overlap_orders_the_runs_of_rag_2024_as_well_as_other_topics_do(shared: Path, tmp_path: Path) -> None:
    names = ("rag24-support", "rag24-nuggets")
    assert bench(shared, tmp_path / "out", "--dataset", *names, model="baseline/overlap") == 0
    cards = card_of(tmp_path / "out").datasets
    found = []
    for each in cards:
        (row,) = each.systems
        values = row.statistics["tau_b"].value, row.facts["half_human"], row.facts["half_judge"]
        found.append([row.facts["runs"], *(round(value or 0, 2) for value in values)])
    assert found == [[40, 0.62, 0.50, 0.46], [44, 0.77, 0.52, 0.53]]
    shown = ("percent", "kappa", "wkappa", "auc")
    same = [[round(each.judge.statistics[name].value or 0, 3) for name in shown] for each in cards]
    assert same == [[0.497, 0.257, 0.464, 0.837], [0.397, 0.228, 0.466, 0.826]]


@pytest.mark.long
def test_stored_judges_of_llmjudge_have_their_published_agreement(shared: Path, tmp_path: Path) -> None:
    """Kappa and alpha of arXiv 2502.13908, Tables 3 and 4."""
    assert bench(shared, tmp_path / "out", "--dataset", "llmjudge", "--stored", model="") == 0
    found: dict[str, Any] = {}
    for name in ("willia-umbrela1", "h2oloo-fewself"):
        judge = card_of(tmp_path / "out" / name).datasets[0].judge.statistics
        found[name] = (round(judge["kappa"].value or 0, 4), round(judge["alpha_ordinal"].value or 0, 4))
    assert found == {"willia-umbrela1": (0.2863, 0.4918), "h2oloo-fewself": (0.2774, 0.4958)}
