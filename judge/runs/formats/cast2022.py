"""CAsT 2022: one JSON object; `provenance` with texts and without `used`; no PTKB."""

import re

from judge.runs.document import Document
from judge.runs.formats.shape import (
    ReadRun,
    Rules,
    looks_like_run,
    read_json_run,
    responses_of,
    turn_id_like,
)

FORMAT = "cast2022"
RULES = Rules(
    run_id="$.run_name",
    turns="$.turns",
    run_type="$.run_type",
    run_types=("automatic", "manual"),
    passages="provenance",
    # Older WAPO documents have a UUID, so hyphens, in their name.
    passage_id=re.compile(r"(?:MARCO_[0-9]+_[0-9]+|KILT_[0-9]+|WAPO_[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)-[0-9]+"),
    # CAsT-ReGIn judged nothing below rank 3.
    max_rank=3,
    year=2022,
)
_TURN_ID = re.compile(r"[0-9]+_[0-9]+-[0-9]+")


def sniff(document: Document) -> bool:
    """The name of the first response's passages decides; without passages, turn ids such as `132_1-1`."""
    value = document.value
    if not looks_like_run(value):
        return False
    for response in responses_of(value):
        if "passage_provenance" in response:
            return False
        if "provenance" in response:
            return True
    return turn_id_like(value, _TURN_ID)


def read(document: Document) -> ReadRun:
    """The run in `document`."""
    return read_json_run(document, FORMAT, RULES)
