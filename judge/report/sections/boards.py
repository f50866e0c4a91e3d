"""The runs in their order: as the judge sees them, and corrected by gold. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from judge.calibrate.findings import Calibration, TrustVerdict, Word
from judge.calibrate.report.lookup import Finding, basis, criteria, heading
from judge.calibrate.report.pages import NOTES, chapter, second_year, unsaid
from judge.io.ids import groups_of, safe_names
from judge.io.table import Cell, Column, Mark, Plot, RecordColumns, Table, records_table
from judge.io.text import interval, plain, printable
from judge.records import Criterion
from judge.report import Folded, Noted, ReportPart, Said, Section, Tone
from judge.report.folders import RunFolder
from judge.report.sections import capped, flag_words, scale_of, titled
from judge.results.citations import Measure, boards_of
from judge.results.details import labels_by_run
from judge.results.leaderboard import EVERY_GRADED, change_text, mean_shown, share_positive
from judge.results.pairs import RATINGS, rating_board
from judge.results.rows import Score
from judge.results.tables import tie_letters
from judge.results.used import ABOUT, graded_by, use_tables
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
        # A measure is its own board, of which a criterion has many; `Leaderboard` before each of them says nothing.
        title = titled(name) if isinstance(criteria[name], Measure) else f"Leaderboard: {name}"
        yield Section(f"leaderboard-{slugs[name]}", title, (sheet,))


def used(folder: RunFolder) -> Iterator[Section]:
    """Whether the used passages are relevant, where passages of the same runs are judged."""
    relevance = folder.judged.used
    if relevance is not None:
        parts: list[ReportPart] = [*use_tables(relevance), Said(ABOUT), Said(graded_by(relevance))]
        yield Section("used-passages", "Relevance of the used passages", tuple(parts))


def _flag_note(nouns: Nouns) -> Callable[[Score], str | None]:
    """What the flags of a run say; None without a flag."""
    words = flag_words(nouns)
    return lambda row: ", ".join(words[flag] for flag in row.flags) or None


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
    what = "mean" if isinstance(criterion, Measure) else "mean grade"
    if isinstance(criterion, Measure) and not criterion.of_pairs:
        turns = "all turns but those whose citations have no grade; one without a response counts 0"
    means = (
        f"over {turns}; in brackets, and as a bar in the picture, the range that holds the mean on "
        f"topics like these with 95 % confidence (over {units}); the longer the bar, the less is known"
    )
    positive = ", ".join(map(str, sorted(criterion.scale.positive)))
    columns: RecordColumns = {
        Column("rank"): lambda row: row.rank,
        Column("run"): lambda row: row.run_id,
        Column(what, about=means): lambda row: row.mean,
        Column("not told apart", about=alike): lambda row: letters.get(row.run_id),
        Column(f"over all {nouns.turns}", about=over): lambda row: row.bound,
        Column(f"good {nouns.responses}", about=f"the share with a positive grade ({positive})"): _good,
        Column("grades", about=f"on how many {nouns.turns} it has each grade"): lambda row: row.more.get("grades"),
        Column(f"{nouns.turns} graded"): lambda row: "{n} of {turns}".format(**row.counts),
        Column(f"{nouns.turns} a topic", 1): lambda row: row.more.get("turns_per_topic"),
        Column("note"): _flag_note(nouns),
    }
    reading = "A line for each run, the best first."
    if reasons := {row.mean.reason for row in rows if row.mean.reason}:
        reading += f" No range where it cannot be computed: {'; '.join(sorted(reasons))}."
    return _board(criterion, f": {scale_of(criterion)}", columns, rows, reading, f"{what}s with their 95 % ranges")


def _good(row: Score) -> str | None:
    share = share_positive(row)
    return None if share is None else f"{100 * share:.0f} %"


def _board(
    criterion: Criterion, about: str, columns: RecordColumns, rows: Sequence[Score], reading: str, drawn: str
) -> Table[Any]:
    """The rows of a criterion, drawn over its scale; a column in which there is nothing to say is left out."""
    filled = {column: cell for column, cell in columns.items() if any(cell(row) not in (None, "") for row in rows)}
    low, high = criterion.scale.ends
    plot = Plot(name=drawn, low=low, high=high, lines=tuple(map(_marks, rows)))
    return records_table(filled, rows, titled(criterion.name) + about, [reading], places=2, plot=plot)


def _marks(row: Score) -> tuple[Mark, ...]:
    """The mean; of a corrected run first the mean by the judge."""
    if row.raw is None:
        return ((row.mean, False),)
    # Without its interval, so that two in a line do not lie upon each other.
    before = msgspec.structs.replace(row.raw.mean, low=None, high=None)
    return (before, True), (mean_shown(row), False)


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
        f"The gold is people's grades of these {responses}, or of a part of them. Where they and the judge disagree, "
        "the judge's means are shifted by as much: the corrected mean is what people would have given, as far as the "
        "gold tells (prediction-powered inference, PPI++)."
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
        f"this one is about these {nouns.responses} alone, and there is none where people graded every one"
    )
    minus = f"on the {nouns.responses} that both graded; above zero, the judge gave the higher grades"
    over = f"the corrected mean with the worst grade for each {nouns.turn} that has none; ranks go by it"
    columns: RecordColumns = {
        Column("rank"): lambda row: row.rank,
        Column("run"): lambda row: row.run_id,
        Column("corrected mean", about=narrow): mean_shown,
        Column("by the judge"): lambda row: row.raw.mean.value,
        Column("judge minus people", signed=True, about=minus): lambda row: row.more.get("bias"),
        Column("not told apart", about="runs that share a letter may differ by chance alone"): (
            lambda row: (row.place and row.place.letters) or None
        ),
        Column("possible ranks"): lambda row: row.ranks.replace("-", " to ") or None,
        Column(f"over all {nouns.turns}", about=over): lambda row: row.bound,
        Column("gold grades"): lambda row: f"{row.counts['gold']} of {row.raw.mean.n}",
        Column("note"): _flag_note(nouns),
    }
    about = f", corrected: {scale_of(criterion)}"
    drawn = "ring: mean by the judge, dot: corrected mean with its 95 % range"
    reading = "A line for each run, the best first."
    if EVERY_GRADED in {mean_shown(row).reason for row in rows}:
        reading += f" No range where {EVERY_GRADED}."
    return _board(criterion, about, columns, rows, reading, drawn)


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
    "TRUSTED": "{judge} agrees with people at least as well as was required",
    "NOT TRUSTED": "{judge} agrees with people less well than was required",
    "INCONCLUSIVE": "the gold does not tell whether {judge} agrees with people well enough",
}
_NAMES = {"wkappa": "weighted kappa", "percent": "same grade", "bias": "judge minus people"}
"""What statistics are called here."""


def verdicts(calibration: Calibration) -> tuple[ReportPart, ...]:
    """What may be said of each judge, and the warnings that a reader must know before any number."""
    parts: list[ReportPart] = [Said(_verdict(verdict), _TONES[verdict.word]) for verdict in calibration.verdicts]
    if not calibration.verdicts:
        parts.append(Said("No verdict was asked for: a requirement such as wkappa.lo>=0.4 makes one."))
    for name in criteria(calibration):
        parts += [Said(f"{titled(name)}: {printable(text)}") for text in second_year(calibration, name)]
    warnings = tuple(capped(printable(warning)) for warning in unsaid(calibration))
    return (*parts, Noted("To be known before any number:", warnings)) if warnings else tuple(parts)


def _verdict(verdict: TrustVerdict) -> str:
    meaning = _MEANING[verdict.word].format(judge=printable(verdict.judge))
    text = (
        f"{titled(verdict.criterion)}: {verdict.word}: {meaning} "
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
