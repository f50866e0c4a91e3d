"""Replies that no honest server sends, to every backend that asks one: redirects, bombs, drips."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from judge.errors import JudgeError, OperationalError, RejectedError, TransientError
from judge.judges.backends import open_model
from judge.judges.chat import longest_reply
from judge.judges.model import ModelOptions
from judge.judges.records import Completion
from tests.mock import Mock, ask, start_mock
from tests.mock import complete as mock_complete

JUDGES = ["server/m", "openai/gpt-4o-mini", "litellm/openai/gpt-4o-mini", "litellm/hosted_vllm/m", "anthropic/claude-x"]


@pytest.fixture(scope="module")
def mocks() -> Iterator[tuple[Mock, Mock]]:
    with start_mock() as here, start_mock() as elsewhere:
        yield here, elsewhere


@pytest.fixture
def mock(mocks: tuple[Mock, Mock], no_keys: None, monkeypatch: pytest.MonkeyPatch) -> Mock:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-test-0123456789")
    for each in mocks:
        each.reset()
    return mocks[0]


def complete(name: str, base_url: str, **options: Any) -> Completion:
    return mock_complete(open_model(name, ModelOptions(base_url=base_url, **options)), ask())


@pytest.fixture(params=JUDGES)
def judge(request: pytest.FixtureRequest, mock: Mock) -> tuple[str, str]:
    """A judge and the base URL that makes it ask the mock server."""
    return request.param, mock.url if "anthropic" in request.param else mock.base_url


@pytest.mark.long
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_to_another_origin_is_refused_with_both_names(mocks, judge, status) -> None:
    mock, elsewhere = mocks
    location = f"http://ann:pass-word@127.0.0.1:{elsewhere.port}/v1/chat/completions?key=secret"
    mock.script({"status": status, "headers": {"Location": location}, "body": ""})
    with pytest.raises(OperationalError) as refused:
        complete(*judge)
    assert str(refused.value).startswith(
        f"status {status}: {mock.url} redirects to {elsewhere.url}, and judge follows no"
    )
    assert (mock.stats()["requests"], elsewhere.stats()["requests"]) == (1, 0)


def test_a_redirect_within_the_origin_is_refused_with_the_address_to_name(mock: Mock, judge: tuple[str, str]) -> None:
    mock.script(*[{"status": 307, "headers": {"Location": "/api/chat/completions/"}, "body": ""}] * 3)
    with pytest.raises(OperationalError, match=f"redirects to {mock.url}/api/chat/completions/, "):
        complete(*judge)
    assert mock.stats()["requests"] == 1


@pytest.mark.parametrize("bomb", [1 << 25, "endless"])
def test_a_reply_that_swells_ends_at_its_limit(mock: Mock, judge: tuple[str, str], bomb: object) -> None:
    mock.script({"bomb": bomb})
    # 1 MiB + 64 * 9 bytes
    with pytest.raises(RejectedError, match=r"longer than 1049152 bytes, .* --max-tokens 9"):
        complete(*judge, max_tokens=9)
    assert mock.stats()["requests"] == 1


@pytest.mark.parametrize("bomb", [1 << 25, "endless"])
def test_an_error_that_swells_is_cut_and_stays_what_it_is(mock: Mock, judge: tuple[str, str], bomb: object) -> None:
    mock.script({"status": 503, "bomb": bomb})
    with pytest.raises(TransientError, match="status 503"):
        complete(*judge)


def test_a_reply_that_drips_ends_at_the_timeout(mock: Mock, judge: tuple[str, str]) -> None:
    mock.script({"drip": 0.1})
    started = time.monotonic()
    with pytest.raises(TransientError, match=r"no answer within 0.5 s"):
        complete(*judge, timeout=0.5)
    # The whole body would take 100 s.
    assert time.monotonic() - started < 20


def test_a_call_whose_connection_is_reset_is_not_sent_again(judge: tuple[str, str]) -> None:
    asked = []

    def reset() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                asked.append(client.recv(1 << 16))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=reset, daemon=True).start()
        port = listening.getsockname()[1]
        with pytest.raises(TransientError, match=r"^ConnectionResetError: "):
            complete(judge[0], f"http://127.0.0.1:{port}/v1")
        listening.shutdown(socket.SHUT_RDWR)
    assert len(asked) == 1


def test_a_compression_that_nobody_asked_for_is_read_or_named(mock: Mock, judge: tuple[str, str]) -> None:
    mock.script({"status": 200, "headers": {"Content-Encoding": "br"}, "body": "x"})
    with pytest.raises(JudgeError, match="compressed with 'br'"):
        complete(*judge)
    mock.script({"bomb": 1 << 18})
    with pytest.raises(JudgeError, match="status 200, but not JSON"):
        complete(*judge)


def test_the_longest_reply_grows_with_the_tokens_asked_for() -> None:
    assert longest_reply(0) == 1024 * 1024
    assert longest_reply(1_000_000) == 1024 * 1024 + 64_000_000
