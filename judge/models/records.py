"""What is sent to a judge and what comes back. Pure."""

from typing import Literal

from judge.records import Record, Scale

AnswerForm = Literal["json", "text", "label"]
"""json: an object by schema; text: reasons, then one verdict line; label: one label, decoding constrained."""


class Message(Record, frozen=True):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(Record, frozen=True):
    """One question to a model about one pooled response."""

    response_id: str
    turn_id: str
    criterion: str
    form: AnswerForm
    messages: tuple[Message, ...]
    scale: Scale
    labels: tuple[str, ...]
    """What may be written: the scale's labels, or the labels of a sentence."""
    sentences: int
    """How many numbered sentences must be labelled; 0 when one grade is asked."""
    response: str
    passages: tuple[str, ...]
    """The raw texts behind the messages, for judges that need no prompt; not part of the digest."""
    sample: int = 0


class Completion(Record, frozen=True):
    """What came back for one request, as recorded in the journal."""

    text: str
    finish_reason: str | None
    model: str | None
    """The model as the provider named it."""
    system_fingerprint: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    """US dollars; None when the price is unknown."""
    latency: float | None = None
    """Seconds of the successful attempt."""
    attempts: int = 1
    probabilities: dict[str, float] | None = None
    """Label probabilities, renormalised over the labels."""
