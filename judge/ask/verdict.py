"""Completion × scale → Verdict | Unreadable: one grammar on the reply's last verdict, never a default. Pure.

The verdict is the last JSON object or the last line. A reply is unreadable if it names no grade of the scale, or if its
grade is ambiguous; nothing is clamped, rounded or guessed.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from judge.ask.records import Unreadable, Verdict
from judge.ask.reply import PARSERS, cut_off, in_short, reply_of, stray_thoughts
from judge.io.text import has_content, storable
from judge.judges.forms import answer_labels
from judge.judges.http_errors import at
from judge.judges.records import AnswerForm, Completion
from judge.records import Criterion, Level, Scale

PARSER_VERSION = 5
"""Goes up whenever the same reply may be read differently than before."""
MOST_LISTED = 50
"""Most nuggets of one source; a reply with more is no list of what matters."""
LONGEST_NUGGET = 500
"""Most characters of a nugget; a longer text is no single fact."""

_OPENING = " \t\r\n*_`\"'“‘([{"
_CLOSING = " \t\r\n*_`\"'”’)]}.,;!"
_NOTHING = " \t\r\n*_`"
"""Only these characters, white space and Markdown, may follow a verdict."""
_VERDICT = re.compile(r"[\s*_`#]*grade[\s*_`]*[:：](.*)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?:sentence[\s*_`#\[(]+)?([0-9]{1,9})[*_`\])]*\s*[:：](.*)", re.IGNORECASE)
_BEFORE_NUMBER = " \t*_`#[("
_NUGGET = re.compile(r"(?P<indent>\s*)(?:(?P<bullet>[-*•])|(?P<number>[0-9]{1,3})(?P<stop>[.)]))\s+(?P<text>.*)")
_NUGGETS_HEADING = re.compile(r"[\s*_`#]*(?:nuggets[\s*_`]*[:：]?[\s*_`]*)?", re.IGNORECASE)
"""All that may stand before a list of nuggets; any other text may say that what follows it is quoted."""
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
_BROKEN = "the reply holds a JSON object that cannot be parsed"


class _NoVerdict(Exception):
    """A reply holds no verdict."""

    def __init__(self, detail: str, *, refused: bool = False) -> None:
        super().__init__(detail)
        self.unreadable = Unreadable("refused" if refused else "unreadable", detail)


def parse(completion: Completion, criterion: Criterion, form: AnswerForm, sentences: int) -> Verdict | Unreadable:
    """The verdict of a completion; an off-scale, missing or ambiguous verdict is Unreadable.

    So many numbered `sentences` had to be labeled; 0 when one grade is asked.
    """
    reply = reply_of(completion)
    if isinstance(reply, Unreadable):
        return reply

    def read(text: str) -> Verdict:
        if criterion.answer == "sentences":
            return _of_sentences(text, criterion, form, sentences, completion)
        return _of_grade(text, criterion, form, completion)

    try:
        return read(reply)
    except _NoVerdict as none:
        if completion.is_cut:
            return cut_off(completion)
        unreadable = none.unreadable
    if unreadable.reason != "unreadable":
        return unreadable
    if reply.strip():
        return Unreadable("unreadable", f"{unreadable.detail}{stray_thoughts(completion)}")
    return _empty(completion, read)


def _empty(completion: Completion, read: Callable[[str], Verdict]) -> Unreadable:
    """That a reply has no text, what it holds in place of it, and what to do about that."""
    told = "the reply is empty"
    try:
        message = at(json.loads(completion.raw or "null"), dict, "choices", 0, "message")
    except (ValueError, RecursionError):
        return Unreadable("unreadable", told)
    for field in ("reasoning_content", "reasoning"):
        thoughts = at(message, str, field)
        if not thoughts:
            continue
        try:
            read(thoughts)
        except _NoVerdict:
            return Unreadable("unreadable", f"{told}: it has thoughts in `{field}`, and no answer after them")
        told += f": its verdict is in `{field}`, among the thoughts; set {PARSERS}, or ask without thoughts"
        return Unreadable("unreadable", told, hidden=True)
    calls = at(message, list, "tool_calls") or ()
    if len(calls) > 1:
        told += f": it has {len(calls)} tool calls, and none of them is the answer"
    return Unreadable("unreadable", told)


def cut_by_expected(verdict: Verdict | Unreadable, criterion: Criterion) -> Verdict | Unreadable:
    """The verdict with the level that the prompt's cuts give its expected grade; without cuts as it is.

    A verdict without an expected grade is Unreadable: its own grade would be on another scale than the cut ones.
    """
    if not criterion.cuts or isinstance(verdict, Unreadable) or verdict.unable:
        return verdict
    if verdict.expected is None:
        return Unreadable(
            "unreadable",
            "the reply has no label probabilities, which the prompt's cuts need (--logprobs asks for them)",
        )
    grades = sorted(level.grade for level in criterion.scale.levels)
    return msgspec.structs.replace(verdict, grade=grades[bisect_right(criterion.cuts, verdict.expected)])


def _refuse_cut(completion: Completion) -> None:
    """Refuse what follows no closed object, because what follows the cut may have been another verdict."""
    if completion.is_cut:
        raise _NoVerdict("the reply was cut off")


def _of_grade(reply: str, criterion: Criterion, form: AnswerForm, completion: Completion) -> Verdict:
    """The verdict of one grade, with the nuggets beside it where they are asked."""
    scale = criterion.scale
    nuggets = criterion.answer == "nuggets"
    answer = _answer(reply, ("grade", "nuggets") if nuggets else ("grade",), scale.labels) if form == "json" else None
    label = on_menu(reply, scale.labels) if form in ("label", "decision") else None
    if answer is not None:
        claimed = answer["grade"]
        rest = _rationale(answer)
    elif label is not None:
        if any(other != label and other.startswith(label) for other in scale.labels):
            _refuse_cut(completion)
        claimed = label
        rest = None
    else:
        _refuse_cut(completion)
        claimed, rest = _last_claim(reply, scale.labels)
        if form in ("label", "decision") and rest:
            raise _NoVerdict("the reply holds more than its label")
    if not nuggets:
        return _graded(claimed, rest, scale, completion.probabilities)
    verdict = _graded(claimed, None, scale)
    if answer is not None:
        return _with_nuggets(verdict, answer["nuggets"], scale)
    # The verdict is the last line; how far the lines before it are set in tells one list from two.
    *before, _ = reply.rstrip(_NOTHING).splitlines()
    return _with_nuggets(verdict, _list_before("\n".join(before)), scale)


def _list_before(text: str) -> list[str]:
    """The items of the list that a text ends with.

    A list that is quoted is no answer, and nothing tells where it ends and the judge's own begins. So whatever may
    introduce or divide a quotation is refused: text before the list, items that stand elsewhere or are set in, an item
    that ends with a colon, other marks than before, and numbers that begin again.
    """
    items, before = _ending(text, _NUGGET)
    if any(map(_NUGGET.fullmatch, before.splitlines())):
        raise _NoVerdict("the nuggets are no single list that stands right before the grade")
    if not items:
        return []
    if not _NUGGETS_HEADING.fullmatch(before):
        raise _NoVerdict("text stands before the list of nuggets, which may be quoted")
    if len({item["indent"] for item in items}) > 1:
        raise _NoVerdict("some nuggets are set in, and may be quoted")
    if len({item["bullet"] or item["stop"] for item in items}) > 1:
        raise _NoVerdict("the nuggets have several kinds of marks, so they may be of two lists")
    if any(item["text"].rstrip(_NOTHING).endswith((":", "：")) for item in items):
        raise _NoVerdict("a nugget ends with a colon, and what follows it may be quoted")
    numbers = [int(item["number"]) for item in items if item["number"]]
    if numbers != list(range(1, len(numbers) + 1)):
        raise _NoVerdict("the nuggets are not numbered from 1 on, so they may be of two lists")
    return [item["text"] for item in items]


def _graded(
    claimed: object, rationale: str | None, scale: Scale, probabilities: Mapping[str, float] | None = None
) -> Verdict:
    """The verdict with the label that is claimed, which must be on the scale."""
    label = on_menu(claimed, scale.labels)
    if label is None:
        raise _NoVerdict(f"found grade {in_short(claimed)}, expected one of {', '.join(scale.labels)}")
    level = next(level for level in _all_levels(scale) if level.label == label)
    unable = level is scale.unable
    expected = None if unable else expected_grade(probabilities, scale)
    return Verdict(level.grade, rationale, expected=expected, unable=unable)


def _with_nuggets(verdict: Verdict, listed: object, scale: Scale) -> Verdict:
    """The verdict with its nuggets, which may not contradict the grade and can stand in a bank.

    The reply says twice whether there are nuggets, by the list and by its grade. An empty list is never an accident.
    """
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise _NoVerdict('"nuggets" is not a list of strings')
    texts = tuple(" ".join((_clean(text) or "").split()) for text in listed)
    for number, text in enumerate(texts, 1):
        if not has_content(text) or not storable(text):
            raise _NoVerdict(f"nugget {number} is empty or holds a character that no text may hold")
        if len(text) > LONGEST_NUGGET:
            raise _NoVerdict(f"nugget {number} has {len(text)} characters: at most {LONGEST_NUGGET}")
    if len(texts) > MOST_LISTED:
        raise _NoVerdict(f"{len(texts)} nuggets: at most {MOST_LISTED}")
    if bool(texts) != (verdict.grade in scale.positive):
        label = next(level.label for level in scale.levels if level.grade == verdict.grade)
        raise _NoVerdict(f"the reply lists {len(texts)} nuggets, and its grade is {label}")
    return msgspec.structs.replace(verdict, nuggets=texts)


def _of_sentences(
    reply: str, criterion: Criterion, form: AnswerForm, sentences: int, completion: Completion
) -> Verdict:
    """The verdict that the labels of the sentences roll up to."""
    answer = _answer(reply, ("sentences",), ()) if form == "json" else None
    entries: Sequence[tuple[object, object]]
    if answer is None:
        _refuse_cut(completion)
        lines = [(_SENTENCE.fullmatch(line.lstrip(_BEFORE_NUMBER)), line) for line in reply.splitlines()]
        entries = [(match[1], match[2]) for match, _ in lines if match]
        rationale = _clean("\n".join(line for match, line in lines if not match))
        if not entries:
            raise _no_verdict(reply, "no line of the form `1: LABEL`")
    else:
        listed = answer["sentences"]
        rationale = _rationale(answer)
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise _NoVerdict('"sentences" is not a list of objects with "n" and "label"')
        entries = [(entry.get("n"), entry.get("label")) for entry in listed]
    verdict = _rolled_up(_by_number(entries, answer_labels(criterion), sentences), criterion, rationale)
    if len(completion.support) != sentences:
        return verdict
    expected = _expected_by_support(completion.support, verdict.sentences, criterion)
    return msgspec.structs.replace(verdict, support=completion.support, expected=expected)


def _by_number(entries: Sequence[tuple[object, object]], menu: Sequence[str], sentences: int) -> tuple[str, ...]:
    """The label of each sentence, from number 1 to `sentences`."""
    keys = [str(number) for number in range(1, sentences + 1)]
    labels: dict[str, str] = {}
    for claimed_number, claimed_label in entries:
        key = on_menu(claimed_number, keys)
        label = on_menu(claimed_label, menu)
        if key is None:
            raise _NoVerdict(f"found sentence number {in_short(claimed_number)}, expected 1 to {sentences}")
        if label is None:
            expected = f"expected one of {', '.join(menu)}"
            raise _NoVerdict(f"sentence {key}: found label {in_short(claimed_label)}, {expected}")
        if labels.setdefault(key, label) != label:
            raise _NoVerdict(f"sentence {key} has two labels, {labels[key]!r} and {label!r}")
    if missing := [key for key in keys if key not in labels]:
        raise _NoVerdict(f"no label for sentence {', '.join(missing[:10])} of {sentences}")
    return tuple(labels[key] for key in keys)


def _rolled_up(labels: tuple[str, ...], criterion: Criterion, rationale: str | None) -> Verdict:
    rollup = criterion.rollup
    unable = criterion.scale.unable
    if rollup is None:
        raise ValueError(f"{criterion.prompt_id}: sentences are labeled but no roll-up is declared")
    counted = [label for label in labels if label != rollup.ignored]
    if counted:
        return Verdict(rollup.grade(counted.count(rollup.label) / len(counted)), rationale, sentences=labels)
    if unable is None:
        raise _NoVerdict("no sentence counts towards a grade")
    return Verdict(unable.grade, rationale, sentences=labels, unable=True)


def _ending(text: str, form: re.Pattern[str]) -> tuple[list[re.Match[str]], str]:
    """The lines of a form that a text ends with, and the text before them.

    Blank lines stand between all of them or none: a line that is set apart from the others may be quoted. So may the
    first where text stands right before it and blank lines between it and the others.
    """
    lines = text.splitlines()
    found: list[tuple[int, re.Match[str]]] = []
    gaps: set[bool] = set()
    for place in reversed([place for place, line in enumerate(lines) if line.strip(_NOTHING)]):
        match = form.fullmatch(lines[place])
        apart = bool(found) and found[-1][0] - place > 1
        if match is None or gaps | {apart} == {True, False}:
            if gaps == {True} and not apart:
                found.pop()
            break
        gaps |= {apart} if found else set()
        found.append((place, match))
    return [match for _, match in reversed(found)], "\n".join(lines[: found[-1][0] if found else len(lines)])


def _objects(reply: str, keys: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """The JSON objects of a reply with one of the keys, and the text outside; none if the reply holds no JSON.

    A broken object may hold the real verdict, and an intact object inside it may be a mere quotation. The last object
    must end the reply, because the text after it may say that it was only a quotation.
    """
    objects: list[tuple[dict[str, Any], int]] = []
    outside: list[str] = []
    end = 0
    while begun := _OBJECT.search(reply, end):
        outside.append(reply[end : begun.start()])
        try:
            members, end = _DECODER.raw_decode(reply, begun.start())
        except (ValueError, RecursionError):
            raise _NoVerdict(_BROKEN) from None
        objects.append((members, end))
    whole = " ".join([*outside, reply[end:]])
    if _STRAY_KEY.search(whole):
        raise _NoVerdict(_BROKEN)
    answers = [(members, end) for members, end in objects if any(key in members for key in keys)]
    if objects and not answers:
        refused = any(members.get("refusal") for members, _ in objects)
        told = "the reply is a refusal" if refused else f'the JSON object has no "{keys[0]}"'
        raise _NoVerdict(told, refused=refused)
    if answers and reply[answers[-1][1] :].strip(_NOTHING):
        raise _NoVerdict("the reply goes on after its JSON object")
    return [members for members, _ in answers], whole


def _answer(reply: str, keys: Sequence[str], menu: Sequence[str]) -> dict[str, Any] | None:
    """The last JSON object, which has all keys, and which nothing else may contradict; None if there is no JSON.

    The text outside may not claim another label of the menu for the first key; it is empty where no grade is asked.
    """
    objects, outside = _objects(reply, keys)
    if not objects:
        return None
    answer = objects[-1]
    claims = _claims(outside, menu) if menu else set()
    for key in keys:
        if key not in answer:
            raise _NoVerdict(f'the JSON object has no "{key}"')
        if any(other[key] != answer[key] for other in objects if key in other):
            raise _NoVerdict(f'the reply has two JSON objects that differ in "{key}"')
        if key == keys[0] and claims and claims != {on_menu(answer[key], menu)}:
            raise _NoVerdict("the reply claims another grade than its JSON object")
    return answer


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object; a key given twice is ambiguous and refused."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is given twice")
    return members


# Raw line breaks inside strings are common in replies and harmless.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, strict=False)


def _last_claim(reply: str, menu: Sequence[str]) -> tuple[str, str | None]:
    """The label in the last line of a reply, and the rest of the reply as the rationale.

    A verdict followed by more text may be quoted or withdrawn, and one of two different verdicts may be quoted from the
    response: both cases are unreadable.
    """
    lines = reply.rstrip(_NOTHING).splitlines()
    # Only the last line with any statement of a grade can be the verdict.
    last = next((index for index in reversed(range(len(lines))) if _CLAIM.search(lines[index])), None)
    if last is None:
        raise _no_verdict(reply, "no line of the form `Grade: LABEL`")
    match = _VERDICT.fullmatch(lines[last])
    if match is None:
        raise _NoVerdict(f"the last verdict reads {in_short(lines[last])}, expected `Grade: LABEL`")
    if last < len(lines) - 1:
        raise _NoVerdict(f"the reply goes on after {in_short(lines[last])}")
    labels = _claims(reply, menu) | ({on_menu(match[1], menu)} - {None})
    if len(labels) > 1:
        raise _NoVerdict(f"the reply gives {len(labels)} different grades")
    return match[1], _clean("\n".join(lines[:last] + lines[last + 1 :]))


_CLAIM = re.compile(r"(?<![^\W_])grade(?![^\W_])[\s*_`\"']*(?:[:：=]|is\b)", re.IGNORECASE)
"""A statement of what the grade is, up to where its label would follow."""


def _claims(text: str, menu: Sequence[str]) -> set[str]:
    """The labels of the menu that directly follow a claim, such as `the grade is`, in a text."""
    text = text.replace(_MINUS, "-")
    matches = (_label_pattern(tuple(menu)).match(text, found.end()) for found in _CLAIM.finditer(text))
    return {label for match in matches if match and (label := on_menu(match[1], menu)) is not None}


@lru_cache(maxsize=64)
def _label_pattern(menu: tuple[str, ...]) -> re.Pattern[str]:
    """A label of the menu as its only group, with what may stand before it; the text has plain minus signs."""
    # A label that begins like another is tried before it.
    labels = "|".join(re.escape(label) for label in sorted(menu, key=len, reverse=True))
    # Not a part of a longer word or number, such as `2.5`, `2/3` or `1-2`.
    return re.compile(rf"[\s*_`#\"'“‘(\[]*({labels})(?:\.0+)?(?![^\W_]|[.,/\-–][0-9])", re.IGNORECASE)


def on_menu(value: object, menu: Sequence[str]) -> str | None:
    """The label of the menu that a value names, ignoring case and outer punctuation; None if it names none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        value = str(value)
    return _label(value, tuple(menu)) if isinstance(value, str) else None


