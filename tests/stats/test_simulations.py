"""A fast part of `python -m bench.simulations`: intervals cover and tests err as often as they promise.

Replicates are few, so a figure may be out of its band by MARGIN Monte Carlo standard errors of these replicates (for a
rate, √(p(1-p)/replicates)); the bands of the full simulations are as they are.
"""

import sys
from typing import Any

import numpy as np
import pytest

from bench.simulations import battles, figures, gold, judges, runs, small
from bench.simulations.__main__ import main
from tests.conftest import run_python

pytestmark = pytest.mark.long

MARGIN = 2.0


def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def by_setting(findings: list[Any]) -> dict[str, Any]:
    return {one.setting: one for one in findings}


def all_within(findings: list[Any]) -> bool:
    banded = [one for one in findings if one.low is not None or one.high is not None]
    assert banded
    return all(one.within(MARGIN) for one in banded)


def test_corrected_means_cover_and_are_narrower_than_gold_alone_and_the_judge_does_not_cover() -> None:
    assert all_within(runs.a1(10, rng()))
    assert all_within(runs.a2(60, rng(), sizes=(20,)))
    findings = runs.a3(60, rng(), sizes=(20,))
    assert all_within(findings)
    assert findings[1].obtained < 0.8


def test_few_gold_grades_cover_with_a_common_variance_and_within_families() -> None:
    assert all_within(runs.a8(60, rng()))
    assert all_within(runs.a10(100, rng(), sizes=(5,), topics=(8, 25), shares=(90, 95)))


def test_one_correction_for_all_leaves_the_ranking_and_correct_does_not() -> None:
    random = rng()
    moved = []
    for _ in range(10):
        here = runs.world(random)
        gold = runs.drawn(random, here.human.shape, 20)
        raw = here.judge.mean(axis=1)
        assert (runs.pooled_rectifier(here, gold)[0].argsort() == raw.argsort()).all()
        moved.append((runs.intervals(here, gold)[0].argsort() != raw.argsort()).any())
    assert all(moved)
    assert all_within(runs.a5(5, random, sizes=(20,)))


def test_correction_gains_rank_correlation_with_the_truth() -> None:
    assert all_within(runs.a6(60, rng(), sizes=(20,)))


def test_preferred_runs_are_top_in_raw_means_only() -> None:
    findings = runs.a7(200, rng())
    assert all_within(findings)
    raw, truth, _ = findings
    assert raw.obtained > truth.obtained + 0.4


def test_topics_as_units_cover_new_topics_and_items_do_not() -> None:
    findings = by_setting(runs.a9(500, rng(), numbers=(25,)))
    assert all_within(list(findings.values()))
    items, topics = (findings[f"corrected, {unit} as units, T=25: coverage"] for unit in ("items", "topics"))
    assert topics.obtained > items.obtained + 0.03


def test_exchanging_topics_keeps_the_false_positive_rate_and_exchanging_items_does_not() -> None:
    findings = by_setting(judges.b1(100, rng()))
    assert all_within(list(findings.values()))
    by_topic, by_item = (findings[f"{unit} exchanged, T=25 n=175: false positives"] for unit in ("topics", "items"))
    assert by_item.obtained > by_topic.obtained + 0.02
    # Pairs have more power than judges apart.
    assert all_within(judges.b3(150, rng()))


def test_adjusted_tests_keep_the_family_wise_rate_and_unadjusted_ones_do_not() -> None:
    # Of 100 worlds a rate is seen from .141 on, which is two of its errors above the band's .07; a rate of .25, whose
    # error is .043, lies 2.5 errors above that.
    unadjusted, holm, max_t = judges.c1(100, rng(), settings=((10, 7),))
    assert all_within([holm, max_t])
    assert unadjusted.obtained - MARGIN * unadjusted.error > 0.07


def test_the_best_prompt_is_overrated_on_its_own_gold_and_not_on_held_out_topics() -> None:
    findings = judges.c2(100, rng(), settings=((10, 7),))
    assert all_within(findings)
    optimism, nested = findings[0], findings[4]
    assert optimism.obtained > 0.03
    assert abs(nested.obtained) < 0.02


