"""From the replies of a judge to a bank: candidates of every source, merged without repeats, and weighed. Pure.

As nuggetizer does, a judge lists the nuggets of texts, a list without repeats grows, and another prompt says which are
vital. There, one call reads ten passages and rewrites the whole list. Here, one call reads one source, so that calls do
not wait for each other, a hostile text reaches no other source's nuggets, and each nugget knows where it comes from.
R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG Track, arXiv:2411.09607.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from judge.ask.records import Failure, Judgment
from judge.ask.tasks import Task
from judge.nuggets.records import CreationStep, Importance, Nugget, NuggetFailure
from judge.nuggets.sources import NuggetSource, standing
from judge.pool.records import PooledResponse
from judge.records import Criterion
from judge.text.ids import topic_of

BLOCK = 25
"""Candidates that one call compares with the nuggets that are known."""
NEW, REPEAT = "new", "repeat"
VITAL, OKAY = "vital", "okay"


class NuggetCandidate(NamedTuple):
    """A text that may become a nugget, and its sources."""

    text: str
    passages: tuple[str, ...]
    responses: tuple[str, ...]
    relevance: int | None
    """The best grade of its passages."""


def source_task(source: NuggetSource, criterion: Criterion) -> Task:
    """The question for the nuggets of a source."""
    return Task(source.shown(), criterion)


def candidates_of(listed: Sequence[tuple[NuggetSource, tuple[str, ...]]]) -> tuple[NuggetCandidate, ...]:
    """The different texts of the sources of one turn: the first of each source, then the second of each, and so on.

    A source lists its most important nuggets first, so that what comes first is what matters most. Texts that differ
    only in case, white space and final periods are one.

    Args:
        listed: The sources with the nuggets that each lists.
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
    """The candidates of one turn, block by block compared with those that are new.

    Args:
        turn_id: The turn.
        candidates: Its candidates.
        most: Most nuggets of a turn; once there are so many, the other candidates are left over.
    """

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
        return Task(_about(self.turn_id, texts), criterion, known=known, candidates=texts)

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
    texts = tuple(candidate.text for candidate in kept)
    return Task(_about(turn_id, texts), criterion, candidates=texts)


def _about(turn_id: str, texts: Sequence[str]) -> PooledResponse:
    return standing(turn_id, turn_id, "\n".join(texts))


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
