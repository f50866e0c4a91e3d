"""Questions to a judge about nuggets: what `judge nuggets match` does, for use from Python."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace
from judge.ask.criteria import find_criterion
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.opening import check_turns, judging_options, open_judge, recalls
from judge.ask.options import AskingOptions
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import NUGGET, RENDERER_VERSION, check_unit
from judge.ask.records import Failure, Judgment, Task
from judge.ask.verdict import PARSER_VERSION
from judge.errors import InputError, UsageError
from judge.extra import nuggets as records
from judge.extra.nuggets.forms import CREATED, bank_bytes, read_bank
from judge.extra.nuggets.labels import LABEL_FAILURES, MATCHED, MATCHES
from judge.extra.nuggets.scoring import read_pool_with_runs
from judge.gold.rows import text_digest
from judge.io.files import jsonl_bytes, published, read_stored, sha256
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

_RECORD = "matches.sha256"
_Question = TypeVar("_Question")


NuggetQuestion = tuple[PooledResponse, records.Nugget]
"""A response, and the nugget of its turn or topic that it is asked about."""


def match_questions(pool: Pool, bank: records.NuggetBank) -> tuple[NuggetQuestion, ...]:
    """Every response with each nugget of its turn, then with each of its topic, in the order of pool and bank."""
    scopes = bank.by_scope()
    questions: list[NuggetQuestion] = []
    for response in pool.responses:
        for scope in (response.turn_id, response.topic_id):
            questions += ((response, nugget) for nugget in scopes.get(scope, ()))
    return tuple(questions)


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


def answers_of(
    questions: Sequence[NuggetQuestion], results: Sequence[Judgment | Failure], criterion: Criterion
) -> tuple[list[records.MatchedNugget], list[records.LabelFailure]]:
    """The matches of a judge and those that are missing, in the order of the questions."""
    labels = {level.grade: cast("records.MatchLabel", level.label) for level in criterion.scale.levels}
    matches: list[records.MatchedNugget] = []
    missing: list[records.LabelFailure] = []
    for (response, nugget), result in zip(questions, results, strict=True):
        if isinstance(result, Judgment) and not result.unable:
            matches.append(
                records.MatchedNugget(
                    turn_id=response.turn_id,
                    nugget_id=nugget.nugget_id,
                    label=labels[result.grade],
                    response_id=response.response_id,
                    text_sha256=text_digest(response.text),
                    nugget_sha256=digest(nugget.text),
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
            )
            continue
        missing.append(
            records.LabelFailure(
                turn_id=response.turn_id,
                nugget_id=nugget.nugget_id,
                response_id=response.response_id,
                reason=result.reason if isinstance(result, Failure) else "unable",
                detail=result.detail if isinstance(result, Failure) else "the judge said that it cannot tell",
                judge=result.judge,
                raw=result.raw if isinstance(result, Failure) else result.rationale,
                request_digest=result.request_digest,
            )
        )
    return matches, missing


def spread_evenly(questions: Sequence[_Question], limit: int | None) -> tuple[_Question, ...]:
    """At most `limit` questions, evenly spaced over the pool, so that a trial covers all topics."""
    if limit is None or len(questions) <= limit:
        return tuple(questions)
    return tuple(questions[place * len(questions) // limit] for place in range(limit))


class NuggetJobPlan(AskingOptions):
    """What every job that asks a judge about nuggets can be told."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder with the pool, or its pool.jsonl."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for a prompt that shows the conversation."""
    limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Ask only about N turns or pairs, spread over the pool."""
    model: Annotated[str, Option(metavar="BACKEND/MODEL")]
    """The judge."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder for the answers and the journal."""


class NuggetMatchPlan(
    NuggetJobPlan,
    main="pool bank topics model base-url prompt limit out dry-run max-cost",
):
    """Everything `judge nuggets match` can be told; a question is about a pair of response and nugget."""

    bank: Annotated[Path, Option(metavar="FILE|DIR")]
    """Bank of nuggets in any form, or its folder."""
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH")] = NUGGET
    """Prompt of the criterion nugget (default nugget/graded)."""


