"""The judgments to make, in their order; and judgments, and failures where there is no judgment. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex, overload

import msgspec

from judge.io.ids import natural_key
from judge.judges.records import AnswerForm
from judge.pool.build import lacking_texts
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, FailureReason, Record, bare
from judge.units import UNITS

JOURNAL = "journal.sqlite"
"""The journal of a folder."""


class SentenceSupport(Record, frozen=True):
    """What a checker found for one sentence."""

    passages: tuple[str, ...]
    """The used passages that support it, as `pool.jsonl` names them, the likeliest first."""
    probability: float | None
    """The highest probability that a passage supports it; None where none was asked about."""


class Verdict(Record, frozen=True):
    """The grade that one completion gives."""

    grade: int
    rationale: str | None
    sentences: tuple[str, ...] = ()
    """A label for each sentence, where sentences are labeled."""
    expected: float | None = None
    """Mean of the grades under the label probabilities; None where the judge gave none."""
    unable: bool = False
    """Whether the grade is the level of "unable to judge"."""
    support: tuple[tuple[float | None, tuple[int, ...]], ...] = ()
    """For each sentence the highest probability of support, and the numbers of the passages that support it, from 1;
    empty where the reply does not tell."""
    nuggets: tuple[str, ...] = ()
    """The nuggets, where a list of them is asked."""


class Unreadable(Record, frozen=True):
    """A completion without a readable grade, and why."""

    reason: Literal["unreadable", "refused", "truncated", "content_filter"]
    detail: str
    hidden: bool = False
    """Whether the server put the verdict among the thoughts, as it does again under the same schema."""


class Judgment(Record, frozen=True, tag="judgment", tag_field="kind", omit_defaults=True):
    """One grade of one judge for one pooled response; docs/reference/files.toml lists the fields."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    grade: int
    unable: bool
    expected: float | None
    probabilities: dict[str, float] | None
    rationale: str | None
    sentences: tuple[str, ...]
    judge: str
    """`backend/model`."""
    model: str | None
    """The model, as the provider names it."""
    criterion_digest: str
    """SHA-256 of the prompt file."""
    request_digest: str
    """Digest of the last request."""
    form: AnswerForm
    repaired: bool
    """Whether the first reply was unreadable and the judge was asked again."""
    sample: int
    """Number of the repetition, from 0."""
    support: tuple[SentenceSupport, ...] = ()
    """Of a checker: which passages support each sentence."""
    nuggets: tuple[str, ...] = ()
    """What the prompt of `judge nuggets create` asks for; `judge run` asks for none."""

    def __repr__(self) -> str:
        grade = "unable" if self.unable else self.grade
        return f"Judgment({bare(self.response_id)} {bare(self.criterion)}={grade} by {bare(self.judge)})"


class Failure(Record, frozen=True, tag="failure", tag_field="kind", omit_defaults=True):
    """A judgment that is missing, and why; never a grade."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    reason: FailureReason
    detail: str
    """The reason in words."""
    raw: str | None
    """The full reply, if there was one."""
    judge: str
    criterion_digest: str
    request_digest: str | None
    sample: int

    @property
    def grade(self) -> None:
        """None: a failure is no grade."""
        return None

    def __repr__(self) -> str:
        return f"Failure({bare(self.response_id)} {bare(self.criterion)}: {self.reason} by {bare(self.judge)})"


def in_a_word(result: Judgment | Failure | Verdict | Unreadable) -> str:
    """The grade, `unable`, or the reason why there is none."""
    if isinstance(result, Failure | Unreadable):
        return result.reason
    return "unable" if result.unable else str(result.grade)


class Task(NamedTuple):
    """One judgment to make."""

    response: PooledResponse
    criterion: Criterion
    sample: int = 0
    nugget: str | None = None
    """The text of the nugget to match the response with, for criteria that show one."""
    known: tuple[str, ...] = ()
    """The texts of the nuggets that are known already, for criteria that show them."""
    candidates: tuple[str, ...] = ()
    """The texts to label in place of the response's sentences, for criteria that show them."""


Variant = tuple[Criterion, int]
"""A prompt, and the number of the repetition."""


class _LazyTasks(Sequence[Task]):
    """Tasks, each made when it is read, so that millions need no memory; a slice is a tuple."""

    def _at(self, number: int) -> Task:
        raise NotImplementedError

    @overload
    def __getitem__(self, key: SupportsIndex) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        """A task; for a slice, a tuple of them."""
        numbers = range(len(self))[key]
        return tuple(map(self._at, numbers)) if isinstance(numbers, range) else self._at(numbers)


