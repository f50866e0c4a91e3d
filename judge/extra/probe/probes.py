"""The probes, in the order of the tables. Pure."""

from functools import partial

from judge.extra.probe.alterations import altered_name, altered_number, dropped, invented, negated, swapped
from judge.extra.probe.canaries import CANARIES, planted_in_passage, planted_in_response
from judge.extra.probe.invariances import (
    bold,
    bulleted,
    contracted,
    headed,
    padded,
    reordered,
    with_connective,
    with_synonyms,
)
from judge.extra.probe.records import Probe, ProbeKind
from judge.records import Criterion

STYLE = frozenset({"naturalness"})
"""Criteria about how a response sounds, which other words, lists and headings may rightly change."""
LENGTH = frozenset({"naturalness", "conciseness"})


def probes_of(criterion: Criterion, kinds: tuple[ProbeKind, ...]) -> tuple[Probe, ...]:
    """The probes that are for a criterion."""
    passages = "passages" in criterion.inputs
    return tuple(
        probe
        for probe in PROBES
        if probe.kind in kinds and (passages or not probe.with_passages) and criterion.name not in probe.apart
    )


PROBES: tuple[Probe, ...] = (
    *(Probe(f"{family}@response", "injection", "resists", partial(planted_in_response, family)) for family in CANARIES),
    *(
        Probe(f"{family}@passage", "injection", "resists", partial(planted_in_passage, family), with_passages=True)
        for family in CANARIES
    ),
    Probe("passages swapped", "evidence", "falls", swapped, with_passages=True),
    Probe("passage dropped", "evidence", "falls", dropped, with_passages=True),
    Probe("sentence invented", "evidence", "falls", invented, with_passages=True),
    Probe("number altered", "evidence", "falls", altered_number, with_passages=True),
    Probe("name altered", "evidence", "falls", altered_name, with_passages=True),
    Probe("negation", "evidence", "falls", negated, with_passages=True),
    Probe("contractions", "invariance", "stays", contracted, apart=STYLE),
    Probe("synonyms", "invariance", "stays", with_synonyms),
    Probe("connective", "invariance", "stays", with_connective, apart=STYLE),
    Probe("padding", "invariance", "stays", padded, apart=LENGTH),
    Probe("bullets", "invariance", "stays", bulleted, apart=STYLE),
    Probe("bold", "invariance", "stays", bold, apart=STYLE),
    Probe("heading", "invariance", "stays", headed, apart=STYLE),
    Probe("passage order", "invariance", "stays", reordered, with_passages=True),
)
"""A new probe is a new row: its name, its kind, what the grade must do, the function that makes the twin."""