def nugget_turns(plan: NuggetJobPlan, pool: Pool) -> dict[str, Turn]:
    """The turns of the topics file, and those of the interactive runs of a pool, by id."""
    return turns_shown(pool, topic_turns(plan.topics)) or {}


class QuestionInputs:
    """A plan with its inputs read and its judge opened; nothing has been written or sent. A dry run needs no `keys`."""

    def __init__(self, plan: NuggetMatchPlan, *, keys: bool = True) -> None:
        self.prompt = prompt = find_criterion(plan.prompt)
        check_match_prompt(prompt)
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
        questions = match_questions(self.pool, bank)
        if not questions:
            raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
        check_turns((prompt,), {response.turn_id for response, _ in questions}, self.turns, plan.topics)
        check_apart(plan.out, [pool_file(plan.pool), plan.bank])
        check_same(plan.out / MATCHED, self.configured, "matches made with another", "judge nuggets match")
        self.questions = spread_evenly(questions, plan.limit)
        self.tasks = tuple(Task(response, prompt, nugget=nugget.text) for response, nugget in self.questions)


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


def forecast_nuggets(plan: NuggetMatchPlan) -> JobForecast:
    """Count what asking would send beyond what the journal holds."""
    inputs = QuestionInputs(plan, keys=False)
    with AskingForecast(JournalPlace(plan.out), inputs.pool, inputs.turns) as forecasts:
        forecast = forecasts.forecast(inputs.judge, inputs.tasks)
    counts = {
        "responses": len({response.response_id for response, _ in inputs.questions}),
        "nuggets": len({nugget.nugget_id for _, nugget in inputs.questions}),
    }
    return JobForecast(counts, forecast)


class NuggetAnswers(Record, frozen=True):
    """What a judge answered about nuggets, and what it took."""

    answers: Table[records.MatchedNugget]
    """A match for each pair of response and nugget."""
    failures: Table[records.LabelFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def match_nuggets(
    plan: NuggetMatchPlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> NuggetAnswers:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    `report` is called after each answer. `progress` shows a bar in a notebook or on a terminal, elsewhere lines now and
    then; or it is the line to show it on. An OperationalError if asking stopped early; the same call goes on from
    there.
    """
    inputs = QuestionInputs(plan)
    judge = inputs.judge
    questions = inputs.questions

    def manifest(status: str, labels: Any = None, missing: Any = None, models: Any = None) -> bytes:
        files = {"pool": published(str(plan.pool)), "bank": published(str(plan.bank))}
        facts = {"pairs": len(questions), "labels": labels, "missing": missing, "models": models}
        return job_manifest(status, inputs.configured, inputs=files, **facts)

    with (
        job_progress(progress, report) as shown,
        Asking(JournalPlace(plan.out), inputs.pool, inputs.turns, shown) as asking,
    ):
        asking.prepare(judge.models[0])
        # Left by a run that is stopped too, so that nothing else is asked into its folder.
        replace_folder(plan.out, {MATCHED: manifest("unfinished")}, _RECORD, more=True)
        results = asking.ask(judge, inputs.tasks)
        notes = (*bank_notes(plan.bank), *asking.notes(judge.models, results))
    matches, missing = answers_of(questions, results, inputs.prompt)
    status = "complete" if plan.limit is None else "trial"
    reasons = Counter(failure.reason for failure in missing)
    models = sorted({match.model for match in matches if match.model})
    files = {
        MATCHES: jsonl_bytes(matches),
        LABEL_FAILURES: jsonl_bytes(missing),
        MATCHED: manifest(status, label_counts(matches), reasons, models),
    }
    replace_folder(plan.out, files, _RECORD)
    return NuggetAnswers(Table(matches), Table(missing), asking.accounts[0], notes)


def label_counts(matches: Iterable[records.MatchedNugget]) -> dict[str, int]:
    """How many matches have each label, the best one first."""
    counts = Counter(match.label for match in matches)
    return {label: counts[label] for label in records.MATCH_LABELS}
