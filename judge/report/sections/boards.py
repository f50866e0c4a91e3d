"""The runs in their order: as the judge sees them, and corrected by gold. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from judge.calibrate.findings import Calibration, TrustVerdict, Word
from judge.calibrate.report.lookup import Finding, basis, criteria, heading
from judge.calibrate.report.pages import NOTES, chapter
from judge.io.ids import groups_of, safe_names
from judge.io.table import Cell, Column, Mark, Plot, Table
from judge.io.text import interval, plain, printable
from judge.records import Criterion
from judge.report import Folded, Noted, ReportPart, Said, Section, Tone
from judge.report.folders import RunFolder
from judge.report.sections import FLAGS, capped, scale_of, titled
from judge.results.citations import Measure, boards_of
from judge.results.details import labels_by_run
from judge.results.leaderboard import change_text, share_positive
from judge.results.pairs import RATINGS, rating_board
from judge.results.rows import Score, worded
from judge.results.tables import tie_letters


def leaderboards(folder: RunFolder) -> Iterator[Section]:
    """A section for each criterion, and one before it where runs are rated by pairs."""
    for name, said in folder.tables.advantages.items():
        rated = rating_board(folder.tables.ratings, name)
        yield Section(f"ratings-{name}", f"Ratings: {name}", (rated, Said(said), Said(" ".join(RATINGS.split()))))
    criteria = {criterion.name: criterion for criterion in boards_of(folder.judged.criteria)}
    slugs = safe_names(criteria)
    for name, rows in groups_of((row.criterion, row) for row in folder.tables.leaderboard).items():
        pairs = [pair for pair in folder.tables.differences if pair.criterion == name]
        letters = tie_letters([row.run_id for row in rows], pairs)
        missing = any(pair.if_worst is not None for pair in pairs)
        sheet = _sheet(rows, criteria[name], letters, missing=missing)
        yield Section(f"leaderboard-{slugs[name]}", f"Leaderboard: {name}", (sheet,))


def _sheet(rows: Sequence[Score], criterion: Criterion, letters: dict[str, str], *, missing: bool) -> Table[Any]:
    """`missing`: whether some grades are missing of which nobody knows that the run is the reason."""
    notes = [worded(", ".join(FLAGS[flag] for flag in row.flags), criterion.unit) for row in rows]
    units = f"{rows[0].cluster}s" if rows else "topics"
    over = "the mean with the worst grade for each turn without one; ranks go by it"
    if any({"HARNESS", "TRIAL"} & set(row.flags) for row in rows):
        over += (
            ". A turn whose grade is lacking through the provider, the budget or a trial counts as the run's other "
            "responses do on average"
        )
    alike = "runs that share a letter may differ by chance alone"
    if missing:
        alike += ", or only on the turns graded for both, or only if each missing grade were the worst"
    turns = "the turns that have a grade"
    if isinstance(criterion, Measure) and criterion.of.unit == "citation":
        turns = "all turns but those whose citations have no grade; one without a response counts 0"
    means = (
        f"over {turns}; in brackets, and as a bar in the picture, the range that holds the mean on "
        f"topics like these with 95 % confidence (over {units}); the longer the bar, the less is known"
    )
    positive = ", ".join(map(str, sorted(criterion.scale.positive)))
    columns: dict[Column, Sequence[Cell]] = {
        Column("rank"): [row.rank for row in rows],
        Column("run"): [row.run_id for row in rows],
        Column("mean grade", about=means): [row.mean for row in rows],
        Column("not told apart", about=alike): [letters.get(row.run_id) for row in rows],
        Column("over all turns", about=over): [row.bound for row in rows],
        Column("good responses", about=f"the share with a positive grade ({positive})"): [
            None if (share := share_positive(row)) is None else f"{100 * share:.0f} %" for row in rows
        ],
        Column("grades", about="on how many turns it has each grade"): [row.more.get("grades") for row in rows],
        Column("turns graded"): ["{n} of {turns}".format(**row.counts) for row in rows],
        Column("turns a topic", 1): [row.more.get("turns_per_topic") for row in rows],
        Column("note"): [note or None for note in notes],
    }
    reading = "A line for each run, the best first."
    if reasons := {row.mean.reason for row in rows if row.mean.reason}:
        reading += f" No range where it cannot be computed: {'; '.join(sorted(reasons))}."
    marks = tuple(((row.mean, False),) for row in rows)
    return _table(criterion, f": {scale_of(criterion)}", columns, reading, "mean grades with their 95 % ranges", marks)


def _table(
    criterion: Criterion,
    about: str,
    columns: Mapping[Column, Sequence[Cell]],
    reading: str,
    drawn: str,
    marks: tuple[tuple[Mark, ...], ...],
) -> Table[Any]:
    """A table of columns in the nouns of the criterion's unit, drawn over its scale; an empty column is left out."""
    unit = criterion.unit
    kept = {
        msgspec.structs.replace(column, name=worded(column.name, unit), about=worded(column.about, unit)): cells
        for column, cells in columns.items()
        if any(cell not in (None, "") for cell in cells)
    }
    title = titled(criterion.name) + about
    low, high = criterion.scale.ends
    plot = Plot(name=drawn, low=low, high=high, lines=marks)
    return Table(
        rows=zip(*kept.values(), strict=True),
        columns=kept,
        title=title,
        notes=[worded(reading, unit)],
        places=2,
        plot=plot,
    )


