"""Scale: what large runs need: batch engines, a cluster.

batches       files of requests handed to a provider (service), and what comes back, into the journal
ray           calls made by the workers of a cluster
cli           the commands

Here is what a run still has to ask, as files for batch engines: what `judge requests` does, for use from Python. Their
folder has every question in SQLite by its digest, so that what comes back finds what was asked.
"""

import contextlib
import os
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import price_of
from judge.ask.questions import Questions
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.scale.service import offer_of
from judge.io.files import StrPath, json_bytes, json_of
from judge.io.folder import make_folder, open_new, temporary_name, write_atomic
from judge.io.installed import __version__
from judge.io.steps import Step, Steps, quiet
from judge.jobs.run_inputs import RunInputs, check_out
from judge.judges.backends import backend_facts
from judge.judges.journal import JournalView
from judge.judges.model import Price
from judge.judges.records import Request
from judge.records import Record

REQUESTS = "requests.json"
QUESTIONS = "questions.sqlite"
ROUNDS = ".rounds.json"
"""In an output folder: folder of requests that were written for it to the number that waits for completions."""
_TABLES = """
PRAGMA synchronous = OFF;
PRAGMA journal_mode = OFF;
PRAGMA cache_size = -16384;
CREATE TABLE question (place INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE UNIQUE INDEX by_digest ON question (digest);
CREATE TABLE price (judge TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 2;
"""
"""The file is made in a folder that gets its name last, so a crash leaves nothing that would be read."""
_DAMAGE = (sqlite3.Error, msgspec.MsgspecError, TypeError, zlib.error)


class Shard(msgspec.Struct):
    """One file of requests."""

    name: str
    judge: str
    form: str
    lines: int = 0
    bytes: int = 0


class RequestsOutcome(Record, frozen=True):
    """The requests that were written."""

    folder: Path | None
    """None where the journal answers everything, so that nothing was written."""
    requests: int
    shards: tuple[Shard, ...]


class OpenQuestion(Record, frozen=True):
    """A request that is still to be asked, with everything that a journal records of it."""

    digest: str
    """The id of its line, and the key of its completion in the journal."""
    judge: str
    parameters: dict[str, Any]
    request: Request
    """Without the raw texts of response, passages and nugget, of which the digest knows nothing."""
    address: str | None = None

    @property
    def model(self) -> str:
        """The model as its API names it: without the provider, by which litellm finds the API."""
        model = str(self.parameters["model"])
        return model.partition("/")[2] or model if backend_facts(self.judge).names_provider else model

    @property
    def max_tokens(self) -> int:
        """Most tokens of the reply."""
        limits = (self.parameters.get(name) for name in ("max_tokens", "max_completion_tokens"))
        return max((limit for limit in limits if isinstance(limit, int)), default=0)

    def line(self) -> dict[str, Any]:
        """The line of a batch that asks it."""
        return offer_of(self.judge).line(self.digest, self.model, self.parameters, self.request.messages)


class QuestionFile(contextlib.AbstractContextManager["QuestionFile"]):
    """The questions of a folder, open to read; an InputError if the file is missing, damaged or something else."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / QUESTIONS
        if not self._path.is_file():
            raise InputError(f"{self._path}: no such file; expected what `judge requests` wrote")
        with self._readable():
            self._file = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
            (self.number,) = self._file.execute("SELECT count(*) FROM question").fetchone()
            if self._file.execute("PRAGMA user_version").fetchone() != (2,):
                self._file.close()
                raise InputError(f"{self._path}: of another version of judge, which has to take what comes back")
            prices = self._file.execute("SELECT judge, content FROM price").fetchall()
            self.prices: Mapping[str, Price] = {judge: msgspec.json.decode(text, type=Price) for judge, text in prices}

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[OpenQuestion]:
        """The questions in the order in which they are to be asked."""
        with self._readable():
            for (content,) in self._file.execute("SELECT content FROM question ORDER BY place"):
                yield _unpacked(content)

    def digests(self) -> Iterator[str]:
        """The digests under which a journal has the answers."""
        with self._readable():
            yield from (str(digest) for (digest,) in self._file.execute("SELECT digest FROM question"))

    def get(self, name: str) -> OpenQuestion | None:
        """The question that a line with this id asks, or None."""
        with self._readable():
            row = self._file.execute("SELECT content FROM question WHERE digest = ?", (name,)).fetchone()
            return None if row is None else _unpacked(row[0])

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            raise InputError(f"{self._path}: not a file of questions that `judge requests` wrote: {error}") from error


def _unpacked(content: bytes) -> OpenQuestion:
    return msgspec.json.decode(zlib.decompress(content), type=OpenQuestion)


def write_requests(
    inputs: RunInputs, folder: StrPath, *, shards: int | None = None, most: int | None = None, steps: Steps = quiet
) -> RequestsOutcome:
    """Write every request that a plan of `judge run` still needs, as files that batch engines take; nothing is sent.

    The folder must be new or empty. `shards` spreads the requests over so many files, as few as the engines take if
    None; `most` bounds the requests of a file, by what its engine takes if None.
    """
    folder = Path(folder)
    _check(inputs, folder)
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        make_folder(temporary)
        with JournalView(inputs.place.journals) as journal:
            numbers = _write_questions(temporary, _open_questions(inputs, journal, steps), _prices(inputs))
        number = numbers.total()
        if not number:
            return RequestsOutcome(None, 0, ())
        made = _write_shards(temporary, numbers, shards or 1, most)
        judges = {judge: {"requests": numbers[judge], "form": offer_of(judge).form} for judge in numbers}
        about = {"judge_version": __version__, "requests": number, "judges": judges, "files": made}
        write_atomic(temporary / REQUESTS, json_bytes(about))
        note_round(inputs.out, folder, waiting=number)
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        temporary.replace(folder)
    except (OSError, sqlite3.Error) as error:
        raise OperationalError(f"{folder}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return RequestsOutcome(folder, number, tuple(made))


def _check(inputs: RunInputs, folder: Path) -> None:
    """Refuse what leaves nothing to hand over, and a folder that is in use."""
    plan = inputs.plan
    for model in inputs.judge.models:
        offer = offer_of(model.name)
        if plan.logprobs and not offer.probabilities:
            batches = f"the {offer.form} batches of {model.name}"
            raise UsageError(f"--logprobs: label probabilities are not read from {batches}")
        if plan.reasoning_effort is not None and not offer.efforts:
            raise UsageError(f"--reasoning-effort: the {offer.form} batches of {model.name} have no such parameter")
    if plan.max_cost is not None:
        raise UsageError("--max-cost: nothing is paid here; --dry-run says what it may cost, --limit asks for less")
    for option in ("engine", "recheck"):
        if getattr(plan, option) is not None:
            raise UsageError(f"--{option}: it goes with the calls of `judge run`, and no call is made here")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; each round of requests has a folder of its own")
    if inputs.out.exists():
        check_out(inputs)
    if waiting := ", ".join(str(path) for path, _ in under_way(inputs.out)):
        raise UsageError(
            f"{waiting}: written earlier, and nothing came back from there yet, so its requests would be asked twice; "
            "import what came back, or remove the folder if it was never handed over"
        )


def _prices(inputs: RunInputs) -> dict[str, Price]:
    """What each judge's tokens cost in a batch."""
    prices = {}
    for model in inputs.judge.models:
        price = price_of(model, inputs.judge.settings.known_prices)
        share = offer_of(model.name).share
        if price is not None:
            cached = None if price.cached is None else price.cached * share
            prices[model.name] = Price(price.prompt * share, price.completion * share, cached)
    return prices


