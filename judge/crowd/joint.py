"""Crowd workers and LLM judges under one model, as a diagnostic that changes no grade. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.ask.labels import Labels
from judge.crowd.aggregators import AGGREGATORS, AggregatorOptions
from judge.crowd.labels import CrowdLabels, Item
from judge.errors import UsageError
from judge.io.cells import decimals
from judge.io.ids import natural_key
from judge.io.safe import printable
from judge.io.table import tsv
from judge.stats.consensus import majority, without_one

DIAGNOSTIC = (
    "diagnostic only: one Dawid-Skene model of workers and judges together; the judges have no vote on any grade, "
    "qrels or gold"
)
"""What goes with every output of the joint model."""
_COLUMNS = (
    *("criterion", "kind", "name", "prompt", "labels", "left_out", "accuracy", "compared", "same", "deviation"),
    *("grades", "confusion", "note"),
)


class Rater(msgspec.Struct, frozen=True):
    """A worker or a judge under the joint model."""

    criterion: str
    kind: str
    """`worker` or `judge`."""
    name: str
    prompt: str | None
    """`criterion/variant` of a judge."""
    labels: int
    """How many grades it gave to the crowd's items; for a judge, in the first sample."""
    left_out: int
    """How many grades are for other items or off the crowd's scale."""
    accuracy: float | None
    """Probability of naming the true grade, over the joint model's grades; None without labels."""
    confusion: tuple[tuple[float, ...], ...] | None
    """P(said | true), rows true, both ascending."""
    compared: int
    """Items that have a grade by the crowd without this rater."""
    same: float | None
    """Share of these items whose label equals the crowd's majority; a worker's own label does not count there."""
    deviation: float | None
    """Mean of label - majority over them, in scale values."""


class Diagnostic(NamedTuple):
    """Workers and judges under one model. It holds no grades, so nobody can use them by mistake."""

    criterion: str
    grades: tuple[int, ...]
    raters: tuple[Rater, ...]
    """Workers, then judges."""
    rule: str


def joint_diagnostic(labels: CrowdLabels, judges: Sequence[Labels]) -> Diagnostic:
    """Accuracy of workers and judges under one Dawid-Skene model, and how they agree with the crowd alone.

    A judge with a vote on the grades that it is compared with would agree with itself. So the joint model makes no
    grades. Judges' labels of another criterion are skipped.

    Args:
        labels: The crowd's labels, with the same item ids as the judges'.
        judges: The judges' labels, as `read_labels` gives them.

    Raises:
        UsageError: A judge is among the workers already, or no judge has a grade for an item of the crowd.
    """
    votes = [judge for judge in judges if judge.prompt is None or judge.prompt.partition("/")[0] == labels.criterion]
    if both := sorted({judge.judge for judge in votes} & set(labels.workers), key=natural_key):
        raise UsageError(
            f"{labels.criterion}: {', '.join(map(printable, both))} is among the crowd's workers, so the grades would "
            "be made from workers and judges together: a judge must not vote on labels that are to calibrate it"
        )
    cast = [_cast(labels, judge) for judge in votes]
    if not any(len(item) for item, _, _ in cast):
        raise UsageError(f"{labels.criterion}: no judge has a grade of an item of the crowd (are the ids the same?)")
    W = len(labels.workers)
    joint = CrowdLabels(
        criterion=labels.criterion,
        grades=labels.grades,
        workers=(*labels.workers, *(judge.judge for judge in votes)),
        items=labels.items,
        worker=np.concatenate(
            [labels.worker, *(np.full(len(item), W + i, dtype=np.int32) for i, (item, _, _) in enumerate(cast))]
        ),
        item=np.concatenate([labels.item, *(item for item, _, _ in cast)]),
        code=np.concatenate([labels.code, *(code for _, code, _ in cast)]),
    )
    fitted = AGGREGATORS["dawid-skene"](joint, AggregatorOptions())
    confusion = fitted.worker["confusion"]
    prior = fitted.fit.prior if fitted.fit is not None else np.full(len(labels.grades), np.nan)
    own = _crowd_without(labels)
    whole = majority(labels.counts, labels.grades)
    compared, same, deviation = _agreement(joint, np.concatenate([own, *(whole[item] for item, _, _ in cast)]))
    n = np.bincount(joint.worker, minlength=len(joint.workers))
    raters = tuple(
        Rater(
            criterion=labels.criterion,
            kind="worker" if i < W else "judge",
            name=name,
            prompt=None if i < W else votes[i - W].prompt,
            labels=int(n[i]),
            left_out=0 if i < W else cast[i - W][2],
            accuracy=float(prior @ np.diagonal(confusion[i])) if n[i] else None,
            confusion=tuple(tuple(row) for row in confusion[i].tolist()) if n[i] else None,
            compared=int(compared[i]),
            same=float(same[i] / compared[i]) if compared[i] else None,
            deviation=float(deviation[i] / compared[i]) if compared[i] else None,
        )
        for i, name in enumerate(joint.workers)
    )
    return Diagnostic(labels.criterion, labels.grades, raters, f"{DIAGNOSTIC}; {fitted.rule}")


def _cast(labels: CrowdLabels, judge: Labels) -> tuple[NDArray[np.int32], NDArray[np.int8], int]:
    """A judge's labels of the crowd's items: their items, their codes, and how many labels are left out."""
    where = {item: i for i, item in enumerate(labels.items)}
    code = {grade: i for i, grade in enumerate(labels.grades)}
    first = [(Item(label.turn_id, label.response_id), label.grade) for label in judge.labels if label.sample == 0]
    given = [(item, grade) for item, grade in first if grade is not None]
    pairs = [(where.get(item), code.get(grade)) for item, grade in given]
    kept = {item: grade for item, grade in pairs if item is not None and grade is not None}
    return (np.array(list(kept), dtype=np.int32), np.array(list(kept.values()), dtype=np.int8), len(given) - len(kept))


def _crowd_without(labels: CrowdLabels) -> NDArray[np.int8]:
    """(L,), for each label the majority of the other workers' labels of its item; -1 without any."""
    rest = without_one(labels.counts, labels.grades)
    return rest[labels.item, labels.code]


def _agreement(
    joint: CrowdLabels, reference: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """For each rater the labels compared with a reference, the equal ones, and the sum of differences."""
    known = reference >= 0
    rater, said, expected = joint.worker[known], joint.code[known], reference[known]
    values = np.asarray(joint.grades, dtype=np.float64)
    R = len(joint.workers)
    return (
        np.bincount(rater, minlength=R),
        np.bincount(rater[said == expected], minlength=R),
        np.bincount(rater, weights=values[said] - values[expected], minlength=R).astype(np.float64),
    )


def diagnostic_tsv(diagnostics: Iterable[Diagnostic]) -> str:
    """All raters under one header; `;` separates the rows of a confusion matrix; undefined numbers are empty."""
    lines = (
        (
            *(rater.criterion, rater.kind, rater.name, rater.prompt, rater.labels, rater.left_out, rater.accuracy),
            *(rater.compared, rater.same, rater.deviation, ",".join(map(str, diagnostic.grades))),
            ";".join(",".join(decimals(p, 4) for p in row) for row in rater.confusion or ()),
            diagnostic.rule,
        )
        for diagnostic in diagnostics
        for rater in diagnostic.raters
    )
    return tsv(_COLUMNS, lines, 4)
