"""What `judge pool` and `judge run` pool of the bundled example under each option, as a user types it."""

import hashlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest

from judge.cli import main
from judge.io.folder import write_atomic
from judge.jobs import pooling
from tests.conftest import PROJECT, complaint, json_lines, manifest, on_stderr, printed, put
from tests.jobs.conftest import only

RUNS = PROJECT / "examples" / "runs"
TOPICS = PROJECT / "examples" / "topics.json"
PASSAGES = PROJECT / "examples" / "passages.jsonl"
BASELINE = ["--criteria", "groundedness", "--model", "baseline/overlap"]
KESTREL = "clueweb22-en9999-01-00017:0"
MALFORMED = "clueweb22-en9999-02-00093"
"""What the run `thistle-faulty` cites once: no passage has such an id."""


def pool(out: Path, *more: object, runs: Path = RUNS, passages: Path | None = PASSAGES, command: str = "pool") -> int:
    evidence = [] if passages is None else ["--passages", passages]
    arguments = [command, "--runs", runs, "--topics", TOPICS, *evidence, "--out", out, *more]
    return main([str(one) for one in arguments])


def run(out: Path, *more: object, runs: Path = RUNS, passages: Path | None = PASSAGES) -> int:
    return pool(out, *BASELINE, *more, runs=runs, passages=passages, command="run")


def lines(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def reasons(out: Path) -> Counter[str]:
    return Counter(row[3] for row in lines(out / "excluded.tsv")[1:])


def some_passages(folder: Path, keep) -> Path:
    kept = [line for line in PASSAGES.read_text(encoding="utf-8").splitlines() if keep(json.loads(line)["id"])]
    return put(folder / "some.jsonl", "\n".join(kept) + "\n")


def hash_list(folder: Path, change: str = "") -> Path:
    """The example's passages as a collection lists them; the text of `change` is another one."""
    rows = []
    for passage in json_lines(PASSAGES):
        document, _, number = passage["id"].partition(":")
        text = passage["contents"] + ("!" if passage["id"] == change else "")
        rows.append(f"{document}\t{number}\t{hashlib.md5(text.encode()).hexdigest()}\n")
    return put(folder / "hashes.tsv", "".join(rows))


def test_a_pool_is_what_a_run_would_judge_and_a_run_goes_on_from_it(tmp_path, capsys):
    assert "pooled 77 distinct responses of 7 runs" in on_stderr(capsys, pool(tmp_path / "out"))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"pool.txt", "pool.jsonl", "bank.json", "excluded.tsv", "screen.tsv", "missing_passages.tsv"} <= names
    assert not names & {"judgments.jsonl", "leaderboard.tsv", "journal.sqlite"}
    before = (tmp_path / "out" / "pool.jsonl").read_bytes()
    assert run(tmp_path / "out") == 0
    assert (tmp_path / "out" / "pool.jsonl").read_bytes() == before
    assert pool(tmp_path / "out") == 2, "a pool would take the judgments' place"


def test_missing_passages_leave_a_response_without_a_grade(tmp_path, capsys):
    assert run(tmp_path / "out", passages=some_passages(tmp_path, lambda one: one != KESTREL)) == 0
    missing = lines(tmp_path / "out" / "missing_passages.tsv")[1:]
    assert {row[2] for row in missing} == {KESTREL, MALFORMED}
    failures = json_lines(tmp_path / "out" / "failures.jsonl")
    assert {row[0] for row in missing} == {one["response_id"] for one in failures}
    assert {one["reason"] for one in failures} == {"no_passages"}
    assert f"{len(missing)} responses use passages without a text" in capsys.readouterr().err


@pytest.mark.parametrize("given", [True, False])
def test_a_file_that_has_none_of_the_texts_is_not_the_runs_doing(tmp_path, given):
    """Without the file the runs had to bring the texts, and two of seven bring them."""
    other = put(tmp_path / "other.jsonl", json.dumps({"id": "another", "contents": "Another text."}) + "\n")
    assert run(tmp_path / "out", passages=other if given else None) == (1 if given else 0)
    head, *rows = lines(tmp_path / "out" / "differences.tsv")
    assert {int(row[head.index("turns")]) for row in rows} == {0 if given else 16}
    assert {row["brings_texts"] for row in json_lines(tmp_path / "out" / "runs.jsonl")} == {not given}


