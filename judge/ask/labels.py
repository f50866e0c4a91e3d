"""Grades of judges, read from files of any origin: our judgments and failures, qrels, four-column label files."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.ask.cascade import was_settled
from judge.ask.records import Failure, Judgment
from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.stored import read_stored, sha256, unpack
from judge.files.trec import QrelRow, parse_qrels
from judge.records import Problem
from judge.text.cells import count
from judge.text.ids import natural_key
from judge.text.safe import storable

_Result = TypeVar("_Result", Judgment, Failure)

_LARGEST = 10**9
"""The largest grade of a scale is smaller, and so is the mean of any grades."""
JUDGMENTS, FAILURES = "judgments.jsonl", "failures.jsonl"
"""Names of the files of judgments, and of those that are missing, in an output folder."""
JURY = "jury/"
"""The beginning of every jury's name."""


def is_jury(judge: str) -> bool:
    """Whether a judge is a jury; the prompt digest of a jury covers its members and their prompts, not one file."""
    return judge.startswith(JURY)


OFF_SCALE = "off_scale"
"""The reason of a label whose grade is not on the judge's scale, where such a label counts as missing."""


class Label(msgspec.Struct, frozen=True, gc=False):
    """The grade that a judge gave to an item, or the reason why there is no grade."""

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
    """The judge's reason in words; None where it gave none."""
    settled: bool = False
    """Whether the checker of a cascade gave the grade."""


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


def read_labels(path: Path, grades: Collection[int] | None = None) -> tuple[Labels, ...]:
    """The labels of a file: a `judgments.jsonl` with the `failures.jsonl` beside it, or four columns.

    Args:
        path: The file, gzipped or not. A file of columns holds one judge, named after the file.
        grades: The allowed grades of a file of columns; None allows every grade.

    Raises:
        InputError: The file cannot be read or has lines with problems; every problem is listed.
    """
    stored = read_stored(path)
    content = unpack(stored, str(path))
    # The name counts too, because the file is empty if every judgment failed.
    if path.name == JUDGMENTS or content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        failures: tuple[Failure, ...] = ()
        beside = path.with_name(FAILURES)
        if path.name == JUDGMENTS and beside.exists():
            failures = read_failures(read_stored(beside), str(beside))
        results: list[Judgment | Failure] = [*read_judgments(content, str(path)), *failures]
        return labels_of(results, str(path), sha256(stored))
    rows = parse_columns(content, str(path), grades)
    return (_labels(path, sha256(stored), rows),)


def parse_columns(content: bytes, name: str, grades: Collection[int] | None = None) -> tuple[QrelRow, ...]:
    """The rows of a qrels or label file.

    Args:
        content: The bytes of the file, unpacked.
        name: The file, as messages name it.
        grades: The allowed grades; None allows every grade.

    Raises:
        InputError: The file is not UTF-8, is empty, or has lines with problems.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = Problem("wrong_encoding", "error", name, None, f"line {line}", f"not UTF-8: {error.reason}")
        raise InputError(f"{name}: not usable as labels", [problem]) from error
    if not storable(text):
        problem = Problem("wrong_encoding", "error", name, None, "", "holds NUL bytes: expected lines of text")
        raise InputError(f"{name}: not usable as labels", [problem])
    rows = parse_qrels(text, name, grades)
    if not rows:
        problem = Problem("empty_file", "error", name, None, "", "expected one line of four columns or more")
        raise InputError(f"{name}: not usable as labels", [problem])
    return rows


def _labels(path: Path, digest: str, rows: Iterable[QrelRow]) -> Labels:
    name = path.name.removesuffix(".gz")
    return Labels(
        judge=name.rpartition(".")[0] or path.name,
        prompt=None,
        prompt_digest=None,
        source=str(path),
        digest=digest,
        labels=tuple(Label(row.turn_id, row.item_id, row.grade) for row in rows),
    )


def labels_of(results: Iterable[Judgment | Failure], source: str, digest: str) -> tuple[Labels, ...]:
    """The labels in judgments and failures, grouped by judge and prompt, in natural order of both names.

    The two judges of a cascade are one judge, under the name of the cascade.

    Args:
        results: Judgments and failures.
        source: Their file, as messages name it.
        digest: SHA-256 of that file.
    """
    groups: dict[tuple[str, str, str], list[Judgment | Failure]] = {}
    for result in results:
        prompt = f"{result.criterion}/{result.variant}"
        groups.setdefault((result.whole_judge, prompt, result.criterion_digest), []).append(result)
    return tuple(
        Labels(
            judge=judge,
            prompt=prompt,
            prompt_digest=prompt_digest,
            source=source,
            digest=digest,
            labels=tuple(map(_label, groups[judge, prompt, prompt_digest])),
            models_returned=tuple(
                sorted(
                    {
                        result.model
                        for result in groups[judge, prompt, prompt_digest]
                        if isinstance(result, Judgment) and result.model
                    }
                )
            ),
        )
        for judge, prompt, prompt_digest in sorted(
            groups, key=lambda key: (natural_key(key[0]), natural_key(key[1]), key)
        )
    )


def _label(result: Judgment | Failure) -> Label:
    if isinstance(result, Failure):
        return Label(result.turn_id, result.response_id, None, result.reason, None, result.sample)
    if result.unable:
        return Label(
            *(result.turn_id, result.response_id, None, "unable"),
            sample=result.sample,
            rationale=result.rationale,
            settled=was_settled(result),
        )
    return Label(
        turn_id=result.turn_id,
        response_id=result.response_id,
        grade=result.grade,
        expected=result.expected,
        sample=result.sample,
        probabilities=result.probabilities,
        rationale=result.rationale,
        settled=was_settled(result),
    )


def read_judgments(stored: bytes, name: str) -> tuple[Judgment, ...]:
    """The judgments in the bytes of a `judgments.jsonl`.

    Raises:
        InputError: Some lines are no judgments; every such line is listed.
    """
    return _read(stored, Judgment, name, "not_a_judgment")


def read_failures(stored: bytes, name: str) -> tuple[Failure, ...]:
    """The failures in the bytes of a `failures.jsonl`.

    Raises:
        InputError: Some lines are no failures; every such line is listed.
    """
    return _read(stored, Failure, name, "not_a_failure")


def read_results(judgments: Path, failures: Path) -> tuple[Judgment | Failure, ...]:
    """The judgments of one file, and the failures of another, which may be missing.

    Raises:
        InputError: A file cannot be read, or has problems; every bad line is listed.
    """
    graded = read_judgments(read_stored(judgments), str(judgments))
    return (*graded, *(read_failures(read_stored(failures), str(failures)) if failures.exists() else ()))


def _read(stored: bytes, kind: type[_Result], name: str, code: str) -> tuple[_Result, ...]:
    rows: list[_Result] = []
    problems: list[Problem] = []
    for number, row in decode_lines(stored, kind, name, code):
        if isinstance(row, Problem):
            problems.append(row)
        elif isinstance(row, Judgment) and row.expected is not None and abs(row.expected) > _LARGEST:
            message = f"{row.expected:g} is no mean of grades: expected {-_LARGEST:,} to {_LARGEST:,}"
            problems.append(Problem(code, "error", name, None, f"line {number}: $.expected", message))
        else:
            rows.append(row)
    if problems:
        raise InputError(f"{name}: {count(len(problems), 'line')} with problems ({code})", problems)
    return tuple(rows)
