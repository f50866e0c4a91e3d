"""Whether the passages that responses use are relevant, and whether groundedness rests on any that is. Pure.

J. Mayfield et al. (2024), On the evaluation of machine-generated reports, arXiv:2405.00982: there too, that a citation
supports a sentence earns nothing where the sentence is beside the point.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from judge.ask.records import Failure, Judgment
from judge.io.ids import Cluster, column
from judge.io.table import Column, RecordColumns, Table, fields, records_table, records_tsv
from judge.io.text import count, markdown_cell
from judge.pool.listed_checks import GradesByTurn
from judge.pool.records import Pool, PooledResponse, passage_id_of, whole_responses
from judge.records import Criterion, Estimate, Record
from judge.results.ranked import first_ranked, turns_of_runs
from judge.results.rows import mean_over, noted
from judge.results.turns import RunTurns, turns_by_criterion, worst_grade
from judge.units import UNITS

NOT_POOLED = "not_pooled"
"""Why the judge gave no grade: nobody asked for one, since the passage is not among those that are judged."""
NOT_ASKED = "not_asked"
"""The same, since a trial left it out."""
UNABLE = "unable"


class PassageUse(Record, frozen=True):
    """A passage that a response uses, with its grades."""

    response_id: str
    turn_id: str
    passage_id: str
    judge: int | None
    """The judge's grade."""
    people: int | None
    """People's grade, which counts where there is one."""
    relevant: bool | None
    """Whether the grade that counts is positive; None without a grade."""
    reason: str = ""
    """Why the judge gave no grade."""


class Bounded(Record, frozen=True):
    """A mean over what is known, and what it is if all that is unknown were the worst, or the best."""

    mean: Estimate
    at_worst: float | None
    at_best: float | None

    @property
    def sure(self) -> bool:
        """Whether nothing is unknown."""
        return self.at_worst == self.at_best


class RunUse(Record, frozen=True):
    """What a run's responses use, and their grades under a criterion that shows passages."""

    run_id: str
    criterion: str
    """Empty where no criterion shows passages."""
    responses: int
    none_relevant: int
    """Responses that use no relevant passage, those among them that use none at all."""
    unknown: int
    """Responses of which nobody knows, since no passage of theirs is relevant and one has no grade."""
    no_passages: int
    """Responses that use no passage."""
    relevant: Bounded
    """The share of a response's used passages that are relevant, over responses with a graded one."""
    mean: Estimate | None = None
    """The mean grade, as on the leaderboard."""
    on_relevant: Bounded | None = None
    """The same, where a grade counts as it is with a relevant passage among the used ones, and as the worst without."""
    cluster: Cluster = "topic"


class UsedPassages(Record, frozen=True):
    """The used passages of all responses, and what they come to for each run."""

    criterion: Criterion
    """That of the passages."""
    passages: tuple[PassageUse, ...]
    runs: tuple[RunUse, ...]

    def files(self, banner: str) -> dict[str, bytes]:
        """The tables, by name."""
        return {
            "used_passages.md": used_markdown(self, banner).encode(),
            "used_passages.tsv": records_tsv(RUN_COLUMNS, self.runs, 4).encode(),
            "used_passage_grades.tsv": records_tsv(PASSAGE_COLUMNS, self.passages).encode(),
        }


PASSAGE_COLUMNS = fields("response_id turn_id passage_id judge people relevant reason")
RUN_COLUMNS: RecordColumns = {
    **fields("run_id criterion responses none_relevant unknown no_passages"),
    **fields("relevant=relevant.mean.value relevant_low=relevant.mean.low relevant_high=relevant.mean.high"),
    **fields("relevant_n=relevant.mean.n relevant_at_worst=relevant.at_worst relevant_at_best=relevant.at_best"),
    **fields("mean=mean.value low=mean.low high=mean.high n=mean.n topics=mean.topics"),
    **fields("on_relevant=on_relevant.mean.value on_relevant_low=on_relevant.mean.low"),
    **fields("on_relevant_high=on_relevant.mean.high on_relevant_n=on_relevant.mean.n"),
    **fields("on_relevant_at_worst=on_relevant.at_worst on_relevant_at_best=on_relevant.at_best"),
    "note": lambda row: noted("; ".join(_reasons(row)) or None, row.cluster),
}


def used_passages(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    listed: Pool,
    grades: Iterable[Judgment | Failure],
    relevance: Criterion,
    people: GradesByTurn,
    cluster: Cluster = "topic",
) -> UsedPassages | None:
    """The relevance of what the responses of a pool use; None of a pool whose items are no responses.

    `pool`, `results`, `criteria`: of the responses. `listed`, `grades`, `relevance`: of the passages, whose positive
    grades are relevant, in `people` too.
    """
    unit = UNITS[pool.unit]
    if not (unit.whole_response or unit.part_of_response):
        return None
    responses = whole_responses(pool)
    passages = _graded(responses, listed, grades, relevance, people)
    use: dict[str, list[bool | None]] = {response.response_id: [] for response in responses.responses}
    for passage in passages:
        use[passage.response_id].append(passage.relevant)
    shown = [one for one in criteria if UNITS[one.unit].whole_response and "passages" in one.inputs]
    firsts = first_ranked(responses)
    runs: list[RunUse] = []
    of_runs: dict[str, RunUse] = {}
    for run_id in turns_of_runs(responses, firsts):
        given = list(firsts.get(run_id, {}).values())
        of_runs[run_id] = _use_of_run(run_id, given, use, cluster)
    for criterion, turns in turns_by_criterion(pool, results, shown):
        for run in turns:
            if run.run_id in of_runs:
                runs.append(_with_grades(of_runs[run.run_id], run, criterion, use))
    return UsedPassages(relevance, passages, tuple(runs or of_runs.values()))


