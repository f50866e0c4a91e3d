"""Formats of one JSON object with a list of turns: CAsT 2022, iKAT 2023 and iKAT 2024."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from judge.runs.document import Document
from judge.runs.formats.shape import IKAT_PASSAGE_ID, Format, Rules, read_json_run
from judge.runs.records import Provenance

_TREE_TURN = re.compile(r"[0-9]+_[0-9]+-[0-9]+")
_HYPHEN_TURN = re.compile(r"[0-9]+-[0-9]+_[0-9]+")
_Plain = int | float | str | bool | None
_RUN = dict[str, _Plain | list[dict[str, _Plain | list[dict[str, _Plain | list[Provenance | _Plain]]]]]]


def decode_run(content: bytes) -> Any:
    """The JSON value of a run with its passages as records; a ValueError if one of them is not well-formed."""
    run = msgspec.json.decode(content, type=_RUN)
    for name, member in (item for response in _responses(run) for item in response.items()):
        kinds = set(map(type, member)) if type(member) is list else ()
        if Provenance in kinds and (name != "passage_provenance" or len(kinds) > 1):
            raise ValueError(f"{name}: expected no objects, or passages only")
    return run


def _objects(value: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The objects in a list of a run that was not checked yet."""
    values = value.get(name)
    return (each for each in values if type(each) is dict) if type(values) is list else iter(())


def _responses(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (response for turn in _objects(value, "turns") for response in _objects(turn, "responses"))


def _first_turn_is(value: dict[str, Any], pattern: re.Pattern[str]) -> bool:
    ids = (turn["turn_id"] for turn in _objects(value, "turns") if type(turn.get("turn_id")) is str)
    return pattern.fullmatch(next(ids, "")) is not None


def _is_cast2022(value: dict[str, Any]) -> bool:
    """The name of the first response's passages decides; without passages, turn ids such as `132_1-1`."""
    for response in _responses(value):
        if "passage_provenance" in response:
            return False
        if "provenance" in response:
            return True
    return _first_turn_is(value, _TREE_TURN)


def _is_ikat2023(value: dict[str, Any]) -> bool:
    """The first PTKB entry decides; without any, turn ids such as `9-1_1` in a run without a mark of 2024.

    A run that both years accept is taken as 2024.
    """
    for response in _responses(value):
        ptkb = response.get("ptkb_provenance")
        if type(ptkb) is list and ptkb:
            return type(ptkb[0]) is dict
    later = "eval_response" in value or value.get("run_type") == "only_response"
    return not later and _first_turn_is(value, _HYPHEN_TURN)


def _format(name: str, about: str, is_one: Callable[[dict[str, Any]], bool], *known: str, **different: Any) -> Format:
    """A format that recognizes a run by `is_one`; `known` are the members of a run beside those of every year."""
    rules = Rules(run_id="$.run_name", turns="$.turns", run_type="$.run_type", **different)

    def sniff(document: Document) -> bool:
        # Every run but a JSON Lines run is an object with one of these.
        value = document.value
        return type(value) is dict and ("turns" in value or "run_name" in value) and is_one(value)

    return Format(about, rules, sniff, partial(read_json_run, format=name, rules=rules, known=known))


_IKAT: dict[str, Any] = {"passages": "passage_provenance", "flags_used": True, "passage_id": IKAT_PASSAGE_ID}

CAST2022 = _format(
    "cast2022",
    "CAsT 2022: one JSON object; `provenance` with texts and without `used`; no PTKB.",
    _is_cast2022,
    run_types=("automatic", "manual"),
    passages="provenance",
    # Older WAPO documents have a UUID, so hyphens, in their name.
    passage_id=re.compile(r"(?:MARCO_[0-9]+_[0-9]+|KILT_[0-9]+|WAPO_[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)-[0-9]+"),
    # CAsT-ReGIn judged nothing below rank 3.
    max_rank=3,
    year=2022,
)
IKAT2023 = _format(
    "ikat2023",
    "iKAT 2023: one JSON object; PTKB provenance as objects with id, text and score.",
    _is_ikat2023,
    run_types=("automatic", "manual"),
    ptkb="objects",
    year=2023,
    **_IKAT,
)
IKAT2024 = _format(
    "ikat2024",
    "iKAT 2024: one JSON object with `eval_response`; PTKB provenance as integers; `only_response` runs have no "
    "scores.",
    # Tried after the formats with a mark of their own.
    lambda value: True,
    "eval_response",
    run_types=("automatic", "manual", "only_response"),
    scoreless=("only_response",),
    ptkb="numbers",
    year=2024,
    **_IKAT,
)
