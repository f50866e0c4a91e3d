"""How much of a provider's rate limit the loop uses, and how much of what it sends is refused.

`python -m bench.rate_limits` judges 2,000 responses against the mock server, which lets 100 requests a second through,
20 at once, and refuses the rest in the words of each provider. A row says how long the run took, which share it used of
the calls that the limit would have let through in that time, the share of requests answered 429, how many came before
the time that their provider had asked for, and how many judgments were given up. `--case` takes some rows only;
`--compare` sends without a common pace, so that each call waits for itself alone.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.soak import pool
from judge.ask import pace
from judge.ask.account import Settings
from judge.ask.criteria import find_criterion
from judge.ask.loop import assess
from judge.ask.records import Failure, tasks
from judge.judges.backends import open_model
from judge.judges.journal import Journal
from judge.judges.model import ModelOptions
from tests.mock import start_mock

CASES: dict[str, dict[str, Any]] = {
    "Retry-After: 1": {"retry_after": 1.0},
    "OpenAI, precise wish": {"provider": "openai", "retry_after": 0.0},
    "OpenAI, resets only": {"provider": "openai", "retry_after": None},
    "Anthropic": {"provider": "anthropic", "retry_after": 1.0},
    "Azure, resets only": {"provider": "azure", "retry_after": None},
    "Gemini, body only": {"provider": "gemini", "retry_after": 1.0},
    "vLLM, nothing": {"provider": "vllm", "retry_after": None},
    "litellm proxy": {"provider": "litellm", "retry_after": 1.0},
    "own --rpm 5900": {"provider": "vllm", "retry_after": None},
}
"""Options of the mock server for each row."""


def measure(name: str, options: dict[str, Any], given: argparse.Namespace) -> None:
    """Run one case and print its row."""
    responses, criterion = pool(given.calls), find_criterion("naturalness")
    limits = [f"--rps={given.rate}", f"--burst={given.burst}", f"--latency={given.latency}"]
    settings = Settings(concurrency=given.concurrency, rpm=5900 if "--rpm" in name else None)
    with start_mock(*limits, "--jitter=0.3") as server, tempfile.TemporaryDirectory() as folder:
        server.config(**options)
        model = open_model("server/mock", ModelOptions(base_url=server.base_url))
        with Journal(Path(folder) / "journal") as journal:
            started = time.perf_counter()
            results = assess(tasks(responses, [criterion]), model, journal, responses, settings=settings)
            took = time.perf_counter() - started
        stats = server.stats()
    refused = stats["statuses"].get("429", 0)
    print(
        f"{name:<22} {took:6.1f} s  {stats['paid'] / took:6.1f} calls/s  "
        f"used {stats['paid'] / (given.rate * took + given.burst):6.1%}  refused {refused / stats['requests']:5.1%}  "
        f"too early {stats['retry_after_violations']:>3}  "
        f"given up {sum(isinstance(result, Failure) for result in results)}",
        flush=True,
    )


def main() -> None:
    """Measure the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=tuple(CASES))
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second that the server lets through")
    parser.add_argument("--burst", type=float, default=20.0, help="requests that it lets through at once")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--compare", action="store_true", help="without a common pace")
    given = parser.parse_args()
    if given.compare:
        pace.Pace.wait = lambda self, tokens: 0.0  # type: ignore[method-assign]
    for name in given.case or CASES:
        measure(name, CASES[name], given)


if __name__ == "__main__":
    main()
