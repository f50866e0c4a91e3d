"""`judge crowd` from tables to a folder; nothing is written unless everything is sound."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from judge.cli import call, main
from judge.errors import InputError, UsageError
from judge.gold.rows import read_gold
from tests.conftest import complaint, put, refused

LABELS = "worker,turn_id,response_id,criterion,label,seconds\n" + "".join(
    f"{worker},{turn},{item},relevance,{label},9\n"
    for turn, item, labels in (("1_1", "R1", "330"), ("1_1", "K", "013"), ("1_2", "R2", "001"), ("2_1", "R3", "222"))
    for worker, label in zip("abc", labels, strict=True)
)
KNOWN = "turn_id\tresponse_id\tacceptable\n1_1\tK\t0,1\n"


def run(*arguments: object) -> int:
    return call("crowd", list(map(str, arguments)))


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return put(tmp_path / "labels.csv", LABELS)


def test_from_labels_to_qrels(labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    known = put(tmp_path / "known.tsv", f"{KNOWN}9_1\tX\t0\n")
    subset = put(tmp_path / "turns.txt", "1_1\n")
    bank = put(tmp_path / "bank.json", '{"R1": "One.", "R2": "Two."}')
    code = run(
        *(labels, "--scale", "0-3", "--known", known, "--mi-turns", subset, "--bank", bank, "--out", out),
        *("--min-labels", 2, "--filter-min", 3),
    )
    assert code == 0
    # Worker c gave the known item 3: gone from topic 1, not from topic 2.
    assert (out / "qrels/response_relevance.qrel").read_text() == "1_1 0 R1 3\n1_2 0 R2 0\n2_1 0 R3 2\n"
    assert (out / "qrels/filtered/response_relevance.qrel").read_text() == "1_1 0 R1 3\n"
    assert (out / "qrels/subset/response_relevance.qrel").read_text() == "1_1 0 R1 3\n"
    assert json.loads((out / "bank.json").read_bytes()) == {"R1": "One.", "R2": "Two."}
    said = capsys.readouterr()
    assert said.out.startswith("rule: majority: ")
    assert "1 removal of 1 worker" in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert "not_in_bank at 2_1: R3 has no text" in said.err
    assert "unlabeled_known_item at 9_1: nobody labeled X" in said.err
    manifest = json.loads((out / "crowd.json").read_bytes())
    assert [one["file"] for one in manifest["inputs"]] == ["labels.csv", "known.tsv", "turns.txt", "bank.json"]
    assert manifest["options"]["scales"] == {"relevance": [0, 1, 2, 3]}


def test_json_says_the_same(labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = put(tmp_path / "known.tsv", KNOWN)
    assert run(labels, "--scale", "0-3", "--known", known, "--out", tmp_path / "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["criteria"]["relevance"]["items"] == 3
    assert found["criteria"]["relevance"]["few_labels"] == 2
    # Three workers met one known item each, and one of them failed it.
    assert found["filter"] == {
        **{"known_items": 1, "removals": 1, "labels_removed": 2, "tolerated": 0, "unchecked": 3},
        **{"error_rate": 1 / 3, "expected_removals": pytest.approx({"0.05": 0.15, "0.1": 0.3, "0.2": 0.6})},
    }
    assert found["warnings"] == []


def screened(folder: Path, items: int) -> tuple[Path, Path]:
    """Ten workers label so many known items of topic 1; the first fails one, the last fails all."""
    lines = ["worker,turn_id,response_id,label"]
    for worker in range(10):
        grades = [3 if worker == 9 or (worker == 0 and item == 0) else 0 for item in range(items)]
        lines += [f"w{worker},1_{item},K,{grade}" for item, grade in enumerate(grades)] + [f"w{worker},1_1,R,2"]
    known = "turn_id,response_id,acceptable\n" + "".join(f"1_{item},K,0\n" for item in range(items))
    return put(folder / "tested.csv", "\n".join(lines)), put(folder / "k.csv", known)


def test_the_summary_says_how_many_careful_workers_zero_tolerance_removes(tmp_path, capsys) -> None:
    labels, known = screened(tmp_path, 5)
    given = (labels, "--scale", "r=0-3", "--known", known, "--out", tmp_path / "out")
    assert run(*given) == 0
    # 10 (1 - .95^5) = 2.26; with one fail allowed 10 (1 - .95^5 - 5 · .05 · .95^4) = .23.
    # 6 of 50 labels of known items fail: 10 (1 - .88^5) = 4.72.
    text = (
        "Warning: Honest workers err too: if every worker failed 5% of the known items, this rule would leave out 2.3 "
        "of 10 pairs of worker and topic by chance (with --max-fails 1, 0.2); at the error rate found here, 12.0%, "
        "4.7. It left out 2."
    )
    assert text in (tmp_path / "out/summary.md").read_text()
    said = capsys.readouterr().out
    assert text in " ".join(said.split())
    assert all(len(line) <= 80 for line in said.splitlines())
    # Who always fails is left out with one fail allowed; who failed once is not.
    assert run(*given, "--max-fails", 1) == 0
    removed = (tmp_path / "out/removed.tsv").read_text().splitlines()[1:]
    assert {line.split("\t")[1] for line in removed} == {"w9"}
    assert "Warning" not in (tmp_path / "out/summary.md").read_text()
    labels, known = screened(tmp_path, 1)
    assert run(*given) == 0
    assert "Honest workers err too" in (tmp_path / "out/summary.md").read_text()
    assert "Warning" not in (tmp_path / "out/summary.md").read_text()


def test_probabilities_of_a_model_are_said_to_be_too_sure(labels: Path, tmp_path: Path) -> None:
    for aggregator, said in (("dawid-skene", True), ("mace", True), ("majority", False)):
        assert run(labels, "--scale", "0-3", "--aggregator", aggregator, "--out", tmp_path / "out") == 0
        assert ("use them as soft labels, not as the chance" in (tmp_path / "out/summary.md").read_text()) == said


def test_judges_beside_the_crowd_are_a_diagnostic(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = put(tmp_path / "judge.qrel", "1_1 0 R1 3\n1_2 0 R2 1\n2_1 0 R3 2\n")
    assert run(labels, "--scale", "0-3", "--with-judgments", judged, "--out", tmp_path / "out") == 0
    assert "diagnostic only" in capsys.readouterr().out
    assert (tmp_path / "out/with_judgments.tsv").read_text().count("\tjudge\t") == 1


def test_a_bad_table_writes_nothing(labels: Path, tmp_path: Path) -> None:
    labels.write_text(LABELS + "a,1_1,R1,relevance,0,9\n,1_1,R9,relevance,7,9\n", encoding="utf-8")
    problems = refused(run, labels, "--scale", "0-3", "--out", tmp_path / "out")
    assert [one.path for one in problems] == ["line 14", "line 15", "line 15"]
    assert not (tmp_path / "out").exists()


def test_a_pool_gives_turns_and_texts(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,response_id,label\na,R00000,3\nb,R00000,3\n")
    pool = (
        '{"response_id":"R00000","turn_id":"1_1","topic_id":"1","text":"One.","passages":[],'
        '"tokens":{"bare":1,"english":1,"whitespace":1,"cut":null},"truncated":false,"runs":[]}\n'
    )
    put(tmp_path / "pool.jsonl", pool)
    assert run(table, "--scale", "0-3", "--criterion", "relevance", "--pool", tmp_path, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out/qrels/response_relevance.qrel").read_text() == "1_1 0 R00000 3\n"
    assert json.loads((tmp_path / "out/bank.json").read_bytes()) == {"R00000": "One."}
    # Every response of the pool has a grade; with another one in it, how the graded one was drawn is not known.
    (row,) = read_gold(tmp_path / "out/gold.jsonl")
    assert row.inclusion_probability == 1.0
    put(tmp_path / "pool.jsonl", pool + pool.replace("R00000", "R00001").replace("One.", "Two."))
    given = (table, "--scale", "0-3", "--criterion", "relevance", "--out", tmp_path / "out")
    assert run(*given, "--pool", tmp_path) == 0
    (row,) = read_gold(tmp_path / "out/gold.jsonl")
    assert row.inclusion_probability is None
    with pytest.raises(UsageError, match="--bank and --pool: give one of them"):
        run(*given, "--pool", tmp_path, "--bank", tmp_path / "bank.json")


def test_a_scale_below_zero_is_a_value_of_its_option(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,response_id,label\na,1_1,R1,-2\nb,1_1,R1,-2\nc,1_1,R1,1\n")
    for scale in (["--scale", "-2-2"], ["--scale=-2-2"], ["--scale", "relevance=-2-2"], ["--scale", "-2--1"]):
        given = ["crowd", str(table), *scale, "--criterion", "relevance", "--out", str(tmp_path / "out")]
        assert main(given) == (2 if scale[-1] == "-2--1" else 0)
    assert (tmp_path / "out/qrels/response_relevance.qrel").read_text() == "1_1 0 R1 -2\n"
    for command in ("evaluate qrels", "drift"):
        qrels = put(tmp_path / "a.qrel", "1_1 0 R1 -2\n2_1 0 R2 2\n3_1 0 R3 0\n")
        assert main([*command.split(), str(qrels), str(qrels), "--scale", "-2-2"]) in (0, 1)


def test_scales_by_name(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,item_id,relevance,novelty\na,1_1,R1,3,1\nb,1_1,R1,3,1\n")
    assert run(table, "--scale", "relevance=0-3", "--scale", "novelty=1-2", "--out", tmp_path / "out") == 0
    assert (tmp_path / "out/qrels/response_novelty.qrel").read_text() == "1_1 0 R1 1\n"


def test_surveys_by_pattern_and_by_map(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "PROLIFIC_PID,1_1.R1\np1,3\np2,3\n")
    mapped = put(tmp_path / "map.csv", "column,turn_id,response_id,criterion\n1_1.R1,1_1,R1,relevance\n")
    for options in (("--wide", r"(?P<turn_id>[^.]+)\.(?P<response_id>R\d+)"), ("--wide-map", mapped)):
        assert run(table, "--scale", "relevance=0-3", *options, "--out", tmp_path / "o") == 0
        assert (tmp_path / "o/qrels/response_relevance.qrel").read_text() == "1_1 0 R1 3\n"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--scale", "0-3", "--scale", "0-4"],
        ["--scale", "0-3", "--scale", "relevance=0-4"],
        ["--scale", "0-3", "--max-fails", "1"],
        ["--scale", "3-0"],
        ["--scale", "0-200"],
        ["--scale", "x"],
        ["--scale", "0-3", "--wide", "a", "--wide-map", "b"],
        ["--scale", "0-3", "--wide", "(?P<turn_id>.*)_(?P<response_id>.*)", "--task", "x"],
        ["--scale", "0-3", "--aggregator", "mean", "--tie", "lowest"],
        ["--scale", "0-3", "--aggregator", "dawid-skene", "--majority", "plurality"],
        ["--scale", "0-3", "--wide", "(?P<turn_id>.*)_(?P<response_id>.*)", "--column", "label=label"],
    ],
)
def test_options_that_do_not_go_together(labels: Path, tmp_path: Path, options: Sequence[str]) -> None:
    with pytest.raises(UsageError):
        run(labels, *options, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--scale", "0-3", "--aggregator", "oracle"],
        ["--scale", "0-3", "--runs", "x"],
        ["--scale", "0-3", "--max-fails", "-1"],
        ["--scale", "0-3", "--column", "label"],
        ["--scale", "0-3", "--column", "label=a", "--column", "label=b"],
    ],
)
def test_options_that_the_parser_refuses(labels: Path, tmp_path: Path, options: Sequence[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(labels, *options, "--out", tmp_path / "out")


@pytest.mark.parametrize("table", ["a,1_1,K,9\na,1_1,R1,2\n", "a,1_1,K,0\n"], ids=["removed", "known"])
def test_nothing_left_is_a_warning_and_not_a_success(tmp_path, table: str, capsys) -> None:
    labels = put(tmp_path / "t.csv", f"worker,turn_id,response_id,label\n{table}")
    known = put(tmp_path / "known.tsv", KNOWN)
    out = tmp_path / "out"
    assert run(labels, "--scale", "relevance=0-9", "--known", known, "--out", out) == 1
    assert "no_label_left" in capsys.readouterr().err
    assert (out / "qrels/response_relevance.qrel").read_bytes() == b""


def test_known_items_of_other_criteria_filter_the_one_wanted(tmp_path, capsys) -> None:
    rows = [
        *("a,1_1,K,relevance,0", "a,1_1,K,nat,3", "a,1_1,R1,relevance,2", "a,1_1,R1,nat,2"),
        *("b,1_1,K,relevance,0", "b,1_1,K,nat,0", "b,1_1,K,nat,0", "b,1_1,R1,relevance,1"),
    ]
    labels = put(tmp_path / "t.csv", "\n".join(["worker,turn_id,response_id,criterion,label", *rows]))
    content = "turn_id,response_id,criterion,acceptable\n1_1,K,relevance,0\n1_1,K,nat,0\n1_1,K,beauty,0\n"
    known = put(tmp_path / "known.csv", content)
    out = tmp_path / "out"
    assert run(labels, "--scale", "0-3", "--criterion", "relevance", "--known", known, "--out", out, "--json") == 0
    assert (out / "qrels/response_relevance.qrel").read_text() == "1_1 0 R1 1\n"
    found = json.loads(capsys.readouterr().out)
    assert list(found["criteria"]) == ["relevance"]
    assert found["filter"]["labels_removed"] == 1
    assert [(one["code"], one["path"]) for one in found["warnings"]] == [("unknown_criterion", "line 4")]
    assert json.loads((out / "crowd.json").read_bytes())["options"]["scales"] == {"relevance": [0, 1, 2, 3]}


def test_warnings_without_end_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\n" + "".join(f"a,1_1,R{n},0\n" for n in range(150)))
    bank = put(tmp_path / "bank.json", '{"X": "One."}')
    assert run(labels, "--scale", "r=0-3", "--bank", bank, "--out", tmp_path / "out", "--json") == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert len(warnings) == 101
    assert warnings[-1]["message"] == "50 more of these, not listed"


def test_options_that_did_nothing_are_not_said_to_have_done_it(labels: Path, tmp_path: Path) -> None:
    for aggregator in ("majority", "mean"):
        out = tmp_path / aggregator
        assert run(labels, "--scale", "0-3", "--aggregator", aggregator, "--out", out) == 0
        options = json.loads((out / "crowd.json").read_bytes())["options"]
        assert ("tie" in options) == ("majority" in options) == (aggregator == "majority")


def test_an_export_of_mturk_takes_columns_that_are_named(tmp_path: Path) -> None:
    table = put(tmp_path / "m.csv", "WorkerId,Input.turn,Input.doc,Answer.q1,Answer.q2\na,1_1,R1,2,x\n")
    columns = ("--column", "turn_id=Input.turn", "--column", "response_id=Input.doc", "--column", "label=Answer.q1")
    assert run(table, "--scale", "r=0-3", *columns, "--out", tmp_path / "out") == 0
    assert (tmp_path / "out/qrels/response_r.qrel").read_text() == "1_1 0 R1 2\n"


def test_many_like_problems_are_one_line_with_the_likely_cause(tmp_path, capsys) -> None:
    rows = "".join(f"w{n},1_{n % 7},R{n},{'Mostly' if n % 2 else 'Not at all'}\n" for n in range(374))
    table = put(tmp_path / "t.csv", f"worker,turn_id,response_id,label\n{rows}")
    other = put(tmp_path / "u.csv", "worker,turn_id,response_id,label\n,1_1,X,2\n")
    given = ["crowd", str(table), str(other), "--scale", "relevance=0-3", "--out", str(tmp_path / "o")]
    said = complaint(capsys, main(given)).splitlines()
    assert said[0] == (
        "judge: not usable as labels: 375 problems; likely cause: labels of relevance are texts: 'Mostly' (187), "
        "'Not at all' (187); say the grade of each, --label Mostly=GRADE, or that it is no label, --missing "
        "Mostly, or name the column of labels, --column label=NAME"
    )
    assert said[1:] == [
        f"  {table}: wrong_label at 374 places, first 1_0 line 2, 1_1 line 3, 1_2 line 4: label 'Not at all' "
        "of relevance: expected one of 0, 1, 2, 3",
        f"  {other}: empty_cell at 1_1 line 2: worker is empty",
    ]
    assert main([*given, "--label", "Mostly=2", "--label", "not at ALL=0"]) == 2
    other.unlink()
    assert main([*given[:2], *given[3:], "--label", "Mostly=2", "--label", "not at ALL=0"]) == 0
    assert (tmp_path / "o/qrels/response_relevance.qrel").read_text().startswith("1_0 0 R0 0\n1_0 0 R7 2\n")


@pytest.mark.parametrize("wrong", ["Mostly", "Mostly=", "=2", "Mostly=two"])
def test_a_label_in_words_needs_a_grade(labels: Path, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(SystemExit):
        run(labels, "--scale", "0-3", "--label", wrong, "--out", tmp_path / "out")


def test_numbers_off_the_scale_are_named_and_no_wider_scale_is_advised(tmp_path: Path) -> None:
    rows = "".join(f"w{n},1_1,R{n},{n % 5 + 1}\n" for n in range(25))
    table = put(tmp_path / "t.csv", f"worker,turn_id,response_id,label\n{rows}")
    cause = r"labels of r are off its scale 0-3: '4' \(5\), '5' \(5\); check --scale, or say .* no label, --missing 4$"
    with pytest.raises(InputError, match=cause):
        run(table, "--scale", "r=0-3", "--out", tmp_path / "out")


GAPS = ["NA", "n/a", "#N/A", "<NA>", "nan", "None", "null", "-", "Unsure", "skip", "Skipped", "-1", "-2", "99", "-1.0"]


def test_values_that_stand_for_no_label_have_no_vote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"w{n},1_1,R,{gap}\n" for n, gap in enumerate([*GAPS, 3, 3, 0]))
    table = put(tmp_path / "t.csv", f"worker,turn_id,response_id,label\n{rows}")
    given = (table, "--scale", "r=0-3", "--out", tmp_path / "out")
    assert run(*given, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["criteria"]["r"]["labels"], said["criteria"]["r"]["items"]) == (3, 1)
    (warning,) = [one for one in said["warnings"] if one["code"] == "not_labeled"]
    assert warning["message"].startswith("r, 15 rows left out, no label: ") and "'NA' (1)" in warning["message"]
    assert warning["path"] == "line 2"
    assert (tmp_path / "out/qrels/response_r.qrel").read_text() == "1_1 0 R 3\n"


def test_a_value_on_the_scale_is_a_grade_unless_it_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,response_id,label\na,1_1,R,-1\nb,1_1,R,-1\nc,1_1,R,1\nd,1_1,R,7\n")
    scale = ("--scale=r=-1-1", "--out", tmp_path / "out")
    with pytest.raises(InputError, match="1 problem"):
        run(table, *scale)
    assert run(table, *scale, "--missing", "7") == 0
    assert (tmp_path / "out/qrels/response_r.qrel").read_text() == "1_1 0 R -1\n"
    assert run(table, *scale, "--missing", "7", "-1") == 0
    assert (tmp_path / "out/qrels/response_r.qrel").read_text() == "1_1 0 R 1\n"
    assert "r, 3 rows left out, no label: '-1' (2), '7' (1)" in " ".join(capsys.readouterr().err.split())
    # A text that the user gives a grade is one.
    words = put(tmp_path / "w.csv", "worker,turn_id,response_id,label\na,1_1,R,None\nb,1_1,R,None\nc,1_1,R,1\n")
    assert run(words, *scale, "--label", "None=0") == 0
    assert (tmp_path / "out/qrels/response_r.qrel").read_text() == "1_1 0 R 0\n"
    with pytest.raises(UsageError, match=r"--label gives 'None' a grade, and --missing says it is no label"):
        run(words, *scale, "--label", "None=0", "--missing", "none")


def skewed(folder: Path) -> Path:
    """Of 40 items, 36 have the grade 3; of six workers, two are right in all, and four err in turn on every second."""
    lines = ["worker,turn_id,response_id,label"]
    for item in range(40):
        truth = item % 3 if item % 10 == 0 else 3
        for worker in range(6):
            wrong = worker > 1 and (item + worker) % 2 == 0
            lines.append(f"w{worker},1_{item},R{item},{(truth + 1 + item % 3) % 4 if wrong else truth}")
    return put(folder / "skewed.csv", "\n".join(lines) + "\n")


def test_mace_is_warned_about_where_it_leaves_the_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = (skewed(tmp_path), "--scale", "relevance=0-3", "--aggregator")
    # Half of the 40 grades are none that most labels name; with the prior estimated, none is.
    for options, warned, unlike in ((["mace", "--prior", "flat"], 1, 20), (["mace"], 0, 0)):
        assert run(*given, *options, "--out", tmp_path / "out") == 0
        summary, said = (tmp_path / "out/summary.md").read_text(), capsys.readouterr().err
        assert said.count("far_from_majority: 50% of the grades of mace are none that most labels name") == warned
        assert summary.count("Warning: relevance: 50% of the grades of mace") == warned
        assert f"none of those that most labels name: relevance {unlike} of 40." in summary
    assert run(*given, "majority", "--out", tmp_path / "out") == 0
    assert "that most labels name: relevance" not in (tmp_path / "out/summary.md").read_text()


def test_a_prior_belongs_to_mace(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\na,1_1,R1,3\nb,1_1,R1,3\n")
    given = (table, "--scale", "relevance=0-3")
    with pytest.raises(UsageError, match="--prior belongs to mace, not to dawid-skene"):
        run(*given, "--aggregator", "dawid-skene", "--prior", "estimated", "--out", tmp_path / "no")
    for prior, options in (("estimated", []), ("flat", ["--prior", "flat"])):
        assert run(*given, "--aggregator", "mace", *options, "--out", tmp_path / prior) == 0
        assert json.loads((tmp_path / prior / "crowd.json").read_bytes())["options"]["prior"] == prior


def test_a_weighted_majority_needs_pseudo_labels(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\na,1_1,R1,3\nb,1_1,R1,3\n")
    with pytest.raises(UsageError, match="--smoothing 0: weighted-majority needs 1e-06 or more"):
        run(table, "--scale", "r=0-3", "--aggregator", "weighted-majority", "--smoothing", 0, "--out", tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_smoothing_is_what_a_model_is_told(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "worker,turn_id,item_id,label\na,1_1,R1,3\nb,1_1,R1,3\na,1_2,R1,0\nb,1_2,R1,1\n")
    given = (table, "--scale", "0-3", "--criterion", "relevance", "--aggregator", "dawid-skene")
    posteriors = []
    for smoothing in ("0", "2"):
        assert run(*given, "--smoothing", smoothing, "--out", tmp_path / smoothing) == 0
        posteriors.append((tmp_path / smoothing / "items.tsv").read_text())
        assert f'"smoothing": {float(smoothing)}' in (tmp_path / smoothing / "crowd.json").read_text()
    assert posteriors[0] != posteriors[1]
    with pytest.raises(UsageError, match="--smoothing belongs to"):
        run(table, "--scale", "0-3", "--smoothing", "1", "--out", tmp_path / "no")
