"""Gold grades: one JSON object a line, read strictly, and matched to the responses of a pool.

A gold row outlives the pool it was made in, because it names a response by turn, text and run. Response ids differ
between pools; texts do not, but the same text may rest on other passages in another run.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field, StringConstraints, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from judge.errors import InputError
from judge.files.jsonl import jsonl_bytes
from judge.files.paths import StrPath
from judge.files.stored import read_stored, unpack
from judge.pool.build import normalize
from judge.pool.records import Pool, PooledResponse
from judge.records import Problem, Record, Scale
from judge.text.ids import natural_key, topic_of
from judge.text.safe import digest, shown


class GoldRow(Record, frozen=True):
    """One expert grade for one response."""

    turn_id: str
    topic_id: str
    criterion: str
    grade: int
    assessor: str
    response_id: str | None = None
    text_sha256: str | None = None
    """SHA-256 of the response text after NFC and outer trimming; the link where ids differ between pools."""
    run_id: str | None = None
    made: Literal["blind", "postedit", "construction", "synthetic"] = "blind"
    inclusion_probability: float | None = None
    stratum: str | None = None
    split: Literal["dev", "test"] | None = None
    distribution: dict[str, float] | None = None
    """Soft label: the probability of each grade, where the grade is a crowd's consensus."""


GoldByResponse = dict[tuple[str, str], list[GoldRow]]
"""Gold rows by (response_id, criterion), in the order of the file."""


def read_gold(path: StrPath) -> tuple[GoldRow, ...]:
    """The rows of a gold file (JSONL, gzipped or not), in file order.

    Raises:
        InputError: The file cannot be read, or rows are faulty; every fault is listed.
    """
    return parse_gold(unpack(read_stored(path), str(path)), str(path))


def parse_gold(content: bytes, name: str) -> tuple[GoldRow, ...]:
    """The rows in the bytes of a gold file; blank lines are passed over.

    Raises:
        InputError: There is no row, or rows are faulty; every fault is listed.
    """
    numbered, problems = scan_gold(content, name)
    if problems:
        raise InputError(f"{name}: not usable as gold: {len(problems)} faults", problems)
    return tuple(row for _, row in numbered)


def scan_gold(content: bytes, name: str) -> tuple[list[tuple[int, GoldRow]], list[Problem]]:
    """The sound rows of a gold file with their line numbers, and the faults of the others."""
    rows: list[tuple[int, GoldRow]] = []
    problems: list[Problem] = []
    first: dict[tuple[str | None, ...], int] = {}
    # Not splitlines: JSON strings may hold other line separators as they are.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        found, values = _row(line)
        if not found:
            row = GoldRow(**values)
            key = row_key(row)
            if first.setdefault(key, number) == number:
                rows.append((number, row))
                continue
            message = f"the same response, criterion and assessor are already on line {first[key]}"
            found = [("duplicate_row", "$", message)]
        faulty = {where for _, where, _ in found}
        turn_id = None if "$.turn_id" in faulty else values.get("turn_id")
        problems += [
            Problem(code, "error", name, turn_id, f"line {number}: {where}", message) for code, where, message in found
        ]
    if not rows and not problems:
        problems.append(Problem("empty_file", "error", name, None, "", "expected one gold row or more"))
    return rows, problems


def row_key(row: GoldRow) -> tuple[str | None, ...]:
    """What no two rows share: the response, its run, the criterion and the assessor."""
    return row.turn_id, row.text_sha256 or row.response_id, row.run_id, row.criterion, row.assessor


def row_order(row: GoldRow) -> tuple[object, ...]:
    """Sort key of rows: turn, response, run, criterion, assessor."""
    response = natural_key(row.response_id or ""), row.text_sha256 or ""
    return natural_key(row.turn_id), *response, natural_key(row.run_id or ""), row.criterion, natural_key(row.assessor)


def gold_jsonl(rows: Iterable[GoldRow]) -> bytes:
    """A gold file of the rows in their own order; fields that say nothing are left out."""
    kept = ({field: value for field, value in msgspec.structs.asdict(row).items() if value is not None} for row in rows)
    return jsonl_bytes(kept)


def text_digest(text: str) -> str:
    """The digest that names a text in gold: SHA-256 of its normal form."""
    return digest(normalize(text))


def check_scale(rows: Iterable[GoldRow], scale: Scale, name: str = "gold") -> tuple[Problem, ...]:
    """A problem for each row whose grade is none of the scale's levels.

    Args:
        rows: Rows of the criterion that the scale belongs to.
        scale: The levels allowed; "unable to judge" is no grade.
        name: The gold file's name, for messages.
    """
    grades = [level.grade for level in scale.levels]
    expected = f"expected one of {', '.join(map(str, grades))}"
    return tuple(
        Problem(
            "off_scale",
            "error",
            name,
            row.turn_id,
            "$.grade",
            f"{row.criterion} grade {row.grade} by {row.assessor} for {_response_name(row)}: {expected}",
        )
        for row in rows
        if row.grade not in grades
    )


