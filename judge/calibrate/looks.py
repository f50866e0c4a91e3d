"""What a look at gold asks: the responses that are compared, and every label that is set beside them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import Split
from judge.calibrate.panel import Column, Panel, constant
from judge.calibrate.selection import candidates, choose
from judge.gold import Look
from judge.gold.ledger import fewest
from judge.io.stored import sha256

_SHORT = 16
"""Hexadecimal digits of a candidate's digest."""


def look_at(asked: Mapping[str, Any], panels: Sequence[Panel], tried: Sequence[Panel] = ()) -> Look:
    """The look that a calibration takes at the grades that its verdicts rest on.

    Two calibrations ask the same question only if they set the same labels beside the same responses. So whoever drops
    responses from a pool, or asks a judge anew, takes another look. The digests cover no grade by an assessor.
    `tried` has the same gold beside labels that cannot be chosen here, such as those of other bounds of a cascade. They
    count as candidates; test grades are never set beside them.
    """
    question: list[Any] = [asked]
    compared: dict[str, int] = {}
    met: dict[str, tuple[str, ...]] = {}
    for panel in panels:
        split: Split = "test" if "test" in panel.split else panel.split[0]
        mask = panel.within(split)
        chosen = choose(panel, "dev") if "test" in panel.split else None
        judged = candidates(panel) if split != "test" else (chosen,) if chosen else ()
        baselines = [column for column in panel.columns if column.baseline] if judged else []
        labels = [_labels(panel, column, mask) for column in (*judged, *baselines)]
        places = np.flatnonzero(mask).tolist()
        question.append(
            {
                "criterion": panel.criterion,
                "grades": [panel.grades, sorted(panel.positive), panel.higher_is_better, panel.binary],
                "responses": sorted((panel.items[i].turn_id, panel.items[i].named) for i in places),
                "labels": labels,
            }
        )
        further = [] if split == "test" else _tried(tried, panel.criterion)
        question += [{"criterion": panel.criterion, "tried": further}] if further else []
        own = {_digest(of_judge)[:_SHORT] for of_judge in labels[: len(judged)]}
        met[panel.criterion] = tuple(sorted(own.union(further)))
        columns = (*judged, *baselines, *([constant(panel, mask)] if judged else []))
        compared[panel.criterion] = fewest(int((mask & (column.codes >= 0)).sum()) for column in columns)
    return Look(_digest(question), compared, met)


def _tried(panels: Sequence[Panel], criterion: str) -> list[str]:
    """The digests of the labels of every column, sorted."""
    return sorted(
        {
            _digest(_labels(panel, column, panel.within(panel.split[0])))[:_SHORT]
            for panel in panels
            if panel.criterion == criterion
            for column in candidates(panel)
        }
    )


def _labels(panel: Panel, column: Column, mask: NDArray[np.bool_]) -> list[Any]:
    """A judge's labels of the responses of a mask, each with its response; the judge's name is not among them."""
    labels = (
        [
            panel.items[i].turn_id,
            panel.items[i].named,
            column.samples[:, i].tolist(),
            None if np.isnan(column.expected[i]) else float(column.expected[i]),
        ]
        for i in np.flatnonzero(mask).tolist()
    )
    return sorted(labels, key=msgspec.json.encode)


def _digest(value: Any) -> str:
    return sha256(msgspec.json.encode(value, order="sorted"))
