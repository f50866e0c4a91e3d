"""The items of a browser as one JSON document, which stands in the page."""

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from judge.errors import InputError
from judge.io.ids import natural_key
from judge.io.words import content_words, split_sentences
from judge.judges.journal import JournalView
from judge.judges.journal_store import Recorded
from judge.report.items import BrowsedItem, BrowsedItems, Opinion, gaps, off_gold
from judge.runs.records import Turn

_DIGITS = 3
"""Decimals of the gaps between grades, and of how far a passage supports a sentence."""

# A fenced text holds no `<`, so every such line is ours, and what stands between two of them is one text.
_TAG = re.compile(r"(<[a-z_]+(?: n=\"[0-9]+\")?>\n|\n</[a-z_]+>\n?)")


def opened_journal(path: Path | None) -> tuple[JournalView, str | None]:
    """A journal that is only read; an empty one without a path, or where it cannot be read, which is said."""
    if path is None:
        return JournalView([]), None
    try:
        return JournalView([path]), None
    except InputError as error:
        return JournalView([]), f"{path.parent.name}/{path.name}: {str(error).removeprefix(f'{path}: ')}"


def sent(journal: JournalView, digest: str | None) -> Recorded | None:
    """A request with its completion; None if the journal does not hold it, or holds it damaged."""
    with suppress(InputError):
        return None if digest is None else journal.find(digest)
    return None


def pieces(message: str) -> list[str]:
    r"""A message cut at the lines of its tags; joined, the pieces are the message.

    >>> pieces('<passage n="1">\nA ferry.\n</passage>\nGrade:')
    ['<passage n="1">\n', 'A ferry.', '\n</passage>\n', 'Grade:']
    """
    return [piece for piece in _TAG.split(message) if piece]


Support = tuple[int, float]
"""The place of a passage among the used ones, and the share of a sentence's content words that it holds; of a checker,
its probability of support."""


def supports(sentences: Sequence[str], passages: Sequence[str | None]) -> list[Support | None]:
    """For each sentence the passage that holds most of its words, the first of equals; None where none holds a word.

    >>> supports(["The ferry leaves at dawn.", "Hello!"], ["A bus.", "A ferry leaves the pier at noon."])
    [(1, 0.6666666666666666), None]
    """
    known = [set(content_words(text or "")) for text in passages]
    found: list[Support | None] = []
    for sentence in sentences:
        words = content_words(sentence)
        shares = [sum(word in held for word in words) / len(words) for held in known] if words else []
        best = max(shares, default=0.0)
        found.append((shares.index(best), best) if best else None)
    return found


def checked_supports(item: BrowsedItem, sentences: int) -> list[Support | None] | None:
    """For each sentence the first passage that a checker says supports it; None if no checker judged the item."""
    places = {name: place for place, (name, *_) in reversed([*enumerate(item.passages)])}
    for said in item.opinions.values():
        if said.support and len(said.support) == sentences:
            found = [
                (places.get(one.passages[0].partition("#")[0]) if one.passages else None, one) for one in said.support
            ]
            return [None if at is None else (at, one.probability or 0.0) for at, one in found]
    return None


def labeled_sentences(item: BrowsedItem) -> tuple[str, ...]:
    """The sentences of an item's response, if a judge labeled as many; else none."""
    labeled = {len(said.sentences) for top in item.opinions.values() for said in (top, *top.votes) if said.sentences}
    sentences = split_sentences(item.text) if labeled and item.text is not None else ()
    return sentences if len(sentences) in labeled else ()


