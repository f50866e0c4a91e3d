"""What became of the turns that each run had to answer: graded, failed, unanswered or never asked about. Pure."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from judge.ask.records import Failure, Judgment, SentenceSupport
from judge.ask.results import results_of
from judge.io.ids import Cluster, cluster_of, groups_of, is_own_turn, is_unreached, natural_key, topic_of
from judge.io.table import sequence
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, FailureReason, Record, Scale
from judge.results.citations import Measure, boards_of, cited_responses, key_of
from judge.results.conversations import ConversationLengths
from judge.results.pairs import Duel, at_fault, duels
from judge.results.ranked import first_ranked, top_pooled, turns_of_runs
from judge.results.reciting import reciting_runs
from judge.results.rows import RowFlag, UnitKey, over_all
from judge.units import UNITS

HARNESS: tuple[FailureReason, ...] = ("provider_error", "prompt_cut", "budget")
"""Failures of the harness; the same command asks again. All other failures lie in the response or the judge's reply."""
_Outcomes = Mapping[str, "TurnGrade | FailureReason"]


class TurnGrade(Record, frozen=True, gc=False):
    """A judgment without its texts, of which there may be millions."""

    grade: float
    expected: float | None
    sentences: tuple[str, ...] = ()
    support: tuple[SentenceSupport, ...] = ()
    unable: bool = False
    lowest: float | None = None
    """Of a measure of citations: what it is if those whose lack of a grade counts against the run have the worst one;
    None if there are none."""
    compared: float | None = None
    """What it is where runs are compared: citations that lack a grade through the run's own doing have the worst one,
    others are worth what the graded ones are on average; None if there is no `lowest`."""
    lacking: frozenset[FailureReason | None] = frozenset()
    """Why citations that count have no grade; None where they were not asked about."""
    answered: bool = True
    """False of a measure of citations where the turn has no response, which counts 0 there."""


