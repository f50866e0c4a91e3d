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
from judge.report.sections import capped, flag_words, scale_of, titled
from judge.results.citations import Measure, boards_of
from judge.results.details import labels_by_run
from judge.results.leaderboard import change_text, share_positive
from judge.results.pairs import RATINGS, rating_board
from judge.results.rows import Score
from judge.results.tables import tie_letters
from judge.units import UNITS
from judge.units.unit import Nouns


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


def _flag_notes(rows: Sequence[Score], nouns: Nouns) -> list[str | None]:
    """What the flags of each run say; None without a flag."""
    words = flag_words(nouns)
    return [", ".join(words[flag] for flag in row.flags) or None for row in rows]


def _sheet(rows: Sequence[Score], criterion: Criterion, letters: dict[str, str], *, missing: bool) -> Table[Any]:
    """`missing`: whether some grades are missing of which nobody knows that the run is the reason."""
    nouns = UNITS[criterion.unit].nouns
    units = f"{rows[0].cluster}s" if rows else "topics"
    over = f"the mean with the worst grade for each {nouns.turn} without one; ranks go by it"
    if any({"HARNESS", "TRIAL"} & set(row.flags) for row in rows):
        over += (
            f". A {nouns.turn} whose grade is lacking through the provider, the budget or a trial counts as the run's "
            f"other {nouns.responses} do on average"
        )
    alike = "runs that share a letter may differ by chance alone"
    if missing:
        alike += f", or only on the {nouns.turns} graded for both, or only if each missing grade were the worst"
    turns = f"the {nouns.turns} that have a grade"
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
        Column(f"over all {nouns.turns}", about=over): [row.bound for row in rows],
        Column(f"good {nouns.responses}", about=f"the share with a positive grade ({positive})"): [
            None if (share := share_positive(row)) is None else f"{100 * share:.0f} %" for row in rows
        ],
        Column("grades", about=f"on how many {nouns.turns} it has each grade"): [
            row.more.get("grades") for row in rows
        ],
        Column(f"{nouns.turns} graded"): ["{n} of {turns}".format(**row.counts) for row in rows],
        Column(f"{nouns.turns} a topic", 1): [row.more.get("turns_per_topic") for row in rows],
        Column("note"): _flag_notes(rows, nouns),
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
    """A table of columns, drawn over the scale of the criterion; an empty column is left out."""
    kept = {column: cells for column, cells in columns.items() if any(cell not in (None, "") for cell in cells)}
    title = titled(criterion.name) + about
    low, high = criterion.scale.ends
    plot = Plot(name=drawn, low=low, high=high, lines=marks)
    return Table(
        rows=zip(*kept.values(), strict=True),
        columns=kept,
        title=title,
        notes=[reading],
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
    responses = UNITS[folder.judged.pool.unit].nouns.responses
    said = (
        f"People graded a part of these {responses} (the gold). Where they and the judge disagree, the judge's means "
        "are shifted by as much: the corrected mean is what people would have given, as far as the gold tells "
        "(prediction-powered inference, PPI++)."
    )
    parts: list[ReportPart] = [Said(said)]
    if outcome.cautions:
        parts.append(Noted("To be known before any number:", tuple(map(capped, outcome.cautions))))
    for criterion in outcome.criteria:
        rows = [row for row in outcome.rows if row.criterion == criterion.name]
        parts.append(_corrected_sheet(rows, criterion))
        orders = "(Tau-b, tau-AP and RBO are 1 where both orders are equal; top k is the share of the k best in both.)"
        parts.append(Said(f"{change_text(outcome.changes[criterion.name])} {orders}"))
    yield Section("corrected", "Leaderboard, corrected by people's grades", tuple(parts))


def _corrected_sheet(rows: Sequence[Score], criterion: Criterion) -> Table[Any]:
    nouns = UNITS[criterion.unit].nouns
    narrow = (
        "in brackets, and as a bar, its 95 % range. The range in the leaderboard above is about topics like these; "
        f"this one is about these {nouns.responses} alone, and has no width where people graded every one"
    )
    raws = [row.raw for row in rows if row.raw is not None]
    minus = f"on the {nouns.responses} that both graded; above zero, the judge gave the higher grades"
    over = f"the corrected mean with the worst grade for each {nouns.turn} that has none; ranks go by it"
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
        Column(f"over all {nouns.turns}", about=over): [row.bound for row in rows],
        Column("gold grades"): [f"{row.counts['gold']} of {raw.mean.n}" for row, raw in zip(rows, raws, strict=True)],
        Column("note"): _flag_notes(rows, nouns),
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
