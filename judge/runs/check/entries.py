"""The rules of the field on the entries of a response: provenance, PTKB statements, own conversations. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from math import isfinite
from operator import gt
from typing import cast

from judge.io.ids import natural_key, topic_of
from judge.io.safe import MAX_ID, printable_id, shown
from judge.runs.check.sheet import Owner, Sheet
from judge.runs.fields import LISTED, Report, member, usable_turn_id
from judge.runs.formats.shape import PtkbEntry, Rules
from judge.runs.ranking import MAX_PASSAGES, has_scores
from judge.runs.records import Provenance, Response, Turn


def check_entries(rules: Rules, run_type: str | None, base: str, passages: Sequence[Provenance], add: Report) -> None:
    """Check the ids and scores of one list of up to 300,000 passages; well-formed lists are checked in C, for speed.

    `base` is the JSON path of the list. Beyond `LISTED` problems of one code, `add` is given this path and no message.
    """
    if len(passages) > MAX_PASSAGES:
        message = f"{len(passages)} passages, at most {MAX_PASSAGES} are assessed"
        add("too_many_passages", base, message)

    counts: Counter[str] = Counter()

    def report(code: str, k: int, field: str, message: str, *values: str | float) -> None:
        counts[code] += 1
        if counts[code] > LISTED:
            # Only their number is kept: a run may have 300,000 of them.
            add(code, base, "")
            return
        path = member(base, passages[k].passage_id) if rules.keyed else f"{base}[{k}].{field}"
        written = (shown(value) if isinstance(value, str) else value for value in values)
        add(code, path, message.format(*written))

    ids = [passage.passage_id for passage in passages]
    regular = rules.passage_id is None or _all_match(rules.passage_id, ids)
    if not regular or max(map(len, ids), default=0) > MAX_ID:
        for k, passage_id in enumerate(ids):
            if not passage_id or not passage_id.isprintable() or len(passage_id) > MAX_ID:
                message = "{} is empty, too long, or has unprintable characters"
                report("unusable_passage_id", k, "id", message, passage_id)
            elif rules.passage_id is not None and not rules.passage_id.fullmatch(passage_id):
                message = "{} does not have the form of the collection's ids"
                report("malformed_passage_id", k, "id", message, passage_id)
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        for k, passage_id in enumerate(ids):
            if passage_id in seen and passage_id:
                report("duplicate_passage", k, "id", "{} is already in this list", passage_id)
            seen.add(passage_id)
    scores = [passage.score for passage in passages]
    if _all_fall(scores) or (run_type in rules.scoreless and scores.count(None) == len(scores)):
        return
    order = "they are ranked by score" if has_scores(passages) else "some have none, so the order of the list counts"
    previous: float | None = None
    for k, score in enumerate(scores):
        if score is None:
            report("missing_score", k, "score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            report("score_not_finite", k, "score", "{} is not a number to rank by", score)
        elif previous is not None and score == previous:
            report("equal_scores", k, "score", "{} is also the score of the entry before", score)
        elif previous is not None and score > previous:
            message = "{} is more than {} of the entry before; " + order
            report("scores_not_decreasing", k, "score", message, score, previous)
        if score is not None and isfinite(score):
            previous = score


def _all_match(pattern: re.Pattern[str], ids: Sequence[str]) -> bool:
    """Whether every id has the form `pattern`; False may also mean that an id has a line break."""
    text = "\n".join(("", *ids))
    return text.count("\n") == len(ids) and _lines_of(pattern).fullmatch(text) is not None


@cache
def _lines_of(pattern: re.Pattern[str]) -> re.Pattern[str]:
    # Possessive, so that the memory for a match does not grow with the list.
    return re.compile(rf"(?:\n(?:{pattern.pattern}))*+", pattern.flags)


def _all_fall(scores: Sequence[float | None]) -> bool:
    """Whether all are finite numbers, each less than the one before."""
    numbers = cast("Sequence[float]", scores)
    try:
        # Only the ends of falling numbers can be infinite; NaN is less than no number.
        return all(map(isfinite, (*numbers[:1], *numbers[-1:]))) and all(map(gt, numbers, islice(numbers, 1, None)))
    except TypeError:
        # A missing score is no number and cannot be compared.
        return False


_LONGEST = 6
"""The most digits of a turn number that is compared with others."""


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


PTKB_ID = re.compile(r"[1-9][0-9]{0,8}")


def check_ptkb(sheet: Sheet, i: int, j: int, response: Response, turn: Turn | None) -> None:
    """Check the PTKB statements that a response names; with `turn`, against those of its topic."""
    rules, place = sheet.rules, sheet.places[i].responses[j]
    if rules.ptkb is None:
        return
    base = f"{place.path}.{place.names.ptkb}"
    # A simulated user may have told nothing yet.
    if not response.ptkb_provenance and not rules.own_turns:
        sheet.add((i, j), "no_ptkb", base, "no PTKB statement")
    if rules.ptkb == "texts":
        _check_texts(sheet, (i, j), base, response.ptkb_provenance)
    else:
        _check_numbers(sheet, (i, j), base, response.ptkb_provenance, place.statements, turn)


def _check_texts(sheet: Sheet, owner: Owner, base: str, statements: Sequence[str]) -> None:
    """Check statements given by their text; a statement from the conversation is allowed too."""
    seen: set[str] = set()
    for k, text in enumerate(statements):
        if not text.strip():
            sheet.add_entry(owner, base, "empty_ptkb", f"{base}[{k}]", "the statement is empty")
        elif text in seen:
            message = f"{shown(text)} is already in this list"
            sheet.add_entry(owner, base, "duplicate_ptkb", f"{base}[{k}]", message)
        seen.add(text)


def _check_numbers(
    sheet: Sheet, owner: Owner, base: str, ptkb_ids: Sequence[str], given: Sequence[PtkbEntry], turn: Turn | None
) -> None:
    """Check statements given by their number; a run of 2023 gives text and score too."""
    known = {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}
    statements = given or ((None, None),) * len(ptkb_ids)
    id_field = ".id" if given else ""
    seen: set[str] = set()
    previous: float | None = None

    def add(code: str, path: str, message: str) -> None:
        sheet.add_entry(owner, base, code, path, message)

    for k, (ptkb_id, (text, score)) in enumerate(zip(ptkb_ids, statements, strict=True)):
        at = f"{base}[{k}]"
        if ptkb_id not in known and not PTKB_ID.fullmatch(ptkb_id):
            add("invalid_ptkb_id", at + id_field, f"{shown(ptkb_id)} is not a statement's number, from 1")
        elif ptkb_id in seen:
            add("duplicate_ptkb", at + id_field, f"statement {ptkb_id} is already in this list")
        elif turn is not None and ptkb_id not in known:
            add("unknown_ptkb_id", at + id_field, f"the topic's PTKB has no statement {ptkb_id}")
        if text is not None and not text.strip():
            add("empty_ptkb", f"{at}.text", "the statement is empty")
        elif text is not None and text != known.get(ptkb_id, text):
            message = f"{shown(text)}, but statement {shown(ptkb_id)} of the topic is {shown(known[ptkb_id])}"
            add("ptkb_text_differs", f"{at}.text", message)
        seen.add(ptkb_id)
        if score is None:
            if given:
                add("missing_ptkb_score", f"{at}.score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            add("score_not_finite", f"{at}.score", f"{score} is not a number to rank by")
        else:
            if previous is not None and score >= previous:
                add("ptkb_scores_not_decreasing", f"{at}.score", f"{score} after {previous}")
            previous = score
