import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from judge.stats.worker_models import Votes, dawid_skene, mace, removal_probability

# Dawid & Skene (1979), Table 1: 45 patients, grades 1 to 4 by five anesthetists, the first of them three times.
ANESTHETISTS = (0, 0, 0, 1, 2, 3, 4)
PATIENTS = """1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111
2223212 1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111
1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222
1211111 2222222""".split()


MODELS = {"dawid-skene": dawid_skene, "mace": mace}


@pytest.fixture
def anesthetists():
    label = np.array([int(digit) - 1 for patient in PATIENTS for digit in patient])
    return Votes(np.tile(ANESTHETISTS, 45), np.repeat(np.arange(45), 7), label, (5, 45, 4))


def world(seed, law, N=400, labels=5):
    """Items of random grades, each labeled by random workers as their laws (W x true x label) say."""
    rng = np.random.default_rng(seed)
    W, k = law.shape[:2]
    truth = rng.integers(0, k, N)
    worker = np.concatenate([rng.choice(W, labels, replace=False) for _ in range(N)])
    item = np.repeat(np.arange(N), labels)
    label = (law[worker, truth[item]].cumsum(axis=1) < rng.random((N * labels, 1))).sum(axis=1)
    return Votes(worker, item, np.minimum(label, k - 1), (W, N, k)), truth


def law_of_right(accuracy, k):
    """Workers who are right so often and else name any other grade alike."""
    a = np.asarray(accuracy, dtype=float)[:, None, None]
    return np.where(np.eye(k, dtype=bool), a, (1 - a) / (k - 1))


def test_dawid_and_skene_of_1979(anesthetists) -> None:
    fit = dawid_skene(anesthetists, smoothing=0, tolerance=1e-12 * 192.8909 / 45)
    assert fit.converged
    assert fit.iterations == 25
    assert fit.log_likelihood == pytest.approx(-192.8909, abs=5e-5)
    assert fit.prior == pytest.approx([0.400, 0.422, 0.112, 0.067], abs=5e-4)
    assert fit.worker["confusion"][0] == pytest.approx(
        np.array([[0.889, 0.111, 0, 0], [0.071, 0.876, 0.053, 0], [0, 0.339, 0.661, 0], [0, 0, 0.556, 0.444]]), abs=5e-4
    )
    # Patient 3, of whom early stopping is not sure.
    assert fit.p[2, 1] > 0.9995


def test_the_default_tolerance_gives_the_published_digits(anesthetists) -> None:
    fit = dawid_skene(anesthetists, smoothing=0)
    assert fit.prior.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert fit.log_likelihood == pytest.approx(-192.8909, abs=5e-5)


def test_repeated_labels_are_evidence_each(anesthetists) -> None:
    assert len(anesthetists) == 45 * 7
    # Observer 1 gave patient 3 the grades 1, 1, 2: the expected counts hold all three.
    p = np.zeros((4, 45))
    p[1, 2] = 1
    assert anesthetists.expected(p)[0].tolist() == [[0] * 4, [2, 1, 0, 0], [0] * 4, [0] * 4]


def test_sums_over_labels_by_hand() -> None:
    votes = Votes(np.array([1, 0, 0]), np.array([1, 1, 0]), np.array([0, 1, 1]), (2, 3, 2))
    assert votes.n.tolist() == [1, 2, 0]
    assert votes.shares().T.tolist() == [[0, 1], [0.5, 0.5], [0.5, 0.5]]
    log_theta = np.arange(8.0).reshape(2, 2, 2)  # worker, true, label
    assert votes.log_likelihood(log_theta).T.tolist() == [[1, 3], [1 + 4, 3 + 6], [0, 0]]
    expected = votes.expected(np.array([[1.0, 0.25, 9], [0, 0.75, 9]]))
    assert expected.tolist() == [[[0, 1.25], [0, 0.75]], [[0.25, 0], [0.75, 0]]]


@pytest.mark.parametrize("smoothing", [0, 0.5, 2])
@pytest.mark.parametrize("name", MODELS)
def test_em_climbs(name, smoothing, anesthetists) -> None:
    fit = MODELS[name](anesthetists, smoothing=smoothing, tolerance=1e-13)
    assert fit.converged
    assert np.diff(fit.trace).min() > -1e-9
    assert fit.trace[-1] > fit.trace[0] + 0.1
    if smoothing == 0:
        assert fit.log_likelihood == fit.trace[-1]


LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(0, 2)), min_size=1, max_size=60)