def test_missing_passages_may_stop_everything(tmp_path, example, capsys):
    (example / "thistle-faulty.json").unlink()
    passages = some_passages(tmp_path, lambda one: one != KESTREL)
    for command in (pool, run):
        assert command(tmp_path / "out", "--missing-passages", "fail", runs=example, passages=passages) == 2
        said = capsys.readouterr().err
        assert "used passages without a text" in said
        assert f"{KESTREL}; given by" in said
        assert not (tmp_path / "out").exists()
    assert run(tmp_path / "out", "--missing-passages", "fail", runs=example) == 0


def test_missing_passages_may_be_judged_without(tmp_path):
    passages = some_passages(tmp_path, lambda one: one != KESTREL)
    assert run(tmp_path / "out", "--missing-passages", "judge-without", passages=passages) == 0
    pooled = {one["response_id"]: one["passages"] for one in json_lines(tmp_path / "out" / "pool.jsonl")}
    alone = {response_id for response_id, keys in pooled.items() if keys in ([KESTREL], [MALFORMED])}
    partly = {response_id for response_id, keys in pooled.items() if KESTREL in keys and len(keys) > 1}
    assert partly
    assert {one["response_id"] for one in json_lines(tmp_path / "out" / "failures.jsonl")} == alone
    assert partly <= {one["response_id"] for one in json_lines(tmp_path / "out" / "judgments.jsonl")}
    about = json.loads((tmp_path / "out" / "qrels" / "response_groundedness.llm.qrel.json").read_text(encoding="utf-8"))
    assert about["partial_evidence"] == len(partly)
    board = (tmp_path / "out" / "leaderboard.md").read_text(encoding="utf-8")
    assert f"{len(partly)} grades of groundedness rest on some of the used passages only" in board


def test_a_run_cannot_plant_its_own_evidence(tmp_path, example, capsys):
    path = example / "harbor-grounded.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    planted = next(
        passage
        for turn in document["turns"]
        for passage in turn["responses"][0]["passage_provenance"]
        if passage["used"]
    )
    planted["text"] = "Whatever the response says is true."
    path.write_text(json.dumps(document), encoding="utf-8")
    only(example, "harbor-grounded")
    assert run(tmp_path / "trusting", runs=example, passages=None) == 0
    assert not json_lines(tmp_path / "trusting" / "failures.jsonl")
    assert run(tmp_path / "out", "--passage-hashes", hash_list(tmp_path), runs=example, passages=None) == 0
    problems = json.loads((tmp_path / "out" / "problems.json").read_text(encoding="utf-8"))
    assert [one["code"] for one in problems if "passage" in one["code"]] == ["passage_text_differs"]
    stored = json_lines(tmp_path / "out" / "passages.jsonl")
    assert {one["source"] for one in stored} == {"verified"}
    assert "Whatever the response says is true." not in {one["contents"] for one in stored}
    assert {row[2] for row in lines(tmp_path / "out" / "missing_passages.tsv")[1:]} <= {planted["id"]}


def test_a_collection_is_checked_against_its_hash_list(tmp_path, capsys):
    changed = KESTREL
    assert run(tmp_path / "out", "--passage-hashes", hash_list(tmp_path)) == 0
    capsys.readouterr()
    said = complaint(capsys, run(tmp_path / "other", "--passage-hashes", hash_list(tmp_path, changed)))
    assert "passage_text_differs" in said and changed in said
    assert not (tmp_path / "other").exists()


