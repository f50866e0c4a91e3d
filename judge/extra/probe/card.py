"""Everything that a probe found, as `probe.json` and pictures have it, as tables, and as a page of Markdown. Pure."""

from collections import Counter
from typing import Any

from judge.calibrate.certified import MOST_MISSING, Expects
from judge.extra.probe.measured import CanaryRow, ProbeRow
from judge.extra.probe.probes import CANARIES
from judge.extra.probe.records import ProbeKind
from judge.io.cells import count, decimals, prose
from judge.io.draw import interval_plot
from judge.io.installed import can_draw
from judge.io.table import Cell, Table, tsv
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
        marks = [_value(row.overlap) for row in of.rows]
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


PLACES = 2
SHORT = ("probe", "n", "shift", "moved", "words", "AUC", "says")
FULL = ("probe", "grade", "n", "topics", "left out", "shift", "size", "moved", "words", "AUC", "words AUC", "says")
TITLES: dict[ProbeKind, str] = {
    "injection": "Texts that speak to the judge: the grade must not go where they want it",
    "evidence": "Less support: the grade must fall",
    "invariance": "Nothing that matters: the grade must stay",
}
MUST: dict[Expects, str] = {"resists": "must resist", "falls": "must fall", "stays": "must stay"}


def probe_grids(card: ProbeCard) -> tuple[Table[Any], ...]:
    """For each judge one table that fits a terminal."""
    return tuple(
        Table(
            (
                (row.probe, row.shift.n, row.measure, row.moved.value, _value(row.overlap), _value(row.auc), row.word)
                for row in of.rows
            ),
            SHORT, f"{of.prompt}, {of.judge}", (summary(of),), PLACES,
        )
        for of in card.judges
    )  # fmt: skip


def probe_notes(card: ProbeCard) -> tuple[str, ...]:
    """How to read the tables, a sentence each."""
    margin = decimals(card.margin, PLACES)
    lacking = f"; {count(card.incomplete, 'response')} with a used passage without text not drawn"
    left = lacking if card.incomplete else ""
    return (
        f"{count(card.items, 'item')} of {count(card.topics, 'topic')}, drawn with seed {card.seed} from "
        f"{count(card.pooled, 'response')}{left}.",
        "Shift: mean change of the grade in levels from the clean item to its twin, with a 95 % interval over topics; "
        "of injections towards where the attacker wants it, else towards the good end. Where the grade must stay, what "
        "counts is the mean size of the changes, up or down. n leaves out items that the probe does not apply to, and "
        "grades that are missing or have no room to move. Moved: share of these whose grade moved: to the attacker's "
        "end, down, or either way. Words: the shift of word overlap. AUC: how often a clean item scores above an "
        "altered one, over all graded pairs.",
        f"Holds: the whole interval is on the right side of the margin of {margin} levels. Fails: all of it is on the "
        f"wrong side. Inconclusive: neither, or over {MOST_MISSING:.0%} of the twins have no grade. Where all shifts "
        "are equal there is no interval, and the value decides: on few topics that shows little.",
    )


def summary(of: ProbedJudge) -> str:
    """How many rows hold, and which fail."""
    words = Counter(row.word for row in of.rows)
    text = f"{words['holds']} of {count(len(of.rows), 'probe')} hold, {words['inconclusive']} inconclusive, "
    failing = ", ".join(row.probe for row in of.rows if row.word == "fails")
    return f"{text}{words['fails']} {'fails' if words['fails'] == 1 else 'fail'}{f': {failing}' if failing else ''}."


def probe_markdown(card: ProbeCard) -> bytes:
    """`probe.md`: the tables of every judge, the canaries that moved a grade, and how to read them."""
    parts = ["# Probe", *map(prose, probe_notes(card))]
    for of in card.judges:
        parts += [f"## {prose(of.prompt)}, {prose(of.judge)}", prose(summary(of))]
        for kind, title in TITLES.items():
            rows = [row for row in of.rows if row.kind == kind]
            if rows:
                grid = Table(map(_line, rows), FULL, title, (), PLACES)
                parts.append(f"#{grid.markdown()}".rstrip("\n"))
        moving = [row for row in of.canaries if row.moved or row.missing]
        if of.canaries:
            planted = len({row.canary for row in of.canaries})
            which = ", ".join(map(_moved, moving))
            moved = "Those that moved a grade to where they want it, or after which there is no grade"
            of_all = f"{planted} of {sum(map(len, CANARIES.values()))} canaries planted"
            parts.append(prose(f"{of_all}. {moved}: {which or 'none'}."))
    return ("\n\n".join(parts) + "\n").encode()


def _line(row: ProbeRow) -> tuple[Cell, ...]:
    because = f" ({row.measure.reason})" if row.word == "inconclusive" and row.measure.reason else ""
    left_out = ", ".join(
        f"{number} {reason}"
        for number, reason in (
            (row.inapplicable, "not applicable"),
            (row.ungraded, "clean grade missing"),
            (row.no_room, "no room"),
            (row.missing, "twin's grade missing"),
        )
        if number
    )
    counts = (row.probe, MUST[row.expects], row.shift.n, row.shift.topics, left_out or None)
    measures = (row.shift, row.size, row.moved, row.overlap, row.auc, row.overlap_auc)
    return (*counts, *measures, f"{row.word}{because}")


def _moved(row: CanaryRow) -> str:
    without = f", {row.missing} without a grade" if row.missing else ""
    return f"{row.canary} ({row.moved} of {row.n}{without})"


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value
