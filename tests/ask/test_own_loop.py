import asyncio
import os
import signal

import pytest

from judge.ask.running import finish
from tests.time_limit import PATIENCE


def test_a_job_is_finished_inside_and_outside_of_another_loop() -> None:
    async def job() -> str:
        await asyncio.sleep(0)
        return "done"

    async def notebook() -> str:
        return finish(job, lambda: None)

    assert finish(job, lambda: None) == "done"
    assert asyncio.run(notebook()) == "done"


def test_a_handler_of_ctrl_c_is_there_again_after_a_job() -> None:
    async def job() -> None:
        await asyncio.sleep(0)

    def handler(number: int, frame: object) -> None:
        pass

    before = signal.signal(signal.SIGINT, handler)
    try:
        finish(job, lambda: None)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("beside", [False, True])
def test_the_first_ctrl_c_drains_and_the_second_cancels(beside: bool) -> None:
    drained: list[None] = []

    async def job() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not drained:
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(PATIENCE)

    async def notebook() -> None:
        finish(job, lambda: drained.append(None))

    with pytest.raises(KeyboardInterrupt):
        if beside:
            asyncio.run(notebook())
        else:
            finish(job, lambda: drained.append(None))
    assert drained == [None]
