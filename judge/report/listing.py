"""The items of a browser as the tables of a page: columns to filter at once, and details that are read later."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from judge.errors import InputError
from judge.io.ids import natural_key
from judge.io.words import content_words, split_sentences
from judge.judges.journal import JournalView
from judge.judges.journal_store import Recorded
from judge.report.items import BrowsedItem, BrowsedItems, Opinion, gaps, off_gold
from judge.runs.records import Turn

CHUNK = 512 << 10
"""Bytes of JSON after which a chunk is closed; a longer value has a chunk of its own."""
_LEVEL = 4
"""Of compression: the page is 5 % larger than at 6, and written in a third of the time."""
NONE = -1
"""In place of a reference to a text, where there is no text."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


PackedTable = list[tuple[int, str]]
"""A table as its chunks, each after the number of its first value."""


def json_text(value: object) -> bytes:
    """A value as JSON; a lone surrogate becomes the three bytes of its number, which a browser shows as U+FFFD."""
    return _encoder.encode(value).encode("utf-8", "surrogatepass")


def pack(content: bytes) -> str:
    """Bytes compressed, in base64."""
    return base64.b64encode(zlib.compress(content, _LEVEL)).decode()


class Packer:
    """Takes the values of a table one by one, and keeps only their compressed form."""

    def __init__(self, size: int = CHUNK) -> None:
        self._size = size
        self._open: list[bytes] = []
        self._bytes = 0
        self._chunks: PackedTable = []
        self._count = 0

    def add(self, value: object) -> int:
        """Add a value, and say its number in the table."""
        encoded = json_text(value)
        if self._open and self._bytes + len(encoded) > self._size:
            self._close()
        self._open.append(encoded)
        self._bytes += len(encoded)
        self._count += 1
        return self._count - 1

    def table(self) -> PackedTable:
        """Everything that was added so far."""
        if self._open:
            self._close()
        return self._chunks

    def _close(self) -> None:
        self._chunks.append((self._count - len(self._open), pack(b"[" + b",".join(self._open) + b"]")))
        self._open, self._bytes = [], 0


class TextTables:
    """The texts of a page, each stored once, in two tables: those that a search looks through, and the others.

    A reference is an even number for a text that is searched, an odd one for another; half of it, rounded down, is
    the text's number in its table.
    """

    def __init__(self, size: int = CHUNK) -> None:
        self._packers = Packer(size), Packer(size)
        # Digests, because the texts themselves would fill the memory.
        self._known: dict[bytes, int] = {}

    def searched(self, text: str | None) -> int:
        """The reference of a text that a search shall find."""
        return self._refer(text, 0)

    def stored(self, text: str | None) -> int:
        """The reference of a text that is only shown."""
        return self._refer(text, 1)

    def _refer(self, text: str | None, table: int) -> int:
        if text is None:
            return NONE
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        # A text that is searched may stand in for one that is only shown, but not the other way round.
        if known is None or known % 2 > table:
            known = self._known[key] = 2 * self._packers[table].add(text) + table
        return known

    def tables(self) -> tuple[PackedTable, PackedTable]:
        """The texts that are searched, and the others."""
        searched, stored = self._packers
        return searched.table(), stored.table()


NOT_THERE, GRADED, _REASONS = 0, 1, 2
"""Codes of a row's state on a side: it does not have the response, it has a grade, or the number of a reason."""
_DIGITS = 3
"""Decimals of the gaps, shares and probabilities that a page shows."""


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


def listing(gathered: BrowsedItems, chunk: int = CHUNK) -> tuple[str, dict[str, PackedTable]]:
    """The columns of the items, packed, without which the page lists nothing; and the tables beside them.

    These are `searched` and `stored` texts, `items` in the order of the columns, `turns` likewise.
    """
    return _Lister(gathered, chunk).listing()


def _number(names: dict[Any, int], name: Any) -> int:
    """The number of a name that occurs again and again, in the order of first use."""
    return names.setdefault(name, len(names))


