"""Label probabilities from the log probabilities of tokens, as providers of chat completions send them. Pure.

OpenAI, vLLM, llama.cpp's server and, through litellm, Gemini share one shape: for each token of the reply its own log
probability and those of the likeliest tokens at its place. The reading walks the tokens from the place where the
verdict begins. A likely token counts for the label that it completes; the token that was chosen is followed where it
is only the beginning of a label. Nothing is guessed: what a token would have led to that was not chosen, and what the
provider does not show, is hidden mass.

With m the visible mass of all labels and u the hidden mass, a label of visible mass p gets p / m. Its true share is
(p + e) / (m + E), where e ≤ E ≤ u, so it is off by at most u / (m + u).
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from judge.models.records import AnswerForm, Completion, Request

TOP_LOGPROBS = 20
"""Likeliest tokens asked for at each place: the most that OpenAI, Gemini and vLLM allow."""
LEAST_VISIBLE = 0.5
"""Least mass of all labels together; below it, the judge wanted to write something else."""
MOST_OFF = 0.05
"""Most by which the probability of a label may be off, because mass is hidden."""

_DECORATION = 4
_ROUNDED = 1.01
"""Most that probabilities add up to; beyond, they are none."""
_GRADE = re.compile(r'"grade"\s*:')
_QUOTED = re.compile(r'"')
_BARE = re.compile(r"[\s,}]")
"""Ends a value of JSON that is not in quotation marks."""


class _Verdict(NamedTuple):
    label: str
    offset: int
    """Characters of the reply before the value."""


class _Start(NamedTuple):
    number: int
    lead: bytes
    """What the token holds before the value."""


class LikelyToken(msgspec.Struct, frozen=True):
    """A token with its log probability."""

    token: str
    logprob: float
    utf8: list[int] | None = msgspec.field(default=None, name="bytes")
    """Its bytes, where the provider says them: a token may be a part of a character."""

    @property
    def content(self) -> bytes:
        """What the token adds to the reply."""
        try:
            return self.token.encode("utf-8", "replace") if self.utf8 is None else bytes(self.utf8)
        except ValueError:
            return self.token.encode("utf-8", "replace")


class TokenPlace(LikelyToken, frozen=True):
    """A token of the reply, with the likeliest tokens at its place."""

    top_logprobs: list[LikelyToken] = []

    def likely(self) -> dict[bytes, float]:
        """Probability of each token that the provider shows here, the chosen one included."""
        shown: dict[bytes, float] = {}
        for token in (self, *self.top_logprobs):
            # -9999.0 stands for a token that is very unlikely; exp makes it 0.
            shown[token.content] = max(shown.get(token.content, 0.0), math.exp(min(token.logprob, 0.0)))
        return shown


class _Logprobs(msgspec.Struct):
    content: list[TokenPlace] | None = None


class _Choice(msgspec.Struct):
    logprobs: _Logprobs | None = None


class _Body(msgspec.Struct):
    choices: list[_Choice] = []


def is_read(request: Request) -> bool:
    """Whether the reply to a request has one label at a place that can be told: see `verdict_probabilities`."""
    return request.form in ("label", "json") and not request.sentences


def asked_logprobs(request: Request) -> dict[str, Any]:
    """The parameters that ask for log probabilities, to merge into the others; empty where none can be read."""
    return {"logprobs": True, "top_logprobs": TOP_LOGPROBS} if is_read(request) else {}


def label_tokens(labels: Sequence[str]) -> int:
    """Tokens that the longest label takes at most, since a token has a byte at least, and some to decorate it."""
    return max(len(label.encode()) for label in labels) + _DECORATION


def with_probabilities(completion: Completion, body: bytes, request: Request) -> Completion:
    """The completion with the label probabilities that the body of its reply allows.

    Args:
        completion: What was read of the reply.
        body: The body: a chat completion as OpenAI writes it.
        request: What was asked.
    """
    return _completed(completion, _logprobs(body), request)


def opening_probabilities(body: bytes, labels: Sequence[str]) -> dict[str, float] | None:
    """The label probabilities of a reply that opens with a label, whatever follows it.

    Args:
        body: The body of the reply: a chat completion as OpenAI writes it.
        labels: All labels that the reply may open with; none is the beginning of another.

    Returns:
        As of `verdict_probabilities`; None too if the reply opens with something else.
    """
    logprobs = _logprobs(body)
    places = (logprobs.content if logprobs else None) or []
    written = b""
    for count, place in enumerate(places, 1):
        written += place.content
        text = written.decode("utf-8", "ignore")
        if _same(text, labels) is not None:
            return verdict_probabilities(places[:count], text, labels, "label")
    return None


def _logprobs(body: bytes) -> _Logprobs | None:
    """The log probabilities in the body of a reply; None if none can be read."""
    try:
        choices = msgspec.json.decode(body, type=_Body).choices
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return choices[0].logprobs if choices else None


def with_choice(completion: Completion, logprobs: Any, request: Request) -> Completion:
    """The same of what a library that has read the body gives as `logprobs` of a choice."""
    try:
        read = msgspec.convert(logprobs, _Logprobs, from_attributes=True)
    except (msgspec.MsgspecError, RecursionError):
        return completion
    return _completed(completion, read, request)


def _completed(completion: Completion, logprobs: _Logprobs | None, request: Request) -> Completion:
    places = (logprobs.content if logprobs else None) or []
    if not places or not is_read(request) or completion.finish_reason in ("refusal", "content_filter"):
        return completion
    found = verdict_probabilities(places, completion.text, request.labels, request.form)
    return msgspec.structs.replace(completion, probabilities=found)


def verdict_probabilities(
    places: Sequence[TokenPlace], text: str, labels: Sequence[str], form: AnswerForm
) -> dict[str, float] | None:
    """Probability of each label where the verdict stands, normalized over the labels, with six significant digits.

    In the form `label`, the whole reply is a label. In the form `json`, the reply is one object, and the label is the
    value of its only key `grade`. Case and outer white space are ignored.

    The token 2 has mass .6 and 3 has .3; .1 is of other words. All tokens are shown, so nothing is hidden:

    >>> log = lambda token, p: LikelyToken(token, math.log(p))
    >>> place = TokenPlace("2", math.log(0.6), None, [log("2", 0.6), log("3", 0.3), log("The", 0.1)])
    >>> verdict_probabilities([place], "2", ["0", "1", "2", "3"], "label")
    {'0': 0.0, '1': 0.0, '2': 0.666667, '3': 0.333333}

    Args:
        places: The tokens of the reply, in order.
        text: The reply.
        labels: All labels that may be written.
        form: The answer form that was asked for.

    Returns:
        Label to probability. None if the verdict cannot be found among the tokens, if the labels have less than
        LEAST_VISIBLE of the mass, or if a probability may be off by more than MOST_OFF.
    """
    verdict = _verdict(text, labels, form)
    start = None if verdict is None else _first_place(places, text, verdict.offset)
    if verdict is None or start is None:
        return None
    masses = dict.fromkeys(labels, 0.0)
    so_far, path, hidden = b"", 1.0, 0.0
    chosen: str | None = None
    for place in places[start.number :]:
        likely = place.likely()
        shown = math.fsum(likely.values())
        if not shown <= _ROUNDED:
            return None
        hidden += path * max(0.0, 1.0 - shown)
        for token, probability in likely.items():
            reading = _reading(so_far + token, start.lead, labels, form)
            if isinstance(reading, str):
                masses[reading] += path * probability
            elif reading and token != place.content:
                hidden += path * probability
        so_far, path = so_far + place.content, path * likely[place.content]
        reading = _reading(so_far, start.lead, labels, form)
        if reading is not True:
            chosen = reading or None
            break
    visible = math.fsum(masses.values())
    if chosen != verdict.label or visible < LEAST_VISIBLE or hidden > MOST_OFF * (visible + hidden):
        return None
    return {label: float(f"{mass / visible:.6g}") for label, mass in masses.items()}


def _verdict(text: str, labels: Sequence[str], form: AnswerForm) -> _Verdict | None:
    """The label of a reply, and where it begins; None if the reply is of another form."""
    if form == "label":
        label = _same(text, labels)
        return None if label is None else _Verdict(label, 0)
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    # Within a string a quotation mark would be escaped, so only a key matches.
    keys = list(_GRADE.finditer(text))
    if not isinstance(answer, dict) or len(keys) != 1 or not isinstance(answer.get("grade"), str | int):
        return None
    label = _same(str(answer["grade"]), labels)
    return None if label is None else _Verdict(label, keys[0].end())


def _first_place(places: Sequence[TokenPlace], text: str, offset: int) -> _Start | None:
    """The token with the byte that follows the first `offset` characters of the reply; None if there is none.

    The tokens may hold thoughts before the reply, which the server cut off, and a closing token after it.
    """
    reply = text.rstrip().encode("utf-8", "replace")
    for count in (len(places), len(places) - 1):
        whole = b"".join(place.content for place in places[:count]).rstrip()
        if whole.endswith(reply):
            wanted = len(whole) - len(reply) + len(text[:offset].encode("utf-8", "replace"))
            end = 0
            for number, place in enumerate(places[:count]):
                end += len(place.content)
                if end > wanted:
                    before = place.content[: len(place.content) - (end - wanted)]
                    return _Start(number, before)
    return None


def _reading(written: bytes, lead: bytes, labels: Sequence[str], form: AnswerForm) -> str | bool:
    """The label that the tokens have written; else whether they may be the beginning of one.

    Args:
        written: The tokens from the one in which the verdict begins.
        lead: What that token holds before the verdict.
        labels: All labels.
        form: The answer form.
    """
    if not written.startswith(lead):
        return lead.startswith(written)
    value = written[len(lead) :].decode("utf-8", "ignore").lstrip()
    ended = value != value.rstrip()
    if form == "json":
        closing = _QUOTED if value.startswith('"') else _BARE
        value, *after = closing.split(value.removeprefix('"'), maxsplit=1)
        ended = bool(after)
    name = value.strip().casefold()
    label = _same(name, labels)
    longer = [label for label in labels if label.casefold() != name and label.casefold().startswith(name)]
    if label is not None and (ended or not longer):
        return label
    return not ended and (label is not None or bool(longer))


def _same(text: str, labels: Sequence[str]) -> str | None:
    name = text.strip().casefold()
    return next((label for label in labels if label.casefold() == name), None)
