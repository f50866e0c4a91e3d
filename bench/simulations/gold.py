"""How gold was drawn: binary grades, the judges of LLMJudge, and citations."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bench.simulations.figures import GRADES, Finding, Floats, finding, holds
from bench.simulations.runs import covers, drawn, raw_intervals
from judge.ask.criteria import find_criterion
from judge.ask.records import Judgment
from judge.gold.plan import make_plan
from judge.pool.build import Candidate, LengthRule, build_pool, evidence_of
from judge.pool.records import Pool, PooledResponse, PooledRun, RunEntry
from judge.records import Estimate
from judge.results.citations import Measure, boards_of
from judge.results.corrected import corrected
from judge.results.gold import GoldGrade, measured_gold
from judge.results.turns import run_turns
from judge.runs.records import Exclusion, Provenance, TokenCount
from judge.stats.correction import correct
from judge.stats.gold_sample import RunGrades
from judge.stats.means import t_quantile

LLMJUDGE = Path(__file__).resolve().parents[3] / "shared" / "data" / "llmjudge"


def binary(rng: np.random.Generator, N: int = 2000) -> tuple[Floats, Floats]:
    """Human and judge grades (N,): 40 % are 1, and the judge is right about 80 % of either grade."""
    y = rng.random(N) < 0.4
    return y * 1.0, np.where(rng.random(N) < 0.8, y, ~y) * 1.0


def stratified(rng: np.random.Generator, of: Floats, sizes: Sequence[int]) -> NDArray[np.bool_]:
    """A random sample (N,) with sizes[v] of the items whose grade is v."""
    gold = np.zeros(len(of), dtype=bool)
    for value, size in enumerate(sizes):
        gold[rng.choice(np.flatnonzero(of == value), size, replace=False)] = True
    return gold


def one_mean(y: Floats, f: Floats, gold: NDArray[np.bool_], pi: Floats, *, by_label: bool = False) -> Floats:
    """Value, low and high (3,) of `correct` for a single run."""
    items = np.arange(len(y))
    strata = f.astype(np.int64) if by_label else None
    run = RunGrades(f, np.where(gold, y, np.nan), pi, items, items, strata)
    (mean,) = correct([run], target="pool", bounds=(0, 1 if y.max() == 1 else GRADES[-1]))
    return np.array([mean.value, mean.low, mean.high], dtype=np.float64)


def by_label(f: Floats, gold: NDArray[np.bool_]) -> Floats:
    """Share of the items (N,) with the judge's grade that are in the gold."""
    shares = np.bincount(f.astype(int), weights=gold) / np.bincount(f.astype(int))
    return np.asarray(shares[f.astype(int)])


def refuses(y: Floats, f: Floats, gold: NDArray[np.bool_]) -> bool:
    """Whether gold without inclusion probabilities is refused."""
    try:
        one_mean(y, f, gold, np.full(len(y), np.nan))
    except ValueError:
        return True
    return False


