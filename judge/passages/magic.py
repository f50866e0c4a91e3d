"""How an index file begins; a module of its own because the reader of an index needs numpy."""

from pathlib import Path
from typing import Final

MAGIC: Final = b"judge-passages-1\n".ljust(24, b"\0")


def is_index(path: Path) -> bool:
    """Whether a plain file begins as an index of `judge passages index`; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
