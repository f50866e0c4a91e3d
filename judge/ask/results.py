"""Judgments and failures on the disk, and grades of judges, read from files of any origin: ours, qrels, label files.

Results are lines of JSON, as in `judgments.jsonl`, and are decoded whenever somebody reads them, so that millions of
them need no memory.
"""

import contextlib
import itertools
import operator
import os
import sys
import tempfile
import threading
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, SupportsIndex, TypeVar, overload

import msgspec

from judge.ask.records import Failure, Judgment
from judge.errors import InputError, OperationalError, refuse
from judge.io.files import LineStream, decode_rows
from judge.io.ids import QrelRow, natural_key, parse_qrels
from judge.io.table import Table, Tabular
from judge.io.text import count, storable
from judge.judges.credentials import MASK
from judge.judges.records import AnswerForm, provider_name
from judge.plugins import added
from judge.pool.records import Pool
from judge.records import Estimate, FailureReason, Problem, Scale, file_problem

Result = Judgment | Failure
_Kind = TypeVar("_Kind", Judgment, Failure)
_BUFFER = 1 << 16
"""Bytes that are read at once: lines whose order calls that ran at once have changed lie as close together."""
_IN_MEMORY = 1 << 22
"""Bytes of results up to which nothing goes to the disk."""
_NOWHERE = -1
"""The beginning of a line that is not written."""
_LARGEST = 10**9
"""The largest grade of a scale is smaller, and so is the mean of any grades."""


class _ResultLines:
    """A buffered file of results, a line each, that several threads may read; `name` is what messages call it."""

    def __init__(self, file: IO[bytes], name: str, kind: Any = Result, *, foreign: bool = False) -> None:
        self._file = file
        self._name = name
        # What others may write is read no further once it has changed.
        self._first_state = _state(file) if foreign else None
        weakref.finalize(self, _close, file)
        self._lock = threading.Lock()
        self._end = 0
        self._at_end = False
        self._decoder: msgspec.json.Decoder[Result] = msgspec.json.Decoder(kind)
        self._encode = msgspec.json.Encoder().encode

    def add(self, result: Result) -> int:
        """Write a result at the end, and say where its line begins.

        An OperationalError if the disk cannot be written.
        """
        line = self._encode(result) + b"\n"
        start = self._end
        try:
            with self._lock:
                # What is written waits in a buffer as long as nobody moves to another place.
                if not self._at_end:
                    self._file.seek(start)
                    self._at_end = True
                self._file.write(line)
        except OSError as error:
            raise OperationalError(f"{self._name}: cannot be written: {error.strerror}") from error
        self._end += len(line)
        return start

    def check(self) -> None:
        """Refuse a file that has changed since it was looked through; an InputError if it has."""
        if self._first_state is not None and _state(self._file) != self._first_state:
            raise self._changed()

    def at(self, start: int) -> Result:
        """The result whose line begins at a place.

        An InputError if there is none, because the file has changed since it was looked through. An OperationalError if
        the disk cannot be written or read.
        """
        try:
            with self._lock:
                self._at_end = False
                self._file.seek(start)
                line = self._file.readline()
        except OSError as error:
            raise self._unusable(error) from error
        return self._decoded(line)

    def each(self, starts: Iterable[int]) -> Iterator[Result]:
        """The results whose lines begin at these places, which is quickest where lines lie close together.

        Errors are as of `at`.
        """
        number = -1
        block = b""
        for start in starts:
            if start // _BUFFER != number:
                number = start // _BUFFER
                block = self._block(number)
            place = start % _BUFFER
            end = block.find(b"\n", place)
            yield self._decoded(block[place:end] if end >= 0 else block[place:])

    def _block(self, number: int) -> bytes:
        """The bytes of a block, and those up to the end of its last line."""
        try:
            with self._lock:
                self._at_end = False
                self._file.seek(number * _BUFFER)
                return self._file.read(_BUFFER) + self._file.readline()
        except OSError as error:
            raise self._unusable(error) from error

    def _decoded(self, line: bytes) -> Result:
        try:
            return self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._changed() from error

    def _unusable(self, error: OSError) -> OperationalError:
        # What was written last may have to go to the disk first.
        return OperationalError(f"{self._name}: cannot be written or read: {error.strerror}")

    def _changed(self) -> InputError:
        return InputError(f"{self._name}: has changed since it was read: run the command again")


