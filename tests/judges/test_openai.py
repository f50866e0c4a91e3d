"""The judge of OpenAI against a real server process on this machine; what it shares with others is in test_server."""

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest

from judge.errors import OperationalError
from judge.judges.backends.openai import OpenAIModel, list_price
from judge.judges.model import ModelOptions, Price
from judge.judges.records import Completion
from tests.mock import Mock, ask, complete

SECRET = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def _environment(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def behind(mock: Mock, name: str = "gpt-4o-mini", **options: Any) -> OpenAIModel:
    return OpenAIModel(name, ModelOptions(**{"base_url": mock.base_url, **options}))


@pytest.mark.parametrize(
    ("omitted", "sent"),
    [
        ((), {"temperature": 0.0, "max_tokens": 1024}),
        # A limit that is refused under one name is sent under the other.
        (("max_tokens",), {"temperature": 0.0, "max_completion_tokens": 1024}),
        (("max_tokens", "temperature"), {"max_completion_tokens": 1024}),
        (("max_completion_tokens", "max_tokens", "temperature"), {}),
    ],
)
def test_what_is_sent_depends_on_no_models_name(mock: Mock, omitted: tuple[str, ...], sent: dict[str, Any]) -> None:
    for name in ("gpt-4o", "o3", "gpt-5-mini", "gpt-6-luna", "omni-x"):
        request = msgspec.structs.replace(ask(), omitted=omitted)
        assert behind(mock, name).parameters(request) == {"model": name, **sent}


def test_an_address_in_the_environment_is_used_and_recorded(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = OpenAIModel("gpt-4o", ModelOptions()).parameters(ask())
    monkeypatch.setenv("OPENAI_BASE_URL", mock.base_url)
    model = OpenAIModel("gpt-4o", ModelOptions())
    assert complete(model, ask()).endpoint == mock.base_url
    assert mock.stats()["requests"] == 1
    assert model.parameters(ask()) == usual


def test_the_key_is_in_no_record(mock: Mock) -> None:
    model = behind(mock)
    complete(model, ask())
    assert SECRET not in f"{model!r} {vars(model)} {model.parameters(ask())}"


def test_cost_is_tokens_times_list_price(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "litellm" / "__init__.py"
    package.parent.mkdir()
    package.touch()
    listed = {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 5e-7}
    prices = {"gpt-x": listed, "embed": {"mode": "embedding"}}
    file = package.with_name("model_prices_and_context_window_backup.json")
    file.write_bytes(msgspec.json.encode(prices))
    found = importlib.util.spec_from_file_location("litellm", package)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    list_price.cache_clear()
    try:
        price = OpenAIModel("gpt-x", ModelOptions()).price()
        assert price == Price(2e-6, 8e-6, 5e-7)
        completion = Completion("", "stop", "gpt-x", prompt_tokens=1000, completion_tokens=50)
        assert price.of(completion) == pytest.approx(1000 * 2e-6 + 50 * 8e-6)
        cached = msgspec.structs.replace(completion, cached_tokens=600)
        assert price.of(cached) == pytest.approx(400 * 2e-6 + 600 * 5e-7 + 50 * 8e-6)
        assert price.of(Completion("", "stop", "gpt-x")) is None
        assert list_price("embed") is None
        assert list_price("unheard-of") is None
        # What another server charges is not in the list.
        assert OpenAIModel("gpt-x", ModelOptions(base_url="http://localhost")).price() is None
        list_price.cache_clear()
        file.write_text("not JSON", encoding="utf-8")
        assert list_price("gpt-x") is None
    finally:
        list_price.cache_clear()


def test_litellms_price_list_is_found_where_it_is_installed() -> None:
    found = list_price("gpt-4o-mini")
    assert 0 < found.prompt < found.completion < 1e-3


def test_label_probabilities_are_asked_for_with_one_short_label(mock: Mock) -> None:
    model = behind(mock, logprobs=True)
    assert model.forms == ("label", "json", "text")
    found = complete(model, ask("label", "Label:"))
    body = mock.last()[1]
    # The longest label has one byte; four tokens may decorate it.
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 5)
    assert "structured_outputs" not in body
    # .63 and .09 of the mass .9 of labels.
    assert found.probabilities[found.text] == pytest.approx(0.7, abs=1e-6)
    assert sorted(found.probabilities.values())[:3] == pytest.approx([0.1] * 3, abs=1e-6)
    # Where the verdict is an object, it is read there; where sentences are labeled, nothing is asked for.
    found = complete(behind(mock, logprobs=True), ask("json"))
    assert found.probabilities is not None
    assert mock.last()[1]["max_tokens"] == 1024
    complete(behind(mock, logprobs=True), ask("json", sentences=2))
    assert "logprobs" not in mock.last()[1]


def test_a_model_without_label_probabilities_ends_the_job(mock: Mock) -> None:
    # OpenAI's own words for some of its models.
    message = "You are not allowed to request logprobs from this model"
    mock.script({"status": 403, "body": {"error": {"message": message, "type": "invalid_request_error"}}})
    with pytest.raises(OperationalError, match="leave out --logprobs"):
        complete(behind(mock, logprobs=True), ask("label"))
