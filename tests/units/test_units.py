"""What judge grades: each unit says all that sets it apart, and every room that makes something of units makes it."""

from typing import get_args

import pytest

from judge.ask.prompt import BLOCKS
from judge.gold.rows import DIGESTS
from judge.jobs.pooling import COMBINED, Pooling
from judge.pool.admission import CANDIDATES
from judge.records import JudgedUnit
from judge.results.citations import MEASURES
from judge.results.leaderboard import bound_note
from judge.results.rows import flag_meanings
from judge.units import UNITS
from judge.units.unit import Unit

DECLARED = {
    # turn, response: by topic, whole response, part of a response, orders, boards, own input, needed input
    "response": ("turn", "response", False, True, False, 1, "response", None, None),
    "dialogue": ("topic", "dialogue", True, False, False, 1, "dialogue", "dialogue", None),
    "citation": ("turn", "citation", False, False, True, 1, "response", None, "passages"),
    "pair": ("turn", "pair", False, False, False, 2, "response", "pair", None),
    "passage": ("turn", "passage", False, False, False, 1, "response", "passages", "passages"),
}


def facts(unit: Unit) -> tuple[object, ...]:
    own = unit.inputs[0] if unit.inputs else None
    marks = unit.by_topic, unit.whole_response, unit.part_of_response, unit.orders, unit.boards
    return (unit.nouns.turn, unit.nouns.response, *marks, own, unit.needed_input)


def test_each_unit_is_declared_whole() -> None:
    assert tuple(UNITS) == get_args(JudgedUnit)
    assert {name: facts(unit) for name, unit in UNITS.items()} == DECLARED


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_unit_has_all_its_sentences(unit: Unit) -> None:
    words = unit.words
    told = words.none_left, words.unreached, words.below_depth, words.with_errors, words.errors, words.turns_file
    assert all(told)
    assert bool(words.unanswered) is (unit.boards == unit.name)
    assert bool(words.selected) is bool(unit.unfit) is bool(unit.why_unfit) is not unit.whole_response


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_unit_names_inputs_and_options_that_there_are(unit: Unit) -> None:
    needed = {unit.needed_input} - {None}
    assert {*unit.own_options} <= Pooling.model_fields.keys()
    assert {*unit.inputs, *needed} <= BLOCKS.keys()
    assert {*unit.unfit} <= Pooling.model_fields.keys()


def test_a_unit_whose_boards_are_of_another_has_measures_of_it() -> None:
    assert UNITS.keys() == MEASURES.keys() == CANDIDATES.keys() == DIGESTS.keys()
    assert all(UNITS[unit.boards].boards == unit.boards for unit in UNITS.values())
    # Of what is shown in several orders both are made of a whole pool.
    assert COMBINED.keys() == {unit.name for unit in UNITS.values() if unit.orders > 1}


def test_sentences_have_the_nouns_of_their_unit() -> None:
    dialogue = UNITS["dialogue"].nouns
    pair = UNITS["pair"].nouns
    assert flag_meanings(dialogue)["MISSING"].startswith("topics without a grade count")
    assert flag_meanings(pair)["RECITES"].startswith("pairs share 8 words in a row")
    assert bound_note(dialogue).startswith("bound: the mean over all topics,")
