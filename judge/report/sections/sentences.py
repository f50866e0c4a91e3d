"""What the judge says of single sentences: contradicted ones stand apart from unsupported ones. Pure."""

from collections.abc import Iterator

from judge.files.trec import safe_names
from judge.report.folders import RunFolder
from judge.report.parts import ReportTable, Section
from judge.report.sections.words import titled
from judge.results.details import by_run
from judge.text.table import Cell, Table


def sentence_labels(folder: RunFolder) -> Iterator[Section]:
    """A section for each criterion whose prompt asks for labels of sentences."""
    rows = folder.sentences
    slugs = safe_names(dict.fromkeys(criterion.name for criterion in folder.judged.criteria))
    for name in dict.fromkeys(row.criterion for row in rows):
        group = [row for row in rows if row.criterion == name]
        labels = list(dict.fromkeys(row.label for row in group if row.share is not None))
        lines: list[tuple[Cell, ...]] = []
        for run_id, by_label in by_run(group).items():
            cells: list[Cell] = [run_id, next(iter(by_label.values())).responses]
            for label in labels:
                cells += [by_label[label].share, by_label[label].with_label]
            lines.append(tuple(cells))
        columns = ("run", "responses", *(column for label in labels for column in (label, f"{label} in")))
        table = ReportTable(
            Table(lines, columns, f"{titled(name)}: labels of sentences", (), 2),
            "A line for each run. Under each label: the share of a response's sentences that have it, on average, with "
            f"its 95 % interval over {group[0].cluster}s, and then in how many responses it occurs at all. Sentences "
            "that claim nothing are left out.",
        )
        yield Section(f"sentences-{slugs[name]}", f"Sentence by sentence: {name}", (table,))
