"""How fast a judge's backend asks, against the mock server on this machine.

`python bench/throughput.py --backend server` measures 64 calls in flight at 50 ms and at 500 ms each: calls a
second, share of the ideal rate (calls in flight / latency), and CPU time of this process for a call.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from judge.models.backends import open_model
from judge.models.model import Model, ModelOptions
from judge.models.records import Message, Request
from judge.records import Level, Scale

MOCK = Path(__file__).parent / "mock_server.py"
PASSAGE = "The Danube rises in the Black Forest and flows through ten countries to the Black Sea. "
SCALE = Scale(tuple(Level(n, str(n), "") for n in range(4)), "higher", (2, 3), None)


def requests(count: int, size: int, form: str) -> Iterator[Request]:
    """Distinct requests with a user message of about `size` characters."""
    text = PASSAGE * (size // len(PASSAGE) + 1)
    for number in range(count):
        yield Request(
            response_id=f"R{number:05}",
            turn_id="1-1_1",
            criterion="groundedness",
            form="json" if form == "json" else "text",
            messages=(
                Message("system", "You grade how far a response is supported by its passages."),
                Message("user", f"{number}: {text[:size]}"),
            ),
            scale=SCALE,
            labels=SCALE.labels,
            sentences=0,
            response="",
            passages=(),
        )


async def ask(model: Model, waiting: Iterator[Request], workers: int) -> int:
    """Ask all requests with `workers` calls in flight; the number answered."""
    answered = 0

    async def work() -> None:
        nonlocal answered
        for request in waiting:
            await model.complete(request)
            answered += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
    return answered


async def measure(model: Model, count: int, workers: int, latency: float, size: int, form: str) -> None:
    """Warm up, measure and print one row."""
    await ask(model, requests(workers, size, form), workers)
    waiting = requests(count, size, form)
    cpu, wall = time.process_time(), time.perf_counter()
    answered = await ask(model, waiting, workers)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    ideal = workers / latency if latency else float("nan")
    rate = answered / wall
    print(
        f"{model.name:<24} {workers:>4} x {latency * 1000:>4.0f} ms  n={answered:<6} "
        f"{rate:>8.0f}/s  ideal {rate / ideal:>6.3f}  CPU {1000 * cpu / answered:.3f} ms/call"
    )
    await model.aclose()


def main() -> None:
    """Start the mock server once for each latency and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("server", "openai", "litellm/openai"), default="server")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.05, 0.5], help="seconds")
    parser.add_argument("--calls", type=int, nargs="+", default=[6400, 3200], help="one number for each latency")
    parser.add_argument("--jitter", type=float, default=0.0)
    parser.add_argument("--size", type=int, default=7500, help="characters of a prompt")
    parser.add_argument("--form", choices=("json", "text"), default="json")
    given = parser.parse_args()
    for latency, calls in zip(given.latency, given.calls, strict=True):
        command = [sys.executable, str(MOCK), "--latency", str(latency), "--jitter", str(given.jitter)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                base_url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
                model = open_model(f"{given.backend}/mock", ModelOptions(base_url=base_url))
                asyncio.run(measure(model, calls, given.workers, latency, given.size, given.form))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
