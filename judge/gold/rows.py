"""Gold grades: one JSON object a line, read strictly, and matched to the responses of a pool.

A gold row stays valid when the pool is made again, because it names a response by turn, text and run. Response ids
differ between pools and texts do not. The run is needed because one text may rest on different passages in two runs.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, ValidationError, create_model
from pydantic_core import PydanticCustomError

from judge.errors import refuse
from judge.io.files import StrPath, jsonl_bytes, numbered, read_content, too_many
from judge.io.ids import column, groups_of, natural_key, own_turn_id, topic_of
from judge.io.text import count, digest, shown
from judge.pool.build import normalize
from judge.pool.pairs import other_orders
from judge.pool.records import Pool, PooledResponse, passage_id_of
from judge.records import JudgedUnit, Problem, Record, Scale, file_problem
from judge.stats.means import consensus
from judge.units import UNITS

# Stripped only for the length check: the row keeps the value as the file gives it.
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\x00]*$")]
_Grade = Annotated[str, StringConstraints(pattern="^-?[0-9]{1,9}$")]
_QRELS = re.compile(rb"(\xef\xbb\xbf)?[\w.-]+[ \t]+[0Q]0?[ \t]+\S+[ \t]+-?[0-9]+[ \t]*\r?(\n|$)")
"""The first line of qrels."""
_TABLE = re.compile(rb'(\xef\xbb\xbf)?("[^"\r\n]*"|[^\W_][\w .:-]*)[,;\t]')
"""The head of a table."""
_ROUNDING = 1e-4
"""How far a sum of probabilities may be from 1: files hold them rounded."""
ADJUDICATED = "adjudicated"
"""How a grade was made that a third person gave because assessors differ; it is the grade of its item."""
BLIND = ("blind", ADJUDICATED)
"""How grades are made by people who see no grade of a judge."""
BY_GRADE = "grade "
"""How a stratum begins whose responses were drawn one by one, by the judge's grade, and not by turns."""


class GoldRow(Record, frozen=True, gc=False):
    """One grade by one assessor for one response; docs/reference/files.toml explains the fields."""

    turn_id: _Name
    topic_id: _Name
    criterion: _Name
    grade: int
    assessor: _Name
    response_id: _Name | None = None
    text_sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the response text in NFC without outer white space; it names the response in any pool."""
    run_id: _Name | None = None
    made: Literal["blind", "adjudicated", "postedit", "construction", "synthetic"] = "blind"
    inclusion_probability: Annotated[float, Field(ge=1e-9, le=1)] | None = None
    stratum: _Name | None = None
    split: Literal["dev", "test"] | None = None
    distribution: (
        Annotated[dict[_Grade, Annotated[float, Field(ge=0, le=1)]], AfterValidator(lambda of: _sums_to_one(of))] | None
    ) = None
    """Soft label: grade to probability, where the grade is a crowd's consensus."""
    comment: _Name | None = None
    """What the assessor wrote about it."""


_DECLARED: dict[str, Any] = {
    field.name: (GoldRow.__annotations__[field.name], ... if field.required else field.default)
    for field in msgspec.structs.fields(GoldRow)
}
_FIELDS = create_model("_FIELDS", __config__=ConfigDict(extra="forbid", strict=True), **_DECLARED)
"""The fields of a gold row as JSON may hold them."""

GoldByResponse = dict[tuple[str, str], list[GoldRow]]
"""Gold rows by (response_id, criterion), in the order of the file."""


def read_gold(path: StrPath) -> tuple[GoldRow, ...]:
    """The rows of a gold file (JSONL, gzipped or not), in file order; an InputError lists every problem."""
    return parse_gold(read_content(path), str(path))


def parse_gold(content: bytes, name: str) -> tuple[GoldRow, ...]:
    """Read the rows in the bytes of a gold file; blank lines are skipped.

    An InputError if there is no row, or rows have problems; every problem is listed.
    """
    numbered, problems = scan_gold(content, name)
    refuse(problems, f"{name}: not usable as gold: {count(len(problems), 'problem')}")
    return tuple(row for _, row in numbered)


