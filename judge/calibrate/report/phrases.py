"""How reports of a calibration name a statistic, a split and the basis of an estimate. Pure."""

from judge.calibrate.findings import Looks, Split
from judge.records import Estimate
from judge.stats.agreement import STATISTICS
from judge.text.cells import count
from judge.text.markup import prose

IN_REPORT = tuple(name for name, statistic in STATISTICS.items() if statistic.shown != "files")
"""The statistics that calibration.md shows."""
ON_TERMINAL = tuple(name for name, statistic in STATISTICS.items() if statistic.shown == "summary")
"""The statistics that the terminal shows too."""


def heading(statistic: str) -> str:
    """The heading of a statistic's column."""
    return STATISTICS[statistic].label or statistic


def label(statistic: str) -> str:
    """The heading of a statistic's column, escaped for Markdown."""
    return prose(heading(statistic))


def grades_of(split: Split) -> str:
    """The grades of a split, in words."""
    return "all grades" if split == "all" else f"{split} grades"


def basis(estimate: Estimate) -> str:
    """The numbers of items and topics that an estimate rests on."""
    return f"n = {estimate.n} over {count(estimate.topics, 'topic')}"


def looked_at(look: Looks) -> str:
    """How many questions these grades have answered so far, and how many candidates they have met."""
    grades = "sealed test grades" if look.ledger == "seal" else "grades"
    questions = count(look.number, "question")
    return f"so far {questions} to these {grades}, {count(look.candidates, 'candidate')} in all"
