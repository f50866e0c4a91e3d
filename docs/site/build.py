"""From the documents and the program to a folder of HTML."""

import io
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from docs.site import links
from docs.site.commands import FIRST, command_pages, page_of
from docs.site.files import files_page
from docs.site.names import names_page
from docs.site.pages import DOCS, contents, parted, subjects, title, with_navigation, written_pages
from docs.site.rows import card_pages, row_pages
from docs.site.statistics import statistics_pages
from judge.cli import COMMANDS

GENERATED = (
    "commands/index.md", "files.md", "codes.md", "statistics.md", "statistics-functions.md", "python.md", "prompts.md",
    "formats.md", "datasets.md",
)  # fmt: skip
"""The pages made from the program, in the order of the navigation."""


def site_pages() -> dict[str, str]:
    """Every page of the site, by its place in it."""
    written = written_pages()
    made = command_pages(written) | files_page(written) | row_pages() | statistics_pages(written) | names_page()
    pages = parted(with_navigation(written | made | card_pages(written["cards/index.md"])))
    pages[FIRST] += contents([page_of(command).rpartition("/")[2] for command in COMMANDS])
    for name in GENERATED:
        words = title(pages[f"reference/{name}"])
        pages["reference/index.md"] = pages["reference/index.md"].replace(f"**{words}**", f"**[{words}]({name})**")
    pages["reference/index.md"] += contents([*GENERATED, "glossary.md"])
    known = [name for name in subjects() if name in pages and name != "index.md"]
    cards = sorted(name.removeprefix("cards/") for name in pages if re.match("cards/.*/", name))
    pages["cards/index.md"] += contents(cards)
    pages["index.md"] += (
        contents([name for name in ("tutorial.md",) if name in pages], "Learn")
        + contents([f"{folder}/index.md" for folder in ("how-to", "explanation") if f"{folder}/index.md" in pages])
        + contents([*known, "cards/index.md"], "By subject")
        + contents(["reference/index.md"], "Look up")
        + contents(sorted(name for name in pages if name.startswith("project/")), "The project")
    )
    return pages


def build(out: Path, pages: Mapping[str, str]) -> list[str]:
    """Write the pages to `out/source`, make HTML of them in `out/html`, and return all that is wrong."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    source, html = out / "source", out / "html"
    for name, text in pages.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if (DOCS / "pictures").is_dir():
        shutil.copytree(DOCS / "pictures", source / "pictures")
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            source, DOCS, html, out / "doctrees", "html", status=None, warning=warnings, freshenv=True,
            parallel=os.cpu_count() or 1,
        )  # fmt: skip
        app.build(force_all=True)
    for path in html.rglob("*.html"):
        path.write_text(amended(path.read_text(encoding="utf-8")), encoding="utf-8")
    return [*warnings.getvalue().splitlines(), *links.problems(html)]


def amended(html: str) -> str:
    """A page with what the theme leaves out for readers without a mouse or without sight."""
    for before, after in AMENDED.items():
        html = html.replace(before, after)
    return _CODE.sub(lambda code: _OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


_CODE = re.compile(r'(?<=<span class="pre">)[^<]*|<pre>.*?</pre>', re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
"""An option, in which a browser would break a line behind the hyphens."""


AMENDED = {
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<div class="table-wrapper': '<div tabindex="0" role="group" aria-label="Table" class="table-wrapper',
    '<div class="highlight-text': '<div tabindex="0" role="group" aria-label="Output" class="highlight-text',
    '<aside class="sidebar-drawer': '<aside aria-label="Pages" class="sidebar-drawer',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
}
"""What the theme writes, and what stands in its place."""
