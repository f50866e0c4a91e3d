"""The turns and topics with nuggets that runs had to answer, and what is known of their responses. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal

from judge.nuggets.matches import PairLabels
from judge.nuggets.records import MatchLabel, Nugget, NuggetBank
from judge.pool.records import Pool, PooledResponse
from judge.records import Record
from judge.results.turns import HARNESS, first_ranked, had_to_answer
from judge.text.ids import natural_key, topic_of

UnitStatus = Literal["matched", "incomplete", "left_out", "unanswered"]
"""matched: every nugget has a label. incomplete: a label is missing, which counts against the run. left_out: a label is
missing for a reason that counts against no run. unanswered: the run ranked no pooled response first."""


class RunUnit(Record, frozen=True):
    """A turn or topic with nuggets that a run had to answer."""

    run_id: str
    scope: str
    """The turn, or the topic for nuggets of a whole topic."""
    topic_id: str
    responses: tuple[str, ...]
    """The pooled responses that the run ranked first there."""
    nuggets: tuple[Nugget, ...]
    labels: dict[str, MatchLabel]
    """Nugget id to its label, where it is known; of several responses the best label."""
    status: UnitStatus
    reasons: dict[str, str]
    """Nugget id to the reason of a missing label."""


def run_units(pool: Pool, bank: NuggetBank, known: PairLabels) -> tuple[RunUnit, ...]:
    """The units of every run, in natural order of runs and then of turns and topics.

    Only the response that a run ranked first stands for it in a turn. Of a nugget of a whole topic, the best label over
    the run's responses counts; it is contradicted if a response contradicts it and none supports it.

    A missing label counts against the run, because it may be the run's doing, as on the leaderboard. It counts against
    nobody where nobody asked for it, where the budget was spent, or where the judge answered about no response of the
    turn or topic at all.

    Args:
        pool: The responses, and the turns that each run had to answer.
        bank: The bank.
        known: The labels.
    """
    firsts = first_ranked(pool)
    expected = had_to_answer(pool)
    every = {response.turn_id for response in pool.responses}.union(*expected.values())
    scopes = bank.by_scope()
    reached = _reached(pool, scopes, known)
    units: list[RunUnit] = []
    for run_id in runs_to_score(pool):
        answered = firsts.get(run_id, {})
        turns = {*expected.get(run_id, every), *answered}
        for scope in sorted({*turns, *map(topic_of, turns)} & scopes.keys(), key=natural_key):
            there = [answered[turn] for turn in sorted(answered, key=natural_key) if scope in (turn, topic_of(turn))]
            units.append(_unit(run_id, scope, there, scopes[scope], known, scope in reached))
    return tuple(units)


def runs_to_score(pool: Pool) -> list[str]:
    """The ids of the runs that were to be judged, in natural order."""
    declined = {row.run_id for row in pool.exclusions if row.reason == "eval_response_false"}
    declined.update(run.run_id for run in pool.runs if not run.selected)
    run_ids = {*first_ranked(pool), *had_to_answer(pool), *(row.run_id for row in pool.exclusions)} - declined
    return sorted(run_ids, key=natural_key)


def _reached(pool: Pool, scopes: Mapping[str, Sequence[Nugget]], known: PairLabels) -> set[str]:
    """The turns and topics about which the judge answered at least once."""
    scope_of = {nugget.nugget_id: scope for scope, nuggets in scopes.items() for nugget in nuggets}
    answered = {nugget_id for _, nugget_id in known.labels}
    answered |= {key[1] for key, failure in known.failures.items() if failure.reason not in HARNESS}
    return {scope_of[nugget_id] for nugget_id in answered if nugget_id in scope_of}


def _unit(
    run_id: str,
    scope: str,
    responses: Sequence[PooledResponse],
    nuggets: Sequence[Nugget],
    known: PairLabels,
    reached: bool,
) -> RunUnit:
    labels: dict[str, MatchLabel] = {}
    reasons: dict[str, str] = {}
    for nugget in nuggets if responses else ():
        keys = [(response.response_id, nugget.nugget_id) for response in responses]
        found = {known.labels[key] for key in keys if key in known.labels}
        lacking = [key for key in keys if key not in known.labels]
        if "supports" in found or not lacking:
            order: tuple[MatchLabel, ...] = ("supports", "partly", "contradicts", "does_not")
            labels[nugget.nugget_id] = next(label for label in order if label in found)
        else:
            why = [known.failures[key].reason if key in known.failures else "not_asked" for key in lacking]
            # One reason that counts against nobody is enough: the label might have been the best one.
            why.sort(key=lambda reason: not counts_against_nobody(reason, reached))
            reasons[nugget.nugget_id] = why[0]
    status: UnitStatus = "matched"
    if not responses:
        status = "unanswered"
    elif any(counts_against_nobody(reason, reached) for reason in reasons.values()):
        status = "left_out"
    elif reasons:
        status = "incomplete"
    return RunUnit(
        run_id=run_id,
        scope=scope,
        topic_id=nuggets[0].topic_id,
        responses=tuple(response.response_id for response in responses),
        nuggets=tuple(nuggets),
        labels=labels,
        status=status,
        reasons=reasons,
    )


def counts_against_nobody(reason: str, reached: bool) -> bool:
    """Whether the lack of a label counts against no run."""
    return reason in ("budget", "not_asked") or (reason == "provider_error" and not reached)
