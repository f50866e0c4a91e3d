"""The litellm backend against a real server process on this machine."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from judge.errors import OperationalError, RejectedError, UsageError
from judge.judges.backends import open_model
from judge.judges.backends.litellm import LitellmModel, _present, _Transmission, load_litellm
from judge.judges.model import ModelOptions, Price
from judge.judges.records import Completion
from tests.mock import Mock, ask, complete
from tests.scoring import Serve

SECRET = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def _environment(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def behind(mock: Mock, name: str = "openai/gpt-4o-mini", **options: Any) -> LitellmModel:
    return LitellmModel(name, ModelOptions(**{"base_url": mock.base_url, **options}))


CACHED = {
    # provider: the usage that it sends; its prompt of 2,000 tokens, 1,536 of them from a cache, with a reply of 50,
    # 40 of them thoughts
    "openai/gpt-4o-mini": {"prompt_tokens": 2000, "completion_tokens": 50, "total_tokens": 2050,
        "prompt_tokens_details": {"cached_tokens": 1536}, "completion_tokens_details": {"reasoning_tokens": 40}},
    "deepseek/deepseek-chat": {"prompt_tokens": 2000, "completion_tokens": 50, "total_tokens": 2050,
        "prompt_cache_hit_tokens": 1536, "prompt_cache_miss_tokens": 464,
        "completion_tokens_details": {"reasoning_tokens": 40}},
    "anthropic/claude-sonnet-4-5": {"input_tokens": 464, "cache_read_input_tokens": 1536,
        "cache_creation_input_tokens": 0, "output_tokens": 50, "output_tokens_details": {"thinking_tokens": 40}},
}  # fmt: skip


@pytest.mark.parametrize("name", CACHED)
def test_cached_tokens_cost_their_own_price_and_thoughts_that_of_a_reply(mock: Mock, name: str, monkeypatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    reply: dict[str, Any] = {"id": "1", "model": "m", "usage": CACHED[name]}
    if name.startswith("anthropic"):
        text = [{"type": "text", "text": "Grade: 2"}]
        reply |= {"type": "message", "role": "assistant", "content": text, "stop_reason": "end_turn"}
    else:
        message = {"role": "assistant", "content": "Grade: 2"}
        reply |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    mock.script({"body": reply})
    # litellm adds /v1/messages to Anthropic's address by itself.
    address = mock.url if name.startswith("anthropic") else mock.base_url
    model = open_model(f"litellm/{name}", ModelOptions(base_url=address))
    found = complete(model, ask("text"))
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (2000, 1536, 50)
    assert found.thought_tokens == 40
    price = model.price()
    assert price is not None and price.cached is not None
    assert found.cost == pytest.approx(464 * price.prompt + 1536 * price.cached + 50 * price.completion)


def test_a_bare_provider_string_goes_to_litellm_whole() -> None:
    assert open_model("openrouter/some/model").name == "litellm/openrouter/some/model"


def test_an_unpriced_model_costs_unknown(mock: Mock) -> None:
    model = behind(mock, "openai/unheard-of")
    assert model.price() is None
    assert complete(model, ask()).cost is None


def test_calls_fly_at_once_and_the_model_can_be_used_again(mock: Mock) -> None:
    model = behind(mock)

    async def many() -> list[Completion]:
        try:
            return await asyncio.gather(*(model.complete(ask(text=str(number))) for number in range(8)))
        finally:
            await model.aclose()

    async def twice() -> tuple[list[Completion], list[Completion]]:
        return await many(), await many()

    first, second = asyncio.run(twice())
    third = asyncio.run(many())
    texts = [completion.text for completion in first]
    assert [completion.text for completion in second] == texts
    assert [completion.text for completion in third] == texts
    assert mock.stats()["requests"] == 24


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("openai/gpt-4o-mini", ("json", "text")),
        ("anthropic/claude-sonnet-4-5", ("json", "text")),
        ("hosted_vllm/unheard-of", ("text",)),
    ],
)
def test_structure_is_offered_where_litellm_knows_of_it(name: str, forms: tuple[str, ...]) -> None:
    assert LitellmModel(name, ModelOptions()).forms == forms


def test_prices_come_from_the_offline_table_and_the_right_provider() -> None:
    entry = load_litellm().model_cost["claude-sonnet-4-5"]
    expected = Price(
        entry["input_cost_per_token"], entry["output_cost_per_token"], entry["cache_read_input_token_cost"]
    )
    assert expected.cached is not None and expected.cached < expected.prompt
    assert LitellmModel("anthropic/claude-sonnet-4-5", ModelOptions()).price() == expected
    assert LitellmModel("hosted_vllm/gpt-4o-mini", ModelOptions()).price() is None


@pytest.mark.parametrize("name", ["ollama/llama3", "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"])
def test_providers_that_can_do_without_variables_are_let_through(name: str) -> None:
    LitellmModel(name, ModelOptions()).check([])


def test_missing_credentials_that_only_show_at_the_call_stop_the_run() -> None:
    with pytest.raises(OperationalError, match="Missing credentials"):
        complete(LitellmModel("azure/gpt-4o", ModelOptions(base_url="http://127.0.0.1:1")), ask())


@pytest.mark.parametrize("name", ["nonsense/model", "litellm/nonsense"])
def test_an_unknown_provider_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no provider that litellm knows"):
        open_model(name)


def test_the_key_is_in_no_record_and_litellm_is_quiet(mock: Mock, capfd: pytest.CaptureFixture[str]) -> None:
    model = behind(mock)
    mock.script({"status": 400, "body": {"error": {"message": "bad"}}})
    with pytest.raises(RejectedError):
        complete(model, ask())
    complete(model, ask())
    assert SECRET not in f"{model!r} {model.parameters(ask())}"
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    assert logging.getLogger("LiteLLM").level == logging.CRITICAL


def test_label_probabilities_come_with_one_label(mock: Mock) -> None:
    model = behind(mock, logprobs=True)
    assert model.forms == ("label", "json", "text")
    model.check([])
    found = complete(model, ask("label", "Label:"))
    assert {"logprobs": True, "top_logprobs": 20}.items() <= mock.last()[1].items()
    assert sorted(found.probabilities.values()) == pytest.approx([0.1, 0.1, 0.1, 0.7], abs=1e-6)


GEMINI = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "2"}]},
            "finishReason": "STOP",
            "logprobsResult": {
                "chosenCandidates": [{"token": "2", "tokenId": 236778, "logProbability": -0.22314355}],
                "topCandidates": [
                    {
                        "candidates": [
                            {"token": "2", "tokenId": 236778, "logProbability": -0.22314355},
                            {"token": "3", "tokenId": 236800, "logProbability": -1.6094379},
                        ]
                    }
                ],
                "logProbabilitySum": -0.22314355,
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6},
    "modelVersion": "gemini-2.5-flash",
}
"""A reply of Gemini's own protocol: .8 of 2, .2 of 3."""