def _state(file: IO[bytes]) -> tuple[int, int] | None:
    """What changes when somebody writes a file; None of bytes in the memory."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _close(file: IO[bytes]) -> None:
    # On a full disk, what could not be written is tried once more.
    with contextlib.suppress(OSError):
        file.close()


_Part = tuple[_ResultLines, "array[int]"]
"""A file of results, and where each line begins."""
_Rows = Callable[[Result], Iterable[Mapping[str, object]]]


class ResultKind(NamedTuple):
    """What many results have in common."""

    judge: str
    criterion: str
    model: str | None
    """The model that the provider named; None of a failure, too."""
    form: AnswerForm | None
    """None of a failure."""
    reason: FailureReason | None
    """None of a judgment."""
    masked: bool
    """Whether MASK stands in what the judge said."""


def _kind_of(result: Result) -> ResultKind:
    if isinstance(result, Failure):
        return ResultKind(
            judge=result.judge,
            criterion=result.criterion,
            model=None,
            form=None,
            reason=result.reason,
            masked=MASK in result.detail or MASK in (result.raw or ""),
        )
    return ResultKind(
        judge=result.judge,
        criterion=result.criterion,
        model=result.model,
        form=result.form,
        reason=None,
        masked=MASK in (result.rationale or "") or MASK in (result.model or ""),
    )


class _Survey(NamedTuple):
    """What one reading of all results tells."""

    kinds: Counter[ResultKind]
    """How many there are of each kind, in the order of the first of each."""
    places: dict[str, "array[int]"]
    """The places of the results under each criterion, from 0, ascending."""


class StoredResults(Tabular[Result], Sequence[Result]):
    """A sequence of judgments and failures, each decoded when it is read; a slice is a table in memory.

    `rows` gives what data frames show of a result; by default its fields.
    """

    def __init__(self, parts: Iterable[_Part] = (), rows: _Rows | None = None) -> None:
        self._parts = tuple(parts)
        self._rows = rows
        self._ends = list(itertools.accumulate(len(starts) for _, starts in self._parts))
        self._surveyed: _Survey | None = None

    @classmethod
    def joined(cls, several: Iterable["StoredResults"]) -> "StoredResults":
        """Several sequences as one."""
        return cls(part for results in several for part in results._parts)

    def with_rows(self, rows: _Rows) -> "StoredResults":
        """The same results, of which data frames show these rows."""
        results = StoredResults(self._parts, rows)
        results._surveyed = self._surveyed
        return results

    def _named(self) -> Iterable[object]:
        return self if self._rows is None else chain.from_iterable(map(self._rows, self))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Result]:
        for lines, starts in self._parts:
            lines.check()
            yield from lines.each(starts)
            lines.check()

    def _survey(self) -> _Survey:
        if self._surveyed is None:
            survey = _Survey(kinds=Counter(), places={})
            for place, result in enumerate(self):
                survey.kinds[_kind_of(result)] += 1
                survey.places.setdefault(result.criterion, array("q")).append(place)
            self._surveyed = survey
        return self._surveyed

    def kinds(self) -> Mapping[ResultKind, int]:
        """How many results there are of each kind, in the order of the first of each."""
        return self._survey().kinds

    def places(self, criterion: str) -> Sequence[int]:
        """The places of the results under a criterion, from 0, ascending."""
        return self._survey().places.get(criterion, ())

    def of_criterion(self, criterion: str) -> Iterator[Result]:
        """The results under a criterion by their places, which is quicker than one by one."""
        places = self.places(criterion)
        begin = 0
        for (lines, starts), end in zip(self._parts, self._ends, strict=True):
            first = bisect_left(places, begin)
            last = bisect_left(places, end)
            lines.check()
            yield from lines.each(starts[place - begin] for place in places[first:last])
            lines.check()
            begin = end

    @overload
    def __getitem__(self, key: SupportsIndex) -> Result: ...
    @overload
    def __getitem__(self, key: slice) -> "Table[Result] | StoredResults": ...
    def __getitem__(self, key: Any) -> Any:
        """A result; for a slice, a table of them, with the same rows in data frames."""
        if isinstance(key, slice):
            picked = Table(self[number] for number in range(*key.indices(len(self))))
            return picked if self._rows is None else stored(picked).with_rows(self._rows)
        place = range(len(self))[key]
        part = bisect_right(self._ends, place)
        lines, starts = self._parts[part]
        lines.check()
        return lines.at(starts[place - self._ends[part]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the results themselves."""
        return Table, (tuple(self),)

    def __repr__(self) -> str:
        return f"StoredResults({len(self)} results)"