class RunTurns(Record, frozen=True):
    """The turns of one run under one criterion."""

    run_id: str
    turn_ids: tuple[str, ...]
    """The turns that the run had to answer, in natural order; of an interactive run also an id for each topic that it
    never reached, and of a far shorter one for each turn that `ConversationLengths.lacking` names."""
    graded: tuple[tuple[UnitKey, TurnGrade], ...]
    """The responses with a grade, in natural order of turns."""
    failed: tuple[UnitKey, ...]
    """The responses that have no grade, which counts against the run."""
    left_out: tuple[UnitKey, ...]
    """The responses that have no grade for a reason that counts against no run."""
    unable: int
    """Turns on which the judge said that it cannot grade."""
    reasons: dict[FailureReason, int]
    """Why judgments are missing, with counts."""
    not_asked: int
    """Responses left out of a trial of part of the pool."""
    share_of_turns: float | None
    """Share of the turns of the qrels on which the run's top pooled response has a positive grade."""
    turns_per_topic: float | None = None
    """Of an interactive run: the turns of a topic that it reached, on average."""
    far_shorter: bool = False
    """Whether its conversations are far shorter than others about the same topics."""
    own_texts: bool = False
    """Whether a grade rests on a passage text that the run brought and nobody compared with the collection."""
    reciting: float = 0.0
    """Share of its pooled responses that recite the judge's prompt (`reciting_runs`)."""
    own_doing: frozenset[str] = frozenset()
    """Ids of the failed responses that have no grade through the run's own doing (`_is_own_doing`)."""

    @property
    def turns(self) -> int:
        """Turns that the run had to answer."""
        return len(self.turn_ids)

    @property
    def unanswered(self) -> int:
        """Turns without a pooled response that the run ranked first."""
        return self.turns - len(self.graded) - len(self.failed) - len(self.left_out)

    @property
    def unreached(self) -> int:
        """Topics that an interactive run never reached."""
        return sum(map(is_unreached, self.turn_ids))

    def clusters(self, cluster: Cluster) -> list[str]:
        """The topic or the theme of each graded response."""
        return [cluster_of(response.topic_id, cluster) for response, _ in self.graded]

    def over_topics(self, value: float, worst: float) -> float:
        """A mean over the turns of the reached topics as one over all topics.

        A topic never reached has the worst grade and weighs as much as a reached topic does on average.

        `value`: the mean over the turns of the topics that the run reached.
        """
        missed = self.unreached
        if not missed:
            return value
        reached = len({topic_of(turn_id) for turn_id in self.turn_ids if not is_unreached(turn_id)})
        return math.fsum([reached * value, missed * worst]) / (reached + missed)

    def bound(
        self, mean: float | None, failed: Sequence[float], worst: float, known: Collection[str] = ()
    ) -> float | None:
        """The mean over all turns that the run had to answer; None if nobody asked about its responses.

        Responses that are left out count as the run's other responses do on average, unanswered turns as the worst
        grade, and so do topics that an interactive run never reached (`over_topics`).

        `failed`: what each failed response counts. `known`: ids of responses of which no citation lacks a grade.
        """
        if self.turns == self.unreached:
            return float(worst)
        lost = []
        for unit, grade in self.graded:
            if grade.lowest is not None and unit.response_id not in known:
                lost.append(grade.lowest - grade.grade)
        total = math.fsum([len(self.graded) * (mean or 0.0), *lost, *failed])
        value = over_all(
            total,
            asked=len(self.graded) + len(failed),
            left_out=len(self.left_out),
            unanswered=self.unanswered - self.unreached,
            worst=worst,
        )
        return None if value is None else self.over_topics(value, worst)

    def grades(self, worst: float) -> dict[str, float]:
        """Turn to its grade, or to the worst one where the lack of a grade counts against the run."""
        left_out = {response.turn_id for response in self.left_out}
        grades = {turn_id: worst for turn_id in self.turn_ids if turn_id not in left_out}
        lowest = ((of, given.grade if given.lowest is None else given.lowest) for of, given in self.graded)
        return grades | {response.turn_id: float(grade) for response, grade in lowest}

    def without_missing(self, known: Collection[str] = ()) -> "RunTurns":
        """The run if a grade that is missing counted against it only where that is the run's own doing.

        By this runs are compared. Another judge, or another passage file, would have given a grade that is missing
        otherwise, so the responses without one are left out.

        `known`: ids of failed responses that have a grade from elsewhere, and stay.
        """
        failed: list[UnitKey] = []
        left_out = list(self.left_out)
        for response in self.failed:
            stays = response.response_id in self.own_doing or response.response_id in known
            (failed if stays else left_out).append(response)
        graded = tuple((response, replace(given, lowest=given.compared)) for response, given in self.graded)
        return replace(self, graded=graded, failed=tuple(failed), left_out=tuple(left_out))

    def compared(self, worst: float) -> dict[str, float]:
        """The grades by which the run is compared with others: of an interactive run the mean grade of each topic.

        Turns of interactive runs are the runs' own, so two of them share their topics and no more.
        """
        grades = self.grades(worst)
        if not any(map(is_own_turn, self.turn_ids)):
            return grades
        topics = groups_of((f"{topic_of(turn_id)}_0~all", grade) for turn_id, grade in grades.items())
        return {topic: math.fsum(values) / len(values) for topic, values in topics.items()}


def run_flags(run: RunTurns) -> tuple[RowFlag, ...]:
    """The warnings about a run's row that the judge's results alone give."""
    lacking = frozenset[FailureReason | None]().union(run.reasons, *(given.lacking for _, given in run.graded))
    flags: dict[RowFlag, bool] = {
        "MISSING": bool(run.failed or run.unanswered > run.unreached)
        or any(given.lowest is not None for _, given in run.graded),
        "UNREACHED": run.unreached > 0,
        "HARNESS": not lacking.isdisjoint(HARNESS),
        "TRIAL": run.not_asked > 0 or None in lacking,
        "SHORT": run.far_shorter,
        "OWNTEXT": run.own_texts,
        "RECITES": run.reciting > 0,
    }
    return tuple(flag for flag, applies in flags.items() if applies)


def worst_grade(scale: Scale) -> int:
    """The grade at the bad end of a scale."""
    return scale.ends[0 if scale.polarity == "higher" else 1]


