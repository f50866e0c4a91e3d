"""Findings about grades of passages: what leaks into each level, relevant or not at each cut, runs by both qrels. Pure.

A finding is a function as in `judge.calibrate.diagnostics`, and gives nothing of anything but passages.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from judge.calibrate.findings import FindingFact, FindingRow
from judge.calibrate.panel import Case, Panel
from judge.io.text import count
from judge.records import Estimate
from judge.stats.discrimination import auc_interval
from judge.stats.means import share_interval
from judge.stats.ranking import SYSTEM, RankStatistic, split_half, system_agreement
from judge.stats.resampling import resampled
from judge.units import UNITS

RELEVANT = "relevant"
"""In place of a grade of the judge: any of those that are positive."""


def leakage(case: Case) -> Iterator[FindingRow]:
    """Of the passages of each of people's grades, the share that the judge puts at each level, or calls relevant."""
    panel = case.panel
    if not _of_passages(panel):
        return
    split = case.decided or case.split
    tables = panel.tables(case.column.codes, panel.within(split))
    positive = sorted(panel.positive)
    for place, grade in enumerate(panel.grades):
        row = tables[:, place, :]
        sizes = row.sum(axis=1)
        given = {str(level): row[:, code] for code, level in enumerate(panel.grades)}
        given[RELEVANT] = row[:, positive].sum(axis=1)
        for judged, hits in given.items():
            facts: dict[str, FindingFact] = {"human": grade, "judged": judged, "binary": panel.binary}
            yield case.row(facts, {"share": share_interval(hits, sizes)}, split)


def cuts(case: Case) -> Iterator[FindingRow]:
    """Relevant or not, from each level but the lowest on: kappa, precision, recall and AUC.

    AUC goes by the expected grades where the judge gives one for each item, else by its grades. All but kappa count
    items as they were drawn where people tie or items have unequal weights.
    """
    panel = case.panel
    if not _of_passages(panel):
        return
    split = case.decided or case.split
    column = case.column
    graded = panel.within(split) & (column.codes >= 0)
    tables = panel.tables(column.codes, panel.within(split))
    known = graded & ~panel.tied
    has_expected = known.any() and not np.isnan(column.expected[known]).any()
    scores = column.expected if has_expected else column.codes.astype(np.float64)
    for cut in range(1, len(panel.grades)):
        two = _at(tables, cut)
        both = two[:, 1, 1]
        human = two[:, 1, :].sum(axis=1)
        judge = two[:, :, 1].sum(axis=1)
        items = two.sum(axis=(1, 2))
        rng = np.random.default_rng(case.options.seed)
        facts: dict[str, FindingFact] = {
            "cut": panel.grades[cut],
            "own": cut == min(panel.positive, default=0),
            "human": share_interval(human, items).value,
            "judged": share_interval(judge, items).value,
            "auc_of": "expected grades" if has_expected else "grades",
        }
        statistics = {
            "kappa": resampled("kappa", two, (0, 1), rng, replicates=case.options.replicates).estimate,
            "precision": share_interval(both, judge),
            "recall": share_interval(both, human),
            "auc": auc_interval(scores[known], panel.human[known] >= cut, panel.topic[known]),
        }
        yield case.row(facts, statistics, split)


def rankings(case: Case) -> Iterator[FindingRow]:
    """The runs under a measure by the judge's qrels against those by people's; nothing where no runs are given."""
    by_runs = case.column.by_runs
    if by_runs is None:
        return
    sums = by_runs.human_sums, by_runs.human_counts, by_runs.judge_sums, by_runs.judge_counts
    statistics = system_agreement(
        *sums,
        np.random.default_rng(case.options.seed),
        higher_is_better=True,
        replicates=case.options.replicates,
        statistics=RANKED,
    )
    halves = split_half(*sums, np.random.default_rng(case.options.seed), higher_is_better=True)
    facts: dict[str, FindingFact] = {
        "measure": by_runs.measure,
        "runs": len(by_runs.human_sums),
        "half_human": halves.human,
        "half_judge": halves.judge,
        "halves": halves.reason,
    }
    yield case.row(facts, statistics)


RANKED: dict[str, RankStatistic] = {name: SYSTEM[name] for name in ("tau_b", "tau_ap", "rbo")}
"""The statistics of two rankings of runs by qrels of passages."""


def leaks(rows: Sequence[FindingRow]) -> tuple[str, ...]:
    """What leaks into each of people's grades, a sentence each."""
    sentences = []
    for human in dict.fromkeys(row.facts["human"] for row in rows):
        of_grade = [row for row in rows if row.facts["human"] == human]
        *levels, relevant = (row.statistics["share"] for row in of_grade)
        if relevant.value is None:
            continue
        judged = [str(row.facts["judged"]) for row in of_grade[:-1]]
        binary = of_grade[0].facts["binary"]
        called = f"grade {human}"
        if binary:
            called = "call relevant" if human else "call not relevant"
        sentence = (
            f"Of {count(relevant.n, 'passage')} that people {called}, the judge calls {_percent(relevant)} relevant"
        )
        shares = [f"grade {grade}: {_percent(share)}" for grade, share in zip(judged, levels, strict=True)]
        sentences.append(f"{sentence}." if binary else f"{sentence} ({', '.join(shares)}).")
    return tuple(sentences)


def _percent(share: Estimate) -> str:
    """A share as `12 % [9, 15]`; with a decimal where it is below one in a hundred."""
    value = share.value or 0.0
    places = 1 if 0 < value < 0.01 else 0
    text = f"{100 * value:.{places}f} %"
    if share.low is None or share.high is None:
        return text
    return f"{text} [{100 * share.low:.{places}f}, {100 * share.high:.{places}f}]"


def _of_passages(panel: Panel) -> bool:
    return UNITS[panel.unit].listed and panel.higher_is_better


def _at(tables: NDArray[np.int64], cut: int) -> NDArray[np.int64]:
    """Tables of two grades (T x 2 x 2), from the code `cut` on or below it, from those of all."""
    sides = np.split(tables, [cut], axis=1)
    rows = np.stack([side.sum(axis=1) for side in sides], axis=1)
    columns = np.split(rows, [cut], axis=2)
    return np.stack([side.sum(axis=2) for side in columns], axis=2)
