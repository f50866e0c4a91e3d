import asyncio
import json
from typing import Any

import pytest

from judge.ask.criteria import find_criterion
from judge.ask.prompt import render
from judge.ask.questions import inquiry, outcome
from judge.ask.records import Failure, Judgment, SentenceSupport, Task
from judge.errors import RejectedError, TransientError, UsageError
from judge.extra.checkers.checkers import PairScore, claims
from judge.extra.checkers.served import ServerChecker
from judge.judges.backends import open_model
from judge.judges.model import ModelOptions
from judge.judges.records import Completion
from judge.pool.records import PooledResponse
from judge.records import Passage
from tests.build import pooled
from tests.mock import used
from tests.scoring import Serve

CRITERION = find_criterion("groundedness/sentences")
PASSAGES = {
    "p1": Passage("p1", "The ferry leaves the pier at noon.", "collection"),
    "p2": Passage("p2", "Tickets cost nine crowns on board.", "collection"),
}
TEXT = "The ferry leaves at noon. Tickets cost nine crowns. Dogs ride free. Shall I book?"


def response(text: str = TEXT) -> PooledResponse:
    return pooled("R1", "1-1_1", "x", text=text, passages=("p1", "p2"))


def judged(name: str, text: str = TEXT, options: ModelOptions | None = None) -> Judgment | Failure:
    model = open_model(name, options or ModelOptions())
    model.check([CRITERION])
    task = Task(response(text), CRITERION)

    async def ask() -> Judgment | Failure:
        request = render(task, PASSAGES, None, "json")
        talk = inquiry(CRITERION, request)
        next(talk)
        completion: Completion = await model.complete(request)
        await model.aclose()
        with pytest.raises(StopIteration) as stop:
            talk.send(completion)
        return outcome(task, stop.value.value, model.name, "d")

    return asyncio.run(ask())


def test_each_sentence_is_set_beside_each_passage() -> None:
    found = judged("checker/overlap")
    assert isinstance(found, Judgment)
    assert found.sentences == ("supported", "supported", "unsupported", "no_claim")
    assert found.support == (
        # ferry, leaves, noon: all three in p1. Tickets, cost, nine, crowns: all four in p2.
        SentenceSupport(("p1",), 1.0),
        SentenceSupport(("p2",), 1.0),
        SentenceSupport((), 0.0),
        SentenceSupport((), None),
    )
    # Two of three claims: the cut of grade 2, and as sure as the scores are.
    assert (found.grade, found.expected) == (2, 2.0)


def test_a_claim_that_two_passages_bear_out_only_together_is_unsupported() -> None:
    """Of ferry, leaves, noon, nine, crowns, p1 holds three fifths and p2 two."""
    text = "The ferry leaves at noon for nine crowns."
    assert judged("checker/overlap@0.7", text).sentences == ("unsupported",)  # type: ignore[union-attr]
    at_threshold = judged("checker/overlap@0.6", text)
    assert isinstance(at_threshold, Judgment)
    assert at_threshold.support == (SentenceSupport(("p1",), 0.6),)


def test_the_likeliest_passage_comes_first() -> None:
    """Of ferry, tickets, cost and nine, p1 holds one and p2 three."""
    found = judged("checker/overlap@0.2", "Ferry tickets cost nine.")
    assert isinstance(found, Judgment)
    assert found.support == (SentenceSupport(("p2", "p1"), 0.75),)


def test_a_language_model_brings_no_support_in_its_reply() -> None:
    """Whatever a reply says beside the labels, it moves neither the expected grade nor the citations."""
    entry = {"label": "unsupported", "probability": 1.0, "passages": [1, 2]}
    text = json.dumps({"sentences": [{"n": number, **entry} for number in (1, 2, 3, 4)]})
    task = Task(response(), CRITERION)
    talk = inquiry(CRITERION, render(task, PASSAGES, None, "json"))
    next(talk)
    with pytest.raises(StopIteration) as stop:
        talk.send(Completion(text=text, finish_reason="stop", model="m"))
    found = outcome(task, stop.value.value, "server/m", "d")
    assert isinstance(found, Judgment)
    assert (found.grade, found.expected, found.support) == (0, None, ())


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [("Dogs ride free.", True), ("Shall I book?", False), ('He asked: "Why?"', False), ("So it is.", False)],
)
def test_questions_and_empty_words_claim_nothing(sentence: str, claim: bool) -> None:
    assert claims(sentence) is claim


