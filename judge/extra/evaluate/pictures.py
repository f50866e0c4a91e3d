"""The breakdowns as pictures: the kinds of figures 3 to 6 of the overview of iKAT 2023."""

from collections.abc import Mapping, Sequence

from judge.extra.evaluate.breakdown import (
    PTKB,
    UNIT,
    Groups,
    Reading,
    TurnFacts,
    average_run,
    best_first,
    group_means,
    groups_of,
    median_or_better,
)
from judge.extra.evaluate.scores import MeasuredRun
from judge.io.cells import count
from judge.io.draw import curve_plot, interval_plot
from judge.io.installed import can_draw
from judge.records import Estimate


def breakdown_pictures(
    runs: Sequence[MeasuredRun], facts: Mapping[str, TurnFacts], heading: str, reading: Reading = UNIT
) -> dict[str, bytes]:
    """Pictures by the end of their file names: `runs`, `topics`, `depths` and `ptkb`, each as SVG and PNG.

    Without a run that has a mean there is none, nor without matplotlib. Depths are left out where nothing says them,
    and dependence on the PTKB where it is not known of turns of both kinds.
    """
    better = median_or_better(runs, reading)
    if not better or not can_draw():
        return {}
    axis = f"{better[0].measure} over {better[0].over}{'' if reading.higher_is_better else ', lower is better'}"
    rows = [(run.run_id, run.estimate) for run in best_first(runs, reading)]
    drawn = {"runs": interval_plot(rows, axis, f"{heading} by run", "turns")}
    average = average_run(better, reading)
    of = f"{count(len(better), 'run')} at the median or better"
    topics = [(str(group), mean) for group, mean in group_means(average, groups_of(facts, "topic"), reading).items()]
    drawn["topics"] = interval_plot(topics, axis, f"{heading} by topic: {of}", "turns")
    depths, linked = groups_of(facts, "depth"), groups_of(facts, "ptkb")
    if any(turn_id in depths for turn_id in average.turns):
        drawn["depths"] = curve_plot(
            [(of, _by_depth(average, depths, reading))], "depth of the turn", axis, f"{heading} by depth: {of}"
        )
    lines = [
        (f"turns {word} PTKB statements", _by_depth(average, of_word, reading))
        for word in PTKB.values()
        if (of_word := {turn_id: depth for turn_id, depth in depths.items() if linked.get(turn_id) == word})
    ]
    if len(lines) == len(PTKB):
        drawn["ptkb"] = curve_plot(lines, "depth of the turn", axis, f"{heading} by PTKB statements: {of}")
    return {
        f"{name}.{ending}": content
        for name, forms in drawn.items()
        for ending, content in zip(("svg", "png"), forms, strict=True)
    }


def _by_depth(run: MeasuredRun, depths: Groups, reading: Reading) -> list[tuple[int, Estimate]]:
    return [(int(depth), mean) for depth, mean in group_means(run, depths, reading).items()]
