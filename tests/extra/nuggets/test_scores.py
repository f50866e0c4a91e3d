"""Recall by nuggets: nuggetizer's measures, what missing matches count, nuggets of topics, corrections by people."""

import json
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge.extra.nuggets.scores as recalls
from judge.errors import InputError
from judge.extra.nuggets import MATCH_LABELS, MatchLabel, Nugget, NuggetBank
from judge.extra.nuggets.forms import read_bank
from judge.extra.nuggets.labels import PairLabels, read_matches
from judge.extra.nuggets.scoring import agreement_grids, corrected_recall, match_agreement
from judge.pool.records import Pool
from judge.records import Passage
from judge.stats.means import mean_interval
from tests.conftest import PROJECT
from tests.extra.nuggets.world import bank, fail, known, nugget, pool, response

FOUR = (nugget("1-1_1/1", "vital"), nugget("1-1_1/2", "vital"), nugget("1-1_1/3"), nugget("1-1_1/4"))


def nuggetizer(nuggets: tuple[Nugget, ...], labels: dict[str, MatchLabel], vital: bool, strict: bool) -> float:
    """nuggetizer's score in words: full support is 1, partial support ½ unless strict, over vital or all nuggets."""
    chosen = [labels[each.nugget_id] for each in nuggets if each.importance == "vital" or not vital]
    half = 0 if strict else 0.5
    return (chosen.count("supports") + half * chosen.count("partly")) / len(chosen)


@given(st.lists(st.tuples(st.sampled_from(["vital", "okay"]), st.sampled_from(MATCH_LABELS)), min_size=1))
def test_measures_are_nuggetizers_for_any_labels(rows: list[tuple[str, MatchLabel]]) -> None:
    nuggets = tuple(nugget(f"1-1_1/{place}", importance) for place, (importance, _) in enumerate(rows))  # type: ignore[arg-type]
    labels = {f"1-1_1/{place}": label for place, (_, label) in enumerate(rows)}
    for name, vital, strict in (
        ("all_score", False, False), ("strict_all_score", False, True), ("vital_score", True, False),
        ("strict_vital_score", True, True),
    ):  # fmt: skip
        ours = recalls.MEASURES[name](nuggets, labels)
        if vital and not any(each.importance == "vital" for each in nuggets):
            # nuggetizer counts 0 here; without a vital nugget we say nothing.
            assert ours is None
        else:
            assert ours == pytest.approx(nuggetizer(nuggets, labels, vital, strict), abs=1e-12)


@pytest.mark.parametrize(("aggregator", "labels", "graded", "strict", "contradicted"), [
    ("OR", ("does_not", "supports", "contradicts"), 1, 1, 0),
    ("OR", ("does_not", "partly", "contradicts"), 1 / 2, 0, 0),
    ("OR", ("does_not", "contradicts", "does_not"), 0, 0, 1),
    ("AND", ("supports", "supports", "supports"), 1, 1, 0),
    ("AND", ("supports", "partly", "does_not"), (1 + 1 / 2) / 3, 0, 0),
    ("AND", ("supports", "supports", "contradicts"), 2 / 3, 0, 1 / 3),
])  # fmt: skip
def test_a_question_counts_its_best_answer_or_all(aggregator, labels, graded, strict, contradicted) -> None:
    asked = [Nugget(f"1/1.{n}", "1", f"How? {n}", None, None, 3, "How?", aggregator) for n in range(3)]
    found = {each.nugget_id: label for each, label in zip(asked, labels, strict=True)} | {"1/2": "supports"}
    values = {
        name: measure([*asked, Nugget("1/2", "1", "Another.")], found) for name, measure in recalls.MEASURES.items()
    }
    # A question is one nugget however many answers it has, and weighs 3 beside the other's 1.
    assert values == pytest.approx({
        "all_score": (graded + 1) / 2, "strict_all_score": (strict + 1) / 2, "contradicted": contradicted / 2,
        "weighted_score": (3 * graded + 1) / 4, "strict_weighted_score": (3 * strict + 1) / 4,
        "vital_score": None, "strict_vital_score": None,
    })  # fmt: skip
    # People made one answer vital: in any order the question weighs as much.
    edited = [msgspec.structs.replace(each, weight=None) for each in asked]
    edited[2] = msgspec.structs.replace(edited[2], importance="vital")
    assert {recalls.MEASURES["weighted_score"].sums(of, found)[1] for of in (edited, edited[::-1])} == {2}