def test_worse_agreement_seldom_carries_and_unchanged_agreement_as_often_as_planned() -> None:
    assert all_within(judges.yb(200, rng(), settings=((25, 25, 7), (100, 40, 4))))
    assert all_within(judges.yp(100, rng(), topics=(150,)))


def test_gold_of_binary_grades_covers_corrected_and_post_stratified() -> None:
    assert all_within(gold.f1(300, rng()))


def test_win_rates_corrected_by_single_pairs_cover() -> None:
    assert all_within(battles.btp(20, rng(), topics=(22,)))


def test_oversampled_gold_covers_with_weights_and_is_refused_without() -> None:
    findings = gold.f2(300, rng())
    assert all_within(findings)
    assert by_setting(findings)["the same unweighted, weight of the judge 1: coverage"].obtained < 0.1


def test_gold_at_hand_misleads_and_is_refused() -> None:
    naive, stratified, refused = gold.f3(50, rng())
    assert max(naive.obtained, stratified.obtained) < 0.5
    assert refused.obtained == 1.0


@pytest.mark.skipif(not gold.LLMJUDGE.is_dir(), reason="the LLMJudge data are not beside the repository")
def test_corrected_means_cover_with_the_judges_of_llmjudge() -> None:
    human, labels = gold.llmjudge()
    assert len(human) == 4423
    assert len(labels) == 16
    assert "RMITIR-llama70B" not in labels
    assert all_within(gold.real(30, rng(), sizes=(200,)))


def test_means_and_coefficients_of_few_unequal_and_skewed_topics_cover_where_there_is_an_interval() -> None:
    assert all_within(small.means(400, rng(), topics=(5, 12)))
    figures_by = by_setting(small.coefficients(150, rng(), topics=(5, 12), names=("wkappa", "ac2")))
    assert all_within(list(figures_by.values()))
    # Most worlds of 15 items, of which 85 % have one grade, give no interval of kappa.
    assert figures_by["wkappa, 85 % one grade, 3 a topic, T=5: interval printed"].obtained < 0.3
    assert figures_by["wkappa, even, T=5: interval printed"].obtained > 0.95


def test_equal_judges_are_told_apart_as_rarely_as_promised_and_never_by_7_topics() -> None:
    found = by_setting(small.families(50, rng(), sizes=(5,), topics=(7, 8), kinds=("alike",)))
    assert all_within(list(found.values()))
    assert found["5 judges alike, T=7: any pair told apart"].obtained == 0
    assert found["5 judges alike, T=7: anybody eliminated"].obtained == 0


def test_the_best_of_equal_prompts_is_trusted_at_the_threshold_as_rarely_as_promised() -> None:
    assert all_within(small.choices(100, rng(), settings=((30, 25),)))


def test_a_figure_out_of_its_band_is_seen() -> None:
    hits = [True] * 80 + [False] * 20
    out = figures.finding("X", "coverage", hits, 0.93, 0.97)
    # √(.8 · .2 / 99) = .040, so .8 is 3.2 errors below .93.
    assert out.error == pytest.approx(0.0402, abs=1e-4)
    assert not out.within()
    assert not out.within(3.2)
    assert out.within(3.3)
    assert "BROKEN" in figures.shown(out)
    assert figures.shown(figures.finding("X", "width", [1.0, 2.0])).endswith("-")


def test_the_command_fails_if_a_band_is_broken(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    # Of three replicates 0, 1/3, 2/3 or 1 cover, and none of these is in [.93, .97].
    monkeypatch.setattr(sys, "argv", ["simulations.py", "--only", "F3,D", "--replicates", "3"])
    assert main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:6]] == ["F3", "F3", "F3", "D", "D", "D"]
    assert "3 out of band" in lines[-1]
    monkeypatch.setattr(sys, "argv", ["simulations.py", "--only", "F3", "--replicates", "3"])
    assert main() == 0


def test_the_command_names_an_unknown_simulation() -> None:
    wrong = run_python("-m", "bench.simulations", "--only", "A1,Z9")
    assert wrong.returncode == 2
    assert "no simulation Z9" in wrong.stderr


def test_real_judges_are_skipped_with_a_reason_where_there_are_none(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(gold, "LLMJUDGE", tmp_path / "none")
    monkeypatch.setattr(sys, "argv", ["simulations.py", "--only", "L"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("L   skipped: ")
