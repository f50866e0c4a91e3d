"""Measures of rankings by a judge's grades of all pooled passages, corrected by people's grades of a part. Pure.

People grade whole turns or single passages, drawn with known probabilities.

- Of whole turns every measure is known by both. A turn is what is drawn, and its two values are f and y of
  `judge.stats.correction`.
- Of single passages P@k is a mean over places of rankings, so a place is what is drawn. No other measure is corrected
  by them. nDCG, recall and AP divide by what all relevant passages of a turn are worth, RR looks at the first of them,
  and a few passages of a turn do not tell either (`bench.simulations.passages.ndcg_by_passages`).
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from msgspec.structs import replace

from judge.errors import InputError, UsageError, refuse
from judge.extra.evaluate.intake import RankedRun
from judge.extra.evaluate.measured import Evaluation, MeasureChoice
from judge.extra.evaluate.sets import Grades
from judge.gold.rows import BY_GRADE, GoldRow, citation_digest, deciding
from judge.io.ids import Cluster, cluster_of, column, groups_of, natural_key, own_turn_id, topic_of
from judge.io.table import Column, RecordColumns, Table, fields, records_table
from judge.io.text import count, examples
from judge.records import Problem, Record, file_problem
from judge.results.corrected import change, gold_flags
from judge.results.leaderboard import change_text
from judge.results.rows import (
    RankingChange,
    RowFlag,
    Score,
    corrected_flag_meanings,
    estimate_of,
    flag_lines,
    noted,
    too_few_topics,
)
from judge.runs.measures import Measures
from judge.stats.correction import Corrected, correct
from judge.stats.gold_sample import RunGrades, Target
from judge.stats.means import consensus
from judge.stats.separation import Place, places
from judge.units import UNITS

_PRECISION = re.compile(r"P(?:\(rel=(?P<rel>[0-9]+)\))?@(?P<k>[0-9]+)")
"""The measures that single passages correct."""


class PeopleGrades(Record, frozen=True):
    """People's grades of passages that a judge graded as well, and how these were drawn."""

    name: str
    """The file."""
    drawn: Literal["turns", "passages"]
    grades: dict[str, dict[str, int]]
    """Of `turns` those that are graded wholly."""
    probabilities: dict[str, dict[str, float]]
    """With which a passage was drawn, alone or with its turn."""
    cautions: tuple[str, ...]
    """What of the file does not count, a sentence each."""


def people_of_rows(rows: Sequence[GoldRow], judged: Grades, name: str) -> PeopleGrades:
    """People's grades of the passages that a judge graded, from rows of gold.

    Turns were drawn if most of those with any grade are graded wholly, and no stratum is a grade of the judge; then the
    others count as not graded. A turn is graded wholly if people graded each passage of it that the judge graded, all
    drawn with one probability. Of several assessors `consensus` counts, and an adjudication instead of it.

    An InputError if no row is of a passage that the judge graded, rows are under several criteria, probabilities are
    unknown or differ, or an assessor gave a passage two grades; every such passage is listed.
    """
    found: dict[tuple[str, str], list[GoldRow]] = defaultdict(list)
    by_digest: dict[str, dict[str, str]] = {}
    for row in rows:
        turn_id = own_turn_id(row.turn_id)
        items = judged.get(turn_id, {})
        item_id = column(row.response_id or "")
        if row.text_sha256 is not None:
            if turn_id not in by_digest:
                by_digest[turn_id] = {citation_digest("", item): item for item in items}
            item_id = by_digest[turn_id].get(row.text_sha256, "")
        if item_id in items:
            found[turn_id, item_id].append(row)
    if not found:
        raise _none_common(((own_turn_id(row.turn_id), row.response_id or "") for row in rows), judged, name)
    criteria = sorted({row.criterion for group in found.values() for row in group})
    if len(criteria) > 1:
        raise InputError(f"{name}: grades passages under {', '.join(criteria)}: expected one criterion")
    problems = _problems(found, name)
    refuse(problems, f"{name}: not usable for a correction: {count(len(problems), 'problem')}")
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    probabilities: dict[str, dict[str, float]] = defaultdict(dict)
    for (turn_id, item_id), group in found.items():
        by_assessor = {row.assessor: row.grade for row in deciding(group)}
        grades[turn_id][item_id] = consensus([*by_assessor.values()])
        probabilities[turn_id][item_id] = group[0].inclusion_probability or 1.0
    whole = {
        turn_id
        for turn_id, items in grades.items()
        if len(items) == len(judged[turn_id]) and len({*probabilities[turn_id].values()}) == 1
    }
    singly = any((row.stratum or "").startswith(BY_GRADE) for group in found.values() for row in group)
    beside = len(rows) - sum(map(len, found.values()))
    if singly or 2 * len(whole) <= len(grades):
        return PeopleGrades(
            name=name,
            drawn="passages",
            grades=dict(grades),
            probabilities=dict(probabilities),
            cautions=_cautions(name, beside, 0),
        )
    return PeopleGrades(
        name=name,
        drawn="turns",
        grades={turn_id: grades[turn_id] for turn_id in whole},
        probabilities={turn_id: probabilities[turn_id] for turn_id in whole},
        cautions=_cautions(name, beside, len(grades) - len(whole)),
    )


