"""The text of a reply, however a server wraps it: without thoughts, channels and the tokens of its end. Pure."""

import re

from judge.ask.records import Unreadable
from judge.judges.records import NO_SCORE, THOUGHTS, Completion

_FILTERED = frozenset(
    {
        *("contentfilter", "contentfiltered", "safety", "imagesafety", "sensitive", "moderation"),
        *("recitation", "blocklist", "prohibitedcontent", "spii", "modelarmor", "guardrailintervened", "errortoxic"),
    }
)
"""Finish reasons of a reply that a filter stopped, in every provider's words without case and punctuation."""
_END_TOKEN = re.compile(
    r"(?!<[|｜][^|｜]*(?i:think|thought|reason))"
    r"(?:<\|[^\s<>|]{1,40}\|>|<｜[^\s<>｜]{1,40}｜>|<(?:end_of_[a-z]{1,20}|eo[a-z])>"
    r"|</(?P<tag>s|answer|assistant|output)>|\[/(?P<name>(?!THINK)[A-Z]{2,20})\])\Z"
)
"""What a model's template writes after a reply, which a server should cut off; the end of thoughts is not the end."""
_LONGEST_TOKEN = 44
"""Characters of such a token at most."""
_MOST_TOKENS = 1000
"""Such tokens in a row that are cut off; some models write them until the limit."""
_CHANNELS = ("<|channel|>", "<|start|>assistant")
"""How a reply in gpt-oss's format begins."""
_CHANNELED = re.compile(
    r"(?:<\|start\|>assistant[^<]*)?<\|channel\|>([a-z]+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"((?:(?!<\|(?:start|channel|message|end|return|call)\|>).)*)(?:<\|(?:end|return|call)\|>\s*|\Z)",
    re.DOTALL,
)
"""One message of a reply in gpt-oss's format, harmony: its channel and its text."""
PARSERS = "the server's reasoning parser (vLLM: --reasoning-parser; llama.cpp: --reasoning-format)"
_SHOWN = 80


def cut_off(completion: Completion, place: str = "") -> Unreadable:
    """What is said of a reply that might have gone on to a verdict; `place` says where it was cut off.

    Counts have no commas, so that two replies that were cut off alike differ in whole numbers alone.
    """
    tokens = completion.completion_tokens
    thoughts = completion.thought_tokens
    counted = ""
    advice = "raise --max-tokens"
    if tokens and thoughts:
        counted = f" ({tokens} tokens, {thoughts} of them hidden thoughts)"
    elif tokens:
        counted = f" ({tokens} {'token' if tokens == 1 else 'tokens'})"
    if thoughts or place:
        advice += " or lower --reasoning-effort"
    return Unreadable("truncated", f"the reply was cut off at the token limit{place}{counted}: {advice}")


def _opening(text: str) -> str | None:
    """The tag with which a text opens thoughts; None if it opens with something else."""
    begun = text.lstrip()
    return next((opening for opening in THOUGHTS if begun.startswith(opening)), None)


def reply_of(completion: Completion) -> str | Unreadable:
    """The text of a completion without thoughts and end tokens; Unreadable if none could hold a verdict.

    Thoughts, which some servers send, are what the text opens with up to their first end. A later one, or one in a text
    that opens with something else, may be quoted from the response and ends nothing.
    """
    ended = completion.ended
    if ended in _FILTERED:
        return Unreadable("content_filter", "the provider's content filter stopped the reply")
    if ended == "refusal":
        return Unreadable("refused", "the provider reports a refusal")
    if completion.finish_reason == NO_SCORE:
        told = f"the checker's model replied {in_short(completion.text)}, expected Yes or No"
        return Unreadable("unreadable", told)
    text = completion.text
    if text.lstrip().startswith(_CHANNELS):
        return _final_channel(completion)
    opening = _opening(text)
    if opening is not None:
        # A grade in the thoughts is not the verdict.
        _, end, text = text.partition(THOUGHTS[opening])
        if not end:
            if completion.is_cut:
                return cut_off(completion, " within its thoughts")
            return Unreadable("unreadable", "the reply never leaves its thoughts")
    return _without_end_tokens(text)


def _final_channel(completion: Completion) -> str | Unreadable:
    """The reply of a text in harmony: its last message, which alone is of the final channel.

    What else stands between the messages may be quoted, and so may a second final message: then there is no reply.
    """
    if completion.is_cut:
        return cut_off(completion)
    text = completion.text.strip()
    place = 0
    messages: list[tuple[str, str]] = []
    while match := _CHANNELED.match(text, place):
        messages.append((match[1], match[2]))
        place = match.end()
    channels = [channel for channel, _ in messages]
    if place < len(text) or channels.count("final") != 1 or channels[-1] != "final":
        told = f"the reply is in harmony and does not end with its only final channel; set {PARSERS}"
        return Unreadable("unreadable", told)
    return messages[-1][1]


def _without_end_tokens(text: str) -> str:
    """The text without the tokens that a server left at its very end.

    A closing tag whose opening one stands in the text is part of the text.
    """
    end = len(text.rstrip())
    for _ in range(_MOST_TOKENS):
        token = _END_TOKEN.search(text, max(0, end - _LONGEST_TOKEN), end)
        if token is None:
            break
        opening = f"<{token['tag']}>" if token["tag"] else f"[{token['name']}]" if token["name"] else None
        if opening is not None and opening in text:
            break
        end = len(text[: token.start()].rstrip())
    return text[:end]


def stray_thoughts(completion: Completion) -> str:
    """What to do about the end of thoughts that never began; empty if the reply holds none."""
    text = completion.text
    end = next((end for end in THOUGHTS.values() if end in text), None)
    if end is None or _opening(text) is not None:
        return ""
    return f" (it holds {end}, which may be quoted: if thoughts end there, set {PARSERS})"


def in_short(value: object) -> str:
    """A quoted and escaped excerpt of a value for a message; a list or an object is only named as such."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
