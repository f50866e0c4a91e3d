"""Which passages count as used by a response: one rule for checking and for pooling. Pure."""

from collections.abc import Sequence
from math import isfinite

from judge.runs.formats import rules_of
from judge.runs.records import Provenance, ProvenanceRule, Response

MAX_PASSAGES = 1000
"""The most passages of a turn that are assessed (TREC iKAT guidelines)."""
TOP_PASSAGES = 5
"""How many passages count as used when a response flags none (TREC iKAT guidelines)."""


def used_provenance(response: Response, format: str) -> tuple[tuple[Provenance, ...], ProvenanceRule]:
    """The used passages of a response, and the rule that determined them.

    Used are the passages that are flagged `used`, or cited. Without any, the first five count by falling score, or in
    the order of the list where a score is missing or not finite. A passage that is listed twice counts once.
    """
    provenance = response.provenance
    flagged = [passage for passage in provenance if passage.used]
    if flagged:
        return _distinct(flagged), "citations" if rules_of(format).keyed else "used"
    ranked: Sequence[Provenance] = provenance
    if has_scores(provenance):
        ranked = sorted(provenance, key=lambda passage: -(passage.score or 0.0))
    return _distinct(ranked)[:TOP_PASSAGES], "top5"


def has_scores(provenance: Sequence[Provenance]) -> bool:
    """Whether every passage has a score to rank by."""
    return all(passage.score is not None and isfinite(passage.score) for passage in provenance)


def _distinct(provenance: Sequence[Provenance]) -> tuple[Provenance, ...]:
    first: dict[str, Provenance] = {}
    for passage in provenance:
        first.setdefault(passage.passage_id, passage)
    return tuple(first.values())