def corrected_boards(folder: RunFolder) -> Iterator[Section]:
    """The leaderboards corrected by gold, where there is gold."""
    outcome = folder.corrected
    if outcome is None:
        return
    if isinstance(outcome, str):
        yield Section("corrected", "Leaderboard, corrected by people's grades", (Said(capped(outcome), "warn"),))
        return
    said = (
        "People graded a part of these responses (the gold). Where they and the judge disagree, the judge's means are "
        "shifted by as much: the corrected mean is what people would have given, as far as the gold tells "
        "(prediction-powered inference, PPI++)."
    )
    parts: list[ReportPart] = [Said(worded(said, folder.judged.pool.unit))]
    if outcome.cautions:
        parts.append(Noted("To be known before any number:", tuple(map(capped, outcome.cautions))))
    for criterion in outcome.criteria:
        rows = [row for row in outcome.rows if row.criterion == criterion.name]
        parts.append(_corrected_sheet(rows, criterion))
        orders = "(Tau-b, tau-AP and RBO are 1 where both orders are equal; top k is the share of the k best in both.)"
        parts.append(Said(f"{change_text(outcome.changes[criterion.name])} {orders}"))
    yield Section("corrected", "Leaderboard, corrected by people's grades", tuple(parts))


def _corrected_sheet(rows: Sequence[Score], criterion: Criterion) -> Table[Any]:
    narrow = (
        "in brackets, and as a bar, its 95 % range. The range in the leaderboard above is about topics like these; "
        "this one is about these responses alone, and has no width where people graded every one"
    )
    raws = [row.raw for row in rows if row.raw is not None]
    minus = "on the responses that both graded; above zero, the judge gave the higher grades"
    over = "the corrected mean with the worst grade for each turn that has none; ranks go by it"
    columns: dict[Column, Sequence[Cell]] = {
        Column("rank"): [row.rank for row in rows],
        Column("run"): [row.run_id for row in rows],
        Column("corrected mean", about=narrow): [row.mean for row in rows],
        Column("by the judge"): [raw.mean.value for raw in raws],
        Column("judge minus people", signed=True, about=minus): [row.more.get("bias") for row in rows],
        Column("not told apart", about="runs that share a letter may differ by chance alone"): [
            row.place.letters or None if row.place else None for row in rows
        ],
        Column("possible ranks"): [row.ranks.replace("-", " to ") or None for row in rows],
        Column("over all turns", about=over): [row.bound for row in rows],
        Column("gold grades"): [f"{row.counts['gold']} of {raw.mean.n}" for row, raw in zip(rows, raws, strict=True)],
        Column("note"): [worded(", ".join(FLAGS[flag] for flag in row.flags), criterion.unit) or None for row in rows],
    }
    # Without its interval, so that two in a line do not lie upon each other.
    marks = tuple(
        ((msgspec.structs.replace(raw.mean, low=None, high=None), True), (row.mean, False))
        for row, raw in zip(rows, raws, strict=True)
    )
    reading = "A line for each run, the best first."
    about = f", corrected: {scale_of(criterion)}"
    return _table(
        criterion, about, columns, reading, "ring: mean by the judge, dot: corrected mean with its 95 % range", marks
    )


