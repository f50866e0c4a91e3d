"""`judge convert`: what it prints where, and its exit codes."""

import json

import pytest

from judge.cli import call
from judge.errors import UsageError
from tests.cli.test_validate import PASSAGE, TOPICS
from tests.cli.test_validate import run as of_turns
from tests.conftest import put


@pytest.fixture
def folder(tmp_path):
    document = of_turns("9-1_1", passage_provenance=[PASSAGE | {"text": "Tea."}])
    put(tmp_path / "runs" / "r.json", json.dumps(document))
    put(tmp_path / "runs" / "notes.txt", "hello")
    put(tmp_path / "topics.json", json.dumps(TOPICS))
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
        f"{folder / 'runs' / 'notes.txt'}: not_a_run_file: neither JSON nor a pool nor a table of answers, so not read "
        "as a run",
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
