"""The aiohttp backend against a real server process on this machine."""

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from judge.errors import AuthenticationError, OperationalError, StructureUnsupported, TransientError, UsageError
from judge.judges.backends import open_model
from judge.judges.backends.litellm import LitellmModel
from judge.judges.backends.openai import OpenAIModel
from judge.judges.backends.server import ServerModel
from judge.judges.credentials import proxy_for
from judge.judges.forms import answer_schema
from judge.judges.model import ModelOptions
from judge.judges.records import Completion
from tests.mock import Mock, ask, complete, used

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_keys")]

SECRET = "sk-test-0123456789"
Kind = Callable[[str, ModelOptions], ServerModel]


@pytest.fixture(params=[ServerModel, OpenAIModel])
def either(mock: Mock, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Kind:
    """Each of the two that are straight on aiohttp, with a key."""
    monkeypatch.setenv("JUDGE_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    kind: Kind = request.param
    return kind


def served(mock: Mock, kind: Kind = ServerModel, **options: Any) -> ServerModel:
    return kind("m", ModelOptions(**{"base_url": mock.url, **options}))


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("server/org/model-7b", ServerModel, "text"),
        ("openai/gpt-4o-mini", OpenAIModel, "json"),
        ("litellm/openai/gpt-4o-mini", LitellmModel, "json"),
    ],
)
def test_one_call_sends_one_request_and_reads_the_reply(mock, monkeypatch, name: str, kind: type, form: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    model = open_model(name, ModelOptions(base_url=mock.url if kind is OpenAIModel else mock.base_url, seed=3))
    assert type(model) is kind
    model.check([])
    found = complete(model, ask(form))
    headers, body = mock.last()
    known_as = name.removeprefix("litellm/").partition("/")[2]
    assert mock.stats()["requests"] == 1
    assert headers.get("authorization") == (None if kind is ServerModel else f"Bearer {SECRET}")
    messages = [("system", "You grade responses."), ("user", "Is it grounded?")]
    assert body.pop("messages") == [{"role": role, "content": content} for role, content in messages]
    assert body == {**model.parameters(ask(form)), "model": known_as}
    basic = {"model": known_as, "temperature": 0.0, "max_tokens": 1024, "seed": 3}
    assert body == basic if form == "text" else basic.items() < body.items()
    grade = found.text.splitlines()[-1].removeprefix("Grade: ") if form == "text" else json.loads(found.text)["grade"]
    assert grade in "0123"
    assert (found.endpoint, found.model, found.system_fingerprint) == (mock.base_url, known_as, "mock")
    assert (found.finish_reason, found.attempts) == ("stop", 1)
    assert found.prompt_tokens == len("You grade responses." + "Is it grounded?") // 5
    assert found.latency > 0
    price = model.price()
    expected = price and found.prompt_tokens * price.prompt + found.completion_tokens * price.completion
    assert found.cost == (expected and pytest.approx(expected))
    assert price or kind is not LitellmModel


def test_parameters_are_what_is_sent_beside_the_messages(mock: Mock) -> None:
    for form, sentences in (("json", 0), ("json", 3), ("text", 0)):
        request = ask(form, sentences=sentences)
        model = served(mock, temperature=0.5, max_tokens=7)
        complete(model, request)
        sent = mock.last()[1]
        del sent["messages"]
        assert sent == model.parameters(request)
    assert served(mock).parameters(ask("json"))["response_format"]["json_schema"]["schema"] == answer_schema("0123", 0)


def test_json_form_gets_json(mock: Mock) -> None:
    assert msgspec.json.decode(complete(served(mock), ask("json")).text)["grade"] in "0123"


def test_an_endpoint_without_structure_is_told_apart(mock: Mock) -> None:
    mock.config(response_format="reject")
    with pytest.raises(StructureUnsupported, match="response_format"):
        complete(served(mock), ask("json"))
    assert "Grade: " in complete(served(mock), ask("text")).text


def test_the_key_is_sent_and_never_shown(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "top-secret-key")
    mock.config(key="top-secret-key")
    model = served(mock)
    assert complete(model, ask()).text
    assert mock.last()[0]["authorization"] == "Bearer top-secret-key"
    mock.script({"status": 401, "body": {"error": {"message": "bad key top-secret-key"}}})
    with pytest.raises(AuthenticationError, match="bad key") as refused:
        complete(model, ask())
    shown = f"{refused.value} {refused.value!r} {model!r} {vars(model)} {model.parameters(ask())}"
    assert "top-secret-key" not in shown


def test_credentials_in_the_address_are_sent_and_recorded_nowhere(mock: Mock) -> None:
    model = ServerModel("m", ModelOptions(base_url=f"http://ann:pass@127.0.0.1:{mock.port}"))
    assert complete(model, ask()).endpoint == mock.base_url
    assert mock.last()[0]["authorization"] == "Basic YW5uOnBhc3M="


def test_nobody_listening_is_transient(either: Kind) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TransientError, match="ConnectionRefusedError"):
        complete(either("m", ModelOptions(base_url=f"http://127.0.0.1:{port}")), ask())