class ResultWriter:
    """Takes results in any order; larger ones go to a file without a name, which nobody has to remove.

    `number` of them will come in any order; where it is 0, they are added one after the other. The file lies in
    `folder`; by default where the system keeps temporary files.
    """

    def __init__(self, number: int = 0, folder: Path | None = None) -> None:
        place = tempfile.gettempdir() if folder is None else str(folder)
        # It stays open as long as somebody reads.
        file = tempfile.SpooledTemporaryFile(_IN_MEMORY, buffering=_BUFFER, dir=place)  # noqa: SIM115
        self._lines = _ResultLines(file, place)
        self._starts = array("q", [_NOWHERE]) * number
        self._number = 0

    def __len__(self) -> int:
        """How many results have come."""
        return self._number

    def put(self, place: int, result: Result) -> None:
        """Write the result of a place, of which the last counts; an OperationalError if the disk cannot be written."""
        self._number += self._starts[place] == _NOWHERE
        self._starts[place] = self._lines.add(result)

    def add(self, result: Result) -> None:
        """Write the next result; an OperationalError if the disk cannot be written."""
        self._starts.append(_NOWHERE)
        self.put(len(self._starts) - 1, result)

    def results(self) -> StoredResults:
        """The results by their places, all of which must have come."""
        if _NOWHERE in self._starts:
            raise ValueError("some results have not come")
        return StoredResults([(self._lines, self._starts)])


def places_of(results: Sequence[Result], criterion: str) -> Sequence[int]:
    """The places of the results under a criterion, from 0, ascending."""
    if isinstance(results, StoredResults):
        return results.places(criterion)
    return [place for place, result in enumerate(results) if result.criterion == criterion]


def results_of(results: Sequence[Result], criterion: str) -> Iterator[Result]:
    """The results under a criterion."""
    if isinstance(results, StoredResults):
        return results.of_criterion(criterion)
    return map(results.__getitem__, places_of(results, criterion))


def stored(results: Iterable[Result], folder: Path | None = None) -> StoredResults:
    """Results as they come, in a file as of `ResultWriter`; an OperationalError if the disk cannot be written."""
    if isinstance(results, StoredResults):
        return results
    writer = ResultWriter(folder=folder)
    for result in results:
        writer.add(result)
    return writer.results()


def kinds_of(results: Iterable[Result]) -> Mapping[ResultKind, int]:
    """How many results there are of each kind, in the order of the first of each."""
    return results.kinds() if isinstance(results, StoredResults) else Counter(map(_kind_of, results))


def failure_counts(results: Iterable[Result]) -> Counter[FailureReason]:
    """How many judgments are missing, by the reason."""
    counts: Counter[FailureReason] = Counter()
    for kind, number in kinds_of(results).items():
        if kind.reason is not None:
            counts[kind.reason] += number
    return counts


def read_results(judgments: Path, failures: Path) -> StoredResults:
    """The judgments of one file, and the failures of another, which may be missing; each is read whenever it is used.

    An InputError if a file cannot be read, or has problems; every bad line is listed.
    """
    parts = [_checked(judgments, Judgment)]
    if failures.exists():
        parts.append(_checked(failures, Failure))
    return StoredResults(parts)


def stored_judgments(path: Path) -> StoredResults:
    """The judgments of a file, gzipped or not; each is read whenever it is used.

    An InputError if the file cannot be read, or some lines are no judgments; every such line is listed.
    """
    return StoredResults([_checked(path, Judgment, packed=True)])


def _checked(path: Path, kind: type[_Kind], *, packed: bool = False) -> _Part:
    """The lines of a file, all of which hold a result, and where each line begins."""
    lines = LineStream(path, packed=packed)
    results = _ResultLines(lines.file, str(path), kind, foreign=True)
    return results, array("q", (lines.start for _ in each_result(lines, kind, str(path))))