def f1(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    hits: dict[str, list[bool]] = {"raw": [], "gold only": [], "corrected": [], "post-stratified": []}
    widths: dict[str, list[float]] = {how: [] for how in hits}
    for _ in range(replicates):
        y, f = binary(rng)
        gold, everywhere = drawn(rng, y.shape, n), np.full(len(y), n / len(y))
        half = t_quantile(0.95, len(f) - 1) * f.std(ddof=1) / math.sqrt(len(f))
        for how, of in {
            "raw": f.mean() + half * np.array([0, -1, 1]),
            "gold only": one_mean(y, np.zeros_like(f), gold, everywhere),
            "corrected": one_mean(y, f, gold, everywhere),
            "post-stratified": one_mean(y, f, gold, by_label(f, gold), by_label=True),
        }.items():
            hits[how].append(bool(covers(of, y.mean())))
            widths[how].append(of[2] - of[1])
    bands = {"corrected": (0.93, 0.97), "post-stratified": (0.93, 0.97)}
    return [
        *(finding("F1", f"random gold, {how}: coverage", hits[how], *bands.get(how, (None, None))) for how in hits),
        *(finding("F1", f"random gold, {how}: width", widths[how]) for how in hits),
    ]


def f2(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    """Four fifths of the gold are from where the judge said 0.

    With a binary judge a tuned weight makes the correction a regression on all that the sample depends on, so it loses
    little without inclusion weights. With a weight of 1 it loses everything.
    """
    weighted, unweighted, difference, refused = [], [], [], []
    for _ in range(replicates):
        y, f = binary(rng)
        gold = stratified(rng, f, (4 * n // 5, n // 5))
        e = (y - f)[gold]
        half = t_quantile(0.95, n - 1) * e.std(ddof=1) / math.sqrt(n)
        difference.append(abs(f.mean() + e.mean() - y.mean()) <= half)
        weighted.append(covers(one_mean(y, f, gold, by_label(f, gold), by_label=True), y.mean()))
        unweighted.append(covers(one_mean(y, f, gold, np.full(len(y), n / len(y))), y.mean()))
        refused.append(refuses(y, f, gold))
    return [
        finding("F2", "oversampled where the judge says 0, weighted: coverage", weighted, low=0.92),
        finding("F2", "the same unweighted: coverage", unweighted),
        finding("F2", "the same unweighted, weight of the judge 1: coverage", difference),
        finding("F2", "the same without inclusion probabilities: refused", refused, low=1.0),
    ]


def f3(replicates: int, rng: np.random.Generator, n: int = 200) -> list[Finding]:
    """Gold at hand, four fifths of it good responses; no weights by the judge's grade can correct that."""
    naive, stratified_after, refused = [], [], []
    for _ in range(replicates):
        y, f = binary(rng)
        gold = stratified(rng, y, (n // 5, 4 * n // 5))
        naive.append(covers(one_mean(y, f, gold, np.full(len(y), n / len(y))), y.mean()))
        stratified_after.append(covers(one_mean(y, f, gold, by_label(f, gold), by_label=True), y.mean()))
        refused.append(refuses(y, f, gold))
    return [
        finding("F3", "gold at hand, taken for random: coverage", naive),
        finding("F3", "gold at hand, post-stratified: coverage", stratified_after),
        finding("F3", "gold at hand, without inclusion probabilities: refused", refused, low=1.0),
    ]


def llmjudge(folder: Path = LLMJUDGE) -> tuple[Floats, dict[str, Floats]]:
    """NIST's grades (N,) and those of every judge (N,) that keeps to the scale."""
    gold = _grades(folder / "llmjudge_test.qrel")
    judges = {path.stem: _grades(path) for path in sorted((folder / "judges").glob("*.txt"))}
    return np.array(list(gold.values()), dtype=np.float64), {
        name: np.array([grades[item] for item in gold], dtype=np.float64)
        for name, grades in judges.items()
        if set(grades.values()) <= set(GRADES)
    }


def _grades(path: Path) -> dict[tuple[str, str], int]:
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {(topic, passage): int(grade) for topic, _, passage, grade in rows}


def real(replicates: int, rng: np.random.Generator, sizes: Sequence[int] = (100, 200)) -> list[Finding]:
    human, judges = llmjudge()
    truth = human.mean()
    held = [bool(covers(raw_intervals(f[None], np.arange(len(f)))[:, 0], truth)) for f in judges.values()]
    findings = [finding("L", f"raw, {len(judges)} judges of LLMJudge: coverage", held)]
    for n in sizes:
        hits, ratios = np.zeros((replicates, len(judges))), []
        for b in range(replicates):
            gold, everywhere = drawn(rng, human.shape, n), np.full(len(human), n / len(human))
            alone = np.ptp(one_mean(human, np.zeros_like(human), gold, everywhere)[1:])
            of = np.array([one_mean(human, f, gold, everywhere) for f in judges.values()]).T
            hits[b] = covers(of, truth)
            ratios.append(((of[2] - of[1]) / alone).mean())
        findings += [
            finding("L", f"corrected, n={n}: mean coverage", hits.mean(axis=1), 0.93, 0.97),
            finding("L", f"corrected, n={n}: least coverage", hits[:, hits.mean(axis=0).argmin()]),
            finding("L", f"corrected, n={n}: width over gold only's", ratios),
        ]
    return findings


OF_GPT = ((559, 1460, 319), (56, 1162, 434), (45, 847, 1860))
"""GPT-5.5's support grades (columns) of 6,742 citations of TREC RAG 2024, and people's (rows): castorini/RAGDoll."""
OF_SKEWED = ((400, 200, 60), (150, 600, 300), (30, 250, 5000))
"""A judge that mostly gives the best grade, and is then right."""
BY_JUDGE_RUNS = 12


def by_judge(replicates: int, rng: np.random.Generator, each: int = 20) -> list[Finding]:
    """Gold drawn by the judge's grade (`judge gold plan --stratify judge`), against responses that are drawn alike."""
    findings = []
    for name, matrix in (("GPT-5.5", OF_GPT), ("skewed", OF_SKEWED)):
        for topics, turns in ((22, 5), (65, 2)):
            left = 1 - each / (topics * turns)
            hits: dict[str, list[float]] = {"alike": [], "by grade": []}
            widths, squares, predicted = ({how: list[float]() for how in hits} for _ in range(3))
            for _ in range(replicates):
                pool, human, judged = _graded_pool(rng, matrix, topics, turns)
                same = np.mean([human[response] == judged[response].grade for response in human])
                runs = run_turns(pool, list(judged.values()), find_criterion("groundedness"))
                truth = {run.run_id: np.mean([human[each.response_id] for each, _ in run.graded]) for run in runs}
                for how in hits:
                    errors = dict(np.ndenumerate(np.array(matrix))) if how == "by grade" else {}
                    plan = make_plan(
                        pool, each * BY_JUDGE_RUNS, int(rng.integers(2**31)), criteria=["groundedness"],
                        judgments=list(judged.values()) if errors else (), errors=errors,
                    )  # fmt: skip
                    gold = {
                        row.response_id: GoldGrade(human[row.response_id], row.inclusion_probability, row.stratum, ())
                        for row in plan.rows
                    }
                    means = corrected(runs, find_criterion("groundedness"), gold)
                    hits[how].append(float(np.mean([holds(of.mean, truth[of.run_id]) for of in means])))
                    wide = [(of.mean.high or 0.0) - (of.mean.low or 0.0) for of in means]
                    widths[how].append(float(np.mean(np.square(wide))))
                    weights = np.array([1 / row.inclusion_probability for row in plan.rows])
                    hit = [human[row.response_id] == judged[row.response_id].grade for row in plan.rows]
                    squares[how].append(float((weights @ hit / weights.sum() - same) ** 2))
                    predicted[how].append(plan.saving or (0.0, 0.0))
            expected = np.mean(predicted["by grade"], axis=0)
            world = f"{name}, {topics} topics"
            saved = left * (1 - np.array(widths["by grade"]) / np.mean(widths["alike"]))
            agreed = left * (1 - np.array(squares["by grade"]) / np.mean(squares["alike"]))
            findings += [
                finding("STR", f"{world}, alike: coverage", hits["alike"]),
                finding("STR", f"{world}, by grade: coverage", hits["by grade"], 0.92, 0.97),
                finding("STR", f"{world}: saving predicted", [expected[0]]),
                finding("STR", f"{world}: saving of width less predicted", saved - expected[0], -0.05, 0.05),
                finding("STR", f"{world}: saving for agreement predicted", [expected[1]]),
                finding("STR", f"{world}: saving for agreement", agreed),
            ]
    return findings


def _graded_pool(
    rng: np.random.Generator, matrix: Sequence[Sequence[int]], topics: int, turns: int
) -> tuple[Pool, dict[str, int], dict[str, Judgment]]:
    """Runs of unlike quality, people's grade of every response, and the judge's, which depends on that alone."""
    counts = np.array(matrix)
    cuts = norm.ppf(np.cumsum(counts.sum(axis=1) / counts.sum())[:-1])
    quality = rng.normal(0, 0.3, (BY_JUDGE_RUNS, 1, 1)) + rng.normal(0, 0.4, (topics, 1))
    human = np.digitize(quality + rng.normal(0, math.sqrt(0.75), (BY_JUDGE_RUNS, topics, turns)), cuts)
    shares = (counts / counts.sum(axis=1, keepdims=True)).cumsum(axis=1)
    judge = (rng.random((*human.shape, 1)) > shares[human]).sum(axis=-1).clip(0, len(counts) - 1)
    responses, grades, judged = [], {}, {}
    for (run, topic, turn), grade in np.ndenumerate(human):
        ids = f"{run}-{topic}-{turn}", f"{topic}_{turn}", str(topic)
        entries = (RunEntry(f"r{run}", 1, "used", "0" * 64),)
        responses.append(PooledResponse(*ids, ids[0], (), TokenCount(1, 1, 1, None), False, entries))
        grades[ids[0]] = int(grade)
        judged[ids[0]] = simulated(ids, "groundedness", int(judge[run, topic, turn]))
    runs = tuple(
        PooledRun(f"r{run}", None, None, "rag", "", True, tuple({response.turn_id: None for response in responses}))
        for run in range(BY_JUDGE_RUNS)
    )
    return Pool(tuple(responses), {}, (), runs=runs), grades, judged


def simulated(ids: tuple[str, str, str], criterion: str, grade: int) -> Judgment:
    return Judgment(
        *ids, criterion, "graded", grade, False, None, None, None, (), "simulated", None, "", "", "label", False, 0
    )


CITED_RUNS, CITED_TOPICS = 20, 60


def cited(replicates: int, rng: np.random.Generator) -> list[Finding]:
    """Measures of citations, corrected by gold of whole turns (`judge gold plan`), against the gold of all."""
    criterion = find_criterion("support")
    pool, truth = _cited_pool(rng)
    guess = {
        name: grade if rng.random() < 0.6 else int(rng.choice(3, p=(0.2, 0.5, 0.3))) for name, grade in truth.items()
    }
    results = [
        simulated((of.response_id, of.turn_id, of.topic_id), "support", guess[of.response_id]) for of in pool.responses
    ]
    runs = {measure: run_turns(pool, results, measure) for measure in boards_of([criterion])}

    def corrected_by(chances: dict[str, float]) -> dict[tuple[str, str], Estimate]:
        gold = {name: GoldGrade(truth[name], pi, "certain" if pi == 1 else "drawn", ()) for name, pi in chances.items()}
        rows = [
            row
            for measure, of in runs.items()
            if isinstance(measure, Measure)
            for row in corrected(of, measure, measured_gold(measure, pool, of, gold))
        ]
        return {(row.criterion, row.run_id): row.mean for row in rows}

    whole = corrected_by(dict.fromkeys(truth, 1.0))
    hits: dict[str, list[float]] = {measure.name: [] for measure in runs}
    errors: dict[str, list[float]] = {measure.name: [] for measure in runs}
    for seed in rng.integers(2**31, size=replicates).tolist():
        plan = make_plan(pool, int(0.3 * len(truth)), seed, criteria=["support"])
        found = corrected_by({row.response_id: row.inclusion_probability for row in plan.rows})
        for name in hits:
            pairs = [(found[key], whole[key].value or 0.0) for key in whole if key[0] == name]
            hits[name].append(float(np.mean([holds(estimate, value) for estimate, value in pairs])))
            errors[name].append(float(np.mean([(estimate.value or 0.0) - value for estimate, value in pairs])))
    return [
        *(finding("CITE", f"{name}: coverage", of, 0.93, 0.98) for name, of in hits.items()),
        *(finding("CITE", f"{name}: bias", of, -0.005, 0.005) for name, of in errors.items()),
    ]


def _cited_pool(rng: np.random.Generator) -> tuple[Pool, dict[str, int]]:
    """Runs of unlike quality over one-turn topics, some of them unanswered, and the grade of every citation."""
    candidates, uncited, grades = [], [], {}
    for run in range(CITED_RUNS):
        quality = rng.beta(4, 3)
        for topic in range(CITED_TOPICS):
            full = float(np.clip(quality + rng.normal(0, 0.15), 0.02, 0.98))
            for sentence in range(1, rng.integers(3, 9) if rng.random() < 0.97 else 1):
                ids = f"r{run}", f"{topic}_1", sentence
                cites = int(rng.choice((0, 1, 1, 2)))
                if not cites:
                    uncited.append(Exclusion(*ids, "uncited_sentence", ""))
                for place in range(1, cites + 1):
                    text = " ".join(map(str, (*ids, place)))
                    passage = Provenance(f"p{place}", None, True, f"passage {place}")
                    candidates.append(Candidate(*ids, text, (passage,), "citations", place))
                    grades[text] = int(rng.choice(3, p=((1 - full) * 0.6, (1 - full) * 0.4, full)))
    length = LengthRule(lambda text: TokenCount(1, 1, 1, None))
    pool = build_pool(candidates, evidence_of(), length, excluded=uncited, unit="citation")
    turns = tuple(f"{topic}_1" for topic in range(CITED_TOPICS))
    runs = tuple(PooledRun(f"r{run}", None, None, "rag", "", True, turns) for run in range(CITED_RUNS))
    pool = msgspec.structs.replace(pool, runs=runs)
    return pool, {response.response_id: grades[response.text] for response in pool.responses}