KINDS = st.tuples(
    st.sampled_from([None, "vital"]), st.none() | st.floats(-5, 5), st.none(), st.none()
) | st.sampled_from([(None, 2.0, "a?", "OR"), (None, -1.0, "b?", "AND"), ("vital", None, "c?", "AND")])


@given(st.lists(st.tuples(KINDS, st.sampled_from([*MATCH_LABELS, None])), min_size=1), st.sampled_from(recalls.RECALLS))
def test_scores_stay_in_their_bounds_and_grow_with_what_a_response_says(rows, name: str) -> None:
    nuggets = tuple(Nugget(f"1/{n}", "1", "x", None, *kind) for n, (kind, _) in enumerate(rows))
    labels = {f"1/{n}": label for n, (_, label) in enumerate(rows) if label}
    unit, measure = recalls.RunUnit("a", "1", "1", ("R",), nuggets, labels, "matched", {}), recalls.MEASURES[name]
    value, (low, high) = recalls.value_of(unit, measure), recalls.bounds_of([unit], measure)
    assert (low == 0 or measure.weighted) and high == 1
    assert value is None or low - 1e-9 <= value <= high + 1e-9
    for each in nuggets if value is not None else ():
        changed = [unit.labels | {each.nugget_id: label} for label in ("does_not", "partly", "supports")]
        steps = [recalls.value_of(msgspec.structs.replace(unit, labels=of), measure) for of in changed]
        # More support is no worse, of a fault no better; and nothing that a missing label could be is worse than it.
        assert sorted(steps, reverse=each.fault) == pytest.approx(steps, abs=1e-9)
        assert each.nugget_id in labels or value <= min(steps) + 1e-9


def test_aspects_have_means_of_their_own() -> None:
    scopes = ("1-1_1", "2-1_1", "3-1_1")
    made = [
        msgspec.structs.replace(nugget(f"{each}/{aspect}"), aspect=aspect) for each in scopes for aspect in ("b", "a")
    ]
    there = pool(*(response(n, scope, "r") for n, scope in enumerate(scopes)))
    labels = known({(n, f"{scope}/a"): "partly" for n, scope in enumerate(scopes)} | {(0, "1-1_1/b"): "supports"})
    table = recalls.aspects_grid(recalls.run_units(there, bank(*made, nugget("1-1_1/0")), labels), "all_score", "topic")
    assert table.names == ("aspect", "run", "mean", "bound", "units", "matched")
    # Nobody was asked about b in two topics, which count as the first one does.
    assert [(*line[:2], line[2].value, *line[3:]) for line in table] == [
        ("a", "r", 0.5, 0.5, 3, 3),
        ("b", "r", 1, 1, 3, 1),
    ]


def test_a_turn_without_vital_nuggets_is_in_no_mean_of_vital_ones() -> None:
    there = bank(nugget("1-1_1/1", "vital"), nugget("1-1_2/1", "okay"))
    labels = known({(1, "1-1_1/1"): "supports", (2, "1-1_2/1"): "does_not"})
    rows = scores(pool(response(1, "1-1_1", "a"), response(2, "1-1_2", "a")), there, labels)
    assert (rows["a", "all_score"].mean.value, rows["a", "all_score"].counts["units"]) == ((1 + 0) / 2, 2)
    assert (rows["a", "vital_score"].mean.value, rows["a", "vital_score"].counts["units"]) == (1.0, 1)


def scores(there: Pool, nuggets: NuggetBank, labels: PairLabels) -> dict[tuple[str, str], recalls.Score]:
    return {
        (row.run_id, row.criterion): row for row in recalls.nugget_scores(recalls.run_units(there, nuggets, labels))
    }


THREE_TOPICS = bank(*(nugget(f"{topic}-1_1/{n}") for topic in (1, 2, 3) for n in (1, 2)))


def test_means_of_a_run_are_over_turns_with_intervals_over_topics() -> None:
    there = pool(*(response(topic, f"{topic}-1_1", "a") for topic in (1, 2, 3)))
    labels = known(
        {
            (1, "1-1_1/1"): "supports", (1, "1-1_1/2"): "supports",
            (2, "2-1_1/1"): "partly", (2, "2-1_1/2"): "does_not",
            (3, "3-1_1/1"): "contradicts", (3, "3-1_1/2"): "supports",
        }
    )  # fmt: skip
    row = scores(there, THREE_TOPICS, labels)["a", "all_score"]
    assert row.mean == mean_interval([2 / 2, 0.5 / 2, 1 / 2], ["1-1", "2-1", "3-1"], bounds=(0, 1))
    assert row.bound == pytest.approx((1 + 0.25 + 0.5) / 3)
    assert scores(there, THREE_TOPICS, labels)["a", "contradicted"].mean.value == pytest.approx((0 + 0 + 1 / 2) / 3)


