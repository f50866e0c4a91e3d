"""The sections of a report that this annex writes."""

from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.extra.evaluate import report
from judge.extra.evaluate.breakdown import Reading
from judge.io.table import Table
from judge.records import Estimate
from judge.report.job import ReportPlan, write_report
from tests.conftest import INPUTS


def by_topic(out: Path) -> Table[Any]:
    sections = {section.name: section for section in write_report(ReportPlan(folders=out)).content.sections}
    (sheet,) = sections["by-topic"].parts
    assert isinstance(sheet, Table)
    return sheet


def test_of_very_many_topics_the_worst_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    assert main(["run", *INPUTS, "--criteria", "groundedness", "--model", "baseline/overlap", "--out", str(out)]) == 0
    every = by_topic(out)
    means = {line[0]: round(line[2].value, 3) for line in every}
    assert means == {"1-1": 2.667, "2-1": 2.7, "3-1": 2.65}
    assert every.notes[0].startswith("A line for each topic, with 7 runs. Every run has")
    monkeypatch.setattr(report, "MOST_LINES", 2)
    monkeypatch.setattr(report, "_WORST", 2)
    worst = by_topic(out)
    assert list(worst) == [line for line in every if line[0] != "2-1"]
    assert worst.notes[0].startswith(
        "Of 3 topics, the 2 with the worst average, with 7 runs; `judge evaluate responses --by topic` has all of "
        "them. Every run has"
    )


@pytest.mark.parametrize(("higher_is_better", "shown"), [(True, ["b", "e"]), (False, ["a", "e"])])
def test_the_worst_lines_are_the_low_ones_or_the_high_ones(
    *, higher_is_better: bool, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_WORST", 2)
    means = {"a": 2.0, "b": 0.5, "c": None, "d": 1.5, "e": 1.0 if higher_is_better else 3.0}
    lines = [(name, 1, Estimate(value=mean, low=None, high=None, n=1, topics=1)) for name, mean in means.items()]
    found = report._worst(lines, Reading(higher_is_better=higher_is_better))
    assert [line[0] for line in found] == shown
