"""How an index file begins; a module of its own because the reader of an index needs numpy."""

from pathlib import Path
from typing import Final

FAMILY: Final = b"judge-passages-"
"""How an index of any version begins."""
MAGIC: Final = (FAMILY + b"2\n").ljust(24, b"\0")


def is_index(path: Path) -> bool:
    """Whether a plain file begins as an index of `judge passages index`, of any version; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(FAMILY)) == FAMILY
    except OSError:
        return False
