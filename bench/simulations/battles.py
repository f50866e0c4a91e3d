"""Runs that a judge compares in pairs, in both orders: do the intervals of their ratings cover?

BT are worlds of 10 runs, each better or worse by topic, that a judge with a taste for the first place compares. Of each
topic `pairs` pairs are drawn; verdicts that change with the order are missing. The truth is what infinitely many topics
would give. BTE are equal runs: how often are some told apart? In BTM and BTN, the same worlds, half of the pairs are
drawn first, and the rest from runs that these do not tell apart. BTU are equal runs on topics of unequal size. In BTW
one run is far better, or worse, than all others, or two are. Of the worlds in which a run won or lost everything: do
all ranks lie in their intervals? BTL looks again and again, each time with more pairs of runs that are not told apart:
how often does any look tell equal runs apart? In BTG, people compare all pairs of turns drawn at
random, and correct the win rates of a judge that errs by run; in BTP, single pairs, drawn alike or by the judge's
verdict (`judge gold plan --stratify judge`), which may save labels.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.simulations.figures import Finding, Floats, finding, holds
from bench.simulations.gold import simulated
from bench.simulations.leaderboards import UNEQUAL
from judge.ask.criteria import find_criterion
from judge.ask.records import Judgment
from judge.gold.plan import make_plan
from judge.pool.pairs import one_each
from judge.pool.records import Pool, PooledResponse, PooledRun, RunEntry
from judge.results.citations import boards_of
from judge.results.corrected import corrected
from judge.results.gold import GoldGrade, measured_gold
from judge.results.pairs import agreed
from judge.results.rows import Score
from judge.results.turns import run_turns
from judge.runs.records import TokenCount
from judge.stats.correction import correct
from judge.stats.gold_sample import RunGrades
from judge.stats.preference import LOST, WON, Ratings, rating_places, ratings
from judge.stats.separation import places, separated
from judge.stats.tables import Undefined

OWN, HOME, TIE = 0.8, 0.5, 0.6
"""How much a run's strength varies between topics (its standard deviation), and h and ν of the judge."""
TOPICS, PAIRS = (22, 65), (15, 45)


def verdicts(z: Floats) -> Floats:
    """How probable it is that the first is better, that they tie and that the second is (... x 3)."""
    parts = np.stack([np.exp(z / 2), np.full(z.shape, TIE), np.exp(-z / 2)], axis=-1)
    return np.asarray(parts / parts.sum(axis=-1, keepdims=True))


def both_orders(z: Floats) -> Floats:
    """The same of both orders together, for a pair with this difference of strengths."""
    return verdicts(z + HOME) * verdicts(HOME - z)[..., ::-1]


