"""The site of the documents: all that the program has is in it, its links lead somewhere, and it needs no network."""

import argparse
import functools
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import judge
from docs.site.build import amended, build, site_pages
from docs.site.commands import actions, page_of
from docs.site.docstrings import markdown
from docs.site.links import problems
from docs.site.pages import MOST_WORDS, led, summary, words
from docs.site.rows import reasons
from docs.site.statistics import modules, public_functions
from judge.ask.criteria import bundled_criteria
from judge.cli import COMMANDS
from judge.extra.bench import DATASETS
from judge.records import FailureReason
from judge.report.sections import EXCLUDED
from judge.runs.check import CODES
from judge.runs.formats import FORMATS
from judge.stats.agreement import STATISTICS
from judge.stats.discrimination import EXPECTED, PROBABILITY
from judge.stats.ranking import SYSTEM, TIED
from tests.browsing import NARROW, faults, overflow

# The reader of Markdown uses names of Sphinx that a later Sphinx drops.
pytestmark = pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API")

site = functools.cache(site_pages)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_page_with_every_option(command: str) -> None:
    page = site()[page_of(command)]
    assert page_of(command).rpartition("/")[2] in site()["reference/commands/index.md"]
    for typed, parser in actions(command):
        assert f"# judge {typed}\n" in page
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), action.dest
            for name in action.option_strings:
                assert name in ("-h", "--help") or f"`{name}" in page, name


@pytest.mark.slow
def test_every_row_of_the_program_has_an_entry() -> None:
    wanted = {
        "python": [f"# `{name}`\n" for name in judge.__all__ if not name.startswith("_")],
        "codes": [f"| `{name}` |" for name in (*CODES, *EXCLUDED, *FailureReason.__args__)],  # type: ignore[attr-defined]
        "formats": [f"# `{name}`\n" for name in FORMATS],
        "datasets": [f"| `{name}` |" for name in DATASETS],
        "prompts": [f"# `{criterion.prompt_id}`\n" for criterion in bundled_criteria()],
        "statistics.": [f"# `{name}`\n" for name in (*STATISTICS, *EXPECTED, *PROBABILITY, *SYSTEM, *TIED)],
        "statistics-functions": [f"# `{name}`\n" for module in modules() for name, _ in public_functions(module)],
    }
    for name, lines in wanted.items():
        text = "".join(text for page, text in site().items() if page.startswith(f"reference/{name}"))
        assert [line for line in lines if line not in text] == []


@pytest.mark.slow
def test_no_page_is_longer_than_a_reader_bears() -> None:
    assert [(name, words(text)) for name, text in site().items() if words(text) > MOST_WORDS] == []


def test_every_reason_has_a_meaning() -> None:
    assert set(reasons()) == set(FailureReason.__args__)  # type: ignore[attr-defined]
    assert reasons()["budget"] == "`--max-cost` is spent."


@pytest.mark.slow
def test_every_page_is_in_one_list_of_contents() -> None:
    listed: list[str] = []
    for name, text in site().items():
        folder = Path(name).parent
        for part in text.split("```{toctree}\n")[1:]:
            lines = part.partition("```")[0].splitlines()
            listed += [(folder / line).as_posix() for line in lines if line and not line.startswith(":")]
    assert sorted(listed) == sorted(site().keys() - {"index.md"})


HOMES = {"docs/run.md": "run.md", "docs/cards/README.md": "cards/index.md", "gold/README.md": "project/gold.md"}


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("[run](run.md#rank)", "[run](../run.md#rank)"),
        ("[cards](cards/README.md)", "[cards](index.md)"),
        ("[gold](../gold/README.md)", "[gold](../project/gold.md)"),
        ("[a module](../judge/records.py)", "a module"),
        ("![a picture](pictures/report.png)", "![a picture](../pictures/report.png)"),
        ("[nowhere](absent.md)", "[nowhere](absent.md)"),
        ("[here](#rank) and https://example.org/a", "[here](#rank) and https://example.org/a"),
        ("```sh\n[run](run.md)\n```", "```sh\n[run](run.md)\n```"),
    ],
)
def test_links_lead_to_the_place_in_the_site(text: str, turned: str) -> None:
    # The page stands in docs/ and goes to the folder of the cards.
    assert led(text, "docs/page.md", HOMES | {"docs/page.md": "cards/page.md"}) == turned