def test_at_most_some_responses_are_drawn_at_random(tmp_path, example, capsys, monkeypatch):
    (example / "mill-fluent-invented.json").rename(tmp_path / "later.json")
    for name, draw in (("out", "30"), ("again", "30@1")):
        assert pool(tmp_path / name, "--draw", draw, runs=example) == 0
    first = (tmp_path / "out" / "pool.jsonl").read_bytes()
    assert first == (tmp_path / "again" / "pool.jsonl").read_bytes()
    drawn = {row["turn_id"] for row in json_lines(tmp_path / "out" / "pool.jsonl")[1:]}
    assert len(first.splitlines()) - 1 <= 30
    assert {turn.partition("_")[0] for turn in drawn} == {"1-1", "2-1", "3-1"}
    recorded = manifest(tmp_path / "out")
    assert (recorded["options"]["draw"], recorded["configuration"]["pooling"]["draw"]) == ("30", "30@1")
    assert reasons(tmp_path / "out")["not_selected_turn"] > 40
    # Runs that come later are pooled on the same turns, and read once.
    made = Mock(wraps=pooling._made)
    monkeypatch.setattr(pooling, "_made", made)
    assert pool(tmp_path / "out", "--extend", tmp_path / "out", runs=tmp_path / "later.json") == 0
    assert {row["turn_id"] for row in json_lines(tmp_path / "out" / "pool.jsonl")[1:]} == drawn
    assert made.call_count == 1
    for value, told in (("1", "the turn that is drawn first has more responses"), ("x", "a number of responses")):
        assert told in complaint(capsys, pool(tmp_path / "new", "--draw", value))


def test_only_some_turns(tmp_path):
    assert run(tmp_path / "out", "--turns", put(tmp_path / "turns.txt", "1-1_1\n2-1_2\n")) == 0
    assert {one["turn_id"] for one in json_lines(tmp_path / "out" / "pool.jsonl")} == {"1-1_1", "2-1_2"}
    table = lines(tmp_path / "out" / "leaderboard.tsv")
    assert {row[table[0].index("turns")] for row in table[1:]} == {"2"}
    assert reasons(tmp_path / "out")["not_selected_turn"] > 0


def qrels(folder: Path) -> Path:
    """Passage 0 of the documents of topic 1-1 is relevant to its first three turns, nothing else is."""
    ids = [one["id"] for one in json_lines(PASSAGES)]
    rows = [f"1-1_{turn} 0 {one} {2 if one.endswith(':0') else 0}\n" for turn in (1, 2, 3) for one in ids]
    return put(folder / "passages.qrel", "".join(rows))


def test_only_responses_with_a_relevant_used_passage(tmp_path):
    assert run(tmp_path / "out", "--passage-qrels", qrels(tmp_path), "--min-relevance", "2") == 0
    pooled = json_lines(tmp_path / "out" / "pool.jsonl")
    assert pooled
    for one in pooled:
        assert one["turn_id"] in {"1-1_1", "1-1_2", "1-1_3"}
        assert any(key.endswith(":0") for key in one["passages"])
    counts = reasons(tmp_path / "out")
    assert counts["no_relevant_passage"] > 0 and counts["turn_not_judged"] > 0
    table = lines(tmp_path / "out" / "leaderboard.tsv")
    assert {row[table[0].index("turns")] for row in table[1:]} == {"3"}


def test_a_file_of_runs(tmp_path, capsys):
    chosen = put(tmp_path / "chosen.txt", "harbor-grounded\nquarry-copied\n")
    assert run(tmp_path / "out", "--select-runs", chosen) == 0
    pooled = json_lines(tmp_path / "out" / "pool.jsonl")
    assert {entry["run_id"] for one in pooled for entry in one["runs"]} == {"harbor-grounded", "quarry-copied"}
    assert {row[0] for row in lines(tmp_path / "out" / "leaderboard.tsv")[1:]} == {"harbor-grounded", "quarry-copied"}
    assert {path.stem for path in (tmp_path / "out" / "response_runs").iterdir()} == {
        "harbor-grounded", "quarry-copied",
    }  # fmt: skip
    assert {row[0] for row in lines(tmp_path / "out" / "excluded.tsv")[1:] if row[3] == "not_selected_run"} == {
        "bramble-broken", "lantern-half-right", "mill-fluent-invented", "orchard-manual", "thistle-faulty",
    }  # fmt: skip
    chosen.write_text("nobody\n", encoding="utf-8")
    assert "nobody" in complaint(capsys, run(tmp_path / "other", "--select-runs", chosen))


