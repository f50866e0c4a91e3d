"""Words as Lucene 5.1 finds them; what is expected is what Lucene 4.10, of the same grammar, printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.words import LONGEST, STOP_WORDS, english_words, standard_words

LUCENE = [
    # text, StandardAnalyzer, EnglishAnalyzer
    ("Columbia's computer science", "columbia's computer science", "columbia comput scienc"),
    ("the 'Tis don't rock'n'roll Rock’n’Roll", "tis don't rock'n'roll rock’n’roll", "ti don't rock'n'rol rock’n’rol"),
    ("foo's FOO'S bar’s baz＇S boss' s's", "foo's foo's bar’s baz＇s boss s's", "foo foo bar baz boss s"),
    ("3,000.50 3.14 1,2;3 1. .5 4'2 5% -7", "3,000.50 3.14 1,2;3 1 5 4'2 5 7", "3,000.50 3.14 1,2;3 1 5 4'2 5 7"),
    ("3.a a.3 a.b. U.S.A. a..b", "3 3 a.b u.s.a b", "3 3 a.b u.s.a b"),
    ("cohen:max a:b 10:30", "cohen:max a:b 10 30", "cohen:max a:b 10 30"),
    ("wi-fi wi‐fi wi–fi self-evident", "wi fi wi fi wi fi self evident", "wi fi wi fi wi fi self evid"),
    ("foo_bar _x_ x__y ___ _1_2", "foo_bar _x_ x__y _1_2", "foo_bar _x_ x__y _1_2"),
    ("cafés Éclair naïve e\u0301s ﬁne", "cafés éclair naïve e\u0301s ﬁne", "café éclair naïv e\u0301 ﬁne"),
    ("中文字 ひら カタナ カa カ_a", "中 文 字 ひ ら カタナ カ カ_a", "中 文 字 ひ ら カタナ カ カ_a"),
    ("한국어 ภาษาไทย", "한국어 ภาษาไทย", "한국어 ภาษาไทย"),
    # No final sigma, and one letter for the dotted I.
    ("ΣΑΣ İstanbul STRASSE straße", "σασ istanbul strasse straße", "σασ istanbul strass straße"),
    ("a\u00adb a\u200db a\u200bc \ufeffd", "a\u00adb a\u200db c d", "a\u00adb a\u200db c d"),
    ("x\u00b7y x\u00b8y \u00b8 x\u02d7y", "x\u00b7y x y x\u02d7y", "x\u00b7y x y x\u02d7y"),
    ("צה''ל צה\"ל ג'", "צה' ל צה\"ל ג'", "צה' ל צה\"ל ג'"),
    ("mailto:me@example.org http://a.b/c?d=e#f", "mailto:me example.org http a.b c d e f",
     "mailto:m example.org http a.b c d e f"),
    ("😀 👍🏽 x😀y ½ x² ™", "x y x", "x y x"),
    ("no such THE thing ares ases", "thing ares ases", "thing ar as"),
    ("1st b2b r2-d2 C++ C# .NET", "1st b2b r2 d2 c c net", "1st b2b r2 d2 c c net"),
    ("\u00a0nbsp\u202fthin\u3000wide", "nbsp thin wide", "nbsp thin wide"),
    ("", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "standard", "english"), LUCENE)
def test_words_are_those_of_lucene(text: str, standard: str, english: str) -> None:
    assert standard_words(text) == standard.split(" " if standard else None)
    assert english_words(text) == english.split(" " if english else None)


def test_stop_words_go_unless_they_are_kept() -> None:
    assert len(STOP_WORDS) == 33
    assert standard_words("The Who, at it") == ["who"]
    assert standard_words("The Who, at it", stop=False) == ["the", "who", "at", "it"]


def test_a_long_word_is_cut() -> None:
    assert standard_words("x" * (LONGEST + 45) + " y") == ["x" * LONGEST, "x" * 45, "y"]
    # The window ends before the letter after the dot, so the dot joins nothing.
    assert standard_words("x" * 254 + ".yz") == ["x" * 254, "yz"]
    assert standard_words("_" * 100_000) == []
    # Lucene drops low lines until a letter is in the window.
    assert standard_words("_" * 300 + "xy") == ["_" * 254 + "x", "y"]


@given(st.text("aZé\u0301\u00ad1_.,:'\"-’ \n中ひカ한אİΣ😀", max_size=200))
def test_words_come_in_order_and_hold_no_space(text: str) -> None:
    place = 0
    lowered = "".join(letter.lower()[:1] for letter in text)
    for word in standard_words(text, stop=False):
        assert 1 <= len(word) <= LONGEST and " " not in word
        place = lowered.index(word, place) + len(word)