class Tasks(_LazyTasks):
    """Judgments to make: responses with the variants that each of them is judged under, in the order of asking."""

    def __init__(self, blocks: Iterable[tuple[Sequence[PooledResponse], tuple[Variant, ...]]]) -> None:
        self._blocks = tuple(blocks)
        self._size = sum(len(responses) * len(variants) for responses, variants in self._blocks)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Task]:
        return (
            Task(response, criterion, sample)
            for responses, variants in self._blocks
            for response in responses
            for criterion, sample in variants
        )

    def _at(self, number: int) -> Task:
        for responses, variants in self._blocks:
            if number < len(responses) * len(variants):
                place, variant = divmod(number, len(variants))
                criterion, sample = variants[variant]
                return Task(responses[place], criterion, sample)
            number -= len(responses) * len(variants)
        raise IndexError(number)

    def varied(self, variants: Callable[[Criterion], tuple[Variant, ...]]) -> "Tasks":
        """The same responses, each under the variants of its prompt."""
        return Tasks(
            (responses, tuple(variant for criterion, _ in under for variant in variants(criterion)))
            for responses, under in self._blocks
        )

    def spread(self, limit: int) -> "Tasks":
        """At most `limit` responses of each block, evenly spaced, so that a trial covers all topics.

        Of pairs both orders are among them, so at least two.
        """
        return Tasks((_spread(responses, limit), variants) for responses, variants in self._blocks)


class PickedTasks(_LazyTasks):
    """The tasks at some places of a sequence."""

    def __init__(self, tasks: Sequence[Task], places: Sequence[int]) -> None:
        self._tasks = tasks
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def _at(self, number: int) -> Task:
        return self._tasks[self._places[number]]


def _spread(responses: Sequence[PooledResponse], limit: int) -> tuple[PooledResponse, ...]:
    # One order of a pair alone has no verdict; in the pool both orders follow each other.
    together = UNITS[responses[0].unit].orders if responses else 1
    number = len(responses) // together
    size = min(max(limit // together, 1), number)
    firsts = (index * number // size * together for index in range(size))
    return tuple(responses[first + order] for first in firsts for order in range(together))


def tasks(pool: Pool, criteria: Sequence[Criterion], *, partial: bool = False) -> Tasks:
    """All judgments to make of a pool, by criterion and then in the order of the pool.

    `partial`: judge a response by those of its used passages that have a text, even if others have none.
    """
    responses = [_with_texts(response, pool) for response in pool.responses] if partial else pool.responses
    return Tasks((responses, ((criterion, 0),)) for criterion in criteria)


def _with_texts(response: PooledResponse, pool: Pool) -> PooledResponse:
    """The response without the passages that have no text; unchanged if no passage has a text."""
    keys = tuple(key for key in response.passages if key in pool.passages)
    return msgspec.structs.replace(response, passages=keys) if keys else response


def evidence_gap(task: Task, pool: Pool) -> str | None:
    """Why a task lacks the passages that its criterion needs, or None; no judge is asked to imagine passages."""
    if "passages" not in task.criterion.inputs:
        return None
    keys = task.response.passages
    if not keys:
        return "the response names no passage"
    missing = lacking_texts(task.response, pool)
    if not missing:
        return None
    return f"{len(missing)} of {len(keys)} used passages have no text: {', '.join(missing[:5])}"


def in_order(wanted: Sequence[Task], numbers: Iterable[int], *, together: bool = False) -> list[int]:
    """The numbers of those tasks that are asked by prompt, turn and passages, equal ones in the order given.

    Neighbors share the start of their prompt, which prompt caches compute only once. `together`: all tasks about one
    response follow each other, for a judge that takes several questions in a call.
    """
    numbers = list(numbers)
    # A key of a turn is dear, and millions of keys would fill the memory.
    turn_ids = sorted({wanted[number].response.turn_id for number in numbers}, key=natural_key)
    places = {turn_id: place for place, turn_id in enumerate(turn_ids)}

    def place(number: int) -> tuple[str, int, tuple[str, ...], str]:
        task = wanted[number]
        response = task.response
        first, last = ("", response.response_id) if together else (task.criterion.prompt_id, "")
        return first, places[response.turn_id], response.passages, last

    return sorted(numbers, key=place)
