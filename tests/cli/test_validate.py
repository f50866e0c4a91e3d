"""`judge validate`: what it prints where, and its exit codes."""

import hashlib
import json

import msgspec
import pytest

from judge.cli import main
from judge.cli.printing import folded_lines
from judge.records import Problem
from judge.runs.profiles import TURNS
from tests.conftest import complaint, printed, put

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


def validate(folder, *options):
    return main(["validate", "--runs", str(folder), *map(str, options)])


def test_sound_runs_exit_0(folder, capsys):
    put(folder / "a.json", run("9-1_1"))
    assert validate(folder, "--topics", folder.parent / "topics.json") == 0
    out, err = capsys.readouterr()
    assert out == (
        "file    run  errors  warnings  format    turns  responses  type\n"
        "a.json  r         0         0  ikat2024      1          1  manual\n"
        "\n"
        "1 file, 1 readable: 0 errors, 0 warnings\n"
    )
    assert err == (
        "not checked without --passage-hashes: absent_evidence, passage_text_differs, unknown_passage\n"
        "limits: 250 tokens by the rule bare, any number of used passages (profile ikat2025)\n"
    )


def test_warnings_exit_0_and_errors_1(folder, capsys):
    put(folder / "a.json", run("9-1_1", ptkb_provenance=[]))
    assert validate(folder) == 0
    put(folder / "b.json", run("9-1_1", name="s", text=""))
    assert validate(folder) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-3:] == [
        "  error empty_text (1): no text, or only white space",
        "    9-1_1 $.turns[0].responses[0].text: the text is empty",
        "2 files, 2 readable: 1 error, 1 warning",
    ]
    assert "not checked without --topics: missing_turn, " in err


def test_a_file_that_cannot_be_read_exits_2_after_everything_is_listed(folder, capsys):
    (folder / "a.json").write_bytes(b'{"run_name": "r", "turns": [')
    put(folder / "b.json", run("9-1_1", text=""))
    assert validate(folder) == 2
    out, _ = capsys.readouterr()
    assert "  error truncated_json (1)" in out
    assert "  error empty_text (1)" in out
    assert "2 files, 1 readable: 2 errors, 0 warnings" in out


def test_json_lists_every_file_and_problem_with_all_its_fields(folder, capsys):
    path = put(folder / "a.json", run(*(f"9-1_{number}" for number in range(1, 10)), text=" "))
    (folder / ".hidden").write_bytes(b"")
    report = json.loads(printed(capsys, validate(folder, "--json"), 1))
    assert {name: report[name] for name in ("schema", "errors", "warnings", "fixed")} == {
        "schema": 1, "errors": 9, "warnings": 1, "fixed": None,
    }  # fmt: skip
    assert [file["file"] for file in report["files"]] == [str(folder / ".hidden"), str(path)]
    file = report["files"][1]
    assert file.pop("digest") == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(file["problems"]) == len(file["exclusions"]) == 9
    assert file["problems"][0] == {
        "code": "empty_text", "severity": "error", "file": str(path), "turn_id": "9-1_1",
        "path": "$.turns[0].responses[0].text", "message": "the text is only white space",
    }  # fmt: skip
    assert "unknown_turn" in file["unchecked"]
    rest = {name: file[name] for name in ("run_id", "team", "run_type", "format", "turns", "responses", "errors")}
    assert list(rest.values()) == ["r", None, "manual", "ikat2024", 9, 9, 9]


def test_json_has_the_lengths_under_every_way_of_counting(folder, capsys):
    put(folder / "a.json", run("9-1_1", text="It's one."))
    [file] = json.loads(printed(capsys, validate(folder, "--json", "--token-limit", "3")))["files"]
    # It's one. | It 's one . | It's one.
    assert file["tokens"] == [
        {"rule": "bare", "median": 2, "longest": 2, "over": 0},
        {"rule": "english", "median": 4, "longest": 4, "over": 1},
        {"rule": "whitespace", "median": 2, "longest": 2, "over": 0},
    ]


def test_a_single_file_a_format_and_a_limit_may_be_given(folder, capsys):
    path = put(folder / "a.json", run("9-1_1", text="one two three"))
    put(folder / "b.json", {"no": "run"})
    assert validate(path, "--format", "ikat2024", "--token-limit", "2") == 0
    out, _ = capsys.readouterr()
    assert "warning over_token_limit (1)" in out
    assert "1 file, 1 readable" in out


