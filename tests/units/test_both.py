"""Responses and the passages of the same runs, judged by one command into a folder in a folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.jobs.run import run as run_plan
from judge.jobs.run_inputs import Plan, run_parts
from judge.pool.bank import read_pool_folder
from judge.runs.sources import find_sources
from tests.calibration_world import table
from tests.conftest import INPUTS, PROJECT, complaint, json_lines, on_stderr, printed, put
from tests.jobs.conftest import Asked
from tests.jobs.conftest import asked as asked
from tests.jobs.test_run import files
from tests.mock import Mock
from tests.units.test_passages import TREC, TURN, A, B, C, D, listed, world

BOTH = ("passage_relevance", "groundedness")


def call(folder: Path, *more: object, command: str = "run", criteria: tuple[str, ...] = BOTH, out: str = "out") -> int:
    """A command in a folder, so that every command line is of the same words."""
    given: list[object] = [command, "--runs", folder / "runs", "--topics", folder / "topics.json"]
    given += ["--passages", folder / "passages.jsonl", "--criteria", *criteria, "--out", folder / out]
    if command == "run":
        given += ["--model", "baseline/overlap"]
    return main([str(each) for each in (*given, *more)])


def without_calls(folder: Path) -> dict[str, Any]:
    """The files of a folder but for those in it, and for what names the command line or the time that calls took."""
    kept = {}
    for name, data in files(folder).items():
        if not name.startswith(("passages/", "report")) and name not in ("run.sha256", "journal.sqlite"):
            kept[name] = data
    manifest = json.loads(kept["manifest.json"])
    for key in ("argv", "options", "spending"):
        del manifest[key]
    return {**kept, "manifest.json": manifest}


def pooled_ids(folder: Path) -> dict[str, list[tuple[str, int, str]]]:
    """Each pooled passage with run, rank and rule of those that list it."""
    found = {}
    for response in read_pool_folder(folder).responses:
        found[response.listed_as] = [(one.run_id, one.rank, one.provenance_rule) for one in response.runs]
    return found


def test_each_part_is_what_its_own_command_writes(tmp_path: Path) -> None:
    assert call(world(tmp_path)) == 0
    assert call(tmp_path, "--provenance", "both", criteria=BOTH[:1], out="alone/passages") == 0
    assert call(tmp_path, criteria=BOTH[1:], out="grounded") == 0
    assert without_calls(tmp_path / "out" / "passages") == without_calls(tmp_path / "alone" / "passages")
    both = without_calls(tmp_path / "out")
    extra = {name for name in both if name.startswith("used_")}
    assert extra == {"used_passages.md", "used_passages.tsv", "used_passage_grades.tsv"}
    alone = without_calls(tmp_path / "grounded")
    assert {name: both[name] for name in alone if name != "index.md"} == {
        name: data for name, data in alone.items() if name != "index.md"
    }


def test_the_used_passages_are_said_to_be_relevant_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(world(tmp_path)) == 0
    # one used C, which has half of the words of the question; other used B and D, which has no text.
    rows = [list(row.values())[1:] for row in table(tmp_path / "out" / "used_passage_grades.tsv")]
    assert sorted(rows) == [
        [TURN, B, "3", "", "true", ""],
        [TURN, C, "2", "", "true", ""],
        [TURN, D, "", "", "", "no_passages"],
    ]
    said = printed(capsys, 0)
    assert "groundedness on relevant passages" in said and "passage_relevance, prompt" in said
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Relevance of the used passages" in page
    assert "relevant (2 by the judge)" in page and "relevance unknown (no_passages)" in page


def test_what_a_response_uses_is_judged_however_deep_it_stands(tmp_path: Path) -> None:
    assert call(world(tmp_path), "--depth", 1, command="pool") == 0
    assert pooled_ids(tmp_path / "out" / "passages") == {
        A: [("one", 1, "ranked")],
        B: [("other", 1, "ranked")],
        C: [("one", 3, "used")],
        D: [("other", 2, "used")],
    }
    assert call(tmp_path, "--depth", 1, "--provenance", "ranked", command="pool", out="ranked") == 0
    assert sorted(pooled_ids(tmp_path / "ranked" / "passages")) == [A, B]
    # The depth is of passages: of a turn one response is pooled.
    assert len(json_lines(tmp_path / "out" / "pool.jsonl")) == 2


def test_only_the_response_that_is_judged_adds_what_it_uses(tmp_path: Path) -> None:
    given = [[(A, 9.0, False, None), (B, 1.0, True, None)], [(C, 8.0, True, None)]]
    put(world(tmp_path) / "runs" / "one.json", listed("one", {TURN: given}))
    (tmp_path / "runs" / "other.json").unlink()
    assert call(tmp_path, "--depth", 1, command="pool") == 0
    assert sorted(pooled_ids(tmp_path / "out" / "passages")) == [A, B]


def test_peoples_grades_stand_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = put(world(tmp_path) / "nist.qrels", f"{TURN} 0 {C} 0\n{TURN} 0 {D} 4\n")
    assert "people graded 2 passages, the judge 2 more" in on_stderr(capsys, call(tmp_path, "--fill", people))
    rows = {row["passage_id"]: row for row in table(tmp_path / "out" / "used_passage_grades.tsv")}
    assert [(rows[each]["judge"], rows[each]["people"], rows[each]["relevant"]) for each in (B, C, D)] == [
        ("3", "", "true"),
        ("", "0", "false"),
        ("", "4", "true"),
    ]
    assert "not relevant (0 by people)" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_forecast_says_each_part_and_the_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, call(world(tmp_path), "--dry-run"))
    assert "judgments           2 = 2 responses" in said and "judgments           4 = 4 passages" in said
    # One response uses D and one passage is D, which has no text.
    assert said.count("without evidence  1") == 2
    assert said.partition("in all")[2].split()[:5] == ["calls", "to", "be", "made", "4"]
    told = json.loads(printed(capsys, call(tmp_path, "--dry-run", "--json")))
    calls = [told["expected"]["calls"], told["passages"]["expected"]["calls"], told["in_all"]["expected"]["calls"]]
    assert calls == [1, 3, 1 + 3]
    assert not (tmp_path / "out").exists()


def test_options_go_to_the_part_that_they_are_about(tmp_path: Path) -> None:
    qrels = put(world(tmp_path) / "nist.qrels", f"{TURN} 0 {C} 2\n")
    options = ("--depth", 2, "--passage-qrels", qrels, "--screen", "off", "--over-limit", "exclude")
    assert call(tmp_path, *options, command="pool") == 0
    manifests = [json.loads((tmp_path / "out" / one / "manifest.json").read_bytes()) for one in ("", "passages")]
    pooling = [manifest["configuration"]["pooling"] for manifest in manifests]
    names = ("depth", "screen", "over_limit", "min_relevance", "provenance")
    assert [[each.get(name) for name in names] for each in pooling] == [
        [1, "off", "exclude", None, None],
        [2, "flag", "flag", None, "both"],
    ]
    assert [bool(each["passage_qrels"]) for each in pooling] == [True, False]
    # The options that --extend takes over are those of the part.
    assert manifests[1]["options"]["criteria"] == ["passage_relevance"]
    assert manifests[1]["options"].keys().isdisjoint(("passage-qrels", "screen", "over-limit"))


def test_runs_are_added_to_both(tmp_path: Path) -> None:
    third = listed("third", {TURN: [[(D, 3.0, False, None), (A, 1.0, True, None)]]})
    assert call(world(tmp_path)) == 0
    put(tmp_path / "more" / "third.json", third)
    added = ["run", "--runs", str(tmp_path / "more"), "--extend", str(tmp_path / "out"), "--out", str(tmp_path / "out")]
    assert main(added) == 0
    runs = [row["run_id"] for row in table(tmp_path / "out" / "used_passages.tsv")]
    assert runs == ["one", "other", "third"]
    assert ("third", 2, "ranked") in pooled_ids(tmp_path / "out" / "passages")[A]


def test_a_run_without_used_passages(tmp_path: Path) -> None:
    """Nothing is flagged, so the first five count as used; a response that lists nothing uses nothing."""
    put(world(tmp_path) / "runs" / "one.json", listed("one", {TURN: [[]]}))
    put(tmp_path / "runs" / "other.json", listed("other", {TURN: [[(B, 5.0, False, None)]]}))
    call(tmp_path)
    rows = {row["run_id"]: row for row in table(tmp_path / "out" / "used_passages.tsv")}
    names = ("responses", "none_relevant", "unknown", "no_passages", "relevant", "on_relevant")
    assert [rows["other"][name] for name in names] == ["1", "0", "0", "0", "1.0000", rows["other"]["mean"]]
    assert [rows["one"][name] for name in names] == ["1", "1", "0", "1", "", ""]


@pytest.mark.parametrize("given", ["lists", "lists/bm25.trec"])
def test_lists_alone_have_no_responses(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str) -> None:
    put(world(tmp_path) / "lists" / "bm25.trec", TREC)
    words = ["run", "--runs", str(tmp_path / given), "--topics", str(tmp_path / "topics.json")]
    words += ["--criteria", *BOTH, "--model", "baseline/overlap", "--out", str(tmp_path / "out")]
    said = complaint(capsys, main(words))
    assert "'bm25': they list passages and have no responses; the passages are judged by --criteria" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["runs", "lists"])
def test_lists_beside_runs_are_lists_of_passages(tmp_path: Path, place: str) -> None:
    bm25 = put(world(tmp_path) / place / "bm25.trec", TREC)
    assert call(tmp_path, "--runs", tmp_path / "runs", bm25, command="pool") == 0
    assert ("bm25", 1, "ranked") in pooled_ids(tmp_path / "out" / "passages")[A]
    for part in (".", "passages"):
        problems = json.loads((tmp_path / "out" / part / "problems.json").read_bytes())
        assert {problem["code"] for problem in problems} == {"no_ptkb"}


def test_a_pool_of_responses_is_no_list_of_passages() -> None:
    """Its lines are those of a TREC run, but its bank has the responses."""
    assert len(find_sources([PROJECT / "examples" / "regin"], lists=True).without_lists.files) == 1


@pytest.mark.parametrize(
    ("criteria", "words"),
    [
        (("passage_relevance", "groundedness", "coherence"), "judge dialogues and responses into a folder each"),
        (("support", "groundedness"), "judge citations and responses into a folder each"),
    ],
)
def test_other_units_are_refused_as_ever(tmp_path, capsys, criteria, words) -> None:
    assert words in complaint(capsys, call(world(tmp_path), criteria=criteria))


def test_nothing_is_asked_where_the_folder_of_passages_cannot_be_written(tmp_path, capsys) -> None:
    put(world(tmp_path) / "out" / "passages" / "mine.txt", "mine")
    assert "holds mine.txt and no manifest of judge" in complaint(capsys, call(tmp_path))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["passages"]


@pytest.mark.parametrize("answered", range(5))
def test_a_stopped_command_goes_on_where_it_was(tmp_path: Path, asked: Asked, answered: int) -> None:
    """One question about a response, three about passages; whatever was answered is not asked again."""
    assert call(world(tmp_path), out="untroubled") == 0
    whole = len(asked.requests)
    asked.fail_after = whole + answered
    code = call(tmp_path)
    assert code == (3 if answered < 4 else 0)
    # The responses have their results before the first passage is asked about.
    assert (tmp_path / "out" / "leaderboard.tsv").exists() == (answered > 0)
    asked.fail_after = None
    assert call(tmp_path) == 0
    assert len(asked.requests) == 2 * whole
    for part in (".", "passages"):
        assert without_calls(tmp_path / "out" / part) == without_calls(tmp_path / "untroubled" / part)


def test_one_budget_is_for_both(tmp_path: Path, asked: Asked) -> None:
    """Each answer costs 1 dollar: that about a response, and then those about two of three passages."""
    asked.cost = 1.0
    assert call(world(tmp_path), "--max-cost", 2.5, "--concurrency", 1) == 3
    assert len(asked.requests) == 1 + 2
    assert [row["reason"] for row in json_lines(tmp_path / "out" / "failures.jsonl")] == ["no_passages"]
    missing = [row["reason"] for row in json_lines(tmp_path / "out" / "passages" / "failures.jsonl")]
    assert sorted(missing) == ["budget", "no_passages"]
    (unpaid,) = (row for row in table(tmp_path / "out" / "used_passage_grades.tsv") if row["reason"] == "budget")
    assert (unpaid["relevant"], unpaid["judge"]) == ("", "")
    assert call(tmp_path, "--max-cost", 2.5) == 0
    assert len(asked.requests) == 1 + 3


def test_python_gives_both(tmp_path: Path) -> None:
    world(tmp_path)
    outcome = run_plan(
        Plan(
            runs=tmp_path / "runs",
            topics=tmp_path / "topics.json",
            passages=tmp_path / "passages.jsonl",
            criteria=BOTH,
            model="baseline/overlap",
            out=tmp_path / "out",
        )
    )
    assert outcome.passages is not None and outcome.used is not None
    assert (outcome.pool.unit, outcome.passages.pool.unit) == ("response", "passage")
    assert outcome.passages.out == tmp_path / "out" / "passages"
    assert [run.run_id for run in outcome.used.runs] == ["one", "other"]


def test_requests_are_written_for_one_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "requests",
        "--runs",
        str(world(tmp_path) / "runs"),
        "--topics",
        str(tmp_path / "topics.json"),
        "--passages",
    ]
    given += [str(tmp_path / "passages.jsonl"), "--criteria", *BOTH, "--model", "openai/gpt-4.1-mini"]
    said = complaint(capsys, main([*given, "--requests", str(tmp_path / "asked"), "--out", str(tmp_path / "out")]))
    assert "ask for passage_relevance alone with --provenance both --out" in said


@pytest.mark.parametrize("checker", ["baseline/overlap", "checker/overlap"])
def test_a_checker_takes_groundedness_and_the_model_beside_it_the_passages(
    tmp_path: Path, mock: Mock, checker: str
) -> None:
    given = ["run", "--runs", str(world(tmp_path) / "runs"), "--topics", str(tmp_path / "topics.json"), "--passages"]
    given += [str(tmp_path / "passages.jsonl"), "--criteria", *BOTH, "--model", checker, "--model", "server/m"]
    given += ["--base-url", mock.base_url, "--price", "server/m=1/1", "--out", str(tmp_path / "out")]
    assert main(given) == 0
    assert mock.stats()["requests"] == 3
    manifests = [json.loads((tmp_path / "out" / part / "manifest.json").read_bytes()) for part in (".", "passages")]
    assert [manifest["configuration"]["judge"] for manifest in manifests] == [checker, "server/m"]
    # --extend takes these options over: of the first folder those of the whole command.
    assert [manifest["options"]["model"] for manifest in manifests] == [[checker, "server/m"], ["server/m"]]


def test_a_draw_and_chosen_runs_are_the_same_in_both(tmp_path: Path) -> None:
    drawn = ("--draw", "12@3", "--select-runs", put(tmp_path / "two.txt", "harbor-grounded\nquarry-copied\n"))
    given = ["pool", *INPUTS, "--criteria", *BOTH, "--out", str(tmp_path / "out"), *map(str, drawn)]
    assert main(given) == 0
    pools = [read_pool_folder(tmp_path / "out" / part) for part in (".", "passages")]
    turns, listed_turns = ({response.turn_id for response in pool.responses} for pool in pools)
    assert 0 < len(turns) < 16 and listed_turns == turns
    runs = [{entry.run_id for response in pool.responses for entry in response.runs} for pool in pools]
    assert runs == [{"harbor-grounded", "quarry-copied"}] * 2


def test_a_rule_for_runs_goes_by_the_grades_and_holds_for_both(tmp_path: Path) -> None:
    qrels = put(world(tmp_path) / "nist.qrels", f"{TURN} 0 {B} 3\n")
    # other has B first, one has it second: the median is between them.
    assert call(tmp_path, "--select-runs", "above-median", "--passage-qrels", qrels, command="pool") == 0
    for part in (".", "passages"):
        pool = read_pool_folder(tmp_path / "out" / part)
        assert {entry.run_id for response in pool.responses for entry in response.runs} == {"other"}
    assert (tmp_path / "out" / "run_choice.tsv").exists()


def test_of_two_checkers_the_one_that_grades_passages_takes_them(tmp_path: Path) -> None:
    world(tmp_path)
    for place, models in enumerate((["checker/overlap", "baseline/overlap"], ["baseline/overlap", "checker/overlap"])):
        given = ["run", "--runs", str(tmp_path / "runs"), "--topics", str(tmp_path / "topics.json"), "--passages"]
        given += [str(tmp_path / "passages.jsonl"), "--criteria", *BOTH, "--out", str(tmp_path / str(place))]
        assert main([*given, "--model", models[0], "--model", models[1]]) == 0
        folders = (tmp_path / str(place), tmp_path / str(place) / "passages")
        judges = [json.loads((folder / "manifest.json").read_bytes())["configuration"]["judge"] for folder in folders]
        assert judges == ["checker/overlap", "baseline/overlap"]


@pytest.mark.parametrize("other", ["checker/overlap", "baseline/overlap", "server/m"])
def test_a_reranker_takes_the_passages_beside_any_model(tmp_path: Path, other: str) -> None:
    plan = Plan(
        runs=world(tmp_path) / "runs",
        criteria=BOTH,
        model=(other, "checker/reranker/m"),
        base_url="http://127.0.0.1:9/score",
    )
    first, passages = run_parts(plan, tmp_path / "out")
    assert passages is not None
    assert (first.model, passages.model) == ((other,), ("checker/reranker/m",))


def test_a_bundle_has_the_used_passages_under_pseudonyms(tmp_path: Path) -> None:
    assert call(world(tmp_path)) == 0
    assert main(["release", str(tmp_path / "out"), "--out", str(tmp_path / "public"), "--allow-names"]) == 0
    assert [row["run_id"] for row in table(tmp_path / "public" / "used_passages.tsv")] == ["run01", "run02"]
    own = (tmp_path / "out" / "used_passage_grades.tsv").read_bytes()
    assert (tmp_path / "public" / "used_passage_grades.tsv").read_bytes() == own
