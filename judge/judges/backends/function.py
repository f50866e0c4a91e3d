"""A Python function as a judge: `FunctionJudge("mine/v1", f)`."""

import asyncio
import inspect
import json
import numbers
import operator
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from judge.errors import JudgeError, RejectedError, TransientError, UsageError
from judge.judges.backends import BACKENDS
from judge.judges.chat import chat_messages
from judge.judges.http_errors import shorten
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Request

Returned = Any
"""A text, a grade, a label's word, None, a mapping with `grade` and `rationale`, or a pair of both."""


class FunctionJudge(Model):
    """A judge that asks a function; nobody bills it.

    Args:
        name: `name/version`, by which records and the journal know the judge. The journal recalls the grades that were
            given under a name, so a changed function needs another one.
        function: Gets the messages of a request, each with `role` and `content`. It returns a text as a model would
            write it, which ends with a line such as `Grade: 2`. Or it returns a grade: a whole number, a label's word,
            `None` for "unable to judge", a mapping with `grade` and, if there is one, `rationale`, a pair of both, or
            one of these as JSON. It may be async; another one is called in threads, several at once.

    Raises:
        UsageError: The name has another form, or is one of a backend.
    """

    forms: tuple[AnswerForm, ...] = ("text",)
    free = True
    changeable = True

    def __init__(self, name: str, function: Callable[[list[dict[str, str]]], Returned | Awaitable[Returned]]) -> None:
        backend, _, version = name.partition("/")
        if not (backend and version and name.isprintable()) or backend in BACKENDS:
            raise UsageError(f"judge name {name!r}: expected name/version, where no backend has the name")
        self.name = name
        self._function = function
        self._timeout: float | None = None

    def open(self, options: ModelOptions) -> None:
        """Take over how long a call may last."""
        self._timeout = options.timeout

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """None: the name stands for the function."""
        return {}

    async def complete(self, request: Request) -> Completion:
        """Call the function.

        Whatever it raises, and a reply that is no text and no grade, is a RejectedError; a call that lasts too long is
        a TransientError.
        """
        messages = chat_messages(request)
        started = time.perf_counter()
        try:
            reply = await asyncio.wait_for(self._called(messages), self._timeout)
            text = _written(reply, request)
        except JudgeError:
            raise
        except Exception as error:  # whatever the function raises is a failure of this call and not of the run
            if isinstance(error, TimeoutError) and self._timeout is not None:
                raise TransientError(f"no answer within {self._timeout:g} s") from error
            raise RejectedError(f"{self.name}: {type(error).__name__}: {shorten(str(error))}") from error
        latency = time.perf_counter() - started
        return Completion(text=text, finish_reason="stop", model=None, cost=0.0, latency=latency)

    async def _called(self, messages: list[dict[str, str]]) -> Returned:
        """What the function returns."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(messages)
        loop = asyncio.get_running_loop()
        returned: asyncio.Future[Returned] = loop.create_future()

        def settle(value: Returned, error: BaseException | None) -> None:
            if returned.done():
                return
            if error is None:
                returned.set_result(value)
            else:
                returned.set_exception(error)

        def work() -> None:
            value: Returned = None
            error: BaseException | None = None
            try:
                value = self._function(messages)
            except StopIteration:  # no future takes it, so that its call would never end
                error = RejectedError(f"{self.name}: StopIteration")
            except BaseException as raised:  # noqa: BLE001 - it is raised where the call is awaited
                error = raised
            loop.call_soon_threadsafe(settle, value, error)

        # A thread of the loop's own pool would keep the process alive where the function never returns.
        threading.Thread(target=work, daemon=True).start()
        reply = await returned
        return await reply if inspect.isawaitable(reply) else reply


def _written(reply: Returned, request: Request) -> str:
    """A reply as a text with a verdict.

    A grade that is not on the scale stays a number, which no reader takes. A RejectedError if it is no grade.
    """
    if isinstance(reply, str):
        # A subclass, such as numpy's, is not written as JSON.
        text = str.__str__(reply)
        found = _found(text, request)
        if found is None:
            return text
        reply = found
    rationale = None
    if isinstance(reply, Mapping):
        if "grade" not in reply:
            raise RejectedError(f"a mapping without grade: {shorten(repr(reply))}")
        reply, rationale = reply["grade"], reply.get("rationale")
    elif isinstance(reply, tuple | list):
        if len(reply) != 2:
            raise RejectedError(f"expected a grade and its rationale: {shorten(repr(reply))}")
        reply, rationale = reply
    said = "" if rationale is None else " ".join(str(rationale).split())
    return f"{said}\nGrade: {_label(reply, request)}".lstrip()


def _found(text: str, request: Request) -> Returned | None:
    """What a text is, if it is a label's word or the JSON of a grade; None if it is a text."""
    word = text.strip().casefold()
    if any(word == label.casefold() for label in request.scale.labels):
        return {"grade": text.strip()}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_grade = isinstance(document, int | float) or (isinstance(document, dict) and "grade" in document)
    return document if is_grade else None


def _label(grade: Any, request: Request) -> str:
    """The label of a grade; a RejectedError if it is none."""
    scale = request.scale
    if grade is None:
        if scale.unable is None:
            raise RejectedError("None, but the scale has no level for what cannot be judged")
        return scale.unable.label
    if isinstance(grade, str):
        return str.__str__(grade).strip()
    if isinstance(grade, numbers.Real) and not isinstance(grade, numbers.Integral):
        if not float(grade).is_integer():
            raise RejectedError(f"{grade} is no grade: expected a whole number")
        grade = int(float(grade))
    number = operator.index(grade)
    return next((level.label for level in scale.levels if level.grade == number), str(number))