@settings(deadline=None, max_examples=60)
@given(LABELS, st.sampled_from(list(MODELS)), st.sampled_from([0.0, 0.5]))
def test_any_labels_give_probabilities_and_a_rising_objective(labels, name, smoothing) -> None:
    worker, item, label = np.array(labels).T
    fit = MODELS[name](Votes(worker, item, label, (5, 9, 3)), smoothing=smoothing)
    assert fit.p.shape == (9, 3)
    assert np.isfinite(fit.p).all()
    assert fit.p.sum(axis=1) == pytest.approx(np.ones(9))
    assert np.diff(fit.trace).min(initial=0) > -1e-9 * (1 + abs(fit.trace[-1]))
    # The last item and the last worker have no label.
    assert fit.p[8] == pytest.approx(fit.prior)
    assert all(np.isfinite(values).all() and len(values) == 5 for values in fit.worker.values())


@settings(deadline=None, max_examples=30)
@given(LABELS, st.sampled_from(list(MODELS)), st.randoms(use_true_random=False))
def test_the_order_of_labels_changes_no_digit(labels, name, random) -> None:
    shuffled = random.sample(labels, len(labels))
    one, other = (MODELS[name](Votes(*np.array(rows).T, (4, 8, 3))) for rows in (labels, shuffled))
    assert one.trace == other.trace
    assert one.p.tolist() == other.p.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_unlabeled_items_do_not_move_the_prior(name, anesthetists) -> None:
    item, (worker, label) = anesthetists.item, np.divmod(anesthetists.cell, 4)
    more = Votes(worker, item, label, (5, 60, 4))
    tight, wide = (MODELS[name](votes, tolerance=1e-12) for votes in (anesthetists, more))
    assert wide.prior == pytest.approx(tight.prior, abs=1e-6)
    assert wide.p[:45] == pytest.approx(tight.p, abs=1e-5)


def test_stopping_early_is_told(anesthetists) -> None:
    fit = dawid_skene(anesthetists, max_iterations=3)
    assert (fit.iterations, fit.converged) == (3, False)


def test_dawid_skene_reads_those_who_are_reliably_wrong() -> None:
    # Eight who are right, three who always say one more (3 for 3): their labels tell the truth but for 2 or 3.
    right = law_of_right([0.75] * 8, 4)
    shifted = np.tile(np.eye(4)[[1, 2, 3, 3]], (3, 1, 1)) * 0.96 + 0.01
    votes, truth = world(2, np.concatenate([right, shifted]), N=1500)
    fit = dawid_skene(votes)
    assert fit.worker["confusion"][8:].argmax(axis=2).tolist() == [[1, 2, 3, 3]] * 3
    share = votes.shares()
    assert (fit.p.argmax(axis=1) == truth).mean() > (share.argmax(axis=0) == truth).mean() + 0.05


def test_mace_finds_spammers_and_their_habits() -> None:
    habit = np.array([0.1, 0.1, 0.1, 0.7])
    spamming = np.array([0.0] * 4 + [0.3] * 4 + [0.9] * 4)
    law = (1 - spamming)[:, None, None] * np.eye(4) + spamming[:, None, None] * habit
    votes, _ = world(3, law, N=3000)
    fit = mace(votes)
    assert fit.worker["spamming"] == pytest.approx(spamming, abs=0.06)
    assert fit.worker["habit"][8:] == pytest.approx(np.tile(habit, (4, 1)), abs=0.06)
    assert fit.prior.tolist() == [1 / 4] * 4


