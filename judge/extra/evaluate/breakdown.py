"""Runs under one measure taken apart, by topic, depth of the turn and need of the user's PTKB, and in pairs.

The data of figures 4 to 6 of the overview of iKAT 2023 (M. Aliannejadi, Z. Abbasiantaeb, S. Chatterjee, J. Dalton &
L. Azzopardi (2024), TREC iKAT 2023: The Interactive Knowledge Assistance Track Overview): figure 4 is `by_group` with
topics, figures 5 and 6 with depths, of all turns and of those that depend on PTKB statements or not. "We report the
average across runs, median or better": `median_or_better`, `average_run`. `breakdown_pictures` draws them.
"""

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from judge.errors import UsageError
from judge.extra.evaluate import Over, mean_of_turns
from judge.io.draw import curve_plot, interval_plot
from judge.io.ids import CLUSTERS, Cluster, natural_key, nested, topic_of
from judge.io.installed import has_extra
from judge.io.table import Cell, Column, RecordColumns, Table, fields, records_table
from judge.io.text import count, decimals
from judge.records import Estimate, Record
from judge.results.rows import RunDifference, Score, noted
from judge.results.tables import ALPHA, is_apart, paired, tie_letters
from judge.runs.records import Topic
from judge.runs.topics import turns_by_id
from judge.stats.run_differences import FEWEST_TOPICS_COMPARED

ROUNDING = 1e-9
"""Means this close are equal."""
By = Literal["topic", "depth", "ptkb"]
"""What turns are grouped by."""
PTKB = {True: "with", False: "without"}
"""The groups of turns that depend on PTKB statements, and of those that do not."""

Group = str | int
Groups = Mapping[str, Group]
"""Turn to its group; a turn without one is left out."""


class Reading(Record, frozen=True):
    """How the values of a measure are read."""

    bounds: tuple[float, float] | None = (0.0, 1.0)
    """Least and greatest value of the measure."""
    higher_is_better: bool = True
    cluster: Cluster = "topic"
    over: Over = "qrels"
    """The turns that means are over."""


UNIT = Reading()
"""Of most measures: from 0 to 1, higher is better, over topics."""


class TurnFacts(Record, frozen=True):
    """What turns are grouped by."""

    turn_id: str
    topic: str
    depth: int | None
    """How many turns of the user lead to this one, itself included; None where nothing says so."""
    ptkb: bool | None
    """Whether the topic's author linked statements of the PTKB to it; None where nothing says so."""


def turn_facts(
    turn_ids: Iterable[str], topics: Sequence[Topic] | None = None, depths: Mapping[str, int] | None = None
) -> dict[str, TurnFacts]:
    """The facts of turns, in natural order.

    In a tree of CAsT, the depth is the number of user turns on the path from the root, which no turn id tells:
    `132_1-3` is the second turn of its path. Without the topics, the number at the end of an iKAT turn id is the depth.
    Topics without any PTKB say nothing of what depends on it. `depths` are those of turns of interactive runs, which no
    topics file tells.
    """
    depths = depths or {}
    turns = turns_by_id(topics or ())
    personal = any(turn.ptkb for turn in turns.values())
    facts: dict[str, TurnFacts] = {}
    for turn_id in sorted(set(turn_ids), key=natural_key):
        turn = turns.get(turn_id)
        depth = depths.get(turn_id, _number(turn_id)) if turn is None else len(turn.context) + 1
        linked = None if turn is None or not personal else bool(turn.ptkb_provenance)
        facts[turn_id] = TurnFacts(turn_id, topic_of(turn_id), depth, linked)
    return facts


def _number(turn_id: str) -> int | None:
    number = turn_id.rpartition("_")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 6 else None


def groups_of(facts: Mapping[str, TurnFacts], by: By) -> dict[str, Group]:
    """Each turn's topic, depth, or PTKB statements (`with`, `without`); a turn where it is not known is left out."""
    values = {
        turn_id: PTKB.get(fact.ptkb) if by == "ptkb" and fact.ptkb is not None else getattr(fact, by)
        for turn_id, fact in facts.items()
    }
    return {turn_id: value for turn_id, value in values.items() if value is not None}


def best_first(runs: Sequence[Score], reading: Reading = UNIT) -> tuple[Score, ...]:
    """The runs by their means, equal ones in natural order of run id, those without a mean last."""
    sign = -1 if reading.higher_is_better else 1

    def place(run: Score) -> tuple[object, ...]:
        # Means that differ by rounding alone are equal.
        mean = round((run.mean.value or 0.0) / ROUNDING)
        return run.mean.value is None, sign * mean, natural_key(run.run_id)

    return tuple(sorted(runs, key=place))


