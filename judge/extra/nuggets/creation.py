"""From a pool to a bank: the sources of its nuggets, the candidates of each, merged without repeats and weighed. Pure.

As nuggetizer does, a judge lists the nuggets of texts, a list without repeats grows, and another prompt says which are
vital. There, one call reads ten passages and rewrites the whole list. Here, one call reads one source, so that calls do
not wait for each other, a hostile text reaches no other source's nuggets, and each nugget knows where it comes from.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import msgspec

from judge.ask.records import Failure, Judgment, Task
from judge.extra.nuggets.records import CreationStep, Importance, Nugget, NuggetFailure
from judge.io.ids import is_own_turn, natural_key, topic_of
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion
from judge.runs.records import TokenCount

BLOCK = 25
"""Candidates that one call compares with the nuggets that are known."""
NEW, REPEAT = "new", "repeat"
VITAL, OKAY = "vital", "okay"
SourceKind = Literal["passages", "responses", "both"]
PassageGrades = Mapping[str, Mapping[str, int]]
"""Turn id to passage id to grade."""
_NO_COUNT = TokenCount(bare=0, english=0, whitespace=0, cut=None)


class NuggetSource(NamedTuple):
    """A passage or a response of a turn."""

    turn_id: str
    text: str
    passage: str | None = None
    """The id of the passage."""
    response_id: str | None = None
    relevance: int | None = None
    """The grade of the passage, where qrels give one."""

    def task(self, criterion: Criterion) -> Task:
        """The question for its nuggets, where it stands in the place of the response that a prompt is about."""
        return Task(_standing(self.turn_id, self.passage or self.response_id or "", self.text), criterion)


class TurnSources(NamedTuple):
    """The sources of the turns of a pool, and what is none."""

    by_turn: dict[str, tuple[NuggetSource, ...]]
    """Turn to its sources, in natural order of turns: passages before responses."""
    lacking: int
    """Used passages without a text."""
    irrelevant: int
    """Used passages that the qrels do not grade as relevant."""
    own_turns: int
    """Responses of interactive runs, whose turns are the runs' own."""


def _standing(turn_id: str, name: str, text: str) -> PooledResponse:
    """A text of a turn as what a question is about, where no pooled response is."""
    return PooledResponse(name, turn_id, topic_of(turn_id), text, (), _NO_COUNT, False, ())


def turn_sources(pool: Pool, kind: SourceKind, grades: PassageGrades | None = None, minimum: int = 1) -> TurnSources:
    """The sources of every turn; with qrels, only passages that they grade `minimum` or better.

    Passages are ordered by grade, and then by how many pooled responses used them; responses as in the pool.
    """
    of_turns: dict[str, list[PooledResponse]] = {}
    for response in pool.responses:
        if not is_own_turn(response.turn_id):
            of_turns.setdefault(response.turn_id, []).append(response)
    by_turn: dict[str, tuple[NuggetSource, ...]] = {}
    lacking: set[str] = set()
    irrelevant = 0
    for turn_id in sorted(of_turns, key=natural_key):
        uses = Counter(key for response in of_turns[turn_id] for key in response.passages if kind != "responses")
        lacking |= uses.keys() - pool.passages.keys()
        passages: list[tuple[int, NuggetSource]] = []
        for key in sorted(uses.keys() & pool.passages.keys(), key=natural_key):
            passage = pool.passages[key]
            grade = None if grades is None else grades.get(turn_id, {}).get(passage.passage_id)
            if grades is not None and (grade is None or grade < minimum):
                irrelevant += 1
            else:
                passages.append((uses[key], NuggetSource(turn_id, passage.text, passage.passage_id, relevance=grade)))
        passages.sort(key=lambda pair: (-(pair[1].relevance or 0), -pair[0]))
        responses = of_turns[turn_id] if kind != "passages" else ()
        sources = (
            *(source for _, source in passages),
            *(NuggetSource(turn_id, response.text, response_id=response.response_id) for response in responses),
        )
        if sources:
            by_turn[turn_id] = sources
    own_turns = len(pool.responses) - sum(map(len, of_turns.values()))
    return TurnSources(by_turn, len(lacking), irrelevant, own_turns)


