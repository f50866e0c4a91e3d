"""The nouns of tables for people: what a run has to answer, and what is graded there. Pure."""

import re
from collections.abc import Mapping, Sequence

from judge.records import Criterion, JudgedUnit

NOUNS: Mapping[JudgedUnit, Mapping[str, str]] = {
    "response": {},
    "dialogue": {"turn": "topic", "response": "dialogue"},
}
"""Unit to what stands for `turn` and `response`: a run has a response for each turn, or a dialogue for each topic."""

_NOUN = re.compile(r"\b(turn|response)(s?)\b(?! runs)", re.IGNORECASE)
"""A noun that follows the unit; what the track calls response runs has its name for both."""


def worded(text: str, unit: JudgedUnit) -> str:
    """Words of judge's own about turns and responses, in the nouns of a unit.

    Args:
        text: The words; no text or name of a stranger's, which would be changed too.
        unit: What is judged.

    >>> worded("Turns without a grade: responses that failed.", "dialogue")
    'Topics without a grade: dialogues that failed.'
    """
    nouns = NOUNS[unit]

    def noun(match: re.Match[str]) -> str:
        named = nouns.get(match[1].lower(), match[1].lower()) + match[2]
        return named.capitalize() if match[1][0].isupper() else named

    return _NOUN.sub(noun, text) if nouns else text


def folder_unit(criteria: Sequence[Criterion]) -> JudgedUnit:
    """What the prompts of one folder are about; responses if there is none."""
    return criteria[0].unit if criteria else "response"
