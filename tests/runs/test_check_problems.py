"""Grouped text and Markdown pages of what validation found."""

import os
import re
from pathlib import Path

import msgspec
import pytest

from judge.records import Problem
from judge.runs.check import CODES
from judge.runs.check.pages import index_page, page_names, run_page, team_names, team_page
from judge.runs.check.problems import (
    Tokens,
    by_code,
    file_report,
    remaining,
    run_table,
    text_lines,
    token_summary,
    with_problems,
)
from judge.runs.check.validate import validate_together
from judge.runs.document import file_name
from judge.runs.records import Exclusion, Response, Run, RunTurn, TokenCount


def problem(code="no_ptkb", severity="warning", turn_id="9-1_1", message="m", file="runs/a.json", path="$.p", count=1):
    return Problem(code, severity, file, turn_id, path, message, count)


def run(run_id="r", texts=("Text.",), *, file="runs/a.json", eval_response=True):
    turns = (RunTurn("9-1_1", tuple(Response(rank, text, ()) for rank, text in enumerate(texts, start=1))),)
    return Run(run_id, "manual", None, "ikat2024", file, "d1", eval_response, turns)


def of(run_id, file):
    return file_report(file, run(run_id, file=file), ())


def test_every_code_says_how_to_fix_it():
    # Pages of topics files are not written.
    assert {code for code, row in CODES.items() if not row.advice} == {
        "hidden_file", "not_a_run_file", "several_years", "subfolder", "broken_parent", "duplicate_topic",
        "unknown_statement",
    }  # fmt: skip


def test_codes_come_errors_first_and_then_as_in_the_table():
    problems = [
        problem("no_ptkb"), problem("new_code"), problem("empty_text", "error"), problem("no_ptkb", turn_id="9-1_2"),
        problem("bad_rank", "error"), problem("no_rank_one"),
    ]  # fmt: skip
    assert [(severity, code, len(found)) for severity, code, found in by_code(problems)] == [
        ("error", "bad_rank", 1),
        ("error", "empty_text", 1),
        ("warning", "no_rank_one", 1),
        ("warning", "no_ptkb", 2),
        ("warning", "new_code", 1),
    ]


def test_text_groups_by_file_and_code_and_ends_with_a_total():
    one = file_report("a.json", run(), [problem(message=str(n)) for n in range(5)] + [problem("empty_text", "error")])
    two = file_report("b.json", None, [problem("empty_file", "error", None, "the file is empty", path="")])
    assert list(text_lines([one, two])) == [
        "a.json: run 'r', ikat2024, 'manual', 1 turn: 1 error, 5 warnings",
        "  error empty_text (1): no text, or only white space",
        "    9-1_1 $.p: m",
        "  warning no_ptkb (5): a response without PTKB statements. First at 9-1_1 $.p, 9-1_1 $.p, 9-1_1 $.p: 0; "
        "likely cause: the run does not choose statements, or chose none (`judge validate --all` lists 5)",
        "b.json: not read as a run: 1 error, 0 warnings",
        "  error empty_file (1): there is nothing in the file",
        "    the file is empty",
        "2 files, 1 readable: 2 errors, 5 warnings",
    ]
    assert len(list(text_lines([one, two], None))) == 8 + 5
    # A file without a problem stands in the table only.
    assert list(text_lines([file_report("a.json", run(), [])])) == ["1 file, 1 readable: 0 errors, 0 warnings"]


def test_every_run_is_a_row_of_the_table():
    mine = run("r\n", file="d/a.json", texts=("One.", "Two."), eval_response=False)
    found = [file_report("d/a.json", mine, [problem("empty_text", "error")], year=2024), file_report("b.txt", None, [])]
    assert [tuple(cells) for cells in run_table(found).cells()] == [
        ("a.json", "'r\\n'", "1", "0", "ikat2024", "1", "2", "manual, asks not to be judged", "-", "2024"),
        ("b.txt", "-", "0", "0", "-", "-", "-", "-", "-", "-"),
    ]  # fmt: skip


