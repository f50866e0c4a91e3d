"""The mock server does what the tests and benches that lean on it believe."""

import http.client
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from typing import Any

import pytest

from judge.judges.forms import answer_schema
from tests.mock import Mock


def request(text: str = "Is it grounded?", **more: object) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def complete(mock: Mock, body: dict[str, object]) -> tuple[int, Any]:
    return mock.http("POST", "/v1/chat/completions", body)


def content(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def test_a_repaired_request_gets_the_verdict_of_the_first(mock: Mock) -> None:
    first = request()
    repaired = {
        **first,
        "messages": [*first["messages"], {"role": "assistant", "content": "?"}, {"role": "user", "content": "!"}],
    }
    assert content(complete(mock, first)[1]) == content(complete(mock, repaired)[1])
    assert mock.stats()["items"] == 2


def test_what_is_no_chat_completion_is_refused(mock: Mock) -> None:
    for broken in ({}, {"messages": 3}, {"messages": [{"role": "user"}]}):
        assert complete(mock, broken)[0] == 400
    assert mock.stats()["in_flight"] == 0


SENTENCES = "<sentences>\n[1] One.\n[2] Two.\n[3] Three.\n</sentences>\n"


def test_every_sentence_is_labelled_in_either_form(mock: Mock) -> None:
    text = f"{SENTENCES}Then, where LABEL is one of a, b:\n1: LABEL"
    lines = content(complete(mock, request(text))[1]).splitlines()
    assert [line.split(": ")[0] for line in lines[1:]] == ["1", "2", "3"]
    assert {line.split(": ")[1] for line in lines[1:]} == {"a", "b"}
    schema = answer_schema(["a", "b"], 3)
    asked = request(SENTENCES, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    verdict = json.loads(content(complete(mock, asked)[1]))
    assert [entry["n"] for entry in verdict["sentences"]] == [1, 2, 3]
    assert {entry["label"] for entry in verdict["sentences"]} == {"a", "b"}


def test_paid_calls_are_counted_by_messages(mock: Mock) -> None:
    for text in ("a", "b", "a", "a"):
        complete(mock, request(text))
    stats = mock.stats()
    assert (stats["requests"], stats["items"], stats["paid"]) == (4, 2, 4)
    assert stats["repeated_paid"] == 4 - 2
    assert stats["asked_again"] == 2
    assert sorted(mock.paid_per_item().values()) == [1, 3]
    assert mock.last()[1]["messages"][0]["content"] == "a"


def test_rate_limit_answers_carry_a_wish_and_breaking_it_is_counted(mock: Mock) -> None:
    mock.config(p429=1, retry_after=0.2)
    connection = http.client.HTTPConnection("127.0.0.1", mock.port, timeout=10)
    connection.request("POST", "/v1/chat/completions", json.dumps(request()))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert (answer.status, answer.headers["Retry-After"], answer.headers["retry-after-ms"]) == (429, "1", "200")
    complete(mock, request())
    assert mock.stats()["retry_after_violations"] == 1
    time.sleep(0.2)
    complete(mock, request())
    assert mock.stats()["retry_after_violations"] == 1
    assert mock.stats()["paid"] == 0


def test_requests_over_the_rate_are_limited(mock: Mock) -> None:
    mock.config(rps=0.001, burst=2)
    assert [complete(mock, request(str(n)))[0] for n in range(3)] == [200, 200, 429]


def test_errors_and_cuts_are_not_paid(mock: Mock) -> None:
    mock.config(p500=1)
    assert complete(mock, request())[0] == 500
    mock.config(p500=0, pdrop=1)
    with pytest.raises(ConnectionError):
        complete(mock, request())
    stats = mock.stats()
    assert (stats["paid"], stats["in_flight"], stats["statuses"]) == (0, 0, {"500": 1, "dropped": 1})


def test_faults_come_in_the_share_asked_and_repeat_with_the_seed(mock: Mock) -> None:
    def statuses() -> list[int]:
        return [complete(mock, request(str(n)))[0] for n in range(100)]

    mock.config(p429=0.25, p500=0.25, retry_after=None)
    first = statuses()
    # 100 draws at 0.25: mean 25, standard deviation 4.3; 18 is four of them.
    assert abs(first.count(429) - 25) < 18
    assert abs(first.count(500) - 25) < 18
    mock.reset()
    mock.config(p429=0.25, p500=0.25, retry_after=None)
    assert statuses() == first
    mock.reset()
    mock.config(p429=0.25, p500=0.25, retry_after=None, seed=1)
    assert statuses() != first


def test_latency_holds_calls_and_the_most_in_flight_is_seen(mock: Mock) -> None:
    mock.config(latency=0.2)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: complete(mock, request(str(n))), range(8)))
    stats = mock.stats()
    assert stats["max_in_flight"] > 1
    assert stats["window"] >= 0.2


