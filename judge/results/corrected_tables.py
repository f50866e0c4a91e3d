"""The corrected leaderboard as TSV, as Markdown, and for a terminal."""

from collections.abc import Iterable, Mapping, Sequence

from judge.io.cells import count, interval, markdown_cell, number, shorten
from judge.io.layout import table_lines
from judge.io.markup import table
from judge.io.safe import escape, printable
from judge.io.table import TsvColumns, fields, records_tsv
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
HEADER = (
    *("rank", "ranks", "tie", "run", "raw [95 %]", "corrected [95 %]", "bound", "bounds", "gold", "n", "method"),
    *("lambda", "ESS", "bias", "flags"),
)
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


def corrected_tsv(rows: Iterable[CorrectedRow]) -> str:
    """All rows under one header, four decimals; undefined numbers are empty, the reason is the note."""
    return records_tsv(COLUMNS, rows, 4)


def corrected_markdown(
    rows: Sequence[CorrectedRow],
    criteria: Sequence[Criterion],
    changes: Mapping[str, RankingChange],
    *,
    target: str,
    cautions: Sequence[str] = (),
    clustered: Sequence[str] = (),
) -> str:
    """A table for each criterion, what the correction changed, and how to read it; names are escaped.

    Args:
        rows: The rows of all criteria.
        criteria: The criteria with gold.
        changes: By criterion, how the ranking changed.
        target: `pool` or `topics`.
        cautions: What limits the corrected means.
        clustered: From `clustering`.
    """
    unit = folder_unit(criteria)
    about = worded(_TARGETS[target], unit)
    parts = ["# Leaderboard, corrected by gold\n", f"\n{about}\n", *(f"\n{note}.\n" for note in clustered)]
    parts += [f"\n**Warning**: {markdown_cell(printable(caution))}\n" for caution in cautions]
    for criterion in criteria:
        parts.append(f"\n## {markdown_cell(criterion.name)}\n\n{markdown_cell(reading(criterion))}.\n\n")
        cells = [_markdown_cells(row) for row in rows if row.criterion == criterion.name]
        parts.append(table(HEADER, cells, words={2, 3, len(HEADER) - 1}))
        parts.append(f"\n\n{change_text(changes[criterion.name])}\n")
    parts.append(worded(_NOTES, unit))
    parts += [f"\n{line}.\n" for line in flag_lines(rows, unit, CORRECTED_FLAGS)]
    return "".join(parts)


def _markdown_cells(row: CorrectedRow) -> list[str]:
    bounds = "-" if row.bound_low is None else f"[{number(row.bound_low)}, {number(row.bound_high)}]"
    return [
        str(row.rank or "-"),
        _ranks(row),
        row.tie or "-",
        markdown_cell(escape(row.run_id)),
        interval(row.raw),
        interval(row.corrected),
        number(row.bound),
        bounds if row.missing else "-",
        str(row.gold),
        f"{row.n}/{row.n + row.missing}",
        row.method,
        number(row.weight, 2),
        number(row.effective_n, 1),
        number(row.bias, 2, signed=True),
        " ".join(row.flags) or "-",
    ]


def corrected_lines(rows: Sequence[CorrectedRow], columns: int) -> list[str]:
    """The rows of one criterion for a terminal of so many columns; flags stand below a row."""
    header = ("rank", "ranks", "tie", "run", "raw", "corrected", "[95 %]", "bound", "gold")
    cells = [
        (
            str(row.rank or "-"),
            _ranks(row),
            shorten(row.tie or "-", 6),
            printable(row.run_id),
            number(row.raw.value, 2),
            number(row.corrected.value, 2),
            _spread(row),
            number(row.bound, 2),
            f"{row.gold}/{row.n}",
        )
        for row in rows
    ]
    flags = [" ".join(row.flags) for row in rows]
    return [line.text for line in table_lines(header, cells, columns, words={2, 3}, keys=4, below=flags)]


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


def _ranks(row: CorrectedRow) -> str:
    return "-" if row.rank_low is None else f"{row.rank_low}-{row.rank_high}"


def _spread(row: CorrectedRow) -> str:
    low, high = row.corrected.low, row.corrected.high
    return "-" if low is None or high is None else f"[{number(low, 2)}, {number(high, 2)}]"
