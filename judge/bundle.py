"""Where the prompts, the gold and the example are: in the wheel, or beside the package in a checkout."""

from pathlib import Path


def bundled(name: str) -> Path:
    """The folder `name` (`prompts`, `gold` or `examples`) that came with this installation."""
    inside = Path(__file__).parent / "_bundled" / name
    return inside if inside.is_dir() else Path(__file__).parent.parent / name
