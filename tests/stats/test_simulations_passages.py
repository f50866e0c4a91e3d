"""Measures of passages corrected by people's grades of a part: do intervals hold the truth as often as they promise?

The seed is fixed, and each figure is the mean over several worlds, so the bands are those of the full simulations.
"""

import ir_measures
import numpy as np
import pytest

from bench.simulations import passages
from bench.simulations.figures import Finding


def coverages(findings: list[Finding]) -> list[float]:
    return [figure.obtained for figure in findings if figure.setting.endswith(": coverage")]


def ratios(findings: list[Finding]) -> list[float]:
    return [figure.obtained for figure in findings if figure.setting.endswith(": width ratio")]


@pytest.mark.long
@pytest.mark.parametrize(("topics", "kappa", "share", "shifted"), [
    (25, 0.5, 1 / 2, True),
    (50, 0.3, 1 / 3, True),
    (50, 0.7, 1 / 2, False),
])  # fmt: skip
def test_every_measure_covers_by_whole_turns(topics: int, kappa: float, share: float, shifted: bool) -> None:
    findings = passages.turns(
        60, np.random.default_rng(22), topics=(topics,), kappas=(kappa,), shares=(share,), shifts=(shifted,)
    )
    assert len(coverages(findings)) == len(passages.MEASURES)
    assert 0.92 <= np.mean(coverages(findings)) <= 0.97
    # A judge that agrees well makes intervals narrower; one that does not makes them no wider.
    assert max(ratios(findings)) <= (0.95 if kappa == 0.7 else 1.02)


@pytest.mark.long
@pytest.mark.parametrize(("topics", "kappa", "shifted"), [(25, 0.3, True), (50, 0.7, True)])
def test_precision_covers_by_single_passages(topics: int, kappa: float, shifted: bool) -> None:
    findings = passages.singles(60, np.random.default_rng(23), topics=(topics,), kappas=(kappa,), shifts=(shifted,))
    assert all(0.92 <= coverage <= 0.97 for coverage in coverages(findings))
    assert max(ratios(findings)) <= 1.0


@pytest.mark.long
def test_equal_runs_are_seldom_told_apart_by_whole_turns() -> None:
    findings = passages.equal_runs(60, np.random.default_rng(26), settings=((25, 1 / 2),))
    assert len(findings) == len(passages.MEASURES)
    assert max(figure.obtained for figure in findings) <= 0.08


@pytest.mark.long
def test_ndcg_does_not_cover_by_single_passages_which_is_why_it_is_refused() -> None:
    findings = passages.filled_in(5, np.random.default_rng(24), topics=(50,), kappas=(0.3,))
    assert max(figure.obtained for figure in findings if figure.setting.endswith("coverage")) < 0.9
    assert max(figure.obtained for figure in findings if figure.setting.endswith("bias")) < -0.03


def test_the_measures_of_the_simulation_are_those_of_trec_eval() -> None:
    here = passages.world(np.random.default_rng(25), 3, 0.5, shifts=True)
    ours = passages.measured(here, here.judge)
    qrels = {}
    run = {}
    for turn, listed in enumerate(here.listed[:, 0]):
        qrels[str(turn)] = {str(item): int(here.judge[turn, item]) for item in np.flatnonzero(here.pooled[turn])}
        run[str(turn)] = {str(item): 99.0 - place for place, item in enumerate(listed)}
    names = list(map(ir_measures.parse_measure, passages.MEASURES))
    for metric in ir_measures.evaluator(names, qrels).iter_calc(run):
        assert ours[str(metric.measure)][0, int(metric.query_id)] == pytest.approx(metric.value)
