"""Where in a reply the verdict stands, and what it says: one JSON object or one line, the last. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.ask.records import Unreadable

_OPENING = " \t\r\n*_`\"'“‘([{"
_CLOSING = " \t\r\n*_`\"'”’)]}.,;!"
_CLAIM = re.compile(r"(?<![^\W_])grade(?![^\W_])[\s*_`\"']*(?:[:：=]|is\b)", re.IGNORECASE)
"""Anything that speaks of a grade as given; only the last such line of a reply can be its verdict."""
_NOTHING = " \t\r\n*_`"
"""What may follow a verdict: nothing but white space and Markdown."""
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


def last_object(reply: str, key: str, *, cut: bool) -> dict[str, Any] | Unreadable | None:
    """The last JSON object of a reply that has `key`; None if the reply is not JSON at all."""
    objects = _objects(reply)
    if objects is None:
        return Unreadable("unreadable", "the reply holds a JSON object that cannot be parsed")
    answers = [(found, end) for found, end in objects if key in found]
    if not answers:
        if any(found.get("refusal") for found, _ in objects):
            return Unreadable("refused", "the reply is a refusal")
        return Unreadable("unreadable", f'the JSON object has no "{key}"') if objects else None
    found, end = answers[-1]
    if reply[end:].strip(_NOTHING):
        # What is said of an object afterwards may be that it was only quoted.
        return Unreadable("truncated" if cut else "unreadable", "the reply goes on after its JSON object")
    if any(earlier[key] != found[key] for earlier, _ in answers):
        return Unreadable("unreadable", f'the reply has two JSON objects that differ in "{key}"')
    return found


def _objects(reply: str) -> list[tuple[dict[str, Any], int]] | None:
    """Every outermost JSON object with the offset of its end; None if something like one cannot be parsed.

    A broken object may hold the real verdict, and a whole one inside it may only be quoted material.
    """
    objects: list[tuple[dict[str, Any], int]] = []
    outside: list[str] = []
    end = 0
    while begun := _OBJECT.search(reply, end):
        outside.append(reply[end : begun.start()])
        try:
            found, end = _DECODER.raw_decode(reply, begun.start())
        except (ValueError, RecursionError):
            return None
        objects.append((found, end))
    outside.append(reply[end:])
    return None if _STRAY_KEY.search(" ".join(outside)) else objects


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members; a key given twice says two things and is refused."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is given twice")
    return members


def last_claim(reply: str, menu: Sequence[str]) -> tuple[str, str | None] | Unreadable:
    """What the closing line of a reply says, and the rest of the reply as the reasons for it.

    A verdict that more text follows may be quoted or taken back, and of two that differ one may be the response's
    own words: both are unreadable.
    """
    lines = reply.rstrip(_NOTHING).splitlines()
    last = next((at for at in reversed(range(len(lines))) if _CLAIM.search(lines[at])), None)
    if last is None:
        return no_verdict(reply, "no line of the form `Grade: LABEL`")
    match = _VERDICT.fullmatch(lines[last])
    if match is None:
        return Unreadable("unreadable", f"the last verdict reads {shown(lines[last])}, expected `Grade: LABEL`")
    if last < len(lines) - 1:
        return Unreadable("unreadable", f"the reply goes on after {shown(lines[last])}")
    given = {on_menu(found[1], menu) for line in lines if (found := _VERDICT.fullmatch(line))} - {None}
    if len(given) > 1:
        return Unreadable("unreadable", f"the reply gives {len(given)} different grades")
    return match[1], clean("\n".join(lines[:last] + lines[last + 1 :]))


def numbered_lines(reply: str) -> tuple[list[tuple[str, str]], str | None]:
    """Number and label of every line like `1: LABEL`, and the rest of the reply as the reasons for them."""
    lines = reply.splitlines()
    matches = [_SENTENCE.fullmatch(line.lstrip(_BEFORE_NUMBER)) for line in lines]
    rest = "\n".join(line for line, match in zip(lines, matches, strict=True) if not match)
    return [(match[1], match[2]) for match in matches if match], clean(rest)


def no_verdict(reply: str, detail: str) -> Unreadable:
    """Why a reply without a verdict has none."""
    if not reply.strip():
        return Unreadable("unreadable", "the reply is empty")
    if _REFUSAL.match(reply.replace("’", "'")):
        return Unreadable("refused", f"the judge declined: {shown(reply)}")
    return Unreadable("unreadable", detail)


def on_menu(said: object, menu: Sequence[str]) -> str | None:
    """The label that was said, whatever its case and the punctuation around it; None if it is not on the menu."""
    if isinstance(said, float) and said.is_integer():
        said = int(said)
    if isinstance(said, int):
        said = str(said)
    if not isinstance(said, str):
        return None
    bare = " ".join(said.lstrip(_OPENING).rstrip(_CLOSING).split()).replace(_MINUS, "-").casefold()
    if number := _WHOLE_NUMBER.fullmatch(bare):
        bare = number[1]
    return next((label for label in menu if label.casefold() == bare), None)


def rationale_of(answer: Mapping[str, Any]) -> str | None:
    """The reasons in a JSON answer, a list of strings included; None if they are no text."""
    said = answer.get("rationale")
    parts = said if isinstance(said, list) else [said]
    return clean("\n".join(part for part in parts if isinstance(part, str)))


def clean(text: str) -> str | None:
    """Outer whitespace off and lone surrogates replaced, since they cannot be written as UTF-8; None if empty."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.strip() or None


def shown(said: object) -> str:
    """A quoted excerpt for a message, escapes visible; of a list or an object only what it is."""
    if isinstance(said, list | dict):
        return "a list" if isinstance(said, list) else "an object"
    text = repr(said)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Raw line breaks inside strings are common in replies and harmless.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, strict=False)