def test_a_missing_match_is_missing_and_never_does_not() -> None:
    there = pool(*(response(topic, f"{topic}-1_1", "a") for topic in (1, 2, 3)))
    labels = known(
        {(1, "1-1_1/1"): "supports", (1, "1-1_1/2"): "supports", (2, "2-1_1/1"): "supports", (3, "3-1_1/1"): "supports"}
    )
    labels = fail(fail(labels, 2, "2-1_1/2", "refused"), 3, "3-1_1/2", "budget")
    row = scores(there, THREE_TOPICS, labels)["a", "all_score"]
    assert tuple(row.counts[name] for name in ("matched", "incomplete", "left_out")) == (1, 1, 1)
    # Only the first turn has all its matches.
    assert row.mean.value == 1.0
    # The refusal counts 1/2 in the second; the third, which nobody paid for, counts as the others do: (1 + 1/2) / 2.
    assert row.bound == pytest.approx(0.75)
    assert row.reasons == {"budget": 1, "refused": 1}


@pytest.mark.parametrize(("reason", "reached", "status"), [
    ("unreadable", False, "incomplete"),
    ("unable", False, "incomplete"),
    ("content_filter", False, "incomplete"),
    ("budget", True, "left_out"),
    ("provider_error", False, "left_out"),
    ("provider_error", True, "incomplete"),
    (None, True, "left_out"),
])  # fmt: skip
def test_what_a_missing_match_counts_against(reason: str | None, reached: bool, status: str) -> None:
    there = pool(response(1, "1-1_1", "a"), response(2, "1-1_1", "b"))
    labels = known({(2, "1-1_1/1"): "supports"} if reached else {})
    if reason is not None:
        labels = fail(labels, 1, "1-1_1/1", reason)
    (unit,) = [unit for unit in recalls.run_units(there, bank(nugget("1-1_1/1")), labels) if unit.run_id == "a"]
    assert (unit.status, unit.labels) == (status, {})


def test_an_unanswered_turn_counts_as_nothing_supported() -> None:
    there = pool(response(1, "1-1_1", "a"), turns=("1-1_1", "1-1_2"))
    rows = scores(there, bank(nugget("1-1_1/1"), nugget("1-1_2/1")), known({(1, "1-1_1/1"): "supports"}))
    row = rows["a", "all_score"]
    assert (row.counts["units"], row.counts["unanswered"], row.mean.value, row.bound) == (2, 1, 1.0, 1 / 2)
    # Silence contradicts nothing.
    assert (rows["a", "contradicted"].bound, rows["a", "contradicted"].mean.value) == (None, 0.0)


def test_nobody_asked_about_a_run() -> None:
    there = pool(response(1, "1-1_1", "a"), response(2, "1-1_1", "b"))
    rows = scores(there, bank(nugget("1-1_1/1")), known({(2, "1-1_1/1"): "partly"}))
    assert (rows["a", "all_score"].bound, rows["a", "all_score"].rank) == (None, None)
    assert (rows["b", "all_score"].bound, rows["b", "all_score"].rank) == (0.5, 1)


TOPIC = bank(nugget("1-1/1"))


@pytest.mark.parametrize(("first", "second", "label"), [
    ("supports", "does_not", "supports"),
    ("does_not", "supports", "supports"),
    ("partly", "contradicts", "partly"),
    ("contradicts", "does_not", "contradicts"),
    ("supports", None, "supports"),
    ("partly", None, None),
    ("does_not", None, None),
])  # fmt: skip
def test_a_nugget_of_a_topic_has_the_best_label_of_the_dialogue(first, second, label) -> None:
    labels = known({(1, "1-1/1"): first})
    if second is not None:
        labels = PairLabels(labels.labels | known({(2, "1-1/1"): second}).labels, {}, {}, 0, True)
    (unit,) = recalls.run_units(pool(response(1, "1-1_1", "a"), response(2, "1-1_2", "a")), TOPIC, labels)
    assert (unit.scope, unit.responses) == ("1-1", ("R00001", "R00002"))
    assert unit.labels.get("1-1/1") == label


