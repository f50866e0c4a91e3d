"""Pairs of response and nugget as tasks for a judge, and its answers as matches. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from judge.ask.records import Failure, Judgment
from judge.ask.subjects import NUGGET
from judge.ask.tasks import Task
from judge.errors import UsageError
from judge.gold.rows import text_digest
from judge.nuggets.records import MATCH_LABELS, MatchedNugget, MatchFailure, MatchLabel, Nugget, NuggetBank
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion
from judge.text.safe import digest

_Question = TypeVar("_Question")


class NuggetPair(NamedTuple):
    """A response, and a nugget of its turn or topic."""

    response: PooledResponse
    nugget: Nugget


def nugget_pairs(pool: Pool, bank: NuggetBank) -> tuple[NuggetPair, ...]:
    """Every response with each nugget of its turn, then with each of its topic, in the order of pool and bank."""
    scopes = bank.by_scope()
    return tuple(
        NuggetPair(response, nugget)
        for response in pool.responses
        for scope in (response.turn_id, response.topic_id)
        for nugget in scopes.get(scope, ())
    )


def pair_task(pair: NuggetPair, criterion: Criterion) -> Task:
    """The question whether the response supports the nugget."""
    return Task(pair.response, criterion, nugget=pair.nugget.text)


def check_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask for a match.

    Raises:
        UsageError: It shows no nugget, or has a label that is none of a match.
    """
    if criterion.name != NUGGET:
        raise UsageError(f'{criterion.prompt_id}: no prompt about a nugget: expected `criterion = "{NUGGET}"` in it')
    strange = [level.label for level in criterion.scale.levels if level.label not in MATCH_LABELS]
    if strange or criterion.answer != "grade":
        raise UsageError(
            f"{criterion.prompt_id}: {', '.join(strange) or criterion.answer}: expected one grade a nugget, and labels "
            f"among {', '.join(MATCH_LABELS)}"
        )


def matched(
    pairs: Sequence[NuggetPair], results: Sequence[Judgment | Failure], criterion: Criterion
) -> tuple[list[MatchedNugget], list[MatchFailure]]:
    """The answers of a judge as matches and as missing matches, in the order of the pairs.

    Args:
        pairs: What was asked.
        results: An answer to each of them.
        criterion: The prompt.
    """
    labels = {level.grade: label for level in criterion.scale.levels for label in MATCH_LABELS if level.label == label}
    matches: list[MatchedNugget] = []
    failures: list[MatchFailure] = []
    for pair, result in zip(pairs, results, strict=True):
        if isinstance(result, Judgment) and not result.unable:
            matches.append(_match(pair, result, labels[result.grade]))
            continue
        failures.append(
            MatchFailure(
                turn_id=pair.response.turn_id,
                nugget_id=pair.nugget.nugget_id,
                response_id=pair.response.response_id,
                reason=result.reason if isinstance(result, Failure) else "unable",
                detail=result.detail if isinstance(result, Failure) else "the judge said that it cannot tell",
                judge=result.judge,
                raw=result.raw if isinstance(result, Failure) else result.rationale,
                request_digest=result.request_digest,
            )
        )
    return matches, failures


def _match(pair: NuggetPair, result: Judgment, label: MatchLabel) -> MatchedNugget:
    return MatchedNugget(
        turn_id=pair.response.turn_id,
        nugget_id=pair.nugget.nugget_id,
        label=label,
        response_id=pair.response.response_id,
        text_sha256=text_digest(pair.response.text),
        nugget_sha256=digest(pair.nugget.text),
        judge=result.judge,
        expected=result.expected,
        probabilities=result.probabilities,
        rationale=result.rationale,
        model=result.model,
        prompt=f"{result.criterion}/{result.variant}",
        prompt_digest=result.criterion_digest,
        request_digest=result.request_digest,
        repaired=result.repaired,
    )


def spread_evenly(questions: Sequence[_Question], limit: int | None) -> tuple[_Question, ...]:
    """At most `limit` questions, evenly spaced over the pool, so that a trial covers all topics."""
    if limit is None or len(questions) <= limit:
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


def label_counts(matches: Iterable[MatchedNugget]) -> dict[str, int]:
    """How many matches have each label."""
    counts = dict.fromkeys(MATCH_LABELS, 0)
    for match in matches:
        counts[match.label] += 1
    return {str(label): number for label, number in counts.items()}
