"""What it costs in agreement to ask for a criterion together with others, against asking for it alone. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from judge.ask.group import group_members
from judge.calibrate.findings import Split, TogetherRow
from judge.calibrate.panel import Column, Panel
from judge.records import Estimate
from judge.stats.agreement import point
from judge.stats.comparison import Comparison
from judge.stats.tables import Undefined


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
    named = {(column.judge, column.prompt): column for column in columns}
    pairs = {(pair.a, pair.b): pair for pair in compared}
    rows = []
    for column in columns:
        members = group_members(column.prompt or "")
        alone = named.get((column.judge, members[0])) if members else None
        if alone is not None:
            rows.append(_row(panel, alone, column, split, statistic, pairs))
    return tuple(rows)


def _row(
    panel: Panel,
    alone: Column,
    together: Column,
    split: Split,
    statistic: str,
    pairs: Mapping[tuple[str, str], Comparison],
) -> TogetherRow:
    found = pairs.get((together.name, alone.name)) or reversed_pair(pairs[alone.name, together.name])
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


def common_values(
    panel: Panel, a: Column, b: Column, split: Split, statistic: str
) -> tuple[float | None, float | None]:
    """The statistic of two judges on the items of a split that both graded; None where it is undefined."""
    common = panel.within(split) & (a.codes >= 0) & (b.codes >= 0)
    of_a, of_b = (point(statistic, panel.tables(column.codes, common).sum(axis=0), panel.grades) for column in (a, b))
    return None if isinstance(of_a, Undefined) else float(of_a), None if isinstance(of_b, Undefined) else float(of_b)


def reversed_pair(pair: Comparison) -> Comparison:
    """A comparison the other way round."""
    return msgspec.structs.replace(pair, a=pair.b, b=pair.a, difference=turned(pair.difference))


def turned(difference: Estimate) -> Estimate:
    """A difference the other way round."""
    value, low, high = (None if end is None else -end for end in (difference.value, difference.high, difference.low))
    return Estimate(value, low, high, difference.n, difference.topics, difference.reason)