def test_a_response_of_questions_alone_is_unable() -> None:
    found = judged("checker/overlap", "Which day? Which pier?")
    assert isinstance(found, Judgment)
    assert (found.unable, found.sentences) == (True, ("no_claim", "no_claim"))


@pytest.mark.parametrize(("name", "message"), [
    ("checker/overlop", "no checker called 'overlop'; did you mean overlap"),
    ("checker/overlap/x", "no checker called 'overlap/x'"),
    ("checker/server", "no checker called 'server'"),
    ("checker/overlap@0", "threshold '0' of a checker: expected a number above 0 and up to 1"),
    ("checker/overlap@nan", "threshold 'nan' of a checker"),
    ("checker/overlap@half", "threshold 'half' of a checker"),
])  # fmt: skip
def test_a_name_that_is_no_checker_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match="checker") as error:
        open_model(name)
    assert message in str(error.value)


@pytest.mark.parametrize(("prompt", "advice"), [
    ("groundedness/graded", "add --prompt groundedness/sentences"),
    ("naturalness/graded", "add --prompt groundedness/sentences"),
    ("nugget/graded", "baseline/overlap matches nuggets"),
])  # fmt: skip
def test_other_prompts_are_refused_with_advice_that_can_be_followed(prompt: str, advice: str) -> None:
    with pytest.raises(UsageError, match=f"cannot be asked {prompt}: {advice}"):
        open_model("checker/overlap").check([find_criterion(prompt)])


@pytest.mark.parametrize(("options", "message"), [
    (ModelOptions(), "needs --base-url with its path, such as http://localhost:8000/score"),
    (ModelOptions(base_url="http://localhost:8000/v1"), "expected an address that says what it serves"),
])  # fmt: skip
def test_a_server_needs_an_address_that_says_what_it_serves(options: ModelOptions, message: str) -> None:
    with pytest.raises(UsageError) as error:
        open_model("checker/server/m", options).check([CRITERION])
    assert message in str(error.value)


def test_vllm_is_asked_pair_by_pair(serve: Serve) -> None:
    """Rows come in any order; the index says which pair each is."""
    scores = {"ferry": 0.9, "Tickets": 0.2, "Dogs": 0.5}

    def answer(body: Any) -> tuple[int, Any]:
        rows = [
            {
                "index": at,
                "object": "score",
                "score": scores[sentence.split()[0].replace("The", "ferry")] if "pier" in passage else 0.1,
            }
            for at, (passage, sentence) in enumerate(zip(body["text_1"], body["text_2"], strict=True))
        ]
        return 200, {"id": "score-1", "data": rows[::-1], "model": body["model"]}

    server = serve(answer)
    found = judged("checker/server/org/name@0.5", options=ModelOptions(base_url=f"{server.url}/score"))
    assert isinstance(found, Judgment)
    assert found.judge == "checker/server/org/name@0.5"
    assert found.sentences == ("supported", "unsupported", "supported", "no_claim")
    assert [one.probability for one in found.support] == [0.9, 0.2, 0.5, None]
    # None to three of the three claims are supported with these chances; their grades are 0, 1, 2 and 3.
    none, three = 0.1 * 0.8 * 0.5, 0.9 * 0.2 * 0.5
    one_alone = 0.9 * 0.8 * 0.5 + 0.1 * 0.2 * 0.5 + 0.1 * 0.8 * 0.5
    assert found.expected == pytest.approx(1 * one_alone + 2 * (1 - none - one_alone - three) + 3 * three)
    ((path, body),) = server.asked
    assert (path, body["model"]) == ("/score", "org/name")
    assert (body["text_1"][:2], body["text_2"][:2]) == (
        [PASSAGES["p1"].text, PASSAGES["p2"].text],
        ["The ferry leaves at noon."] * 2,
    )


