"""What to label next: turns with the responses of all runs, or responses by the judge's grade, drawn at random.

Topics are put in random order, and so are the turns within each topic. Systematic sampling with probability
proportional to size (Madow 1949; Hartley & Rao 1962) then gives every topic about its share: each turn is an interval
on a line, as long as its inclusion probability, and points at a distance of 1, with a uniform start, pick the turns
they fall on. The probabilities are exact for any order of the turns, so an order may be chosen in which every start of
the sample gives every run its responses.

By the judge's grade, a unit is a response, and the intervals of a run's responses of one grade lie side by side: of
each run and grade about its share is drawn, with more of the grades at which people's grades vary more (J. Neyman,
1934, Journal of the Royal Statistical Society 97(4), 558-625).
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Failure, Judgment
from judge.errors import InputError, UsageError, refuse
from judge.gold.rows import BY_GRADE, GoldRow, finder, response_digest
from judge.io.files import decode_lines
from judge.io.ids import groups_of, natural_key
from judge.io.text import count, digest
from judge.pool.records import Pool, PooledResponse
from judge.records import JudgedUnit, Problem, file_problem
from judge.units import UNITS

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def inclusion(sizes: _Floats, draws: int) -> _Floats:
    """Inclusion probabilities proportional to the sizes, adding up to `draws`; none is above 1.

    A unit whose share would reach 1 is taken for certain, and the others share the remaining draws. Sizes (T,) are
    positive.
    """
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = draws - int(certain.sum())
        rest = sizes[~certain].sum()
        probabilities = np.where(certain, 1.0, left * sizes / rest if left and rest else 0.0)
        # The tolerance counts a share of exactly 1 as certain in spite of rounding.
        over = (probabilities >= 1 - 1e-12) & ~certain
        if not over.any():
            return probabilities
        certain |= over


def systematic(probabilities: _Floats, start: float) -> NDArray[np.bool_]:
    """Which units (T,) the points `start`, `start` + 1, … fall on; probabilities (T,) add up to a whole number."""
    # With a start of 32 bits, the difference below loses nothing to rounding.
    start = np.floor(start * 2**32) / 2**32
    # A unit is picked if more points lie below its end than below its beginning.
    below = np.ceil(_ends(probabilities) - start)
    return np.diff(below, prepend=0.0) > 0


def fewest(probabilities: _Floats, counts: _Ints) -> _Ints:
    """The smallest count of each kind (R,) that a sample may have, over all starts.

    As the start grows, the sample changes only where the start passes the fractional part of an interval's end: a point
    then moves from that unit to the next. Counts (T, R) are of each kind in each unit, in their order.
    """
    # Rounded, so that ends a whole number apart are passed at the same start.
    fractions = np.round(_ends(probabilities)[:-1] % 1.0, 12) % 1.0
    order = np.argsort(fractions, kind="stable")
    # A start of 0 has already passed the ends at whole numbers.
    order = order[fractions[order] > 0]
    passed = np.cumsum((counts[1:] - counts[:-1])[order], axis=0)
    last = np.append(fractions[order][1:] != fractions[order][:-1], True)[: len(order)]
    first = counts[systematic(probabilities, 0.0)].sum(axis=0, keepdims=True)
    smallest: _Ints = np.concatenate([first, first + passed[last]]).min(axis=0)
    return smallest


def _ends(probabilities: _Floats) -> _Floats:
    """The ends of the units' intervals (T,), rounded so that whole numbers are exact."""
    return np.cumsum(probabilities).round(12)


DOUBLE = 0.2
"""Share of the items that every assessor labels, where there are several and nobody says otherwise."""


def shared_items(names: Sequence[str], share: float, seed: int) -> frozenset[int]:
    """Places of the items that every assessor labels: a simple random sample, rounded to whole items."""
    return frozenset(_shuffled(names, seed, "shared")[: int(share * len(names) + 0.5)])


