"""Which runs are pooled, by how they rank, which of their responses, and a reason for all others. Pure.

An exclusion without a rank stands for all of the run's responses to the turn.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Literal, get_args

import msgspec

from judge.errors import UsageError
from judge.io.ids import natural_key, run_turn_id
from judge.io.safe import has_content, printable
from judge.io.table import tsv
from judge.pool.build import Candidate
from judge.pool.records import LeftOut, PooledTurn
from judge.records import JudgedUnit
from judge.runs.formats import rules_of
from judge.runs.measures import Measures, Ranking
from judge.runs.ranking import used_provenance
from judge.runs.records import Exclusion, Provenance, Response, Run

RunRule = Literal["best-automatic-per-team", "best-per-team", "above-median"]
"""How runs are chosen.

best-automatic-per-team: each team's best automatic run, if above the median of all automatic runs (iKAT 2023).
best-per-team: each team's best run.
above-median: every run above the median of all runs.
"""

RUN_RULES: tuple[RunRule, ...] = get_args(RunRule)

_Why = tuple[LeftOut, str]
"""Reason and detail of an exclusion."""


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
    unit: JudgedUnit = "response"
    """What an item of the pool is; of dialogues all are pooled."""

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise UsageError(f"the pool depth must be 1 or more, not {self.depth}")
        if self.unit == "dialogue" and (self.depth, self.turns, self.relevance) != (1, None, None):
            raise UsageError("a dialogue has all turns of its topic and one response for each: none can be selected")
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
        reason = _turn_left_out(run, turn_id, selection)
        if reason:
            excluded.append(Exclusion(run.run_id, turn_id, None, *reason))
            continue
        ranked = sorted(turn.responses, key=lambda response: response.rank)
        for response, outcome in _choose(ranked, run, turn_id, selection):
            if isinstance(outcome, Candidate):
                kept.append(outcome)
            else:
                excluded.append(Exclusion(run.run_id, turn_id, response.rank, *outcome))
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
    relevance, depth = selection.relevance, selection.depth
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
            yield response, Candidate(run.run_id, turn_id, response.rank, response.text, used, rule)
        else:
            yield response, ("empty_text", "the response has no text")


def _bound(relevance: PassageRelevance | None, limit: int, depth: int, taken: int) -> str:
    """The bound that a response's place by rank exceeds."""
    if relevance and taken < depth:
        return f"of which the first {limit} are looked at"
    return f"pool depth {depth}" + (" reached by better-ranked ones" if relevance else "")


class RunScore(msgspec.Struct, frozen=True):
    """The facts by which a rule chooses a run: its team, whether it is automatic, its value of the measure."""

    run_id: str
    team: str | None
    automatic: bool
    value: float


def choose_runs(rule: RunRule, scores: Mapping[str, RunScore]) -> tuple[frozenset[str], dict[str, str]]:
    """The run ids that a rule chooses, and for every run the reason why it is or is not among them.

    A team's best run has the highest value; among equal values, the first run id in natural order. A run above the
    median is strictly above it: a single run is not, nor is any of several equal runs.

    Raises:
        UsageError: The rule needs the team of a run that has none, or it chooses no run.
    """
    automatic_only = rule == "best-automatic-per-team"
    considered = [score for score in scores.values() if score.automatic or not automatic_only]
    if rule != "above-median":
        _require_teams(considered)
    middle = median(score.value for score in considered) if considered else 0.0
    of_all = f"the median {middle:.4f} of the {len(considered)} {'automatic runs' if automatic_only else 'runs'}"
    best = _best_of_teams(considered)
    reasons: dict[str, str] = {}
    chosen: set[str] = set()
    for run_id, score in scores.items():
        first = best.get(score.team, score)
        if automatic_only and not score.automatic:
            reasons[run_id] = "not an automatic run"
        elif rule != "above-median" and first.run_id != run_id:
            reasons[run_id] = f"{printable(first.run_id)} is the team's best with {first.value:.4f}"
        elif rule != "best-per-team" and score.value <= middle:
            reasons[run_id] = f"not above {of_all}"
        else:
            chosen.add(run_id)
            reasons[run_id] = {
                "best-automatic-per-team": f"the team's best automatic run, above {of_all}",
                "best-per-team": "the team's best run",
                "above-median": f"above {of_all}",
            }[rule]
    if not chosen:
        why = "; ".join(f"{printable(run_id)}: {reasons[run_id]}" for run_id in sorted(reasons, key=natural_key))
        raise UsageError(f"the rule {rule} chooses no run: {why or 'there is none'}")
    return frozenset(chosen), reasons


def _require_teams(scores: Iterable[RunScore]) -> None:
    nameless = sorted((score.run_id for score in scores if not score.team), key=natural_key)
    if nameless:
        raise UsageError(f"no team is known for {', '.join(map(printable, nameless))}: name them in a file of teams")


def _best_of_teams(scores: Iterable[RunScore]) -> dict[str | None, RunScore]:
    best: dict[str | None, RunScore] = {}
    for score in sorted(scores, key=lambda score: (-score.value, natural_key(score.run_id))):
        best.setdefault(score.team, score)
    return best


def choice_tsv(
    measure: str, scores: Mapping[str, RunScore], chosen: Collection[str], reasons: Mapping[str, str]
) -> str:
    """TSV of the runs that a rule considered, a line each: chosen runs first, then by falling value; ids escaped."""

    def order(score: RunScore) -> tuple[object, ...]:
        return score.run_id not in chosen, -score.value, natural_key(score.run_id)

    lines = (
        (
            *(score.run_id, score.team, _yes_or_no(score.automatic), measure, score.value),
            *(_yes_or_no(score.run_id in chosen), reasons[score.run_id]),
        )
        for score in sorted(scores.values(), key=order)
    )
    return tsv(CHOICE_COLUMNS, lines)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


CHOICE_COLUMNS = ("run_id", "team", "automatic", "measure", "value", "chosen", "reason")


DEFAULT_MEASURE = "nDCG@5"
"""The measure by which iKAT 2023 ordered its passage ranking runs."""


def mean_value(measures: Measures, turns: Collection[str], ranking: Ranking) -> float:
    """The mean of the only measure over every judged turn; a turn without passages counts 0."""
    values = measures.values(ranking)[measures.names[0]]
    return fmean(values.get(turn, 0.0) for turn in turns)