def median_or_better(runs: Sequence[Score], reading: Reading = UNIT) -> tuple[Score, ...]:
    """The runs whose mean is the median of all runs' means or better, best first.

    Of an even number of runs, the median lies between the two in the middle, so half of the runs are better.
    """
    values = [run.mean.value for run in runs if run.mean.value is not None]
    if not values:
        return ()
    sign = 1 if reading.higher_is_better else -1
    least = sign * statistics.median(values) - ROUNDING
    return tuple(
        run for run in best_first(runs, reading) if (mean := run.mean.value) is not None and sign * mean >= least
    )


def average_run(runs: Sequence[Score], reading: Reading = UNIT) -> Score:
    """The average of runs as a run: the value of a turn is the mean over the runs that have a value there.

    Over all turns of the qrels, each run has a value on each turn, so it is the mean of the runs' means as well. There
    is at least one run.
    """
    turn_ids = sorted(set(chain.from_iterable(run.values for run in runs)), key=natural_key)
    values: dict[str, float] = {}
    for turn_id in turn_ids:
        values[turn_id] = statistics.fmean(run.values[turn_id] for run in runs if turn_id in run.values)
    return Score(run_id="average", criterion=runs[0].criterion, mean=_mean(values, reading), values=values)


def group_means(run: Score, groups: Groups, reading: Reading = UNIT) -> dict[Group, Estimate]:
    """The mean of a run over the turns of each group, groups in natural order."""
    members = nested((groups[turn_id], turn_id, value) for turn_id, value in run.values.items() if turn_id in groups)
    order = sorted(members, key=lambda group: natural_key(str(group)))
    return {group: _mean(members[group], reading) for group in order}


def by_group(runs: Sequence[Score], groups: Groups, name: str, reading: Reading = UNIT) -> Table[Any]:
    """A line for each group of turns: the average of the better runs there, and how far all runs lie apart.

    The data of figures 4 (topics), 5 and 6 (depths). `name` is what the groups are: the name of their column.
    """
    better = median_or_better(runs, reading)
    each = [group_means(run, groups, reading) for run in runs]
    averages = group_means(average_run(better, reading), groups, reading) if better else {}
    lines: list[tuple[Cell, ...]] = []
    for group, average in averages.items():
        values = [mean.value for means in each if (mean := means.get(group)) and mean.value is not None]
        spread = (min(values), statistics.median(values), max(values))
        lines.append((better[0].criterion, group, average.n, average, *spread))
    # A topic is one cluster, so its average has no interval.
    intervals = () if name == "topic" else (INTERVALS[reading.cluster],)
    names = ", ".join(run.run_id for run in better)
    kept = f"the {count(len(better), 'run')} of {len(runs)} at the median or better"
    over = f"{runs[0].criterion if runs else 'no runs'}: the average is over {kept} ({names})."
    columns = ("measure", name, "turns", "average", "minimum", "median", "maximum")
    return Table(lines, columns, f"By {name}, {_over(runs, reading)}", (over, *intervals))


def by_run_and_group(runs: Sequence[Score], facts: Mapping[str, TurnFacts], reading: Reading = UNIT) -> Table[Any]:
    """A line for each run, and each topic, depth and dependence on the PTKB; runs best first."""
    kinds: tuple[By, ...] = ("topic", "depth", "ptkb")
    lines: list[tuple[Cell, ...]] = []
    for run in best_first(runs, reading):
        for kind in kinds:
            for group, mean in group_means(run, groups_of(facts, kind), reading).items():
                lines.append((run.criterion, run.run_id, kind, str(group), mean, mean.n))
    columns = ("measure", "run", "by", "group", "mean", "turns")
    return Table(
        lines,
        columns,
        f"Each run in each topic, depth and kind of turn, {_over(runs, reading)}",
        (INTERVALS[reading.cluster],),
    )


def by_ptkb(runs: Sequence[Score], facts: Mapping[str, TurnFacts], reading: Reading = UNIT) -> Table[Any]:
    """Turns that depend on PTKB statements against those that do not: all together, then by depth (figure 6)."""
    linked = groups_of(facts, "ptkb")
    depths = groups_of(facts, "depth")
    whole = by_group(runs, linked, "ptkb", reading)
    lines = [(line[0], line[1], None, *line[2:]) for line in whole]
    for word in PTKB.values():
        chosen = {turn_id: depths[turn_id] for turn_id, group in linked.items() if group == word and turn_id in depths}
        lines += [(line[0], word, *line[1:]) for line in by_group(runs, chosen, "depth", reading)]
    columns = (*whole.columns[:2], Column("depth"), *whole.columns[2:])
    title = f"Turns with PTKB statements and without, {_over(runs, reading)}"
    return Table(lines, columns, title, (*whole.notes, "No depth: turns of all depths."))


