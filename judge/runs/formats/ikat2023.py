"""iKAT 2023: one JSON object; PTKB provenance as objects with id, text and score."""

import re

from judge.runs.document import Document
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    Rules,
    looks_like_run,
    read_json_run,
    responses_of,
    turn_id_like,
)

FORMAT = "ikat2023"
RULES = Rules(
    run_id="$.run_name",
    turns="$.turns",
    run_type="$.run_type",
    run_types=("automatic", "manual"),
    passages="passage_provenance",
    flags_used=True,
    ptkb="objects",
    passage_id=IKAT_PASSAGE_ID,
    year=2023,
)
_TURN_ID = re.compile(r"[0-9]+-[0-9]+_[0-9]+")


def sniff(document: Document) -> bool:
    """The first PTKB entry decides; without any, turn ids such as `9-1_1` in a run without a mark of 2024.

    A run that both years accept is taken as 2024.
    """
    value = document.value
    if not looks_like_run(value):
        return False
    for response in responses_of(value):
        ptkb = response.get("ptkb_provenance")
        if type(ptkb) is list and ptkb:
            return type(ptkb[0]) is dict
    later = "eval_response" in value or value.get("run_type") == "only_response"
    return not later and turn_id_like(value, _TURN_ID)


def read(document: Document) -> ReadRun:
    """The run in `document`."""
    return read_json_run(document, FORMAT, RULES)
