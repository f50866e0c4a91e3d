"""Records of a call: what is sent to a judge, and what comes back. Pure."""

import functools
import math
import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from judge.io.text import SHOWN, printable_id
from judge.records import Record, Scale

AnswerForm = Literal["json", "text", "label", "decision"]
"""json: an object by schema. text: reasons, then one verdict line. label: one label, by constrained decoding. decision:
probabilities of labels from a model that writes no text."""
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
"""How much a model is to think before it answers, in OpenAI's words."""


NO_SCORE = "no_score"
"""The finish reason of a checker's reply from which no score can be read, and of a completion that ends with one."""
PROMPT_CUT = "prompt_cut"
"""The finish reason of a decision about an input that the server did not read to its end."""
STOPPED = frozenset(("refusal", "content_filter", NO_SCORE))
"""Finish reasons of replies that hold no answer."""
THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
"""What thoughts in a reply begin and end with, as models write them: DeepSeek, Qwen and most; Seed, Magistral, Kimi."""
LIMITS = ("max_tokens", "max_completion_tokens")
"""The names of the most tokens of a reply, as parameters; the usual one first."""
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Amount = Annotated[float, Meta(ge=0, le=math.nextafter(math.inf, 0))]


_CUT_OFF = frozenset(
    {
        *("length", "maxlength", "modellength", "maxlen"),
        *("maxtokens", "maxoutputtokens", "maxnewtokens", "maxcompletiontokens", "tokenlimit"),
        "modelcontextwindowexceeded",
    }
)
"""Finish reasons of a reply that ended at the token limit, in every provider's words without case and punctuation."""


class Message(Record, frozen=True):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(Record, frozen=True, dict=True):
    """One request to a judge about one pooled response."""

    response_id: str
    turn_id: str
    criterion: str
    form: AnswerForm
    messages: tuple[Message, ...]
    scale: Scale
    labels: tuple[str, ...]
    """The labels to choose from: those of the scale, or those of a sentence."""
    sentences: int
    """How many numbered sentences must be labeled; 0 when one grade is asked."""
    response: str
    """The raw text of the response, for judges that read no prompt; no part of the digest."""
    passages: tuple[str, ...]
    """The raw texts of the passages, likewise."""
    sample: int = 0
    """Number of the repetition, from 0."""
    omitted: tuple[str, ...] = ()
    """Parameters that the endpoint has refused, and that are not sent."""
    room: int | None = None
    """Most tokens of the reply, where these are not the usual ones of the judge."""
    nugget: str | None = None
    """The raw text of the nugget that the response is matched with; no part of the digest; None if there is none."""
    lists_nuggets: bool = False
    """Whether a list of nuggets is asked beside the grade."""
    replies: "tuple[Completion, ...] | None" = None
    """What came back for its `Model.parts`, up to a reply without an answer, likewise; None if it has no parts."""

    @functools.cached_property
    def wire(self) -> msgspec.Raw:
        """The messages as JSON, made once for the digest, for what is sent and for the journal.

        A UnicodeEncodeError if they hold what is no text.
        """
        return msgspec.Raw(msgspec.json.encode(self.messages))


class Completion(Record, frozen=True):
    """What came back for one request, as the journal records it."""

    text: str
    finish_reason: str | None
    """Why the text ends, in the words of the provider; or NO_SCORE."""
    model: str | None
    """The model, as the provider names it."""
    system_fingerprint: str | None = None
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    """Tokens of the prompt that the provider read from its cache; part of `prompt_tokens`."""
    thought_tokens: _Count | None = None
    """Tokens of the reply that are hidden thoughts; part of `completion_tokens`."""
    cost: _Amount | None = None
    """US dollars; None when the price is unknown."""
    latency: _Amount | None = None
    """Seconds of the successful attempt; None too where it came with the call of another completion."""
    attempts: int = 1
    """Attempts that the loop made, the successful one included; 0 where the completion is made of other ones, or came
    with the call of another one, which counts there."""
    probabilities: dict[str, _Amount] | None = None
    """Label to probability, normalized over the labels; None where the judge gives none."""
    support: tuple[tuple[float | None, tuple[int, ...]], ...] = ()
    """Of a checker, for each sentence the highest probability of support, and the numbers of the passages that support
    it, from 1; no language model's reply can bring it."""
    endpoint: str | None = None
    """The address that answered, without credentials; None where there is none, or only a library knows it."""
    raw: str | None = None
    """The whole reply as it came (of a batch, its JSON encoded anew), without secrets; None where the provider's
    library shows no such thing."""

    @property
    def ended(self) -> str:
        """The finish reason without case and punctuation; a library may write `FinishReason.MAX_TOKENS`."""
        reason = (self.finish_reason or "").rpartition(".")[2]
        return "".join(filter(str.isalnum, reason)).casefold()

    @property
    def is_cut(self) -> bool:
        """Whether the reply ended at the token limit."""
        return self.ended in _CUT_OFF


_WORDS = 3
_CHANGED = re.compile(rf"(.{{0,{SHOWN}}})… \(changed by judge, [0-9]+ characters long\)")


def provider_name(text: str | None) -> str | None:
    r"""A name that a provider gave, for records; one that is too long or unprintable is changed, and says so.

    So is one of over three words, since results are published and a server may put any text there.

    >>> provider_name("gpt-4"), provider_name("a\nb")
    ('gpt-4', 'a\ufffdb… (changed by judge, 3 characters long)')
    """
    if text is None:
        return None
    changed = _CHANGED.fullmatch(text)
    if printable_id(text) == text and (changed[1] if changed else text).count(" ") < _WORDS:
        return text
    begun = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split(" ")[:_WORDS])[:SHOWN])
    return f"{begun}… (changed by judge, {len(text)} characters long)"


_FIELDS = msgspec.structs.fields(Completion)
_EMPTY = Completion(text="", finish_reason=None, model=None)


def storable(completion: Completion) -> Completion:
    """The completion without the facts that no provider can have meant, and with text that UTF-8 can hold.

    A reply is paid for whatever it says of itself: a count of 1.5 tokens or a probability of nan costs no grade.
    """
    facts = msgspec.structs.asdict(completion)
    for name, value in facts.items():
        # A reply cut within an emoji ends in a lone surrogate.
        if isinstance(value, str) and not value.isascii():
            facts[name] = value.encode("utf-8", "replace").decode()
    try:
        kept = msgspec.convert(facts, Completion)
    except msgspec.ValidationError:
        kept = Completion(**{field.name: _meant(facts[field.name], field) for field in _FIELDS})
    # Of a prompt, no more than all of it is cached; of a reply, no more than all of it is thoughts.
    if kept.prompt_tokens is not None and kept.cached_tokens is not None and kept.cached_tokens > kept.prompt_tokens:
        kept = msgspec.structs.replace(kept, cached_tokens=None)
    replied = kept.completion_tokens
    thoughts = kept.thought_tokens
    if replied is not None and thoughts is not None and thoughts > replied:
        kept = msgspec.structs.replace(kept, thought_tokens=None)
    return kept


def _meant(value: object, field: msgspec.structs.FieldInfo) -> Any:
    try:
        # 15.0 is a count of 15; "15" is none.
        return msgspec.convert(value, field.type, strict=not isinstance(value, float))
    except msgspec.ValidationError:
        return getattr(_EMPTY, field.name)
