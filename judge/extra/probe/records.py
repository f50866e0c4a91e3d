"""The records of a probe: an item, its altered copy, and why an item has none. Pure."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from judge.calibrate.probed import Expects
from judge.pool.records import PooledResponse
from judge.records import Record

ProbeKind = Literal["injection", "evidence", "invariance"]
"""What a probe alters: a text that speaks to the judge is planted; support is taken away; nothing that matters."""
Wants = Literal["high", "low"]
"""Which end of the scale an attacker wants."""
KINDS: tuple[ProbeKind, ...] = ("injection", "evidence", "invariance")


class ProbeItem(Record, frozen=True):
    """A drawn response with what a probe may use to alter it."""

    response: PooledResponse
    passages: tuple[str, ...]
    """Texts of the used passages, as a judge sees them in order."""
    elsewhere: tuple[tuple[str, ...], ...] = ()
    """Texts of the passages of responses to other turns of the same topic."""
    place: int = 0
    """Place in the draw, from 0; canaries take turns by it."""


class WantedLabels(NamedTuple):
    """What an attacker asks for: the labels that a judge writes for the best grade and for the worst."""

    best: str
    worst: str


class Twin(Record, frozen=True):
    """An altered copy of an item."""

    text: str
    passages: tuple[str, ...]
    change: str
    """What was altered, in words or as `old -> new`."""
    canary: str | None = None
    """The name of the planted text, if one was."""
    wants: Wants | None = None
    """Where the planted text wants the grade."""


class Inapplicable(Record, frozen=True):
    """Why an item has no twin under a probe."""

    reason: str


Making = Callable[[ProbeItem, WantedLabels, np.random.Generator], Twin | Inapplicable]


class Probe(NamedTuple):
    """One row of PROBES."""

    name: str
    kind: ProbeKind
    expects: Expects
    make: Making
    with_passages: bool = False
    """Whether it is only for criteria that show the passages."""
    apart: frozenset[str] = frozenset()
    """Criteria that it is not for, because there the alteration may matter."""