def truth(strengths: Floats) -> Floats:
    """λ of the runs (R,) over all topics that there could be, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    differences = strengths[:, None] - strengths
    z = differences[..., None] + 2**0.5 * OWN * nodes
    expected = np.einsum("ijnk,n->ijk", both_orders(z), weights)
    found = ratings(np.triu(expected.transpose(2, 0, 1), 1).transpose(1, 2, 0)[None])
    if isinstance(found, Undefined):
        raise ValueError(found.reason)
    return np.array([run.value for run in found[0]], dtype=np.float64)


def compared(strengths: Floats, T: int, pairs: int, rng: np.random.Generator, spread: float = OWN) -> Floats:
    """Counts (T x R x R x 3) of the verdicts that do not change with the order."""
    R = len(strengths)
    i, j = np.triu_indices(R, 1)
    counts = np.zeros((T, R, R, 3))
    for t in range(T):
        some = rng.permutation(len(i))[:pairs]
        here = strengths + rng.normal(0, spread, R)
        z = (here[i] - here[j])[some]
        one, other = (rng.random((len(z), 1)) > verdicts(of).cumsum(axis=1) for of in (z + HOME, HOME - z))
        said, again = one.sum(axis=1), 2 - other.sum(axis=1)
        same = said == again
        counts[t, i[some][same], j[some][same], said[same]] = 1
    return counts


def in_two_stages(strengths: Floats, T: int, pairs: int, rng: np.random.Generator) -> Floats:
    """The counts of `pairs` pairs of each topic: half of all, then half of runs that are not told apart."""
    R = len(strengths)
    counts, i, j = compared(strengths, T, R * R, rng), *np.triu_indices(R, 1)
    chance = rng.random((T, len(i)))
    taken = chance.argsort(axis=1).argsort(axis=1) < pairs // 2
    kept = np.zeros((T, R, R, 1))
    kept[:, i, j, 0] = taken
    found = ratings(counts * kept)
    apart = np.zeros((R, R), dtype=bool) if isinstance(found, Undefined) else told_apart(found)
    left = np.where(taken | apart[i, j], np.inf, chance)
    kept[:, i, j, 0] += (left.argsort(axis=1).argsort(axis=1) < pairs - pairs // 2) & np.isfinite(left)
    return counts * kept


def told_apart(found: Ratings) -> NDArray[np.bool_]:
    """The pairs of rated runs (R x R) that are told apart."""
    known = np.array([run.value is not None for run in found[0]])
    apart = np.zeros((len(known), len(known)), dtype=bool)
    apart[np.ix_(known, known)] = separated([run for run in found[0] if run.value is not None])
    return apart


Drawn = Callable[[Floats, int, int, np.random.Generator], Floats]


def bt(
    replicates: int, rng: np.random.Generator, topics: Sequence[int] = TOPICS, drawn: Drawn = compared, name: str = "BT"
) -> list[Finding]:
    figures = []
    for T in topics:
        for pairs in PAIRS:
            covered, rated = [], []
            for _ in range(replicates):
                strengths = rng.normal(0, 0.6, 10)
                found, right = ratings(drawn(strengths, T, pairs, rng)), truth(strengths)
                if isinstance(found, Undefined):
                    rated.append(0.0)
                    continue
                known = [
                    (run.low, run.high, lam) for run, lam in zip(found[0], right, strict=True) if run.low is not None
                ]
                rated.append(len(known) / 10)
                covered.append(np.mean([low <= lam <= high for low, high, lam in known]))
            what = f"10 runs, {T} topics, {pairs} pairs each"
            figures += [
                finding(name, f"{what}: coverage of ratings", covered, 0.92, 0.97),
                finding(name, f"{what}: runs with an interval", rated, 0.9),
            ]
    return figures


def bte(
    replicates: int, rng: np.random.Generator, runs: Sequence[int] = (5, 24), drawn: Drawn = compared, name: str = "BTE"
) -> list[Finding]:
    figures = []
    for T in TOPICS:
        for R in runs:
            false = []
            for _ in range(replicates):
                found = ratings(drawn(np.zeros(R), T, 3 * R, rng))
                false.append(not isinstance(found, Undefined) and bool(separated(found[0]).any()))
            figures.append(finding(name, f"{R} equal runs, {T} topics: some pair told apart", false, high=0.1))
    return figures


def btu(replicates: int, rng: np.random.Generator, runs: Sequence[int] = (5, 20)) -> list[Finding]:
    figures = []
    for what, sizes in UNEQUAL.items():
        for R in runs:
            false = []
            for _ in range(replicates):
                counts = np.zeros((len(sizes), R, R, 3))
                for t, turns in enumerate(sizes):
                    own = rng.normal(0, OWN, R)
                    counts[t] = sum(compared(own, 1, 3, rng, spread=0.0)[0] for _ in range(turns))
                found = ratings(counts)
                if isinstance(found, Undefined):
                    continue
                letters = {place.letters for place in places(found[0], higher_is_better=True) if place}
                false.append(len(letters) > 1)
            figures.append(finding("BTU", f"{R} equal runs, {what}: some pair told apart", false, high=0.12))
    return figures


FAR = {
    "one far better": (4.0, 0.8, 0.3, 0.0, -0.5),
    "one far worse": (-4.0, 0.8, 0.3, 0.0, -0.5),
    "two far better and equal": (3.0, 3.0, 0.4, 0.0, -0.4),
}


def btw(replicates: int, rng: np.random.Generator, topics: int = 20) -> list[Finding]:
    figures = []
    for what, strengths in FAR.items():
        of = np.array(strengths)
        # Equal runs share their ranks, all of which are to lie in the interval.
        best, worst = 1 + (of > of[:, None]).sum(axis=1), len(of) - (of < of[:, None]).sum(axis=1)
        right, held, width = [], [], []
        for _ in range(replicates):
            counts = compared(of, topics, 5, rng)
            found = ratings(counts)
            if isinstance(found, Undefined) or {run.reason for run in found[0]}.isdisjoint({WON, LOST}):
                continue
            ranks = [
                (place.rank, place.low, place.high) if place and place.low else (0, 1, len(of))
                for place in rating_places(found, counts)
            ]
            rank, low, high = np.array(ranks, dtype=np.float64).T
            right.append(np.mean((best <= rank) & (rank <= worst)))
            held.append(bool(((low <= best) & (worst <= high)).all()))
            width.append(np.mean(high - low))
        figures += [
            finding("BTW", f"{what}, {topics} topics: ranks that are right", right),
            finding("BTW", f"{what}, {topics} topics: all ranks in their intervals", held, 0.93),
            finding("BTW", f"{what}, {topics} topics: ranks that a run may have more than one", width),
        ]
    return figures


def btl(replicates: int, rng: np.random.Generator, runs: Sequence[int] = (5, 10), looks: int = 8) -> list[Finding]:
    figures = []
    for R in runs:
        some: dict[int, list[float]] = {1: [], 2: [], 4: [], looks: []}
        for _ in range(replicates):
            counts = compared(np.zeros(R), 22, R * R, rng)
            i, j = np.triu_indices(R, 1)
            left, kept = rng.random((22, len(i))), np.zeros((22, R, R, 1))
            apart, ever = np.zeros((R, R), dtype=bool), np.zeros(looks + 1, dtype=bool)
            first = len(i) // 3
            more = (len(i) - first) // (looks - 1)
            for look in range(1, looks + 1):
                left[:, apart[i, j]] = np.inf
                taken = (left.argsort(axis=1).argsort(axis=1) < (more if look > 1 else first)) & np.isfinite(left)
                kept[:, i, j, 0] += taken
                left[taken] = np.inf
                found = ratings(counts * kept)
                apart = apart if isinstance(found, Undefined) else told_apart(found)
                ever[look:] |= apart.any()
            for number, of in some.items():
                of.append(bool(ever[number]))
        figures += [
            finding(
                "BTL",
                f"{R} equal runs, {number} looks: some pair told apart at some look",
                of,
                high=0.05 + 0.025 * number,
            )
            for number, of in some.items()
        ]
    return figures


def win_rates(counts: Floats) -> Floats:
    """The share of its decided pairs that each run won in each topic (R x T), a tie being half a win; nan without."""
    wins = counts @ np.array([1, 0.5, 0])
    won = wins.sum(axis=2) + (counts.sum(axis=3) - wins).sum(axis=1)
    decided = counts.sum(axis=(2, 3)) + counts.sum(axis=(1, 3))
    return np.asarray(np.where(decided > 0, won / np.maximum(decided, 1), np.nan).T)


def btg(replicates: int, rng: np.random.Generator, topics: Sequence[int] = TOPICS) -> list[Finding]:
    figures = []
    for T in topics:
        for share in (0.3, 0.5):
            covered, raw = [], []
            drawn, R = round(share * T), 10
            for _ in range(replicates):
                strengths, favor = rng.normal(0, 0.6, R), rng.normal(0, 0.5, R)
                own = rng.normal(0, OWN, (T, R))
                judge, people = (
                    np.concatenate([compared(of, 1, R * R, rng, spread=0.0) for of in strengths + own + more])
                    for more in (favor, 0 * favor)
                )
                f, y, chosen = win_rates(judge), win_rates(people), rng.permutation(T)[:drawn]
                y = np.where(np.isnan(y), 0.5, y)
                samples = []
                for r in range(R):
                    known = np.flatnonzero(~np.isnan(f[r]))
                    gold = np.where(np.isin(known, chosen), y[r, known], np.nan)
                    samples.append(RunGrades(f[r, known], gold, np.full(len(known), drawn / T), known, known))
                found = correct(samples, target="pool", bounds=(0, 1))
                truths = [float(y[r, sample.topics].mean()) for r, sample in enumerate(samples)]
                known_runs = [(run, right) for run, right in zip(found, truths, strict=True) if run.low is not None]
                covered.append(np.mean([run.low <= right <= run.high for run, right in known_runs]))
                raw.append(
                    np.mean([abs(sample.judged.mean() - right) for sample, right in zip(samples, truths, strict=True)])
                )
            what = f"10 runs, {T} topics, gold of {drawn}"
            figures += [
                finding("BTG", f"{what}: coverage of corrected win rates", covered, 0.92, 0.97),
                finding("BTG", f"{what}: mean error of the judge's win rates", raw),
            ]
    return figures


def btp(replicates: int, rng: np.random.Generator, topics: Sequence[int] = TOPICS, R: int = 8) -> list[Finding]:
    preference = find_criterion("preference")
    (measure,) = boards_of([preference])

    def by_gold(gold: dict[str, GoldGrade]) -> tuple[Score, ...]:
        return corrected(runs, measure, measured_gold(measure, pool, runs, gold, verdicts))

    figures = []
    for T in topics:
        n = 5 * T
        hits: dict[str, list[float]] = {"alike": [], "by verdict": []}
        errors, widths = ({how: list[float]() for how in hits} for _ in range(2))
        predicted = []
        for _ in range(replicates):
            pool, results, said = _compared_pool(rng, R, T)
            verdicts, runs = agreed(pool, results, preference), run_turns(pool, results, measure)
            people = one_each(pool, 1)
            whole = {of.response_id: GoldGrade(said[of.response_id], 1.0, "certain", ()) for of in people.responses}
            truth = {row.run_id: row.mean.value or 0.0 for row in by_gold(whole)}
            counts = Counter((said[each.response_id], each.grade) for each in verdicts)
            for how in hits:
                by_verdict = how == "by verdict"
                plan = make_plan(
                    people, n, int(rng.integers(2**31)), criteria=["preference"],
                    judgments=verdicts if by_verdict else (), errors=counts if by_verdict else {},
                )  # fmt: skip
                gold = {
                    row.response_id: GoldGrade(said[row.response_id], row.inclusion_probability, row.stratum, ())
                    for row in plan.rows
                }
                rows = by_gold(gold)
                hits[how].append(float(np.mean([holds(row.mean, truth[row.run_id]) for row in rows])))
                off = [(row.mean.value or 0.0) - truth[row.run_id] for row in rows]
                errors[how].append(float(np.mean(off)))
                wide = [(row.mean.high or 0.0) - (row.mean.low or 0.0) for row in rows]
                widths[how].append(float(np.mean(np.square(wide))))
            predicted.append((plan.saving or (0.0, 0.0))[0])
        left = 1 - 2 * n / (T * R * (R - 1))
        saved = left * (1 - np.array(widths["by verdict"]) / np.mean(widths["alike"])) - np.mean(predicted)
        what = f"{R} runs, {T} topics, gold of {n} pairs"
        figures += [
            *(finding("BTP", f"{what}, {how}: coverage", hits[how], 0.92, 0.97) for how in hits),
            *(finding("BTP", f"{what}, {how}: bias", errors[how], -0.005, 0.005) for how in hits),
            finding("BTP", f"{what}: saving predicted", predicted),
            finding("BTP", f"{what}: saving of width less predicted", saved, -0.05, 0.05),
        ]
    return figures


def _compared_pool(rng: np.random.Generator, R: int, T: int) -> tuple[Pool, list[Judgment], dict[str, int]]:
    """Runs, better or worse by topic, all pairs in both orders, a judge's grades of them, and people's.

    The judge errs by run, and sees what makes a pair unlike its runs as people do.
    """
    own = rng.normal(0, 0.6, R) + rng.normal(0, OWN, (T, R))
    i, j = np.triu_indices(R, 1)
    pair = rng.normal(0, 1, (T, len(i)))
    seen, real = (2 * ((of[:, i] - of[:, j]) + pair) for of in (own + rng.normal(0, 0.5, R), own))
    first, second, human = (
        (rng.random((*z.shape, 1)) > verdicts(z).cumsum(axis=-1)).sum(axis=-1) for z in (seen + HOME, HOME - seen, real)
    )
    responses, results, said = [], [], dict[str, int]()
    for (t, k), of_people in np.ndenumerate(2 - human):
        for place, grade in enumerate((2 - first[t, k], 2 - second[t, k])):
            ids = f"{t}-{k}-{place}", f"{t}_1", str(t)
            names = [f"r{run}" for run in ((i[k], j[k]), (j[k], i[k]))[place]]
            entries = tuple(RunEntry(name, rank, "used", "0" * 64) for rank, name in enumerate(names, 1))
            texts = f"{t} {names[0]}", f"{t} {names[1]}"
            about = (), TokenCount(1, 1, 1, None), False, entries, "pair"
            responses.append(PooledResponse(*ids, texts[0], *about, texts[1]))
            results.append(simulated(ids, "preference", int(grade)))
            said[ids[0]] = int(2 - of_people if place else of_people)
    turns = tuple(f"{t}_1" for t in range(T))
    runs = tuple(PooledRun(f"r{run}", None, None, "rag", "", True, turns) for run in range(R))
    return Pool(tuple(responses), {}, (), runs=runs), results, said