def candidates_of(listed: Sequence[tuple[NuggetSource, tuple[str, ...]]]) -> tuple[Nugget, ...]:
    """The different texts of the sources of one turn, as nuggets without an id.

    The first text of each source comes first, then the second of each, and so on: a source lists its most important
    nuggets first. Texts that differ only in case, white space and final periods are one.
    """
    found: dict[str, Nugget] = {}
    ranks = zip_longest(*([(source, text) for text in texts] for source, texts in listed))
    for source, text in (entry for rank in ranks for entry in rank if entry is not None):
        key = " ".join(text.split()).rstrip(". ").casefold()
        known = found.get(key, Nugget("", topic_of(source.turn_id), text, source.turn_id))
        grades = [grade for grade in (known.relevance, source.relevance) if grade is not None]
        found[key] = msgspec.structs.replace(
            known,
            relevance=max(grades, default=None),
            passages=_joined(known.passages, source.passage),
            responses=_joined(known.responses, source.response_id),
        )
    return tuple(found.values())


def _joined(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return names if name is None or name in names else (*names, name)


class TurnMerging:
    """The candidates of one turn, block by block compared with those that are new, up to `most`; the rest is left."""

    def __init__(self, turn_id: str, candidates: Sequence[Nugget], most: int) -> None:
        self.turn_id = turn_id
        # A single candidate has nothing to compare it with.
        alone = len(candidates) == 1
        self.kept = list(candidates) if alone else []
        self.waiting = [] if alone else list(candidates)
        """Candidates that were not looked at yet; at the end, because there are enough nuggets."""
        self.failure: Failure | None = None
        self._most = most

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.failure is not None or not self.waiting or len(self.kept) >= self._most

    def task(self, criterion: Criterion) -> Task:
        """The question which candidates of the next block are new."""
        return _list_task(self.turn_id, criterion, self.waiting[:BLOCK], self.kept)

    def take(self, result: Judgment | Failure) -> None:
        """Keep what is new by the answer to `task`."""
        if isinstance(result, Failure):
            self.failure = result
            return
        labels = list(zip(self.waiting[:BLOCK], result.sentences, strict=True))
        # Before the very first candidate stands nothing that it could repeat, whatever its label.
        first = not self.kept
        new = [candidate for place, (candidate, label) in enumerate(labels) if label == NEW or (first and not place)]
        self.kept += new[: self._most - len(self.kept)]
        del self.waiting[: len(labels)]


def importance_task(turn_id: str, kept: Sequence[Nugget], criterion: Criterion) -> Task:
    """The question how important the nuggets of a turn are."""
    return _list_task(turn_id, criterion, kept)


def _list_task(turn_id: str, criterion: Criterion, listed: Sequence[Nugget], known: Sequence[Nugget] = ()) -> Task:
    texts = tuple(nugget.text for nugget in listed)
    standing = _standing(turn_id, turn_id, "\n".join(texts))
    return Task(standing, criterion, known=tuple(nugget.text for nugget in known), candidates=texts)


def weighed(turn_id: str, kept: Sequence[Nugget], result: Judgment, judge: str) -> list[Nugget]:
    """The nuggets of a turn with ids, and with the importance that the judge gave them."""
    labels: dict[str, Importance] = {VITAL: "vital", OKAY: "okay"}
    return [
        msgspec.structs.replace(nugget, nugget_id=f"{turn_id}/{number}", importance=labels[label], made_by=judge)
        for number, (nugget, label) in enumerate(zip(kept, result.sentences, strict=True), 1)
    ]


def creation_failure(step: CreationStep, result: Failure, source: NuggetSource | None = None) -> NuggetFailure:
    """The record of a step that failed."""
    same = {name: getattr(result, name) for name in ("turn_id", "reason", "detail", "judge", "raw", "request_digest")}
    shown: dict[str, Any] = {} if source is None else {"passage": source.passage, "response_id": source.response_id}
    return NuggetFailure(step=step, **same, **shown)