def _open_questions(inputs: RunInputs, journal: JournalView, steps: Steps) -> Iterator[OpenQuestion]:
    """Every request that the plan still needs, in the order in which the loop would ask."""
    done = 0
    total = len(inputs.asked) * len(inputs.judge.models)
    for model in inputs.judge.models:
        questions = Questions(model, journal, inputs.pooled.pool, inputs.pooled.turns)
        for task in inputs.asked:
            done += 1
            steps(Step("searching for open questions", done, total))
            if questions.gap(task) is None and (following := questions.next_request(task)) is not None:
                digest, request = following
                parameters = msgspec.to_builtins(model.parameters(request))
                # The digest knows nothing of the raw texts.
                request = msgspec.structs.replace(request, response="", passages=(), nugget=None)
                yield OpenQuestion(
                    digest=digest, judge=model.name, parameters=parameters, request=request, address=model.address
                )
    steps(Step("writing requests"))


def _write_questions(folder: Path, questions: Iterable[OpenQuestion], prices: Mapping[str, Price]) -> Counter[str]:
    """Write each digest once, and give the number of questions by judge; `prices` are those of a batch."""
    counts: Counter[str] = Counter()
    with contextlib.closing(sqlite3.connect(folder / QUESTIONS)) as file:
        file.executescript(_TABLES)
        with file:
            for question in questions:
                row = question.digest, zlib.compress(msgspec.json.encode(question), 1)
                new = file.execute("INSERT OR IGNORE INTO question (digest, content) VALUES (?, ?)", row)
                counts[question.judge] += new.rowcount
            known = [(judge, msgspec.json.encode(price).decode()) for judge, price in prices.items()]
            file.executemany("INSERT INTO price VALUES (?, ?)", known)
    return counts


def _write_shards(folder: Path, numbers: Mapping[str, int], spread: int, most: int | None) -> list[Shard]:
    """Write the lines of the questions, in their order, to files of one judge each.

    `numbers` are the questions of each judge, spread over so many files as evenly as can be, or over more where a file
    has its most lines or what the service takes.
    """
    made: list[Shard] = []
    places: Counter[str] = Counter()
    with QuestionFile(folder) as questions, contextlib.ExitStack() as opened:
        for question in questions:
            judge, offer = question.judge, offer_of(question.judge)
            line = msgspec.json.encode(question.line()) + b"\n"
            if len(line) > offer.most_bytes:
                told = f"the request about {question.request.response_id} has {len(line):,} bytes"
                raise UsageError(f"{told}, more than the {offer.most_bytes:,} that a file for {judge} may have")
            place = places[judge]
            lines = min(most or offer.most_lines, offer.most_lines)
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
    """The folders of requests from which nothing came back yet, with the number of their requests."""
    rounds = {Path(os.path.normpath(out / folder)): number for folder, number in _rounds(out).items()}
    return tuple((folder, number) for folder, number in rounds.items() if number and folder.exists())


def note_round(out: Path, folder: Path, waiting: int = 0) -> None:
    """Remember how many requests of a folder wait for completions: none, once some came back."""
    make_folder(out)
    name = os.path.relpath(folder.resolve(), out.resolve())
    write_atomic(out / ROUNDS, json_bytes(_rounds(out) | {name: waiting}))


def _rounds(out: Path) -> dict[str, int]:
    path = out / ROUNDS
    return json_of(path, dict[str, int], "not a list of rounds that `judge requests` wrote") if path.exists() else {}
