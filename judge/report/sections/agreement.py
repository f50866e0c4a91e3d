"""The judge against people: how far they agree, where they differ, which prompt comes nearer. Pure."""

from collections.abc import Iterator

from judge.calibrate.findings import Calibration, TrustVerdict, Word
from judge.calibrate.report.lookup import Finding, basis, criteria, heading
from judge.calibrate.report.markdown import NOTES, chapter
from judge.io.cells import interval
from judge.io.markup import plain
from judge.io.safe import printable
from judge.io.table import Table
from judge.io.trec import safe_names
from judge.report.parts import Folded, Noted, ReportPart, Said, Section, Tone
from judge.report.sections.words import capped, titled

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
        yield Table(part, part.columns, finding.title, notes, part.places, part.plot, part.shares)
        said, title = [], ""
    if said:
        yield Said(" ".join([f"{title}:", *said] if title else said))


def called(statistic: str) -> str:
    """What a statistic is called in a report."""
    return _NAMES.get(statistic, heading(statistic))