def each_result(lines: Iterable[tuple[int, bytes]], kind: type[_Kind], name: str) -> Iterator[_Kind]:
    """The results of a kind on numbered lines, one at a time; `name` is the file, as messages name it.

    An InputError if some lines hold none, which is told after the last line; every such line is listed.
    """
    code = "not_a_judgment" if kind is Judgment else "not_a_failure"
    problems: list[Problem] = []
    for number, row in decode_rows(lines, kind, name, code, problems):
        if isinstance(row, Judgment) and row.expected is not None and abs(row.expected) > _LARGEST:
            message = f"{row.expected:g} is no mean of grades: expected {-_LARGEST:,} to {_LARGEST:,}"
            problems.append(file_problem(code, name, message, f"line {number}: $.expected"))
        else:
            yield row
    refuse(problems, f"{name}: {count(len(problems), 'line')} with problems ({code})")


_JudgeKey = tuple[str, str, str]
"""Judge, `criterion/variant` and SHA-256 of the prompt."""
JUDGMENTS = "judgments.jsonl"
FAILURES = "failures.jsonl"
MEMBERS, MEMBER_FAILURES = "members.jsonl", "member_failures.jsonl"
"""Names of the files of judgments, and of those that are missing, in an output folder."""
JURY = "jury/"
"""The beginning of every jury's name."""
OFF_SCALE = "off_scale"
"""The reason of a label whose grade is not on the judge's scale, where such a label counts as missing."""


def is_jury(judge: str) -> bool:
    """Whether a judge is a jury; the prompt digest of a jury covers its members and their prompts, not one file."""
    return judge.startswith(JURY)


class Label(msgspec.Struct, frozen=True, gc=False):
    """The grade that a judge or a person gave to an item, or the reason why there is no grade."""

    turn_id: str
    response_id: str
    grade: int | None
    reason: str | None = None
    """`unable`, OFF_SCALE, or the reason of a failure; None if there is a grade."""
    expected: float | None = None
    """The mean grade under the label probabilities; None where the judge gave none."""
    sample: int = 0
    probabilities: dict[str, float] | None = None
    """The judge's probability of each label; None where it gave none."""
    rationale: str | None = None
    """The reason in words, or an assessor's comment; None where there is none."""


class Labels(msgspec.Struct, frozen=True):
    """All labels of one judge under one prompt."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None if the file does not say."""
    prompt_digest: str | None
    """SHA-256 of the prompt; None if the file does not say."""
    source: str
    """The file, as messages name it."""
    digest: str
    """SHA-256 of the file as stored."""
    labels: tuple[Label, ...]
    models_returned: tuple[str, ...] = ()
    """The models as the providers named them, sorted."""
    first_place: Estimate | None = None
    """Of pairs: the advantage of the response that is shown first."""
    pool: Pool | None = None
    """The pool that the response ids refer to; None where it is not known."""
    scale: Scale | None = None
    """What the grades are on; None where that is not known."""


_Group = tuple[list[Label], set[str]]
"""The labels of one judge under one prompt, and the models that gave them."""


def on_scale(labels: Labels, grades: Collection[int]) -> Labels:
    """The labels, each one with another grade than these as a missing one; its probabilities are no use either."""
    return msgspec.structs.replace(
        labels,
        labels=tuple(
            label
            if label.grade is None or label.grade in grades
            else msgspec.structs.replace(label, grade=None, reason=OFF_SCALE, expected=None, probabilities=None)
            for label in labels.labels
        ),
    )


def read_labels(
    path: Path,
    grades: Collection[int] | None = None,
    *,
    grades_only: bool = False,
    explained: Collection[str] | None = None,
    lenient: bool = False,
) -> tuple[Labels, ...]:
    """The labels of a file: a `judgments.jsonl` with the `failures.jsonl` beside it, four columns, or a tool's log.

    A file of columns holds one judge, named after the file, with some of `grades`, if they are given. `grades_only`
    leaves out rationales and label probabilities, which take most of the memory. `explained` are the turns whose
    rationales are kept, and those of first samples alone, which keep label probabilities too; None keeps all. If
    `lenient`, a value of a log that is no grade is a missing label. An InputError if the file cannot be read or has
    lines with problems; every problem is listed.
    """
    for read_log in added("labels", ()).values() if path.suffix in (".eval", ".json") else ():
        logged: tuple[Labels, ...] | None = read_log(path, grades, lenient=lenient)
        if logged is not None:
            return logged
    lines = LineStream(path, packed=True, digested=True)
    with lines.file:
        numbered_lines = iter(lines)
        first = next(((number, line) for number, line in numbered_lines if line.strip()), (1, b""))
        # The name counts too, because the file is empty if every judgment failed.
        if path.name == JUDGMENTS or first[1].lstrip().startswith(b"{"):
            judged = each_result(chain([first], numbered_lines), Judgment, str(path))
            failed = _failed(path.with_name(FAILURES)) if path.name == JUDGMENTS else ()
            groups = _grouped(chain(judged, failed), grades_only=grades_only, explained=explained)
            return _by_judge(groups, str(path), lines.digest)
        content = lines.whole()
    name = path.name.removesuffix(".gz")
    rows = parse_columns(content, str(path), grades)
    # Gold and other judges name the same items.
    labels = tuple(Label(sys.intern(row.turn_id), sys.intern(row.item_id), row.grade) for row in rows)
    return (
        Labels(
            judge=name.rpartition(".")[0] or path.name,
            prompt=None,
            prompt_digest=None,
            source=str(path),
            digest=lines.digest,
            labels=labels,
        ),
    )


