"""How much a model is to think: what is sent for it, who refuses it, and the room that a reply then has."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from judge.ask.account import Settings
from judge.ask.opening import all_options, judging_options, open_judge, open_one
from judge.ask.options import AskingOptions
from judge.errors import OperationalError, UsageError
from judge.extra.scale.ray import RayModel
from judge.judges.backends import open_model
from judge.judges.backends.function import FunctionJudge
from judge.judges.forms import label_tokens
from judge.judges.journal_store import request_digest
from judge.judges.model import Model, ModelOptions, recorded_options, set_by_user
from judge.judges.records import ReasoningEffort
from tests.conftest import complaint, manifest, printed, run_example
from tests.mock import Mock, ask, complete

EFFORTS = get_args(ReasoningEffort)
ADDRESS = "http://localhost:1/v1"
SENT_AS_IT_IS = {"reasoning_effort": True}
ALLOWED = {"reasoning_effort": True, "allowed_openai_params": ["reasoning_effort"]}


@pytest.fixture(autouse=True)
def _environment(no_keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL", "DEEPSEEK", "XAI", "AZURE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("AZURE_API_VERSION", "2026-01-01")


def opened(name: str, **options: Any) -> Model:
    return open_model(name, ModelOptions(base_url=ADDRESS, **options))


def checked(name: str, **options: Any) -> Model:
    return open_one(name, ModelOptions(base_url=ADDRESS, **options), (), Settings())


SENT: dict[str, tuple[str, dict[str, Any]]] = {
    # judge: the efforts that it is sent, and the parameters beside those without one (the effort stands for True)
    "server/gpt-oss-20b": ("none minimal low medium high xhigh", SENT_AS_IT_IS),
    "openai/gpt-5-mini": ("none minimal low medium high xhigh", SENT_AS_IT_IS),
    # litellm knows the efforts of these models.
    "litellm/openai/gpt-5": ("minimal low medium high", SENT_AS_IT_IS),
    "litellm/openai/gpt-5.1": ("none low medium high", SENT_AS_IT_IS),
    "litellm/openai/unheard-of": ("none minimal low medium high xhigh", SENT_AS_IT_IS),
    "litellm/hosted_vllm/qwen3": ("none minimal low medium high xhigh", SENT_AS_IT_IS),
    "litellm/deepseek/deepseek-reasoner": ("none minimal low medium high xhigh", SENT_AS_IT_IS),
    "litellm/gemini/gemini-2.5-flash": ("none minimal low medium high", SENT_AS_IT_IS),
    # Nothing is sent to a Claude for none; for xhigh, it gets a budget of 8,192 tokens.
    "litellm/anthropic/claude-sonnet-4-5": ("minimal low medium high", SENT_AS_IT_IS),
    "litellm/anthropic/claude-opus-4-6": ("minimal low medium high xhigh", SENT_AS_IT_IS),
    # litellm says that these take none, and hands it on if told so.
    "litellm/openai/gpt-4.1-mini": ("none minimal low medium high xhigh", ALLOWED),
    "litellm/xai/grok-3-mini": ("none minimal low medium high xhigh", ALLOWED),
    "litellm/azure/my-deployment": ("none minimal low medium high xhigh", ALLOWED),
    # litellm has one prompt for every effort, or only on and off.
    "litellm/mistral/magistral-medium-2506": ("", {}),
    "litellm/ollama_chat/qwen3": ("none low medium high", SENT_AS_IT_IS),
    "checker/chat/m": ("none", {"reasoning_effort": True}),
}


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("judge", SENT)
def test_an_effort_is_sent_or_refused_and_never_left_out(judge: str, effort: ReasoningEffort) -> None:
    efforts, sent = SENT[judge]
    if effort not in efforts.split():
        with pytest.raises(UsageError, match="effort"):
            checked(judge, reasoning_effort=effort, max_tokens=8192)
        return
    model, plain = checked(judge, reasoning_effort=effort, max_tokens=8192), checked(judge, max_tokens=8192)
    assert "reasoning_effort" in model.required and "reasoning_effort" not in plain.required
    for form in ("json", "text"):
        request = ask(form)
        expected = {name: effort if value is True else value for name, value in sent.items()}
        assert model.parameters(request) == plain.parameters(request) | expected
        digests = {request_digest(each.name, each.parameters(request), request) for each in (model, plain)}
        assert len(digests) == 2


def recorded(messages: list[dict[str, str]]) -> str:
    return "Grade: 1"


@pytest.mark.parametrize("judge", ["baseline/overlap", "checker/overlap", FunctionJudge("my/judge", recorded)])
@pytest.mark.parametrize("effort", ["none", "low"])
def test_a_judge_that_sends_no_effort_refuses_it(judge: str | Model, effort: ReasoningEffort) -> None:
    with pytest.raises(UsageError, match=r"^--reasoning-effort is for chat models .* takes no such parameter$"):
        open_one(judge, ModelOptions(reasoning_effort=effort), (), Settings())
    open_one(judge, ModelOptions(), (), Settings())


def test_a_local_model_and_a_recording_refuse_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run_example(tmp_path / "out", "--criteria", "groundedness", "--model", "baseline/overlap") == 0
    recording = f"replay/{tmp_path}/out/journal.sqlite"
    with pytest.raises(UsageError, match="--reasoning-effort is for chat models"):
        open_one(recording, ModelOptions(reasoning_effort="low"), (), Settings())
    monkeypatch.setattr("judge.judges.backends.local.LocalModel.check", lambda self, criteria: None)
    with pytest.raises(UsageError, match="--reasoning-effort is for chat models"):
        open_one("local/qwen2.5-1.5b", ModelOptions(reasoning_effort="low"), (), Settings())


def test_a_judge_behind_ray_sends_it_as_here() -> None:
    here = opened("server/m", reasoning_effort="high")
    there = RayModel(here, lambda *call: None, lambda: None)  # type: ignore[arg-type, return-value]
    assert there.required == here.required == ("reasoning_effort",)
    assert there.parameters(ask())["reasoning_effort"] == "high"


def test_of_two_judges_that_share_the_criteria_only_one_has_to_think() -> None:
    names, options = ("checker/overlap", "server/m"), ModelOptions(base_url=ADDRESS, reasoning_effort="low")
    judge = open_judge(names, options, (), Settings(), parts={"groundedness": names[0], "naturalness": names[1]})
    assert [model.required for model in judge.models] == [(), ("reasoning_effort",)]
    with pytest.raises(UsageError, match="checker/overlap takes no such parameter"):
        open_judge(names, options, (), Settings())
    both = {"groundedness": "checker/overlap", "naturalness": "baseline/overlap"}
    with pytest.raises(UsageError, match="--model names one"):
        open_judge(tuple(both.values()), msgspec.structs.replace(options, base_url=None), (), Settings(), parts=both)


def test_litellm_sends_what_it_is_handed(mock: Mock) -> None:
    for name, effort in (("openai/unheard-of", "low"), ("openai/gpt-4.1-mini", "none"), ("hosted_vllm/m", "xhigh")):
        model = open_model(f"litellm/{name}", ModelOptions(base_url=mock.base_url, reasoning_effort=effort))
        complete(model, ask("text"))
        assert mock.last()[1]["reasoning_effort"] == effort


def test_a_budget_of_thoughts_has_to_fit_into_the_reply() -> None:
    with pytest.raises(UsageError, match=r"a budget of 1024 tokens for thoughts, .* raise --max-tokens above 1024"):
        checked("litellm/anthropic/claude-sonnet-4-5", reasoning_effort="low", max_tokens=1024)
    checked("litellm/anthropic/claude-sonnet-4-5", reasoning_effort="xhigh", max_tokens=8193)


@pytest.mark.parametrize("effort", [None, *EFFORTS])
def test_a_label_after_thoughts_has_the_room_of_a_reply(effort: ReasoningEffort | None) -> None:
    model = opened("openai/m", logprobs=True, max_tokens=99, reasoning_effort=effort)
    request = ask("label")
    short = effort in (None, "none")
    assert model.parameters(request)["max_tokens"] == (label_tokens(request.labels) if short else 99)


PLAIN = {
    # judge, form, whether probabilities are asked: the digest of one question before there were efforts
    ("server/m", "json", False): "3095f74938cc195f514879f245f4e802da28bae40c79a6eb872deb90db9c969a",
    ("server/m", "label", True): "a3ff3e3142cdf3e31fbf7eb6bc2c1bcc4ee32a926d5a74dbdd9d16bdba715c72",
    ("openai/m", "json", False): "309bf263322d5d2ec87931a6325bccbede898132145a6c43b82debc00bd788a9",
    ("openai/m", "label", True): "1c24b0b09c35d47c1c269509b6e7fb7ab27f03d50dcf1204ee2d061d087f222c",
    ("litellm/openai/gpt-4o-mini", "json", False): "ded208a0cf88219c34614be2821803dc380c4d1e0d726b49d3dde988c7a0b9cb",
    ("litellm/openai/gpt-4o-mini", "label", True): "a6d4c664d8f134517ff3ba8ddaf665b411d8b52bf17d0b39b407d7b1f8b2990e",
}


@pytest.mark.parametrize(("judge", "form", "logprobs"), PLAIN)
def test_without_an_effort_every_digest_is_as_before(judge: str, form: Any, logprobs: bool) -> None:
    model, request = opened(judge, logprobs=logprobs), ask(form)
    assert request_digest(model.name, model.parameters(request), request) == PLAIN[judge, form, logprobs]


def test_an_effort_is_recorded_where_it_is_set() -> None:
    plain, asked = ModelOptions(), ModelOptions(reasoning_effort="none")
    assert "reasoning_effort" not in recorded_options(plain)
    assert recorded_options(asked) == {**recorded_options(plain), "reasoning_effort": "none"}
    assert (set_by_user(plain), set_by_user(asked)) == ((), ("reasoning_effort",))
    assert judging_options(asked, ())["reasoning_effort"] == all_options(asked, ())["reasoning_effort"] == "none"


ROOM = [
    # effort, --max-tokens, tokens of the longest reply
    (None, None, 1024),
    ("none", None, 1024),
    *((effort, None, 8192) for effort in EFFORTS if effort != "none"),
    (None, 300, 300),
    ("high", 300, 300),
    ("none", 20_000, 20_000),
]


@pytest.mark.parametrize(("effort", "longest", "tokens"), ROOM)
def test_thoughts_get_room_where_no_longest_reply_is_named(
    effort: ReasoningEffort | None, longest: int | None, tokens: int
) -> None:
    options = AskingOptions(reasoning_effort=effort, max_tokens=longest).options
    assert (options.max_tokens, options.reasoning_effort) == (tokens, effort)
    assert recorded_options(options)["max_tokens"] == tokens


def run(out: Path, mock: Mock, *more: str) -> int:
    return run_example(out, "--criteria", "groundedness", "--model", "server/a", "--base-url", mock.base_url, *more)


def test_a_run_sends_records_and_forecasts_it(mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    price = ("--price", "0/1000000")
    most = {}
    for more in ((), ("--reasoning-effort", "low"), ("--reasoning-effort", "low", "--max-tokens", "50")):
        (row,) = json.loads(printed(capsys, run(tmp_path / "new", mock, *price, "--dry-run", "--json", *more)))[
            "by_model"
        ]
        most[more] = row["most"] / row["expected"]["calls"]
    # What is counted as a typical reply is longer than 50 tokens.
    assert list(most.values()) == [1024, 8192, 150]
    out = tmp_path / "out"
    assert run(out, mock, "--reasoning-effort", "low") == 0
    sent = mock.last()[1]
    assert (sent["reasoning_effort"], sent["max_tokens"]) == ("low", 8192)
    assert manifest(out)["configuration"]["options"]["reasoning_effort"] == "low"
    assert manifest(out)["asked"]["max_tokens"] == 8192
    capsys.readouterr()
    # Another effort is another judge, and so is none.
    for more, told in (
        (("--reasoning-effort", "high"), '--reasoning-effort: "low" there, "high" now'),
        ((), '--reasoning-effort: "low" there, none now'),
    ):
        assert told in complaint(capsys, run(out, mock, *more))


def test_an_endpoint_that_refuses_it_ends_the_run(
    mock: Mock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"message": "Unrecognized request argument supplied: reasoning_effort", "type": "invalid_request_error"}
    mock.script({"status": 400, "body": {"error": {**refusal, "param": None, "code": None}}})
    assert run(tmp_path / "out", mock, "--reasoning-effort", "low", "--limit", "3") == OperationalError.exit_code
    assert "server/a does not take reasoning_effort, which was set" in capsys.readouterr().err
    assert mock.stats()["requests"] == 1
