"""Label probabilities by the literal bodies of providers, with the arithmetic beside them."""

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.judges import forms
from judge.judges.chat import read_completion
from judge.judges.records import AnswerForm, Completion
from tests.mock import ask

GRADES = ("0", "1", "2", "3")

# Two tokens of a reply "2\n"; the second holds no label. Of the first, .72 + .18 + .045 is of labels: visible .945, of
# which 2 has .72 / .945. Shown in all are .72 + .18 + .045 + .05 = .995, so .005 is hidden.
OPENAI = """{
 "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion", "created": 1741570283,
 "model": "gpt-4.1-mini-2025-04-14", "system_fingerprint": "fp_fc9f1d7035", "service_tier": "default",
 "choices": [{"index": 0, "finish_reason": "stop",
  "message": {"role": "assistant", "content": "2", "refusal": null, "annotations": []},
  "logprobs": {"refusal": null, "content": [
   {"token": "2", "bytes": [50], "logprob": -0.3285040669720361, "top_logprobs": [
    {"token": "2", "bytes": [50], "logprob": -0.3285040669720361},
    {"token": "3", "bytes": [51], "logprob": -1.7147984280919266},
    {"token": "Label", "bytes": [76, 97, 98, 101, 108], "logprob": -2.995732273553991},
    {"token": " 1", "bytes": [32, 49], "logprob": -3.101092789211817},
    {"token": "0", "bytes": [48], "logprob": -9999.0}]}]}}],
 "usage": {"prompt_tokens": 321, "completion_tokens": 1, "total_tokens": 322}}"""

# Held to a choice, vLLM has given all mass to the labels already: .6 + .3 + .1 + 0 = 1.
VLLM = """{
 "id": "chatcmpl-59", "object": "chat.completion", "created": 1741570283, "model": "org/model-7b",
 "system_fingerprint": "vllm-0.32.0-1a2b3c", "kv_transfer_params": null, "prompt_logprobs": null,
 "choices": [{"index": 0, "finish_reason": "stop", "stop_reason": null, "token_ids": null,
  "message": {"role": "assistant", "content": "2", "refusal": null, "reasoning": null, "tool_calls": []},
  "logprobs": {"content": [
   {"token": "2", "bytes": [50], "logprob": -0.5108256237659907, "top_logprobs": [
    {"token": "2", "bytes": [50], "logprob": -0.5108256237659907},
    {"token": "1", "bytes": [49], "logprob": -1.2039728043259361},
    {"token": "3", "bytes": [51], "logprob": -2.3025850929940455},
    {"token": "0", "bytes": [48], "logprob": -9999.0},
    {"token": "!", "bytes": [33], "logprob": -9999.0}]},
   {"token": "<|im_end|>", "bytes": [60, 124, 105, 109, 95, 101, 110, 100, 124, 62], "logprob": 0.0,
    "top_logprobs": []}]}}],
 "usage": {"prompt_tokens": 321, "completion_tokens": 2, "total_tokens": 323}}"""

# llama.cpp shows the mass before the grammar: .5 + .25 of labels, .2 of other words, .03 of a beginning ("-") of none.
LLAMA = """{
 "id": "chatcmpl-7", "object": "chat.completion", "created": 1741570283, "model": "model.gguf",
 "system_fingerprint": "b6510-abcdef12",
 "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "3"},
  "logprobs": {"content": [
   {"id": 18, "token": "3", "bytes": [51], "logprob": -0.6931471805599453, "top_logprobs": [
    {"id": 18, "token": "3", "bytes": [51], "logprob": -0.6931471805599453},
    {"id": 17, "token": "2", "bytes": [50], "logprob": -1.3862943611198906},
    {"id": 785, "token": "The", "bytes": [84, 104, 101], "logprob": -1.6094379124341003},
    {"id": 12, "token": "-", "bytes": [45], "logprob": -3.506557897319982}]}]}}],
 "usage": {"prompt_tokens": 321, "completion_tokens": 2, "total_tokens": 323},
 "timings": {"prompt_n": 321, "cache_n": 0}}"""

BODIES = [
    ("openai", OPENAI, {"0": 0.0, "1": 0.045 / 0.945, "2": 0.72 / 0.945, "3": 0.18 / 0.945}),
    ("vllm", VLLM, {"0": 0.0, "1": 0.3, "2": 0.6, "3": 0.1}),
    ("llama.cpp", LLAMA, {"0": 0.0, "1": 0.0, "2": 0.25 / 0.75, "3": 0.5 / 0.75}),
]


def read(body: str, form: AnswerForm = "label") -> Completion:
    content = body.encode()
    return forms.with_probabilities(read_completion(content, {}, structured=True, latency=0.1), content, ask(form))


