"""Requests of a run for other engines: what `judge requests` does, for use from Python."""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from judge.ask.budget import price_of
from judge.ask.questions import Questions
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.scale.questions import OpenQuestion, QuestionFile, write_questions
from judge.extra.scale.service import offer_of
from judge.io.bundle import __version__
from judge.io.folder import make_folder, open_new, temporary_name, write_atomic
from judge.io.line_stream import json_bytes
from judge.io.paths import StrPath
from judge.io.steps import Step, Steps, quiet
from judge.io.stored import read_stored
from judge.jobs.run_inputs import RunInputs, check_out
from judge.judges.journal import JournalView
from judge.judges.model import Price
from judge.records import Record

REQUESTS = "requests.json"
"""What the requests of a folder were made of."""
ROUNDS = ".rounds.json"
"""In an output folder, the rounds of requests that were written for it."""


class Shard(msgspec.Struct):
    """One file of requests."""

    name: str
    judge: str
    form: str
    """The name of the wire format."""
    lines: int = 0
    bytes: int = 0


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


def write_requests(
    inputs: RunInputs,
    folder: StrPath,
    *,
    shards: int | None = None,
    most: int | None = None,
    steps: Steps = quiet,
) -> RequestsOutcome:
    """Write every request that a plan of `judge run` still needs, as files that batch engines take.

    Nothing is sent. Replies that a repair must follow come with the next call, once they are in the journal.

    Args:
        inputs: The plan, with its inputs read.
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
    _check(inputs, folder)
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        make_folder(temporary)
        with JournalView(inputs.place.journals) as journal:
            numbers = write_questions(temporary, _open_questions(inputs, journal, steps), _prices(inputs))
        number = numbers.total()
        if not number:
            return RequestsOutcome(None, 0, ())
        made = _write_shards(temporary, numbers, shards or 1, most)
        judges = {judge: {"requests": numbers[judge], "form": offer_of(judge).form} for judge in numbers}
        about = {"judge_version": __version__, "requests": number, "judges": judges, "files": made}
        write_atomic(temporary / REQUESTS, json_bytes(about))
        note_round(inputs.out, folder, written=number)
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        temporary.replace(folder)
    except OSError as error:
        raise OperationalError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return RequestsOutcome(folder, number, tuple(made))


def _check(inputs: RunInputs, folder: Path) -> None:
    """Refuse what leaves nothing to hand over, and a folder that is in use."""
    plan = inputs.plan
    for model in inputs.judge.models:
        offer = offer_of(model.name)
        if plan.logprobs and not offer.probabilities:
            raise UsageError(
                f"--logprobs: label probabilities are not read from the {offer.form} batches of {model.name}"
            )
    refused = {
        "--cascade: its checker judges first, so `judge run` alone knows what is left to ask": plan.cascade,
        "--max-cost: nothing is paid here; --dry-run says what it may cost, --limit asks for less": (plan.max_cost),
        "--engine: no call is made here; `judge run` makes its calls through an engine": plan.engine,
        "--recheck: `judge run` asks again, once the first answers are in the journal": plan.recheck,
    }
    for why, value in refused.items():
        if value is not None:
            raise UsageError(why)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; each round of requests has a folder of its own")
    if inputs.out.exists():
        check_out(inputs)
    if waiting := under_way(inputs.out):
        raise UsageError(
            f"{', '.join(str(path) for path, _ in waiting)}: written earlier, and nothing came back from there yet, so "
            "its requests would be asked twice; import what came back, or remove the folder if it was never handed over"
        )


def _prices(inputs: RunInputs) -> dict[str, Price]:
    """What each judge's tokens cost in a batch."""
    prices = {}
    for model in inputs.judge.models:
        price, share = price_of(model, inputs.judge.settings.known_prices), offer_of(model.name).share or 1.0
        if price is not None:
            cached = None if price.cached is None else price.cached * share
            prices[model.name] = Price(price.prompt * share, price.completion * share, cached)
    return prices


def _open_questions(inputs: RunInputs, journal: JournalView, steps: Steps) -> Iterator[OpenQuestion]:
    """Every request that the plan still needs, in the order in which the loop would ask."""
    done, total = 0, len(inputs.asked) * len(inputs.judge.models)
    for model in inputs.judge.models:
        questions = Questions(model, journal, inputs.pooled.pool, inputs.pooled.turns)
        for task in questions.ahead(inputs.asked):
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


def _write_shards(folder: Path, numbers: Mapping[str, int], spread: int, most: int | None) -> list[Shard]:
    """Write the lines of the questions, in their order, to `requests-00001.jsonl` and so on; a file has one judge.

    Args:
        folder: The folder with the questions.
        numbers: Judge to the number of its questions.
        spread: How many files to spread each judge's over, as evenly as can be; more where the limits are reached.
        most: Most lines of a file; None means what its service takes.
    """
    made: list[Shard] = []
    places: Counter[str] = Counter()
    with QuestionFile(folder) as questions, contextlib.ExitStack() as opened:
        for question in questions:
            judge, offer = question.judge, offer_of(question.judge)
            line = msgspec.json.encode(question.line()) + b"\n"
            if len(line) > offer.most_bytes:
                raise UsageError(
                    f"the request about {question.request.response_id} has {len(line):,} bytes, more than the "
                    f"{offer.most_bytes:,} that a file for {judge} may have"
                )
            place, lines = places[judge], min(most or offer.most_lines, offer.most_lines)
            turned = place * spread // numbers[judge] != (place - 1) * spread // numbers[judge]
            if turned or made[-1].lines >= lines or made[-1].bytes + len(line) > offer.most_bytes:
                opened.close()
                made.append(Shard(f"requests-{len(made) + 1:05}.jsonl", judge, offer.form))
                file = opened.enter_context(open_new(folder / made[-1].name))
            file.write(line)
            made[-1].lines += 1
            made[-1].bytes += len(line)
            places[judge] += 1
    return made


def under_way(out: Path) -> tuple[tuple[Path, int], ...]:
    """The folders of requests from which nothing came back yet, with the number of their requests.

    Raises:
        InputError: The list of rounds cannot be read.
    """
    waiting = [(out / entry.folder, entry.requests) for entry in _rounds(out) if not entry.returned]
    return tuple((Path(os.path.normpath(folder)), requests) for folder, requests in waiting if folder.exists())


def note_round(out: Path, folder: Path, written: int | None = None) -> None:
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