def test_runs_share_a_rank_where_they_are_equal_and_come_in_natural_order() -> None:
    there = pool(response(1, "1-1_1", "run10", "run9"), response(2, "1-1_1", "best"))
    rows = recalls.nugget_scores(
        recalls.run_units(there, bank(nugget("1-1_1/1")), known({(1, "1-1_1/1"): "partly", (2, "1-1_1/1"): "supports"}))
    )
    assert [(row.run_id, row.rank) for row in rows if row.criterion == "all_score"] == [
        ("best", 1), ("run9", 2), ("run10", 2)
    ]  # fmt: skip


def test_tables_name_every_measure() -> None:
    there = pool(response(1, "1-1_1", "a"))
    units = recalls.run_units(there, bank(*FOUR), known({(1, each.nugget_id): "partly" for each in FOUR}))
    rows = recalls.nugget_scores(units)
    assert recalls.measures_grid(rows).names == ("run", *recalls.MEASURES)
    assert recalls.score_grid(rows, "vital_score")[0][:2] == (1, "a")
    line = recalls.units_grid(units).tsv().splitlines()[1].split("\t")
    assert line[:10] == ["a", "1-1_1", "R00001", "matched", "4", "0", "4", "0", "0", "0"]


@pytest.mark.parametrize(("text", "shown", "recited"), [
    ("Pay the fare at sea. Some boats LEAVE: on time! All of them carry bread.", "", 3),
    # What a passage says is quoted, and a part of a word is another word.
    ("Pay the fare at sea. Some boats leave on time. All of them carry bread.", "Pay the fare at sea!", 2),
    ("Pay the fare at seaside. The boats leave on time. They carry bread.", "", 0),
])  # fmt: skip
def test_a_run_that_recites_the_bank_is_named(text: str, shown: str, recited: int) -> None:
    texts = ("Pay the fare at sea", "Some boats leave on time.", "All of them carry bread.", "They carry bread.")
    made = bank(*(msgspec.structs.replace(nugget(f"1-1_1/{n}"), text=of) for n, of in enumerate(texts)))
    one = msgspec.structs.replace(response(1, "1-1_1", "a", text=text), passages=("p",))
    there = pool(one, response(2, "1-1_1", "b", text="Boats leave."))
    there = msgspec.structs.replace(there, passages={"p": Passage("p", shown, "collection")})
    units = recalls.run_units(there, made, known({}))
    assert [unit.recited for unit in units] == [recited, 0]
    notes = recalls.reciting(units)
    assert [note.endswith("passages: a (1 unit).") for note in notes] == [True] * (recited == 3)
    assert recalls.score_grid(recalls.nugget_scores(units), "all_score", notes).notes[3:] == notes


def test_no_response_made_without_the_bank_recites_it(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "rag24/nugget_assignment.jsonl").read_text().splitlines()]
    most = 0
    for row in rows:
        texts = (of["text"] for of in row["nuggets"])
        made = bank(*(msgspec.structs.replace(nugget(f"1-1_1/{n}"), text=text) for n, text in enumerate(texts)))
        (unit,) = recalls.run_units(pool(response(1, "1-1_1", "a", text=str(row["answer_text"]))), made, known({}))
        most = max(most, unit.recited)
    assert (len(rows), most) == (354, recalls.RECITED - 1)


# ---------------------------------------------------------------- corrected by people


Units = tuple[recalls.RunUnit, ...]


def worlds(judge: dict[int, MatchLabel], people: dict[int, MatchLabel], n: int) -> tuple[Units, Units, PairLabels]:
    """One run with a turn in each of n topics: its units by a judge and by people, and people's labels."""
    there = pool(*(response(topic, f"{topic}-1_1", "a") for topic in range(1, n + 1)))
    nuggets = bank(*(nugget(f"{topic}-1_1/1") for topic in range(1, n + 1)))
    by_judge, gold = (
        known({(topic, f"{topic}-1_1/1"): label for topic, label in labels.items()}) for labels in (judge, people)
    )
    return recalls.run_units(there, nuggets, by_judge), recalls.run_units(there, nuggets, gold), gold


def test_the_mean_is_exact_where_people_matched_everything() -> None:
    judge: dict[int, MatchLabel] = dict.fromkeys(range(1, 11), "supports")
    people: dict[int, MatchLabel] = {topic: "supports" if topic <= 4 else "does_not" for topic in judge}
    (row,) = corrected_recall(*worlds(judge, people, 10), "all_score", "gold")
    assert (row.raw.mean.value, row.mean.value, row.counts["people"], row.more["bias"]) == (
        1.0,
        4 / 10,
        10,
        pytest.approx(6 / 10),
    )


