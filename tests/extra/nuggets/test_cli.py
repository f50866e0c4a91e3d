"""`judge nuggets …`: what it prints where, what it writes, and its exit codes."""

import json
from pathlib import Path

import pytest

from judge.cli import main
from judge.extra.nuggets.forms import read_bank
from tests.conftest import PROJECT, complaint, printed, put

BANK = PROJECT / "examples" / "nuggets.jsonl"
CONE = '{"9-1_3": {"[1]": {"text": "Ramps are free.", "relevance": "3"}, "[2]": {"text": "Book.", "relevance": "2"}}}'


@pytest.mark.parametrize(
    ("form", "held"),
    [("judge", "16 okay, 28 vital"), ("nuggetizer", "16 okay, 28 vital"), ("cone-rag", "44 without importance")],
)
def test_what_is_counted_is_what_the_written_file_holds(tmp_path, capsys, form: str, held: str) -> None:
    out = tmp_path / "bank"
    assert main(["nuggets", "convert", str(BANK), "--to", form, "--out", str(out)]) == 0
    assert capsys.readouterr().err == f"{out}: 44 nuggets of 16 turns, 3 topics: {held}\n"


def test_importance_comes_from_the_grade_of_the_passage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cone, out = tmp_path / "cone.json", tmp_path / "bank.jsonl"
    cone.write_text(CONE)
    options = ["--to", "judge", "--vital-from", "3", "--made-by", "nist", "--json"]
    counts = json.loads(printed(capsys, main(["nuggets", "convert", str(cone), *options, "--out", str(out)])))
    assert counts["form"] == "cone-rag"
    assert counts["importance"] == {"okay": 1, "vital": 1}
    assert [(row.importance, row.made_by) for row in read_bank(out).nuggets] == [("vital", "nist"), ("okay", "nist")]


@pytest.mark.parametrize(("content", "options", "message"), [
    (CONE, ["--to", "judge", "--form", "rubrics"], "expected the header id,rubrik"),
    (CONE, ["--to", "nuggetizer"], "needs an importance: '9-1_3/1', '9-1_3/2' have none"),
    ("id,rubrik\n1-1-r1,Why?\n", ["--to", "judge", "--vital-from", "2"], "neither an importance nor a grade"),
    ('{"nugget_id": "a b", "topic_id": "1", "text": "\\u001b[2J"}', ["--to", "judge"], "line 1: $.nugget_id"),
    ("hello", ["--to", "judge"], "not a bank of nuggets"),
])  # fmt: skip
def test_a_bank_that_cannot_be_written_leaves_no_file(tmp_path, capsys, content, options, message) -> None:
    bank, out = tmp_path / "bank", tmp_path / "out"
    bank.write_text(content)
    shown = complaint(capsys, main(["nuggets", "convert", str(bank), *options, "--out", str(out)]))
    assert message in shown
    assert "\x1b" not in shown
    assert not out.exists()


def pooled(folder: Path, *runs: str) -> list[dict[str, str]]:
    """The responses of a pool of examples."""
    given = ["--runs", *(str(PROJECT / "examples" / run) for run in runs)]
    assert main(["pool", *given, "--topics", str(PROJECT / "examples/topics.json"), "--out", str(folder)]) == 0
    return [json.loads(line) for line in (folder / "pool.jsonl").read_text().splitlines()]


def supported(row: dict[str, str], nugget_id: str) -> str:
    """A line of matches by ann."""
    of = {"turn_id": row["turn_id"], "response_id": row["response_id"], "nugget_id": nugget_id}
    return json.dumps(of | {"label": "supports", "assessor": "ann"}) + "\n"


