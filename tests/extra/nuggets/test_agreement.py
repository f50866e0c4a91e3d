"""A judge's matches against people's: the arithmetic of a small table, and the human study of CONE-RAG."""

from pathlib import Path

import pytest

from judge.ask.criteria import find_criterion
from judge.ask.loop import assess
from judge.extra.nuggets.forms import parse_bank, read_bank
from judge.extra.nuggets.label_files import read_matches
from judge.extra.nuggets.labels import PairLabels, join
from judge.extra.nuggets.people import agreement_grids, match_agreement
from judge.extra.nuggets.questions import answers_of, match_of, match_questions, question_task
from judge.extra.nuggets.records import MatchLabel, NuggetBank
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.pool.records import Pool
from tests.conftest import PROJECT
from tests.extra.nuggets.world import known, pool, response


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


def test_word_overlap_against_labels_in_the_form_of_the_study(tmp_path: Path) -> None:
    texts = {"0_2": ("A visa costs 25 dollars.", "Bring water."), "1_4": ("Rinse it daily.", "I cannot say."),
             "7_2": ("Tires are wide.", "Roads are long.")}  # fmt: skip
    bank = parse_bank(
        b'{"0_2": {"[1]": {"text": "A visa costs 25 dollars.", "relevance": "4"}},'
        b' "1_4": {"[1]": {"text": "Rinse daily.", "relevance": "2"}},'
        b' "7_2": {"[1]": {"text": "Tires are wide.", "relevance": "1"}}}', "gold_nuggets_human.json"
    )  # fmt: skip
    study = tmp_path / "human-study-matching-labels.txt"
    study.write_text("1_0_2_1_t-1\t1\n1_0_2_1_u-1\t0\n1_1_4_1_t-1\t1\n2_1_4_1_u-1\t0\n3_7_2_1_t-1\t1\n3_7_2_1_u-1\t0\n")
    there = pool(
        *(
            response(10 * place + number, turn, run_id, text=text)
            for place, (turn, both) in enumerate(texts.items())
            for number, (run_id, text) in enumerate(zip(("team", "u-1"), both, strict=True))
        )
    )
    people = join(read_matches(study), (), bank, there, str(study), {"t-1": "team"})
    assert (len(people.labels), people.outside) == (6, 0)
    found = match_agreement(people, overlap(bank, there), topics_of(people), 1)
    assert (found.pairs, found.supported["percent"].value, found.supported["kappa"].value) == (6, 1.0, 1.0)


def overlap(bank: NuggetBank, there: Pool) -> PairLabels:
    """The labels of word overlap."""
    criterion, pairs = find_criterion("nugget/yes_no"), match_questions(there, bank)
    with Journal(None) as journal:
        results = assess(
            [question_task(pair, criterion) for pair in pairs], open_model("baseline/overlap"), journal, there
        )
    return join(*answers_of(pairs, results, criterion, match_of), bank, there, "overlap")


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
