"""A Python function as a judge, from its reply to the judgments of a run."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import judge
from tests.mock import ask

pytestmark = pytest.mark.fast


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
        (lambda messages: 2.5, "mine/v1: TypeError: 'float' object cannot be interpreted as an integer"),
        (lambda messages: None, "mine/v1: TypeError: 'NoneType' object cannot be interpreted as an integer"),
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
