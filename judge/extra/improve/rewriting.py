"""The request for another wording of a prompt, what its reply holds, and whether that is a prompt to try.

The items were written by strangers, who may want a judge that favors them: they are fenced as in judges' prompts, and a
wording counts only by its agreement with people.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from unicodedata import category

import msgspec

from judge.ask.prompt import EXAMPLES, NOTICE, fence, fill
from judge.ask.prompt_file import parse_criterion
from judge.ask.questions import Answer, Inquiry, Questions
from judge.ask.records import Task, Unreadable, Verdict
from judge.ask.reply import cut_off, reply_of
from judge.calibrate.disagreements import Disagreement
from judge.errors import InputError
from judge.io.files import read_stored, sha256
from judge.io.ids import topic_of
from judge.io.installed import bundled
from judge.io.text import decimals, storable
from judge.io.words import COPIED_RUN, word_runs, words_of
from judge.judges.records import AnswerForm, Message, Request
from judge.pool.records import PooledResponse
from judge.records import Criterion, Level, Scale
from judge.runs.records import TokenCount

LONGEST = 20_000
"""Most characters of a part of a prompt that is proposed."""
_TEXT = 1500
"""Most characters of a text of an item that a proposer is shown."""
_PASSAGES = 3
_OBJECT = re.compile(r"\{\s*\"")
_MOST_OBJECTS = 20
"""Places of a reply where an object is looked for."""
_PARTS = ("system", "user")
_HIDDEN = frozenset({"Cc", "Cf", "Co"})
"""Kinds of characters that nobody sees: controls, directions of writing, tags, private ones."""
_JOINERS = frozenset("\n\t\u200c\u200d")
"""Line breaks, tabs, and what joins letters of some scripts."""
_REASONS = frozenset({"rationale", "reason", "reasons", "explanation", "changes", "notes"})
"""What models add unasked, which changes nothing."""
_STAYS = {
    "name": "the criterion",
    "unit": "the unit",
    "scale": "the scale",
    "answer": "the answer form",
    "sentence_levels": "the labels of sentences",
    "rollup": "the roll-up of sentences",
}
"""The fields of a prompt that no wording may change, and what they are called."""


class RefusedWordingError(ValueError):
    """A proposal is no prompt to try."""


def rewriting_prompt() -> Criterion:
    """Our prompt for a proposer, in the place of the prompt of a judge, so that it is asked like one."""
    path = bundled("prompts") / "rewriting.md"
    stored = read_stored(path)
    text = stored.decode().replace("\r\n", "\n")
    system, _, user = text.removeprefix("# System\n").partition("\n# User\n")
    return Criterion(
        name="rewriting",
        variant="rewriting",
        version=1,
        inputs=("response",),
        answer="grade",
        scale=Scale(levels=(Level(0, "0", "none"), Level(1, "1", "some")), polarity="higher", positive=(1,)),
        sentence_levels=(),
        rollup=None,
        system=system.strip(),
        user=user.strip(),
        file="prompts/rewriting.md",
        digest=sha256(text.encode()),
    )


class WordingQuestions(Questions):
    """Questions for another wording: the task's text is the whole message, and any reply is an answer."""

    def rendered(self, task: Task, form: AnswerForm) -> Request:
        """The request for a wording."""
        return Request(
            response_id=task.response.response_id,
            turn_id=task.response.turn_id,
            criterion=task.criterion.name,
            form=form,
            messages=(
                Message("system", f"{task.criterion.system}\n\n{NOTICE}"),
                Message("user", task.response.text),
            ),
            scale=task.criterion.scale,
            labels=(),
            sentences=0,
            response="",
            passages=(),
            sample=task.sample,
        )

    def inquiry(self, task: Task, request: Request) -> Inquiry:
        """One request; what its reply is worth is found out later, so that it is never asked twice."""
        return _one_request(request)


def _one_request(request: Request) -> Inquiry:
    completion = yield request
    reply = reply_of(completion)
    if isinstance(reply, str) and completion.is_cut and _object_in(reply) is None:
        reply = cut_off(completion)
    if isinstance(reply, Unreadable):
        return Answer(reply, completion, request, repaired=False)
    return Answer(Verdict(grade=1, rationale=reply), completion, request, repaired=False)


class Parent(NamedTuple):
    """A wording that another one is made from."""

    criterion: Criterion
    content: str
    """The text of its prompt file."""
    agreement: float | None
    worst: tuple[Disagreement, ...]
    """Where it grades otherwise than the assessors on dev, the greatest distance first."""


def wording_task(rewriting: Criterion, parent: Parent, items: Sequence[Disagreement], number: int, of: int) -> Task:
    """The question for wording `number` of `of`, made from a parent and shown these items."""
    criterion = parent.criterion
    levels = "\n".join(f"{level.label}: {level.description}" for level in criterion.scale.levels)
    filled = {
        "system": fence("system_part", criterion.system),
        "user": fence("user_part", criterion.user),
        "levels": fence("levels", levels),
        "agreement": "not defined" if parent.agreement is None else decimals(parent.agreement, 2),
        "items": "\n\n".join(_item(place, item) for place, item in enumerate(items, 1)) or "(none)",
        "number": str(number),
        "variants": str(of),
    }
    name = f"{criterion.variant}/{number}"
    return Task(standing(name, fill(rewriting.user, filled)), rewriting)


def standing(name: str, text: str) -> PooledResponse:
    """A message in the place of a pooled response."""
    return PooledResponse(
        response_id=name,
        turn_id=name,
        topic_id=topic_of(name),
        text=text,
        passages=(),
        tokens=TokenCount(bare=0, english=0, whitespace=0, cut=None),
        truncated=False,
        runs=(),
    )