def test_a_rule_for_runs(tmp_path, judged, capsys):
    rule = ["--select-runs", "best-automatic-per-team", "--measure", "nDCG@3"]
    assert "--passage-qrels" in complaint(capsys, run(tmp_path / "out", *rule))
    assert "no team is known" in complaint(capsys, run(tmp_path / "out", *rule, "--passage-qrels", qrels(tmp_path)))
    teams = tmp_path / "teams.tsv"
    ids = sorted(row[0] for row in lines(judged / "leaderboard.tsv")[1:])
    teams.write_text("".join(f"{run_id}\tteam-{number % 3}\n" for number, run_id in enumerate(ids)), encoding="utf-8")
    rule[1] = "best-per-team"
    assert run(tmp_path / "out", *rule, "--passage-qrels", qrels(tmp_path), "--teams", teams) == 0
    choice = lines(tmp_path / "out" / "run_choice.tsv")
    chosen = {row[0] for row in choice[1:] if row[choice[0].index("chosen")] == "yes"}
    assert len(chosen) == 3
    assert {row[0] for row in lines(tmp_path / "out" / "leaderboard.tsv")[1:]} == chosen


def boards(out: Path, capsys) -> tuple[list[list[str]], list[dict]]:
    """The leaderboard that `judge run` wrote, and the one that `judge leaderboard` makes of the folder."""
    capsys.readouterr()
    return lines(out / "leaderboard.tsv"), json.loads(printed(capsys, main(["leaderboard", str(out), "--json"])))


def same_boards(out: Path, capsys) -> dict[str, tuple[int, int, int]]:
    """Turns, graded and unanswered by run, after checking that both leaderboards agree."""
    (header, *table), rows = boards(out, capsys)
    written = [dict(zip(header, row, strict=True)) for row in table]
    counted = ("turns", "n", "unable", "missing", "not_asked", "unanswered")
    assert [(one["run_id"], *(int(one[name]) for name in counted)) for one in written] == [
        (one["run_id"], *(one["counts"][name] for name in counted)) for one in rows
    ]
    return {one["run_id"]: tuple(one["counts"][name] for name in ("turns", "n", "unanswered")) for one in rows}


def test_a_later_leaderboard_knows_what_each_run_had_to_answer(tmp_path, example, capsys):
    turns = put(tmp_path / "turns.txt", "1-1_1\n1-1_2\n3-1_4\n")
    thistle = only(example, "thistle-faulty")
    assert run(tmp_path / "some", "--turns", turns, runs=thistle) == 0
    # thistle-faulty has no 3-1_4.
    assert same_boards(tmp_path / "some", capsys) == {"thistle-faulty": (3, 2, 1)}
    assert run(tmp_path / "relevant", "--passage-qrels", qrels(tmp_path), runs=thistle) == 0
    assert same_boards(tmp_path / "relevant", capsys)["thistle-faulty"][0] == 3
    harbor = only(Path(shutil.copytree(RUNS, tmp_path / "more")), "harbor-grounded")
    more = ["--extend", tmp_path / "some", "--turns", turns]
    assert run(tmp_path / "both", *more, runs=harbor) == 0
    assert same_boards(tmp_path / "both", capsys) == {"harbor-grounded": (3, 3, 0), "thistle-faulty": (3, 2, 1)}


def test_the_limits_of_a_profile_hold_and_are_recorded(tmp_path):
    talks = PROJECT / "examples" / "interactive"
    limits = ["--profile", "ikat2026-interactive", "--citation-limit", "1"]
    assert pool(tmp_path / "out", *limits, runs=talks) == 0
    made = manifest(tmp_path / "out")
    assert made["limits"] == {
        "profile": "ikat2026-interactive", "token_limit": 512, "token_rule": "bare", "citation_limit": 1,
        "overridden": ["citation_limit"],
    }  # fmt: skip
    assert made["configuration"]["token_rule"]["limit"] == 512
    assert "too_many_citations" in (tmp_path / "out" / "problems.json").read_text(encoding="utf-8")
    # An extension takes the options over, and with them the limits.
    assert main(["pool", "--extend", str(tmp_path / "out"), "--runs", str(talks), "--out", str(tmp_path / "more")]) == 0
    assert manifest(tmp_path / "more")["limits"] == made["limits"]


def test_a_pool_made_in_another_way_is_not_extended_anywhere(tmp_path, example, capsys):
    later = Path(shutil.copytree(RUNS, tmp_path / "more"))
    assert run(tmp_path / "out", runs=only(example, "harbor-grounded")) == 0
    capsys.readouterr()
    for other in (["--depth", "2"], ["--token-limit", "20"], ["--screen", "off"]):
        assert run(tmp_path / "new", "--extend", tmp_path / "out", *other, runs=only(later, "orchard-manual")) == 2
        assert "pooled in another way" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()


