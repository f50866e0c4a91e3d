"""Judges beside a crowd are looked at without a vote."""

import pytest

from judge.ask.results import Label, Labels
from judge.crowd.labels import CrowdLabels
from judge.errors import UsageError
from judge.extra.crowdmodels.joint import DIAGNOSTIC, joint_tsv
from tests.crowd.world import crowd

TRUTH = (0, 1, 2, 3, 0, 1, 2, 3)


def workers(third: str = "w3") -> CrowdLabels:
    """Two who are always right, and one who always says 3."""
    names = ("w1", "w2", third)
    return crowd(
        (name, f"1-1_{i}", f"R{i}", 3 if name == third else TRUTH[i - 1]) for name in names for i in range(1, 9)
    )


def judge(name: str, grades: list[int | None], prompt: str | None = "relevance/ikat", shift: str = "") -> Labels:
    labels = tuple(Label(f"1-1_{i}", f"{shift}R{i}", grade) for i, grade in enumerate(grades, 1))
    return Labels(name, prompt, None, f"{name}.jsonl", "", labels)


def joint(*judges: Labels, crowd: CrowdLabels | None = None) -> dict[str, dict[str, str]]:
    """The lines of the table by the names of workers and judges."""
    head, *lines = joint_tsv({"relevance": crowd or workers()}, judges).splitlines()
    rows = [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return {row["name"]: row for row in rows}


def test_the_joint_model_tells_good_raters_from_bad() -> None:
    found = joint(judge("server/a", [*TRUTH]), judge("server/b", [3, 2, 1, 0, 3, 2, 1, None]))
    assert [(name, row["kind"]) for name, row in found.items()] == [
        *((name, "worker") for name in ("w1", "w2", "w3")),
        *((name, "judge") for name in ("server/a", "server/b")),
    ]
    good, bad, spam = (found[name] for name in ("server/a", "server/b", "w3"))
    assert [good[name] for name in ("labels", "compared", "same", "deviation")] == ["8", "8", "1.0000", "0.0000"]
    # 3 2 1 0 3 2 1 less 0 1 2 3 0 1 2 is 3 over 7.
    assert [bad[name] for name in ("labels", "same", "deviation")] == ["7", "0.0000", "0.4286"]
    # The spammer's own label is left out: two of eight items are of grade 3.
    assert spam["same"] == "0.2500"
    assert float(good["accuracy"]) > 0.4 > float(bad["accuracy"])
    assert float(good["accuracy"]) > float(spam["accuracy"])
    confusion = [list(map(float, row.split(","))) for row in good["confusion"].split(";")]
    assert [len(row) for row in confusion] == [4] * 4
    assert all(sum(row) == pytest.approx(1, abs=2e-4) for row in confusion)
    # It says that it decides nothing, and nothing in it is a grade of an item.
    assert good["grades"] == "0,1,2,3"
    assert all(row["note"].startswith(DIAGNOSTIC) for row in found.values())


def test_the_crowds_own_grades_stay_as_they_are() -> None:
    labels = workers()
    before = labels.counts.tolist()
    low, high = (joint(judge("server/a", [grade] * 8), crowd=labels) for grade in (0, 3))
    assert [low[name]["same"] for name in labels.workers] == [high[name]["same"] for name in labels.workers]
    assert labels.counts.tolist() == before


def test_a_judge_among_the_workers_is_refused() -> None:
    with pytest.raises(UsageError, match="server/a is among the crowd's workers") as refused:
        joint(judge("server/a", [*TRUTH]), crowd=workers("server/a"))
    assert refused.value.exit_code == 2


def test_judges_of_other_criteria_and_items_are_left_out() -> None:
    with pytest.raises(UsageError, match="--with-judgments: no judgment is about relevance"):
        joint(judge("server/a", [*TRUTH], "naturalness/graded"))
    with pytest.raises(UsageError, match="no judge has a grade of an item"):
        joint(judge("server/a", [*TRUTH], shift="other-"))
    off = joint(judge("server/a\t", [0, 7, 9, 1]))[r"server/a\t"]
    assert (off["labels"], off["left_out"]) == ("2", "2")
