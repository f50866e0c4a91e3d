"""A judge's matches against people's: the arithmetic of a small table, and the human study of CONE-RAG."""

import pytest

from judge.extra.nuggets.forms import read_bank
from judge.extra.nuggets.labels import PairLabels, read_matches
from judge.extra.nuggets.people import agreement_grids, match_agreement
from judge.extra.nuggets.records import MatchLabel
from tests.conftest import PROJECT
from tests.extra.nuggets.world import known


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
    labels = agreement_grids(found)[1]
    assert labels[3] == ("contradicts", 0, 0, 1, 0)


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
