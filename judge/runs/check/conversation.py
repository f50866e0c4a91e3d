"""The rules of the field on the conversations of an interactive run, whose turns are its own. Pure."""

from collections.abc import Collection

from judge.runs.check.sheet import Sheet
from judge.runs.fields import usable_turn_id
from judge.text.ids import natural_key, topic_of
from judge.text.safe import printable_id, shown

_LONGEST = 6
"""The most digits of a turn number that is compared with others."""


def check_topic(sheet: Sheet, i: int, turn_id: str, topics: Collection[str]) -> None:
    """Report a turn of a topic that the topics do not have; which turns a topic has is up to the simulated user."""
    topic_id = topic_of(turn_id)
    if usable_turn_id(turn_id) and topic_id not in topics:
        message = f"{shown(turn_id)}: topic {shown(topic_id)} is not in the topics"
        sheet.add((i, None), "unknown_turn", sheet.places[i].path + sheet.rules.turn_id, message)


def check_conversation(sheet: Sheet) -> None:
    """Report turns in which the user said nothing, and turns that lack one before them."""
    numbers: dict[str, dict[int, int]] = {}
    for i, turn in enumerate(sheet.run.turns):
        sheet.log.turn_id = printable_id(turn.turn_id) or None
        if turn.responses and not (turn.utterance or "").strip():
            path = f"{sheet.places[i].responses[0].path}.user_utterance"
            sheet.add((i, None), "empty_utterance", path, "the user said nothing, so a judge sees no utterance")
        digits = turn.turn_id.rpartition("_")[2]
        if usable_turn_id(turn.turn_id) and digits.isdecimal() and len(digits) <= _LONGEST:
            numbers.setdefault(topic_of(turn.turn_id), {}).setdefault(int(digits), i)
    # The documentation of 2025 counts turns from 0, the program of 2026 from 1.
    start = 0 if any(0 in of_topic for of_topic in numbers.values()) else 1
    for topic_id in sorted(numbers, key=natural_key):
        for number, i in sorted(numbers[topic_id].items()):
            if number > start and number - 1 not in numbers[topic_id]:
                sheet.log.turn_id = printable_id(sheet.run.turns[i].turn_id)
                message = f"the run has no turn {topic_id}_{number - 1}, so the context of this turn has a gap"
                sheet.add((i, None), "missing_exchange", sheet.places[i].path + sheet.rules.turn_id, message)
    sheet.log.turn_id = None