def test_scores_go_to_stdout_and_notes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, people, nuggets = tmp_path / "pooled", tmp_path / "people.jsonl", read_bank(BANK).by_scope()
    asked = [row for row in pooled(folder, "runs") if row["turn_id"] != "3-1_5"]
    people.write_text("".join(supported(row, each.nugget_id) for row in asked for each in nuggets[row["turn_id"]]))
    capsys.readouterr()
    command = ["nuggets", "score", "--pool", str(folder), "--bank", str(BANK), "--matches", str(people)]
    assert main([*command, "--format", "json", "--out", str(tmp_path / "scores")]) == 0
    out, err = capsys.readouterr()
    runs_grid, measures = json.loads(out)
    # Nobody asked about the turn 3-1_5, so it counts against no run.
    assert {(row["mean"]["value"], row["left_out"]) for row in runs_grid["rows"]} == {(1.0, 1), (1.0, 0)}
    assert {row["bound"] for row in runs_grid["rows"] if row["run"] != "thistle-faulty"} == {1.0}
    assert len(measures["rows"]) == 7
    assert err.splitlines()[-1] == f"tables in {tmp_path / 'scores'}"
    first = {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()}
    assert main([*command, "--format", "json", "--out", str(tmp_path / "scores")]) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "scores").iterdir()} == first
    capsys.readouterr()
    for more, message in (
        (["--gold", str(people)], "--matches has those of people"),
        (["--out", str(folder)], "this is where"),
    ):
        assert message in complaint(capsys, main([*command, *more]))
    for wrong, message in (("0", "expected a number above 0"), ("1.5", "expected 1 or less")):
        with pytest.raises(SystemExit):
            main([*command, "--inclusion", wrong])
        assert message in capsys.readouterr().err


def test_runs_that_no_nugget_reaches_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mixed"
    rows = pooled(folder, "interactive", "runs/harbor-grounded.json")
    rows = [row for row in rows if row["turn_id"].startswith("1-1_")]
    noted = {}
    for scope in ("turn_id", "topic_id"):
        bank, people = tmp_path / f"{scope}.jsonl", tmp_path / f"people-{scope}.jsonl"
        put(bank, {"nugget_id": "n", scope: {"turn_id": "1-1_1", "topic_id": "1-1"}[scope], "text": "A."})
        asked = [row for row in rows if scope == "topic_id" or row["turn_id"] == "1-1_1"]
        people.write_text("".join(supported(row, "n") for row in asked))
        capsys.readouterr()
        command = ["nuggets", "score", "--pool", str(folder), "--bank", str(bank), "--matches", str(people)]
        assert main([*command, "--format", "json"]) == 0
        out, err = capsys.readouterr()
        names = {row["run"] for row in json.loads(out)[0]["rows"]}
        noted[scope] = names, [line for line in err.splitlines() if "no table" in line]
    interactive = "plover-remembers", "stilt-plain"
    message = (
        f"note: the bank has no nugget of a turn or topic of 2 runs, so no table has them: {', '.join(interactive)}"
    )
    assert noted["turn_id"] == ({"harbor-grounded"}, [message])
    assert noted["topic_id"] == ({"harbor-grounded", *interactive}, [])


