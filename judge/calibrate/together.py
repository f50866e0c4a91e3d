"""What it costs in agreement to ask for criteria together, or through a cascade, against a judge alone. Pure."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from judge.ask.group import group_members
from judge.calibrate.findings import CascadeRow, Split, TogetherRow
from judge.calibrate.panel import Column, Panel
from judge.judges.backends import judges_in
from judge.records import Estimate
from judge.stats.agreement import point
from judge.stats.comparison import Comparison
from judge.stats.tables import Undefined

ColumnKey = tuple[str, str | None]
"""A judge and its prompt."""


def together_rows(
    panel: Panel, columns: Sequence[Column], split: Split, statistic: str, compared: Sequence[Comparison]
) -> tuple[TogetherRow, ...]:
    """A row for each judge and prompt that was asked together with others, where the prompt was asked alone too.

    Args:
        panel: Gold and labels.
        columns: The judges that were compared.
        split: The split that they were compared on.
        statistic: Key of `STATISTICS`.
        compared: Every pair of them.
    """
    return tuple(
        _row(panel, alone, column, split, statistic, pair)
        for column, alone, pair in beside_alone(columns, compared, _prompt_alone)
    )


def _prompt_alone(column: Column) -> ColumnKey | None:
    members = group_members(column.prompt or "")
    return (column.judge, members[0]) if members else None


def _row(panel: Panel, alone: Column, together: Column, split: Split, statistic: str, found: Comparison) -> TogetherRow:
    values = common_values(panel, alone, together, split, statistic)
    return TogetherRow(
        criterion=panel.criterion,
        split=split,
        statistic=statistic,
        judge=together.judge,
        alone=str(alone.prompt),
        together=str(together.prompt),
        value_alone=values[0],
        value_together=values[1],
        difference=found.difference,
        p=found.p,
        p_max_t=found.p_max_t,
    )


def cascade_rows(
    panel: Panel, columns: Sequence[Column], split: Split, statistic: str, compared: Sequence[Comparison]
) -> tuple[CascadeRow, ...]:
    """A row for each cascade that was compared with the judge that it asks, under the same prompt.

    The arguments are those of `together_rows`.
    """
    rows = []
    for column, alone, pair in beside_alone(columns, compared, _judge_alone):
        value_alone, value_cascade = common_values(panel, alone, column, split, statistic)
        judged, settled = settled_items(panel, column, split)
        rows.append(
            CascadeRow(
                criterion=panel.criterion,
                split=split,
                statistic=statistic,
                judge=column.judge,
                alone=alone.judge,
                prompt=str(column.prompt),
                items=judged,
                settled=settled,
                value_alone=value_alone,
                value_cascade=value_cascade,
                difference=pair.difference,
                p=pair.p,
                p_max_t=pair.p_max_t,
            )
        )
    return tuple(rows)


def _judge_alone(column: Column) -> ColumnKey | None:
    *first, asked = judges_in(column.judge)
    return (asked, column.prompt) if first else None


def settled_items(panel: Panel, column: Column, split: Split) -> tuple[int, int]:
    """How many gold items of a split a cascade judged, and how many of them its checker settled."""
    told = column.origin.labels if column.origin is not None else ()
    settled = {(label.turn_id, label.response_id) for label in told if label.settled and label.sample == 0}
    judged = [
        (item.turn_id, item.response_id) in settled
        for item, within, reason in zip(panel.items, panel.within(split), column.reasons, strict=True)
        if within and reason in (None, "unable")
    ]
    return len(judged), sum(judged)


def beside_alone(
    columns: Sequence[Column], compared: Sequence[Comparison], alone: Callable[[Column], ColumnKey | None]
) -> Iterator[tuple[Column, Column, Comparison]]:
    """Each column whose simpler way of asking was compared too: both columns, and the first minus the other.

    Args:
        columns: The judges that were compared.
        compared: Every pair of them.
        alone: From a column to the judge and prompt of the simpler way; None where it is the simpler way itself.
    """
    named = {(column.judge, column.prompt): column for column in columns}
    pairs = {(pair.a, pair.b): pair for pair in compared}
    for column in columns:
        key = alone(column)
        other = named.get(key) if key is not None else None
        if other is not None:
            yield column, other, pairs.get((column.name, other.name)) or _reversed(pairs[other.name, column.name])


def common_values(
    panel: Panel, a: Column, b: Column, split: Split, statistic: str
) -> tuple[float | None, float | None]:
    """The statistic of two judges on the items of a split that both graded; None where it is undefined."""
    common = panel.within(split) & (a.codes >= 0) & (b.codes >= 0)
    of_a, of_b = (point(statistic, panel.tables(column.codes, common).sum(axis=0), panel.grades) for column in (a, b))
    return None if isinstance(of_a, Undefined) else float(of_a), None if isinstance(of_b, Undefined) else float(of_b)


def _reversed(pair: Comparison) -> Comparison:
    """A comparison the other way round."""
    return msgspec.structs.replace(pair, a=pair.b, b=pair.a, difference=turned(pair.difference))


def turned(difference: Estimate) -> Estimate:
    """A difference the other way round."""
    value, low, high = (None if end is None else -end for end in (difference.value, difference.high, difference.low))
    return Estimate(value, low, high, difference.n, difference.topics, difference.reason)
