"""The texts that nuggets of a turn are taken from: relevant passages and pooled responses. Pure."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from judge.pool.records import Pool, PooledResponse
from judge.runs.records import TokenCount
from judge.text.ids import is_own_turn, natural_key, topic_of

SourceKind = Literal["passages", "responses", "both"]
SOURCE_KINDS: tuple[SourceKind, ...] = ("passages", "responses", "both")
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

    def shown(self) -> PooledResponse:
        """The source in the place of the response that a prompt is about."""
        return standing(self.turn_id, self.passage or self.response_id or "", self.text)


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


def standing(turn_id: str, name: str, text: str) -> PooledResponse:
    """A text of a turn as what a question is about, where no pooled response is."""
    return PooledResponse(name, turn_id, topic_of(turn_id), text, (), _NO_COUNT, False, ())


def turn_sources(pool: Pool, kind: SourceKind, grades: PassageGrades | None = None, minimum: int = 1) -> TurnSources:
    """The sources of every turn.

    Passages are ordered by grade, and then by how many pooled responses used them; responses as in the pool.

    Args:
        pool: The responses with their passages.
        kind: What counts as a source.
        grades: Passage qrels; None to take every passage that a response used.
        minimum: The least grade of a passage that counts as relevant.
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
