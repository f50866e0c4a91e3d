"""Questions to a judge about nuggets: what `judge nuggets match` and `claims` do, for use from Python."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, cast

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JobForecast, JournalPlace
from judge.ask.criteria import find_criterion
from judge.ask.opening import check_turns, judging_options, open_judge, recalls
from judge.ask.options import AskingOptions
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import NUGGET, NUGGET_PRECISION, RENDERER_VERSION, check_unit
from judge.ask.records import Failure, Judgment, Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.extra import nuggets as records
from judge.extra.nuggets.forms import CREATED, bank_bytes, read_bank
from judge.extra.nuggets.labels import LABEL_FAILURES, nuggets_digest, nuggets_for
from judge.extra.nuggets.scoring import read_pool_with_runs
from judge.gold.rows import text_digest
from judge.io.files import jsonl_bytes, read_stored, sha256
from judge.io.folder import check_apart, replace_folder
from judge.io.plan import Option, Positive
from judge.io.steps import ProgressLine
from judge.io.table import Table
from judge.io.text import digest
from judge.jobs.manifest import MANIFEST, job_manifest
from judge.pool.bank import pool_file, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Record
from judge.runs.records import Turn
from judge.runs.topics import topic_turns

NUGGETS = "nuggets.json"
"""What the answers in the folder were made of."""
_Question = TypeVar("_Question")


NuggetQuestion = tuple[PooledResponse, tuple[records.Nugget, ...]]
"""A response, and the nuggets of its turn and topic that it is asked about: one for a match, all for claims."""


def match_questions(pool: Pool, bank: records.NuggetBank) -> tuple[NuggetQuestion, ...]:
    """Every response with each nugget of its turn, then with each of its topic, in the order of pool and bank."""
    return tuple((response, (nugget,)) for response, nuggets in claim_questions(pool, bank) for nugget in nuggets)


def claim_questions(pool: Pool, bank: records.NuggetBank) -> tuple[NuggetQuestion, ...]:
    """Every response whose turn or topic has nuggets, with all of them, in the order of the pool."""
    scopes = bank.by_scope()
    return tuple((response, nuggets) for response in pool.responses if (nuggets := nuggets_for(response, scopes)))


def question_task(question: NuggetQuestion, criterion: Criterion) -> Task:
    """Whether the response supports the nugget, or what carries each of its sentences."""
    response, nuggets = question
    texts = tuple(nugget.text for nugget in nuggets)
    if criterion.name == NUGGET:
        return Task(response, criterion, nugget=texts[0])
    return Task(response, criterion, nuggets=texts)


def check_match_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask for a match."""
    if criterion.name != NUGGET:
        raise UsageError(f'{criterion.prompt_id}: no prompt about a nugget: expected `criterion = "{NUGGET}"` in it')
    strange = [level.label for level in criterion.scale.levels if level.label not in records.MATCH_LABELS]
    if strange or criterion.answer != "grade":
        raise UsageError(
            f"{criterion.prompt_id}: {', '.join(strange) or criterion.answer}: expected one grade a nugget, and labels "
            f"among {', '.join(records.MATCH_LABELS)}"
        )


def check_claim_prompt(criterion: Criterion) -> None:
    """Refuse a prompt that does not ask what carries each sentence."""
    if criterion.name != NUGGET_PRECISION:
        raise UsageError(
            f'{criterion.prompt_id}: no prompt about claims: expected `criterion = "{NUGGET_PRECISION}"` in it'
        )
    labels = [level.label for level in criterion.sentence_levels]
    if not {"nugget", "none", "no_claim"} <= set(labels) <= set(records.CLAIM_LABELS):
        raise UsageError(
            f"{criterion.prompt_id}: labels of sentences are {', '.join(labels) or 'none'}: expected nugget, none and "
            "no_claim, and passage where it shows passages"
        )
    if ("passage" in labels) != ("passages" in criterion.inputs):
        raise UsageError(f"{criterion.prompt_id}: expected both the label passage and the input passages, or neither")
    rollup = criterion.rollup
    if rollup is None or rollup.ignored != "no_claim":
        raise UsageError(f'{criterion.prompt_id}: expected `ignored = "no_claim"` in its roll-up')


