"""Questions to a judge about nuggets, from a plan to the files of a folder; each command that asks is a row."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace, Judge, ModelForecast
from judge.ask.blocks import needs_turn
from judge.ask.criteria import find_criterion
from judge.ask.opening import judging_options, open_judge
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.subjects import check_unit
from judge.ask.tasks import Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.files.bundle import __version__
from judge.files.folder import check_apart, replace_folder
from judge.files.jsonl import json_bytes
from judge.files.paths import JobPlan, StrPath
from judge.files.progress import ProgressLine
from judge.files.stored import read_stored, sha256
from judge.harness.manifest import MANIFEST
from judge.harness.nuggets.scoring import read_pool_with_runs
from judge.models.journal import check_database
from judge.models.model import ModelOptions
from judge.nuggets.forms import bank_bytes, read_bank
from judge.nuggets.pairs import spread_evenly
from judge.nuggets.records import Nugget, NuggetBank
from judge.pool.bank import pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.folder import Beside, pool_file
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import read_topics
from judge.text.ids import natural_key

NUGGETS = "nuggets.json"
"""What the answers in the folder were made of."""
CREATED = "bank.json"
"""What a bank that a judge made was made of."""


class NuggetAskPlan(JobPlan, frozen=True, kw_only=True):
    """What every command that asks a judge about nuggets can be told; paths may be strings."""

    pool: StrPath
    """The output folder with the pool, or its `pool.jsonl`."""
    bank: StrPath
    """The bank of nuggets."""
    model: str
    """The judge, as `backend/model`."""
    out: StrPath
    """The folder for answers and journal."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share; by default the journal is a file
    in `out`."""
    prompt: StrPath
    """The prompt, as `criterion/variant` or a path."""
    topics: StrPath | None = None
    """Topics file, for a prompt that shows the conversation; the pool has that of interactive runs."""
    options: ModelOptions = ModelOptions()
    """How the model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    limit: int | None = None
    """Ask only so many questions, spread over the pool."""


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


class QuestionInputs(Record, Generic[_Question], frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    plan: NuggetAskPlan
    judge: Judge
    prompt: Criterion
    bank: NuggetBank
    pool: Pool
    turns: dict[str, Turn]
    configured: dict[str, Any]
    """Everything that determines the answers."""
    questions: tuple[_Question, ...]

    def asking(self, progress: JobProgress | None = None, *, dry: bool = False) -> Asking:
        """What asks the judge."""
        plan = self.plan
        place = JournalPlace(Path(plan.out), plan.journal, max_wait=plan.settings.max_wait)
        return Asking(place, self.pool, self.turns, progress, dry=dry)


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


def read_questions(
    row: NuggetCommand[_Question, _Answer, _Missing], plan: NuggetAskPlan, *, keys: bool = True
) -> QuestionInputs[_Question]:
    """Read the prompt, the bank, the pool and the topics of a plan, and open its judge.

    Args:
        row: What the command asks.
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
    """
    check_database(plan.journal)
    prompt = find_criterion(plan.prompt)
    row.check(prompt)
    judge = open_judge((plan.model,), plan.options, (prompt,), plan.settings, keys=keys)
    bank = read_bank(plan.bank)
    pool = read_pool_with_runs(Path(plan.pool), *(row.beside if "passages" in prompt.inputs else ()))
    check_unit((prompt,), pool.unit)
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None) or {}
    configured = {
        "judge": judge.name,
        "options": judging_options(plan.options, judge.models),
        "prompt": {"name": prompt.prompt_id, "digest": prompt.digest},
        "bank": sha256(bank_bytes(bank.nuggets, "judge")),
        "pool": sha256(pool_jsonl(pool)),
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
    }
    questions = row.questions(pool, bank)
    _check_turns(plan, prompt, {asked.response.turn_id for asked in questions}, turns)
    out = Path(plan.out)
    check_apart(out, [pool_file(Path(plan.pool)), Path(plan.bank)])
    check_same(out / NUGGETS, configured, f"{row.what} made with another", row.command)
    return QuestionInputs(plan, judge, prompt, bank, pool, turns, configured, spread_evenly(questions, plan.limit))


