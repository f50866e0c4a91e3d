"""Requests of a run for other engines: what `judge requests` and `judge completions import` do, for use from Python."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.budget import price_of
from judge.ask.questions import Questions
from judge.errors import InputError, OperationalError, UsageError
from judge.files.bundle import __version__
from judge.files.folder import check_apart, make_folder, temporary_name, write_atomic
from judge.files.jsonl import json_bytes
from judge.files.paths import JobPlan, StrPath, several
from judge.files.stored import read_stored
from judge.harness.manifest import JOURNAL
from judge.harness.prepared import Prepared, check_out
from judge.models.batch.completions import TakenCompletions, take_completions
from judge.models.batch.requests import OpenQuestion, QuestionFile, Shard, write_requests_folder
from judge.models.batch.service import offer_of
from judge.models.journal import JournalView, check_database, open_journal
from judge.models.model import Price
from judge.records import Record
from judge.text.steps import Step, Steps, quiet

REQUESTS = "requests.json"
"""What the requests of a folder were made of."""
ROUNDS = ".rounds.json"
"""In an output folder, the rounds of requests that were written for it."""


class RequestsOutcome(Record, frozen=True):
    """The requests that were written."""

    folder: Path | None
    """None where the journal answers everything, so that nothing was written."""
    requests: int
    shards: tuple[Shard, ...]


class RequestRound(msgspec.Struct):
    """One folder of requests."""

    folder: str
    """Relative to the output folder."""
    requests: int
    returned: bool = False
    """Whether completions were imported from it."""


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
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        make_folder(temporary)
        with JournalView(prepared.journals) as journal:
            questions = _open_questions(prepared, journal, steps)
            made = write_requests_folder(temporary, questions, _prices(prepared), shards=shards, most=most)
        if not made:
            return RequestsOutcome(None, 0, ())
        number = sum(shard.lines for shard in made)
        judges: dict[str, dict[str, Any]] = {}
        for shard in made:
            judges.setdefault(shard.judge, {"requests": 0, "form": shard.form})["requests"] += shard.lines
        about = {"judge_version": __version__, "requests": number, "judges": judges, "files": made}
        write_atomic(temporary / REQUESTS, json_bytes(about))
        _note_round(prepared.out, folder, written=number)
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        temporary.replace(folder)
    except OSError as error:
        raise OperationalError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return RequestsOutcome(folder, number, made)


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
    with QuestionFile(Path(plan.requests)) as questions:
        make_folder(out)
        with open_journal(out / JOURNAL, plan.journal) as journal:
            names = (plan.answered_by,) if isinstance(plan.answered_by, str) else plan.answered_by
            taken = take_completions(paths, questions, journal, names, steps)
    _note_round(out, Path(plan.requests))
    return taken


def _check(prepared: Prepared, folder: Path) -> None:
    """Refuse what leaves nothing to hand over, and a folder that is in use."""
    plan = prepared.plan
    for model in prepared.models:
        wire = offer_of(model.name).wire
        if plan.options.logprobs and not wire.probabilities:
            raise UsageError(
                f"--logprobs: label probabilities are not read from the {wire.name} batches of {model.name}"
            )
    refused = {
        "--cascade: its checker judges first, so `judge run` alone knows what is left to ask": prepared.cascade,
        "--max-cost: nothing is paid here; --dry-run says what it may cost, --limit asks for less": (
            plan.settings.max_cost
        ),
        "--engine: no call is made here; `judge run` makes its calls through an engine": plan.engine,
        "--recheck: `judge run` asks again, once the first answers are in the journal": plan.recheck,
    }
    for why, value in refused.items():
        if value is not None:
            raise UsageError(why)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; each round of requests has a folder of its own")
    if prepared.out.exists():
        check_out(prepared)
    if waiting := under_way(prepared.out):
        raise UsageError(
            f"{', '.join(str(path) for path, _ in waiting)}: written earlier, and nothing came back from there yet, so "
            "its requests would be asked twice; import what came back, or remove the folder if it was never handed over"
        )


def _prices(prepared: Prepared) -> dict[str, Price]:
    """What each judge's tokens cost in a batch."""
    prices = {}
    for model in prepared.models:
        price, share = price_of(model, prepared.plan.settings.known_prices), offer_of(model.name).share or 1.0
        if price is not None:
            cached = None if price.cached is None else price.cached * share
            prices[model.name] = Price(price.prompt * share, price.completion * share, cached)
    return prices


def _open_questions(prepared: Prepared, journal: JournalView, steps: Steps) -> Iterator[OpenQuestion]:
    """Every request that the plan still needs, in the order in which the loop would ask."""
    # A jury makes its tasks anew each time.
    asked = prepared.asked
    done, total = 0, len(asked) * len(prepared.models)
    for model in prepared.models:
        questions = Questions(model, journal, prepared.pooled.pool, prepared.pooled.turns)
        for task in questions.ahead(asked):
            done += 1
            steps(Step("searching for open questions", done, total))
            following = questions.next_request(task) if questions.gap(task) is None else None
            if following is not None:
                digest, request = following
                parameters = msgspec.to_builtins(model.parameters(request))
                # The digest knows nothing of the raw texts.
                request = msgspec.structs.replace(request, response="", passages=(), nugget=None)
                yield OpenQuestion(digest, model.name, parameters, request, model.address)
    steps(Step("writing requests"))


def under_way(out: Path) -> tuple[tuple[Path, int], ...]:
    """The folders of requests from which nothing came back yet, with the number of their requests.

    Raises:
        InputError: The list of rounds cannot be read.
    """
    waiting = [(out / entry.folder, entry.requests) for entry in _rounds(out) if not entry.returned]
    return tuple((Path(os.path.normpath(folder)), requests) for folder, requests in waiting if folder.exists())


def _note_round(out: Path, folder: Path, written: int | None = None) -> None:
    """Remember how many requests were written for an output folder, or that completions came back for them."""
    make_folder(out)
    rounds, name = _rounds(out), os.path.relpath(folder.resolve(), out.resolve())
    if written is not None:
        rounds = [*(entry for entry in rounds if entry.folder != name), RequestRound(name, written)]
    for entry in rounds:
        entry.returned |= written is None and entry.folder == name
    write_atomic(out / ROUNDS, json_bytes(rounds))


def _rounds(out: Path) -> list[RequestRound]:
    path = out / ROUNDS
    try:
        return msgspec.json.decode(read_stored(path), type=list[RequestRound]) if path.exists() else []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a list of rounds that `judge requests` wrote: {error}") from error
