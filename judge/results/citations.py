"""Measures of citations, and win rates: what grades of other units come to, as a criterion of responses. Pure.

N. Thakur, R. Pradeep, S. Upadhyay, D. Campos, N. Craswell & J. Lin (2025), Support evaluation for the TREC 2024 RAG
track, arXiv:2504.15205.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import fsum
from typing import Any

import msgspec

from judge.errors import UsageError
from judge.io.ids import topic_of
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, JudgedUnit, Level, Scale
from judge.results.rows import UnitKey
from judge.units import UNITS

Sentences = Sequence[Sequence[PooledResponse]]
"""The pooled citations of each sentence of a response, in their order; none of a sentence that cites nothing."""
_SHARES = Scale(
    levels=(Level(0, "none", "nothing is supported"), Level(1, "full", "everything is supported")),
    polarity="higher",
    positive=(1,),
    unable=None,
)


class Measure(Criterion, frozen=True, kw_only=True):
    """A criterion of responses, from 0 to 1, that grades of another unit come to.

    Of citations it is a measure as its fields say; of pairs the share of wins, where a tie is half a win.
    """

    of: Criterion
    hard: bool = False
    """Whether only positive grades count; else a grade counts as its place on the scale."""
    every: bool = False
    """Whether all citations of a sentence count; else its first one does."""
    recall: bool = False
    """Whether a sentence that cites nothing counts 0; else it does not count."""

    @property
    def of_pairs(self) -> bool:
        """Whether it is a share of wins."""
        return UNITS[self.of.unit].orders > 1

    @property
    def prompt_id(self) -> str:
        """The prompt behind the grades."""
        return self.of.prompt_id

    def worth(self, grade: float) -> float:
        """What a citation of this grade counts, from 0 to 1."""
        low, high = self.of.scale.ends
        place = (grade - low) / (high - low)
        if self.hard:
            return float(grade in self.of.scale.positive)
        return place if self.of.scale.polarity == "higher" else 1 - place

    def score(self, sentences: Sequence[Sequence[float | None]]) -> float:
        """The measure of one response, given what each sentence's citations are worth; None for no grade."""
        return support(sentences, every=self.every)[self.recall]

    def filled(self, sentences: Sequence[Sequence[float | None]]) -> float:
        """The same if citations without a grade were worth what the others are on average.

        One of two sentences that cite is judged, and a third one cites nothing. Left out, the other would make the
        sentence without a citation a half of the response.

        >>> support([[1], [None], []])[True], support([[1], [1], []])[True]
        (0.5, 0.6666666666666666)
        """
        precision, _ = support(sentences, every=self.every)
        if not self.recall:
            return precision
        return precision * sum(map(bool, sentences)) / max(1, len(sentences))

    def looked_at(self, sentences: Sentences) -> Sentences:
        """The citations that count."""
        return sentences if self.every else [cited[:1] for cited in sentences]


def support(sentences: Sequence[Sequence[float | None]], *, every: bool = False) -> tuple[float, float]:
    """Precision and recall of a response, given what each sentence's citations are worth, from 0 to 1.

    A sentence scores the mean of its judged citations, of which only the first is looked at unless `every`; None is a
    citation that nobody judged. Precision is over sentences with a judged citation; recall is over all but those whose
    citations nobody judged, so a sentence without citation scores 0. Either is 0 over nothing.

    Full, then none and partial, then uncited, then unjudged:

    >>> support([[1], [0, 0.5], [], [None]]), support([[1], [0, 0.5], [], [None]], every=True)
    ((0.5, 0.3333333333333333), (0.625, 0.4166666666666667))
    """
    looked_at = [worths if every else worths[:1] for worths in sentences]
    judged: list[list[float]] = []
    for worths in looked_at:
        judged.append([worth for worth in worths if worth is not None])
    total = fsum(fsum(of) / len(of) for of in judged if of)
    cited = sum(map(bool, judged))
    uncited = sum(not worths for worths in looked_at)
    return total / max(1, cited), total / max(1, cited + uncited)


