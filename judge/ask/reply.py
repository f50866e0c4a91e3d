"""Finds the verdict in a reply and reads it: the last JSON object or the last line. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from judge.ask.records import Unreadable

_OPENING = " \t\r\n*_`\"'“‘([{"
_CLOSING = " \t\r\n*_`\"'”’)]}.,;!"
_CLAIM = re.compile(r"(?<![^\W_])grade(?![^\W_])[\s*_`\"']*(?:[:：=]|is\b)", re.IGNORECASE)
"""Any statement of a grade; only the last line with one can be the verdict of a reply."""
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
NOTHING = " \t\r\n*_`"
"""Only these characters, white space and Markdown, may follow a verdict."""
_VERDICT = re.compile(r"[\s*_`#]*grade[\s*_`]*[:：](.*)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:sentence[\s*_`#\[(]+)?([0-9]{1,9})[*_`\])]*\s*[:：](.*)", re.IGNORECASE)
_BEFORE_NUMBER = " \t*_`#[("
_MINUS = "\u2212"
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0+")
_OBJECT = re.compile(r"\{\s*\"")
_STRAY_KEY = re.compile(r"\"(?:grade|sentences)\"\s*:")
_REFUSAL = re.compile(
    r"\W*(?:unfortunately,? )?(?:(?:i'm |i am )?(?:very |really |so )?sorry\b|i (?:must )?apologi[sz]e|as an ai\b"
    r"|i (?:can't|cannot|can not|won't|will not|must decline|decline)\b"
    r"|i(?:'m| am) (?:unable|not able|not comfortable)\b)",
    re.IGNORECASE,
)
_SHOWN = 80


def without_thoughts(text: str) -> str | None:
    """The text after the thoughts that it opens with, which some servers send; None if the thoughts never end.

    Thoughts end at the first `</think>`. A later one, or one in a text that opens with something else, may be quoted
    from the response and ends nothing.
    """
    if not text.lstrip().startswith(_THOUGHTS):
        return text
    _, end, reply = text.partition(_THOUGHTS_END)
    return reply if end else None


def last_object(reply: str, key: str, menu: Sequence[str], *, cut: bool) -> dict[str, Any] | Unreadable | None:
    """The last JSON object of a reply that has `key`.

    Args:
        reply: The text of the completion, without thoughts.
        key: `grade` or `sentences`.
        menu: The labels of a grade, which the text before the object may not contradict; none if there is no grade.
        cut: Whether the reply was cut off at the token limit.

    Returns:
        The object; None if the reply holds no JSON; Unreadable if objects are broken, ambiguous or lack the key.
    """
    parts = objects_in(reply)
    if parts is None:
        return Unreadable("unreadable", "the reply holds a JSON object that cannot be parsed")
    objects, outside = parts
    answers = [(members, end) for members, end in objects if key in members]
    if not answers:
        if any(members.get("refusal") for members, _ in objects):
            return Unreadable("refused", "the reply is a refusal")
        return Unreadable("unreadable", f'the JSON object has no "{key}"') if objects else None
    answer, end = answers[-1]
    if reply[end:].strip(NOTHING):
        # The text after the object may say that it was only a quotation.
        return Unreadable("truncated" if cut else "unreadable", "the reply goes on after its JSON object")
    if any(earlier[key] != answer[key] for earlier, _ in answers):
        return Unreadable("unreadable", f'the reply has two JSON objects that differ in "{key}"')
    if menu and _claimed(outside, menu) - {on_menu(answer[key], menu)}:
        return Unreadable("unreadable", "the reply claims another grade than its JSON object")
    return answer


def objects_in(reply: str) -> tuple[list[tuple[dict[str, Any], int]], str] | None:
    """Every outermost JSON object with the offset of its end, and the text outside of them.

    None if something like an object cannot be parsed.

    A broken object may hold the real verdict, and an intact object inside it may be a mere quotation.
    """
    objects: list[tuple[dict[str, Any], int]] = []
    outside: list[str] = []
    end = 0
    while begun := _OBJECT.search(reply, end):
        outside.append(reply[end : begun.start()])
        try:
            members, end = _DECODER.raw_decode(reply, begun.start())
        except (ValueError, RecursionError):
            return None
        objects.append((members, end))
    outside.append(reply[end:])
    rest = " ".join(outside)
    return None if _STRAY_KEY.search(rest) else (objects, rest)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object; a key given twice is ambiguous and refused."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is given twice")
    return members


def last_claim(reply: str, menu: Sequence[str]) -> tuple[str, str | None] | Unreadable:
    """The label in the last line of a reply, and the rest of the reply as the rationale.

    A verdict followed by more text may be quoted or withdrawn, and one of two different verdicts may be quoted from the
    response: both cases are unreadable.
    """
    lines = reply.rstrip(NOTHING).splitlines()
    last = next((index for index in reversed(range(len(lines))) if _CLAIM.search(lines[index])), None)
    if last is None:
        return no_verdict(reply, "no line of the form `Grade: LABEL`")
    match = _VERDICT.fullmatch(lines[last])
    if match is None:
        return Unreadable("unreadable", f"the last verdict reads {shown(lines[last])}, expected `Grade: LABEL`")
    if last < len(lines) - 1:
        return Unreadable("unreadable", f"the reply goes on after {shown(lines[last])}")
    labels = _claimed(reply, menu) | ({on_menu(match[1], menu)} - {None})
    if len(labels) > 1:
        return Unreadable("unreadable", f"the reply gives {len(labels)} different grades")
    return match[1], clean("\n".join(lines[:last] + lines[last + 1 :]))


def _claimed(text: str, menu: Sequence[str]) -> set[str]:
    """The labels of the menu that directly follow a claim such as `grade is` or `Grade:`, anywhere in a text."""
    text = plain_minus(text)
    following = label_pattern(tuple(menu))
    matches = (following.match(text, claim.end()) for claim in _CLAIM.finditer(text))
    return {label for match in matches if match and (label := on_menu(match[1], menu)) is not None}


@lru_cache(maxsize=64)
def label_pattern(menu: tuple[str, ...]) -> re.Pattern[str]:
    """A label of the menu as its only group, with what may stand before it; the text has plain minus signs."""
    words = "|".join(re.escape(label) for label in sorted(menu, key=len, reverse=True))
    # Not a part of a longer word or number, such as `2.5`, `2/3` or `1-2`.
    return re.compile(rf"[\s*_`#\"'“‘(\[]*({words})(?:\.0+)?(?![^\W_]|[.,/\-–][0-9])", re.IGNORECASE)


def plain_minus(text: str) -> str:
    """A text with a hyphen in place of each minus sign, as labels have it."""
    return text.replace(_MINUS, "-")


def numbered_lines(reply: str) -> tuple[list[tuple[str, str]], str | None]:
    """Number and label of every line like `1: LABEL`, and the rest of the reply as the rationale."""
    lines = reply.splitlines()
    matches = [_SENTENCE.fullmatch(line.lstrip(_BEFORE_NUMBER)) for line in lines]
    rest = "\n".join(line for line, match in zip(lines, matches, strict=True) if not match)
    return [(match[1], match[2]) for match in matches if match], clean(rest)


def no_verdict(reply: str, detail: str) -> Unreadable:
    """Why a reply has no verdict: it is empty, a refusal, or `detail`."""
    if not reply.strip():
        return Unreadable("unreadable", "the reply is empty")
    if _REFUSAL.match(reply.replace("’", "'")):
        return Unreadable("refused", f"the judge declined: {shown(reply)}")
    return Unreadable("unreadable", detail)


def on_menu(value: object, menu: Sequence[str]) -> str | None:
    """The label of the menu that a value names, ignoring case and outer punctuation; None if it names none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        value = str(value)
    if not isinstance(value, str):
        return None
    name = " ".join(value.lstrip(_OPENING).rstrip(_CLOSING).split()).replace(_MINUS, "-").casefold()
    if number := _WHOLE_NUMBER.fullmatch(name):
        name = number[1]
    return next((label for label in menu if label.casefold() == name), None)


def rationale_of(answer: Mapping[str, Any]) -> str | None:
    """The rationale of a JSON answer, which may be a list of strings; None if it holds no text."""
    rationale = answer.get("rationale")
    parts = rationale if isinstance(rationale, list) else [rationale]
    return clean("\n".join(part for part in parts if isinstance(part, str)))


def clean(text: str) -> str | None:
    """A text without outer whitespace and with lone surrogates replaced, as UTF-8 needs; None if it is empty."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.strip() or None


def shown(value: object) -> str:
    """A quoted and escaped excerpt of a value for a message; a list or an object is only named as such."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Raw line breaks inside strings are common in replies and harmless.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, strict=False)
