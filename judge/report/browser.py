"""The browser of judgments: every judgment of some folders, to be filtered, read and set side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup


class Browser(NamedTuple):
    """The parts of a page that show judgments; `page` puts them into the report."""

    markup: Markup
    """The section's content, with inert blocks of data."""
    style: str
    script: str
    files: Mapping[str, bytes]
    """Files beside the page, by name; none unless the judgments are too many for one page."""


def browse(folders: Sequence[Path], gold: Sequence[Path] = ()) -> Browser:
    """The judgments of output folders of `judge run` or of a folder of `judge calibrate`.

    Args:
        folders: One folder, or several that are set side by side.
        gold: Gold files, whose grades stand beside the judges'.
    """
    return Browser(Markup(), "", "", {})
