import asyncio
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from judge.ask.account import given_price
from judge.ask.criteria import find_criterion
from judge.ask.questions import inquiry
from judge.ask.records import Unreadable
from judge.errors import AuthenticationError, InputError, RateLimitError, RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore
from judge.extra.checkers.served import INSTRUCTION, ChatChecker
from judge.judges.backends import open_model
from judge.judges.journal_store import request_digest
from judge.judges.model import Model, ModelOptions, Price
from judge.judges.records import NO_SCORE, Completion, Request
from tests.conftest import put
from tests.mock import used
from tests.scoring import ScoreServer, Serve

CRITERION = find_criterion("groundedness/sentences")


def replied(text: str, top: dict[str, float] | None = None, usage: bool = True, **choice: Any) -> dict[str, Any]:
    """A chat completion; `top` are the likeliest first tokens."""
    logprobs = None
    if top is not None:
        likely = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode())} for token, p in top.items()]
        first = {**likely[0], "top_logprobs": likely}
        rest = text.removeprefix(likely[0]["token"]).split(" ")
        later = [{"token": f"{' ' * bool(number)}{word}", "logprob": 0.0} for number, word in enumerate(rest) if word]
        logprobs = {"content": [first, *later]}
    message = {"role": "assistant", "content": text}
    return {
        "id": "c", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs, **choice}],
        **({"usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}} if usage else {}),
    }  # fmt: skip


def scorer(server: ScoreServer, settings: Mapping[str, str], **options: Any) -> ChatChecker:
    checker = ChatChecker("m", ModelOptions(base_url=server.url, **options), settings)
    checker.name = "checker/chat/m"
    checker.check([])
    return checker


def answered(
    server: ScoreServer, *pairs: tuple[str, str], settings: Mapping[str, str] | None = None, **options: Any
) -> tuple[Completion, Sequence[PairScore]]:
    checker = scorer(server, settings or {}, **options)

    checker.pairs = lambda request: list(pairs)  # type: ignore[method-assign]

    async def answer(checker: Any) -> tuple[Completion, Sequence[PairScore]]:
        request = await replied_to(checker, _request())
        return (request.replies or ())[-1], (await checker.answer(request, pairs))[1]

    found: tuple[Completion, Sequence[PairScore]] = used(checker, answer)
    return found


async def replied_to(checker: Model, request: Request) -> Request:
    """A request with what came back for its pairs, as the loop asks for them."""
    talk = inquiry(CRITERION, request, checker.parts(request))
    asked = next(talk)
    while asked.replies is None:
        asked = talk.send(await checker.complete(asked))
    return asked


async def completed(checker: Model, request: Request) -> tuple[Completion, int, int]:
    """What is made of all replies, and the tokens of these."""
    asked = await replied_to(checker, request)
    found = await checker.complete(asked)
    await checker.aclose()
    replies = asked.replies or ()
    return found, sum(r.prompt_tokens or 0 for r in replies), sum(r.completion_tokens or 0 for r in replies)


def scored(server: ScoreServer, *pairs: tuple[str, str], **options: Any) -> Sequence[PairScore]:
    return answered(server, *pairs, **options)[1]


def test_each_pair_is_one_document_and_one_claim(serve: Serve) -> None:
    server = serve(lambda body: (200, replied("Yes", {"Yes": 0.6, "No": 0.2, "Maybe": 0.2})))
    completion, found = answered(server, ("The ferry leaves at noon.", "It leaves at noon."), seed=7)
    # Of the mass of the two answers, .6 of .8 is Yes.
    assert found == [PairScore(0.75)]
    assert (completion.prompt_tokens, completion.completion_tokens) == (10, 2)
    ((path, body),) = server.asked
    assert path == "/v1/chat/completions"
    assert body.pop("messages") == [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": "Document: The ferry leaves at noon.\nClaim: It leaves at noon."},
    ]
    assert body == {
        "model": "m", "temperature": 0.0, "seed": 7, "max_tokens": 7, "logprobs": True, "top_logprobs": 20,
    }  # fmt: skip


@pytest.mark.parametrize(("text", "top", "supports", "decided"), [
    ("No", {"No": 0.9, "Yes": 0.1}, 0.1, False),
    # White space and case of tokens do not matter.
    (" yes", {" yes": 0.5, "No": 0.25, "Yes": 0.25}, 0.75, False),
    # What follows the answer is not read.
    ("Yes. The document says so.", {"Yes": 0.8, "No": 0.2}, 0.8, False),
    # Where the answer is not among the tokens, or the server gives none, it is 1 or 0.
    ("**No**, it does not.", {"**": 1.0}, 0.0, True),
    ("Yes", None, 1.0, True),
    # A fifth of the mass is not shown, and it could be of either.
    ("Yes", {"Yes": 0.6, "No": 0.2}, 1.0, True),
])  # fmt: skip
def test_the_score_is_the_probability_of_yes(serve, text, top, supports, decided) -> None:
    (found,) = scored(serve(lambda body: (200, replied(text, top))), ("p", "s"))
    assert (found.supports, found.decided) == (pytest.approx(supports, abs=1e-6), decided)


def test_a_server_that_refuses_log_probabilities_is_asked_without_them(serve: Serve) -> None:
    def answer(body: Any) -> tuple[int, Any]:
        if "logprobs" in body:
            return 400, {"error": {"message": "logprobs are not supported by this model", "code": 400}}
        return 200, replied("Yes" if "noon" in body["messages"][1]["content"] else "No")

    server = serve(answer)
    pairs = ("p", "It leaves at noon."), ("p", "It leaves at one.")
    assert scored(server, *pairs) == [(1.0, 0.0, True), (0.0, 0.0, True)]
    assert [body.get("top_logprobs") for _, body in server.asked] == [20, 5, None, None]


def test_a_server_that_tells_few_tokens_is_asked_for_few(serve: Serve) -> None:
    def answer(body: Any) -> tuple[int, Any]:
        if body["top_logprobs"] > 5:
            return 400, {"error": {"message": "top_logprobs must be at most 5", "code": 400}}
        return 200, replied("Yes", {"Yes": 0.6, "No": 0.4})

    server = serve(answer)
    assert scored(server, ("p", "a"), ("p", "b")) == [(0.6, 0.0, False)] * 2
    assert [body["top_logprobs"] for _, body in server.asked] == [20, 5, 5]


@pytest.mark.parametrize(("status", "reply", "error", "message"), [
    (200, {"choices": []}, RejectedError, "no choices"),
    (429, {"error": {"message": "slow down"}}, RateLimitError, "slow down"),
    (401, {"error": {"message": "no key"}}, AuthenticationError, "no key"),
])  # fmt: skip
def test_a_refused_or_broken_reply_is_an_error(serve, status, reply, error, message) -> None:
    server = serve(lambda body: (status, reply))
    with pytest.raises(error, match=message):
        scored(server, ("p", "s"))


@pytest.mark.parametrize("text", ["Perhaps.", "Yesterday it rained.", ""])
def test_a_reply_that_is_no_answer_is_no_score(serve: Serve, text: str) -> None:
    server = serve(lambda body: (200, replied(text)))
    completion, scores = answered(server, ("p", "s"), ("p", "t"))
    assert (completion.text, completion.finish_reason, completion.prompt_tokens, scores) == (text, NO_SCORE, 10, ())
    assert len(server.asked) == 1


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "refusal"])
def test_a_call_ends_with_the_first_reply_that_is_no_answer(serve: Serve, reason: str) -> None:
    """The second of four pairs has no answer: two replies of 10 and 2 tokens, and nobody asks the other two."""

    def answer(body: Any) -> tuple[int, Any]:
        bare = "two\nClaim: Dogs" in body["messages"][1]["content"]
        return 200, replied("Maybe so.", finish_reason=reason) if bare else replied("Yes")

    server = serve(answer)
    model = open_model("checker/chat/m", ModelOptions(base_url=server.url))
    text = "Dogs ride free. Tickets cost nine."
    request = replace(_request(), response=text, sentences=2, passages=("one", "two"))

    found, *tokens = asyncio.run(completed(model, request))
    assert len(server.asked) == 2
    assert (found.text, found.support, tokens) == ("Maybe so.", (), [20, 4])
    assert found.raw is None
    talk = inquiry(CRITERION, request)
    assert next(talk) == request
    # There is no second request.
    with pytest.raises(StopIteration) as end:
        talk.send(found)
    verdict = end.value.value.verdict
    assert isinstance(verdict, Unreadable)
    assert verdict.reason == {"content_filter": "content_filter", "refusal": "refused"}.get(reason, "unreadable")


