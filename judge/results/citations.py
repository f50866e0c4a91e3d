"""Measures of citations, and win rates: what grades of other units come to, as a criterion of responses. Pure.

N. Thakur, R. Pradeep, S. Upadhyay, D. Campos, N. Craswell & J. Lin (2025), Support evaluation for the TREC 2024 RAG
track, arXiv:2504.15205.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import fsum

import msgspec

from judge.errors import UsageError
from judge.io.ids import topic_of
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Level, Scale
from judge.results.rows import UnitKey

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
    judged = [[worth for worth in worths if worth is not None] for worths in looked_at]
    total = fsum(fsum(of) / len(of) for of in judged if of)
    cited = sum(map(bool, judged))
    uncited = sum(not worths for worths in looked_at)
    return total / max(1, cited), total / max(1, cited + uncited)


def boards_of(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """The criteria that boards of runs are made under: for one of citations its measures, else the criterion."""
    return tuple(board for criterion in criteria for board in _boards(criterion))


def headlines_of(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """The boards that stand where there is room for few: of measures those that are weighted, by the first citation."""
    return tuple(
        board for board in boards_of(criteria) if not isinstance(board, Measure) or not (board.hard or board.every)
    )


def _boards(criterion: Criterion) -> Iterable[Criterion]:
    if criterion.unit not in ("citation", "pair"):
        return (criterion,)
    of_responses = {"unit": "response", "answer": "grade", "sentence_levels": (), "rollup": None, "scale": _SHARES}
    same = msgspec.structs.asdict(criterion) | of_responses
    if criterion.unit == "pair":
        return (Measure(**same | {"name": f"{criterion.name}_win_rate"}, of=criterion),)
    return [
        Measure(
            **same | {"name": f"{criterion.name}_{name}_{kind}{'_all' if every else ''}"},
            of=criterion,
            hard=kind == "hard",
            every=every,
            recall=name == "recall",
        )
        for every in (False, True)
        for kind in ("weighted", "hard")
        for name in ("precision", "recall")
    ]


def refuse_measured(pool: Pool) -> None:
    """Refuse a pool of citations or pairs where responses or their grades are ranked, as a UsageError."""
    if pool.unit in ("citation", "pair"):
        raise UsageError(f"a pool of {pool.unit}s has no grades of responses: `judge leaderboard` measures these")


def cited_responses(pool: Pool) -> dict[str, dict[str, Sentences]]:
    """Run to turn to the sentences of its response."""
    found: dict[str, dict[str, dict[int, dict[int, PooledResponse]]]] = defaultdict(lambda: defaultdict(dict))
    for response in pool.responses:
        for entry in response.runs:
            found[entry.run_id][response.turn_id].setdefault(entry.rank, {})[entry.citation] = response
    for row in pool.exclusions:
        if row.reason == "uncited_sentence" and row.rank is not None:
            found[row.run_id][row.turn_id].setdefault(row.rank, {})
    return {
        run_id: {
            turn_id: [[cited[place] for place in sorted(cited)] for _, cited in sorted(sentences.items())]
            for turn_id, sentences in turns.items()
        }
        for run_id, turns in found.items()
    }


def key_of(run_id: str, turn_id: str, sentences: Sentences = ()) -> UnitKey:
    """What stands for a run's response in the boards of a measure."""
    passages: dict[str, None] = {}
    for cited in sentences:
        for citation in cited:
            passages |= dict.fromkeys(citation.passages)
    return UnitKey(
        response_id=f"{run_id} {turn_id}", turn_id=turn_id, topic_id=topic_of(turn_id), passages=tuple(passages)
    )
