"""Measures of passages by a judge's grades, corrected by people's grades of whole turns or of single passages."""

import json
from math import log2
from pathlib import Path

import pytest

from judge.cli import main
from judge.errors import InputError, UsageError
from judge.extra.evaluate.rankings import PassagesPlan, RankingsOutcome, evaluate_passages
from judge.gold.rows import citation_digest
from judge.results.rows import Score
from tests.conftest import put, refused

JUDGE = """
1-1_1 0 a 1
1-1_1 0 b 1
2-1_1 0 c 0
2-1_1 0 d 1
3-1_1 0 e 2
3-1_1 0 f 0
4-1_1 0 g 1
4-1_1 0 h 3
5-1_1 0 i 0
5-1_1 0 j 0
6-1_1 0 k 1
6-1_1 0 l 0
"""
PEOPLE = """
1-1_1 0 a 1
1-1_1 0 b 0
2-1_1 0 c 0
2-1_1 0 d 2
3-1_1 0 e 0
3-1_1 0 f 0
"""
"""Of the first three of six turns."""
BOTH = "1-1_1 a b, 2-1_1 c d, 3-1_1 e f, 4-1_1 g h, 5-1_1 i j, 6-1_1 k l"
OTHER = "1-1_1 b, 2-1_1 d c, 3-1_1 f, 4-1_1 h g, 5-1_1 j i"


def trec(run_id: str, listed: str) -> str:
    """A run from `turn passage passage, turn passage`, best first."""
    lines = []
    for turn in listed.split(","):
        turn_id, *items = turn.split()
        lines += [f"{turn_id} Q0 {item} {k} {9 - k} {run_id}\n" for k, item in enumerate(items, 1)]
    return "".join(lines)


def gold(*rows: str, **more: object) -> str:
    """Rows of gold from `turn passage grade probability`."""
    lines = []
    for row in rows:
        turn_id, item, grade, probability = row.split()
        fields = {
            "turn_id": turn_id,
            "topic_id": turn_id.split("_")[0],
            "criterion": "passage_relevance",
            "grade": int(grade),
            "assessor": "ann",
            "response_id": item,
            "inclusion_probability": float(probability),
        }
        lines.append(json.dumps(fields | more) + "\n")
    return "".join(lines)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    put(tmp_path / "judge.qrel", JUDGE.lstrip())
    put(tmp_path / "people.qrel", PEOPLE.lstrip())
    put(tmp_path / "runs" / "both.run", trec("both", BOTH))
    put(tmp_path / "runs" / "other.run", trec("other", OTHER))
    return tmp_path


def evaluated(world: Path, people: str = "people.qrel", **more: object) -> RankingsOutcome:
    values = {"runs": world / "runs", "qrels": world / "judge.qrel", "gold": world / people, "measures": ("P@2",)}
    return evaluate_passages(PassagesPlan(**(values | more)))


def scores(outcome: RankingsOutcome, measure: str) -> dict[str, Score]:
    assert outcome.corrected is not None
    return {score.run_id: score for score in outcome.corrected.scores if score.criterion == measure}


