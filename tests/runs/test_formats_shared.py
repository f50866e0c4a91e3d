"""Every run and topics file of the real public data."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from judge.runs.check.validate import validate_run
from judge.runs.formats import find_runs, read_run
from judge.runs.records import TokenCount
from judge.runs.topics import read_topics
from tests.runs import TokenLimit

TOPICS = {
    "2023": "ikat/2023/2023_test_topics.json",
    "train": "ikat/2023/2023_train_topics.json",
    "2024": "ikat/2024/2024_test_topics.json",
    "2025": "ikat/2025/2025_test_topics.json",
    "cast": "cast2022/2022_evaluation_topics_tree_v1.0.json",
    "cast automatic": "cast2022/2022_automatic_evaluation_topics_tree_v1.0.json",
}
R0 = "$.turns[0].responses[0]"


@cache
def topics(shared: Path, name: str):
    return read_topics(shared / TOPICS[name])


def count_words(text):
    words = len(text.split())
    return TokenCount(words, words, words, None)


def validated(shared, file, name=None):
    read = read_run(shared / file)
    turns = None if name is None else {turn.turn_id: turn for topic in topics(shared, name) for turn in topic.turns}
    return read.run, validate_run(read, turns, TokenLimit(count_words, 250, "bare"))


def errors(checked):
    return [(one.code, one.path) for one in checked.problems if one.severity == "error" and one.code != "missing_turn"]


@pytest.mark.parametrize(
    ("name", "n_topics", "n_turns", "n_with_passages", "n_linked"),
    [
        ("2023", 25, 332, 280, None), ("train", 11, 95, 76, None), ("2024", 17, 218, 191, None),
        ("2025", 17, 188, 157, 134), ("cast", 18, 205, None, 0), ("cast automatic", 18, 205, None, 0),
    ],
)  # fmt: skip
def test_topics(shared, name, n_topics, n_turns, n_with_passages, n_linked):
    found = topics(shared, name)
    turns = [turn for topic in found for turn in topic.turns]
    assert (len(found), len(turns), len({turn.turn_id for turn in turns})) == (n_topics, n_turns, n_turns)
    assert all(turn.utterance for turn in turns)
    # One turn of 2023 has an empty rewrite.
    assert [turn.turn_id for turn in turns if turn.resolved_utterance is None] == (
        ["12-1_12"] if name == "2023" else []
    )
    if n_with_passages is not None:
        assert sum(bool(turn.passage_ids) for turn in turns) == n_with_passages
        assert all(turn.references for turn in turns)
    if n_linked is not None:
        assert sum(len(turn.ptkb_provenance) for turn in turns) == n_linked


def test_cast_context_follows_the_tree(shared):
    turns = {turn.turn_id: turn for topic in topics(shared, "cast") for turn in topic.turns}
    # 142_2-1 is a system node below 142_1-3, which its number does not tell.
    assert [one.utterance for one in turns["142_2-2"].context] == [
        turns["142_1-1"].utterance, turns["142_1-3"].utterance,
    ]  # fmt: skip
    assert all(one.utterance and one.response for turn in turns.values() for one in turn.context)


@pytest.mark.parametrize(
    ("file", "name", "format", "n_turns", "n_responses", "n_passages"),
    [
        ("ikat/2023/sample_run.json", "2023", "ikat2023", 6, 18, 180),
        ("ikat/2024/sample_run.json", "2024", "ikat2024", 218, 218, 2180),
        ("ikat/2025/runs/cfda-ikat2025-auto-1.jsonl", "2025", "ikat2025", 188, 188, 18800),
        ("cast2022/sample_run.json", "cast", "cast2022", 205, 207, 621),
        ("cast-regin/response_evaluation/response_pool_depth_1.pool", "cast", "cast_regin", 105, 1626, 0),
        ("cast-regin/response_evaluation/response_bank.json", "cast", "cast_regin", 105, 1626, 0),
    ],
)
def test_sound_runs_are_read_whole(shared, file, name, format, n_turns, n_responses, n_passages):
    run, checked = validated(shared, file, name)
    responses = [response for turn in run.turns for response in turn.responses]
    assert run.format == format
    assert (len(run.turns), len(responses)) == (n_turns, n_responses)
    assert sum(len(response.provenance) for response in responses) == n_passages
    assert errors(checked) == []
    assert checked.run == run


def test_used_passages_of_the_sample_runs(shared):
    run, checked = validated(shared, "ikat/2024/sample_run.json", "2024")
    assert Counter(sum(one.used for one in turn.responses[0].provenance) for turn in run.turns) == {6: 218}
    assert Counter(one.code for one in checked.problems)["coerced_value"] == 602
    run, checked = validated(shared, "ikat/2025/runs/cfda-ikat2025-auto-1.jsonl", "2025")
    assert run.run_id == "auto_REnpr_npsg20_thru03_d3c5"
    assert sum(one.used for turn in run.turns for one in turn.responses[0].provenance) == 1414
    assert "citation_not_in_references" not in {one.code for one in checked.problems}


def test_faulty_scores(shared):
    _, checked = validated(shared, "ikat/2023/sample_run_invalid_scores.json", "2023")
    assert errors(checked) == [
        ("wrong_type", f"{R0}.passage_provenance[0].score"),
        ("wrong_type", f"{R0}.ptkb_provenance[0].score"),
    ]
    assert [(one.turn_id, one.rank) for one in checked.exclusions if one.reason != "missing_turn"] == [("9-1_1", 1)]


def test_faulty_field_names(shared):
    run, checked = validated(shared, "ikat/2023/sample_run_renamed_fields.json", "2023")
    assert run.format == "ikat2023"
    assert errors(checked) == [
        ("missing_field", f"{R0}.passage_provenance[1].id"),
        ("missing_field", f"{R0}.rank"),
        ("missing_field", "$.turns[0].turn_id"),
    ]
    assert [one.path for one in checked.problems if one.code == "unknown_field"] == [
        f"{R0}.order",
        f"{R0}.passage_provenance[1]._TEXT_",
        f"{R0}.passage_provenance[1].id_abc",
        "$.turns[0].turn_number",
    ]
    assert "'turn_number'" in next(one for one in checked.problems if one.path == "$.turns[0].turn_id").message
    assert len(checked.run.turns) == 5


def test_the_question_pool_judges_a_question_that_its_bank_has_not(shared):
    _, checked = validated(shared, "cast-regin/clarifying_question_evaluation/question_pool_depth_1.pool", "cast")
    assert [(one.code, one.turn_id) for one in checked.problems] == [("not_in_bank", "142_5-7")]
    assert "Q2173" in checked.problems[0].message


def test_folders_of_real_files(shared):
    paths, problems = find_runs(shared / "cast-regin" / "response_evaluation")
    assert [path.name for path in paths] == ["response_pool_depth_1.pool"]
    assert [problem.code for problem in problems] == ["subfolder"]
    paths, problems = find_runs(shared / "ikat" / "2023")
    read = {path.name: read_run(path) for path in paths}
    assert sorted(name for name, one in read.items() if one.run is not None) == [
        "sample_run.json", "sample_run_invalid_scores.json", "sample_run_missing_ptkb_fields.json",
        "sample_run_no_ptkb.json", "sample_run_renamed_fields.json",
    ]  # fmt: skip
    assert read["2023_test_topics.json"].problems[0].code == "unknown_format"
    assert "sample_hashes.tsv" in {Path(problem.file).name for problem in problems}
