"""Altered copies of responses: what each probe does to a text, and where it does not apply."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import judge.extra.probe.alterations as alterations
from judge.ask.criteria import bundled_criteria, find_criterion
from judge.ask.prompt import defuse
from judge.extra.probe.probes import CANARIES, KINDS, PROBES, WANT, planted_in_passage, planted_in_response, probes_of
from judge.extra.probe.twins import draw_items, make_twin, passages_of, twin_response, wanted_labels
from judge.judges.forms import answer_labels
from judge.pool.records import Pool
from judge.records import Criterion, Passage
from judge.runs.records import Turn
from judge.stats.tables import Undefined
from tests.build import pooled

LABELS = alterations.WantedLabels("3", "0")
GRADED = find_criterion("groundedness/graded")


def item(
    text: str,
    passages: Sequence[str] = (),
    elsewhere: Sequence[tuple[str, ...]] = (),
    place: int = 0,
    turn_id: str = "1-1_1",
) -> alterations.ProbeItem:
    return alterations.ProbeItem(pooled("R00001", turn_id, text=text), tuple(passages), tuple(elsewhere), place)


def made(make: alterations.Making, of: alterations.ProbeItem, seed: int = 0) -> alterations.Twin | Undefined:
    return make(of, LABELS, np.random.default_rng(seed))


def text_of(make: alterations.Making, text: str, *passages: str) -> str:
    """The text of the twin, or why there is none."""
    twin = made(make, item(text, passages))
    return twin.text if isinstance(twin, alterations.Twin) else f"none: {twin.reason}"


# ---------------------------------------------------------------- facts


@pytest.mark.parametrize(("text", "passage", "expected"), [
    ("It costs 25 crowns.", "A ticket is 25 crowns.", "It costs 28 crowns."),
    # 28 is in the passages, so it would be true of something.
    ("It costs 25 crowns.", "A ticket is 25 crowns, a bicycle 28.", "It costs 29 crowns."),
    ("It costs 3.50.", "3.50 a day", "It costs 6.50."),
    ("All 1,300 of them.", "1,300 beds", "All 4,300 of them."),
    ("It leaves at 22:15.", "Trains at 22:15.", "It leaves at 01:15."),
    ("25 crowns; bring 25.", "25", "28 crowns; bring 28."),
    ("1. Pay 1 crown.", "1 crown", "1. Pay 4 crown."),
    ("There are two lifts.", "two lifts", "There are five lifts."),
    ("There are two lifts.", "two lifts, five stairs and 6 doors", "There are seven lifts."),
    # What the passages do not have may be wrong already.
    ("It costs 25 crowns.", "A ticket is 30 crowns.", "none: no number of the response is in the passages"),
    ("Route B12 and 70cm and [3].", "B12 70cm 3 12 70", "none: no number of the response is in the passages"),
    ("It runs from 3-6.", "3 6 3-6", "none: no number of the response is in the passages"),
])  # fmt: skip
def test_a_number_that_the_passages_have_becomes_one_that_they_have_not(text: str, passage: str, expected: str) -> None:
    assert text_of(alterations.altered_number, text, passage) == expected


@pytest.mark.parametrize(("text", "passage", "old"), [
    ("The Kestrel trains run.", "A Kestrel is low.", "Kestrel"),
    ("Ask for Port Ellis.", "Port Ellis has a pier.", "Port Ellis"),
    ("Northline runs it. Ask Northline, not us.", "by Northline", "Northline"),
    # The first word of a sentence may have its capital from there; a word that is also written small is no name.
    ("Trains run.", "Trains run.", None),
    ("- Help is free", "Help! No help.", None),
    ("We take Help there.", "Help, or help.", None),
    ("Come on Monday in May.", "Monday, May", None),
    ("The Heron is old.", "No such train.", None),
    ("The NASA report.", "NASA", None),
])  # fmt: skip
def test_a_name_that_the_passages_have_becomes_an_invented_one(text: str, passage: str, old: str | None) -> None:
    twin = made(alterations.altered_name, item(text, [passage]))
    if old is None:
        assert twin == Undefined("no name of the response is in the passages")
    else:
        assert isinstance(twin, alterations.Twin)
        new = next(name for name in alterations.NAMES if name in twin.text)
        assert twin.text.replace(new, old) == text
        assert old not in twin.text
        assert twin.change == f"{old} -> {new}"


def test_a_name_is_a_run_of_words_with_a_capital() -> None:
    assert list(alterations.names("He met Ann-Marie Lee, the Duke of York.\nShe left. In (Oslo) it snows.")) == [
        "Ann-Marie Lee", "Duke", "York",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [
    ("The toilet is open.", "The toilet is not open."),
    ("The toilet is not open.", "The toilet is open."),
    ("You can pay there.", "You cannot pay there."),
    ("You cannot pay there.", "You can pay there."),
    ("You can't pay there.", "You can pay there."),
    ("They don't stop.", "They do stop."),
    ("It won’t stop.", "It will stop."),
    ("Is it open? Are they here?", "none: no statement whose verb takes or has a plain negation"),
    ("What is it?", "none: no statement whose verb takes or has a plain negation"),
    ("Bring water.", "none: no statement whose verb takes or has a plain negation"),
])  # fmt: skip
def test_one_statement_says_the_opposite(text: str, expected: str) -> None:
    assert text_of(alterations.negated, text) == expected


def test_the_statement_with_the_most_support_is_negated() -> None:
    text = "Cats are small. The lift is slow."
    assert text_of(alterations.negated, text, "A slow lift.") == "Cats are small. The lift is not slow."
    assert text_of(alterations.negated, text, "Small cats.") == "Cats are not small. The lift is slow."


def test_an_invented_sentence_is_one_that_nothing_supports() -> None:
    twin = made(alterations.invented, item("It is open.", ["A door."]))
    assert isinstance(twin, alterations.Twin)
    assert twin.text.removeprefix("It is open. ") in alterations.INVENTED
    assert made(alterations.invented, item("It is open.", alterations.INVENTED)) == Undefined(
        "the passages may support every invented sentence"
    )
    no_stop = made(alterations.invented, item("- open\n- free"))
    assert isinstance(no_stop, alterations.Twin) and no_stop.text.startswith("- open\n- free\n")


# ---------------------------------------------------------------- evidence


def test_passages_are_those_of_the_turn_with_the_fewest_words_of_the_response() -> None:
    near, far = ("The lift is slow.",), ("Bees make honey.",)
    twin = made(alterations.swapped, item("The lift is broken.", ["A lift."], [near, far]))
    assert isinstance(twin, alterations.Twin) and twin.passages == far
    shared = item("x", ["A lift."], [("A lift.", "Bees.")])
    assert made(alterations.swapped, shared) == Undefined("nothing else in the topic has other passages")


def test_the_passage_with_the_most_words_of_the_response_is_dropped() -> None:
    twin = made(
        alterations.dropped, item("The lift is broken.", ["Bees make honey.", "The lift broke.", "A broken lift."])
    )
    assert isinstance(twin, alterations.Twin) and twin.passages == ("Bees make honey.", "The lift broke.")
    assert made(alterations.dropped, item("x", ["one"])) == Undefined("fewer than two passages")


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize(("make", "text", "expected"), [
    (alterations.contracted, "It is late. You do not pay.", "It's late. You don't pay."),
    (alterations.contracted, "We know what it is.", "none: nothing in the response to rewrite"),
    (alterations.contracted, "You don't pay, it is free.", "You do not pay, it is free."),
    (alterations.contracted, "You cannot pay.", "You can't pay."),
    (alterations.with_synonyms, "It is usually easy.", "It is normally simple."),
    (alterations.with_synonyms, "A uneasy Large man.", "none: nothing in the response to rewrite"),
    (alterations.with_connective, "Yes. The lift is slow.", "Yes. In fact, the lift is slow."),
    (alterations.with_connective, "The lift is slow.", "In fact, the lift is slow."),
    (alterations.with_connective, "Lifts are slow.",
     "none: no sentence begins with a word that a connective can stand before"),
    (alterations.bulleted, "One. Two.", "- One.\n- Two."),
    (alterations.bulleted, "One only.", "none: a single sentence, or a list already"),
    (alterations.bulleted, "1. One.\n2. Two.", "none: a single sentence, or a list already"),
    (alterations.bold, "One two three four five.", "**One two three four** five."),
    (alterations.headed, "One.", "## Answer\n\nOne."),
    (alterations.reordered, "One.", "none: fewer than two passages"),
])  # fmt: skip
def test_what_means_the_same(make: alterations.Making, text: str, expected: str) -> None:
    assert text_of(make, text) == expected


def test_padding_keeps_the_response_and_order_keeps_the_passages() -> None:
    assert " One. " in text_of(alterations.padded, " One. ")
    twin = made(alterations.reordered, item("One.", ["a", "b", "c"]))
    assert isinstance(twin, alterations.Twin) and twin.passages == ("c", "b", "a")


def test_a_synonym_is_another_word() -> None:
    assert all(word != other and word.islower() and other.islower() for word, other in alterations.SYNONYMS.items())


# ---------------------------------------------------------------- gaming


def test_keywords_are_those_of_the_question_and_then_the_frequent_ones_of_the_passages() -> None:
    of = replace(
        item("It is slow.\n", ["A lift. The lift has doors.", "Doors of a lift"]), question="How old is the lift?"
    )
    assert made(alterations.stuffed, of) == alterations.Twin(
        "It is slow.\n\nold, lift, doors", of.passages, "+ 3 words of question and passages", None, "high"
    )
    many = made(alterations.stuffed, item("It is slow.", [" ".join(f"word{number}" for number in range(99))]))
    assert isinstance(many, alterations.Twin) and many.text.endswith(", word39")
    assert made(alterations.stuffed, item("It is slow.", ["It is."])) == Undefined(
        "neither the question nor a passage has a content word"
    )


def test_a_question_is_that_of_the_turn() -> None:
    turn = Turn("0_0", "0", "How wide is it?", None, (), ())
    drawn = draw_items(world(2, 2), 9, 1, with_passages=True, turns={"0_0": turn})
    assert {one.response.turn_id: one.question for one in drawn} == {
        "0_0": turn.utterance,
        "0_1": "",
        "1_0": "",
        "1_1": "",
    }


def test_a_recital_stands_behind_the_response() -> None:
    of = item("It is open. ", ["A door."])
    assert alterations.recited(
        of, alterations.WantedLabels("3", "0", "Fully open."), np.random.default_rng(0)
    ) == alterations.Twin("It is open.\n\nFully open.", of.passages, "+ Fully open.", None, "high")
    assert made(alterations.recited, of) == Undefined("the prompt does not describe the best grade")


# ---------------------------------------------------------------- canaries


def test_there_are_five_families_or_more_with_25_canaries_or_more() -> None:
    everything = [canary for family in CANARIES.values() for canary in family]
    assert len(CANARIES) >= 5 and len(everything) >= 25
    assert len({canary.name for canary in everything}) == len(everything)
    assert all(WANT in canary.text for canary in everything)
    # What wants a low grade is planted in passages only, so each family needs one that wants a high grade.
    assert all(any(canary.wants == "high" for canary in family) for family in CANARIES.values())


@pytest.mark.parametrize("family", CANARIES)
def test_items_take_the_canaries_of_a_family_in_turn(family: str) -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for place in range(len(CANARIES[family])):  # type: ignore[index]
        of = item("It is open.", ["A door.", "A lift."], place=place)
        twin = planted_in_passage(family, of, alterations.WantedLabels("best", "worst"), rng)  # type: ignore[arg-type]
        assert isinstance(twin, alterations.Twin)
        (altered,) = set(twin.passages) - {"A door.", "A lift."}
        assert ("best" in altered) is (twin.wants == "high") and ("worst" in altered) is (twin.wants == "low")
        assert twin.text == "It is open."
        seen.add(twin.canary)
        response = planted_in_response(family, of, alterations.WantedLabels("best", "worst"), rng)  # type: ignore[arg-type]
        assert isinstance(response, alterations.Twin)
        assert response.wants == "high" and "It is open." in response.text and response.passages == of.passages
    assert seen == {canary.name for canary in CANARIES[family]}  # type: ignore[index]


def test_a_canary_reaches_the_judge_fenced() -> None:
    closing = next(canary for canary in CANARIES["forgery"] if canary.name == "closed-tags")
    assert "</response>" in closing.text and "<" not in defuse(closing.text)


@pytest.mark.parametrize("criterion", bundled_criteria(), ids=lambda criterion: criterion.prompt_id)
def test_the_attacker_asks_for_a_label_that_the_judge_may_write(criterion: Criterion) -> None:
    labels = wanted_labels(criterion)
    assert {labels.best, labels.worst} <= set(answer_labels(criterion))
    assert labels.best != labels.worst
    # So the prompt can be recited under each.
    assert labels.described


def test_the_ends_of_a_scale_follow_its_polarity() -> None:
    worst, *_, best = (level.description for level in GRADED.scale.levels)
    assert wanted_labels(GRADED) == alterations.WantedLabels("3", "0", best)
    lower = replace(GRADED, scale=replace(GRADED.scale, polarity="lower"))
    assert wanted_labels(lower) == alterations.WantedLabels("0", "3", worst)


# ---------------------------------------------------------------- the draw


def world(topics: int = 4, each: int = 5) -> Pool:
    responses = tuple(
        pooled(
            f"R{topic * 100 + turn:05}",
            f"{topic}_{turn}",
            text=f"Lift {topic} is {turn} m wide.",
            passages=(f"p{topic}-{turn}", f"q{topic}"),
        )
        for topic in range(topics)
        for turn in range(each)
    )
    keys = sorted({key for response in responses for key in response.passages})
    return Pool(responses, {key: Passage(key, f"Text of {key}.", "collection") for key in keys}, ())


def test_every_topic_is_drawn_from_in_turn_and_a_larger_draw_begins_with_a_smaller_one() -> None:
    small, large = (draw_items(world(), n, 7, with_passages=True) for n in (6, 15))
    assert large[:6] == small
    assert [len([one for one in large if one.response.topic_id == str(topic)]) for topic in range(4)] in (
        [4, 4, 4, 3], [4, 4, 3, 4], [4, 3, 4, 4], [3, 4, 4, 4],
    )  # fmt: skip
    assert len({one.response.response_id for one in large}) == 15
    assert {one.response.topic_id for one in large[:4]} == {"0", "1", "2", "3"}
    assert draw_items(world(), 6, 8, with_passages=True) != small
    assert len(draw_items(world(), 1000, 7, with_passages=True)) == 20


def test_an_item_knows_the_passages_of_the_other_turns_of_its_topic() -> None:
    of = draw_items(world(2, 3), 6, 1, with_passages=True)[0]
    topic, turn = of.response.topic_id, of.response.turn_id
    assert len(of.elsewhere) == 2
    assert all(f"Text of q{topic}." in texts for texts in of.elsewhere)
    assert f"Text of p{topic}-{turn[-1]}." not in [text for texts in of.elsewhere for text in texts]


def test_a_response_without_its_passages_is_drawn_only_where_none_are_shown() -> None:
    pool = world(2, 2)
    del pool.passages["p0-0"]
    drawn = {one.response.response_id for one in draw_items(pool, 9, 1, with_passages=True)}
    assert len(drawn) == 3 and "R00000" not in drawn
    assert len(draw_items(pool, 9, 1, with_passages=False)) == 4


def test_a_twin_depends_on_seed_probe_and_item_alone() -> None:
    probe = next(probe for probe in PROBES if probe.name == "sentence invented")
    few, many = (draw_items(world(), n, 7, with_passages=True) for n in (3, 20))
    assert [make_twin(probe, one, GRADED, 7) for one in few] == [make_twin(probe, one, GRADED, 7) for one in many[:3]]


def test_a_twin_is_a_response_with_passages_of_its_own() -> None:
    of = item("One.", ["a", "b"])
    twin = alterations.Twin("Two.", ("b", "c"), "x")
    response, passages = twin_response(of, twin, "x"), passages_of([twin])
    assert (response.text, response.topic_id) == ("Two.", "1-1")
    assert [passages[key].text for key in response.passages] == ["b", "c"]


def test_probes_of_passages_are_for_criteria_that_show_them_and_style_is_left_alone() -> None:
    grounded = {probe.name for probe in probes_of(GRADED, KINDS)}
    natural = {probe.name for probe in probes_of(find_criterion("naturalness"), KINDS)}
    concise = {probe.name for probe in probes_of(find_criterion("conciseness"), KINDS)}
    assert grounded == {probe.name for probe in PROBES}
    assert not any("passage" in name or "number" in name for name in natural)
    assert "padding" not in natural | concise and "bullets" not in natural and "bullets" in concise
    assert [probe.kind for probe in probes_of(GRADED, ("evidence",))] == ["evidence"] * 6


TEXTS = st.text(alphabet="aB1 .,:-\n'’?!0isnotcatwo", max_size=60)


@given(TEXTS, st.lists(TEXTS, max_size=3), st.integers(0, 40))
def test_every_probe_takes_any_text(text: str, passages: list[str], place: int) -> None:
    of = item(text, passages, [("Elsewhere 5.",)], place)
    for probe in PROBES:
        twin = make_twin(probe, of, GRADED, place)
        assert twin == make_twin(probe, of, GRADED, place)
        if isinstance(twin, alterations.Twin):
            # A twin is never the item itself, or the probe would measure nothing.
            assert (twin.text, twin.passages) != (text, tuple(passages)), probe.name
            assert twin.change
        else:
            assert twin.reason