def _graded(
    responses: Pool,
    listed: Pool,
    grades: Iterable[Judgment | Failure],
    relevance: Criterion,
    people: GradesByTurn,
) -> tuple[PassageUse, ...]:
    """The passages that each response uses, with what judge and people said of them."""
    used: list[tuple[PooledResponse, str]] = []
    for response in responses.responses:
        used += [(response, passage_id) for passage_id in dict.fromkeys(map(passage_id_of, response.passages))]
    wanted = {(response.turn_id, passage_id) for response, passage_id in used}
    ids: dict[str, tuple[str, str]] = {}
    for item in listed.responses:
        key = item.turn_id, item.listed_as
        if key in wanted:
            ids[item.response_id] = key
    said: dict[tuple[str, str], int | str] = dict.fromkeys(ids.values(), NOT_ASKED)
    for result in grades:
        if result.response_id in ids and (result.criterion, result.variant) == (relevance.name, relevance.variant):
            outcome = result.reason if isinstance(result, Failure) else UNABLE if result.unable else result.grade
            said[ids[result.response_id]] = outcome
    rows: list[PassageUse] = []
    for response, passage_id in used:
        outcome = said.get((response.turn_id, passage_id), NOT_POOLED)
        judge = outcome if isinstance(outcome, int) else None
        theirs = people.get(response.turn_id, {}).get(column(passage_id))
        row = PassageUse(
            response_id=response.response_id,
            turn_id=response.turn_id,
            passage_id=passage_id,
            judge=judge,
            people=theirs,
            relevant=_is_relevant(judge if theirs is None else theirs, relevance),
            reason=outcome if isinstance(outcome, str) else "",
        )
        rows.append(row)
    return tuple(rows)


def _is_relevant(grade: int | None, relevance: Criterion) -> bool | None:
    """Whether a grade is positive; people's may be off the scale, beyond its best end."""
    if grade is None:
        return None
    if relevance.scale.polarity == "higher":
        return grade >= min(relevance.scale.positive)
    return grade <= max(relevance.scale.positive)


def uses_relevant(use: Sequence[bool | None]) -> bool | None:
    """Whether one of the used passages is relevant; None where that hangs on one without a grade.

    >>> uses_relevant([False, True, None]), uses_relevant([False, None]), uses_relevant([])
    (True, None, False)
    """
    if True in use:
        return True
    return None if None in use else False


def relevance_words(passage: PassageUse) -> str:
    """Whether a used passage is relevant, and who says so."""
    grades = {"people": passage.people, "the judge": passage.judge}
    said = " and ".join(f"{grade} by {who}" for who, grade in grades.items() if grade is not None)
    if passage.relevant is None:
        return f"relevance unknown ({passage.reason})"
    return f"{'relevant' if passage.relevant else 'not relevant'} ({said})"


def _use_of_run(
    run_id: str, responses: Sequence[PooledResponse], use: Mapping[str, Sequence[bool | None]], cluster: Cluster
) -> RunUse:
    shares: list[tuple[str, float]] = []
    at_worst: list[float] = []
    at_best: list[float] = []
    known: list[bool | None] = []
    for response in responses:
        of_response = use[response.response_id]
        known.append(uses_relevant(of_response))
        relevant = of_response.count(True)
        graded = len(of_response) - of_response.count(None)
        if graded:
            shares.append((response.topic_id, relevant / graded))
        if of_response:
            at_worst.append(relevant / len(of_response))
            at_best.append((relevant + of_response.count(None)) / len(of_response))
    return RunUse(
        run_id=run_id,
        criterion="",
        responses=len(responses),
        none_relevant=known.count(False),
        unknown=known.count(None),
        no_passages=len(responses) - len(at_worst),
        relevant=Bounded(
            mean=mean_over(shares, cluster, (0, 1), what="shares"), at_worst=_mean(at_worst), at_best=_mean(at_best)
        ),
        cluster=cluster,
    )


