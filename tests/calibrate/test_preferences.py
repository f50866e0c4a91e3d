"""Pairs that people compared: their labels, a judge beside them, its certificate, and win rates corrected by them."""

import csv
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import judge
from judge.ask.criteria import find_criterion
from judge.cli import main
from judge.errors import UsageError
from judge.gold.rows import GoldRow, citation_digest, gold_jsonl, one_order, read_gold, response_digest, text_digest
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.calibration.inputs import gold_tasks
from judge.jobs.drift import DriftPlan, compare_dates
from judge.jobs.gold import GoldDrawPlan, draw_gold_plan
from judge.jobs.judged import read_judged
from judge.jobs.leaderboard import CorrectionPlan, correct_leaderboard
from judge.pool.pairs import other_orders
from judge.pool.records import PooledResponse
from tests.results.test_pairs import better, judged, runs, upsets

LABELS = {"A": 2, "N": 1, "B": 0}


def people(
    out: Path, grade: Callable[[PooledResponse], int | None], name: str = "gold.jsonl", p: Any = 1.0, **more: Any
) -> Path:
    """Gold of pooled pairs as somebody grades them; `p` is of all pairs, or a function of one."""
    pool = read_judged(out).pool
    rows = [
        GoldRow(
            one.turn_id,
            one.topic_id,
            "preference",
            said,
            "ann",
            text_sha256=response_digest(one),
            inclusion_probability=p if isinstance(p, float) else p(one),
            **more,
        )
        for one in pool.responses
        if (said := grade(one)) is not None
    ]
    (out.parent / name).write_bytes(gold_jsonl(rows))
    return out.parent / name


def qualities(pair: PooledResponse) -> tuple[int, int]:
    first, second = (int(re.findall(r"Fine (\d)", text)[0]) for text in (pair.text, pair.second))
    return first, second


def one_each(pair: PooledResponse) -> int | None:
    """In topics 1 to 4, and 10 to 15, the better response is shown first, in others second; a and b are tied."""
    first, second = qualities(pair)
    if (first > second) is not (int(pair.topic_id) % 9 < 5 and pair.topic_id != "9"):
        return None
    return 1 if first + second == 5 else 2 * (first > second)


