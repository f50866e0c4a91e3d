"""Questions to a judge about nuggets and responses, and its answers as matches and as labels of claims. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from judge.ask.records import Failure, Judgment
from judge.ask.subjects import NUGGET, NUGGET_PRECISION
from judge.ask.tasks import Task
from judge.errors import UsageError
from judge.extra.nuggets.labels import nuggets_digest, nuggets_for
from judge.extra.nuggets.records import (
    CLAIM_LABELS,
    MATCH_LABELS,
    ClaimLabel,
    LabelFailure,
    MatchedNugget,
    MatchLabel,
    Nugget,
    NuggetBank,
    ResponseClaims,
)
from judge.gold.rows import text_digest
from judge.io.safe import digest
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion

_Question = TypeVar("_Question")


class NuggetQuestion(NamedTuple):
    """A response, and the nuggets of its turn and topic that it is asked about: one for a match, all for claims."""

    response: PooledResponse
    nuggets: tuple[Nugget, ...]


def match_questions(pool: Pool, bank: NuggetBank) -> tuple[NuggetQuestion, ...]:
    """Every response with each nugget of its turn, then with each of its topic, in the order of pool and bank."""
    return tuple(
        NuggetQuestion(response, (nugget,)) for response, nuggets in claim_questions(pool, bank) for nugget in nuggets
    )


def claim_questions(pool: Pool, bank: NuggetBank) -> tuple[NuggetQuestion, ...]:
    """Every response whose turn or topic has nuggets, with all of them, in the order of the pool."""
    scopes = bank.by_scope()
    return tuple(
        NuggetQuestion(response, nuggets) for response in pool.responses if (nuggets := nuggets_for(response, scopes))
    )


def question_task(question: NuggetQuestion, criterion: Criterion) -> Task:
    """Whether the response supports the nugget, or what carries each of its sentences."""
    texts = tuple(nugget.text for nugget in question.nuggets)
    if criterion.name == NUGGET:
        return Task(question.response, criterion, nugget=texts[0])
    return Task(question.response, criterion, nuggets=texts)


def check_match_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask for a match."""
    if criterion.name != NUGGET:
        raise UsageError(f'{criterion.prompt_id}: no prompt about a nugget: expected `criterion = "{NUGGET}"` in it')
    strange = [level.label for level in criterion.scale.levels if level.label not in MATCH_LABELS]
    if strange or criterion.answer != "grade":
        raise UsageError(
            f"{criterion.prompt_id}: {', '.join(strange) or criterion.answer}: expected one grade a nugget, and labels "
            f"among {', '.join(MATCH_LABELS)}"
        )


def check_claim_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask what carries each sentence."""
    if criterion.name != NUGGET_PRECISION:
        raise UsageError(
            f'{criterion.prompt_id}: no prompt about claims: expected `criterion = "{NUGGET_PRECISION}"` in it'
        )
    labels = [level.label for level in criterion.sentence_levels]
    if not {"nugget", "none", "no_claim"} <= set(labels) <= set(CLAIM_LABELS):
        raise UsageError(
            f"{criterion.prompt_id}: labels of sentences are {', '.join(labels) or 'none'}: expected nugget, none and "
            "no_claim, and passage where it shows passages"
        )
    if ("passage" in labels) != ("passages" in criterion.inputs):
        raise UsageError(f"{criterion.prompt_id}: expected both the label passage and the input passages, or neither")
    rollup = criterion.rollup
    if rollup is None or rollup.ignored != "no_claim":
        raise UsageError(f'{criterion.prompt_id}: expected `ignored = "no_claim"` in its roll-up')


def match_of(question: NuggetQuestion, result: Judgment, criterion: Criterion) -> MatchedNugget:
    """The answer about one nugget as a match."""
    (nugget,) = question.nuggets
    said = next(level.label for level in criterion.scale.levels if level.grade == result.grade)
    return MatchedNugget(
        nugget_id=nugget.nugget_id,
        label=cast("MatchLabel", said),
        nugget_sha256=digest(nugget.text),
        expected=result.expected,
        probabilities=result.probabilities,
        **_facts(question, result),
    )


def claims_of(question: NuggetQuestion, result: Judgment, criterion: Criterion) -> ResponseClaims:
    """The answer about all sentences of a response as their labels."""
    return ResponseClaims(
        labels=cast("tuple[ClaimLabel, ...]", tuple(result.sentences)),
        passages="passages" in criterion.inputs,
        nuggets_sha256=nuggets_digest(question.nuggets),
        **_facts(question, result),
    )


def _facts(question: NuggetQuestion, result: Judgment) -> dict[str, Any]:
    """What every answer says of its response and its judge, by the names of fields."""
    return {
        "turn_id": question.response.turn_id,
        "response_id": question.response.response_id,
        "text_sha256": text_digest(question.response.text),
        "judge": result.judge,
        "rationale": result.rationale,
        "model": result.model,
        "prompt": f"{result.criterion}/{result.variant}",
        "prompt_digest": result.criterion_digest,
        "request_digest": result.request_digest,
        "repaired": result.repaired,
    }


def answers_of(
    questions: Sequence[NuggetQuestion],
    results: Sequence[Judgment | Failure],
    criterion: Criterion,
    answer_of: Callable[[NuggetQuestion, Judgment, Criterion], Any],
) -> tuple[list[Any], list[LabelFailure]]:
    """The answers of a judge and those that are missing, in the order of the questions."""
    one = criterion.name == NUGGET
    answers: list[Any] = []
    missing: list[LabelFailure] = []
    for question, result in zip(questions, results, strict=True):
        # Of a response that claims nothing, the grade is that of "unable", and the sentences have labels.
        if isinstance(result, Judgment) and not (one and result.unable):
            answers.append(answer_of(question, result, criterion))
            continue
        missing.append(
            LabelFailure(
                turn_id=question.response.turn_id,
                nugget_id=question.nuggets[0].nugget_id if one else None,
                response_id=question.response.response_id,
                reason=result.reason if isinstance(result, Failure) else "unable",
                detail=result.detail if isinstance(result, Failure) else "the judge said that it cannot tell",
                judge=result.judge,
                raw=result.raw if isinstance(result, Failure) else result.rationale,
                request_digest=result.request_digest,
            )
        )
    return answers, missing


def spread_evenly(questions: Sequence[_Question], limit: int | None) -> tuple[_Question, ...]:
    """At most `limit` questions, evenly spaced over the pool, so that a trial covers all topics."""
    if limit is None or len(questions) <= limit:
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


def match_counts(matches: Iterable[MatchedNugget]) -> dict[str, int]:
    """How many matches have each label, the best one first."""
    return _counts(MATCH_LABELS, (match.label for match in matches))


def claim_counts(claims: Iterable[ResponseClaims]) -> dict[str, int]:
    """How many sentences have each label, the best one first."""
    return _counts(CLAIM_LABELS[::-1], (label for row in claims for label in row.labels))


def _counts(labels: Sequence[str], given: Iterable[str]) -> dict[str, int]:
    found = Counter(given)
    return {label: found[label] for label in labels}
