"""The pages of the site: those that people write, at one place each in the navigation, with their links led there."""

import itertools
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
DOCS = PROJECT / "docs"

BESIDE = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "gold/README.md": "project/gold.md",
    "examples/README.md": "project/example.md",
}
"""Pages outside `docs/`, and where they stand in the site."""

_FENCED = re.compile(r"(^(`{3,})[^\n]*\n.*?^\2`*[ ]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!`)(!?)\[([^\]\n]*(?:\n[^\]\n]+)*)\]\(([^)\s:#]+)(#[\w-]*)?\)")
_ROW = re.compile(r"^\| \[[\w ]+\]\(\.\./([\w-]+\.md)\) \|", re.MULTILINE)


def written_pages() -> dict[str, str]:
    """The pages that people wrote, by their place in the site, with links that lead there."""
    files = {
        path.relative_to(PROJECT).as_posix(): path
        for path in sorted(DOCS.rglob("*.md"))
        if path.relative_to(DOCS).parts[0] != "_build"
    }
    homes = {name: name.removeprefix("docs/").replace("README.md", "index.md") for name in files} | BESIDE
    files |= {name: PROJECT / name for name in BESIDE}
    return {homes[name]: led(path.read_text(encoding="utf-8"), name, homes) for name, path in files.items()}


def led(text: str, name: str, homes: Mapping[str, str]) -> str:
    """A page with its links to other pages led to their homes in the site.

    A link to a file that is no page of the site becomes its words; one to a file that is nowhere stays and is found by
    the checks.
    """
    folder = posixpath.dirname(name)

    def turned(match: re.Match[str]) -> str:
        picture, words, target, section = match.groups(default="")
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("docs/pictures/"):
            return f"{picture}[{words}]({relative(path.removeprefix('docs/'), homes[name])})"
        for page in (path, f"{path}/README.md", f"{path}/index.md"):
            if page in homes:
                return f"{picture}[{words}]({relative(homes[page], homes[name])}{section})"
        if path in ("docs/how-to", "docs/explanation"):
            return f"[{words}]({relative(f'{path}/index.md'.removeprefix('docs/'), homes[name])})"
        return match[0] if picture or not (PROJECT / path).exists() else words

    return outside_fences(text, lambda part: _LINK.sub(turned, part))


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """A page with its text changed, and its blocks of code as they were."""
    parts: list[str] = []
    end = 0
    for match in _FENCED.finditer(text):
        parts += [change(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, change(text[end:])])


def relative(target: str, page: str) -> str:
    """The link from one page of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


MOST_WORDS = 2500
"""Of a page; a longer one that the program makes is parted."""


def words(text: str) -> int:
    """The words of a page; signs that draw a table are none."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def parted(pages: Mapping[str, str]) -> dict[str, str]:
    """The pages, a long one of the program as a first page that lists its parts, and a page for each part beside it."""
    found: dict[str, str] = {}
    for name, text in pages.items():
        if words(text) <= MOST_WORDS or not name.startswith(("reference/", "cards/")):
            found[name] = text
            continue
        masked = _FENCED.sub(lambda match: "-" * len(match[0]), text)
        begins = [match.start() for match in re.finditer("^## ", masked, re.MULTILINE)]
        stem, listed = re.sub(r"(?<!/)$", "-", name.removesuffix(".md").removesuffix("index")), {}
        for begin, end in itertools.pairwise([*begins, len(text)]):
            part = outside_fences(text[begin:end], lambda of: re.sub("^#(?=#+ )", "", of, flags=re.MULTILINE))
            within = ", ".join(re.findall("^## (.+)$", outside_fences(part, str), re.MULTILINE))
            home = f"{stem}{re.sub(r'[^a-z0-9]+', '-', title(part).lower()).strip('-')}.md"
            found[home] = part
            listed[relative(home, name)] = f"[{title(part)}]({relative(home, name)}){within and f': {within}'}"
        lines = "".join(f"- {line}\n" for line in listed.values())
        found[name] = f"{text[: begins[0]]}{lines}{contents([*listed])}"
    return found


def title(text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", outside_fences(text, lambda part: part), re.MULTILINE)
    return found[1] if found else ""


def summary(text: str) -> str:
    """The first sentence below the first heading, without links."""
    body = re.sub(r"^---\n.*?^---\n", "", text, flags=re.MULTILINE | re.DOTALL).partition("\n# ")[2] or text
    lines = (line for line in body.partition("\n")[2].split("\n\n") if line.strip())
    first = " ".join(next((line for line in lines if re.match(r"[\w`*\[]", line.strip())), "").split())
    return _LINK.sub(r"\2", re.split(r"(?<=[.?!])\s", first)[0])


def subjects() -> list[str]:
    """The pages about a subject, in the order of the reference's table."""
    return _ROW.findall((DOCS / "reference" / "index.md").read_text(encoding="utf-8"))


def with_navigation(pages: dict[str, str]) -> dict[str, str]:
    """All pages, those of how-to and of explanation below a first page, in the order in which the README names them."""
    pages = dict(pages)
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    for folder, heading, opening in (
        ("how-to", "How to", "Each page leads through one job, with commands that run."),
        ("explanation", "Explanation", "Why things are as they are, and what may be claimed."),
    ):
        below = sorted(
            (name for name in pages if name.startswith(f"{folder}/") and name != f"{folder}/index.md"),
            key=lambda name: (readme.find(f"(docs/{name})") % (len(readme) + 1), name),
        )
        if below:
            first = f"# {heading}\n\n{opening}\n\n" + "".join(
                f"- [{title(pages[name])}]({relative(name, folder + '/')}): {summary(pages[name])}\n" for name in below
            )
            pages[f"{folder}/index.md"] = pages.get(f"{folder}/index.md", first) + contents(
                [relative(name, f"{folder}/") for name in below]
            )
    return pages


def contents(names: list[str], caption: str = "") -> str:
    """A list of contents, which the page does not show and the navigation does."""
    lines = [":hidden:", *([f":caption: {caption}"] if caption else []), "", *names]
    return "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"
