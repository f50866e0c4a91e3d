"""Grades of judges, read from files of any origin: our judgments and failures, qrels, four-column label files."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import msgspec

from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import each_result
from judge.errors import InputError
from judge.io.files import LineStream
from judge.io.ids import QrelRow, natural_key, parse_qrels
from judge.io.text import storable
from judge.judges.records import provider_name
from judge.records import Problem

_JudgeKey = tuple[str, str, str]
"""Judge, `criterion/variant` and SHA-256 of the prompt."""
JUDGMENTS, FAILURES = "judgments.jsonl", "failures.jsonl"
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
) -> tuple[Labels, ...]:
    """The labels of a file: a `judgments.jsonl` with the `failures.jsonl` beside it, or four columns.

    A file of columns holds one judge, named after the file, with some of `grades`, if they are given. `grades_only`
    leaves out rationales and label probabilities, which take most of the memory. `explained` are the turns whose
    rationales are kept, and those of first samples alone, which keep label probabilities too; None keeps all. An
    InputError if the file cannot be read or has lines with problems; every problem is listed.
    """
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
    labels = tuple(Label(row.turn_id, row.item_id, row.grade) for row in rows)
    return (Labels(name.rpartition(".")[0] or path.name, None, None, str(path), lines.digest, labels),)


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
    return InputError(f"{name}: not usable as labels", [Problem(code, "error", name, None, path, message)])


def labels_of(results: Iterable[Judgment | Failure], source: str, digest: str) -> tuple[Labels, ...]:
    """The labels in judgments and failures, grouped by judge and prompt, in natural order of both names.

    The two judges of a cascade are one judge, under the name of the cascade. `source` and `digest` are their file, as
    messages name it, and its SHA-256.
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
        labels, models = groups.setdefault((result.whole_judge, prompt, result.criterion_digest), ([], set()))
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
    ordered = sorted(groups, key=lambda key: (natural_key(key[0]), natural_key(key[1]), key))
    return tuple(Labels(*key, source, digest, tuple(groups[key][0]), tuple(sorted(groups[key][1]))) for key in ordered)


def _label(result: Judgment | Failure, turn_id: str, response_id: str) -> Label:
    if isinstance(result, Failure):
        return Label(turn_id, response_id, None, result.reason, sample=result.sample)
    grade, reason, expected = (None, "unable", None) if result.unable else (result.grade, None, result.expected)
    probabilities = None if result.unable else result.probabilities
    said = result.sample, probabilities, result.rationale, result.settled
    return Label(turn_id, response_id, grade, reason, expected, *said)