def answers_of(
    questions: Sequence[NuggetQuestion], results: Sequence[Judgment | Failure], criterion: Criterion
) -> tuple[list[Any], list[records.LabelFailure]]:
    """The answers of a judge and those that are missing, in the order of the questions."""
    one = criterion.name == NUGGET
    answers: list[Any] = []
    missing: list[records.LabelFailure] = []
    for (response, nuggets), result in zip(questions, results, strict=True):
        # Of a response that claims nothing, the grade is that of "unable", and the sentences have labels.
        if isinstance(result, Judgment) and not (one and result.unable):
            answers.append(_answer(response, nuggets, result, criterion))
            continue
        missing.append(
            records.LabelFailure(
                turn_id=response.turn_id,
                nugget_id=nuggets[0].nugget_id if one else None,
                response_id=response.response_id,
                reason=result.reason if isinstance(result, Failure) else "unable",
                detail=result.detail if isinstance(result, Failure) else "the judge said that it cannot tell",
                judge=result.judge,
                raw=result.raw if isinstance(result, Failure) else result.rationale,
                request_digest=result.request_digest,
            )
        )
    return answers, missing


def _answer(
    response: PooledResponse, nuggets: Sequence[records.Nugget], result: Judgment, criterion: Criterion
) -> records.MatchedNugget | records.ResponseClaims:
    """The answer about one nugget as a match, or that about the sentences of a response as their labels."""
    facts: dict[str, Any] = {
        "turn_id": response.turn_id,
        "response_id": response.response_id,
        "text_sha256": text_digest(response.text),
        "judge": result.judge,
        "rationale": result.rationale,
        "model": result.model,
        "prompt": f"{result.criterion}/{result.variant}",
        "prompt_digest": result.criterion_digest,
        "request_digest": result.request_digest,
        "repaired": result.repaired,
    }
    if criterion.name == NUGGET_PRECISION:
        return records.ResponseClaims(
            labels=cast("tuple[records.ClaimLabel, ...]", tuple(result.sentences)),
            passages="passages" in criterion.inputs,
            nuggets_sha256=nuggets_digest(nuggets),
            **facts,
        )
    (nugget,) = nuggets
    label = next(level.label for level in criterion.scale.levels if level.grade == result.grade)
    return records.MatchedNugget(
        nugget_id=nugget.nugget_id,
        label=cast("records.MatchLabel", label),
        nugget_sha256=digest(nugget.text),
        expected=result.expected,
        probabilities=result.probabilities,
        **facts,
    )


def spread_evenly(questions: Sequence[_Question], limit: int | None) -> tuple[_Question, ...]:
    """At most `limit` questions, evenly spaced over the pool, so that a trial covers all topics."""
    if limit is None or len(questions) <= limit:
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


def _match_counts(matches: Iterable[records.MatchedNugget]) -> dict[str, int]:
    counts = Counter(match.label for match in matches)
    return {label: counts[label] for label in records.MATCH_LABELS}


def _claim_counts(claims: Iterable[records.ResponseClaims]) -> dict[str, int]:
    counts = Counter(label for row in claims for label in row.labels)
    return {label: counts[label] for label in reversed(records.CLAIM_LABELS)}


class NuggetCommand(NamedTuple):
    """A command that asks a judge about nuggets."""

    name: str
    """Its word after `judge nuggets`."""
    answers: str
    """The answers, in messages and as the name of their file."""
    counted: str
    """The questions, in the manifest."""
    check: Callable[[Criterion], None]
    """Refuses a prompt that asks something else."""
    questions: Callable[[Pool, records.NuggetBank], tuple[NuggetQuestion, ...]]
    labels: Callable[[Sequence[Any]], dict[str, int]]
    """How many answers have each label, the best one first."""


MATCH = NuggetCommand("match", "matches", "pairs", check_match_prompt, match_questions, _match_counts)
CLAIMS = NuggetCommand("claims", "claims", "responses", check_claim_prompt, claim_questions, _claim_counts)


class NuggetJobPlan(AskingOptions):
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
    bank: Annotated[Path, Option(metavar="FILE|DIR")]
    """Bank of nuggets in any form, or its folder."""
    prompt: str | Path
    """The prompt."""


def nugget_turns(plan: NuggetJobPlan, pool: Pool) -> dict[str, Turn]:
    """The turns of the topics file, and those of the interactive runs of a pool, by id."""
    return turns_shown(pool, topic_turns(plan.topics)) or {}


