"""Docstrings as Markdown, and the fields of classes with what stands below each."""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from docs.site.markdown import code, escaped, fenced

_LIST = re.compile(r"^(Args|Raises|Returns|Yields):\n((?: +.*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\S[^:\n]*): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def markdown(text: str) -> str:
    """A docstring as Markdown: worked examples and formulas as code, arguments as a list."""
    text = inspect.cleandoc(text)
    return "\n\n".join(part for part in _parts(text) if part)


def prose(text: str) -> str:
    """A docstring without its worked example and its lists."""
    text = _LIST.sub("", inspect.cleandoc(text))
    kept = [part for part in text.split("\n\n") if part.strip() and not part.lstrip().startswith(">>>")]
    # What leads to an example ends with a colon.
    return "\n\n".join(escaped(part) for part in kept if not part.rstrip().endswith(":"))


def _parts(text: str) -> Iterator[str]:
    end = 0
    for match in _LIST.finditer(text):
        yield from _paragraphs(text[end : match.start()])
        entries = "\n".join(
            f"- {code(name)}: {escaped(' '.join(meaning.split()))}" for name, meaning in _ENTRY.findall(match[2])
        )
        yield f"**{match[1]}**\n\n{entries}" if entries else escaped(match[0])
        end = match.end()
    yield from _paragraphs(text[end:])


def _paragraphs(text: str) -> Iterator[str]:
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip().startswith(">>>"):
            yield fenced(textwrap.dedent(part), "pycon")
        elif part.startswith("    "):
            yield fenced(textwrap.dedent(part))
        elif part.strip():
            yield escaped(part.strip())


def fields(cls: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each field of a class, those of its bases first."""
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("judge."):
            yield from _own_fields(base)


def readable(annotation: ast.expr) -> str:
    """A type without what a command line is told about it."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            return readable(first)
    return ast.unparse(annotation)


@functools.cache
def _own_fields(cls: type[Any]) -> tuple[tuple[str, str, str, str], ...]:
    node = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    body = node.body if isinstance(node, ast.ClassDef) else []
    found = []
    for place, statement in enumerate(body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if statement.target.id.startswith("_") or ast.unparse(statement.annotation).startswith("ClassVar"):
            continue
        following = body[place + 1] if place + 1 < len(body) else None
        about = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            about = inspect.cleandoc(str(following.value.value))
        default = "" if statement.value is None else ast.unparse(statement.value)
        found.append((statement.target.id, readable(statement.annotation), default, about))
    return tuple(found)
