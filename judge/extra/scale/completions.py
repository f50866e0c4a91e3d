"""Completions that batch engines brought back, taken into a journal: what `judge completions import` does."""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, cast

import msgspec

from judge.ask.options import JournalOption
from judge.errors import InputError, JudgeError, RejectedError
from judge.extra.scale.requests import OpenQuestion, QuestionFile, note_round
from judge.extra.scale.service import offer_of
from judge.extra.scale.wire import BatchLine
from judge.io.folder import check_apart, make_folder
from judge.io.plan import Option
from judge.io.safe import printable, shown
from judge.io.steps import Step, Steps, counted, quiet
from judge.io.stored import GZIP
from judge.jobs.manifest import JOURNAL
from judge.judges.http_errors import at
from judge.judges.journal import Journal, open_journal
from judge.judges.journal_rows import Row, new_row
from judge.judges.journal_tools import LONGEST
from judge.judges.model import Price
from judge.judges.records import Completion

_TOGETHER, _LONGEST_REASON = 5000, 200
"""Completions in one commit, and characters of a reason that are counted together."""
_VERSION = re.compile(r"[-@:](?:(?:preview|exp)(?:-|$))?(?:\d{3,4}|\d{8}|\d{2}-\d{2}|\d{2}-\d{4}|\d{4}-\d{2}-\d{2})?")
"""What follows the name of a model in that of one of its versions: a number or a date, and no word such as `mini`."""
_ALIAS = re.compile(r"-(?:latest|0)$")
"""The end of a name that stands for the newest version."""
_decode = msgspec.json.Decoder(BatchLine).decode


class JournalTaker(JournalOption):
    """The journal that takes completions."""

    out: Annotated[Path, Option(short="o", metavar="OUT")]
    """Output folder of `judge run`, with the journal."""
    answered_by: Annotated[tuple[str, ...], Option(metavar="MODEL", repeat=True)] = ()
    """Another name under which the model that was asked may answer; may be repeated."""


class CompletionsPlan(JournalTaker):
    """Everything `judge completions import` can be told."""

    files: Annotated[tuple[Path, ...], Option(metavar="FILE", place="only")]
    """Output lines of OpenAI, vLLM, Anthropic or Gemini, compressed by gzip or not."""
    requests: Annotated[Path, Option(metavar="DIR")]
    """Folder of `judge requests` with the questions."""


class TakenCompletions(msgspec.Struct):
    """What became of the lines of a batch's output."""

    lines: int = 0
    taken: int = 0
    """Completions that are new in the journal."""
    repeated: int = 0
    """Lines whose question the journal answers already."""
    failed: dict[str, int] = {}
    """Lines without a completion by reason; their questions are asked again."""
    refused: list[tuple[str, str]] = []
    """File and line of each that is no answer to what was asked, and why."""
    open: int = 0
    """Questions that still have no completion."""
    cost: float | None = None
    """US dollars of the new completions; None where no price is known."""


class _RefusedError(Exception):
    """A line is no answer to what was asked."""


def import_completions(plan: CompletionsPlan, steps: Steps = quiet) -> TakenCompletions:
    """Take what came back for requests into the journal of an output folder; doing it again changes nothing."""
    out, files = plan.out, plan.files
    if missing := [str(path) for path in files if not path.is_file()]:
        raise InputError(f"{', '.join(missing)}: no such file")
    check_apart(out, files)
    with QuestionFile(plan.requests) as questions:
        make_folder(out)
        with open_journal(out / JOURNAL, plan.journal) as journal:
            taken = _take(_lines(files), questions, journal, plan.answered_by, steps)
            digests = counted("counting open questions", questions.digests(), questions.number, steps)
            taken.open = sum(digest not in journal for digest in digests)
    note_round(out, plan.requests)
    return taken


