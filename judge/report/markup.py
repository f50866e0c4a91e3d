"""Parts of a Markdown report: tables, and texts of strangers that show as themselves."""

from collections.abc import Iterable, Sequence

from judge.findings import Split
from judge.leaderboard import markdown_cell
from judge.records import Estimate
from judge.report.cells import count
from judge.text import escape, printable

_LABELS = {"percent": "same", "alpha_ordinal": "alpha", "ac2": "AC2"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """The first column to the left, the others to the right if they hold numbers; cells are Markdown."""
    lines = [header, ["---"] + ["---:" if numbers else "---"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def prose(text: str) -> str:
    """A text on one line, without markup."""
    return markdown_cell(printable(text))


def name_of(text: str) -> str:
    """An id, without markup, such that different ids look different."""
    return markdown_cell(escape(text))


def listed(texts: Iterable[str]) -> str:
    """Texts one after the other."""
    return "; ".join(map(prose, texts))


def label(statistic: str) -> str:
    """A statistic as a column is headed."""
    return _LABELS.get(statistic) or prose(statistic)


def grades_of(split: Split) -> str:
    """The grades of a split, in words."""
    return "all grades" if split == "all" else f"{split} grades"


def basis(estimate: Estimate) -> str:
    """What an estimate rests on."""
    return f"n = {estimate.n} over {count(estimate.topics, 'topic')}"
