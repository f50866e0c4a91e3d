"""Interactive runs: both shapes from literal files to records, and what is checked, fixed and converted of them."""

import copy
import json

import pytest

from judge.runs.check.validate import validate_run
from judge.runs.convert import convert_run
from judge.runs.fix import fixed_copy
from judge.runs.formats import read_run
from judge.runs.records import Provenance, Response, RunTurn, TokenCount, Turn
from tests.conftest import put

A, B = (f"clueweb22-en0000-00-0000{k}:{k}" for k in range(2))
TOPICS = {"1-1_1": Turn("1-1_1", "1-1", "What?", None, (), ())}


def of_2025(turn_id, utterance, text, *, citations, ptkb):
    metadata = {"team_id": "tern", "run_id": "tern-talk", "type": "interactive", "description": "", "track_persona": 0}
    response = {"rank": 1, "user_utterance": utterance, "text": text, "citations": citations, "ptkb_provenance": ptkb}
    return {"metadata": metadata | {"topic_id": turn_id}, "responses": [response], "references": {}}


def of_2026(turn_id, utterance, text, *, citations, told, ptkb):
    metadata = {"team_id": "tern", "run_id": "tern-talk", "description": "", "extra": {"track_persona": True}}
    response = {
        **{"rank": 1, "user_utterance": utterance, "user_meta": {"ptkb": told}, "assistant_text": text},
        **{"assistant_citations": citations, "assistant_meta": {} if ptkb is None else {"ptkb_provenance": ptkb}},
    }
    return {"metadata": metadata | {"topic_id": turn_id}, "responses": [response]}


OLD = [
    of_2025("1-1_0", "Can I swim here?", "Yes, at low tide.", citations={B: 0.5, A: 0.4}, ptkb=[]),
    of_2025("1-1_1", "And today?", "No idea.", citations={}, ptkb=["You swim."]),
]
NEW = [
    of_2026(
        "1-1_1", "Can I swim here?", "Yes, at low tide.", citations={B: 0.5, A: 0.4}, told=["You swim."], ptkb=None
    ),
    of_2026("1-1_2", "And today?", "No idea.", citations=None, told=[], ptkb=["You swim."]),
]
USED = (Provenance(B, 0.5, True), Provenance(A, 0.4, True))
TURNS = {
    "old": (RunTurn("1-1_0", (Response(1, "Yes, at low tide.", USED, ()),), "Can I swim here?", ()),
        RunTurn("1-1_1", (Response(1, "No idea.", (), ("You swim.",)),), "And today?", ())),
    "new": (RunTurn("1-1_1", (Response(1, "Yes, at low tide.", USED, ()),), "Can I swim here?", ("You swim.",)),
        RunTurn("1-1_2", (Response(1, "No idea.", (), ("You swim.",)),), "And today?", ())),
}  # fmt: skip
SHAPES = {"old": OLD, "new": NEW}


def array(entries):
    return json.dumps(entries).encode()


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


def written(folder, content):
    return put(folder / "run.json", content)


def checked(path, turns=None):
    return [(problem.code, problem.path) for problem in validate_run(read_run(path), turns, None).problems]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("write", [array, lines])
def test_both_shapes_are_read_as_array_and_as_lines(tmp_path, shape, write):
    read = read_run(written(tmp_path, write(SHAPES[shape])))
    assert read.problems == ()
    assert (read.run.format, read.run.run_type, read.run.run_id, read.run.team) == (
        "interactive", "interactive", "tern-talk", "tern",
    )  # fmt: skip
    assert read.run.turns == TURNS[shape]
    paths = ["$[0]", "$[1]"] if write is array else ["line 1: $", "line 2: $"]
    assert [place.path for place in read.places] == paths


@pytest.mark.parametrize("shape", SHAPES)
def test_one_turn_alone_is_recognized_and_so_is_a_forced_format(tmp_path, shape):
    path = written(tmp_path, json.dumps(SHAPES[shape][0]).encode())
    assert read_run(path).run.turns == TURNS[shape][:1]
    path = written(tmp_path, array(SHAPES[shape]))
    assert read_run(path, "interactive").run.turns == TURNS[shape]


def test_a_run_of_2025_without_utterances_is_none(tmp_path):
    turn = OLD[0] | {"turn_id": "1-1_1", "metadata": {"team_id": "t", "run_id": "r", "run_type": "interactive"}}
    response = {name: value for name, value in OLD[0]["responses"][0].items() if name != "user_utterance"}
    assert read_run(written(tmp_path, lines([turn | {"responses": [response]}]))).run.format == "ikat2025"


def changed(shape, change):
    entries = copy.deepcopy(SHAPES[shape])
    change(entries)
    return entries


