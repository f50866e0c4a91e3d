"""`judge convert`: what it prints where, and its exit codes."""

import json

import pytest

from judge.cli import call
from judge.errors import UsageError

PASSAGE = {"id": "clueweb22-en0000-00-00000:0", "score": 0.9, "used": True, "text": "Tea."}
TOPICS = [{"number": "9-1", "ptkb": {"1": "I am vegan."}, "turns": [{"turn_id": 1, "utterance": "Hi"}]}]


@pytest.fixture
def folder(tmp_path):
    answer = {"rank": 1, "text": "Text.", "ptkb_provenance": [1], "passage_provenance": [PASSAGE]}
    turns = [{"turn_id": "9-1_1", "responses": [answer]}]
    run = {"run_name": "r", "run_type": "manual", "eval_response": True, "turns": turns}
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "r.json").write_text(json.dumps(run), encoding="utf-8")
    (tmp_path / "runs" / "notes.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "topics.json").write_text(json.dumps(TOPICS), encoding="utf-8")
    return tmp_path


def run(folder, *arguments, out=None):
    standing = ["--runs", str(folder / "runs"), "-o", str(out or folder / "out")]
    return call("convert", [*standing, *arguments])


def test_files_on_stdout_and_counts_on_stderr(folder, capsys):
    topics = ["--topics", str(folder / "topics.json")]
    assert run(folder, "--to", "ikat2025", "--team", "t", *topics) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder / 'out' / 'r.jsonl'}\n"
    assert err.splitlines() == [
        f"{folder / 'runs' / 'notes.txt'}: not_a_run_file: neither JSON nor a pool, so not read as a run",
        "1 run written as ikat2025; 1 change in conversion.tsv",
        "  dropped: passage texts × 1",
    ]
    line = json.loads((folder / "out" / "r.jsonl").read_text(encoding="utf-8"))
    assert line["responses"][0]["ptkb_provenance"] == ["I am vegan."]


def test_lost_statements_are_said_loudly(folder, capsys):
    assert run(folder, "--to", "ikat2025", "--team", "t") == 0
    assert "PTKB STATEMENTS LOST in 1 response: give the topics with --topics" in capsys.readouterr().err


def test_nothing_is_written_inside_the_folder_of_runs(folder):
    (folder / "link").symlink_to(folder / "runs")
    for out in (folder / "runs" / "out", folder / "runs" / "a" / "b", folder / "link" / "out"):
        with pytest.raises(UsageError, match=r"this is inside .*runs; give a folder outside it"):
            run(folder, "--to", "ikat2025", "--team", "t", out=out)
    assert sorted(one.name for one in (folder / "runs").iterdir()) == ["notes.txt", "r.json"]
