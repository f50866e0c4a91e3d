"""Names that must not be published, found in the files of a bundle. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from judge.io.content import FileContent, lines_of
from judge.io.safe import shown
from judge.io.trec import column
from judge.records import Problem

SHORTEST = 4
"""Characters of a name that is looked for; a shorter one is part of too many texts."""


def remaining(files: Mapping[str, FileContent], names: Iterable[str]) -> Iterator[Problem]:
    """A problem for each line of a file in which a name stands as a word, whatever its case.

    Fields with ids are renamed where they are written; this finds the names that stand in texts. A name of fewer than
    four characters, or of digits only, is not looked for.

    Args:
        files: Names and contents.
        names: What must not stand in them.
    """
    sought = {form.casefold(): name for name in names if _telling(name) for form in _forms(name)}
    if not sought:
        return
    longest_first = "|".join(re.escape(form) for form in sorted(sought, key=lambda form: (-len(form), form)))
    pattern = re.compile(rf"(?<![^\W_])(?:{longest_first})(?![^\W_])")
    for file, content in files.items():
        for number, line in enumerate(lines_of(content), 1):
            for form in dict.fromkeys(pattern.findall(line.decode("utf-8", "replace").casefold())):
                yield Problem("name_left", "error", file, None, f"line {number}", f"{shown(sought[form])} stands there")


def _telling(name: str) -> bool:
    return len(name) >= SHORTEST and not name.isdecimal()


def _forms(name: str) -> set[str]:
    """The name as it stands in JSON, in a column and in plain text."""
    return {name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1], column(name)}
