"""The two contracts: what is sent, and what is read of a reply, as literal JSON."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.extra.decisions.contracts import CallCounts, Contract, OpenAIContract, SystemOneContract, counts_of
from judge.extra.decisions.questions import DecisionQuestion

GRADE = DecisionQuestion("score", "How good?", (("0", "Bad."), ("1", None), ("2", "Good.")))
TRUE = DecisionQuestion("predicate", "Is it?", (("yes", "It is."), ("no", "It is not.")))
ONE_OF = DecisionQuestion("choice", "Which?", (("a", "First."), ("b", None)))
ASKED = [GRADE, TRUE, ONE_OF]

OPENAI = {
    "model": "m",
    "input": "The material.",
    "questions": [
        {"name": "q1", "type": "score", "instructions": "How good?", "levels": [
            {"label": "0", "description": "Bad."}, {"label": "1"}, {"label": "2", "description": "Good."}]},
        {"name": "q2", "type": "predicate",
         "instructions": "Is it?\n\nTrue means yes: It is.\nFalse means no: It is not."},
        {"name": "q3", "type": "choice", "instructions": "Which?", "choices": [
            {"value": "a", "description": "First."}, {"value": "b"}]},
    ],
}  # fmt: skip
SYSTEM_ONE = {
    "model": "m",
    "state": "The material.",
    "questions": {
        "q1": {"type": "score", "instructions": "How good?", "criteria": ["0: Bad.", "1", "2: Good."]},
        "q2": {
            "type": "noul",
            "instructions": "Is it?",
            "criteria": {"true": "yes: It is.", "false": "no: It is not."},
        },
        "q3": {"type": "choice", "instructions": "Which?", "criteria": {"a": "First.", "b": None}},
    },
}


@pytest.mark.parametrize(("contract", "path", "sent"), [
    (OpenAIContract(), "/decisions", OPENAI),
    (SystemOneContract(), "/systemone", SYSTEM_ONE),
])  # fmt: skip
def test_what_is_sent(contract: Contract, path: str, sent: dict[str, Any]) -> None:
    assert contract.path == path
    assert contract.body("m", "The material.", ASKED) == sent


SCORED = {"type": "score", "name": "q1", "score": 1.4, "confidence": 0.5, "probabilities": [
    {"label": "0", "value": 0, "probability": 0.1}, {"label": "1", "value": 1, "probability": 0.4},
    {"label": "2", "value": 2, "probability": 0.5}]}  # fmt: skip
PREDICATED = {"type": "predicate", "name": "q2", "probability": 0.75}
CHOSEN = {"type": "choice", "name": "q3", "choice": "b", "confidence": 0.8, "probabilities": [
    {"value": "a", "probability": 0}, {"value": "b", "probability": 1}]}  # fmt: skip
MASSES = [{"0": 0.1, "1": 0.4, "2": 0.5}, {"yes": 0.75, "no": 0.25}, {"a": 0, "b": 1}]


@pytest.mark.parametrize("answers", [[SCORED, PREDICATED, CHOSEN], [CHOSEN, SCORED, PREDICATED]])
def test_answers_of_openai_go_by_their_names(answers: list[Any]) -> None:
    found = OpenAIContract().answers({"model": "m", "answers": answers}, ASKED)
    assert found is not None
    assert [each.masses for each in found] == MASSES
    assert [each.said for each in found] == [SCORED, PREDICATED, CHOSEN]


@pytest.mark.parametrize("answer", [
    None,
    {"type": "score", "name": "q1"},
    {"type": "choice", "name": "q1", "probabilities": SCORED["probabilities"]},
    {**SCORED, "name": "q7"},
    {**SCORED, "name": None},
    {**SCORED, "probabilities": SCORED["probabilities"][:2]},
    {**SCORED, "probabilities": [*SCORED["probabilities"], {"label": "3", "value": 3, "probability": 0.0}]},
    {**SCORED, "probabilities": [*SCORED["probabilities"], SCORED["probabilities"][0]]},
    {**SCORED, "probabilities": [{"label": "0", "probability": 0}, {"label": "1", "probability": 0},
                                 {"label": "2", "probability": 0}]},
    {**SCORED, "probabilities": [{"label": "0", "probability": -0.1}, {"label": "1", "probability": 0.6},
                                 {"label": "2", "probability": 0.5}]},
    {**SCORED, "probabilities": [{"label": "0", "probability": "0.5"}, {"label": "1", "probability": 0.5},
                                 {"label": "2", "probability": 0.5}]},
    {**SCORED, "probabilities": [{"label": "0", "probability": True}, {"label": "1", "probability": 0.5},
                                 {"label": "2", "probability": 0.5}]},
])  # fmt: skip
def test_an_answer_of_openai_that_says_too_little_says_nothing(answer: Any) -> None:
    (found,) = OpenAIContract().answers({"answers": [answer]}, [GRADE]) or [None]
    assert found is not None
    assert (found.masses, found.refused) == (None, False)


@pytest.mark.parametrize("probability", [None, -0.1, 1.1, "0.5", True])
def test_a_predicate_without_a_probability_says_nothing(probability: Any) -> None:
    reply = {"answers": [{"type": "predicate", "name": "q1", "probability": probability}]}
    (found,) = OpenAIContract().answers(reply, [TRUE]) or [None]
    assert found is not None and found.masses is None


def test_a_refusal_is_one_of_its_question_alone() -> None:
    found = OpenAIContract().answers({"answers": [{"type": "refusal", "name": "q1"}, PREDICATED, CHOSEN]}, ASKED)
    assert found is not None
    assert [each.refused for each in found] == [True, False, False]
    assert [each.masses for each in found] == [None, *MASSES[1:]]


def test_a_name_that_is_given_twice_names_no_answer() -> None:
    found = OpenAIContract().answers({"answers": [SCORED, SCORED, PREDICATED]}, ASKED)
    assert found is not None
    assert [each.masses for each in found] == [None, MASSES[1], None]


ONE_SCORED = {"type": "score", "score": 1.4, "confidence": 0.5, "legend": {"0": "0: Bad.", "1": "1", "2": "2: Good."},
              "probabilities": {"2": 0.5, "0": 0.1, "1": 0.4}}  # fmt: skip
NOUL = {"type": "noul", "noul": 0.75}
ONE_CHOSEN = {"type": "choice", "choice": "b", "confidence": 0.8, "probabilities": {"a": 0, "b": 1}}


def test_answers_of_system_one_stand_under_their_names() -> None:
    found = SystemOneContract().answers({"answers": {"q3": ONE_CHOSEN, "q1": ONE_SCORED, "q2": NOUL}}, ASKED)
    assert found is not None
    assert [each.masses for each in found] == MASSES
    assert [each.said for each in found] == [ONE_SCORED, NOUL, ONE_CHOSEN]


@pytest.mark.parametrize("answer", [
    None,
    {"type": "score", "score": 1.4},
    {"type": "choice", "probabilities": ONE_SCORED["probabilities"]},
    {**ONE_SCORED, "probabilities": {"0": 0.1, "1": 0.9}},
    {**ONE_SCORED, "probabilities": {"0: Bad.": 0.1, "1": 0.4, "2: Good.": 0.5}},
    {**ONE_SCORED, "probabilities": [0.1, 0.4, 0.5]},
])  # fmt: skip
def test_an_answer_of_system_one_that_says_too_little_says_nothing(answer: Any) -> None:
    (found,) = SystemOneContract().answers({"answers": {"q1": answer}}, [GRADE]) or [None]
    assert found is not None and found.masses is None


def test_a_question_that_system_one_leaves_out_has_no_answer() -> None:
    found = SystemOneContract().answers({"answers": {"q2": NOUL, "q3": {"type": "refusal"}}}, ASKED)
    assert found is not None
    assert [(each.masses, each.refused) for each in found] == [(None, False), (MASSES[1], False), (None, True)]


@pytest.mark.parametrize(("contract", "reply"), [
    (OpenAIContract(), {"model": "m"}),
    (OpenAIContract(), {"answers": {"q1": ONE_SCORED}}),
    (OpenAIContract(), [SCORED]),
    (OpenAIContract(), None),
    (SystemOneContract(), {"error": "no"}),
    (SystemOneContract(), {"answers": [SCORED]}),
])  # fmt: skip
def test_a_reply_without_answers_has_none(contract: Contract, reply: Any) -> None:
    assert contract.answers(reply, ASKED) is None


@pytest.mark.parametrize(("usage", "counts"), [
    ({"input_tokens": 20, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0}},
     (20, 0, 8)),
    ({"input_tokens": 20, "output_tokens": 3}, (20, 3, None)),
    ({"input_tokens": "20", "output_tokens": 1.5}, (None, None, None)),
    (None, (None, None, None)),
])  # fmt: skip
def test_tokens_are_what_the_reply_counts(usage: Any, counts: tuple[int | None, ...]) -> None:
    assert counts_of({"usage": usage}) == CallCounts(*counts)


SAID = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["q1", "score", "noul", "refusal"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["answers", "name", "q1", "type", "probabilities", "label", "value", "probability", "0"]),
            inner,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("contract", [OpenAIContract(), SystemOneContract()])
@given(reply=SAID)
def test_any_json_is_answers_or_none(contract: Contract, reply: Any) -> None:
    for said in (reply, {"answers": reply}, {"answers": [reply]}, {"answers": {"q1": reply}}):
        found = contract.answers(said, [GRADE])
        assert found is None or (
            len(found) == 1 and (found[0].masses is None or set(found[0].masses) == {"0", "1", "2"})
        )
        counts_of(said)
