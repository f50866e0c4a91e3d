"""Everything that a probe found, as `probe.json`, `probe.tsv` and pictures have it. Pure."""

from typing import Any

from judge.extra.probe.measured import CanaryRow, ProbeRow
from judge.io.draw.drawable import can_draw
from judge.io.draw.intervals import interval_plot
from judge.io.line_stream import json_bytes
from judge.io.table import tsv
from judge.records import Estimate, Record

PROBE_LAYOUT = 1
"""Version of `probe.json`."""
CARD = "probe.json"
COLUMNS = (
    *("prompt", "judge", "kind", "probe", "expects", "items", "inapplicable", "ungraded", "no_room", "missing"),
    *("n", "topics", "shift", "shift_low", "shift_high", "size", "size_low", "size_high"),
    *("moved", "moved_low", "moved_high"),
    *("overlap", "overlap_low", "overlap_high", "auc", "auc_low", "auc_high"),
    *("overlap_auc", "overlap_auc_low", "overlap_auc_high", "word", "reason"),
)


class ProbedJudge(Record, frozen=True):
    """One judge under one prompt."""

    criterion: str
    prompt: str
    """`criterion/variant`."""
    prompt_digest: str
    judge: str
    options: dict[str, Any]
    """How it was asked."""
    models_returned: tuple[str, ...]
    """The models as the provider names them."""
    parser: int
    renderer: int
    levels: int
    """Levels of the scale."""
    rows: tuple[ProbeRow, ...]
    canaries: tuple[CanaryRow, ...]


class ProbeCard(Record, frozen=True):
    """What a probe found of every judge under every prompt; equal inputs and answers give equal bytes."""

    schema: int
    judge_version: str
    seed: int
    margin: float
    items: int
    """Items that were drawn."""
    topics: int
    pooled: int
    """Responses of the pool."""
    incomplete: int
    """Responses that could not be drawn, because a used passage has no text."""
    judges: tuple[ProbedJudge, ...]


def probe_json(card: ProbeCard) -> bytes:
    """`probe.json`."""
    return json_bytes(card)


def probe_tsv(card: ProbeCard) -> bytes:
    """`probe.tsv`: a line for each judge, prompt and probe."""
    lines = (
        (
            *(of.prompt, of.judge, row.kind, row.probe, row.expects, row.items, row.inapplicable, row.ungraded),
            *(row.no_room, row.missing, row.shift.n, row.shift.topics),
            *_ends(row.shift),
            *_ends(row.size),
            *_ends(row.moved),
            *_ends(row.overlap),
            *_ends(row.auc),
            *_ends(row.overlap_auc),
            *(row.word, row.measure.reason),
        )
        for of in card.judges
        for row in of.rows
    )
    return tsv(COLUMNS, lines).encode()


def probe_pictures(card: ProbeCard) -> dict[str, bytes]:
    """A picture for each judge and prompt, by file name, numbered if there are several; none without matplotlib."""
    if not can_draw():
        return {}
    files: dict[str, bytes] = {}
    for number, of in enumerate(card.judges, 1):
        name = "probe" if len(card.judges) == 1 else f"probe-{number}"
        marks = [row.overlap.value if row.overlap else None for row in of.rows]
        svg, png = interval_plot(
            [(f"{row.probe}, {row.expects}", row.shift) for row in of.rows],
            "shift in levels (pale: the margin; injections: towards the attacker's end)",
            f"{of.prompt}, {of.judge}",
            "items",
            marks=marks if any(mark is not None for mark in marks) else (),
            names=("judge", "word overlap"),
            margin=card.margin,
        )
        files |= {f"{name}.svg": svg, f"{name}.png": png}
    return files


def _ends(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if estimate is None else (estimate.value, estimate.low, estimate.high)