@pytest.mark.parametrize(("provider", "body", "expected"), BODIES, ids=[row[0] for row in BODIES])
def test_the_bodies_of_providers(provider: str, body: str, expected: dict[str, float]) -> None:
    found = read(body)
    assert found.probabilities == pytest.approx(expected, abs=1e-6)
    assert math.fsum(expected.values()) == pytest.approx(1)
    # The log probabilities change nothing else of what is read.
    plain = read_completion(body.encode(), {}, structured=True, latency=0.1)
    assert msgspec.structs.replace(found, probabilities=None) == plain


def test_the_choice_that_litellm_makes_of_geminis_reply() -> None:
    # litellm makes this of logprobsResult: chosenCandidates with logProbability, topCandidates with candidates.
    # .8 of 2 and .16 of 3 are .96 of labels, and .04 is hidden: 3 is off by at most .04 / 1.
    place = {"token": "2", "bytes": None, "logprob": math.log(0.8)}
    top = [place, {"token": "3", "bytes": None, "logprob": math.log(0.16)}]
    found = forms.with_probabilities(
        Completion("2", "stop", "m"), {"content": [{**place, "top_logprobs": top}]}, ask("label")
    )
    assert found.probabilities == {"0": 0.0, "1": 0.0, "2": 0.833333, "3": 0.166667}


def log(token: str, share: float) -> forms.LikelyToken:
    return forms.LikelyToken(token, math.log(share) if share else -9999.0)


def place(chosen: str, **shares: float) -> forms.TokenPlace:
    """A place where `chosen` was written; names like `_2` and `quote_2` stand for what Python has no names for."""
    likely = {name.replace("quote_", '"').replace("_", ""): share for name, share in shares.items()}
    likely.setdefault(chosen, 1.0)
    return forms.TokenPlace(chosen, math.log(likely[chosen]), None, [log(*row) for row in likely.items()])


SURE = {"0": 0.0, "1": 0.0, "2": 1.0, "3": 0.0}
PLACES: list[tuple[str, AnswerForm, str, tuple[str, ...], list[forms.TokenPlace], dict[str, float] | None]] = [
    ("case and white space", "label", " Yes", ("yes", "no"),
     [forms.TokenPlace(" Yes", math.log(0.4), None, [log(" Yes", 0.4), log("no", 0.3), log("YES", 0.3)])],
     {"yes": 0.7, "no": 0.3}),
    ("a line break before the label: .25 + .75 (.6) of 2, .75 (.4) of 3", "label", "\n2", GRADES,
     [forms.TokenPlace("\n", math.log(0.75), None, [log("\n", 0.75), log("2", 0.25)]), place("2", _2=0.6, _3=0.4)],
     {"0": 0.0, "1": 0.0, "2": 0.7, "3": 0.3}),
    ("all mass is shown but too little of labels", "label", "2", GRADES, [place("2", _2=0.45, The=0.55)], None),
    ("one token is shown and .1 hidden", "label", "2", GRADES, [place("2", _2=0.9)], None),
    ("one token is shown and .04 hidden", "label", "2", GRADES, [place("2", _2=0.96)], SURE),
    ("no distribution: more than 1 in all", "label", "2", GRADES, [place("2", _2=0.9, _3=0.9)], None),
    ("the reply is no label", "label", "Label: 2", GRADES, [place("Label"), place(": "), place("2")], None),
    ("two tokens of a label, the other visible as a whole: .6 (.9), .3", "label", "partly", ("partly", "no"),
     [place("part", part=0.6, no=0.4), place("ly", ly=0.9, ial=0.1)],
     {"partly": 0.54 / 0.94, "no": 0.4 / 0.94}),
    ("the beginning of a label that was not chosen hides .3", "label", "no", ("partly", "no"),
     [place("no", no=0.7, part=0.3)], None),
    ("1 may be the beginning of 10", "label", "1", ("1", "10"), [place("1", _1=0.6, _10=0.4)], None),
    ("1 was written, and nothing says where it ends", "label", "1", ("1", "10"), [place("1", _1=0.2, _10=0.8)], None),
    ("a token that ends before the value hides .3", "json", '{"grade":"2"}', GRADES,
     [place('{"grade'), forms.TokenPlace('":"2', math.log(0.7), None, [log('":"2', 0.7), log('"', 0.3)]), place('"}')],
      None),
    ("10 is no beginning, and 1 is of mass .02 only", "label", "10", ("1", "10"), [place("10", _10=0.98, _1=0.02)],
     {"1": 0.0, "10": 1.0}),
    ("an object", "json", '{"rationale": "2", "grade": "2"}', GRADES,
     [place('{"rationale": "2", "'), place("grade"), place('":'), place(' "'), place("2", _2=0.6, _3=0.3, _9=0.1),
      place('"}')],
     {"0": 0.0, "1": 0.0, "2": 0.666667, "3": 0.333333}),
    ("the colon and the quotation mark are one token with the key", "json", '{"grade":"2"}', GRADES,
     [place('{"'), place("grade"), place('":"'), place("2", _2=0.6, _3=0.4), place('"}')],
     {"0": 0.0, "1": 0.0, "2": 0.6, "3": 0.4}),
    ("a token with a quotation mark and a label", "json", '{"grade":"2"}', GRADES,
     [place('{"grade":'), place('"2', quote_2=0.7, quote_3=0.3), place('"}')],
     {"0": 0.0, "1": 0.0, "2": 0.7, "3": 0.3}),
    ("a number without quotation marks", "json", '{"grade": 2}', GRADES,
     [place('{"grade":'), forms.TokenPlace(" 2", math.log(0.7), None, [log(" 2", 0.7), log(' "2"', 0.2),
       log(" 1", 0.1)]), place("}")],
     {"0": 0.0, "1": 0.1, "2": 0.9, "3": 0.0}),
    ("1 is ended by its quotation mark", "json", '{"grade":"1"}', ("1", "10"),
     [place('{"grade":"'), place("1", _1=0.8, _10=0.2), forms.TokenPlace('"', math.log(1.0), None, [log('"', 1.0)]),
      place("}")],
     {"1": 0.8, "10": 0.2}),
    ("the key is quoted in the reasons", "json", '{"rationale": "\\"grade\\": \\"3\\"", "grade": "2"}', GRADES,
     [place('{"rationale": "\\"grade\\": \\"3\\"", "grade": "'), place("2", _2=1.0), place('"}')], SURE),
    ("two grades", "json", '{"grade": "2", "more": {"grade": "2"}}', GRADES,
     [place('{"grade": "'), place("2"), place('", "more": {"grade": "'), place("2"), place('"}}')], None),
    ("no object", "json", "2", GRADES, [place("2")], None),
    ("thoughts before the reply", "label", "2", GRADES,
     [place("3"), place("</think>"), place("2", _2=0.6, _3=0.4)], {"0": 0.0, "1": 0.0, "2": 0.6, "3": 0.4}),
    ("tokens of another reply", "label", "2", GRADES, [place("3")], None),
    ("no tokens", "label", "2", GRADES, [], None),
]  # fmt: skip


