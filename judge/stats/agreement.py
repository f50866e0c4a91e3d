"""Agreement of two raters on a declared scale: the table of statistics, Krippendorff's alpha among them.

Every formula takes a batch of tables C (`judge.stats.tables`): a single one, one for each topic, or resampled ones.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import krippendorff
import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.plugins import OpenTable
from judge.stats import tables


def unit_counts(C: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each unit got each grade (units x k), from the table of two raters."""
    k = len(C)
    eye = np.eye(k, dtype=np.int64)
    return np.repeat((eye[:, None] + eye).reshape(k * k, k), C.reshape(-1), axis=0)


def krippendorff_alpha(
    counts: NDArray[np.int64], grades: Sequence[int], level: tables.ScaleType
) -> float | tables.Undefined:
    """Alpha of any number of raters from how often each unit got each grade (units x k), or why it is undefined.

    `ordinal` is Krippendorff's metric, which depends on how often each grade was given; it is not Gwet's.
    K. Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    pairable = counts[counts.sum(axis=1) >= 2]
    if not len(pairable):
        return tables.Undefined("no unit has two grades")
    if pairable.any(axis=0).sum() == 1:
        return tables.Undefined("all raters gave one and the same grade throughout")
    return float(krippendorff.alpha(value_counts=pairable, value_domain=sorted(grades), level_of_measurement=level))


def alpha_of_coincidences(level: tables.ScaleType, coincidences: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
    """Alpha of each of B tables of coincidences (B x k x k); nan where only one grade was given.

    α = 1 - (n - 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck. The ordinal metric is the distance between mid-ranks, since
    Σ_{g=c..k} n_g - (n_c + n_k)/2 = |M_k - M_c| with M_c = Σ_{g≤c} n_g - n_c/2.
    """
    flat, given, _ = tables.sums(coincidences)
    k = given.shape[1]
    if level == "ordinal":
        ranks = np.cumsum(given, axis=1) - given / 2
        metric = (ranks[:, :, None] - ranks[:, None, :]) ** 2
        observed = np.einsum("bc,bc->b", flat, metric.reshape(-1, k * k))
        expected = np.einsum("bi,bij,bj->b", given, metric, given, optimize=True)
    else:
        g = np.array(sorted(grades), dtype=np.float64)
        fixed = 1.0 - np.eye(k) if level == "nominal" else (g[:, None] - g) ** 2
        observed = flat @ fixed.reshape(-1)
        expected = ((given @ fixed) * given).sum(axis=1)
    # Weights of a resample may add up to less than 1, where n - 1 would be negative; counts cannot.
    return 1.0 - tables.ratio(np.maximum(given.sum(axis=1) - 1, 0) * observed, expected)


Formula = Callable[[NDArray[Any], Sequence[int]], tables.Floats]
"""From B tables (B x k x k) and the scale's grades to B values; nan where a table does not define the statistic."""


class Statistic(msgspec.Struct, frozen=True, kw_only=True):
    """A row of STATISTICS: the facts about a statistic of agreement; calling it computes its formula."""

    formula: Formula
    about: str
    """The explanation in reports, without a period."""
    citation: str | None = None
    """The source of the formula; None for a plain mean."""
    family: Literal["mean", "kappa", "alpha", "gwet", "tau"]
    """The kind of formula: a `mean` of 1 is not perfect agreement; `alpha` of counts is computed by krippendorff."""
    interval: Literal["t", "fisher", "jackknife"]
    """The interval over topics: cluster-robust, or on Fisher's z with the bootstrap's or the jackknife's error."""
    scale: tables.ScaleType
    """How the formula takes grades: as names, an order or numbers."""
    best: Literal["greatest", "least", "zero"] = "greatest"
    """The best value; around a best value of zero the sign tells a direction."""
    label: str = ""
    """The heading of the column in a report; the statistic's name if empty."""
    shown: Literal["files", "report", "summary"] = "files"
    """Where it is shown: in TSV files only, also in calibration.md, or on the terminal as well."""
    bracketed: bool = False
    """Whether calibration.md shows the interval, not the value alone."""
    terms: Callable[[Sequence[int]], tables.Floats] | None = None
    """The f sums of cells that it depends on (k² x f); the cells themselves if None."""
    slopes: Callable[[tables.Floats, Sequence[int]], tuple[tables.Floats, tables.Floats]] | None = None
    """Its values at B columns of terms (f x B), and how they rise with each term; taken from small steps if None."""
    worst_case: bool = False
    """Whether it has a column with every missing grade taken as the one farthest from the assessors'."""
    primary: Literal["two grades", "more grades"] | None = None
    """The scales on which verdicts and comparisons go by it."""

    def __call__(self, C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
        """The value of each table."""
        return self.formula(C, grades)

    @property
    def signed(self) -> bool:
        """Whether the sign tells a direction."""
        return self.best == "zero"

    def worth(self, values: tables.Floats) -> tables.Floats:
        """Values turned so that the greatest is the best."""
        return values if self.best == "greatest" else -np.abs(values)


class PairMean(msgspec.Struct, frozen=True):
    """Σ C_ij s(g_j - g_i) / Σ C_ij: the mean over pairs of a score s of judge minus human, in scale values.

    The score of a difference d is 1 where d = 0 (`percent`) or |d| ≤ 1 (`within_one`) and else 0; it is |d| (`mae`) or
    d itself (`bias`).

    Four pairs, whose differences are 0, 1, -2 and 0:

    >>> C = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    >>> 2 / 4, point("percent", C, (0, 1, 2, 3))
    (0.5, 0.5)
    >>> 3 / 4, point("within_one", C, (0, 1, 2, 3))
    (0.75, 0.75)
    >>> (1 + 2) / 4, point("mae", C, (0, 1, 2, 3))
    (0.75, 0.75)
    >>> (1 - 2) / 4, point("bias", C, (0, 1, 2, 3))
    (-0.25, -0.25)
    """

    score: Callable[[tables.Floats], NDArray[Any]]
    """From judge minus human to the score, for arrays."""

    def scores(self, grades: Sequence[int]) -> tables.Floats:
        """The score of a pair in each cell of a table (k x k)."""
        g = np.array(sorted(grades), dtype=np.float64)
        return np.asarray(self.score(g - g[:, None]), dtype=np.float64)

    def __call__(self, C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
        """The mean of each table."""
        flat, human, _ = tables.sums(C)
        return tables.ratio(flat @ self.scores(grades).reshape(-1), human.sum(axis=1))


_MOST_UNITS = 100_000
"""Pairs up to which alpha is the library's, which makes a table for each; the formula gives the same value."""


def point(name: str, C: NDArray[Any], grades: Sequence[int]) -> float | tables.Undefined:
    """A statistic of one table (k x k, human grades in rows; counts or weights), or why it is undefined."""
    statistic = STATISTICS[name]
    if not C.sum():
        return tables.Undefined("no pairs")
    same = (C.any(axis=1) | C.any(axis=0)).sum() == 1
    if statistic.family == "alpha" and not same and not tables.is_weighted(C) and C.sum() <= _MOST_UNITS:
        return krippendorff_alpha(unit_counts(C), grades, statistic.scale)
    value = float(statistic(C[None], grades)[0])
    if np.isnan(value):
        return tables.Undefined(
            f"{'both raters gave one and the same' if same else 'one rater gave one'} grade throughout"
        )
    return value


def primary_statistic(k: int) -> str:
    """The statistic that verdicts and comparisons go by on a scale of k grades."""
    scales = "more grades" if k > 2 else "two grades"
    return next(name for name, statistic in STATISTICS.items() if statistic.primary == scales)


def _kappa(kind: tables.Weights, C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
    """κ = 1 - Σ P∘D / Σ (r cᵀ)∘D with D = 1 - W; nan where both raters gave one and the same grade.

    Of 50 pairs 15 differ. Chance would make 25 · 20 + 25 · 30 of 50 · 50 differ:

    >>> f"{1 - (15 / 50) / ((25 * 20 + 25 * 30) / 50**2):.3f}"
    '0.400'
    >>> f"{point('kappa', np.array([[20, 5], [10, 15]]), (0, 1)):.3f}"
    '0.400'

    Of 3 pairs one is a step apart on a scale of two steps: D is 1/2, or (1/2)² with quadratic weights. By chance, of 9
    pairs of grades 3 are a step apart and 3 are two:

    >>> C = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]])
    >>> f"{1 - (1 / 2 / 3) / ((3 / 2 + 3) / 9):.6f}", f"{point('wkappa_linear', C, (0, 1, 2)):.6f}"
    ('0.666667', '0.666667')
    >>> f"{1 - (1 / 4 / 3) / ((3 / 4 + 3) / 9):.6f}", f"{point('wkappa', C, (0, 1, 2)):.6f}"
    ('0.800000', '0.800000')
    """
    flat, human, judge = tables.sums(C)
    D = 1.0 - tables.agreement_weights(grades, kind)
    return 1.0 - tables.ratio(tables.row_sums(human) * (flat @ D.reshape(-1)), tables.row_sums((human @ D) * judge))


def _kappa_terms(kind: tables.Weights, grades: Sequence[int]) -> tables.Floats:
    """The sums that kappa depends on: the margins r and c, and the disagreement d = Σ C∘D."""
    return np.column_stack([*tables.margins(len(grades)), 1.0 - tables.agreement_weights(grades, kind).reshape(-1)])


def _kappa_slopes(
    kind: tables.Weights, terms: tables.Floats, grades: Sequence[int]
) -> tuple[tables.Floats, tables.Floats]:
    """κ = 1 - n d / rᵀDc, ∂κ/∂r = ((1 - κ) Dc - d) / rᵀDc, ∂κ/∂c = (1 - κ) Dr / rᵀDc and ∂κ/∂d = -n / rᵀDc."""
    k = len(grades)
    D = 1.0 - tables.agreement_weights(grades, kind)
    r = terms[:k]
    c = terms[k:-1]
    d = terms[-1]
    n = r.sum(axis=0)
    Dr = D @ r
    Dc = D @ c
    by_chance = (Dr * c).sum(axis=0)
    by_chance[by_chance == 0] = np.nan
    beyond = n * d / by_chance
    return 1.0 - beyond, np.concatenate([beyond * Dc - d, beyond * Dr, -n[None]]) / by_chance


def _alpha(level: tables.ScaleType, C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
    """α = 1 - (n - 1) Σ o_ck δ²_ck / Σ n_c n_k δ²_ck, from coincidences o = C + Cᵀ with margins n_c and the sum n.

    δ² is 1 by name, the squared difference by number, and that of the mid-ranks by order.

    Units (0, 1), (3, 3) and (1, 1) have the grades 0 1 1 1 3 3. One unit of 3 differs; of the 30 ordered pairs of
    grades 6 are 0 and 1, 4 are 0 and 3, 12 are 1 and 3. Squared distances are 1 by name; 1, 9 and 4 by number; by order
    those of the mid-ranks 1, 3 and 5.5:

    >>> C = np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]])
    >>> f"{1 - (1 / 3) / ((6 + 4 + 12) / 30):.6f}", f"{point('alpha_nominal', C, (0, 1, 3)):.6f}"
    ('0.545455', '0.545455')
    >>> f"{1 - (1 / 3) / ((6 * 1 + 4 * 9 + 12 * 4) / 30):.6f}", f"{point('alpha_interval', C, (0, 1, 3)):.6f}"
    ('0.888889', '0.888889')
    >>> by_chance = (6 * 2**2 + 4 * 4.5**2 + 12 * 2.5**2) / 30
    >>> f"{1 - (2**2 / 3) / by_chance:.6f}", f"{point('alpha_ordinal', C, (0, 1, 3)):.6f}"
    ('0.777778', '0.777778')
    """
    return alpha_of_coincidences(level, C + C.swapaxes(1, 2), grades)


def _gwet(kind: tables.Weights, C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
    """AC1 and AC2: (p_a - p_e) / (1 - p_e), p_e = ΣW Σ π(1 - π) / (k(k - 1)) with π the mean of both marginals.

    The formula gives 1 where only one grade was given. Such a table says nothing about chance, so the value is nan.

    On two grades 118 of 125 pairs agree, and π is (118 + 2 / 2 + 5 / 2) / 125 = .972 and .028:

    >>> p_e = 2 * (0.972 * 0.028 + 0.028 * 0.972) / (2 * 1)
    >>> f"{(118 / 125 - p_e) / (1 - p_e):.6f}", f"{point('ac1', np.array([[118, 5], [2, 0]]), (0, 1)):.6f}"
    ('0.940776', '0.940776')

    On three grades a pair one step apart agrees by 3/4, so ΣW = 3 + 4 · 3/4; π is 3/6, 1/6 and 2/6:

    >>> p_a, p_e = (1 + 3 / 4 + 1) / 3, (3 + 4 * 3 / 4) * (1 / 4 + 5 / 36 + 2 / 9) / (3 * 2)
    >>> C = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]])
    >>> f"{(p_a - p_e) / (1 - p_e):.6f}", f"{point('ac2', C, (0, 1, 2)):.6f}"
    ('0.785714', '0.785714')
    """
    flat, human, judge = tables.sums(C)
    k = human.shape[1]
    W = tables.agreement_weights(grades, kind)
    n = human.sum(axis=1)
    p_a = tables.ratio(flat @ W.reshape(-1), n)
    share = (human + judge) / np.where(n > 0, 2 * n, 1)[:, None]
    p_e = W.sum() / (k * (k - 1)) * (share * (1 - share)).sum(axis=1)
    return np.where((share > 0).sum(axis=1) > 1, (p_a - p_e) / (1 - p_e), np.nan)


def _tau_b(C: NDArray[Any], grades: Sequence[int]) -> tables.Floats:
    """Kendall's τ_b: concordant minus discordant pairs of items, over √(pairs untied by human · untied by judge).

    Items (0, 0), (0, 1) and (1, 1): of 3 pairs of items one is concordant, one is tied by each side alone.

    >>> 1 / (2 * 2) ** 0.5, point("tau_b", np.array([[1, 1], [0, 1]]), (0, 1))
    (0.5, 0.5)
    """
    flat, human, judge = tables.sums(C)
    k = human.shape[1]
    n = human.sum(axis=1)
    S = np.triu(np.ones((k, k)), 1)
    # Σ_ab S_ia C_ab (Sᵀ - S)_bj: pairs beyond (i, j) on both sides, minus those beyond on one and before on the other.
    beyond = flat @ np.kron(S, S - S.T).T
    by_human, by_judge = (np.sqrt(n**2 - (side**2).sum(axis=1)) for side in (human, judge))
    return tables.ratio(2 * (flat * beyond).sum(axis=1), by_human * by_judge)


_COHEN_1960 = "J. Cohen (1960), A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20(1), 37-46"
_COHEN_1968 = "J. Cohen (1968), Weighted kappa, Psychological Bulletin 70(4), 213-220"
_KRIPPENDORFF = "K. Krippendorff (2011), Computing Krippendorff's alpha-reliability"
_GWET = (
    "K. L. Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement, Brit. J. "
    "Math. Stat. Psychol. 61(1), 29-48"
)
_GWET_WEIGHTED = "K. L. Gwet (2014), Handbook of Inter-Rater Reliability, 4th edition, Advanced Analytics"
_KENDALL = "M. G. Kendall (1945), The treatment of ties in ranking problems, Biometrika 33(3), 239-251"

STATISTICS: OpenTable[Statistic] = OpenTable("statistics", {
    "percent": Statistic(
        formula=PairMean(lambda d: d == 0), about="the share of equal grades",
        family="mean", interval="t", scale="nominal", label="same", shown="summary", worst_case=True,
    ),
    "within_one": Statistic(
        formula=PairMean(lambda d: np.abs(d) <= 1), about="the share of grades at most one apart",
        family="mean", interval="t", scale="interval",
    ),
    "kappa": Statistic(
        formula=partial(_kappa, "none"), about="Cohen's, agreement beyond chance, all disagreements alike",
        citation=_COHEN_1960, family="kappa", interval="fisher", scale="nominal", shown="report", worst_case=True,
        terms=partial(_kappa_terms, "none"), slopes=partial(_kappa_slopes, "none"), primary="two grades",
    ),
    "wkappa_linear": Statistic(
        formula=partial(_kappa, "linear"),
        about="kappa with linear weights, so that a grade two off counts twice one off",
        citation=_COHEN_1968, family="kappa", interval="fisher", scale="interval",
    ),
    "wkappa": Statistic(
        formula=partial(_kappa, "quadratic"),
        about="the same with quadratic weights, so that a grade two off counts four times one off",
        citation=_COHEN_1968, family="kappa", interval="fisher", scale="interval", shown="report", bracketed=True,
        terms=partial(_kappa_terms, "quadratic"), slopes=partial(_kappa_slopes, "quadratic"), worst_case=True,
        primary="more grades",
    ),
    "alpha_nominal": Statistic(
        formula=partial(_alpha, "nominal"), about="Krippendorff's, nominal", citation=_KRIPPENDORFF,
        family="alpha", interval="fisher", scale="nominal",
    ),
    "alpha_ordinal": Statistic(
        formula=partial(_alpha, "ordinal"), about="Krippendorff's, ordinal", citation=_KRIPPENDORFF,
        family="alpha", interval="fisher", scale="ordinal", label="alpha", shown="report", worst_case=True,
    ),
    "alpha_interval": Statistic(
        formula=partial(_alpha, "interval"), about="Krippendorff's, interval", citation=_KRIPPENDORFF,
        family="alpha", interval="fisher", scale="interval",
    ),
    "ac1": Statistic(
        formula=partial(_gwet, "none"), about="Gwet's, which stays high where nearly all grades are equal",
        citation=_GWET, family="gwet", interval="jackknife", scale="nominal",
    ),
    "ac2": Statistic(
        formula=partial(_gwet, "quadratic"),
        about="Gwet's with quadratic weights, which stays high where nearly all grades are equal and kappa falls",
        citation=_GWET_WEIGHTED, family="gwet", interval="jackknife", scale="interval", label="AC2", shown="summary",
    ),
    "tau_b": Statistic(
        formula=_tau_b, about="Kendall's, whether responses come in the same order", citation=_KENDALL,
        family="tau", interval="fisher", scale="ordinal",
    ),
    "mae": Statistic(
        formula=PairMean(np.abs), about="the mean distance in grades",
        family="mean", interval="t", scale="interval", best="least",
    ),
    "bias": Statistic(
        formula=PairMean(lambda d: d),
        about="the mean of judge minus assessor in grades; above 0 the judge is more generous where high is good",
        family="mean", interval="t", scale="interval", best="zero", shown="summary", bracketed=True,
    ),
})  # fmt: skip
"""By name, in the order of columns. A new row adds a statistic to tables, report and requirements at once."""