def people_of_qrels(given: Grades, judged: Grades, target: Target, name: str) -> PeopleGrades:
    """People's grades of the passages that a judge graded, from qrels, of which only turns graded wholly count.

    Qrels do not say how their turns were drawn. They are taken for a random sample, for `topics` of the turns of topics
    like these. An InputError if no turn is graded wholly, or not all are and the target is `pool`.
    """
    if not given:
        raise InputError(f"{name}: grades nothing")
    grades: dict[str, dict[str, int]] = {}
    beside = 0
    for turn_id, items in given.items():
        of_turn = {item_id: grade for item_id, grade in items.items() if item_id in judged.get(turn_id, {})}
        beside += len(items) - len(of_turn)
        if of_turn:
            grades[turn_id] = of_turn
    if not grades:
        raise _none_common(((turn_id, item) for turn_id, items in given.items() for item in items), judged, name)
    whole = {turn_id: items for turn_id, items in grades.items() if len(items) == len(judged[turn_id])}
    if not whole:
        raise InputError(
            f"{name}: no turn is graded wholly ({_nearest(grades, judged)}), and qrels do not say how single passages "
            "were drawn: expected whole turns, or rows of gold with inclusion_probability"
        )
    if target == "pool" and len(whole) < len(judged):
        raise InputError(
            f"{name}: grades {len(whole)} of {count(len(judged), 'turn')} wholly, and qrels do not say how turns were "
            "drawn: --target pool needs rows of gold with inclusion_probability"
        )
    probability = len(whole) / len(judged)
    return PeopleGrades(
        name=name,
        drawn="turns",
        grades=whole,
        probabilities={turn_id: dict.fromkeys(items, probability) for turn_id, items in whole.items()},
        cautions=_cautions(name, beside, len(grades) - len(whole)),
    )


def _problems(found: Mapping[tuple[str, str], Sequence[GoldRow]], name: str) -> list[Problem]:
    """What keeps rows of passages from being a sample."""
    problems: list[Problem] = []
    for (turn_id, item_id), group in found.items():
        if any(row.inclusion_probability is None for row in group):
            message = f"{item_id}: not known: expected the probability with which the passage or its turn was drawn"
            problems.append(
                file_problem("inclusion_probability", name, message, "$.inclusion_probability", turn_id=turn_id)
            )
        elif len({row.inclusion_probability for row in group}) > 1:
            said = " and ".join(str(row.inclusion_probability) for row in group)
            message = f"{item_id}: {said}: expected one probability"
            problems.append(
                file_problem("inclusion_probability", name, message, "$.inclusion_probability", turn_id=turn_id)
            )
        for assessor, given in groups_of((row.assessor, row.grade) for row in group).items():
            if len({*given}) > 1:
                message = f"{item_id}: grades {', '.join(map(str, given))} by {assessor}: expected one"
                problems.append(file_problem("different_grades", name, message, "$.grade", turn_id=turn_id))
    return problems


