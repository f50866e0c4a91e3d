import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.crowd.labels import AGGREGATORS, CrowdLabels, CrowdSettings, Item
from judge.stats.consensus import SHARES, TIES
from judge.stats.means import consensus
from tests.crowd.world import SCALE, crowd, grid, read

DEFAULT = CrowdSettings()


def numbered(given, **more) -> CrowdLabels:
    """Labels from rows of (worker, item, label), all counted from 0."""
    return crowd(((f"w{worker}", "1_1", f"r{item}", label) for worker, item, label in given), **more)


def lists(*labels):
    """One item a list, its labels by workers 0, 1, 2, …"""
    return numbered((w, i, grade) for i, row in enumerate(labels) for w, grade in enumerate(row))


def spammed(spammers, seed, *, topics=50, items=40, workers=100):
    """A crowd of which a share clicks at random, always says 3 or always says 2.

    A topic has 5 to 10 workers. The others are right with .55 to .85, and when wrong seven times in ten a grade off.
    """
    rng = np.random.default_rng(seed)
    accuracy, truth = rng.uniform(0.55, 0.85, workers), rng.choice(4, topics * items, p=(0.35, 0.25, 0.25, 0.15))
    rows = []
    for topic in range(topics):
        place = np.arange(topic * items, (topic + 1) * items)
        for worker in rng.choice(workers, rng.integers(5, 11), replace=False):
            if worker < spammers * workers:
                grade = (rng.integers(0, 4, items), np.full(items, 3), np.full(items, 2))[worker % 3]
            else:
                near = np.clip(truth[place] + rng.choice((-1, 1), items), 0, 3)
                wrong = np.where(rng.random(items) < 0.7, near, rng.integers(0, 4, items))
                grade = np.where(rng.random(items) < accuracy[worker], truth[place], wrong)
            rows.append(np.stack([np.full(items, worker), place, grade], axis=1))
    worker, item, code = np.concatenate(rows).T
    named = tuple(Item("1_1", f"r{place}") for place in range(topics * items))
    everybody = tuple(f"w{place}" for place in range(workers))
    arrays = worker.astype(np.int32), item.astype(np.int32), code.astype(np.int8)
    return CrowdLabels("relevance", SCALE, everybody, named, *arrays), truth


def test_what_majority_tells() -> None:
    found = AGGREGATORS["majority"].aggregate(lists([3, 1, 3], [0, 0, 3, 3], [0, 1], [2]), DEFAULT)
    assert found.code.tolist() == [3, 2, 1, 2]
    assert found.n.tolist() == [3, 4, 2, 1]
    assert found.counts.tolist() == [[0, 1, 0, 2], [2, 0, 0, 2], [1, 1, 0, 0], [0, 0, 1, 0]]
    assert found.shares[0].tolist() == [0, 1 / 3, 0, 2 / 3]
    assert found.tied.tolist() == [False, True, True, False]
    assert found.unvoted.tolist() == [False, True, False, False]
    assert found.mean.tolist() == [7 / 3, 6 / 4, 1 / 2, 2]
    assert found.entropy == pytest.approx([np.log2(3) - 2 / 3, 1, 1, 0])
    assert found.rule == (
        "the grade that most labels name; without one the grade nearest to the mean of all labels, halves up"
    )


@pytest.mark.parametrize("name", ["majority", "weighted-majority"])
def test_the_rule_is_told_as_it_was(name) -> None:
    for share, tie in [*((share, "lowest") for share in SHARES), *(("absolute", tie) for tie in TIES)]:
        rule = AGGREGATORS[name].aggregate(lists([0, 1], [2, 2]), CrowdSettings(majority=share, tie=tie)).rule
        assert rule.startswith(SHARES[share])
        assert rule.endswith(TIES[tie].words)


def test_mean_and_median() -> None:
    labels = lists([0, 0, 3], [0, 3, 3, 3], [0, 0, 0, 3, 3], [1, 2])
    assert AGGREGATORS["mean"].aggregate(labels, DEFAULT).code.tolist() == [1, 2, 1, 2]  # 3/3, 9/4, 6/5, 3/2
    assert AGGREGATORS["median"].aggregate(labels, DEFAULT).code.tolist() == [0, 3, 0, 2]


@pytest.mark.parametrize("name", AGGREGATORS)
def test_a_scale_that_does_not_start_at_zero_and_has_gaps(name) -> None:
    rows = [(w, i, (1, 2, 5)[i % 3]) for i in range(9) for w in range(3)]
    found = AGGREGATORS[name].aggregate(numbered(rows, grades=(1, 2, 5)), DEFAULT)
    assert found.code.tolist() == [0, 1, 2] * 3
    assert found.mean.tolist() == [1, 2, 5] * 3