def test_a_judge_of_pairs_is_compared_by_its_verdicts_in_both_orders(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(tmp_path, upsets)
    gold = people(out, one_each)
    found = calibrate_judges(CalibrationPlan(gold=gold, judgments=out, out=tmp_path / "cal"))
    row = next(row for row in found.calibration.agreement if not row.baseline)
    # 6 pairs a topic, 3 of the ninth. In topic 3 all flip, in topic 4 the 3 with a are unreadable in an order or both.
    assert (row.gold, row.n, row.without_grade) == (51, 42, {"flipped": 6, "unreadable": 3})
    (said,) = found.calibration.findings["preferences"]
    of = {name: (estimate.value, estimate.n) for name, estimate in said.statistics.items()}
    # People tie a and b in each topic. The judge is wrong in topic 1, and ties all of topic 2.
    assert of["accuracy"] == (pytest.approx(25 / 30), 30)
    assert of["decisive"] == (pytest.approx(36 / 42), 42) and of["decisive_human"] == (pytest.approx(42 / 51), 51)
    assert of["flipped"] == (pytest.approx(6 / 48), 48) and of["first_human"] == (pytest.approx(20 / 42), 42)
    # Pairs of the same gap are in one third: of c and d; of c with a and b; of d with a and b.
    for third, right, n in (("near", 5, 6), ("middle", 11, 13), ("far", 9, 11)):
        assert of[third] == (pytest.approx(right / n), n)
    # 5 verdicts are two grades off, 6 + 5 one; people prefer either response in 17.5 of 42, the judge in 18.
    chance = (2 * 17.5 * 18 + (2 * 17.5 * 6 + 7 * 2 * 18) / 4) / 42
    assert row.statistics["wkappa"].value == pytest.approx(1 - (5 + 11 / 4) / chance)
    # b wins 3.5 + 15 of 22 of people's pairs, a 3.5 + 13 of 20, c 7 of 22, d none; of the judge's a wins more.
    assert found.calibration.findings["systems"][0].statistics["tau_b"].value == pytest.approx((5 - 1) / 6)
    assert said.statistics["first_place"].value == pytest.approx(float(re.findall(
        r"equal runs: ([-+.\d]+)", read_judged(out).tables.advantages["preference"])[0]), abs=0.005)  # fmt: skip
    assert "flipped [95 %]" in (tmp_path / "cal" / "calibration.md").read_text()
    assert (tmp_path / "cal" / "preferences.tsv").read_text().count("\n") == 2


def test_a_pair_in_another_order_is_the_same_pair(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pool = judged(tmp_path, better).pool
    gold = people(out, one_each)
    rows, others = read_gold(gold), other_orders(pool)
    turned = lambda pair: None if one_each(pair) is not None else 2 - one_each(others[pair.response_id])  # noqa: E731
    both = people(out, lambda pair: turned(pair) if one_each(pair) is None else one_each(pair), "both.jsonl")
    (tmp_path / "families.tsv").write_text("a\tmine\nb\tmine\nlabel/v1\tmine\n")
    found, twice, mirrored = (
        calibrate_judges(CalibrationPlan(gold=of, judgments=out, families=tmp_path / "families.tsv")).calibration
        for of in (gold, both, people(out, turned, "turned.jsonl"))
    )
    for one, other, third in zip(found.agreement, twice.agreement, mirrored.agreement, strict=True):
        assert (one.name, one.n, one.coverage, one.statistics) == (other.name, 51, 1, third.statistics)
    # In their 9 pairs, ties to people, the judge gives a one grade more and b one less.
    assert [(of.facts["family"], of.facts["runs"], of.facts["mean"]) for of in found.findings["families"]] == [
        ("mine", 2, 0)
    ]
    assert found.findings["systems"] == mirrored.findings["systems"]
    assert found.findings["families"] == mirrored.findings["families"]
    accuracies = [each.findings["preferences"][0].statistics["accuracy"] for each in (found, twice)]
    assert accuracies[0] == accuracies[1] and accuracies[0].value == 1
    # Who takes the same one in both orders said one thing; who takes the first in both, that none is better.
    first = rows[0]
    pair = next(one for one in pool.responses if response_digest(one) == first.text_sha256)
    other = replace(first, text_sha256=response_digest(others[pair.response_id]), distribution={"0": 0.75, "2": 0.25})
    same, apart, tied = (replace(other, grade=grade) for grade in (2 - first.grade, first.grade, 1))
    for again, grade in ((same, first.grade), (apart, 1), (tied, 1)):
        (one,) = one_order([first, again], pool, {"preference": (0, 2)})
        assert (one.response_id, one.text_sha256, one.grade) == (first.response_id, first.text_sha256, grade)
    assert one_order([first, replace(other, assessor="bob")], pool, {"preference": (0, 2)})[1] == replace(
        other, assessor="bob", grade=2 - other.grade, response_id=pair.response_id, text_sha256=first.text_sha256,
        distribution={"2": 0.75, "0": 0.25})  # fmt: skip
    assert one_order([replace(other, grade=7)], pool, {"preference": (0, 2)})[0].grade == 7


def test_a_grade_off_the_scale_in_either_order_is_no_verdict(tmp_path: Path) -> None:
    pool, out = judged(tmp_path, better).pool, tmp_path / "out"
    gold = people(out, one_each)
    first = {pair.response_id for pair in pool.responses if one_each(pair) is not None}
    lines = (out / "qrels" / "response_preference.llm.qrel").read_text().splitlines(keepends=True)
    # Of 51 pairs the judge prefers the one that gold shows first in 24, and the other one in 27.
    for as_in_gold, lost in ((True, 24), (False, 27)):
        off = [line.endswith("2\n") and (line.split()[2] in first) is as_in_gold for line in lines]
        file = tmp_path / f"{as_in_gold}.qrel"
        file.write_text("".join(f"{line[:-2]}7\n" if wrong else line for line, wrong in zip(lines, off, strict=True)))
        plan = CalibrationPlan(gold=gold, judgments=file, pool=out, scale="0-2", off_scale="missing")
        row = calibrate_judges(plan).calibration.agreement[0]
        assert (row.gold, row.n, row.without_grade) == (51, 51 - lost, {"off_scale": lost})


def test_drift_compares_grades_one_by_one_so_it_refuses_pairs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(tmp_path, better)
    with pytest.raises(UsageError, match="judgments of pairs: both orders have one mean at every date"):
        compare_dates(DriftPlan(before=out, after=out))


def test_a_plan_for_pairs_is_of_the_only_criterion_of_pairs(tmp_path: Path) -> None:
    judged(tmp_path, better)
    plan = draw_gold_plan(GoldDrawPlan(pool=tmp_path / "out", n=9, seed=1, out=tmp_path / "plan.jsonl"))
    assert {name for row in plan.rows for name in row.criteria} == {"preference"}


def test_a_judge_of_pairs_is_asked_in_both_orders_certified_and_recognized(tmp_path: Path) -> None:
    given, out = runs(tmp_path / "runs", topics=24), tmp_path / "out"

    def at_times_wrong(first: int, second: int, shown: str) -> str:
        if first + second == 5:
            return "tie"
        return better(
            *((second, first) if re.search("Why (6|12|18|24)", shown) and first + second == 1 else (first, second)),
            shown,
        )

    pool = judged(tmp_path, at_times_wrong, given=given).pool
    gold = people(out, one_each)
    asked = gold_tasks(read_gold(gold), pool, [find_criterion("preference")], 1, "gold")
    assert len(asked) == 2 * len(read_gold(gold)) == len(pool.responses)
    plan = CalibrationPlan(gold=gold, judgments=out, requirements=("wkappa.lo>=0.4",), out=tmp_path / "cal")
    (verdict,) = calibrate_judges(plan).calibration.verdicts
    assert verdict.word == "TRUSTED", verdict.reasons
    certificate = tmp_path / "cal" / "certificate.json"
    certified = judged(tmp_path, at_times_wrong, name="certified", given=given, certificate=certificate)
    assert certified.banner.startswith("CALIBRATED")


def test_win_rates_are_corrected_by_gold_of_whole_turns(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(tmp_path, upsets, world={"topics": 12})
    part = people(out, lambda pair: one_each(pair) if pair.topic_id in "2468" else None, "part.jsonl", 1 / 3)
    found = correct_leaderboard(CorrectionPlan(folder=out, gold=part, target="topics"))
    assert not any("only some" in said for said in found.cautions)
    some = people(out, lambda pair: one_each(pair) if min(qualities(pair)) else None, "some.jsonl", 0.5)
    found = correct_leaderboard(CorrectionPlan(folder=out, gold=some))
    assert any("only some pairs have gold" in said for said in found.cautions)


@pytest.mark.parametrize("last", [6, 12])
def test_turns_without_a_verdict_are_corrected_by_their_gold(last: int, tmp_path: Path) -> None:
    def verdict(first: int, second: int, shown: str) -> str:
        return "first" if int(re.findall(r"Why (\d+)", shown)[0]) <= last else better(first, second, shown)

    judged(tmp_path, verdict, world={"topics": 12, "quality": {"a": 2, "b": 1, "c": 0}})

    def said(pair: PooledResponse) -> int:
        first, second = ((of - 3 if of == 2 and int(pair.topic_id) <= 6 else of) for of in qualities(pair))
        return 2 * (first > second)

    # In topics 1 to 6 people order b, c, a, in the others a, b, c; the judge has no verdict up to the last one.
    won = {"b": (6 * 1 + 6 * 0.5) / 12, "a": (6 * 0 + 6 * 1) / 12, "c": (6 * 0.5 + 6 * 0) / 12}
    for n in (12, 6):
        gold = people(tmp_path / "out", lambda of, n=n: None if int(of.topic_id) * n % 12 else said(of), p=n / 12)
        rows = correct_leaderboard(CorrectionPlan(folder=tmp_path / "out", gold=gold)).rows
        assert {row.run_id: row.bound for row in rows} == pytest.approx(won)
        assert [(row.run_id, row.raw.mean.n, row.counts["gold"]) for row in rows] == [
            (run_id, 12 - last, n) for run_id in won
        ]


@pytest.mark.parametrize("stratum", [None, "grade 2"])
def test_pairs_that_were_drawn_singly_count_by_their_chances(tmp_path: Path, stratum: str | None) -> None:
    # Topic and qualities of a pair, as shown, to what people say of it and the chance that they were asked.
    said = {("1", 3, 2): (1, 0.2), ("1", 1, 2): (2, 0.5), ("9", 2, 1): (2, 0.5)}
    out = tmp_path / "out"
    judged(tmp_path, better)
    of = lambda pair: said.get((pair.topic_id, *qualities(pair)), (None, 1.0))  # noqa: E731
    gold = people(out, lambda pair: of(pair)[0], p=lambda pair: of(pair)[1], stratum=stratum)
    rows = {row.run_id: row for row in correct_leaderboard(CorrectionPlan(folder=out, gold=gold)).rows}
    # By the judge b loses to a and beats c and d, where d answered; people say that it ties, loses and beats c.
    raw, errors = (8 * 2 / 3 + 1 / 2) / 9, (1 / 2 - 0, 0 - 1, 1 - 1)
    weights = (1 / 3 / 0.2, 1 / 3 / 0.5, 1 / 2 / 0.5)
    corrected = raw + sum(w * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    assert (rows["b"].counts["gold"], rows["b"].mean.value) == (3, pytest.approx(corrected))
    assert corrected == pytest.approx(raw + 0.05)


def votes(path: Path, rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("worker", "turn_id", "response_id", "second_id", "label"), *rows])


def test_a_crowds_labels_of_pairs_become_gold_that_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes(tmp_path / "votes.csv", [(f"w{n}", "1_1", "x", "y", label) for n, label in enumerate("AAB")])
    (tmp_path / "bank.json").write_text('{"x": "Red.", "y": "Blue."}')
    call = f"crowd {tmp_path}/votes.csv --criterion preference --prompt preference --bank {tmp_path}/bank.json"
    call += " --label A=2 --label B=0"
    assert main([*call.split(), "--out", str(tmp_path / "crowd")]) == 0
    (row,) = read_gold(tmp_path / "crowd" / "gold.jsonl")
    assert (row.response_id, row.grade) == ("x|y", 2)
    assert row.text_sha256 == citation_digest("Red.", text_digest("Blue."))
    assert main(f"gold import {call} --out {tmp_path}/gold.jsonl".split()) == 0
    assert {row.text_sha256 for row in read_gold(tmp_path / "gold.jsonl")} == {row.text_sha256}
    votes(tmp_path / "votes.csv", [("w", "1_1", "x", "", "A")])
    assert main([*call.split(), "--out", str(tmp_path / "crowd")]) == 2
    assert "response_id is empty" in capsys.readouterr().err


@pytest.mark.long
def test_the_published_pairs_of_cragc(shared: Path, tmp_path: Path) -> None:
    """CRAGC-25 (webis-de, CC-BY 4.0): five workers a pair, MACE posteriors, an LLM's verdicts in both orders."""

    def read(name: str) -> list[dict[str, Any]]:
        lines = gzip.decompress((shared / "rag24" / f"{name}.jsonl.gz").read_bytes()).splitlines()
        return [json.loads(line) for line in lines]

    pairs, texts = read("crowd_pairs"), {answer["response"]: answer for answer in read("crowd_answers")}
    # The publication grades each order of a pair by itself: as an item with an id of its own, and without a second_id.
    lines = ["worker,turn_id,response_id,label"]
    for pair in pairs:
        order = f"{pair['query_id']}_1,{pair['response_a']}|{pair['response_b']}"
        given = zip(pair["worker"], pair["quality_overall_vote"], strict=True)
        lines += [f"{worker},{order},{vote}" for worker, vote in given]
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    named = {pair[side] for pair in pairs for side in ("response_a", "response_b")}
    (tmp_path / "bank.json").write_text(json.dumps({name: texts[name]["text"] for name in named}))
    call = f"crowd {tmp_path}/votes.csv --criterion preference --prompt preference --bank {tmp_path}/bank.json"
    call += f" --label A=2 --label B=0 --aggregator mace --prior flat --out {tmp_path}/crowd"
    assert main(call.split()) == 0
    gold = {row.response_id: row for row in read_gold(tmp_path / "crowd" / "gold.jsonl")}
    ours = [gold[f"{pair['response_a']}|{pair['response_b']}"].distribution or {} for pair in pairs]
    theirs = [pair["quality_overall_p_a"] for pair in pairs]
    # Their MACE restarts at random and has priors. Of a plain majority of the five labels, 86.8 % are theirs.
    near = [abs(said["2"] - p) for said, p in zip(ours, theirs, strict=True)]
    assert sum(distance < 0.5 for distance in near) / len(pairs) == pytest.approx(0.911, abs=0.005)
    assert sum(near) / len(pairs) == pytest.approx(0.131, abs=0.005)

    # Six runs: people and GPT-4o, in three styles each.
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for name in named:
        answers[f"{texts[name].get('kind', 'llm')}-{texts[name]['style']}"][texts[name]["topic"]] = texts[name]["text"]
    (tmp_path / "runs").mkdir()
    for run_id, by_topic in answers.items():
        lines = [
            {"run_id": run_id, "topic_id": topic, "references": [], "answer": [{"text": text}]}
            for topic, text in by_topic.items()
        ]
        (tmp_path / "runs" / f"{run_id}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    topics = sorted({pair["query_id"] for pair in pairs})
    (tmp_path / "topics.tsv").write_text("".join(f"{topic}\tWhy?\n" for topic in topics))
    verdicts: dict[tuple[str, str], str] = {}
    plain = lambda text: re.sub(r"\W", "", text)  # noqa: E731
    for row in read("crowd_pairs_llm"):
        if row["inference"] == "individual" and row["quality_overall"]:
            verdicts.setdefault((row["response_a"], row["response_b"]), row["quality_overall"])
    ids = {plain(texts[name]["text"]): name for name in named}

    def label(messages: Any) -> str:
        shown = re.findall(r"<(?:first|second)_response>\n(.*?)\n</", messages[1]["content"], re.DOTALL)
        said = verdicts.get((ids[plain(shown[0])], ids[plain(shown[1])]))
        return f"Grade: { {'a': 'first', 'n': 'tie', 'b': 'second'}[said] }" if said else "Not asked."

    judge.run(judge.Plan(
        runs=tmp_path / "runs", topics=tmp_path / "topics.tsv", profile="rag", criteria=("preference",),
        model=(judge.FunctionJudge("llm/v1", label),), out=tmp_path / "out",
    ))  # fmt: skip
    found = calibrate_judges(
        CalibrationPlan(gold=tmp_path / "crowd" / "gold.jsonl", judgments=tmp_path / "out")
    ).calibration
    # The same by hand: verdicts of both orders, against people's preferences where the crowds of both orders agree.
    held: list[bool] = []
    for (a, b), said in verdicts.items():
        people_said = {2 - gold[f"{b}|{a}"].grade} if f"{b}|{a}" in gold else set()
        people_said |= {gold[f"{a}|{b}"].grade} if f"{a}|{b}" in gold else set()
        if a < b and {said, verdicts[b, a]} == {"a", "b"} and len(people_said) == 1:
            held.append(people_said == {2 if said == "a" else 0})
    accuracy = found.findings["preferences"][0].statistics["accuracy"]
    assert (accuracy.n, accuracy.value) == (len(held), pytest.approx(sum(held) / len(held)))
    assert (len(held), round(sum(held) / len(held), 3)) == (139, 0.604)
