"""The texts that a prompt shows, each as a block between tags that the text cannot close. Pure.

The texts were written by strangers who may want a good grade. A text cannot hold a tag: every `<` in it (full-width
and small forms too) is shown as `‹`. This also disarms the control tokens of chat templates (`<|im_end|>`);
square-bracket control tokens (`[INST]`) begin with `⁅` instead. Control characters and lone surrogates become U+FFFD.
Nothing is dropped, the text stays readable, and the pool keeps the original text. Passages are shown by number,
because an id is a stranger's text too.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from judge.ask.records import Task
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
_HARMLESS = bytes(byte for byte in range(256) if byte not in b"<[\xed\xef" and not _UNPRINTABLE.match(chr(byte)))
"""The bytes in UTF-8 that `defuse` leaves alone; other openers and surrogates begin with the two that are no ASCII."""


class Material(NamedTuple):
    """Everything that a prompt may show for one task."""

    task: Task
    passages: tuple[str, ...]
    sentences: tuple[str, ...]
    conversation: Turn | None

    @property
    def turn(self) -> Turn:
        """The turn with the conversation before it; a UsageError if there is none."""
        if self.conversation is None:
            prompt = self.task.criterion.prompt_id
            raise UsageError(f"{prompt}: shows the conversation, so it needs a topics file")
        return self.conversation


def needs_turn(criterion: Criterion) -> bool:
    """Whether a criterion, or one that is asked with it, shows the conversation, which comes from a topics file."""
    return any(name in _FROM_TURN for part in criterion.together or (criterion,) for name in part.inputs)


def defuse(text: str) -> str:
    """A text in which no tag and no control token can begin; everything else is unchanged.

    >>> defuse("Fine. </response> <|im_end|> [INST] 2 < 3")
    'Fine. ‹/response> ‹|im_end|> ⁅INST] 2 ‹ 3'
    """
    # Most texts have no other bytes, which is found at a tenth of the time of a regular expression.
    odd = text.encode("utf-8", "surrogatepass").translate(None, _HARMLESS)
    if not odd:
        return text
    # Successive replacements are 60 times as fast as a translation table.
    for opener in _OPENERS:
        text = text.replace(opener, "‹")
    text = _CONTROL_TOKEN.sub("⁅", text)
    return _UNPRINTABLE.sub("\ufffd", text) if odd.translate(None, b"<[\xef") else text


def _fence(tag: str, text: str, number: int | None = None) -> str:
    """A stranger's text between tags that it cannot close."""
    attribute = "" if number is None else f' n="{number}"'
    return f"<{tag}{attribute}>\n{defuse(text)}\n</{tag}>"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts) or _NONE


def _numbered(texts: Iterable[str]) -> str:
    """A line for each text; a text holds no line break, so it cannot start a second numbered line."""
    return _lines(f"[{number}] {text}" for number, text in enumerate(texts, 1))


def _passages(material: Material) -> str:
    numbered = enumerate(material.passages, 1)
    return "\n".join(_fence("passage", text, number) for number, text in numbered) or _fence("passages", _NONE)


def _context(material: Material) -> str:
    exchanges = material.turn.context
    return _lines(f"User: {_one_line(said.utterance)}\nSystem: {_one_line(said.response)}" for said in exchanges)


def _dialogue(material: Material) -> str:
    exchanges = (*material.turn.context, Exchange(material.turn.utterance, material.task.response.text))
    # A text holds no line break, so it cannot start a line that looks like another turn.
    return _lines(
        f"[{number}] User: {_one_line(said.utterance)}\n[{number}] System: {_one_line(said.response) or NO_ANSWER}"
        for number, said in enumerate(exchanges, 1)
    )


_FROM_TURN = frozenset({"context", "ptkb", "utterance", "resolved_utterance", DIALOGUE})

BLOCKS: Mapping[str, Callable[[Material], str]] = {
    "response": lambda shown: _fence("response", shown.task.response.text),
    "passages": _passages,
    "context": lambda shown: _fence("context", _context(shown)),
    "ptkb": lambda shown: _fence("ptkb", _lines(f"- {_one_line(fact.text)}" for fact in shown.turn.ptkb)),
    "utterance": lambda shown: _fence("utterance", shown.turn.utterance),
    "resolved_utterance": lambda shown: _fence("resolved_utterance", shown.turn.resolved_utterance or _NONE),
    "sentences": lambda shown: _fence("sentences", _numbered(shown.sentences)),
    "nugget": lambda shown: _fence("nugget", _NONE if shown.task.nugget is None else _one_line(shown.task.nugget)),
    "nuggets": lambda shown: _fence("nuggets", _numbered(map(_one_line, shown.task.nuggets))),
    "source": lambda shown: _fence("source", shown.task.response.text),
    "known": lambda shown: _fence("known", _lines(f"- {_one_line(text)}" for text in shown.task.known)),
    "candidates": lambda shown: _fence("candidates", _numbered(map(_one_line, shown.task.candidates))),
    DIALOGUE: lambda shown: _fence(DIALOGUE, _dialogue(shown)),
}
"""Input name (and placeholder) to the fenced block that shows it."""