def test_what_is_only_counted_is_in_every_total():
    problems = [problem(message=str(n)) for n in range(10)] + [problem(message="and 21 more", count=21)]
    file = file_report("a.json", run(), [*problems, problem("empty_text", "error", count=2)])
    # 10 + 21 warnings; the text leaves out 31 - 3, of which 10 - 3 would be listed.
    assert (file.errors, file.warnings) == (2, 31)
    lines = list(text_lines([file]))
    assert lines[0].endswith(": 2 errors, 31 warnings")
    assert lines[3].startswith("  warning no_ptkb (31): a response without PTKB statements. First at 9-1_1 $.p, ")
    assert lines[3].endswith("(`judge validate --all` lists 10)")
    assert lines[-1] == "1 file, 1 readable: 2 errors, 31 warnings"
    eleven = [problem() for _ in range(10)] + [problem(path="$.p[*]", message="and 1 more like these here")]
    assert list(text_lines([file_report("a.json", run(), eleven)]))[-2].endswith("(`judge validate --all` lists 10)")
    assert remaining(file) == "a.json: 2 errors, 31 warnings: empty_text (2), no_ptkb (31)"
    assert with_problems(file, [problem("duplicate_run_id", "error", None)], strict=True).errors == 34
    page = run_page(file, 250, "bare", examples=3)
    assert "| found | 2 errors, 31 warnings |" in page
    assert "## warning: no_ptkb (31)" in page
    assert "28 more are not listed here." in page
    assert "| 2 | 31 | empty_text (2), no_ptkb (31) | 0 |" in index_page([file], {})


def test_strict_turns_warnings_into_errors_and_what_is_between_runs_is_added():
    file = with_problems(
        file_report("a.json", run(), [problem()]), [problem("duplicate_run_id", "error", None)], strict=True
    )
    assert (file.errors, file.warnings) == (2, 0)
    assert {one.severity for one in file.problems} == {"error"}
    assert with_problems(file, ()) == file
    assert file.exclusions == (Exclusion("r", "*", None, "duplicate_run_id", "m"),)


def test_lengths_are_those_of_the_texts_that_can_be_counted():
    def count(text):
        n = len(text.split())
        return TokenCount(bare=n, english=n + 1, whitespace=n - 1, cut=None)

    texts = ("a b c", "a", "a b c d", " ", "\0")
    # Bare 3, 1, 4: median 3, longest 4, over 3: one.
    assert token_summary(run(texts=texts), count, 3) == (
        Tokens("bare", 3, 4, 1), Tokens("english", 4, 5, 2), Tokens("whitespace", 2, 3, 0),
    )  # fmt: skip
    assert token_summary(run(texts=(" ",)), count, 3) == ()
    assert token_summary(run(texts=texts, eval_response=False), count, 3) == ()


@pytest.mark.parametrize(
    ("files", "pages"),
    [
        ([("r1", "d/a.json"), ("r2", "d/b.json")], ["r1.md", "r2.md"]),
        ([("r", "d/a.json"), ("r", "d/b.json")], ["a.json.md", "b.json.md"]),
        ([(None, "d/a.json"), ("a.json", "d/b.json")], ["a.json.md", "b.json.md"]),
        ([("", "a.json"), ("r", "d/b.json")], ["a.json.md", "r.md"]),
    ],
)
def test_pages_are_named_by_run_where_that_names_one_file(files, pages):
    found = [of(run_id, file) if run_id is not None else file_report(file, None, ()) for run_id, file in files]
    assert list(page_names(found).values()) == pages


def test_page_names_are_safe_distinct_and_never_that_of_the_index():
    names = ["index", "INDEX", "../../x", "con", "a/b", "a\\b", "A", "a", "\x1b[2J", "-rf", "é" * 300]
    pages = page_names([of(name, f"{n}.json") for n, name in enumerate(names)])
    assert len({page.lower() for page in pages.values()}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,130}\.md", page) for page in pages.values())
    assert len(set(page_names([of("Index", "a"), of("index.", "b")]).values())) == 2
    for name in ("index", "Index"):
        assert re.fullmatch(r"[Ii]ndex-[0-9a-f]{12}\.md", page_names([of(name, "a.json")])["a.json"])