def test_without_topics_earlier_runs_had_to_answer_what_later_ones_show_to_be_there(tmp_path, example, capsys):
    mill = only(Path(shutil.copytree(RUNS, tmp_path / "more")), "mill-fluent-invented")
    harbor = only(example, "harbor-grounded")
    path = harbor / "harbor-grounded.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"turns": document["turns"][:4]}), encoding="utf-8")
    arguments = ["run", "--passages", PASSAGES, *BASELINE, "--runs"]
    assert main([*map(str, arguments), str(harbor), "--out", str(tmp_path / "out")]) == 0
    assert same_boards(tmp_path / "out", capsys) == {"harbor-grounded": (4, 4, 0)}
    assert main([*map(str, arguments), str(mill), "--extend", str(tmp_path / "out")]) == 0
    after = same_boards(tmp_path / "out", capsys)
    assert after == {"harbor-grounded": (16, 4, 12), "mill-fluent-invented": (16, 16, 0)}


def test_a_list_of_runs_drops_none_that_is_pooled(tmp_path, example, capsys):
    chosen = tmp_path / "chosen.txt"
    both = only(example, "harbor-grounded", "orchard-manual")
    chosen.write_text("harbor-grounded\n", encoding="utf-8")
    assert run(tmp_path / "out", "--select-runs", chosen, runs=both) == 0
    chosen.write_text("orchard-manual\n", encoding="utf-8")
    capsys.readouterr()
    assert run(tmp_path / "out", "--extend", tmp_path / "out", "--select-runs", chosen, runs=both) == 2
    assert "'harbor-grounded', which the pool that is extended has already" in capsys.readouterr().err
    chosen.write_text("orchard-manual\nharbor-grounded\n", encoding="utf-8")
    assert run(tmp_path / "out", "--extend", tmp_path / "out", "--select-runs", chosen, runs=both) == 0
    assert same_boards(tmp_path / "out", capsys).keys() == {"harbor-grounded", "orchard-manual"}


def test_a_selected_turn_that_nobody_knows_is_a_slip(tmp_path, example, capsys):
    turns = put(tmp_path / "turns.txt", "1-1_1\n1-1_22\n")
    assert "1-1_22" in complaint(capsys, pool(tmp_path / "out", "--turns", turns))
    arguments = ["pool", "--runs", example, "--turns", turns, "--out", tmp_path / "out"]
    assert "1-1_22" in complaint(capsys, main([str(one) for one in arguments]))


def test_what_decides_the_pool_must_be_there_to_be_read_again(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert "must be a file" in complaint(capsys, pool(tmp_path / "out", "--turns", tmp_path / "pipe"))


def test_a_pool_that_was_stopped_while_it_was_written_goes_on(tmp_path, monkeypatch):
    out = tmp_path / "out"
    written = []

    def stopped(path, data):
        if path.name == "excluded.tsv" and not written:
            written.append(path)
            raise KeyboardInterrupt
        write_atomic(path, data)

    monkeypatch.setattr("judge.io.folder.write_atomic", stopped)
    assert pool(out) == 3
    assert not (out / "excluded.tsv").exists()
    assert pool(out) == 0
    assert (out / "excluded.tsv").exists()


def test_the_pool_of_another_folder_brings_its_journal(tmp_path, example, capsys):
    later = only(Path(shutil.copytree(RUNS, tmp_path / "more")), "orchard-manual")
    assert run(tmp_path / "out", runs=only(example, "harbor-grounded")) == 0
    assert "`judge run --extend" in complaint(capsys, pool(tmp_path / "out", "--extend", tmp_path / "out", runs=later))
    assert pool(tmp_path / "new", "--extend", tmp_path / "out", runs=later) == 0
    capsys.readouterr()
    assert run(tmp_path / "new", "--extend", tmp_path / "new", "--dry-run", runs=later) == 0
    counted = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:4])
    assert int(counted["  from the journal"]) == 16


