"""Each run with the judge's grades, and the gold of its responses, checked before a mean is corrected by it. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from judge.ask.records import Failure, Judgment
from judge.errors import InputError
from judge.gold import GoldByResponse, check_scale
from judge.gold.rows import GoldRow
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Problem
from judge.results.turns import RunTurns, run_turns
from judge.stats.means import consensus
from judge.text.ids import Cluster, cluster_of, natural_key

_SHOWN = 20
"""Topics that a message names."""


class GoldGrade(msgspec.Struct, frozen=True):
    """The gold of one response."""

    grade: int
    probability: float
    """The inclusion probability; nan where it is unknown."""
    stratum: str | None
    rows: tuple[GoldRow, ...]


class GradedRun(msgspec.Struct, frozen=True):
    """One run's turns, with the responses that the judge graded."""

    run: RunTurns
    judged: tuple[tuple[PooledResponse, int], ...]
    """Responses with their grade by the judge, in natural order of turns."""
    cluster: Cluster = "topic"
    """What the intervals are over."""

    @property
    def run_id(self) -> str:
        """The run."""
        return self.run.run_id

    @property
    def clusters(self) -> tuple[str, ...]:
        """The topic or the theme of each judged response."""
        return tuple(cluster_of(response.topic_id, self.cluster) for response, _ in self.judged)

    @property
    def turns(self) -> int:
        """Turns that the run had to answer."""
        return self.run.turns

    @property
    def others(self) -> tuple[PooledResponse, ...]:
        """Responses without a grade by the judge."""
        return (*self.run.failed, *self.run.left_out)

    def bound(self, mean: float, gold: Mapping[str, GoldGrade], worst: int) -> float | None:
        """The mean over all turns, where those without a grade have their gold grade or count as the worst."""
        known = [
            gold[response.response_id].grade if response.response_id in gold else worst for response in self.run.failed
        ]
        return self.run.bound(mean, known, worst)


def gold_grades(matched: GoldByResponse, criterion: Criterion, name: str) -> dict[str, GoldGrade]:
    """Response id to the consensus of its assessors."""
    rows = {
        response_id: tuple(rows)
        for (response_id, criterion_name), rows in matched.items()
        if criterion_name == criterion.name and rows
    }
    if problems := check_scale((row for group in rows.values() for row in group), criterion.scale, name):
        raise InputError(f"{name}: grades that are not on the scale of {criterion.prompt_id}", problems)
    return {
        response_id: GoldGrade(
            grade=consensus([row.grade for row in group]),
            probability=group[0].inclusion_probability or math.nan,
            stratum=group[0].stratum,
            rows=group,
        )
        for response_id, group in rows.items()
    }


def graded_runs(
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criterion: Criterion,
    expected: Mapping[str, Collection[str]] | None,
    cluster: Cluster = "topic",
) -> list[GradedRun]:
    """The runs in natural order of their ids."""
    return [
        GradedRun(run, tuple((response, judgment.grade) for response, judgment in run.graded), cluster)
        for run in run_turns(pool, results, criterion, expected)
    ]


def check_inclusion(entries: Sequence[GradedRun], gold: Mapping[str, GoldGrade], name: str) -> None:
    """Refuse gold whose inclusion probabilities are unknown or contradictory."""
    path = "$.inclusion_probability"
    problems = []
    used = {
        response.response_id: response
        for entry in entries
        for response, _ in entry.judged
        if response.response_id in gold
    }
    for response_id in sorted(used, key=natural_key):
        for row in gold[response_id].rows:
            if row.inclusion_probability is None:
                problem = "not known: expected the probability with which this response was chosen for grading"
            elif row.inclusion_probability != gold[response_id].probability:
                problem = (
                    f"{row.inclusion_probability}, but {gold[response_id].probability} in another row: expected one"
                )
            else:
                continue
            where = f"{row.criterion} grade by {row.assessor} for response {response_id}"
            problems.append(Problem("inclusion_probability", "error", name, row.turn_id, path, f"{where}: {problem}"))
    if problems:
        raise InputError(
            f"{name}: without the probabilities with which responses were chosen for gold, corrected means can be far "
            "off; `judge gold plan` draws with known probabilities, `judge gold import --inclusion P` declares that of "
            "a random sample (1 if every response has a grade)",
            problems,
        )
    graded_by_run = [
        (entry, [gold[response.response_id] for response, _ in entry.judged if response.response_id in gold])
        for entry in entries
    ]
    # By chance, all graded responses of some runs may be certain ones; only if all are of all runs is it a problem.
    if all(grade.probability == 1 for _, graded in graded_by_run for grade in graded):
        for entry, graded in graded_by_run:
            if 0 < len(graded) < len(entry.judged):
                message = (
                    f"{entry.run_id}: probability 1 for all {len(graded)} gold grades, but {len(entry.judged)} "
                    "responses were judged: expected less than 1 where not every response has a grade"
                )
                problems.append(Problem("inclusion_probability", "error", name, None, path, message))
    if problems:
        raise InputError(f"{name}: inclusion probabilities contradict the number of grades", problems)


def one_part(entries: Sequence[GradedRun], gold: Mapping[str, GoldGrade]) -> tuple[str, bool] | None:
    """A sentence if the used gold is only one part of a split, and whether judged topics lack gold."""
    judged = [response for entry in entries for response, _ in entry.judged]
    used = [response for response in judged if response.response_id in gold]
    parts = {row.split for response in used for row in gold[response.response_id].rows if row.split}
    if len(parts) != 1:
        return None
    missing = sorted(
        {response.topic_id for response in judged} - {response.topic_id for response in used}, key=natural_key
    )
    sentence = f"the gold is only the {parts.pop()} part of a split"
    if not missing:
        return f"{sentence}, though it has grades in every topic judged", False
    shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
    return f"{sentence} and has no grade in {len(missing)} of the topics judged ({shown})", True
