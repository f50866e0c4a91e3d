"""Which responses of a run are pooled, and a reason for all others. Pure.

An exclusion without a rank stands for all of the run's responses to the turn.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

import msgspec

from judge.errors import UsageError
from judge.io.ids import groups_of, run_turn_id, topic_of
from judge.io.text import digest, has_content, shown
from judge.pool.build import Candidate
from judge.pool.records import LeftOut, PooledTurn, ProvenanceSource
from judge.records import JudgedUnit
from judge.runs.formats import rules_of
from judge.runs.ranking import used_provenance
from judge.runs.records import Exclusion, Provenance, Response, Run
from judge.units import UNITS

_Why = tuple[LeftOut, str]
"""Reason and detail of an exclusion."""


_DRAWN = re.compile(r"([1-9][0-9]{0,8})(?:@([0-9]{1,9}))?", re.ASCII)
DEFAULT_MINIMUM = 1
"""The lowest grade that counts as relevant, the default of trec_eval."""


class PassageRelevance(msgspec.Struct, frozen=True):
    """Assessors' grades of passages as a condition on responses."""

    grades: Mapping[str, Mapping[str, int]]
    """Grades of passages by turn id and passage id; a turn that is not here was not judged."""
    minimum: int = DEFAULT_MINIMUM
    """The lowest grade that counts as relevant."""
    max_rank: int | None = None
    """How many responses a turn are looked at, best rank first; None: 3 of a CAsT 2022 run, else the pool depth."""

    def relevant(self, turn_id: str, used: Iterable[Provenance]) -> bool:
        """Whether one of the passages is relevant to the turn; a passage without a grade is not."""
        grades = self.grades.get(turn_id, {})
        return any(grades.get(passage.passage_id, self.minimum - 1) >= self.minimum for passage in used)


