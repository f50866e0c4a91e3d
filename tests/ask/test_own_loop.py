import asyncio
import signal

from judge.ask.own_loop import finish


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