def deal(names: Sequence[str], assessors: Sequence[str], share: float, seed: int) -> tuple[tuple[int, ...], ...]:
    """The places of each assessor's items, in the order in which that assessor labels them.

    Each item has its own random number, so an order does not depend on how Python shuffles.

    >>> deal(["a", "b", "c", "d"], ["ann", "bob"], 0.5, 1)
    ((0, 2, 1), (3, 1, 0))
    """
    shared = shared_items(names, share, seed)
    others = [place for place in _shuffled(names, seed, "others") if place not in shared]
    dealt = []
    for number, assessor in enumerate(assessors):
        own = shared.union(others[number :: len(assessors)])
        dealt.append(tuple(place for place in _shuffled(names, seed, f"order\n{assessor}") if place in own))
    return tuple(dealt)


def _shuffled(names: Sequence[str], seed: int, purpose: str) -> list[int]:
    return sorted(range(len(names)), key=lambda place: digest(f"{seed}\n{purpose}\n{names[place]}"))


ORDERS = 50
"""Random orders to try. If none gives every run its responses, the number of turns is too small."""

LEAST = 1e-9
"""Least inclusion probability, as in gold; the weight 1/π of a smaller one would be too large to compute with."""
LEAST_SPREAD = 0.25
"""Least spread of people's grades at a grade of the judge, as a share of the greatest."""

Errors = Mapping[tuple[int, int], int]
"""How many labels there are of each grade of people and of the judge."""
_Strata = Sequence[tuple[str, str]]
"""Of each unit (T,) the topic or the run that it stands with, and its stratum."""


class PlanRow(msgspec.Struct, frozen=True):
    """One response to label."""

    turn_id: str
    topic_id: str
    response_id: str
    text_sha256: str
    runs: tuple[str, ...]
    criteria: tuple[str, ...]
    inclusion_probability: float
    """The probability with which it was drawn, alone or with its turn."""
    stratum: Annotated[str, msgspec.Meta(pattern=rf"^(certain|drawn|{BY_GRADE}(none|-?[0-9]+))$")]
    """`certain` if it was taken in any case, else `drawn` at random, or the judge's grade that it was drawn by."""


class LabelingPlan(msgspec.Struct, frozen=True):
    """The responses to label, and the sizes of what they were drawn from."""

    rows: tuple[PlanRow, ...]
    """The drawn responses, turns in natural order."""
    turns: int
    """Turns that were drawn."""
    frame_turns: int
    """Turns that could be drawn."""
    frame: int
    """Responses that could be drawn."""
    graded: int
    """Responses left out because they have grades under all criteria."""
    unit: JudgedUnit
    """What a response is here."""
    uncertainty: Literal["entropy", "variance", "none"]
    """The measure that made some turns likelier to be drawn than others."""
    saving: tuple[float, float] | None = None
    """By grade: the shares of labels that are predicted to be saved for corrected means and for exact agreement."""


class _Frame(msgspec.Struct, frozen=True):
    """The sampling frame: T units, which are turns or by grade responses, in natural order, and R runs."""

    units: tuple[str, ...]
    responses: dict[str, tuple[PooledResponse, ...]]
    """The responses of each unit that are still to be labeled."""
    labels: _Floats
    """How many responses each unit has, (T,)."""
    counts: _Ints
    """How many responses each unit has of each run, (T, R)."""
    wanted: _Ints
    """How many responses must be drawn of each run, (R,)."""


class _Design(msgspec.Struct, frozen=True):
    """How the units of a frame are drawn."""

    noun: str
    """What a unit is."""
    strata: _Strata
    sizes: _Floats
    """(T,); the probabilities are proportional to them."""
    uncertainty: Literal["entropy", "variance", "none"] = "none"
    forecast: _Floats | None = None
    """By grade: what people would say of each unit, as of `_strata`."""


