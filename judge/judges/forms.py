"""The answer forms in which a judge can be asked: schema, instruction, labels, and probabilities of labels. Pure.

Label probabilities come from the log probabilities of tokens. OpenAI, vLLM, llama.cpp's server and, through litellm,
Gemini share one shape: for each token of the reply its own log probability and those of the likeliest tokens at its
place. The reading walks the tokens from the place where the verdict begins. A likely token counts for the label that it
completes; the token that was chosen is followed where it is only the beginning of a label. Nothing is guessed: what a
token would have led to that was not chosen, and what the provider does not show, is hidden mass. With m the visible
mass of all labels and u the hidden mass, a label of visible mass p gets p / m. Its true share is (p + e) / (m + E),
where e ≤ E ≤ u, so it is off by at most u / (m + u).
"""

import contextlib
import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion

_REASONS = "your reasons in at most three sentences"


def supported_forms(criterion: Criterion) -> tuple[AnswerForm, ...]:
    """The answer forms that a criterion allows.

    `label` is not among them where one label is not the whole answer, nor `decision` where the judge has to write.
    """
    if criterion.answer == "grade":
        return ("json", "text", "label", "decision")
    return ("json", "text", "decision") if criterion.answer == "sentences" else ("json", "text")


def answer_labels(criterion: Criterion) -> tuple[str, ...]:
    """The labels that a judge chooses from: those of the scale, or those of a sentence."""
    if criterion.answer == "sentences":
        return tuple(level.label for level in criterion.sentence_levels)
    return criterion.scale.labels


@functools.lru_cache(maxsize=256)
def answer_instruction(criterion: Criterion, form: AnswerForm) -> str:
    """The closing words of a prompt: how to answer this criterion in this form."""
    if criterion.answer == "nuggets":
        return nuggets_instruction(criterion.scale.labels, form)
    return form_instruction(answer_labels(criterion), form, per_sentence=criterion.answer == "sentences")


def nuggets_instruction(labels: Sequence[str], form: AnswerForm) -> str:
    """How to answer with a list of nuggets, given the labels of the grade."""
    if form == "json":
        return (
            'Reply with one JSON object and nothing else: first "nuggets", a list of strings, the most important '
            f'first; then "grade", one of {_quoted(labels)}.'
        )
    return (
        "Write each nugget on one line that begins with `- `, the most important nugget first. Then end with exactly "
        f"one line of this form, where LABEL is one of {', '.join(labels)}:\nGrade: LABEL"
    )


def form_instruction(labels: Sequence[str], form: AnswerForm, *, per_sentence: bool) -> str:
    """How to answer in this form, given only the labels; `per_sentence` asks for one label for each sentence."""
    menu = ", ".join(labels)
    quoted = _quoted(labels)
    match form, per_sentence:
        case "decision", _:
            # The labels go beside the question, and nothing is written.
            return ""
        case "label", _:
            # Decoding is constrained to the labels, and the levels name them: a cue is enough. Every token after the
            # response is computed again for each judgment.
            return "Label:"
        case "json", False:
            return (
                f'Reply with one JSON object and nothing else: first "rationale", {_REASONS}; '
                f'then "grade", one of {quoted}.'
            )
        case "json", _:
            return (
                f'Reply with one JSON object and nothing else: first "rationale", {_REASONS}; then "sentences", a list '
                f'with {{"n": number, "label": label}} for every numbered sentence, in order. Labels: {quoted}.'
            )
        case _, False:
            return (
                f"Give {_REASONS}. Then end with exactly one line of this form, where LABEL is one of {menu}:\n"
                "Grade: LABEL"
            )
        case _:
            return (
                f"Give {_REASONS}. Then label every numbered sentence, in order, one line each, in this form, "
                f"where LABEL is one of {menu}:\n1: LABEL"
            )


def answer_schema(labels: Sequence[str], sentences: int) -> dict[str, Any]:
    """JSON schema of an answer, using only what strict modes allow; the rationale comes before the grade.

    `sentences` are to be labeled; 0 when one grade is asked.
    """
    label = {"type": "string", "enum": list(labels)}
    if not sentences:
        return _closed_object({"rationale": {"type": "string"}, "grade": label})
    entry = _closed_object({"n": {"type": "integer"}, "label": label})
    return _closed_object({"rationale": {"type": "string"}, "sentences": {"type": "array", "items": entry}})


def nuggets_schema(labels: Sequence[str]) -> dict[str, Any]:
    """JSON schema of a list of nuggets and the grade that says whether there are any."""
    nuggets = {"type": "array", "items": {"type": "string"}}
    return _closed_object({"nuggets": nuggets, "grade": {"type": "string", "enum": list(labels)}})


def label_grammar(labels: Sequence[str]) -> str:
    r"""A GBNF grammar that allows one of the labels and nothing else.

    >>> label_grammar(["yes", 'a "no"'])
    'root ::= "yes" | "a \\"no\\""'
    """
    return "root ::= " + " | ".join(map(literal, labels))