def boards_of(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """The criteria that boards of runs are made under: for one of citations its measures, else the criterion."""
    boards: list[Criterion] = []
    for criterion in criteria:
        boards.extend(MEASURES[criterion.unit](criterion))
    return tuple(boards)


def headlines_of(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """The boards that stand where there is room for few: of measures those that are weighted, by the first citation."""
    return tuple(
        board for board in boards_of(criteria) if not isinstance(board, Measure) or not (board.hard or board.every)
    )


def refuse_measured(pool: Pool) -> None:
    """Refuse a pool of citations, pairs or passages where responses or their grades are ranked, as a UsageError."""
    refuse_listed(pool)
    unit = UNITS[pool.unit]
    if unit.boards != unit.name:
        raise UsageError(
            f"a pool of {unit.nouns.responses} has no grades of responses: its boards are in leaderboard.md, and "
            "`judge leaderboard` makes them anew, with --gold corrected; for grades of responses judge them into "
            "another folder, such as by `judge run --criteria groundedness`"
        )


def refuse_listed(pool: Pool) -> None:
    """Refuse a pool of passages where runs are ranked, as a UsageError."""
    unit = UNITS[pool.unit]
    if unit.listed:
        raise UsageError(
            f"a pool of {unit.nouns.responses} ranks no runs: `judge evaluate passages` measures them by its qrels"
        )


def cited_responses(pool: Pool) -> dict[str, dict[str, Sentences]]:
    """Run to turn to the sentences of its response."""
    found: dict[str, dict[str, dict[int, dict[int, PooledResponse]]]] = defaultdict(lambda: defaultdict(dict))
    for response in pool.responses:
        for entry in response.runs:
            found[entry.run_id][response.turn_id].setdefault(entry.rank, {})[entry.citation] = response
    for row in pool.exclusions:
        if row.reason == "uncited_sentence" and row.rank is not None:
            found[row.run_id][row.turn_id].setdefault(row.rank, {})
    in_order: dict[str, dict[str, Sentences]] = {}
    for run_id, turns in found.items():
        in_order[run_id] = {}
        for turn_id, sentences in turns.items():
            ranked = [cited for _, cited in sorted(sentences.items())]
            in_order[run_id][turn_id] = [[cited[place] for place in sorted(cited)] for cited in ranked]
    return in_order


def key_of(run_id: str, turn_id: str, sentences: Sentences = ()) -> UnitKey:
    """What stands for a run's response in the boards of a measure."""
    passages: dict[str, None] = {}
    for cited in sentences:
        for citation in cited:
            passages |= dict.fromkeys(citation.passages)
    return UnitKey(
        response_id=f"{run_id} {turn_id}", turn_id=turn_id, topic_id=topic_of(turn_id), passages=tuple(passages)
    )


def _itself(criterion: Criterion) -> tuple[Criterion, ...]:
    return (criterion,)


def _none(criterion: Criterion) -> tuple[Criterion, ...]:
    """Runs are not ranked by grades of what they list."""
    return ()


def _support_measures(criterion: Criterion) -> tuple[Criterion, ...]:
    """Precision and recall by weighted and hard grades, of first citations and then of all."""
    measures = []
    for every, kind, name in product((False, True), ("weighted", "hard"), ("precision", "recall")):
        measure = Measure(
            **_of_responses(criterion, f"{name}_{kind}{'_all' if every else ''}"),
            of=criterion,
            hard=kind == "hard",
            every=every,
            recall=name == "recall",
        )
        measures.append(measure)
    return tuple(measures)


def _win_rate(criterion: Criterion) -> tuple[Criterion, ...]:
    return (Measure(**_of_responses(criterion, "win_rate"), of=criterion),)


def _of_responses(criterion: Criterion, name: str) -> dict[str, Any]:
    """The fields of a criterion as those of a measure of responses."""
    return msgspec.structs.asdict(criterion) | {
        "name": f"{criterion.name}_{name}",
        "unit": "response",
        "answer": "grade",
        "sentence_levels": (),
        "rollup": None,
        "scale": _SHARES,
    }


MEASURES: Mapping[JudgedUnit, Callable[[Criterion], tuple[Criterion, ...]]] = {
    "response": _itself,
    "dialogue": _itself,
    "citation": _support_measures,
    "pair": _win_rate,
    "passage": _none,
}
"""The boards of runs that a criterion about a unit has."""
