"""Labels from data frames, and grades as rows for them."""

import json
from pathlib import Path

import polars as pl
import pytest

from judge.errors import InputError, UsageError
from judge.jobs.crowd import CrowdOutcome, CrowdPlan, grade_crowd
from tests.conftest import refused

COLUMNS = {
    "worker": ["a", "b", "c", "a", "b", "c"],
    "turn_id": ["1_1"] * 6,
    "response_id": [1, 1, 1, 2, 2, 2],
    "label": [3, 3, 1, 0, 1, 0],
}


def grade(labels: object, out: Path, **more: object) -> CrowdOutcome:
    return grade_crowd(CrowdPlan(**{"labels": labels, "scales": "relevance=0-3", "out": out} | more))


def test_a_frame_of_polars_gives_what_its_file_gives(tmp_path: Path) -> None:
    frame = pl.DataFrame(COLUMNS)
    frame.write_csv(tmp_path / "labels.csv")
    outcomes = [grade(labels, tmp_path / str(n)) for n, labels in enumerate((tmp_path / "labels.csv", frame, [frame]))]
    files = {name.name for name in (tmp_path / "0").rglob("*") if name.is_file()} - {"crowd.json", "crowd.sha256"}
    for name in files:
        assert len({next((tmp_path / str(n)).rglob(name)).read_bytes() for n in range(3)}) == 1, name
    inputs = [json.loads((tmp_path / str(n) / "crowd.json").read_bytes())["inputs"] for n in range(3)]
    assert [[entry["file"] for entry in listed] for listed in inputs] == [["labels.csv"], ["table 1"], ["table 1"]]
    assert inputs[1] == inputs[2] != inputs[0]
    # 3, 3, 1: the mode; 0, 1, 0: the mode.
    assert [(row.response_id, row.grade, row.n) for row in outcomes[1].grades] == [("1", 3, 3), ("2", 0, 3)]
    rows = pl.from_dicts(outcomes[1].grades.to_dicts())
    assert rows["count.3"].to_list() == [2, 0]
    assert rows["mean"].to_list() == [7 / 3, 1 / 3]


def test_a_frame_of_pandas_is_one_of_polars(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    plain = grade(pl.DataFrame(COLUMNS), tmp_path / "polars")
    table = pandas.DataFrame(COLUMNS)
    variants = [
        table,
        table.astype({"label": "Int64", "worker": "category"}),
        table.astype({"label": float, "response_id": str}),
        table.set_index(pandas.Index(range(10, 16))),
    ]
    for n, variant in enumerate(variants):
        outcome = grade(variant, tmp_path / str(n))
        assert outcome.grades == plain.grades
        assert pandas.DataFrame(outcome.grades.to_dicts())["grade"].tolist() == [3, 0]
    digests = [json.loads((tmp_path / name / "crowd.json").read_bytes())["inputs"] for name in ("polars", "0", "3")]
    assert digests[0] == digests[1] == digests[2]


def test_refused_a_frame_name_the_row(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({**COLUMNS, "label": [3, None, 1, 0, "x", [1]], "worker": ["a", "b", None, "a", "b", "c"]})
    problems = refused(grade, table.drop(5), tmp_path / "o")
    assert [(problem.file, problem.code, problem.path) for problem in problems] == [
        ("table 1", "empty_cell", "row 3"),
        ("table 1", "wrong_label", "row 5"),
    ]
    problems = refused(grade, table, tmp_path / "o")
    assert [(problem.code, problem.path) for problem in problems] == [("wrong_type", "column 'label'")]


def test_what_only_looks_like_a_frame_is_refused(tmp_path: Path) -> None:
    class Columns:
        columns = ()

    with pytest.raises(UsageError, match="table 1: Columns is neither a path nor a data frame"):
        grade(Columns(), tmp_path / "o")


def test_texts_are_labels_by_the_levels_of_the_prompts(tmp_path: Path) -> None:
    names = ["Fully grounded", "Fully grounded", "1", "not grounded", "Not quite", "Not grounded"]
    frame = pl.DataFrame({**COLUMNS, "label": names})
    outcome = grade(frame, tmp_path / "o", scales="groundedness=0-3", words={"Not quite": 1})
    assert [row.grade for row in outcome.grades] == [3, 0]
    (warning,) = outcome.warnings
    assert warning.message == (
        "groundedness, 5 times a text for a grade: 'Fully grounded' = 3, 'Not grounded' = 0, 'Not quite' = 1, "
        "'not grounded' = 0; this is the first"
    )
    # On another scale the levels of the prompt mean nothing.
    with pytest.raises(InputError, match="labels of groundedness are texts: 'Fully grounded'"):
        grade(frame, tmp_path / "p", scales="groundedness=1-4")
