"""The watch over the processes of a cluster; what they answer is played."""

import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from judge.ask.ray import head
from judge.ask.ray.head import HeadWatch, answers
from judge.errors import OperationalError

SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a server of HTTP/2 says first."""


def watched(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, float], bool], seconds: float) -> list[str]:
    """What the watch says of `head:1` and `node:2`, each of whose looks takes one second; it is ended after so many."""
    now = 0.0
    over = threading.Event()
    told: list[str] = []

    def look(address: str, patience: float) -> bool:
        nonlocal now
        now += 1.0
        if now >= seconds:
            over.set()
        return answer(address, now)

    def step(error: OperationalError) -> None:
        told.append(f"{now:.0f}: {error}")
        over.set()

    monkeypatch.setattr(head, "LOOK", 0.0)
    monkeypatch.setattr(head, "answers", look)
    monkeypatch.setattr(head, "time", SimpleNamespace(monotonic=lambda: now))
    with HeadWatch("head:1", "node:2", (step,)):
        assert over.wait(30)
    return told


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        # The head is looked at in seconds 1, 3, 5, the node in seconds 2, 4, 6.
        (lambda address, now: now < 9 or address == "node:2", "27: the head of the Ray cluster at head:1 does not "),
        (lambda address, now: now < 9 or address == "head:1", "28: the Ray node at node:2, on which this process runs"),
        (lambda address, now: address == "head:1", "20: the Ray node at node:2, on which this process runs"),
    ],
)
def test_who_was_silent_for_20_seconds_is_named(
    answer: Callable[[str, float], bool], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (told,) = watched(monkeypatch, answer, 100)
    assert told.startswith(said)


def test_who_answers_again_in_time_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, lambda address, now: now % 18 < 2, 200) == []


@pytest.mark.parametrize(("said", "patience", "lives"), [(SETTINGS, 30.0, True), (b"", 0.1, False)])
def test_a_process_lives_that_answers(said: bytes, patience: float, lives: bool) -> None:
    """One that is frozen takes a connection too: the system does that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.sendall(said)
                while connection.recv(100):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        assert answers(address, patience) == lives
        thread.join()
    assert not answers(address, 0.1)
