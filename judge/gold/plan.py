"""What to label next: turns drawn at random with known probabilities, each with the responses of all runs.

Topics are put in random order, and so are the turns within each topic. Systematic sampling with probability
proportional to size (Madow 1949; Hartley & Rao 1962) then gives every topic about its share: each turn is an interval
on a line, as long as its inclusion probability, and points at a distance of 1, with a uniform start, pick the turns
they fall on. The probabilities are exact for any order of the turns, so an order may be chosen in which every start of
the sample gives every run its responses.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Failure, Judgment
from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, finder, response_digest
from judge.io.files import decode_lines
from judge.io.ids import natural_key
from judge.io.text import count, digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem

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


class PlanRow(msgspec.Struct, frozen=True):
    """One response to label."""

    turn_id: str
    topic_id: str
    response_id: str
    text_sha256: str
    runs: tuple[str, ...]
    criteria: tuple[str, ...]
    inclusion_probability: float
    """The probability with which its turn was drawn."""
    stratum: Literal["certain", "drawn"]
    """`certain` if the turn was taken in any case, `drawn` if it was drawn at random."""


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
    uncertainty: Literal["entropy", "variance", "none"]
    """The measure that made some turns likelier to be drawn than others."""


class _Frame(msgspec.Struct, frozen=True):
    """The sampling frame: T turns in natural order, and R runs."""

    turns: tuple[str, ...]
    responses: dict[str, tuple[PooledResponse, ...]]
    """The responses of each turn that are still to be labeled."""
    labels: _Floats
    """How many responses each turn has, (T,)."""
    counts: _Ints
    """How many responses each turn has of each run, (T, R)."""
    wanted: _Ints
    """How many responses must be drawn of each run, (R,)."""


def make_plan(
    pool: Pool,
    n: int,
    seed: int,
    *,
    criteria: Sequence[str],
    judgments: Sequence[Judgment | Failure] = (),
    gold: Iterable[GoldRow] = (),
    per_run: int = 10,
) -> LabelingPlan:
    """Draw about `n` responses of the pool, whole turns of all runs.

    Turns are drawn with probability proportional to size. Half of a turn's size is the same for all turns, half is its
    share of the uncertainty of the judgments. Responses that have grades under every criterion are left out. To use
    their grades and the plan's as one sample, give their rows an inclusion probability of 1. Every run must have
    `per_run` labeled responses, grades of gold among them, or all of its own. The same arguments give the same plan. An
    InputError if nothing is left to draw. A UsageError if `n` is too small; the message names a number that suffices.
    """
    graded = _graded(gold, pool)
    frame = _frame(pool, graded, criteria, per_run)
    if not frame.turns:
        raise InputError("nothing is left to label: the pool is empty, or all its responses have grades")
    uncertainty, kind = turn_uncertainty(judgments, frame.turns, criteria)
    sizes = 0.5 / len(frame.turns) + 0.5 * uncertainty
    rng = np.random.default_rng(seed)
    draws = _turns_for(sizes, frame.labels, n)
    probabilities = inclusion(sizes, draws)
    order = _fair_order(frame, probabilities, rng)
    if order is None:
        # Rounding may leave a whole number slightly too large, and `ceil` would then add one.
        would_do = math.ceil(_expected(sizes, frame.labels, _enough(frame, sizes, draws, seed)) - 1e-9)
        raise UsageError(
            f"--n {n} is about {draws} of {len(sizes)} turns, too few for {per_run} responses of every run: "
            f"--n {would_do} suffices, or a smaller --per-run"
        )
    chosen = systematic(probabilities[order], rng.random())
    rows = [
        row
        for turn in np.sort(order[chosen])
        for row in _rows(frame.responses[frame.turns[turn]], graded, criteria, float(probabilities[turn]))
    ]
    done = sum(not _missing(response, graded, criteria) for response in pool.responses)
    return LabelingPlan(tuple(rows), int(chosen.sum()), len(sizes), int(frame.labels.sum()), done, kind)


def read_plan(content: bytes, name: str) -> tuple[PlanRow, ...]:
    """Read the rows of a plan file; an InputError lists every line that is none."""
    rows: list[PlanRow] = []
    problems: list[Problem] = []
    for number, row in decode_lines(content, PlanRow, name, "not_a_plan"):
        if isinstance(row, Problem):
            problems.append(row)
        elif not LEAST <= row.inclusion_probability <= 1:
            message = f"inclusion_probability {row.inclusion_probability}: expected {LEAST:g} to 1"
            problems.append(Problem("not_a_plan", "error", name, row.turn_id, f"line {number}", message))
        else:
            rows.append(row)
    if problems:
        raise InputError(f"{name}: not usable as a plan: {count(len(problems), 'problem')}", problems)
    return tuple(rows)


def _graded(gold: Iterable[GoldRow], pool: Pool) -> set[tuple[str, str]]:
    """(response_id, criterion) of every grade for a response of the pool."""
    find = finder(pool)
    return {(response.response_id, row.criterion) for row in gold if (response := find(row))}


def _missing(response: PooledResponse, graded: set[tuple[str, str]], criteria: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in criteria if (response.response_id, name) not in graded)


def _frame(pool: Pool, graded: set[tuple[str, str]], criteria: Sequence[str], per_run: int) -> _Frame:
    responses: dict[str, list[PooledResponse]] = defaultdict(list)
    labeled: dict[str, list[str]] = defaultdict(list)
    for response in pool.responses:
        if _missing(response, graded, criteria):
            responses[response.turn_id].append(response)
        else:
            for run_id in _runs(response):
                labeled[run_id].append(response.turn_id)
    turns = tuple(sorted(responses, key=natural_key))
    run_ids = sorted({run_id for response in pool.responses for run_id in _runs(response)}, key=natural_key)
    counts = [Counter(run_id for response in responses[turn] for run_id in _runs(response)) for turn in turns]
    run_counts = np.array([[count[run_id] for run_id in run_ids] for count in counts], dtype=np.int64)
    run_counts = run_counts.reshape(len(turns), len(run_ids))
    done = [labeled[run_id] for run_id in run_ids]
    if pool.unit == "citation":
        # All citations of a response are drawn with it.
        run_counts, done = np.minimum(run_counts, 1), [[*set(turn_ids)] for turn_ids in done]
    still = np.array([max(0, per_run - len(turn_ids)) for turn_ids in done], dtype=np.int64)
    return _Frame(
        turns=turns,
        responses={turn: tuple(responses[turn]) for turn in turns},
        labels=np.array([len(responses[turn]) for turn in turns], dtype=np.float64),
        counts=run_counts,
        wanted=np.minimum(still, run_counts.sum(axis=0)),
    )


def _runs(response: PooledResponse) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.run_id for entry in response.runs))


def _turns_for(sizes: _Floats, labels: _Floats, n: int) -> int:
    """The number of turns whose expected number of responses is nearest to `n`; at least one."""
    enough = 1 + bisect_left(range(1, len(sizes)), float(n), key=lambda draws: _expected(sizes, labels, draws))
    return min((enough, max(1, enough - 1)), key=lambda draws: abs(_expected(sizes, labels, draws) - n))


def _expected(sizes: _Floats, labels: _Floats, draws: int) -> float:
    """How many responses a sample of `draws` turns has on average."""
    return float(inclusion(sizes, draws) @ labels)


def _enough(frame: _Frame, sizes: _Floats, too_few: int, seed: int) -> int:
    """About the smallest number of turns that gives every run its responses; all turns always do."""
    enough = len(sizes)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if _fair_order(frame, inclusion(sizes, middle), np.random.default_rng(seed)) is None:
            too_few = middle
        else:
            enough = middle
    return enough


def _fair_order(frame: _Frame, probabilities: _Floats, rng: np.random.Generator) -> _Ints | None:
    """A random order of the turns in which every start gives every run its responses; None if none was found."""
    # The minimum over all starts never exceeds the mean, so too small a mean rules out every order.
    if (probabilities @ frame.counts < frame.wanted - 1e-9).any():
        return None
    for _ in range(ORDERS):
        order = _random_order(frame, rng)
        if (fewest(probabilities[order], frame.counts[order]) >= frame.wanted).all():
            return order
    return None


def _random_order(frame: _Frame, rng: np.random.Generator) -> _Ints:
    """Indices of the turns, topics together: topics in random order, turns in random order within each."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for index, turn in enumerate(frame.turns):
        by_topic[frame.responses[turn][0].topic_id].append(index)
    topics = list(by_topic.values())
    return np.concatenate([rng.permutation(topics[topic]) for topic in rng.permutation(len(topics))])


