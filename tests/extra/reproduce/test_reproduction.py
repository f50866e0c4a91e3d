"""`judge reproduce` from a folder to its tables, pictures and JSON."""

import json
from pathlib import Path

import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.extra.reproduce import ReproductionPlan, comparison, reproduce_published, reproduction_files
from judge.extra.reproduce.published import PublishedNumber, Reproduction
from judge.records import Estimate
from tests.calibration_world import contents
from tests.conftest import printed, put
from tests.extra.reproduce.test_published import labels, release


def numbers(*made: PublishedNumber) -> Reproduction:
    return Reproduction("ikat2023", "A. Author (2024)", made, (), ("a note",))


SHARE = PublishedNumber("Table 7", "a", "share", "0.67", Estimate(0.6849, 0.5, 0.8, 73, 23), 0.01, "why")
COUNT = PublishedNumber("Table 7", "a", "count", "1,047", Estimate(1050.0, None, None, 73, 23), 3.0, "why")
LACKING = PublishedNumber("Table 1", "b", "count", "43", None, None, "no list")
EQUAL = PublishedNumber("Table 1", "b", "mean", "4.0", Estimate(4.0, None, None, 73, 23, "all equal"), 0.0)


def test_reasons_are_letters_for_people_and_words_for_tools() -> None:
    made = numbers(SHARE, COUNT, LACKING, EQUAL)
    shown = comparison(made, marks=True)
    assert [line[6] for line in shown] == ["a", "a", "b", ""]
    assert shown.notes == ("a: why.", "b: no list.", "a note", "Source: A. Author (2024)")
    assert [line[6] for line in comparison(made, marks=False)] == ["why", "why", "no list", ""]


def test_a_difference_has_the_decimals_of_print_and_a_count_none() -> None:
    shown = comparison(numbers(SHARE, COUNT, LACKING, EQUAL), marks=True)
    assert [line[5] for line in shown] == ["+0.01", "+3", None, "0"]
    assert [line[4] for line in shown] == [SHARE.ours, 1050, None, EQUAL.ours]


def test_many_reasons_have_letters_of_two() -> None:
    made = [PublishedNumber("T", str(n), "m", "1", None, None, f"reason {n}") for n in range(28)]
    marks = [line[6] for line in comparison(numbers(*made), marks=True)]
    assert marks[:2] + marks[25:] == ["a", "b", "z", "aa", "ab"]


HOSTILE = (
    "=cmd|' /C calc'!A1", "\u202erun\x1b[2J", "<script>alert(1)</script>|$x$", "a" * 300, "run_automatic_dense_monot5",
)  # fmt: skip


def hostile(folder: Path) -> Path:
    release(folder)
    rows = [(f"9-{n}_1", run, int(n > 3)) for run in HOSTILE for n in range(1, 10)]
    put(folder / "groundedness_judgement-gpt4.txt", labels(rows))
    return folder


def test_the_folder_has_every_table_in_every_form_and_is_the_same_again(tmp_path: Path) -> None:
    plan = ReproductionPlan(name="ikat2023", folder=hostile(tmp_path / "in"), out=str(tmp_path / "out"))
    reproduce_published(plan)
    first = contents(tmp_path / "out")
    tables = ("comparison", "means", "intervals", "pairs")
    names = {f"{table}.{ending}" for table in tables for ending in ("tsv", "json", "md", "tex")}
    assert first.keys() == {"reproduction.sha256", "table_7_groundedness.svg", "table_7_groundedness.png", *names}
    reproduce_published(plan)
    assert contents(tmp_path / "out") == first
    table = first["pairs.tsv"].decode()
    assert "\x1b" not in table
    assert "\u202e" not in table
    assert "\t\\=cmd" in table
    assert b"<script>" not in first["means.md"]
    assert {row["reason"] for row in json.loads(first["comparison.json"])["rows"]} > {
        "the folder has no label of this run"
    }


def test_hostile_names_are_made_visible_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, main(["reproduce", "ikat2023", str(hostile(tmp_path))]))
    assert "\x1b" not in out
    assert "\\x1b[2J" in out
    assert "\u202e" not in out


def test_tables_are_printed_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["reproduce", "ikat2023", str(release(tmp_path)), "--out", str(tmp_path / "out"), "--format"]
    for form, ending in (("tsv", "tsv"), ("markdown", "md"), ("latex", "tex")):
        assert main([*call, form]) == 0
        file = (tmp_path / "out" / f"comparison.{ending}").read_text(encoding="utf-8")
        assert capsys.readouterr().out.startswith(file)
    assert main([*call, "json"]) == 0
    (comparison, *_) = json.loads(capsys.readouterr().out)
    assert comparison == json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))


def test_json_is_one_object_with_unrounded_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ikat2023", str(release(tmp_path)), "--json"]) == 0
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    assert list(made) == ["name", "source", "numbers", "beyond", "notes"]
    number = next(each for each in made["numbers"] if each["measure"] == "naturalness" and each["ours"])
    assert number["ours"]["value"] == 8 / 3
    assert [grid["title"] for grid in made["beyond"]] == ["Means", "Intervals", "Pairs"]
    # Of Table 7, run_automatic_dense_monot5 has labels and three runs have none.
    assert captured.err == "16 published numbers: 0 made again, 4 differ, 12 cannot be made from these files\n"


def test_the_folder_of_the_files_is_no_output_folder(tmp_path: Path) -> None:
    before = contents(release(tmp_path))
    with pytest.raises(UsageError, match="give a folder of its own"):
        reproduce_published(ReproductionPlan(name="ikat2023", folder=tmp_path, out=tmp_path))
    assert contents(tmp_path) == before


def test_an_unknown_publication_is_refused_in_python_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name: invalid choice: 'ikat2022'"):
        reproduce_published(ReproductionPlan(name="ikat2022", folder=tmp_path))


def test_a_bad_folder_ends_with_exit_code_2_and_writes_nothing(tmp_path, capsys) -> None:
    put(release(tmp_path / "in") / "groundedness_judgement-gpt4.txt", labels([("9-1_1", "a", 7)]))
    assert main(["reproduce", "ikat2023", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 2
    assert "off_scale at 9-1_1 line 2: label '7': expected one of 0, 1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_picture_is_drawn_of_a_measure_with_an_interval_only() -> None:
    files = reproduction_files(numbers(SHARE, COUNT, LACKING, EQUAL))
    assert {name for name in files if name.endswith(("svg", "png"))} == {"table_7_share.svg", "table_7_share.png"}


def test_markdown_and_tsv_of_the_comparison() -> None:
    made = numbers(SHARE, LACKING)
    assert (
        r"| Table 7 | a | share | 0.67 | 0.6849 [0.5000, 0.8000] | +0.01 | a |"
        in comparison(made, marks=True).markdown()
    )
    assert comparison(made, marks=False).tsv().splitlines() == [
        "table\trow\tmeasure\tpublished\tours\tours_low\tours_high\tdifference\treason",
        "Table 7\ta\tshare\t0.67\t0.6849\t0.5000\t0.8000\t+0.01\twhy",
        "Table 1\tb\tcount\t43\t\t\t\t\tno list",
    ]