_UNREADABLE = re.compile("[\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Half of a character, which UTF-8 cannot hold, and what shows a text in another order than it was written in.

One sign takes the place of one, so that marks and labels of sentences stay where they are.
"""


def json_block(value: object) -> str:
    r"""A value as JSON that may stand in a script element: no `<` begins a tag, and what cannot be read is a sign.

    >>> json_block({"text": "</script>"})
    '{"text":"\\u003c/script>"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNREADABLE.sub("\ufffd", text.replace("<", "\\u003c"))


def listing(gathered: BrowsedItems) -> dict[str, Any]:
    """Everything that the browser shows, as values of JSON.

    `texts` has passages and the parts of prompts, which come again with many items, each once; items name them by their
    places in it.
    """
    return _Lister(gathered).listing()


class _Lister:
    def __init__(self, gathered: BrowsedItems) -> None:
        self._all = gathered
        self._items = tuple(gathered.items)
        self._texts: dict[str, int] = {}
        self._names: set[str] = set()

    def listing(self) -> dict[str, Any]:
        with ExitStack() as opened:
            of_sides = [opened_journal(path) for _, path in self._all.sides]
            journals = [opened.enter_context(journal) for journal, _ in of_sides]
            items = [self._item(item, journals) for item in self._items]
        notes = [*self._all.notes, *(problem for _, problem in of_sides if problem)]
        # What differs comes first: of several sides, or of a calibration, which says itself how far they differ.
        apart = len(of_sides) > 1 or any(item.apart is not None for item in self._items)
        topics = {item.turn_id: item.topic_id for item in self._items}
        criteria = dict.fromkeys(item.criterion for item in self._items)
        return {
            "sides": [name for name, _ in self._all.sides],
            "notes": notes,
            "order": "worst" if apart else "natural",
            "runs": sorted({run for item in self._items for run, _ in item.runs}, key=natural_key),
            "turns": [self._turn(turn_id, topic_id) for turn_id, topic_id in topics.items()],
            "criteria": [{"name": name, "levels": self._levels(name)} for name in criteria],
            "items": items,
            "texts": list(self._texts),
        }

    def _levels(self, criterion: str) -> list[dict[str, list[str]]]:
        """For each side, grade to label and description; empty where the prompt is not at hand."""
        scales = (self._all.scales.get((side, criterion)) for side in range(len(self._all.sides)))
        return [
            {str(level.grade): [level.label, level.description] for level in scale.levels} if scale else {}
            for scale in scales
        ]

    def _turn(self, turn_id: str, topic_id: str) -> dict[str, Any]:
        turn: Turn | None = self._all.turns.get(turn_id)
        if turn is None:
            return {"name": turn_id, "topic": topic_id}
        return {
            "name": turn_id,
            "topic": topic_id,
            "utterance": turn.utterance,
            "resolved": turn.resolved_utterance,
            "context": [[exchange.utterance, exchange.response] for exchange in turn.context],
            "references": list(turn.references),
            "ptkb": [[statement.text, statement.ptkb_id in turn.ptkb_provenance] for statement in turn.ptkb],
        }

    def _item(self, item: BrowsedItem, journals: Sequence[JournalView]) -> dict[str, Any]:
        scales = {side: scale for (side, name), scale in self._all.scales.items() if name == item.criterion}
        apart = gaps(item, scales)
        sentences = labeled_sentences(item)
        checked = checked_supports(item, len(sentences)) if sentences else None
        support = supports(sentences, [text for _, text, *_ in item.passages]) if checked is None else checked
        sides: dict[str, dict[str, Any]] = {}
        for side, said in sorted(item.opinions.items()):
            off = off_gold(item, side, scales.get(side))
            sides[str(side)] = self._opinion(said, journals[side]) | ({} if off is None else {"off": off})
        return {
            "name": self._name(item),
            "turn": item.turn_id,
            "criterion": item.criterion,
            "text": item.text,
            "cut": item.truncated,
            "runs": [[run, place] for run, place in item.runs],
            "passages": [[name, self._shared(text), *more] for name, text, *more in item.passages],
            "gold": item.gold_grade,
            "assessors": [
                [one.assessor, one.grade, one.made, *([one.comment] if one.comment else [])] for one in item.gold
            ],
            "gaps": {
                kind: round(gap, _DIGITS)
                for kind, gap in (("gold", apart.gold), ("judges", apart.judges), ("jury", apart.jury))
                if gap is not None
            },
            "sentences": list(sentences),
            "support": [one and [one[0], round(one[1], _DIGITS)] for one in support],
            "checked": checked is not None,
            "sides": sides,
        }

    def _name(self, item: BrowsedItem) -> str:
        """A name that a link keeps when the report is written anew."""
        name = f"{item.opinions[min(item.opinions)].response_id}/{item.criterion}"
        number = 2
        unique = name
        while unique in self._names:
            unique = f"{name}~{number}"
            number = number + 1
        self._names.add(unique)
        return unique

    def _opinion(self, said: Opinion, journal: JournalView) -> dict[str, Any]:
        recorded = sent(journal, said.request_digest)
        reply = said.raw
        if recorded is not None:
            reply = recorded.completion.text or recorded.completion.raw or reply
        messages = recorded.messages if recorded else ()
        shown: dict[str, Any] = {
            "reason": said.reason,
            "expected": said.expected,
            "probabilities": said.probabilities,
            "rationale": said.rationale,
            "detail": said.detail,
            "reply": reply,
            "sentences": said.sentences or None,
            "model": said.model,
            "repaired": said.repaired or None,
            "sample": said.sample or None,
            "sent": [[one.role, [self._shared(piece) for piece in pieces(one.content)]] for one in messages] or None,
            "votes": [self._opinion(vote, journal) for vote in said.votes] or None,
        }
        # Most of these have no value, and a page holds thousands of them.
        given = {name: value for name, value in shown.items() if value is not None}
        return {"judge": said.judge, "prompt": said.prompt, "grade": said.grade, **given}

    def _shared(self, text: str | None) -> int | None:
        """The place of a text among those that come again; None where there is none."""
        return None if text is None else self._texts.setdefault(text, len(self._texts))
