"""Pages: what is inserted is escaped, and a policy lets only the page's own texts take effect."""

import hashlib
import re
from base64 import b64encode
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from playwright.sync_api import Page

from judge.io.page import chip, look, policy, render_page
from tests.browsing import NARROW, faults, overflow
from tests.conftest import put

HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
SCRIPT = "document.title = 'ran';"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.html.j2").write_text(
        """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>a page</title>
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width"><style>{{ look|safe }}</style></head>
<body><main><h1>A page</h1><p class="stranger">{{ text }}</p><p>{{ note }}</p></main>
<script>{{ script|safe }}</script></body></html>""",
        encoding="utf-8",
    )
    return tmp_path


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: str, other: str) -> float:
    lighter, darker = sorted((luminance(color), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def written(folder: Path, text: str) -> str:
    allowed = policy([SCRIPT], [look()])
    return render_page(folder, "page.html.j2", policy=allowed, look=look(), text=text, note="fine", script=SCRIPT)


def test_what_is_inserted_is_escaped_and_never_a_template(folder: Path) -> None:
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;{{ 7 * 7 }}" in written(folder, HOSTILE)


def test_a_value_that_is_not_given_is_an_error(folder: Path) -> None:
    with pytest.raises(UndefinedError, match="'policy' is undefined"):
        render_page(folder, "page.html.j2")


def test_the_policy_names_each_text_by_its_digest() -> None:
    digest = b64encode(hashlib.sha256(b"let a = 'b';").digest()).decode()
    assert policy(["let a = 'b';"]) == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'none'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_text_have_contrast_in_both_themes(theme: str) -> None:
    """WCAG's contrast of each color for text on each ground that it stands on: 4.5 or more."""
    pairs = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", look()))
    color = {name: value.split(", ")[theme == "dark"] for name, value in pairs.items()}

    grounds = [
        (name, ground) for name in ("ink", "soft", "accent", "good", "warn", "bad") for ground in ("paper", "wash")
    ]
    grounds += [(name, f"{name}-wash") for name in ("accent", "good", "warn", "bad")] + [("on-accent", "accent")]
    for name, ground in grounds:
        assert contrast(color[name], color[ground]) >= 4.5, f"{name} on {ground}"


@pytest.mark.parametrize(("theme", "order"), [("light", -1), ("dark", 1)])
def test_chips_of_grades_are_readable_and_in_order_of_brightness(theme: str, order: int) -> None:
    rules = re.findall(r"\.level-(\d) \{ --level: light-dark\((.+?)\); --on-level: light-dark\((.+?)\); \}", look())
    place = int(theme == "dark")
    grounds = [luminance(ground.split(", ")[place]) for _, ground, _ in rules]
    assert [level for level, *_ in rules] == list("012345")
    assert grounds == sorted(grounds)[::order]
    assert min(contrast(ground.split(", ")[place], ink.split(", ")[place]) for _, ground, ink in rules) >= 4.5


@pytest.mark.parametrize(("grade", "level"), [(-1, 0), (0, 0), (3, 3), (5, 5), (100, 5)])
def test_a_chip_shows_its_grade_on_the_color_of_its_level(grade: int, level: int) -> None:
    assert chip(grade) == f'<span class="chip level-{level}">{grade}</span>'


@pytest.mark.slow
def test_a_page_in_a_browser_runs_its_own_script_and_no_other(folder: Path, page: Page) -> None:
    page.goto(put(folder / "page.html", written(folder, HOSTILE)).as_uri())
    assert page.title() == "ran"
    assert page.locator("img").count() == 0
    assert faults(page) == []
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    assert overflow(page) == 0
