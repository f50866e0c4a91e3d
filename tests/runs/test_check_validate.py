"""Every code of the table, each from a file that has just that fault, and what is left to judge."""

import bz2
import gzip
import json
import lzma
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from judge.io.ids import natural_key
from judge.pool.selection import Selection, candidates
from judge.records import Problem
from judge.runs.check import CODES, NEEDS_HASHES, NEEDS_TOPICS, SECTIONS
from judge.runs.check.responses import CollectionHashes
from judge.runs.check.validate import validate_run, validate_together
from judge.runs.check.year import mixed_years, trace_of
from judge.runs.formats import ReadRun, find_runs, read_run
from judge.runs.formats.shape import ResponsePlace, TurnPlace
from judge.runs.profiles import limits_of
from judge.runs.records import Exclusion, Provenance, PtkbStatement, Response, Run, RunTurn, TokenCount, Turn
from judge.runs.topics import read_topics
from tests.conftest import put, refused
from tests.runs import TokenLimit

LIMIT = 5
PTKB = (PtkbStatement("1", "I am vegan."), PtkbStatement("2", "I like tea."))
TOPICS = {
    turn_id: Turn(turn_id, "9-1", "What?", None, (), PTKB) for turn_id in ("9-1_1", "9-1_2")
}  # fmt: skip
IDS = [f"clueweb22-en0000-00-0000{k}:{k}" for k in range(10)]
DROP = object()


def count_words(text):
    words = len(text.split())
    return TokenCount(words, words, words, len(text) if words > LIMIT else None)


def changed(value, changes):
    """`value` with members replaced, added or (DROP) left out."""
    return {key: item for key, item in {**value, **changes}.items() if item is not DROP}


def passage(k, **changes):
    return changed({"id": IDS[k], "score": 1.0 - k / 10, "used": True}, changes)


def response(**changes):
    base = {"rank": 1, "text": "Some text.", "ptkb_provenance": [1], "passage_provenance": [passage(0), passage(1)]}
    return changed(base, changes)


def turn(turn_id="9-1_1", responses=None, **changes):
    return changed({"turn_id": turn_id, "responses": [response()] if responses is None else responses}, changes)


def run24(*turns, **changes):
    base = {"run_name": "r", "run_type": "automatic", "eval_response": True, "turns": list(turns) or [turn()]}
    return changed(base, changes)


def one24(**changes):
    """A 2024 run of one response."""
    return run24(turn(responses=[response(**changes)]))


def passages24(*passages):
    return one24(passage_provenance=list(passages))


def ptkb23(**changes):
    entry = changed({"id": "1", "text": "I am vegan.", "score": 0.9}, changes)
    return changed(run24(turn(responses=[response(ptkb_provenance=[entry])])), {"eval_response": DROP})


def two_ptkb23(**changes):
    document = ptkb23()
    second = changed({"id": "2", "text": "I like tea.", "score": 0.5}, changes)
    document["turns"][0]["responses"][0]["ptkb_provenance"].append(second)
    return document


def line25(turn_id="9-1_1", response_changes=None, metadata=None, **changes):
    base = {
        "metadata": {"team_id": "t", "run_id": "r", "run_type": "automatic", **(metadata or {})},
        "turn_id": turn_id,
        "responses": [
            changed(
                {"rank": 1, "text": "Some text.", "citations": {IDS[0]: 0.9}, "ptkb_provenance": ["I am vegan."]},
                response_changes or {},
            )
        ],
        "references": {IDS[0]: 0.9, IDS[1]: 0.8},
    }
    return changed(base, changes)


def cited(citations):
    return [line25(response_changes={"citations": citations})]


def cast(*passages, **changes):
    """A 2022 run of one turn, of a topic whose turns are no plain numbers."""
    entries = [{"id": "MARCO_0_1-1", "score": 2.0, "text": "t"}, *passages]
    return run24(turn("9-1_1", [changed({"rank": 1, "text": "Some text.", "provenance": entries}, changes)]),
                 eval_response=DROP)  # fmt: skip


def only_cited(score):
    """A run whose only citation is in no reference, which it may be."""
    response_changes = {"citations": {IDS[2]: score}}
    return [line25(references={}, response_changes=response_changes, metadata={"run_type": "generation-only"})]


def referenced(references):
    return [line25(references=references)]


