"""Fixes on the decoded JSON of a run: each changes the JSON in place for one code and logs the change. Pure.

A fix is made only where the values have the types of the format; validation reports the others. Paths are those of the
file as it was given.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import msgspec

from judge.runs.check.entries import PTKB_ID
from judge.runs.fields import Fields, member
from judge.runs.formats import rules_of
from judge.runs.formats.shape import Rules, names_of, turn_label
from judge.runs.ranking import used_provenance
from judge.runs.records import Provenance, Response, Run, TokenCount
from judge.runs.tokens import countable, truncated

_DIGITS = re.compile(r"[0-9]{1,9}")


class Fix(msgspec.Struct, frozen=True):
    """One change of a run file."""

    file: str
    turn_id: str | None
    path: str
    """JSON path in the file as it was given; `base[3:7]` where entries 3 to 6 of a list were reordered."""
    code: str
    """Code of the problem that is fixed."""
    before: Any
    """The earlier JSON value; None also where there was none."""
    after: Any
    """The new JSON value; None where it is removed."""


class Fixer:
    """Fixes the turns of one run; `run` gives the format and whether the run is judged."""

    def __init__(self, run: Run, count_tokens: Callable[[str], TokenCount]) -> None:
        self.rules: Rules = rules_of(run.format)
        self._format = run.format
        self.fixes: list[Fix] = []
        self._file = run.file
        self._texts = run.eval_response
        self.count_tokens = count_tokens
        self.turn_id: str | None = None
        """The turn in work."""

    def run(self, value: Any) -> None:
        """Fix a run that is one JSON object."""
        turns = value.get("turns") if type(value) is dict else None
        for i, turn in enumerate(turns if type(turns) is list else ()):
            self.turn(turn, f"$.turns[{i}]")

    def turn(self, turn: Any, path: str) -> None:
        """Fix one turn; `path` is its JSON path."""
        if type(turn) is not dict:
            return
        self.turn_id = turn_label(turn, self.rules.turn_id)
        if self.rules.fix is not None:
            self.rules.fix(self, turn, path)
            return
        if self.rules.keyed:
            self._coerce_members(turn.get("references"), f"{path}.references")
            self._order_references(turn, f"{path}.references")
        responses = turn.get("responses")
        if type(responses) is not list:
            return
        for j, response in enumerate(responses):
            if type(response) is dict:
                self._response(response, turn, f"{path}.responses[{j}]")
        self._order_responses(turn, responses, f"{path}.responses")

    def _response(self, response: dict[str, Any], turn: dict[str, Any], path: str) -> None:
        self._coerce(response, "rank", path, Fields.integer)
        names = names_of(self.rules, response)
        self._shorten(response, names.text, path)
        if self.rules.keyed:
            self._coerce_members(response.get(names.citations), f"{path}.{names.citations}")
            self._order_citations(response, names.citations, turn.get("references"), path)
        elif self.rules.passages is not None:
            self._passages(response.get(self.rules.passages), f"{path}.{self.rules.passages}")
        if self.rules.ptkb is not None:
            holder, _, name = names.ptkb.rpartition(".")
            owner = response.get(holder) if holder else response
            self._ptkb(owner.get(name) if type(owner) is dict else None, f"{path}.{names.ptkb}")

    def note(self, code: str, path: str, before: Any, after: Any) -> None:
        """Log a fix of the turn in work."""
        self.fixes.append(Fix(file=self._file, turn_id=self.turn_id, path=path, code=code, before=before, after=after))

    def _coerce(self, value: dict[str, Any], name: str, path: str, read: Callable[[Fields, str], float | None]) -> None:
        """Write a number in another form as the number that its reader reads."""
        before = value.get(name)
        if type(before) is int or (type(before) is float and read is Fields.number) or before is None:
            return
        codes: list[str] = []
        fields = Fields(lambda code, path, message: codes.append(code), path, {name: before}, (name,))
        number = read(fields, name)
        if codes == ["coerced_value"] and number is not None and isfinite(number):
            value[name] = number
            self.note("coerced_value", member(path, name), before, number)

    def _coerce_members(self, value: Any, path: str) -> None:
        for name in value if type(value) is dict else ():
            self._coerce(value, name, path, Fields.number)

    def _shorten(self, response: dict[str, Any], name: str, path: str) -> None:
        """Cut an over-long text after the last token within the limit."""
        text = response.get(name)
        if not (self._texts and type(text) is str and countable(text)):
            return
        kept, _ = truncated(text, self.count_tokens)
        if len(kept) < len(text) and kept.strip():
            response[name] = kept
            self.note("over_token_limit", f"{path}.{name}", text, kept)

    def _order_references(self, turn: dict[str, Any], path: str) -> None:
        references = turn.get("references")
        if type(references) is dict and (scores := _scores(references.values())) and _rises(scores):
            turn["references"] = self._sorted_members(references, path)

    def _order_citations(self, response: dict[str, Any], name: str, references: Any, path: str) -> None:
        """Order the citations by score if those that are not references, which alone count, are out of order."""
        citations = response.get(name)
        if type(citations) is not dict or not _scores(citations.values()):
            return
        known = references if type(references) is dict else {}
        if _rises([score for passage_id, score in citations.items() if passage_id not in known]):
            response[name] = self._sorted_members(citations, f"{path}.{name}")

    def _sorted_members(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        ids = list(value)
        order = sorted(range(len(ids)), key=lambda k: -value[ids[k]])
        self._moved("scores_not_decreasing", path, ids, order)
        return {ids[k]: value[ids[k]] for k in order}

    def _moved(self, code: str, path: str, names: Sequence[Any], order: Sequence[int]) -> None:
        """Log a new order, from the first entry that moved to the last."""
        moved = [k for k, old in enumerate(order) if k != old]
        start = moved[0]
        stop = moved[-1] + 1
        self.note(code, f"{path}[{start}:{stop}]", list(names[start:stop]), [names[k] for k in order[start:stop]])

    def _passages(self, entries: Any, path: str) -> None:
        """Order a response's passages by score, keep each passage once, and flag the passages that count as used."""
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            return
        for k, entry in enumerate(entries):
            self._coerce(entry, "score", f"{path}[{k}]", Fields.number)
        kept = self._distinct_passages(self._by_score(list(enumerate(entries)), path), path)
        if len(kept) < len(entries):
            # A repetition without a score may have kept the others from being ordered.
            kept = self._by_score(kept, path)
        if self.rules.flags_used:
            self._flag(kept, path)
        if kept != list(enumerate(entries)):
            entries[:] = [entry for _, entry in kept]

    def _by_score(self, entries: list[tuple[int, dict[str, Any]]], path: str) -> list[tuple[int, dict[str, Any]]]:
        """The entries by falling score, where all scores are numbers."""
        scores = _scores([entry.get("score") for _, entry in entries])
        if not (scores and _rises(scores)):
            return entries
        order = sorted(range(len(entries)), key=lambda k: -scores[k])
        self._moved("scores_not_decreasing", path, [entry.get("id") for _, entry in entries], order)
        return [entries[k] for k in order]

    def _distinct_passages(self, entries: list[tuple[int, dict[str, Any]]], path: str) -> list[tuple[int, Any]]:
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
            self.note("duplicate_passage", f"{path}[{k}]", dict(entry), None)
            if entry.get("used") is True and original.get("used") is not True:
                self.note("duplicate_passage", f"{path}[{at}].used", original.get("used"), True)
                original["used"] = True
        return kept

    def _flag(self, entries: list[tuple[int, dict[str, Any]]], path: str) -> None:
        """Flag every unflagged passage by whether it counts as used."""
        flags = [entry.get("used") for _, entry in entries]
        if not all(flag is None or type(flag) is bool for flag in flags):
            return
        code = "missing_used"
        if True not in flags:
            if not all(type(entry.get("id")) is str and _is_score(entry.get("score")) for _, entry in entries):
                return
            code = "no_used_passage"
            provenance = tuple(Provenance(entry["id"], entry.get("score"), None, None) for _, entry in entries)
            used, _ = used_provenance(Response(1, "", provenance), self._format)
            chosen = set(map(id, used))
            for (k, entry), passage in zip(entries, provenance, strict=True):
                if id(passage) in chosen:
                    self.note(code, f"{path}[{k}].used", entry.get("used"), True)
                    entry["used"] = True
        without = [entry for _, entry in entries if entry.get("used") is None]
        for entry in without:
            entry["used"] = False
        if without:
            # They share one line of the log: a list may have a thousand of them.
            self.note(code, f"{path}[*].used", None, False)

    def _ptkb(self, entries: Any, path: str) -> None:
        """Write statement numbers as numbers and keep each statement once."""
        if type(entries) is not list:
            return
        first: dict[str, Any] = {}
        kept = []
        for k, given in enumerate(entries):
            entry = self._ptkb_entry(given, f"{path}[{k}]")
            key = self._ptkb_key(entry)
            if key in first and (type(entry) is not dict or _repeats(entry, first[key], ("score",))):
                self.note("duplicate_ptkb", f"{path}[{k}]", entry, None)
                continue
            kept.append(entry)
            if key:
                first.setdefault(key, entry)
        entries[:] = kept

    def _ptkb_entry(self, entry: Any, path: str) -> Any:
        """An entry with its number or score as a number."""
        if self.rules.ptkb == "objects" and type(entry) is dict:
            self._coerce(entry, "score", path, Fields.number)
        elif self.rules.ptkb == "numbers" and type(entry) is str and _DIGITS.fullmatch(entry):
            self.note("coerced_value", path, entry, int(entry))
            return int(entry)
        return entry

    def _ptkb_key(self, entry: Any) -> str:
        """The key that entries of the same statement share; "" for an entry that names no statement."""
        if self.rules.ptkb == "texts":
            return entry if type(entry) is str and entry.strip() else ""
        if self.rules.ptkb == "objects":
            number = entry.get("id") if type(entry) is dict else None
        else:
            number = str(entry) if type(entry) is int else None
        return number if type(number) is str and PTKB_ID.fullmatch(number) else ""

    def _order_responses(self, turn: dict[str, Any], responses: list[Any], path: str) -> None:
        """Order the responses of a turn by rank where all ranks can be read."""
        ranks: list[Any] = [response.get("rank") if type(response) is dict else None for response in responses]
        if all(type(rank) is int and rank >= 1 for rank in ranks) and _falls_anew(ranks):
            order = sorted(range(len(ranks)), key=lambda j: ranks[j])
            self._moved("ranks_not_increasing", path, ranks, order)
            turn["responses"] = [responses[j] for j in order]


def _scores(values: Any) -> list[float]:
    """The values if all of them are finite numbers; else an empty list."""
    scores = list(values)
    return scores if all(score is not None and _is_score(score) and isfinite(score) for score in scores) else []


def _is_score(value: Any) -> bool:
    """Whether a score is missing or a number that a float can hold."""
    return value is None or type(value) is float or (type(value) is int and abs(value) < 10**300)


def _rises(scores: Sequence[float]) -> bool:
    """Whether some score is above the one before."""
    return any(score > previous for previous, score in pairwise(scores))


def _falls_anew(ranks: Sequence[Any]) -> bool:
    """Whether some rank is below the one before; a rank that was already given is another problem."""
    return any(rank < previous and rank not in ranks[:j] for j, (previous, rank) in enumerate(pairwise(ranks), start=1))


def _repeats(entry: dict[str, Any], original: dict[str, Any], free: Sequence[str]) -> bool:
    """Whether an entry repeats the first of its id in all members except the `free` ones."""
    return all(name in free or (name in original and original[name] == value) for name, value in entry.items())
