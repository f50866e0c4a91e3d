"""Which records of a calibration belong together, in which order they are shown, and how reports name them. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from judge.calibrate.findings import AgreementRow, Calibration, Choice, ComparisonRow, Looks, Split, TrustVerdict
from judge.io.ids import NaturalKey, groups_of, natural_key
from judge.io.table import Table
from judge.io.text import count
from judge.records import Estimate
from judge.stats.agreement import STATISTICS

SEPARABLE = 0.05
"""The level at which the reports call two candidates separable."""
IN_REPORT = tuple(name for name, statistic in STATISTICS.items() if statistic.shown != "files")
ON_TERMINAL = tuple(name for name, statistic in STATISTICS.items() if statistic.shown == "summary")
SPLITS: tuple[Split, ...] = ("test", "all", "dev")


class Finding(NamedTuple):
    """Sentences and tables under a heading; without one, a sentence more of the finding before."""

    title: str
    parts: tuple[str | Table[Any], ...]
    """A sentence has words of judge's own with names in them, for `told`."""


class _OfCriterion(Protocol):
    @property
    def criterion(self) -> str: ...


_Record = TypeVar("_Record", bound=_OfCriterion)


def of(records: Iterable[_Record], criterion: str) -> list[_Record]:
    """The records of one criterion, in their order."""
    return [record for record in records if record.criterion == criterion]


def criteria(calibration: Calibration) -> list[str]:
    """Every criterion that has a record, in order of appearance."""
    records: tuple[_OfCriterion, ...] = (*calibration.agreement, *calibration.verdicts, *calibration.selections)
    return list(dict.fromkeys(record.criterion for record in records))


def selection_of(calibration: Calibration, criterion: str) -> Choice | None:
    """The choice made under the criterion; None without one."""
    return next(iter(of(calibration.selections, criterion)), None)


def verdict_of(calibration: Calibration, criterion: str) -> TrustVerdict | None:
    """The verdict that the criterion's report shows: if possible, of the chosen judge and on test grades."""
    selection = selection_of(calibration, criterion)
    chosen = selection.chosen if selection else None
    return min(
        of(calibration.verdicts, criterion),
        key=lambda verdict: (verdict.judge != chosen, SPLITS.index(verdict.split)),
        default=None,
    )


def chosen_of(calibration: Calibration, criterion: str) -> str | None:
    """The name of the judge that the criterion's report is about."""
    selection = selection_of(calibration, criterion)
    verdict = verdict_of(calibration, criterion)
    return selection.chosen if selection else verdict.judge if verdict else None


def split_of(calibration: Calibration, criterion: str) -> Split:
    """The split that the criterion's report is about: the verdict's, or the first of test, all and dev."""
    verdict = verdict_of(calibration, criterion)
    splits = {row.split for row in of(calibration.agreement, criterion)}
    return verdict.split if verdict else min(splits or SPLITS, key=SPLITS.index)


def best_first(rows: Iterable[AgreementRow]) -> list[AgreementRow]:
    """Rows by the lower end of the primary statistic, then by its value; undefined ones last."""

    def place(row: AgreementRow) -> tuple[float, float, NaturalKey]:
        primary = row.statistics.get(row.primary)
        ends = (primary.low, primary.value) if primary else (None, None)
        low, value = (math.inf if end is None else -end for end in ends)
        return low, value, natural_key(row.name)

    return sorted(rows, key=place)


def row_of(rows: Sequence[AgreementRow], name: str | None, split: Split) -> AgreementRow | None:
    """The row of a judge on a split; None without one."""
    return next((row for row in rows if row.name == name and row.split == split), None)


def heading(statistic: str) -> str:
    """The heading of a statistic's column."""
    return STATISTICS[statistic].label or statistic


def separable(row: ComparisonRow) -> bool:
    """Whether two candidates are told apart, by max-T."""
    return row.p_max_t is not None and row.p_max_t <= SEPARABLE


def grades_of(split: Split) -> str:
    """The grades of a split, in words."""
    return "all grades" if split == "all" else f"{split} grades"


def over(estimate: Estimate | AgreementRow) -> str:
    """The numbers of items and topics of an estimate, for a cell."""
    return f"{estimate.n}/{estimate.topics}"


def basis(estimate: Estimate) -> str:
    """The numbers of items and topics that an estimate rests on."""
    return f"n = {estimate.n} over {count(estimate.topics, 'topic')}"


def looked_at(look: Looks) -> str:
    """How many questions the sealed grades have answered so far, and how many candidates they have met."""
    questions = count(look.number, "question")
    return f"the sealed test grades have answered {questions}, about {count(look.candidates, 'candidate')} in all"


def merged(named: Iterable[tuple[str, str | None]]) -> str:
    """Every reason once, after its names: `kappa, wkappa: all grades equal; ac1: fewer than 5 topics`."""
    by_reason = groups_of((reason, name) for name, reason in named if reason)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())


def why_undefined(row: Any) -> str:
    """Every reason why a statistic of a row has no value or no interval."""
    return merged((name, estimate.reason) for name, estimate in row.statistics.items())
