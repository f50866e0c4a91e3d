"""The human study of CONE-RAG as a table: how often people found a gold nugget in a response."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from judge.nuggets.label_files import NuggetMatch
from judge.stats.means import mean_interval
from judge.text.ids import natural_key, topic_of
from judge.text.table import Cell, Table


def matches_grid(matches: Sequence[NuggetMatch]) -> Table[Any]:
    """The share of labels by which people found the nugget in the response: each run, and all together."""
    by_run: dict[str, list[NuggetMatch]] = defaultdict(list)
    for match in matches:
        by_run[match.run_id].append(match)
    groups = [*((run_id, by_run[run_id]) for run_id in sorted(by_run, key=natural_key)), ("all", matches)]
    lines: list[tuple[Cell, ...]] = []
    for name, of in groups:
        values = [float(match.yes) for match in of]
        share = mean_interval(values, [topic_of(match.turn_id) for match in of], bounds=(0.0, 1.0), what="labels")
        lines.append((name, len({match.turn_id for match in of}), len(of), sum(match.yes for match in of), share))
    notes = ("A label is of a gold nugget and a response; yes: people found it there. The interval is over topics.",)
    return Table(lines, ("run", "turns", "labels", "yes", "share"), "Matches", notes)