@lru_cache(maxsize=256)
def _label(value: str, menu: tuple[str, ...]) -> str | None:
    name = " ".join(value.lstrip(_OPENING).rstrip(_CLOSING).split()).replace(_MINUS, "-").casefold()
    if number := _WHOLE_NUMBER.fullmatch(name):
        name = number[1]
    return next((label for label in menu if label.casefold() == name), None)


def _rationale(answer: Mapping[str, Any]) -> str | None:
    """The rationale of a JSON answer, which may be a list of strings; None if it holds no text."""
    rationale = answer.get("rationale")
    parts = rationale if isinstance(rationale, list) else [rationale]
    return _clean("\n".join(part for part in parts if isinstance(part, str)))


def _clean(text: str) -> str | None:
    """A text without outer whitespace and with lone surrogates replaced, as UTF-8 needs; None if it is empty."""
    whole = text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.strip() or None


def _no_verdict(reply: str, detail: str) -> _NoVerdict:
    """Why a reply has no verdict: it is empty, a refusal, or `detail`."""
    if not reply.strip():
        return _NoVerdict("the reply is empty")
    if _REFUSAL.match(reply.replace("’", "'")):
        return _NoVerdict(f"the judge declined: {in_short(reply)}", refused=True)
    return _NoVerdict(detail)


