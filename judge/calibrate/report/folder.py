"""The files of a calibration: names and bytes, the same for the same findings."""

import msgspec

from judge.calibrate.findings import Calibration
from judge.calibrate.report.lookup import best_first
from judge.calibrate.report.markdown import calibration_markdown
from judge.calibrate.report.plots import confusion_maps, forest
from judge.calibrate.report.tables import (
    CALIBRATION_MAP,
    CASCADE_BOUNDS,
    CASCADES,
    COMPARISONS,
    DIAGNOSTICS,
    EQUIVALENCE,
    LINES,
    PROBABILITIES,
    SYSTEMS,
    TOGETHER,
    agreement_tsv,
    alternative_tsv,
    clustered,
    confusion_tsv,
)
from judge.io.draw.drawable import can_draw
from judge.io.ids import Cluster
from judge.io.line_stream import json_bytes
from judge.io.table import records_tsv

SCHEMA = 1
"""Version of calibration.json and selection.json."""


def calibration_files(calibration: Calibration) -> dict[str, bytes]:
    """The content of every file by its name; an empty table is left out, and so are pictures without matplotlib."""
    tables = {
        "agreement.tsv": agreement_tsv(calibration.agreement, calibration.verdicts),
        "confusion.tsv": confusion_tsv(calibration.agreement),
        "comparisons.tsv": records_tsv(COMPARISONS, calibration.comparisons),
        "equivalence.tsv": records_tsv(EQUIVALENCE, calibration.equivalence),
        "together.tsv": records_tsv(TOGETHER, calibration.together),
        "cascades.tsv": records_tsv(CASCADES, calibration.cascades),
        "cascade_bounds.tsv": records_tsv(CASCADE_BOUNDS, calibration.cascade_bounds),
        "calibration_map.tsv": records_tsv(CALIBRATION_MAP, calibration.calibration_map),
        "expected.tsv": records_tsv(LINES, calibration.expected),
        "probabilities.tsv": records_tsv(PROBABILITIES, calibration.probabilities),
        "systems.tsv": records_tsv(SYSTEMS, calibration.systems),
        "diagnostics.tsv": records_tsv(DIAGNOSTICS, (*calibration.slopes, *calibration.families)),
    }
    cluster: Cluster = "topic" if calibration.cluster is msgspec.UNSET else calibration.cluster
    tables = {name: clustered(text, cluster) for name, text in tables.items()}
    # These tests are over items, whatever the intervals of the other tables are over.
    tables["alternative.tsv"] = alternative_tsv(calibration.alternative)
    tables["calibration.md"] = calibration_markdown(calibration)
    files = {name: text.encode() for name, text in tables.items() if text.count("\n") > 1}
    builtins = msgspec.to_builtins(calibration)
    files["calibration.json"] = json_bytes({"schema": SCHEMA, **builtins})
    files["selection.json"] = json_bytes({"schema": SCHEMA, "selections": builtins["selections"]})
    if not can_draw():
        return files
    by_criterion: dict[str, list[int]] = {}
    for place, row in enumerate(calibration.agreement):
        by_criterion.setdefault(row.criterion, []).append(place)
    for number, places in enumerate(by_criterion.values()):
        rows = best_first(calibration.agreement[place] for place in places)
        # A criterion's name may hold any character, so several files are named by number.
        suffix = "" if len(by_criterion) == 1 else f"-{number + 1}"
        for stem, (svg, png) in (
            ("agreement", forest(rows, rows[0].primary, cluster)),
            ("confusion", confusion_maps(rows)),
        ):
            files[f"{stem}{suffix}.svg"] = svg
            files[f"{stem}{suffix}.png"] = png
    return files