def test_a_corrected_mean_may_be_below_zero_where_faults_cost() -> None:
    labels = {topic: ("does_not", "supports")[topic % 2] for topic in range(1, 11)}
    judge, people, gold = worlds(labels, labels, 10)  # type: ignore[arg-type]
    wanted = tuple(Nugget(f"{topic}-1_1/2", f"{topic}-1", "x", f"{topic}-1_1") for topic in range(1, 11))
    judge, people = (
        tuple(
            msgspec.structs.replace(unit, nuggets=(msgspec.structs.replace(unit.nuggets[0], weight=-4.0), more),
                                    labels=unit.labels | {more.nugget_id: "does_not"})
            for unit, more in zip(units, wanted, strict=True)
        )
        for units in (judge, people)
    )  # fmt: skip
    gold = gold._replace(labels=gold.labels | {(f"R{n:05d}", f"{n}-1_1/2"): "does_not" for n in range(1, 11)})
    (row,) = corrected_recall(judge, people, gold, "weighted_score", "gold")
    # Half of the turns have the fault, which costs 4 of 1.
    assert (row.raw.mean.value, row.mean.value) == (-2, -2)
    assert row.raw.mean.low is not None and -4 <= row.raw.mean.low < -2


def test_a_judge_that_sees_too_much_support_is_corrected_by_a_sample() -> None:
    n = 40
    judge: dict[int, MatchLabel] = {topic: "supports" if topic % 4 else "does_not" for topic in range(1, n + 1)}
    people: dict[int, MatchLabel] = {
        topic: "supports" if topic % 4 in (1, 2) else "does_not" for topic in range(1, n + 1) if topic % 5 in (0, 1)
    }
    (row,) = corrected_recall(*worlds(judge, people, n), "all_score", "gold", inclusion=0.4)
    assert row.raw.mean.value == 30 / 40
    assert row.counts["people"] == 16
    # Of the sample, people found 8 supported and the judge 12.
    assert row.more["bias"] == pytest.approx((12 - 8) / 16)
    value, low, high = row.mean.value, row.mean.low, row.mean.high
    assert value is not None and low is not None and high is not None
    assert low < 0.5 < high
    assert math.isclose(value, 0.5, abs_tol=0.05)


def test_a_sample_needs_its_probability() -> None:
    judge: dict[int, MatchLabel] = dict.fromkeys(range(1, 6), "supports")
    people: dict[int, MatchLabel] = {1: "supports", 2: "does_not"}
    with pytest.raises(InputError, match="unknown for 2 units, the first a in 1-1_1"):
        corrected_recall(*worlds(judge, people, 5), "all_score", "gold")
    with pytest.raises(InputError, match="drawn with probability 1"):
        corrected_recall(*worlds(judge, people, 5), "all_score", "gold", inclusion=1.0)


def dialogues(
    people: dict[tuple[int, int], MatchLabel], drawn: dict[tuple[int, int], float] | None = None
) -> tuple[Units, Units, PairLabels]:
    """One run with two turns in each of 20 topics that have one nugget each; the judge sees support everywhere.

    Args:
        people: Topic and turn to people's label.
        drawn: Topic and turn to the probability that the row says.
    """
    places = [(topic, turn) for topic in range(1, 21) for turn in (1, 2)]
    there = pool(*(response(2 * topic + turn, f"{topic}-1_{turn}", "a") for topic, turn in places))
    nuggets = bank(*(nugget(f"{topic}-1/1") for topic in range(1, 21)))
    by_judge = known({(2 * topic + turn, f"{topic}-1/1"): "supports" for topic, turn in places})
    gold = known({(2 * topic + turn, f"{topic}-1/1"): label for (topic, turn), label in people.items()})
    said = {(f"R{2 * topic + turn:05d}", f"{topic}-1/1"): value for (topic, turn), value in (drawn or {}).items()}
    gold = gold._replace(inclusion=said)
    return recalls.run_units(there, nuggets, by_judge), recalls.run_units(there, nuggets, gold), gold


