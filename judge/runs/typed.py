"""The quick decoder of runs: the entries of their passage lists become records at once.

A run of full size has 300,000 entries, and a struct costs a fraction of a dictionary in time and memory. All other
values are decoded as usual, so that the readers see every problem; a problem in an entry leaves the file to the slow
decoder.
"""

import re
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from judge.runs.records import Provenance


class _Entry(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    id: str
    score: float | None = None
    text: str | None = None


class _Response(msgspec.Struct, forbid_unknown_fields=True):
    rank: Any = UNSET
    text: Any = UNSET
    ptkb_provenance: Any = UNSET


class _Plain(_Response, forbid_unknown_fields=True):
    provenance: list[_Entry] | UnsetType | None = UNSET


class _Flagged(_Response, forbid_unknown_fields=True):
    passage_provenance: list[Provenance] | UnsetType | None = UNSET


_Form = TypeVar("_Form", bound=_Response)


class _Turn(msgspec.Struct, Generic[_Form], forbid_unknown_fields=True):
    turn_id: Any = UNSET
    responses: list[_Form] | UnsetType = UNSET


class _Run(msgspec.Struct, Generic[_Form], forbid_unknown_fields=True):
    turns: list[_Turn[_Form]]
    run_name: Any = UNSET
    run_type: Any = UNSET
    eval_response: Any = UNSET


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    metadata: Any = UNSET
    turn_id: Any = UNSET
    responses: Any = UNSET
    references: dict[str, float] | UnsetType = UNSET


_NUL = re.compile(rb"\\u0000")
_PLAIN = msgspec.json.Decoder(_Run[_Plain])
_FLAGGED = msgspec.json.Decoder(_Run[_Flagged])
_LINE = msgspec.json.Decoder(_Line)


def decode_typed(content: bytes, *, flagged: bool = True) -> dict[str, Any] | None:
    """The JSON value in `content` with the entries of its passage lists as records; None if the quick decoder fails.

    After None the file is decoded as plain JSON. So is a file with a NUL, which ids must not have. `flagged`: whether
    the run's format may flag passages as used.
    """
    if b"\\" in content and _NUL.search(content):
        return None
    # Unknown fields are reported in the order of the file, which a struct does not keep; but each of these structs has
    # at most one field that is unknown to a format.
    for decoder in (_FLAGGED, _PLAIN) if flagged else (_PLAIN,):
        try:
            return _value(decoder.decode(content))
        except (ValueError, RecursionError):
            continue
    return None


def decode_line(content: bytes) -> dict[str, Any] | None:
    """The JSON value in one line of a run, with the references' scores as float; None if the quick decoder fails."""
    try:
        return _members(_LINE.decode(content))
    except (ValueError, RecursionError):
        return None


def _value(run: _Run[Any]) -> dict[str, Any]:
    turns = []
    for turn in run.turns:
        value = _members(turn)
        if turn.responses is not UNSET:
            value["responses"] = [_response(response) for response in turn.responses]
        turns.append(value)
    return _members(run) | {"turns": turns}


def _response(response: _Response) -> dict[str, Any]:
    value = _members(response)
    if isinstance(response, _Plain) and response.provenance:
        value["provenance"] = [Provenance(entry.id, entry.score, None, entry.text) for entry in response.provenance]
        # Entries are freed as soon as their records are made, so that the next records reuse their memory.
        response.provenance = None
    return value


def _members(struct: msgspec.Struct) -> dict[str, Any]:
    values = ((name, getattr(struct, name)) for name in struct.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}
