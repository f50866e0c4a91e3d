"""Whether the gold of runs is a sample by which their means can be corrected. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from judge.errors import InputError, refuse
from judge.gold.rows import BLIND, BY_GRADE
from judge.io.ids import groups_of, natural_key
from judge.records import file_problem
from judge.results.gold import GoldGrade, counted_runs
from judge.results.turns import RunTurns
from judge.stats.gold_sample import Target

_SHOWN = 20
"""Topics that a message names."""


def check_inclusion(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], name: str) -> None:
    """Refuse gold whose inclusion probabilities are unknown or contradictory."""
    path = "$.inclusion_probability"
    problems = []
    runs = counted_runs(runs, gold)
    graded = {response.response_id for run in runs for response, _ in run.graded}
    for response_id in sorted(graded & gold.keys(), key=natural_key):
        of = gold[response_id]
        for row, probability in ((row, part.probability) for part in of.parts or (of,) for row in part.rows):
            if row.inclusion_probability is None:
                problem = "not known: expected the probability with which this response was chosen for grading"
            elif row.inclusion_probability != probability:
                problem = f"{row.inclusion_probability}, but {probability} in another row: expected one"
            else:
                continue
            where = f"{row.criterion} grade by {row.assessor} for response {response_id}"
            problems.append(
                file_problem("inclusion_probability", name, f"{where}: {problem}", path, turn_id=row.turn_id)
            )
    if problems:
        raise InputError(
            f"{name}: without the probabilities with which responses were chosen for gold, corrected means can be far "
            "off; `judge gold plan` draws with known probabilities, `judge gold import --inclusion P`, or a column "
            "inclusion_probability of a table, declares that of a random sample (1 if every response has a grade)",
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
            problems.append(file_problem("inclusion_probability", name, message, path))
    refuse(problems, f"{name}: inclusion probabilities contradict the number of grades")


def one_part(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> tuple[str, bool] | None:
    """A sentence if the used gold is only one part of a split, and whether judged topics lack gold."""
    judged = []
    for run in runs:
        for response, _ in run.graded:
            judged.append(response)
    used = [response for response in judged if response.response_id in gold]
    parts = set()
    for response in used:
        for row in gold[response.response_id].rows:
            if row.split:
                parts.add(row.split)
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


_PLAUSIBLE = 1.1
"""Factor by which the number of responses that gold stands for may differ from their real number."""
_PLAUSIBLE_ERRORS = 3
"""By how many standard errors of the draw it has to differ as well."""


def check_sample(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade], target: Target, name: str) -> None:
    """Refuse gold by which the means of runs cannot be corrected.

    Raises:
        InputError: Inclusion probabilities are unknown or contradictory; every row is listed. Or the gold is one part
            of a split and lacks topics of the pool.
    """
    check_inclusion(runs, gold, name)
    if target == "pool" and (part := one_part(runs, gold)) and part[1]:
        raise InputError(
            f"{name}: {part[0]}, so corrected means of all responses would be a guess: give both parts of the split "
            "(the test part with --test), or --target topics"
        )


def cautions(runs: Sequence[RunTurns], gold: Mapping[str, GoldGrade]) -> tuple[str, ...]:
    """What a reader must know about this gold before any number; the arguments are those of `corrected`."""
    # Each response counts once, since a response that several runs gave was drawn once.
    counted: set[str] = set()
    for run in counted_runs(runs, gold):
        counted.update(response.response_id for response, _ in run.graded)
    used = [gold[response_id] for response_id in sorted(counted & gold.keys())]
    # Responses may share the gold of a citation.
    rows = {id(row): row for grade in used for row in grade.rows}.values()
    made = Counter(row.made for row in rows if row.made not in BLIND)
    warnings = []
    if part := one_part(runs, gold):
        warnings.append(part[0])
    if made:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(made.items()))
        warnings.append(
            f"{made.total()} of {len(rows)} gold grades were not given blind ({ways}): they may favor the judge "
            "or some runs, and corrected means with them"
        )
    stands_for = math.fsum(1 / grade.probability for grade in used)
    by_chance = _PLAUSIBLE_ERRORS * _error_of_number(used)
    low = len(counted) / _PLAUSIBLE - by_chance
    high = len(counted) * _PLAUSIBLE + by_chance
    if used and not low <= stands_for <= high:
        warnings.append(
            f"by its inclusion probabilities the gold stands for {stands_for:.0f} responses, but {len(counted)} "
            "were judged: is a part of what was drawn without a grade, or was it drawn from another pool?"
        )
    return tuple(warnings)


def _error_of_number(used: Sequence[GoldGrade]) -> float:
    """The standard error of Σ 1/π, the number of responses that gold stands for.

    It is Σ (1 - π) k/(k - 1) (x - x̄)² over the k units that were drawn in a stratum, turns or single responses, of
    which each stands for x responses; 0 where all in a stratum stand for as many.
    """
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    for place, grade in enumerate(used):
        stratum = grade.stratum or ""
        singly = stratum.startswith(BY_GRADE) or not grade.rows
        units[stratum, str(place) if singly else grade.rows[0].turn_id].append(grade.probability)
    strata = groups_of((stratum, of) for (stratum, _), of in units.items())
    variance = 0.0
    for of in strata.values():
        numbers: list[float] = []
        for unit in of:
            numbers.append(math.fsum(1 / probability for probability in unit))
        mean = math.fsum(numbers) / len(of)
        k = len(of)
        squares = ((1 - unit[0]) * (number - mean) ** 2 for unit, number in zip(of, numbers, strict=True))
        variance += math.fsum(squares) * k / max(k - 1, 1)
    return math.sqrt(variance)
