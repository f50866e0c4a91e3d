"""Questions to a judge about nuggets: what `judge nuggets match` and `claims` do, for use from Python."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JobForecast, Judge
from judge.ask.criteria import find_criterion
from judge.ask.opening import check_turns, judging_options, open_judge, recalls
from judge.ask.options import AskingOptions, JournalOption
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Judgment
from judge.ask.subjects import NUGGET, NUGGET_PRECISION, check_unit
from judge.ask.tasks import Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.extra.nuggets.forms import bank_bytes, read_bank
from judge.extra.nuggets.jobs.scoring import read_pool_with_runs
from judge.extra.nuggets.label_files import CLAIMS, LABEL_FAILURES, MATCHES
from judge.extra.nuggets.questions import (
    NuggetQuestion,
    answers_of,
    check_claim_prompt,
    check_match_prompt,
    claim_counts,
    claim_questions,
    claims_of,
    match_counts,
    match_of,
    match_questions,
    question_task,
    spread_evenly,
)
from judge.extra.nuggets.records import LabelFailure, MatchedNugget, NuggetBank, ResponseClaims
from judge.io.folder import check_apart, replace_folder
from judge.io.line_stream import jsonl_bytes
from judge.io.plan import Option, Positive
from judge.io.steps import ProgressLine
from judge.io.stored import read_stored, sha256
from judge.io.table import Table
from judge.jobs.manifest import MANIFEST, job_manifest
from judge.pool.bank import Beside, pool_file, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import topic_turns

NUGGETS = "nuggets.json"
"""What the answers in the folder were made of."""
CREATED = "bank.json"
"""What a bank that a judge made was made of."""


class NuggetCommand(NamedTuple):
    """What a command asks a judge about nuggets, and what it writes."""

    command: str
    what: str
    """What the answers are called in messages."""
    counted: str
    """What the manifest calls the questions."""
    check: Callable[[Criterion], None]
    """Refuses a prompt that asks something else."""
    questions: Callable[[Pool, NuggetBank], tuple[NuggetQuestion, ...]]
    answer_of: Callable[[NuggetQuestion, Judgment, Criterion], MatchedNugget | ResponseClaims]
    labels: Callable[[Sequence[Any]], dict[str, int]]
    """How many answers have each label."""
    answers_file: str
    record: str
    """The list of the files of the folder, for `sha256sum -c`."""
    beside: tuple[Beside, ...] = ()
    """Files of the pool to read beside its runs and exclusions, where the prompt shows passages."""


class NuggetJobPlan(AskingOptions, JournalOption):
    """What every job that asks a judge about nuggets can be told."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder with the pool, or its pool.jsonl."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for a prompt that shows the conversation."""
    limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Ask only about N turns, responses or pairs, spread over the pool."""
    model: Annotated[str, Option(metavar="BACKEND/MODEL")]
    """The judge."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder for the answers and the journal."""


class NuggetAskPlan(NuggetJobPlan):
    """The part of the plans of `judge nuggets match` and `claims` that is the same."""

    command: ClassVar[NuggetCommand]
    """What is asked."""
    bank: Annotated[Path, Option(metavar="FILE|DIR")]
    """Bank of nuggets in any form, or its folder."""
    prompt: str | Path
    """The prompt."""


class QuestionInputs(Record, frozen=True):
    """A plan with its inputs read and its judge opened; nothing has been written or sent."""

    judge: Judge
    prompt: Criterion
    pool: Pool
    turns: dict[str, Turn]
    configured: dict[str, Any]
    """Everything that determines the answers."""
    questions: tuple[NuggetQuestion, ...]
    tasks: tuple[Task, ...]
    """A task for each of them."""


def nugget_turns(plan: NuggetJobPlan, pool: Pool) -> dict[str, Turn]:
    """The turns of the topics file, and those of the interactive runs of a pool, by id."""
    return turns_shown(pool, topic_turns(plan.topics)) or {}


def read_questions(plan: NuggetAskPlan, *, keys: bool = True) -> QuestionInputs:
    """Read the prompt, the bank, the pool and the topics of a plan, and open its judge; a dry run needs no `keys`.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
    """
    row = plan.command
    prompt = find_criterion(plan.prompt)
    row.check(prompt)
    judge = open_judge((plan.model,), plan.options, (prompt,), plan.settings, keys=keys and not recalls(plan))
    bank = read_bank(plan.bank)
    pool = read_pool_with_runs(plan.pool, *(row.beside if "passages" in prompt.inputs else ()))
    check_unit((prompt,), pool.unit)
    turns = nugget_turns(plan, pool)
    configured = {
        "judge": judge.name,
        "options": judging_options(plan.options, judge.models),
        "prompt": {"name": prompt.prompt_id, "digest": prompt.digest},
        "bank": sha256(bank_bytes(bank.nuggets, "judge")),
        "pool": sha256(pool_jsonl(pool)),
        "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
    }
    questions = row.questions(pool, bank)
    if not questions:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    check_turns((prompt,), {question.response.turn_id for question in questions}, turns, plan.topics)
    check_apart(plan.out, [pool_file(plan.pool), plan.bank])
    check_same(plan.out / NUGGETS, configured, f"{row.what} made with another", row.command)
    questions = spread_evenly(questions, plan.limit)
    tasks = tuple(question_task(question, prompt) for question in questions)
    return QuestionInputs(judge, prompt, pool, turns, configured, questions, tasks)