def _check_turns(plan: NuggetAskPlan, prompt: Criterion, asked: Collection[str], turns: Collection[str]) -> None:
    """Refuse questions that cannot be asked.

    Raises:
        UsageError: No nugget is of the pool, or the prompt shows turns that nothing tells.
    """
    if not asked:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    unknown = sorted(set(asked) - set(turns), key=natural_key)
    if needs_turn(prompt) and unknown and plan.topics is None:
        raise UsageError(f"{prompt.prompt_id}: shown with the conversation, so a topics file is needed (--topics)")
    if needs_turn(prompt) and unknown:
        raise UsageError(f"{plan.topics}: lacks turns that {prompt.prompt_id} shows: {', '.join(unknown[:5])}")


def check_same(path: Path, configured: dict[str, Any], made: str, command: str) -> None:
    """Refuse a folder with answers to other questions.

    Args:
        path: The file that says what the answers in the folder were made of.
        configured: What those of this job will be made of.
        made: The answers, for the message that names what differs.
        command: The command that writes them.

    Raises:
        InputError: The folder holds other results.
    """
    out = path.parent
    if (out / MANIFEST).exists():
        raise InputError(f"{out}: holds the results of `judge run`: choose another --out")
    if not path.exists():
        return
    try:
        earlier = msgspec.json.decode(read_stored(path)).get("configuration", {})
    except (msgspec.MsgspecError, UnicodeDecodeError, AttributeError) as error:
        raise InputError(f"{path}: not as `{command}` writes it: choose another --out") from error
    now = msgspec.json.decode(msgspec.json.encode(configured))
    changed = [name for name in now if not isinstance(earlier, dict) or earlier.get(name) != now[name]]
    if changed:
        which = f", {made.rpartition(' ')[2]} ".join(changed)
        raise InputError(f"{out}: holds {made} {which}: choose another --out")


class _Created(msgspec.Struct):
    status: str


def bank_notes(bank: StrPath) -> tuple[str, ...]:
    """A sentence if a bank is that of a creation which did not cover every source; none for any other bank."""
    path = Path(bank) / CREATED
    try:
        status = msgspec.json.decode(read_stored(path), type=_Created).status if path.is_file() else "complete"
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    if status == "complete":
        return ()
    return (f"{path} says {status}: turns may lack nuggets there, so recall counts too few",)


def forecast_questions(row: NuggetCommand[_Question, _Answer, _Missing], plan: NuggetAskPlan) -> NuggetForecast:
    """Count what `ask_questions` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    inputs = read_questions(row, plan, keys=False)
    with inputs.asking(dry=True) as asking:
        (forecast,) = asking.forecast(inputs.judge, [row.task(asked, inputs.prompt) for asked in inputs.questions]).rows
    return NuggetForecast(
        len({asked.response.response_id for asked in inputs.questions}),
        len({nugget.nugget_id for asked in inputs.questions for nugget in row.nuggets(asked)}),
        forecast,
    )


def ask_questions(
    row: NuggetCommand[_Question, _Answer, _Missing],
    plan: NuggetAskPlan,
    report: Callable[[Progress], None] | None,
    progress: bool | ProgressLine,
) -> NuggetLabels[_Answer, _Missing]:
    """Ask a judge, and write its answers.

    Args:
        row: What the command asks.
        plan: What to do.
        report: Called after each answer.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then; or the line to show it on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    inputs = read_questions(row, plan)
    out, judge, questions = Path(plan.out), inputs.judge, inputs.questions

    def manifest(status: str, labels: Any = None, missing: Any = None, models: Any = None) -> bytes:
        facts = {row.counted: len(questions), "labels": labels, "missing": missing, "models": models}
        return json_bytes({"judge_version": __version__, "status": status, "configuration": inputs.configured, **facts})

    with job_progress(progress, report) as shown, inputs.asking(shown) as asking:
        asking.prepare(judge.models[0])
        # Left by a run that is stopped too, so that nothing else is asked into its folder.
        replace_folder(out, {NUGGETS: manifest("unfinished")}, row.record, more=True)
        results = asking.ask(judge, [row.task(asked, inputs.prompt) for asked in questions])
        notes = (*bank_notes(plan.bank), *asking.notes(judge.models, results))
    answers, missing = row.read(questions, results, inputs.prompt)
    files = {
        row.answers_file: row.jsonl(answers),
        row.missing_file: row.jsonl(missing),
        NUGGETS: manifest(
            "complete" if plan.limit is None else "trial",
            row.labels(answers),
            Counter(failure.reason for failure in missing),
            sorted({answer.model for answer in answers if answer.model}),
        ),
    }
    replace_folder(out, files, row.record)
    return NuggetLabels(answers, missing, asking.accounts[0], notes)
