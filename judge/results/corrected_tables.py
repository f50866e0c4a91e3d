"""The corrected leaderboard as TSV, as Markdown, and for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judge.io.cells import count, markdown_cell, number
from judge.io.safe import printable
from judge.io.table import Heading, Table, TsvColumns, fields, records_table
from judge.records import Criterion
from judge.results.leaderboard import reading
from judge.results.rows import CORRECTED_FLAGS, CorrectedRow, RankingChange, flag_lines, folder_unit, noted, worded
from judge.stats.separation import FEWEST_TOPICS_APART

TOO_FEW_TOPICS = f"no run is told apart from another, since that needs {FEWEST_TOPICS_APART} topics"
"""Why there are no tie letters and no rank intervals."""
COLUMNS: TsvColumns = {
    **fields("criterion rank rank_lo=rank_low rank_hi=rank_high tie run=run_id family n missing raw=raw.value"),
    **fields("raw_lo=raw.low raw_hi=raw.high raw_bound gold_n=gold corrected=corrected.value lo=corrected.low"),
    **fields("hi=corrected.high bound bound_lo=bound_low bound_hi=bound_high method lambda=weight ess=effective_n"),
    **fields("bias"),
    "flags": lambda row: " ".join(row.flags),
    "note": lambda row: noted(
        row.corrected.reason or (TOO_FEW_TOPICS if too_few_topics(row) else row.raw.reason), row.cluster
    ),
}
_SHOWN: TsvColumns = {
    "rank": lambda row: row.rank,
    "ranks": lambda row: "" if row.rank_low is None else f"{row.rank_low}-{row.rank_high}",
    **fields("tie run=run_id raw=raw.value"),
    Heading("raw [95 %]"): lambda row: row.raw,
    Heading("corrected [95 %]"): lambda row: row.corrected,
    "bound": lambda row: row.bound,
    "bounds": lambda row: (
        f"[{number(row.bound_low)}, {number(row.bound_high)}]" if row.missing and row.bound_low is not None else None
    ),
    "gold": lambda row: row.gold,
    "n": lambda row: f"{row.n}/{row.n + row.missing}",
    "method": lambda row: row.method,
    Heading("lambda", 2): lambda row: row.weight,
    Heading("ESS", 1): lambda row: row.effective_n,
    Heading("bias", 2, signed=True): lambda row: row.bias,
    "flags": lambda row: " ".join(row.flags),
}
"""For people."""
IN_FILE = tuple(name for name in _SHOWN if name != "raw")
ON_TERMINAL = ("rank", "ranks", "tie", "run", "raw", "corrected [95 %]", "bound", "gold", "n")
_TARGETS = {
    "pool": "Corrected means are of the responses judged here; intervals are about the result of grading them all.",
    "topics": "Corrected means are of the runs on topics like these; their intervals are over topics.",
}
_NOTES = """
corrected: gold grades of a part of the responses, carried to all of them by the judge's grades (PPI++). lambda: how
much the judge's grades count; ESS (effective sample size): gold grades times how many times larger the variance would
be without the judge; bias: judge minus gold. bound: the corrected mean over all turns that the run had to answer, with
the gold grade of each turn without a grade or, where there is none, the worst grade. bounds: the interval with such
turns at the lowest and the highest grade.

rank: by the bound. ranks: the ranks that the run may have. Runs that share a letter (tie) cannot be told apart. Both
hold for all runs at once with 95 % confidence.
"""


def too_few_topics(row: CorrectedRow) -> bool:
    """Whether a run has a rank, but too few topics for letters and a rank interval."""
    return row.rank is not None and row.rank_low is None


def corrected_board(rows: Iterable[CorrectedRow], columns: Sequence[str] = IN_FILE) -> Table[Any]:
    """The rows of one criterion for people."""
    return records_table(_SHOWN, rows, "", places=3).pick(columns)


def corrected_markdown(
    rows: Sequence[CorrectedRow],
    criteria: Sequence[Criterion],
    changes: Mapping[str, RankingChange],
    *,
    target: str,
    cautions: Sequence[str] = (),
    clustered: Sequence[str] = (),
) -> str:
    """A table for each criterion, what the correction changed, and how to read it; names are escaped."""
    unit = folder_unit(criteria)
    about = worded(_TARGETS[target], unit)
    parts = ["# Leaderboard, corrected by gold\n", f"\n{about}\n", *(f"\n{note}.\n" for note in clustered)]
    parts += [f"\n**Warning**: {markdown_cell(printable(caution))}\n" for caution in cautions]
    for criterion in criteria:
        parts.append(f"\n## {markdown_cell(criterion.name)}\n\n{markdown_cell(reading(criterion))}.\n\n")
        board = corrected_board(row for row in rows if row.criterion == criterion.name)
        parts.append(board.body(words={2, 3, len(IN_FILE) - 1}))
        parts.append(f"\n\n{change_text(changes[criterion.name])}\n")
    parts.append(worded(_NOTES, unit))
    parts += [f"\n{line}.\n" for line in flag_lines(rows, unit, CORRECTED_FLAGS)]
    return "".join(parts)


def change_text(change: RankingChange) -> str:
    """How the correction changed the order of the runs, in one sentence."""
    if change.runs < 2:
        return "Fewer than two runs have a corrected mean."
    parts = [
        f"{name} {number(value, 2)}"
        for name, value in (("tau-b", change.tau_b), ("tau-AP", change.tau_ap), ("RBO", change.rbo))
    ]
    parts += [f"top {k} {number(share, 2)}" for k, share in change.top.items()]
    pairs = count(change.pairs, "pair")
    return f"Raw against corrected order: {', '.join(parts)}; {change.flips} of {pairs} of runs change places."
