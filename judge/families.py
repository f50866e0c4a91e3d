"""Families of models: who is behind a run or a judge, as the user's file says."""

from pathlib import Path

from judge.errors import InputError
from judge.files import read_stored


def read_families(path: Path) -> dict[str, str]:
    """Run or judge to the family of models behind it: two columns between a tab.

    Raises:
        InputError: The file cannot be read or has other lines.
    """
    try:
        text = read_stored(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        name, tab, family = line.rstrip("\r").partition("\t")
        if not line.strip():
            continue
        if not (tab and name and family) or "\t" in family or found.get(name, family) != family:
            raise InputError(f"{path}: line {number}: expected a run or judge, one tab and its family, each name once")
        found[name] = family
    return found
