"""Every two runs on the same turns, the letters that tied runs share, and the kinds of tables of runs. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from judge.errors import UsageError
from judge.extra.evaluate.breakdown import (
    UNIT,
    Reading,
    TurnFacts,
    best_first,
    by_group,
    by_ptkb,
    by_run_and_group,
    groups_of,
)
from judge.extra.evaluate.scores import MeasuredRun
from judge.io.cells import count
from judge.io.ids import CLUSTERS, Cluster, cluster_of, natural_key, topic_of
from judge.io.table import Table, p_cell
from judge.records import Estimate, Record
from judge.results.rows import noted
from judge.results.tables import ALPHA
from judge.stats.run_differences import FEWEST_TOPICS_COMPARED, run_differences
from judge.stats.separation import compact_letters


class PairDifference(Record, frozen=True):
    """The mean of run a less that of run b, over the turns of both."""

    run_a: str
    """The run with the better mean."""
    run_b: str
    difference: Estimate
    p: float | None
    """Of this pair alone; None with too few topics."""
    p_adjusted: float | None
    """Adjusted for all pairs."""


class PairedRuns(Record, frozen=True):
    """All pairs of runs under a measure."""

    measure: str
    pairs: tuple[PairDifference, ...]
    letters: dict[str, str]
    """Run to its letters: two runs share one if they are not told apart; empty where no pair could be tested."""
    reading: Reading

    @property
    def sentence(self) -> str:
        """How many pairs are told apart, or why none can be."""
        if not self.pairs:
            return f"{self.measure}: no letters, since there is only one run."
        if not self.letters:
            return f"{self.measure}: no letters, since no two runs are compared: that needs {self._needed}."
        return f"{self.measure}: runs that share a letter are not told apart; {self._apart} ({_LEVEL})."

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the table of pairs, a sentence each."""
        if not self.pairs:
            return (f"{self.measure}: no pair, since there is only one run.",)
        if not self.letters:
            return (f"{self.measure}: no pair is tested, since that needs {self._needed}.",)
        return (f"{self.measure}: {self._apart} told apart ({_LEVEL}).", PAIRED[self.reading.cluster])

    @property
    def _needed(self) -> str:
        return f"{FEWEST_TOPICS_COMPARED} {self.reading.cluster}s in common"

    @property
    def _apart(self) -> str:
        apart = sum(pair.p_adjusted is not None and pair.p_adjusted <= ALPHA for pair in self.pairs)
        return f"{apart} of {count(len(self.pairs), 'pair')} {'is' if apart == 1 else 'are'}"


def comparison(runs: Sequence[MeasuredRun], rng: np.random.Generator, reading: Reading = UNIT) -> PairedRuns:
    """Compare every two runs by `run_differences`; letters by the adjusted p-values."""
    runs = best_first(runs, reading)
    turn_ids = sorted({turn_id for run in runs for turn_id in run.turns}, key=natural_key)
    values = np.array([[run.turns.get(turn_id, np.nan) for turn_id in turn_ids] for run in runs])
    clusters = [cluster_of(topic_of(turn_id), reading.cluster) for turn_id in turn_ids]
    apart = np.zeros((len(runs), len(runs)), dtype=bool)
    pairs = []
    for found in run_differences(values.reshape(len(runs), len(turn_ids)), clusters, rng) if turn_ids else ():
        a, b = runs[found.a].run_id, runs[found.b].run_id
        pairs.append(PairDifference(a, b, found.difference, found.p, found.p_adjusted))
        apart[found.a, found.b] = apart[found.b, found.a] = found.p_adjusted is not None and found.p_adjusted <= ALPHA
    letters: dict[str, str] = {}
    if any(pair.p_adjusted is not None for pair in pairs):
        names = [run.run_id for run in runs]
        letters = dict(zip(names, compact_letters(apart, range(len(runs))), strict=True))
    return PairedRuns(runs[0].measure if runs else "", tuple(pairs), letters, reading)


def by_pair(compared: PairedRuns) -> Table[Any]:
    """A line for each pair of runs, the better run first."""
    columns = ("measure", "run_a", "run_b", "difference", "p", "p_adjusted", "turns", "topics", "note")
    lines = tuple(
        (
            *(compared.measure, pair.run_a, pair.run_b, pair.difference, p_cell(pair.p), p_cell(pair.p_adjusted)),
            *(pair.difference.n, pair.difference.topics, noted(pair.difference.reason, compared.reading.cluster)),
        )
        for pair in compared.pairs
    )
    return Table(lines, columns, "Every two runs on the turns of both", compared.notes)


_LEVEL = f"p at most {ALPHA:.2f}, adjusted for all pairs"
PAIRED: dict[Cluster, str] = {
    cluster: f"[ ]: 95 % interval of the pair alone, over {cluster}s. p: of the pair alone, by the signs of whole "
    f"{cluster}s; p_adjusted: among all pairs."
    for cluster in CLUSTERS
}
"""What a table of pairs shows, in words."""


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
    kind: RunTable, compared: PairedRuns, runs: Sequence[MeasuredRun], facts: Mapping[str, TurnFacts]
) -> Table[Any]:
    """Runs under one measure as a table of any kind but `run`, whose columns depend on what is evaluated."""
    match kind:
        case "pair":
            return by_pair(compared)
        case "ptkb":
            return by_ptkb(runs, facts, compared.reading)
        case "topic" | "depth":
            return by_group(runs, groups_of(facts, kind), kind, compared.reading)
        case _:
            return by_run_and_group(runs, facts, compared.reading)
