"""Checks of the HTML that was made: links, anchors and pictures lead somewhere; nothing is loaded from elsewhere."""

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
_NO_LOAD = {"canonical", "index", "search", "next", "prev", "author", "help", "copyright", "top"}
"""What a `link` of these kinds names is not loaded."""


class _Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.unnamed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img" and not values.get("alt"):
            self.unnamed.append(values.get("src", ""))
        for name in ("src", "href", "data"):
            loads = (tag, name) in _LOADS and name in values
            if loads and not (tag == "link" and values.get("rel") in _NO_LOAD):
                self.loads.append(values[name])


def problems(folder: Path) -> list[str]:
    """What is wrong with the links of a site: file, link and what is missing, in the order of the pages."""
    pages: dict[str, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(folder).as_posix()] = page
    found = []
    for name, page in pages.items():
        found += [f"{name}: {src}: a picture without words for readers who cannot see it" for src in page.unnamed]
        for load in page.loads:
            if urlsplit(load).netloc:
                found.append(f"{name}: {load}: loaded from elsewhere")
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = posixpath.join(posixpath.dirname(name), unquote(parts.path))
            target = posixpath.normpath(path) if parts.path else name
            if not (folder / target).is_file():
                found.append(f"{name}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link}: no such anchor")
    return found
