"""How uncertain judgments are, turn by turn. Pure."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Failure, Judgment

_Key = tuple[str, str]
"""Turn and criterion."""
_Measured = dict[_Key, dict[str, list[float]]]
"""What was measured of each response of a turn."""


def turn_uncertainty(
    judgments: Sequence[Judgment | Failure], turns: Sequence[str], criteria: Sequence[str]
) -> tuple[NDArray[np.float64], Literal["entropy", "variance", "none"]]:
    """Each turn's share of the uncertainty (T,), equal if nothing is uncertain, and how it was measured.

    The measure is the entropy of label probabilities; without any, the variance of the grades that several judges gave
    one response. A turn gets the mean over its responses and criteria; a turn without judgments gets the others' mean.
    Judgments are gone through again and again.
    """
    values = _entropies(graded_judgments(judgments, criteria))
    kind: Literal["entropy", "variance", "none"] = "entropy"
    if not values:
        values = _variances(lambda: graded_judgments(judgments, criteria))
        kind = "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _), responses in values.items():
        by_turn[turn] += (math.fsum(measured) / len(measured) for measured in responses.values())
    means = {turn: math.fsum(shares) / len(shares) for turn, shares in by_turn.items()}
    drawable = [means[turn] for turn in turns if turn in means]
    if not drawable or not sum(drawable):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(drawable) / len(drawable)
    uncertain = np.array([means.get(turn, typical) for turn in turns])
    return uncertain / uncertain.sum(), kind


def graded_judgments(results: Iterable[Judgment | Failure], criteria: Collection[str]) -> Iterator[Judgment]:
    """The judgments with a grade under these criteria."""
    for result in results:
        if isinstance(result, Judgment) and result.criterion in criteria and not result.unable:
            yield result


def _entropies(judgments: Iterable[Judgment]) -> _Measured:
    """The entropy of each judgment with label probabilities, as a share of the largest possible."""
    entropies: _Measured = defaultdict(lambda: defaultdict(list))
    ids: dict[str, str] = {}
    for judgment in judgments:
        if judgment.probabilities and len(judgment.probabilities) > 1:
            shares = [share for share in judgment.probabilities.values() if share > 0]
            entropy = -math.fsum(share * math.log(share) for share in shares) / math.log(len(judgment.probabilities))
            response_id = ids.setdefault(judgment.response_id, judgment.response_id)
            entropies[judgment.turn_id, judgment.criterion][response_id].append(max(0.0, entropy))
    return entropies


def _variances(judgments: Callable[[], Iterable[Judgment]]) -> _Measured:
    """The variance of each response's grades by several judges or prompts, as a share of the largest possible."""
    grades: dict[tuple[str, str, str], dict[tuple[str, str], list[int]]] = defaultdict(dict)
    judges: dict[tuple[str, str], tuple[str, str]] = {}
    scales: dict[str, set[int]] = defaultdict(set)
    for judgment in judgments():
        scales[judgment.criterion].add(judgment.grade)
        judge = judgment.judge, judgment.variant
        judges.setdefault(judge, judge)
    # One judge under one prompt differs from nobody, and most files hold no other.
    for judgment in judgments() if len(judges) > 1 else ():
        of_response = grades[judgment.turn_id, judgment.criterion, judgment.response_id]
        of_response.setdefault(judges[judgment.judge, judgment.variant], []).append(judgment.grade)
    variances: _Measured = defaultdict(dict)
    for (turn, criterion, response_id), by_judge in grades.items():
        if len(by_judge) > 1:
            half = (max(scales[criterion]) - min(scales[criterion])) / 2
            means = [sum(grades_of_judge) / len(grades_of_judge) for grades_of_judge in by_judge.values()]
            variances[turn, criterion][response_id] = [float(np.var(means)) / half**2 if half else 0.0]
    return variances
