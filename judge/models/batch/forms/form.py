"""What a form of batch lines has to say of itself. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.models.backends import backend_facts
from judge.models.batch.records import Returned
from judge.models.records import Completion, Message, Request


class BatchForm(NamedTuple):
    """How the lines of one kind of batch are written and read."""

    name: str
    most_lines: int
    """Most lines of a file that the engine takes."""
    most_bytes: int
    """Most bytes of such a file."""
    body: Callable[[str, Mapping[str, Any], Sequence[Message]], dict[str, Any]]
    """From judge, parameters and messages to what its API is sent."""
    line: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    """From the digest and the body to the line."""
    returned: Callable[[bytes], Returned]
    """What a line of output says; raises a msgspec.MsgspecError if it is of another form."""
    completion: Callable[[bytes, Request], Completion]
    """The completion in a reply; raises a JudgeError if there is none."""
    probabilities: bool
    """Whether label probabilities are read."""
    share: float | None
    """What a request costs, as a share of the list price; None where nobody bills."""


NOTHING = msgspec.Raw(b"null")
"""The value of a field that a line leaves out."""


def given(value: msgspec.Raw) -> bytes | None:
    """The JSON of a field; None where it is left out or null."""
    text = bytes(value)
    return None if text == b"null" else text


def bare_model(parameters: Mapping[str, Any], judge: str) -> str:
    """The model as its API names it: without the provider, by which litellm finds the API."""
    model = str(parameters["model"])
    return model.partition("/")[2] or model if backend_facts(judge).names_provider else model