def sentence_labels(folder: RunFolder) -> Iterator[Section]:
    """A section for each criterion whose prompt asks for labels of sentences."""
    slugs = safe_names(criterion.name for criterion in folder.judged.criteria)
    for name, group in groups_of((row.criterion, row) for row in folder.tables.sentences).items():
        labels, by_run = labels_by_run(group)
        lines: list[tuple[Cell, ...]] = []
        for run_id, by_label in by_run.items():
            cells: list[Cell] = [run_id, next(iter(by_label.values())).counts["responses"]]
            for label in labels:
                cells += [by_label[label].mean, by_label[label].counts["with_label"]]
            lines.append(tuple(cells))
        columns = ("run", "responses", *(column for label in labels for column in (label, f"{label} in")))
        reading = (
            "A line for each run. Under each label: the share of a response's sentences that have it, on average, with "
            f"its 95 % interval over {group[0].cluster}s, and then in how many responses it occurs at all. Sentences "
            "that claim nothing are left out."
        )
        table = Table(
            rows=lines, columns=columns, title=f"{titled(name)}: labels of sentences", notes=[reading], places=2
        )
        yield Section(f"sentences-{slugs[name]}", f"Sentence by sentence: {name}", (table,))


_TONES: dict[Word, Tone] = {"TRUSTED": "good", "NOT TRUSTED": "bad", "INCONCLUSIVE": "warn"}
_MEANING: dict[Word, str] = {
    "TRUSTED": "it agrees with people at least as well as was required",
    "NOT TRUSTED": "it agrees with people less well than was required",
    "INCONCLUSIVE": "these grades do not tell whether it agrees well enough",
}
_NAMES = {"wkappa": "weighted kappa", "percent": "same grade", "bias": "judge minus people"}
"""What statistics are called here."""


def verdicts(calibration: Calibration) -> tuple[ReportPart, ...]:
    """What may be said of each judge, and the warnings that a reader must know before any number."""
    parts: list[ReportPart] = [Said(_verdict(verdict), _TONES[verdict.word]) for verdict in calibration.verdicts]
    if not calibration.verdicts:
        parts.append(Said("No verdict was asked for: a requirement such as wkappa.lo>=0.4 makes one."))
    warnings = tuple(capped(printable(warning)) for warning in calibration.warnings)
    return (*parts, Noted("To be known before any number:", warnings)) if warnings else tuple(parts)


def _verdict(verdict: TrustVerdict) -> str:
    text = (
        f"{titled(verdict.criterion)}: {verdict.word}. Of {printable(verdict.judge)}: {_MEANING[verdict.word]} "
        f"({called(verdict.statistic)} {interval(verdict.estimate, 2)}, {basis(verdict.estimate)})."
    )
    return text + (f" Because: {'; '.join(map(printable, verdict.reasons))}." if verdict.reasons else "")


def agreements(calibration: Calibration) -> Iterator[Section]:
    """A section for each criterion: the sentences and tables of `calibration.md`, and how to read them."""
    slugs = safe_names(criteria(calibration))
    for name in criteria(calibration):
        parts = [part for finding in chapter(calibration, name) for part in _parts(finding)]
        notes = Folded("How to read this", tuple(Said(plain(note)) for note in NOTES))
        yield Section(f"agreement-{slugs[name]}", f"Agreement with people: {name}", (*parts, notes))


def _parts(finding: Finding) -> Iterator[ReportPart]:
    """A finding as parts of the report: what is said before a table is how it is read."""
    said: list[str] = []
    title = finding.title
    for part in finding.parts:
        if isinstance(part, str):
            said.append(plain(part))
            continue
        reading = " ".join(said)
        # Here a table stands above what is said of it.
        notes = [f"{reading[:-1]}." if reading.endswith(":") else reading] if reading else []
        yield Table(
            part,
            part.columns,
            title=finding.title,
            notes=notes,
            places=part.places,
            plot=part.plot,
            shares=part.shares,
            chosen=part.chosen,
        )
        said = []
        title = ""
    if said:
        yield Said(" ".join([f"{title}:", *said] if title else said))


def called(statistic: str) -> str:
    """What a statistic is called in a report."""
    return _NAMES.get(statistic, heading(statistic))
