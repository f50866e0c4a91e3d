"""The outcomes of the official validators on public files, and what the documents say about both."""

import re
from collections import Counter
from functools import cache

import msgspec
import pytest

from judge.io.files import LARGEST_FILE, most_values
from judge.passages import same_text
from judge.passages.hashes import open_hashes
from judge.runs.check import CODES, NEEDS_TOPICS
from judge.runs.check.responses import CollectionHashes
from judge.runs.check.rules import MAX_RANK
from judge.runs.check.validate import validate_run
from judge.runs.fields import LISTED, MAX_ALL_RESPONSES, MAX_RESPONSES, MAX_TURNS
from judge.runs.formats import read_run, rules_of
from judge.runs.records import RunTurn
from judge.runs.tokens import TokenCounter
from judge.runs.topics import read_topics
from tests.conftest import PROJECT

DOCUMENT = (PROJECT / "docs" / "validation.md").read_text(encoding="utf-8")
TOPICS = {
    "2023": "ikat/2023/2023_test_topics.json",
    "2024": "ikat/2024/2024_test_topics.json",
    "2025": "ikat/2025/2025_test_topics.json",
    "cast": "cast2022/2022_evaluation_topics_tree_v1.0.json",
}
CFDA = "ikat/2025/runs/cfda-ikat2025-auto-1.jsonl"
OUTCOMES = [
    # file, topics, official exit code (None: no official outcome is known), errors, warnings
    ("ikat/2023/sample_run.json", "2023", 255, {"missing_turn": 332 - 6}, {}),
    ("ikat/2023/sample_run_invalid_scores.json", "2023", 255, {"missing_turn": 326, "wrong_type": 2}, {}),
    ("ikat/2023/sample_run_renamed_fields.json", "2023", 255, {"missing_turn": 327, "missing_field": 3},
     {"unknown_field": 4}),
    ("ikat/2023/sample_run_missing_ptkb_fields.json", "2023", 255, {"missing_turn": 326, "missing_field": 2}, {}),
    ("ikat/2023/sample_run_no_ptkb.json", "2023", 255, {"missing_turn": 332 - 12}, {"no_ptkb": 36}),
    # The faulty samples of 2024 are those of 2023, byte for byte, with the ids of 2023.
    ("ikat/2023/sample_run_invalid_scores.json", "2024", 255, {"wrong_topics": 1, "wrong_type": 2}, {}),
    ("ikat/2023/sample_run_renamed_fields.json", "2024", 255, {"wrong_topics": 1, "missing_field": 3},
     {"unknown_field": 4}),
    ("ikat/2023/sample_run_missing_ptkb_fields.json", "2024", 255, {"wrong_topics": 1, "missing_field": 2}, {}),
    ("ikat/2023/sample_run_no_ptkb.json", "2024", 255, {"wrong_topics": 1}, {"no_ptkb": 36}),
    # Official: no warning. Strings for PTKB numbers are coerced there silently, and equal scores pass.
    ("ikat/2024/sample_run.json", "2024", 0, {}, {"coerced_value": 602, "equal_scores": 20}),
    # Official: passes. Empty PTKB lists, equal scores and a text of 251 bare tokens are not looked at there.
    (CFDA, "2025", 0, {}, {"equal_scores": 131, "no_ptkb": 10, "over_token_limit": 1}),
    ("cast2022/sample_run.json", "cast", None, {}, {}),
]  # fmt: skip
COUNT_TOKENS = TokenCounter()


@cache
def turns_of(path):
    return {turn.turn_id: turn for topic in read_topics(path) for turn in topic.turns}


def codes(path, turns):
    """Errors and warnings of a file, counted by code."""
    found = validate_run(read_run(path), turns, COUNT_TOKENS).problems
    counts = {"error": Counter(), "warning": Counter()}
    for one in found:
        counts[one.severity][one.code] += one.count
    return counts["error"], counts["warning"]


@pytest.mark.parametrize(("file", "topics", "official", "errors", "warnings"), OUTCOMES)
def test_the_outcome_is_the_official_one(shared, file, topics, official, errors, warnings):
    assert codes(shared / file, turns_of(shared / TOPICS[topics])) == (errors, warnings)
    if official is not None:
        assert bool(official) == bool(errors)


def test_the_sample_of_2023_against_the_collection_s_own_hashes(shared):
    """All 180 passages exist; their texts are placeholders, which is what a run that plants its evidence looks like."""
    path = shared / "ikat/2023/sample_run.json"
    hashes = open_hashes(shared / "ikat/2023/sample_hashes.tsv")
    read = read_run(path)

    def found(run):
        given = msgspec.structs.replace(read, run=run, problems=())
        validated = validate_run(given, None, COUNT_TOKENS, hashes=CollectionHashes(hashes.find, same_text))
        return Counter(one.code for one in validated.problems), validated.unchecked

    assert sum(len(response.provenance) for turn in read.run.turns for response in turn.responses) == 180
    assert found(read.run) == ({"passage_text_differs": 180}, NEEDS_TOPICS)
    first = read.run.turns[0].responses[0]
    away = msgspec.structs.replace(first.provenance[3], passage_id="clueweb22-en0004-67-08978:999", text=None)
    response = msgspec.structs.replace(first, listed=(*first.provenance[:3], away, *first.provenance[4:]))
    turn = RunTurn(read.run.turns[0].turn_id, (response, *read.run.turns[0].responses[1:]))
    run = msgspec.structs.replace(read.run, turns=(turn, *read.run.turns[1:]))
    assert found(run)[0] == {"passage_text_differs": 179, "unknown_passage": 1}