def test_samples_of_one_response_share_no_reply() -> None:
    """Three pairs of each of two samples are six questions."""
    judge = open_model("checker/chat/m", ModelOptions(base_url="http://a:1", temperature=1.0))
    text, labels = "Boats leave. Boats return. Boats sink.", ("supported", "unsupported")
    request = Request("R", "1_1", "groundedness", "json", (), CRITERION.scale, labels, 3, text, ("Boats.",))
    parts = [part for number in (0, 1) for part in judge.parts(replace(request, sample=number)) or ()]
    assert len({request_digest(judge.name, judge.parameters(part), part) for part in parts}) == 6


def test_the_user_may_give_the_instruction_or_none(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body: (200, replied("Yes")))
    file = put(tmp_path / "minicheck.txt", "\N{ZERO WIDTH NO-BREAK SPACE}Is the claim in the document?\n")
    scored(server, ("p", "s"), settings={"instruction": "none"})
    scored(server, ("p", "s"), settings={"instruction": str(file)})
    roles = [[message["role"] for message in body["messages"]] for _, body in server.asked]
    assert roles == [["user"], ["system", "user"]]
    assert server.asked[1][1]["messages"][0]["content"] == "Is the claim in the document?"
    # The text decides, and no record names the folder.
    model = open_model(f"checker/chat/m#instruction={file}@0.6", ModelOptions(base_url=server.url))
    start = hashlib.sha256(b"Is the claim in the document?").hexdigest()[:8]
    assert model.name == f"checker/chat/m#instruction=minicheck.txt~{start}@0.6"
    price = Price(1e-6, 2e-6)
    for priced in (model.name, "checker/chat/m#instruction=minicheck.txt@0.6"):
        assert given_price(model.name, {priced: price}) == price
    assert open_model("checker/chat/m#instruction=none").name == "checker/chat/m#instruction=none"
    assert model.parameters(_request())["instruction"] == "Is the claim in the document?"
    assert str(tmp_path) not in json.dumps(dict(model.parameters(_request())))


