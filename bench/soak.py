"""Thousands of judgments against the mock server at all of its faults at once: everything ends, and the counts add up.

`python -m bench.soak` makes 20,000 judgments and prints what the server counted beside what judge counted; then it asks
once more, without faults, for what is missing. The exit status is 1 if a judgment has no end, or two counts differ.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.ask.account import Settings
from judge.ask.criteria import find_criterion
from judge.ask.loop import assess
from judge.ask.records import Failure, Judgment, tasks
from judge.errors import CallError, TransientError
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.journal_tools import read_journal
from judge.judges.model import ModelOptions
from judge.judges.records import Completion, Request
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.runs.records import TokenCount
from tests.mock import start_mock
from tests.mock.faults import FAULTS

LOST = ("dropped", "half-sent", "empty-choices", "slow-first-byte", "slow-drip")
"""Faults whose replies are paid for and never arrive; a slow one is given up by the clock."""
TIMEOUT, SLOW = 2.0, 4.0


class Counted:
    """A judge whose calls are counted by how they end."""

    def __init__(self, model: Any, ends: Counter[str]) -> None:
        self._model = model
        self._ends = ends

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Completion:
        """Ask, and count."""
        try:
            completion: Completion = await self._model.complete(request)
        except CallError as error:
            status = re.match(r"status (\d+):", str(error))
            kind = "not tried again" if not isinstance(error, TransientError) else "tried again"
            self._ends[f"{status[1] if status else str(error)[:24]}, {kind}"] += 1
            raise
        self._ends["completion"] += 1
        return completion


def pool(count: int) -> Pool:
    """Responses that all differ."""
    responses = tuple(
        PooledResponse(
            response_id=f"R{number:05}",
            turn_id=f"{number // 200}-1_{number % 200}",
            topic_id=f"{number // 200}-1",
            text=f"Response {number}: the Danube flows through ten countries.",
            passages=(),
            tokens=TokenCount(9, 9, 9, None),
            truncated=False,
            runs=(RunEntry("run", 1, "used", "sha"),),
        )
        for number in range(count)
    )
    return Pool(responses=responses, passages={}, exclusions=())


def soak(count: int, share: float, concurrency: int, attempts: int, folder: Path) -> list[tuple[str, int, int]]:
    """Judge with every fault at a share, then without faults; names of counts, theirs and ours."""
    with start_mock() as server:
        server.config(
            p429=share, p500=share, pbad=share, pdrop=share, retry_after=0.2, slow=SLOW,
            faults=dict.fromkeys(FAULTS, share),
        )  # fmt: skip
        one = pool(count)
        wanted = tasks(one, [find_criterion("naturalness")])
        settings = Settings(concurrency=concurrency, attempts=attempts)
        ends: Counter[str] = Counter()

        def ask() -> list[Judgment | Failure]:
            model = Counted(open_model("server/mock", ModelOptions(base_url=server.base_url, timeout=TIMEOUT)), ends)
            with Journal(folder / "journal.sqlite") as journal:
                return list(assess(wanted, model, journal, one, settings=settings))  # type: ignore[arg-type]

        started = time.perf_counter()
        results = ask()
        print(f"{count:,} judgments in {time.perf_counter() - started:.0f} s, {share:.1%} each of {tuple(FAULTS)}")
        time.sleep(SLOW)
        rows = list(compared(server.stats(), ends, results, folder, count))
        # Without faults, only what is missing and not in the journal is asked again.
        missing = [one for one in results if isinstance(one, Failure)]
        before, known = server.stats()["requests"], {entry.digest for entry in read_journal(folder / "journal.sqlite")}
        open_ones = sum(one.request_digest not in known for one in missing)
        server.config(p429=0, p500=0, pbad=0, pdrop=0, faults={})
        later = ask()
        left = Counter(one.reason for one in later if isinstance(one, Failure))
        rows.append(("requests of the second run", server.stats()["requests"] - before, open_ones))
        rows.append(("missing then", sum(left.values()), len(missing) - open_ones))
        print("missing after the second run:", dict(sorted(left.items())))
        return rows


def compared(
    stats: dict[str, Any], ends: Counter[str], results: list[Judgment | Failure], folder: Path, count: int
) -> Iterator[tuple[str, int, int]]:
    """The server's counts beside ours."""
    reasons = Counter(one.reason for one in results if isinstance(one, Failure))
    forms = Counter(one.form for one in results if isinstance(one, Judgment))
    kept = list(read_journal(folder / "journal.sqlite"))
    print(f"grades {dict(sorted(forms.items()))}, missing {dict(sorted(reasons.items()))}")
    print("ends of calls as judge saw them:")
    for name, number in sorted(ends.items()):
        print(f"  {number:>7,}  {name}")
    yield "judgments and failures", count, forms.total() + reasons.total()
    yield "calls", stats["requests"], ends.total()
    lost = sum(stats["faults"].get(name, 0) for name in LOST)
    yield "completions kept, of the paid calls without the lost ones", stats["paid"] - lost, len(kept)
    yield "completions", ends["completion"], len(kept)
    named = {"429": "429, tried again", "500": "500, tried again", "400": "400, not tried again"}
    for status, name in named.items():
        yield f"status {status}", stats["statuses"].get(status, 0), ends[name]
    yield "503 in a 200", stats["faults"].get("error-in-200", 0), ends["503, tried again"]
    slow = sum(stats["faults"].get(name, 0) for name in ("slow-first-byte", "slow-drip"))
    yield "slow replies", slow, ends[f"no answer within {TIMEOUT:g} s, tried again"]
    yield "calls in flight in the end", stats["in_flight"], 0


def main() -> int:
    """Run and compare; 1 if a count differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--share", type=float, default=0.015, help="of each fault (default 0.015)")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--attempts", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = soak(given.count, given.share, given.concurrency, given.attempts, Path(folder))
    print(f"{'':<58} {'server':>9} {'judge':>9}")
    for name, theirs, ours in rows:
        print(f"{name:<58} {theirs:>9,} {ours:>9,}{'' if theirs == ours else '  DIFFER'}")
    return int(any(theirs != ours for _, theirs, ours in rows))


if __name__ == "__main__":
    sys.exit(main())
