"""Runs in another format: what is kept, what is logged, what is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.runs.check.validate import validate_run
from judge.runs.convert import LOG, conversion_tsv, convert_run, convert_runs, tally
from judge.runs.formats import read_run
from judge.runs.ranking import used_provenance
from judge.runs.records import PtkbStatement, TokenCount, Turn
from judge.runs.topics import read_topics
from tests.conftest import put, refused
from tests.runs import TokenLimit

PTKB = (PtkbStatement("1", "I am vegan."), PtkbStatement("2", "I live in Bergen."))
TURNS = {f"1-1_{k}": Turn(f"1-1_{k}", "1-1", "Hi", None, (), PTKB) for k in range(1, 6)}


def passage_id(number):
    return f"clueweb22-en0000-00-{number:05d}:0"


def passage(number, score, used=True, **more):
    return {"id": passage_id(number), "score": score, "used": used} | more


def response(passages=(), rank=1, text="Text.", ptkb=()):
    return {"rank": rank, "text": text, "ptkb_provenance": list(ptkb), "passage_provenance": list(passages)}


def ikat2024(*responses, run_type="automatic", turn_id="1-1_1", **head):
    turns = [{"turn_id": turn_id, "responses": list(responses)}]
    return {"run_name": "r", "run_type": run_type, "eval_response": True, "turns": turns} | head


def read(folder, document, name="run.json"):
    path = folder / name
    lines = document if isinstance(document, list) else [document]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return read_run(path)


def convert(folder, document, to, **options):
    team = {"team": "t"} if to == "ikat2025" else {}
    content, changes = convert_run(read(folder, document), to, **team, **options)
    lines = [json.loads(line) for line in content.splitlines()] if to == "ikat2025" else json.loads(content)
    return lines, [(change.what, change.before, change.after) for change in changes]


def problems_of(read):
    checked = validate_run(read, None, TokenLimit(lambda _: TokenCount(1, 1, 1, None), 250, "bare") ,
    )  # fmt: skip
    return checked.problems


def errors_of(read):
    return [problem for problem in problems_of(read) if problem.severity == "error"]


def judged(run):
    """What a pool tells responses apart by."""
    return {
        (turn.turn_id, one.rank, one.text, frozenset(p.passage_id for p in used_provenance(one, run.format)[0]))
        for turn in run.turns
        for one in turn.responses
    }


def test_2024_to_2025_cites_what_is_used(tmp_path):
    document = ikat2024(response([passage(1, 3.0), passage(2, 2.5, False), passage(3, 1.0)], ptkb=[2]))
    lines, changes = convert(tmp_path, document, "ikat2025", turns=TURNS)
    assert lines == [
        {
            "metadata": {"team_id": "t", "run_id": "r", "run_type": "automatic"},
            "turn_id": "1-1_1",
            "responses": [
                {
                    "rank": 1,
                    "text": "Text.",
                    "citations": {passage_id(1): 3.0, passage_id(3): 1.0},
                    "ptkb_provenance": ["I live in Bergen."],
                }
            ],
            "references": {passage_id(1): 3.0, passage_id(2): 2.5, passage_id(3): 1.0},
        }
    ]
    assert changes == []


def test_2025_to_2024_flags_what_is_cited(tmp_path):
    line = {
        "metadata": {"team_id": "t", "run_id": "r", "run_type": "generation-only"},
        "turn_id": "1-1_1",
        "references": {passage_id(1): 2.0, passage_id(2): 1.0},
        "responses": [
            {"rank": 1, "text": "Text.", "citations": {passage_id(2): 1.0},
             "ptkb_provenance": ["I live in Bergen.", "I like tea."]}
        ],
    }  # fmt: skip
    document, changes = convert(tmp_path, [line], "ikat2024", turns=TURNS)
    assert document == {
        "run_name": "r",
        "run_type": "only_response",
        "eval_response": True,
        "turns": [{"turn_id": "1-1_1", "responses": [response([passage(1, 2.0, False), passage(2, 1.0)], ptkb=[2])]}],
    }
    assert changes == [
        ("team", "t", ""),
        ("PTKB statements", "'I like tea.'", "dropped: not in the topic's PTKB"),
        ("run type", "generation-only", "only_response"),
        ("citations", "1 citation", "with the references' scores and in their order"),
    ]


@pytest.mark.parametrize(
    ("responses", "references", "citations", "changes"),
    [
        pytest.param([[passage(1, 2.0), passage(2, 1.0)], [passage(3, 9.0), passage(2, 1.0)]], {3: 9.0, 1: 2.0, 2: 1.0},
            [[1, 2], [3, 2]], ["passage list", "passage list", "order of the references"],
            id="the references are those of all responses by falling score"),
        pytest.param([[passage(1, 2.0), passage(1, 1.0), passage(2, 0.5)]], {1: 2.0, 2: 0.5}, [[1, 2]],
            ["passage scores", "repeated passages"], id="the first of a repeated passage is kept"),
        pytest.param([[passage(k, None) for k in (4, 5, 6)]], {4: 3.0, 5: 2.0, 6: 1.0}, [[4, 5, 6]], ["passage scores"],
            id="scores by place where there are none"),
        pytest.param([[passage(k, 10.0 - k, False) for k in range(1, 8)]], {k: 10.0 - k for k in range(1, 8)},
            [[1, 2, 3, 4, 5]], ["citations"], id="the first five where none is flagged"),
        pytest.param([[passage(k, float(k), False) for k in range(1, 8)]], {k: float(k) for k in range(7, 0, -1)},
            [[7, 6, 5, 4, 3]], ["citations", "order of the references"], id="the five with the highest scores"),
        pytest.param([[passage(1, 1.0)], []], {1: 1.0}, [[1], []], ["citations"],
            id="no passages beside a response with passages"),
        pytest.param([[passage(1, 1.0, text="Tea is hot.")]], {1: 1.0}, [[1]], ["passage texts"],
            id="no room for texts"),
    ],
)  # fmt: skip
def test_passages_of_2025(tmp_path, responses, references, citations, changes):
    document = ikat2024(*(response(passages, rank) for rank, passages in enumerate(responses, 1)))
    (line,), found = convert(tmp_path, document, "ikat2025")
    assert list(line["references"].items()) == [(passage_id(k), score) for k, score in references.items()]
    assert [list(one["citations"]) for one in line["responses"]] == [
        [passage_id(number) for number in numbers] for numbers in citations
    ]
    assert [what for what, _, _ in found] == changes


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        (None, "dropped: no topics given"),
        ({}, "dropped: the topics have no such turn"),
        (TURNS, "dropped: not in the topic's PTKB"),
    ],
)
def test_a_statement_that_cannot_be_found_is_logged(tmp_path, turns, reason):
    (line,), changes = convert(tmp_path, ikat2024(response([passage(1, 1.0)], ptkb=[7])), "ikat2025", turns=turns)
    assert line["responses"][0]["ptkb_provenance"] == []
    assert changes == [("PTKB statements", "'7'", reason)]


def test_statements_of_2023_name_themselves(tmp_path):
    ptkb = [{"id": "2", "text": "I live in Bergen.", "score": 0.5}]
    document = ikat2024(response([passage(1, 1.0)], ptkb=ptkb))
    del document["eval_response"]
    (line,), changes = convert(tmp_path, document, "ikat2025")
    assert line["responses"][0]["ptkb_provenance"] == ["I live in Bergen."]
    assert [what for what, _, _ in changes] == ["PTKB scores"]
    later, changes = convert(tmp_path, document, "ikat2024")
    assert later["turns"][0]["responses"][0]["ptkb_provenance"] == [2]
    assert changes == [("PTKB texts and scores", "1 statement", "numbers alone")]


def test_cast_2022_keeps_texts_and_stays_unflagged_in_2024(tmp_path):
    entries = [{"id": f"MARCO_{k}-1", "score": float(k), "text": f"Tea {k}."} for k in range(1, 8)]
    turns = [{"turn_id": "132_1-1", "responses": [{"rank": 1, "text": "Tea.", "provenance": entries}]}]
    document = {"run_name": "r", "run_type": "manual", "turns": turns}
    after, changes = convert(tmp_path, document, "ikat2024")
    assert after["turns"][0]["responses"][0]["passage_provenance"] == entries
    assert changes == []
    before, after = read(tmp_path, document), read(tmp_path, after, "after.json")
    assert after.run.format == "ikat2024"
    assert judged(after.run) == judged(before.run)


@pytest.mark.parametrize(
    ("to", "before", "after", "logged"),
    [
        ("ikat2025", "only_response", "generation-only", True),
        ("ikat2025", "manual", "manual", False),
        ("ikat2025", "magic", "magic", True),
        ("ikat2024", "only_response", "only_response", False),
    ],
)
def test_run_types(tmp_path, to, before, after, logged):
    document, changes = convert(tmp_path, ikat2024(response([passage(1, 1.0)]), run_type=before), to)
    head = document[0]["metadata"] if to == "ikat2025" else document
    assert head["run_type"] == after
    assert [what for what, _, _ in changes] == ["run type"] * logged


def test_a_score_that_is_no_number_is_dropped(tmp_path):
    document, changes = convert(tmp_path, ikat2024(response([passage(1, float("nan"))])), "ikat2024")
    assert document["turns"][0]["responses"][0]["passage_provenance"] == [{"id": passage_id(1), "used": True}]
    assert [what for what, _, _ in changes] == ["passage scores"]


@pytest.mark.parametrize("flags", [[None, None], [True, None], [False, True], [None, False]])
def test_a_flag_that_is_not_there_stays_absent(tmp_path, flags):
    entries = [
        {"id": passage_id(k), "score": 5.0 - k} | ({} if used is None else {"used": used})
        for k, used in enumerate(flags)
    ]
    document = ikat2024(response(entries))
    after, changes = convert(tmp_path, document, "ikat2024")
    assert (after, changes) == (document, [])


def test_what_no_record_has_room_for_is_logged_once_for_the_run(tmp_path):
    document = ikat2024(response([passage(k, "1.5", note=1) for k in range(12)]), own={"x": 1})
    expected = [
        ("unknown fields", "13 fields, the first at $.own", ""),
        ("numbers in another form", "12 values, the first at $.turns[0].responses[0].passage_provenance[0].score",
         "numbers"),
    ]  # fmt: skip
    for to in ("ikat2024", "ikat2025", "trec-run"):
        content, changes = convert_run(read(tmp_path, document), to, team="t" if to == "ikat2025" else None)
        assert b"note" not in content
        rows = [(one.what, one.before, one.after) for one in changes if (one.turn_id, one.rank) == (None, None)]
        assert [row for row in expected if row in rows] == (expected[:1] if to == "trec-run" else expected)


FALLING = st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True)


@settings(max_examples=60, deadline=None)
@given(scores=FALLING, other=FALLING, used=st.integers(0, 5))
def test_in_2025_validation_says_nothing_that_it_did_not_say_before(tmp_path_factory, scores, other, used):
    folder = tmp_path_factory.mktemp("codes")
    lists = [
        [passage(100 * j + k, score + j / 2, k == used % len(one)) for k, score in enumerate(one)]
        for j, one in enumerate((scores, other))
    ]
    document = ikat2024(*(response(entries, rank, ptkb=[1]) for rank, entries in enumerate(lists, 1)))
    before = read(folder, document)
    content, changes = convert_run(before, "ikat2025", turns=TURNS, team="t")
    (folder / "after.jsonl").write_bytes(content)
    codes = [{one.code for one in problems_of(one)} for one in (before, read_run(folder / "after.jsonl"))]
    assert codes[1] <= codes[0]
    merged = [entry["score"] for entries in lists for entry in entries]
    rows = [(one.turn_id, one.before, one.after) for one in changes if one.what == "order of the references"]
    assert rows == [(None, "1 turn", "by falling score")] * (merged != sorted(merged, reverse=True))


@pytest.mark.parametrize(
    ("document", "to", "team", "messages"),
    [
        (ikat2024(response(text="")), "ikat2024", None, ["the text is empty"]),
        (ikat2024(response([passage(1, 1.0)])), "ikat2025", None, ["needs a team id"]),
        (ikat2024(response([passage(1, 1.0)]), eval_response=False), "ikat2025", None,
            ["needs a team id", "eval_response: false"]),
        ({"turns": 1}, "ikat2024", None, ["expected a list", "`run_name` is missing"]),
        ([1], "ikat2024", None, ["not a run in a known format"]),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused_with_every_reason(tmp_path, document, to, team, messages):
    problems = refused(convert_run, read(tmp_path, document), to, team=team)
    found = [problem.message for problem in problems]
    assert all(any(message in one for one in found) for message in messages)
    assert {problem.severity for problem in problems} == {"error"}


def test_a_trec_run_ranks_the_passages_and_says_which_responses_have_none(tmp_path):
    passages = [passage(1, 1.0), passage(2, 3.0, False)]
    read_ = read(tmp_path, ikat2024(response(passages), response([], rank=2), eval_response=False))
    content, changes = convert_run(read_, "trec-run")
    lines = [line.split(" ") for line in content.decode().splitlines()]
    assert [(line[0], line[1], line[2], line[3], line[5]) for line in lines] == [
        ("1-1_1", "Q0", passage_id(2), "1", "r"),
        ("1-1_1", "Q0", passage_id(1), "2", "r"),
    ]
    assert float(lines[0][4]) > float(lines[1][4])
    assert [(change.turn_id, change.rank, change.what, change.before) for change in changes] == [
        (None, None, "run type", "automatic"),
        (None, None, "eval_response", "false"),
        ("1-1_1", 2, "response", "no passages to rank"),
        (None, None, "several responses", "1 turn"),
        (None, None, "response texts", "2 responses"),
        (None, None, "used flags", "2 passages"),
        (None, None, "passage scores", "2 passages"),
    ]


def test_a_trec_run_loses_all_but_ids_and_order(tmp_path):
    line = {
        "metadata": {"team_id": "t", "run_id": "a b", "run_type": "manual"},
        "turn_id": "1-1_1",
        "references": {"a b": 2.0, passage_id(2): 1.0},
        "responses": [{"rank": 1, "text": "T", "citations": {"a b": 1.0}, "ptkb_provenance": ["I like tea."]}],
    }
    content, changes = convert_run(read(tmp_path, [line]), "trec-run")
    assert content.decode() == f"1-1_1 Q0 a%20b 1 2 a%20b\n1-1_1 Q0 {passage_id(2)} 2 1 a%20b\n"
    assert [(one.what, one.before, one.after, one.dropped) for one in changes] == [
        ("team", "t", "", True),
        ("run type", "manual", "", True),
        ("run id", "a b", "a%20b", False),
        ("response texts", "1 response", "", True),
        ("PTKB provenance", "1 statement", "", True),
        ("citations", "1 passage", "", True),
        ("passage scores", "2 passages", "from the number of the turn's passages down to 1", False),
        ("passage ids", "1 id", "with percent signs", False),
    ]


def test_a_trec_run_says_how_many_passages_it_leaves_out(tmp_path):
    document = ikat2024(response([passage(k, 2000.0 - k) for k in range(1003)]))
    content, changes = convert_run(read(tmp_path, document), "trec-run")
    assert content.count(b"\n") == 1000
    found = [(change.turn_id, change.rank, change.what, change.before) for change in changes]
    assert ("1-1_1", None, "passages", "3 passages beyond the first 1000") in found


def test_the_log_is_one_line_a_change(tmp_path):
    read_ = read(tmp_path, ikat2024(response([passage(1, 1.0, text="a")], ptkb=[7])), "a\tb.json")
    _, changes = convert_run(read_, "ikat2025", team="t")
    assert conversion_tsv(changes).decode().split("\n") == [
        "file\tturn_id\trank\twhat\tfrom\tto",
        "a\\tb.json\t1-1_1\t1\tPTKB statements\t'7'\tdropped: no topics given",
        "a\\tb.json\t*\t\tpassage texts\t1 text\t",
        "",
    ]
    assert tally(changes) == (("PTKB statements", True, 1), ("passage texts", True, 1))


def by_score(passages):
    """By falling score where all have one."""
    scored = all(passage.score is not None for passage in passages)
    return sorted(passages, key=lambda passage: -passage.score) if scored else passages


NUMBERS = st.lists(st.integers(1, 12), min_size=1, max_size=8, unique=True)


@st.composite
def runs(draw):
    """2024 runs that 2025 can hold: every response has passages."""
    turns = []
    for k in range(1, draw(st.integers(1, 3)) + 1):
        responses = []
        for rank in range(1, draw(st.integers(1, 3)) + 1):
            entries = []
            for number in draw(NUMBERS):
                score = draw(st.one_of(st.none(), st.floats(-100, 100, width=32)))
                entries.append(passage(number, score, draw(st.booleans())))
            text = draw(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
            responses.append(response(entries, rank, f"T{text}", draw(st.lists(st.sampled_from([1, 2]), unique=True))))
        turns.append({"turn_id": f"1-1_{k}", "responses": responses})
    run_type = draw(st.sampled_from(["automatic", "manual", "only_response"]))
    return {"run_name": "r", "run_type": run_type, "eval_response": True, "turns": turns}


@settings(max_examples=60, deadline=None)
@given(document=runs())
def test_there_and_back_keeps_what_is_judged(tmp_path_factory, document):
    folder = tmp_path_factory.mktemp("round")
    before = read(folder, document)
    content, _ = convert_run(before, "ikat2025", turns=TURNS, team="t")
    (folder / "there.jsonl").write_bytes(content)
    there = read_run(folder / "there.jsonl")
    content, _ = convert_run(there, "ikat2024", turns=TURNS)
    (folder / "back.json").write_bytes(content)
    back = read_run(folder / "back.json")
    assert (there.run.format, back.run.format) == ("ikat2025", "ikat2024")
    assert errors_of(there) == errors_of(back) == []
    assert judged(there.run) == judged(before.run)
    assert judged(back.run) == judged(before.run)
    for old, new in zip(before.run.turns, back.run.turns, strict=True):
        assert [one.ptkb_provenance for one in new.responses] == [one.ptkb_provenance for one in old.responses]
        if len(old.responses) == 1:
            ids = [[one.passage_id for one in by_score(turn.responses[0].provenance)] for turn in (old, new)]
            assert ids[0] == ids[1]
    assert back.run.run_type == before.run.run_type


def test_a_folder_is_converted_whole_and_the_same_again(tmp_path):
    runs = tmp_path / "runs"
    put(runs / "a.json", ikat2024(response([passage(1, 1.0)]), run_name="a b"))
    put(runs / "b.json", ikat2024(response([passage(1, 1.0)]), run_name="b"))
    out = tmp_path / "out"
    done = convert_runs(runs, "ikat2024", out)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(first) == {LOG, *(path.name for path in done.files)}
    assert [path.name for path in done.files][1] == "b.json"
    convert_runs(runs, "ikat2024", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first


def test_one_bad_run_and_nothing_is_written(tmp_path):
    runs = tmp_path / "runs"
    put(runs / "a.json", ikat2024(response([passage(1, 1.0)]), run_name="a"))
    put(runs / "b.json", ikat2024(response(text=" "), run_name="b"))
    put(runs / "c.json", ikat2024(response([passage(1, 1.0)]), run_name="A"))
    assert sorted(problem.code for problem in refused(convert_runs, runs, "ikat2024", tmp_path / "out")) == [
        "empty_text",
        "similar_run_ids",
        "similar_run_ids",
    ]
    assert not (tmp_path / "out").exists()


def test_an_output_folder_with_something_else_is_refused(tmp_path):
    runs = tmp_path / "runs"
    put(runs / "r.json", ikat2024(response([passage(1, 1.0)])))
    for given_ in (runs, runs / "r.json"):
        with pytest.raises(UsageError, match="give a folder of its own"):
            convert_runs(given_, "ikat2024", runs)
    for name in ("notes.txt", "r.json"):
        out = tmp_path / name.replace(".", "_")
        put(out / name, {})
        with pytest.raises(UsageError, match=name):
            convert_runs(runs, "ikat2024", out)
        assert (out / name).read_text() == "{}"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used as an output folder"):
        convert_runs(runs, "ikat2024", tmp_path / "file")


@pytest.mark.parametrize("left", [".conversion.tsv.tmp", "conversion.tsv", "conversion.tsv .r.json.tmp"])
def test_a_conversion_that_was_killed_can_be_done_again(tmp_path, left):
    runs, out = tmp_path / "runs", tmp_path / "out"
    put(runs / "r.json", ikat2024(response([passage(1, 1.0)])))
    for name in left.split():
        put(out / name, {})
    convert_runs(runs, "ikat2024", out)
    assert {path.name for path in out.iterdir()} == {"conversion.tsv", "r.json"}


def test_every_run_is_read_once(tmp_path, monkeypatch):
    runs = tmp_path / "runs"
    for name in "abc":
        put(runs / f"{name}.json", ikat2024(response([passage(1, 1.0)]), run_name=name))
    seen = []
    monkeypatch.setattr(
        "judge.runs.convert.read_run", lambda path, format: seen.append(path.name) or read_run(path, format)
    )
    convert_runs(runs, "trec-run", tmp_path / "out")
    assert seen == ["a.json", "b.json", "c.json"]
    assert b" a\n" in (tmp_path / "out" / "a.provenance.run").read_bytes()


@pytest.mark.parametrize(
    ("to", "team", "message"),
    [
        ("csv", None, "cannot convert to 'csv'; one of ikat2024, ikat2025, "),
        *((to, "t", f"{to} has no team id: leave --team out") for to in ("ikat2024", "trec-run")),
        *(("ikat2025", team, "the team id") for team in ("", " ", "a\nb", "\udcff", "x" * 201)),
    ],
)
def test_a_target_or_team_that_there_cannot_be_is_refused(tmp_path, to, team, message):
    put(tmp_path / "runs/r.json", ikat2024(response([passage(1, 1.0)])))
    with pytest.raises(UsageError, match=message):
        convert_runs(tmp_path / "runs", to, tmp_path / "out", team=team)


@pytest.mark.parametrize("to", ["ikat2024", "ikat2025"])
@pytest.mark.parametrize(
    ("run", "topics"),
    [
        ("ikat/2023/sample_run.json", "ikat/2023/2023_test_topics.json"),
        ("ikat/2024/sample_run.json", "ikat/2024/2024_test_topics.json"),
        ("ikat/2025/runs/cfda-ikat2025-auto-1.jsonl", "ikat/2025/2025_test_topics.json"),
        ("cast2022/sample_run.json", None),
    ],
)
def test_real_runs_keep_what_is_judged(shared, tmp_path, run, topics, to):
    turns = {turn.turn_id: turn for topic in read_topics(shared / topics) for turn in topic.turns} if topics else None
    before = read_run(shared / run)
    content, _ = convert_run(before, to, turns=turns, team="t" if to == "ikat2025" else None)
    after = read_run(put(tmp_path / "after", content))
    assert after.run.format == to
    assert errors_of(after) == []
    assert judged(after.run) == judged(before.run)
