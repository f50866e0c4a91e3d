"""How unsure judges are about each turn, measured from their judgments."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Failure, Judgment

_Key = tuple[str, str]
"""Turn and criterion."""
_Values = dict[_Key, dict[str, list[float]]]
"""What was measured of each response of a turn."""


def turn_uncertainty(
    judgments: Sequence[Judgment | Failure], turns: Sequence[str], criteria: Sequence[str]
) -> tuple[NDArray[np.float64], Literal["entropy", "variance", "none"]]:
    """Each turn's share of the uncertainty, and how it was measured.

    The measure is the entropy of label probabilities; without any, the variance of the grades that several judges gave
    one response. A turn gets the mean over its responses and criteria; a turn without judgments gets the others' mean.

    Args:
        judgments: Judgments of the turns' responses by any judges; they are gone through again and again.
        turns: T turn ids.
        criteria: The criteria whose judgments count.

    Returns:
        Shares (T,) that add up to 1, equal if nothing is uncertain, and the measure.
    """
    values = _entropies(_wanted(judgments, criteria))
    kind: Literal["entropy", "variance", "none"] = "entropy"
    if not values:
        values, kind = _variances(lambda: _wanted(judgments, criteria)), "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _), of_responses in values.items():
        by_turn[turn] += [math.fsum(given) / len(given) for given in of_responses.values()]
    means = {turn: math.fsum(shares) / len(shares) for turn, shares in by_turn.items()}
    known = [means[turn] for turn in turns if turn in means]
    if not known or not sum(known):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(known) / len(known)
    uncertain = np.array([means.get(turn, typical) for turn in turns])
    return uncertain / uncertain.sum(), kind


def _wanted(results: Iterable[Judgment | Failure], criteria: Collection[str]) -> Iterator[Judgment]:
    for result in results:
        if isinstance(result, Judgment) and result.criterion in criteria and not result.unable:
            yield result


def _entropies(judgments: Iterable[Judgment]) -> _Values:
    """The entropy of each judgment with label probabilities, as a share of the largest possible."""
    entropies: _Values = defaultdict(lambda: defaultdict(list))
    ids: dict[str, str] = {}
    for judgment in judgments:
        if judgment.probabilities and len(judgment.probabilities) > 1:
            shares = [share for share in judgment.probabilities.values() if share > 0]
            entropy = -math.fsum(share * math.log(share) for share in shares) / math.log(len(judgment.probabilities))
            response_id = ids.setdefault(judgment.response_id, judgment.response_id)
            entropies[judgment.turn_id, judgment.criterion][response_id].append(max(0.0, entropy))
    return entropies


def _variances(judgments: Callable[[], Iterable[Judgment]]) -> _Values:
    """The variance of each response's grades by several judges or prompts, as a share of the largest possible."""
    grades: dict[_Key, dict[str, dict[tuple[str, str], list[int]]]] = {}
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    ids: dict[str, str] = {}
    judges: dict[tuple[str, str], tuple[str, str]] = {}
    for judgment in judgments():
        name, grade = judgment.criterion, judgment.grade
        low[name], high[name] = min(grade, low.get(name, grade)), max(grade, high.get(name, grade))
        judge = judgment.whole_judge, judgment.variant
        judges.setdefault(judge, judge)
    # One judge under one prompt differs from nobody, and most files hold no other.
    for judgment in judgments() if len(judges) > 1 else ():
        judge = judges[judgment.whole_judge, judgment.variant]
        of_turn = grades.setdefault((judgment.turn_id, judgment.criterion), {})
        of_response = of_turn.setdefault(ids.setdefault(judgment.response_id, judgment.response_id), {})
        of_response.setdefault(judge, []).append(judgment.grade)
    variances: _Values = {}
    for (turn, criterion), of_turn in grades.items():
        half = (high[criterion] - low[criterion]) / 2
        for response_id, by_judge in of_turn.items():
            if len(by_judge) > 1:
                means = [sum(given) / len(given) for given in by_judge.values()]
                variance = float(np.var(means)) / half**2 if half else 0.0
                variances.setdefault((turn, criterion), {})[response_id] = [variance]
    return variances