def test_the_page_of_a_run_says_all_that_a_team_needs():
    file = file_report(
        "/home/x/runs/a.json",
        run(file="/home/x/runs/a.json"),
        [problem(message=f"found {n}") for n in range(4)]
        + [problem("duplicate_run_id", "error", None, "the run id 'r' is also that of /home/x/runs/b.json")],
        [Exclusion("r", "9-1_10", 2, "empty_text", "$.q: the text is empty"), Exclusion("r", "9-1_2", None, "z", "")],
        ["unknown_turn"],
        [Tokens("bare", 5, 9, 1), Tokens("english", 6, 11, 2)],
    )
    page = run_page(file, 8, "bare", examples=3)
    assert (
        page
        == """\
# Validation of r

|  |  |
| --- | --- |
| file | a.json |
| run type | manual |
| team | not given in the file |
| format | ikat2024 |
| turns, responses | 1, 1 |
| SHA-256 of the file | d1 |
| found | 1 error, 4 warnings |

An error keeps a response, a turn or the run from being judged; a warning does not.

## error: duplicate_run_id (1)

two runs have the same id.

To fix it: give every run a name of its own.

| turn | place | found |
| --- | --- | --- |
| - | \\$.p | the run id 'r' is also that of another submitted run |

## warning: no_ptkb (4)

a response without PTKB statements.

To fix it: name the statements that the response takes into account, if there are any.

Likely cause of so many: the run does not choose statements, or chose none.

| turn | place | found |
| --- | --- | --- |
| 9-1_1 | \\$.p | found 0 |
| 9-1_1 | \\$.p | found 1 |
| 9-1_1 | \\$.p | found 2 |

1 more is not listed here.

## What will not be judged

| turn | rank | reason | detail |
| --- | --- | --- | --- |
| 9-1_2 | all | z |  |
| 9-1_10 | 2 | empty_text | \\$.q: the text is empty |

## Length of the responses

| tokens | median | longest | over 8 |
| --- | ---: | ---: | ---: |
| bare (the rule) | 5 | 9 | 1 |
| English | 6 | 11 | 2 |

## What was checked

The form of the file and the rules of its format: ids, ranks, scores, lengths, passages and statements. \
Not checked, for want of topics or of the collection's list of passages:

| code | what it would say |
| --- | --- |
| unknown_turn | the topics have no such turn |
"""
    )
    assert "found 3" in run_page(file, 8, "bare")


def test_a_page_names_no_other_team_s_run_or_file():
    mine = run("secret", file="runs/mine.json")
    others = [run("Secret", file="runs/other_team.json"), run("secret", file="runs/third_team.json")]
    problems = [one for one in validate_together([mine, *others]) if one.file == mine.file]
    assert [re.search("[a-z]+_team", one.message)[0] for one in problems] == ["third_team", "other_team"]
    page = run_page(with_problems(file_report(mine.file, mine, ()), problems), 250, "bare")
    assert page.count("that of another submitted run |") == 2
    assert not re.search("Secret|_team", page)
    own = problem("unreadable_file", "error", None, "d/s/a.json: cannot be read", file="d/s/a.json")
    assert "| - | \\$.p | a.json: cannot be read |" in run_page(file_report("d/s/a.json", None, [own]), 250, "bare")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (Path("d") / "a\\b.json", "a\\\\\\\\b.json"),
        (Path(os.fsdecode(b"d/\xe9t\xe9.json")), "\\\\\\\\udce9t\\\\\\\\udce9.json"),
    ],
)
def test_a_file_is_named_by_the_whole_of_its_name(path, name):
    file = file_report(file_name(path), None, [problem("not_json", "error")])
    assert run_page(file, 250, "bare").startswith(f"# Validation of {name}\n")
    assert f"| {name} | - |" in index_page([file], {})


def test_a_very_long_name_is_cut_in_titles_and_tables():
    file = file_report("a.json", Run("x" * 5_000, "y" * 5_000, "z" * 5_000, "ikat2024", "a.json", "d", True, ()), ())
    for page in (run_page(file, 250, "bare"), index_page([file], page_names([file]))):
        assert max(map(len, page.split("\n"))) < 300


def test_a_run_that_asks_not_to_be_judged_is_pooled_for_nothing():
    file = file_report("a.json", run(eval_response=False), [])
    assert "so its responses are pooled for nothing." in run_page(file, 250, "bare")
    assert "Nothing is left out" not in run_page(file, 250, "bare")
    assert "| 0 | 0 | - | the run, as it asks (eval_response: false) |" in index_page([file], {})
    assert "manual, asks not to be judged" in run_table([file])[0]
    file = file_report("a.json", run(eval_response=False), [problem()])
    assert "1 turn, asks not to be judged: 0 errors" in next(text_lines([file]))


