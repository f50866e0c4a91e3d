"""`judge validate`: what it prints where, and its exit codes."""

import json

import pytest

from judge.cli import main

PASSAGE = {"id": "clueweb22-en0000-00-00000:0", "score": 0.9, "used": True}
TOPICS = [{"number": "9-1", "ptkb": {"1": "I am vegan."}, "turns": [{"turn_id": 1, "utterance": "Hi"}]}]


def run(*turn_ids, name="r", **response):
    answer = {"rank": 1, "text": "Text.", "ptkb_provenance": [1], "passage_provenance": [PASSAGE]} | response
    turns = [{"turn_id": turn_id, "responses": [answer]} for turn_id in turn_ids]
    return {"run_name": name, "run_type": "manual", "eval_response": True, "turns": turns}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "topics.json").write_text(json.dumps(TOPICS), encoding="utf-8")
    runs = tmp_path / "runs"
    runs.mkdir()
    return runs


def put(folder, name, document):
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_sound_runs_are_silent_and_exit_0(folder, capsys):
    put(folder, "a.json", run("9-1_1"))
    assert main(["validate", "--runs", str(folder), "--topics", str(folder.parent / "topics.json")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "1 files, 1 readable as runs: 0 errors, 0 warnings\n"


def test_warnings_exit_0_and_errors_1(folder, capsys):
    put(folder, "a.json", run("9-1_1", ptkb_provenance=[]))
    assert main(["validate", "--runs", str(folder)]) == 0
    path = put(folder, "b.json", run("9-1_1", name="s", text=""))
    assert main(["validate", "--runs", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == (f"{path}: error empty_text 9-1_1 $.turns[0].responses[0].text: the text is empty")
    assert "2 files, 2 readable as runs: 1 errors, 1 warnings" in err
    assert "not checked without --topics: missing_turn, " in err


def test_topics_are_checked_against(folder, capsys):
    put(folder, "a.json", run("9-1_2"))
    assert main(["validate", "--runs", str(folder), "--topics", str(folder.parent / "topics.json")]) == 1
    out, err = capsys.readouterr()
    assert "turn_number_too_high 9-1_2" in out
    assert "missing_turn 9-1_1" in out
    assert "not checked" not in err


def test_many_of_a_kind_are_folded_unless_all_are_asked_for(folder, capsys):
    path = put(folder, "a.json", run(*(f"9-1_{number}" for number in range(1, 10)), ptkb_provenance=[]))
    main(["validate", "--runs", str(folder)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 + 1
    assert lines[-1] == f"{path}: warning no_ptkb: 4 more (--all lists them)"
    main(["validate", "--runs", str(folder), "--all"])
    assert len(capsys.readouterr().out.splitlines()) == 9


def test_json_lists_every_problem_with_all_its_fields(folder, capsys):
    path = put(folder, "a.json", run(*(f"9-1_{number}" for number in range(1, 10)), text=" "))
    (folder / ".hidden").write_bytes(b"")
    assert main(["validate", "--runs", str(folder), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)
    assert len(problems) == 1 + 9
    assert problems[1] == {
        "code": "empty_text",
        "severity": "error",
        "file": str(path),
        "turn_id": "9-1_1",
        "path": "$.turns[0].responses[0].text",
        "message": "the text is only white space",
    }


def test_a_single_file_a_format_and_a_limit_may_be_given(folder, capsys):
    path = put(folder, "a.json", run("9-1_1", text="one two three"))
    put(folder, "b.json", {"no": "run"})
    assert main(["validate", "--runs", str(path), "--format", "ikat2024", "--token-limit", "2"]) == 0
    out, err = capsys.readouterr()
    assert "over_token_limit 9-1_1" in out
    assert err.startswith("1 files, 1 readable as runs")


def test_unreadable_files_and_clashing_ids_are_problems(folder, capsys):
    put(folder, "a.json", run("9-1_1"))
    put(folder, "b.json", run("9-1_1"))
    (folder / "c.json").write_bytes(b'{"run_name": "r", "turns": [')
    assert main(["validate", "--runs", str(folder), "--json"]) == 1
    codes = [problem["code"] for problem in json.loads(capsys.readouterr().out)]
    assert codes == ["truncated_json", "duplicate_run_id", "duplicate_run_id"]


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(folder, capsys):
    put(folder, "a\x1b[31m.json", run("9-1_1", text=""))
    main(["validate", "--runs", str(folder)])
    out, _ = capsys.readouterr()
    assert "\x1b" not in out
    assert "a\\x1b[31m.json: error" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runs", "{runs}/none"],
        ["--runs", "{runs}"],
        ["--runs", "{runs}/../topics.json", "--topics", "{runs}/../none.json"],
    ],
)
def test_bad_input_exits_2_with_one_message(folder, capsys, arguments):
    assert main(["validate", *(one.format(runs=folder) for one in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("judge: ")
    assert "Traceback" not in err


def test_a_hostile_file_name_cannot_drive_the_terminal(folder, capsys):
    assert main(["validate", "--runs", str(folder / "a\x1b[2J\u202eb")]) == 2
    assert (
        capsys.readouterr().err
        == f"judge: {folder}/a\\x1b[2J\\u202eb: cannot be read as a folder of runs: No such file or directory\n"
    )


def test_hostile_text_in_the_problems_of_an_error_cannot_drive_the_terminal(folder, capsys):
    topics = put(folder.parent, "to\x1bpics.json", [{"number": "9-1", "ptkb": {"\x1b]0;": 1}, "turns": []}])
    assert main(["validate", "--runs", str(folder), "--topics", str(topics)]) == 2
    said = capsys.readouterr().err
    assert "to\\x1bpics.json" in said
    assert "\x1b" not in said