def make_plan(
    pool: Pool,
    n: int,
    seed: int,
    *,
    criteria: Sequence[str],
    judgments: Sequence[Judgment | Failure] = (),
    gold: Iterable[GoldRow] = (),
    per_run: int = 10,
    errors: Errors | None = None,
) -> LabelingPlan:
    """Draw about `n` responses of the pool, whole turns of all runs or, with `errors`, single ones by grade.

    Turns are drawn with probability proportional to size. Half of a turn's size is the same for all turns, half is its
    share of the uncertainty of the judgments. By grade, a size is the spread of people's grades where the judge gives
    this one, as `errors` say, which may be empty. Responses that have grades under every criterion are left out. To use
    their grades and the plan's as one sample, give their rows an inclusion probability of 1. Every run must have
    `per_run` labeled responses, grades of gold among them, or all of its own. The same arguments give the same plan. An
    InputError if nothing is left to draw. A UsageError if `n` is too small; the message names a number that suffices.
    """
    find = finder(pool)
    graded: set[tuple[str, str]] = set()
    for row in gold:
        if response := find(row):
            graded.add((response.response_id, row.criterion))
    if errors is None:
        unit_of = {response.response_id: response.turn_id for response in pool.responses}
    else:
        unit_of = _single(pool)
    frame = _frame(pool, graded, criteria, per_run, unit_of)
    nouns = UNITS[pool.unit].nouns
    if not frame.units:
        raise InputError("nothing is left to label: the pool is empty, or all its responses have grades")
    if errors is None:
        design = _by_turn(frame, judgments, criteria)
    else:
        design = _by_grade(frame, nouns.responses, _counted(judgments, criteria), errors)
    rng = np.random.default_rng(seed)
    draws = _units_for(design.sizes, frame.labels, n)
    probabilities = inclusion(design.sizes, draws)
    order = _fair_order(frame, design.strata, probabilities, rng)
    if order is None:
        sufficient = _enough(frame, design.strata, design.sizes, draws, seed)
        # Rounding may leave a whole number slightly too large, and `ceil` would then add one.
        responses = math.ceil(_expected(design.sizes, frame.labels, sufficient) - 1e-9)
        raise UsageError(
            f"--n {n} is about {draws} of {len(frame.units)} {design.noun}, too few for {per_run} {nouns.responses} of "
            f"every run: --n {responses} suffices, or a smaller --per-run"
        )
    rows: list[PlanRow] = []
    for index in np.sort(order[systematic(probabilities[order], rng.random())]).tolist():
        probability = float(probabilities[index])
        stratum = "certain" if probability == 1 else design.strata[index][1]
        for response in frame.responses[frame.units[index]]:
            missing = _missing(response, graded, criteria)
            rows.append(plan_row(response, criteria=missing, probability=probability, stratum=stratum))
    rows.sort(key=lambda row: natural_key(row.turn_id))
    saved = None
    if errors and design.forecast is not None:
        saved = _saved(probabilities, design.strata, frame.labels, design.forecast)
    turns: set[str] = set()
    for unit_responses in frame.responses.values():
        turns.update(response.turn_id for response in unit_responses)
    left = int(frame.labels.sum())
    return LabelingPlan(
        rows=tuple(rows),
        turns=len({row.turn_id for row in rows}),
        frame_turns=len(turns),
        frame=left,
        graded=len(pool.responses) - left,
        unit=pool.unit,
        uncertainty=design.uncertainty,
        saving=saved,
    )


def plan_row(response: PooledResponse, *, criteria: tuple[str, ...], probability: float, stratum: str) -> PlanRow:
    """The row of a response to label under these criteria."""
    return PlanRow(
        turn_id=response.turn_id,
        topic_id=response.topic_id,
        response_id=response.response_id,
        text_sha256=response_digest(response),
        runs=_runs(response),
        criteria=criteria,
        inclusion_probability=probability,
        stratum=stratum,
    )


