"""Completion × several scales → a Verdict or an Unreadable for each criterion of a group. Pure.

As strict as for one criterion: nothing is clamped, rounded or guessed. What is wrong with one criterion's verdict is
no fault of the others.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.ask.records import Unreadable, Verdict
from judge.ask.reply import (
    NOTHING,
    clean,
    label_pattern,
    no_verdict,
    objects_in,
    on_menu,
    plain_minus,
    rationale_of,
)
from judge.ask.verdict import TRUNCATED, graded, is_cut, reply_of
from judge.models.records import AnswerForm, Completion
from judge.records import Criterion

_Verdicts = dict[str, Verdict | Unreadable]


def parse_group(completion: Completion, parts: Sequence[Criterion], form: AnswerForm) -> _Verdicts:
    """What a completion says of each criterion, by name; GROUP_VERSION covers how it is read.

    Args:
        completion: The completion to read.
        parts: The prompts that were asked together.
        form: The answer form that was asked for, `json` or `text`.
    """
    reply = reply_of(completion)
    if isinstance(reply, Unreadable):
        return {part.name: reply for part in parts}
    cut = is_cut(completion)
    verdicts = _of_object(reply, parts) if form == "json" else None
    if verdicts is None:
        # What follows a cut may have been another verdict.
        verdicts = {part.name: TRUNCATED for part in parts} if cut else _of_lines(reply, parts)
    return {
        name: TRUNCATED if cut and isinstance(verdict, Unreadable) else verdict for name, verdict in verdicts.items()
    }


def _of_object(reply: str, parts: Sequence[Criterion]) -> _Verdicts | None:
    """The verdicts in the last JSON object with a member for a criterion; None if the reply holds no JSON."""
    names = [part.name for part in parts]
    found = objects_in(reply)
    if found is None:
        return _all(names, Unreadable("unreadable", "the reply holds a JSON object that cannot be parsed"))
    objects, outside = found
    answers = [(members, end) for members, end in objects if any(name in members for name in names)]
    if not answers:
        if any(members.get("refusal") for members, _ in objects):
            return _all(names, Unreadable("refused", "the reply is a refusal"))
        lacking = Unreadable("unreadable", f"the JSON object has none of {', '.join(names)}")
        return _all(names, lacking) if objects else None
    answer, end = answers[-1]
    if reply[end:].strip(NOTHING):
        return _all(names, Unreadable("unreadable", "the reply goes on after its JSON object"))
    claims = _claims(outside, parts)
    earlier = [members for members, _ in answers[:-1]]
    return {part.name: _of_member(part, answer, earlier, claims[part.name]) for part in parts}


def _of_member(
    part: Criterion, answer: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], claims: set[str]
) -> Verdict | Unreadable:
    """The verdict of one criterion in the object, which nothing else in the reply may contradict."""
    name = part.name
    if name not in answer:
        return Unreadable("unreadable", f'the JSON object has no "{name}"')
    member = answer[name]
    if not isinstance(member, dict) or "grade" not in member:
        return Unreadable("unreadable", f'"{name}" is no object with a "grade"')
    grades = [other[name].get("grade") if isinstance(other[name], dict) else None for other in earlier if name in other]
    if any(grade != member["grade"] for grade in grades):
        return Unreadable("unreadable", f'the reply has two JSON objects that differ in "{name}"')
    if claims - {on_menu(member["grade"], part.scale.labels)}:
        return Unreadable("unreadable", "the reply claims another grade than its JSON object")
    return graded(member["grade"], rationale_of(member), part.scale)


def _of_lines(reply: str, parts: Sequence[Criterion]) -> _Verdicts:
    """The verdicts in the lines that the reply ends with, one for each criterion; the rest is every rationale."""
    by_name = {part.name.casefold(): part.name for part in parts}
    line_of = re.compile(rf"[\s*_`#-]*({_one_of(parts)})[\s*_`]*[:：](.*)", re.IGNORECASE)
    lines = reply.rstrip(NOTHING).splitlines()
    claimed: dict[str, str] = {}
    rest = len(lines)
    for place in reversed(range(len(lines))):
        if not lines[place].strip(NOTHING):
            continue
        match = line_of.fullmatch(lines[place])
        if match is None or by_name[match[1].casefold()] in claimed:
            break
        claimed[by_name[match[1].casefold()]] = match[2]
        rest = place
    if not claimed:
        forms = ", ".join(f"`{part.name}: LABEL`" for part in parts)
        return _all([part.name for part in parts], no_verdict(reply, f"the reply does not end with lines {forms}"))
    rationale, claims = clean("\n".join(lines[:rest])), _claims(reply, parts)
    return {part.name: _of_line(part, claimed.get(part.name), claims[part.name], rationale) for part in parts}


def _of_line(part: Criterion, claimed: str | None, claims: set[str], rationale: str | None) -> Verdict | Unreadable:
    if claimed is None:
        return Unreadable("unreadable", f"the reply does not end with a line `{part.name}: LABEL`")
    label = on_menu(claimed, part.scale.labels)
    if len(claims | ({label} - {None})) > 1:
        return Unreadable("unreadable", f"the reply gives different grades of {part.name}")
    return graded(claimed, rationale, part.scale)


def _claims(text: str, parts: Sequence[Criterion]) -> dict[str, set[str]]:
    """The labels that directly follow a claim such as `naturalness is` or `naturalness:`, anywhere in a text, by name.

    A grade that is said of no criterion, such as one that is quoted from the response, is a claim about none.
    """
    text = plain_minus(text)
    by_name = {part.name.casefold(): part for part in parts}
    patterns = {part.name: label_pattern(part.scale.labels) for part in parts}
    claims: dict[str, set[str]] = {part.name: set() for part in parts}
    claim = re.compile(
        rf"(?<![^\W_])({_one_of(parts)})(?![^\W_])[\s*_`\"']*(?:grade[\s*_`\"']*)?(?:[:：=]|is\b)", re.IGNORECASE
    )
    for found in claim.finditer(text):
        part = by_name[found[1].casefold()]
        match = patterns[part.name].match(text, found.end())
        if match and (label := on_menu(match[1], part.scale.labels)) is not None:
            claims[part.name].add(label)
    return claims


def _one_of(parts: Sequence[Criterion]) -> str:
    """The names as alternatives of an expression; a name that begins like another is tried before it."""
    return "|".join(re.escape(part.name) for part in sorted(parts, key=lambda part: len(part.name), reverse=True))


def _all(names: Sequence[str], unreadable: Unreadable) -> _Verdicts:
    return dict.fromkeys(names, unreadable)
