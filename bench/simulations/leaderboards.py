"""What leaderboards say of runs, in worlds with a known truth: do intervals cover, and who is told apart?

G10, G20, G40 are worlds of 24 runs with so many gold grades each, four of them preferred by the judge (`world`). E are
equal runs, told apart by the corrected leaderboard where every response has gold and the runs are a sample of topics; S
is the same where a part has gold, N where the noise of the runs differs, U where topics are of unequal size. DIFF are
equal runs in `differences.tsv`, FAIL where one of them fails on a few whole topics, MISS where grades of one of them
are missing through others; P is its power.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from bench.simulations.figures import CUTS, GRADES, Finding, Floats, finding, holds
from bench.simulations.runs import covers, drawn, world
from judge.results.tables import is_apart, is_different, paired
from judge.stats.correction import Corrected, correct
from judge.stats.gold_sample import RunGrades
from judge.stats.run_differences import run_differences
from judge.stats.separation import places, separated

TURNS = 7
COVERAGE = {10: (0.95, 0.97), 20: (0.94, 0.97), 40: (0.935, 0.97)}
APART = {10: 0.06, 20: 0.17, 40: 0.36}
"""The least share of pairs told apart, where the truth has 24 different runs."""
EQUAL_RUNS, TOPICS = (5, 10, 24), (8, 10, 25)


def graded(judge: Floats, human: Floats, gold: np.ndarray, topics: np.ndarray) -> list[RunGrades]:
    """Runs with a random part of gold, as `correct` takes them."""
    pi, turns = np.full(gold.shape[1], gold[0].mean()), np.arange(gold.shape[1])
    return [RunGrades(f, np.where(g, y, np.nan), pi, topics, turns) for f, y, g in zip(judge, human, gold, strict=True)]


def with_gold(g: int, replicates: int, rng: np.random.Generator) -> list[Finding]:
    """Coverage of corrected means, and the pairs that they tell apart, with g gold grades a run."""
    covered, preferred, apart, false = [], [], [], []
    for _ in range(replicates):
        here = world(rng)
        truth = here.human.mean(axis=1)
        gold = drawn(rng, here.human.shape, g)
        runs = correct(graded(here.judge, here.human, gold, here.topics), target="pool", bounds=(GRADES[0], GRADES[-1]))
        hit = covers(np.array([(run.value, run.low, run.high) for run in runs], dtype=np.float64).T, truth)
        covered.append(hit.mean())
        preferred.append(hit[here.preferred].mean())
        pairs = np.triu(separated(runs), 1)
        apart.append(pairs.sum() / (len(runs) * (len(runs) - 1) / 2))
        false.append(any(_wrong(runs, truth, int(a), int(b)) for a, b in zip(*np.nonzero(pairs), strict=True)))
    name = f"G{g}"
    return [
        finding(name, f"corrected, {g} a run: coverage", covered, *COVERAGE.get(g, (None, None))),
        finding(name, f"corrected, {g} a run: coverage of preferred runs", preferred, 0.92),
        finding(name, f"pairs told apart, {g} a run", apart, APART.get(g)),
        finding(name, f"some pair told apart the wrong way round, {g} a run", false, high=0.05),
    ]


def _wrong(runs: Sequence[Corrected], truth: Floats, a: int, b: int) -> bool:
    values = runs[a].value, runs[b].value
    return values[0] is not None and values[1] is not None and (values[0] - values[1]) * (truth[a] - truth[b]) <= 0


def equal_runs(rng: np.random.Generator, R: int, T: int, spread: float = 0.0) -> tuple[Floats, np.ndarray]:
    """Grades (R x N) of runs with one expected grade, and topics (N,); noise differs by a factor of exp(spread z)."""
    topics = np.repeat(np.arange(T), TURNS)
    noise = 0.5 * np.exp(rng.normal(0, spread, R))[:, None] if spread else np.full((R, 1), 0.7)
    own = noise * (0.5 * rng.normal(size=(R, T))[:, topics] + rng.normal(size=(R, T * TURNS)))
    z = rng.normal(0, 0.4, T)[topics] + rng.normal(0, 0.4, T * TURNS) + own
    # Cut to grades, runs of different noise would have different means.
    return (z if spread else np.digitize(z, CUTS) * 1.0), topics


def _told_apart(
    id: str,
    replicates: int,
    rng: np.random.Generator,
    runs: Sequence[int],
    topics: Sequence[int],
    *,
    spread: float = 0.0,
    share: float = 1.0,
    high: float | None = 0.07,
) -> list[Finding]:
    """How often the corrected leaderboard tells some of R equal runs apart, as a sample of T topics."""
    findings = []
    for T in topics:
        for R in runs:
            false = []
            for _ in range(replicates):
                human, of = equal_runs(rng, R, T, spread)
                seen = np.clip(human + rng.integers(-1, 2, human.shape), GRADES[0], GRADES[-1])
                if share == 1.0:
                    gold = np.ones(human.shape, dtype=bool)
                else:
                    gold = drawn(rng, (R, T, TURNS), round(share * TURNS)).reshape(R, -1)
                done = correct(graded(seen * 1.0, human, gold, of), target="topics", bounds=(-9, 9))
                false.append(bool(separated(done).any()))
            findings.append(finding(id, f"{R} equal runs, {T} topics: some pair told apart", false, high=high))
    return findings


def e(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = EQUAL_RUNS, topics: Sequence[int] = TOPICS
) -> list[Finding]:
    return _told_apart("E", replicates, rng, runs, topics)


def s(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = EQUAL_RUNS, topics: Sequence[int] = TOPICS
) -> list[Finding]:
    return _told_apart("S", replicates, rng, runs, topics, share=3 / TURNS)


def n(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = EQUAL_RUNS, topics: Sequence[int] = TOPICS
) -> list[Finding]:
    return _told_apart("N", replicates, rng, runs, topics, spread=0.5, high=0.1)


UNEQUAL = {
    "22 equal topics": [7] * 22,
    "13 topics of 6 to 20 turns": [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20],
    "10 topics of 2 to 24 turns": [2, 3, 4, 5, 6, 8, 10, 14, 19, 24],
    "22 topics, one with 40 % of the turns": [100, *[7] * 21],
}
"""The turns of each topic; these count as 22, 11.7, 6.5 and 5.5 topics of equal size."""


def u(replicates: int, rng: np.random.Generator, runs: Sequence[int] = (5, 20)) -> list[Finding]:
    """Equal runs on topics of unequal size, 30 % of the turns with gold, by `--target topics`."""
    findings = []
    for (what, sizes), R in product(UNEQUAL.items(), runs):
        of, noise = np.repeat(np.arange(len(sizes)), sizes), 0.7
        covered, false = [], []
        for _ in range(replicates):
            own = noise * (0.5 * rng.normal(size=(R, len(sizes)))[:, of] + rng.normal(size=(R, len(of))))
            human = rng.normal(0, 0.4, len(sizes))[of] + rng.normal(0, 0.4, len(of)) + own
            judge = human + rng.normal(0, 0.5, human.shape)
            gold = np.zeros(human.shape, dtype=bool)
            gold[:, rng.permutation(len(of))[: round(0.3 * len(of))]] = True
            done = correct(graded(judge, human, gold, of), target="topics", bounds=(-99, 99))
            letters = {place.letters for place in places(done, higher_is_better=True) if place}
            false.append(len(letters) > 1)
            covered.append(np.mean([run.low <= 0 <= run.high for run in done if run.low is not None]))
        findings += [
            finding("U", f"{R} equal runs, {what}: coverage", covered, 0.9),
            finding("U", f"{R} equal runs, {what}: some pair told apart", false, high=0.1),
        ]
    return findings


def d(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = EQUAL_RUNS, topics: Sequence[int] = TOPICS
) -> list[Finding]:
    findings = []
    for T in topics:
        for R in runs:
            false = []
            for _ in range(replicates):
                grades, of = equal_runs(rng, R, T)
                pairs = run_differences(grades, [str(topic) for topic in of], rng, flips=1000)
                false.append(any(pair.p_adjusted is not None and pair.p_adjusted <= 0.05 for pair in pairs))
            findings.append(finding("DIFF", f"{R} equal runs, {T} topics: some difference", false, high=0.07))
    return findings


FAILURES = ((0.15, 2.0), (0.1, 2.0), (0.15, 1.0))
"""The share of topics that a run fails on, and by how much; it is better on the others, so that its mean is equal."""


def fail(replicates: int, rng: np.random.Generator, topics: Sequence[int] = (8, 10, 15, 25, 50)) -> list[Finding]:
    """Some difference among 5 runs of equal mean, and coverage of the four that concern the one that fails.

    There is a band from 25 topics on. Of fewer, a sample without any failure is too frequent for every method.
    """
    figures = []
    for (share, by), sd, T in product(FAILURES, (0.15, 0.25), topics):
        false, covered = [], []
        for _ in range(replicates):
            grades = rng.normal(0, sd, (5, T))
            grades[0] += by * (share - (rng.random(T) < share))
            pairs = run_differences(grades, [str(topic) for topic in range(T)], rng, flips=1000)
            false.append(any((pair.p_adjusted or 0.0) <= 0.05 for pair in pairs))
            covered.append(np.mean([holds(pair.difference, 0.0) for pair in pairs[:4]]))
        what = f"{share:.0%} by {by:g}, sd {sd:g}, {T} topics"
        figures += [
            finding("FAIL", f"{what}: some difference", false, high=0.09 if T >= 25 else None),
            finding("FAIL", f"{what}: coverage", covered, 0.92 if T >= 25 else None),
        ]
    return figures


MISSING = 0.4
"""The share of turns on which a run has no grade, since the collection's file lacks a text."""


