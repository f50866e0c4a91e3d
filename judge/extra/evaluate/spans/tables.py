"""The tables of `judge evaluate spans`. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from judge.extra.evaluate.spans.files import MergedRun
from judge.extra.evaluate.spans.overlap import ScriptFigures, SpanScore
from judge.io.table import Cell, Table, TsvColumns, fields, records_table

SPANS: TsvColumns = {
    **fields("run=run_id over overlap s3=s3.value s4=s4.value s5=s5.value jaccard"),
    "groups": lambda score: len(score.groups),
    "skipped": lambda score: len(score.skipped),
}
SCRIPT = fields("run=run_id analyzer overlap s3 s4 s5 jaccard groups crossed reason")
GROUPS = ("run", "over", "topics", "overlap", "s3", "s4", "s5", "jaccard", "predicted", "gold", "skipped")
PASSAGES = ("run", "qrels", "over", "AP", "P@5", "RR", "topics")


def span_grids(
    scores: Sequence[SpanScore], script: Sequence[ScriptFigures], passages: Sequence[MergedRun], notes: tuple[str, ...]
) -> dict[str, Table[Any]]:
    """The tables that have rows, by the name of their files; the notes stand under the last of those of runs.

    Args:
        scores: Runs of spans.
        script: What the organizers' script prints for them.
        passages: Runs of passages.
        notes: What was skipped or left out.
    """
    grids: dict[str, Table[Any]] = {}
    if scores:
        read = (_FIGURES, _interval("group"))
        grids["spans"] = records_table(SPANS, scores, "Spans, by topic id", read)
        grids["script"] = records_table(SCRIPT, script, "Spans, as the organizers' script pairs lines")
    if passages:
        lines = tuple(map(_passage_line, passages))
        grids["passages"] = Table(lines, PASSAGES, "Passages", (_interval("conversation"),))
    last = list(grids)[-1]
    grids[last] = grids[last].with_notes(*notes)
    return grids


_FIGURES = (
    "overlap: three, four and five twelfths of s3, s4 and s5, the cosines of the counts of 3, 4 and 5 characters. "
    "jaccard: common words, as a share of all. skipped: groups in no mean."
)


def _interval(unit: str) -> str:
    return f"[ ]: 95 % interval over {unit}s, from 3 {unit}s on; none where all {unit}s have the same value."


def group_grid(scores: Iterable[SpanScore]) -> Table[Any]:
    """A row for each group of each run, those that are skipped too."""
    lines: list[tuple[Cell, ...]] = []
    for score in scores:
        head = (score.run_id, score.over)
        lines += [
            (*head, " ".join(of.topics), of.overlap, *of.similarities, of.jaccard, of.predicted, of.gold, None)
            for of in score.groups
        ]
        lines += [(*head, " ".join(of.topics), *(None,) * 7, of.reason) for of in score.skipped]
    return Table(lines, GROUPS, "Groups", places=6)


def _passage_line(run: MergedRun) -> tuple[Cell, ...]:
    return (run.run_id, run.merging, run.over, *(each.estimate for each in run.scores), len(run.scores[0].turns))
