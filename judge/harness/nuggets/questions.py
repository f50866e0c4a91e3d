"""Questions to a judge about nuggets, from a plan to the files of a folder; each command that asks is a row."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from judge.ask.account import JudgeAccount
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment
from judge.ask.several import Fetching
from judge.ask.tasks import Task
from judge.files.folder import replace_folder
from judge.harness.dry_run import ModelForecast
from judge.harness.nuggets.asking import (
    NUGGETS,
    NuggetAsking,
    NuggetAskPlan,
    answers_of,
    asking_manifest,
    check_asking,
    forecast_asking,
    open_asking,
    with_progress,
)
from judge.nuggets.pairs import spread_evenly
from judge.nuggets.records import Nugget, NuggetBank
from judge.pool.folder import Beside
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Record


class NuggetQuestion(Protocol):
    """A question about one response."""

    @property
    def response(self) -> PooledResponse:
        """The response."""


class NuggetAnswer(Protocol):
    """The labels that a question got."""

    @property
    def model(self) -> str | None:
        """The model, as the provider names it."""


class MissingAnswer(Protocol):
    """Why a question got none."""

    @property
    def reason(self) -> str:
        """A code."""


_Question = TypeVar("_Question", bound=NuggetQuestion)
_Answer = TypeVar("_Answer", bound=NuggetAnswer)
_Missing = TypeVar("_Missing", bound=MissingAnswer)


@dataclass(frozen=True)
class NuggetCommand(Generic[_Question, _Answer, _Missing]):
    """What a command asks a judge about nuggets, and what it writes."""

    command: str
    what: str
    """What the answers are called in messages."""
    counted: str
    """What the manifest calls the questions."""
    check: Callable[[Criterion], None]
    """Refuses a prompt that asks something else."""
    questions: Callable[[Pool, NuggetBank], tuple[_Question, ...]]
    nuggets: Callable[[_Question], Iterable[Nugget]]
    task: Callable[[_Question, Criterion], Task]
    read: Callable[[Sequence[_Question], Sequence[Judgment | Failure], Criterion], tuple[list[_Answer], list[_Missing]]]
    labels: Callable[[Sequence[_Answer]], dict[str, int]]
    """How many answers have each label."""
    jsonl: Callable[[Sequence[_Answer | _Missing]], bytes]
    answers_file: str
    missing_file: str
    record: str
    """The list of the files of the folder, for `sha256sum -c`."""
    beside: tuple[Beside, ...] = ()
    """Files of the pool to read beside its runs and exclusions, where the prompt shows passages."""


class PreparedQuestions(Record, Generic[_Question], frozen=True):
    """What is to be asked; nothing has been written or sent."""

    asking: NuggetAsking
    questions: tuple[_Question, ...]


class NuggetLabels(Record, Generic[_Answer, _Missing], frozen=True):
    """What a judge answered, and what it took."""

    answers: list[_Answer]
    missing: list[_Missing]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


class NuggetForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    nuggets: int
    forecast: ModelForecast


def prepare_questions(
    row: NuggetCommand[_Question, _Answer, _Missing], plan: NuggetAskPlan, *, keys: bool = True
) -> PreparedQuestions[_Question]:
    """Read everything a plan names.

    Args:
        row: What the command asks.
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
    """
    asking = open_asking(plan, row.check, keys=keys, beside=row.beside)
    questions = row.questions(asking.pool, asking.bank)
    check_asking(asking, {asked.response.turn_id for asked in questions}, row.what, row.command)
    return PreparedQuestions(asking, spread_evenly(questions, plan.limit))


def forecast_questions(row: NuggetCommand[_Question, _Answer, _Missing], plan: NuggetAskPlan) -> NuggetForecast:
    """Count what `ask_questions` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prepared = prepare_questions(row, plan, keys=False)
    asking, questions = prepared.asking, prepared.questions
    return NuggetForecast(
        len({asked.response.response_id for asked in questions}),
        len({nugget.nugget_id for asked in questions for nugget in row.nuggets(asked)}),
        forecast_asking(asking, [row.task(asked, asking.prompt) for asked in questions]),
    )


def ask_questions(
    row: NuggetCommand[_Question, _Answer, _Missing],
    plan: NuggetAskPlan,
    report: Callable[[Progress], None] | None,
    fetching: Fetching | None,
    *,
    progress: bool,
) -> NuggetLabels[_Answer, _Missing]:
    """Ask a judge, and write its answers.

    Args:
        row: What the command asks.
        plan: What to do.
        report: Called after each answer.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    prepared = prepare_questions(row, plan)
    if not progress:
        return _ask(row, prepared, report, fetching)
    name = prepared.asking.model.name
    return with_progress(name, report, lambda reporter, fetcher: _ask(row, prepared, reporter, fetcher))


def _ask(
    row: NuggetCommand[_Question, _Answer, _Missing],
    prepared: PreparedQuestions[_Question],
    report: Callable[[Progress], None] | None,
    fetching: Fetching | None,
) -> NuggetLabels[_Answer, _Missing]:
    asking, questions = prepared.asking, prepared.questions

    def manifest(status: str, labels: Any = None, missing: Any = None, models: Any = None) -> bytes:
        facts = {row.counted: len(questions), "labels": labels, "missing": missing, "models": models}
        return asking_manifest(asking, status, facts)

    tasks = [row.task(asked, asking.prompt) for asked in questions]
    said = answers_of(asking, tasks, manifest("unfinished"), row.record, report, fetching)
    answers, missing = row.read(questions, said.results, asking.prompt)
    files = {
        row.answers_file: row.jsonl(answers),
        row.missing_file: row.jsonl(missing),
        NUGGETS: manifest(
            "complete" if asking.plan.limit is None else "trial",
            row.labels(answers),
            Counter(failure.reason for failure in missing),
            sorted({answer.model for answer in answers if answer.model}),
        ),
    }
    replace_folder(Path(asking.plan.out), files, row.record)
    return NuggetLabels(answers, missing, said.account, said.notes)