def _by_turn(frame: _Frame, judgments: Sequence[Judgment | Failure], criteria: Sequence[str]) -> _Design:
    """Draw whole turns, half by their share of the uncertainty."""
    uncertainty, kind = turn_uncertainty(judgments, frame.units, criteria)
    return _Design(
        noun="turns",
        strata=[(frame.responses[unit][0].topic_id, "drawn") for unit in frame.units],
        sizes=0.5 / len(frame.units) + 0.5 * uncertainty,
        uncertainty=kind,
    )


def _by_grade(frame: _Frame, noun: str, judgments: Iterable[Judgment], errors: Errors) -> _Design:
    """Draw single responses, by the spread of people's grades at the judge's grade."""
    strata, forecast = _strata(frame, judgments, errors)
    sizes = _spreads(forecast[:, 3], strata, frame.labels)
    return _Design(noun=noun, strata=strata, sizes=sizes, forecast=forecast)


def read_plan(content: bytes, name: str) -> tuple[PlanRow, ...]:
    """Read the rows of a plan file; an InputError lists every line that is none."""
    rows: list[PlanRow] = []
    problems: list[Problem] = []
    for number, row in decode_lines(content, PlanRow, name, "not_a_plan", problems):
        if not LEAST <= row.inclusion_probability <= 1:
            message = f"inclusion_probability {row.inclusion_probability}: expected {LEAST:g} to 1"
            problems.append(file_problem("not_a_plan", name, message, f"line {number}", turn_id=row.turn_id))
        else:
            rows.append(row)
    refuse(problems, f"{name}: not usable as a plan: {count(len(problems), 'problem')}")
    return tuple(rows)


def _missing(response: PooledResponse, graded: set[tuple[str, str]], criteria: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in criteria if (response.response_id, name) not in graded)