def run_turns(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criterion: Criterion,
    expected: Mapping[str, Collection[str]] | None = None,
) -> tuple[RunTurns, ...]:
    """The turns of every run under a criterion, in natural order of run id; runs without turns are left out.

    The lack of a grade counts against a run that did not answer, or whose response the judge could not grade: it may
    be the run's doing. It counts against no run if the response was left out of a trial or the budget was spent, or if
    the provider failed, or cut the prompt, on every response of the turn that it was asked about. Where it did so on
    some only, those may have caused it. `without_missing` has what counts against a run that is compared with others.
    A ValueError if a response has two judgments under the criterion.
    """
    of_prompt = _outcomes(results, criterion.of if isinstance(criterion, Measure) else criterion)
    return _run_turns(pool, of_prompt, criterion, expected)


def _run_turns(
    pool: Pool, outcomes: _Outcomes, criterion: Criterion, expected: Mapping[str, Collection[str]] | None
) -> tuple[RunTurns, ...]:
    reached = {
        response.turn_id
        for response in pool.responses
        if (outcome := outcomes.get(response.response_id)) is not None and outcome not in HARNESS
    }
    ranked = first_ranked(pool)
    firsts: dict[str, dict[str, UnitKey]] = {}
    faults: set[tuple[str, str]] = set()
    runs = turns_of_runs(pool, ranked, expected)
    of_pairs = isinstance(criterion, Measure) and criterion.of_pairs
    if not isinstance(criterion, Measure):
        keys = {
            response.response_id: UnitKey(
                response_id=response.response_id,
                turn_id=response.turn_id,
                topic_id=response.topic_id,
                passages=response.passages,
            )
            for response in pool.responses
        }
        for run_id, responses in ranked.items():
            firsts[run_id] = {turn_id: keys[response.response_id] for turn_id, response in responses.items()}
    elif not of_pairs:
        firsts, outcomes = _measured(criterion, pool, runs, outcomes, reached)
    else:
        compared = duels(pool, outcomes, criterion.of.scale)
        faults = at_fault(compared, lambda outcome, turn_id: _is_against(outcome, turn_id, reached))
        firsts, outcomes = _won(compared, pool)
    shares = _shares_of_turns(runs, pool, outcomes, criterion.scale)
    conversations = ConversationLengths(runs if UNITS[pool.unit].whole_response else {})
    counted = dict(runs)
    for run_id, turns in runs.items():
        if lacking := conversations.lacking(run_id):
            counted[run_id] = {*turns, *lacking}
    shown = pool.passages if "passages" in criterion.inputs else {}
    own_texts = {key for key, passage in shown.items() if passage.source == "run"}
    bringing = _bringing_runs(pool)
    found = tuple(
        _of_run(
            run_id,
            turns,
            firsts.get(run_id, {}),
            outcomes,
            reached,
            shares[run_id],
            conversations,
            own_texts,
            run_id in bringing,
        )
        for run_id, turns in counted.items()
        if turns
    )
    return tuple(_with_faults(run, faults) for run in found) if of_pairs else found


def _with_faults(run: RunTurns, faults: Collection[tuple[str, str]]) -> RunTurns:
    """The turns of pairs, of which those count against the run that lack a verdict through its fault.

    In others either response, or neither, may be why a pair has none.
    """
    failed = tuple(response for response in run.failed if (run.run_id, response.turn_id) in faults)
    others = tuple(response for response in run.failed if response not in failed)
    return replace(run, failed=failed, left_out=(*others, *run.left_out))


def duels_of(pool: Pool, results: Iterable[Judgment | Failure], criterion: Criterion) -> list[Duel]:
    """The pairs of a pool with their verdicts under a criterion of pairs."""
    return duels(pool, _outcomes(sequence(results), criterion), criterion.scale)


def turns_by_criterion(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    expected: Mapping[str, Collection[str]] | None = None,
) -> Iterator[tuple[Criterion, tuple[RunTurns, ...]]]:
    """Each criterion, or each measure of one of citations, with its `run_turns`, one after the other.

    A ValueError if a response has two judgments under one criterion, or two criteria share a name.
    """
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise ValueError("two prompts of one criterion cannot share a leaderboard")
    results = sequence(results)
    reciting = reciting_runs(pool, criteria)
    for criterion in criteria:
        outcomes = _outcomes(results, criterion)
        shares = reciting.get(criterion.name, {})
        for board in boards_of([criterion]):
            runs = _run_turns(pool, outcomes, board, expected)
            yield board, tuple(replace(run, reciting=shares.get(run.run_id, 0.0)) for run in runs)