class _Lister:
    def __init__(self, gathered: BrowsedItems, chunk: int) -> None:
        self._all = gathered
        self._items = tuple(gathered.items)
        self._texts = TextTables(chunk)
        # A prompt's instructions are sent with every response.
        self._quoted = lru_cache(maxsize=64)(self._references)
        self._details, self._turns = Packer(chunk), Packer(chunk)
        # Names in the order of their first use, each with its number.
        self._turn_names, self._topics, self._criteria, self._judges, self._reasons, self._run_sets, self._runs = (
            dict[Any, int]() for _ in range(7)
        )
        self._item_names: set[str] = set()
        self._turn_topics: list[int] = []
        self._utterances: list[int] = []
        for run_id in sorted({run for item in self._items for run, _ in item.runs}, key=natural_key):
            _number(self._runs, run_id)

    def listing(self) -> tuple[str, dict[str, PackedTable]]:
        sides = range(len(self._all.sides))
        rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        said: list[dict[str, list[Any]]] = [{name: [] for name in _SIDE_COLUMNS} for _ in sides]
        with ExitStack() as opened:
            of_sides = [opened_journal(path) for _, path in self._all.sides]
            journals = [opened.enter_context(journal) for journal, _ in of_sides]
            for item in self._items:
                turn = self._turn(item)
                self._details.add(self._detail(item, journals))
                for column, value in zip(_COLUMNS, self._row(item, turn), strict=True):
                    rows[column].append(value)
                for side in sides:
                    values = self._said(item, side)
                    for column, value in zip(_SIDE_COLUMNS, values, strict=True):
                        said[side][column].append(value)
            notes = [*self._all.notes, *(problem for _, problem in of_sides if problem)]
        searched, stored = self._texts.tables()
        tables = {"searched": searched, "stored": stored, "items": self._details.table(), "turns": self._turns.table()}
        index = {
            "sides": [name for name, _ in self._all.sides],
            "notes": notes,
            # What differs comes first: of several sides, or of a calibration, which says itself how far they differ.
            "order": "worst" if len(sides) > 1 or any(item.apart is not None for item in self._items) else "natural",
            "runs": list(self._runs),
            "run_sets": list(self._run_sets),
            "topics": list(self._topics),
            "turns": list(self._turn_names),
            "turn_topic": self._turn_topics,
            "utterance": self._utterances,
            "criteria": list(self._criteria),
            "levels": self._levels(),
            "judges": list(self._judges),
            "reasons": list(self._reasons),
            "rows": rows,
            "said": said,
            "tables": {name: {"starts": [start for start, _ in table]} for name, table in tables.items()},
        }
        return pack(json_text(index)), tables

    def _levels(self) -> list[list[dict[str, list[str]]]]:
        """For each criterion and side, grade to label and description; empty where the prompt is not at hand."""
        scales = self._all.scales
        return [
            [
                {str(level.grade): [level.label, level.description] for level in scales[side, criterion].levels}
                if (side, criterion) in scales
                else {}
                for side in range(len(self._all.sides))
            ]
            for criterion in self._criteria
        ]

    def _row(self, item: BrowsedItem, turn: int) -> tuple[Any, ...]:
        scales = {side: scale for (side, name), scale in self._all.scales.items() if name == item.criterion}
        apart = gaps(item, scales)
        return (
            self._name(item),
            turn,
            _number(self._criteria, item.criterion),
            _number(self._run_sets, tuple(sorted({_number(self._runs, run) for run, _ in item.runs}))),
            self._texts.searched(item.text),
            item.gold_grade,
            *(None if gap is None else round(gap, _DIGITS) for gap in apart),
        )

    def _said(self, item: BrowsedItem, side: int) -> tuple[Any, ...]:
        said = item.opinions.get(side)
        if said is None:
            return NOT_THERE, None, NONE, NONE, None
        state = GRADED if said.grade is not None else _REASONS + _number(self._reasons, said.reason or "no grade")
        words = said.rationale if said.rationale is not None else said.detail
        off = off_gold(item, side, self._all.scales.get((side, item.criterion)))
        return state, said.grade, _number(self._judges, said.judge), self._texts.searched(words), off

    def _name(self, item: BrowsedItem) -> str:
        """A name that a link keeps when the report is written anew."""
        name = f"{item.opinions[min(item.opinions)].response_id}/{item.criterion}"
        number = 2
        unique = name
        while unique in self._item_names:
            unique, number = f"{name}~{number}", number + 1
        self._item_names.add(unique)
        return unique

    def _turn(self, item: BrowsedItem) -> int:
        number = _number(self._turn_names, item.turn_id)
        if number == len(self._turn_topics):
            turn = self._all.turns.get(item.turn_id)
            self._turn_topics.append(_number(self._topics, item.topic_id))
            self._utterances.append(self._texts.searched(turn.utterance if turn else None))
            self._turns.add(None if turn is None else self._conversation(turn))
        return number

    def _conversation(self, turn: Turn) -> dict[str, Any]:
        texts = self._texts
        linked = set(turn.ptkb_provenance)
        return {
            "context": [[texts.searched(each.utterance), texts.stored(each.response)] for each in turn.context],
            "resolved": texts.stored(turn.resolved_utterance),
            "ptkb": [
                [statement.ptkb_id, texts.stored(statement.text), statement.ptkb_id in linked]
                for statement in turn.ptkb
            ],
        }

    def _detail(self, item: BrowsedItem, journals: Sequence[JournalView]) -> dict[str, Any]:
        # First what a search looks through, then what lies beside it in the same order as the items.
        self._texts.searched(item.text)
        passages = [[name, self._texts.stored(text), source] for name, text, source in item.passages]
        sentences = labeled_sentences(item)
        checked = checked_supports(item, len(sentences)) if sentences else None
        support = supports(sentences, [text for _, text, _ in item.passages]) if checked is None else checked
        return {
            "cut": item.truncated,
            "runs": [[_number(self._runs, run), place] for run, place in item.runs],
            "passages": passages,
            "gold": [[one.assessor, one.grade, one.made] for one in item.gold],
            "sentences": list(map(self._texts.stored, sentences)),
            "support": [one and [one[0], round(one[1], _DIGITS)] for one in support],
            "checked": checked is not None,
            "sides": {str(side): self._opinion(said, journals[side]) for side, said in sorted(item.opinions.items())},
        }

    def _opinion(self, said: Opinion, journal: JournalView) -> dict[str, Any]:
        recorded = sent(journal, said.request_digest)
        reply = said.raw
        if recorded is not None:
            reply = recorded.completion.text or recorded.completion.raw or reply
        shown: dict[str, Any] = {
            "reason": said.reason, "expected": said.expected, "probabilities": said.probabilities,
            "rationale": self._reference(said.rationale, searched=True),
            "detail": self._reference(said.detail, searched=True), "reply": self._reference(reply),
            "sentences": said.sentences or None, "model": said.model, "repaired": said.repaired or None,
            "sample": said.sample or None,
            "sent": [[one.role, self._quoted(one.content)] for one in recorded.messages] if recorded else None,
            "votes": [self._opinion(vote, journal) for vote in said.votes] or None,
        }  # fmt: skip
        # Most of these have no value, and a page holds thousands of them.
        given = {name: value for name, value in shown.items() if value is not None}
        return {"id": said.response_id, "judge": said.judge, "prompt": said.prompt, "grade": said.grade, **given}

    def _references(self, message: str) -> list[int]:
        return list(map(self._texts.stored, pieces(message)))

    def _reference(self, text: str | None, *, searched: bool = False) -> int | None:
        refer = self._texts.searched if searched else self._texts.stored
        return None if text is None else refer(text)


_COLUMNS = ("name", "turn", "criterion", "runs", "text", "gold", "gap_gold", "gap_judges", "gap_jury")
_SIDE_COLUMNS = ("state", "grade", "judge", "words", "off")