def stacked(
    title: str, grids: Sequence[Table[Any]], names: Sequence[str] | None = None, column: str = "criterion"
) -> Table[Any]:
    """Tables of the same columns as one, with each note once: those of one table under its name, then those of all.

    With `names`, the lines of each table have its name in a first column of their own.
    """
    if len({grid.columns for grid in grids}) > 1:
        raise ValueError("tables of different columns cannot be stacked")
    first = (column,) if names is not None else ()
    heads: list[tuple[Cell, ...]] = [(name,) for name in names] if names is not None else [()] * len(grids)
    common = set(grids[0].notes).intersection(*(grid.notes for grid in grids))
    lines: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for head, grid in zip(heads, grids, strict=True):
        lines.extend((*head, *line) for line in grid)
        notes.extend(f"{head[0]}, {note}" if head else note for note in grid.notes if note not in common)
    notes += [note for note in grids[0].notes if note in common]
    return Table(
        rows=lines, columns=(*first, *grids[0].columns), title=title, notes=dict.fromkeys(notes), places=grids[0].places
    )


def breakdown_pictures(
    runs: Sequence[Score], facts: Mapping[str, TurnFacts], heading: str, reading: Reading = UNIT
) -> dict[str, bytes]:
    """Pictures by the end of their file names: `runs`, `topics`, `depths` and `ptkb`, each as SVG and PNG.

    Without a run that has a mean there is none, nor without matplotlib. Depths are left out where nothing says them,
    and dependence on the PTKB where it is not known of turns of both kinds.
    """
    better = median_or_better(runs, reading)
    if not better or not has_extra("pictures"):
        return {}
    axis = f"{better[0].criterion} over {reading.over}{'' if reading.higher_is_better else ', lower is better'}"
    rows = [(run.run_id, run.mean) for run in best_first(runs, reading)]
    drawn = {"runs": interval_plot(rows, axis, f"{heading} by run", "turns")}
    average = average_run(better, reading)
    of = f"{count(len(better), 'run')} at the median or better"
    topics = [(str(group), mean) for group, mean in group_means(average, groups_of(facts, "topic"), reading).items()]
    drawn["topics"] = interval_plot(topics, axis, f"{heading} by topic: {of}", "turns")
    depths = groups_of(facts, "depth")
    linked = groups_of(facts, "ptkb")
    if any(turn_id in depths for turn_id in average.values):
        drawn["depths"] = curve_plot(
            [(of, _by_depth(average, depths, reading))], "depth of the turn", axis, f"{heading} by depth: {of}"
        )
    lines: list[tuple[str, list[tuple[int, Estimate]]]] = []
    for word in PTKB.values():
        if of_word := {turn_id: depth for turn_id, depth in depths.items() if linked.get(turn_id) == word}:
            lines.append((f"turns {word} PTKB statements", _by_depth(average, of_word, reading)))
    if len(lines) == len(PTKB):
        drawn["ptkb"] = curve_plot(lines, "depth of the turn", axis, f"{heading} by PTKB statements: {of}")
    pictures: dict[str, bytes] = {}
    for name, forms in drawn.items():
        for ending, content in zip(("svg", "png"), forms, strict=True):
            pictures[f"{name}.{ending}"] = content
    return pictures


def _by_depth(run: Score, depths: Groups, reading: Reading) -> list[tuple[int, Estimate]]:
    return [(int(depth), mean) for depth, mean in group_means(run, depths, reading).items()]


def _mean(values: Mapping[str, float], reading: Reading) -> Estimate:
    return mean_of_turns(values, reading.cluster, reading.bounds)


def _over(runs: Sequence[Score], reading: Reading) -> str:
    return OVER[reading.over] if runs else "no runs"


OVER: dict[Over, str] = {
    "qrels": "over all turns of the qrels, unanswered ones 0",
    "answered": "over the answered turns of the qrels",
    "worst": "over all turns of the qrels, unanswered ones the worst grade",
}
"""What a mean is over, in words."""
INTERVALS: dict[Cluster, str] = {
    "topic": "[ ]: 95 % interval over topics, from 3 topics on; none where all topics have the same mean.",
    "theme": "[ ]: 95 % interval over themes, from 3 themes on; none where all themes have the same mean; a column "
    "named topics counts themes.",
}


class PairedRuns(Record, frozen=True):
    """All pairs of runs under a measure."""

    pairs: tuple[RunDifference, ...]
    """The run with the better mean first."""
    letters: dict[str, str]
    """Run to its letters, as `tie_letters` has them."""
    reading: Reading
    sentence: str
    """How many pairs are told apart, or why none can be."""
    notes: tuple[str, ...]
    """What to know of the table of pairs, a sentence each."""


