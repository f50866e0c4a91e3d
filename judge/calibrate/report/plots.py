"""Pictures of a calibration as SVG and PNG: the same records give the same bytes, and names show as they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judge.calibrate.findings import AgreementRow
from judge.calibrate.report.lookup import grades_of
from judge.io import draw
from judge.io.ids import Cluster, natural_key
from judge.io.text import interval, number
from judge.records import Estimate
from judge.results.rows import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAPS = 12
"""Most confusion tables in one picture."""
_BAND = 4.5
"""Thickness, in points, of an interval that may lie upon another one."""
_NAME = 44


def forest(rows: Sequence[AgreementRow], statistic: str, cluster: Cluster = "topic") -> tuple[bytes, bytes]:
    """Agreement of each judge with its 95 % interval, the greatest value first, as (SVG, PNG).

    Baselines are hollow squares, the agreement between assessors is a line. A judge without a value has a row too.
    """
    with draw.styled():
        ordered = sorted(rows, key=lambda row: _descending(row.statistics.get(statistic), row.name))
        figure, axes = draw.blank(len(ordered))
        for place, row in enumerate(ordered):
            estimate = row.statistics.get(statistic)
            color, marker, face = (draw.ORANGE, "s", "white") if row.baseline else (draw.BLUE, "o", draw.BLUE)
            if estimate and estimate.value is not None:
                if estimate.low is not None and estimate.high is not None:
                    axes.hlines(place, estimate.low, estimate.high, color=color, linewidth=1.6)
                axes.plot(estimate.value, place, marker, color=color, markerfacecolor=face, markersize=5.5, zorder=3)
            if statistic == row.primary and row.ceiling and row.ceiling.value is not None:
                axes.vlines(row.ceiling.value, place - 0.5, place + 0.5, color=draw.GREEN, linewidth=1.4, zorder=1)
            draw.left(axes, place, draw.drawn(" · ".join([row.name, *_apart(row, ordered)]), _NAME))
            draw.right(axes, place, _shown(estimate), 0)
            draw.right(axes, place, f"{row.n}/{row.topics}", 1.75)
        # Agreement by chance, and no bias.
        axes.axvline(0, color=draw.GRAY, linewidth=0.8, zorder=0.5)
        draw.right(axes, -1, f"{statistic} [95 %]", 0, color=draw.GRAY)
        draw.right(axes, -1, f"n/{cluster}s", 1.75, color=draw.GRAY)
        keys = [("o", draw.BLUE, draw.BLUE, "judge")]
        keys += [("s", draw.ORANGE, "white", "baseline")] if any(row.baseline for row in rows) else []
        ceilings = statistic == rows[0].primary and any(row.ceiling for row in rows) if rows else False
        keys += [("|", draw.GREEN, draw.GREEN, "between assessors")] if ceilings else []
        draw.legend(figure, axes, keys)
        draw.name_axis(axes, f"{statistic} against the assessors' grades (bar: 95 % interval over {cluster}s)")
        draw.title(axes, _about(rows))
        return draw.rendered(figure)


def confusion_maps(rows: Sequence[AgreementRow]) -> tuple[bytes, bytes]:
    """The confusion tables of the first `MAPS` rows, shaded by the share of each of the assessors' grades."""
    with draw.styled():
        from matplotlib.figure import Figure

        shown = rows[:MAPS]
        across = min(4, max(1, len(shown)))
        down = -(-len(shown) // across) or 1
        cell = 1.9
        gap_x = 0.7
        gap_y = 0.95
        width = across * (cell + gap_x)
        height = down * (cell + gap_y)
        figure = Figure(figsize=(width, height))
        for place, row in enumerate(shown):
            x = place % across
            y = place // across
            box = (x * (cell + gap_x) / width, 1 - (y * (cell + gap_y) + cell) / height, cell / width, cell / height)
            axes = figure.add_axes(box)
            _map(axes, row, _apart(row, shown))
            if x == 0:
                axes.set_ylabel("assessors' grade")
            axes.set_xlabel("judge's grade")
        rest = f"; {len(rows) - MAPS} more in confusion.tsv" if len(rows) > MAPS else ""
        figure.text(
            *(0, 1 + 0.62 / height),
            f"{_about(shown)}\nnumbers: responses; shade: share of the assessors' grade (row){rest}",
            parse_math=False,
        )
        return draw.rendered(figure)


def _map(axes: "Axes", row: AgreementRow, apart: Sequence[str]) -> None:
    """Draw one confusion table; a row without responses stays gray; `apart` tells it from others of the judge."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    k = len(row.grades)
    for y, counts in enumerate(row.confusion):
        total = sum(counts)
        for x, n in enumerate(counts):
            share = n / total if total else 0.0
            color = colormaps["Blues"](0.9 * share) if total else draw.PALE
            edge, line, order = (draw.INK, 1.1, 2) if x == y else ("white", 1.0, 1)
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=color, edgecolor=edge, linewidth=line, zorder=order)
            axes.add_patch(cell)
            size = min(9.0, 170 / (k * max(3, len(str(n)))))
            axes.text(x, y, str(n), ha="center", va="center", size=size, color="white" if share > 0.6 else draw.INK)
    axes.set(xlim=(-0.5, k - 0.5), ylim=(k - 0.5, -0.5), aspect="equal")
    size = min(9.0, 50 / k)
    axes.set_xticks(range(k), [str(grade) for grade in row.grades], size=size)
    axes.set_yticks(range(k), [str(grade) for grade in row.grades], size=size)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    variant = [row.prompt.partition("/")[2]] if row.prompt else []
    name = f"{draw.drawn(row.judge, 29)}\n{draw.drawn(' · '.join([*variant, *apart, f'n = {row.n}']), 29)}"
    axes.set_title(name, size=8, loc="left", parse_math=False)


def raw_vs_corrected(rows: Sequence[Score]) -> tuple[bytes, bytes]:
    """Each run's mean as the judge gives it and as gold corrects it, best rank first, as (SVG, PNG).

    Runs without a rank are ordered by the corrected mean; runs without a corrected mean come last, by the raw mean. The
    pale bar is the interval with every missing response at an end of the scale.
    """
    with draw.styled():
        ordered = sorted(rows, key=_rank)
        figure, axes = draw.blank(len(ordered))
        for place, row in enumerate(ordered):
            _dumbbell(axes, place, row)
            criterion = f" · {row.criterion}" if len({row.criterion for row in rows}) > 1 else ""
            draw.left(axes, place, draw.drawn(f"{row.run_id}{criterion}", _NAME))
            draw.right(axes, place, _shown(row.mean), 0)
            draw.right(axes, place, " ".join(row.flags), 1.75, color=draw.VERMILION)
        draw.right(axes, -1, "corrected [95 %]", 0, color=draw.GRAY)
        if any(row.flags for row in rows):
            draw.right(axes, -1, "flags", 1.75, color=draw.GRAY)
        keys = [("o", draw.GRAY, "white", "as judged"), ("o", draw.BLUE, draw.BLUE, "corrected by gold")]
        if any(_wider(row) for row in rows):
            keys.append(("s", draw.PALE_BLUE, draw.PALE_BLUE, "with missing ones at the scale's ends"))
        draw.legend(figure, axes, keys)
        draw.name_axis(axes, "mean grade (bar: 95 % interval of the corrected mean)")
        draw.title(axes, ", ".join(dict.fromkeys(draw.drawn(row.criterion, _NAME) for row in rows)) or "no runs")
        return draw.rendered(figure)


def _rank(row: Score) -> tuple[Any, ...]:
    last = row.mean.value is None
    rank = float("inf") if row.rank is None else row.rank
    return last, rank, _descending(row.raw.mean if last and row.raw else row.mean, row.run_id)


def _wider(row: Score) -> bool:
    return (row.more.get("bound_low"), row.more.get("bound_high")) != (row.mean.low, row.mean.high)


def _dumbbell(axes: "Axes", place: int, row: Score) -> None:
    raw = row.raw.mean.value if row.raw else None
    corrected = row.mean
    if "bound_low" in row.more and _wider(row):
        axes.hlines(place, row.more["bound_low"], row.more["bound_high"], color=draw.BLUE, linewidth=_BAND, alpha=0.18)
    if corrected.low is not None and corrected.high is not None:
        axes.hlines(place, corrected.low, corrected.high, color=draw.BLUE, linewidth=_BAND, alpha=0.45)
    if raw is not None and corrected.value is not None:
        axes.plot([raw, corrected.value], [place, place], color=draw.GRAY, linewidth=0.9, zorder=2)
    if raw is not None:
        axes.plot(raw, place, "o", color=draw.GRAY, markerfacecolor="white", markersize=5.5, zorder=3)
    if corrected.value is not None:
        axes.plot(corrected.value, place, "o", color=draw.BLUE, markersize=5.5, zorder=4)


def _descending(estimate: Estimate | None, name: str) -> tuple[Any, ...]:
    value = estimate.value if estimate else None
    return value is None, -(value or 0.0), natural_key(name)


def _shown(estimate: Estimate | None) -> str:
    """The value with its interval, or the reason why there is none."""
    if estimate is None or estimate.value is None:
        return draw.drawn(estimate.reason if estimate and estimate.reason else "undefined", 24)
    return interval(estimate, 2) if estimate.low is not None else f"{number(estimate.value, 2)} (no interval)"


def _apart(row: AgreementRow, rows: Sequence[AgreementRow]) -> list[str]:
    """Criterion and split of a row, each only where the rows differ in it."""
    parts = [row.criterion] if len({member.criterion for member in rows}) > 1 else []
    return [*parts, row.split] if len({member.split for member in rows}) > 1 else parts


def _about(rows: Sequence[AgreementRow]) -> str:
    if not rows:
        return "no judges"
    kinds = (
        dict.fromkeys(row.criterion for row in rows),
        dict.fromkeys(grades_of(row.split) for row in rows),
        dict.fromkeys(row.reference for row in rows),
    )
    criteria, splits, references = (draw.drawn(", ".join(kind), _NAME) for kind in kinds)
    return f"{criteria}: {splits} of {references}"
