"""The tables of `docs/validation.md`, from the rows of `judge/runs/check/codes.py`.

    python bench/validation_tables.py

Writes the tables anew between the comments that mark them; a test fails where the document has others.
"""

import re
from pathlib import Path

from judge.runs.check.codes import CODES, SECTIONS

DOCUMENT = Path(__file__).parent.parent / "docs" / "validation.md"
_MARKED = "<!-- {name}: written by bench/validation_tables.py -->\n\n{table}\n\n<!-- end of {name} -->"


def code_tables() -> str:
    """Every code with severity, meaning and what the official validators say, under the headings of the rows."""
    return "\n\n".join(
        f"### {heading}\n\n"
        "| code | severity | meaning | 2023 | 2024 | 2025 |\n|---|---|---|---|---|---|\n"
        + "\n".join(
            f"| `{code}` | {row.severity} | {row.meaning} | {' | '.join(row.official)} |" for code, row in rows.items()
        )
        for heading, rows in SECTIONS.items()
    )


def fix_table() -> str:
    """Every code that `--fix` fixes, and what becomes of it."""
    rows = "\n".join(f"| `{code}` | {row.fix} |" for code, row in CODES.items() if row.fix)
    return f"| code | what becomes of it in the copy |\n|---|---|\n{rows}"


def with_tables(text: str) -> str:
    """The document with the tables as the rows have them."""
    for name, table in (("codes", code_tables()), ("fixes", fix_table())):
        begin, end = _MARKED.format(name=name, table="\0").split("\0")
        text, n = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table + end, text, flags=re.S)  # noqa: B023
        if n != 1:
            raise ValueError(f"the document has {n} places marked for {name}, expected 1")
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