FAULTS = [
    # code, path, shape, change
    ("missing_field", "$[0].metadata.topic_id", "old", lambda e: e[0]["metadata"].pop("topic_id")),
    ("missing_field", "$[1].metadata", "old", lambda e: e[1].pop("metadata")),
    ("missing_field", "$[0].responses[0].user_utterance", "old", lambda e: e[0]["responses"][0].pop("user_utterance")),
    ("missing_field", "$[0].responses[0].assistant_text", "new", lambda e: e[0]["responses"][0].pop("assistant_text")),
    ("missing_field", "$[0].responses[0].rank", "new", lambda e: e[0]["responses"][0].pop("rank")),
    ("wrong_type", "$[0].responses[0].assistant_citations", "new",
     lambda e: e[0]["responses"][0].update(assistant_citations=[A])),
    ("wrong_type", "$[0].responses[0].user_meta.ptkb[0]", "new",
     lambda e: e[0]["responses"][0].update(user_meta={"ptkb": [1]})),
    ("wrong_type", "$[1].responses[0].assistant_meta.ptkb_provenance[0]", "new",
     lambda e: e[1]["responses"][0].update(assistant_meta={"ptkb_provenance": [1]})),
    ("unknown_field", "$[0].responses[0].texts", "old", lambda e: e[0]["responses"][0].update(texts="")),
    ("several_runs", "$[1].metadata.run_id", "old", lambda e: e[1]["metadata"].update(run_id="other")),
    ("inconsistent_metadata", "$[1].metadata.team_id", "old", lambda e: e[1]["metadata"].update(team_id="other")),
    ("empty_team", "$[0].metadata.team_id", "old", lambda e: [one["metadata"].update(team_id=" ") for one in e]),
    ("unknown_run_type", "$[0].metadata.type", "old", lambda e: [one["metadata"].update(type="manual") for one in e]),
    ("empty_text", "$[0].responses[0].assistant_text", "new",
     lambda e: e[0]["responses"][0].update(assistant_text=" ")),
    ("malformed_turn_id", "$[0].metadata.topic_id", "old", lambda e: e[0]["metadata"].update(topic_id="1-1")),
    ("duplicate_turn", "$[1].metadata.topic_id", "old", lambda e: e[1]["metadata"].update(topic_id="1-1_0")),
    ("malformed_passage_id", "$[0].responses[0].assistant_citations.x", "new",
     lambda e: e[0]["responses"][0].update(assistant_citations={"x": 0.5})),
    ("unknown_turn", "$[1].metadata.topic_id", "new", lambda e: e[1]["metadata"].update(topic_id="7-1_1")),
]  # fmt: skip


@pytest.mark.parametrize(("code", "path", "shape", "change"), FAULTS)
def test_each_fault_is_found_at_its_place(tmp_path, code, path, shape, change):
    found = checked(written(tmp_path, array(changed(shape, change))), TOPICS)
    before = checked(written(tmp_path, array(SHAPES[shape])), TOPICS)
    assert (code, path) in found
    assert {row for row in found if row not in before} <= {(code, path), ("missing_exchange", "$[1].metadata.topic_id")}


def test_the_number_of_turns_and_their_ptkb_are_up_to_the_user(tmp_path):
    far = [of_2026(f"1-1_{k}", f"And {k}?", "Yes.", citations={A: 0.5}, told=[], ptkb=None) for k in range(1, 40)]
    assert checked(written(tmp_path, array(far)), TOPICS) == []


def test_a_conversation_without_end_is_not_read(tmp_path):
    turns = [of_2026(f"1-1_{k}", "And?", "Yes.", citations={A: 0.5}, told=[], ptkb=None) for k in range(1, 1_002)]
    assert len(read_run(written(tmp_path, array(turns[:-1]))).run.turns) == 1_000
    read = read_run(written(tmp_path, array(turns)))
    assert (read.run, [(problem.code, problem.path) for problem in read.problems]) == (None, [("too_many_turns", "$")])


def test_an_array_with_a_fault_of_json_is_no_list_of_broken_lines(tmp_path):
    content = "[\n" + ",\n".join(map(json.dumps, OLD)) + "\n]"
    read = read_run(written(tmp_path, content.replace('"rank": 1', '"rank": True', 1).encode()))
    assert [problem.code for problem in read.problems] == ["python_literal"]


def words(text):
    n = len(text.split())
    return TokenCount(n, n, n, len(" ".join(text.split()[:3])) if n > 3 else None)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("write", [array, lines])
def test_fixes_reach_both_shapes(tmp_path, shape, write):
    def break_it(entries):
        response = entries[0]["responses"][0]
        text, citations = ("text", "citations") if shape == "old" else ("assistant_text", "assistant_citations")
        response.update({"rank": "1", text: "Yes, at low tide.", citations: {A: 0.4, B: 0.5}})

    path = written(tmp_path, write(changed(shape, break_it)))
    copy_of = fixed_copy(path, read_run(path).run, words)
    assert [fix.code for fix in copy_of.fixes] == ["coerced_value", "over_token_limit", "scores_not_decreasing"]
    assert [fix.turn_id for fix in copy_of.fixes] == [TURNS[shape][0].turn_id] * 3
    path.write_bytes(copy_of.stored)
    turn = read_run(path).run.turns[0]
    assert (turn.responses[0].rank, turn.responses[0].text, turn.responses[0].provenance) == (1, "Yes, at low", USED)
    assert turn.utterance == "Can I swim here?"


def test_a_conversion_says_that_the_conversation_is_lost(tmp_path):
    content, changes = convert_run(read_run(written(tmp_path, array(NEW))), "ikat2025")
    assert [json.loads(line)["turn_id"] for line in content.splitlines()] == ["1-1_1", "1-1_2"]
    lost = {(change.what, change.before) for change in changes if change.dropped}
    assert {("utterances of the user", "2 turns"), ("PTKB as told", "1 statement")} <= lost
