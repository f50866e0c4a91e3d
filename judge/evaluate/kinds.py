"""The kinds of tables that an evaluation of runs has: what a table has a line for, and its files. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from judge.errors import UsageError
from judge.evaluate.breakdown import TurnFacts, by_group, by_ptkb, by_run_and_group, groups_of
from judge.evaluate.paired import PairedRuns, by_pair
from judge.evaluate.scores import MeasuredRun
from judge.text.table import Table

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
    """Runs under one measure as a table of any kind but `run`, whose columns depend on what is evaluated.

    Args:
        kind: What the table has a line for.
        compared: Every two of the runs.
        runs: The runs.
        facts: From `turn_facts`.
    """
    match kind:
        case "pair":
            return by_pair(compared)
        case "ptkb":
            return by_ptkb(runs, facts, compared.reading)
        case "topic" | "depth":
            return by_group(runs, groups_of(facts, kind), kind, compared.reading)
        case _:
            return by_run_and_group(runs, facts, compared.reading)
