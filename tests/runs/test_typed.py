"""The quick way into a run gives what the slow way gives, for whatever is in the file."""

import copy
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judge.runs.document
from judge.runs.formats import FORMATS, read_run
from judge.runs.records import Provenance
from judge.runs.typed import decode_line, decode_typed

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "runs"
IDS = ("clueweb22-en0000-00-00000:0", "clueweb22-en0000-00-00001:1")


def both(path, format=None):
    """What the quick way and the slow way read, as bytes too: those tell 0.0 from -0.0."""
    quick = read_run(path, format)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge.runs.formats, "decode_typed", lambda content, flagged=True: None)
        patch.setattr(judge.runs.document, "decode_line", lambda content: None)
        patch.setattr(judge.runs.document, "_begins_with_a_turn", lambda content: False)
        slow = read_run(path, format)
    return quick, slow, repr(quick), repr(slow)


def same(path, formats=(None, *FORMATS)):
    for format in formats:
        quick, slow, quick_repr, slow_repr = both(path, format)
        assert quick_repr == slow_repr
        # NaN, which only the slow way can give, is equal to nothing.
        assert quick == slow or "nan" in quick_repr


def run_of(response, **members):
    return {
        "run_name": "r",
        "run_type": "automatic",
        **members,
        "turns": [{"turn_id": "9-1_1", "responses": [response]}],
    }


def flagged(*entries):
    return run_of({"rank": 1, "text": "Text.", "passage_provenance": list(entries), "ptkb_provenance": [1]})


FLAGGED = {"id": IDS[0], "score": 0.9, "used": True}
BASES = [
    flagged(FLAGGED, {"id": IDS[1], "score": 0.8, "used": False, "text": "t"}) | {"eval_response": True},
    run_of(
        {
            "rank": 1,
            "text": "Text.",
            "passage_provenance": [FLAGGED],
            "ptkb_provenance": [{"id": "1", "text": "I am vegan.", "score": 0.9}],
        }
    ),
    run_of(
        {
            "rank": 1,
            "text": "Text.",
            "provenance": [{"id": "MARCO_1-1", "score": 2.0, "text": "t"}, {"id": "KILT_1-1", "score": 1.0}],
        }
    ),
]
TURN = {
    "metadata": {"team_id": "t", "run_id": "r", "run_type": "automatic"},
    "turn_id": "9-1_1",
    "responses": [
        {
            "rank": 1,
            "text": "Text.",
            "citations": {"not a reference": 0.5, IDS[1]: 0.8, IDS[0]: 0.1},
            "ptkb_provenance": ["I am vegan."],
        },
        {"rank": 2, "text": "Other.", "citations": {}, "ptkb_provenance": []},
    ],
    "references": {IDS[0]: 0.9, "x\0": 1, IDS[1]: 0.8, "y": 0.7},
}
FIELDS = (
    *("run_name", "run_type", "eval_response", "turns", "turn_id", "responses", "rank", "text", "provenance"),
    *("passage_provenance", "ptkb_provenance", "id", "score", "used", "metadata", "references", "citations"),
)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    | st.sampled_from([10**30, 10**400, -(2**63) - 1, 2**53 + 1, 1e308, "1", "\0", "\ud800", "9-1_2", IDS[1]])
    | st.sampled_from([[], {}, [FLAGGED], [1], [{"id": "1", "text": "t"}], [{}], [None]])
)  # fmt: skip


def places(value, path=()):
    """The path of every object and list in a JSON value, its own first."""
    if isinstance(value, dict | list):
        yield path
        for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
            yield from places(inner, (*path, key))