def test_precision_by_whole_turns_is_the_judges_mean_less_its_mean_error(world: Path) -> None:
    outcome = evaluated(world)
    found = scores(outcome, "P@2")
    # By the judge on the six turns: 2, 1, 1, 2, 0 and 1 of 2 passages; by people on the first three: 1, 1 and 0.
    assert found["both"].mean.value == pytest.approx(7 / 12 + ((1 - 2) + (1 - 1) + (0 - 1)) / 2 / 3)
    # `other` lists b alone, c and d, f alone, g and h, i and j, and nothing for the last turn: 1, 1, 0, 2, 0, 0 of 2.
    assert found["other"].mean.value == pytest.approx(4 / 12 + ((0 - 1) + (1 - 1) + (0 - 0)) / 2 / 3)
    assert {run: score.raw and score.raw.mean.value for run, score in found.items()} == pytest.approx(
        {"both": 7 / 12, "other": 4 / 12}
    )
    # With fewer than 8 drawn turns, λ is 1. Three turns of two passages each are graded by people.
    assert (found["both"].more["weight"], found["both"].counts) == (1.0, {"drawn": 3, "grades": 6})
    # The judge minus people: half a passage in the first turn, none, half a passage.
    assert found["both"].more["bias"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    # Both orders agree, so no pair changes places.
    assert outcome.corrected is not None
    assert (outcome.corrected.changes["P@2"].tau_b, outcome.corrected.changes["P@2"].flips) == (1.0, 0)


def test_ndcg_by_whole_turns_has_the_ideal_of_people(world: Path) -> None:
    second = 1 / log2(3)
    # Of `both` by the judge: 1 1, 0 1, 2 0, 1 3, 0 0 and 1 0, best first, over the best order of the same grades.
    judged = [1, second, 1, (1 + 3 * second) / (3 + second), 0, 1]
    # By people: 1 0, 0 2 and 0 0.
    people = [1, second, 0]
    errors = [y - f for y, f in zip(people, judged, strict=False)]
    (score,) = (of for run, of in scores(evaluated(world, measures=("nDCG@2",)), "nDCG@2").items() if run == "both")
    assert score.mean.value == pytest.approx(sum(judged) / 6 + sum(errors) / 3)


def test_every_turn_graded_by_people_gives_their_measures(world: Path) -> None:
    put(world / "all.qrel", JUDGE.lstrip().replace(" 3\n", " 0\n"))
    outcome = evaluated(world, "all.qrel", main="RR")
    by_people = evaluate_passages(PassagesPlan(runs=world / "runs", qrels=world / "all.qrel"))
    for measure in ("nDCG@5", "P@10", "R@10", "AP", "RR"):
        theirs = {score.run_id: score.mean.value for score in by_people.evaluations[0].scores
                  if score.criterion == measure}  # fmt: skip
        found = scores(outcome, measure)
        assert {run: score.mean.value for run, score in found.items()} == pytest.approx(theirs)
        assert {score.more["method"] for score in found.values()} == {"census"}


def test_passages_weigh_by_the_inverse_of_their_probability(world: Path) -> None:
    put(world / "singles.jsonl", gold("1-1_1 a 0 0.5", "2-1_1 c 2 0.25", "2-1_1 d 1 0.5", "4-1_1 h 0 0.5"))
    put(world / "runs" / "other.run", trec("other", "1-1_1 a b, 2-1_1 c d, 3-1_1 e"))
    qrels = put(world / "three.qrel", "".join(JUDGE.lstrip().splitlines(keepends=True)[:6]))
    outcome = evaluated(world, "singles.jsonl", qrels=qrels, main="P@2")
    # Six places: a, b, c, d, e and one without a passage, which is 0 to everybody. The judge finds a, b, d, e relevant;
    # people of a, c, d, which stand for 2, 4 and 2 places, c and d.
    score = scores(outcome, "P@2")["other"]
    assert score.mean.value == pytest.approx(4 / 6 + (2 * (0 - 1) + 4 * (1 - 0) + 2 * (1 - 1)) / (2 + 4 + 2 + 1))
    assert score.counts == {"drawn": 3, "grades": 3}
    told = [line.removeprefix(f"{world}/") for line in outcome.warnings]
    assert told == [
        "singles.jsonl: grades of passages that the qrels do not grade, which count nowhere: 1",
        "singles.jsonl: not corrected, because whole turns must be graded for them: nDCG@3, nDCG@5, nDCG, R@10, R@20, "
        "R@1000, AP, RR",
    ]


def test_a_judge_that_finds_nothing_relevant_leaves_people_alone(tmp_path: Path) -> None:
    turns = [f"{topic}-1_1" for topic in range(1, 11)]
    put(tmp_path / "judge.qrel", "".join(f"{turn} 0 p 1\n{turn} 0 q 2\n" for turn in turns))
    put(tmp_path / "people.jsonl", gold(*(f"{turn} p {1 + k % 2} 0.5" for k, turn in enumerate(turns))))
    put(tmp_path / "runs" / "a.run", trec("a", ", ".join(f"{turn} p" for turn in turns)))
    outcome = evaluated(tmp_path, "people.jsonl", measures=(), main="P@2", relevant=2)
    (score,) = scores(outcome, "P(rel=2)@2").values()
    # Of ten passages that stand for two places each people find five relevant; ten places are empty.
    assert score.mean.value == pytest.approx(5 * 2 / (10 * 2 + 10))
    assert (score.more["weight"], score.more["method"]) == (0.0, "gold only")
    # So as many passages would do without the judge.
    assert score.more["effective_n"] == pytest.approx(10)


def test_gold_of_whole_turns_counts_like_qrels_and_a_turn_in_part_not_at_all(world: Path) -> None:
    rows = [f"{turn} {item} {grade} 0.5" for turn, _, item, grade in map(str.split, PEOPLE.split("\n")[1:-1])]
    put(world / "turns.jsonl", gold(*rows, "4-1_1 g 0 0.5"))
    outcome = evaluated(world, "turns.jsonl")
    plain = scores(evaluated(world), "P@2")
    found = scores(outcome, "P@2")
    assert {run: of.mean.value for run, of in found.items()} == {run: of.mean.value for run, of in plain.items()}
    assert "turns that are graded only in part, which count as not graded: 1" in outcome.warnings[0]


def test_gold_of_a_folder_names_a_passage_by_its_digest_and_of_several_assessors_the_mode_counts(world: Path) -> None:
    rows = [f"{turn} {item} {grade} 0.5" for turn, _, item, grade in map(str.split, PEOPLE.split("\n")[1:-1])]
    named = "".join(
        gold(row, response_id=f"R{k}", text_sha256=citation_digest("", row.split()[1])) for k, row in enumerate(rows)
    )
    more = [gold("1-1_1 b 2 0.5", assessor=name) for name in ("bob", "eve")]
    # A row for each run that lists the passage is one grade.
    more += [gold("1-1_1 b 0 0.5", run_id=name) for name in ("both", "other")]
    put(world / "turns.jsonl", named + "".join(more))
    put(world / "split" / "dev.jsonl", (world / "turns.jsonl").read_text())
    found = scores(evaluated(world, "split"), "P@2")
    # Two of three find b relevant, so both passages of the first turn are.
    assert found["both"].mean.value == pytest.approx(7 / 12 + ((2 - 2) + (1 - 1) + (0 - 1)) / 2 / 3)


def test_unequal_probabilities_in_a_turn_are_those_of_single_passages(world: Path) -> None:
    rows = [f"{turn} {item} {grade} 0.{3 + k % 2}" for k, (turn, _, item, grade) in
            enumerate(map(str.split, PEOPLE.split("\n")[1:-1]))]  # fmt: skip
    put(world / "gold.jsonl", gold(*rows))
    with pytest.raises(UsageError, match="nDCG@5 is only corrected by turns that people graded wholly"):
        evaluated(world, "gold.jsonl")
    # By the judge's grade single passages are drawn, even if they are all of a turn.
    put(world / "gold.jsonl", gold(*(row[:-3] + "0.5" for row in rows), stratum="grade 1"))
    with pytest.raises(UsageError, match="nDCG@5 is only corrected by turns that people graded wholly"):
        evaluated(world, "gold.jsonl")


WRONG = {
    "other turns": ("7-7_7 0 a 1\n", "of other turns than the qrels: it has 7-7_7, the qrels 1-1_1, 2-1_1, 3-1_1, …"),
    "document ids": (
        "1-1_1 0 doc1 1\n",
        "grades no passage that the qrels grade, for instance in turn 1-1_1: it has doc1, the qrels a, …",
    ),
    "no whole turn": (
        "1-1_1 0 a 1\n2-1_1 0 c 1\n",
        "no turn is graded wholly (of 1-1_1, which has most, 1 of 2 passages), and qrels do not say how single "
        "passages were drawn: expected whole turns, or rows of gold with inclusion_probability",
    ),
    "single passages": (
        gold("1-1_1 a 1 0.5", "2-1_1 c 1 0.5"),
        "nDCG@5 is only corrected by turns that people graded wholly, and these are single passages (of 1-1_1, which "
        "has most, 1 of 2 passages): expected --main P@10",
    ),
    "certain": (
        gold("1-1_1 a 1 1", "1-1_1 b 0 1", "2-1_1 c 1 1", "2-1_1 d 1 1", "3-1_1 e 1 1", "3-1_1 f 1 1"),
        "all turns that people graded were drawn with probability 1, but they did not grade all: expected less than 1",
    ),
    "several criteria": (
        gold("1-1_1 a 1 0.5") + gold("1-1_1 b 1 0.5", criterion="usefulness"),
        "grades passages under passage_relevance, usefulness: expected one criterion",
    ),
    "empty": ("\n", "grades nothing"),
    "too high": ("1-1_1 0 a 10001\n1-1_1 0 b 1\n", "grade 10001: expected at most 10000"),
}


@pytest.mark.parametrize("case", WRONG)
def test_gold_that_is_no_sample_of_the_qrels_is_refused_in_one_sentence(world: Path, case: str) -> None:
    content, message = WRONG[case]
    people = put(world / "people", content)
    with pytest.raises((InputError, UsageError)) as refusal:
        evaluated(world, "people")
    assert str(refusal.value) == f"{people}: {message}"


def test_every_passage_without_a_probability_or_with_two_grades_is_listed(world: Path) -> None:
    unknown = gold("1-1_1 a 1 0.5").replace('"inclusion_probability": 0.5', '"inclusion_probability": null')
    other = gold("1-1_1 b 1 0.5", "2-1_1 c 1 0.5") + gold("1-1_1 b 1 0.4", assessor="bob")
    twice = gold("2-1_1 c 2 0.5", run_id="both")
    put(world / "people", unknown + other + twice)
    problems = refused(evaluated, world, "people")
    assert [(problem.turn_id, problem.path, problem.message) for problem in problems] == [
        ("1-1_1", "$.inclusion_probability",
         "a: not known: expected the probability with which the passage or its turn was drawn"),
        ("1-1_1", "$.inclusion_probability", "b: 0.5 and 0.4: expected one probability"),
        ("2-1_1", "$.grade", "c: grades 1, 2 by ann: expected one"),
    ]  # fmt: skip


def test_qrels_of_a_part_do_not_correct_the_measures_of_these_turns_alone(world: Path) -> None:
    with pytest.raises(InputError, match="grades 3 of 6 turns wholly, and qrels do not say how turns were drawn"):
        evaluated(world, target="pool")
    put(world / "turns.jsonl", gold(*(f"{row} 0.5".replace(" 0 ", " ", 1) for row in PEOPLE.split("\n")[1:-1])))
    score = scores(evaluated(world, "turns.jsonl", target="pool"), "P@2")["both"]
    assert score.mean.value == pytest.approx(7 / 12 - 1 / 3)


def test_measures_without_bounds_are_left_as_they_are(world: Path) -> None:
    outcome = evaluated(world, measures=("NumRel",))
    assert any("not corrected, because nothing says between which values they lie: NumRel" in of
               for of in outcome.warnings)  # fmt: skip
    with pytest.raises(UsageError, match="Judged@5 cannot be corrected: expected --main nDCG@3"):
        evaluated(world, main="Judged@5")


def test_people_who_agree_everywhere_may_be_in_the_qrels_already(world: Path) -> None:
    put(world / "merged.qrel", JUDGE.lstrip().replace("b 1", "b 0").replace("d 1", "d 2").replace("e 2", "e 0"))
    said = f"{world}/people.qrel: all its grades are those of the qrels too"
    assert [of.startswith(said) for of in evaluated(world, qrels=world / "merged.qrel").warnings] == [True]
    assert evaluated(world).warnings == ()


def test_only_answered_turns_count_where_these_alone_are_asked_for(world: Path) -> None:
    found = scores(evaluated(world, over="answered"), "P@2")
    # `other` answers five of the six turns.
    assert found["other"].mean.value == pytest.approx(4 / 10 + ((0 - 1) + (1 - 1) + (0 - 0)) / 2 / 3)


def called(capsys: pytest.CaptureFixture[str], world: Path, *words: str) -> tuple[int, str, str]:
    command = ["evaluate", "passages", "--runs", str(world / "runs"), "--qrels", str(world / "judge.qrel"), *words]
    code = main(command)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_prints_the_main_measure_and_writes_every_measure(world: Path, capsys) -> None:
    people = ("--gold", str(world / "people.qrel"))
    code, out, _ = called(capsys, world, *people, "--main", "P@2", "--format", "json", "--out", str(world / "out"))
    assert code == 0
    (table,) = json.loads(out)
    assert [row["run"] for row in table["rows"]] == ["both", "other"]
    assert {row["measure"] for row in table["rows"]} == {"P@2"}
    assert table["rows"][0]["corrected"]["value"] == pytest.approx(0.25)
    assert table["notes"][2].startswith("P@2: Raw against corrected order: tau-b 1.00")
    assert table["notes"][2].endswith("0 of 1 pair of runs change places.")
    written = json.loads((world / "out" / "corrected.json").read_text())
    measures = {row["measure"] for row in written["rows"]}
    assert measures == {"nDCG@3", "nDCG@5", "nDCG", "P@10", "P@20", "R@10", "R@20", "R@1000", "AP", "RR", "P@2"}
    head, line, *_ = (world / "out" / "corrected.tsv").read_text().splitlines()
    assert head.split("\t")[:9] == ["measure", "rank", "ranks", "letters", "run", "corrected", "corrected_low",
                                    "corrected_high", "raw"]  # fmt: skip
    assert line.split("\t")[:2] == ["nDCG@3", "1"]
    assert {"runs.tsv", "corrected.md", "corrected.tex"} < {path.name for path in (world / "out").iterdir()}


@pytest.mark.parametrize(("words", "said"), [
    (("--target", "pool"), "--target: without effect here: it needs --gold"),
    (("--gold", "people.qrel", "--by", "topic"), "--gold: without effect here: --by topic is by the grades of --qrels"),
    (("--gold", "people.qrel", "--format", "trec_eval"), "--gold: without effect here: --format trec_eval prints"),
    (("--gold", "absent.qrel"), "absent.qrel: cannot be read"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(world: Path, monkeypatch, capsys, words, said: str) -> None:
    monkeypatch.chdir(world)
    code, out, err = called(capsys, world, *words)
    assert (code, out) == (2, "")
    assert said in err
