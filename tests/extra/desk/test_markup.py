"""Bold, lists and line breaks of responses, whose text stays a text whatever it holds."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.extra.desk.markup import bold_markup, light_markup


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("One.\nTwo.", "<p>One.\nTwo.</p>"),
        ("One.\r\n\r\n\nTwo.", "<p>One.</p><p>Two.</p>"),
        ("**Go**: a **b c** d", "<p><strong>Go</strong>: a <strong>b c</strong> d</p>"),
        # A pair without another, with a space inside, and with nothing between.
        ("a ** b **c", "<p>a ** b **c</p>"),
        ("2 ** 3 ** 4", "<p>2 ** 3 ** 4</p>"),
        ("****", "<p>****</p>"),
        ("**a\nb**", "<p>**a\nb**</p>"),
        ("Two:\n- one\n* **two**\nEnd", "<p>Two:</p><ul><li>one</li><li><strong>two</strong></li></ul><p>End</p>"),
        ("3. a\n4) b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("1. a\n   - b\n2. c", '<ol start="1"><li>a</li></ol><ul><li>b</li></ul><ol start="2"><li>c</li></ol>'),
        ("-5 degrees\n2026. It", "<p>-5 degrees\n2026. It</p>"),
        ("# Head\n[a](http://x)\n![a](b)\n`c` _d_", "<p># Head\n[a](http://x)\n![a](b)\n`c` _d_</p>"),
    ],
)
def test_bold_lists_and_line_breaks_are_all_that_is_shown(text: str, html: str) -> None:
    assert light_markup(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "**<img src=x onerror=alert(1)>**",
        "- <b onclick='x'>y</b>",
        '1. " onmouseover="alert(1)',
        "</p></div></section><form>",
        "**</strong><svg/onload=alert(1)>**",
        "&lt;b&gt; &amp;",
    ],
)
def test_a_hostile_text_stays_a_text(text: str) -> None:
    for made in (light_markup(text), bold_markup(text)):
        bare = re.sub(r'</?(?:p|ul|li|strong)>|<ol start="[0-9]+">|</ol>', "", made)
        assert not set("<>\"'") & set(bare)
        assert "&lt;" in made or "&#34;" in made or "&amp;" in made


@given(st.text(alphabet=st.sampled_from('*-1. )\n<>&"a b'), max_size=80))
def test_no_tag_is_opened_that_is_not_closed_and_no_other_one(text: str) -> None:
    made = str(light_markup(text))
    tags = re.findall(r"<(/?)([a-z]+)(?: start=\"[0-9]+\")?>", made)
    assert made.count("<") == len(tags)
    opened: list[str] = []
    for closing, name in tags:
        assert name in ("p", "ul", "ol", "li", "strong")
        if closing:
            assert opened.pop() == name
        else:
            opened.append(name)
    assert opened == []


def test_a_long_text_of_marks_takes_no_long_time() -> None:
    begun = time.monotonic()
    light_markup("**a" * 200_000)
    light_markup("- " * 200_000)
    assert time.monotonic() - begun < 5