def scan_gold(content: bytes, name: str) -> tuple[list[tuple[int, GoldRow]], list[Problem]]:
    """The valid rows of a gold file with their line numbers, and the problems of the others."""
    rows: list[tuple[int, GoldRow]] = []
    problems: list[Problem] = []
    first: dict[tuple[str | None, ...], int] = {}
    if _QRELS.match(content):
        message = "TREC qrels, not gold: `judge gold import qrels` makes gold of them"
        return [], [file_problem("not_json", name, message, "line 1")]
    if _TABLE.match(content):
        message = "a table, not gold: `judge gold import csv` makes gold of grades, `judge gold import crowd` of labels"
        return [], [file_problem("not_json", name, message, "line 1")]
    for number, line in numbered(content.removeprefix(b"\xef\xbb\xbf"), name):
        if not line.strip():
            continue
        if too_many(problems, name, number):
            break
        row_problems, values = _row(line)
        if not row_problems:
            row = GoldRow(**values)
            key = row_key(row)
            if first.setdefault(key, number) == number:
                rows.append((number, row))
                continue
            message = f"the same response, criterion and assessor are already on line {first[key]}"
            row_problems = [("duplicate_row", "$", message)]
        wrong_fields = {where for _, where, _ in row_problems}
        turn_id = None if "$.turn_id" in wrong_fields else values.get("turn_id")
        problems += [
            file_problem(code, name, message, f"line {number}: {where}", turn_id=turn_id)
            for code, where, message in row_problems
        ]
    if not rows and not problems:
        problems.append(file_problem("empty_file", name, "expected one gold row or more"))
    return rows, problems


def row_key(row: GoldRow) -> tuple[str | None, ...]:
    """The key that no two rows share: turn, response, run, criterion and assessor."""
    return row.turn_id, row.text_sha256 or row.response_id, row.run_id, row.criterion, row.assessor


def row_order(row: GoldRow) -> tuple[object, ...]:
    """The sort key of a row: turn, response, run, criterion, assessor."""
    response = natural_key(row.response_id or ""), row.text_sha256 or ""
    return natural_key(row.turn_id), *response, natural_key(row.run_id or ""), row.criterion, natural_key(row.assessor)


def deciding(rows: Sequence[GoldRow]) -> Sequence[GoldRow]:
    """The rows of an item that make its grade: the adjudications, or where there is none, what the assessors gave."""
    return [row for row in rows if row.made == ADJUDICATED] or rows


def independent(rows: Sequence[GoldRow]) -> Sequence[GoldRow]:
    """The rows of an item that say how far people agree: an adjudication follows from the others."""
    return [row for row in rows if row.made != ADJUDICATED] or rows


def gold_jsonl(rows: Iterable[GoldRow]) -> bytes:
    """The bytes of a gold file with the rows in the given order; fields that are None are left out."""
    kept = ({field: value for field, value in msgspec.structs.asdict(row).items() if value is not None} for row in rows)
    return jsonl_bytes(kept)


def text_digest(text: str) -> str:
    """The digest that names a text in gold: SHA-256 of the text in NFC without outer white space."""
    return digest(normalize(text))


def response_digest(response: PooledResponse) -> str:
    """The digest that names a pooled response in gold: that of its text, of sentence and passage, or of both texts.

    A citation has the id of its passage in a line of its own, so that its name holds in any pool of the runs.
    """
    return DIGESTS[response.unit](response)


def citation_digest(sentence: str, passage_id: str) -> str:
    """The digest that names a citation in gold."""
    return digest(f"{normalize(sentence)}\n{passage_id}")


def pair_digest(first: str, second: str) -> str:
    """The digest that names two responses, one shown first, in gold."""
    return citation_digest(first, text_digest(second))


