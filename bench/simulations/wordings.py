"""Wordings of a prompt, examples in the best and cuts: how often a choice on dev is called a gain on test."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bench.simulations.figures import CUTS, GRADES, Finding, Floats, finding
from bench.simulations.judges import NOISE, SHARP, Judged, judged, noise_of, true_wkappa_of
from judge.calibrate.cuts import codes_by, cross_fitted
from judge.calibrate.findings import Split
from judge.calibrate.panel import GradedItem, JudgeColumn, Panel
from judge.extra.improve import Wordings, word_of_gain

SETTINGS = ((15, 15, 6), (25, 25, 8), (40, 40, 10))
"""Topics of dev and of test, and labels of each topic."""
FIRST = "groundedness/w0"
_LINE = (CUTS[0] - 1, *CUTS, CUTS[-1] + 1)
_EXPECTED = (0, 0.5, 1.5, 2.5, 3)
"""Expected grades at these places, so that the nearest grade is the judge's own: no cuts gain more than .002."""


EXAMPLES = 4
"""Topics that give examples, at most, and leave the comparison on dev: a quarter of them, if that is less."""


def panel_of(world: Judged, dev: int) -> Panel:
    """The wordings beside people's grades; the first topics are dev, and the last wording is the best with examples."""
    N = len(world.topics)
    T = int(world.topics.max()) + 1
    nothing = np.full((N, len(GRADES)), np.nan)
    columns = []
    for number, codes in enumerate(world.judges.astype(np.int64)):
        columns.append(
            JudgeColumn(
                judge="m",
                prompt=f"groundedness/w{number}",
                baseline=False,
                codes=codes,
                first=(None,) * N,
                reasons=(None,) * N,
                expected=np.interp(world.seen[number], _LINE, _EXPECTED),
                probabilities=nothing,
                samples=codes[None],
                origin=None,
                words={},
            )
        )
    items = []
    for number, topic in enumerate(world.topics.tolist()):
        items.append(
            GradedItem(turn_id=f"{topic}_1", response_id=str(number), topic_id=str(topic), runs=(), words=None)
        )
    return Panel(
        criterion="groundedness",
        grades=GRADES,
        positive=frozenset({2, 3}),
        higher_is_better=True,
        items=tuple(items),
        topics=tuple(map(str, range(T))),
        topic=world.topics,
        split=tuple("dev" if topic < dev else "test" for topic in world.topics.tolist()),
        shares=np.eye(len(GRADES))[world.human],
        reference="ann",
        assessors={"ann": world.human},
        made=("blind",),
        columns=tuple(columns),
        binary=False,
        weights=np.ones(N),
        gold=((),) * N,
        words={},
    )


def without_topics(panel: Panel, number: int) -> Panel:
    """The panel with the first topics out of the comparison."""
    split: list[Split] = []
    for topic, side in zip(panel.topic.tolist(), panel.split, strict=True):
        split.append("all" if topic < number else side)
    return replace(panel, split=tuple(split))


def with_cuts(panel: Panel, column: JudgeColumn) -> Panel:
    """The panel with cuts of a wording as one more column, on dev by cuts of other topics."""
    dev = panel.within("dev")
    found = cross_fitted(panel, column, 1, dev)
    codes = np.where(dev, found.codes, codes_by(column.expected, found.cuts))
    cut = replace(column, prompt=f"{column.prompt}-cuts", codes=codes, samples=codes[None])
    return replace(panel, columns=(*panel.columns, cut))


def outcomes(
    replicates: int, rng: np.random.Generator, noise: Sequence[float], setting: tuple[int, int, int]
) -> tuple[list[bool], Floats, Floats]:
    """Whether the word was GAINED, and the gain that dev promised and that of the test, where one was chosen."""
    dev, test, labels = setting
    gained: list[bool] = []
    promised: list[float] = []
    came: list[float] = []
    for _ in range(replicates):
        world = judged(rng, [*noise, noise[0]], T=dev + test, turns=labels)
        panel = without_topics(panel_of(world, dev), min(EXAMPLES, dev // 4))
        best = Wordings(panel, "dev", FIRST).best
        if best is not None:
            panel = with_cuts(panel, best)
        on_dev = Wordings(panel, "dev", FIRST)
        best = on_dev.best
        if best is None or best.prompt == FIRST:
            gained.append(False)
            continue
        on_test = Wordings(panel, "test", FIRST)
        gain = on_test.gain(best, seed=int(rng.integers(2**31)))
        gained.append(word_of_gain(gain) == "GAINED")
        first = on_dev.columns[FIRST]
        promised.append((on_dev.value(best) or 0.0) - (on_dev.value(first) or 0.0))
        came.append(gain.value or 0.0)
    return gained, np.array(promised), np.array(came)


def equal(
    replicates: int,
    rng: np.random.Generator,
    settings: Sequence[tuple[int, int, int]] = SETTINGS,
    wordings: int = 12,
) -> list[Finding]:
    """Wordings that are as good as the first prompt."""
    findings = []
    for setting in settings:
        gained, promised, came = outcomes(replicates, rng, [NOISE] * (wordings + 1), setting)
        what = f"{wordings} equal, examples, cuts, T={setting[0]} and {setting[1]}, {setting[2]} a topic"
        findings += [
            finding("WE", f"{what}: GAINED", gained, high=0.05),
            finding("WE", f"{what}: gain on dev", promised),
            finding("WE", f"{what}: gain on test", came, -0.02, 0.02),
        ]
    return findings


def better(
    replicates: int,
    rng: np.random.Generator,
    settings: Sequence[tuple[int, int, int]] = SETTINGS,
    wordings: int = 12,
) -> list[Finding]:
    """One wording that is better by .1 kappa among equal ones."""
    usual = noise_of(true_wkappa_of(SHARP) - 0.1)
    findings = []
    for setting in settings:
        noise = [usual] * wordings + [SHARP]
        gained, _, came = outcomes(replicates, rng, noise, setting)
        what = f"one of {wordings} better, examples, cuts, T={setting[0]} and {setting[1]}, {setting[2]} a topic"
        findings += [
            finding("WB", f"{what}: GAINED", gained),
            finding("WB", f"{what}: gain on test", came),
        ]
    return findings