def test_a_docstring_becomes_markdown() -> None:
    text = "Add *two*.\n\n    >>> add(1, 2)\n    3\n\nArgs:\n    x: The first,\n        in `code`.\n    y: The second."
    assert markdown(text) == (
        "Add \\*two\\*.\n\n```pycon\n>>> add(1, 2)\n3\n```\n\n**Args**\n\n"
        "- `x`: The first, in `code`.\n- `y`: The second."
    )


def test_the_first_sentence_sums_a_page_up() -> None:
    assert summary("# Page\n\nIt says [so](a.md). And more.\n") == "It says so."


def test_what_is_wrong_with_links_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html">b</a> <a href="#top">top</a> <a href="#low">low</a>'
        '<a href="a.html#top">a</a><img src="c.png" alt="words"><img src="a.html"><script src="https://example.org/x.js"></script>'
        '<a href="https://example.org">elsewhere</a>'
    )
    assert problems(tmp_path) == [
        "a.html: a.html: a picture without words for readers who cannot see it",
        "a.html: https://example.org/x.js: loaded from elsewhere",
        "a.html: b.html: no such file",
        "a.html: #low: no such anchor",
        "a.html: c.png: no such file",
    ]


PAGES = {
    "index.md": "# First\n\nGo to [the next page](next.md#a-table), or type `judge run`.\n\n```sh\njudge run\n```\n\n"
    f"```text\nrank  run{' ' * 90}score\n```\n\n"
    "```{toctree}\n:hidden:\n:caption: Learn\n\nnext.md\n```\n",
    "next.md": "# Next\n\n## A table\n\n| option | meaning |\n|---|---|\n"
    + "".join(f"| `--an-option-with-a-long-name-{n}` | {'what it does ' * 9} |\n" for n in range(4)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two pages."""
    out = tmp_path_factory.mktemp("site")
    assert build(out, PAGES) == []
    return out / "html"


@pytest.mark.slow
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    broken = PAGES | {
        "next.md": "# Next\n\n[no page](absent.md), [no section](index.md#absent)\n\n![no picture](no.png)\n"
    }
    said = "\n".join(build(tmp_path, broken))
    for problem in ("#absent.md", "index.html#absent", "next.html#a-table"):
        assert f"{problem}: no such anchor\n" in f"{said}\n"
    assert "WARNING" in said and "next.html: no.png: no such file" in said


def test_options_are_not_broken_and_outputs_scroll() -> None:
    inline = '<p>--no <code class="literal"><span class="pre">--dry-run</span></code></p>'
    block = (
        '<div class="highlight-sh"><pre>judge<span class="w"> </span>run<span class="w"> </span>--out a--b</pre></div>'
    )
    assert amended(inline + block) == (
        '<p>--no <code class="literal"><span class="pre"><span class="option">--dry-run</span></span></code></p>'
        '<div class="highlight-sh"><pre>judge<span class="w"> </span>run<span class="w"> </span>'
        '<span class="option">--out</span> a--b</pre></div>'
    )


@pytest.mark.slow
def test_pages_open_from_the_disk_and_are_found(made: Path, page: Page) -> None:
    page.goto((made / "index.html").as_uri())
    page.get_by_role("link", name="the next page").click()
    expect(page.get_by_role("heading", name="A table")).to_be_visible()
    page.get_by_role("textbox", name="Search").fill("meaning")
    page.keyboard.press("Enter")
    expect(page.locator("ul.search a")).to_have_text("Next")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "next.html"])
def test_pages_are_sound_for_everybody(made: Path, browser: Browser, name: str, scheme: str) -> None:
    page = browser.new_page(viewport=NARROW, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto((made / name).as_uri())
    # The theme's sidebars are landmarks without names.
    found = [fault for fault in faults(page) if not fault.startswith("landmark-unique:")]
    assert (overflow(page), found) == (0, [])
    page.close()