def _measured(
    measure: Measure, pool: Pool, runs: Mapping[str, Collection[str]], outcomes: _Outcomes, reached: Collection[str]
) -> tuple[dict[str, dict[str, UnitKey]], _Outcomes]:
    """Run and turn to what stands for the response, and its id to the measure of its citations.

    A citation without a grade does not count. A response of which no citation has one has none, for the reason of the
    first; one that cites nothing has the worst measure, as has a turn without a response.
    """
    cited = cited_responses(pool)
    given = ((name, one) for name, one in outcomes.items() if isinstance(one, TurnGrade) and not one.unable)
    worth = {name: measure.worth(one.grade) for name, one in given}
    against = dict(worth)
    charged = dict(worth)
    bringing = _bringing_runs(pool)
    for citation in pool.responses:
        outcome = outcomes.get(citation.response_id)
        if _is_against(outcome, citation.turn_id, reached):
            against[citation.response_id] = 0.0
        if _is_own_doing(outcome, citation, bringing.issuperset(entry.run_id for entry in citation.runs)):
            charged[citation.response_id] = 0.0
    firsts: dict[str, dict[str, UnitKey]] = {}
    measured: dict[str, TurnGrade | FailureReason] = {}
    for run_id, turn_ids in runs.items():
        for turn_id in turn_ids:
            sentences = measure.looked_at(cited.get(run_id, {}).get(turn_id, []))
            response = firsts.setdefault(run_id, {})[turn_id] = key_of(run_id, turn_id, sentences)
            names: list[list[str]] = []
            for sentence in sentences:
                names.append([citation.response_id for citation in sentence])
            cited_names = [*chain.from_iterable(names)]
            parts = [outcomes.get(name) for name in cited_names]
            if parts and worth.keys().isdisjoint(cited_names):
                lacking = next((part for part in parts if not isinstance(part, TurnGrade)), parts[0])
                measured |= {} if lacking is None else {response.response_id: lacking}
                continue
            lost = not names or any(name in against and name not in worth for name in cited_names)
            measured[response.response_id] = TurnGrade(
                measure.score(_values(worth, names)),
                None,
                lowest=measure.score(_values(against, names)) if lost else None,
                compared=measure.filled(_values(charged, names)) if lost else None,
                lacking=frozenset(part for part in parts if not isinstance(part, TurnGrade)),
                answered=turn_id in cited.get(run_id, {}),
            )
    return firsts, measured


def _values(values: Mapping[str, float], names: Sequence[Sequence[str]]) -> list[list[float | None]]:
    """The value of each citation of each sentence; None where it has none."""
    return [[*map(values.get, sentence)] for sentence in names]


def _won(compared: Iterable[Duel], pool: Pool) -> tuple[dict[str, dict[str, UnitKey]], _Outcomes]:
    """Run and turn to what stands for the response, and its id to its share of wins in the turn, or why there is none.

    Responses that were in no drawn pair have none.
    """
    firsts: dict[str, dict[str, UnitKey]] = {}
    for row in pool.exclusions:
        if row.reason == "not_drawn":
            firsts.setdefault(row.run_id, {})[row.turn_id] = key_of(row.run_id, row.turn_id)
    won: dict[str, list[float]] = {}
    outcomes: dict[str, TurnGrade | FailureReason] = {}
    for turn_id, runs, _, outcome in compared:
        for side, run_ids in enumerate(runs):
            for run_id in run_ids:
                response = firsts.setdefault(run_id, {})[turn_id] = key_of(run_id, turn_id)
                if isinstance(outcome, float):
                    won.setdefault(response.response_id, []).append(abs(side - outcome))
                elif outcome is not None:
                    outcomes.setdefault(response.response_id, outcome)
    return firsts, outcomes | {name: TurnGrade(math.fsum(of) / len(of), None) for name, of in won.items()}


def _is_against(outcome: TurnGrade | FailureReason | None, turn_id: str, reached: Collection[str]) -> bool:
    """Whether the lack of a grade counts against the run."""
    if outcome is None or outcome == "budget":
        return False
    if outcome in ("provider_error", "prompt_cut"):
        return turn_id in reached
    return isinstance(outcome, str) or outcome.unable


