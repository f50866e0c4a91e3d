import asyncio
import signal
import sys

import pytest

from judge.ask.own_loop import finish, new_loop


def test_without_uvloop_the_event_loop_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop, of_python = new_loop(), asyncio.new_event_loop()
    loop.close()
    of_python.close()
    assert type(loop) is type(of_python)


def test_with_uvloop_the_event_loop_is_its_own() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop has no wheels for this platform")
    loop = new_loop()
    loop.close()
    assert isinstance(loop, uvloop.Loop)


@pytest.mark.parametrize("library", ["uvloop", "asyncio"])
def test_a_job_is_finished_inside_and_outside_of_another_loop(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "uvloop":
        pytest.importorskip("uvloop", reason="uvloop has no wheels for this platform")
    else:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def job() -> str:
        await asyncio.sleep(0)
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    async def notebook() -> str:
        return finish(job, lambda: None)

    assert finish(job, lambda: None) == library
    assert asyncio.run(notebook()) == library


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
