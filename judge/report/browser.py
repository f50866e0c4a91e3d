"""The browser of judgments: every judgment of some folders, to be filtered, read and set side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from judge.io.draw.page import render_page
from judge.io.paths import StrPath
from judge.jobs.judged import JudgedFolder
from judge.report.chunks import PackedTable
from judge.report.items_merged import gather
from judge.report.listing import listing

INLINE = 10 << 20
"""The most bytes of packed tables inside the page; more of them lie in files beside it."""
BESIDE = "report-data"
"""The folder of these files."""
_PAGES = Path(__file__).parent / "pages"


class Browser(NamedTuple):
    """The parts of a page that show judgments; `page` puts them into the report."""

    markup: Markup
    """The section's content, with inert blocks of data."""
    style: str
    script: str
    files: Mapping[str, bytes]
    """Files beside the page, by name; none unless the judgments are too many for one page.

    The script adds them to the page as scripts, so the page's policy has to let it.
    """


def browse(
    folders: Sequence[Path],
    gold: Sequence[Path] = (),
    criterion: str | None = None,
    prompts: Sequence[StrPath] = (),
    inline: int = INLINE,
    judged: Mapping[Path, JudgedFolder] | None = None,
) -> Browser:
    """The judgments of output folders of `judge run` or of a folder of `judge calibrate`, or a sample of very many.

    Args:
        folders: One folder, or several that are set side by side.
        gold: Gold files, whose grades stand beside the judges'.
        criterion: The only criterion, or the file of the prompt that the judgments are under.
        prompts: Prompt files of the user, for judgments under them.
        inline: The most bytes of packed tables inside the page.
        judged: Those of the folders that were read already.

    Raises:
        InputError: A folder is of another kind, or a file is missing or damaged.
        UsageError: There is no such prompt.
    """
    gathered = gather(folders, gold, criterion, prompts, judged)
    listed = listing(gathered)
    size = sum(len(chunk) for table in listed.tables.values() for chunk in table.chunks)
    files = _files(listed.tables) if size > inline else {}
    blocks = {"columns": listed.columns} | ({} if files else _chunks(listed.tables))
    return Browser(
        markup=Markup(render_page(_PAGES, "browser.html.j2", blocks=blocks, beside=BESIDE if files else "")),  # noqa: S704 - of a template that escapes
        style=(_PAGES / "browser.css").read_text(encoding="utf-8"),
        script=(_PAGES / "browser.js").read_text(encoding="utf-8"),
        files=files,
    )


def _chunks(tables: Mapping[str, PackedTable]) -> dict[str, str]:
    """Every chunk, by the name that the script asks for it."""
    return {f"{name}-{number}": chunk for name, table in tables.items() for number, chunk in enumerate(table.chunks)}


def _files(tables: Mapping[str, PackedTable]) -> dict[str, bytes]:
    """Every chunk as a script: a page that was opened from a disk may load nothing else."""
    return {
        f"{BESIDE}/{name}.js": f'document.currentScript.packed="{chunk}";\n'.encode()
        for name, chunk in _chunks(tables).items()
    }
