"""A time that passes as soon as somebody sleeps, and the loop in it."""

import asyncio
from collections.abc import Callable, Sequence

from judge.ask.account import Account, Settings
from judge.ask.line import Clock
from judge.ask.loop import Loop
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.records import Task
from judge.ask.results import StoredResults
from judge.judges.journal import Journal
from judge.judges.model import Model
from judge.pool.records import Pool


class VirtualTime:
    """Seconds that pass only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        # The last digits of a sleep must not be lost, or time would stand still.
        self.now += max(1e-6, seconds)
        await asyncio.sleep(0)

    def clock(self) -> Clock:
        return Clock(self, self.sleep)


def assess_at_once(
    wanted: Sequence[Task],
    model: Model,
    journal: Journal,
    pool: Pool,
    *,
    settings: Settings,
    report: Callable[[Progress], None] | None = None,
    account: Account | None = None,
    time: VirtualTime | None = None,
) -> StoredResults:
    """`assess`, but nobody waits."""
    questions = Questions(model, journal, pool, None, account)
    return Loop(questions, journal, settings, report=report, clock=(time or VirtualTime()).clock()).run_to_end(wanted)