def comparison(
    runs: Sequence[Score],
    rng: np.random.Generator,
    reading: Reading = UNIT,
    unjudged: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> PairedRuns:
    """Compare every two runs by `run_differences`; letters by the adjusted p-values.

    Two runs are compared on the turns that no unjudged response of theirs answers, and told apart only where they
    differ as their means count too. `unjudged`: run to the turns whose response has no grade, so that the value says
    nothing of it.
    """
    runs = best_first(runs, reading)
    measure = runs[0].criterion if runs else ""
    values = {run.run_id: run.values for run in runs}
    judged: dict[str, dict[str, float]] = {}
    for run in runs:
        without = unjudged.get(run.run_id, ())
        judged[run.run_id] = {turn_id: value for turn_id, value in run.values.items() if turn_id not in without}
    pairs = paired(measure, judged, reading.cluster, rng, at_worst=values) if any(values.values()) else []
    letters = tie_letters([*values], pairs)
    needed = f"that needs {FEWEST_TOPICS_COMPARED} {reading.cluster}s in common"
    told = sum(map(is_apart, pairs))
    apart = f"{told} of {count(len(pairs), 'pair')} {'is' if told == 1 else 'are'}"
    if letters:
        sentence = f"runs that share a letter are not told apart; {apart} ({_LEVEL})."
        notes = [f"{measure}: {apart} told apart ({_LEVEL}).", PAIRED[reading.cluster]]
    elif pairs:
        sentence = f"no letters, since no two runs are compared: {needed}."
        notes = [f"{measure}: no pair is tested, since {needed}."]
    else:
        sentence = "no letters, since there is only one run."
        notes = [f"{measure}: no pair, since there is only one run."]
    if any(pair.if_worst is not None for pair in pairs):
        notes.append(UNJUDGED)
    return PairedRuns(
        pairs=tuple(pairs), letters=letters, reading=reading, sentence=f"{measure}: {sentence}", notes=tuple(notes)
    )


_PAIR: RecordColumns = {
    **fields("measure=criterion run_a run_b difference"),
    Column("p", p_values=True): lambda pair: pair.p,
    Column("p_adjusted", p_values=True): lambda pair: pair.p_adjusted,
    **fields("turns=difference.n topics=difference.topics"),
    "note": lambda pair: noted(
        "; ".join(filter(None, (pair.difference.reason, _as_counted(pair)))) or None, pair.cluster
    ),
}
_LEVEL = f"p at most {ALPHA:.2f}, adjusted for all pairs"
PAIRED: dict[Cluster, str] = {
    cluster: f"[ ]: 95 % interval of the pair alone, over {cluster}s. p: of the pair alone, by the signs of whole "
    f"{cluster}s; p_adjusted: among all pairs."
    for cluster in CLUSTERS
}
"""What a table of pairs shows, in words."""


UNJUDGED = (
    "Two runs are compared on the turns that no unjudged response of theirs answers, and told apart only where they "
    "differ as their means count too, which the note says."
)
"""What a table of pairs says where responses have no grade."""


def _as_counted(pair: RunDifference) -> str:
    """The difference as the means count, where that is another one."""
    counted = pair.if_worst
    if counted is None or counted.difference.value is None:
        return ""
    tested = "not tested" if counted.p_adjusted is None else f"p_adjusted {decimals(counted.p_adjusted, 4)}"
    return f"as the means count {decimals(counted.difference.value, 3)}, {tested}"


RunTable = Literal["run", "pair", "topic", "depth", "ptkb", "group"]
"""What a table has a line for; `group`: each run in each topic, depth and kind of turn."""
TABLES: dict[RunTable, str] = {
    "run": "runs", "pair": "pairs", "topic": "topics", "depth": "depths", "ptkb": "ptkb", "group": "groups",
}  # fmt: skip
"""Kind to the name of its files, without their endings."""


def is_known(facts: Mapping[str, TurnFacts], kind: RunTable) -> bool:
    """Whether anything says the facts by which a kind of table groups turns."""
    return kind not in ("topic", "depth", "ptkb") or bool(groups_of(facts, kind))


def unknown_facts(kind: RunTable) -> UsageError:
    """The error for a table by facts that nothing says."""
    what = "how deep a turn is" if kind == "depth" else "which turns depend on PTKB statements"
    return UsageError(f"--by {kind}: nothing says {what}: expected --topics that says so of these turns")


def breakdown(
    kind: RunTable, compared: PairedRuns, runs: Sequence[Score], facts: Mapping[str, TurnFacts]
) -> Table[Any]:
    """Runs under one measure as a table of any kind but `run`, whose columns depend on what is evaluated."""
    match kind:
        case "pair":
            return records_table(_PAIR, compared.pairs, "Every two runs on the turns of both", compared.notes)
        case "ptkb":
            return by_ptkb(runs, facts, compared.reading)
        case "topic" | "depth":
            return by_group(runs, groups_of(facts, kind), kind, compared.reading)
        case _:
            return by_run_and_group(runs, facts, compared.reading)