def _take(
    lines: Iterable[tuple[str, bytes]], questions: QuestionFile, journal: Journal, names: Collection[str], steps: Steps
) -> TakenCompletions:
    """Record the completions in lines; `names` are further ones under which a model that was asked may answer."""
    taken, failed = TakenCompletions(), Counter[str]()
    rows: dict[str, Row] = {}
    for place, line in lines:
        taken.lines += 1
        steps(Step("taking completions", taken.lines))
        try:
            said, question = _read(line, questions)
            if question.digest in rows or question.digest in journal:
                continue
            completion = _completion(said, question, questions.prices.get(question.judge), names)
        except RejectedError as error:
            failed[printable(str(error)[:_LONGEST_REASON])] += 1
            continue
        except _RefusedError as error:
            taken.refused.append((place, str(error)))
            continue
        asked = question.digest, question.judge, question.parameters, question.request
        rows[question.digest] = new_row(*asked, completion)
        if completion.cost is not None:
            taken.cost = (taken.cost or 0.0) + completion.cost
        if len(rows) == _TOGETHER:
            taken.taken += journal.record(rows.values())
            rows.clear()
    taken.taken += journal.record(rows.values())
    taken.failed = dict(sorted(failed.items()))
    taken.repeated = taken.lines - taken.taken - failed.total() - len(taken.refused)
    return taken


def _lines(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """The lines that are not empty, each with its place."""
    for path in files:
        try:
            with path.open("rb") as file:
                packed = file.read(2) == GZIP
            with cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
                    if line.strip():
                        yield f"{path}: line {number}", line
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _read(content: bytes, questions: QuestionFile) -> tuple[BatchLine, OpenQuestion]:
    """A line, and the question that it answers."""
    try:
        try:
            line = _decode(content)
        except (msgspec.MsgspecError, ValueError):
            # Half an emoji or NaN, which msgspec refuses and Python reads, costs no grade.
            read = json.loads(content.decode("utf-8", "replace"), parse_constant=lambda name: None)
            line = _decode(json.dumps(read, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _RefusedError(f"no line of a batch: {error}") from error
    digest = at(line, str, "custom_id") or at(line, str, "key")
    if digest is None:
        raise _RefusedError("neither `custom_id` nor `key` says which question it answers")
    question = questions.get(digest)
    if question is None:
        raise _RefusedError(f"{shown(digest[:80])} is the id of no question of these requests")
    return line, question


def _completion(line: BatchLine, question: OpenQuestion, price: Price | None, names: Collection[str]) -> Completion:
    """The completion that answers a question; a RejectedError says why there is none."""
    written = msgspec.json.decode(msgspec.json.encode(question.line()))
    for name in {"body", "request"} & written.keys():
        if line.get(name) not in (None, written[name]):
            raise _RefusedError("the request that it repeats is not the one that was written")
    try:
        completion = offer_of(question.judge).read(line, question.request)
    except JudgeError as error:
        raise RejectedError(str(error)) from error
    answered = completion.model
    if answered is not None and not any(same_model(known, answered) for known in (question.model, *names)):
        raise _RefusedError(f"answered by {shown(answered)}, asked was {question.model}")
    return completion if price is None else msgspec.structs.replace(completion, cost=price.of(completion))


def same_model(asked: str, answered: str) -> bool:
    """Whether the model that answered is the one that was asked, or a version of it.

    >>> same_model("gpt-4.1-mini", "gpt-4.1-mini-2025-04-14"), same_model("gpt-4.1", "gpt-4.1-mini")
    (True, False)
    """
    asked, answered = asked.removeprefix("models/"), answered.removeprefix("models/")
    longer, shorter = sorted((asked, answered), key=len, reverse=True)
    # A server may leave out the owner, or name the path that it loaded the model from.
    if asked == answered or longer.endswith(f"/{shorter}"):
        return True
    stem = _ALIAS.sub("", asked)
    return answered.startswith(stem) and _VERSION.fullmatch(answered[len(stem) :]) is not None
