"""Ratings of compared runs: the maximum of Davidson's likelihood, and its error over topics."""

import gzip
import json
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels import api

from judge.stats.preference import UNBOUND, Ratings, rated, rating_places, ratings
from judge.stats.separation import separated
from judge.stats.tables import Undefined

HOME, TIE = 0.4, 0.8


def drawn(R: int, T: int, tie: float = TIE, seed: int = 1) -> NDArray[np.float64]:
    """Counts (T x R x R x 3) of one comparison in each order."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.7, R)
    z = (strength[:, None] - strength + HOME) / 2
    p = np.stack([np.exp(z), np.full((R, R), tie), np.exp(-z)], axis=-1)
    counts = rng.multinomial(1, p / p.sum(axis=-1, keepdims=True), size=(T, R, R)).astype(np.float64)
    counts[:, range(R), range(R)] = 0
    return counts


def rating(counts: NDArray[np.float64], **options: bool) -> Ratings:
    found = ratings(counts, **options)
    assert not isinstance(found, Undefined)
    return found


def values(found: Ratings) -> NDArray[np.float64]:
    return np.array([run.value for run in found[0]], dtype=np.float64)


def test_ties_and_place_have_the_maximum_of_a_log_linear_model() -> None:
    """The oracle: Poisson counts with a constant for each pair. S. E. Fienberg (1979), JASA 74(367), 685-693."""
    R, counts = 5, drawn(5, 12)
    rows, y = [], []
    for k, (i, j) in enumerate((i, j) for i in range(R) for j in range(R) if i != j):
        for side, sign in enumerate((0.5, 0.0, -0.5)):
            row = np.zeros(R * (R - 1) + R + 2)
            row[[k, R * (R - 1) + i, R * (R - 1) + j]] = 1, sign, -sign
            row[-2:] = sign, side == 1
            rows.append(np.delete(row, R * (R - 1)))
            y.append(counts[:, i, j, side].sum())
    theirs = api.GLM(y, np.array(rows), family=api.families.Poisson()).fit(tol=1e-14, maxiter=200).params[R * (R - 1) :]
    ours = rating(counts, home=True)
    strengths = np.array([0.0, *theirs[: R - 1]])
    assert values(ours) == pytest.approx(strengths - strengths.mean(), abs=1e-8)
    assert (ours[2].value, np.log(ours[1])) == pytest.approx(tuple(theirs[-2:]), abs=1e-8)


def test_without_ties_ratings_and_errors_are_those_of_a_logistic_regression_with_topics_as_clusters() -> None:
    R, counts = 4, drawn(4, 20, tie=0.0)
    rows = [(t, i, j, side) for t, i, j, side in np.argwhere(counts)]
    design = np.array([np.eye(R)[i] - np.eye(R)[j] for _, i, j, _ in rows])[:, 1:]
    won, topics = np.array([side == 0 for *_, side in rows]), np.array([t for t, *_ in rows])
    theirs = api.Logit(won, design).fit(disp=False, tol=1e-12, cov_type="cluster", cov_kwds={"groups": topics})
    ours = rating(counts)
    assert ours[1] == 0
    assert np.diff(values(ours), prepend=values(ours)[0])[1:].cumsum() == pytest.approx(theirs.params, abs=1e-8)
    psi = np.array([run.influence for run in ours[0]])
    assert np.linalg.norm(psi[1:] - psi[0], axis=1) == pytest.approx(theirs.bse, rel=1e-8)
    assert [run.se for run in ours[0]] == pytest.approx(np.linalg.norm(psi, axis=1))


def test_ratings_order_responses_as_published_ranks_do(shared: Path) -> None:
    """CRAGC-25 (webis-de, CC-BY 4.0): ranks of 6 responses a topic, each with .2 wins and losses against a seventh."""
    grades, pairs = (
        [json.loads(line) for line in gzip.decompress((shared / "rag24" / name).read_bytes()).splitlines()]
        for name in ("crowd_grades.jsonl.gz", "crowd_pairs.jsonl.gz")
    )
    ranks = {grade.pop("response"): grade for grade in grades}
    found: dict[bool, Counter[float]] = {True: Counter(), False: Counter()}
    for of, topic in product(grades[0], {pair["query_id"] for pair in pairs}):
        met = [pair for pair in pairs if pair["query_id"] == topic]
        names = sorted({pair["response_a"] for pair in met} | {pair["response_b"] for pair in met})
        counts = np.zeros((1, 7, 7, 3))
        counts[0, 6, :6, ::2] = 0.2
        for a, b, said in ((pair["response_a"], pair["response_b"], pair[f"{of}_gold"]) for pair in met):
            counts[0, names.index(a), names.index(b), "anb".index(said)] += 1
        ours, theirs = values(rating(counts))[:6].round(6), np.array([ranks[name][of] for name in names])
        same = np.sign((ours - ours[:, None]) * (theirs - theirs[:, None]))[np.triu_indices(6, 1)]
        found[of == "quality_overall"].update(same.tolist())
    # Overall quality has no ties. They take a tie for certain within a threshold of .05 (Rao and Kupper 1967).
    assert found == {True: {1: 631, 0: 14}, False: {1: 3728, 0: 56, -1: 86}}


WON, TIED, LOST = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def table(R: int, results: dict[tuple[int, int], tuple[int, int, int]], topics: int = 8) -> NDArray[np.float64]:
    counts = np.zeros((topics, R, R, 3))
    for pair, result in results.items():
        counts[:, *pair] = result
    return counts


@pytest.mark.parametrize(
    ("R", "results", "why"),
    [
        (2, {}, "no comparison joins 2 groups of runs"),
        (2, {(0, 1): WON}, "2 groups of runs, of which each won or lost all comparisons with the others"),
        (2, {(0, 1): TIED}, "all comparisons are ties"),
        (4, {(0, 1): (1, 0, 1), (2, 3): (1, 0, 1)}, "no comparison joins 2 groups of runs"),
        (3, {(0, 1): WON, (1, 2): WON}, "3 groups of runs, of which each won or lost all comparisons with the others"),
    ],
)
def test_no_rating_without_a_finite_maximum(R, results, why) -> None:
    assert ratings(table(R, results)) == Undefined(why)


def test_runs_outside_say_nothing_of_the_others() -> None:
    """Run 3 lost to all it met, run 4 won, run 5 met nobody that is rated."""
    inside = {(0, 1): (2, 1, 1), (1, 2): (1, 0, 1), (2, 0): (1, 0, 2)}
    found = rating(table(7, inside | {(0, 3): WON, (3, 1): LOST, (4, 2): WON, (0, 6): (1, 0, 1)} | {(5, 3): WON}))
    kept = [0, 1, 2, 6]
    assert [run.reason for run in found[0][3:6]] == [
        "it lost all comparisons with the rated runs",
        "it won all comparisons with the rated runs",
        "no comparison with the rated runs",
    ]
    assert [run for run in range(7) if found[0][run].value is not None] == kept
    without = rating(table(4, inside | {(0, 3): (1, 0, 1)}))
    assert values(found)[kept] == pytest.approx(values(without))


def placed(counts: NDArray[np.float64]) -> list[tuple[int, int | None, int | None] | None]:
    return [place and (place.rank, place.low, place.high) for place in rating_places(rating(counts), counts)]


def test_runs_that_won_or_lost_all_are_first_and_last() -> None:
    """Runs 0 to 4 are rated and alike; runs 5 and 6 won, run 7 lost, run 8 met none of the rated."""
    alike = {(run, (run + 1) % 5): (1, 0, 1) for run in range(5)}
    ends = {(5, 0): WON, (1, 5): LOST, (6, 2): WON, (7, 0): LOST, (8, 5): LOST}
    # A run like the others wins in all of 16 topics with probability 1/2^16. Run 8 may stand anywhere.
    assert 0.5**16 < 0.05 / (9 * 8)
    assert placed(table(9, alike | ends, 16)) == [*[(3, 3, 8)] * 5, (1, 1, 3), (1, 1, 3), (8, 8, 9), None]


@pytest.mark.parametrize(("topics", "ranks"), [(8, (1, 1, 5)), (9, (1, 1, 1))])
def test_a_run_that_won_all_of_few_comparisons_may_be_no_better(topics, ranks) -> None:
    assert 0.5**9 < 0.05 / (5 * 4) < 0.5**8
    alike = {(run, (run + 1) % 4): (1, 0, 1) for run in range(4)}
    assert placed(table(5, alike | {(4, 0): WON}, topics))[4] == ranks


def test_who_won_against_a_weak_run_alone_may_be_no_better_than_the_best() -> None:
    """Run 3 beat run 2 alone, which runs 0 and 1 beat in 15 of 16 topics: (15/16)^16 is .36."""
    counts = table(4, {(0, 1): (1, 0, 1), (3, 2): WON}, 16)
    counts[:15, :2, 2], counts[15:, :2, 2] = WON, LOST
    assert placed(counts)[3] == (1, 1, 3)


def test_a_chain_of_ties_or_losses_is_enough() -> None:
    of = rated(table(3, {(0, 1): WON, (1, 2): TIED, (2, 0): WON})[0])
    assert not isinstance(of, Undefined) and of.all()


@pytest.mark.parametrize(
    ("results", "home"),
    [
        ({(i, j): WON for i in range(3) for j in range(3) if i != j}, True),
        # With ties the strengths of runs in one order rise without end, and ν with them.
        ({(0, 1): (5, 1, 0), (1, 2): (2, 1, 0)}, False),
        ({(0, 1): (5, 1, 0), (1, 2): (2, 1, 0)}, True),
        ({(0, 1): (5, 1, 0), (1, 0): (2, 4, 0)}, True),
    ],
)
def test_a_place_or_a_run_that_wins_or_ties_always_has_no_finite_rating(results, home) -> None:
    assert ratings(table(3, results), home=home) == Undefined(UNBOUND)


def test_few_comparisons_have_finite_ratings_or_say_why_not() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        counts = rng.multinomial(1, (0.05, 0.92, 0.03), size=(2, 7, 7)) * (rng.random((2, 7, 7)) < 0.4)[..., None]
        counts[:, range(7), range(7)] = 0
        found = ratings(counts, home=bool(rng.integers(2)))
        assert isinstance(found, Undefined) or np.nanmax(np.abs(values(found))) < 20


@pytest.mark.parametrize(("topics", "reason"), [(4, "fewer than 5 topics"), (5, "no variation between topics")])
def test_why_there_is_no_interval(topics, reason) -> None:
    found = rating(table(2, {(0, 1): (2, 0, 1)}, topics))
    assert [(run.low, run.reason) for run in found[0]] == [(None, reason)] * 2
    assert [run.value for run in found[0]] == pytest.approx([np.log(2) / 2, -np.log(2) / 2])


def test_runs_are_told_apart_over_topics_and_not_over_comparisons() -> None:
    counts = np.zeros((10, 2, 2, 3))
    counts[:7, 0, 1, 0] = counts[7:, 0, 1, 2] = 1
    one = rating(counts)
    assert not separated(one[0]).any()
    many = rating(counts * 9)
    # The correction for two parameters hardly counts among many comparisons.
    assert many[0][0].se == pytest.approx(one[0][0].se, rel=0.01)
    counts[:, 0, 1], counts[0, 1, 0, 0] = WON, 1
    assert separated(rating(np.tile(counts, (3, 1, 1, 1)))[0])[0, 1]
