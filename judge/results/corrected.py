"""The leaderboard corrected by gold: each run's mean by the judge, and the mean that gold implies. Pure."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from judge.gold.rows import BY_GRADE
from judge.io.ids import Cluster, natural_key
from judge.records import Criterion, Estimate
from judge.results.gold import GoldGrade, counted_runs, drawn_apart
from judge.results.leaderboard import score_of
from judge.results.rows import RankingChange, RowFlag, Score, estimate_of
from judge.results.turns import RunTurns, run_flags, worst_grade
from judge.stats.correction import FEWEST_OWN, Corrected, correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.ranking import kendall_tau_b, rbo, tau_ap, top_k_overlap
from judge.stats.separation import places
from judge.stats.tables import defined

TOP = (1, 3, 5)


def corrected(
    runs: Sequence[RunTurns],
    criterion: Criterion,
    gold: Mapping[str, GoldGrade],
    *,
    target: Target = "pool",
    families: Mapping[str, str] | None = None,
    judge_families: Collection[str] = (),
    fallback: Literal["family"] | None = None,
    cluster: Cluster = "topic",
) -> tuple[Score, ...]:
    """Correct the mean of each run by gold; best bound first, then runs without a corrected mean by their raw bound.

    Ranks go by the bound, the corrected mean over all turns, where those without a grade count as the worst one
    (`run_turns` has the exceptions). Ties and rank intervals tell two runs apart only where they also differ by
    `RunTurns.without_missing`. Responses that were left out are of the sample if gold was drawn from them too.

    `target`: what the corrected means describe: these responses, or the runs on topics like these. `judge_families`:
    the family of the judge, or those of a jury's members.

    Each score has as `raw` that of the leaderboard. Its counts are the gold grades that people gave its responses.
    `more` has the family; the ends of the bound's interval if each missing turn had its gold grade or, without one, an
    extreme grade of the scale (`bound_low`, `bound_high`); the `method` (`ppi++`, `ppi++ pooled`, `gold only`,
    `family`, `census`, `raw`); λ (`weight`); how many gold grades alone would give an interval this narrow
    (`effective_n`); the mean of judge minus gold on the run (`bias`); and how many topics of equal size its place rests
    on (`topics`).
    """
    families = families or {}
    higher = criterion.scale.polarity == "higher"
    ends = criterion.scale.ends
    worst = worst_grade(criterion.scale)
    counted = counted_runs(runs, gold)
    corrections = correct(_samples(counted, gold, families, cluster), target=target, bounds=ends, fallback=fallback)
    compared = [run.without_missing(gold) for run in counted]
    bounds = [_bounded(run, correction, gold, worst) for run, correction in zip(counted, corrections, strict=True)]
    also = [_bounded(run, correction, gold, worst) for run, correction in zip(compared, corrections, strict=True)]
    run_places = places(bounds, higher_is_better=higher, also=also if compared != counted else None)
    scores = []
    for run, sampled, correction, bound, place in zip(runs, counted, corrections, bounds, run_places, strict=True):
        family = families.get(run.run_id)
        low, high = _bounds(sampled, correction, gold, ends, worst)
        more = {
            "family": family,
            "bound_low": low,
            "bound_high": high,
            "method": correction.method,
            "weight": correction.weight,
            "effective_n": correction.effective_n,
            "bias": correction.bias if run.graded else None,
            "topics": bound.topics,
        }
        scores.append(
            Score(
                run_id=run.run_id,
                criterion=criterion.name,
                mean=_mean(sampled, correction, gold, cluster),
                bound=bound.value,
                place=place,
                counts={"gold": correction.n},
                flags=_flags(run, bound, own_family=family in judge_families),
                more={name: value for name, value in more.items() if value is not None},
                raw=score_of(run, criterion, cluster),
                cluster=cluster,
            )
        )
    return tuple(sorted(scores, key=lambda score: _order(score, higher)))


def change(scores: Sequence[Score], *, higher_is_better: bool) -> RankingChange:
    """Compare the raw order of the runs with the corrected one, both by the bound."""
    sign = 1 if higher_is_better else -1
    pairs: list[tuple[float, float]] = []
    for score in scores:
        if score.bound is not None and score.raw is not None and score.raw.bound is not None:
            pairs.append((sign * score.raw.bound, sign * score.bound))
    raw = [pair[0] for pair in pairs]
    best = [pair[1] for pair in pairs]
    overlaps = {k: defined(top_k_overlap(raw, best, k)) for k in TOP if k < len(pairs)}
    return RankingChange(
        runs=len(pairs),
        tau_b=defined(kendall_tau_b(raw, best)),
        tau_ap=defined(tau_ap(raw, best)),
        rbo=defined(rbo(raw, best)),
        top={k: share for k, share in overlaps.items() if share is not None},
        flips=sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(pairs, 2)),
        pairs=len(pairs) * (len(pairs) - 1) // 2,
    )


def _samples(
    runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], families: Mapping[str, str], cluster: Cluster
) -> list[RunGrades]:
    turns: dict[str, int] = defaultdict(lambda: len(turns))
    topics: dict[str, int] = defaultdict(lambda: len(topics))
    strata: dict[str | None, int] = defaultdict(lambda: len(strata))
    # Strata of the judge's grades have too few labels of a run for a variance each; λ takes what is between them.
    by_response = any((grade.stratum or "").startswith(BY_GRADE) for grade in gold.values())
    drawn_by = "response_id" if by_response else "turn_id"
    samples = []
    for run in runs:
        of_run = []
        for (response, given), topic in zip(run.graded, run.clusters(cluster), strict=True):
            for part in drawn_apart(gold.get(response.response_id), given.grade):
                of_run.append((topics[topic], part.drawn_as or getattr(response, drawn_by), part))
        parts = [part for *_, part in of_run]
        N = len(run.graded)
        drawn = all(part.stratum is not None or not part.known for part in parts)
        codes = [strata[part.stratum] for part in parts] if drawn and not by_response else None
        samples.append(
            RunGrades(
                judged=np.array([part.judged for part in parts], dtype=np.float64),
                gold=np.array([part.grade for part in parts], dtype=np.float64),
                inclusion=np.array([part.probability for part in parts], dtype=np.float64),
                labeled=np.array([part.known and part.labeled for part in parts], dtype=np.bool_),
                topics=np.array([topic for topic, *_ in of_run], dtype=np.int64),
                turns=np.array([turns[name] for _, name, _ in of_run], dtype=np.int64),
                strata=None if codes is None else np.array(codes, dtype=np.int64),
                family=families.get(run.run_id),
                shares=np.array([part.share for part in parts]) / N if len(parts) > N else None,
            )
        )
    return samples


def _bound(run: RunTurns, mean: float, gold: Mapping[str, GoldGrade], worst: int) -> float | None:
    """The mean over all turns, where those without a grade have their gold grade or count as the worst."""
    ids = [response.response_id for response in run.failed]
    whole = {name for name, grade in gold.items() if grade.whole}
    return run.bound(mean, [gold[name].grade if name in gold else worst for name in ids], worst, whole)


def _bounded(run: RunTurns, correction: Corrected, gold: Mapping[str, GoldGrade], worst: int) -> Corrected:
    """The corrected mean as the bound over all turns, which is a linear function of it, with its errors."""
    if correction.value is None:
        return correction
    at_0 = _bound(run, 0.0, gold, worst)
    at_1 = _bound(run, 1.0, gold, worst)
    slope = at_1 - at_0 if at_0 is not None and at_1 is not None else 0.0
    return replace(
        correction,
        value=_bound(run, correction.value, gold, worst),
        se=None if correction.se is None else correction.se * slope,
        influence=None if correction.influence is None else correction.influence * slope,
        scale=correction.scale * slope**2,
    )


def _mean(run: RunTurns, correction: Corrected, gold: Mapping[str, GoldGrade], cluster: Cluster) -> Estimate:
    graded = zip(run.clusters(cluster), run.graded, strict=True)
    labeled = {name for name, grade in gold.items() if grade.labeled}
    topics = {name for name, (unit, _) in graded if unit.response_id in labeled}
    return estimate_of(correction, topics=len(topics))


def _bounds(
    run: RunTurns, correction: Corrected, gold: Mapping[str, GoldGrade], ends: tuple[int, int], worst: int
) -> tuple[float | None, float | None]:
    """The ends of the interval if each response without the judge's grade had its gold grade, else an extreme grade.

    Without an interval, the corrected mean stands for both ends, else the raw mean; None if no grade is missing. A
    topic that an interactive run never reached has the worst grade in both.
    """
    n = len(run.graded)
    mean = correction.value
    turns = run.turns - run.unreached
    if correction.low is None or correction.high is None:
        if run.turns == n:
            return None, None
        if mean is None:
            mean = math.fsum(given.grade for _, given in run.graded) / n if n else 0.0
        interval = mean, mean
    else:
        interval = correction.low, correction.high
    others = [response.response_id for response in (*run.failed, *run.left_out)]
    known = [gold[response_id].grade for response_id in others if response_id in gold]
    left = turns - n - len(known)
    low, high = (
        run.over_topics(math.fsum([n * end, *known, left * extreme]) / turns if turns > n else end, worst)
        for end, extreme in zip(interval, ends, strict=True)
    )
    return low, high


def gold_flags(correction: Corrected) -> set[RowFlag]:
    """What is to be said of a mean by its gold."""
    of_gold: dict[RowFlag, bool] = {
        "UNCORRECTED": correction.value is None,
        "DEGENERATE": correction.degenerate,
        "FEWGOLD": correction.method in {"ppi++", "ppi++ pooled", "gold only"} and correction.drawn < FEWEST_OWN,
        "FAMILY": correction.method == "family",
    }
    return {flag for flag, applies in of_gold.items() if applies}


def _flags(run: RunTurns, correction: Corrected, *, own_family: bool) -> tuple[RowFlag, ...]:
    flags = {*run_flags(run), *gold_flags(correction)}
    if own_family:
        flags.add("SELF")
    return tuple(flag for flag in get_args(RowFlag) if flag in flags)


def _order(score: Score, higher: bool) -> tuple[object, ...]:
    value = score.bound
    if score.mean.value is None and score.raw is not None:
        value = score.raw.bound
    worst_first = math.inf if value is None else -value if higher else value
    return score.mean.value is None, worst_first, natural_key(score.run_id)
