"""The tables that show how a crowd's grades came about, as TSV with fixed headers; undefined numbers are empty."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from judge.crowd.aggregators import Aggregated
from judge.crowd.labels import CrowdLabels
from judge.crowd.study import Study
from judge.text.tsv import tsv as tsv

_ITEM_COLUMNS = ("turn_id", "item_id", "criterion", "grade", "n", "tied", "mean", "entropy", "unvoted")
_REMOVED_COLUMNS = ("topic_id", "worker", "turn_id", "item_id", "criterion", "label", "acceptable")
_FEW_COLUMNS = ("turn_id", "item_id", "criterion", "n", "n_before_filter")
_PAIR_COLUMNS = ("criterion", "worker_a", "worker_b", "n", "same", "kappa", "wkappa", "share_of_workers")
_RELIABILITY_COLUMNS = (
    *("criterion", "topic_id", "labels_of", "alpha", "alpha_lo", "alpha_hi", "items", "topics", "workers", "labels"),
    "note",
)
_WORKER_COLUMNS = (
    *("worker", "criterion", "labels", "topics", "removed_topics", "compared", "same", "deviation", "kappa", "wkappa"),
    *("commonest", "commonest_share", "entropy", "longest_run", "alike", "median_seconds", "too_fast", "flags"),
)


def audit_files(study: Study) -> dict[str, bytes]:
    """File name to content; `removed.tsv` only if known items were given."""
    files = {
        "items.tsv": _items(study),
        "workers.tsv": _workers(study),
        "few_labels.tsv": tsv(_FEW_COLUMNS, (row for rows in study.few.values() for row in rows)),
        "pairwise.tsv": _pairs(study),
        "reliability.tsv": _reliability(study),
    }
    if study.audit is not None:
        removals = ([*row[:-1], ",".join(map(str, row.acceptable))] for row in study.audit.removals)
        files["removed.tsv"] = tsv(_REMOVED_COLUMNS, removals)
    return {name: text.encode() for name, text in files.items()}


def _items(study: Study) -> str:
    """A row for each item and criterion; no grade where no label is left."""
    scale = sorted({grade for labels in study.labels.values() for grade in labels.grades})
    modeled = any(aggregated.posterior is not None for aggregated in study.aggregated.values())
    columns = [*_ITEM_COLUMNS, *(f"count_{grade}" for grade in scale)]
    columns += [f"p_{grade}" for grade in scale] if modeled else []
    criteria = study.aggregated.items()
    return tsv(
        columns, (row for name, aggregated in criteria for row in _item_rows(study.labels[name], aggregated, scale))
    )


def _item_rows(labels: CrowdLabels, aggregated: Aggregated, scale: Sequence[int]) -> Iterator[list[object]]:
    place = [labels.grades.index(grade) if grade in labels.grades else None for grade in scale]
    posterior = aggregated.posterior
    for i, (item, code, n) in enumerate(
        zip(labels.items, aggregated.code.tolist(), aggregated.n.tolist(), strict=True)
    ):
        counts = aggregated.counts[i].tolist()
        row: list[object] = [item.turn_id, item.item_id, labels.criterion, labels.grades[code] if n else None, n]
        row += (
            [
                bool(aggregated.tied[i]),
                float(aggregated.mean[i]),
                float(aggregated.entropy[i]),
                bool(aggregated.unvoted[i]),
            ]
            if n
            else [None] * 4
        )
        row += [None if p is None else counts[p] for p in place]
        if posterior is not None:
            row += [None if p is None or not n else float(posterior[i, p]) for p in place]
        yield row


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


def _reliability(study: Study) -> str:
    return tsv(
        _RELIABILITY_COLUMNS,
        (
            [
                *(row.criterion, row.topic, row.of, row.alpha.value, row.alpha.low, row.alpha.high),
                *(row.alpha.n, row.alpha.topics, row.workers, row.labels, row.alpha.reason),
            ]
            for row in study.reliability
        ),
    )
