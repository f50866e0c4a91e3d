import json
from pathlib import Path

import pytest

from judge.cli import call
from judge.jobs.tokens import COLUMNS
from tests.conftest import printed, put_run

LONG = "it's " * 3 + "end"
"""Bare 4 tokens, English 7, white space 4."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    runs.mkdir()
    put_run(
        runs / "a.json", "a", {"1_1": [LONG, "one"], "1_2": ["one two three four five"], "1_3": ["one two three four"]}
    )
    put_run(runs / "b\x1b.json", "b\x1b", {"1_1": ["one"], "1_2": [" "]}, eval_response=False)
    return runs


def run(*arguments: object) -> int:
    return call("tokens", [str(one) for one in arguments])


def test_what_each_policy_would_change_under_each_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "b\x1b.json").unlink()
    assert run("--runs", folder, "--token-limit", 4, "--tsv") == 0
    header, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert header == list(COLUMNS)
    found = {row[3]: [int(cell) for cell in row[4:]] for row in rows}
    # limit, turns, responses: over, at limit, longest, tokens lost, emptied, unanswered
    assert found == {
        "bare": [4, 3, 3, 1, 2, 5, 1, 0, 1],
        "english": [4, 3, 3, 2, 1, 7, 3 + 1, 0, 2],
        "whitespace": [4, 3, 3, 1, 2, 5, 1, 0, 1],
    }


def test_deeper_ranks_leave_no_turn_unanswered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(folder / "a.json", "a", {"1_1": ["one", "one two three"]})
    (found,) = json.loads(printed(capsys, run("--runs", folder / "a.json", "--token-limit", 2, "--json", "--depth", 2)))
    assert found["responses"] == 2
    assert found["rules"][0] == {
        "rule": "bare", "over": 1, "at_limit": 0, "longest": 3, "tokens_lost": 1, "emptied": 0, "unanswered": 0,
    }  # fmt: skip
    (found,) = json.loads(printed(capsys, run("--runs", folder / "a.json", "--token-limit", 2, "--json")))
    assert [rule["over"] for rule in found["rules"]] == [0, 0, 0]


def test_the_table_is_safe_to_print(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_run(folder / "c.json", "c", {"1_1": ["one"]}, eval_response=False)
    assert run("--runs", folder, "--token-limit", 4) in (0, 1)
    shown, said = capsys.readouterr()
    assert "\x1b" not in shown + said
    assert shown.splitlines()[0].split()[:3] == ["run", "rule", "responses"]
    assert "limit 4. over:" in said
    assert "not judged at all (eval_response: false): " in said


def test_a_file_that_cannot_be_judged_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.json").write_text("{", encoding="utf-8")
    assert run("--runs", folder, "--tsv") == 1
    shown, said = capsys.readouterr()
    assert "broken.json: holds nothing that can be judged; `judge validate` says why" in said
    assert "/a.json\t" in shown


def test_the_real_run_of_2025(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--runs", shared / "ikat/2025/runs", "--tsv") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert {row[3]: row[6:] for row in rows} == {
        "bare": ["188", "1", "0", "251", "1", "0", "1"],
        "english": ["188", "32", "0", "343", "1371", "0", "32"],
        "whitespace": ["188", "0", "0", "249", "0", "0", "0"],
    }
