"""Every table of a judged pool, made of one look at the results of each criterion. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from judge.ask.records import Failure, Judgment
from judge.io.ids import Cluster, cluster_of, groups_of, natural_key, topic_of
from judge.io.table import RecordColumns, Table, fields, records_tsv, sequence, tsv
from judge.io.text import count, printable
from judge.pool.records import Pool
from judge.records import Criterion
from judge.results import details, grade_counts, leaderboard, pairs
from judge.results.citations import Measure, boards_of
from judge.results.details import checked_scores, sentence_scores, topic_scores
from judge.results.grade_counts import GradeCount, counts_markdown
from judge.results.leaderboard import leaderboard_markdown, ranked_runs
from judge.results.pairs import PAIR_COLUMNS, rated_runs, ratings_markdown
from judge.results.rows import RunDifference, Score, noted
from judge.results.turns import RunTurns, duels_of, run_flags, turns_by_criterion, worst_grade
from judge.stats.run_differences import FEWEST_TOPICS_COMPARED, run_differences
from judge.stats.separation import compact_letters
from judge.units import UNITS

ALPHA = 0.05
"""Adjusted p up to which two runs are said to differ."""
FEW_TOPICS = 25
"""Fewer topics than this have, more often than one time in fourteen, none of a tenth of all topics."""
COLUMNS: RecordColumns = {
    **fields("criterion run_a run_b difference=difference.value low=difference.low high=difference.high p p_adjusted"),
    **fields("turns=difference.n topics=difference.topics difference_at_worst=at_worst.difference.value"),
    **fields("p_adjusted_at_worst=at_worst.p_adjusted turns_at_worst=at_worst.difference.n"),
    "note": lambda row: noted(row.difference.reason, row.cluster),
}


def differences(
    runs: Sequence[RunTurns], criterion: Criterion, cluster: Cluster, rng: np.random.Generator
) -> list[RunDifference]:
    """A row for each pair of runs under a criterion, in the order of the runs.

    Runs are compared on the turns that are graded for both; a turn has the worst grade where a run is itself the reason
    why there is none (`RunTurns.without_missing`). Beside it stands the comparison by which they are ranked, where a
    turn has the worst grade wherever the lack of one counts against the run. Interactive runs are compared on the means
    of topics, one that a run never reached having the worst grade; they share nothing with other runs.
    """
    worst = worst_grade(criterion.scale)
    graded = {run.run_id: run.without_missing().compared(worst) for run in runs}
    at_worst = {run.run_id: run.compared(worst) for run in runs}
    lowest, highest = criterion.scale.ends
    return paired(criterion.name, graded, cluster, rng, at_worst=at_worst, most=float(highest - lowest))


def paired(
    name: str,
    by_run: Mapping[str, Mapping[str, float]],
    cluster: Cluster,
    rng: np.random.Generator,
    *,
    at_worst: Mapping[str, Mapping[str, float]] | None = None,
    **options: Any,
) -> list[RunDifference]:
    """A row for each pair of runs, in their order, on the turns in which both have a value.

    `by_run` has run, turn and value; `at_worst` the values if what is missing were the worst; `options` are those of
    `run_differences`.
    """
    if at_worst is None or at_worst == by_run:
        return _pairs(name, by_run, cluster, rng, **options)
    # Both by the same signs of topics.
    graded = _pairs(name, by_run, cluster, deepcopy(rng), **options)
    worst = _pairs(name, at_worst, cluster, rng, **options)
    return [replace(row, if_worst=other) for row, other in zip(graded, worst, strict=True)]


def _pairs(
    name: str, by_run: Mapping[str, Mapping[str, float]], cluster: Cluster, rng: np.random.Generator, **options: Any
) -> list[RunDifference]:
    run_ids = [*by_run]
    turns = sorted(set().union(*by_run.values()), key=natural_key)
    values = np.full((len(run_ids), len(turns)), np.nan)
    for row, of_run in enumerate(by_run.values()):
        values[row] = [of_run.get(turn_id, np.nan) for turn_id in turns]
    clusters = [cluster_of(topic_of(turn_id), cluster) for turn_id in turns]
    return [
        RunDifference(
            criterion=name,
            run_a=run_ids[pair.a],
            run_b=run_ids[pair.b],
            difference=pair.difference,
            p=pair.p,
            p_adjusted=pair.p_adjusted,
            cluster=cluster,
        )
        for pair in run_differences(values, clusters, rng, **options)
    ]


def is_different(pair: RunDifference) -> bool:
    """Whether two runs differ by more than chance."""
    return pair.p_adjusted is not None and pair.p_adjusted <= ALPHA


def is_apart(pair: RunDifference) -> bool:
    """Whether two runs are told apart: on what is graded for both, and no less if what is missing were the worst."""
    signs = (pair.difference.value or 0) * (pair.at_worst.difference.value or 0)
    return is_different(pair) and is_different(pair.at_worst) and signs > 0


def tie_letters(run_ids: Sequence[str], pairs: Sequence[RunDifference]) -> dict[str, str]:
    """Run to its letters: two runs share one if and only if they are not told apart; empty where no pair was tested."""
    if not any(pair.p_adjusted is not None for pair in pairs):
        return {}
    places = {run_id: place for place, run_id in enumerate(run_ids)}
    apart = np.zeros((len(places), len(places)), dtype=bool)
    for pair in pairs:
        if is_apart(pair):
            a = places[pair.run_a]
            b = places[pair.run_b]
            apart[a, b] = apart[b, a] = True
    return dict(zip(run_ids, compact_letters(apart, range(len(places))), strict=True))


def told_apart(rows: Iterable[RunDifference], criteria: Iterable[Criterion]) -> dict[str, str]:
    """Criterion to the sentence that says which run is measurably better than most others, or that none is."""
    groups = groups_of((row.criterion, row) for row in rows)
    return {
        criterion.name: _told_apart(groups[criterion.name], criterion)
        for criterion in boards_of(criteria)
        if criterion.name in groups
    }


def _told_apart(rows: Sequence[RunDifference], criterion: Criterion) -> str:
    """The verdict of one criterion, and how many pairs it rests on.

    A run is better without more ado where it is so on what is graded for both, and if what is missing were the worst.
    """
    if len(rows) == 1:
        return _of_two(rows[0], criterion)
    pairs = count(len(rows), "pair")
    unit = f"{rows[0].cluster}s"
    graded = [row for row in rows if is_different(row)]
    at_worst = sum(is_different(row.at_worst) for row in rows)
    both = [row for row in rows if is_apart(row)]
    on_graded = f"on the {UNITS[criterion.unit].nouns.turns} graded for both"
    if_worst = "if each missing grade were the worst"
    missing = any(row.if_worst is not None for row in rows)
    # Where one way alone tells runs apart, the sentence is about that way.
    where = f" {on_graded}" if missing and not both and (graded or at_worst) else ""
    found = both or graded
    verdict = f"{_better(found, rows, criterion) or 'No run is measurably better than another'}{where}"
    level = f"(p at most {ALPHA:.2f}, adjusted for all pairs; differences.tsv)"
    if all(row.p_adjusted is None for row in rows):
        besides = f"; {at_worst} of {pairs} can be told apart {if_worst} {level}" if at_worst else ""
        return f"{verdict}: that needs {FEWEST_TOPICS_COMPARED} {unit} in common{besides}."
    counts = f"{len(found)} of {pairs} can be told apart"
    if missing and both:
        counts += f" either way, {len(graded)} {on_graded} and {at_worst} {if_worst}"
    elif missing and graded:
        counts += f" there, none of them so {if_worst}"
    elif missing and at_worst:
        counts += f" there, {at_worst} {if_worst}"
    elif missing:
        counts += f", {on_graded} or {if_worst}"
    untested = sum(row.p_adjusted is None for row in rows)
    if untested:
        there = " there" if where else f" {on_graded}" if missing else ""
        counts += f"; {untested} not tested{there}, with fewer than {FEWEST_TOPICS_COMPARED} {unit} in common"
    return f"{verdict}: {counts} {level}.{_of_few(found)}"


def _of_two(row: RunDifference, criterion: Criterion) -> str:
    """The verdict on two runs, of which there is one pair."""
    sign = -1 if criterion.scale.polarity == "lower" else 1
    a_is_better = sign * (row.difference.value or 0) > 0
    better, worse = (row.run_a, row.run_b) if a_is_better else (row.run_b, row.run_a)
    some = f"{printable(better)} is measurably better than {printable(worse)}"
    none = "Neither run is measurably better than the other"
    on_graded = f"on the {UNITS[criterion.unit].nouns.turns} graded for both"
    if_worst = "if each missing grade were the worst"
    level = f"(p at most {ALPHA:.2f}; differences.tsv)"
    beyond = f"(p above {ALPHA:.2f}; differences.tsv)"
    if row.p_adjusted is None:
        besides = f"; they can be told apart {if_worst} {level}" if is_different(row.at_worst) else ""
        where = f" {on_graded}" if besides else ""
        return f"{none}{where}: that needs {FEWEST_TOPICS_COMPARED} {row.cluster}s in common{besides}."
    few = _of_few([row]) if is_different(row) else ""
    if row.if_worst is None:
        return f"{some} {level}.{few}" if is_different(row) else f"{none} {beyond}."
    if is_apart(row):
        return f"{some}, both {on_graded} and {if_worst} {level}.{few}"
    if is_different(row):
        return f"{some} {on_graded}, but not {if_worst} {level}.{few}"
    if is_different(row.at_worst):
        return f"{none} {on_graded}; they can be told apart {if_worst} {level}."
    return f"{none}, {on_graded} or {if_worst} {beyond}."


def _of_few(found: Sequence[RunDifference]) -> str:
    """What a verdict by few topics leaves open, after a space; nothing of many."""
    few = min((row.difference.topics for row in found), default=FEW_TOPICS)
    if few >= FEW_TOPICS:
        return ""
    noun = found[0].cluster
    return f" {few} {noun}s are few: a run that fails badly on one {noun} in ten may fail on none of them."


def _better(found: Sequence[RunDifference], rows: Sequence[RunDifference], criterion: Criterion) -> str:
    """Which run is better than most others by the pairs that are `found`; empty without any."""
    if not found:
        return ""
    sign = -1 if criterion.scale.polarity == "lower" else 1
    wins = Counter(row.run_a if sign * (row.difference.value or 0) > 0 else row.run_b for row in found)
    first = [run_id for run_id, won in wins.items() if won == max(wins.values())]
    others = len({run_id for row in rows for run_id in (row.run_a, row.run_b)}) - 1
    verb = "is" if len(first) == 1 else "are each"
    won = wins[first[0]]
    beaten = f"{won} of {others} other runs"
    if won == others:
        beaten = "both other runs" if others == 2 else f"all {others} other runs"
    return f"{listed(first)} {verb} measurably better than {beaten}"


def listed(run_ids: Sequence[str]) -> str:
    """Names of runs in a sentence: both of two, else the first with the number of the others."""
    name = printable(run_ids[0])
    if len(run_ids) == 2:
        return f"{name} and {printable(run_ids[1])}"
    return name if len(run_ids) == 1 else f"{name} and {len(run_ids) - 1} others"


SEED = 2023
"""Of the tests of differences, so that the same folder has the same p-values."""


class ResultTables(NamedTuple):
    """The rows of each table: criteria as given, runs in natural order or by rank."""

    leaderboard: Table[Score]
    differences: Table[RunDifference]
    sentences: Table[Score]
    """Where a prompt labels sentences."""
    citations: Table[Score]
    """Where the judge is a checker, precision first."""
    topics: Table[Score]
    """Of interactive runs; a dialogue is all of its topic, so the leaderboard says of its topics what there is to say.
    """
    ratings: Table[Score]
    """Where pairs of responses are compared."""
    compared: Table[Any]
    """Of them, every two runs that met."""
    advantages: Mapping[str, str]
    """Of them, criterion to what is said of the places of the responses."""
    grades: Table[GradeCount]
    """Where runs are not ranked by the grades."""

    def files(self, banner: str, criteria: Sequence[Criterion], notes: Iterable[str]) -> dict[str, bytes]:
        """The files of the tables; one of details without rows is left out."""
        if self.grades:
            return {
                "grades.md": counts_markdown(self.grades, banner, criteria, notes).encode(),
                "grades.tsv": records_tsv(grade_counts.COLUMNS, self.grades).encode(),
            }
        apart = told_apart(self.differences, criteria)
        rated = ratings_markdown(self.ratings, self.advantages)
        board = leaderboard_markdown(self.leaderboard, banner, criteria, notes, apart, self.sentences, rated)
        tables: dict[str, tuple[RecordColumns, Table[Any]]] = {
            "leaderboard.tsv": (leaderboard.COLUMNS, self.leaderboard),
            "differences.tsv": (COLUMNS, self.differences),
            "sentences.tsv": (details.SENTENCES, self.sentences),
            "citations.tsv": (details.CITATIONS, self.citations),
            "interactive.tsv": (details.TOPICS, self.topics),
            "ratings.tsv": (pairs.COLUMNS, self.ratings),
        }
        files = {
            name: records_tsv(columns, rows, 4).encode()
            for name, (columns, rows) in tables.items()
            if rows or name in ("leaderboard.tsv", "differences.tsv")
        }
        if self.compared:
            files["pairs.tsv"] = tsv(PAIR_COLUMNS, self.compared).encode()
        return {**files, "leaderboard.md": board.encode()}


def result_tables(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    cluster: Cluster = "topic",
    looks: int = 1,
) -> ResultTables:
    """The rows of every table; the arguments are those of `leaderboard`, and of `rated_runs`."""
    rng = np.random.default_rng(SEED)
    board: list[Score] = []
    apart: list[RunDifference] = []
    sentences: list[Score] = []
    citations: list[Score] = []
    topics: list[Score] = []
    ratings: list[Score] = []
    compared: list[tuple[object, ...]] = []
    advantages: dict[str, str] = {}
    results = sequence(results)
    counts = grade_counts.grade_counts(pool, results, criteria) if UNITS[pool.unit].listed else ()
    for criterion, runs in turns_by_criterion(pool, results, criteria):
        board += ranked_runs(runs, criterion, cluster)
        apart += differences(runs, criterion, cluster, rng)
        if isinstance(criterion, Measure) and criterion.of_pairs:
            flags = {run.run_id: run_flags(run) for run in runs}
            prompt = criterion.of
            rated, lines, sentence = rated_runs(duels_of(pool, results, prompt), flags, prompt, cluster, looks)
            ratings += rated
            compared += lines
            advantages[prompt.name] = sentence
        for run in runs:
            if criterion.answer == "sentences":
                sentences += sentence_scores(run, criterion, cluster)
                citations += checked_scores(run, criterion, cluster)
            if UNITS[pool.unit].whole_response:
                topics += topic_scores(run, criterion)
    return ResultTables(
        leaderboard=Table(board),
        differences=Table(apart),
        sentences=Table(sentences),
        citations=Table(citations),
        topics=Table(topics),
        ratings=Table(ratings),
        compared=Table(compared, PAIR_COLUMNS),
        advantages=advantages,
        grades=Table(counts),
    )
