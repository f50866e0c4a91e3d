"""Requests of a run for other engines: what `judge requests` and `judge completions import` do, for use from Python."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from judge.ask.budget import price_of
from judge.ask.questions import Questions
from judge.ask.tasks import Task
from judge.errors import InputError, OperationalError, UsageError
from judge.files.bundle import __version__
from judge.files.folder import check_apart, make_folder, temporary_name, write_atomic
from judge.files.jsonl import json_bytes
from judge.files.paths import JobPlan, StrPath, several
from judge.harness.manifest import JOURNAL
from judge.harness.prepared import Prepared, check_out
from judge.harness.rounds import note_returned, note_written, under_way
from judge.models.batch.forms import form_of
from judge.models.batch.questions import QUESTIONS, QuestionFile, write_questions
from judge.models.batch.records import OpenQuestion, without_texts
from judge.models.batch.shards import Shard, write_shards
from judge.models.batch.taking import TakenCompletions, take_completions
from judge.models.digests import DigestSet
from judge.models.journal_view import JournalView
from judge.models.journals import check_database, open_journal
from judge.models.model import Model, Price
from judge.records import Record
from judge.text.steps import Step, Steps, quiet

REQUESTS = "requests.json"
"""What the requests of a folder were made of."""


class RequestsOutcome(Record, frozen=True):
    """The requests that were written."""

    folder: Path | None
    """None where the journal answers everything, so that nothing was written."""
    requests: int
    shards: tuple[Shard, ...]


class CompletionsPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge completions import` can be told; paths may be strings."""

    files: StrPath | Sequence[StrPath]
    """Files of output lines, as the engines write them."""
    requests: StrPath
    """The folder of `judge requests`."""
    out: StrPath
    """The output folder of `judge run`, whose journal takes the completions."""
    answered_by: str | Sequence[str] = ()
    """Further names under which the model that was asked may answer, such as the version behind an alias."""
    journal: str | None = None
    """Address of the database of a shared journal, which then takes the completions."""


def write_requests(
    prepared: Prepared,
    folder: StrPath,
    *,
    shards: int | None = None,
    most: int | None = None,
    steps: Steps = quiet,
) -> RequestsOutcome:
    """Write every request that a plan of `judge run` still needs, as files that batch engines take.

    Nothing is sent. Replies that a repair must follow come with the next call, once they are in the journal.

    Args:
        prepared: The plan, prepared.
        folder: Where the requests go; it must be new or empty.
        shards: How many files to spread them over; None means as few as the engines take.
        most: Most requests of a file; None means as many as the engine takes.
        steps: Called as the requests are written.

    Raises:
        UsageError: The folder is in use, or a judge or an option leaves nothing to hand over.
        InputError: The output folder holds results of another configuration, or its journal cannot be read.
        OperationalError: The disk cannot be written.
    """
    folder = Path(folder)
    _check(prepared, folder)
    if prepared.out.exists():
        check_out(prepared)
    if waiting := under_way(prepared.out):
        raise UsageError(
            f"{', '.join(str(path) for path, _ in waiting)}: written earlier, and nothing came back from there yet, so "
            "its requests would be asked twice; import what came back, or remove the folder if it was never handed over"
        )
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        make_folder(temporary)
        with JournalView(prepared.journals) as journal:
            written = write_questions(
                temporary / QUESTIONS, _open_questions(prepared, journal, steps), _prices(prepared)
            )
        if not written.questions:
            return RequestsOutcome(None, 0, ())
        steps(Step("writing requests"))
        with QuestionFile(temporary / QUESTIONS) as questions:
            made = write_shards(temporary, questions, written.by_judge, shards, most)
        about = {
            "judge_version": __version__,
            "requests": written.questions,
            "judges": {
                name: {"requests": number, "form": form_of(name).name} for name, number in written.by_judge.items()
            },
            "files": made,
        }
        write_atomic(temporary / REQUESTS, json_bytes(about))
        note_written(prepared.out, folder, written.questions)
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        temporary.replace(folder)
    except OSError as error:
        raise OperationalError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return RequestsOutcome(folder, written.questions, made)


def import_completions(plan: CompletionsPlan, steps: Steps = quiet) -> TakenCompletions:
    """Take what came back for requests into the journal of an output folder; doing it again changes nothing.

    Raises:
        UsageError: A file is in the output folder, or the address of the shared journal is none.
        InputError: A file or the folder of requests cannot be read.
        OperationalError: The journal cannot be written.
    """
    check_database(plan.journal)
    out, paths = Path(plan.out), [Path(path) for path in several(plan.files)]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise InputError(f"{', '.join(missing)}: no such file")
    check_apart(out, paths)
    with QuestionFile(Path(plan.requests) / QUESTIONS) as questions:
        make_folder(out)
        with open_journal(out / JOURNAL, plan.journal) as journal:
            names = (plan.answered_by,) if isinstance(plan.answered_by, str) else plan.answered_by
            taken = take_completions(paths, questions, journal, names, steps)
    note_returned(out, Path(plan.requests))
    return taken


def _check(prepared: Prepared, folder: Path) -> None:
    """Refuse what leaves nothing to hand over, and a folder that is in use."""
    options, plan = prepared.plan.options, prepared.plan
    for model in prepared.models:
        form = form_of(model.name)
        if options.logprobs and not form.probabilities:
            raise UsageError(
                f"--logprobs: label probabilities are not read from the {form.name} batches of {model.name}"
            )
    if prepared.cascade is not None:
        raise UsageError("--cascade: its checker judges first, so `judge run` alone knows what is left to ask")
    if plan.settings.max_cost is not None:
        raise UsageError("--max-cost: nothing is paid here; --dry-run says what it may cost, --limit asks for less")
    if plan.engine is not None:
        raise UsageError("--engine: no call is made here; `judge run` makes its calls through an engine")
    if plan.recheck is not None:
        raise UsageError("--recheck: `judge run` asks again, once the first answers are in the journal")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; each round of requests has a folder of its own")


def _prices(prepared: Prepared) -> dict[str, Price]:
    """What each judge's tokens cost in a batch."""
    prices = {}
    for model in prepared.models:
        price, share = price_of(model, prepared.plan.settings.known_prices), form_of(model.name).share
        if price is not None:
            part = 1.0 if share is None else share
            cached = None if price.cached is None else price.cached * part
            prices[model.name] = Price(price.prompt * part, price.completion * part, cached)
    return prices


def _open_questions(prepared: Prepared, journal: JournalView, steps: Steps) -> Iterator[OpenQuestion]:
    """Every request that the plan still needs, once, in the order in which the loop would ask."""
    # A jury makes its tasks anew each time.
    asked = prepared.asked
    total = len(asked) * len(prepared.models)
    done = 0
    for model in prepared.models:
        for question in _of_model(prepared, asked, model, journal):
            done += 1
            steps(Step("looking for open questions", done, total))
            if question is not None:
                yield question


def _of_model(
    prepared: Prepared, asked: Sequence[Task], model: Model, journal: JournalView
) -> Iterator[OpenQuestion | None]:
    questions = Questions(model, journal, prepared.pooled.pool, prepared.pooled.turns)
    seen = DigestSet()
    for task in questions.ahead(asked):
        following = questions.next_request(task) if questions.gap(task) is None else None
        if following is None or not seen.add(following[0]):
            yield None
            continue
        digest, request = following
        parameters = msgspec.to_builtins(model.parameters(request))
        yield OpenQuestion(digest, model.name, parameters, without_texts(request))
