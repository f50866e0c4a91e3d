"""The gold of judged responses, checked before a mean is corrected by it. Pure."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from judge.errors import InputError
from judge.gold import GoldByResponse, check_scale
from judge.gold.rows import GoldRow
from judge.io.ids import natural_key
from judge.records import Criterion, Problem
from judge.results.turns import RunTurns
from judge.stats.means import consensus

_SHOWN = 20
"""Topics that a message names."""


class GoldGrade(msgspec.Struct, frozen=True):
    """The gold of one response."""

    grade: int
    probability: float
    """The inclusion probability; nan where it is unknown."""
    stratum: str | None
    rows: tuple[GoldRow, ...]


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


def check_inclusion(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], name: str) -> None:
    """Refuse gold whose inclusion probabilities are unknown or contradictory."""
    path = "$.inclusion_probability"
    problems = []
    graded = {response.response_id for run in runs for response, _ in run.graded}
    for response_id in sorted(graded & gold.keys(), key=natural_key):
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
    # By chance, all graded responses of some runs may be certain ones; only if all are of all runs is it a problem.
    certain = all(gold[response_id].probability == 1 for response_id in graded & gold.keys())
    for run in runs if certain else ():
        known = sum(response.response_id in gold for response, _ in run.graded)
        if 0 < known < len(run.graded):
            message = (
                f"{run.run_id}: probability 1 for all {known} gold grades, but {len(run.graded)} responses were "
                "judged: expected less than 1 where not every response has a grade"
            )
            problems.append(Problem("inclusion_probability", "error", name, None, path, message))
    if problems:
        raise InputError(f"{name}: inclusion probabilities contradict the number of grades", problems)


def one_part(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> tuple[str, bool] | None:
    """A sentence if the used gold is only one part of a split, and whether judged topics lack gold."""
    judged = [response for run in runs for response, _ in run.graded]
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
