"""Banks of nuggets: each form read and written, told apart by content, with every problem at its place."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.extra.nuggets import Nugget
from judge.extra.nuggets.forms import FORMS, WRITTEN, bank_bytes, parse_bank, read_bank
from tests.conftest import PROJECT, put, refused

OWN = b"""{"nugget_id":"n1","turn_id":"9-1_3","text":"Ramps are free.","importance":"vital","passages":["p:1"]}

{"nugget_id":"n2","topic_id":"9-1","text":"Does it cost anything?","made_by":"ann"}
"""
NUGGETIZER = (
    b'{"query":"trains?","qid":"9-1_3","nuggets":[{"text":"Ramps are free.","importance":"vital"},'
    b'{"text":"Book a day ahead.","importance":"okay","assignment":"support"}]}\n'
    b'{"query":"all","qid":"9-1","nuggets":[{"text":"Trains run daily.","importance":"okay"}]}\n'
)
CONE = b"""{
    "9-1_3": {
        "[1]": {"text": " Ramps are free. ", "relevance": "4"},
        "[3]": {"text": "Book a day ahead.", "relevance": "1"}
    }
}
"""
RUBRICS = b'"id","rubrik"\n1-1-r1,"What food helps, and what not?"\n1-1-r3,Which habits help?\n'
SEEDS = [each.encode() for each in tomllib.loads((PROJECT / "tests/seeds.toml").read_text(encoding="utf-8"))["nuggets"]]
ARGUE, RAGTIME26, RICH = SEEDS[-3:]
BANKS = {"judge": OWN, "nuggetizer": NUGGETIZER, "argue": ARGUE, "cone-rag": CONE, "rubrics": RUBRICS}


def problems(content: bytes, form: str | None = None) -> list[tuple[str, str]]:
    """Code and place of every problem."""
    told = refused(parse_bank, content, "bank", form)
    assert all(problem.file == "bank" for problem in told)
    return [(problem.code, problem.path) for problem in told]


def test_each_form_is_seen_from_its_content() -> None:
    assert {form: parse_bank(content, "bank").form for form, content in BANKS.items()} == {name: name for name in FORMS}
    # One line is both a whole JSON object and the first of JSON Lines.
    one_line = json.dumps(json.loads(CONE)).encode()
    assert parse_bank(one_line, "bank").nuggets == parse_bank(CONE, "bank").nuggets
    assert parse_bank(b"\xef\xbb\xbf" + OWN, "bank").form == "judge"


def test_a_nugget_of_a_turn_and_one_of_a_topic() -> None:
    assert parse_bank(OWN, "bank").nuggets == (
        Nugget("n1", "9-1", "Ramps are free.", "9-1_3", "vital", passages=("p:1",)),
        Nugget("n2", "9-1", "Does it cost anything?", made_by="ann"),
    )
    assert list(parse_bank(OWN, "bank").by_scope()) == ["9-1_3", "9-1"]


def test_ids_come_from_the_place_where_a_form_has_none() -> None:
    assert [(nugget.nugget_id, nugget.scope, nugget.importance) for nugget in parse_bank(NUGGETIZER, "b").nuggets] == [
        ("9-1_3/1", "9-1_3", "vital"),
        ("9-1_3/2", "9-1_3", "okay"),
        ("9-1/1", "9-1", "okay"),
    ]
    assert [(nugget.nugget_id, nugget.text, nugget.relevance) for nugget in parse_bank(CONE, "b").nuggets] == [
        ("9-1_3/1", "Ramps are free.", 4),
        ("9-1_3/3", "Book a day ahead.", 1),
    ]
    assert [(nugget.nugget_id, nugget.scope) for nugget in parse_bank(RUBRICS, "b").nuggets] == [
        ("1-1-r1", "1-1"),
        ("1-1-r3", "1-1"),
    ]


def test_answers_of_a_question_are_nuggets_with_their_references() -> None:
    shared = {"turn_id": None, "importance": "vital", "question": "How many?", "aggregator": "OR"}
    one, both = parse_bank(ARGUE, "bank"), parse_bank(RAGTIME26, "bank")
    # The answer 90 and the only one to the second question have no reference, so that ARGUE leaves them out.
    assert (one.unreferenced, both.unreferenced) == (2, 0)
    assert one.nuggets == (
        Nugget("300/1.1", "300", "How many? 20", passages=("d1", "d2"), **shared),
        Nugget("300/1.2", "300", "How many? nearly 21", passages=("d3",), **shared),
        Nugget("300/3", "300", "Rates rose.", weight=3.0, passages=("d4",)),
    )
    asked = {"question": "Who and when?", "aggregator": "AND"}
    assert both.nuggets == (
        Nugget("7/1.1", "7", "Who and when? Ann", passages=("d1",), **asked),
        Nugget("7/1.2", "7", "Who and when? May", passages=("d2",), **asked),
        # A bank without any reference keeps what it has.
        Nugget("8/1", "8", "Why?"),
    )
    for bank in (one, both):
        assert parse_bank(bank_bytes(bank.nuggets, "judge"), "bank").nuggets == bank.nuggets
        with pytest.raises(InputError, match="no place for weights and answers"):
            bank_bytes(bank.nuggets, "nuggetizer")


def test_criteria_have_weights_and_axes_and_nuggets_sub_narratives() -> None:
    nuggets = parse_bank(RICH, "bank").nuggets
    assert nuggets == (
        Nugget("6a/1", "6a", "It cites a law.", weight=4.0, aspect="Explicit Criteria"),
        Nugget("6a/2", "6a", "It praises itself.", weight=-3.0, aspect="Communication Quality"),
        Nugget("58/1", "58", "Uranium is finite.", importance="okay", aspect='"How safe?"'),
    )
    assert [each.fault for each in nuggets] == [False, True, False]
    assert parse_bank(bank_bytes(nuggets, "judge"), "bank").nuggets == nuggets
    assert parse_bank(bank_bytes(nuggets[2:], "nuggetizer"), "bank").nuggets == nuggets[2:]


def test_a_folder_with_a_file_for_each_topic_is_one_bank(tmp_path: Path) -> None:
    for name, content in (("300.v3.json", ARGUE), ("7.jsonl", RAGTIME26)):
        (tmp_path / name).write_bytes(content)
    assert (read_bank(tmp_path).unreferenced, list(read_bank(tmp_path).by_scope())) == (2, ["300", "7", "8"])
    for name, content in (("301.v3.json", ARGUE), ("9.json", b'{"query_id":"9 9","nugget_bank":[]}')):
        (tmp_path / name).write_bytes(content)
    told = [(Path(each.file).name, each.code, each.path) for each in refused(read_bank, tmp_path)]
    at = "line 1: $.query_id"
    assert told == [("301.v3.json", "duplicate_row", at), ("9.json", "bad_id", at)]


@pytest.mark.parametrize(("name", "topics", "nuggets", "faults", "aspects"), [
    ("rag25-dev-nuggets.jsonl", 22, 1255, 0, 218), ("research-rubrics-dev-rubrics.jsonl", 30, 755, 97, 7),
])  # fmt: skip
def test_the_banks_of_rag_2026(name: str, topics: int, nuggets: int, faults: int, aspects: int) -> None:
    path = PROJECT.parent / "shared/data/rag26" / name
    if not path.exists():
        pytest.skip(f"no ../shared/data/rag26/{name}")
    bank = read_bank(path)
    assert (len(bank.by_scope()), len(bank.nuggets), sum(each.fault for each in bank.nuggets)) == (
        topics,
        nuggets,
        faults,
    )
    assert len({each.aspect for each in bank.nuggets}) == aspects


def test_written_banks_read_back() -> None:
    for form in WRITTEN:
        nuggets = parse_bank(BANKS[form], "bank").nuggets
        if form != "cone-rag":
            assert parse_bank(bank_bytes(nuggets, form), "bank").nuggets == nuggets
    # CONE-RAG numbers the nuggets of a turn, so a gap closes.
    again = parse_bank(bank_bytes(parse_bank(CONE, "bank").nuggets, "cone-rag"), "bank").nuggets
    assert [(nugget.nugget_id, nugget.relevance) for nugget in again] == [("9-1_3/1", 4), ("9-1_3/2", 1)]
    assert bank_bytes(parse_bank(OWN, "bank").nuggets, "judge") == bank_bytes(parse_bank(OWN, "bank").nuggets, "judge")


def test_a_form_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(InputError, match="of turns: '1-1-r1', '1-1-r3' are of whole topics"):
        bank_bytes(parse_bank(RUBRICS, "bank").nuggets, "cone-rag")
    with pytest.raises(InputError, match="'1-1-r1', '1-1-r3' have none"):
        bank_bytes(parse_bank(RUBRICS, "bank").nuggets, "nuggetizer")
    with pytest.raises(UsageError, match="only read"):
        bank_bytes([], "rubrics")
    with pytest.raises(UsageError, match="did you mean rubrics"):
        parse_bank(RUBRICS, "bank", "rubric")


BAD_LINES = (
    b'{"nugget_id":"a","text":"x"}\n'
    b'{"nugget_id":"b","turn_id":"9-1","text":"x"}\n'
    b'{"nugget_id":"c","topic_id":"9-1","text":" "}\n'
    b'{"nugget_id":"c","topic_id":"9-1","text":"x"}\n'
    b'{"nugget_id":"d","turn_id":"9-1_3","topic_id":"9-2","text":"x"}\n'
    b'{"nugget_id":"e f","topic_id":"9-1","text":"x"}\n'
    b'{"nugget_id":"g","topic_id":"9-1","text":"x","importance":"great"}\n'
    b'{"nugget_id":"h","topic_id":"9-1","text":"x","colour":"red"}\n'
    b"not json\n"
)


def test_every_problem_of_our_form_is_listed_with_its_line() -> None:
    assert problems(BAD_LINES) == [
        ("missing_field", "line 1: $"), ("bad_id", "line 2: $.turn_id"), ("empty_text", "line 3: $.text"),
        ("duplicate_nugget", "line 4: $.nugget_id"), ("bad_id", "line 5: $.topic_id"),
        ("bad_id", "line 6: $.nugget_id"), ("bad_nugget", "line 7: $.importance"), ("bad_nugget", "line 8: $"),
        ("bad_nugget", "line 9: $"),
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "form", "found"), [
    (b'{"0_2": {"1": {"text": "x"}}}', "cone-rag", [("bad_id", '$["0_2"]["1"]')]),
    (b'{"0": {"[1]": {"text": "x"}}}', "cone-rag", [("bad_id", '$["0"]')]),
    (b'{"0_2": {"[1]": {"text": 3}}}', "cone-rag", [("wrong_type", '$["0_2"]["[1]"].text')]),
    (b'{"0_2": {"[1]": {"text": "x", "relevance": "high"}}}', "cone-rag",
     [("wrong_type", '$["0_2"]["[1]"].relevance')]),
    (b'{"0_2": {"[1]": {"text": "x"}, "[1]": {"text": "y"}}}', "cone-rag", [("repeated_key", '$["0_2"]["[1]"]')]),
    (b'{"0_2": {"[1]": "x"}}', "cone-rag", [("wrong_type", '$["0_2"]["[1]"]')]),
    (b"[1]", "cone-rag", [("wrong_type", "$")]),
    (b"{", "cone-rag", [("not_json", "line 1")]),
    (b"{}", None, [("empty_file", "")]),
    (b'{"qid":"9 1","nuggets":[{"text":"x"}]}', None, [("bad_id", "line 1: $.qid")]),
    (b'{"qid":"9-1","nuggets":[{"text":"x","importance":"must"}]}', None,
     [("bad_nugget", "line 1: $.nuggets[0].importance")]),
    (b'{"qid":"9-1","nuggets":[{"text":"x"}]}\n' * 2, None, [("duplicate_row", "line 2: $.qid")]),
    (b'{"qid":"9-1","nuggets":[]}', None, [("empty_file", "")]),
    (b'{"qid":"9","rubrics":[{"criterion":"a","weight":"5"},{"weight":1},{"criterion":" "},{"criterion":"b",'
     b'"weight":1e7}]}', None,
     [("bad_nugget", "line 1: $.rubrics[0].weight"), ("wrong_type", "line 1: $.rubrics[1].criterion"),
      ("empty_text", "line 1: $.rubrics[2].criterion"), ("bad_nugget", "line 1: $.rubrics[3].weight")]),
    (b'{"query_id":"9 1","nugget_bank":{"Q":{"question":"Q","answers":{"a":{"answer":1}},"aggregator_type":"NOT"},'
     b'"R":{"question":"","importance":"big","sub_nuggets":[{}],"answers":[{"answer":"x","references":[{"id":"d"}]}]}}}',
     None, [("bad_id", "line 1: $.query_id"), ("bad_nugget", "line 1: $.nugget_bank.Q.aggregator_type"),
            ("wrong_type", "line 1: $.nugget_bank.Q.answers.a.answer"),
            ("empty_text", "line 1: $.nugget_bank.R.question"),
            ("bad_nugget", "line 1: $.nugget_bank.R.importance"),
            ("bad_nugget", "line 1: $.nugget_bank.R.sub_nuggets"),
            ("bad_nugget", "line 1: $.nugget_bank.R.answers[0].references[0]")]),
    (b'{"nugget_bank":[{"question":"Q"},{"question":"Q"}],"metadata":{"topic_id":"9"}}', None,
     [("duplicate_nugget", "line 1: $.nugget_bank[1]")]),
    (b'{"nugget_bank":[' + b"[" * 5000, None, [("bad_nugget", "line 1: $")]),
    (b'{"nugget_bank":7,"query_id":"9"}', None, [("bad_nugget", "line 1: $.nugget_bank")]),
    (b'{"nugget_id":"n","topic_id":"9","text":"x","question":"Q"}', None, [("missing_field", "line 1: $")]),
    (b"".join(b'{"nugget_id":"%d","topic_id":"9","text":"x","question":"Q","aggregator":"%s","weight":%d}\n' % row
              for row in ((1, b"OR", 2), (2, b"AND", 2), (3, b"OR", 2), (4, b"OR", -2))), None,
     [("bad_nugget", "line 2: $"), ("bad_nugget", "line 4: $")]),
    (b'{"qid":"9","nuggets":[{"text":"x","mapped_sub_narrative":"a\\u0000"},{"text":"x","axis":" "}]}', None,
     [("unusable_text", "line 1: $.nuggets[0].mapped_sub_narrative"), ("empty_text", "line 1: $.nuggets[1].axis")]),
    (b"id,rubrik\n1-1,x\n1-1-r1,\n1-1-r2,a,b\n", None,
     [("bad_id", "line 2: id"), ("empty_text", "line 3: rubrik"), ("wrong_columns", "line 4")]),
    (b'id,rubrik\n1-1-r1,"x\n', None, [("not_a_table", "line 2")]),
    (b"a,b\n1-1-r1,x\n", "rubrics", [("missing_column", "line 1")]),
])  # fmt: skip
def test_every_problem_of_other_forms_is_listed_at_its_place(content, form, found) -> None:
    assert problems(content, form) == found


def test_a_file_of_no_form_is_refused_with_the_forms() -> None:
    with pytest.raises(InputError, match="not a bank of nuggets: expected nuggetizer's"):
        parse_bank(b"hello", "bank")


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: any(map(str.isalnum, text)) and text == text.strip()
)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["vital", "okay"]), st.sampled_from(["9-1_3", "9-1_4"]))))
def test_any_text_survives_every_written_form(rows: list[tuple[str, str, str]]) -> None:
    nuggets = [
        Nugget(f"n{place}", "9-1", text, turn_id, importance)  # type: ignore[arg-type]
        for place, (text, importance, turn_id) in enumerate(rows)
    ]
    for form in WRITTEN if nuggets else ():
        read = parse_bank(bank_bytes(nuggets, form), "bank", form).nuggets
        assert sorted((nugget.text, nugget.scope) for nugget in read) == sorted(
            (nugget.text, nugget.scope) for nugget in nuggets
        )


def test_the_rubric_questions_of_2025() -> None:
    path = PROJECT.parent / "shared/data/ikat-interactive/rubrics.csv"
    if not path.exists():
        pytest.skip("no ../shared/data/ikat-interactive/rubrics.csv")
    bank = read_bank(path)
    assert (bank.form, len(bank.nuggets)) == ("rubrics", 92)
    assert all(nugget.turn_id is None and nugget.text.isprintable() for nugget in bank.nuggets)


def test_a_gzipped_bank_and_one_that_is_missing(tmp_path: Path) -> None:
    import gzip

    assert len(read_bank(put(tmp_path / "bank.jsonl.gz", gzip.compress(OWN))).nuggets) == 2
    with pytest.raises(InputError, match="No such file"):
        read_bank(tmp_path / "none")
