"""The tables of `docs/scale.md` about millions of judgments, from the assumptions below.

    python -m bench.scale_costs            writes the tables anew between the comments that mark them
    python -m bench.scale_costs --print    prints them

A test fails where the document has others. Change an assumption here, and where it comes from in the document.
"""

import argparse
import re
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).parent.parent / "docs" / "scale.md"
SIZES = (10**4, 10**6, 10**8)
GPUS = 8

PROMPT_TOKENS, REPLY_TOKENS = 1500, 150
TOKENS = PROMPT_TOKENS + REPLY_TOKENS
TOKENS_A_MINUTE = 2_000_000
"""What an account may send and receive in a minute."""
BATCH_SHARE = 0.5
"""Of the list price."""
GPU_HOUR = 4.0
"""US dollars for the rent of a GPU."""
LINES_OF_A_FILE, BYTES_OF_A_FILE = 50_000, 200_000_000
REQUEST_BYTES = 7_200
"""A line of a file of requests: a prompt of 6,600 bytes, and 600 of parameters."""
JOURNAL_BYTES, RESULT_BYTES = 8_800, 2_400
LOOP_RATE, FILE_RATE, PASS_RATE = 700, 10_000, 4_500
"""What one process does in a second: calls of a loop, requests written or replies taken back, judgments of a pass."""


class Priced(NamedTuple):
    """A model of an API, with US dollars per million tokens."""

    name: str
    prompt: float
    reply: float

    def cost(self, judgments: int) -> float:
        """US dollars at the list price."""
        return judgments * (PROMPT_TOKENS * self.prompt + REPLY_TOKENS * self.reply) / 1e6


class Served(NamedTuple):
    """A model of one's own on GPUs, with the tokens of prompts and replies that one GPU takes in a second."""

    name: str
    kind: str
    rate: float
    published: str

    def seconds(self, judgments: int, gpus: int) -> float:
        """Seconds on so many GPUs, each with a server of its own."""
        return judgments * TOKENS / (self.rate * gpus)

    def rent(self, judgments: int) -> float:
        """US dollars, the same on one GPU as on several."""
        return self.seconds(judgments, 1) / 3600 * GPU_HOUR


PRICED = (
    Priced("gpt-4.1-mini", 0.40, 1.60),
    Priced("gpt-4.1", 2.00, 8.00),
)
SERVED = (
    Served("small", "35 billion weights, 3 billion of them active, FP8", 30_000, "37,900 to 50,500"),
    Served("large", "70 billion weights, FP8", 5_000, "7,500"),
)


def two_digits(value: float) -> float:
    """The value with two significant digits."""
    return float(f"{value:.2g}")


def dollars(value: float) -> str:
    """An amount with two significant digits."""
    rounded = two_digits(value)
    return f"${rounded:,.0f}" if rounded >= 10 else f"${rounded:.2f}"


def number(value: float) -> str:
    """A number with two significant digits."""
    return f"{two_digits(value):,g}" if value < 1e5 else f"{two_digits(value):,.0f}"


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds / length < most:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds / 86400)} days"


def size(count: float) -> str:
    """Bytes in MB, GB or TB."""
    for unit, length in (("MB", 1e6), ("GB", 1e9)):
        if count < 1000 * length:
            return f"{number(count / length)} {unit}"
    return f"{number(count / 1e12)} TB"


def table(heads: list[str], rows: list[list[str]], text_columns: int = 0) -> str:
    """A Markdown table whose first columns hold text and whose others hold numbers."""
    marks = ["---" if place < text_columns else "--:" for place in range(len(heads))]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(marks)}|", *lines[1:]])


def money() -> str:
    """What the calls cost."""
    heads = ["judgments"]
    for priced in PRICED:
        heads += [f"`{priced.name}`", "by batch"]
    heads += [f"GPUs, {served.name}" for served in SERVED]
    rows = []
    for judgments in SIZES:
        row = [f"{judgments:,}"]
        for priced in PRICED:
            cost = priced.cost(judgments)
            row += [dollars(cost), dollars(cost * BATCH_SHARE)]
        rows.append(row + [dollars(served.rent(judgments)) for served in SERVED])
    return table(heads, rows)


def time() -> str:
    """How long the calls take."""
    of_a_file = min(LINES_OF_A_FILE, BYTES_OF_A_FILE // REQUEST_BYTES)
    heads = ["judgments", "API", "files of a batch"]
    heads += [f"{served.name}, {gpus} GPU{'s' * (gpus > 1)}" for served in SERVED for gpus in (1, GPUS)]
    rows = [
        [
            f"{judgments:,}",
            duration(judgments * TOKENS / TOKENS_A_MINUTE * 60),
            f"{-(-judgments // of_a_file):,}",
            *(duration(served.seconds(judgments, gpus)) for served in SERVED for gpus in (1, GPUS)),
        ]
        for judgments in SIZES
    ]
    return table(heads, rows)


def engines() -> str:
    """What is assumed of a GPU, and the judgments in a second that follow."""
    heads = ["judge", "model", "published tokens/s", "assumed", "judgments/s of 1 GPU", f"of {GPUS}"]
    rows = [
        [
            served.name, served.kind, served.published, f"{served.rate:,.0f}",
            number(served.rate / TOKENS), number(GPUS * served.rate / TOKENS),
        ]
        for served in SERVED
    ]  # fmt: skip
    return table(heads, rows, text_columns=2)


def own() -> str:
    """What judge itself adds."""
    heads = ["judgments", "calls of one process", "files written, taken back", "a pass without calls", "journal",
             "results"]  # fmt: skip
    rows = [
        [
            f"{judgments:,}",
            *(duration(judgments / rate) for rate in (LOOP_RATE, FILE_RATE / 2, PASS_RATE)),
            *(size(judgments * each) for each in (JOURNAL_BYTES, RESULT_BYTES)),
        ]
        for judgments in SIZES
    ]
    return table(heads, rows)


TABLES = {"money": money, "time": time, "engines": engines, "own": own}
_MARKED = "<!-- {name}: written by bench/scale_costs.py -->\n\n{table}\n\n<!-- end of {name} -->"


def with_tables(text: str) -> str:
    """The document with the tables as the assumptions have them."""
    for name, made in TABLES.items():
        begin, end = _MARKED.format(name=name, table="\0").split("\0")
        parts = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", text, flags=re.DOTALL)
        if len(parts) != 2:
            raise ValueError(f"the document has {len(parts) - 1} places marked for {name}, expected 1")
        text = (begin + made() + end).join(parts)
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the tables and write nothing")
    if parser.parse_args().print:
        print("\n\n".join(made() for made in TABLES.values()))
    else:
        DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
