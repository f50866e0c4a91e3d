"""What to label next: turns with the responses of all runs, or responses by the judge's grade, drawn at random.

Topics are put in random order, and so are the turns within each topic. Systematic sampling (`judge.gold.sampling`) then
gives every topic about its share. Its probabilities are exact for any order of the turns, so an order may be chosen in
which every start of the sample gives every run its responses.

By the judge's grade, a unit is a response, and the intervals of a run's responses of one grade lie side by side: of
each run and grade about its share is drawn, with more of the grades at which people's grades vary more (J. Neyman,
1934, Journal of the Royal Statistical Society 97(4), 558-625).
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal

import msgspec
import numpy as np

from judge.ask.records import Failure, Judgment
from judge.errors import InputError, UsageError, refuse
from judge.gold.rows import BY_GRADE, GoldRow, finder, response_digest
from judge.gold.sampling import Ints, fewest, inclusion, systematic
from judge.gold.strata import Errors, Strata, by_grade, forecast_saving, spreads
from judge.gold.uncertainty import graded_judgments, turn_uncertainty
from judge.io.files import decode_lines
from judge.io.ids import groups_of, natural_key
from judge.io.text import count
from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.records import JudgedUnit, Problem, file_problem
from judge.stats.tables import Floats
from judge.units import UNITS
from judge.units.response import RESPONSE

ORDERS = 50
"""Random orders to try. If none gives every run its responses, the number of turns is too small."""

LEAST = 1e-9
"""Least inclusion probability, as in gold; the weight 1/π of a smaller one would be too large to compute with."""


PER_RUN = 10
"""Responses that every run is to have labeled, where the user names no number."""
FEWEST_TOPICS = 3
"""Topics without which there is no interval."""


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
    without_text: int = 0
    """Citations and passages left out because there is no text of the passage."""
    warnings: tuple[str, ...] = ()
    """In words, what so small a sample lacks."""
    saving: tuple[float, float] | None = None
    """By grade: the shares of labels that are predicted to be saved for corrected means and for exact agreement."""


class _Frame(msgspec.Struct, frozen=True):
    """The sampling frame: T units, which are turns or by grade responses, in natural order, and R runs."""

    units: tuple[str, ...]
    responses: dict[str, tuple[PooledResponse, ...]]
    """The responses of each unit that are still to be labeled."""
    labels: Floats
    """How many responses each unit has, (T,)."""
    counts: Ints
    """How many responses each unit has of each run, (T, R)."""
    wanted: Ints
    """How many responses must be drawn of each run, (R,)."""


class _Design(msgspec.Struct, frozen=True):
    """How the units of a frame are drawn."""

    noun: str
    """What a unit is."""
    strata: Strata
    sizes: Floats
    """(T,); the probabilities are proportional to them."""
    uncertainty: Literal["entropy", "variance", "none"] = "none"
    forecast: Floats | None = None
    """By grade: what people would say of each unit, as of `_strata`."""


def can_be_labeled(response: PooledResponse, pool: Pool) -> bool:
    """Whether people can grade what is pooled; a passage without a text they cannot, nor a citation of one."""
    return UNITS[response.unit].needed_input != "passages" or not lacking_texts(response, pool)


def no_texts(pool: Pool, name: object) -> InputError:
    """What to raise where nothing of a pool can be labeled; `name` is its path."""
    return InputError(
        f"{name}: no passage there has a text, so nobody can grade a {UNITS[pool.unit].nouns.response}; pool with "
        "--passages, which `judge passages extract` makes of a collection"
    )


def make_plan(
    pool: Pool,
    n: int,
    seed: int,
    *,
    criteria: Sequence[str],
    judgments: Sequence[Judgment | Failure] = (),
    gold: Iterable[GoldRow] = (),
    per_run: int | None = None,
    errors: Errors | None = None,
) -> LabelingPlan:
    """Draw about `n` responses of the pool, whole turns of all runs or, with `errors`, single ones by grade.

    Turns are drawn with probability proportional to size. Half of a turn's size is the same for all turns, half is its
    share of the uncertainty of the judgments. By grade, a size is the spread of people's grades where the judge gives
    this one, as `errors` say, which may be empty. Responses that have grades under every criterion are left out. To use
    their grades and the plan's as one sample, give their rows an inclusion probability of 1. Every run must have
    `per_run` labeled responses, grades of gold among them, or all of its own; without that number, the most that `n`
    allows up to `PER_RUN`, with a warning below it. The same arguments give the same plan. An InputError if nothing is
    left to draw. A UsageError if `n` is too small for `per_run`; the message names a number that suffices.
    """
    graded = _graded(pool, gold)
    wanted = PER_RUN if per_run is None else per_run
    if errors is None:
        unit_of = {response.response_id: response.turn_id for response in pool.responses}
    else:
        unit_of = _single(pool)
    frame = _frame(pool, graded, criteria, wanted, unit_of)
    # All citations of a run's response are drawn with it.
    drawn_as = RESPONSE.nouns if UNITS[pool.unit].part_of_response else UNITS[pool.unit].nouns
    if not frame.units:
        raise InputError("nothing is left to label: the pool is empty, or all its responses have grades")
    if errors is None:
        design = _by_turn(frame, judgments, criteria)
    else:
        design = _by_grade(frame, drawn_as.responses, graded_judgments(judgments, criteria), errors)
    rng = np.random.default_rng(seed)
    draws = _units_for(design.sizes, frame.labels, n)
    probabilities = inclusion(design.sizes, draws)
    order = _fair_order(frame, design.strata, probabilities, rng)
    warnings: list[str] = []
    if order is None:
        sufficient = _sufficient(frame, design, draws, seed)
        needed = count(wanted, drawn_as.response)
        few = f"--n {n} is about {draws} of {len(frame.units)} {design.noun}, too few for {needed} of every run"
        if per_run is not None:
            raise UsageError(f"{few}: --n {sufficient} suffices, or a smaller --per-run")
        fewer, order = _with_fewer(pool, graded, criteria, wanted, unit_of, design, probabilities, seed)
        least = f"each has at least {fewer}" if fewer else "some may have none"
        warnings.append(f"{few}, so {least}; --n {sufficient} suffices for {wanted}")
    drawn = np.sort(order[systematic(probabilities[order], rng.random())])
    rows = _rows(frame, design, probabilities, drawn, graded, criteria)
    saved = None
    if errors and design.forecast is not None:
        saved = forecast_saving(probabilities, design.strata, frame.labels, design.forecast)
    turns = {response.turn_id for response in chain.from_iterable(frame.responses.values())}
    left = int(frame.labels.sum())
    topics = len({row.topic_id for row in rows})
    if topics < FEWEST_TOPICS:
        warnings.append(
            f"labels of {count(topics, 'topic')}: with fewer than {FEWEST_TOPICS}, nothing that is estimated from them "
            "has an interval"
        )
    return LabelingPlan(
        warnings=tuple(warnings),
        rows=tuple(rows),
        turns=len({row.turn_id for row in rows}),
        frame_turns=len(turns),
        frame=left,
        graded=len(pool.responses) - left,
        unit=pool.unit,
        uncertainty=design.uncertainty,
        saving=saved,
    )


def _with_fewer(
    pool: Pool,
    graded: set[tuple[str, str]],
    criteria: Sequence[str],
    wanted: int,
    unit_of: Mapping[str, str],
    design: _Design,
    probabilities: Floats,
    seed: int,
) -> tuple[int, Ints]:
    """The most responses below `wanted` that every run can have, and an order that gives it them."""
    for fewer in range(wanted - 1, 0, -1):
        frame = _frame(pool, graded, criteria, fewer, unit_of)
        order = _fair_order(frame, design.strata, probabilities, np.random.default_rng(seed))
        if order is not None:
            return fewer, order
    return 0, _random_order(design.strata, np.random.default_rng(seed))


def _graded(pool: Pool, gold: Iterable[GoldRow]) -> set[tuple[str, str]]:
    """The id of each pooled response with each criterion under which it has a grade."""
    find = finder(pool)
    graded: set[tuple[str, str]] = set()
    for row in gold:
        if response := find(row):
            graded.add((response.response_id, row.criterion))
    return graded


def _rows(
    frame: _Frame,
    design: _Design,
    probabilities: Floats,
    drawn: Ints,
    graded: set[tuple[str, str]],
    criteria: Sequence[str],
) -> list[PlanRow]:
    """The responses of the units with these indices, turns in natural order."""
    rows: list[PlanRow] = []
    for index in drawn.tolist():
        probability = float(probabilities[index])
        stratum = "certain" if probability == 1 else design.strata[index][1]
        for response in frame.responses[frame.units[index]]:
            missing = _missing(response, graded, criteria)
            rows.append(plan_row(response, criteria=missing, probability=probability, stratum=stratum))
    rows.sort(key=lambda row: natural_key(row.turn_id))
    return rows


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
    sizes = spreads(forecast[:, 3], strata, frame.labels)
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


def _units_for(sizes: Floats, labels: Floats, n: int) -> int:
    """The number of units whose expected number of responses is nearest to `n`; at least one."""
    upper = 1 + bisect_left(range(1, len(sizes)), float(n), key=lambda draws: _expected(sizes, labels, draws))
    return min((upper, max(1, upper - 1)), key=lambda draws: abs(_expected(sizes, labels, draws) - n))


def _expected(sizes: Floats, labels: Floats, draws: int) -> float:
    """How many responses a sample of `draws` units has on average."""
    return float(inclusion(sizes, draws) @ labels)


def _sufficient(frame: _Frame, design: _Design, too_few: int, seed: int) -> int:
    """About the smallest number of responses with which every run gets its own; all units always give them."""

    def suffices(draws: int) -> bool:
        probabilities = inclusion(design.sizes, draws)
        return _fair_order(frame, design.strata, probabilities, np.random.default_rng(seed)) is not None

    draws = too_few + 1 + bisect_left(range(too_few + 1, len(design.sizes)), True, key=suffices)
    # Rounding may leave a whole number slightly too large, and `ceil` would then add one.
    return math.ceil(_expected(design.sizes, frame.labels, draws) - 1e-9)


def _fair_order(frame: _Frame, strata: Strata, probabilities: Floats, rng: np.random.Generator) -> Ints | None:
    """A random order of the units in which every start gives every run its responses; None if none was found."""
    # The minimum over all starts never exceeds the mean, so too small a mean rules out every order.
    if (probabilities @ frame.counts < frame.wanted - 1e-9).any():
        return None
    for _ in range(ORDERS):
        order = _random_order(strata, rng)
        if (fewest(probabilities[order], frame.counts[order]) >= frame.wanted).all():
            return order
    return None


def _random_order(strata: Strata, rng: np.random.Generator) -> Ints:
    """Indices of the units: topics, or runs, in random order, strata together within each, units in random order."""
    groups = groups_of((name, (stratum, index)) for index, (name, stratum) in enumerate(strata))
    together = [sorted(groups_of(members).items()) for members in groups.values()]
    ordered: list[Ints] = []
    for index in rng.permutation(len(together)):
        for _, units in together[index]:
            ordered.append(rng.permutation(units))
    return np.concatenate(ordered)


def _strata(frame: _Frame, judgments: Iterable[Judgment], errors: Errors) -> tuple[Strata, Floats]:
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