def _bringing_runs(pool: Pool) -> frozenset[str]:
    """The runs that had to bring the texts of their passages, whatever was found of these."""
    return frozenset(run.run_id for run in pool.runs if run.brings_texts)


def _is_own_doing(
    outcome: TurnGrade | FailureReason | None, response: PooledResponse | UnitKey, brings_texts: bool
) -> bool:
    """Whether a response has no grade because of what its run did, and of nothing else.

    That is so where it names no passage, or the run had to bring the text of one and did not. A text that the
    collection's file lacks is missing there. A reply that is refused, unreadable, cut or blocked is the judge's or its
    provider's, and so are "unable", a prompt that is too long for the model, and all that is in HARNESS: a run may have
    provoked these, but nothing shows that it did.
    """
    return outcome == "no_passages" and (brings_texts or not response.passages)


def _of_run(
    run_id: str,
    turns: Collection[str],
    firsts: Mapping[str, UnitKey],
    outcomes: _Outcomes,
    reached: Collection[str],
    share_of_turns: float | None,
    conversations: "ConversationLengths",
    own_texts: Collection[str],
    brings_texts: bool,
) -> RunTurns:
    graded: list[tuple[UnitKey, TurnGrade]] = []
    failed: list[UnitKey] = []
    left_out: list[UnitKey] = []
    own_doing: set[str] = set()
    reasons: Counter[FailureReason] = Counter()
    unable = not_asked = 0
    for turn_id in sorted(firsts, key=natural_key):
        response = firsts[turn_id]
        outcome = outcomes.get(response.response_id)
        if isinstance(outcome, TurnGrade) and not outcome.unable:
            graded.append((response, outcome))
            continue
        not_asked += outcome is None
        unable += isinstance(outcome, TurnGrade)
        if isinstance(outcome, str):
            reasons[outcome] += 1
        if _is_own_doing(outcome, response, brings_texts):
            own_doing.add(response.response_id)
        (failed if _is_against(outcome, turn_id, reached) else left_out).append(response)
    return RunTurns(
        run_id=run_id,
        turn_ids=tuple(sorted(turns, key=natural_key)),
        graded=tuple(graded),
        failed=tuple(failed),
        left_out=tuple(left_out),
        unable=unable,
        reasons=dict(sorted(reasons.items())),
        not_asked=not_asked,
        share_of_turns=share_of_turns,
        turns_per_topic=conversations.length(run_id),
        far_shorter=conversations.is_far_shorter(run_id),
        own_texts=any(key in own_texts for response, _ in graded for key in response.passages),
        own_doing=frozenset(own_doing),
    )


def _shares_of_turns(
    run_ids: Collection[str], pool: Pool, outcomes: _Outcomes, scale: Scale
) -> dict[str, float | None]:
    """Run to the share of the turns of the qrels on which its top pooled response has a positive grade."""
    graded = {name: given for name, given in outcomes.items() if isinstance(given, TurnGrade) and not given.unable}
    in_qrels = {response.listed_under for response in pool.responses if response.response_id in graded}
    positive = {name for name, given in graded.items() if given.grade in scale.positive}
    tops = top_pooled(pool)
    shares: dict[str, float | None] = {}
    for run_id in run_ids:
        shares[run_id] = (
            sum(name in positive for name in tops.get(run_id, {}).values()) / len(in_qrels) if in_qrels else None
        )
    return shares


def _outcomes(results: Sequence[Judgment | Failure], criterion: Criterion) -> dict[str, TurnGrade | FailureReason]:
    """Response id to its grade under a prompt, or to the reason why there is none."""
    outcomes: dict[str, TurnGrade | FailureReason] = {}
    for result in results_of(results, criterion.name):
        if result.variant != criterion.variant:
            continue
        if isinstance(result, Failure):
            outcomes.setdefault(result.response_id, result.reason)
        elif isinstance(outcomes.get(result.response_id), TurnGrade):
            raise ValueError(f"{result.response_id} has two judgments under {criterion.prompt_id}")
        else:
            outcomes[result.response_id] = TurnGrade(
                grade=result.grade,
                expected=result.expected,
                sentences=result.sentences,
                support=result.support,
                unable=result.unable,
            )
    return outcomes