def _single(pool: Pool) -> dict[str, str]:
    """Response id to the unit that it is drawn with: itself; of citations, all of a run's response.

    Responses that share a citation are one unit, because its label would otherwise have several probabilities.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    responses = sorted(pool.responses, key=lambda response: natural_key(response.response_id))
    ids = [response.response_id for response in responses]
    if not UNITS[pool.unit].part_of_response:
        return dict(zip(ids, ids, strict=True))
    nodes_of: dict[tuple[str, str], int] = defaultdict(lambda: len(ids) + len(nodes_of))
    edges: list[tuple[int, int]] = []
    for number, response in enumerate(responses):
        edges += ((number, nodes_of[response.turn_id, run_id]) for run_id in _runs(response))
    nodes = len(ids) + len(nodes_of)
    graph = coo_array((np.ones(len(edges)), np.array(edges).reshape(-1, 2).T), shape=(nodes, nodes))
    _, codes = connected_components(graph, directed=False)
    _, first = np.unique(codes[: len(ids)], return_index=True)
    return {name: ids[first[code]] for name, code in zip(ids, codes, strict=False)}


def _frame(
    pool: Pool, graded: set[tuple[str, str]], criteria: Sequence[str], per_run: int, unit_of: Mapping[str, str]
) -> _Frame:
    lacking = [response for response in pool.responses if _missing(response, graded, criteria)]
    responses = groups_of((unit_of[response.response_id], response) for response in lacking)
    units = tuple(sorted(responses, key=natural_key))
    labeled: dict[str, list[str]] = defaultdict(list)
    for response in pool.responses:
        if not _missing(response, graded, criteria):
            for run_id in _runs(response):
                labeled[run_id].append(response.turn_id)
    run_ids = sorted(chain.from_iterable(map(_runs, pool.responses)), key=natural_key)
    columns = {run_id: column for column, run_id in enumerate(dict.fromkeys(run_ids))}
    run_counts = np.zeros((len(units), len(columns)), dtype=np.int64)
    for index, unit in enumerate(units):
        for run_id in chain.from_iterable(map(_runs, responses[unit])):
            run_counts[index, columns[run_id]] += 1
    done = [len(labeled[run_id]) for run_id in columns]
    if UNITS[pool.unit].part_of_response:
        # All citations of a response are drawn with it.
        run_counts = np.minimum(run_counts, 1)
        done = [len(set(labeled[run_id])) for run_id in columns]
    still = np.array([max(0, per_run - n) for n in done], dtype=np.int64)
    return _Frame(
        units=units,
        responses={unit: tuple(responses[unit]) for unit in units},
        labels=np.array([len(responses[unit]) for unit in units], dtype=np.float64),
        counts=run_counts,
        wanted=np.minimum(still, run_counts.sum(axis=0)),
    )


def _runs(response: PooledResponse) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.run_id for entry in response.runs))


def _units_for(sizes: _Floats, labels: _Floats, n: int) -> int:
    """The number of units whose expected number of responses is nearest to `n`; at least one."""
    upper = 1 + bisect_left(range(1, len(sizes)), float(n), key=lambda draws: _expected(sizes, labels, draws))
    return min((upper, max(1, upper - 1)), key=lambda draws: abs(_expected(sizes, labels, draws) - n))


def _expected(sizes: _Floats, labels: _Floats, draws: int) -> float:
    """How many responses a sample of `draws` units has on average."""
    return float(inclusion(sizes, draws) @ labels)


def _enough(frame: _Frame, strata: _Strata, sizes: _Floats, too_few: int, seed: int) -> int:
    """About the smallest number of units that gives every run its responses; all units always do."""

    def suffices(draws: int) -> bool:
        return _fair_order(frame, strata, inclusion(sizes, draws), np.random.default_rng(seed)) is not None

    return too_few + 1 + bisect_left(range(too_few + 1, len(sizes)), True, key=suffices)


def _fair_order(frame: _Frame, strata: _Strata, probabilities: _Floats, rng: np.random.Generator) -> _Ints | None:
    """A random order of the units in which every start gives every run its responses; None if none was found."""
    # The minimum over all starts never exceeds the mean, so too small a mean rules out every order.
    if (probabilities @ frame.counts < frame.wanted - 1e-9).any():
        return None
    for _ in range(ORDERS):
        order = _random_order(strata, rng)
        if (fewest(probabilities[order], frame.counts[order]) >= frame.wanted).all():
            return order
    return None


def _random_order(strata: _Strata, rng: np.random.Generator) -> _Ints:
    """Indices of the units: topics, or runs, in random order, strata together within each, units in random order."""
    groups = groups_of((name, (stratum, index)) for index, (name, stratum) in enumerate(strata))
    together = [sorted(groups_of(members).items()) for members in groups.values()]
    ordered: list[_Ints] = []
    for index in rng.permutation(len(together)):
        for _, units in together[index]:
            ordered.append(rng.permutation(units))
    return np.concatenate(ordered)


def _strata(frame: _Frame, judgments: Iterable[Judgment], errors: Errors) -> tuple[_Strata, _Floats]:
    """The strata by grade, and what people would say of each unit (T, 5): the columns of `by_grade`.

    These are nan where the judge said nothing. Of several judges the mean counts; the grades that people give a unit's
    responses are taken for independent.
    """
    by_response = groups_of((judgment.response_id, judgment.grade) for judgment in judgments)
    grades: dict[str, int] = {}
    for name, several in by_response.items():
        n = len(several)
        grades[name] = (2 * sum(several) + n) // (2 * n)
    predicted = by_grade(errors, set(grades.values()))
    forecast = np.full((len(frame.units), 5), np.nan)
    for index, unit in enumerate(frame.units):
        names = [response.response_id for response in frame.responses[unit]]
        judged = [predicted[grades[name]] for name in names if name in grades]
        if judged:
            forecast[index] = np.mean(judged, axis=0)
            forecast[index, 3:] /= len(judged)
    if errors and not grades:
        raise UsageError("the judgments have no grade of a response that is left to label")
    strata: list[tuple[str, str]] = []
    for unit, mean in zip(frame.units, forecast[:, 0], strict=True):
        grade = "none" if np.isnan(mean) else str(math.floor(mean + 0.5))
        strata.append((_runs(frame.responses[unit][0])[0], f"{BY_GRADE}{grade}"))
    return strata, forecast


def by_grade(errors: Errors, grades: Iterable[int]) -> dict[int, tuple[float, ...]]:
    """Each grade of the judge with people's mean grade, the share that equals it, and the variances of both.

    One more label is added to each grade, spread as all labels are, so that no grade is without variance by chance.
    Without any labels, all grades are alike.

    Of 3 labels where the judge says 1, people say 1 twice; the further label is 0 by half:

    >>> by_grade({(0, 1): 1, (1, 1): 2, (0, 0): 1}, [1])[1]
    (1, 0.625, 0.625, 0.234375, 0.234375)
    """
    people: Counter[int] = Counter()
    for (human, _), n in errors.items():
        people[human] += n
    if not people:
        return {grade: (grade, grade, 1.0, 1.0, 1.0) for grade in grades}
    predicted: dict[int, tuple[float, ...]] = {}
    for grade in grades:
        shares = {human: errors.get((human, grade), 0) + n / people.total() for human, n in people.items()}
        total = math.fsum(shares.values())
        mean = math.fsum(human * share for human, share in shares.items()) / total
        variance = math.fsum((human - mean) ** 2 * share for human, share in shares.items()) / total
        same = shares.get(grade, 0.0) / total
        predicted[grade] = (grade, mean, same, variance, same * (1 - same))
    return predicted


def _codes(strata: _Strata) -> _Ints:
    return np.asarray(np.unique([stratum for _, stratum in strata], return_inverse=True)[1])


def _spreads(variances: _Floats, strata: _Strata, labels: _Floats) -> _Floats:
    """The spread of people's grades in the stratum of each unit (T,), by the root of its labels, as costs say.

    At least LEAST_SPREAD of the greatest, because the judge may err otherwise here; the mean where it said nothing.
    """
    codes = _codes(strata)
    spreads = np.sqrt(np.bincount(codes, variances) / np.bincount(codes, labels))[codes]
    defined = spreads[~np.isnan(spreads)]
    if not defined.any():
        return np.ones(len(spreads))
    spreads[np.isnan(spreads)] = defined.mean()
    return np.asarray(np.maximum(spreads, LEAST_SPREAD * defined.max()))


def _saved(probabilities: _Floats, strata: _Strata, labels: _Floats, forecast: _Floats) -> tuple[float, float]:
    """The shares of labels saved for corrected means and for exact agreement, over the units that the judge graded."""
    graded = ~np.isnan(forecast[:, 0])
    judged, means, same, variances, unlike = forecast[graded].T
    units = probabilities[graded], _codes(strata)[graded], labels[graded]
    return saving(*units, means, variances, judged), saving(*units, same, unlike)


def saving(
    probabilities: _Floats,
    strata: _Ints,
    labels: _Floats,
    means: _Floats,
    variances: _Floats,
    judged: _Floats | None = None,
) -> float:
    """The share of labels that a draw by strata saves at equal width, against units that are drawn alike.

    Units (T,) have `labels` each and an expected value of these `means` and `variances`. `judged` are grades of the
    judge that correct the mean (PPI++): only what is not a line in them is left to the strata. With
    σ² = v̄ + var(e), where e is what the line leaves, V = Σ (1/π - 1) (v + (e - ē_h)²) / T² is the variance by
    strata, and that of m units drawn alike is σ² (1/m - 1/T).
    """
    T = len(means)
    error = means - means.mean()
    if judged is not None and np.ptp(judged):
        f = judged - judged.mean()
        error = error - min(max(float(f @ error / (f @ f)), 0.0), 1.0) * f
    center = np.bincount(strata, error)[strata] / np.bincount(strata)[strata]
    alike = float(np.mean(variances + error**2))
    V = float(np.mean((1 / probabilities - 1) * (variances + (error - center) ** 2))) / T
    return 1 - float(probabilities @ labels / labels.mean()) * (V / alike + 1 / T) if alike else 0.0


_Key = tuple[str, str]
"""Turn and criterion."""
_Measured = dict[_Key, dict[str, list[float]]]
"""What was measured of each response of a turn."""


def turn_uncertainty(
    judgments: Sequence[Judgment | Failure], turns: Sequence[str], criteria: Sequence[str]
) -> tuple[NDArray[np.float64], Literal["entropy", "variance", "none"]]:
    """Each turn's share of the uncertainty (T,), equal if nothing is uncertain, and how it was measured.

    The measure is the entropy of label probabilities; without any, the variance of the grades that several judges gave
    one response. A turn gets the mean over its responses and criteria; a turn without judgments gets the others' mean.
    Judgments are gone through again and again.
    """
    values = _entropies(_counted(judgments, criteria))
    kind: Literal["entropy", "variance", "none"] = "entropy"
    if not values:
        values = _variances(lambda: _counted(judgments, criteria))
        kind = "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _), responses in values.items():
        by_turn[turn] += (math.fsum(measured) / len(measured) for measured in responses.values())
    means = {turn: math.fsum(shares) / len(shares) for turn, shares in by_turn.items()}
    drawable = [means[turn] for turn in turns if turn in means]
    if not drawable or not sum(drawable):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(drawable) / len(drawable)
    uncertain = np.array([means.get(turn, typical) for turn in turns])
    return uncertain / uncertain.sum(), kind


def _counted(results: Iterable[Judgment | Failure], criteria: Collection[str]) -> Iterator[Judgment]:
    for result in results:
        if isinstance(result, Judgment) and result.criterion in criteria and not result.unable:
            yield result


def _entropies(judgments: Iterable[Judgment]) -> _Measured:
    """The entropy of each judgment with label probabilities, as a share of the largest possible."""
    entropies: _Measured = defaultdict(lambda: defaultdict(list))
    ids: dict[str, str] = {}
    for judgment in judgments:
        if judgment.probabilities and len(judgment.probabilities) > 1:
            shares = [share for share in judgment.probabilities.values() if share > 0]
            entropy = -math.fsum(share * math.log(share) for share in shares) / math.log(len(judgment.probabilities))
            response_id = ids.setdefault(judgment.response_id, judgment.response_id)
            entropies[judgment.turn_id, judgment.criterion][response_id].append(max(0.0, entropy))
    return entropies


def _variances(judgments: Callable[[], Iterable[Judgment]]) -> _Measured:
    """The variance of each response's grades by several judges or prompts, as a share of the largest possible."""
    grades: dict[tuple[str, str, str], dict[tuple[str, str], list[int]]] = defaultdict(dict)
    judges: dict[tuple[str, str], tuple[str, str]] = {}
    scales: dict[str, set[int]] = defaultdict(set)
    for judgment in judgments():
        scales[judgment.criterion].add(judgment.grade)
        judge = judgment.judge, judgment.variant
        judges.setdefault(judge, judge)
    # One judge under one prompt differs from nobody, and most files hold no other.
    for judgment in judgments() if len(judges) > 1 else ():
        of_response = grades[judgment.turn_id, judgment.criterion, judgment.response_id]
        of_response.setdefault(judges[judgment.judge, judgment.variant], []).append(judgment.grade)
    variances: _Measured = defaultdict(dict)
    for (turn, criterion, response_id), by_judge in grades.items():
        if len(by_judge) > 1:
            half = (max(scales[criterion]) - min(scales[criterion])) / 2
            means = [sum(grades_of_judge) / len(grades_of_judge) for grades_of_judge in by_judge.values()]
            variances[turn, criterion][response_id] = [float(np.var(means)) / half**2 if half else 0.0]
    return variances
