import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.prompt import defuse


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 < 3 > 1", "2 ‹ 3 > 1"),
        ("[INST] x [/INST]", "⁅INST] x ⁅/INST]"),
        ("[ /inst ] [SYSTEM_PROMPT]", "⁅ /inst ] ⁅SYSTEM_PROMPT]"),
        ("see [1] and [sic]", "see [1] and [sic]"),
        ("a\x00b\ud800c\x1bd", "a\ufffdb\ufffdc\ufffdd"),
        ("a\tb\r\nc", "a\tb\r\nc"),
        ("Ünïcödé 日本 👩‍👩‍👧", "Ünïcödé 日本 👩‍👩‍👧"),
    ],
)
def test_defuse_changes_only_what_could_do_harm(text: str, shown: str) -> None:
    assert defuse(text) == shown


@given(st.text())
def test_defuse_keeps_the_length_and_is_done_after_once(text: str) -> None:
    assert len(defuse(text)) == len(text)
    assert defuse(defuse(text)) == defuse(text)


@given(st.text(st.characters(), max_size=40), st.integers(0, 0x2FF) | st.integers(0xD700, 0xE000))
def test_no_character_that_cannot_be_seen_is_passed_over(text: str, code: int) -> None:
    """The quick look for such characters finds all that the expression replaces."""
    whole = f"{text}{chr(code)}{text}"
    plain = whole.replace("[", "").replace("<", "").replace("＜", "").replace("﹤", "")
    hidden = set(map(chr, (*range(9), 11, 12, *range(14, 32), 127, *range(0xD800, 0xE000))))
    assert defuse(plain) == "".join("\ufffd" if character in hidden else character for character in plain)
