"""The rules of the field on the entries of one list: passages, PTKB statements. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, ValuesView
from functools import cache
from itertools import islice
from math import isfinite
from operator import gt
from typing import cast

from judge.io.text import MAX_ID, shown
from judge.runs.fields import LISTED, Report, member
from judge.runs.formats.shape import PtkbEntry, Rules
from judge.runs.formats.trec import MAX_PASSAGES
from judge.runs.records import Turn

EntryScores = Sequence[float | None] | ValuesView[float | None]


def check_entries(
    rules: Rules, run_type: str | None, base: str, ids: Collection[str], scores: EntryScores, add: Report
) -> None:
    """Check the ids and scores of one list of up to 300,000 passages; well-formed lists are checked in C, for speed.

    `base` is the JSON path of the list. Beyond `LISTED` problems of one code, `add` is given this path and no message.
    """
    if len(ids) > MAX_PASSAGES:
        message = f"{len(ids)} passages, at most {MAX_PASSAGES} are assessed"
        add("too_many_passages", base, message)

    counts: Counter[str] = Counter()

    def report(code: str, k: int, passage_id: str, field: str, message: str, *values: str | float) -> None:
        counts[code] += 1
        if counts[code] > LISTED:
            # Only their number is kept: a run may have 300,000 of them.
            add(code, base, "")
            return
        path = member(base, passage_id) if rules.keyed else f"{base}[{k}].{field}"
        written = (shown(value) if isinstance(value, str) else value for value in values)
        add(code, path, message.format(*written))

    if rules.passage_id is None or not _all_match(rules.passage_id, ids):
        for k, passage_id in enumerate(ids):
            if not passage_id or not passage_id.isprintable() or len(passage_id) > MAX_ID:
                message = "{} is empty, too long, or has unprintable characters"
                report("unusable_passage_id", k, passage_id, "id", message, passage_id)
            elif rules.passage_id is not None and not rules.passage_id.fullmatch(passage_id):
                message = "{} does not have the form of the collection's ids"
                report("malformed_passage_id", k, passage_id, "id", message, passage_id)
    if not isinstance(ids, Mapping) and len(set(ids)) < len(ids):
        seen: set[str] = set()
        for k, passage_id in enumerate(ids):
            if passage_id in seen and passage_id:
                report("duplicate_passage", k, passage_id, "id", "{} is already in this list", passage_id)
            seen.add(passage_id)
    if not rules.ranked or _all_fall(scores) or (run_type in rules.scoreless and set(scores) == {None}):
        return
    ranked = all(score is not None and isfinite(score) for score in scores)
    order = "they are ranked by score" if ranked else "some have none, so the order of the list counts"
    previous: float | None = None
    for k, (passage_id, score) in enumerate(zip(ids, scores, strict=True)):
        if score is None:
            report("missing_score", k, passage_id, "score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            report("score_not_finite", k, passage_id, "score", "{} is not a number to rank by", score)
        elif previous is not None and score == previous:
            report("equal_scores", k, passage_id, "score", "{} is also the score of the entry before", score)
        elif previous is not None and score > previous:
            message = "{} is more than {} of the entry before; " + order
            report("scores_not_decreasing", k, passage_id, "score", message, score, previous)
        if score is not None and isfinite(score):
            previous = score


def _all_match(pattern: re.Pattern[str], ids: Collection[str]) -> bool:
    """Whether every id has the form `pattern` and is not too long; False may also mean that an id has a line break."""
    text = "\n".join(("", *ids))
    return text.count("\n") == len(ids) and _lines_of(pattern).fullmatch(text) is not None


@cache
def _lines_of(pattern: re.Pattern[str]) -> re.Pattern[str]:
    # Possessive, so that the memory for a match does not grow with the list.
    return re.compile(rf"(?:\n(?!.{{{MAX_ID + 1}}})(?:{pattern.pattern}))*+", pattern.flags)


def _all_fall(scores: EntryScores) -> bool:
    """Whether all are finite numbers, each less than the one before."""
    numbers = cast("Sequence[float]", scores)
    try:
        # Only the ends of falling numbers can be infinite; NaN is less than no number.
        ends = (*islice(numbers, 1), *islice(reversed(numbers), 1))
        return all(map(isfinite, ends)) and all(map(gt, numbers, islice(numbers, 1, None)))
    except TypeError:
        # A missing score is no number and cannot be compared.
        return False


PTKB_ID = re.compile(r"[1-9][0-9]{0,8}")


def check_ptkb(
    rules: Rules, base: str, statements: Sequence[str], given: Sequence[PtkbEntry], turn: Turn | None, add: Report
) -> None:
    """Check the PTKB statements of one list, which are texts or numbers; with `turn`, numbers against its topic's.

    `given` are the texts and scores that a run of 2023 gives with numbers. A text may be from the conversation.
    """
    seen: set[str] = set()
    if rules.ptkb == "texts":
        for k, text in enumerate(statements):
            if not text.strip():
                add("empty_ptkb", f"{base}[{k}]", "the statement is empty")
            elif text in seen:
                add("duplicate_ptkb", f"{base}[{k}]", f"{shown(text)} is already in this list")
            seen.add(text)
        return
    known = {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}
    previous: float | None = None
    entries = zip(statements, given or ((None, None),) * len(statements), strict=True)
    for k, (ptkb_id, (given_text, score)) in enumerate(entries):
        at = f"{base}[{k}]"
        id_path = f"{at}.id" if given else at
        if ptkb_id not in known and not PTKB_ID.fullmatch(ptkb_id):
            add("invalid_ptkb_id", id_path, f"{shown(ptkb_id)} is not a statement's number, from 1")
        elif ptkb_id in seen:
            add("duplicate_ptkb", id_path, f"statement {ptkb_id} is already in this list")
        elif turn is not None and ptkb_id not in known:
            add("unknown_ptkb_id", id_path, f"the topic's PTKB has no statement {ptkb_id}")
        seen.add(ptkb_id)
        if given_text is not None and not given_text.strip():
            add("empty_ptkb", f"{at}.text", "the statement is empty")
        elif given_text is not None and given_text != known.get(ptkb_id, given_text):
            message = f"{shown(given_text)}, but statement {shown(ptkb_id)} of the topic is {shown(known[ptkb_id])}"
            add("ptkb_text_differs", f"{at}.text", message)
        if score is None:
            if given:
                add("missing_ptkb_score", f"{at}.score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            add("score_not_finite", f"{at}.score", f"{score} is not a number to rank by")
        else:
            if previous is not None and score >= previous:
                add("ptkb_scores_not_decreasing", f"{at}.score", f"{score} after {previous}")
            previous = score