def test_passages_are_checked_against_the_hash_list(folder, tmp_path, capsys):
    md5 = hashlib.md5(b"A passage.").hexdigest()
    hashes = put(tmp_path / "hashes.tsv", f"clueweb22-en0000-00-00000\t0\t{md5}\n")
    known, altered = PASSAGE | {"text": "A passage."}, PASSAGE | {"text": "Another."}
    put(folder / "a.json", run("9-1_1", passage_provenance=[known]))
    put(folder / "b.json", run("9-1_1", name="b", passage_provenance=[altered]))
    put(folder / "c.json", run("9-1_1", name="c", passage_provenance=[PASSAGE | {"id": "clueweb22-en0000-00-00000:1"}]))
    assert validate(folder, "--passage-hashes", hashes, "--json") == 0
    out, err = capsys.readouterr()
    assert [[problem["code"] for problem in file["problems"]] for file in json.loads(out)["files"]] == [
        [], ["passage_text_differs"], ["unknown_passage"],
    ]  # fmt: skip
    assert "--passage-hashes" not in err
    hashes.write_text("no list\n", encoding="utf-8")
    assert printed(capsys, validate(folder, "--passage-hashes", hashes), 2) == ""


def test_pages_are_written_for_every_run_and_nothing_else_is_touched(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1", name="one", text=" ".join(["w"] * 251)))
    put(folder / "b.json", run("9-1_1", name="../<b>"))
    (folder / "c.json").write_bytes(b"{")
    (folder / "notes.txt").write_bytes(b"")
    pages = tmp_path / "pages"
    put(pages / "mine.txt", b"mine")
    assert validate(folder, "--report-dir", pages) == 2
    first = {path.name: path.read_bytes() for path in pages.iterdir()}
    strange = next(name for name in first if name.startswith("b_-") or name.startswith("b-"))
    assert first.keys() == {"mine.txt", "one.md", strange, "c.json.md", "index.md", "pages.sha256"}
    assert first["mine.txt"] == b"mine"
    assert b"| bare (the rule) | 251 | 251 | 1 |" in first["one.md"]
    assert b"&lt;b&gt;" in first[strange]
    assert validate(folder, "--report-dir", pages) == 2
    assert {path.name: path.read_bytes() for path in pages.iterdir()} == first


def test_pages_are_not_written_over_an_input_or_without_one(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1", name="one"))
    topics = put(folder.parent / "index.md", TOPICS)
    before = topics.read_bytes()
    assert validate(folder, "--topics", topics, "--report-dir", folder.parent) == 2
    assert topics.read_bytes() == before
    assert "index.md: would be written over what it is made of" in capsys.readouterr().err
    topics.unlink()
    assert validate(folder, "--report-dir", tmp_path / "pages", "--topics", tmp_path / "none.json") == 2
    assert not (tmp_path / "pages").exists()


def test_pages_are_not_written_among_the_runs_or_their_copies(folder, tmp_path, capsys):
    path = put(folder / "a.json", run("9-1_1"))
    (tmp_path / "link").symlink_to(folder)
    for runs in (folder, path):
        for pages in (folder, tmp_path / "link", tmp_path / "link" / ".." / "runs"):
            assert "give a folder of its own" in complaint(capsys, validate(runs, "--report-dir", pages))
    assert validate(folder, "--fix", "-o", tmp_path / "out", "--report-dir", tmp_path / "runs" / ".." / "out") == 2
    assert "need different folders" in capsys.readouterr().err
    assert [one.name for one in folder.iterdir()] == ["a.json"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["one.md", "two.md"])
def test_a_page_of_somebody_else_is_neither_removed_nor_written_over(folder, tmp_path, capsys, name):
    put(folder / "a.json", run("9-1_1", name="two"))
    pages = tmp_path / "pages"
    put(pages / name, b"mine")
    assert validate(folder, "--report-dir", pages) == 2
    out, err = capsys.readouterr()
    assert out == ""
    said = {
        "one.md": "holds pages that this call does not write: 'one.md'; remove them or choose another folder",
        "two.md": "two.md: not listed in pages.sha256, so somebody else's: move it away or choose another folder",
    }
    assert said[name] in err
    assert [(one.name, one.read_bytes()) for one in pages.iterdir()] == [(name, b"mine")]


def test_many_problems_of_one_list_are_all_counted(folder, tmp_path, capsys):
    entries = [PASSAGE | {"id": f"clueweb22-en0000-00-00000:{n}"} for n in range(31)]
    put(folder / "a.json", run("9-1_1", passage_provenance=entries))
    assert validate(folder) == 0
    out, _ = capsys.readouterr()
    # 31 equal scores make 30 problems, of which ten are listed.
    assert "1 turn: 0 errors, 30 warnings" in out
    assert "  warning equal_scores (30): " in out
    assert "(`judge validate --all` lists 10)" in out
    assert out.endswith("1 file, 1 readable: 0 errors, 30 warnings\n")
    assert "judge validate --all" not in printed(capsys, validate(folder, "--all"))
    report = json.loads(printed(capsys, validate(folder, "--json", "--strict", "--report-dir", tmp_path / "pages"), 1))
    assert (report["errors"], report["files"][0]["errors"]) == (30, 30)
    assert sum(problem.get("count", 1) for problem in report["files"][0]["problems"]) == 30
    page = (tmp_path / "pages" / "r.md").read_text(encoding="utf-8")
    assert "| found | 30 errors, 0 warnings |" in page
    assert "## error: equal_scores (30)" in page


def test_fix_writes_fixed_copies_and_says_what_remains(folder, tmp_path, capsys):
    path = put(folder / "a.json", run("9-1_1", text="w " * 251, ptkb_provenance=[1, 1]))
    put(folder / "b.json", run("9-1_1", name="s", text=""))
    (folder / "c.json").write_bytes(b"{")
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    out = tmp_path / "out"
    assert validate(folder, "--fix", "-o", out) == 2
    said, err = capsys.readouterr()
    assert said.splitlines()[-6:] == [
        f"fixed copies in {out}: 2 fixes, listed in fixes.tsv; what remains:",
        f"  {out}/a.json: 0 errors, 0 warnings",
        f"  {out}/b.json: 1 error, 0 warnings: empty_text (1)",
        "without a copy:",
        f"  {folder}/c.json: 1 error, 0 warnings: truncated_json (1)",
        "3 files, 2 readable: 2 errors, 0 warnings",
    ]
    assert f"{folder}/c.json: not fixed: it cannot be read as a run; no copy was written" in err
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert sorted(one.name for one in out.iterdir()) == ["a.json", "b.json", "fixes.tsv"]
    assert (out / "b.json").read_bytes() == before["b.json"]
    response = json.loads((out / "a.json").read_bytes())["turns"][0]["responses"][0]
    assert len(response["text"].split()) == 250
    assert response["ptkb_provenance"] == [1]
    log = (out / "fixes.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split("\t")[:4] for line in log] == [
        [str(path), "9-1_1", "$.turns[0].responses[0].text", "over_token_limit"],
        [str(path), "9-1_1", "$.turns[0].responses[0].ptkb_provenance[1]", "duplicate_ptkb"],
    ]


TWICE = '{"run_name": "%s", "run_type": "manual", "turns": [{"turn_id": "9-1_1", "responses": [%s]}]}'
FIXABLE = '{"rank": "1", "text": "T", "text": "%s", "ptkb_provenance": [1], "passage_provenance": [%s]}'


def test_errors_of_a_file_without_a_copy_count_as_remaining(folder, tmp_path, capsys):
    out = tmp_path / "out"
    put(folder / "a.json", run("9-1_1", name="s"))
    # A name twice in an object is not seen by a reader, but such a file is not written anew.
    refused = TWICE % ("r", FIXABLE % ("T", json.dumps(PASSAGE)))
    (folder / "b.json").write_text(refused, encoding="utf-8")
    assert validate(folder, "--fix", "-o", out) == 0
    assert validate(folder, "--fix", "-o", out, "--strict") == 1
    (folder / "b.json").write_text(TWICE % ("r", FIXABLE % ("", json.dumps(PASSAGE))), encoding="utf-8")
    capsys.readouterr()
    fixed = json.loads(printed(capsys, validate(folder, "--fix", "-o", out, "--json"), 1))["fixed"]
    assert [(file["file"], file["errors"]) for file in fixed["files"]] == [(str(out / "a.json"), 0)]
    assert [(file["file"], file["errors"]) for file in fixed["without_copy"]] == [(str(folder / "b.json"), 1)]


def test_an_id_shared_with_a_file_without_a_copy_remains_shared(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1"))
    (folder / "b.json").write_text(TWICE % ("r", FIXABLE % ("T", json.dumps(PASSAGE))), encoding="utf-8")
    assert validate(folder, "--fix", "-o", tmp_path / "out") == 1
    out, _ = capsys.readouterr()
    assert f"  {tmp_path}/out/a.json: 1 error, 0 warnings: duplicate_run_id (1)" in out
    assert f"  {folder}/b.json: 1 error, 1 warning: duplicate_run_id (1), coerced_value (1)" in out


def test_what_is_wrong_with_the_folder_remains_when_its_runs_are_fixed(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1"))
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert validate(folder, "--fix", "-o", tmp_path / "out") == 0
    assert validate(folder, "--fix", "-o", tmp_path / "out", "--strict") == 1
    assert f"without a copy:\n  {folder}/notes.txt: 1 error" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--fix"], ["-o", "{out}"], ["--fix", "-o", "{runs}"]])
def test_a_fix_needs_a_folder_of_its_own(folder, tmp_path, capsys, options):
    path = put(folder / "a.json", run("9-1_1", ptkb_provenance=[1, 1]))
    before = path.read_bytes()
    assert validate(folder, *(one.format(out=tmp_path / "out", runs=folder) for one in options)) == 2
    assert capsys.readouterr().out == ""
    assert [one.name for one in folder.iterdir()] == ["a.json"]
    assert path.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(folder, capsys):
    put(folder / "a\x1b[31m.json", run("9-1_1", text=""))
    main(["validate", "--runs", str(folder)])
    out, _ = capsys.readouterr()
    assert "\x1b" not in out
    assert "a\\x1b[31m.json: run 'r'" in out


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


def test_hostile_text_in_the_problems_of_an_error_cannot_drive_the_terminal(folder, capsys):
    topics = put(folder.parent / "to\x1bpics.json", [{"number": "9-1", "ptkb": {"\x1b]0;": 1}, "turns": []}])
    said = complaint(capsys, main(["validate", "--runs", str(folder), "--topics", str(topics)]))
    assert "to\\x1bpics.json" in said
    assert "\x1b" not in said


def test_nothing_is_written_inside_the_folder_of_runs(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1"))
    (tmp_path / "link").symlink_to(folder)
    for out in (folder / "out", folder / "a" / "b", tmp_path / "link" / "out", tmp_path / "x" / ".." / "runs" / "out"):
        for options in (["--report-dir", out], ["--fix", "-o", out]):
            assert validate(folder, *options) == 2
            assert f"{out}: this is inside {folder}; give a folder outside it" in capsys.readouterr().err
    assert validate(tmp_path / "link", "--report-dir", folder / "out") == 2
    assert [one.name for one in folder.iterdir()] == ["a.json"]
    # Only the folder of runs is closed, not those beside it or below that of a single run.
    assert validate(folder, "--report-dir", tmp_path / "runs-pages") == 0
    assert validate(put(tmp_path / "b.json", run("9-1_1")), "--report-dir", tmp_path / "pages") == 0


def test_a_team_has_a_page_of_its_own_and_a_file_may_name_it(folder, tmp_path, capsys):
    put(folder / "a.json", run("9-1_1", name="a"))
    put(folder / "b.json", run("9-1_1", name="b", text=""))
    (tmp_path / "teams.tsv").write_text("run_id\tteam\na\tAlpha\nb\tBeta\n", encoding="utf-8")
    pages = tmp_path / "pages"
    assert validate(folder, "--report-dir", pages, "--teams", tmp_path / "teams.tsv") == 1
    names = {str(path.relative_to(pages)) for path in pages.rglob("*.md")}
    assert names == {"a.md", "b.md", "index.md", "teams/Alpha.md", "teams/Beta.md"}
    page = (pages / "teams" / "Beta.md").read_text(encoding="utf-8")
    assert "| b | 1 | 0 | 1 |" in page
    assert "### error: empty_text (1)" in page
    assert "Alpha" not in page
    assert "b.json  b         1         0  ikat2024      1          1  manual  Beta\n" in capsys.readouterr().out
    # Without teams, the next call removes their pages.
    assert validate(folder, "--report-dir", pages) == 1
    assert {str(path.relative_to(pages)) for path in pages.rglob("*.md")} == {"a.md", "b.md", "index.md"}


def test_runs_of_several_years_are_named_and_an_error(folder, tmp_path, capsys):
    old = run(*(f"{topic}_{turn}" for topic in TURNS[2023] for turn in (1, 2)), name="old")
    new = run(*(f"{topic}_{turn}" for topic in TURNS[2025] for turn in (1, 2)), name="new")
    put(folder / "a.json", old)
    assert "several_years" not in printed(capsys, validate(folder))
    put(folder / "b.json", new)
    assert validate(folder, "--report-dir", tmp_path / "pages") == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("error several_years: "))
    assert "2023: 1 run ('old'); 2025: 1 run ('new': 4 of its 34 turns are in 'old' too)" in line
    assert "several_years" in (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    assert "several_years" not in (tmp_path / "pages" / "old.md").read_text(encoding="utf-8")
    assert "one call a year" in json.loads(printed(capsys, validate(folder, "--json"), 1))["several_years"]


def test_the_problems_of_a_pool_are_grouped_by_file_and_code(folder, tmp_path, capsys):
    many = [turn | {"turn_id": f"9-1_{n}"} for n in range(1, 60) for turn in run("9-1_1", text="")["turns"]]
    put(folder / "a.json", run("9-1_1", name="a") | {"turns": [*run("9-1_1")["turns"], *many]})
    put(folder / "b.json", run("9-1_1", name="b") | {"turns": run("9-1_1")["turns"] + run("9-1_2", rank=0)["turns"]})
    main(["pool", "--runs", str(folder), "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err.splitlines()
    of_runs = [line for line in said if str(folder) in line or line.startswith("  error")]
    assert len(of_runs) == 5
    assert of_runs[0].endswith("a.json: 60 errors, 0 warnings: duplicate_turn (1), empty_text (59)")
    assert "error empty_text (59): no text, or only white space. First at 9-1_1 " in of_runs[2]
    assert of_runs[3].endswith("b.json: 1 error, 0 warnings: bad_rank (1)")
    assert of_runs[4].startswith("  error bad_rank (1): ")


def test_the_problems_of_an_input_are_folded_where_they_are_many():
    problems = [Problem("wrong_label", "error", f"{file}.csv", None, f"line {n}", "a label of no scale")
                for file, lines in (("a", 374), ("b", 1)) for n in range(1, lines + 1)]  # fmt: skip
    assert list(folded_lines(problems, 50)) == [
        "a.csv: wrong_label at 374 places, first line 1, line 2, line 3: a label of no scale",
        "b.csv: wrong_label at line 1: a label of no scale",
    ]
    (line,) = folded_lines(problems[:4], 50)
    assert line == "a.csv: wrong_label at 4 places, first line 1, line 2, line 3: a label of no scale"
    unlike = [msgspec.structs.replace(each, message=each.path) for each in problems[:50]]
    assert len(list(folded_lines(unlike, 50))) == 50
    several = [Problem("wrong_label", "error", f"{n % 60}.csv", None, f"line {n}", "no") for n in range(120)]
    assert list(folded_lines(several, 50))[-1] == "… and 10 more files or codes with problems"


def test_what_several_files_have_in_common_is_one_line():
    alike = [Problem("wrong_profile", "error", f"{file}.jsonl", None, "$.run_id", "needs another") for file in "abcd"]
    other = Problem("empty_file", "error", "e.jsonl", None, "", "the file is empty")
    assert list(folded_lines([*alike, other], 50)) == [
        "4 files: wrong_profile at $.run_id: needs another: a.jsonl, b.jsonl, c.jsonl, d.jsonl",
        "e.jsonl: empty_file: the file is empty",
    ]
    assert list(folded_lines(alike[:2], 50)) == [
        "a.jsonl: wrong_profile at $.run_id: needs another",
        "b.jsonl: wrong_profile at $.run_id: needs another",
    ]


def test_json_controls_no_terminal(folder, capsys):
    name = "a\u202eb\x9b2Jc\x7fd\U000e0001é日"
    put(folder / "a.json", run("9-1_1", name=name))
    validate(folder, "--json")
    out, _ = capsys.readouterr()
    assert [c for c in out if not c.isprintable() and c != "\n"] == []
    assert "\\u202e" in out and "\\u009b" in out and "é日" in out
    assert json.loads(out)["files"][0]["run_id"] == name