def _expected_by_support(
    support: Sequence[tuple[float | None, tuple[int, ...]]], labels: Sequence[str], criterion: Criterion
) -> float | None:
    """The mean grade if each sentence that counts were supported with its probability, apart from the others."""
    rollup = criterion.rollup
    if rollup is None or not support:
        return None
    chances = [chance for (chance, _), label in zip(support, labels, strict=True) if label != rollup.ignored]
    # How likely it is that k of the sentences so far are supported.
    likely = [1.0]
    for chance in chances:
        if chance is None:
            return None
        likely = [
            math.fsum((stays * (1 - chance), goes * chance))
            for stays, goes in zip([*likely, 0.0], [0.0, *likely], strict=True)
        ]
    return math.fsum(p * rollup.grade(k / len(chances)) for k, p in enumerate(likely)) if chances else None


def expected_grade(probabilities: Mapping[str, float] | None, scale: Scale) -> float | None:
    """Mean grade under the probabilities of labels; None where `grade_probabilities` gives none."""
    by_grade = grade_probabilities(probabilities, scale)
    return None if by_grade is None else math.fsum(grade * p for grade, p in by_grade.items())


def grade_probabilities(probabilities: Mapping[str, float] | None, scale: Scale) -> dict[int, float] | None:
    """The probability of each grade, normalized without "unable"; labels that are not on the scale are ignored.

    None if there are no valid probabilities, or if "unable" has more than half of the mass.
    """
    if not probabilities:
        return None
    masses = {level.grade: probabilities.get(level.label, 0.0) for level in scale.levels}
    unable = probabilities.get(scale.unable.label, 0.0) if scale.unable else 0.0
    # A NaN fails the comparison too.
    if not all(0 <= mass < math.inf for mass in (*masses.values(), unable)):
        return None
    total = math.fsum((*masses.values(), unable))
    graded = math.fsum(masses.values())
    if graded <= 0 or total - graded > total / 2:
        return None
    return {grade: mass / graded for grade, mass in masses.items()}


def _all_levels(scale: Scale) -> tuple[Level, ...]:
    return (*scale.levels, scale.unable) if scale.unable else scale.levels
