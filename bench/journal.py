"""How long a large journal takes to open and to resume on: seconds and the most memory, each in a process of its own.

`python -m bench.journal build 1000000 /tmp/big.sqlite` writes a journal of as many completions of about 3 KB;
`python -m bench.journal measure /tmp/big.sqlite` opens it, looks 20,000 completions up (half of them absent), and adds
up what they took. `--drop-cache` reads the file from the disk, where the kernel lets us.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.judges.journal import Journal
from judge.judges.journal_store import new_row, paged, request_digest
from judge.judges.records import Completion, Message, Request
from judge.records import Level, Scale

SCALE = Scale(tuple(Level(n, str(n), "") for n in range(4)), "higher", (2, 3), None)
PASSAGE = "The Danube rises in the Black Forest and flows through ten countries to the Black Sea. " * 15
REPLY = "The response says what the first passage says, and the second passage supports the rest of it. " * 4
JUDGE, PARAMETERS = "server/mock", {"base_url": "http://127.0.0.1/v1", "temperature": 0, "max_tokens": 1024}
LOOKED_UP = 20_000
PROCESS = """
import resource, sys, time
sys.path.insert(0, {folder!r})
import journal
from pathlib import Path
started = time.perf_counter()
done = getattr(journal, {step!r})(Path({path!r}))
seconds = time.perf_counter() - started
print(f"{step:<10} {{seconds:7.2f}} s  {{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:6.0f}} MB  {{done}}")
"""


def question(number: int) -> Request:
    """A request that no other number gives."""
    text = f"{number}: {PASSAGE}"
    messages = (Message("system", "You grade how far a response is supported."), Message("user", text))
    return Request(
        f"R{number:07}", f"1-1_{number % 200}", "groundedness", "json", messages, SCALE, SCALE.labels, 0, "", ()
    )


def rows(count: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a journal."""
    for number in range(count):
        request = question(number)
        text = f'{{"rationale": "{REPLY}", "grade": {number % 4}}}'
        completion = Completion(
            text, "stop", "mock", "mock", 340, 90, None, None, 0.5, 1, raw=f'{{"choices": [{{"message": {text!r}}}]}}'
        )
        yield new_row(request_digest(JUDGE, PARAMETERS, request), JUDGE, PARAMETERS, request, completion)


def build(count: int, path: Path) -> None:
    """Write a journal, as fast as SQLite writes."""
    with Journal(path) as journal:
        for page in paged(rows(count), 10_000):
            journal.record(page)
    print(f"{count:,} completions, {path.stat().st_size / 1e9:.2f} GB")


def opening(path: Path) -> str:
    """Open a journal and count its completions."""
    with Journal(path) as journal:
        return f"{len(journal):,} completions"


def resuming(path: Path) -> str:
    """Open a journal and look completions up, half of them absent."""
    with Journal(path) as journal:
        step = max(1, 2 * len(journal) // LOOKED_UP)
        numbers = (*range(0, len(journal), step), *range(-1, -1 - LOOKED_UP // 2, -1))
        digests = (request_digest(JUDGE, PARAMETERS, question(number)) for number in numbers)
        found = sum(journal.get(digest) is not None for digest in digests)
    return f"{found:,} of {len(numbers):,} found"


def spending(path: Path) -> str:
    """Add up what the completions took."""
    from judge.judges.journal_tools import read_spending

    return f"{sum(row.spending.calls for row in read_spending(path)):,} calls"


def measure(path: Path, *, drop_cache: bool) -> None:
    """Print a row for each step."""
    for step in ("opening", "resuming", "spending"):
        if drop_cache:
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        code = PROCESS.format(folder=str(Path(__file__).parent), step=step, path=str(path))
        subprocess.run([sys.executable, "-c", code], check=True)
        time.sleep(0.1)


def main() -> None:
    """Build or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("build", "measure"))
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("path", type=Path)
    parser.add_argument("--drop-cache", action="store_true")
    given = parser.parse_args()
    if given.what == "build":
        build(given.count, given.path)
    else:
        measure(given.path, drop_cache=given.drop_cache)


if __name__ == "__main__":
    main()