def match(rows: Iterable[GoldRow], pool: Pool, name: str = "gold") -> tuple[GoldByResponse, tuple[GoldRow, ...]]:
    """The rows by pooled response and criterion, and the rows that belong to no response of the pool.

    A row with a text digest matches by turn, text and, if it names one, run; without a digest, by turn and response
    id. Where the same text stands with other passages and no run tells them apart, a response id decides that names
    one of them; without one the row matches none. Nor does a row whose text the pool holds only cut at the token
    limit: the grade was of the whole text.

    Where an assessor has several rows of one response under a criterion, such as one for each run that gave it, the
    first stands for all.

    Raises:
        InputError: Such rows have different grades; every one is listed, with the file's `name`.
    """
    find = finder(pool)
    matched: GoldByResponse = {}
    unmatched: list[GoldRow] = []
    problems: list[Problem] = []
    for row in rows:
        found = find(row)
        if found is None:
            unmatched.append(row)
            continue
        same = matched.setdefault((found.response_id, row.criterion), [])
        first = next((one for one in same if one.assessor == row.assessor), None)
        if first is None:
            same.append(row)
        elif row.grade != first.grade:
            message = (
                f"{row.criterion} grade {row.grade} by {row.assessor} for {_response_name(row)}, but {first.grade} "
                f"for {_response_name(first)}: expected one grade, both are response {found.response_id} of the pool"
            )
            problems.append(Problem("different_grades", "error", name, row.turn_id, "$.grade", message))
    if problems:
        raise InputError(f"{name}: different grades of one response", problems)
    return matched, tuple(unmatched)


def finder(pool: Pool) -> Callable[[GoldRow], PooledResponse | None]:
    """What finds the one response of the pool that a row is about."""
    by_id = {response.response_id: response for response in pool.responses}
    by_text: dict[tuple[str, str], list[PooledResponse]] = defaultdict(list)
    for response in pool.responses:
        by_text[response.turn_id, text_digest(response.text)].append(response)

    def find(row: GoldRow) -> PooledResponse | None:
        if row.text_sha256 is None:
            named = by_id.get(row.response_id or "")
            return named if named and named.turn_id == row.turn_id else None
        same = by_text.get((row.turn_id, row.text_sha256), [])
        if row.run_id is not None:
            same = [response for response in same if any(entry.run_id == row.run_id for entry in response.runs)]
        if len(same) > 1:
            # The same text with other passages: an id that names one of them was most likely given in this pool.
            same = [response for response in same if response.response_id == row.response_id]
        return same[0] if len(same) == 1 else None

    return find


def _response_name(row: GoldRow) -> str:
    """A row's response, as a message names it."""
    named = f"text {row.text_sha256[:12]}" if row.text_sha256 else f"response {row.response_id}"
    return f"{named} of {row.run_id}" if row.run_id else named


class _RepeatedField(ValueError):
    """A JSON object has a field twice."""


# Stripped only to be measured: the row keeps the value as it stands in the file.
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\x00]*$")]


_Share = Annotated[float, Field(ge=0, le=1)]
_ROUNDING = 1e-4
"""Probabilities are rounded where they are written."""


class _Fields(BaseModel, extra="forbid", strict=True):
    """The fields of a gold row as JSON may hold them."""

    turn_id: _Name
    topic_id: _Name
    criterion: _Name
    grade: int
    assessor: _Name
    response_id: _Name | None = None
    text_sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None
    run_id: _Name | None = None
    made: Literal["blind", "postedit", "construction", "synthetic"] = "blind"
    inclusion_probability: Annotated[float, Field(ge=1e-9, le=1)] | None = None
    stratum: _Name | None = None
    split: Literal["dev", "test"] | None = None
    distribution: dict[Annotated[str, StringConstraints(pattern="^-?[0-9]{1,9}$")], _Share] | None = None

    @field_validator("distribution")
    @classmethod
    def _sums_to_one(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is not None and abs(sum(value.values()) - 1) > _ROUNDING:
            raise PydanticCustomError("not_one", "expected probabilities that sum to 1")
        return value


def _row(line: bytes) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """(code, JSON path, message) of all that is wrong with one line, and the fields it has."""
    try:
        values = json.loads(line.decode("utf-8"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        return [("wrong_encoding", "$", f"byte {error.start + 1} is not UTF-8: {error.reason}")], {}
    except _RepeatedField as error:
        return [("repeated_field", "$", f"{error}: expected once")], {}
    except (ValueError, RecursionError) as error:
        return [("not_json", "$", f"not JSON: {str(error)[:200]}")], {}
    if type(values) is not dict:
        return [("wrong_type", "$", f"expected an object, found {shown(values)}")], {}
    return field_faults(values), values


def field_faults(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(code, JSON path, message) of all that keeps the fields from being a gold row."""
    found = []
    try:
        _Fields.model_validate(values)
    except ValidationError as invalid:
        for fault in invalid.errors():
            if not fault["loc"]:
                # The name of a field has a lone surrogate, so that pydantic cannot say where the fault is.
                found.append(("unknown_field", "$", f"{shown(fault['input'])} is no field of a gold row"))
                continue
            name = str(fault["loc"][0])
            expected = fault["msg"].replace("Input should be", "expected").replace("String should", "expected to")
            match fault["type"]:
                case "missing":
                    found.append(("missing_field", f"$.{name}", "missing"))
                case "extra_forbidden":
                    found.append(("unknown_field", "$", f"{shown(name)} is no field of a gold row"))
                case _:
                    found.append(("wrong_value", f"$.{name}", f"{shown(fault['input'])}: {expected}"))
    if values.get("response_id") is None and values.get("text_sha256") is None:
        found.append(("missing_field", "$", "names no response: expected `text_sha256` or `response_id`"))
    if not found and values["topic_id"] != (topic_id := topic_of(values["turn_id"])):
        found.append(("wrong_topic", "$.topic_id", f"{shown(values['topic_id'])}: expected {shown(topic_id)}"))
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose fields are all different."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedField(shown(next(name for name in names if names.count(name) > 1)))
    return values
