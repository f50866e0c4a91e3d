import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.io.words import _STOP, split_sentences

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
    "Go to: 1. Oslo is near. 2. Rome is far. It was 5. Then I left.": (
        "Go to: 1. Oslo is near.",
        "2. Rome is far.",
        "It was 5.",
        "Then I left.",
    ),
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
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    assert split_sentences(text) == SENTENCES[text]


@given(st.text(alphabet=st.one_of(st.sampled_from(".!?…\"')] \n\t-*1aAI。Dr"), st.characters())))
def test_sentences_hold_every_character_that_is_not_white_space(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)
    assert bool(sentences) == bool(text.strip())


@pytest.mark.slow
@pytest.mark.parametrize("unit", [".", ". ", "a.", '"', "A. ", "\n", "(", "1. ", "Dr. ", "x" * 10])
def test_sentences_of_a_long_monotonous_text(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert "".join(split_sentences(text)).replace(" ", "") == "".join(text.split())


# What a stop is, said plainly: a run of Western marks before white space, or a run of CJK ones anywhere.
PLAIN_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？]+[”’）」』]*")


@given(st.text(st.sampled_from(".!?…。！？\"'”’)]*_）」』 \nab"), max_size=20), st.integers(0, 3))
def test_a_stop_is_found_by_its_first_sign_as_by_its_plain_form(line: str, start: int) -> None:
    stops, plain = (pattern.finditer(line, start) for pattern in (_STOP, PLAIN_STOP))
    assert [stop.span() for stop in stops] == [stop.span() for stop in plain]
