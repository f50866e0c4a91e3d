"""What judges said, from files of any origin: our own judgments and failures, qrels, four-column label files."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from judge.ask.records import Failure, Judgment
from judge.errors import InputError
from judge.files.jsonl import decode_lines
from judge.files.stored import read_stored, sha256, unpack
from judge.files.trec import QrelRow, parse_qrels
from judge.records import Problem
from judge.text.ids import natural_key
from judge.text.safe import storable

_Result = TypeVar("_Result", Judgment, Failure)

JURY = "jury/"
"""What the names of juries begin with."""


def is_jury(judge: str) -> bool:
    """Whether a judge is a jury: its prompt digest is of the members with their prompts, not of a file."""
    return judge.startswith(JURY)


class Label(msgspec.Struct, frozen=True, gc=False):
    """One judge on one item: a grade, or why there is none."""

    turn_id: str
    response_id: str
    grade: int | None
    reason: str | None = None
    """`unable`, or a failure's reason; None beside a grade."""
    expected: float | None = None
    """The mean grade under the label probabilities."""
    sample: int = 0


class Labels(msgspec.Struct, frozen=True):
    """All that one judge said under one prompt."""

    judge: str
    prompt: str | None
    """`criterion/variant`; None where a file does not say."""
    prompt_digest: str | None
    source: str
    """The file, for messages."""
    digest: str
    """SHA-256 of the file as stored."""
    labels: tuple[Label, ...]
    models_returned: tuple[str, ...] = ()


def read_labels(path: Path, grades: Collection[int] | None = None) -> tuple[Labels, ...]:
    """The labels of a file: a `judgments.jsonl` with the `failures.jsonl` beside it, or four columns.

    Args:
        path: The file, gzipped or not. A file of columns is one judge, named after the file.
        grades: The scale of a file of columns, if a grade outside it is an error.

    Raises:
        InputError: The file cannot be read or has faulty lines; every one is listed.
    """
    stored = read_stored(path)
    content = unpack(stored, str(path))
    # By its name too: where every judgment failed, the file is empty.
    if path.name == "judgments.jsonl" or content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        failures: tuple[Failure, ...] = ()
        beside = path.with_name("failures.jsonl")
        if path.name == "judgments.jsonl" and beside.exists():
            failures = read_failures(read_stored(beside), str(beside))
        results: list[Judgment | Failure] = [*read_judgments(content, str(path)), *failures]
        return labels_of(results, str(path), sha256(stored))
    rows = parse_columns(content, str(path), grades)
    return (_labels(path, sha256(stored), rows),)


def parse_columns(content: bytes, name: str, grades: Collection[int] | None = None) -> tuple[QrelRow, ...]:
    """The rows of a qrels or label file in bytes.

    Raises:
        InputError: It is not UTF-8, is empty, or has faulty lines.
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
    """Judgments and failures by judge and prompt, in natural order of both names."""
    groups: dict[tuple[str, str, str], list[Judgment | Failure]] = {}
    for one in results:
        groups.setdefault((one.judge, f"{one.criterion}/{one.variant}", one.criterion_digest), []).append(one)
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
                        one.model
                        for one in groups[judge, prompt, prompt_digest]
                        if isinstance(one, Judgment) and one.model
                    }
                )
            ),
        )
        for judge, prompt, prompt_digest in sorted(
            groups, key=lambda key: (natural_key(key[0]), natural_key(key[1]), key)
        )
    )


def _label(one: Judgment | Failure) -> Label:
    if isinstance(one, Failure):
        return Label(one.turn_id, one.response_id, None, one.reason, None, one.sample)
    if one.unable:
        return Label(one.turn_id, one.response_id, None, "unable", None, one.sample)
    return Label(one.turn_id, one.response_id, one.grade, None, one.expected, one.sample)


def read_judgments(stored: bytes, name: str) -> tuple[Judgment, ...]:
    """The judgments in the bytes of a `judgments.jsonl`.

    Raises:
        InputError: Lines that are no judgments; every one is listed.
    """
    return _read(stored, Judgment, name, "not_a_judgment")


def read_failures(stored: bytes, name: str) -> tuple[Failure, ...]:
    """The failures in the bytes of a `failures.jsonl`.

    Raises:
        InputError: Lines that are no failures; every one is listed.
    """
    return _read(stored, Failure, name, "not_a_failure")


def _read(stored: bytes, kind: type[_Result], name: str, code: str) -> tuple[_Result, ...]:
    rows: list[_Result] = []
    problems: list[Problem] = []
    for _, row in decode_lines(stored, kind, name, code):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append(row)
    if problems:
        raise InputError(f"{name}: {len(problems)} faulty lines ({code})", problems)
    return tuple(rows)
