"""How fast judge asks, beside a bare aiohttp loop, against the mock server on this machine.

    python -m bench.throughput                                64 calls in flight at 50 ms and at 500 ms, 256 at 500 ms
    python -m bench.throughput --case 64 0.05 6400 --rounds 5
    python -m bench.throughput --rows bare backend --backend litellm/openai --case 64 0.5 640

The rows of one case run in turn, `--rounds` times, and the median of each row is printed, because the load of the
machine changes from minute to minute: calls a second, share of the ideal rate (calls in flight / latency), CPU time of
this process for a call, and both against the bare loop. Compare rows of one table, not figures of two tables.

bare     aiohttp, and nothing else: the body is sent, the reply is read and decoded; with --backend litellm/openai,
         `litellm.acompletion` with the same parameters
backend  `complete` of a judge's backend
loop     `judge.assess` with a journal on the disk: what `judge run` does once its runs are pooled
"""

import argparse
import asyncio
import gc
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec

from judge.ask.account import Settings
from judge.ask.criteria import find_criterion
from judge.ask.loop import assess
from judge.ask.prompt import render
from judge.ask.records import Task, tasks
from judge.cli import OBJECTS_BETWEEN_COLLECTIONS
from judge.judges.backends import open_model
from judge.judges.backends.litellm import load_litellm
from judge.judges.journal import Journal
from judge.judges.model import ModelOptions
from judge.judges.records import Request
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.records import Criterion, Passage
from judge.runs.records import TokenCount
from tests.mock import start_mock

SYLLABLES = ("ka", "ro", "mi", "tel", "sun", "dor", "ve", "lan", "pi", "gra")
CASES = ((64, 0.05, 6400), (64, 0.5, 1280), (256, 0.5, 5120))


class Case(NamedTuple):
    """What one table measures."""

    workers: int
    latency: float
    """Seconds of one call."""
    calls: int


class Measured(NamedTuple):
    """What one row of one round took, in seconds."""

    wall: float
    cpu: float


