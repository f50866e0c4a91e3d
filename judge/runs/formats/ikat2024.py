"""iKAT 2024: one JSON object with `eval_response`; PTKB provenance as integers; `only_response` runs have no scores."""

from judge.runs.document import Document
from judge.runs.formats.shape import (
    IKAT_PASSAGE_ID,
    ReadRun,
    Rules,
    looks_like_run,
    read_json_run,
)

FORMAT = "ikat2024"
RULES = Rules(
    run_id="$.run_name",
    turns="$.turns",
    run_type="$.run_type",
    run_types=("automatic", "manual", "only_response"),
    scoreless=("only_response",),
    passages="passage_provenance",
    flags_used=True,
    ptkb="numbers",
    passage_id=IKAT_PASSAGE_ID,
    year=2024,
)


def sniff(document: Document) -> bool:
    """Whether the document is a run in one JSON object; tried after the formats with a mark of their own."""
    return looks_like_run(document.value)


def read(document: Document) -> ReadRun:
    """The run in `document`; an absent `eval_response` means true."""
    return read_json_run(document, FORMAT, RULES, "eval_response")
