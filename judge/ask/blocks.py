"""The texts that a prompt shows, each as a block between tags that the text cannot close. Pure.

The texts were written by strangers who may want a good grade. A text cannot hold a tag: every `<` in it (full-width
and small forms too) is shown as `‹`. This also disarms the control tokens of chat templates (`<|im_end|>`);
square-bracket control tokens (`[INST]`) begin with `⁅` instead. Control characters and lone surrogates become U+FFFD.
Nothing is dropped, the text stays readable, and the pool keeps the original text. Passages are shown by number,
because an id is a stranger's text too.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from judge.ask.subjects import DIALOGUE
from judge.errors import UsageError
from judge.records import Criterion
from judge.runs.records import Exchange, Turn

NO_ANSWER = "(no answer)"
"""What a dialogue has where the run did not answer."""

_NONE = "(none)"
_OPENERS = ("<", "＜", "﹤")
_CONTROL_TOKEN = re.compile(
    r"\[(?=\s*/?\s*(?:(?i:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)|[A-Z][A-Z0-9_]{2,}|gMASK"
    r"|\|[^\]|\n]{1,40}\|)\s*\])"
)
"""Square-bracket control tokens of chat models: `[INST]`, `[THINK]`, `[|user|]`, `[UNUSED_TOKEN_146]` and the like."""
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_PRINTABLE = bytes(byte for byte in range(256) if not _UNPRINTABLE.match(chr(byte)))
"""The bytes of characters in UTF-8 that `_UNPRINTABLE` does not match."""


class Material(msgspec.Struct, frozen=True):
    """Everything that a prompt may show about one pooled response."""

    response: str
    passages: tuple[str, ...]
    sentences: tuple[str, ...]
    turn: Turn | None
    nugget: str | None = None
    nuggets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


def needs_turn(criterion: Criterion) -> bool:
    """Whether a criterion, or one that is asked with it, shows the conversation, which comes from a topics file."""
    return any(name in _FROM_TURN for part in criterion.together or (criterion,) for name in part.inputs)


def defuse(text: str) -> str:
    """A text in which no tag and no control token can begin; everything else is unchanged.

    >>> defuse("Fine. </response> <|im_end|> [INST] 2 < 3")
    'Fine. ‹/response> ‹|im_end|> ⁅INST] 2 ‹ 3'
    """
    # Successive replacements are 60 times as fast as a translation table.
    for opener in _OPENERS:
        text = text.replace(opener, "‹")
    text = _CONTROL_TOKEN.sub("⁅", text)
    return _UNPRINTABLE.sub("\ufffd", text) if _has_unprintable(text) else text


def _has_unprintable(text: str) -> bool:
    """Whether `_UNPRINTABLE` may match, found at a tenth of its time."""
    try:
        return bool(text.encode().translate(None, _PRINTABLE))
    except UnicodeEncodeError:
        return True


def _fence(tag: str, text: str, number: int | None = None) -> str:
    """A stranger's text between tags that it cannot close."""
    attribute = "" if number is None else f' n="{number}"'
    return f"<{tag}{attribute}>\n{defuse(text)}\n</{tag}>"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _passages(material: Material) -> str:
    numbered = enumerate(material.passages, 1)
    return "\n".join(_fence("passage", text, number) for number, text in numbered) or _fence("passages", _NONE)


def _sentences(material: Material) -> str:
    return _fence("sentences", _numbered(material.sentences))


def _numbered(texts: Sequence[str]) -> str:
    """A line for each text; a text holds no line break, so it cannot start a second numbered line."""
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1)) or _NONE


def _of_turn(material: Material) -> Turn:
    if material.turn is None:
        raise UsageError("the prompt shows the conversation, so it needs a topics file")
    return material.turn


def _context(material: Material) -> str:
    exchanges = _of_turn(material).context
    lines = (f"User: {_one_line(exchange.utterance)}\nSystem: {_one_line(exchange.response)}" for exchange in exchanges)
    return _fence("context", "\n".join(lines) or _NONE)


def _dialogue(material: Material) -> str:
    turn = _of_turn(material)
    exchanges = (*turn.context, Exchange(turn.utterance, material.response))
    # A text holds no line break, so it cannot start a line that looks like another turn.
    lines = (
        f"[{number}] User: {_one_line(said.utterance)}\n[{number}] System: {_one_line(said.response) or NO_ANSWER}"
        for number, said in enumerate(exchanges, 1)
    )
    return _fence(DIALOGUE, "\n".join(lines))


def _ptkb(material: Material) -> str:
    statements = _of_turn(material).ptkb
    return _fence("ptkb", "\n".join(f"- {_one_line(statement.text)}" for statement in statements) or _NONE)


def _utterance(material: Material) -> str:
    return _fence("utterance", _of_turn(material).utterance)


def _resolved_utterance(material: Material) -> str:
    return _fence("resolved_utterance", _of_turn(material).resolved_utterance or _NONE)


def _response(material: Material) -> str:
    return _fence("response", material.response)


def _nugget(material: Material) -> str:
    return _fence("nugget", _NONE if material.nugget is None else _one_line(material.nugget))


def _nuggets(material: Material) -> str:
    lines = "\n".join(f"[{number}] {_one_line(nugget)}" for number, nugget in enumerate(material.nuggets, 1))
    return _fence("nuggets", lines or _NONE)


def _source(material: Material) -> str:
    return _fence("source", material.response)


def _known(material: Material) -> str:
    return _fence("known", "\n".join(f"- {_one_line(text)}" for text in material.known) or _NONE)


def _candidates(material: Material) -> str:
    return _fence("candidates", _numbered([_one_line(text) for text in material.candidates]))


_FROM_TURN = frozenset({"context", "ptkb", "utterance", "resolved_utterance", DIALOGUE})

BLOCKS: Mapping[str, Callable[[Material], str]] = {
    "response": _response,
    "passages": _passages,
    "context": _context,
    "ptkb": _ptkb,
    "utterance": _utterance,
    "resolved_utterance": _resolved_utterance,
    "sentences": _sentences,
    "nugget": _nugget,
    "nuggets": _nuggets,
    "source": _source,
    "known": _known,
    "candidates": _candidates,
    DIALOGUE: _dialogue,
}
"""Input name (and placeholder) to the fenced block that shows it."""
