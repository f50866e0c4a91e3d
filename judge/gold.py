"""Gold grades: one JSON object a line, read strictly, and matched to the responses of a pool.

A gold row outlives the pool it was made in, because it names a response by turn, text and run. Response ids differ
between pools; texts do not, but the same text may rest on other passages in another run.
"""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from judge.errors import InputError
from judge.files import read_stored, unpack
from judge.pool import normalize
from judge.records import GoldRow, Pool, PooledResponse, Problem, Scale

Matched = dict[tuple[str, str], list[GoldRow]]
"""Gold rows by (response_id, criterion), in the order of the file."""

_SHOWN = 60
_DIGEST = re.compile(r"[0-9a-f]{64}")
_UNSTORABLE = re.compile(r"[\0\ud800-\udfff]")
_MADE = get_args(GoldRow.__annotations__["made"])
_SPLITS = ("dev", "test")


def read_gold(path: Path) -> tuple[GoldRow, ...]:
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
    rows: list[GoldRow] = []
    problems: list[Problem] = []
    first: dict[tuple[str | None, ...], int] = {}
    # Not splitlines: JSON strings may hold other line separators as they are.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        found, values = _row(line)
        if not found:
            row = GoldRow(**values)
            key = (row.turn_id, row.text_sha256 or row.response_id, row.run_id, row.criterion, row.assessor)
            if first.setdefault(key, number) == number:
                rows.append(row)
                continue
            message = f"the same response, criterion and assessor are already on line {first[key]}"
            found = [("duplicate_row", "$", message)]
        turn_id = values.get("turn_id")
        problems += [
            Problem(
                code,
                "error",
                name,
                turn_id if _is_name(turn_id) else None,
                f"line {number}: {where}",
                message,
            )
            for code, where, message in found
        ]
    if not rows and not problems:
        problems.append(Problem("empty_file", "error", name, None, "", "expected one gold row or more"))
    if problems:
        raise InputError(f"{name}: not usable as gold: {len(problems)} faults", problems)
    return tuple(rows)


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


def match(rows: Iterable[GoldRow], pool: Pool) -> tuple[Matched, tuple[GoldRow, ...]]:
    """The rows by pooled response and criterion, and the rows that belong to no response of the pool.

    A row with a text digest matches by turn, text and, if it names one, run; without a digest, by turn and response
    id. A row that fits several responses (the same text with other passages, and no run to tell them apart) matches
    none. Nor does a row whose text the pool holds only cut at the token limit: the grade was of the whole text.
    """
    by_id = {response.response_id: response for response in pool.responses}
    by_text: dict[tuple[str, str], list[PooledResponse]] = defaultdict(list)
    for response in pool.responses:
        digest = hashlib.sha256(normalize(response.text).encode()).hexdigest()
        by_text[response.turn_id, digest].append(response)
    matched: Matched = {}
    unmatched: list[GoldRow] = []
    for row in rows:
        found = _find(row, by_id, by_text)
        if found is None:
            unmatched.append(row)
        else:
            matched.setdefault((found.response_id, row.criterion), []).append(row)
    return matched, tuple(unmatched)


def _find(
    row: GoldRow,
    by_id: Mapping[str, PooledResponse],
    by_text: Mapping[tuple[str, str], list[PooledResponse]],
) -> PooledResponse | None:
    """The one response that a row is about."""
    if row.text_sha256 is None:
        named = by_id.get(row.response_id or "")
        return named if named and named.turn_id == row.turn_id else None
    same = by_text.get((row.turn_id, row.text_sha256), [])
    if row.run_id is not None:
        same = [response for response in same if any(entry.run_id == row.run_id for entry in response.runs)]
    return same[0] if len(same) == 1 else None


def _response_name(row: GoldRow) -> str:
    """A row's response, as a message names it."""
    named = f"text {row.text_sha256[:12]}" if row.text_sha256 else f"response {row.response_id}"
    return f"{named} of {row.run_id}" if row.run_id else named


class _RepeatedField(ValueError):
    """A JSON object has a field twice."""


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
        return [("wrong_type", "$", f"expected an object, found {_shown(values)}")], {}
    found = [
        ("unknown_field", "$", f"{_shown(field)} is no field of a gold row") for field in values if field not in _FIELDS
    ]
    for field, (fits, expected, required) in _FIELDS.items():
        value = values.get(field)
        if field not in values and required:
            found.append(("missing_field", f"$.{field}", f"missing: expected {expected}"))
        elif field in values and not fits(value) and not (value is None and field in _NULLABLE):
            found.append(("wrong_value", f"$.{field}", f"{_shown(value)}: expected {expected}"))
    if values.get("response_id") is None and values.get("text_sha256") is None:
        found.append(("missing_field", "$", "names no response: expected `text_sha256` or `response_id`"))
    return found, values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose fields are all different."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedField(_shown(next(name for name in names if names.count(name) > 1)))
    return values


def _shown(value: Any) -> str:
    """A value as a message may show it: short, on one line, printable."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} entries"
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_name(value: Any) -> bool:
    """A string that can be an id: not empty, and storable as UTF-8."""
    return type(value) is str and bool(value.strip()) and not _UNSTORABLE.search(value)


def _is_grade(value: Any) -> bool:
    # Not isinstance: true and false are integers to Python.
    return type(value) is int


def _is_digest(value: Any) -> bool:
    return type(value) is str and bool(_DIGEST.fullmatch(value))


def _is_probability(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 < value <= 1


_NAME = "a string that is not empty, without NUL and lone surrogates"
_Check = tuple[Callable[[Any], bool], str, bool]
"""Whether a value fits, what is expected, whether the field must be there."""
_FIELDS: Mapping[str, _Check] = {
    "turn_id": (_is_name, _NAME, True),
    "topic_id": (_is_name, _NAME, True),
    "criterion": (_is_name, _NAME, True),
    "grade": (_is_grade, "an integer", True),
    "assessor": (_is_name, _NAME, True),
    "response_id": (_is_name, _NAME, False),
    "text_sha256": (_is_digest, "64 lower-case hexadecimal digits", False),
    "run_id": (_is_name, _NAME, False),
    "made": (lambda value: value in _MADE, f"one of {', '.join(_MADE)}", False),
    "inclusion_probability": (_is_probability, "a number above 0 and at most 1", False),
    "stratum": (_is_name, _NAME, False),
    "split": (lambda value: value in _SPLITS, f"one of {', '.join(_SPLITS)}", False),
}
_NULLABLE = frozenset(_FIELDS) - {"turn_id", "topic_id", "criterion", "grade", "assessor", "made"}