def test_pages_of_what_cannot_be_judged_say_so():
    unread = run_page(file_report("a.json", None, [problem("empty_file", "error", None)]), 250, "bare")
    assert "Nothing of this file, since it cannot be read as a run." in unread
    out = file_report(
        "a.json", run(), [], [Exclusion("r", "*", None, "empty_run_id", "$.run_name: the run has no name")]
    )
    assert "Nothing of this run: empty_run_id." in run_page(out, 250, "bare")
    assert "| 0 | 0 | - | the run |" in index_page([out], {})
    sound = run_page(file_report("a.json", run(), []), 250, "bare")
    assert "Nothing is wrong with this file." in sound
    assert "Not checked" not in sound


def test_a_page_lists_the_first_exclusions_and_counts_the_rest():
    out = [Exclusion("r", f"9-1_{n}", None, "no_response", "") for n in range(1, 54)]
    page = run_page(file_report("a.json", run(), [], out), 250, "bare")
    assert "| 9-1_50 |" in page
    assert "| 9-1_51 |" not in page
    assert "3 more are not listed here." in page


HOSTILE = "<script>alert(1)</script>|[x](http://e)\n# h `c` *b* \x1b[2J\u202e~~s~~ &amp;"


def test_hostile_text_is_text_on_every_page():
    file = file_report(
        HOSTILE,
        Run(HOSTILE, HOSTILE, HOSTILE, "ikat2024", HOSTILE, "d", True, ()),
        [problem(turn_id=HOSTILE, path=HOSTILE, message=HOSTILE)],
        [Exclusion(HOSTILE, HOSTILE, None, HOSTILE, HOSTILE)],
    )
    pages = page_names([file])
    for page in (run_page(file, 250, "bare"), index_page([file], pages), "\n".join(text_lines([file]))):
        assert page.replace("\n", "").isprintable()
    assert remaining(file).isprintable()
    for page in (run_page(file, 250, "bare"), index_page([file], pages)):
        assert "<script" not in page
        assert "\n# h" not in page
        assert not re.search(r"(?<!\\)`", page)
        assert re.findall(r"(?<!\\)\]\(([^)]*)", page) in ([], [pages[HOSTILE]])


def test_the_index_leads_to_the_pages():
    files = [of("r_1", "d/a_.json"), file_report("d/b.txt", None, [problem("not_a_run_file")])]
    assert (
        index_page(files, page_names(files[:1]))
        == """\
# Validation

2 files, 1 readable: 0 errors, 1 warning.

| file | run | format | errors | warnings | codes | not judged |
| --- | --- | --- | --- | --- | --- | --- |
| [a\\_.json](r_1.md) | r_1 | ikat2024 | 0 | 0 | - | 0 |
| b.txt | - | - | 0 | 1 | not_a_run_file (1) | - |
"""
    )


def test_the_page_of_a_team_has_the_pages_of_its_runs_and_of_no_other():
    files = [
        msgspec.structs.replace(of(run_id, f"{run_id}.json"), team=team)
        for run_id, team in (("a1", "A/x"), ("b1", "B"), ("a2", "A/x"), ("c", None))
    ]
    names = team_names(files)
    assert sorted(names) == ["A/x", "B"]
    assert all(re.fullmatch(r"teams/[A-Za-z0-9_][A-Za-z0-9._+-]*\.md", name) for name in names.values())
    page = team_page("A/x", [(file, run_page(file, 250, "bare")) for file in files if file.team == "A/x"])
    assert page.startswith("# Validation of the runs of A/x\n\n| run | errors | warnings | not judged |")
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Validation of a1",
        "## Validation of a2",
    ]
    assert page.count("### What was checked") == 2
    assert "b1" not in page
    index = index_page(files, page_names(files), names, "2023: 1 run ('a1'); 2025: 1 run ('b1')")
    assert f"[B]({names['B']})" in index
    assert "**error several_years**: 2023: 1 run" in index


def test_the_runs_of_one_file_are_one_file() -> None:
    reports = []
    for name in ("a", "b"):
        file = f"answers.csv ({name})"
        reports.append(file_report(file, run(name, file=file), [problem(file=file)]))
    heads = [line for line in text_lines(reports) if not line.startswith(" ")]
    assert [line.partition(",")[0] for line in heads] == [
        "answers.csv: run 'a'",
        "answers.csv: run 'b'",
        "1 file with 2 runs",
    ]
    assert heads[-1] == "1 file with 2 runs, 1 readable: 0 errors, 2 warnings"
    assert [line[:2] for line in run_table(reports).cells()] == [["answers.csv", "a"], ["answers.csv", "b"]]
