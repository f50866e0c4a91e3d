"""How unsure judges are of each turn, as far as their judgments tell."""

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
    """Each turn's share of the uncertainty, and what it was measured by.

    Entropy of the label probabilities where there are any; otherwise the variance of several judges' grades of one
    response. The mean over a turn's responses and criteria counts; a turn without judgments gets the others' mean.

    Returns:
        Shares (T,) that add up to 1, equal if nothing is uncertain, and the measure.
    """
    wanted = [one for one in judgments if one.criterion in criteria and not one.unable]
    values: Mapping[_Key, Sequence[float]] = _entropies(wanted)
    kind: Literal["entropy", "variance", "none"] = "entropy"
    if not values:
        values, kind = _variances(wanted), "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _, _), found in values.items():
        by_turn[turn].append(math.fsum(found) / len(found))
    means = {turn: math.fsum(found) / len(found) for turn, found in by_turn.items()}
    known = [means[turn] for turn in turns if turn in means]
    if not known or not sum(known):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(known) / len(known)
    uncertain = np.array([means.get(turn, typical) for turn in turns])
    return uncertain / uncertain.sum(), kind


def _entropies(judgments: Iterable[Judgment]) -> dict[_Key, list[float]]:
    """Of each judgment with label probabilities, its entropy as a share of the largest possible."""
    found: dict[_Key, list[float]] = defaultdict(list)
    for one in judgments:
        if one.probabilities and len(one.probabilities) > 1:
            shares = [share for share in one.probabilities.values() if share > 0]
            entropy = -math.fsum(share * math.log(share) for share in shares) / math.log(len(one.probabilities))
            found[one.turn_id, one.response_id, one.criterion].append(max(0.0, entropy))
    return found


def _variances(judgments: Iterable[Judgment]) -> dict[_Key, list[float]]:
    """Of each response with grades by several judges or prompts, their variance as a share of the largest possible."""
    grades: dict[_Key, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    ranges: dict[str, list[int]] = defaultdict(list)
    for one in judgments:
        grades[one.turn_id, one.response_id, one.criterion][one.judge, one.variant].append(one.grade)
        ranges[one.criterion].append(one.grade)
    found: dict[_Key, list[float]] = {}
    for key, by_judge in grades.items():
        half = (max(ranges[key[2]]) - min(ranges[key[2]])) / 2
        if len(by_judge) > 1:
            means = [sum(given) / len(given) for given in by_judge.values()]
            found[key] = [float(np.var(means)) / half**2 if half else 0.0]
    return found
