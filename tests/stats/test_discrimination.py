"""AUC with intervals over topics: by hand, against other libraries and formulas, and how often it holds the truth."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from judge.records import Estimate
from judge.stats.discrimination import Contest, auc_difference, auc_interval
from judge.stats.means import t_quantile


def wins(x: float, y: float) -> float:
    return 1.0 if x > y else 0.5 if x == y else 0.0


def obuchowski(scores: Any, positive: Any, topics: Any) -> tuple[float, float]:
    """AUC and its variance as the paper writes them, by double loops."""
    units = sorted(set(topics))
    X = {t: [s for s, p, u in zip(scores, positive, topics, strict=True) if u == t and p] for t in units}
    Y = {t: [s for s, p, u in zip(scores, positive, topics, strict=True) if u == t and not p] for t in units}
    every_x, every_y = list(itertools.chain(*X.values())), list(itertools.chain(*Y.values()))
    M, N, K = len(every_x), len(every_y), len(units)
    theta = sum(wins(x, y) for x in every_x for y in every_y) / (M * N)
    V10 = {t: sum(sum(wins(x, y) for y in every_y) / N for x in X[t]) for t in units}
    V01 = {t: sum(sum(wins(x, y) for x in every_x) / M for y in Y[t]) for t in units}
    I10, I01 = sum(map(bool, X.values())), sum(map(bool, Y.values()))
    S10 = I10 / ((I10 - 1) * M) * sum((V10[t] - len(X[t]) * theta) ** 2 for t in units)
    S01 = I01 / ((I01 - 1) * N) * sum((V01[t] - len(Y[t]) * theta) ** 2 for t in units)
    S11 = K / (K - 1) * sum((V10[t] - len(X[t]) * theta) * (V01[t] - len(Y[t]) * theta) for t in units)
    return theta, S10 / M + S01 / N + 2 * S11 / (M * N)


def variance_of(estimate: Estimate, df: float, bounds: tuple[float, float] = (0, 1)) -> float:
    """The variance behind an interval on the log odds."""
    assert estimate.value is not None and estimate.low is not None and estimate.high is not None
    least, most = bounds
    ends = [(end - least) / (most - least) for end in (estimate.low, estimate.high)]
    share = (estimate.value - least) / (most - least)
    width = np.diff([np.log(end / (1 - end)) for end in ends])[0] / 2
    return float((width * share * (1 - share) * (most - least) / t_quantile(0.95, df)) ** 2)


def world(rng: np.random.Generator, T: int, size: int, rho: float, mu: float) -> tuple[NDArray[Any], ...]:
    """Scores of two judges that know equally much, whether items are positive, and their topics."""
    n = T * size
    topic, positive = np.repeat(np.arange(T), size), rng.random(n) < 0.5

    def judge() -> NDArray[np.float64]:
        of_topic = rng.normal(size=T)[topic]
        return np.asarray(rho**0.5 * of_topic + (1 - rho) ** 0.5 * rng.normal(size=n) + mu * positive)

    return judge(), judge(), positive, topic


# Ten topics of a positive and a negative item: the score of the positive one is 2, of the negative one 1, but in the
# first topic the other way round. Positive items of 2 beat 9 negative ones of 1 and tie with the one of 2.
POSITIVE = [True, False] * 10
TOPICS = [n // 2 for n in range(20)]
SCORES = [1.0, 2.0, *[2.0, 1.0] * 9]


@pytest.mark.parametrize("seed", range(2))
def test_value_and_variance_are_those_of_scikit_learn_and_of_the_paper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, positive, topics = world(rng, 9, 6, 0.4, 0.8)
    # Ties, topics of unequal size, and topics with one class only.
    a, b = np.round(a), np.round(b, 1)
    kept = (topics > 0) | positive
    a, b, positive, topics = a[kept][:-3], b[kept][:-3], positive[kept][:-3], topics[kept][:-3]
    estimate = auc_interval(a, positive, topics)
    theta, V = obuchowski(a, positive, topics)
    assert estimate.value == pytest.approx(roc_auc_score(positive, a))
    assert estimate.value == pytest.approx(theta)
    shares = [
        ((topics == t) & positive).sum() / positive.sum() + ((topics == t) & ~positive).sum() / (~positive).sum()
        for t in range(9)
    ]
    df = sum(shares) ** 2 / float(np.square(shares).sum()) - 1
    assert variance_of(estimate, df) == pytest.approx(V)


def test_with_items_as_topics_it_is_delong() -> None:
    """Sample variances of the placements of each class over its size, as DeLong, DeLong and Clarke-Pearson have it."""
    rng = np.random.default_rng(1)
    scores, _, positive, _ = world(rng, 1, 60, 0, 1.0)
    m, n = positive.sum(), (~positive).sum()
    placements = np.array([[wins(x, y) for y in scores[~positive]] for x in scores[positive]])
    V = placements.mean(axis=1).var(ddof=1) / m + placements.mean(axis=0).var(ddof=1) / n
    theta = placements.mean()
    # One item a topic: the third term joins p and q of one topic, which here are never both there.
    weights = np.where(positive, 1 / m, 1 / n)
    df = weights.sum() ** 2 / (weights @ weights) - 1
    estimate = auc_interval(scores, positive, range(60))
    assert estimate.value == pytest.approx(theta)
    assert variance_of(estimate, df) == pytest.approx(V)


@pytest.mark.slow
def test_a_difference_has_the_variance_of_the_shares_differences() -> None:
    """Var(a) + Var(b) - 2 Cov(a, b), where Cov comes from the variance of the sum of the two."""
    rng = np.random.default_rng(3)
    a, b, positive, topics = world(rng, 12, 8, 0.4, 0.8)
    estimate = auc_difference([Contest(a, b, positive, topics)])
    assert estimate.value == pytest.approx(roc_auc_score(positive, a) - roc_auc_score(positive, b))
    M, N, K = positive.sum(), (~positive).sum(), 12
    sums = np.zeros((2, K))
    for item in range(len(a)):
        shares = []
        for scores in (a, b):
            others = scores[~positive] if positive[item] else scores[positive]
            right = [wins(scores[item], y) if positive[item] else wins(y, scores[item]) for y in others]
            shares.append(np.mean(right) - roc_auc_score(positive, scores))
        sums[0 if positive[item] else 1, topics[item]] += (shares[0] - shares[1]) / (M if positive[item] else N)
    V = K / (K - 1) * float(((sums[0] + sums[1]) ** 2).sum())
    weights = np.array([((topics == t) & positive).sum() / M + ((topics == t) & ~positive).sum() / N for t in range(K)])
    assert variance_of(estimate, weights.sum() ** 2 / (weights @ weights) - 1, (-1, 1)) == pytest.approx(V)


def test_the_mean_over_datasets_has_a_quarter_of_the_summed_variances() -> None:
    rng = np.random.default_rng(4)
    contests = [Contest(*world(rng, 10, 5, 0.3, mu)) for mu in (0.5, 1.5)]
    apart = [auc_difference([contest]) for contest in contests]
    both = auc_difference(contests)
    assert both.value == pytest.approx(sum(each.value or 0 for each in apart) / 2)
    assert (both.n, both.topics) == (100, 20)

    def weights(contest: Contest) -> NDArray[np.float64]:
        p, t = np.asarray(contest.positive), np.asarray(contest.topics)
        return np.array([(p & (t == k)).sum() / p.sum() + (~p & (t == k)).sum() / (~p).sum() for k in range(10)])

    of_sets = [weights(contest) for contest in contests]
    dfs = [each.sum() ** 2 / (each @ each) - 1 for each in of_sets]
    variances = [variance_of(each, d, (-1, 1)) for each, d in zip(apart, dfs, strict=True)]
    # Satterthwaite's degrees of freedom.
    df = sum(variances) ** 2 / sum(V**2 / d for V, d in zip(variances, dfs, strict=True))
    assert variance_of(both, df, (-1, 1)) == pytest.approx(sum(variances) / 4)


def test_a_small_dataset_that_brings_most_of_the_variance_leaves_few_degrees_of_freedom() -> None:
    """400 topics whose judges hardly differ beside 10 topics: t is nearly that of the 10 alone, not that of 39."""
    rng = np.random.default_rng(2)
    sure, small = Contest(*world(rng, 400, 4, 0.3, 3.0)), Contest(*world(rng, 10, 8, 0.3, 0.5))
    alone, both = auc_difference([small]), auc_difference([sure, small])
    assert None not in (alone.low, alone.high, both.low, both.high)
    # Half of the difference of the small one, and half of its standard error with about its 9 degrees of freedom: t is
    # 2.26, and with 38 it would be 2.02.
    width, narrower = (both.high or 0) - (both.low or 0), ((alone.high or 0) - (alone.low or 0)) / 2
    assert width == pytest.approx(narrower, rel=0.05)


@pytest.mark.parametrize(
    ("scores", "positive", "topics", "reason"),
    [
        ([], [], [], "no positive items"),
        ([1.0, 2.0], [True, True], [0, 1], "no negative items"),
        ([2.0, 1.0] * 4, [True, False] * 4, range(8), "fewer than 5 positive items"),
        (SCORES, POSITIVE, [0, 1] * 10, "fewer than 5 topics with a positive item"),
        ([2.0, 1.0] * 10, POSITIVE, TOPICS, "perfect separation"),
        ([1.0, 2.0] * 10, POSITIVE, TOPICS, "perfect separation the wrong way round"),
        ([1.0] * 20, POSITIVE, TOPICS, "no variation between topics"),
        ([*range(100), 0.5, 1.5, 2.5, 3.5, 50, 51, 52, 53], [True, False] * 54, [0] * 100 + [1, 1, 2, 2, 3, 3, 4, 4],
            "most items are of one topic"),
    ],
)  # fmt: skip
def test_where_there_is_no_interval_the_reason_says_why(scores: Any, positive: Any, topics: Any, reason: str) -> None:
    estimate = auc_interval(scores, positive, topics)
    assert (estimate.low, estimate.high, estimate.reason) == (None, None, reason)


def test_a_difference_needs_eight_topics_and_scores_that_differ() -> None:
    few = auc_difference([Contest(SCORES[:14], [0.0] * 14, POSITIVE[:14], TOPICS[:14])])
    assert (few.low, few.reason) == (None, "fewer than 8 topics with a positive item")
    same = auc_difference([Contest(SCORES, SCORES, POSITIVE, TOPICS)])
    assert (same.value, same.low, same.reason) == (0.0, None, "no topic tells them apart")
    opposite = auc_difference([Contest([2.0, 1.0] * 10, [1.0, 2.0] * 10, POSITIVE, TOPICS)])
    assert (opposite.value, opposite.low, opposite.reason) == (1.0, None, "no variation between topics")
    none = auc_difference([Contest(SCORES, SCORES, POSITIVE, TOPICS), Contest([1.0], [1.0], [True], [0])])
    assert (none.value, none.reason, none.n) == (None, "no negative items", 21)
    assert auc_difference([]).reason == "no items"


def test_the_order_of_the_items_does_not_matter() -> None:
    a, _, positive, topics = world(np.random.default_rng(5), 10, 6, 0.3, 1)
    order = np.random.default_rng(6).permutation(60)
    shuffled = auc_interval(a[order], positive[order], topics[order])
    assert shuffled.low == pytest.approx(auc_interval(a, positive, topics).low, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    ("T", "size", "rho", "mu"), [(10, 10, 0.3, 0.7), (20, 5, 0.5, 1.5), (50, 8, 0.3, 0.2), (15, 10, 0.5, 2.0)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(T: int, size: int, rho: float, mu: float) -> None:
    """The AUC of two normal distributions a distance mu apart is Φ(mu / √2)."""
    rng, worlds = np.random.default_rng(7), 1000
    truth = float(norm.cdf(mu / 2**0.5))
    held = held_difference = 0
    for _ in range(worlds):
        a, b, positive, topics = world(rng, T, size, rho, mu)
        held += _holds(auc_interval(a, positive, topics), truth)
        held_difference += _holds(auc_difference([Contest(a, b, positive, topics)]), 0.0)
    # Four standard errors of a share of .95 of the worlds are .028.
    assert 0.92 <= held / worlds <= 0.975
    assert 0.92 <= held_difference / worlds <= 0.975


def _holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low is not None and estimate.high is not None and estimate.low <= truth <= estimate.high