class QuestionInputs:
    """A plan with its inputs read and its judge opened; nothing has been written or sent. A dry run needs no `keys`."""

    def __init__(self, plan: NuggetAskPlan, *, keys: bool = True) -> None:
        command = plan.command
        self.prompt = prompt = find_criterion(plan.prompt)
        command.check(prompt)
        self.judge = open_judge(
            (plan.model,), plan.options, (prompt,), plan.settings, keys=keys and not recalls(plan.out)
        )
        bank = read_bank(plan.bank)
        self.pool = read_pool_with_runs(plan.pool, *(("passages.jsonl",) if "passages" in prompt.inputs else ()))
        check_unit((prompt,), self.pool.unit)
        self.turns = nugget_turns(plan, self.pool)
        self.configured = {
            "judge": self.judge.name,
            "options": judging_options(plan.options, self.judge.models),
            "prompt": {"name": prompt.prompt_id, "digest": prompt.digest},
            "bank": sha256(bank_bytes(bank.nuggets, "judge")),
            "pool": sha256(pool_jsonl(self.pool)),
            "versions": {"parser": PARSER_VERSION, "renderer": RENDERER_VERSION},
        }
        """Everything that determines the answers."""
        questions = command.questions(self.pool, bank)
        if not questions:
            raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
        check_turns((prompt,), {response.turn_id for response, _ in questions}, self.turns, plan.topics)
        check_apart(plan.out, [pool_file(plan.pool), plan.bank])
        made = f"{command.answers} made with another"
        check_same(plan.out / NUGGETS, self.configured, made, f"judge nuggets {command.name}")
        self.questions = spread_evenly(questions, plan.limit)
        self.tasks = tuple(question_task(question, prompt) for question in self.questions)


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
    """Count what asking would send beyond what the journal holds."""
    inputs = QuestionInputs(plan, keys=False)
    with Asking(JournalPlace(plan.out), inputs.pool, inputs.turns, dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    counts = {
        "responses": len({response.response_id for response, _ in inputs.questions}),
        "nuggets": len({nugget.nugget_id for _, nuggets in inputs.questions for nugget in nuggets}),
    }
    return JobForecast(counts, forecast.rows)


class NuggetAnswers(Record, frozen=True):
    """What a judge answered about nuggets, and what it took."""

    answers: Table[Any]
    """A match for each pair of response and nugget, or the labels of the sentences of each response."""
    failures: Table[records.LabelFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def _ask(
    plan: NuggetAskPlan, report: Callable[[Progress], None] | None, progress: bool | ProgressLine
) -> NuggetAnswers:
    inputs, command = QuestionInputs(plan), plan.command
    judge, questions, record = inputs.judge, inputs.questions, f"{command.answers}.sha256"

    def manifest(status: str, labels: Any = None, missing: Any = None, models: Any = None) -> bytes:
        facts = {command.counted: len(questions), "labels": labels, "missing": missing, "models": models}
        return job_manifest(status, inputs.configured, **facts)

    with (
        job_progress(progress, report) as shown,
        Asking(JournalPlace(plan.out), inputs.pool, inputs.turns, shown) as asking,
    ):
        asking.prepare(judge.models[0])
        # Left by a run that is stopped too, so that nothing else is asked into its folder.
        replace_folder(plan.out, {NUGGETS: manifest("unfinished")}, record, more=True)
        results = asking.ask(judge, inputs.tasks)
        notes = (*bank_notes(plan.bank), *asking.notes(judge.models, results))
    answers, missing = answers_of(questions, results, inputs.prompt)
    status = "complete" if plan.limit is None else "trial"
    reasons = Counter(failure.reason for failure in missing)
    models = sorted({answer.model for answer in answers if answer.model})
    files = {
        f"{command.answers}.jsonl": jsonl_bytes(answers),
        LABEL_FAILURES: jsonl_bytes(missing),
        NUGGETS: manifest(status, command.labels(answers), reasons, models),
    }
    replace_folder(plan.out, files, record)
    return NuggetAnswers(Table(answers), Table(missing), asking.accounts[0], notes)


class NuggetMatchPlan(NuggetAskPlan):
    """Everything `judge nuggets match` can be told; a question is about a pair of response and nugget."""

    command = MATCH
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH")] = NUGGET
    """Prompt of the criterion nugget (default nugget/graded)."""


def match_nuggets(
    plan: NuggetMatchPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetAnswers:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    `report` is called after each answer. `progress` shows a bar in a notebook or on a terminal, elsewhere lines now and
    then; or it is the line to show it on. An OperationalError if asking stopped early; the same call goes on from
    there.
    """
    return _ask(plan, report, progress)


class NuggetClaimsPlan(NuggetAskPlan):
    """Everything `judge nuggets claims` can be told; a question is about the sentences of a response."""

    command = CLAIMS
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH")] = NUGGET_PRECISION
    """Prompt of the criterion nugget_precision (default nugget_precision/graded)."""


def label_claims(
    plan: NuggetClaimsPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetAnswers:
    """Ask a judge what carries each sentence of every response whose turn or topic has nuggets, and write the labels.

    Arguments and errors are those of `match_nuggets`.
    """
    return _ask(plan, report, progress)
