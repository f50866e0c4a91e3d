"""The passages that count as used by a response, and the runs most of whose evidence is absent. Pure."""

from collections.abc import Iterable, Sequence
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


FEWEST_TURNS = 3
"""Turns with absent evidence of the smallest run that is named for them."""


def absent_evidence(turns: Iterable[tuple[int, int]], what: str) -> str | None:
    """What to say of a run in most of whose turns a used passage is absent; None of any other run.

    Args:
        turns: For each turn of the run, how many used passages are absent, and how many there are.
        what: What it is that such a passage is or lacks, after "a used passage".

    >>> absent_evidence([(1, 2), (2, 2), (2, 2), (0, 2)], "is not there")
    'in 3 of its 4 turns a used passage is not there: 5 of all 8 used passages'
    """
    counts = list(turns)
    hit = sum(absent > 0 for absent, _ in counts)
    if hit < FEWEST_TURNS or 2 * hit <= len(counts):
        return None
    absent, used = (sum(column) for column in zip(*counts, strict=True))
    return f"in {hit} of its {len(counts)} turns a used passage {what}: {absent} of all {used} used passages"
