"""What a request asks of a decision model, and the completion that the answers make. Pure.

A grade is one question: a predicate where there are two levels, a score on three to ten levels, and a choice where
there are more or a level says that nothing can be judged. Each of several sentences is a choice of its own. The grade
is the likeliest label; of labels that are equally likely, it is the first of the prompt file.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from judge.judges.records import PROMPT_CUT, Completion, Request
from judge.records import Level, Scale

VERSION = 1
"""Goes up whenever the same request may be asked in other words."""
_MOST_LEVELS = 10
"""Of a score, in both contracts."""


class DecisionQuestion(NamedTuple):
    """One question, as both contracts can write it."""

    kind: Literal["predicate", "choice", "score"]
    instructions: str
    options: tuple[tuple[str, str | None], ...]
    """Each label with its description: of a predicate that of true first, of a score the lowest first."""

    @property
    def size(self) -> int:
        """Bytes of its texts in UTF-8."""
        texts = [self.instructions]
        for label, description in self.options:
            texts += [label, description or ""]
        return sum(len(text.encode("utf-8", "replace")) for text in texts)


class Decision(NamedTuple):
    """What came back for one question."""

    masses: Mapping[str, float] | None
    """Label to its probability, as it came; None if none can be read."""
    said: Any
    """The answer as JSON; None if there is none."""
    refused: bool = False


def questions_of(request: Request) -> list[DecisionQuestion]:
    """The questions of a request: one, or one for each of its sentences."""
    instructions = "\n\n".join(message.content for message in request.messages if message.role == "system")
    if request.sentences:
        labels = tuple((label, None) for label in request.labels)
        return [
            DecisionQuestion("choice", f"{instructions}\n\nThe question is about sentence [{number}] alone.", labels)
            for number in range(1, request.sentences + 1)
        ]
    scale = request.scale
    if scale.unable is not None or not 2 <= len(scale.levels) <= _MOST_LEVELS:
        levels = (*scale.levels, *((scale.unable,) if scale.unable else ()))
        return [DecisionQuestion("choice", instructions, _described(levels))]
    if len(scale.levels) == 2:
        return [DecisionQuestion("predicate", instructions, _described(_true_first(scale)))]
    return [DecisionQuestion("score", instructions, _described(sorted(scale.levels, key=lambda level: level.grade)))]


def _described(levels: Sequence[Level]) -> tuple[tuple[str, str | None], ...]:
    return tuple((level.label, level.description or None) for level in levels)


def _true_first(scale: Scale) -> list[Level]:
    """Two levels, that of the positive grades first, or the higher one where that does not tell them apart."""
    return sorted(scale.levels, key=lambda level: (level.grade in scale.positive, level.grade), reverse=True)


def read_masses(pairs: Sequence[tuple[object, object]], labels: Sequence[str]) -> dict[str, float] | None:
    """Label to probability, from pairs of both; None unless each label has one and there is nothing else.

    >>> read_masses([("yes", 0.25), ("no", 0.75)], ["yes", "no"])
    {'yes': 0.25, 'no': 0.75}
    >>> read_masses([("yes", 0.25)], ["yes", "no"]) is None
    True
    """
    masses: dict[str, float] = {}
    for label, mass in pairs:
        if not isinstance(label, str) or isinstance(mass, bool) or not isinstance(mass, int | float):
            return None
        if label in masses or not math.isfinite(mass) or mass < 0:
            return None
        masses[label] = float(mass)
    if masses.keys() != set(labels) or not math.fsum(masses.values()) > 0:
        return None
    return masses


def probabilities(masses: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """The probabilities in the order of the labels, normalized over them, with six significant digits."""
    whole = math.fsum(masses.values())
    return {label: float(f"{masses[label] / whole:.6g}") for label in labels}


def likeliest(chances: Mapping[str, float]) -> str:
    """The likeliest label, the first of several that are equally likely.

    >>> likeliest({"0": 0.1, "1": 0.45, "2": 0.45})
    '1'
    """
    return max(chances, key=lambda label: chances[label])


def completion_of(request: Request, answers: Sequence[Decision], cut: str | None) -> Completion:
    """The completion of a request; `cut` is why its material was not read to the end, None if nothing speaks for it.

    It has no text where an answer cannot be read, which is a failure of this request alone.
    """
    said = [answer.said for answer in answers]
    raw = json.dumps(said if request.sentences else said[0], ensure_ascii=False)
    if any(answer.refused for answer in answers):
        return Completion(text="", finish_reason="refusal", model=None, raw=raw)
    if cut is not None:
        return Completion(text=cut, finish_reason=PROMPT_CUT, model=None, raw=raw)
    chances = [None if answer.masses is None else probabilities(answer.masses, request.labels) for answer in answers]
    labels = [None if each is None else likeliest(each) for each in chances]
    if None in labels:
        return Completion(text="", finish_reason=None, model=None, raw=raw)
    if not request.sentences:
        return Completion(text=labels[0] or "", finish_reason="stop", model=None, raw=raw, probabilities=chances[0])
    lines = (f"{number}: {label}" for number, label in enumerate(labels, 1))
    return Completion(text="\n".join(lines), finish_reason="stop", model=None, raw=raw)


def shares(whole: int | None, questions: Sequence[int]) -> list[int | None]:
    """What each request has of a count of a call, by the number of its questions; the remainder goes to the first.

    >>> shares(100, [1, 5, 1])
    [16, 70, 14]
    """
    if whole is None:
        return [None for _ in questions]
    each, rest = divmod(whole, sum(questions))
    counts: list[int | None] = [each * number for number in questions]
    return [each * questions[0] + rest, *counts[1:]]
