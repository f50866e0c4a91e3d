"""A Python function as a judge: `FunctionJudge("mine/v1", f)`."""

import asyncio
import inspect
import operator
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from judge.errors import JudgeError, RejectedError, UsageError
from judge.judges.backends import BACKENDS
from judge.judges.chat import chat_messages
from judge.judges.http_errors import shorten
from judge.judges.model import Model
from judge.judges.records import AnswerForm, Completion, Request


class FunctionJudge(Model):
    """A judge that asks a function; nobody bills it.

    Args:
        name: `name/version`, by which records and the journal know the judge. The journal recalls what was said under a
            name, so a changed function needs another one.
        function: Gets the messages of a request, each with `role` and `content`. It returns a text as a model would
            write it, which ends with a line such as `Grade: 2`, or a grade alone. It may be async; another one is
            called in threads, several at once.

    Raises:
        UsageError: The name has another form, or is one of a backend.
    """

    forms: tuple[AnswerForm, ...] = ("text",)
    free = True

    def __init__(self, name: str, function: Callable[[list[dict[str, str]]], str | int | Awaitable[str | int]]) -> None:
        backend, _, version = name.partition("/")
        if not (backend and version and name.isprintable()) or backend in BACKENDS:
            raise UsageError(f"judge name {name!r}: expected name/version, where no backend has the name")
        self.name = name
        self._function = function

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """None: the name stands for the function."""
        return {}

    async def complete(self, request: Request) -> Completion:
        """Call the function; whatever it raises, and a reply that is no text and no integer, is a RejectedError."""
        messages = chat_messages(request)
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._function):
                reply = await self._function(messages)
            else:
                reply = await asyncio.to_thread(self._called, messages)
                reply = await reply if inspect.isawaitable(reply) else reply
            text = reply if isinstance(reply, str) else _written(operator.index(reply), request)
        except JudgeError:
            raise
        except Exception as error:  # whatever the function raises is a failure of this call and not of the run
            raise RejectedError(f"{self.name}: {type(error).__name__}: {shorten(str(error))}") from error
        latency = time.perf_counter() - started
        return Completion(text=text, finish_reason="stop", model=None, cost=0.0, latency=latency)

    def _called(self, messages: list[dict[str, str]]) -> str | int | Awaitable[str | int]:
        try:
            return self._function(messages)
        except StopIteration as error:  # no future takes it, so that its call would never end
            raise RejectedError(f"{self.name}: StopIteration") from error


def _written(grade: int, request: Request) -> str:
    """A grade as a text with its label; one that is not on the scale stays a number, which no reader takes."""
    labels = {level.grade: level.label for level in request.scale.levels}
    return f"Grade: {labels.get(grade, grade)}"