def test_plain_http_behind_an_https_address_cannot_heal(mock: Mock) -> None:
    told = "no secure connection .*; the port speaks no TLS: if it is one of plain HTTP, its address begins with http:"
    with pytest.raises(OperationalError, match=told):
        complete(served(mock, base_url=f"https://127.0.0.1:{mock.port}"), ask())


BEGINS_WITH_HTTPS = r"\(if this port speaks TLS, its address begins with https://\)$"


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """The port of a server that answers whatever it reads with these bytes, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]


@pytest.mark.parametrize("answer", [b"", b"\x15\x03\x01\x00\x02\x02\x46"])
def test_a_server_that_never_answers_plain_http_may_speak_tls(answer: bytes) -> None:
    """A port with TLS sends an alert, or only hangs up."""
    with answering(answer) as port, pytest.raises(TransientError, match=BEGINS_WITH_HTTPS):
        complete(ServerModel("m", ModelOptions(base_url=f"http://127.0.0.1:{port}")), ask())


def test_a_server_that_has_answered_speaks_what_it_speaks(mock: Mock) -> None:
    async def twice(model: ServerModel) -> None:
        await model.complete(ask())
        mock.script({"drop": True})
        await model.complete(ask(text="Again?"))

    with pytest.raises(TransientError) as cut:
        used(served(mock), twice)
    assert "https" not in str(cut.value)
    mock.script({"drop": True})
    with pytest.raises(TransientError, match=BEGINS_WITH_HTTPS):
        complete(served(mock), ask())


def test_many_calls_fly_at_once_over_kept_connections(mock: Mock) -> None:
    mock.config(latency=0.6)

    async def many(model: ServerModel) -> list[Completion]:
        return await asyncio.gather(*(model.complete(ask(text=str(number))) for number in range(150)))

    assert len({completion.text for completion in used(served(mock), many)}) > 1
    # aiohttp's own limit is 100.
    assert mock.stats()["max_in_flight"] > 100


def test_a_model_can_be_used_again_after_it_was_closed(mock: Mock) -> None:
    model = served(mock)
    assert complete(model, ask()).text == complete(model, ask()).text


def test_a_cancelled_call_leaves_nothing_open(mock: Mock) -> None:
    mock.config(latency=5)

    async def cancel(model: ServerModel) -> None:
        call = asyncio.create_task(model.complete(ask()))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    used(served(mock), cancel)


def test_a_malformed_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "sec\nret")
    with pytest.raises(UsageError, match="JUDGE_API_KEY"):
        open_model("server/m", ModelOptions(base_url="http://localhost")).check([])


def test_proxies_are_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for("http://api.example/v1") == "http://proxy:3128"
    assert proxy_for("https://api.example/v1") is None
    monkeypatch.setenv("all_proxy", "proxy:3129")
    assert proxy_for("https://api.example/v1") == "http://proxy:3129"
    for near in ("127.0.0.1:1", "127.1.2.3", "localhost:8000", "[::1]:8", "inside.example"):
        assert proxy_for(f"http://{near}/v1") is None
