"""How unsure judges are about each turn, measured from their judgments."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Judgment

_Key = tuple[str, str, str]
"""Turn, response, criterion."""


def turn_uncertainty(
    judgments: Iterable[Judgment], turns: Sequence[str], criteria: Sequence[str]
) -> tuple[NDArray[np.float64], Literal["entropy", "variance", "none"]]:
    """Each turn's share of the uncertainty, and how it was measured.

    The measure is the entropy of label probabilities; without any, the variance of the grades that several judges gave
    one response. A turn gets the mean over its responses and criteria; a turn without judgments gets the others' mean.

    Args:
        judgments: Judgments of the turns' responses by any judges.
        turns: T turn ids.
        criteria: The criteria whose judgments count.

    Returns:
        Shares (T,) that add up to 1, equal if nothing is uncertain, and the measure.
    """
    wanted = [judgment for judgment in judgments if judgment.criterion in criteria and not judgment.unable]
    values: Mapping[_Key, Sequence[float]] = _entropies(wanted)
    kind: Literal["entropy", "variance", "none"] = "entropy"
    if not values:
        values, kind = _variances(wanted), "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _, _), uncertainties in values.items():
        by_turn[turn].append(math.fsum(uncertainties) / len(uncertainties))
    means = {turn: math.fsum(shares) / len(shares) for turn, shares in by_turn.items()}
    known = [means[turn] for turn in turns if turn in means]
    if not known or not sum(known):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(known) / len(known)
    uncertain = np.array([means.get(turn, typical) for turn in turns])
    return uncertain / uncertain.sum(), kind


def _entropies(judgments: Iterable[Judgment]) -> dict[_Key, list[float]]:
    """The entropy of each judgment with label probabilities, as a share of the largest possible."""
    entropies: dict[_Key, list[float]] = defaultdict(list)
    for judgment in judgments:
        if judgment.probabilities and len(judgment.probabilities) > 1:
            shares = [share for share in judgment.probabilities.values() if share > 0]
            entropy = -math.fsum(share * math.log(share) for share in shares) / math.log(len(judgment.probabilities))
            entropies[judgment.turn_id, judgment.response_id, judgment.criterion].append(max(0.0, entropy))
    return entropies


def _variances(judgments: Iterable[Judgment]) -> dict[_Key, list[float]]:
    """The variance of each response's grades by several judges or prompts, as a share of the largest possible."""
    grades: dict[_Key, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    ranges: dict[str, list[int]] = defaultdict(list)
    for judgment in judgments:
        item = judgment.turn_id, judgment.response_id, judgment.criterion
        grades[item][judgment.whole_judge, judgment.variant].append(judgment.grade)
        ranges[judgment.criterion].append(judgment.grade)
    variances: dict[_Key, list[float]] = {}
    for key, by_judge in grades.items():
        half = (max(ranges[key[2]]) - min(ranges[key[2]])) / 2
        if len(by_judge) > 1:
            means = [sum(given) / len(given) for given in by_judge.values()]
            variances[key] = [float(np.var(means)) / half**2 if half else 0.0]
    return variances
