"""Strata by the judge's grade: how people's grades spread in each, and the labels that a draw by them saves. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from judge.gold.sampling import Ints
from judge.stats.tables import Floats

LEAST_SPREAD = 0.25
"""Least spread of people's grades at a grade of the judge, as a share of the greatest."""
Errors = Mapping[tuple[int, int], int]
"""How many labels there are of each grade of people and of the judge."""
Strata = Sequence[tuple[str, str]]
"""Of each unit (T,) the topic or the run that it stands with, and its stratum."""


def by_grade(errors: Errors, grades: Iterable[int]) -> dict[int, tuple[float, ...]]:
    """Each grade of the judge with people's mean grade, the share that equals it, and the variances of both.

    One more label is added to each grade, spread as all labels are, so that no grade is without variance by chance.
    Without any labels, all grades are alike.

    Of 3 labels where the judge says 1, people say 1 twice; the further label is 0 by half:

    >>> by_grade({(0, 1): 1, (1, 1): 2, (0, 0): 1}, [1])[1]
    (1, 0.625, 0.625, 0.234375, 0.234375)
    """
    people: Counter[int] = Counter()
    for (human, _), n in errors.items():
        people[human] += n
    if not people:
        return {grade: (grade, grade, 1.0, 1.0, 1.0) for grade in grades}
    predicted: dict[int, tuple[float, ...]] = {}
    for grade in grades:
        shares = {human: errors.get((human, grade), 0) + n / people.total() for human, n in people.items()}
        total = math.fsum(shares.values())
        mean = math.fsum(human * share for human, share in shares.items()) / total
        variance = math.fsum((human - mean) ** 2 * share for human, share in shares.items()) / total
        same = shares.get(grade, 0.0) / total
        predicted[grade] = (grade, mean, same, variance, same * (1 - same))
    return predicted


def _codes(strata: Strata) -> Ints:
    return np.asarray(np.unique([stratum for _, stratum in strata], return_inverse=True)[1])


def spreads(variances: Floats, strata: Strata, labels: Floats) -> Floats:
    """The spread of people's grades in the stratum of each unit (T,), by the root of its labels, as costs say.

    At least LEAST_SPREAD of the greatest, because the judge may err otherwise here; the mean where it said nothing.
    """
    codes = _codes(strata)
    by_unit = np.sqrt(np.bincount(codes, variances) / np.bincount(codes, labels))[codes]
    defined = by_unit[~np.isnan(by_unit)]
    if not defined.any():
        return np.ones(len(by_unit))
    by_unit[np.isnan(by_unit)] = defined.mean()
    return np.asarray(np.maximum(by_unit, LEAST_SPREAD * defined.max()))


def forecast_saving(probabilities: Floats, strata: Strata, labels: Floats, forecast: Floats) -> tuple[float, float]:
    """The shares of labels saved for corrected means and for exact agreement, over the units that the judge graded."""
    graded = ~np.isnan(forecast[:, 0])
    judged, means, same, variances, unlike = forecast[graded].T
    units = probabilities[graded], _codes(strata)[graded], labels[graded]
    return saving(*units, means, variances, judged), saving(*units, same, unlike)


def saving(
    probabilities: Floats,
    strata: Ints,
    labels: Floats,
    means: Floats,
    variances: Floats,
    judged: Floats | None = None,
) -> float:
    """The share of labels that a draw by strata saves at equal width, against units that are drawn alike.

    Units (T,) have `labels` each and an expected value of these `means` and `variances`. `judged` are grades of the
    judge that correct the mean (PPI++): only what is not a line in them is left to the strata. With
    σ² = v̄ + var(e), where e is what the line leaves, V = Σ (1/π - 1) (v + (e - ē_h)²) / T² is the variance by
    strata, and that of m units drawn alike is σ² (1/m - 1/T).
    """
    T = len(means)
    error = means - means.mean()
    if judged is not None and np.ptp(judged):
        f = judged - judged.mean()
        error = error - min(max(float(f @ error / (f @ f)), 0.0), 1.0) * f
    center = np.bincount(strata, error)[strata] / np.bincount(strata)[strata]
    alike = float(np.mean(variances + error**2))
    V = float(np.mean((1 / probabilities - 1) * (variances + (error - center) ** 2))) / T
    return 1 - float(probabilities @ labels / labels.mean()) * (V / alike + 1 / T) if alike else 0.0