def test_every_id_of_the_collections_has_the_form_of_its_year(shared):
    for qrels, format in (
        ("cast2022/cast2022.qrel", "cast2022"),
        ("ikat/qrels/2023_test_qrels.trec", "ikat2023"),
        ("ikat/qrels/2024_test_qrels.trec", "ikat2024"),
    ):
        pattern = rules_of(format).passage_id
        ids = {line.split()[2] for line in (shared / qrels).read_text(encoding="utf-8").splitlines()}
        assert len(ids) > 10_000
        assert [one for one in ids if not pattern.fullmatch(one)] == []


CAST_IDS = {
    "MARCO_30_1605964568-454576": True, "KILT_20988739-1": True, "WAPO_7X7AWMCHIQI6VENLZZBZVJOHYE-1": True,
    "WAPO_18c5e19a-c5b6-11e6-85b5-76616a33048d-2": True, "WAPO_18c5e19a": False, "WAPO_-1": False, "MARCO_30-": False,
    "KILT_1-1 ": False, "clueweb22-en0000-00-00000:0": False,
}  # fmt: skip
IKAT_IDS = {
    "clueweb22-en0004-67-08978:7": True,
    "clueweb22-en0004-67-08978:7\n": False,
    "clueweb22-en0004-67-08978": False,
    "clueweb22-en0004-67-08978:": False,
    "clueweb22-en0004-67-08978:7:8": False,
    "clueweb22-de0004-67-08978:7": False,
    "clueweb22-en0004-67-0897٨:7": False,
    "MARCO_30_1605964568-2": False,
}


RUN_TYPES = {
    "ikat2023": ("automatic", "manual"),
    "ikat2024": ("automatic", "manual", "only_response"),
    "ikat2025": ("automatic", "manual", "generation-only", "interactive"),
    "cast2022": ("automatic", "manual"),
}


@pytest.mark.parametrize("format", RUN_TYPES)
def test_each_format_has_the_run_types_and_ids_of_its_year(format):
    ids, rules = CAST_IDS if format == "cast2022" else IKAT_IDS, rules_of(format)
    assert rules.run_types == RUN_TYPES[format]
    assert {one: rules.passage_id.fullmatch(one) is not None for one in ids} == ids


def section(title):
    """The text below a heading of the second level."""
    return DOCUMENT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


def test_every_severity_that_is_not_the_official_one_is_explained():
    explained = set(re.findall(r"`([a-z_]+)`", section("Deliberately different")))
    for code, row in CODES.items():
        official = " ".join(row.official)
        milder = row.severity == "warning" and "E" in official
        stricter = row.severity == "error" and ("W" in official or "log" in official)
        assert not (milder or stricter) or code in explained, code


def test_the_document_states_the_bounds():
    text = " ".join(section("Codes").split())
    assert f"more than {MAX_TURNS:,} turns or lines" in text
    assert f"more than {MAX_RESPONSES:,} responses in a turn" in text
    assert f"{MAX_ALL_RESPONSES:,} in a run or pool" in text
    assert f"more than {most_values():,} JSON values, one for each 100 of these bytes" in text
    assert f"more than {LARGEST_FILE / 2**20:.0f} MiB, unpacked" in text
    assert f"between 1 and {MAX_RANK:,}" in CODES["bad_rank"].meaning


def test_the_document_names_no_code_that_there_is_not():
    fields = {
        "doc_id", "passage_provenance", "run_type", "eval_response", "only_response", "turn_number", "cast_regin",
        "turn_id",
    }  # fmt: skip
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", DOCUMENT)) - fields <= set(CODES)


def test_the_document_tells_the_outcomes_of_the_table():
    numbers = {"one": 1, "two": 2, "three": 3, "four": 4}
    told = {row[0]: row for row in rows(section("The official outcomes"))}
    for file, topics, official, errors, warnings in OUTCOMES:
        if (file.startswith("ikat/2023/") and topics == "2024") or official is None:
            continue
        row = told[f"{topics} `{file.rpartition('/')[2]}`"]
        assert f"exit {int(bool(errors))}" in row[2]
        counted = {code: numbers.get(n) or int(n) for n, code in re.findall(r"(\w+) `([a-z_]+)`", row[2])}
        assert counted == {**errors, **warnings}


def test_the_document_says_what_becomes_of_a_file_that_is_no_run():
    said = f"is a {CODES['not_a_run_file'].severity} (`not_a_run_file`), which `--strict` counts as an error"
    assert said in " ".join(section("Codes").split())


def test_the_document_tells_once_how_many_problems_of_a_list_are_listed():
    assert LISTED == 10
    assert re.findall("[Tt]en problems of each code are listed|ten are listed", DOCUMENT) == [
        "Ten problems of each code are listed"
    ]
    assert "Ten problems of each code are listed per list" in section("Codes")