def literal(text: str) -> str:
    """A text as a GBNF grammar writes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TOP_LOGPROBS = 20
"""Likeliest tokens asked for at each place: the most that OpenAI, Gemini and vLLM allow."""
LEAST_VISIBLE, MOST_OFF = 0.5, 0.05
"""Least mass of all labels, below which the judge wanted to write something else; and most by which the probability of
a label may be off, because mass is hidden."""

_DECORATION, _ROUNDED = 4, 1.01
"""Tokens that may decorate a label, and most that probabilities add up to; beyond, they are none."""
_GRADE = re.compile(r'"grade"\s*:')
_QUOTED, _BARE = re.compile(r'"'), re.compile(r"[\s,}]")
"""What ends a value of JSON that is in quotation marks, and one that is not."""


class LikelyToken(msgspec.Struct, frozen=True):
    """A token with its log probability."""

    token: str
    logprob: float
    utf8: list[int] | None = msgspec.field(default=None, name="bytes")
    """Its bytes, where the provider says them: a token may be a part of a character."""

    @property
    def content(self) -> bytes:
        """What the token adds to the reply."""
        with contextlib.suppress(ValueError):
            if self.utf8 is not None:
                return bytes(self.utf8)
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


def asked_logprobs(request: Request) -> dict[str, Any]:
    """The parameters that ask for log probabilities, to merge into the others; empty where no verdict has one place."""
    return {"logprobs": True, "top_logprobs": TOP_LOGPROBS} if _has_place(request) else {}


def _has_place(request: Request) -> bool:
    return request.form in ("label", "json") and not request.sentences


def label_tokens(labels: Sequence[str]) -> int:
    """Tokens that the longest label takes at most, since a token has a byte at least, and some to decorate it."""
    return max(len(label.encode()) for label in labels) + _DECORATION


def with_probabilities(completion: Completion, said: Any, request: Request) -> Completion:
    """The completion with the label probabilities that can be read of its reply."""
    places = token_places(said) if _has_place(request) else []
    if not places or completion.finish_reason in ("refusal", "content_filter"):
        return completion
    found = verdict_probabilities(places, completion.text, request.labels, request.form)
    return msgspec.structs.replace(completion, probabilities=found)


def opening_probabilities(said: Any, labels: Sequence[str]) -> dict[str, float] | None:
    """The label probabilities of a reply that opens with a label, whatever follows it.

    No label is the beginning of another. The result is that of `verdict_probabilities`; None too if the reply opens
    with something else.
    """
    places = token_places(said)
    written = b""
    for count, place in enumerate(places, 1):
        written += place.content
        text = written.decode("utf-8", "ignore")
        if _same(text, labels) is not None:
            return verdict_probabilities(places[:count], text, labels, "label")
    return None


def token_places(said: Any) -> list[TokenPlace]:
    """The tokens of a reply with their log probabilities; empty if none can be read.

    `said` is the body of the reply, or what a library that has read it gives as `logprobs` of its choice.
    """
    try:
        if isinstance(said, bytes):
            content = msgspec.json.decode(said)["choices"][0]["logprobs"]["content"]
        else:
            content = said["content"] if isinstance(said, dict) else said.content
        return msgspec.convert(content, list[TokenPlace], from_attributes=True)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError, AttributeError):
        return []


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

    The result is None if the verdict cannot be found among the tokens, if the labels have less than LEAST_VISIBLE of
    the mass, or if a probability may be off by more than MOST_OFF.
    """
    label, offset = _verdict(text, labels, form)
    if label is None:
        return None
    first, lead = _first_place(places, text, offset)
    masses = dict.fromkeys(labels, 0.0)
    so_far = b""
    path = 1.0
    hidden = 0.0
    chosen: str | bool = False
    for place in places[first:]:
        likely = place.likely()
        shown = math.fsum(likely.values())
        if not shown <= _ROUNDED:
            return None
        hidden += path * max(0.0, 1.0 - shown)
        for token, probability in likely.items():
            reading = _reading(so_far + token, lead, labels, form)
            if isinstance(reading, str):
                masses[reading] += path * probability
            elif reading and token != place.content:
                hidden += path * probability
        so_far = so_far + place.content
        path = path * likely[place.content]
        chosen = _reading(so_far, lead, labels, form)
        if chosen is not True:
            break
    visible = math.fsum(masses.values())
    if chosen != label or visible < LEAST_VISIBLE or hidden > MOST_OFF * (visible + hidden):
        return None
    return {label: float(f"{mass / visible:.6g}") for label, mass in masses.items()}


def _verdict(text: str, labels: Sequence[str], form: AnswerForm) -> tuple[str | None, int]:
    """The label of a reply, and how many characters stand before it; no label if the reply is of another form."""
    if form == "label":
        return _same(text, labels), 0
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None, 0
    # Within a string a quotation mark would be escaped, so only a key matches.
    keys = list(_GRADE.finditer(text))
    if not isinstance(answer, dict) or len(keys) != 1 or not isinstance(answer.get("grade"), str | int):
        return None, 0
    return _same(str(answer["grade"]), labels), keys[0].end()


def _first_place(places: Sequence[TokenPlace], text: str, offset: int) -> tuple[int, bytes]:
    """The number of the token in which the verdict begins, and what it holds before; past the end if there is none.

    The tokens may hold thoughts before the reply, which the server cut off, and a closing token after it.
    """
    reply = text.rstrip().encode("utf-8", "replace")
    for count in (len(places), len(places) - 1):
        contents = [place.content for place in places[:count]]
        whole = b"".join(contents).rstrip()
        if whole.endswith(reply):
            before = len(whole) - len(reply) + len(text[:offset].encode("utf-8", "replace"))
            for number, content in enumerate(contents):
                if before < len(content):
                    return number, content[:before]
                before -= len(content)
    return len(places), b""


def _reading(written: bytes, lead: bytes, labels: Sequence[str], form: AnswerForm) -> str | bool:
    """The label that the tokens have written; else whether they may be the beginning of one.

    `written` are the tokens from the one in which the verdict begins; `lead` is what that token holds before it.
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
    longer = any(label.casefold() != name and label.casefold().startswith(name) for label in labels)
    if label is not None and (ended or not longer):
        return label
    return not ended and (label is not None or longer)


def _same(text: str, labels: Sequence[str]) -> str | None:
    name = text.strip().casefold()
    return next((label for label in labels if label.casefold() == name), None)
