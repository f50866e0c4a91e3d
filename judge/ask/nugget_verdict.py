"""Completion → the nuggets that it lists, or Unreadable: as strict as for a grade. Pure.

The reply says twice whether there are nuggets, by the list and by its grade. An empty list is thus never an accident.
"""

import re
from collections.abc import Sequence

import msgspec

from judge.ask.records import Unreadable, Verdict
from judge.ask.reply import clean, last_claim, last_object
from judge.ask.verdict import TRUNCATED, graded, is_cut, reply_of
from judge.models.records import AnswerForm, Completion
from judge.records import Scale
from judge.text.safe import has_content, storable

MOST_LISTED = 50
"""Most nuggets of one source; a reply with more is no list of what matters."""
LONGEST_NUGGET = 500
"""Most characters of a nugget; a longer text is no single fact."""
_LINE = re.compile(r"\s*(?:[-*•]|[0-9]{1,3}[.)])\s+(.*)")


def parse_nuggets(completion: Completion, scale: Scale, form: AnswerForm) -> Verdict | Unreadable:
    """The nuggets of a completion, and whether there are any as its grade.

    Args:
        completion: The completion to read.
        scale: Its positive level stands for some nuggets, the other for none.
        form: The answer form that was asked for, `json` or `text`.
    """
    reply, cut = reply_of(completion), is_cut(completion)
    if isinstance(reply, Unreadable):
        return reply
    verdict = _listed(reply, scale, form, cut=cut)
    return TRUNCATED if cut and isinstance(verdict, Unreadable) else verdict


def _listed(reply: str, scale: Scale, form: AnswerForm, *, cut: bool) -> Verdict | Unreadable:
    answer = last_object(reply, "grade", scale.labels, cut=cut) if form == "json" else None
    if isinstance(answer, Unreadable):
        return answer
    listed: object
    if answer is not None:
        claimed, listed = answer["grade"], answer.get("nuggets")
    else:
        claim = last_claim(reply, scale.labels)
        if isinstance(claim, Unreadable):
            return claim
        if cut:
            return Unreadable("truncated", "what follows may have been another verdict")
        claimed, rest = claim
        listed = [match[1] for line in (rest or "").splitlines() if (match := _LINE.fullmatch(line))]
    verdict = graded(claimed, None, scale)
    if isinstance(verdict, Unreadable):
        return verdict
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        return Unreadable("unreadable", '"nuggets" is not a list of strings')
    return _checked(listed, verdict, scale)


def _checked(listed: Sequence[str], verdict: Verdict, scale: Scale) -> Verdict | Unreadable:
    """The verdict with its nuggets; Unreadable if they contradict the grade or cannot stand in a bank."""
    texts = tuple(" ".join((clean(text) or "").split()) for text in listed)
    for number, text in enumerate(texts, 1):
        if not has_content(text) or not storable(text):
            return Unreadable("unreadable", f"nugget {number} is empty or holds a character that no text may hold")
        if len(text) > LONGEST_NUGGET:
            return Unreadable("unreadable", f"nugget {number} has {len(text)} characters: at most {LONGEST_NUGGET}")
    if len(texts) > MOST_LISTED:
        return Unreadable("unreadable", f"{len(texts)} nuggets: at most {MOST_LISTED}")
    if bool(texts) != (verdict.grade in scale.positive):
        label = next(level.label for level in scale.levels if level.grade == verdict.grade)
        return Unreadable("unreadable", f"the reply lists {len(texts)} nuggets, and its grade is {label}")
    return msgspec.structs.replace(verdict, nuggets=texts)