def miss(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = EQUAL_RUNS, topics: Sequence[int] = TOPICS
) -> list[Finding]:
    """Some pair of equal runs told apart, where one run has no grade on MISSING of the turns.

    There is no band for the worst grade in place of each missing one, which tells that run from the others by design.
    """
    figures = []
    for T in topics:
        for R in runs:
            at_worst, graded, told = [], [], []
            for _ in range(replicates):
                grades, of = equal_runs(rng, R, T)
                turns = [f"{topic}_{turn % TURNS + 1}" for turn, topic in enumerate(of.tolist())]
                worst = {f"r{run}": dict(zip(turns, values, strict=True)) for run, values in enumerate(grades.tolist())}
                known = {run_id: dict(values) for run_id, values in worst.items()}
                for turn_id in rng.choice(turns, round(MISSING * len(turns)), replace=False).tolist():
                    worst["r0"][turn_id] = GRADES[0]
                    del known["r0"][turn_id]
                pairs = paired("c", known, "topic", rng, at_worst=worst, flips=1000)
                at_worst.append(any(is_different(pair.at_worst) for pair in pairs))
                graded.append(any(is_different(pair) for pair in pairs))
                told.append(any(is_apart(pair) for pair in pairs))
            what = f"{R} equal runs, {T} topics, one lacks {MISSING:.0%}"
            figures += [
                finding("MISS", f"{what}: at worst", at_worst),
                finding("MISS", f"{what}: on what is graded", graded, high=0.07),
                finding("MISS", f"{what}: told apart", told, high=0.07),
            ]
    return figures


def p(replicates: int, rng: np.random.Generator, T: int = 25) -> list[Finding]:
    """Of 24 runs that all differ, the share of pairs with an adjusted p of .05 or less, and mistakes among them."""
    apart, wrong = [], []
    for _ in range(replicates):
        here = world(rng, T=T)
        pairs = run_differences(here.human, [str(topic) for topic in here.topics], rng, flips=1000)
        told = [pair for pair in pairs if pair.p_adjusted is not None and pair.p_adjusted <= 0.05]
        apart.append(len(told) / len(pairs))
        signs = [(pair.difference.value or 0.0) * (here.truth[pair.a] - here.truth[pair.b]) for pair in told]
        wrong.append(any(sign < 0 for sign in signs))
    return [
        finding("P", f"24 runs, {T} topics: pairs with a difference", apart, low=0.4),
        finding("P", f"24 runs, {T} topics: some difference the wrong way round", wrong, high=0.05),
    ]