def test_a_dialogue_that_people_matched_in_part_is_not_in_the_sample() -> None:
    # Whole dialogues 1 to 8: every second one has support. Of 9 to 20 only the first turn, which always has it.
    people: dict[tuple[int, int], MatchLabel] = {
        (topic, turn): "supports" if topic % 2 and turn == 1 else "does_not" for topic in range(1, 9) for turn in (1, 2)
    }
    parts: dict[tuple[int, int], MatchLabel] = {(topic, 1): "supports" for topic in range(9, 21)}
    (row,) = corrected_recall(*dialogues(people | parts), "all_score", "gold", inclusion=0.4)
    assert (row.counts["people"], row.more["bias"]) == (8, pytest.approx(1 - 4 / 8))


def test_the_probability_of_a_dialogue_does_not_follow_from_that_of_its_responses() -> None:
    people: dict[tuple[int, int], MatchLabel] = {
        (topic, turn): "supports" if topic % 2 else "does_not" for topic in range(1, 9) for turn in (1, 2)
    }
    said = dict.fromkeys(people, 0.4)
    with pytest.raises(InputError, match="8 of several responses, for which only --inclusion P tells it"):
        corrected_recall(*dialogues(people, said), "all_score", "gold")
    assert corrected_recall(*dialogues(people, said), "all_score", "gold", inclusion=0.4)[0].counts["people"] == 8
    # 8 of 20 dialogues, each of them drawn for certain: known, and no probability sample of all.
    with pytest.raises(InputError, match="drawn with probability 1"):
        corrected_recall(*dialogues(people, dict.fromkeys(people, 1.0)), "all_score", "gold")


def test_recalls_are_what_runs_are_ranked_by() -> None:
    assert recalls.RECALLS == (
        "all_score", "strict_all_score", "vital_score", "strict_vital_score", "weighted_score", "strict_weighted_score"
    )  # fmt: skip


def topics_of(labels: PairLabels) -> dict[tuple[str, str], str]:
    return {key: key[1].partition("_")[0] for key in labels.labels}


def test_agreement_of_a_small_table() -> None:
    rows: list[tuple[str, MatchLabel, MatchLabel]] = [
        ("1-1_1/1", "supports", "supports"), ("1-1_1/2", "supports", "partly"), ("2-1_1/1", "does_not", "does_not"),
        ("2-1_1/2", "contradicts", "does_not"), ("3-1_1/1", "does_not", "does_not"), ("3-1_1/2", "partly", "partly"),
        ("4-1_1/1", "supports", "supports"), ("4-1_1/2", "does_not", "supports"),
    ]  # fmt: skip
    people = known({(1, name): first for name, first, _ in rows} | {(2, "1-1_1/1"): "supports"})
    judge = known({(1, name): second for name, _, second in rows})
    found = match_agreement(people, judge, topics_of(people), 1)
    assert (found.pairs, found.only_people) == (8, 1)
    # supports or not: 2 both, 1 only people, 1 only the judge, 4 neither.
    observed, by_chance = (2 + 4) / 8, (3 / 8) * (3 / 8) + (5 / 8) * (5 / 8)
    assert found.supported["percent"].value == pytest.approx(observed)
    assert found.supported["kappa"].value == pytest.approx((observed - by_chance) / (1 - by_chance))
    # All labels: the five pairs that are equal.
    assert found.labels["percent"].value == pytest.approx(5 / 8)
    assert found.counts["contradicts", "does_not"] == 1
    assert agreement_grids(found)[1][3] == ("contradicts", 0, 0, 1, 0)


def test_people_who_could_only_say_yes_or_no_are_not_compared_by_four_labels() -> None:
    people = known({(1, "1-1_1/1"): "supports", (1, "2-1_1/1"): "does_not"})
    judge = known({(1, "1-1_1/1"): "partly", (1, "2-1_1/1"): "contradicts"})
    found = match_agreement(people, judge, topics_of(people), 1)
    assert found.labels == {}
    assert [line[0] for line in agreement_grids(found)[0]] == ["supports or not"]


STUDY = PROJECT.parent / "shared/data/cone-rag"


def test_the_human_study_of_cone_rag() -> None:
    bank, study = STUDY / "gold_nuggets_human.json", STUDY / "human-study-matching-labels.txt"
    if not (bank.exists() and study.exists()):
        pytest.skip("no gold_nuggets_human.json and human-study-matching-labels.txt in ../shared/data/cone-rag")
    matches, nuggets = read_matches(study), {nugget.nugget_id for nugget in read_bank(bank).nuggets}
    assert (len(matches), sum(match.label == "supports" for match in matches)) == (1086, 154)
    # One label a pair: nothing says how far two people would agree.
    assert len({(match.nugget_id, match.run_id) for match in matches}) == 1086
    assert len(nuggets) == 2279
