"""Recall of runs by nuggets: measures of a response, the turns and topics that runs had to answer, and means. Pure.

Recall has the names of nuggetizer: R. Pradeep et al. (2024), Initial Nugget Evaluation Results for the TREC 2024 RAG
Track with the AutoNuggetizer Framework, arXiv:2411.09607.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from judge.extra.nuggets import MATCH_LABELS, MatchLabel, Nugget, NuggetBank
from judge.extra.nuggets.labels import PairLabels
from judge.io.ids import Cluster, groups_of, natural_key, nested, topic_of
from judge.io.table import Cell, RecordColumns, Table, fields, records_table
from judge.io.text import count
from judge.io.words import words_of
from judge.pool.records import Pool, PooledResponse
from judge.records import Record
from judge.results.ranked import first_ranked, turns_of_runs
from judge.results.rows import Score, mean_over, over_all, ranked
from judge.results.turns import HARNESS

SUPPORT: Mapping[MatchLabel, float] = {"supports": 1.0, "partly": 0.5, "does_not": 0.0, "contradicts": 0.0}
"""What a nugget counts in a recall that is not strict."""
BEST_FIRST: tuple[MatchLabel, ...] = ("supports", "partly", "contradicts", "does_not")
"""The labels of several responses, or of several answers of which one is enough: the first one counts."""


class NuggetMeasure(Record, frozen=True):
    """A row of MEASURES: which nuggets count, and what each label is worth."""

    about: str
    """The explanation in notes, without a period."""
    worth: Mapping[MatchLabel, float]
    vital: bool = False
    """Whether only vital nuggets count."""
    weighted: bool = False
    """Whether nuggets count by their weights, and faults cost; otherwise faults do not count."""
    recall: bool = True
    """Whether runs are ranked by it, with a missing label as the worst one."""

    def __call__(self, nuggets: Sequence[Nugget], labels: Mapping[str, MatchLabel]) -> float | None:
        """The mean worth over the nuggets; None if no nugget counts."""
        value, most = self.sums(nuggets, labels)
        return value / most if most else None

    def sums(self, nuggets: Sequence[Nugget], labels: Mapping[str, MatchLabel]) -> tuple[float, float]:
        """The weighted worth of the nuggets, and the most that it can be.

        The answers of a question are one nugget. With OR the best label counts; with AND the mean worth or, in a strict
        measure, the least one.
        """
        answers = groups_of(
            ((nugget.question or nugget.nugget_id, nugget.question), nugget)
            for nugget in nuggets
            if (nugget.importance == "vital" or not self.vital) and (self.weighted or not nugget.fault)
        )
        weights = []
        worths = []
        for of in answers.values():
            found = [labels[nugget.nugget_id] for nugget in of]
            if of[0].aggregator == "OR":
                found = [next(label for label in BEST_FIRST if label in found)]
            each = [self.worth[label] for label in found]
            worths.append(min(each) if self.worth is STRICT else math.fsum(each) / len(each))
            # People may edit the importance of one answer.
            weights.append(max(map(weight_of, of)) if self.weighted else 1.0)
        value = math.fsum(weight * worth for weight, worth in zip(weights, worths, strict=True))
        return value, math.fsum(weight for weight in weights if weight > 0)


def weight_of(nugget: Nugget) -> float:
    """What a nugget counts for: what its bank says or, as in ARGUE, 2 if it is vital and else 1."""
    return (2.0 if nugget.importance == "vital" else 1.0) if nugget.weight is None else nugget.weight


STRICT: Mapping[MatchLabel, float] = {**SUPPORT, "partly": 0.0}
_CONTRADICTED: Mapping[MatchLabel, float] = {"supports": 0.0, "partly": 0.0, "does_not": 0.0, "contradicts": 1.0}

MEASURES: dict[str, NuggetMeasure] = {
    "all_score": NuggetMeasure("recall of all nuggets, where one that is partly supported counts half", SUPPORT),
    "strict_all_score": NuggetMeasure("share of all nuggets that are supported in full", STRICT),
    "vital_score": NuggetMeasure(
        "recall of the vital nuggets, where one that is partly supported counts half", SUPPORT, True
    ),
    "strict_vital_score": NuggetMeasure("share of the vital nuggets that are supported in full", STRICT, True),
    "weighted_score": NuggetMeasure(
        "all_score by the weights of nuggets, less what faults cost", SUPPORT, weighted=True
    ),
    "strict_weighted_score": NuggetMeasure(
        "strict_all_score by the weights of nuggets, less what faults cost", STRICT, weighted=True
    ),
    "contradicted": NuggetMeasure("share of all nuggets that the response contradicts", _CONTRADICTED, recall=False),
}
"""Name to measure; a measure is a row."""
MAIN = "all_score"
RECALLS = tuple(name for name, measure in MEASURES.items() if measure.recall)
"""The measures that runs are ranked by."""

RECITED = 3
"""Nuggets of a unit word for word that give a recital away: without the bank, 354 responses of TREC RAG 2024 have up to
two."""
_SHORTEST = 4
"""Words of a nugget below which its very words may be chance."""

UnitStatus = Literal["matched", "incomplete", "left_out", "unanswered"]
"""matched: every nugget has a label. incomplete: a label is missing, which counts against the run. left_out: a label is
missing for a reason that counts against no run. unanswered: the run ranked no pooled response first."""


class RunUnit(Record, frozen=True):
    """A turn or topic with nuggets that a run had to answer."""

    run_id: str
    scope: str
    """The turn, or the topic for nuggets of a whole topic."""
    topic_id: str
    responses: tuple[str, ...]
    """The pooled responses that the run ranked first there."""
    nuggets: tuple[Nugget, ...]
    labels: dict[str, MatchLabel]
    """Nugget id to its label, where it is known; of several responses the best label."""
    status: UnitStatus
    reasons: dict[str, str]
    """Nugget id to the reason of a missing label."""
    recited: int = 0
    """Nuggets of four words or more that stand word for word in a response, and in no passage that it used."""

    @property
    def counts(self) -> dict[str, int]:
        """Every label with the number of its nuggets."""
        return {label: [*self.labels.values()].count(label) for label in MATCH_LABELS}

    @property
    def values(self) -> dict[str, float | None]:
        """Every measure with its value; empty unless every nugget is matched."""
        matched = MEASURES.items() if self.status == "matched" else ()
        return {name: measure(self.nuggets, self.labels) for name, measure in matched}


def run_units(pool: Pool, bank: NuggetBank, known: PairLabels) -> tuple[RunUnit, ...]:
    """The units of every run, in natural order of runs and then of turns and topics.

    Only the response that a run ranked first stands for it in a turn. Of a nugget of a whole topic, the best label over
    the run's responses counts; it is contradicted if a response contradicts it and none supports it.

    A missing label counts against the run, because it may be the run's doing, as on the leaderboard. It counts against
    nobody where nobody asked for it, where the budget was spent, or where the judge answered about no response of the
    turn or topic at all.
    """
    firsts = first_ranked(pool)
    scopes = bank.by_scope()
    answered = {nugget_id for _, nugget_id in known.labels}
    answered |= {nugget_id for (_, nugget_id), failure in known.failures.items() if failure.reason not in HARNESS}
    reached: set[str] = set()
    for scope, nuggets in scopes.items():
        if any(nugget.nugget_id in answered for nugget in nuggets):
            reached.add(scope)
    units: list[RunUnit] = []
    for run_id, turns in turns_of_runs(pool, firsts).items():
        first = firsts.get(run_id, {})
        for scope in sorted({*turns, *map(topic_of, turns)} & scopes.keys(), key=natural_key):
            responses = [first[turn] for turn in sorted(first, key=natural_key) if scope in (turn, topic_of(turn))]
            unit = _run_unit(run_id, scope, responses, scopes[scope], known, scope in reached)
            units.append(msgspec.structs.replace(unit, recited=_recited(responses, scopes[scope], pool)))
    return tuple(units)


def _recited(responses: Sequence[PooledResponse], nuggets: Sequence[Nugget], pool: Pool) -> int:
    known = {spaced for nugget in nuggets if (spaced := _spaced(nugget.text)).count(" ") > _SHORTEST}
    found: set[str] = set()
    for response in responses:
        said = _spaced(response.text)
        if mine := {nugget for nugget in known if nugget in said}:
            shown = [_spaced(pool.passages[key].text) for key in response.passages if key in pool.passages]
            found |= {nugget for nugget in mine if not any(nugget in text for text in shown)}
    return len(found)


def _spaced(text: str) -> str:
    """The words of a text with a space around each, so that whole words are found."""
    return f" {' '.join(words_of(text))} "


def reciting(units: Iterable[RunUnit]) -> tuple[str, ...]:
    """A sentence on the runs that may know the bank, and in how many units it shows; none without such a run."""
    counts = Counter(unit.run_id for unit in units if unit.recited >= RECITED)
    named = ", ".join(f"{run_id} ({count(n, 'unit')})" for run_id, n in counts.items())
    said = f"RECITES: {RECITED} nuggets or more of a unit stand word for word in the response, not in its passages"
    return (f"{said}: {named}.",) if named else ()


def _run_unit(
    run_id: str,
    scope: str,
    responses: Sequence[PooledResponse],
    nuggets: Sequence[Nugget],
    known: PairLabels,
    reached: bool,
) -> RunUnit:
    labels: dict[str, MatchLabel] = {}
    reasons: dict[str, str] = {}
    for nugget in nuggets if responses else ():
        keys = [(response.response_id, nugget.nugget_id) for response in responses]
        found = {known.labels[key] for key in keys if key in known.labels}
        lacking = [key for key in keys if key not in known.labels]
        if "supports" in found or not lacking:
            labels[nugget.nugget_id] = next(label for label in BEST_FIRST if label in found)
        else:
            why = [known.failures[key].reason if key in known.failures else "not_asked" for key in lacking]
            # One reason that counts against nobody is enough: the label might have been the best one.
            why.sort(key=lambda reason: not _counts_against_nobody(reason, reached))
            reasons[nugget.nugget_id] = why[0]
    status: UnitStatus = "matched"
    if not responses:
        status = "unanswered"
    elif any(_counts_against_nobody(reason, reached) for reason in reasons.values()):
        status = "left_out"
    elif reasons:
        status = "incomplete"
    response_ids = tuple(response.response_id for response in responses)
    return RunUnit(
        run_id=run_id,
        scope=scope,
        topic_id=nuggets[0].topic_id,
        responses=response_ids,
        nuggets=tuple(nuggets),
        labels=labels,
        status=status,
        reasons=reasons,
    )


def _counts_against_nobody(reason: str, reached: bool) -> bool:
    """Whether the lack of a label counts against no run."""
    if reason in ("provider_error", "prompt_cut"):
        return not reached
    return reason in ("budget", "not_asked")


def nugget_scores(units: Iterable[RunUnit], cluster: Cluster = "topic") -> tuple[Score, ...]:
    """A row for each measure and run: measures in the order of MEASURES, best bound first.

    Turns that are left out count as the run's others do on average, as on the leaderboard.
    """
    by_run = groups_of((unit.run_id, unit) for unit in units)
    rows: list[Score] = []
    for name in MEASURES:
        rows.extend(ranked([_score(run_id, name, of_run, cluster) for run_id, of_run in by_run.items()]))
    return tuple(rows)


def value_of(unit: RunUnit, measure: NuggetMeasure) -> float | None:
    """The value of a unit, with the worst label in place of missing ones; None if no nugget of it counts."""
    return measure(unit.nuggets, worst_labels(unit.nuggets) | unit.labels)


def worst_labels(nuggets: Iterable[Nugget]) -> dict[str, MatchLabel]:
    """Nugget id to what costs a run most: `does_not` or, of a fault, `supports`."""
    return {nugget.nugget_id: "supports" if nugget.fault else "does_not" for nugget in nuggets}


def bounds_of(units: Iterable[RunUnit], measure: NuggetMeasure) -> tuple[float, float]:
    """The least and the most that a mean over the units can be; it is below 0 only where faults cost."""
    least = (measure(unit.nuggets, worst_labels(unit.nuggets)) for unit in units)
    return min((value for value in least if value is not None), default=0.0), 1.0


def _score(run_id: str, name: str, units: Sequence[RunUnit], cluster: Cluster) -> Score:
    """A run under a measure, over the units whose nuggets count: the mean over the matched ones, and the bound.

    A missing label counts as the worst one in the bound, an unanswered turn as 0; a measure that is no recall has none.
    """
    measure = MEASURES[name]
    values = [(unit, value) for unit in units if (value := value_of(unit, measure)) is not None]
    status = Counter(unit.status for unit, _ in values)
    reasons = Counter[str]()
    for unit, _ in values:
        reasons.update(unit.reasons.values())
    matched = [(unit.topic_id, value) for unit, value in values if unit.status == "matched"]
    asked = [value for unit, value in values if unit.status in ("matched", "incomplete")]
    bound = None
    if measure.recall and values:
        bound = over_all(
            math.fsum(asked),
            asked=len(asked),
            left_out=status["left_out"],
            unanswered=status["unanswered"],
            worst=0.0,
        )
    return Score(
        run_id=run_id,
        criterion=name,
        mean=mean_over(matched, cluster, bounds_of(units, measure), "turns" if values else "nuggets that count"),
        bound=bound,
        counts={"units": len(values), **{name: status[name] for name in get_args(UnitStatus)}},
        reasons=dict(sorted(reasons.items())),
    )


def score_grid(rows: Iterable[Score], main: str, more: Iterable[str] = ()) -> Table[Any]:
    """The runs under one measure, best bound first, with `more` notes."""
    columns: RecordColumns = {
        **fields("rank run=run_id mean bound"),
        **fields(" ".join(f"{name}=counts.{name}" for name in ("units", *get_args(UnitStatus)))),
    }
    notes = (
        f"{main}: {MEASURES[main].about}.",
        "units: turns with nuggets, and topics with nuggets of their own, that the run had to answer. mean: over those "
        "of which every nugget is matched, with its interval over topics.",
        "bound: over all of them; a missing match counts as the worst one, an unanswered turn as 0. Ranks go by it.",
        *more,
    )
    return records_table(columns, (row for row in rows if row.criterion == main), "Runs", notes, places=3)


def measures_grid(rows: Sequence[Score]) -> Table[Any]:
    """The mean of every run under every measure, in natural order of runs."""
    by_run = nested((row.run_id, row.criterion, row.mean) for row in rows)
    lines: list[tuple[Cell, ...]] = []
    for run_id in sorted(by_run, key=natural_key):
        lines.append((run_id, *(by_run[run_id][name] for name in MEASURES)))
    notes = tuple(f"{name}: {measure.about}." for name, measure in MEASURES.items())
    return Table(lines, ("run", *MEASURES), "Measures", notes, places=3)


def aspects_grid(units: Iterable[RunUnit], main: str, cluster: Cluster) -> Table[Any]:
    """A line for each aspect and run: the mean over the units with nuggets of the aspect, and the bound."""
    parts: dict[tuple[str, str], list[RunUnit]] = defaultdict(list)
    for unit in units:
        for aspect in sorted({each.aspect for each in unit.nuggets if each.aspect}):
            nuggets = tuple(each for each in unit.nuggets if each.aspect == aspect)
            known = unit.responses and all(each.nugget_id in unit.labels for each in nuggets)
            status: UnitStatus = "matched" if known else unit.status
            part = msgspec.structs.replace(unit, nuggets=nuggets, status=status)
            parts[aspect, unit.run_id].append(part)
    rows = ((aspect, _score(run_id, main, of, cluster)) for (aspect, run_id), of in sorted(parts.items()))
    lines = (
        (aspect, row.run_id, row.mean, row.bound, row.counts["units"], row.counts["matched"]) for aspect, row in rows
    )
    return Table(lines, ("aspect", "run", "mean", "bound", "units", "matched"), "Aspects", places=3)


def units_grid(units: Iterable[RunUnit]) -> Table[Any]:
    """A line for each run and unit; a value where every nugget is matched."""
    columns: RecordColumns = {
        **fields("run=run_id unit=scope"),
        "responses": lambda unit: " ".join(unit.responses),
        **fields("status"),
        "nuggets": lambda unit: len(unit.nuggets),
        **fields(" ".join(f"{label}=counts.{label}" for label in MATCH_LABELS)),
        "missing": lambda unit: len(unit.reasons),
        **fields("recited"),
        **fields(" ".join(f"{name}=values.{name}" for name in MEASURES)),
        "reasons": lambda unit: _told(unit.reasons),
    }
    return records_table(columns, units, "Units")


def _told(reasons: Mapping[str, str]) -> str:
    """Why labels are missing, each reason with its count."""
    return ", ".join(f"{n} {reason}" for reason, n in sorted(Counter(reasons.values()).items()))