def _with_grades(of: RunUse, run: RunTurns, criterion: Criterion, use: Mapping[str, Sequence[bool | None]]) -> RunUse:
    """The run with its grades under a criterion, and with those that stand on a relevant passage."""
    worst = float(worst_grade(criterion.scale))
    graded = [(unit.topic_id, grade.grade) for unit, grade in run.graded]
    known: list[tuple[str, float]] = []
    at_worst: list[float] = []
    at_best: list[float] = []
    for unit, grade in run.graded:
        relevant = uses_relevant(use[unit.response_id])
        if relevant is not None:
            known.append((unit.topic_id, grade.grade if relevant else worst))
        at_worst.append(grade.grade if relevant else worst)
        at_best.append(worst if relevant is False else grade.grade)
    ends = criterion.scale.ends
    return replace(
        of,
        criterion=criterion.name,
        mean=mean_over(graded, of.cluster, ends),
        on_relevant=Bounded(mean=mean_over(known, of.cluster, ends), at_worst=_mean(at_worst), at_best=_mean(at_best)),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _reasons(row: RunUse) -> list[str]:
    """Why a number of the row has no interval, or is none."""
    estimates = {"relevant": row.relevant.mean, "mean": row.mean}
    estimates["on_relevant"] = row.on_relevant.mean if row.on_relevant else None
    return [f"{name}: {one.reason}" for name, one in estimates.items() if one is not None and one.reason]


ABOUT = (
    "A passage is relevant if people gave it a positive grade or, where they gave none, the judge did. One without a "
    "grade is unknown, which is not irrelevant: means leave it out, and bounds say what they would be if all that is "
    "unknown were irrelevant, or relevant. A response that uses no passage uses no relevant one."
)
ON_RELEVANT = (
    "a response counts with its grade if at least one passage that it uses is relevant, and with the worst grade if "
    "none is"
)
"""The measure of grounded and relevant, in words."""


def use_tables(used: UsedPassages) -> tuple[Table[RunUse], ...]:
    """A table for people of the runs under each criterion; columns with nothing to say are left out."""
    tables: list[Table[RunUse]] = []
    for name in dict.fromkeys(row.criterion for row in used.runs):
        rows = [row for row in used.runs if row.criterion == name]
        tables.append(_use_table(rows, name, used.criterion))
    return tuple(tables)


def _use_table(rows: Sequence[RunUse], criterion: str, relevance: Criterion) -> Table[RunUse]:
    over = f"in brackets the range that holds the mean on {rows[0].cluster}s like these with 95 % confidence"
    shares = f"the share of a response's used passages that are relevant, on average over the responses; {over}"
    none = "how many of the run's responses use no relevant passage, those that use no passage among them"
    bounds = "what the mean is if all that is unknown were the worst, or the best"
    columns: dict[Column | str, Callable[[Any], object]] = {
        "run": lambda row: row.run_id,
        Column("relevant passages", about=shares): lambda row: row.relevant.mean,
    }
    if criterion:
        on_relevant = f"{ON_RELEVANT}, on average over the responses of which that is known"
        columns[Column(criterion, about="the mean grade, as on the leaderboard")] = lambda row: row.mean
        columns[Column("on relevant ones", about=on_relevant)] = lambda row: row.on_relevant.mean
    columns[Column("none relevant", about=none)] = lambda row: f"{row.none_relevant} of {row.responses}"
    if any(row.unknown for row in rows):
        may = "responses whose only chance of a relevant passage is one that has no grade"
        columns[Column("unknown", about=may)] = lambda row: row.unknown
    if not all(row.relevant.sure for row in rows):
        columns[Column("relevant passages, bounds", about=bounds)] = lambda row: _bounds(row.relevant)
    if not all(row.on_relevant is None or row.on_relevant.sure for row in rows):
        columns[Column("on relevant ones, bounds", about=bounds)] = lambda row: _bounds(row.on_relevant)
    lacking = sorted({reason.partition(": ")[2] for row in rows for reason in _reasons(row)})
    positive = " or ".join(map(str, sorted(relevance.scale.positive)))
    notes = [f"A line for each run. Relevant is grade {positive} under {relevance.prompt_id}."]
    if lacking:
        notes.append(f"No range where it cannot be computed: {'; '.join(lacking)}.")
    title = f"{criterion} on relevant passages" if criterion else "Relevance of used passages"
    return records_table(columns, rows, title, notes, places=2)


def _bounds(bounded: Bounded) -> str | None:
    if bounded.at_worst is None or bounded.at_best is None or bounded.sure:
        return None
    return f"{bounded.at_worst:.2f} to {bounded.at_best:.2f}"


def graded_by(used: UsedPassages) -> str:
    """Whose grades count for how many of the used passages, in words."""
    people = sum(passage.people is not None for passage in used.passages)
    judge = sum(passage.people is None and passage.judge is not None for passage in used.passages)
    total = len(used.passages)
    graded = f"the judge's grade counts for {judge}, people's for {people}; {total - judge - people} without a grade"
    return f"{count(total, 'used passage')} of all responses: {graded} (used_passage_grades.tsv)."


def used_markdown(used: UsedPassages, banner: str) -> str:
    """The tables under the banner, and how the passages were graded."""
    parts = [f"# Used passages\n\n**{markdown_cell(banner)}**\n\n{ABOUT}\n\n{graded_by(used)}\n"]
    for table in use_tables(used):
        parts.append(f"\n{table.markdown()}")
    return "".join(parts)