def _request() -> Request:
    return Request("R", "1_1", "groundedness", "json", (), CRITERION.scale, CRITERION.scale.labels, 1, "Noon.", ("p",))


def test_tokens_are_summed_and_bare_answers_are_said(serve: Serve) -> None:
    """Two sentences beside two passages are four pairs of 10 and 2 tokens; one has no probability."""

    def answer(body: Any) -> tuple[int, Any]:
        bare = "one\nClaim: Dogs" in body["messages"][1]["content"]
        return 200, replied("No") if bare else replied("Yes", {"Yes": 0.9, "No": 0.1})

    model = open_model("checker/chat/m", ModelOptions(base_url=serve(answer).url))

    request = replace(_request(), response="Dogs ride free. Tickets cost nine.", passages=("one", "two"))
    found, *tokens = asyncio.run(completed(model, request))
    # The replies count their tokens, and what is made of them counts none again.
    assert (tokens, found.prompt_tokens, found.completion_tokens, found.attempts) == ([40, 8], 0, 0, 0)
    assert found.raw is not None
    assert json.loads(found.raw) == {
        "supports, contradicts": {"1": [[0.0, 0.0], [0.9, 0.0]], "2": [[0.9, 0.0], [0.9, 0.0]]},
        "yes or no alone": 1,
    }
    assert found.support == ((0.9, (2,)), (0.9, (1, 2)))


def test_a_pair_that_occurs_twice_is_asked_and_counted_once(serve: Serve) -> None:
    server = serve(lambda body: (200, replied("Yes")))
    model = open_model("checker/chat/m", ModelOptions(base_url=server.url))
    found, *tokens = asyncio.run(completed(model, replace(_request(), response="It rains. It rains.")))
    assert (len(server.asked), tokens) == (1, [10, 2])
    assert found.support == ((1.0, (1,)), (1.0, (1,)))


def test_a_silent_server_gives_no_token_counts(serve: Serve) -> None:
    completion, _ = answered(serve(lambda body: (200, replied("Yes", usage=False))), ("p", "s"))
    assert (completion.prompt_tokens, completion.completion_tokens) == (None, None)


@pytest.mark.parametrize(("name", "options", "error", "message"), [
    ("m", ModelOptions(), UsageError, "checker/chat/m needs --base-url"),
    ("m", ModelOptions(base_url="ftp://a"), UsageError, "must be an address"),
    ("m", ModelOptions(base_url="http://a:1", threads=2), UsageError, "--threads is for local models"),
    ("m", ModelOptions(base_url="http://a:1", reasoning_effort="low"), UsageError, "no room for thoughts"),
    ("m#supports=1", ModelOptions(base_url="http://a:1"), UsageError, "it takes instruction"),
    ("m#instruction=/absent/x.txt", ModelOptions(base_url="http://a:1"), InputError, "/absent/x.txt: cannot be"),
    ("m#instruction=/dev/null", ModelOptions(base_url="http://a:1"), InputError, "/dev/null: cannot be read"),
])  # fmt: skip
def test_what_cannot_work_is_refused_before_anything_is_sent(name, options, error, message) -> None:
    with pytest.raises(error) as raised:
        open_model(f"checker/chat/{name}", options).check([CRITERION])
    assert message in str(raised.value)


@pytest.mark.parametrize(("content", "message"), [(b" \n", "is empty"), (b"\xff", "not UTF-8")])
def test_a_file_without_an_instruction_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = put(tmp_path / "i.txt", content)
    model = open_model(f"checker/chat/m#instruction={file}", ModelOptions(base_url="http://a:1"))
    with pytest.raises(InputError, match=message):
        model.check([CRITERION])


def test_half_an_emoji_is_a_failure_of_its_item(serve: Serve) -> None:
    server = serve(lambda body: (200, replied("Yes")))
    with pytest.raises(RejectedError, match="cannot be sent"):
        scored(server, ("p", "\ud83d"))