def check_same(path: Path, configured: dict[str, Any], made: str, command: str) -> None:
    """Refuse a folder with answers to other questions than `configured`; `made` is what messages call the answers."""
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


def bank_notes(bank: Path) -> tuple[str, ...]:
    """A sentence if a bank is that of a creation which did not cover every source; none for any other bank."""
    path = bank / CREATED
    try:
        status = msgspec.json.decode(read_stored(path), type=dict[str, Any])["status"] if path.is_file() else "complete"
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
        return ()
    if status == "complete":
        return ()
    return (f"{path} says {status}: turns may lack nuggets there, so recall counts too few",)


def forecast_nuggets(plan: NuggetAskPlan) -> JobForecast:
    """Count what asking would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    inputs = read_questions(plan, keys=False)
    with Asking.of(plan, inputs.pool, inputs.turns, dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    counts = {
        "responses": len({question.response.response_id for question in inputs.questions}),
        "nuggets": len({nugget.nugget_id for question in inputs.questions for nugget in question.nuggets}),
    }
    return JobForecast(counts, forecast.rows)


class NuggetAnswers(Record, frozen=True):
    """What a judge answered about nuggets, and what it took."""

    answers: Table[Any]
    """A match for each pair of response and nugget, or the labels of the sentences of each response."""
    failures: Table[LabelFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def _ask(
    plan: NuggetAskPlan, report: Callable[[Progress], None] | None, progress: bool | ProgressLine
) -> NuggetAnswers:
    """Ask a judge, and write its answers."""
    inputs, row = read_questions(plan), plan.command
    judge, questions = inputs.judge, inputs.questions

    def manifest(status: str, labels: Any = None, missing: Any = None, models: Any = None) -> bytes:
        facts = {row.counted: len(questions), "labels": labels, "missing": missing, "models": models}
        return job_manifest(status, inputs.configured, **facts)

    with job_progress(progress, report) as shown, Asking.of(plan, inputs.pool, inputs.turns, shown) as asking:
        asking.prepare(judge.models[0])
        # Left by a run that is stopped too, so that nothing else is asked into its folder.
        replace_folder(plan.out, {NUGGETS: manifest("unfinished")}, row.record, more=True)
        results = asking.ask(judge, inputs.tasks)
        notes = (*bank_notes(plan.bank), *asking.notes(judge.models, results))
    answers, missing = answers_of(questions, results, inputs.prompt, row.answer_of)
    files = {
        row.answers_file: jsonl_bytes(answers),
        LABEL_FAILURES: jsonl_bytes(missing),
        NUGGETS: manifest(
            "complete" if plan.limit is None else "trial",
            row.labels(answers),
            Counter(failure.reason for failure in missing),
            sorted({answer.model for answer in answers if answer.model}),
        ),
    }
    replace_folder(plan.out, files, row.record)
    return NuggetAnswers(Table(answers), Table(missing), asking.accounts[0], notes)


class NuggetMatchPlan(NuggetAskPlan):
    """Everything `judge nuggets match` can be told; a question is about a pair of response and nugget."""

    command = NuggetCommand(
        command="judge nuggets match",
        what="matches",
        counted="pairs",
        check=check_match_prompt,
        questions=match_questions,
        answer_of=match_of,
        labels=match_counts,
        answers_file=MATCHES,
        record="matches.sha256",
    )
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH")] = NUGGET
    """Prompt of the criterion nugget (default nugget/graded)."""


def match_nuggets(
    plan: NuggetMatchPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetAnswers:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    Args:
        plan: What to do.
        report: Called after each answer.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then; or the line to show it on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    return _ask(plan, report, progress)


class NuggetClaimsPlan(NuggetAskPlan):
    """Everything `judge nuggets claims` can be told; a question is about the sentences of a response."""

    command = NuggetCommand(
        command="judge nuggets claims",
        what="claims",
        counted="responses",
        check=check_claim_prompt,
        questions=claim_questions,
        answer_of=claims_of,
        labels=claim_counts,
        answers_file=CLAIMS,
        record="claims.sha256",
        beside=("passages.jsonl",),
    )
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH")] = NUGGET_PRECISION
    """Prompt of the criterion nugget_precision (default nugget_precision/graded)."""


def label_claims(
    plan: NuggetClaimsPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetAnswers:
    """Ask a judge what carries each sentence of every response whose turn or topic has nuggets, and write the labels.

    Arguments and errors are those of `match_nuggets`.
    """
    return _ask(plan, report, progress)