def _cautions(name: str, beside: int, partly: int) -> tuple[str, ...]:
    cautions: list[str] = []
    if beside:
        cautions.append(f"{name}: grades of passages that the qrels do not grade, which count nowhere: {beside:,}")
    if partly:
        cautions.append(f"{name}: turns that are graded only in part, which count as not graded: {partly:,}")
    return tuple(cautions)


def _none_common(given: Iterable[tuple[str, str]], judged: Grades, name: str) -> InputError:
    """Why a file of people has no grade of a passage that the judge graded."""
    items = groups_of(given)
    common = sorted(items.keys() & judged.keys(), key=natural_key)
    if not common:
        theirs, ours = (examples(sorted(turns, key=natural_key), 3) for turns in (items, judged))
        return InputError(f"{name}: of other turns than the qrels: it has {theirs}, the qrels {ours}")
    turn_id = common[0]
    theirs = examples(sorted(filter(None, items[turn_id]), key=natural_key), 1)
    ours = examples(sorted(judged[turn_id], key=natural_key), 1)
    has = f"it has {theirs}, " if theirs else ""
    return InputError(
        f"{name}: grades no passage that the qrels grade, for instance in turn {turn_id}: {has}the qrels {ours}"
    )


def _nearest(grades: Grades, judged: Grades) -> str:
    """Of the turn that is graded most, how much is."""
    turn_id = max(grades, key=lambda turn_id: len(grades[turn_id]) / len(judged[turn_id]))
    return f"of {turn_id}, which has most, {len(grades[turn_id])} of {len(judged[turn_id])} passages"


class _Part(NamedTuple):
    """What counts in the mean of a run: its measure on a turn, or a place in the ranking of one."""

    turn_id: str
    drawn_as: str
    """What was drawn for people to grade."""
    judged: float
    people: float = math.nan
    """NaN where people gave no grade."""
    probability: float = math.nan
    labels: int = 0
    """How many grades of people it rests on; 0 for a place without a graded passage, which is worth 0 to everybody."""


class CorrectedRuns(Record, frozen=True):
    """Runs under measures by a judge's grades, and corrected by people's."""

    assessment: str
    people: PeopleGrades
    target: Target
    scores: tuple[Score, ...]
    """Every run under every measure that is corrected, best corrected mean first."""
    changes: dict[str, RankingChange]
    """Measure to what the correction changes in the order of the runs."""
    cluster: Cluster

    def table(self, measures: Sequence[str]) -> Table[Score]:
        """A line for each run under each of the measures."""
        rows = [score for score in self.scores if score.criterion in measures]
        notes = [_TARGETS[self.target]]
        unplaced = [row.more["topics"] for row in rows if row.few_topics]
        if unplaced:
            notes.append(f"{too_few_topics(max(unplaced), self.cluster).capitalize()}.")
        notes += [f"{name}: {change_text(self.changes[name])}" for name in measures]
        notes += [f"{line}." for line in flag_lines(rows, corrected_flag_meanings(UNITS["passage"].nouns))]
        title = f"Passages by {self.assessment}, corrected by {self.people.name}"
        return records_table(_COLUMNS[self.people.drawn], rows, title, notes)


