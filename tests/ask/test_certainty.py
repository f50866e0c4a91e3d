"""How sure a judge is, by its label probabilities."""

import msgspec
import pytest

from judge.ask.records import Judgment
from judge.ask.returned import certainty_notes, entropy

JUDGMENT = Judgment(
    response_id="R00001", turn_id="1-1_1", topic_id="1-1", criterion="groundedness", variant="graded", grade=2,
    unable=False, expected=None, probabilities=None, rationale=None, sentences=(), judge="server/a", model="a",
    criterion_digest="c", request_digest="r", form="label", repaired=False, sample=0,
)  # fmt: skip


def test_entropy_is_in_bits_and_of_shares() -> None:
    assert entropy({"yes": 1.0, "no": 0.0}) == 0
    assert entropy(dict.fromkeys("0123", 0.25)) == 2
    # Rounded shares need not add up to 1: .5 and .5 of .999998.
    assert entropy({"yes": 0.499999, "no": 0.499999}) == pytest.approx(1)


def test_a_note_says_how_many_have_probabilities_and_how_sure_they_are() -> None:
    # (1 + 0) / 2 bits of two labels.
    told = [
        msgspec.structs.replace(JUDGMENT, probabilities=shares)
        for shares in ({"0": 0.5, "1": 0.5}, {"0": 1.0, "1": 0.0})
    ]
    assert certainty_notes([*told, JUDGMENT]) == (
        "server/a under groundedness/graded: 2 of 3 judgments have label probabilities, with a mean entropy of "
        "0.50 bits (0 is sure, 1.00 is no idea)",
    )
    assert certainty_notes([JUDGMENT]) == (
        "server/a under groundedness/graded: 0 of 1 judgments have label probabilities",
    )