def _failed(path: Path) -> Iterator[Failure]:
    if path.exists():
        lines = LineStream(path)
        with lines.file:
            yield from each_result(lines, Failure, str(path))


def parse_columns(content: bytes, name: str, grades: Collection[int] | None = None) -> tuple[QrelRow, ...]:
    """The rows of a qrels or label file, whose bytes are unpacked; grades are some of `grades`, if they are given.

    An InputError if the file is not UTF-8, is empty, or has lines with problems.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unusable(name, "wrong_encoding", f"not UTF-8: {error.reason}", f"line {line}") from error
    if not storable(text):
        raise _unusable(name, "wrong_encoding", "holds NUL bytes: expected lines of text")
    rows = parse_qrels(text, name, grades)
    if not rows:
        raise _unusable(name, "empty_file", "expected one line of four columns or more")
    return rows


def _unusable(name: str, code: str, message: str, path: str = "") -> InputError:
    return InputError(f"{name}: not usable as labels", [file_problem(code, name, message, path)])


def labels_of(results: Iterable[Judgment | Failure], source: str, digest: str) -> tuple[Labels, ...]:
    """The labels in judgments and failures, grouped by judge and prompt, in natural order of both names.

    `source` and `digest` are their file, as messages name it, and its SHA-256.
    """
    return _by_judge(_grouped(results), source, digest)


def _grouped(
    results: Iterable[Judgment | Failure], *, grades_only: bool = False, explained: Collection[str] | None = None
) -> dict[_JudgeKey, _Group]:
    groups: dict[_JudgeKey, _Group] = {}
    # The ids come again with every judge and criterion.
    ids: dict[str, str] = {}
    for result in results:
        prompt = f"{result.criterion}/{result.variant}"
        labels, models = groups.setdefault((result.judge, prompt, result.criterion_digest), ([], set()))
        turn_id = ids.setdefault(result.turn_id, result.turn_id)
        label = _label(result, turn_id, ids.setdefault(result.response_id, result.response_id))
        if grades_only or (explained is not None and label.sample > 0):
            label = msgspec.structs.replace(label, rationale=None, probabilities=None)
        elif explained is not None and turn_id not in explained:
            label = msgspec.structs.replace(label, rationale=None)
        labels.append(label)
        if isinstance(result, Judgment) and (model := provider_name(result.model)):
            models.add(model)
    return groups


def _by_judge(groups: Mapping[_JudgeKey, _Group], source: str, digest: str) -> tuple[Labels, ...]:
    """The groups in natural order of judge and prompt."""
    several: list[Labels] = []
    for key in sorted(groups, key=lambda key: (natural_key(key[0]), natural_key(key[1]), key)):
        judge, prompt, prompt_digest = key
        labels, models = groups[key]
        several.append(
            Labels(
                judge=judge,
                prompt=prompt,
                prompt_digest=prompt_digest,
                source=source,
                digest=digest,
                labels=tuple(labels),
                models_returned=tuple(sorted(models)),
            )
        )
    return tuple(several)


def _label(result: Judgment | Failure, turn_id: str, response_id: str) -> Label:
    if isinstance(result, Failure):
        return Label(turn_id, response_id, None, result.reason, sample=result.sample)
    grade, reason, expected = (None, "unable", None) if result.unable else (result.grade, None, result.expected)
    probabilities = None if result.unable else result.probabilities
    return Label(
        turn_id=turn_id,
        response_id=response_id,
        grade=grade,
        reason=reason,
        expected=expected,
        sample=result.sample,
        probabilities=probabilities,
        rationale=result.rationale,
    )