def test_what_gemini_says_reaches_the_labels(monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    server = serve(lambda body: (200, GEMINI))
    model = LitellmModel("gemini/gemini-2.5-flash", ModelOptions(base_url=server.url, logprobs=True))
    model.check([])
    found = complete(model, ask("label"))
    assert (found.text, found.probabilities) == ("2", {"0": 0.0, "1": 0.0, "2": 0.8, "3": 0.2})
    ((_, body),) = server.asked
    assert {"responseLogprobs": True, "logprobs": 20}.items() <= body["generationConfig"].items()


def test_a_provider_without_label_probabilities_is_refused_before_anything_is_sent(monkeypatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with pytest.raises(UsageError, match="gives no label probabilities"):
        LitellmModel("anthropic/claude-sonnet-4-5", ModelOptions(logprobs=True)).check([])


def test_providers_with_clients_of_their_own_are_asked_over_our_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm = load_litellm()
    from litellm.llms.custom_httpx.http_handler import get_async_httpx_client

    names = ("cohere", "replicate", "sagemaker")
    # Outside of our calls, a client is the caller's, as he wants it.
    refusing = {"follow_redirects": False, "timeout": 3.0}
    callers = [get_async_httpx_client(llm_provider=name, params=refusing).client for name in names]
    assert not any(client is litellm.aclient_session or client.follow_redirects for client in callers)
    token = _present.set(_Transmission(ModelOptions()))
    clients = {get_async_httpx_client(llm_provider=name, params=refusing).client for name in names}
    _present.reset(token)
    assert clients == {litellm.aclient_session}
    assert [get_async_httpx_client(llm_provider=name, params=refusing).client for name in names] == callers


def test_loops_of_several_threads_have_connections_of_their_own(mock: Mock) -> None:
    async def ask_often(place: int) -> list[Completion]:
        model = LitellmModel("openai/gpt-4o-mini", ModelOptions(base_url=mock.base_url))
        try:
            return [await model.complete(ask(text=f"{place}-{number}")) for number in range(12)]
        finally:
            await model.aclose()

    with ThreadPoolExecutor(3) as pool:
        answered = list(pool.map(lambda place: asyncio.run(ask_often(place)), range(3)))
    assert [len(answers) for answers in answered] == [12, 12, 12]