def test_weights_go_with_the_weighted_majority() -> None:
    # Workers 0 and 1 agree throughout, 2, 3 and 4 click; on the last item the clickers agree by chance.
    rows = [(w, i, i % 4) for i in range(20) for w in (0, 1, 5)]
    rows += [(w, i, (i + w) % 4 if w < 4 else 3 - i % 4) for i in range(20) for w in (2, 3, 4)]
    rows += [(w, 20, 0) for w in (0, 1)] + [(w, 20, 3) for w in (2, 3, 4)]
    found = AGGREGATORS["weighted-majority"].aggregate(numbered(rows), DEFAULT)
    assert set(found.worker) == {"weight", "agreement"}
    assert found.worker["weight"][[0, 1]].min() > 2 * found.worker["weight"][2:5].max()
    assert found.code[20] == 0
    assert AGGREGATORS["majority"].aggregate(numbered(rows), DEFAULT).code[20] == 3


def test_where_all_weigh_nothing_all_weigh_alike() -> None:
    # Nobody ever agrees: each label meets one other.
    labels = numbered([(0, 0, 0), (1, 0, 3), (0, 1, 1), (1, 1, 3), (0, 2, 0), (1, 2, 1)], grades=(0, 1, 3))
    found = AGGREGATORS["weighted-majority"].aggregate(labels, CrowdSettings(tie="lowest", smoothing=0.1))
    assert found.worker["weight"].tolist() == [0, 0]
    assert found.code.tolist() == AGGREGATORS["majority"].aggregate(labels, CrowdSettings(tie="lowest")).code.tolist()


TABLE = st.lists(st.lists(st.sampled_from((-1, *SCALE)), min_size=5, max_size=5), min_size=1, max_size=7)


@given(TABLE, st.sampled_from(list(AGGREGATORS)))
def test_what_holds_for_every_aggregator(table, name) -> None:
    found = AGGREGATORS[name].aggregate(grid(table), DEFAULT)
    assert all(len(values) == 5 for values in found.worker.values())
    for item, row in enumerate(table):
        labels = [label for label in row if label >= 0]
        assert found.n[item] == len(labels)
        assert (found.code[item] < 0) == np.isnan(found.mean[item]) == np.isnan(found.entropy[item]) == (not labels)
        assert found.unvoted[item] == (bool(labels) and found.code[item] not in labels)
        assert labels or not found.tied[item]
        if name == "majority" and labels:
            assert found.code[item] == consensus(labels)


def test_kept_labels_are_aggregated_as_if_the_others_had_not_been() -> None:
    labels, _ = spammed(0.4, 2, topics=3)
    kept = labels.kept(labels.worker >= 40)
    found = AGGREGATORS["majority"].aggregate(kept, DEFAULT)
    rows = zip(kept.worker.tolist(), kept.item.tolist(), kept.code.tolist(), strict=True)
    again = AGGREGATORS["majority"].aggregate(numbered(rows, items=labels.items), DEFAULT)
    assert found.code.tolist() == again.code.tolist()


def test_transparent_cis(shared) -> None:
    """Real workers: 50 responses of 10 topics, 16 labels each, 14 dimensions, grades 1 to 4."""
    crowds = read(
        shared / "worker-level/transparentCIS/judgments_long.tsv",
        scales=(1, 2, 3, 4),
        columns={"task": "item_id", "criterion": "dimension"},
        task=r"(?P<response_id>(?P<turn_id>Q\d+)_\w+)",
    )
    assert len(crowds) == 14
    assert {(len(labels.items), len(labels.item), len(labels.topics)) for labels in crowds.values()} == {(50, 800, 10)}
    assert crowds["relevance"].counts.sum(axis=0).tolist() == [4, 37, 343, 416]
    for dimension, labels in crowds.items():
        for name, aggregator in AGGREGATORS.items():
            found = aggregator.aggregate(labels, DEFAULT)
            assert ((found.code >= 0) == (found.n > 0)).all()
            assert found.fit is None or found.fit.converged, (name, dimension)
        given = [np.repeat(labels.grades, of_item).tolist() for of_item in labels.counts]
        default = AGGREGATORS["majority"].aggregate(labels, DEFAULT).code
        assert [labels.grades[code] for code in default] == list(map(consensus, given))