def test_a_folder_without_its_runs_is_refused(tmp_path, example, capsys):
    out = tmp_path / "out"
    assert run(out, runs=only(example, "thistle-faulty", "harbor-grounded")) == 0
    content = (out / "runs.jsonl").read_text(encoding="utf-8")
    (out / "runs.jsonl").write_text(content.partition("\n")[2], encoding="utf-8")
    capsys.readouterr()
    assert "'harbor-grounded'" in complaint(capsys, main(["leaderboard", str(out)]))
    (out / "runs.jsonl").unlink()
    assert main(["leaderboard", str(out)]) == 2


def test_without_topics_a_turn_of_which_all_is_left_out_was_there_to_be_answered(tmp_path, example, capsys):
    mill = only(example, "mill-fluent-invented")
    arguments = ["run", "--runs", mill, "--passages", PASSAGES, *BASELINE, "--screen", "exclude", "--out"]
    assert main([*map(str, arguments), str(tmp_path / "out")]) == 0
    turns, graded, unanswered = same_boards(tmp_path / "out", capsys)["mill-fluent-invented"]
    assert (turns, graded + unanswered) == (16, 16) and unanswered


def test_a_bank_that_is_extended_still_answers_only_its_own(tmp_path, example, capsys):
    assert run(tmp_path / "out", "--depth", "10", runs=PROJECT / "examples" / "regin") == 1
    before = same_boards(tmp_path / "out", capsys)
    harbor = only(example, "harbor-grounded")
    assert run(tmp_path / "both", "--depth", "10", "--extend", tmp_path / "out", runs=harbor) == 0
    after = same_boards(tmp_path / "both", capsys)
    assert after.items() > before.items() and after["harbor-grounded"] == (16, 16, 0)


def test_a_run_that_is_not_selected_is_on_no_leaderboard_even_if_nothing_of_it_could_be(tmp_path, example, capsys):
    chosen = put(tmp_path / "chosen.txt", "harbor-grounded\n")
    turns = put(tmp_path / "turns.txt", "3-1_4\n")
    both = only(example, "harbor-grounded", "thistle-faulty")
    assert run(tmp_path / "out", "--select-runs", chosen, "--turns", turns, runs=both) == 0
    assert same_boards(tmp_path / "out", capsys).keys() == {"harbor-grounded"}
    rows = [row for row in lines(tmp_path / "out" / "excluded.tsv")[1:] if row[0] == "thistle-faulty"]
    assert rows and all(row[2:4] == ["", "not_selected_run"] for row in rows)
    assert len({row[1] for row in rows}) == len(rows)


def test_a_broken_run_that_is_not_selected_stops_nothing(tmp_path, example, capsys):
    chosen = put(tmp_path / "chosen.txt", "harbor-grounded\n")
    both = only(example, "harbor-grounded", "mill-fluent-invented")
    path = both / "mill-fluent-invented.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"turns": []}), encoding="utf-8")
    assert run(tmp_path / "all", runs=both) == 2
    assert run(tmp_path / "out", "--select-runs", chosen, runs=both) == 0
    chosen.write_text("mill-fluent-invented\n", encoding="utf-8")
    capsys.readouterr()
    assert "no_turns" in complaint(capsys, run(tmp_path / "other", "--select-runs", chosen, runs=both))


def test_a_run_that_asks_not_to_be_judged_does_not_compete(tmp_path, example, capsys):
    two = only(example, "harbor-grounded", "mill-fluent-invented")
    path = two / "mill-fluent-invented.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"eval_response": False}), encoding="utf-8")
    teams = put(tmp_path / "teams.tsv", "harbor-grounded\tone\nmill-fluent-invented\tone\n")
    rule = ["--select-runs", "best-per-team", "--passage-qrels", qrels(tmp_path), "--teams", teams]
    assert run(tmp_path / "out", *rule, runs=two) == 0
    assert same_boards(tmp_path / "out", capsys).keys() == {"harbor-grounded"}


@pytest.mark.parametrize(
    ("options", "about"),
    [
        (["--min-relevance", "2"], "--passage-qrels"),
        (["--max-rank", "2"], "--passage-qrels"),
        (["--measure", "AP"], "--select-runs"),
        (["--teams", "absent"], "--select-runs"),
        (["--screen", "off", "--screen-threshold", "near_empty=3"], "--screen"),
    ],
)
def test_options_that_would_be_ignored_are_refused(tmp_path, capsys, options, about):
    assert about in complaint(capsys, pool(tmp_path / "out", *options))
    assert not (tmp_path / "out").exists()


