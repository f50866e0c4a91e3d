import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.io import words

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@given(st.text(st.sampled_from("aBZ09_ '’\n-.éßİŉſﬁΣ\u0345\u0301") | st.characters(), max_size=40))
@example("rock'n'roll 'tis dogs' o''clock ''")
@example("x\u0345y Straße İstanbul")
def test_words_are_runs_of_letters_and_digits_with_at_most_one_apostrophe_inside(text: str) -> None:
    assert words.words_of(text) == [word.casefold() for word in WORD.findall(unicodedata.normalize("NFKC", text))]


def test_content_words_are_folded_and_stop_words_gone() -> None:
    assert words.content_words("The Ferry's LAST trip was in 1998, wasn't it?") == [
        "ferry's",
        "last",
        "trip",
        "1998",
        "wasn't",
    ]


@pytest.mark.parametrize(
    ("response", "passages", "expected"),
    [
        ("ferry noon pier", ["ferry at noon", "the pier"], 3 / 3),
        ("ferry noon tram", ["ferry at noon"], 2 / 3),
        ("ferry ferry tram", ["ferry"], 2 / 3),
        ("the of and", ["the of and"], 0.0),
        ("", ["ferry"], 0.0),
        ("ferry", [], 0.0),
    ],
)
def test_containment(response: str, passages: list[str], expected: float) -> None:
    assert words.containment(response, passages) == pytest.approx(expected)


SENTENCES = {
    "": (),
    " \n\t ": (),
    "One.": ("One.",),
    "no stop": ("no stop",),
    "One. Two! Three? Four… Five": ("One.", "Two!", "Three?", "Four…", "Five"),
    "What?! Yes... Well": ("What?!", "Yes...", "Well"),
    "Dr. Lee met Mr. J. R. Smith. He left.": ("Dr. Lee met Mr. J. R. Smith.", "He left."),
    "Use fruit, e.g. Apples, i.e. Pomes. Eat.": ("Use fruit, e.g. Apples, i.e. Pomes.", "Eat."),
    "The U.S. Senate sat. In the U.S. The law": ("The U.S. Senate sat.", "In the U.S.", "The law"),
    "At 5 p.m. We met. At 5 p.m. on Friday.": ("At 5 p.m.", "We met.", "At 5 p.m. on Friday."),
    "Cats, dogs, etc. They play.": ("Cats, dogs, etc.", "They play."),
    "It costs $3.50. Version 2.0.1 is out.": ("It costs $3.50.", "Version 2.0.1 is out."),
    "See no. 5 and Fig. 2 on p. 3.": ("See no. 5 and Fig. 2 on p. 3.",),
    "Visit example.org today. Go!": ("Visit example.org today.", "Go!"),
    'He said "No." Then he left.': ('He said "No."', "Then he left."),
    "It works (mostly.) And well.": ("It works (mostly.)", "And well."),
    "**Bold.** Next.": ("**Bold.**", "Next."),
    "Vitamin C. It helps.": ("Vitamin C.", "It helps."),
    "1. First. More\n2. Second\n- Third. Last": ("1. First.", "More", "2. Second", "- Third.", "Last"),
    "Go to: 1. Oslo is near. 2. Rome is far. It was 5. Then I left.": ("Go to: 1. Oslo is near.", "2. Rome is far.",
        "It was 5.", "Then I left."),
    "Options:\n* tea\n* coffee": ("Options:", "* tea", "* coffee"),
    "# Title\nText": ("# Title", "Text"),
    "A line that was\nwrapped here.\nNext": ("A line that was wrapped here.", "Next"),
    "A heading\n\nlower case": ("A heading", "lower case"),
    "One.\n---\nTwo.": ("One. ---", "Two."),
    "*** One.": ("*** One.",),
    "...": ("...",),
    "one. two": ("one. two",),
    "これは本です。はい。": ("これは本です。", "はい。"),
    "a\u2028b\x85c": ("a b c",),
}  # fmt: skip


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert words.split_sentences(text) == SENTENCES[text]


@given(st.text(alphabet=st.one_of(st.sampled_from(".!?…\"')] \n\t-*1aAI。Dr"), st.characters())))
def test_sentences_hold_every_character_that_is_not_white_space(text: str) -> None:
    sentences = words.split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)
    assert bool(sentences) == bool(text.strip())


@pytest.mark.slow
@pytest.mark.parametrize("unit", [".", ". ", "a.", '"', "A. ", "\n", "(", "1. ", "Dr. ", "x" * 10])
def test_sentences_of_a_long_monotonous_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert "".join(words.split_sentences(text)).replace(" ", "") == "".join(text.split())


# What a stop is, said plainly: a run of Western marks before white space, or a run of CJK ones anywhere.
PLAIN_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？]+[”’）」』]*")


@given(st.text(st.sampled_from(".!?…。！？\"'”’)]*_）」』 \nab"), max_size=20), st.integers(0, 3))
def test_a_stop_is_found_by_its_first_sign_as_by_its_plain_form(line: str, start: int) -> None:
    stops, plain = (pattern.finditer(line, start) for pattern in (words._STOP, PLAIN_STOP))
    assert [stop.span() for stop in stops] == [stop.span() for stop in plain]


# Words as Lucene 5.1 finds them; what is expected is what Lucene 4.10, of the same grammar, printed.
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
    assert words.standard_words(text) == standard.split(" " if standard else None)
    assert words.english_words(text) == english.split(" " if english else None)


def test_stop_words_go_unless_they_are_kept() -> None:
    assert len(words.STOP_WORDS) == 33
    assert words.standard_words("The Who, at it") == ["who"]
    assert words.standard_words("The Who, at it", stop=False) == ["the", "who", "at", "it"]


def test_a_long_word_is_cut() -> None:
    assert words.standard_words("x" * (words.LONGEST + 45) + " y") == ["x" * words.LONGEST, "x" * 45, "y"]
    # The window ends before the letter after the dot, so the dot joins nothing.
    assert words.standard_words("x" * 254 + ".yz") == ["x" * 254, "yz"]
    assert words.standard_words("_" * 100_000) == []
    # Lucene drops low lines until a letter is in the window.
    assert words.standard_words("_" * 300 + "xy") == ["_" * 254 + "x", "y"]


@given(st.text("aZé\u0301\u00ad1_.,:'\"-’ \n中ひカ한אİΣ😀", max_size=200))
def test_words_come_in_order_and_hold_no_space(text: str) -> None:
    place = 0
    lowered = "".join(letter.lower()[:1] for letter in text)
    for word in words.standard_words(text, stop=False):
        assert 1 <= len(word) <= words.LONGEST and " " not in word
        place = lowered.index(word, place) + len(word)
