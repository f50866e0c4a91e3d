"""The records of requests in files: a question that is still to be asked, and what came back for it. Pure."""

from typing import Any, NamedTuple

import msgspec

from judge.models.records import Request
from judge.records import Record


class OpenQuestion(Record, frozen=True):
    """A request that is still to be asked, with everything that a journal records of it."""

    digest: str
    """The digest of the request: the id of its line, and the key of its completion in the journal."""
    judge: str
    """`backend/model`."""
    parameters: dict[str, Any]
    """Everything that is sent beside the messages, as the judge gives it."""
    request: Request
    """The request without the raw texts, of which the digest knows nothing."""


class Returned(NamedTuple):
    """What one line of an engine's output says of its question."""

    body: bytes | None = None
    """The reply, as the provider's API would have sent it; None where there is none."""
    error: str = ""
    """Why there is no reply, in the words of the engine."""
    asked: bytes | None = None
    """The body of the request, where the engine repeats it."""


def without_texts(request: Request) -> Request:
    """The request without the raw texts of response, passages and nugget."""
    return msgspec.structs.replace(request, response="", passages=(), nugget=None)