def _rows(
    responses: Iterable[PooledResponse], graded: set[tuple[str, str]], criteria: Sequence[str], probability: float
) -> Iterator[PlanRow]:
    for response in responses:
        ids = response.turn_id, response.topic_id, response.response_id
        about = response_digest(response), _runs(response), _missing(response, graded, criteria)
        yield PlanRow(*ids, *about, probability, "certain" if probability == 1 else "drawn")


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
        values, kind = _variances(lambda: _counted(judgments, criteria)), "variance"
    by_turn: dict[str, list[float]] = defaultdict(list)
    for (turn, _), of_responses in values.items():
        by_turn[turn] += [math.fsum(given) / len(given) for given in of_responses.values()]
    means = {turn: math.fsum(shares) / len(shares) for turn, shares in by_turn.items()}
    known = [means[turn] for turn in turns if turn in means]
    if not known or not sum(known):
        return np.full(len(turns), 1 / len(turns)), "none"
    typical = math.fsum(known) / len(known)
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
    grades: dict[_Key, dict[str, dict[tuple[str, str], list[int]]]] = {}
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    ids: dict[str, str] = {}
    judges: dict[tuple[str, str], tuple[str, str]] = {}
    for judgment in judgments():
        name, grade = judgment.criterion, judgment.grade
        low[name], high[name] = min(grade, low.get(name, grade)), max(grade, high.get(name, grade))
        judge = judgment.whole_judge, judgment.variant
        judges.setdefault(judge, judge)
    # One judge under one prompt differs from nobody, and most files hold no other.
    for judgment in judgments() if len(judges) > 1 else ():
        judge = judges[judgment.whole_judge, judgment.variant]
        of_turn = grades.setdefault((judgment.turn_id, judgment.criterion), {})
        of_response = of_turn.setdefault(ids.setdefault(judgment.response_id, judgment.response_id), {})
        of_response.setdefault(judge, []).append(judgment.grade)
    variances: _Measured = {}
    for (turn, criterion), of_turn in grades.items():
        half = (high[criterion] - low[criterion]) / 2
        for response_id, by_judge in of_turn.items():
            if len(by_judge) > 1:
                means = [sum(given) / len(given) for given in by_judge.values()]
                variance = float(np.var(means)) / half**2 if half else 0.0
                variances.setdefault((turn, criterion), {})[response_id] = [variance]
    return variances
