"""Workers who share few items: models keep single labels, say how little they rest on, or are refused."""

import itertools
from pathlib import Path

import pytest

from bench.simulations.crowds import CROWDS, DESIGNS, w
from judge.crowd.labels import AGGREGATORS, CrowdSettings
from judge.crowd.overlap import check_connected, groups, thin_overlap
from judge.errors import UsageError
from judge.stats.worker_models import Votes, dawid_skene
from tests.cli.test_crowd import run
from tests.conftest import put
from tests.crowd.world import crowd, grid
from tests.stats.test_simulations import all_within, rng

NONE = -1
WEIGHING = [name for name, row in AGGREGATORS.items() if row.weighs]


@pytest.mark.parametrize("name", WEIGHING)
def test_single_labels_stand(name: str) -> None:
    # Two who share one item and else label alone; grade 1 is the rarer one of both.
    labels = grid([[0, 0], *[[0, NONE], [NONE, 0]] * 5, [1, NONE], [NONE, 1]])
    grades = AGGREGATORS[name].aggregate(labels, CrowdSettings())
    assert grades.code.tolist() == [0] * 11 + [1, 1]
    assert grades.unlike == 0


def test_a_model_expects_workers_to_be_right_before_it_knows_them() -> None:
    # One label of grade 1 of three, so each row has 3 · (3 - 1) / 2 = 3 right and 2 · 1/2 wrong pseudo-labels.
    fit = dawid_skene(Votes([0], [0], [1], (2, 1, 3)))
    assert fit.worker["confusion"][1].tolist() == [[3 / 4 if i == j else 1 / 8 for j in range(3)] for i in range(3)]
    # The label counts as a right one: (3 + 1) / (4 + 1). Of the item it is the only evidence: 4/5 against 1/8 twice.
    assert fit.worker["confusion"][0, 1, 1] == pytest.approx(4 / 5, abs=1e-3)
    assert fit.p[0] == pytest.approx([0.125 / 1.05, 0.8 / 1.05, 0.125 / 1.05], abs=1e-3)


@pytest.mark.parametrize("name", ["dawid-skene", "mace"])
def test_a_rare_grade_that_was_said_once_stays_likely(name: str) -> None:
    # Forty items of which three workers say 3, and one of which the first alone says 0.
    grades = AGGREGATORS[name].aggregate(grid([*[[3, 3, 3]] * 40, [0, NONE, NONE]]), CrowdSettings())
    assert grades.code[-1] == 0
    assert grades.shares[-1].argmax() == 0
    assert grades.shares[-1, 3] < 0.1


def test_workers_are_grouped_by_the_items_that_they_share() -> None:
    # A chain from w0 to w3 through single items, and a pair apart.
    pairs = [("w0", "R1"), ("w1", "R1"), ("w1", "R2"), ("w3", "R2"), ("w4", "R3"), ("w2", "R3"), ("w5", "R4")]
    labels = crowd((worker, "1_1", item, 0) for worker, item in pairs)
    assert groups(labels).tolist() == [0, 0, 2, 0, 2, 5]
    chain = crowd((f"w{i + j}", "1_1", f"R{i}", 0) for i in range(40) for j in (1, 0))
    assert set(groups(chain).tolist()) == {0}


def test_workers_who_share_too_little_are_not_weighed() -> None:
    apart = [[0, NONE], [1, NONE], [NONE, 0], [NONE, 1]]
    with pytest.raises(UsageError) as refused:
        check_connected(grid(apart), "mace")
    assert str(refused.value) == (
        "relevance: 100% of the labels are of 2 workers (w0, w1) in groups of fewer than 3 that share no item with the "
        "others, so mace cannot know whom to believe: take --aggregator majority, or let more workers label the same "
        "items"
    )
    # Two groups of three are each weighed by themselves, and so is one group of two.
    check_connected(grid([[0, 0, 0, NONE, NONE, NONE], [NONE, NONE, NONE, 1, 1, 1]]), "mace")
    check_connected(grid([[0, 0]]), "mace")
    # In a chain of three the ends share items with one worker each; a pair beside it has two labels of six.
    check_connected(grid([[0, 0, NONE], [NONE, 0, 0]]), "mace")
    with pytest.raises(UsageError, match=r"33% of the labels are of 2 workers \(w3, w4\)"):
        check_connected(grid([[0, 0, NONE, NONE, NONE], [NONE, 0, 0, NONE, NONE], [NONE, NONE, NONE, 0, 0]]), "mace")
    # One label in ten of a worker apart is borne, two in eleven are not.
    together = [[0, 0, 0, NONE]] * 3
    check_connected(grid([*together, [NONE, NONE, NONE, 0]]), "mace")
    with pytest.raises(UsageError, match=r"18% of the labels are of 1 worker \(w3\) in groups"):
        check_connected(grid([*together, [NONE, NONE, NONE, 0], [NONE, NONE, NONE, 1]]), "mace")


def test_what_is_too_little_to_tell_workers_apart() -> None:
    assert thin_overlap(grid([[0, 1, 2]] * 20)) == ()
    assert thin_overlap(grid([[0, 1, 2]] * 19)) == (
        "100% of the labels are of workers who share fewer than 20 items with others (median 19)",
    )
    assert thin_overlap(grid([[0, 1]] * 20)) == ("of 2 workers nothing tells whom to believe",)
    single = [[0, 0, 0]] * 20 + [[0, NONE, NONE]] * 21
    assert thin_overlap(grid(single)) == ("21 of 41 items have one label",)
    assert thin_overlap(grid(single[:-1])) == ()


def table(folder: Path, items: int, workers: str, single: int = 0) -> Path:
    lines = [f"{w},1_{i},R{i},{i % 2}" for i, w in itertools.product(range(items), workers)]
    lines += [f"{workers[i % len(workers)]},2_{i},S{i},{i % 2}" for i in range(single)]
    return put(folder / "labels.csv", "\n".join(["worker,turn_id,response_id,label", *lines]) + "\n")


@pytest.mark.parametrize("name", WEIGHING)
def test_the_command_warns_of_thin_overlap_and_refuses_none(name: str, tmp_path: Path, capsys) -> None:
    out = ("--scale", "r=0-1", "--out", tmp_path / "out")
    few = table(tmp_path, items=4, workers="ab", single=10)
    assert run(few, *out, "--aggregator", name) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "r: thin_overlap: of 2 workers nothing tells whom to believe; 10 of 14 items have one label; 100%" in said
    assert "Warning: r: of 2 workers nothing tells" in (tmp_path / "out/summary.md").read_text()
    assert run(few, *out) == 0
    assert "thin_overlap" not in capsys.readouterr().err
    assert run(table(tmp_path, items=20, workers="abc"), *out, "--aggregator", name) == 0
    assert "thin_overlap" not in capsys.readouterr().err
    with pytest.raises(UsageError, match=f"so {name} cannot know whom to believe"):
        run(table(tmp_path, items=0, workers="ab", single=10), *out, "--aggregator", name)


@pytest.mark.long
def test_models_of_few_labels_are_right_as_often_as_a_majority() -> None:
    assert all_within(w(60, rng(), designs=DESIGNS, crowds=CROWDS[:2]))
