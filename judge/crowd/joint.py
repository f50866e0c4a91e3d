"""Judges and a crowd's workers under one model, as a diagnostic that changes no grade. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from judge.ask.results import Labels
from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings, Item
from judge.errors import UsageError
from judge.io.ids import natural_key
from judge.io.table import tsv
from judge.io.text import decimals, printable
from judge.stats.consensus import against_others, mode_shares
from judge.stats.tables import Floats

DIAGNOSTIC = (
    "diagnostic only: one Dawid-Skene model of workers and judges together; the judges have no vote on any grade, "
    "qrels or gold"
)
"""What goes with every output of the joint model."""
_SMOOTHING = 0.125
"""Few pseudo-labels: the table is about raters, of whom more of them would say what is expected of any."""
_COLUMNS = (
    *("criterion", "kind", "name", "prompt", "labels", "left_out", "accuracy", "compared", "same", "deviation"),
    *("grades", "confusion", "note"),
)


def joint_tsv(crowds: Mapping[str, CrowdLabels], judges: Sequence[Labels]) -> str:
    """Accuracy of workers and judges under one Dawid-Skene model, and how they agree with the crowd alone.

    A judge with a vote on the grades that it is compared with would agree with itself. So the joint model makes no
    grades. `;` separates the rows of a confusion matrix (true grades); undefined numbers are empty. Crowds are by
    criterion, with the same item ids as the judges' labels. A UsageError if a judge is among the workers already, or no
    judge has a grade for an item of the crowd.
    """
    lines: list[tuple[object, ...]] = []
    for criterion, labels in crowds.items():
        votes = [judge for judge in judges if judge.prompt is None or judge.prompt.partition("/")[0] == criterion]
        lines += _lines(labels, votes) if votes else ()
    if not lines:
        raise UsageError(f"--with-judgments: no judgment is about {', '.join(crowds)}")
    return tsv(_COLUMNS, lines, 4)


def _lines(labels: CrowdLabels, votes: Sequence[Labels]) -> list[tuple[object, ...]]:
    if both := sorted({judge.judge for judge in votes} & set(labels.workers), key=natural_key):
        raise UsageError(
            f"{labels.criterion}: {', '.join(map(printable, both))} is among the crowd's workers, so the grades would "
            "be made from workers and judges together: a judge must not vote on labels that are to calibrate it"
        )
    cast = [_cast(labels, judge) for judge in votes]
    if not any(len(item) for item, _, _ in cast):
        raise UsageError(f"{labels.criterion}: no judge has a grade of an item of the crowd (are the ids the same?)")
    W = len(labels.workers)
    worker = [labels.worker, *(np.full(len(item), W + i, dtype=np.int32) for i, (item, _, _) in enumerate(cast))]
    item = [labels.item, *(item for item, _, _ in cast)]
    code = [labels.code, *(code for _, code, _ in cast)]
    joint = CrowdLabels(
        criterion=labels.criterion,
        grades=labels.grades,
        workers=(*labels.workers, *(judge.judge for judge in votes)),
        items=labels.items,
        worker=np.concatenate(worker),
        item=np.concatenate(item),
        code=np.concatenate(code),
    )
    fitted = AGGREGATORS["dawid-skene"].aggregate(joint, CrowdSettings(smoothing=_SMOOTHING))
    confusion = fitted.worker["confusion"]
    prior = fitted.fit.prior if fitted.fit is not None else np.full(len(labels.grades), np.nan)
    # A worker's own label does not count in the majority that it is compared with.
    of_workers = against_others(labels.worker, labels.item, labels.code, labels.counts, W)
    whole = mode_shares(labels.counts)
    tables = np.concatenate([of_workers, *(_table(whole[item], code)[None] for item, code, _ in cast)])
    values = np.asarray(labels.grades, dtype=np.float64)
    compared = np.rint(tables.sum(axis=(1, 2))).astype(np.int64)
    same = tables.trace(axis1=1, axis2=2)
    deviation = (tables * (values - values[:, None])).sum(axis=(1, 2))
    n = np.bincount(joint.worker, minlength=len(joint.workers))
    grades = ",".join(map(str, labels.grades))
    note = f"{DIAGNOSTIC}; {fitted.rule}"
    lines: list[tuple[object, ...]] = []
    for i, name in enumerate(joint.workers):
        prompt = votes[i - W].prompt if i >= W else None
        left_out = cast[i - W][2] if i >= W else 0
        accuracy = float(prior @ np.diagonal(confusion[i])) if n[i] else None
        rows = [",".join(decimals(p, 4) for p in row) for row in confusion[i].tolist()] if n[i] else []
        lines.append(
            (
                labels.criterion,
                "worker" if i < W else "judge",
                name,
                prompt,
                int(n[i]),
                left_out,
                accuracy,
                int(compared[i]),
                float(same[i] / compared[i]) if compared[i] else None,
                float(deviation[i] / compared[i]) if compared[i] else None,
                grades,
                ";".join(rows),
                note,
            )
        )
    return lines


def _cast(labels: CrowdLabels, judge: Labels) -> tuple[NDArray[np.int32], NDArray[np.int8], int]:
    """A judge's labels of the crowd's items, of the first sample: items, codes, and how many labels are left out."""
    index = {item: i for i, item in enumerate(labels.items)}
    code = {grade: i for i, grade in enumerate(labels.grades)}
    graded = 0
    codes: dict[int, int] = {}
    for label in judge.labels:
        if label.sample > 0 or label.grade is None:
            continue
        graded += 1
        item = Item(label.turn_id, label.response_id)
        if item in index and label.grade in code:
            codes[index[item]] = code[label.grade]
    return np.array(list(codes), dtype=np.int32), np.array(list(codes.values()), dtype=np.int8), graded - len(codes)


def _table(majority: Floats, code: NDArray[np.int8]) -> Floats:
    """The table (k x k) of the crowd's majority (n x k), in parts where grades tie, against a judge's codes (n,)."""
    k = majority.shape[1]
    columns = [majority[code == own].sum(axis=0) for own in range(k)]
    return np.stack(columns, axis=1)
