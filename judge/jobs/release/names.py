"""Pseudonyms of runs and teams, and the private file that says whose they are."""

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.errors import InputError, refuse
from judge.io.files import read_stored
from judge.io.folder import FileContent, lines_of
from judge.io.ids import column
from judge.io.text import shown
from judge.records import Problem, file_problem

_PSEUDONYM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_CHANCE = secrets.SystemRandom()


class Pseudonyms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run id to its pseudonym, and team to its pseudonym; a name that stands for itself is published."""

    runs: dict[str, str] = {}
    teams: dict[str, str] = {}

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names that must stand nowhere in a bundle."""
        named = (*self.runs.items(), *self.teams.items())
        return tuple(dict.fromkeys(name for name, pseudonym in named if name != pseudonym))


def read_pseudonyms(path: Path) -> Pseudonyms:
    """The pseudonyms in a private file; none if the file is not there."""
    if not os.path.lexists(path):
        return Pseudonyms()
    try:
        found = msgspec.json.decode(read_stored(path), type=Pseudonyms)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not pseudonyms: {error}: expected runs and teams, each name with one") from error
    _refuse(path, found, _faults, "not a pseudonym for each name")
    return found


def _refuse(
    path: Path, pseudonyms: Pseudonyms, faults: Callable[[Mapping[str, str]], Iterable[tuple[str, str]]], message: str
) -> None:
    """Refuse pseudonyms if those of the runs, or of the teams, have faults: names, and what is wrong."""
    problems: list[Problem] = []
    for kind, given in (("runs", pseudonyms.runs), ("teams", pseudonyms.teams)):
        for name, fault in faults(given):
            problems.append(file_problem("pseudonym", path, fault, f"$.{kind}[{name!r}]"))
    refuse(problems, f"{path}: {message}")


def _faults(given: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    owners: dict[str, str] = {}
    for name, pseudonym in given.items():
        if name != pseudonym and not _PSEUDONYM.fullmatch(pseudonym):
            yield name, f"{shown(pseudonym)}: expected up to 80 letters, digits, dots, hyphens and underscores"
        elif owners.setdefault(pseudonym.casefold(), name) != name:
            yield name, f"{shown(pseudonym)} stands for {shown(owners[pseudonym.casefold()])} too"


def check_pseudonyms(path: Path, pseudonyms: Pseudonyms) -> None:
    """Refuse a pseudonym that is the name of another run or team: readers would believe the wrong thing of it."""

    def taken(given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, pseudonym in given.items():
            if name != pseudonym and any(other != name and other.casefold() == pseudonym.casefold() for other in given):
                yield name, f"{shown(pseudonym)} is the name of another: expected one that nobody has"

    _refuse(path, pseudonyms, taken, "a pseudonym that is a name")


def completed(
    pseudonyms: Pseudonyms,
    runs: Iterable[str],
    teams: Iterable[str],
    shuffle: Callable[[list[str]], None] = _CHANCE.shuffle,
) -> Pseudonyms:
    """The pseudonyms with new ones for further names, numbered by chance: from a seed, anyone could make them."""
    return Pseudonyms(
        _with_new("run", pseudonyms.runs, sorted(set(runs)), shuffle),
        _with_new("team", pseudonyms.teams, sorted(set(teams)), shuffle),
    )


def _with_new(
    word: str, given: Mapping[str, str], names: Sequence[str], shuffle: Callable[[list[str]], None]
) -> dict[str, str]:
    new = [name for name in names if name not in given]
    shuffle(new)
    # A pseudonym that is the name of another run would make readers believe the wrong thing.
    taken = {text.casefold() for text in (*given.values(), *given, *names)}
    width = max(2, len(str(len(given) + len(new))))
    numbered = (f"{word}{number:0{width}}" for number in range(1, len(taken) + len(new) + 2))
    free = (pseudonym for pseudonym in numbered if pseudonym not in taken)
    return {**given, **dict(zip(new, free, strict=False))}


SHORTEST = 4
"""Characters of a name that is looked for; a shorter one is part of too many texts."""


def remaining(files: Mapping[str, FileContent], names: Iterable[str]) -> Iterator[Problem]:
    """A problem for each line of a file in which a name stands as a word, whatever its case.

    Fields with ids are renamed where they are written; this finds the names that stand in texts. A name of fewer than
    four characters, or of digits only, is not looked for.
    """
    sought: dict[str, str] = {}
    for name in names:
        if len(name) >= SHORTEST and not name.isdecimal():
            # As it stands in plain text, in JSON and in a column.
            in_json = (json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1])
            sought.update((written.casefold(), name) for written in (name, *in_json, column(name)))
    if not sought:
        return
    longest_first = "|".join(re.escape(form) for form in sorted(sought, key=lambda form: (-len(form), form)))
    pattern = re.compile(rf"(?<![^\W_])(?:{longest_first})(?![^\W_])")
    for file, content in files.items():
        for number, line in enumerate(lines_of(content), 1):
            for form in dict.fromkeys(pattern.findall(line.decode("utf-8", "replace").casefold())):
                yield file_problem("name_left", file, f"{shown(sought[form])} stands there", f"line {number}")