def test_judged_citations_give_the_measures_of_argue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples, bank, people = PROJECT / "examples", tmp_path / "bank.json", tmp_path / "people.jsonl"
    given = [
        "--runs",
        str(examples / "citations/runs/heron-cites.jsonl"),
        "--passages",
        str(examples / "passages.jsonl"),
    ]
    given += ["--topics", str(examples / "citations/topics.tsv"), "--profile", "rag"]
    judged, pool = str(tmp_path / "judged"), str(tmp_path / "pool")
    assert main(["run", *given, "--criteria", "support", "--model", "checker/overlap", "--out", judged]) == 0
    assert main(["pool", *given, "--unit", "response", "--out", pool]) == 0
    answers = [{"answer": each, "references": ["clueweb22-en9999-03-00008:0"]} for each in "AB"]
    asked = [{"question": "Q?", "aggregator_type": "AND", "answers": answers}, {"claim": "C.", "references": ["d"]}]
    bank.write_text(json.dumps({"query_id": "bread", "nugget_bank": asked}))
    rows = map(json.loads, (tmp_path / "pool/pool.jsonl").read_text().splitlines())
    (row,) = [each for each in rows if each["topic_id"] == "bread"]
    others = supported(row, "bread/1.2") + supported(row, "bread/2").replace("supports", "does_not")
    people.write_text(supported(row, "bread/1.1") + others)
    capsys.readouterr()
    command = ["nuggets", "score", "--pool", pool, "--bank", str(bank), "--matches", str(people)]
    assert main([*command, "--citations", judged, "--format", "json"]) == 0
    # Four sentences cite a passage each, which bears them out and in one case is in the bank; the fifth cites nothing.
    found = {line["measure"]: line["micro"] for line in json.loads(capsys.readouterr().out)[2]["rows"]}
    assert found == pytest.approx({
        "citation_relevance": 1 / 4, "citation_support": 4 / 4, "sentence_support": 4 / 5, "nugget_coverage": 1 / 2,
        "nugget_coverage_weighted": 1 / 2, "f1": 2 * 0.8 * 0.5 / 1.3, "f1_weighted": 2 * 0.8 * 0.5 / 1.3,
    })  # fmt: skip
    assert f"this is where {judged} is" in complaint(capsys, main([*command, "--citations", judged, "--out", judged]))
    # A passage whose text is not known is cited all the same.
    (tmp_path / "judged/passages.jsonl").write_text("")
    assert main([*command, "--citations", judged, "--format", "json"]) == 0


@pytest.mark.parametrize("bank", ["{folder}", "{file}"])
def test_a_bank_is_not_written_over_itself(tmp_path, capsys, bank: str) -> None:
    file = put(tmp_path / "bank/nuggets.jsonl", BANK.read_bytes())
    given = bank.format(folder=file.parent, file=file)
    message = complaint(capsys, main(["nuggets", "convert", given, "--to", "judge", "--out", str(file)]))
    assert "would be written over what it is made of" in message
    assert file.read_bytes() == BANK.read_bytes()


def test_nuggets_are_matched_over_a_pool_of_citations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The responses behind citations are matched whole, an uncited sentence too; the matches know pool and bank."""
    examples = PROJECT / "examples"
    given = ["--runs", str(examples / "citations/runs"), "--topics", str(examples / "citations/topics.tsv")]
    given += ["--passages", str(examples / "passages.jsonl")]
    board, whole = str(tmp_path / "board"), str(tmp_path / "whole")
    assert main(["run", *given, "--model", "checker/overlap", "--out", board]) == 0
    assert main(["pool", *given, "--unit", "response", "--out", whole]) == 0
    bank = put(
        tmp_path / "bank.jsonl",
        '{"nugget_id": "b/1", "topic_id": "bread", "text": "Good luck with your first loaf!"}\n'
        '{"nugget_id": "b/2", "topic_id": "bread", "text": "Cut the loaf the next day."}\n',
    )
    matches = []
    for pool in (board, whole):
        out = tmp_path / f"matches-{Path(pool).name}"
        asked = ["--pool", pool, "--bank", str(bank), "--model", "baseline/overlap", "--out", str(out)]
        assert main(["nuggets", "match", *asked]) == 0
        matches.append((out / "matches.jsonl").read_bytes())
    assert matches[0] == matches[1] and b'"supports"' in matches[0]
    capsys.readouterr()
    scored = ["nuggets", "score", "--matches", str(tmp_path / "matches-board"), "--format", "json"]
    assert main([*scored, "--citations", board]) == 0
    assert {row["run"] for row in json.loads(capsys.readouterr().out)[0]["rows"]} == {"heron-cites", "wren-reports"}
    # A file of people's matches does not say what it is of, and a folder that has gone cannot be read.
    assert main(["nuggets", "score", "--matches", str(tmp_path / "matches-board/matches.jsonl")]) == 2
    assert (
        "no folder of `judge nuggets match` says of which bank the matches are: give --bank" in capsys.readouterr().err
    )
    bank.rename(tmp_path / "other.jsonl")
    assert main(scored) == 2
    assert "bank.jsonl, which is not there: name it with --bank" in capsys.readouterr().err
