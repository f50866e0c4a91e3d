"""A turn's metadata and references, and what a response cites and names, as formats from 2025 on have them."""

from collections.abc import Collection, Iterable
from functools import partial
from itertools import islice, repeat
from math import isfinite
from typing import Any

import msgspec

from judge.io.safe import shown, storable
from judge.runs.fields import MAX_RESPONSES, Fields, ProblemLog, member
from judge.runs.records import Provenance

_MAX_COPIES = 1_000_000
"""The most references times responses of a turn, since each response holds all of them; a run has some thousands."""


class References(msgspec.Struct, frozen=True):
    """The references of a turn, which all of its responses share."""

    scores: dict[str, Any]
    """Passage id to the score as the file has it."""
    retrieved: list[Provenance]
    """The same as records that are not used."""
    free: bool
    """Whether a response may cite what is not among them."""

    @property
    def most(self) -> int:
        """The most responses of the turn that are read."""
        return min(MAX_RESPONSES, _MAX_COPIES // max(1, len(self.scores)))


def read_references(log: ProblemLog, fields: Fields, *, optional_for_citations: bool) -> References:
    """The references of a turn; `optional_for_citations`: without any, a response may cite any passage."""
    references = _by_passage(log, fields, "references")
    base = f"{fields.path}.references"
    scores: Iterable[float | None] = references.values()
    if not {float}.issuperset(map(type, scores)):
        numbers = Fields(partial(log.add_entry, base), base, references, references)
        scores = [numbers.number(passage_id) for passage_id in references]
    log.close_lists()
    # Made in C and once for all responses of the turn: a run may have 300,000 references.
    retrieved = list(map(Provenance, references, scores, repeat(False)))
    # References that cannot be read are no reason to report citations too.
    unreadable = fields.get("references") not in (None, references)
    return References(references, retrieved, unreadable or (optional_for_citations and not references))


def _by_passage(log: ProblemLog, fields: Fields, name: str) -> dict[str, Any]:
    """An object whose names are ids of passages; one that cannot be stored is reported and left out."""
    values = fields.object(name, optional=True)
    if storable("".join(values)):
        return values
    base = f"{fields.path}.{name}"
    for passage_id in (each for each in values if not storable(each)):
        message = f"NUL or a lone surrogate in {shown(passage_id)}"
        log.add_entry(base, "unusable_text", member(base, passage_id), message)
    return {passage_id: value for passage_id, value in values.items() if storable(passage_id)}


def read_cited(log: ProblemLog, fields: Fields, name: str, references: References) -> tuple[Provenance, ...]:
    """The passages of a response: the references, cited ones as used, and then what it cites beside in `name`."""
    citations = _by_passage(log, fields, name)
    provenance = references.retrieved.copy()
    cited = citations.keys() & references.scores.keys()
    # The loop stops at the last citation: citations are few and mostly among the first references.
    for k in islice((k for k, passage_id in enumerate(references.scores) if passage_id in cited), len(cited)):
        provenance[k] = Provenance(provenance[k].passage_id, provenance[k].score, True)
    base = f"{fields.path}.{name}"
    scores = Fields(partial(log.add_entry, base), base, citations, citations)
    for passage_id in citations:
        score = scores.number(passage_id)
        if passage_id in references.scores:
            if score is not None and not isfinite(score):
                message = f"{score} is not a number to rank by"
                log.add_entry(base, "score_not_finite", member(base, passage_id), message)
            continue
        provenance.append(Provenance(passage_id, score, True))
        if not references.free:
            message = "cited but not among the turn's references"
            log.add_entry(base, "citation_not_in_references", member(base, passage_id), message)
    return tuple(provenance)


def read_statements(log: ProblemLog, fields: Fields, name: str) -> tuple[str, ...]:
    """A list of PTKB statements given by their text; "" for an entry that is no text."""
    entries = fields.list(name, optional=True)
    base = f"{fields.path}.{name}"
    for k, entry in enumerate(entries):
        if type(entry) is not str:
            message = f"expected the text of a statement, found {shown(entry)}"
            log.add_entry(base, "wrong_type", f"{base}[{k}]", message)
    return tuple(entry if type(entry) is str else "" for entry in entries)


def read_metadata(log: ProblemLog, fields: Fields, known: Collection[str], first: dict[str, str], turn: str) -> str:
    """The turn id in a turn's metadata, "" where it is not there; the members in `first` are those that turns share.

    `first` keeps what the first turn gives that has a member; another value is reported. Messages call a turn `turn`.
    """
    given = fields.object("metadata")
    if fields.get("metadata") is not given:
        return ""
    metadata = Fields(log.add, f"{fields.path}.metadata", given, known)
    turn_id = metadata.label("topic_id") if "topic_id" in known else ""
    for name, kept in first.items():
        label = metadata.label(name, optional=name in ("type", "run_type"))
        here = label if label.strip() else ""
        if name == "team_id" and type(metadata.get(name)) is str and not here:
            log.add_once("empty_team", f"{metadata.path}.team_id", "the team has no name")
        if kept and here not in (kept, "") and name == "run_id":
            message = f"this {turn} is of run {shown(here)}, the file of {shown(kept)}"
            log.add("several_runs", f"{metadata.path}.run_id", message)
        elif kept and here not in (kept, ""):
            log.add("inconsistent_metadata", f"{metadata.path}.{name}", f"{shown(here)} here, {shown(kept)} before")
        first[name] = kept or here
    if "description" in known:
        metadata.text("description", optional=True)
    return turn_id
