"""What the reports of a calibration call a statistic, a split and the basis of an estimate. Pure."""

from judge.calibrate.findings import Split
from judge.records import Estimate
from judge.text.cells import count
from judge.text.markup import prose

_LABELS = {"percent": "same", "alpha_ordinal": "alpha", "ac2": "AC2"}


def label(statistic: str) -> str:
    """A statistic as a column is headed."""
    return _LABELS.get(statistic) or prose(statistic)


def grades_of(split: Split) -> str:
    """The grades of a split, in words."""
    return "all grades" if split == "all" else f"{split} grades"


def basis(estimate: Estimate) -> str:
    """What an estimate rests on."""
    return f"n = {estimate.n} over {count(estimate.topics, 'topic')}"