def _item(place: int, item: Disagreement) -> str:
    """One item with all that was said of it."""
    lines = [f"Item {place}"]
    if item.utterance is not None:
        lines.append(fence("user_asks", item.utterance[:_TEXT]))
    for passage in item.passages[:_PASSAGES]:
        lines.append(fence("passage", (passage.text or "")[:_TEXT]))
    if item.text is not None:
        lines.append(fence("text", item.text[:_TEXT]))
    people = ", ".join(assessor.label or str(assessor.grade) for assessor in item.gold)
    judge = item.judges[0]
    given = "none" if judge.grade is None else judge.label or str(judge.grade)
    lines.append(f"Grade by people: {people}. Grade under this prompt: {given}.")
    for assessor in item.gold:
        if assessor.comment:
            lines.append(fence("comment_by_people", assessor.comment[:_TEXT]))
    if judge.rationale:
        lines.append(fence("reasons_under_this_prompt", judge.rationale[:_TEXT]))
    return "\n".join(lines)


def _object_in(reply: str) -> dict[str, Any] | None:
    """The first JSON object in a reply that has a part of a prompt, else the first one; None without any.

    Models write of braces before they write an object.
    """
    first = None
    for begun in islice(_OBJECT.finditer(reply), _MOST_OBJECTS):
        try:
            document, _ = json.JSONDecoder(strict=False).raw_decode(reply, begun.start())
        except (ValueError, RecursionError):
            continue
        if not document.keys().isdisjoint(_PARTS):
            return dict(document)
        first = first or document
    return first


def wording_of(reply: str, parent: Parent) -> str:
    """The prompt file that a reply asks for; a RefusedWordingError if it holds no two parts of a prompt."""
    if not _OBJECT.search(reply):
        raise RefusedWordingError("the reply has no JSON object")
    parts = _object_in(reply)
    if parts is None:
        raise RefusedWordingError("the reply has a JSON object that cannot be parsed")
    if more := sorted(set(parts) - set(_PARTS) - _REASONS):
        raise RefusedWordingError(f"the reply changes {', '.join(more)[:80]}, and only the words may change")
    for name in _PARTS:
        if not isinstance(parts.get(name), str) or not parts[name].strip():
            raise RefusedWordingError(f'"{name}" is no text')
        if len(parts[name]) > LONGEST:
            raise RefusedWordingError(f'"{name}" has {len(parts[name]):,} characters: at most {LONGEST:,}')
    front = parent.content.partition("\n+++")[0]
    return f"{front}\n+++\n\n# System\n\n{parts['system'].strip()}\n\n# User\n\n{parts['user'].strip()}\n"


def checked_wording(
    content: str,
    variant: str,
    first: Criterion,
    tried: Mapping[str, Criterion],
    material: Iterable[tuple[str, str]] = (),
) -> Criterion:
    """The prompt in the text of a file, which differs from the first one and all that were tried in its words alone.

    `material`: names and texts of which no wording may quote. A RefusedWordingError if it is no prompt, another one
    than in its words, one that was tried, one that quotes, or one that holds what no reader sees.
    """
    if not storable(content):
        raise RefusedWordingError("it holds a character that no text may hold")
    try:
        criterion = parse_criterion(content.encode(), variant, f"{variant}.md")
    except InputError as error:
        problems = "; ".join(problem.message for problem in error.problems[:3])
        raise RefusedWordingError(f"not a usable prompt: {problems}") from None
    changed = [called for name, called in _STAYS.items() if getattr(criterion, name) != getattr(first, name)]
    if _material(criterion) != _material(first):
        changed.append("the inputs")
    if changed:
        raise RefusedWordingError(f"it changes {', '.join(changed)}, and only the words may change")
    for other in tried.values():
        if _words(other) == _words(criterion):
            raise RefusedWordingError(f"the same wording as {other.variant}")
    if hidden := _hidden(criterion) - _hidden(first):
        raise RefusedWordingError(f"it holds what a reader does not see: U+{ord(min(hidden)):04X}")
    new = _runs(criterion) - _runs(first)
    for name, text in material if new else ():
        if not new.isdisjoint(word_runs(words_of(text))):
            raise RefusedWordingError(
                f"it quotes {COPIED_RUN} words in a row of {name}: what is shown must be an example, which leaves "
                "every comparison"
            )
    return criterion


def _hidden(criterion: Criterion) -> set[str]:
    """The characters of a prompt that show nothing where they stand, but may change what is read or obeyed."""
    text = f"{criterion.system}{criterion.user}"
    return {character for character in {*text} - _JOINERS if category(character) in _HIDDEN}


def _runs(criterion: Criterion) -> set[tuple[str, ...]]:
    """All runs of words that count as copied, in the words of a prompt."""
    return {*word_runs(words_of(criterion.system)), *word_runs(words_of(criterion.user))}


def _material(criterion: Criterion) -> set[str]:
    """The inputs that are of what is judged; an optimizer may add examples."""
    return set(criterion.inputs) - {EXAMPLES}


def _words(criterion: Criterion) -> tuple[object, ...]:
    """All that makes a wording another one."""
    return criterion.system.split(), criterion.user.split(), criterion.examples, criterion.cuts


def with_variant(criterion: Criterion, variant: str) -> Criterion:
    """The prompt under another name and with one word more, for a forecast."""
    system = f"{criterion.system}\n\n{variant}"
    return msgspec.structs.replace(criterion, variant=variant, system=system, digest=sha256(variant.encode()))
