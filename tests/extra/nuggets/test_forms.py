"""Banks of nuggets: each form read and written, told apart by content, with every problem at its place."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import InputError, UsageError
from judge.extra.nuggets.forms import FORMS, WRITTEN, bank_bytes, parse_bank, read_bank
from judge.extra.nuggets.records import Nugget
from tests.conftest import PROJECT, refused

OWN = b"""{"nugget_id":"n1","turn_id":"9-1_3","text":"Ramps are free.","importance":"vital","passages":["p:1"]}

{"nugget_id":"n2","topic_id":"9-1","text":"Does it cost anything?","made_by":"ann","edited_by":"bob"}
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
BANKS = {"judge": OWN, "nuggetizer": NUGGETIZER, "cone-rag": CONE, "rubrics": RUBRICS}


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
        Nugget("n2", "9-1", "Does it cost anything?", made_by="ann", edited_by="bob"),
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
        ("missing_field", "line 1: $"),
        ("bad_id", "line 2: $.turn_id"),
        ("empty_text", "line 3: $.text"),
        ("duplicate_nugget", "line 4: $.nugget_id"),
        ("bad_id", "line 5: $.topic_id"),
        ("bad_id", "line 6: $.nugget_id"),
        ("bad_nugget", "line 7: $.importance"),
        ("bad_nugget", "line 8: $"),
        ("bad_nugget", "line 9: $"),
    ]


@pytest.mark.parametrize(
    ("content", "form", "found"),
    [
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
        (b"id,rubrik\n1-1,x\n1-1-r1,\n1-1-r2,a,b\n", None,
         [("bad_id", "line 2: id"), ("empty_text", "line 3: rubrik"), ("wrong_columns", "line 4")]),
        (b'id,rubrik\n1-1-r1,"x\n', None, [("not_a_table", "line 2")]),
        (b"a,b\n1-1-r1,x\n", "rubrics", [("missing_column", "line 1")]),
    ],
)  # fmt: skip
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


@given(st.sampled_from(sorted(BANKS)), st.data())
def test_a_damaged_bank_is_read_or_refused_but_never_crashes(form: str, data: st.DataObject) -> None:
    content = BANKS[form]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    damaged = content[:start] + data.draw(st.binary(max_size=8)) + content[end:]
    for given_form in (None, form):
        try:
            assert parse_bank(damaged, "bank", given_form).nuggets
        except InputError as error:
            assert "\x1b" not in str(error)


def test_the_rubric_questions_of_2025() -> None:
    path = PROJECT.parent / "shared/data/ikat-interactive/rubrics.csv"
    if not path.exists():
        pytest.skip("no ../shared/data/ikat-interactive/rubrics.csv")
    bank = read_bank(path)
    assert (bank.form, len(bank.nuggets)) == ("rubrics", 92)
    assert all(nugget.turn_id is None and nugget.text.isprintable() for nugget in bank.nuggets)


def test_a_gzipped_bank_and_one_that_is_missing(tmp_path: Path) -> None:
    import gzip

    packed = tmp_path / "bank.jsonl.gz"
    packed.write_bytes(gzip.compress(OWN))
    assert len(read_bank(packed).nuggets) == 2
    with pytest.raises(InputError, match="No such file"):
        read_bank(tmp_path / "none")
