"""The leaderboard corrected by gold: each run's mean by the judge, and the mean that gold implies. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Literal, get_args

import numpy as np
from msgspec import Struct, structs

from judge.ask.records import Judgment
from judge.errors import InputError, refuse
from judge.gold.rows import BY_GRADE, GoldByResponse, GoldRow, check_scale
from judge.io.ids import Cluster, groups_of, natural_key
from judge.pool.pairs import equal_responses, other_orders
from judge.pool.records import Pool
from judge.records import Criterion, Estimate, file_problem
from judge.results.citations import Measure, cited_responses, key_of
from judge.results.leaderboard import score_of
from judge.results.pairs import share_of_first
from judge.results.rows import RankingChange, RowFlag, Score, estimate_of
from judge.results.turns import RunTurns, TurnGrade, run_flags, worst_grade
from judge.stats.correction import FEWEST_OWN, Corrected, correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.ranking import kendall_tau_b, rbo, tau_ap, top_k_overlap
from judge.stats.separation import places
from judge.stats.tables import defined

_SHOWN = 20
"""Topics that a message names."""


class GoldGrade(Struct, frozen=True):
    """The gold of one response."""

    grade: float
    probability: float
    """The inclusion probability; nan where it is unknown."""
    stratum: str | None
    rows: tuple[GoldRow, ...]
    whole: bool = True
    """Of a measure of citations: whether each that counts has gold."""
    parts: "tuple[GoldGrade, ...]" = ()
    """Of a measure: the citations that count, or pairs, and what each is worth."""
    share: float = 1.0
    """Of a part: how much of the measure it is."""
    judged: float = math.nan
    """Of a part: what it is worth by the judge; nan counts as the whole."""
    drawn_as: str = ""
    """The id of a pair that was drawn by itself; else the response or its turn was."""
    labeled: bool = True
    """Whether a person gave it; False where it is known without a label."""

    @property
    def given(self) -> tuple[float, ...]:
        """The grades that the assessors gave."""
        return tuple(row.grade for row in self.rows) or (self.grade,)

    @property
    def known(self) -> bool:
        """Whether there is gold."""
        return not math.isnan(self.grade)


_NO_GOLD = GoldGrade(math.nan, math.nan, None, ())


def gold_grades(matched: GoldByResponse, criterion: Criterion, name: str) -> dict[str, GoldGrade]:
    """Response id to the mean grade of its assessors, as it is: rounding it would give every tie a direction."""
    rows = {
        response_id: tuple(rows)
        for (response_id, criterion_name), rows in matched.items()
        if criterion_name == criterion.name and rows
    }
    problems = check_scale((row for group in rows.values() for row in group), criterion.scale, name)
    refuse(problems, f"{name}: grades that are not on the scale of {criterion.prompt_id}")
    return {
        response_id: GoldGrade(
            grade=fmean(row.grade for row in group),
            probability=group[0].inclusion_probability or math.nan,
            stratum=group[0].stratum,
            rows=group,
        )
        for response_id, group in rows.items()
    }


def measured_gold(
    measure: Measure,
    pool: Pool,
    runs: Sequence[RunTurns],
    gold: Mapping[str, GoldGrade],
    verdicts: Iterable[Judgment] = (),
) -> dict[str, GoldGrade]:
    """Gold of citations, or of pairs, each in one order, as gold of responses.

    What has no gold was not drawn, or does not count where all gold is certain. What cites nothing and ties of equal
    responses need no label, so they were chosen for certain. They are no gold of a run that has no label and needs
    some. `verdicts`: the judge's of pairs, those that are `agreed`.
    """
    drawn = any(of.probability < 1 for of in gold.values())
    strata = all(of.stratum is not None for of in gold.values())
    found: dict[str, GoldGrade] = {}
    by_response = (
        _won_gold(measure, pool, gold, verdicts) if measure.of_pairs else _cited_gold(measure, pool, runs, gold)
    )
    for name, sentences in by_response.items():
        citing = sum(map(bool, sentences))
        # A sentence that cites nothing is 0 without a label, so the others are all of the measure.
        most = citing / len(sentences) if measure.recall and citing else 1.0
        parts = [
            structs.replace(part, grade=most * part.grade, share=1 / len(each) / citing)
            for each in sentences
            for part in each
        ]
        known = [part for part in parts if part.known]
        if known or not parts:
            first = known[0] if known else structs.replace(_NO_GOLD, probability=1.0, stratum="certain", labeled=False)
            counted = tuple(parts if drawn else known)
            alike = len({(part.probability, part.drawn_as) for part in counted}) < 2
            found[name] = GoldGrade(
                grade=measure.score([[part.grade if part.known else None for part in each] for each in sentences]),
                probability=first.probability if alike else 1 / math.fsum(of.share / of.probability for of in known),
                stratum=first.stratum if strata else None,
                rows=tuple(row for part in known for row in part.rows),
                whole=len(known) == len(parts),
                parts=counted,
                labeled=first.labeled,
            )
    for run in runs:
        names = {response.response_id for response in (*(of for of, _ in run.graded), *run.failed, *run.left_out)}
        without_label = names & found.keys()
        if without_label < names and not any(found[name].labeled for name in without_label):
            for name in without_label:
                del found[name]
    return found


def _cited_gold(
    measure: Measure, pool: Pool, runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]
) -> dict[str, list[list[GoldGrade]]]:
    """Response id to what the citations of each sentence that count are worth."""
    cited = cited_responses(pool)
    worth = {name: structs.replace(grade, grade=fmean(map(measure.worth, grade.given))) for name, grade in gold.items()}
    return {
        response.response_id: [
            [worth.get(citation.response_id, _NO_GOLD) for citation in each]
            for each in measure.looked_at(cited.get(run.run_id, {}).get(response.turn_id, []))
        ]
        for run in runs
        for response in (*(of for of, _ in run.graded), *run.failed, *run.left_out)
    }


def _won_gold(
    measure: Measure, pool: Pool, gold: Mapping[str, GoldGrade], verdicts: Iterable[Judgment]
) -> dict[str, list[list[GoldGrade]]]:
    """Response id to what it won of each pair of its turn, each as a sentence with one citation."""
    scale = measure.of.scale
    others = other_orders(pool)
    said = {each.response_id: share_of_first(each.grade, scale) for each in verdicts}
    parts: dict[str, list[list[GoldGrade]]] = defaultdict(list)
    for pair in pool.responses:
        name = pair.response_id
        other = others[pair.response_id].response_id
        grade = gold.get(name, _NO_GOLD)
        # The order with gold counts, else the first one.
        if other not in gold and (grade.known or name < other):
            by_people = [share_of_first(given, scale) for given in grade.given]
            won = fmean(by_people) if grade.known else math.nan, said.get(name, math.nan)
            singly = name if grade.probability < 1 and (grade.stratum or "").startswith(BY_GRADE) else ""
            for entry in pair.runs:
                of_gold, of_judge = won if entry.rank == 1 else (1 - won[0], 1 - won[1])
                part = structs.replace(grade, grade=of_gold, judged=of_judge, drawn_as=singly)
                parts[key_of(entry.run_id, pair.turn_id).response_id].append([part])
    # Equal responses tie for certain, for people as for the judge.
    tie = GoldGrade(grade=0.5, probability=1.0, stratum="certain", rows=(), judged=0.5, labeled=False)
    for turn_id, *run_ids in equal_responses(pool):
        for run_id in run_ids:
            parts[key_of(run_id, turn_id).response_id].append([tie])
    return parts


def _drawn_apart(grade: GoldGrade | None, judged: float) -> list[GoldGrade]:
    """What of a response was drawn together, or not at all, each as one part; `judged` is its measure by the judge."""
    groups = groups_of(((part.probability, part.drawn_as), part) for part in (grade.parts if grade else ()))
    if len(groups) < 2 and not any(singly for _, singly in groups):
        return [structs.replace(grade or _NO_GOLD, judged=judged)]
    found = []
    for of in groups.values():
        share = math.fsum(part.share for part in of)
        said = math.fsum(part.share * (judged if math.isnan(part.judged) else part.judged) for part in of) / share
        worth = math.fsum(part.share * part.grade for part in of) / share
        found.append(structs.replace(of[0], share=share, judged=said, grade=worth))
    return found


def check_inclusion(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], name: str) -> None:
    """Refuse gold whose inclusion probabilities are unknown or contradictory."""
    path = "$.inclusion_probability"
    problems = []
    runs = _counted(runs, gold)
    graded = {response.response_id for run in runs for response, _ in run.graded}
    for response_id in sorted(graded & gold.keys(), key=natural_key):
        of = gold[response_id]
        for row, probability in ((row, part.probability) for part in of.parts or (of,) for row in part.rows):
            if row.inclusion_probability is None:
                problem = "not known: expected the probability with which this response was chosen for grading"
            elif row.inclusion_probability != probability:
                problem = f"{row.inclusion_probability}, but {probability} in another row: expected one"
            else:
                continue
            where = f"{row.criterion} grade by {row.assessor} for response {response_id}"
            problems.append(
                file_problem("inclusion_probability", name, f"{where}: {problem}", path, turn_id=row.turn_id)
            )
    if problems:
        raise InputError(
            f"{name}: without the probabilities with which responses were chosen for gold, corrected means can be far "
            "off; `judge gold plan` draws with known probabilities, `judge gold import --inclusion P` declares that of "
            "a random sample (1 if every response has a grade)",
            problems,
        )
    # By chance, all graded responses of some runs may be certain ones; only if all are of all runs is it a problem.
    certain = all(gold[response_id].probability == 1 for response_id in graded & gold.keys())
    for run in runs if certain else ():
        known = sum(response.response_id in gold for response, _ in run.graded)
        if 0 < known < len(run.graded):
            message = (
                f"{run.run_id}: probability 1 for all {known} gold grades, but {len(run.graded)} responses were "
                "judged: expected less than 1 where not every response has a grade"
            )
            problems.append(file_problem("inclusion_probability", name, message, path))
    refuse(problems, f"{name}: inclusion probabilities contradict the number of grades")


def one_part(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> tuple[str, bool] | None:
    """A sentence if the used gold is only one part of a split, and whether judged topics lack gold."""
    judged = [response for run in runs for response, _ in run.graded]
    used = [response for response in judged if response.response_id in gold]
    parts = {row.split for response in used for row in gold[response.response_id].rows if row.split}
    if len(parts) != 1:
        return None
    missing = sorted(
        {response.topic_id for response in judged} - {response.topic_id for response in used}, key=natural_key
    )
    sentence = f"the gold is only the {parts.pop()} part of a split"
    if not missing:
        return f"{sentence}, though it has grades in every topic judged", False
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
    return f"{sentence} and has no grade in {len(missing)} of the topics judged ({shown})", True


TOP = (1, 3, 5)
_PLAUSIBLE = 1.1
"""Factor by which the number of responses that gold stands for may differ from their real number."""
_PLAUSIBLE_ERRORS = 3
"""By how many standard errors of the draw it has to differ as well."""


def check_sample(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], target: Target, name: str) -> None:
    """Refuse gold by which the means of runs cannot be corrected.

    Raises:
        InputError: Inclusion probabilities are unknown or contradictory; every row is listed. Or the gold is one part
            of a split and lacks topics of the pool.
    """
    check_inclusion(runs, gold, name)
    if target == "pool" and (part := one_part(runs, gold)) and part[1]:
        raise InputError(
            f"{name}: {part[0]}, so corrected means of all responses would be a guess: give both parts of the split "
            "(the test part with --test), or --target topics"
        )


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
    counted = _counted(runs, gold)
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


def cautions(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> tuple[str, ...]:
    """What a reader must know about this gold before any number; the arguments are those of `corrected`."""
    # Each response counts once, since a response that several runs gave was drawn once.
    counted = {response.response_id for run in _counted(runs, gold) for response, _ in run.graded}
    used = [gold[response_id] for response_id in sorted(counted & gold.keys())]
    # Responses may share the gold of a citation.
    rows = {id(row): row for grade in used for row in grade.rows}.values()
    made = Counter(row.made for row in rows if row.made != "blind")
    warnings = []
    if part := one_part(runs, gold):
        warnings.append(part[0])
    if made:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(made.items()))
        warnings.append(
            f"{made.total()} of {len(rows)} gold grades were not given blind ({ways}): they may favor the judge "
            "or some runs, and corrected means with them"
        )
    stands_for = math.fsum(1 / grade.probability for grade in used)
    by_chance = _PLAUSIBLE_ERRORS * _error_of_number(used)
    low = len(counted) / _PLAUSIBLE - by_chance
    high = len(counted) * _PLAUSIBLE + by_chance
    if used and not low <= stands_for <= high:
        warnings.append(
            f"by its inclusion probabilities the gold stands for {stands_for:.0f} responses, but {len(counted)} "
            "were judged: is a part of what was drawn without a grade, or was it drawn from another pool?"
        )
    return tuple(warnings)


def _error_of_number(used: Sequence[GoldGrade]) -> float:
    """The standard error of Σ 1/π, the number of responses that gold stands for.

    It is Σ (1 - π) k/(k - 1) (x - x̄)² over the k units that were drawn in a stratum, turns or single responses, of
    which each stands for x responses; 0 where all in a stratum stand for as many.
    """
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    for place, grade in enumerate(used):
        stratum = grade.stratum or ""
        singly = stratum.startswith(BY_GRADE) or not grade.rows
        units[stratum, str(place) if singly else grade.rows[0].turn_id].append(grade.probability)
    strata = groups_of((stratum, of) for (stratum, _), of in units.items())
    variance = 0.0
    for of in strata.values():
        numbers = [math.fsum(1 / probability for probability in unit) for unit in of]
        mean = math.fsum(numbers) / len(of)
        k = len(of)
        squares = ((1 - unit[0]) * (number - mean) ** 2 for unit, number in zip(of, numbers, strict=True))
        variance += math.fsum(squares) * k / max(k - 1, 1)
    return math.sqrt(variance)


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


def _counted(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> list[RunTurns]:
    """The runs with the responses that they left out among the graded, as if the judge gave each the run's mean.

    So the judge's mean stays, and gold corrects it for them too, if it was drawn from them. Gold chosen for certain
    says nothing of responses without it, so it has to be of all that the run left out.
    """
    drawn = {name for name, grade in gold.items() if not math.isnan(grade.probability)}
    certain = all(grade.probability == 1 for grade in gold.values())
    counted = []
    from_all = any(response.response_id in drawn for run in runs for response in run.left_out)
    for run in runs:
        if from_all and (not certain or all(response.response_id in drawn for response in run.left_out)):
            mean = TurnGrade(math.fsum(given.grade for _, given in run.graded) / max(len(run.graded), 1), None)
            graded = (*run.graded, *((response, mean) for response in run.left_out))
            run = structs.replace(run, graded=graded, left_out=())
        counted.append(run)
    return counted


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
        of_run = [
            (topics[topic], part.drawn_as or getattr(response, drawn_by), part)
            for (response, given), topic in zip(run.graded, run.clusters(cluster), strict=True)
            for part in _drawn_apart(gold.get(response.response_id), given.grade)
        ]
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


def _flags(run: RunTurns, correction: Corrected, *, own_family: bool) -> tuple[RowFlag, ...]:
    of_gold: dict[RowFlag, bool] = {
        "SELF": own_family,
        "UNCORRECTED": correction.value is None,
        "DEGENERATE": correction.degenerate,
        "FEWGOLD": correction.method in {"ppi++", "ppi++ pooled", "gold only"} and correction.drawn < FEWEST_OWN,
        "FAMILY": correction.method == "family",
    }
    flags = {*run_flags(run), *(flag for flag, applies in of_gold.items() if applies)}
    return tuple(flag for flag in get_args(RowFlag) if flag in flags)


def _order(score: Score, higher: bool) -> tuple[object, ...]:
    value = score.bound
    if score.mean.value is None and score.raw is not None:
        value = score.raw.bound
    worst_first = math.inf if value is None else -value if higher else value
    return score.mean.value is None, worst_first, natural_key(score.run_id)
