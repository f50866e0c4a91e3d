"""The tables that show how a crowd's grades came about, as TSV with fixed headers; undefined numbers are empty."""

from collections.abc import Iterator

import msgspec
import numpy as np

from judge.crowd.study import Study
from judge.records import Record
from judge.text.table import fields, records_tsv, tsv

_ITEM_COLUMNS = ("criterion", "grade", "n", "tied", "mean", "entropy", "unvoted")
_REMOVED_COLUMNS = ("criterion", "label", "acceptable")
_FEW_COLUMNS = ("criterion", "n", "n_before_filter")
_PAIR_COLUMNS = ("criterion", "worker_a", "worker_b", "n", "same", "kappa", "wkappa", "share_of_workers")
_RELIABILITY = {
    **fields("criterion topic_id=topic labels_of=of alpha=alpha.value alpha_lo=alpha.low alpha_hi=alpha.high"),
    **fields("items=alpha.n topics=alpha.topics workers labels note=alpha.reason"),
}
_WORKER_COLUMNS = (
    *("worker", "criterion", "labels", "topics", "removed_topics", "compared", "same", "deviation", "kappa", "wkappa"),
    *("commonest", "commonest_share", "entropy", "longest_run", "alike", "median_seconds", "too_fast", "flags"),
)


class ItemGrade(Record, frozen=True):
    """An item's grade under a criterion, and what it was made from; undefined numbers are None."""

    turn_id: str
    response_id: str
    criterion: str
    grade: int | None
    """None where no label is left; so are the fields below `n`."""
    n: int
    """Labels."""
    tied: bool | None
    mean: float | None
    entropy: float | None
    """Of the labels, in bits."""
    unvoted: bool | None
    count: dict[str, int]
    """How many labels name each grade."""
    p: dict[str, float] | None
    """The probability of each grade, where a model gave the grades."""


def audit_files(study: Study, item: str = "response_id") -> dict[str, bytes]:
    """File name to content; `removed.tsv` only if known items were given.

    Args:
        study: The grades.
        item: The name of the column of ids.
    """
    files = {
        "items.tsv": _items(study, item),
        "workers.tsv": _workers(study),
        "few_labels.tsv": tsv(("turn_id", item, *_FEW_COLUMNS), (row for rows in study.few.values() for row in rows)),
        "pairwise.tsv": _pairs(study),
        "reliability.tsv": records_tsv(_RELIABILITY, study.reliability),
    }
    if study.audit is not None:
        removals = ([*row[:-1], ",".join(map(str, row.acceptable))] for row in study.audit.removals)
        files["removed.tsv"] = tsv(("topic_id", "worker", "turn_id", item, *_REMOVED_COLUMNS), removals)
    return {name: text.encode() for name, text in files.items()}


def _items(study: Study, item: str) -> str:
    """A row for each item and criterion; no grade where no label is left."""
    scale = [str(grade) for grade in sorted({grade for labels in study.labels.values() for grade in labels.grades})]
    modeled = any(aggregated.posterior is not None for aggregated in study.aggregated.values())
    columns = ["turn_id", item, *_ITEM_COLUMNS, *(f"count_{grade}" for grade in scale)]
    columns += [f"p_{grade}" for grade in scale] if modeled else []
    return tsv(
        columns,
        (
            [
                *(getattr(row, name) for name in ("turn_id", "response_id", *_ITEM_COLUMNS)),
                *map(row.count.get, scale),
                *(map((row.p or {}).get, scale) if modeled else ()),
            ]
            for row in item_grades(study)
        ),
    )


def item_grades(study: Study) -> Iterator[ItemGrade]:
    """The grade of each item under each criterion, in natural order of turn and item."""
    for name, aggregated in study.aggregated.items():
        labels = study.labels[name]
        scale = [str(grade) for grade in labels.grades]
        posterior = aggregated.posterior
        codes, labeled = aggregated.code.tolist(), aggregated.n.tolist()
        for i, (item, code, n) in enumerate(zip(labels.items, codes, labeled, strict=True)):
            yield ItemGrade(
                turn_id=item.turn_id,
                response_id=item.item_id,
                criterion=name,
                grade=labels.grades[code] if n else None,
                n=n,
                tied=bool(aggregated.tied[i]) if n else None,
                mean=float(aggregated.mean[i]) if n else None,
                entropy=float(aggregated.entropy[i]) if n else None,
                unvoted=bool(aggregated.unvoted[i]) if n else None,
                count=dict(zip(scale, aggregated.counts[i].tolist(), strict=True)),
                p=None if posterior is None or not n else dict(zip(scale, posterior[i].tolist(), strict=True)),
            )


def _workers(study: Study) -> str:
    """A row for each worker and criterion, with the aggregator's own parameters last."""
    parameters = {
        name: {key: values for key, values in aggregated.worker.items() if values.ndim == 1}
        for name, aggregated in study.aggregated.items()
    }
    keys = sorted({key for named in parameters.values() for key in named})
    places = {name: {worker: i for i, worker in enumerate(labels.workers)} for name, labels in study.labels.items()}

    def own(worker: str, criterion: str) -> Iterator[float | None]:
        for key in keys:
            values, place = parameters[criterion].get(key), places[criterion].get(worker)
            value = np.nan if values is None or place is None else float(values[place])
            yield value if np.isfinite(value) else None

    return tsv(
        [*_WORKER_COLUMNS, *(f"{study.settings.aggregator}_{key}" for key in keys)],
        ([*msgspec.structs.astuple(r)[:-1], ",".join(r.flags), *own(r.worker, r.criterion)] for r in study.workers),
    )


def _pairs(study: Study) -> str:
    rows = ((*msgspec.structs.astuple(row), pairs.sampled) for pairs in study.pairs.values() for row in pairs.rows)
    return tsv(_PAIR_COLUMNS, rows)
