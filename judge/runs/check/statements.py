"""The rules of the field on the PTKB statements that a response names. Pure."""

import re
from collections.abc import Sequence
from math import isfinite

from judge.runs.check.sheet import Owner, Sheet
from judge.runs.formats.shape import PtkbEntry
from judge.runs.records import Response, Turn
from judge.text.safe import shown

PTKB_ID = re.compile(r"[1-9][0-9]{0,8}")


def check_ptkb(sheet: Sheet, i: int, j: int, response: Response, turn: Turn | None) -> None:
    """Check the PTKB statements that a response names; with `turn`, against those of its topic."""
    rules, place = sheet.rules, sheet.places[i].responses[j]
    if rules.ptkb is None:
        return
    base = f"{place.path}.{place.names.ptkb}"
    # A simulated user may have told nothing yet.
    if not response.ptkb_provenance and not rules.own_turns:
        sheet.add((i, j), "no_ptkb", base, "no PTKB statement")
    if rules.ptkb == "texts":
        _check_texts(sheet, (i, j), base, response.ptkb_provenance)
    else:
        _check_numbers(sheet, (i, j), base, response.ptkb_provenance, place.statements, turn)


def _check_texts(sheet: Sheet, owner: Owner, base: str, statements: Sequence[str]) -> None:
    """Check statements given by their text; a statement from the conversation is allowed too."""
    seen: set[str] = set()
    for k, text in enumerate(statements):
        if not text.strip():
            sheet.add_entry(owner, base, "empty_ptkb", f"{base}[{k}]", "the statement is empty")
        elif text in seen:
            message = f"{shown(text)} is already in this list"
            sheet.add_entry(owner, base, "duplicate_ptkb", f"{base}[{k}]", message)
        seen.add(text)


def _check_numbers(
    sheet: Sheet, owner: Owner, base: str, ptkb_ids: Sequence[str], given: Sequence[PtkbEntry], turn: Turn | None
) -> None:
    """Check statements given by their number; a run of 2023 gives text and score too."""
    known = {statement.ptkb_id: statement.text for statement in turn.ptkb} if turn is not None else {}
    statements = given or ((None, None),) * len(ptkb_ids)
    id_field = ".id" if given else ""
    seen: set[str] = set()
    previous: float | None = None

    def add(code: str, path: str, message: str) -> None:
        sheet.add_entry(owner, base, code, path, message)

    for k, (ptkb_id, (text, score)) in enumerate(zip(ptkb_ids, statements, strict=True)):
        at = f"{base}[{k}]"
        if ptkb_id not in known and not PTKB_ID.fullmatch(ptkb_id):
            add("invalid_ptkb_id", at + id_field, f"{shown(ptkb_id)} is not a statement's number, from 1")
        elif ptkb_id in seen:
            add("duplicate_ptkb", at + id_field, f"statement {ptkb_id} is already in this list")
        elif turn is not None and ptkb_id not in known:
            add("unknown_ptkb_id", at + id_field, f"the topic's PTKB has no statement {ptkb_id}")
        if text is not None and not text.strip():
            add("empty_ptkb", f"{at}.text", "the statement is empty")
        elif text is not None and text != known.get(ptkb_id, text):
            message = f"{shown(text)}, but statement {shown(ptkb_id)} of the topic is {shown(known[ptkb_id])}"
            add("ptkb_text_differs", f"{at}.text", message)
        seen.add(ptkb_id)
        if score is None:
            if given:
                add("missing_ptkb_score", f"{at}.score", "no score, so the order of the list is all there is")
        elif not isfinite(score):
            add("score_not_finite", f"{at}.score", f"{score} is not a number to rank by")
        else:
            if previous is not None and score >= previous:
                add("ptkb_scores_not_decreasing", f"{at}.score", f"{score} after {previous}")
            previous = score
