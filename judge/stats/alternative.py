"""The alternative annotator test: may a judge stand in for any one of several assessors?"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.stats.tables import Undefined

FALSE_DISCOVERY_RATE = 0.05
"""Of the tests against all assessors together."""


class AlternativeTest(msgspec.Struct, frozen=True):
    """The result of the test; ω says nothing without ε and ρ."""

    epsilon: float
    """ε, how much worse than an assessor the judge may be."""
    omega: float
    """Winning rate: the share of assessors that the judge may stand in for."""
    rho: float
    """Mean over assessors of how often the judge is at least as near to the others as the assessor."""
    p_values: dict[str, float]
    """By assessor, as are `rejected` and `n`."""
    rejected: dict[str, bool]
    n: dict[str, int]
    """Items that each assessor was compared on."""


def alternative_annotator(
    humans: Mapping[str, NDArray[np.int64]],
    judge: NDArray[np.int64],
    *,
    epsilon: float,
    score: Literal["accuracy", "rmse"],
    fewest: int = 30,
    grades: Sequence[int] | None = None,
) -> AlternativeTest | Undefined:
    """Compare the judge with each assessor by their nearness to the other assessors' grades.

    Leave assessor h out. On item i, W_i = 1 if the judge scores no worse against the others than h does, W'_i = 1 if h
    scores no worse than the judge; a tie counts for both. The judge wins against h if the null hypothesis
    E(W' - W) >= ε is rejected by a one-sided t test, at a false discovery rate of 5 % over assessors after Benjamini
    and Yekutieli. Where every W' - W is the same c < ε, t has no variance; then p = ((1-ε) / (1-c))^n, the most that
    any distribution on {-1, 0, 1} with a mean of at least ε allows. Items count as independent, so p is too small
    where topics differ.

    N. Calderon, R. Reichart & R. Dror (2025), The alternative annotator test for LLM-as-a-judge, ACL, 16051-16081.

    Args:
        humans: Codes of every assessor (N,), -1 where there is no grade.
        judge: Codes of the judge (N,), -1 where there is no grade.
        epsilon: How much worse than an assessor the judge may be for what it saves: .2 for experts, .15 for trained,
            .1 for crowd workers.
        score: Nearness to the others: share of equal grades, or -√ of the mean squared difference.
        fewest: Fewest items to test an assessor on; the grades of one with fewer still count among the others'.
        grades: The grades that the codes stand for, ascending; the codes themselves if None.

    Returns:
        The test, or why it is undefined.

    Raises:
        ValueError: ε is not in [0, 1).
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon {epsilon}: expected 0 <= epsilon < 1")
    if len(humans) < 2:
        return Undefined("fewer than 2 assessors")
    H = np.stack(list(humans.values()))
    values = np.arange(max(H.max(initial=0), judge.max(initial=0)) + 1) if grades is None else np.asarray(grades)
    p_values = {}
    n = {}
    wins = []
    for place, name in enumerate(humans):
        shared, judge_score, human_score = _scores(place, H, judge, values, score)
        if shared < fewest:
            continue
        won = judge_score >= human_score
        p_values[name] = _p((human_score >= judge_score).astype(np.float64) - won, epsilon)
        n[name] = shared
        wins.append(won.mean())
    if not p_values:
        return Undefined(f"no assessor has {fewest} items that the judge and another assessor graded too")
    rejected = _benjamini_yekutieli(p_values)
    omega = sum(rejected.values()) / len(rejected)
    return AlternativeTest(
        epsilon=epsilon, omega=omega, rho=float(np.mean(wins)), p_values=p_values, rejected=rejected, n=n
    )


def _scores(
    place: int,
    H: NDArray[np.int64],
    judge: NDArray[np.int64],
    values: NDArray[np.int64],
    score: Literal["accuracy", "rmse"],
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """The number of items that an assessor shares with the judge and another assessor, and both scores (n,) on them."""
    others = H >= 0
    others[place] = False
    shared = (H[place] >= 0) & (judge >= 0) & others.any(axis=0)
    x = values[H[:, shared]].astype(np.float64)
    y = values[judge[shared]].astype(np.float64)
    judge_score = _nearness(y, x, others[:, shared], score)
    human_score = _nearness(x[place], x, others[:, shared], score)
    return int(shared.sum()), judge_score, human_score


def _nearness(
    grades: NDArray[np.float64],
    all_grades: NDArray[np.float64],
    others: NDArray[np.bool_],
    score: Literal["accuracy", "rmse"],
) -> NDArray[np.float64]:
    """Numbers (n,) that grow with the score; sums suffice, because both sides are scored against the same others."""
    near = all_grades == grades if score == "accuracy" else -((all_grades - grades) ** 2)
    total: NDArray[np.float64] = np.where(others, near, 0.0).sum(axis=0)
    return total


def _p(d: NDArray[np.float64], epsilon: float) -> float:
    """The probability of a mean this low if E d = ε, for d in {-1, 0, 1}."""
    from scipy.special import stdtr

    n = len(d)
    mean = float(d.mean())
    sd = float(d.std(ddof=1)) if len(d) > 1 else 0.0
    if sd > 0:
        return float(stdtr(n - 1, (mean - epsilon) / (sd / n**0.5)))
    return 1.0 if mean >= epsilon else ((1 - epsilon) / (1 - mean)) ** n


def _benjamini_yekutieli(p_values: Mapping[str, float]) -> dict[str, bool]:
    """Reject up to the largest i with p_(i) <= i q / (m Σ 1/j).

    Y. Benjamini & D. Yekutieli (2001), The control of the false discovery rate in multiple testing under dependency,
    Annals of Statistics 29(4), 1165-1188.
    """
    p = np.sort(list(p_values.values()))
    ranks = np.arange(1, len(p_values) + 1)
    passed = p[p <= ranks * FALSE_DISCOVERY_RATE / (len(p) * (1 / ranks).sum())]
    return {name: bool(len(passed) and value <= passed[-1]) for name, value in p_values.items()}
