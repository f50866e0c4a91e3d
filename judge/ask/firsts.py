"""What the first questions say of a judge: which they are, and whether there is any use in asking the others. Pure."""

import re
from collections.abc import Sequence

from judge.ask.records import Failure
from judge.errors import OperationalError
from judge.records import FailureReason

FIRSTS = 3
"""Questions of each kind that a judge is asked one after the other, until it has given an answer."""
_ABOUT_THE_TEXT: tuple[FailureReason, ...] = ("content_filter", "refused", "context_length", "budget")
"""Failures that say nothing of the judge."""
_ADVICE: dict[FailureReason, str] = {
    "provider_error": "--omit leaves parameters out, and --form names the answer form",
    "prompt_cut": "the same command asks again",
}
"""What to do about failures that no journal holds."""


def far_apart(numbers: Sequence[int]) -> list[int]:
    """The first, the last and the middle one: neighbors may share a text that no judge can read.

    >>> far_apart([4, 5, 6, 7, 8]), far_apart([4, 5]), far_apart([])
    ([4, 8, 6], [4, 5], [])
    """
    places = dict.fromkeys((0, len(numbers) - 1, len(numbers) // 2)) if numbers else ()
    return [numbers[place] for place in places]


def failed_alike(judge: str, failures: Sequence[Failure]) -> OperationalError | None:
    """Why there is no use in asking a judge anything else, if its first answers failed alike; None if they did not.

    They did if they are about different responses and say the same, up to the numbers in it.
    """
    told = [failure for failure in failures if failure.reason not in _ABOUT_THE_TEXT]
    responses = {failure.response_id for failure in told}
    words = {re.sub(r"[0-9]+", "0", failure.detail) for failure in told}
    if len(responses) < FIRSTS or len(words) > 1:
        return None
    advice = _ADVICE.get(told[0].reason, "the same command, given again, asks the rest all the same")
    return OperationalError(
        f"{judge}: the first {FIRSTS} questions failed alike, so nothing else was asked: {told[0].detail}; {advice}"
    )