def mutate(data, value):
    """Set, add, drop or repeat something somewhere."""
    path = data.draw(st.sampled_from(list(places(value))))
    target = value
    for key in path:
        target = target[key]
    if isinstance(target, dict):
        name = data.draw(st.sampled_from([*target, *FIELDS]) | st.text(max_size=2))
        if data.draw(st.booleans()):
            target[name] = copy.deepcopy(data.draw(VALUES))
        else:
            target.pop(name, None)
    elif target and data.draw(st.booleans()):
        k = data.draw(st.integers(0, len(target) - 1))
        target.insert(k, copy.deepcopy(target[k]))
    else:
        target.append(copy.deepcopy(data.draw(VALUES)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(st.data())
def test_any_fault(tmp_path, data):
    value = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    for _ in range(data.draw(st.integers(0, 4))):
        mutate(data, value)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(value, ensure_ascii=data.draw(st.booleans())), "utf-8", "surrogatepass")
    same(path, (None, data.draw(st.sampled_from(list(FORMATS)))))


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=400)
@given(st.data())
def test_any_fault_of_lines(tmp_path, data):
    lines = []
    for number in range(data.draw(st.integers(1, 3))):
        turn = copy.deepcopy(TURN) | {"turn_id": f"9-1_{number}"}
        for _ in range(data.draw(st.integers(0, 3))):
            mutate(data, turn)
        lines.append(json.dumps(turn, ensure_ascii=data.draw(st.booleans())))
    for line in data.draw(st.lists(st.sampled_from(["", " ", "\f", "null", "{", '{"turn_id": 1}']), max_size=2)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    path = tmp_path / "run.jsonl"
    path.write_text(data.draw(st.sampled_from(["\n", "\r\n"])).join(lines), "utf-8", "surrogatepass", newline="")
    same(path, (None, data.draw(st.sampled_from(list(FORMATS)))))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(st.data())
def test_any_bytes(tmp_path, data):
    """One stretch of the bytes is cut out, or replaced by something else."""
    bases = [json.dumps(base) for base in BASES] + [f"{json.dumps(TURN)}\n" * 2]
    content = data.draw(st.sampled_from(bases)).encode()
    start = data.draw(st.integers(0, len(content)))
    end = min(len(content), start + data.draw(st.integers(0, 3)))
    pieces = [
        b"",
        b"\0",
        b"\xff",
        b"{",
        b"]",
        b",",
        b"1e999",
        b"NaN",
        b"-0",
        b"0.0",
        b"\\u0000",
        b"\\ud83d\\ude00",
        b"\n",
    ]
    path = tmp_path / "run.json"
    path.write_bytes(content[:start] + data.draw(st.sampled_from(pieces)) + content[end:])
    same(path, (None,))


@pytest.mark.parametrize(
    "entry",
    [
        '{"id": "a", "score": -0}',
        '{"id": "a", "score": -0.0, "used": null}',
        '{"id": "a", "score": 9007199254740993, "used": true}',
        '{"id": "a", "score": 123456789012345678901234567890, "used": true}',
        '{"id": "a", "score": 1e999, "used": true}',
        '{"id": "a", "score": NaN, "used": true}',
        '{"id": "a", "score": "0.5", "used": true}',
        '{"id": "a", "score": true, "used": true}',
        '{"id": "a", "score": 1, "used": 1}',
        '{"id": "a", "id": "b", "score": 1, "score": 2, "used": false, "used": true}',
        '{"id": 1, "id": "b", "score": 1, "used": true}',
        '{"\\u0069d": "a", "score": 1, "used": true}',
        '{"id": "a\\u0000", "used": true}',
        '{"id": "a\\u0000", "score": 1.0, "used": true}',
        '{"id": "\\ud800", "score": 1.0, "used": true}',
        '{"id": "\\ud83d\\ude00", "score": 1.0, "used": true, "text": null}',
        '{"id": "a", "score": 1.0, "used": true, "text": 5}',
        '{"id": "a", "score": 1.0, "used": true, "rank": 1}',
        "null",
    ],
)
@pytest.mark.parametrize("name", ["passage_provenance", "provenance"])
def test_entries(tmp_path, name, entry):
    text = json.dumps(run_of({"rank": 1, "text": "T", name: ["HERE"]})).replace('"HERE"', entry)
    path = tmp_path / "run.json"
    path.write_text(text)
    same(path)


def test_the_quick_way_is_taken(tmp_path):
    value = decode_typed(json.dumps(BASES[0]).encode())
    [response] = value["turns"][0]["responses"]
    assert response["passage_provenance"] == [Provenance(IDS[0], 0.9, True, None), Provenance(IDS[1], 0.8, False, "t")]
    # Faults elsewhere are for the reader and do not keep a run from it.
    faulty = run_of({"rank": "1", "text": 7, "passage_provenance": [FLAGGED], "ptkb_provenance": ["x"]})
    assert decode_typed(json.dumps(faulty).encode()) is not None
    assert decode_typed(json.dumps(flagged(FLAGGED | {"rank": 1})).encode()) is None
    assert decode_typed(json.dumps({"run_name": "r"}).encode()) is None


def test_the_quick_way_is_taken_for_a_line(tmp_path):
    value = decode_line(json.dumps(TURN).encode())
    assert value == TURN
    assert [type(score) for score in value["references"].values()] == [float] * 4
    assert decode_line(json.dumps(TURN | {"references": {"a": "1"}}).encode()) is None
    assert decode_line(json.dumps(TURN | {"other": 1}).encode()) is None
    path = tmp_path / "run.jsonl"
    path.write_text(f"{json.dumps(TURN)}\n" * 2)
    first, second = read_run(path).run.turns[0].responses
    assert [(passage.passage_id, passage.score, passage.used) for passage in first.provenance] == [
        (IDS[0], 0.9, True), ("x\0", 1.0, False), (IDS[1], 0.8, True), ("y", 0.7, False),
        ("not a reference", 0.5, True),
    ]  # fmt: skip
    assert [passage.used for passage in second.provenance] == [False] * 4


def test_examples():
    paths = sorted(EXAMPLES.iterdir())
    assert len(paths) >= 7
    for path in paths:
        same(path)


def test_shared(shared):
    paths = [
        path for kind in ("json", "jsonl") for path in sorted(shared.rglob(f"*.{kind}")) if path.stat().st_size < 5e7
    ]
    assert len(paths) >= 15
    for path in paths:
        same(path, (None,))


def test_quick_and_slow_are_equal_records(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(BASES[0]))
    quick, slow, *_ = both(path)
    assert quick == slow
    assert msgspec.json.encode(quick) == msgspec.json.encode(slow)