DIGESTS: Mapping[JudgedUnit, Callable[[PooledResponse], str]] = {
    "response": lambda response: text_digest(response.text),
    "dialogue": lambda response: text_digest(response.text),
    "citation": lambda response: citation_digest(response.text, passage_id_of(response.passages[0])),
    "pair": lambda response: pair_digest(response.text, response.second),
    "passage": lambda response: citation_digest("", passage_id_of(response.passages[0])),
}
"""The digest that names a pooled response in gold, by its unit."""


def check_scale(rows: Iterable[GoldRow], scale: Scale, name: str = "gold") -> tuple[Problem, ...]:
    """List a problem for each row whose grade is not on its criterion's scale, which has no "unable to judge"."""
    grades = [level.grade for level in scale.levels]
    problems = []
    for row in rows:
        if row.grade not in grades:
            grade = f"{row.criterion} grade {row.grade} by {row.assessor} for {_response_name(row)}"
            message = f"{grade}: expected one of {', '.join(map(str, grades))}"
            problems.append(file_problem("off_scale", name, message, "$.grade", turn_id=row.turn_id))
    return tuple(problems)


def match(rows: Iterable[GoldRow], pool: Pool, name: str = "gold") -> tuple[GoldByResponse, tuple[GoldRow, ...]]:
    """The gold rows by pooled response and criterion, and those that match no response of the pool.

    A row with a text digest matches by turn, text and, if it names one, run. A row without a digest matches by turn and
    response id. If several responses of a turn have the text, the response id decides; a row without it matches none.
    A row does not match a text that was cut at the token limit, because the grade is of the whole text.

    An assessor may have several rows for one response and criterion, such as one for each run. The first is kept. An
    InputError if an assessor's rows for one response have different grades; every such row is listed.
    """
    find = finder(pool)
    matched: GoldByResponse = {}
    unmatched: list[GoldRow] = []
    problems: list[Problem] = []
    for row in rows:
        response = find(row)
        if response is None:
            unmatched.append(row)
            continue
        same = matched.setdefault((response.response_id, row.criterion), [])
        first = next((earlier for earlier in same if earlier.assessor == row.assessor), None)
        if first is None:
            same.append(row)
        elif row.grade != first.grade:
            message = (
                f"{row.criterion} grade {row.grade} by {row.assessor} for {_response_name(row)}, but {first.grade} "
                f"for {_response_name(first)}: expected one grade, both are response "
                f"{response.response_id} of the pool"
            )
            problems.append(file_problem("different_grades", name, message, "$.grade", turn_id=row.turn_id))
    refuse(problems, f"{name}: different grades of one response")
    return matched, tuple(unmatched)


def one_order(rows: Sequence[GoldRow], pool: Pool, ends: Mapping[str, Sequence[int]]) -> tuple[GoldRow, ...]:
    """The rows; of a pool of pairs those of one pair all in the order of its first row, with grades turned around.

    Grades that one assessor gave in both orders become one, their mean, halves to the middle. `ends`: criterion to its
    lowest and highest grade; rows of other criteria, off the scale or without a pair stay as they are.
    """
    others = other_orders(pool)
    find = finder(pool)
    shown_as = dict[str, PooledResponse]()
    own = dict[tuple[str, ...], tuple[int, str]]()
    ordered: list[GoldRow] = []
    for row in rows if others else ():
        pair = find(row)
        low, high = ends.get(row.criterion, (0, -1))
        if pair and low <= row.grade <= high:
            name = min(pair.response_id, others[pair.response_id].response_id)
            first = shown_as.setdefault(name, pair)
            place, order = own.setdefault((name, row.criterion, row.assessor), (len(ordered), pair.response_id))
            if first is not pair:
                shares = row.distribution and {str(low + high - int(g)): p for g, p in row.distribution.items()}
                row = replace(
                    row,
                    response_id=first.response_id,
                    text_sha256=response_digest(first),
                    grade=low + high - row.grade,
                    distribution=shares,
                )
            if order != pair.response_id:
                earlier = ordered[place]
                if row.grade != earlier.grade:
                    grade = consensus([row.grade, earlier.grade], (low + high) / 2)
                    ordered[place] = replace(earlier, grade=grade, distribution=None)
                if row.inclusion_probability != earlier.inclusion_probability:
                    ordered[place] = replace(ordered[place], inclusion_probability=None)
                continue
        ordered.append(row)
    return tuple(ordered if others else rows)