class Selection(msgspec.Struct, frozen=True):
    """What is pooled; by default each run's first-ranked response for every turn."""

    depth: int = 1
    turns: frozenset[str] | None = None
    relevance: PassageRelevance | None = None
    provenance: ProvenanceSource = "ranked"
    """Of passages: the first that a turn lists, of these those that its responses use, or the first with all that the
    response ranked first uses."""
    unit: JudgedUnit = "response"
    """What an item of the pool is; of dialogues and of citations all are pooled."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise UsageError(f"the pool depth must be 1 or more, not {self.depth}")
        unit = UNITS[self.unit]
        options = {
            "depth": self.depth != 1,
            "only_turns": self.turns is not None,
            "passage_qrels": self.relevance is not None,
        }
        if any(options[name] for name in options if name in unit.unfit):
            raise UsageError(f"{unit.words.selected}: none can be selected")
        if self.relevance and self.relevance.max_rank is not None and self.relevance.max_rank < self.depth:
            raise UsageError(
                f"of the first {self.relevance.max_rank} responses by rank no {self.depth} can be pooled: "
                "the largest rank must be the pool depth or more"
            )

    def wanted_turns(self, turn_ids: Iterable[str]) -> frozenset[str]:
        """The turns that a run had to answer: the selected ones that, with `relevance`, have graded passages."""
        kept = frozenset(turn_ids)
        if self.turns is not None:
            kept &= self.turns
        return kept & self.relevance.grades.keys() if self.relevance else kept


def read_draw(text: str) -> tuple[int, int]:
    """The number and the seed in `N[@SEED]`; a UsageError if it is no such text."""
    if not (read := _DRAWN.fullmatch(text)):
        raise UsageError(f"--draw {shown(text)}: expected a number of responses, or N@SEED")
    return int(read[1]), int(read[2] or 1)


def draw_turns(sizes: Mapping[str, int], most: int, seed: int = 1) -> frozenset[str]:
    """Turns drawn at random, one of every topic and then another, while their sizes add up to no more than `most`.

    >>> sorted(draw_turns({"1_1": 2, "1_2": 2, "2_1": 2, "2_2": 2}, 5))
    ['1_1', '2_2']
    """
    order = spread(sizes, seed)
    sums = accumulate(sizes[turn] for turn in order)
    return frozenset(turn for turn, total in zip(order, sums, strict=True) if total <= most)


def chance(*names: object) -> str:
    """The sort key of a random order: the digest of a seed and a name."""
    return digest("\n".join(map(str, names)))


def spread(turns: Iterable[str], seed: int) -> list[str]:
    """The turns in random order, one of every topic and then another."""
    topics = groups_of((topic_of(turn), turn) for turn in sorted(turns, key=partial(chance, seed)))
    order: list[tuple[int, str, str]] = []
    for topic, own in topics.items():
        key = chance(seed, topic)
        order += [(place, key, turn) for place, turn in enumerate(own)]
    return [turn for *_, turn in sorted(order)]


def candidates(
    run: Run, selection: Selection, own: Mapping[str, PooledTurn] | None = None
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """The responses of a run to be pooled, and an exclusion for each turn or response that is left out.

    Of each turn, the `depth` best-ranked responses; with `relevance`, the `depth` best-ranked of those that use a
    relevant passage. A response without text uses up its place: the next one in rank does not move up. The selection
    names turns as the run does, and passage grades name them as the pool does, by `own`.
    """
    own = own or {}
    kept: list[Candidate] = []
    excluded: list[Exclusion] = []
    for turn in run.turns:
        turn_id = own[turn.turn_id].turn_id if turn.turn_id in own else turn.turn_id
        left_out = _turn_left_out(run, turn_id, selection)
        if left_out:
            reason, detail = left_out
            excluded.append(Exclusion(run_id=run.run_id, turn_id=turn_id, rank=None, reason=reason, detail=detail))
            continue
        ranked = sorted(turn.responses, key=lambda response: response.rank)
        for response, outcome in _choose(ranked, run, turn_id, selection):
            if isinstance(outcome, Candidate):
                kept.append(outcome)
                continue
            reason, detail = outcome
            row = Exclusion(run_id=run.run_id, turn_id=turn_id, rank=response.rank, reason=reason, detail=detail)
            excluded.append(row)
    return tuple(kept), tuple(excluded)


def citation_candidates(
    responses: Iterable[Candidate], sentences_of: Callable[[str], Iterable[tuple[str, Sequence[str]]]]
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """A candidate for each citation of each sentence, and an exclusion for each sentence that cites nothing.

    `sentences_of`: from a turn id to the sentences of the response, each with the passages that it cites.
    """
    kept: list[Candidate] = []
    excluded: list[Exclusion] = []
    for response in responses:
        used = {passage.passage_id: (passage,) for passage in response.used}
        for number, (text, cited) in enumerate(sentences_of(response.turn_id), 1):
            if not has_content(text):
                continue
            if not cited:
                row = Exclusion(
                    run_id=response.run_id,
                    turn_id=response.turn_id,
                    rank=number,
                    reason="uncited_sentence",
                    detail="the sentence cites no passage",
                )
                excluded.append(row)
            for place, passage_id in enumerate(cited, 1):
                citation = msgspec.structs.replace(
                    response, rank=number, text=text, used=used[passage_id], citation=place
                )
                kept.append(citation)
    return tuple(kept), tuple(excluded)


def _turn_left_out(run: Run, turn_id: str, selection: Selection) -> _Why | None:
    """Reason and detail why no response to a turn is pooled; None if some may be."""
    if not run.eval_response:
        return "eval_response_false", "the run says eval_response: false"
    if selection.turns is not None and run_turn_id(turn_id) not in selection.turns:
        return "not_selected_turn", f"the turn is not among the {len(selection.turns)} selected"
    if selection.relevance and turn_id not in selection.relevance.grades:
        return "turn_not_judged", "the passage qrels have no passage for this turn"
    return None


def _choose(
    ranked: Sequence[Response], run: Run, turn_id: str, selection: Selection
) -> Iterator[tuple[Response, Candidate | _Why]]:
    """Each response in order of rank, with its candidate or with the reason why it is excluded."""
    relevance = selection.relevance
    depth = selection.depth
    limit = depth
    if relevance:
        limit = relevance.max_rank or max(rules_of(run.format).max_rank or 0, depth)
    taken = 0
    for place, response in enumerate(ranked, 1):
        if place > limit or taken == depth:
            yield response, ("below_depth", f"number {place} by rank, {_bound(relevance, limit, depth, taken)}")
            continue
        used, rule = used_provenance(response, run.format)
        if relevance and not relevance.relevant(turn_id, used):
            detail = f"none of its {len(used)} used passages has grade {relevance.minimum} or more"
            yield response, ("no_relevant_passage", detail)
            continue
        taken += 1
        if has_content(response.text):
            yield (
                response,
                Candidate(
                    run_id=run.run_id,
                    turn_id=turn_id,
                    rank=response.rank,
                    text=response.text,
                    used=used,
                    provenance_rule=rule,
                ),
            )
        else:
            yield response, ("empty_text", "the response has no text")


def _bound(relevance: PassageRelevance | None, limit: int, depth: int, taken: int) -> str:
    """The bound that a response's place by rank exceeds."""
    if relevance and taken < depth:
        return f"of which the first {limit} are looked at"
    return f"pool depth {depth}" + (" reached by better-ranked ones" if relevance else "")