class Corrector:
    """Measures of runs corrected by people's grades; runs are added one at a time, as to an `Evaluator`."""

    def __init__(self, people: PeopleGrades, judged: Grades, asked: MeasureChoice, target: Target) -> None:
        """Take the measures that the grades can correct.

        A UsageError if the main measure is none of them.
        """
        self._people = people
        self._judged = judged
        self._asked = asked
        self._target = target
        measures = Measures(asked.measures, people.grades)
        of_turns = people.drawn == "turns"
        names = [name for name in asked.measures if not name.startswith("Judged")]
        if of_turns:
            self._names = [name for name in names if measures.bounds(name)]
        else:
            self._names = [name for name in names if _PRECISION.fullmatch(name)]
        left_out = [name for name in names if name not in self._names]
        why = "nothing says between which values they lie" if of_turns else "whole turns must be graded for them"
        self.cautions = people.cautions
        """What does not count, is not corrected or says nothing, a sentence each."""
        if all(grade == judged[turn_id][item] for turn_id, of in people.grades.items() for item, grade in of.items()):
            self.cautions += (
                f"{people.name}: all its grades are those of the qrels too, so nothing shows how the judge errs; qrels "
                "merged of both are no judge's",
            )
        if left_out:
            self.cautions += (f"{people.name}: not corrected, because {why}: {', '.join(left_out)}",)
        if asked.main not in self._names:
            message = f"{asked.main} cannot be corrected"
            if not of_turns and asked.main in names:
                message = (
                    f"{asked.main} is only corrected by turns that people graded wholly, and these are single passages "
                    f"({_nearest(people.grades, judged)})"
                )
            raise UsageError(f"{people.name}: {message}: expected --main {(*self._names, 'P@5')[0]}")
        self._measures = Measures(self._names, people.grades) if of_turns else None
        self._values: dict[str, dict[str, dict[str, float]]] = {}
        self._places: dict[str, dict[str, list[_Part]]] = {}

    def add(self, run: RankedRun) -> None:
        """Measure a run by people's grades."""
        if self._measures is not None:
            self._values[run.run_id] = self._measures.values(run.ranking)
        else:
            self._places[run.run_id] = {name: self._ranked(run, name) for name in self._names}

    def result(self, evaluation: Evaluation) -> CorrectedRuns:
        """The runs that were added, corrected; `evaluation` has them by the judge's grades.

        An InputError if all that people graded was drawn for certain, and does not cover the runs.
        """
        scores: list[Score] = []
        changes: dict[str, RankingChange] = {}
        for name in self._names:
            raws = [of_run[name] for of_run in evaluation.by_run.values()]
            parts = [self._turns(raw) if self._measures is not None else self._places[raw.run_id][name] for raw in raws]
            try:
                corrections = correct(_samples(parts, self._asked.cluster), target=self._target, bounds=(0.0, 1.0))
            except ValueError as error:
                raise InputError(
                    f"{self._people.name}: all {self._people.drawn} that people graded were drawn with probability 1, "
                    "but they did not grade all: expected less than 1"
                ) from error
            run_places = places(corrections, higher_is_better=True)
            corrected: list[Score] = []
            for raw, of_run, correction, place in zip(raws, parts, corrections, run_places, strict=True):
                corrected.append(_score(raw, of_run, correction, place))
            corrected.sort(key=_best_first)
            scores += corrected
            changes[name] = change(corrected, higher_is_better=True)
        return CorrectedRuns(
            assessment=evaluation.assessment,
            people=self._people,
            target=self._target,
            scores=tuple(scores),
            changes=changes,
            cluster=self._asked.cluster,
        )

    def _turns(self, raw: Score) -> list[_Part]:
        """The measure of a run on each turn."""
        by_people = self._values[raw.run_id][raw.criterion]
        parts: list[_Part] = []
        for turn_id, judged in raw.values.items():
            if turn_id not in self._people.grades:
                parts.append(_Part(turn_id=turn_id, drawn_as=turn_id, judged=judged))
                continue
            part = _Part(
                turn_id=turn_id,
                drawn_as=turn_id,
                judged=judged,
                people=by_people.get(turn_id, 0.0),
                probability=next(iter(self._people.probabilities[turn_id].values())),
                labels=len(self._people.grades[turn_id]),
            )
            parts.append(part)
        return parts

    def _ranked(self, run: RankedRun, name: str) -> list[_Part]:
        """The first k places of a run in each turn, by whether the passage is relevant."""
        match = _PRECISION.fullmatch(name)
        if match is None:
            raise ValueError(f"{name} is no mean over places")
        relevant = int(match["rel"] or 1)
        parts: list[_Part] = []
        for turn_id, judged in self._judged.items():
            listed = [item_id for item_id, _ in run.ranking.get(turn_id, ())]
            if not listed and self._asked.over == "answered":
                continue
            people = self._people.grades.get(turn_id, {})
            for place in range(int(match["k"])):
                item_id = listed[place] if place < len(listed) else None
                if item_id is None or item_id not in judged:
                    parts.append(_Part(turn_id, f"{turn_id} place {place}", judged=0.0, people=0.0, probability=1.0))
                    continue
                part = _Part(turn_id, f"{turn_id} {item_id}", judged=float(judged[item_id] >= relevant))
                if item_id in people:
                    part = part._replace(
                        people=float(people[item_id] >= relevant),
                        probability=self._people.probabilities[turn_id][item_id],
                        labels=1,
                    )
                parts.append(part)
        return parts