def finder(pool: Pool) -> Callable[[GoldRow], PooledResponse | None]:
    """A function that finds the one response of the pool that a row is about, or None."""
    by_id = {response.response_id: response for response in pool.responses}
    by_item: dict[tuple[str, str], PooledResponse] = {}
    if UNITS[pool.unit].listed:
        by_item = {(response.turn_id, column(response.listed_as)): response for response in pool.responses}
    by_text = groups_of(((response.turn_id, response_digest(response)), response) for response in pool.responses)

    def find(row: GoldRow) -> PooledResponse | None:
        if row.text_sha256 is None:
            # Qrels name a passage by its own id, and older ones a turn in another spelling.
            if listed := by_item.get((own_turn_id(row.turn_id), row.response_id or "")):
                return listed
            named = by_id.get(row.response_id or "")
            return named if named and named.turn_id == row.turn_id else None
        same = by_text.get((row.turn_id, row.text_sha256), [])
        if row.run_id is not None:
            same = [response for response in same if any(entry.run_id == row.run_id for entry in response.runs)]
        if len(same) > 1:
            # The responses differ in their passages. An id that names one of them most likely comes from this pool.
            same = [response for response in same if response.response_id == row.response_id]
        return same[0] if len(same) == 1 else None

    return find


def _response_name(row: GoldRow) -> str:
    named = f"text {row.text_sha256[:12]}" if row.text_sha256 else f"response {row.response_id}"
    return f"{named} of {row.run_id}" if row.run_id else named


class _RepeatedField(ValueError):
    """A JSON object has a field twice."""


def _sums_to_one(shares: dict[str, float]) -> dict[str, float]:
    if abs(sum(shares.values()) - 1) > _ROUNDING:
        raise PydanticCustomError("not_one", "expected probabilities that sum to 1")
    return shares


def _row(line: bytes) -> tuple[list[tuple[str, str, str]], dict[str, Any]]:
    """(code, JSON path, message) of each problem of a line, and the fields of the line."""
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
    return field_problems(values), values


def field_problems(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(code, JSON path, message) of each problem that keeps the fields from being a gold row."""
    problems = []
    try:
        _FIELDS.model_validate(values)
    except ValidationError as invalid:
        for error in invalid.errors():
            if not error["loc"]:
                # The field's name has a lone surrogate, so pydantic cannot give its place.
                problems.append(("unknown_field", "$", f"{shown(error['input'])} is no field of a gold row"))
                continue
            name = str(error["loc"][0])
            expected = error["msg"].replace("Input should be", "expected").replace("String should", "expected to")
            match error["type"]:
                case "missing":
                    problems.append(("missing_field", f"$.{name}", "missing"))
                case "extra_forbidden":
                    problems.append(("unknown_field", "$", f"{shown(name)} is no field of a gold row"))
                case _:
                    problems.append(("wrong_value", f"$.{name}", f"{shown(error['input'])}: {expected}"))
    if values.get("response_id") is None and values.get("text_sha256") is None:
        problems.append(("missing_field", "$", "names no response: expected `text_sha256` or `response_id`"))
    if not problems and values["topic_id"] != (topic_id := topic_of(values["turn_id"])):
        problems.append(("wrong_topic", "$.topic_id", f"{shown(values['topic_id'])}: expected {shown(topic_id)}"))
    return problems


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused if a field is repeated."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedField(shown(next(name for name in names if names.count(name) > 1)))
    return values