R0 = "$.turns[0].responses[0]"
PP = f"{R0}.passage_provenance"
PTKB_PATH = f"{R0}.ptkb_provenance"
PTKB_25 = "line 1: $.responses[0].ptkb_provenance"
OTHER_TEAM = [line25(), line25("9-1_2", metadata={"team_id": "u"})]
NAMELESS = line25(metadata={"team_id": "", "run_id": ""})
OTHER_TYPE = [line25(), line25("9-1_2", metadata={"run_type": "manual"})]
LATE_TEAM = [NAMELESS, line25(), line25("9-1_2", metadata={"team_id": "u"})]
LATE_RUN = [NAMELESS, line25(), line25("9-1_2", metadata={"run_id": "s"})]
MANY_COPIES = [line25(references={str(k): 1.0 - k for k in range(20_001)}, responses=[0] * 50)]
NO_TEAM = [line25() | {"metadata": {"run_id": "r", "run_type": "manual"}}]
NUMBER_IN_PTKB = [line25(response_changes={"ptkb_provenance": [3]})]
NUL_IN_PASSAGE = passages24(passage(0, used=False), passage(1, text="\0"))
TWO_COLONS = referenced({IDS[0]: 1.0, f"{IDS[1]}:9": 0.5})
MANY = [passage(0, id=f"{IDS[0]}{k}", score=-k) for k in range(1001)]
TWO = [response(), response(rank=2)]
DOCUMENTS = [
    # code, turn_id, path, document (a list is JSON Lines)
    ("unknown_format", None, "$", {"a": 1}),
    ("coerced_value", "9-1_1", f"{R0}.rank", one24(rank="1")),
    ("coerced_value", "9-1_1", f"{R0}.rank", one24(rank=1.0)),
    ("coerced_value", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=["1"])),
    ("coerced_value", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=[1.0])),
    ("wrong_type", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=[1.5])),
    ("wrong_type", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=[float("inf")])),
    ("coerced_value", "9-1_1", f"{PP}[0].score", passages24(passage(0, score="1.5"), passage(1))),
    ("inconsistent_metadata", "9-1_2", "line 2: $.metadata.team_id", OTHER_TEAM),
    ("inconsistent_metadata", "9-1_2", "line 3: $.metadata.team_id", LATE_TEAM),
    ("inconsistent_metadata", "9-1_2", "line 2: $.metadata.run_type", OTHER_TYPE),
    ("missing_field", None, "$.run_name", run24(run_name=DROP)),
    ("missing_field", None, "$.turns", run24(turns=DROP)),
    ("missing_field", None, "$.turns[0].turn_id", run24(turn(turn_id=DROP))),
    ("missing_field", "9-1_1", "$.turns[0].responses", run24(changed(turn(), {"responses": DROP}))),
    ("missing_field", "9-1_1", f"{R0}.rank", one24(rank=DROP)),
    ("missing_field", "9-1_1", f"{R0}.text", one24(text=DROP)),
    ("missing_field", "9-1_1", f"{PP}[1].id", passages24(passage(0), passage(1, id=DROP))),
    ("missing_field", "9-1_1", f"{PTKB_PATH}[0].text", ptkb23(text=DROP)),
    ("missing_field", "9-1_1", "line 1: $.metadata.team_id", NO_TEAM),
    ("missing_field", "9-1_1", "line 1: $.metadata", [changed(line25(), {"metadata": DROP})]),
    ("missing_field", "9-1_1", f"{R0}.provenance[1].id", cast({"score": 1.0})),
    ("several_runs", "9-1_2", "line 2: $.metadata.run_id", [line25(), line25("9-1_2", metadata={"run_id": "s"})]),
    ("several_runs", "9-1_2", "line 3: $.metadata.run_id", LATE_RUN),
    ("too_many_turns", None, "$.turns", run24(*[0] * 10_001)),
    ("too_many_responses", "9-1_1", "$.turns[0].responses", run24(turn(responses=[0] * 1_001))),
    ("too_many_responses", None, "$.turns", run24(*[turn(responses=[0] * 1_000)] * 101)),
    ("too_many_responses", "9-1_1", "line 1: $.responses", [line25(responses=[0] * 1_001)]),
    ("too_many_responses", "9-1_1", "line 1: $.responses", MANY_COPIES),
    ("too_many_responses", None, "$", [line25(responses=[0] * 1_000)] * 101),
    ("unknown_field", None, "$.name", run24(name="x")),
    ("unknown_field", "9-1_1", "$.turns[0].id", run24(turn(id="x"))),
    ("unknown_field", "9-1_1", f'{PP}[1]["a b"]', passages24(passage(0), passage(1, **{"a b": 1}))),
    ("unknown_field", None, "$.eval_response", {**ptkb23(), "eval_response": True}),
    ("unusable_text", "9-1_1", f"{R0}.text", one24(text="a\0b")),
    ("unusable_text", "9-1_1", f"{R0}.text", one24(text="a\ud800b")),
    ("unusable_text", "9-1_1", f"{PP}[1].text", NUL_IN_PASSAGE),
    ("text_too_long", "9-1_1", f"{PP}[0].text", passages24(passage(0, text="x" * 1_000_001), passage(1))),
    ("unusable_text", None, "$.run_name", run24(run_name="a\udfff")),
    ("wrong_type", None, "$.turns", run24(turns={})),
    ("wrong_type", None, "$.eval_response", run24(eval_response="no")),
    ("wrong_type", None, "$.turns[0]", run24(5)),
    ("wrong_type", "9-1_1", R0, run24(turn(responses=["x"]))),
    ("wrong_type", "9-1_1", f"{R0}.rank", one24(rank=True)),
    ("wrong_type", "9-1_1", f"{R0}.text", one24(text=None)),
    ("wrong_type", "9-1_1", PP, one24(passage_provenance={})),
    ("wrong_type", "9-1_1", f"{PP}[0]", passages24("clueweb")),
    ("wrong_type", "9-1_1", f"{PP}[0].used", passages24(passage(0, used="yes"))),
    ("wrong_type", "9-1_1", f"{PTKB_PATH}[1]", one24(ptkb_provenance=[1, {"id": 1}])),
    ("wrong_type", "9-1_1", "line 1: $.responses[0].citations", cited([IDS[0]])),
    ("wrong_type", "9-1_1", f'line 1: $.references["{IDS[1]}"]', referenced({IDS[0]: 1.0, IDS[1]: "x"})),
    ("wrong_type", "9-1_1", "line 1: $.responses[0].ptkb_provenance[0]", NUMBER_IN_PTKB),
    ("wrong_type", None, "line 2: $", [line25(), 7, line25("9-1_2")]),
    ("wrong_type", "9-1_1", "line 1: $.metadata", [changed(line25(), {"metadata": []})]),
    ("wrong_type", "9-1_1", f'line 1: $.responses[0].citations["{IDS[0]}"]', cited({IDS[0]: "x"})),
    ("wrong_type", "9-1_1", PTKB_25, [line25(response_changes={"ptkb_provenance": {}})]),
    ("wrong_type", "9-1_1", f"{PP}[0].text", passages24(passage(0, text=5))),
    ("wrong_type", "9-1_1", f"{PTKB_PATH}[0].id", ptkb23(id=1)),
    ("wrong_type", "9-1_1", f"{PTKB_PATH}[0].score", ptkb23(score="high")),
    ("wrong_type", "9-1_1", f"{R0}.provenance", cast(provenance={})),
    ("wrong_type", "9-1_1", f"{R0}.provenance[1].score", cast({"id": "MARCO_0_1-2", "score": []})),
    ("unknown_field", "9-1_1", f"{R0}.provenance[1].used", cast({"id": "MARCO_0_1-2", "score": 1.0, "used": True})),
    ("unknown_field", "9-1_1", "line 1: $.responses[0].used", [line25(response_changes={"used": 1})]),
    ("coerced_value", "9-1_1", f'line 1: $.references["{IDS[0]}"]', referenced({IDS[0]: "1.0"})),
    ("empty_run_id", None, "$.run_name", run24(run_name=" ")),
    ("empty_run_type", None, "$.run_type", run24(run_type=DROP)),
    ("empty_team", "9-1_1", "line 1: $.metadata.team_id", [line25(metadata={"team_id": ""})]),
    ("empty_team", "9-1_2", "line 2: $.metadata.team_id", [line25(), line25("9-1_2", metadata={"team_id": " "})]),
    ("no_turns", None, "$.turns", {**run24(), "turns": []}),
    ("unknown_run_type", None, "$.run_type", run24(run_type="auto")),
    ("unknown_run_type", None, "line 1: $.metadata.run_type", [line25(metadata={"run_type": "only_response"})]),
    ("unusable_run_id", None, "$.run_name", run24(run_name="a\nb")),
    ("unusable_run_id", None, "$.run_name", run24(run_name="9" * 201)),
    ("duplicate_turn", "9-1_1", "$.turns[1].turn_id", run24(turn(), turn())),
    ("malformed_turn_id", "9-1-1", "$.turns[0].turn_id", run24(turn("9-1-1"))),
    ("malformed_turn_id", "9-1_1 ", "$.turns[0].turn_id", run24(turn("9-1_1 "))),
    ("missing_turn", "9-1_2", "$.turns", run24(turn())),
    ("no_response", "9-1_1", "$.turns[0].responses", run24(turn(responses=[]))),
    ("turn_number_too_high", "9-1_3", "$.turns[0].turn_id", run24(turn("9-1_3"))),
    ("unknown_turn", "8-1_1", "$.turns[1].turn_id", run24(turn(), turn("8-1_1"))),
    ("unknown_turn", "9-1_0", "$.turns[0].turn_id", run24(turn("9-1_0"))),
    ("wrong_topics", None, "$.turns", run24(turn("8-1_1"), turn("8-1_2"))),
    ("wrong_topics", None, "line 1: $.turn_id", [line25("0_1"), line25("0_2")]),
    ("bad_rank", "9-1_1", f"{R0}.rank", one24(rank=0)),
    ("bad_rank", "9-1_1", f"{R0}.rank", one24(rank=-1)),
    ("bad_rank", "9-1_1", f"{R0}.rank", one24(rank=1_000_001)),
    ("bad_rank", "9-1_1", f"{R0}.rank", one24(rank=10**30)),
    ("duplicate_rank", "9-1_1", "$.turns[0].responses[1].rank", run24(turn(responses=[response(), response()]))),
    ("no_rank_one", "9-1_1", "$.turns[0].responses", one24(rank=2)),
    ("ranks_not_increasing", "9-1_1", "$.turns[0].responses[1].rank", run24(turn(responses=TWO[::-1]))),
    ("empty_text", "9-1_1", f"{R0}.text", one24(text="")),
    ("empty_text", "9-1_1", f"{R0}.text", one24(text=" \n\u3000")),
    ("empty_text", "9-1_1", f"{R0}.text", one24(text="\u200b\u200b")),
    ("over_token_limit", "9-1_1", f"{R0}.text", one24(text="one two three four five six")),
    ("over_token_limit", "9-1_1", f"{R0}.text", cast(text="one two three four five six")),
    ("joined_words", "9-1_1", f"{R0}.text", one24(text="one_two_three_four five\u2060six seven/eight")),
    ("text_too_long", "9-1_1", f"{R0}.text", one24(text="x" * 1_000_001)),
    ("citation_not_in_references", "9-1_1", f'line 1: $.responses[0].citations["{IDS[5]}"]', cited({IDS[5]: 0.1})),
    ("duplicate_passage", "9-1_1", f"{PP}[1].id", passages24(passage(0), passage(1, id=IDS[0]))),
    ("equal_scores", "9-1_1", f"{PP}[1].score", passages24(passage(0), passage(1, score=1))),
    ("malformed_passage_id", "9-1_1", f"{PP}[0].id", passages24(passage(0, id="clueweb22-:"))),
    ("malformed_passage_id", "9-1_1", f"{R0}.provenance[1].id", cast({"id": IDS[0], "score": 1.0})),
    ("malformed_passage_id", "9-1_1", f'line 1: $.references["{IDS[1]}:9"]', TWO_COLONS),
    ("missing_score", "9-1_1", f"{PP}[0].score", passages24(passage(0, score=DROP), passage(1))),
    ("missing_score", "9-1_1", f'line 1: $.references["{IDS[0]}"]', referenced({IDS[0]: None})),
    ("missing_used", "9-1_1", f"{PP}[1].used", passages24(passage(0), passage(1, used=DROP))),
    ("no_provenance", "9-1_1", PP, passages24()),
    ("no_provenance", "9-1_1", PP, one24(passage_provenance=DROP)),
    ("no_provenance", "9-1_1", "line 1: $.references", [line25(references={}, response_changes={"citations": {}})]),
    ("no_used_passage", "9-1_1", PP, passages24(passage(0, used=False))),
    ("no_used_passage", "9-1_1", PP, passages24(passage(0, used=DROP))),
    ("no_used_passage", "9-1_1", "line 1: $.responses[0].citations", cited({})),
    ("score_not_finite", "9-1_1", f"{PP}[0].score", passages24(passage(0, score=float("nan")))),
    ("score_not_finite", "9-1_1", f"{PP}[0].score", passages24(passage(0, score=10**400))),
    ("score_not_finite", "9-1_1", f'line 1: $.responses[0].citations["{IDS[0]}"]', cited({IDS[0]: float("nan")})),
    ("score_not_finite", "9-1_1", f'line 1: $.responses[0].citations["{IDS[2]}"]', only_cited(float("inf"))),
    ("scores_not_decreasing", "9-1_1", f"{PP}[1].score", passages24(passage(2), passage(1))),
    ("scores_not_decreasing", "9-1_1", f'line 1: $.references["{IDS[1]}"]', referenced({IDS[0]: 0.1, IDS[1]: 0.2})),
    ("too_many_passages", "9-1_1", PP, passages24(*MANY)),
    ("unusable_passage_id", "9-1_1", f"{PP}[0].id", passages24(passage(0, id=""))),
    ("unusable_passage_id", "9-1_1", f"{PP}[0].id", passages24(passage(0, id="clueweb22-\ud800"))),
    ("unusable_passage_id", "9-1_1", f"{PP}[0].id", passages24(passage(0, id=f"{IDS[0]}{'0' * 200}"))),
    ("unusable_passage_id", "9-1_1", 'line 1: $.references[""]', referenced({IDS[0]: 1.0, "": 0.5})),
    ("unusable_passage_id", "9-1_1", 'line 1: $.references["\\ud800"]', referenced({IDS[0]: 1.0, "\ud800": 0.5})),
    ("unusable_passage_id", "9-1_1", 'line 1: $.references["\\u0000"]', referenced({IDS[0]: 1.0, "\0": 0.5})),
    ("duplicate_ptkb", "9-1_1", f"{PTKB_PATH}[1]", one24(ptkb_provenance=[1, 1])),
    ("duplicate_ptkb", "9-1_1", f"{PTKB_25}[1]", [line25(response_changes={"ptkb_provenance": ["I.", "I."]})]),
    ("empty_ptkb", "9-1_1", f"{PTKB_25}[0]", [line25(response_changes={"ptkb_provenance": [" "]})]),
    ("empty_ptkb", "9-1_1", f"{PTKB_PATH}[0].text", ptkb23(text="")),
    ("missing_ptkb_score", "9-1_1", f"{PTKB_PATH}[1].score", two_ptkb23(score=DROP)),
    ("score_not_finite", "9-1_1", f"{PTKB_PATH}[0].score", ptkb23(score=float("nan"))),
    ("invalid_ptkb_id", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=[0])),
    ("invalid_ptkb_id", "9-1_1", f"{PTKB_PATH}[0].id", ptkb23(id="")),
    ("no_ptkb", "9-1_1", PTKB_PATH, one24(ptkb_provenance=[])),
    ("no_ptkb", "9-1_1", PTKB_PATH, one24(ptkb_provenance=DROP)),
    ("ptkb_scores_not_decreasing", "9-1_1", f"{PTKB_PATH}[1].score", two_ptkb23(score=0.9)),
    ("ptkb_text_differs", "9-1_1", f"{PTKB_PATH}[1].text", two_ptkb23(text="I like tea")),
    ("unknown_ptkb_id", "9-1_1", f"{PTKB_PATH}[0]", one24(ptkb_provenance=[3])),
    ("unknown_ptkb_id", "9-1_1", f"{PTKB_PATH}[1].id", two_ptkb23(id="7")),
]  # fmt: skip
GOOD = json.dumps(run24()).encode()
TWO_LINES = b"\n".join(json.dumps(line25(turn_id)).encode() for turn_id in ("9-1_1", "9-1_2"))
CONTENTS = [
    # code, path, what the message says, content
    ("byte_order_mark", "", "byte order mark", b"\xef\xbb\xbf" + GOOD),
    ("damaged_gzip", "", "gzip", gzip.compress(GOOD, mtime=0)[:-9]),
    ("damaged_gzip", "", "gzip", b"\x1f\x8bnot gzip"),
    ("empty_file", "", "empty", b""),
    ("empty_file", "", "empty", b" \n"),
    ("not_json", "", "line 2, column 3", b'{"a":\n  x}'),
    ("not_json", "", "JSON Lines", GOOD + b"\n" + GOOD),
    ("not_json", "", "nested", b"[" * 100_000),
    ("not_json", "", "digits", b"[" + b"1" * 5000 + b"]"),
    ("not_json", "line 2", "column 16", TWO_LINES.replace(b"\n", b'\n{"metadata": 1 2}\n')),
    ("packed_otherwise", "", "ZIP", b"PK\x03\x04" + GOOD),
    ("packed_otherwise", "", "bzip2", bz2.compress(GOOD)),
    ("packed_otherwise", "", "XZ", lzma.compress(GOOD)),
    ("packed_otherwise", "", "Zstandard", b"\x28\xb5\x2f\xfd" + GOOD),
    ("packed_otherwise", "", "gzip, once more", gzip.compress(gzip.compress(GOOD, mtime=0), mtime=0)),
    ("packed_otherwise", "", "tar", gzip.compress(b"run.json".ljust(257, b"\0") + b"ustar" + GOOD, mtime=0)),
    ("too_many_turns", "", "10,000 lines", TWO_LINES + b"\nx" * 10_000),
    ("python_literal", "", "line 1, column 8: Python's `True`; JSON writes `true`", b'{"a": [True]}'),
    ("python_literal", "", "`None`", GOOD.replace(b"true", b"None", 1)),
    ("truncated_json", "", f"column {len(GOOD) - 1}", GOOD[:-2]),
    ("truncated_json", "", "cut short", GOOD[:30]),
    ("truncated_json", "line 2", "the line ends", TWO_LINES[:-2]),
    ("wrong_encoding", "", "byte 4 (0xe9)", b'["\x20\xe9"]'),
    *(("wrong_encoding", "", "UTF-16", json.dumps(run24()).encode(name)) for name in ("utf-16", "utf-16-le")),
    ("wrong_encoding", "line 1", "(0xc3) is not UTF-8: unexpected end of data", b"\xc3\n" + TWO_LINES),
    ("wrong_encoding", "line 2", "not UTF-8", TWO_LINES.replace(b"9-1_2", b"9-1_\xff")),
]  # fmt: skip
BANK = b'{"R0": "Text.", "R1": "More."}'
POOLS = [
    # code, path, files; the first is read
    ("duplicate_response_id", "line 2", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n1_1-1 Q0 R0 1 0 t\n", "b.json": BANK}),
    ("malformed_line", "line 2", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n1_1-1 Q0 R1\n", "b.json": BANK}),
    ("malformed_line", "line 2", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n1\0_1-1 Q0 R1 1 0 t\n", "b.json": BANK}),
    ("missing_bank", "", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n", "b.json": b'{"R9": "Other."}'}),
    ("missing_pool", "", {"b.json": BANK}),
    ("missing_pool", "", {"b.json": BANK, "1.pool": b"1_1-1 Q0 R0 1 0 t\n", "2.pool": b"1_1-1 Q0 R0 1 0 t\n"}),
    ("not_in_bank", "line 1", {"p.pool": b"1_1-1 Q0 R7 1 0 t\n1_1-1 Q0 R0 1 0 t\n", "b.json": BANK}),
    ("several_runs", "line 2", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n1_1-1 Q0 R1 1 0 u\n", "b.json": BANK}),
    ("empty_text", "line 1", {"p.pool": b"1_1-1 Q0 R0 1 0 t\n", "b.json": b'{"R0": " "}'}),
    ("malformed_turn_id", "line 1", {"p.pool": b"1 Q0 R0 1 0 t\n", "b.json": BANK}),
]  # fmt: skip
FOLDER = {"hidden_file": ".run.json", "not_a_run_file": "README", "subfolder": "sub", "unreadable_file": "gone.json"}
ORPHAN = {"number": "1-1", "participant": "User", "utterance": "a", "parent": "1-9"}
STRANGE_LINK = {"turn_id": 1, "user_utterance": "b", "relevant_ptkbs": ["c"]}
TOPICS_FILES = {
    "broken_parent": [{"number": 1, "turn": [ORPHAN]}],
    "duplicate_topic": [{"number": "1-1", "ptkb": {}, "turns": []}] * 2,
    "unknown_statement": [{"number": "1-1", "ptkb": ["a"], "responses": [STRANGE_LINK]}],
}
TOGETHER = ("duplicate_run_id", "similar_run_ids")


def dump(document):
    if isinstance(document, list):
        return "\n".join(json.dumps(line) for line in document).encode()
    return json.dumps(document).encode()


def check(path, turns=TOPICS):
    """Read and validate, and hold every problem against the table of codes."""
    read = read_run(path)
    if read.run is None:
        assert any(problem.severity == "error" for problem in read.problems)
        problems, validated = read.problems, None
    else:
        validated = validate_run(read, turns, TokenLimit(count_words, LIMIT, "bare"))
        problems = validated.problems
    for problem in problems:
        assert problem.severity == CODES[problem.code].severity
        assert problem.file == str(path)
    return problems, validated


def made(format, responses):
    """A run of one turn, as its reader gives it."""
    run = Run("r", "automatic", None, format, "f", "", True, (RunTurn("9-1_1", tuple(responses)),))
    place = TurnPlace("$", tuple(ResponsePlace(f"$.responses[{j}]") for j in range(len(responses))))
    return ReadRun(run, (), (place,))


def written(folder, content, name="run.json"):
    return put(folder / name, content)


def names(problems):
    return [(problem.code, problem.turn_id, problem.path) for problem in problems]


@pytest.mark.parametrize(("code", "turn_id", "path", "document"), DOCUMENTS)
def test_each_fault_of_a_document_is_found_at_its_place(tmp_path, code, turn_id, path, document):
    problems, _ = check(written(tmp_path, dump(document)))
    assert (code, turn_id, path) in names(problems)
    # What the reader complains of is not found again by validation, and nothing else is found.
    there = [one.code for one in problems if one.path == path]
    assert there == [code] or (there.count(code), set(there)) == (1, {"missing_turn", code})
    also = {"empty_team", "duplicate_turn"} if path.startswith("line 3") else set()
    assert {problem.code for problem in problems} - {code, "missing_turn"} == also


@pytest.mark.parametrize(("code", "path", "says", "content"), CONTENTS)
def test_each_fault_of_the_bytes_is_found_and_named(tmp_path, code, path, says, content):
    problems, _ = check(written(tmp_path, content))
    found = [problem for problem in problems if problem.code == code]
    assert [problem.path for problem in found] == [path]
    assert says in found[0].message


@pytest.mark.parametrize(("code", "path", "files"), POOLS)
def test_each_fault_of_a_pool_is_found_at_its_line(tmp_path, code, path, files):
    paths = [written(tmp_path, content, name) for name, content in files.items()]
    problems, _ = check(paths[0], None)
    assert [(problem.code, problem.path) for problem in problems] == [(code, path)]


def test_a_folder_says_what_it_does_not_read(tmp_path):
    written(tmp_path, GOOD)
    written(tmp_path, GOOD, FOLDER["hidden_file"])
    written(tmp_path, b"Our runs.", FOLDER["not_a_run_file"])
    (tmp_path / FOLDER["subfolder"]).mkdir()
    (tmp_path / FOLDER["unreadable_file"]).symlink_to("nowhere")
    paths, problems = find_runs(tmp_path)
    assert [path.name for path in paths] == ["run.json"]
    assert {problem.code: Path(problem.file).name for problem in problems} == FOLDER
    assert all(problem.severity == CODES[problem.code].severity for problem in problems)


def test_runs_are_compared_by_their_ids():
    run = Run("a", None, None, "ikat2024", "1.json", "", True, ())
    named = [("a", "2.json"), ("A", "3.json"), ("", "4.json"), ("", "5.json")]
    others = [msgspec.structs.replace(run, run_id=run_id, file=file) for run_id, file in named]
    problems = validate_together([run, *others])
    assert [(problem.code, problem.file) for problem in problems] == [
        ("duplicate_run_id", "1.json"), ("similar_run_ids", "1.json"),
        ("duplicate_run_id", "2.json"), ("similar_run_ids", "2.json"),
        ("similar_run_ids", "3.json"),
    ]  # fmt: skip
    assert {problem.code for problem in problems} == set(TOGETHER)
    assert all(problem.severity == CODES[problem.code].severity for problem in problems)


@pytest.mark.parametrize(
    ("one", "other"), [("trail", "trail "), ("caf\xe9", "cafe\u0301"), ("run1", "run\uff11"), ("stra\xdfe", "STRASSE")]
)
def test_run_ids_that_the_eye_cannot_tell_apart_are_similar(one, other):
    run = Run(one, None, None, "ikat2024", "1.json", "", True, ())
    problems = validate_together([run, msgspec.structs.replace(run, run_id=other, file="2.json")])
    assert [(problem.code, problem.file) for problem in problems] == [
        ("similar_run_ids", "1.json"), ("similar_run_ids", "2.json"),
    ]  # fmt: skip
    assert validate_together([run, msgspec.structs.replace(run, run_id=f"{one}-2", file="2.json")]) == ()


def test_a_file_with_more_values_than_any_run_is_not_decoded(tmp_path, monkeypatch):
    marks = sum(map(GOOD.count, (b",", b"{", b"[")))
    path = written(tmp_path, gzip.compress(GOOD, mtime=0))
    monkeypatch.setattr("judge.io.files._largest", 100 * marks)
    assert read_run(path).problems == ()
    monkeypatch.setattr("judge.io.files._largest", 100 * marks - 1)
    assert [problem.code for problem in read_run(path).problems] == ["too_many_values"]
    assert read_run(path).run is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_with_more_bytes_than_are_read_is_not_read(tmp_path, monkeypatch, pack):
    path = written(tmp_path, pack(GOOD))
    monkeypatch.setattr("judge.io.files._largest", len(GOOD) - 1)
    assert [problem.code for problem in read_run(path).problems] == ["too_large"]
    assert f"more than {len(GOOD) - 1:,} bytes; --max-file-size allows more" in read_run(path).problems[0].message


@pytest.mark.slow
def test_of_runs_and_turns_that_are_too_large_nothing_is_read(tmp_path):
    assert read_run(written(tmp_path, dump(run24(*[0] * 10_001)))).run is None
    assert len(read_run(written(tmp_path, dump(run24(*[0] * 10_000)))).run.turns) == 10_000
    assert read_run(written(tmp_path, TWO_LINES + b"\nx" * 9_999)).run is None
    assert len(read_run(written(tmp_path, TWO_LINES + b"\nx" * 9_998)).run.turns) == 2
    _, validated = check(written(tmp_path, dump(run24(turn(responses=[0] * 1_001), turn("9-1_2")))))
    assert [one.turn_id for one in validated.run.turns] == ["9-1_2"]
    assert [(one.turn_id, one.rank, one.reason) for one in validated.exclusions] == [
        ("9-1_1", None, "too_many_responses")
    ]
    assert len(read_run(written(tmp_path, dump(run24(turn(responses=[0] * 1_000))))).run.turns[0].responses) == 1_000


def test_a_pool_of_too_many_lines_is_not_read(tmp_path, monkeypatch):
    written(tmp_path, BANK, "b.json")
    path = written(tmp_path, b"1_1-1 Q0 R0 1 0 t\n1_1-2 Q0 R0 1 0 t\n", "p.pool")
    monkeypatch.setattr("judge.runs.formats.cast_regin.MAX_ALL_RESPONSES", 2)
    assert len(read_run(path).run.turns) == 2
    monkeypatch.setattr("judge.runs.formats.cast_regin.MAX_ALL_RESPONSES", 1)
    read = read_run(path)
    assert (read.run, [(problem.code, problem.path) for problem in read.problems]) == (
        None, [("too_many_responses", "line 2")],
    )  # fmt: skip


def exchange(turn_id="9-1_1", utterance="What?", **changes):
    """An entry of an interactive run in the shape of 2025."""
    response = {"rank": 1, "user_utterance": utterance, "text": "Some text.", "citations": {IDS[0]: 0.9}}
    return {
        "metadata": {"team_id": "t", "run_id": "r", "type": "interactive", "topic_id": turn_id},
        "responses": [changed(response, changes)],
    }


TWO_UTTERANCES = exchange()
TWO_UTTERANCES["responses"] += exchange(utterance="Why?", rank=2)["responses"]
CONVERSATIONS = [
    ("empty_utterance", "9-1_1", "$[0].responses[0].user_utterance", [exchange(utterance=" ")]),
    ("missing_exchange", "9-1_2", "$[0].metadata.topic_id", [exchange("9-1_2")]),
    ("missing_exchange", "9-1_2", "$[1].metadata.topic_id", [exchange("9-1_0"), exchange("9-1_2")]),
    ("missing_exchange", "9-1_1", "$[1].metadata.topic_id", [exchange("1-1_0"), exchange("9-1_1")]),
    ("utterance_differs", "9-1_1", "$[0].responses[1].user_utterance", [TWO_UTTERANCES]),
]


@pytest.mark.parametrize(("code", "turn_id", "path", "entries"), CONVERSATIONS)
def test_faults_of_conversations_are_found_at_their_turn(tmp_path, code, turn_id, path, entries):
    path_of_run = written(tmp_path, json.dumps(entries).encode())
    _, validated = check(path_of_run)
    assert [(one.code, one.turn_id, one.path) for one in validated.problems if one.code != "unknown_turn"] == [
        (code, turn_id, path)
    ]
    assert len(validated.run.turns) == sum("9-1" in entry["metadata"]["topic_id"] for entry in entries)
    assert read_run(path_of_run).run.format == "interactive"


def test_citations_over_the_limit_are_warned_of(tmp_path):
    entries = [exchange(citations={IDS[0]: 0.9, IDS[1]: 0.8}), exchange("9-1_2", citations={IDS[0]: 0.9})]
    flagged = [passage(0), passage(1), passage(2, used=False)]
    for document, path in (
        (entries, "$[0].responses[0].citations"),
        (cited({IDS[0]: 0.9, IDS[1]: 0.8}), "line 1: $.responses[0].citations"),
        (passages24(*flagged), f"{R0}.passage_provenance"),
    ):
        content = json.dumps(document).encode() if document is entries else dump(document)
        read = read_run(written(tmp_path, content))
        for limit, found in ((1, [path]), (2, []), (None, [])):
            validated = validate_run(read, None, None, limits=limits_of("ikat2024", citation_limit=limit))
            assert [one.path for one in validated.problems if one.code == "too_many_citations"] == found
            assert len(validated.run.turns) == len(read.run.turns)


@pytest.mark.parametrize("code", TOPICS_FILES)
def test_faults_of_topics_are_in_the_table_too(tmp_path, code):
    problems = refused(read_topics, written(tmp_path, json.dumps(TOPICS_FILES[code]).encode()))
    assert [problem.code for problem in problems] == [code]
    assert CODES[code].severity == "error"


def test_every_code_of_the_table_is_provoked_here():
    provoked = {row[0] for row in (*DOCUMENTS, *CONTENTS, *POOLS, *CONVERSATIONS)} | {
        "too_large",
        "too_many_values",
        # test_table_runs.py
        "wrong_table",
        "several_years",
        *FOLDER,
        *TOGETHER,
        *TOPICS_FILES,
        *NEEDS_HASHES,
        "too_many_citations",
        # tests/extra/citations
        "wrong_profile",
        *SECTIONS["Citations of sentences"],
    }
    assert provoked == set(CODES)
    assert all(row.severity in ("error", "warning") and row.meaning for row in CODES.values())


def test_a_faultless_run_has_no_problems_and_loses_nothing(tmp_path):
    path = written(tmp_path, dump(run24(turn(), turn("9-1_2"))))
    problems, validated = check(path)
    assert problems == ()
    assert validated.run == read_run(path).run
    assert validated.exclusions == ()
    assert validated.unchecked == NEEDS_HASHES


def test_errors_take_out_what_they_concern_and_warnings_nothing(tmp_path):
    document = run24(
        turn("9-1_1", [response(text=""), response(rank=2), response(rank=2, text="Twice.")]),
        turn("9-1_2", [response(ptkb_provenance=[])]),
        turn("9-1_2"),
        turn("9-1_4"),
        turn("9-1_5", [response(rank="first")]),
        turn(DROP),
        "x",
    )
    _, validated = check(written(tmp_path, dump(document)))
    kept = {turn.turn_id: [response.rank for response in turn.responses] for turn in validated.run.turns}
    assert kept == {"9-1_1": [2], "9-1_2": [1]}
    assert [(one.turn_id, one.rank, one.reason) for one in validated.exclusions] == [
        ("9-1_1", 1, "empty_text"), ("9-1_1", 2, "duplicate_rank"), ("9-1_2", None, "duplicate_turn"),
        ("9-1_4", None, "turn_number_too_high"), ("9-1_5", None, "turn_number_too_high"), ("?", None, "missing_field"),
        ("?", None, "wrong_type"),
    ]  # fmt: skip
    assert validated.exclusions[0].detail == "$.turns[0].responses[0].text: the text is empty"


def test_a_line_that_is_no_json_costs_only_itself(tmp_path):
    path = written(tmp_path, b"\n" + TWO_LINES.replace(b"\n", b"\n\n{oops\n") + b"\n", "run.jsonl")
    problems, validated = check(path)
    assert names(problems) == [("not_json", None, "line 4")]
    assert [turn.turn_id for turn in validated.run.turns] == ["9-1_1", "9-1_2"]
    assert [(one.turn_id, one.reason) for one in validated.exclusions] == [("?", "not_json")]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (run24(run_name=DROP), "missing_field"),
        (run24(eval_response=0), "wrong_type"),
        ({**run24(), "turns": []}, "no_turns"),
        (run24(run_name="\t"), "empty_run_id"),
    ],
)
def test_a_fault_of_the_whole_run_takes_it_out(tmp_path, document, reason):
    _, validated = check(written(tmp_path, dump(document)))
    assert validated.run is None
    assert [(one.turn_id, one.reason) for one in validated.exclusions] == [("*", reason)]


def test_turns_that_a_run_lacks_are_listed_as_not_judged(tmp_path):
    _, validated = check(written(tmp_path, dump(run24())), {**TOPICS, "9-1_10": TOPICS["9-1_2"]})
    detail = "$.turns: the topics have this turn, the run has not"
    assert validated.exclusions == (
        Exclusion("r", "9-1_2", None, "missing_turn", detail),
        Exclusion("r", "9-1_10", None, "missing_turn", detail),
    )


def test_without_topics_it_is_said_what_was_not_checked(tmp_path):
    problems, validated = check(written(tmp_path, dump(run24(turn("8-1_99")))), None)
    assert problems == ()
    assert validated.unchecked == tuple(sorted(NEEDS_HASHES + NEEDS_TOPICS))
    assert set(NEEDS_HASHES + NEEDS_TOPICS) <= set(CODES)


def test_a_run_that_is_not_for_assessment_needs_no_texts(tmp_path):
    document = run24(turn(responses=[response(text="", passage_provenance=[passage(0)])]), eval_response=False)
    problems, validated = check(written(tmp_path, dump(document)), None)
    assert problems == ()
    assert validated.run.eval_response is False
    del document["turns"][0]["responses"][0]["text"]
    assert check(written(tmp_path, dump(document)), None)[0] == ()


SCORELESS = response(passage_provenance=[passage(0, score=DROP), passage(1, score=DROP)])
UNREAD_MARK = response(passage_provenance=[passage(0, used="true")])
NONE_USED = response(rank=2, passage_provenance=[passage(0, used=False)])
TWICE = line25(references={IDS[0]: 0.1, IDS[1]: 0.2})
TWICE["responses"].append({**TWICE["responses"][0], "rank": 2})
CITED_25 = "line 1: $.responses[0].citations"
FAULTY_MARKS = [passage(k, score=[], used=False) for k in range(10)]
EXACT = [
    # document, (code, path) of all that is found without topics
    # Runs of the type only_response need no scores. Those of generation-only need no references: the guidelines want
    # none, the official validator wants every citation in them, and both are accepted.
    (run24(turn(responses=[SCORELESS]), run_type="only_response"), []),
    ([line25(references={}, metadata={"run_type": "generation-only"})], []),
    ([line25(metadata={"run_type": "generation-only"})], []),
    # References are checked once for all responses; citations that are missing are as if empty.
    ([TWICE], [("scores_not_decreasing", f'line 1: $.references["{IDS[1]}"]')]),
    ([line25(response_changes={"citations": DROP, "ptkb_provenance": DROP})],
     [("no_used_passage", CITED_25), ("no_ptkb", PTKB_25)]),
    # Citations are outside references that are not there, and are not compared with those that cannot be read.
    *(([line25(references=references)], [("citation_not_in_references", f'{CITED_25}["{IDS[0]}"]')])
      for references in ({}, None, DROP)),
    *(([line25(references=references)], [("wrong_type", "line 1: $.references")])
      for references in ([IDS[0]], "none", 0, False)),
    # Marks that cannot be read are not also missing; a fault of another field says nothing of the marks.
    (passages24(passage(0, used="true"), passage(1, used=False)), [("wrong_type", f"{PP}[0].used")]),
    (passages24(passage(0), passage(1, used="true"), passage(2, used=DROP)), [("wrong_type", f"{PP}[1].used")]),
    (passages24("a passage", passage(1, used=False)), [("wrong_type", f"{PP}[0]")]),
    (passages24(passage(0, used=False, score="high")),
     [("no_used_passage", PP), ("wrong_type", f"{PP}[0].score")]),
    (passages24(passage(0, score=[]), passage(1, used=DROP)),
     [("wrong_type", f"{PP}[0].score"), ("missing_used", f"{PP}[1].used")]),
    # Such a mark may be among the faults that were only counted, and is that of its own list.
    (passages24(*FAULTY_MARKS, passage(0, id=f"{IDS[0]}1", score=-1.0, used="true")),
     [*(("wrong_type", f"{PP}[{k}].score") for k in range(10)), ("wrong_type", f"{PP}[*]")]),
    (run24(turn(responses=[UNREAD_MARK, NONE_USED])),
     [("wrong_type", f"{PP}[0].used"), ("no_used_passage", "$.turns[0].responses[1].passage_provenance")]),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), EXACT)
def test_a_document_has_these_problems_and_no_others(tmp_path, document, expected):
    problems, _ = check(written(tmp_path, dump(document)), None)
    assert [(one.code, one.path) for one in problems] == expected


def test_a_response_s_own_citations_are_not_part_of_the_turn_s_ranking(tmp_path):
    line = line25(references={IDS[0]: 0.5}, response_changes={"citations": {IDS[1]: 0.9}})
    problems, _ = check(written(tmp_path, dump([line])), None)
    assert names(problems) == [("citation_not_in_references", "9-1_1", f'line 1: $.responses[0].citations["{IDS[1]}"]')]
    line["responses"] = [line["responses"][0] | {"citations": {"": 0.9}}, line["responses"][0] | {"rank": 2}]
    _, validated = check(written(tmp_path, dump([line])), None)
    assert [response.rank for response in validated.run.turns[0].responses] == [2]


def test_many_faults_in_one_list_are_counted(tmp_path):
    many = [passage(0, id=f"x{k}", score=-k, title="t") for k in range(25)]
    problems, _ = check(written(tmp_path, dump(passages24(*many))), None)
    for code in ("malformed_passage_id", "unknown_field"):
        found = [problem for problem in problems if problem.code == code]
        assert len(found) == 10 + 1
        assert [one.message for one in found if one.path == f"{PP}[*]"] == ["and 15 more like these here"]
        assert [one.count for one in found] == [1] * 10 + [15]
        assert sum(one.count for one in found) == len(many)


def test_problems_come_in_the_order_of_the_file(tmp_path):
    document = run24(*(turn(f"9-1_{k}", [response(text="", rank=k or "a")]) for k in range(12)))
    problems, _ = check(written(tmp_path, dump(document)), None)
    assert [problem.path for problem in problems] == sorted((p.path for p in problems), key=natural_key)


@pytest.mark.parametrize(("text", "found"), [("\u200b\u2060", ["empty_text"]), ("…", []), ("\u0301", []), ("🦉", [])])
def test_checks_and_selection_agree_on_what_is_empty(tmp_path, text, found):
    read = read_run(written(tmp_path, dump(one24(text=text))))
    assert [problem.code for problem in check(tmp_path / "run.json", None)[0]] == found
    kept, dropped = candidates(read.run, Selection())
    assert ([row.reason for row in dropped], len(kept)) == (found, 1 - len(found))


def test_each_rank_is_looked_up_and_not_searched_among_those_before():
    compared = []

    class Rank(int):
        def __eq__(self, other):
            compared.append(self)
            return int(self) == int(other)

        __hash__ = int.__hash__

    ranks = [*range(1, 1001), 500]
    found = validate_run(made("ikat2024", [Response(Rank(rank), "Text.", ()) for rank in ranks]), None, None).problems
    assert [one.path for one in found if one.severity == "error"] == ["$.responses[1000].rank"]
    # A search would compare half a million.
    assert len(compared) < 10 * len(ranks)


def test_of_two_turns_of_one_id_only_the_first_counts_even_if_it_is_out(tmp_path):
    document = run24(turn(responses=[response(text="")]), turn())
    problems, validated = check(written(tmp_path, dump(document)), None)
    assert [one.message for one in problems if one.code == "duplicate_turn"] == [
        "9-1_1 was already at $.turns[0]; only the first counts"
    ]
    assert validated.run is None


def test_joined_words_are_told_with_the_official_count_which_decides(tmp_path):
    path = written(tmp_path, dump(one24(text="one_two_three_four_five_six_seven_eight")))
    validated = validate_run(read_run(path), None, TokenLimit(count_words, LIMIT, "bare"))
    (found,) = (problem for problem in validated.problems if problem.code == "joined_words")
    assert found.message == (
        "1 token by the bare rule, limit 5 (bare 1, english 1, whitespace 1), yet 8 words where joined ones are split; "
        "invisible characters: 0"
    )
    assert validated.run.turns[0].responses and not validated.exclusions


def test_messages_show_values_escaped_and_cut(tmp_path):
    problems, _ = check(written(tmp_path, dump(run24(run_type="\x1b[31m" + "x" * 500))), None)
    assert [type(problem) for problem in problems] == [Problem]
    assert "\\x1b" in problems[0].message
    assert len(problems[0].message) < 200


def test_the_texts_that_are_checked_are_those_that_would_be_used() -> None:
    """Nothing is flagged and scores rise, so the last of eight passages is the first that counts as used."""
    passages = tuple(
        Provenance(f"MARCO_1_{number}-1", float(number), None, "half \ud83d" if number == 7 else "whole")
        for number in range(8)
    )
    checked = validate_run(made("cast2022", [Response(1, "text", passages)]), None, None)
    assert [(problem.code, problem.path) for problem in checked.problems if problem.severity == "error"] == [
        ("unusable_text", "$.responses[0].provenance[7].text")
    ]
    assert checked.run is None


@pytest.mark.parametrize(
    ("score", "of_the_turn", "of_the_entry"),
    [
        (2.0, "the 5 with the highest scores count", "they are ranked by score"),
        (None, "the 5 first of the list, where scores are missing, count", "the order of the list counts"),
    ],
)
def test_messages_about_the_order_of_passages_say_which_rule_holds(tmp_path, score, of_the_turn, of_the_entry):
    document = passages24(
        *(passage(k, used=False, score=float(k)) for k in (1, 2)), passage(3, used=False, score=score)
    )
    problems, _ = check(written(tmp_path, dump(document)), None)
    said = {problem.code: problem.message for problem in problems}
    assert of_the_turn in said["no_used_passage"]
    assert of_the_entry in said["scores_not_decreasing"]


def test_the_row_of_a_response_with_an_absurd_rank_has_no_rank(tmp_path):
    responses = [response(), response(rank=10**30), response(rank=0)]
    _, validated = check(written(tmp_path, dump(run24(turn(responses=responses)))), None)
    assert [(row.reason, row.rank) for row in validated.exclusions] == [("bad_rank", None), ("bad_rank", 0)]


def test_topics_of_another_year_are_told_once_and_nothing_else_is_checked_against_them(tmp_path):
    document = run24(*(turn(f"{k}_1", [response(ptkb_provenance=[99])]) for k in range(200)))
    problems, validated = check(written(tmp_path, dump(document)))
    assert names(problems) == [("wrong_topics", None, "$.turns")]
    assert "200 turns" in problems[0].message
    assert "nothing else was compared with them" in problems[0].message
    assert "'0_1', '1_1', '2_1', …" in problems[0].message
    assert "'9-1_1', '9-1_2')" in problems[0].message
    assert validated.run is None
    assert [(one.turn_id, one.reason) for one in validated.exclusions] == [("*", "wrong_topics")]
    # The topics were given, so nothing is unchecked for want of them.
    assert validated.unchecked == NEEDS_HASHES


def test_one_turn_of_a_known_topic_is_enough_for_the_topics_to_be_the_right_ones(tmp_path):
    problems, _ = check(written(tmp_path, dump(run24(turn("9-1_7"), turn("0_1"), turn("nonsense")))))
    assert [problem.code for problem in problems if problem.code != "missing_turn"] == [
        "turn_number_too_high", "unknown_turn", "malformed_turn_id",
    ]  # fmt: skip


MD5S = {IDS[0]: b"a", IDS[1]: b"b", IDS[3]: b"c"}


def in_collection(document, tmp_path, md5s=MD5S):
    """The problems of a run against a collection whose MD5s are the first letters of texts, and what was asked."""
    asked = []

    def hashes(ids):
        asked.append(list(ids))
        return [md5s.get(one) for one in ids]

    def same_text(text, md5):
        return text[:1].encode() == md5

    read = read_run(written(tmp_path, dump(document)))
    validated = validate_run(read, None, TokenLimit(count_words, LIMIT, "bare") ,
        hashes=CollectionHashes(hashes, same_text),
    )  # fmt: skip
    assert all(problem.severity == CODES[problem.code].severity for problem in validated.problems)
    return names(validated.problems), asked, validated


def test_a_passage_that_the_collection_has_not_is_told_of(tmp_path):
    document = run24(turn(responses=[response(passage_provenance=[passage(k) for k in range(4)])]), turn("9-1_2"))
    found, asked, validated = in_collection(document, tmp_path)
    assert found == [("unknown_passage", "9-1_1", f"{PP}[2].id")]
    # One question a run, of different ids.
    assert asked == [IDS[:4]]
    assert validated.unchecked == NEEDS_TOPICS
    assert [len(turn.responses) for turn in validated.run.turns] == [1, 1]


@pytest.mark.parametrize(
    ("absent", "turns", "message"),
    [
        # Three turns are the fewest, and more than half of the turns are most.
        (2, 2, None),
        (3, 6, None),
        (3, 5, "in 3 of its 5 turns a used passage is not in the collection: 3 of all 10 used passages"),
        (15, 16, "in 15 of its 16 turns a used passage is not in the collection: 15 of all 32 used passages"),
    ],
)
def test_a_run_most_of_whose_evidence_does_not_exist_is_named_once(tmp_path, absent, turns, message):
    def cited(k):
        # The third passage is not used, so whether it exists does not matter.
        return [passage(0), passage(2 if k < absent else 1, used=True), passage(4, used=False)]

    document = run24(*(turn(f"9-1_{k + 1}", [response(passage_provenance=cited(k))]) for k in range(turns)))
    found, _, validated = in_collection(document, tmp_path)
    assert Counter(code for code, _, _ in found)["absent_evidence"] == (message is not None)
    assert [problem.message for problem in validated.problems if problem.code == "absent_evidence"] == [message] * bool(
        message
    )
    # It is a warning: the turns with evidence are judged.
    assert len(validated.run.turns) == turns


def test_runs_of_several_years_are_told_by_their_turns(tmp_path):
    """The code is that of a folder, so it stands beside the files in what `judge validate` reports."""
    old, new = (
        trace_of(read_run(written(tmp_path, dump(run24(*(turn(f"{topic}_1") for topic in topics))))).run, (), None)
        for topics in (range(17), (f"{n}-1" for n in range(1, 10)))
    )
    assert mixed_years([old, old]) is None
    assert "2024: 1 run" in mixed_years([old, new]) and "2025: 1 run" in mixed_years([old, new])
    assert CODES["several_years"].severity == "error"


def test_references_and_citations_are_looked_up_under_their_own_paths(tmp_path):
    line = line25(response_changes={"citations": {IDS[0]: 0.9, IDS[4]: 0.1}}, references={IDS[0]: 0.9, IDS[2]: 0.5})
    found, _, _ = in_collection([line], tmp_path)
    assert sorted(found) == [
        ("citation_not_in_references", "9-1_1", f'line 1: $.responses[0].citations["{IDS[4]}"]'),
        ("unknown_passage", "9-1_1", f'line 1: $.references["{IDS[2]}"]'),
        ("unknown_passage", "9-1_1", f'line 1: $.responses[0].citations["{IDS[4]}"]'),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a text of the collection", []), ("planted", ["passage_text_differs"]), ("", []), (DROP, []),
     ("\ud800", ["passage_text_differs", "unusable_text"])],
)  # fmt: skip
def test_a_text_that_is_not_the_collection_s_is_told_of(tmp_path, text, expected):
    found, _, _ = in_collection(passages24(passage(0, text=text), passage(1, text="b")), tmp_path)
    assert found == [(code, "9-1_1", f"{PP}[0].text") for code in expected]


def test_an_id_that_cannot_be_one_is_told_of_once_and_an_unusable_one_is_not_looked_up(tmp_path):
    document = passages24(passage(0), passage(1, id="clueweb22-:"), passage(2, id=""), passage(3, id="x" * 201))
    found, asked, _ = in_collection(document, tmp_path)
    assert asked == [[IDS[0], "clueweb22-:"]]
    assert found == [
        ("malformed_passage_id", "9-1_1", f"{PP}[1].id"),
        ("unusable_passage_id", "9-1_1", f"{PP}[2].id"),
        ("unusable_passage_id", "9-1_1", f"{PP}[3].id"),
    ]


def test_a_pool_need_not_have_every_turn_and_has_no_passages_to_look_up(tmp_path):
    written(tmp_path, BANK, "b.json")
    path = written(tmp_path, b"9-1_1 Q0 R0 1 0 t\n", "p.pool")
    assert check(path)[0] == ()
    assert check(path, None)[1].unchecked == NEEDS_TOPICS


@pytest.mark.parametrize(
    ("statements", "document", "found"),
    [((PtkbStatement("a", "I am vegan."),), ptkb23(id="a"), []), ((), one24(), ["unknown_ptkb_id"])],
)
def test_a_topic_may_name_its_statements_as_it_likes_or_have_none(tmp_path, statements, document, found):
    topics = {"9-1_1": Turn("9-1_1", "9-1", "What?", None, (), statements)}
    assert [one.code for one in check(written(tmp_path, dump(document)), topics)[0]] == found
