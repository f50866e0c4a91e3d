"""Responses with their nuggets as tasks for a judge, and its answers as labels of their sentences. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from judge.ask.records import Failure, Judgment
from judge.ask.subjects import NUGGET_PRECISION
from judge.ask.tasks import Task
from judge.errors import UsageError
from judge.gold.rows import text_digest
from judge.nuggets.claims import CLAIM_LABELS, ClaimFailure, ClaimLabel, ResponseClaims, nuggets_digest, nuggets_for
from judge.nuggets.records import Nugget, NuggetBank
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion


class ClaimQuestion(NamedTuple):
    """A response, and all nuggets of its turn and topic."""

    response: PooledResponse
    nuggets: tuple[Nugget, ...]


def claim_questions(pool: Pool, bank: NuggetBank) -> tuple[ClaimQuestion, ...]:
    """Every response whose turn or topic has nuggets, in the order of the pool."""
    scopes = bank.by_scope()
    return tuple(
        ClaimQuestion(response, nuggets) for response in pool.responses if (nuggets := nuggets_for(response, scopes))
    )


def claim_task(question: ClaimQuestion, criterion: Criterion) -> Task:
    """The question what carries each sentence of the response."""
    return Task(question.response, criterion, nuggets=tuple(nugget.text for nugget in question.nuggets))


def check_claim_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask what carries each sentence.

    Raises:
        UsageError: It is of another criterion, has a label that is none of a claim, or lacks one.
    """
    if criterion.name != NUGGET_PRECISION:
        raise UsageError(
            f'{criterion.prompt_id}: no prompt about claims: expected `criterion = "{NUGGET_PRECISION}"` in it'
        )
    labels = [level.label for level in criterion.sentence_levels]
    strange = [label for label in labels if label not in CLAIM_LABELS]
    lacking = [label for label in ("nugget", "none", "no_claim") if label not in labels]
    if strange or lacking:
        raise UsageError(
            f"{criterion.prompt_id}: labels of sentences are {', '.join(labels) or 'none'}: expected nugget, none and "
            "no_claim, and passage where it shows passages"
        )
    if ("passage" in labels) != ("passages" in criterion.inputs):
        raise UsageError(f"{criterion.prompt_id}: expected both the label passage and the input passages, or neither")
    rollup = criterion.rollup
    if rollup is None or rollup.ignored != "no_claim":
        raise UsageError(f'{criterion.prompt_id}: expected `ignored = "no_claim"` in its roll-up')


def claimed(
    questions: Sequence[ClaimQuestion], results: Sequence[Judgment | Failure], criterion: Criterion
) -> tuple[list[ResponseClaims], list[ClaimFailure]]:
    """The answers of a judge as labels and as missing labels, in the order of the questions.

    Args:
        questions: What was asked.
        results: An answer to each of them.
        criterion: The prompt.
    """
    labels: dict[str, ClaimLabel] = {label: label for label in CLAIM_LABELS}
    claims: list[ResponseClaims] = []
    failures: list[ClaimFailure] = []
    for question, result in zip(questions, results, strict=True):
        response = question.response
        if isinstance(result, Failure):
            failures.append(
                ClaimFailure(
                    turn_id=response.turn_id,
                    response_id=response.response_id,
                    reason=result.reason,
                    detail=result.detail,
                    judge=result.judge,
                    raw=result.raw,
                    request_digest=result.request_digest,
                )
            )
            continue
        claims.append(
            ResponseClaims(
                turn_id=response.turn_id,
                response_id=response.response_id,
                labels=tuple(labels[label] for label in result.sentences),
                passages="passages" in criterion.inputs,
                text_sha256=text_digest(response.text),
                nuggets_sha256=nuggets_digest(question.nuggets),
                judge=result.judge,
                rationale=result.rationale,
                model=result.model,
                prompt=f"{result.criterion}/{result.variant}",
                prompt_digest=result.criterion_digest,
                request_digest=result.request_digest,
                repaired=result.repaired,
            )
        )
    return claims, failures


def claim_counts(claims: Iterable[ResponseClaims]) -> dict[str, int]:
    """How many sentences have each label, the best one first."""
    counts = dict.fromkeys(reversed(CLAIM_LABELS), 0)
    for row in claims:
        for label in row.labels:
            counts[label] += 1
    return {str(label): number for label, number in counts.items()}
