"""The page of the files that commands write: what each holds and its fields, from `docs/reference/files.toml`."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from docs.site.markdown import code, table
from docs.site.pages import DOCS, relative, title

PAGE = "reference/files.md"
FORMS = (".tsv", ".json", ".md", ".tex")
_LISTED = tomllib.loads((DOCS / "reference" / "files.toml").read_text(encoding="utf-8"))
COLUMNS: Mapping[str, str] = _LISTED.pop("columns")
"""Columns that mean the same in every file, and what they mean."""


class Entry(NamedTuple):
    """What one file holds, or a few that hold the same."""

    page: str
    """The page of its subject."""
    names: tuple[str, ...]
    content: str
    about: str
    """Its fields, as Markdown; "" where it has none."""


def entries() -> Iterator[Entry]:
    """The files, in the order of the list."""
    for page, files in _LISTED.items():
        for file in files:
            names = [name.removesuffix(".*") + form for name in file["names"] for form in _forms(name)]
            yield Entry(page, tuple(names), file.get("content", ""), file.get("about", ""))


def _forms(name: str) -> tuple[str, ...]:
    return FORMS if name.endswith(".*") else ("",)


def files_page(written: Mapping[str, str]) -> dict[str, str]:
    """The page that says of each file what it holds, below the page of its subject."""
    parts = [
        "# Files\n\nEvery file that a command writes, with what it holds and the meaning of its fields.\n\n"
        "## Columns of many files\n",
        table(("column", "meaning"), [(", ".join(map(code, k.split(", "))), v) for k, v in COLUMNS.items()]) + "\n",
    ]
    above = ""
    for page, names, content, about in entries():
        home = page.replace("../gold/README.md", "project/gold.md")
        if page != above:
            parts.append(f"## {title(written[home])}\n\n[The page]({relative(home, PAGE)}) on the subject.\n")
        above = page
        said = [f"### {', '.join(map(code, names))}", content[:1].upper() + content[1:], about.strip()]
        parts.append(re.sub(r"\]\((?=([\w-]+/)?[\w-]+\.md\))", "](../", "\n\n".join(filter(None, said))) + "\n")
    return {PAGE: "\n".join(parts)}
