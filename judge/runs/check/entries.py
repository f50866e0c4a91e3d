"""The rules of the field on the entries of one list of passages. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from math import isfinite
from operator import gt
from typing import cast

from judge.runs.fields import LISTED, Report, member
from judge.runs.formats.shape import Rules
from judge.runs.provenance import MAX_PASSAGES, has_scores
from judge.runs.records import Provenance
from judge.text.safe import MAX_ID, shown


def check_entries(rules: Rules, run_type: str | None, base: str, passages: Sequence[Provenance], add: Report) -> None:
    """Check the ids and scores of one list of passages; well-formed lists are checked in C, for speed.

    Args:
        rules: The rules of the run's format.
        run_type: The run's type, which may need no scores.
        base: JSON path of the list.
        passages: The entries of the list, up to 300,000.
        add: Takes the code, path and message of a problem. Beyond `LISTED` problems of one code, the path is `base`
            and the message is empty.
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
