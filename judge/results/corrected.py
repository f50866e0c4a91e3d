"""The leaderboard corrected by gold: each run's mean by the judge, and the mean that gold implies. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from judge.ask.records import Failure, Judgment
from judge.errors import InputError
from judge.gold import GoldByResponse
from judge.pool.records import Pool
from judge.records import Criterion, Estimate
from judge.results.graded import GoldGrade, GradedRun, check_inclusion, gold_grades, graded_runs, one_part
from judge.results.rows import CorrectedRow, RankingChange, RowFlag
from judge.results.turns import HARNESS, RunTurns, worst_grade
from judge.stats.correction import FEWEST_OWN, Corrected, correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.means import mean_interval
from judge.stats.ranking import kendall_tau_b, rbo, tau_ap, top_k_overlap
from judge.stats.separation import Place, places
from judge.stats.tables import Undefined
from judge.text.ids import Cluster, natural_key

TOP = (1, 3, 5)
_PLAUSIBLE = 1.5
"""Factor by which the number of responses that gold stands for may differ from their real number."""


def corrected(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criterion: Criterion,
    matched_gold: GoldByResponse,
    *,
    target: Target = "pool",
    families: Mapping[str, str] | None = None,
    judge_families: Collection[str] = (),
    fallback: Literal["family"] | None = None,
    expected: Mapping[str, Collection[str]] | None = None,
    cluster: Cluster = "topic",
    name: str = "gold",
) -> tuple[CorrectedRow, ...]:
    """Correct the mean of each run by gold; best bound first, then runs without a corrected mean by their raw bound.

    Ranks go by the bound, the corrected mean over all turns, where those without a grade count as the worst one
    (`run_turns` has the exceptions); so do ties and rank intervals.

    Args:
        pool: The responses, and those that were excluded.
        results: A judgment or a failure of each response that was asked about.
        criterion: The prompt whose judgments count.
        matched_gold: Gold by response and criterion.
        target: What the corrected means describe: these responses, or the runs on topics like these.
        families: Run to its family of models.
        judge_families: The family of the judge, or those of a jury's members.
        fallback: What to do about runs with fewer than 3 gold grades.
        expected: As for `leaderboard`.
        cluster: What the intervals are over, and the unit of ranks and ties.
        name: The gold's name, for messages.

    Raises:
        InputError: Gold is off the scale, or inclusion probabilities are unknown or contradictory; every row is listed.
            Or the gold is one part of a split and lacks topics of the pool.
    """
    families = families or {}
    gold = gold_grades(matched_gold, criterion, name)
    entries = graded_runs(pool, results, criterion, expected, cluster)
    check_inclusion(entries, gold, name)
    if target == "pool" and (part := one_part(entries, gold)) and part[1]:
        raise InputError(
            f"{name}: {part[0]}, so corrected means of all responses would be a guess: give both parts of the split "
            "(the test part with --test), or --target topics"
        )
    levels = [level.grade for level in criterion.scale.levels]
    bounds = min(levels), max(levels)
    higher = criterion.scale.polarity == "higher"
    corrections = correct(_samples(entries, gold, families), target=target, bounds=bounds, fallback=fallback)
    worst = worst_grade(criterion.scale)
    bounded = [_bounded(entry, run, gold, worst) for entry, run in zip(entries, corrections, strict=True)]
    topics = [_topics(entry, gold, target) for entry in entries]
    run_places = places(bounded, topics, higher_is_better=higher)
    rows = [
        _row(entry, correction, bound, place, criterion, gold, families.get(entry.run_id), judge_families)
        for entry, correction, bound, place in zip(entries, corrections, bounded, run_places, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: _order(row, higher)))


def cautions(
    pool: Pool, results: Sequence[Judgment | Failure], criterion: Criterion, matched_gold: GoldByResponse
) -> tuple[str, ...]:
    """What a reader must know about this gold before any number.

    Args:
        pool: As for `corrected`.
        results: As for `corrected`.
        criterion: As for `corrected`.
        matched_gold: As for `corrected`.
    """
    gold = gold_grades(matched_gold, criterion, "gold")
    entries = graded_runs(pool, results, criterion, None)
    used = {response.response_id for entry in entries for response, _ in entry.judged} & gold.keys()
    rows = [row for response_id in used for row in gold[response_id].rows]
    made = Counter(row.made for row in rows if row.made != "blind")
    warnings = []
    if part := one_part(entries, gold):
        warnings.append(part[0])
    if made:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(made.items()))
        warnings.append(
            f"{sum(made.values())} of {len(rows)} gold grades were not given blind ({ways}): they may favor the judge "
            "or some runs, and corrected means with them"
        )
    # Each response counts once, since a response that several runs gave was drawn once.
    judged_ids = {response.response_id for entry in entries for response, _ in entry.judged}
    stands_for = math.fsum(1 / gold[response_id].probability for response_id in judged_ids if response_id in gold)
    if used and not len(judged_ids) / _PLAUSIBLE <= stands_for <= len(judged_ids) * _PLAUSIBLE:
        warnings.append(
            f"by its inclusion probabilities the gold stands for {stands_for:.0f} responses, but {len(judged_ids)} "
            "were judged: is a part of what was drawn without a grade, or was it drawn from another pool?"
        )
    return tuple(warnings)


def change(rows: Sequence[CorrectedRow], *, higher_is_better: bool) -> RankingChange:
    """Compare the raw order of the runs with the corrected one, both by the bound."""
    sign = 1 if higher_is_better else -1
    both = [(row.raw_bound, row.bound) for row in rows if row.bound is not None]
    pairs = [(sign * raw, sign * bound) for raw, bound in both if raw is not None]
    raw, best = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    shares = {k: _defined(top_k_overlap(raw, best, k)) for k in TOP if k < len(pairs)}
    return RankingChange(
        runs=len(pairs),
        tau_b=_defined(kendall_tau_b(raw, best)),
        tau_ap=_defined(tau_ap(raw, best)),
        rbo=_defined(rbo(raw, best)),
        top={k: share for k, share in shares.items() if share is not None},
        flips=sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(pairs, 2)),
        pairs=len(pairs) * (len(pairs) - 1) // 2,
    )


def _samples(
    entries: Sequence[GradedRun], gold: Mapping[str, GoldGrade], families: Mapping[str, str]
) -> list[RunGrades]:
    turns: dict[str, int] = defaultdict(lambda: len(turns))
    topics: dict[str, int] = defaultdict(lambda: len(topics))
    strata: dict[str | None, int] = defaultdict(lambda: len(strata))
    samples = []
    for entry in entries:
        gold_grades = [gold.get(response.response_id) for response, _ in entry.judged]
        drawn = all(grade.stratum is not None for grade in gold_grades if grade)
        samples.append(
            RunGrades(
                judged=np.array([grade for _, grade in entry.judged], dtype=np.float64),
                gold=np.array([grade.grade if grade else math.nan for grade in gold_grades], dtype=np.float64),
                inclusion=np.array(
                    [grade.probability if grade else math.nan for grade in gold_grades], dtype=np.float64
                ),
                topics=np.array([topics[name] for name in entry.clusters], dtype=np.int64),
                turns=np.array([turns[response.turn_id] for response, _ in entry.judged], dtype=np.int64),
                strata=np.array([strata[grade.stratum] if grade else -1 for grade in gold_grades], dtype=np.int64)
                if drawn
                else None,
                family=families.get(entry.run_id),
            )
        )
    return samples


def _bounded(entry: GradedRun, correction: Corrected, gold: Mapping[str, GoldGrade], worst: int) -> Corrected:
    """The corrected mean as the bound over all turns, which is a linear function of it, with its errors."""
    if correction.value is None:
        return correction
    value = entry.bound(correction.value, gold, worst)
    at_0, at_1 = entry.bound(0.0, gold, worst), entry.bound(1.0, gold, worst)
    slope = at_1 - at_0 if at_0 is not None and at_1 is not None else 0.0
    return replace(
        correction,
        value=value,
        se=None if correction.se is None else correction.se * slope,
        influence=None if correction.influence is None else correction.influence * slope,
        scale=correction.scale * slope**2,
    )


def _topics(entry: GradedRun, gold: Mapping[str, GoldGrade], target: Target) -> int:
    """The topics behind a corrected mean: of all judged responses or, for new topics, of those with gold."""
    return len(set(entry.clusters) if target == "pool" else _with_gold(entry, gold))


def _with_gold(entry: GradedRun, gold: Mapping[str, GoldGrade]) -> set[str]:
    """The topics, or themes, of the judged responses with gold."""
    judged = zip(entry.clusters, entry.judged, strict=True)
    return {name for name, (response, _) in judged if response.response_id in gold}


def _row(
    entry: GradedRun,
    correction: Corrected,
    bounded: Corrected,
    place: Place | None,
    criterion: Criterion,
    gold: Mapping[str, GoldGrade],
    family: str | None,
    judge_families: Collection[str],
) -> CorrectedRow:
    levels = [level.grade for level in criterion.scale.levels]
    bounds = min(levels), max(levels)
    n = len(entry.judged)
    raw, worst = (
        mean_interval([grade for _, grade in entry.judged], entry.clusters, bounds=bounds),
        worst_grade(criterion.scale),
    )
    low, high = _bounds(entry, correction, gold, bounds, worst)
    row = CorrectedRow(
        run_id=entry.run_id,
        criterion=criterion.name,
        family=family,
        n=n,
        missing=entry.turns - n,
        raw=raw,
        raw_bound=entry.run.bound(raw.value, [worst] * len(entry.run.failed), worst),
        gold=correction.n,
        corrected=Estimate(
            *(correction.value, correction.low, correction.high, correction.n),
            *(len(_with_gold(entry, gold)), correction.reason),
        ),
        bound=bounded.value,
        bound_low=low,
        bound_high=high,
        method=correction.method,
        weight=correction.weight,
        effective_n=correction.effective_n,
        bias=correction.bias,
        rank=place.rank if place else None,
        rank_low=place.low if place else None,
        rank_high=place.high if place else None,
        tie=place.letters if place else "",
        flags=(),
        cluster=entry.cluster,
    )
    return msgspec.structs.replace(row, flags=_flags(row, entry.run, correction, judge_families))


def _bounds(
    entry: GradedRun, correction: Corrected, gold: Mapping[str, GoldGrade], bounds: tuple[int, int], worst: int
) -> tuple[float | None, float | None]:
    """The ends of the interval if each response without the judge's grade had its gold grade, else an extreme grade.

    Without an interval, the corrected mean stands for both ends, else the raw mean; None if no grade is missing. A
    topic that an interactive run never reached has the worst grade in both.
    """
    n, mean = len(entry.judged), correction.value
    turns = entry.turns - entry.run.unreached
    if correction.low is None or correction.high is None:
        if entry.turns == n:
            return None, None
        if mean is None:
            mean = math.fsum(grade for _, grade in entry.judged) / n if n else 0.0
        ends = mean, mean
    else:
        ends = correction.low, correction.high
    known = [gold[response.response_id].grade for response in entry.others if response.response_id in gold]
    left = turns - n - len(known)
    low, high = (
        entry.run.over_topics(math.fsum([n * end, *known, left * extreme]) / turns if turns > n else end, worst)
        for end, extreme in zip(ends, bounds, strict=True)
    )
    return low, high


def _flags(
    row: CorrectedRow, run: RunTurns, correction: Corrected, judge_families: Collection[str]
) -> tuple[RowFlag, ...]:
    flags: dict[RowFlag, bool] = {
        "SELF": row.family in judge_families,
        "UNCORRECTED": correction.value is None,
        "DEGENERATE": correction.degenerate,
        "MISSING": bool(run.failed or run.unanswered > run.unreached),
        "UNREACHED": run.unreached > 0,
        "HARNESS": any(reason in HARNESS for reason in run.reasons),
        "TRIAL": run.not_asked > 0,
        "FEWGOLD": correction.method in {"ppi++", "ppi++ pooled", "gold only"} and correction.drawn < FEWEST_OWN,
        "FAMILY": correction.method == "family",
    }
    return tuple(flag for flag, applies in flags.items() if applies)


def _order(row: CorrectedRow, higher: bool) -> tuple[object, ...]:
    value = row.raw_bound if row.corrected.value is None else row.bound
    worst_first = math.inf if value is None else -value if higher else value
    return row.corrected.value is None, worst_first, natural_key(row.run_id)


def _defined(value: float | Undefined) -> float | None:
    return None if isinstance(value, Undefined) else value
