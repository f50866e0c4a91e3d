"""Fixes of what a response names: its passages and its PTKB statements. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from judge.runs.check.entries import PTKB_ID
from judge.runs.fields import Fields
from judge.runs.fix.log import FixLog, is_score, rises, scores_of
from judge.runs.formats.shape import Rules
from judge.runs.ranking import used_provenance
from judge.runs.records import Provenance, Response

_DIGITS = re.compile(r"[0-9]{1,9}")


def fix_passages(log: FixLog, rules: Rules, format: str, entries: Any, path: str) -> None:
    """Order a response's passages by score, keep each passage once, and flag the passages that count as used."""
    if type(entries) is not list or not all(type(entry) is dict for entry in entries):
        return
    for k, entry in enumerate(entries):
        log.coerce(entry, "score", f"{path}[{k}]", Fields.number)
    kept = _distinct_passages(log, _by_score(log, list(enumerate(entries)), path), path)
    if len(kept) < len(entries):
        # A repetition without a score may have kept the others from being ordered.
        kept = _by_score(log, kept, path)
    if rules.flags_used:
        _flag(log, format, kept, path)
    if kept != list(enumerate(entries)):
        entries[:] = [entry for _, entry in kept]


def _by_score(log: FixLog, entries: list[tuple[int, dict[str, Any]]], path: str) -> list[tuple[int, dict[str, Any]]]:
    """The entries by falling score, where all scores are numbers."""
    scores = scores_of([entry.get("score") for _, entry in entries])
    if not (scores and rises(scores)):
        return entries
    order = sorted(range(len(entries)), key=lambda k: -scores[k])
    log.moved("scores_not_decreasing", path, [entry.get("id") for _, entry in entries], order)
    return [entries[k] for k in order]


def _distinct_passages(log: FixLog, entries: list[tuple[int, dict[str, Any]]], path: str) -> list[tuple[int, Any]]:
    """The entries without repetitions: the first of equal ids is kept, and is flagged as used if any of them is."""
    first: dict[str, tuple[int, dict[str, Any]]] = {}
    kept: list[tuple[int, Any]] = []
    for k, entry in entries:
        passage_id = entry.get("id")
        if type(passage_id) is not str or not passage_id:
            kept.append((k, entry))
            continue
        at, original = first.setdefault(passage_id, (k, entry))
        if original is entry or not _repeats(entry, original, ("score", "used")):
            kept.append((k, entry))
            continue
        log.note("duplicate_passage", f"{path}[{k}]", dict(entry), None)
        if entry.get("used") is True and original.get("used") is not True:
            log.note("duplicate_passage", f"{path}[{at}].used", original.get("used"), True)
            original["used"] = True
    return kept


def _flag(log: FixLog, format: str, entries: list[tuple[int, dict[str, Any]]], path: str) -> None:
    """Flag every unflagged passage by whether it counts as used."""
    flags = [entry.get("used") for _, entry in entries]
    if not all(flag is None or type(flag) is bool for flag in flags):
        return
    code = "missing_used"
    if True not in flags:
        if not all(type(entry.get("id")) is str and is_score(entry.get("score")) for _, entry in entries):
            return
        code = "no_used_passage"
        provenance = tuple(Provenance(entry["id"], entry.get("score"), None, None) for _, entry in entries)
        used, _ = used_provenance(Response(1, "", provenance), format)
        for (k, entry), passage in zip(entries, provenance, strict=True):
            if any(passage is chosen for chosen in used):
                log.note(code, f"{path}[{k}].used", entry.get("used"), True)
                entry["used"] = True
    without = [entry for _, entry in entries if entry.get("used") is None]
    for entry in without:
        entry["used"] = False
    if without:
        # They share one line of the log: a list may have a thousand of them.
        log.note(code, f"{path}[*].used", None, False)


def fix_ptkb(log: FixLog, rules: Rules, entries: Any, path: str) -> None:
    """Write statement numbers as numbers and keep each statement once."""
    if type(entries) is not list:
        return
    first: dict[str, Any] = {}
    kept = []
    for k, written in enumerate(entries):
        entry = _ptkb_entry(log, rules, written, f"{path}[{k}]")
        key = _ptkb_key(rules, entry)
        if key in first and (type(entry) is not dict or _repeats(entry, first[key], ("score",))):
            log.note("duplicate_ptkb", f"{path}[{k}]", entry, None)
            continue
        kept.append(entry)
        if key:
            first.setdefault(key, entry)
    entries[:] = kept


def _ptkb_entry(log: FixLog, rules: Rules, entry: Any, path: str) -> Any:
    """An entry with its number or score as a number."""
    if rules.ptkb == "objects" and type(entry) is dict:
        log.coerce(entry, "score", path, Fields.number)
    elif rules.ptkb == "numbers" and type(entry) is str and _DIGITS.fullmatch(entry):
        log.note("coerced_value", path, entry, int(entry))
        return int(entry)
    return entry


def _ptkb_key(rules: Rules, entry: Any) -> str:
    """The key that entries of the same statement share; "" for an entry that names no statement."""
    if rules.ptkb == "texts":
        return entry if type(entry) is str and entry.strip() else ""
    if rules.ptkb == "objects":
        number = entry.get("id") if type(entry) is dict else None
    else:
        number = str(entry) if type(entry) is int else None
    return number if type(number) is str and PTKB_ID.fullmatch(number) else ""


def _repeats(entry: dict[str, Any], original: dict[str, Any], free: Sequence[str]) -> bool:
    """Whether an entry repeats the first of its id in all members except the `free` ones."""
    return all(name in free or (name in original and original[name] == value) for name, value in entry.items())
