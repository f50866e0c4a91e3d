"""`judge evaluate passages` and `judge evaluate statements` on the command line: forms, warnings, refusals."""

import json
import re
from pathlib import Path

import pytest

from judge.cli import main
from judge.extra.evaluate import BOARDS
from tests.conftest import put

QRELS = "9-1_1 0 a 2\n9-1_1 0 b 0\n9-1_2 0 c 1\n"
RUN = "9-1_1 Q0 a 1 9 mine\n9-1_2 Q0 b 1 9 mine\n9-1_2 Q0 c 2 8 mine\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put(Path("a.run"), RUN)
    put(Path("p.qrels"), QRELS)
    return tmp_path


def call(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(words.split())
    out, err = capsys.readouterr()
    return code, out, err


PASSAGES = "evaluate passages --runs a.run --qrels p.qrels"


def test_lines_of_trec_eval_with_every_turn(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(f"{PASSAGES} --format trec_eval --per-turn", capsys)
    rows = [line.split() for line in out.splitlines()]
    assert (code, rows[0]) == (0, ["runid", "all", "mine"])
    of_turns = [row[1:] for row in rows if row[0] == "recip_rank"]
    assert of_turns == [["9-1_1", "1.0000"], ["9-1_2", "0.5000"], ["all", "0.7500"]]
    assert "mine\tRR\t9-1_2\t0.5000\nmine\tRR\tall\t0.7500\n" in call(f"{PASSAGES} --format tot --per-turn", capsys)[1]
    line = '{"run_id": "mine", "topic_id": "all", "measure": "RR", "value": 0.75}\n'
    assert line in call(f"{PASSAGES} --format jsonl", capsys)[1]


def test_lines_of_ir_measures_name_the_assessment_where_there_are_several(here: Path, capsys) -> None:
    put(Path("nist"), "9-1_1 0 1 1\n")
    put(Path("org"), "9-1_1 0 2 1\n")
    put(Path("b.run"), "9-1_1 Q0 1 1 9 mine\n9-1_1 Q0 2 2 8 mine\n")
    code, out, _ = call("evaluate statements --runs b.run --qrels nist org --format ir_measures", capsys)
    assert code == 0
    assert {"nist/mine\tRR\t1.0000", "org/mine\tRR\t0.5000", "org/mine\tP@3\t0.3333"} <= set(out.splitlines())


@pytest.mark.parametrize("form", BOARDS)
def test_a_board_is_compared_by_measure_and_a_wrong_line_of_it_refused(here, judged: Path, capsys, form: str) -> None:
    put(Path("p.qrels"), "9-1_1 0 1 2\n9-1_2 0 2 1\n")
    put(Path("a.run"), "9-1_1 Q0 1 1 9 mine\n9-1_2 Q0 2 1 9 mine\n")
    put(Path("b.run"), "9-1_1 Q0 3 1 9 yours\n9-1_1 Q0 1 2 8 yours\n")
    rankings = [f"{of} --runs a.run b.run --qrels p.qrels" for of in ("passages", "statements")]
    for words, runs, turned in (
        (rankings[0], 2, "-1.000"),
        (rankings[1], 2, "-1.000"),
        (f"responses {judged}", 7, "0."),
    ):
        command = f"evaluate {words} --format {form}"
        _, board, _ = call(command, capsys)
        other = board
        for names in (("mine", "yours"), ("quarry-copied", "thistle-faulty")):
            other = other.replace(names[0], "?").replace(names[1], names[0]).replace("?", names[1])
        for theirs, tau in ((board, "1.000"), (other, turned)):
            put(Path("board"), theirs)
            code, out, err = call(f"{command} --board board", capsys)
            assert (code, out) == (0, board)
            told = re.findall(rf"^board: (\S+): tau-b {tau}\d* over {runs} runs$", err, re.MULTILINE)
            assert len(told) == len({*told}) == len(err.splitlines()), err
        put(Path("board"), f"{board}{board.splitlines()[-1]}\nx\n")
        code, out, err = call(f"{command} --board board", capsys)
        assert (code, out) == (2, "")
        assert f"board: not a board in the form of {form}" in err, err
        assert f"expected a line of {form}, found " in err and "a second value of " in err


def test_tables_by_depth_and_by_pair(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(Path("b.run"), RUN.replace("mine", "yours"))
    _, depth, _ = call("evaluate passages --runs a.run b.run --qrels p.qrels --by depth --main RR", capsys)
    assert depth.splitlines()[0] == "Passages by p.qrels: by depth, over all turns of the qrels, unanswered ones 0"
    lines = [line.split()[:4] for line in depth.splitlines()[2:4]]
    assert lines == [["RR", "1", "1", "1.0000"], ["RR", "2", "1", "0.5000"]]
    _, pair, _ = call("evaluate passages --runs a.run b.run --qrels p.qrels --by pair --format tsv", capsys)
    assert pair.splitlines()[1].split("\t")[:4] == ["nDCG@5", "mine", "yours", "0.0000"]


def test_a_table_that_the_turns_do_not_allow_is_refused_before_a_folder_is_written(here: Path, capsys) -> None:
    for command in (PASSAGES, PASSAGES.replace("passages", "statements")):
        code, out, err = call(f"{command} --by ptkb --out out", capsys)
        assert (code, out) == (2, "")
        assert "--by ptkb: nothing says which turns depend on PTKB statements" in err
        assert not Path("out").exists()


def test_what_was_passed_over_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extra = "".join(f"9-1_1 Q0 d{k} 1 {-k} mine\n" for k in range(1000))
    put(Path("a.run"), RUN + "9-1_1 Q0 a 2 1 mine\n" + extra)
    bad = [{"id": "a", "score": "high", "used": True}]
    response = {"rank": 1, "text": "x", "passage_provenance": bad, "ptkb_provenance": []}
    turn = {"turn_id": "9-1_1", "responses": [response]}
    put(Path("c.json"), json.dumps({"run_name": "c", "run_type": "automatic", "turns": [turn, turn]}))
    code, _, err = call("evaluate passages --runs a.run c.json --qrels p.qrels", capsys)
    assert code == 0
    assert err.splitlines() == [
        "Warning: a.run: lines that name an item of a turn again: 1",
        "Warning: a.run: items after the first 1,000 of a turn: 1",
        "Warning: c.json: 2 errors of form, which `judge validate` lists",
        "Warning: c.json: 1 turn given again, of which the first counts",
    ]


def test_turn_ids_in_the_older_spelling_are_the_same_turns(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, plain, _ = call(PASSAGES, capsys)
    put(Path("a.run"), RUN.replace("9-1_", "9-1-"))
    assert call(PASSAGES, capsys)[1] == plain
    put(Path("p.qrels"), QRELS.replace("9-1_", "9-1-"))
    assert call(PASSAGES, capsys)[1] == plain
    put(Path("a.run"), RUN + "9-1-1 Q0 a 1 9 mine\n")
    assert "two spellings" in call(PASSAGES, capsys)[2]


@pytest.mark.parametrize(("words", "said"), [
    (f"{PASSAGES} --per-turn", "--per-turn: without effect here"),
    (f"{PASSAGES} --by topic --format trec_eval", "--by: without effect here"),
    (f"{PASSAGES} --rel 3", "no passage has grade 3 or more; the highest is 2"),
    (f"{PASSAGES} --measure P", "measure 'P' cannot be computed"),
    (f"{PASSAGES} --measure foo", "measure 'foo' cannot be computed"),
    (f"{PASSAGES} --main map", "measure 'map' cannot be computed: expected AP, as ir_measures calls it"),
    (f"{PASSAGES} --main ndcg_cut_3", "expected nDCG@3, as ir_measures calls it"),
    (f"{PASSAGES} --main set_recall", "expected SetR, as ir_measures calls it"),
    (f"{PASSAGES} --main official", "expected one that ir_measures computes"),
    (f"{PASSAGES} --main 'nDCG@0'", "cannot be computed"),
    ("evaluate passages --runs absent --qrels p.qrels", "absent: cannot be read"),
    ("evaluate statements --runs a.run", "expected --qrels FILE, or --topics FILE"),
    ("evaluate statements --runs a.run --qrels p.qrels --topics p.qrels", "p.qrels"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_in_one_line(here: Path, capsys, words: str, said: str) -> None:
    code, out, err = call(words, capsys)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
