"""What to label next: turns drawn at random with known probabilities, and with each turn the responses of all runs.

Turns are put in random order within their topics, and the topics in random order, so that systematic sampling gives
every topic about its share. For any order the probabilities are exact, hence also for one that was taken because no
start leaves a run short.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.records import Judgment
from judge.errors import InputError, UsageError
from judge.files.jsonl import decode_lines, jsonl_bytes
from judge.gold.rows import GoldRow, finder, text_digest
from judge.gold.sampling import fewest, inclusion, systematic
from judge.gold.uncertainty import turn_uncertainty
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem
from judge.text.ids import natural_key

ORDERS = 50
"""Random orders tried before a number of turns is found too small for the responses that every run must have."""

LEAST = 1e-9
"""Least inclusion probability, as in gold: the weights 1/π of smaller ones leave the range of numbers."""

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class PlanRow(msgspec.Struct, frozen=True):
    """One response to label."""

    turn_id: str
    topic_id: str
    response_id: str
    text_sha256: str
    runs: tuple[str, ...]
    criteria: tuple[str, ...]
    inclusion_probability: float
    stratum: Literal["certain", "drawn"]
    """Whether the turn was taken in any case, or drawn."""


class LabelingPlan(msgspec.Struct, frozen=True):
    """What to label, and what was left to choose from."""

    rows: tuple[PlanRow, ...]
    turns: int
    frame_turns: int
    """Turns that could be drawn."""
    frame: int
    """Responses that could be drawn."""
    graded: int
    """Responses left out, because they have grades under all the criteria."""
    uncertainty: Literal["entropy", "variance", "none"]
    """What made some turns likelier than others."""


class _Frame(msgspec.Struct, frozen=True):
    """What can be drawn: T turns in natural order, and R runs."""

    turns: tuple[str, ...]
    responses: dict[str, tuple[PooledResponse, ...]]
    """The responses of each turn that are still to be labeled."""
    labels: _Floats
    """How many they are, (T,)."""
    answers: _Ints
    """Those of each run, (T, R)."""
    wanted: _Ints
    """How many each run must have, (R,)."""


def make_plan(
    pool: Pool,
    n: int,
    seed: int,
    *,
    criteria: Sequence[str],
    judgments: Sequence[Judgment] = (),
    gold: Iterable[GoldRow] = (),
    per_run: int = 10,
) -> LabelingPlan:
    """Draw about `n` responses of the pool, whole turns of all runs.

    Half of a turn's size is the same for all turns, half is its share of the uncertainty of the judgments. Responses
    graded already under every criterion are left out: together with the plan they were taken for certain, so give
    their rows an inclusion probability of 1 when both are used as one sample.

    Args:
        pool: The responses.
        n: Responses to draw; as turns are drawn whole, about so many.
        seed: Of all that is random.
        criteria: What the responses are to be labeled for.
        judgments: Judgments of these responses by any judges, for the uncertainty.
        gold: Grades that there are already; they count as labels of the runs.
        per_run: Responses that every run must have, or all it has if those are fewer.

    Raises:
        InputError: Nothing is left to draw.
        UsageError: `n` is too small; the message says which would do.
    """
    graded = _graded(gold, pool)
    frame = _frame(pool, graded, criteria, per_run)
    if not frame.turns:
        raise InputError("nothing is left to label: the pool is empty, or all of it has grades")
    uncertainty, kind = turn_uncertainty(judgments, frame.turns, criteria)
    sizes = 0.5 / len(frame.turns) + 0.5 * uncertainty
    rng = np.random.default_rng(seed)
    draws = _turns_for(sizes, frame.labels, n)
    order = _fair_order(frame, inclusion(sizes, draws), rng)
    if order is None:
        # Less what rounding may add to a whole number.
        would_do = math.ceil(_expected(sizes, frame.labels, _enough(frame, sizes, draws, seed)) - 1e-9)
        raise UsageError(
            f"--n {n} is about {draws} of {len(sizes)} turns, too few for {per_run} responses of every run: "
            f"--n {would_do} would do, or a smaller --per-run"
        )
    probabilities = inclusion(sizes, draws)
    chosen = systematic(probabilities[order], rng.random())
    rows = [
        row
        for turn in np.sort(order[chosen])
        for row in _rows(frame.responses[frame.turns[turn]], graded, criteria, float(probabilities[turn]))
    ]
    done = sum(not _missing(response, graded, criteria) for response in pool.responses)
    return LabelingPlan(tuple(rows), int(chosen.sum()), len(sizes), int(frame.labels.sum()), done, kind)


def read_plan(content: bytes, name: str) -> tuple[PlanRow, ...]:
    """The rows of a plan file.

    Raises:
        InputError: Lines that are no rows of a plan; every one is listed.
    """
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
        raise InputError(f"{name}: not usable as a plan: {len(problems)} faults", problems)
    return tuple(rows)


def plan_jsonl(plan: LabelingPlan) -> bytes:
    """A plan file: one response a line."""
    return jsonl_bytes(plan.rows)


def _graded(gold: Iterable[GoldRow], pool: Pool) -> set[tuple[str, str]]:
    """(response_id, criterion) of all that has a grade."""
    find = finder(pool)
    return {(found.response_id, row.criterion) for row in gold if (found := find(row))}


def _missing(response: PooledResponse, graded: set[tuple[str, str]], criteria: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in criteria if (response.response_id, name) not in graded)


def _frame(pool: Pool, graded: set[tuple[str, str]], criteria: Sequence[str], per_run: int) -> _Frame:
    responses: dict[str, list[PooledResponse]] = defaultdict(list)
    labeled: Counter[str] = Counter()
    for response in pool.responses:
        if _missing(response, graded, criteria):
            responses[response.turn_id].append(response)
        else:
            labeled.update(_runs(response))
    turns = tuple(sorted(responses, key=natural_key))
    run_ids = sorted({run_id for response in pool.responses for run_id in _runs(response)}, key=natural_key)
    counts = [Counter(run_id for response in responses[turn] for run_id in _runs(response)) for turn in turns]
    answers = np.array([[count[run_id] for run_id in run_ids] for count in counts], dtype=np.int64)
    answers = answers.reshape(len(turns), len(run_ids))
    still = np.array([max(0, per_run - labeled[run_id]) for run_id in run_ids], dtype=np.int64)
    return _Frame(
        turns=turns,
        responses={turn: tuple(responses[turn]) for turn in turns},
        labels=np.array([len(responses[turn]) for turn in turns], dtype=np.float64),
        answers=answers,
        wanted=np.minimum(still, answers.sum(axis=0)),
    )


def _runs(response: PooledResponse) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.run_id for entry in response.runs))


def _turns_for(sizes: _Floats, labels: _Floats, n: int) -> int:
    """The number of turns whose expected number of responses is nearest to `n`; at least one."""
    low, high = 1, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if _expected(sizes, labels, middle) < n:
            low = middle + 1
        else:
            high = middle
    return min((low, max(1, low - 1)), key=lambda draws: abs(_expected(sizes, labels, draws) - n))


def _expected(sizes: _Floats, labels: _Floats, draws: int) -> float:
    """Responses that `draws` turns have on average."""
    return float(inclusion(sizes, draws) @ labels)


def _enough(frame: _Frame, sizes: _Floats, too_few: int, seed: int) -> int:
    """A number of turns that gives every run its responses, and about the smallest; all turns always do."""
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
    # The fewest over all starts are never more than the mean over them.
    if (probabilities @ frame.answers < frame.wanted - 1e-9).any():
        return None
    for _ in range(ORDERS):
        order = _random_order(frame.turns, frame.responses, rng)
        if (fewest(probabilities[order], frame.answers[order]) >= frame.wanted).all():
            return order
    return None


def _random_order(
    turns: Sequence[str], responses: dict[str, tuple[PooledResponse, ...]], rng: np.random.Generator
) -> _Ints:
    """Indices of the turns, topics together: topics in random order, turns in random order within each."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for index, turn in enumerate(turns):
        by_topic[responses[turn][0].topic_id].append(index)
    topics = list(by_topic.values())
    return np.concatenate([rng.permutation(topics[topic]) for topic in rng.permutation(len(topics))])


def _rows(
    responses: Iterable[PooledResponse], graded: set[tuple[str, str]], criteria: Sequence[str], probability: float
) -> list[PlanRow]:
    return [
        PlanRow(
            turn_id=response.turn_id,
            topic_id=response.topic_id,
            response_id=response.response_id,
            text_sha256=text_digest(response.text),
            runs=_runs(response),
            criteria=_missing(response, graded, criteria),
            inclusion_probability=probability,
            stratum="certain" if probability == 1 else "drawn",
        )
        for response in responses
    ]
