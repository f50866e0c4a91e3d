"""`judge run` as a whole process against the mock server: rate, share of the ideal, CPU a judgment.

    python -m bench.whole_line                       64 calls in flight, 3,200 at 500 ms and 6,400 at 50 ms
    python -m bench.whole_line --calls 12800 --latency 0.05

The rate is taken at the server, from its first request to its last answer: reading and pooling are not in it. CPU is
that of the whole process, less that of the same command once everything is in its journal.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mock import Mock, start_mock

SYLLABLES = ("ka", "ro", "mi", "tel", "sun", "dor", "ve", "lan", "pi", "gra")


def words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def make_run(path: Path, turns: int) -> None:
    """A CAsT 2022 run whose prompts are about 7 KB each."""
    rng = random.Random(0)
    written = {
        "run_name": "bench",
        "run_type": "automatic",
        "turns": [
            {
                "turn_id": f"{turn // 100}_1-{turn % 100 + 1}",
                "responses": [
                    {
                        "rank": 1,
                        "text": words(rng, 150),
                        "provenance": [
                            {"id": f"MARCO_{rng.randrange(10**9)}-{k}", "text": words(rng, 220), "score": 3.0 - k}
                            for k in range(3)
                        ],
                    }
                ],
            }
            for turn in range(turns)
        ],
    }
    path.write_text(json.dumps(written), encoding="utf-8")


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path, server: Mock, calls: int, latency: float, concurrency: int) -> None:
    runs = folder / f"runs-{calls}"
    runs.mkdir(exist_ok=True)
    make_run(runs / "bench.json", calls)
    server.reset()
    server.config(latency=latency)
    command = [
        sys.executable, "-m", "judge", "run", "--runs", str(runs), "--criteria", "groundedness",
        "--model", "server/mock", "--base-url", server.base_url,
        "--concurrency", str(concurrency), "--out", str(folder / f"out-{calls}-{latency}"),
    ]  # fmt: skip
    cpu = cpu_of(command)
    stats = server.stats()
    recalled = cpu_of(command)
    rate = calls / stats["window"]
    print(
        f"{calls} calls, {concurrency} in flight, {latency * 1000:.0f} ms each: {rate:.0f}/s, "
        f"{rate * latency / concurrency:.3f} of ideal; "
        f"CPU a judgment {(cpu - recalled) / calls * 1000:.3f} ms for asking, "
        f"{cpu / calls * 1000:.3f} all told (start-up, reading, pooling, writing included)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=64)
    args = parser.parse_args()
    cases = [(args.calls, args.latency)] if args.calls else [(3200, 0.5), (6400, 0.05)]
    with start_mock() as server, tempfile.TemporaryDirectory() as temporary:
        for calls, latency in cases:
            measure(Path(temporary), server, calls, latency, args.concurrency)


if __name__ == "__main__":
    main()
