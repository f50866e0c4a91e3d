"""What a certificate says of a probe of its judge, and whether that agrees with itself. Pure."""

import re
from collections.abc import Iterator

import msgspec

from judge.calibrate.probe.card import ProbeCard, ProbedJudge
from judge.calibrate.probe.records import Expected
from judge.calibrate.probe.rules import ProbeWord, word_for
from judge.records import Estimate
from judge.text.cells import count, decimals, interval
from judge.text.safe import shown

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FACTS = {"number altered": "numbers", "name altered": "names", "negation": "negations"}


class CertifiedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One probe."""

    probe: str
    expects: Expected
    missing: int
    shift: Estimate
    moved: float | None
    word: ProbeWord


class CertifiedProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A probe of the judge, the prompt and the options of one entry."""

    card: str
    """SHA-256 of `probe.json`."""
    items: int
    topics: int
    seed: int
    margin: float
    canaries: int
    """How many different canaries were planted."""
    rows: tuple[CertifiedRow, ...]


def certified_probe(card: ProbeCard, of: ProbedJudge, digest: str) -> CertifiedProbe:
    """What a certificate says of one judge of a probe.

    Args:
        card: What the probe found.
        of: The judge, one of the card's.
        digest: SHA-256 of `probe.json`.
    """
    rows = tuple(
        CertifiedRow(row.probe, row.expects, row.missing, row.shift, row.moved.value, row.word) for row in of.rows
    )
    canaries = len({row.canary for row in of.canaries})
    return CertifiedProbe(digest, card.items, card.topics, card.seed, card.margin, canaries, rows)


def probed_words(probed: CertifiedProbe) -> str:
    """What a probe found, in one sentence."""
    failing = [row.probe for row in probed.rows if row.word == "fails"]
    holding = sum(row.word == "holds" for row in probed.rows)
    text = f"probed on {count(probed.items, 'item')}: {holding} of {count(len(probed.rows), 'probe')} hold"
    text += f", failing: {', '.join(failing)}" if failing else ", none fails"
    worst = max(
        (row for row in probed.rows if row.expects == "resists" and row.shift.value is not None),
        key=lambda row: row.shift.value or 0.0,
        default=None,
    )
    if worst is not None:
        shift = interval(worst.shift, 2, signed=True)
        text += f"; {count(probed.canaries, 'canary', 'canaries')}, largest shift {shift} ({worst.probe})"
    found = [
        f"{noun} {decimals(row.moved, 2)}"
        for name, noun in _FACTS.items()
        for row in probed.rows
        if row.probe == name and row.moved is not None
    ]
    return f"{text}; share of altered facts that lower the grade: {', '.join(found)}" if found else text


def probe_contradictions(probed: CertifiedProbe) -> Iterator[tuple[str, str]]:
    """Fields and messages of what cannot be true together; above all, each word is made again from its interval."""
    if not _DIGEST.fullmatch(probed.card):
        yield "probed.card", f"{shown(probed.card)}: expected a SHA-256"
    for place, row in enumerate(probed.rows):
        where, shift = f"probed.rows[{place}]", row.shift
        if not 0 <= shift.topics <= shift.n <= probed.items or row.missing < 0:
            yield f"{where}.shift", f"{shift.n} items on {shift.topics} topics of {probed.items} drawn"
        if shift.low is not None and shift.high is not None and shift.low > shift.high:
            yield f"{where}.shift", f"an interval from {shift.low} to {shift.high}"
        again = word_for(row.expects, shift, row.missing, probed.margin)
        if again != row.word:
            yield f"{where}.word", f"{row.word}, but the interval says {again}"