def _samples(runs: Iterable[Sequence[_Part]], cluster: Cluster) -> list[RunGrades]:
    topics: dict[str, int] = defaultdict(lambda: len(topics))
    drawn: dict[str, int] = defaultdict(lambda: len(drawn))
    samples: list[RunGrades] = []
    for parts in runs:
        clusters = [cluster_of(topic_of(part.turn_id), cluster) for part in parts]
        samples.append(
            RunGrades(
                judged=np.array([part.judged for part in parts], dtype=np.float64),
                gold=np.array([part.people for part in parts], dtype=np.float64),
                inclusion=np.array([part.probability for part in parts], dtype=np.float64),
                topics=np.array([topics[of_topic] for of_topic in clusters], dtype=np.int64),
                turns=np.array([drawn[part.drawn_as] for part in parts], dtype=np.int64),
                labeled=np.array([part.labels > 0 for part in parts], dtype=np.bool_),
            )
        )
    return samples


def _score(raw: Score, parts: Sequence[_Part], correction: Corrected, place: Place | None) -> Score:
    """The corrected score; `effective_n` counts what people graded, not places that are worth 0 to everybody."""
    graded = [part for part in parts if part.labels]
    known = sum(not math.isnan(part.people) for part in parts)
    effective = correction.effective_n
    more = {
        "method": correction.method,
        "weight": correction.weight,
        "effective_n": None if effective is None else effective * len(graded) / known,
        "bias": correction.bias,
        "topics": correction.topics,
    }
    return Score(
        run_id=raw.run_id,
        criterion=raw.criterion,
        mean=estimate_of(correction, topics=len({cluster_of(topic_of(part.turn_id), raw.cluster) for part in graded})),
        bound=correction.value,
        place=place,
        counts={"drawn": len(graded), "grades": sum(part.labels for part in graded)},
        flags=tuple(flag for flag in get_args(RowFlag) if flag in gold_flags(correction)),
        more={name: value for name, value in more.items() if value is not None},
        raw=replace(raw, bound=raw.mean.value),
        cluster=raw.cluster,
    )


def _best_first(score: Score) -> tuple[object, ...]:
    return score.bound is None, -(score.bound or 0.0), natural_key(score.run_id)


_TARGETS: dict[Target, str] = {
    "topics": "Corrected means are of the runs on topics like these; their intervals are over topics.",
    "pool": "Corrected means are of these turns; intervals are about the result of people grading every passage.",
}


def _columns(unit: str) -> RecordColumns:
    return {
        **fields("measure=criterion rank=place.rank ranks letters=place.letters run=run_id"),
        **fields("corrected=mean raw=raw.mean"),
        Column(unit, about=f"{unit} graded by people that count here"): lambda score: score.counts["drawn"],
        Column("grades", about="people's grades on which these rest"): lambda score: score.counts["grades"],
        "method": lambda score: score.more["method"],
        Column("lambda", 2, about="how much the judge's grades count"): lambda score: score.more.get("weight"),
        Column(
            "ess", 1, about=f"{unit} that people alone would have to grade for an interval this narrow"
        ): lambda score: score.more.get("effective_n"),
        Column("bias", 3, signed=True, about="judge minus people"): lambda score: score.more.get("bias"),
        "flags": lambda score: " ".join(score.flags),
        "note": lambda score: noted(score.mean.reason or score.raw.mean.reason, score.cluster),
    }


_COLUMNS = {"turns": _columns("turns"), "passages": _columns("passages")}
"""The columns, by what was drawn."""