def words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def make_pool(count: int, rng: random.Random) -> Pool:
    """Responses of 150 words with three passages of 220 words each: prompts of about 7 KB."""
    passages = {f"p{number}": Passage(f"p{number}", words(rng, 220), "collection") for number in range(count // 5 + 3)}
    keys = list(passages)
    return Pool(
        responses=tuple(
            PooledResponse(
                response_id=f"R{number:05}",
                turn_id=f"{number // 100}-1_{number % 100}",
                topic_id=f"{number // 100}-1",
                text=words(rng, 150),
                passages=tuple(keys[number // 5 : number // 5 + 3]),
                tokens=TokenCount(150, 150, 150, None),
                truncated=False,
                runs=(RunEntry("run", 1, "used", "sha"),),
            )
            for number in range(count)
        ),
        passages=passages,
        exclusions=(),
    )


def requests_of(pool: Pool, criterion: Criterion) -> list[Request]:
    return [render(Task(response, criterion), pool.passages, None, "json") for response in pool.responses]


async def in_parallel(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(work())


async def ask_bare(url: str, bodies: Iterator[bytes], workers: int) -> None:
    """Send ready bodies with aiohttp, and decode each reply."""
    decode = msgspec.json.Decoder().decode
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work() -> None:
            for body in bodies:
                async with session.post(url, data=body) as answer:
                    assert decode(await answer.read())["choices"]

        await in_parallel(workers, work)


async def ask_litellm(model: Any, waiting: Iterator[Request], workers: int) -> None:
    """Ask as litellm's users do, with the parameters that our backend sends."""
    litellm = load_litellm()

    async def work() -> None:
        for request in waiting:
            messages = [{"role": message.role, "content": message.content} for message in request.messages]
            answer = await litellm.acompletion(
                **model.parameters(request), messages=messages, timeout=120.0, num_retries=0, max_retries=0
            )
            assert answer.choices[0].message.content

    await in_parallel(workers, work)
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


async def ask_backend(name: str, base_url: str, waiting: Iterator[Request], workers: int) -> None:
    """Ask through a backend, without a loop of retries and without a journal."""
    model = open_model(name, ModelOptions(base_url=base_url))

    async def work() -> None:
        for request in waiting:
            await model.complete(request)

    try:
        await in_parallel(workers, work)
    finally:
        await model.aclose()


class Rows:
    """The rows of a table, each a function that makes all calls of a case."""

    def __init__(self, case: Case, backend: str, base_url: str, folder: Path) -> None:
        self.case = case
        self.name = f"{backend}/mock"
        self.base_url = base_url
        self.folder = folder
        self.criterion = find_criterion("groundedness/graded")
        self.pool = make_pool(case.calls, random.Random(0))
        self.requests = requests_of(self.pool, self.criterion)

    def bare(self) -> Callable[[], None]:
        if self.name.startswith("litellm/"):
            model = open_model(self.name, ModelOptions(base_url=self.base_url))
            return lambda: asyncio.run(ask_litellm(model, iter(self.requests), self.case.workers))
        parameters = open_model("server/mock", ModelOptions(base_url=self.base_url)).parameters(self.requests[0])
        sent = {name: value for name, value in parameters.items() if name != "base_url"}
        bodies = [msgspec.json.encode({**sent, "messages": request.messages}) for request in self.requests]
        url = f"{self.base_url}/chat/completions"
        return lambda: asyncio.run(ask_bare(url, iter(bodies), self.case.workers))

    def backend(self) -> Callable[[], None]:
        return lambda: asyncio.run(ask_backend(self.name, self.base_url, iter(self.requests), self.case.workers))

    def loop(self) -> Callable[[], None]:
        wanted = tasks(self.pool, (self.criterion,))
        settings = Settings(concurrency=self.case.workers)

        def ask() -> None:
            path = self.folder / f"{time.monotonic_ns()}.sqlite"
            with Journal(path) as journal:
                model = open_model(self.name, ModelOptions(base_url=self.base_url))
                results = assess(wanted, model, journal, self.pool, settings=settings)
                assert len(results) == len(journal) == self.case.calls
            path.unlink()

        return ask

    def made(self, names: list[str]) -> dict[str, Callable[[], None]]:
        """The rows by their names."""
        return {name: getattr(self, name)() for name in names}


def measured(row: Callable[[], None]) -> Measured:
    cpu, wall = time.process_time(), time.perf_counter()
    row()
    return Measured(time.perf_counter() - wall, time.process_time() - cpu)


def show(case: Case, rounds: dict[str, list[Measured]]) -> None:
    """Print the medians of a case."""
    print(f"{case.workers} calls in flight, {case.latency * 1000:.0f} ms each, {case.calls} calls; "
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    print(f"  {'':<28} {'calls/s':>8} {'of ideal':>9} {'CPU ms':>7} {'of bare':>8}  {'CPU':>5}")
    first = next(iter(rounds.values()))
    for name, taken in rounds.items():
        wall = statistics.median(each.wall for each in taken)
        cpu = statistics.median(each.cpu for each in taken) / case.calls * 1000
        faster = statistics.median(base.wall / each.wall for base, each in zip(first, taken, strict=True))
        dearer = statistics.median(each.cpu / base.cpu for base, each in zip(first, taken, strict=True))
        ideal = case.calls * case.latency / case.workers / wall if case.latency else float("nan")
        print(f"  {name:<28} {case.calls / wall:>8.0f} {ideal:>9.3f} {cpu:>7.3f} {faster:>8.3f}  {dearer:>4.1f}×")


def main() -> None:
    """Measure each case, with a mock server of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("server", "openai", "litellm/openai"), default="server")
    parser.add_argument("--rows", nargs="+", choices=("bare", "backend", "loop"), default=["bare", "backend", "loop"])
    parser.add_argument("--case", nargs=3, action="append", metavar=("IN_FLIGHT", "SECONDS", "CALLS"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a lognormal latency with the same mean")
    given = parser.parse_args()
    # As the command does.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    cases = [Case(int(a), float(b), int(c)) for a, b, c in given.case or CASES]
    for case in cases:
        options = [f"--latency={case.latency}", f"--jitter={given.jitter}"]
        with start_mock(*options) as server, tempfile.TemporaryDirectory() as folder:
            rows = Rows(case, given.backend, server.base_url, Path(folder)).made(given.rows)
            rounds: dict[str, list[Measured]] = {name: [] for name in rows}
            for _ in range(given.rounds):
                for name, row in rows.items():
                    rounds[name].append(measured(row))
            show(case, rounds)


if __name__ == "__main__":
    main()
