"""Whatever a file holds, reading and validating it ends in problems and never in an exception."""

import copy
import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.io.trec import response_run, safe_name
from judge.pool.bank import excluded_tsv, passages_jsonl, pool_jsonl, pool_lines, read_pool, stored_pool
from judge.pool.build import LengthRule, build_pool, evidence_of
from judge.pool.selection import Selection, candidates
from judge.runs.check.codes import CODES
from judge.runs.check.validate import validate_run
from judge.runs.formats import FORMATS, read_run
from judge.runs.records import PtkbStatement, TokenCount, Turn
from tests.conftest import PROJECT
from tests.runs import TokenLimit

TOPICS = {"9-1_1": Turn("9-1_1", "9-1", "What?", None, (), (PtkbStatement("1", "I am vegan."),))}
IDS = ["clueweb22-en0000-00-00000:0", "clueweb22-en0000-00-00001:1"]
PASSAGES = [{"id": IDS[0], "score": 0.9, "used": True}, {"id": IDS[1], "score": 0.8, "used": False}]


def count_words(text):
    words = len(text.split())
    return TokenCount(words, words, words, len(text) if words > 2 else None)


def run(turn_id, **response):
    turn = {"turn_id": turn_id, "responses": [{"rank": 1, "text": "Text.", **response}]}
    return {"run_name": "r", "run_type": "manual", "turns": [turn]}


def line(turn_id):
    response = {"rank": 1, "text": "Text.", "citations": {IDS[0]: 0.9}, "ptkb_provenance": ["I am vegan."]}
    return {
        "metadata": {"team_id": "t", "run_id": "r", "run_type": "automatic"},
        "turn_id": turn_id,
        "responses": [response],
        "references": {IDS[0]: 0.9, IDS[1]: 0.8},
    }


def exchange(turn_id):
    response = {"rank": 1, "user_utterance": "What?", "user_meta": {"ptkb": ["I am vegan."]}, "assistant_text": "Text."}
    return {
        "metadata": {"team_id": "t", "run_id": "r", "type": "interactive", "topic_id": turn_id},
        "responses": [
            response | {"assistant_citations": {IDS[0]: 0.9}, "assistant_meta": {"ptkb_provenance": ["I am vegan."]}},
            {"rank": 2, "user_utterance": "What?", "text": "Text.", "citations": {}, "ptkb_provenance": []},
        ],
        "references": {},
    }


BASES = {
    "ikat2023": run(
        "9-1_1",
        passage_provenance=PASSAGES,
        ptkb_provenance=[{"id": "1", "text": "I am vegan.", "score": 0.9}, {"id": "2", "text": "x", "score": 0.5}],
    ),
    "ikat2024": run("9-1_1", passage_provenance=PASSAGES, ptkb_provenance=[1, 2]) | {"eval_response": True},
    "ikat2025": [line("9-1_1"), line("9-1_2")],
    "interactive": [exchange("1-1_0"), exchange("1-1_1")],
    "cast2022": run("132_1-1", provenance=[{"id": f"MARCO_{k}-1", "score": float(k), "text": "t"} for k in range(8)]),
    "cast_regin": {"R0": "Text.", "R1": "More."},
}
FIELDS = [
    *("run_name", "run_type", "eval_response", "turns", "turn_id", "responses", "rank", "text", "provenance"),
    *("passage_provenance", "ptkb_provenance", "id", "score", "used"),
    *("metadata", "run_id", "references", "citations", "R0", "topic_id", "user_utterance", "user_meta", "ptkb"),
    *("assistant_text", "assistant_citations", "assistant_meta"),
]
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.integers(10**300, 10**310) | st.floats() | st.text(max_size=8)
    | st.sampled_from(["1", "9-1_1", "9-1_2", "\ud800", "\0", "9" * 4400 + "_1", "²_²", "9 1_1", IDS[0] * 9, *IDS])
)  # fmt: skip
KEYS = st.sampled_from(FIELDS) | st.text(max_size=4) | st.sampled_from(['"]', ".a", "[0]", "\ud800"])
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25
)


def dump_lines(lines):
    return "\n".join(json.dumps(line) for line in lines).encode()


def survive(folder, content):
    """Read and validate under every format; whatever is reported can be stored and printed."""
    path = folder / "run.json"
    path.write_bytes(content)
    (folder / "p.pool").write_bytes(b"9-1_1 Q0 R0 1 0 t\n")
    for format in (None, *FORMATS):
        read = read_run(path, format)
        assert all(CODES[one.code].severity == one.severity for one in read.problems)
        if read.run is None:
            assert any(one.severity == "error" for one in read.problems)
            continue
        for turns in (TOPICS, None):
            validated = validate_run(read, turns, TokenLimit(count_words, 2, "bare"))
            assert all(CODES[one.code].severity == one.severity for one in validated.problems)
            assert {one.reason for one in validated.exclusions} <= set(CODES)
            stored = msgspec.json.encode([validated.problems, validated.exclusions])
            assert stored.decode().isprintable()
            if validated.run is not None:
                assert all(turn.responses for turn in validated.run.turns)
                survive_pooling(validated.run, validated.exclusions)


def survive_pooling(run, excluded):
    """All files of the pool can be written, and the pool can be read back."""
    found, dropped = candidates(run, Selection(depth=2))
    pool = build_pool(found, evidence_of(), LengthRule(count_words), excluded=[*excluded, *dropped])
    stored = pool_jsonl(pool), passages_jsonl(pool), excluded_tsv(pool.exclusions)
    assert read_pool(*stored[:2], "out", stored[2]) == pool
    assert json.loads(bytes(stored_pool(pool)["bank.json"])) == {one.response_id: one.text for one in pool.responses}
    assert all(len(line.split()) == 6 for line in pool_lines(pool).encode().decode().split("\n")[:-1])
    entries = [(one.turn_id, one.response_id, entry.rank) for one in pool.responses for entry in one.runs]
    lines = response_run(run.run_id, entries).encode().decode().split("\n")[:-1]
    assert all(len(line.split()) == 6 for line in lines)
    assert len(safe_name(run.run_id)) < 120


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=ANY_JSON)
def test_any_json_is_read_and_validated_without_raising(tmp_path, document):
    survive(tmp_path, json.dumps(document).encode())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(ANY_JSON, max_size=4))
def test_any_json_lines_are_read_and_validated_without_raising(tmp_path, lines):
    survive(tmp_path, dump_lines([{"metadata": 1}, *lines]))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_without_raising(tmp_path, content):
    survive(tmp_path, content)


@pytest.mark.parametrize("format", BASES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_run_with_one_spoiled_value_is_validated_without_raising(tmp_path, format, data):
    document = copy.deepcopy(BASES[format])
    node = document
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
            break
        node = inner
    node[key] = data.draw(ANY_JSON)
    survive(tmp_path, dump_lines(document) if format == "ikat2025" else json.dumps(document).encode())


@pytest.mark.parametrize("first", ["5", '"x"', "[]", "null", "[1, 2]"])
def test_a_first_line_that_is_no_turn_costs_no_other_line(tmp_path, first):
    """An array begins like the line `[]`; it ends on another line."""
    path = tmp_path / "run.jsonl"
    turns = (PROJECT / "examples/runs/lantern-half-right.jsonl").read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([first, *turns[1:]]) + "\n", encoding="utf-8")
    read = read_run(path)
    assert read.run is not None
    assert sum(turn.turn_id != "" for turn in read.run.turns) == len(turns) - 1
    assert [problem.code for problem in read.problems if problem.severity == "error"] == ["wrong_type"]
