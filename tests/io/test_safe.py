"""Hostile texts: one way to print, show, store and digest them."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.text import SHOWN, digest, escape, escape_cell, printable, printable_id, shown, storable, unescape

ANY = st.text(st.characters(exclude_categories=[]), max_size=20) | st.text(
    "\\\\xuUnrt019af\n\t\x1b\u202e\ud800\U000e0001"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 日本 😀", "plain é 日本 😀"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[2J\x00\x7f\x85", r"\x1b[2J\x00\x7f\x85"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("bidi\u202eoverride\u2066", r"bidi\u202eoverride\u2066"),
        ("line\u2028sep\u00a0space", r"line\u2028sep\xa0space"),
        ("half \ud83d", r"half \ud83d"),
        ("tag \U000e0001", r"tag \U000e0001"),
        (r"C:\new", r"C:\new"),
    ],
)
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(ANY)
def test_printable_text_is_printable_and_stays_as_it_is(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@given(ANY)
def test_what_is_escaped_comes_back(text: str) -> None:
    assert escape(text).isprintable()
    assert unescape(escape(text)) == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('=HYPERLINK("x")', '\\=HYPERLINK("x")'), ("+1+cmd|' /C calc'!A0", "\\+1+cmd|' /C calc'!A0"),
        ("-2+3", "\\-2+3"), ("@SUM(1)", "\\@SUM(1)"), ('"=1+1"', '\\"=1+1"'), ("\t=1+1", "\\t=1+1"), ("-0.25", "-0.25"),
        ("+3", "+3"), ("-", "-"), ("run-1=a", "run-1=a"),
    ],
)  # fmt: skip
def test_no_cell_is_a_formula(text: str, cell: str) -> None:
    assert escape_cell(text) == cell


@given(ANY | st.text('=+-@"1\\a\t', max_size=6))
def test_what_is_escaped_for_a_cell_comes_back(text: str) -> None:
    assert unescape(escape_cell(text)) == text


def test_what_is_no_escape_stays_when_unescaped() -> None:
    assert unescape(r"\q \x1 \uD800 \Uffffffff \u0041") == r"\q \x1 \uD800 \Uffffffff A"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"), (True, "true"), (1.5, "1.5"), (10**400, "an integer of more than 20 digits"),
        ({"a": 1}, "an object with 1 entries"), ([], "a list with 0 entries"), ("it's", '"it\'s"'),
        ("a\x1b\u202e", r"'a\x1b\u202e'"), ("x" * SHOWN, f"'{'x' * SHOWN}'"), ("x" * 10**6, f"'{'x' * SHOWN}'…"),
    ],
)  # fmt: skip
def test_shown(value: object, expected: str) -> None:
    assert shown(value) == expected
    # Python refuses to print it.
    assert shown(10**5000) == shown(10**400)


@given(ANY)
def test_an_id_in_a_message_is_printable_and_short(text: str) -> None:
    assert printable_id(text).isprintable()
    assert len(printable_id(text * 100)) <= 12 * SHOWN


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("é\n😀", True), ("a\0", False), ("é\0", False), ("a\ud800", False)]
)
def test_storable(text: str, expected: bool) -> None:
    assert storable(text) is expected


def test_digest_is_that_of_the_utf8_bytes_and_never_fails() -> None:
    assert digest("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()
    assert digest("\ud800") == hashlib.sha256(b"\xed\xa0\x80").hexdigest()
