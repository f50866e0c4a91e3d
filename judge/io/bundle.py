"""The folders that are installed with the program (prompts, gold, examples), and its version."""

# Not imported from typing, and the path below not before it is asked for: both would slow down `judge --help`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__version__ = "0.1.0"


def bundled(name: str) -> "Path":
    """The folder `name` (`prompts`, `gold` or `examples`): inside the wheel, or beside the package in a checkout."""
    from pathlib import Path

    package = Path(__file__).parent.parent
    inside = package / "_bundled" / name
    return inside if inside.is_dir() else package.parent / name
