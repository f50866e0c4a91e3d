"""The base class of judges, the facts of backends, by which alone a judge is treated, and a function as a judge."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import judge
from judge.ask.account import given_price
from judge.errors import UsageError
from judge.judges.backends import BACKENDS, backend_facts
from judge.judges.model import FREE, Model, Price
from tests.ask.test_returned import notes
from tests.conftest import annex
from tests.mock import ask

pytestmark = pytest.mark.fast

WITH_FACTS = ("scale.service", "scale")
"""Modules of annexes that go by the facts of a backend."""


@pytest.mark.parametrize("backend", ["baseline", "checker", "litellm", "local", "openai", "server"])
def test_a_copy_of_a_backend_is_treated_alike(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offers, requests = map(annex, WITH_FACTS)
    copy = f"{backend}-2"
    monkeypatch.setitem(BACKENDS, copy, BACKENDS[backend])

    def treated(name: str) -> list[object]:
        judge = f"{name}/anthropic/m"
        try:
            offer: object = offers.offer_of(judge)
        except UsageError as error:
            offer = str(error)
        return [
            notes(judge, "another"), given_price(judge, {"anthropic/m": FREE}), offer,
            requests.OpenQuestion("d", judge, {"model": "anthropic/m"}, ask()).model,
            backend_facts(judge),
        ]  # fmt: skip

    assert str(treated(copy)).replace(f"{copy}/", f"{backend}/") == str(treated(backend))


def test_a_judge_needs_no_more_than_a_name_and_complete() -> None:
    model = Model()
    request = ask()
    model.check([])
    model.prepare(lambda step, done, total: None)
    assert (model.sent(request), model.parts(request), model.endpoint, model.limits) == (None, None, None, None)
    assert not (model.free or model.uses_cores)
    with pytest.raises(NotImplementedError):
        model.parameters(request)

    model.free = True
    assert model.price() == FREE == Price(0.0, 0.0)


async def slowly(messages: list[dict[str, str]]) -> int:
    await asyncio.sleep(0)
    return 2


def broken(messages: list[dict[str, str]]) -> str:
    raise ValueError("no such\nword")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda messages: "Fine.\nGrade: 2", "Fine.\nGrade: 2"),
        (lambda messages: 2, "Grade: 2"),
        (slowly, "Grade: 2"),
        (lambda messages: slowly(messages), "Grade: 2"),
        (lambda messages: 7, "Grade: 7"),
        (lambda messages: messages[-1]["role"], "user"),
        (lambda messages: next(iter(())), "mine/v1: StopIteration"),
        (broken, "mine/v1: ValueError: no such word"),
        # A grade in any form that Python has for one.
        (lambda messages: 2.0, "Grade: 2"),
        (lambda messages: numpy.float32(2), "Grade: 2"),
        (lambda messages: numpy.int64(2), "Grade: 2"),
        (lambda messages: "2", "Grade: 2"),
        (lambda messages: numpy.str_("2"), "Grade: 2"),
        (lambda messages: numpy.str_("Fine.\nGrade: 2"), "Fine.\nGrade: 2"),
        (lambda messages: {"grade": 2}, "Grade: 2"),
        (lambda messages: {"grade": "2", "rationale": "It reads\nwell."}, "It reads well.\nGrade: 2"),
        (lambda messages: (2, "why"), "why\nGrade: 2"),
        (lambda messages: [2.0, None], "Grade: 2"),
        (lambda messages: '{"rationale": "x", "grade": "2"}', "x\nGrade: 2"),
        (lambda messages: "2.0", "Grade: 2"),
        # And what is none.
        (lambda messages: 2.5, "2.5 is no grade: expected a whole number"),
        (lambda messages: float("nan"), "nan is no grade: expected a whole number"),
        (lambda messages: None, "None, but the scale has no level for what cannot be judged"),
        (lambda messages: {"score": 2}, "a mapping without grade: {'score': 2}"),
        (lambda messages: (1, 2, 3), "expected a grade and its rationale: (1, 2, 3)"),
        (lambda messages: b"2", "mine/v1: TypeError: 'bytes' object cannot be interpreted as an integer"),
    ],
)
def test_what_a_function_returns_is_its_reply(function: Callable[..., Any], said: str) -> None:
    try:
        found = asyncio.run(judge.FunctionJudge("mine/v1", function).complete(ask())).text
    except judge.JudgeError as error:
        found = str(error)
    assert found == said


@pytest.mark.parametrize("name", ["mine", "/v1", "mine/", "server/m", "litellm/openai/m", "a\n/b"])
def test_a_name_that_no_record_can_have_is_refused(name: str) -> None:
    with pytest.raises(judge.UsageError, match="expected name/version"):
        judge.FunctionJudge(name, lambda messages: 1)