def test_a_pool_in_the_place_of_another_leaves_nothing_of_it(tmp_path, example, capsys):
    out = tmp_path / "out"
    assert run(out) == 0
    assert pool(out, "--screen", "off", "--replace", runs=only(example, "harbor-grounded")) == 0
    left = {path.name for path in out.iterdir()}
    assert not left & {"judgments.jsonl", "leaderboard.tsv", "screen.tsv", "carried.jsonl"}
    assert [path.name for path in (out / "response_runs").iterdir()] == ["harbor-grounded.run"]
    assert main(["leaderboard", str(out)]) == 2


def test_screened_responses_take_no_ids_however_often_a_pool_is_extended(tmp_path, example):
    later = tmp_path / "later"
    later.mkdir()
    (example / "bramble-broken.json").rename(later / "bramble-broken.json")
    out = tmp_path / "out"
    assert run(out, "--screen", "exclude", runs=example) == 0
    first = {one["response_id"]: one["text"] for one in json_lines(out / "pool.jsonl")}
    extended = []
    for _ in range(2):
        assert run(out, "--screen", "exclude", "--extend", out, runs=later) == 0
        names = ("pool.jsonl", "screen.tsv", "excluded.tsv", "leaderboard.tsv", "runs.jsonl", "manifest.json")
        extended.append({name: (out / name).read_bytes() for name in names})
    assert extended[0] == extended[1]
    assert first.items() < {one["response_id"]: one["text"] for one in json_lines(out / "pool.jsonl")}.items()


def test_the_screen_lists_or_leaves_out(tmp_path, pooled):
    flagged = lines(pooled / "screen.tsv")[1:]
    assert flagged
    assert pool(tmp_path / "left", "--screen", "exclude") == 0
    left, whole = json_lines(tmp_path / "left" / "pool.jsonl"), json_lines(pooled / "pool.jsonl")
    used = {key for one in left for key in one["passages"]}
    assert {one["key"] for one in json_lines(tmp_path / "left" / "passages.jsonl")} <= used
    kept = {one["response_id"]: (one["text"], *one["passages"]) for one in left}
    every = {one["response_id"]: (one["text"], *one["passages"]) for one in whole}
    assert set(every.values()) - set(kept.values()) == {every[row[0]] for row in flagged}
    assert len(every) - len(kept) == len({row[0] for row in flagged})
    assert lines(tmp_path / "left" / "screen.tsv")[1:] == []
    counts = reasons(tmp_path / "left")
    assert {reason for reason in counts if reason.startswith("screen_")} <= {f"screen_{row[2]}" for row in flagged}
    assert pool(tmp_path / "off", "--screen", "off") == 0
    assert not (tmp_path / "off" / "screen.tsv").exists()


@pytest.mark.parametrize("given", ["--passages", "--passage-hashes", "both"])
def test_a_run_whose_evidence_mostly_does_not_exist_is_named_once(tmp_path, capsys, given, example):
    """Fifteen of sixteen turns rest on a well-formed id that no collection has; such a run could lead a leaderboard."""
    run = json.loads((example / "mill-fluent-invented.json").read_text(encoding="utf-8"))
    for number, turn in enumerate(run["turns"][:15]):
        turn["responses"][0]["passage_provenance"][0] |= {"id": f"clueweb22-en0000-00-{number:05}:0", "used": True}
    (example / "mill-fluent-invented.json").write_text(json.dumps(run), encoding="utf-8")
    options = ["--passage-hashes", hash_list(tmp_path)] if given != "--passages" else []
    passages = None if given == "--passage-hashes" else PASSAGES
    assert pool(tmp_path / "out", *options, runs=example, passages=passages) == 0
    problems = json.loads((tmp_path / "out" / "problems.json").read_text(encoding="utf-8"))
    named = [row for row in problems if row["code"] == "absent_evidence"]
    assert [row["file"] for row in named] == [str(example / "mill-fluent-invented.json")]
    assert named[0]["message"].startswith("in 15 of its 16 turns a used passage ")
    assert "mill-fluent-invented.json: 0 errors" in (said := capsys.readouterr().err)
    assert "absent_evidence (1)" in said
    assert "in 15 of its 16 turns a used passage" in said