def test_a_call_whose_client_left_is_still_billed(mock: Mock) -> None:
    mock.config(latency=0.1)
    connection = http.client.HTTPConnection("127.0.0.1", mock.port)
    connection.request("POST", "/v1/chat/completions", json.dumps(request()))
    connection.close()
    while mock.stats()["paid"] == 0:
        time.sleep(0.01)
    stats = mock.stats()
    assert (stats["billed_while_gone"], stats["asked_again"]) == (1, 0)
    complete(mock, request())
    assert (mock.stats()["repeated_paid"], mock.stats()["asked_again"]) == (1, 0)


@pytest.mark.parametrize(
    "options",
    [{"p429": 0.7, "p500": 0.7}, {"response_format": "maybe"}, {"provider": "?"}, {"refuse": "?"}, {"nonsense": 1}],
)
def test_options_that_make_no_sense_are_refused(mock: Mock, options: dict[str, object]) -> None:
    status, answer = mock.http("POST", "/__config", options)
    assert status == 400
    assert next(iter(options)).split("_")[0] in answer["error"]["message"]


def reply_of(mock: Mock, text: str = "x") -> tuple[int, Message, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", mock.port, timeout=10)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(request(text)))
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("provider", "always", "wish"),
    [
        ("openai", {"x-ratelimit-limit-requests": "2", "x-ratelimit-reset-requests": "\\d+m[\\d.]+s"},
            "retry-after-ms"),
        ("anthropic", {"anthropic-ratelimit-requests-reset": "20\\d\\d-.*Z"}, "retry-after"),
        ("azure", {"x-ratelimit-reset-requests": "\\d+", "x-ratelimit-remaining-tokens": "-1"}, "retry-after"),
        ("gemini", {}, ""),
        ("vllm", {"server": "uvicorn"}, ""),
        ("litellm", {"llm_provider-x-ratelimit-reset-requests": ".*s"}, "llm_provider-retry-after"),
    ],
)  # fmt: skip
def test_limits_are_told_in_the_words_of_a_provider(mock, provider, always, wish) -> None:
    mock.config(provider=provider, rps=0.001, burst=2, retry_after=31.0)
    for text, status in (("a", 200), ("b", 200), ("c", 429)):
        found, headers, body = reply_of(mock, text)
        assert found == status
        for name, form in always.items():
            assert re.fullmatch(form, headers[name]), (name, headers[name])
        assert (wish in headers) == (status == 429 and bool(wish))
    error = body[0]["error"] if provider == "gemini" else body["error"]
    assert "{" not in error["message"]
    mock.config(retry_after=None)
    _, headers, body = reply_of(mock, "d")
    assert wish not in headers
    assert "retry" not in json.dumps(body).lower()


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        *[("anthropic-spend", 429), ("anthropic-contract", 429), ("anthropic-workspace", 400), ("openai-quota", 429)],
        *[("anthropic-billing", 402), ("anthropic-credit", 400), ("gemini-day", 429), ("azure-day", 429)],
        ("openrouter-credit", 402),
    ],
)
def test_every_request_gets_the_refusal_that_is_asked_for(mock: Mock, refusal: str, status: int) -> None:
    mock.config(refuse=refusal)
    assert [reply_of(mock, text)[0] for text in "ab"] == [status, status]
    assert mock.stats()["paid"] == 0
