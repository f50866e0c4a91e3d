"""From a pool to a bank: the sources of its nuggets, the candidates of each, merged without repeats and weighed. Pure.

As nuggetizer does, a judge lists the nuggets of texts, a list without repeats grows, and another prompt says which are
vital. There, one call reads ten passages and rewrites the whole list. Here, one call reads one source, so that calls do
not wait for each other, a hostile text reaches no other source's nuggets, and each nugget knows where it comes from.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

from judge.ask.records import Failure, Judgment
from judge.ask.tasks import Task
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
    own_turns = 0
    for response in pool.responses:
        if is_own_turn(response.turn_id):
            own_turns += 1
        else:
            of_turns.setdefault(response.turn_id, []).append(response)
    by_turn: dict[str, tuple[NuggetSource, ...]] = {}
    lacking: set[str] = set()
    irrelevant: set[tuple[str, str]] = set()
    for turn_id in sorted(of_turns, key=natural_key):
        sources: list[NuggetSource] = []
        uses: dict[str, int] = {}
        for response in of_turns[turn_id] if kind != "responses" else ():
            for key in response.passages:
                uses[key] = uses.get(key, 0) + 1
        for key in sorted(uses, key=natural_key):
            if key not in pool.passages:
                lacking.add(key)
                continue
            passage = pool.passages[key]
            grade = None if grades is None else grades.get(turn_id, {}).get(passage.passage_id)
            if grades is not None and (grade is None or grade < minimum):
                irrelevant.add((turn_id, passage.passage_id))
                continue
            sources.append(NuggetSource(turn_id, passage.text, passage=passage.passage_id, relevance=grade))
        used = {pool.passages[key].passage_id: number for key, number in uses.items() if key in pool.passages}
        sources.sort(key=lambda source: (-(source.relevance or 0), -used[source.passage or ""]))
        if kind != "passages":
            sources += [
                NuggetSource(turn_id, response.text, response_id=response.response_id) for response in of_turns[turn_id]
            ]
        if sources:
            by_turn[turn_id] = tuple(sources)
    return TurnSources(by_turn, len(lacking), len(irrelevant), own_turns)


class NuggetCandidate(NamedTuple):
    """A text that may become a nugget, and its sources."""

    text: str
    passages: tuple[str, ...]
    responses: tuple[str, ...]
    relevance: int | None
    """The best grade of its passages."""


def candidates_of(listed: Sequence[tuple[NuggetSource, tuple[str, ...]]]) -> tuple[NuggetCandidate, ...]:
    """The different texts of the sources of one turn: the first of each source, then the second of each, and so on.

    A source lists its most important nuggets first, so that what comes first is what matters most. Texts that differ
    only in case, white space and final periods are one.
    """
    found: dict[str, NuggetCandidate] = {}
    for rank in zip_longest(*([(source, text) for text in texts] for source, texts in listed)):
        for entry in rank:
            if entry is None:
                continue
            source, text = entry
            key = " ".join(text.split()).rstrip(". ").casefold()
            before = found.get(key, NuggetCandidate(text, (), (), None))
            grades = [grade for grade in (before.relevance, source.relevance) if grade is not None]
            found[key] = NuggetCandidate(
                before.text,
                _joined(before.passages, source.passage),
                _joined(before.responses, source.response_id),
                max(grades, default=None),
            )
    return tuple(found.values())


def _joined(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return names if name is None or name in names else (*names, name)


class TurnMerging:
    """The candidates of one turn, block by block compared with those that are new, up to `most`; the rest is left."""

    def __init__(self, turn_id: str, candidates: Sequence[NuggetCandidate], most: int) -> None:
        self.turn_id = turn_id
        self.kept: list[NuggetCandidate] = []
        self.failure: Failure | None = None
        self._waiting = list(candidates)
        self._most = most
        if len(self._waiting) == 1:
            # Nothing to compare it with.
            self.kept = [self._waiting.pop()]

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.failure is not None or not self._waiting or len(self.kept) >= self._most

    @property
    def left_over(self) -> int:
        """Candidates that were not looked at, because there are enough nuggets."""
        return len(self._waiting)

    def task(self, criterion: Criterion) -> Task:
        """The question which candidates of the next block are new."""
        texts = tuple(candidate.text for candidate in self._block())
        known = tuple(candidate.text for candidate in self.kept)
        return _list_task(self.turn_id, criterion, texts, known)

    def take(self, result: Judgment | Failure) -> None:
        """Keep what is new by the answer to `task`."""
        if isinstance(result, Failure):
            self.failure = result
            return
        block = self._block()
        # Before the very first candidate stands nothing that it could repeat, whatever its label.
        first = not self.kept
        labels = zip(block, result.sentences, strict=True)
        new = [candidate for place, (candidate, label) in enumerate(labels) if label == NEW or (first and not place)]
        self.kept += new[: self._most - len(self.kept)]
        del self._waiting[: len(block)]

    def _block(self) -> list[NuggetCandidate]:
        return self._waiting[:BLOCK]


def importance_task(turn_id: str, kept: Sequence[NuggetCandidate], criterion: Criterion) -> Task:
    """The question how important the nuggets of a turn are."""
    return _list_task(turn_id, criterion, tuple(candidate.text for candidate in kept))


def _list_task(turn_id: str, criterion: Criterion, texts: tuple[str, ...], known: tuple[str, ...] = ()) -> Task:
    return Task(_standing(turn_id, turn_id, "\n".join(texts)), criterion, known=known, candidates=texts)


def weighed(turn_id: str, kept: Sequence[NuggetCandidate], result: Judgment, judge: str) -> list[Nugget]:
    """The nuggets of a turn with the importance that the judge gave them."""
    labels: dict[str, Importance] = {VITAL: "vital", OKAY: "okay"}
    return [
        Nugget(
            nugget_id=f"{turn_id}/{number}",
            topic_id=topic_of(turn_id),
            text=candidate.text,
            turn_id=turn_id,
            importance=labels[label],
            relevance=candidate.relevance,
            passages=candidate.passages,
            responses=candidate.responses,
            made_by=judge,
        )
        for number, (candidate, label) in enumerate(zip(kept, result.sentences, strict=True), 1)
    ]


def creation_failure(step: CreationStep, result: Failure, source: NuggetSource | None = None) -> NuggetFailure:
    """The record of a step that failed."""
    return NuggetFailure(
        turn_id=result.turn_id,
        step=step,
        reason=result.reason,
        detail=result.detail,
        judge=result.judge,
        passage=source.passage if source is not None else None,
        response_id=source.response_id if source is not None else None,
        raw=result.raw,
        request_digest=result.request_digest,
    )
