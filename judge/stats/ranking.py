"""Statistics of two rankings of the same items, such as runs.

Higher scores rank first. Where runs tie, `tau_ap`, `rbo` and `top_k_overlap` are means over all ways of breaking the
ties of either side, so that a ranking with ties does not fully agree with itself; `kendall_tau_b`, `tau_ap_b` and those
of TIED are between two rankings in which ties are meant, and are 1 wherever the rankings are the same.
J. Urbano & M. Marrero (2017), The treatment of ties in AP correlation, ICTIR, 321-324.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from judge.stats.tables import Floats, Undefined

Scores = Sequence[float] | Floats
"""The score of each item or run; higher scores rank first."""
Batched = Callable[[Floats, Floats], Floats]
"""From B pairs of score vectors (B x R each), estimated and reference, to B values."""


class RankStatistic(msgspec.Struct, frozen=True):
    """A row of SYSTEM: a statistic of two rankings of the runs."""

    formula: Batched
    label: str
    """The heading of the column in a report."""
    fewest: int = 0
    """Fewest runs for which it means something."""


def kendall_tau_b(x: Scores, y: Scores) -> float | Undefined:
    """Concordant minus discordant pairs, over the geometric mean of the pairs that each side does not tie.

    M. G. Kendall (1945), The treatment of ties in ranking problems, Biometrika 33(3), 239-251.

    Of 3 pairs of items 2 are concordant, and 1 is tied by the second side:

    >>> f"{2 / (3 * 2) ** 0.5:.6f}", f"{kendall_tau_b([3, 2, 1], [2, 1, 1]):.6f}"
    ('0.816497', '0.816497')
    """
    return _single(batched_tau_b, x, y)


def tau_ap(estimated: Scores, reference: Scores) -> float | Undefined:
    """AP correlation: 2/(n-1) Σ_{i>1} C(i)/(i-1) - 1, where C(i) of the items above the i-th belong above it.

    E. Yilmaz, J. A. Aslam & S. Robertson (2008), A new rank correlation coefficient for information retrieval, SIGIR,
    587-594; with ties in `estimated` τ_AP,a of Urbano & Marrero.

    The estimated ranking is a b c; by the reference c belongs first, so b has 1 of 1 rightly above it, c 0 of 2:

    >>> 2 / (3 - 1) * (1 / 1 + 0 / 2) - 1, tau_ap([3, 2, 1], [2, 1, 3])
    (0.0, 0.0)
    """
    return _single(_tau_ap, estimated, reference)


def tau_ap_b(x: Scores, y: Scores) -> float | Undefined:
    """Symmetric τ_AP,b: the mean of both directions, each over the items below the top group.

    J. Urbano & M. Marrero (2017), The treatment of ties in AP correlation, ICTIR, 321-324.

    The first direction is a b c against c a b; in the second, c a b, a has 0 of 1 rightly above it, and b 1 of 2:

    >>> one_way, other_way = 2 / 2 * (1 / 1 + 0 / 2) - 1, 2 / 2 * (0 / 1 + 1 / 2) - 1
    >>> (one_way + other_way) / 2, tau_ap_b([3, 2, 1], [2, 1, 3])
    (-0.25, -0.25)
    """
    return _single(batched_tau_ap_b, x, y)


def rbo(x: Scores, y: Scores, p: float = 0.9) -> float | Undefined:
    """Rank-biased overlap, extrapolated: X_n/n p^n + (1-p)/p Σ_d X_d/d p^d, where X_d is the overlap of the top d.

    W. Webber, A. Moffat & J. Zobel (2010), A similarity measure for indefinite rankings, ACM TOIS 28(4), 20.

    Of a b c and a c b the top 1, 2 and 3 have 1, 1 and 3 in common:

    >>> p = 0.9
    >>> by_hand = 3 / 3 * p**3 + (1 - p) / p * (1 / 1 * p + 1 / 2 * p**2 + 3 / 3 * p**3)
    >>> f"{by_hand:.6f}", f"{rbo([3, 2, 1], [3, 1, 2]):.6f}"
    ('0.955000', '0.955000')
    """
    return _single(partial(_rbo, p=p), x, y)


def top_k_overlap(x: Scores, y: Scores, k: int) -> float | Undefined:
    """The share of the k best of one side that are among the k best of the other.

    Of a b c and a c b the best two have one in common:

    >>> 1 / 2, top_k_overlap([3, 2, 1], [3, 1, 2], k=2)
    (0.5, 0.5)
    """
    if k >= len(x):
        return Undefined(f"no more than {k} items")
    return _single(partial(_top_k, k=k), x, y)


def _single(statistic: Batched, x: Scores, y: Scores) -> float | Undefined:
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} scores: expected as many")
    if len(x) < 2:
        return Undefined("fewer than 2 items")
    value = float(defined_values(statistic, np.array([x], dtype=np.float64), np.array([y], dtype=np.float64))[0])
    return Undefined("one side is constant") if np.isnan(value) else value


def defined_values(statistic: Batched, X: Floats, Y: Floats) -> Floats:
    """The statistic (B,); nan where a side is constant or has a nan."""
    good = (np.ptp(X, axis=1) > 0) & (np.ptp(Y, axis=1) > 0)
    values = np.full(len(X), np.nan)
    if good.any():
        values[good] = statistic(X[good], Y[good])
    return values


def order_signs(X: Floats) -> Floats:
    """Sign of x_i - x_j (B x R x R)."""
    signs: Floats = np.sign(X[:, :, None] - X[:, None, :])
    return signs


def batched_tau_b(X: Floats, Y: Floats) -> Floats:
    """`kendall_tau_b` of B pairs of score vectors."""
    sx, sy = order_signs(X), order_signs(Y)
    untied = np.abs(sx).sum(axis=(1, 2)) * np.abs(sy).sum(axis=(1, 2))
    tau: Floats = (sx * sy).sum(axis=(1, 2)) / np.sqrt(untied)
    return tau


def _tau_ap(estimated: Floats, reference: Floats) -> Floats:
    """The batched `tau_ap`; in a tied group the m-th item has (m-1)/2 of the group rightly above it on average."""
    n = estimated.shape[1]
    order = order_signs(estimated)
    above, t = (order < 0).sum(axis=2), (order == 0).sum(axis=2)
    right = np.where(order < 0, (1 - order_signs(reference)) / 2, 0.0)
    # H[i] = 1 + 1/2 + ... + 1/i turns both sums over places in the group into differences.
    H = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    per_place = np.where(above > 0, H[above + t - 1] - H[np.maximum(above - 1, 0)], 0.0) / t
    within = ((t - 1) - above * (H[above + t - 1] - H[above])) / (2 * t)
    tau: Floats = 2 / (n - 1) * (right.sum(axis=2) * per_place + within).sum(axis=1) - 1
    return tau


def batched_tau_ap_b(X: Floats, Y: Floats) -> Floats:
    """`tau_ap_b` of B pairs of score vectors."""
    sx, sy = order_signs(X), order_signs(Y)
    return (_one_way(sx, sy) + _one_way(sy, sx)) / 2


def _one_way(sx: Floats, sy: Floats) -> Floats:
    """τ_AP,b in one direction: down the ranking whose order is `sx`."""
    above = (sx < 0).sum(axis=2)
    right = ((sx < 0) & (sy < 0)).sum(axis=2)
    tau: Floats = 2 * (right / np.maximum(above, 1)).sum(axis=1) / (above > 0).sum(axis=1) - 1
    return tau


def membership(X: Floats, depths: Floats) -> Floats:
    """Probability (B x R x D) that an item is among the best d when ties are broken at random."""
    order = order_signs(X)
    above, t = (order < 0).sum(axis=2), (order == 0).sum(axis=2)
    share: Floats = np.clip((depths - above[:, :, None]) / t[:, :, None], 0.0, 1.0)
    return share


def _rbo(X: Floats, Y: Floats, p: float = 0.9) -> Floats:
    d = np.arange(1.0, X.shape[1] + 1)
    agreement = (membership(X, d) * membership(Y, d)).sum(axis=1) / d
    overlap: Floats = agreement[:, -1] * p ** d[-1] + (1 - p) / p * (agreement * p**d).sum(axis=1)
    return overlap


def _top_k(X: Floats, Y: Floats, k: int) -> Floats:
    d = np.array([float(k)])
    overlap: Floats = (membership(X, d) * membership(Y, d)).sum(axis=(1, 2)) / k
    return overlap


SYSTEM: dict[str, RankStatistic] = {
    "tau_b": RankStatistic(batched_tau_b, "tau-b"),
    "tau_ap": RankStatistic(_tau_ap, "tau-AP"),
    "rbo": RankStatistic(_rbo, "RBO"),
    "top_1": RankStatistic(partial(_top_k, k=1), "top 1", fewest=2),
    "top_3": RankStatistic(partial(_top_k, k=3), "top 3", fewest=4),
    "top_5": RankStatistic(partial(_top_k, k=5), "top 5", fewest=6),
}
"""The statistics that compare two rankings of the runs, by name, in the order of columns."""


def rbo_b(x: Scores, y: Scores, p: float = 0.9) -> float | Undefined:
    """Rank-biased overlap RBO^b, extrapolated: the agreement of the top d is Σ c_x c_y / √(Σ c_x² Σ c_y²).

    c is the probability of an item to be among the best d when ties are broken at random.
    M. Corsi & J. Urbano (2024), The treatment of ties in rank-biased overlap, SIGIR, 251-260.

    Of (a b) c and a b c the best run is a with probability 1/2 and 1; the best two and three are the same:

    >>> A_1 = (1 / 2 * 1 + 1 / 2 * 0) / ((1 / 4 + 1 / 4) * 1) ** 0.5
    >>> f"{1 * 0.9**3 + 0.1 / 0.9 * (A_1 * 0.9 + 1 * 0.9**2 + 1 * 0.9**3):.6f}", f"{rbo_b([2, 2, 1], [3, 2, 1]):.6f}"
    ('0.970711', '0.970711')
    """
    X, Y = (np.array([scores], dtype=np.float64) for scores in (x, y))
    if X.shape[1] < 2:
        return Undefined("fewer than 2 items")
    return float(_rbo_b(X, Y, p)[0])


def _tied_agreement(X: Floats, Y: Floats, depths: Floats) -> Floats:
    """How far the tops of each depth agree (B x D)."""
    in_x, in_y = membership(X, depths), membership(Y, depths)
    together: Floats = (in_x * in_y).sum(axis=1) / np.sqrt((in_x**2).sum(axis=1) * (in_y**2).sum(axis=1))
    # The square root may leave 1 by a rounding error.
    return np.minimum(together, 1.0)


def _rbo_b(X: Floats, Y: Floats, p: float = 0.9) -> Floats:
    d = np.arange(1.0, X.shape[1] + 1)
    weights = (1 - p) / p * p**d
    weights[-1] += p ** d[-1]
    overlap: Floats = _tied_agreement(X, Y, d) @ weights
    return overlap


def _tied_top_k(X: Floats, Y: Floats, k: int) -> Floats:
    overlap: Floats = _tied_agreement(X, Y, np.array([float(k)]))[:, 0]
    return overlap


def _swapped(X: Floats, Y: Floats) -> Floats:
    """The share of pairs of runs that the two sides order the opposite way."""
    pairs = X.shape[1] * (X.shape[1] - 1)
    share: Floats = (order_signs(X) * order_signs(Y) < 0).sum(axis=(1, 2)) / pairs
    return share


TIED: dict[str, RankStatistic] = {
    "tau_b": SYSTEM["tau_b"],
    "tau_ap_b": RankStatistic(batched_tau_ap_b, "tau-AP,b"),
    "rbo_b": RankStatistic(_rbo_b, "RBO^b"),
    "top_1": RankStatistic(partial(_tied_top_k, k=1), "top 1", fewest=2),
    "top_3": RankStatistic(partial(_tied_top_k, k=3), "top 3", fewest=4),
    "top_5": RankStatistic(partial(_tied_top_k, k=5), "top 5", fewest=6),
    "swapped": RankStatistic(_swapped, "swapped"),
}
"""The statistics that compare the rankings of the runs by two sets of grades, by name, in the order of rows."""