def test_labels_of_an_entailment_model_tell_contradiction_from_absence(serve: Serve) -> None:
    def answer(body: Any) -> tuple[int, Any]:
        rows = {"The": (0.8, 0.1), "Tickets": (0.1, 0.7), "Dogs": (0.2, 0.3)}
        replies = []
        for _passage, sentence in body["inputs"]:
            supports, contradicts = rows[sentence.split()[0]]
            neutral = {"label": "neutral", "score": 1 - supports - contradicts}
            replies.append(
                [neutral, {"label": "ENTAILMENT", "score": supports}, {"label": "contradiction", "score": contradicts}]
            )
        return 200, replies

    server = serve(answer)
    found = judged("checker/server/nli", options=ModelOptions(base_url=f"{server.url}/predict"))
    assert isinstance(found, Judgment)
    assert found.sentences == ("supported", "contradicted", "unsupported", "no_claim")


def test_a_score_just_below_the_threshold_is_not_rounded_up_to_it(serve: Serve) -> None:
    server = serve(
        lambda body: (200, {"data": [{"index": n, "score": 0.4999999} for n, _ in enumerate(body["text_1"])]})
    )
    found = judged("checker/server/m", "Dogs ride free.", ModelOptions(base_url=f"{server.url}/score"))
    assert isinstance(found, Judgment)
    assert (found.sentences, found.support) == (("unsupported",), (SentenceSupport((), 0.5),))


def test_many_pairs_take_several_requests(serve: Serve) -> None:
    """40 sentences beside one passage are 40 pairs, 32 of them in the first request."""
    server = serve(lambda body: (200, {"data": [{"index": n, "score": 0.5} for n, _ in enumerate(body["text_1"])]}))
    scorer = ServerChecker("m", ModelOptions(base_url=f"{server.url}/score"), {})
    pairs = [("p", f"s{number}") for number in range(40)]
    assert used(scorer, lambda scorer: scorer.score(pairs)) == [PairScore(0.5)] * 40
    assert [len(body["text_1"]) for _, body in server.asked] == [32, 8]


@pytest.mark.parametrize(("path", "status", "reply", "error", "message"), [
    ("score", 200, {"data": [{"index": 0, "score": 4.2}]}, RejectedError,
     "Expected `float` <= 1.0 - at `$.data[0].score`; it begins"),
    ("score", 200, {"data": [{"index": 0, "score": True}]}, RejectedError,
     "Expected `float`, got `bool` - at `$.data[0].score`"),
    ("score", 200, {"data": [{"index": n, "score": 0.1} for n in (0, 1)]}, RejectedError,
     "2 scores came back for 1 pairs"),
    ("score", 200, {"data": [{"index": 7, "score": 0.1}]}, RejectedError, "not numbered from 0 to 0, each once"),
    ("score", 200, {"data": [{"index": 0, "score": 0.1}] * 2}, RejectedError, "not numbered from 0 to 1"),
    ("score", 200, {"scores": [0.1]}, RejectedError, 'missing required field `data`; it begins'),
    ("score", 200, b"<html>", RejectedError, "JSON is malformed: invalid character (byte 0); it begins '<html>'"),
    ("score", 500, {"error": {"message": "boom"}}, TransientError, "boom"),
    ("predict", 200, [[{"label": "LABEL_0", "score": 0.1}, {"label": "LABEL_1", "score": 0.9}]], RejectedError,
     "none or several of the model's labels mean support: label_0, label_1"),
    ("predict", 200, [{"label": "x", "score": 0.1}], RejectedError, "Expected `array`, got `object`"),
    ("predict", 200, [["x"]], RejectedError, "Expected `object`, got `str` - at `$[0][0]`"),
])  # fmt: skip
def test_a_reply_that_is_no_score_is_an_error_and_never_a_grade(serve, path, status, reply, error, message) -> None:
    server = serve(lambda body: (status, reply))
    scorer = ServerChecker("m", ModelOptions(base_url=f"{server.url}/{path}"), {})
    with pytest.raises(error) as raised:
        used(scorer, lambda scorer: scorer.score([("passage", "sentence")]))
    assert message in str(raised.value)