def skewed(seed, accuracy, N=400, labels=5):
    """Items of which 85 % have the last of four grades, labeled by 40 workers who are right so often."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, N, p=(0.05, 0.05, 0.05, 0.85))
    worker = np.concatenate([rng.choice(40, labels, replace=False) for _ in range(N)])
    item = np.repeat(np.arange(N), labels)
    right = rng.random(N * labels) < accuracy[worker]
    label = np.where(right, truth[item], (truth[item] + rng.integers(1, 4, N * labels)) % 4)
    return Votes(worker, item, label, (40, N, 4)), truth


@pytest.mark.slow
def test_mace_needs_an_estimated_prior_where_most_items_have_one_grade() -> None:
    for seed in range(5):
        votes, truth = skewed(seed, np.random.default_rng(100 + seed).uniform(0.5, 0.9, 40))
        flat, estimated = (mace(votes, prior=prior) for prior in ("flat", "estimated"))
        majority = votes.shares().argmax(axis=0)
        # The flat prior does worse than counting, the estimated one better.
        assert (flat.p.argmax(axis=1) == truth).mean() < 0.65 < 0.8 < (majority == truth).mean()
        assert (estimated.p.argmax(axis=1) == truth).mean() > 0.93
        assert estimated.prior == pytest.approx([0.05, 0.05, 0.05, 0.85], abs=0.06)


@pytest.mark.parametrize("prior", ["flat", "estimated"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_mace_is_the_em_of_the_paper_written_out(prior, smoothing) -> None:
    rng = np.random.default_rng(9)
    rows = [(w, i, rng.choice(3, p=(0.1, 0.2, 0.7))) for i in range(12) for w in rng.choice(5, 3, replace=False)]
    fit = mace(Votes(*np.array(rows).T, (5, 12, 3)), prior=prior, smoothing=smoothing, tolerance=0, max_iterations=7)
    spamming, habit = [0.5] * 5, [[1 / 3] * 3 for _ in range(5)]
    labels = [[(w, label) for w, i, label in rows if i == item] for item in range(12)]
    p = [[sum(label == t for _, label in given) / len(given) for t in range(3)] for given in labels]
    for _ in range(7):
        grades = [sum(row[t] for row in p) / 12 for t in range(3)] if prior == "estimated" else [1 / 3] * 3
        # Of each label: the expected number given by spamming, by true grade, and the rest given in earnest.
        spammed = [[smoothing] * 3 for _ in range(5)]
        both = [[smoothing, smoothing] for _ in range(5)]
        for item, of_item in enumerate(labels):
            for w, label in of_item:
                for t in range(3):
                    spam = spamming[w] * habit[w][label]
                    share = 1 if t != label else spam / (spam + 1 - spamming[w])
                    spammed[w][label] += p[item][t] * share
                    both[w][0] += p[item][t] * share
                    both[w][1] += p[item][t] * (1 - share)
        spamming = [spam / (spam + earnest) for spam, earnest in both]
        habit = [[n / sum(row) for n in row] for row in spammed]
        p = []
        for of_item in labels:
            joint = [
                grades[t]
                * math.prod(spamming[w] * habit[w][label] + (1 - spamming[w]) * (t == label) for w, label in of_item)
                for t in range(3)
            ]
            p.append([value / sum(joint) for value in joint])
    assert fit.iterations == 7
    assert fit.p == pytest.approx(np.array(p), abs=1e-9)
    assert fit.worker["spamming"] == pytest.approx(spamming, abs=1e-9)
    assert fit.prior == pytest.approx(grades, abs=1e-9)


def test_mace_takes_no_other_prior(anesthetists) -> None:
    with pytest.raises(ValueError, match="expected one of flat, estimated"):
        mace(anesthetists, prior="even")


@pytest.mark.slow
def test_underflow_is_no_obstacle() -> None:
    # A thousand labels on one item: the product of their probabilities is 0 in floating point.
    worker, item = np.tile(np.arange(1000), 3), np.repeat(np.arange(3), 1000)
    label = np.concatenate([np.arange(1000) % 3 == 0, np.arange(1000) % 2, np.arange(1000) % 5 > 0]).astype(int)
    for model in MODELS.values():
        fit = model(Votes(worker, item, label, (1000, 3, 2)))
        assert np.isfinite(fit.p).all()
        assert fit.p[0, 0] > 0.99
        assert fit.p[2, 1] > 0.99


PAGE = Path(__file__).parents[2] / "docs" / "crowd.md"


@pytest.mark.parametrize("error", [0.0, 0.05, 0.2, 0.75, 1.0])
@pytest.mark.parametrize(("known", "fails"), [(0, 0), (1, 0), (1, 1), (4, 0), (4, 1), (6, 2), (6, 7)])
def test_every_pattern_of_fails_counts_once(error: float, known: int, fails: int) -> None:
    patterns = itertools.product((0, 1), repeat=known)
    share = sum(error ** sum(p) * (1 - error) ** (known - sum(p)) for p in patterns if sum(p) > fails)
    assert removal_probability(error, known, fails) == pytest.approx(share, abs=1e-15)
    assert removal_probability(error, known, fails) == pytest.approx(float(binom.sf(fails, known, error)), abs=1e-15)


def test_the_table_of_the_documents_is_exact() -> None:
    table = re.findall(r"^\| (\d+) \| (\d) \|((?: [.\d]+ \|)+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(int(known), int(fails)) for known, fails, _ in table] == [
        (1, 0), (2, 0), (3, 0), (5, 0), (10, 0), (3, 1), (5, 1), (10, 1), (10, 2),
    ]  # fmt: skip
    for known, fails, cells in table:
        # Workers who err on 5, 10 and 20 %, and who click at random where two of four grades, or one, are acceptable.
        exact = [removal_probability(error, int(known), int(fails)) for error in (0.05, 0.1, 0.2, 0.5, 0.75)]
        assert cells.split(" |")[:-1] == [f" {share:.3f}".replace(" 0.", " .") for share in exact]