@pytest.mark.parametrize(("what", "form", "text", "labels", "places", "expected"), PLACES, ids=[p[0] for p in PLACES])
def test_the_place_of_the_verdict(what, form, text, labels, places, expected) -> None:
    found = forms.verdict_probabilities(places, text, labels, form)
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-6)


@given(
    shares=st.lists(st.floats(0.001, 1), min_size=6, max_size=6), top=st.integers(1, 6), chosen=st.sampled_from(GRADES)
)
def test_no_probability_is_further_off_than_is_said(shares: list[float], top: int, chosen: str) -> None:
    names = (*GRADES, "The", "A")
    truth = {name: share / math.fsum(shares) for name, share in zip(names, shares, strict=True)}
    shown = sorted(truth.items(), key=lambda row: -row[1])[:top]
    found = forms.verdict_probabilities(
        [forms.TokenPlace(chosen, math.log(truth[chosen]), None, [log(*row) for row in shown])], chosen, GRADES, "label"
    )
    mass = math.fsum(truth[label] for label in GRADES)
    if found is not None:
        assert mass >= forms.LEAST_VISIBLE
        assert all(abs(found[label] - truth[label] / mass) <= forms.MOST_OFF + 1e-6 for label in GRADES)
    elif top == len(names):
        assert mass < forms.LEAST_VISIBLE


@pytest.mark.parametrize(
    "logprobs",
    [
        None, "yes", {"content": None}, {"content": [{"token": "2"}]},
        {"content": [{"token": "2", "logprob": "high", "top_logprobs": []}]},
        {"content": [{"token": "2", "logprob": 0.0, "bytes": [999], "top_logprobs": [{}]}]}, {"content": 3}, {},
    ],
)  # fmt: skip
def test_what_is_no_such_list_costs_no_grade(logprobs: Any) -> None:
    body = json.loads(OPENAI)
    body["choices"][0]["logprobs"] = logprobs
    found = read(json.dumps(body))
    assert (found.text, found.probabilities) == ("2", None)
    assert forms.with_probabilities(found, logprobs, ask("label")) == found


def test_what_is_asked_for() -> None:
    asked = {"logprobs": True, "top_logprobs": 20}
    assert forms.asked_logprobs(ask("label")) == forms.asked_logprobs(ask("json")) == asked
    assert forms.asked_logprobs(ask("text")) == forms.asked_logprobs(ask("json", sentences=2)) == {}
    assert forms.label_tokens(("yes", "no")) == 3 + 4


def test_bytes_that_are_no_bytes_leave_the_text_of_the_token() -> None:
    places: Sequence[forms.TokenPlace] = [forms.TokenPlace("2", 0.0, [999])]
    assert forms.verdict_probabilities(places, "2", GRADES, "label") == SURE
