"""The folders that are installed with the program (prompts, gold, examples), and its version."""

from pathlib import Path

__version__ = "0.1.0"

_PACKAGE = Path(__file__).parent.parent


def bundled(name: str) -> Path:
    """The folder `name` (`prompts`, `gold` or `examples`): inside the wheel, or beside the package in a checkout."""
    inside = _PACKAGE / "_bundled" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
