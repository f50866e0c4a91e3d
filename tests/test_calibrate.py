import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.bank import passages_jsonl, pool_jsonl
from judge.calibrate import SEED, Agreement, agreement, read_judgments
from judge.cli import main
from judge.criteria import find_criterion
from judge.errors import InputError
from judge.ids import topic_of
from judge.records import (
    Criterion,
    Estimate,
    GoldRow,
    Judgment,
    Level,
    Pool,
    PooledResponse,
    RunEntry,
    Scale,
    TokenCount,
)
from judge.stats.agreement import agreement_weights, cohen_kappa, confusion, kappa_interval

LEVELS = tuple(Level(grade, str(grade), "") for grade in range(4))
GROUNDEDNESS = Criterion(
    "groundedness", "graded", 1, (), "grade", Scale(LEVELS, "higher", (2, 3), None), (), None, "", "", "x.md", "c" * 64
)  # fmt: skip


def judgment(
    response_id: str,
    turn_id: str,
    grade: int,
    *,
    judge: str = "litellm/m",
    variant: str = "graded",
    unable: bool = False,
    expected: float | None = None,
    digest: str = "c" * 64,
) -> Judgment:
    return Judgment(
        response_id, turn_id, topic_of(turn_id), "groundedness", variant, grade, unable, expected, None, None, (),
        judge, "m", digest, "r" * 64, "json", False, 0,
    )  # fmt: skip


def gold(turn_id: str, grade: int, assessor: str = "A", response_id: str | None = None) -> GoldRow:
    return GoldRow(turn_id, topic_of(turn_id), "groundedness", grade, assessor, response_id)


def paired(grades: Sequence[tuple[str, int, int]], **options: object) -> tuple[Agreement, ...]:
    """Agreement on (turn_id, human, judge) items, one response each."""
    matched = {(f"R{i}", "groundedness"): [gold(turn, human)] for i, (turn, human, _) in enumerate(grades)}
    judgments = [judgment(f"R{i}", turn, grade, **options) for i, (turn, _, grade) in enumerate(grades)]
    return agreement(judgments, matched, GROUNDEDNESS)


ITEMS = [
    ("1_1", 0, 0), ("1_2", 3, 3), ("2_1", 1, 2), ("2_2", 2, 2), ("3_1", 3, 1),
    ("3_2", 3, 3), ("4_1", 0, 0), ("4_2", 1, 2), ("5_1", 2, 3), ("5_2", 3, 3),
]  # fmt: skip


def test_every_statistic_is_about_the_pairs_that_both_graded() -> None:
    (found,) = paired(ITEMS)
    assert (found.judge, found.criterion, found.prompt, found.assessor) == (
        "litellm/m", "groundedness", "groundedness/graded", "A",
    )  # fmt: skip
    assert (found.gold, found.judged, found.coverage) == (10, 10, 1.0)
    assert found.percent.value == 6 / 10
    assert found.within_one.value == 9 / 10
    assert found.bias.value == pytest.approx((1 - 2 + 1 + 1) / 10)
    assert found.constant_percent == 4 / 10
    C = confusion([(human, judge) for _, human, judge in ITEMS], range(4))
    assert found.kappa.value == cohen_kappa(C, agreement_weights(range(4), "none"))
    assert found.weighted_kappa.value == cohen_kappa(C, agreement_weights(range(4), "quadratic"))
    assert found.rank_correlation == Estimate(None, None, None, 10, 5, "the judge gives no label probabilities")


def test_kappa_intervals_resample_the_topics() -> None:
    (found,) = paired(ITEMS)
    tables = np.array(
        [
            confusion([(human, judge) for turn, human, judge in ITEMS if topic_of(turn) == topic], range(4))
            for topic in "12345"
        ]
    )
    W = agreement_weights(range(4), "quadratic")
    assert found.weighted_kappa == kappa_interval(tables, W, np.random.default_rng(SEED))
    assert found.weighted_kappa.low < found.weighted_kappa.value < found.weighted_kappa.high
    assert (found.percent.n, found.percent.topics) == (10, 5)
    assert found.percent.low < 6 / 10 < found.percent.high <= 1


def test_missing_and_unable_judgments_lower_the_coverage_only() -> None:
    matched = {(f"R{i}", "groundedness"): [gold(f"{i}_1", i % 4)] for i in range(6)}
    judgments = [judgment("R1", "1_1", 1), judgment("R2", "2_1", 2), judgment("R3", "3_1", 0, unable=True)]
    (found,) = agreement(judgments, matched, GROUNDEDNESS)
    assert (found.gold, found.judged, found.coverage) == (6, 2, 2 / 6)
    assert found.percent.value == 1.0
    assert found.percent.reason == "fewer than 3 topics"


def test_no_common_grade_leaves_every_statistic_undefined() -> None:
    (found,) = agreement([judgment("R9", "9_1", 1)], {("R1", "groundedness"): [gold("1_1", 1)]}, GROUNDEDNESS)
    assert (found.gold, found.judged, found.coverage, found.constant_percent) == (1, 0, 0.0, None)
    for estimate in (found.percent, found.within_one, found.kappa, found.weighted_kappa, found.alpha_ordinal,
                     found.bias, found.rank_correlation):  # fmt: skip
        assert estimate.value is None
        assert estimate.reason


def test_each_judge_meets_each_assessor_in_natural_order() -> None:
    matched = {("R1", "groundedness"): [gold("1_1", 1, "B"), gold("1_1", 2, "A")]}
    judgments = [judgment("R1", "1_1", 1, judge="server/m10"), judgment("R1", "1_1", 2, judge="server/m2")]
    found = agreement(judgments, matched, GROUNDEDNESS)
    assert [(one.judge, one.assessor, one.percent.value) for one in found] == [
        ("server/m2", "A", 1.0),
        ("server/m2", "B", 0.0),
        ("server/m10", "A", 0.0),
        ("server/m10", "B", 1.0),
    ]


def test_judgments_of_other_prompts_and_gold_of_other_criteria_are_passed_over() -> None:
    matched = {
        ("R1", "groundedness"): [gold("1_1", 1)],
        ("R1", "naturalness"): [msgspec.structs.replace(gold("1_1", 9), criterion="naturalness")],
    }
    judgments = [judgment("R1", "1_1", 1), judgment("R1", "1_1", 3, variant="yes_no")]
    (found,) = agreement(judgments, matched, GROUNDEDNESS)
    assert (found.gold, found.percent.value) == (1, 1.0)


def test_the_expected_grade_is_ranked_against_gold() -> None:
    matched = {(f"R{i}", "groundedness"): [gold(f"{i}_1", grade)] for i, grade in enumerate([0, 1, 2, 3])}
    expected = [0.1, 1.9, 1.2, 2.8]
    judgments = [judgment(f"R{i}", f"{i}_1", 1, expected=x) for i, x in enumerate(expected)]
    (found,) = agreement(judgments, matched, GROUNDEDNESS)
    # Ranks 1 3 2 4 against 1 2 3 4: 1 - 6 * 2 / (4 * 15).
    assert found.rank_correlation.value == pytest.approx(1 - 6 * 2 / 60)
    assert found.kappa.value == pytest.approx(0)


def test_probabilities_for_some_grades_only_are_not_called_none() -> None:
    matched = {(f"R{i}", "groundedness"): [gold(f"{i}_1", i)] for i in range(3)}
    judgments = [judgment(f"R{i}", f"{i}_1", i, expected=x) for i, x in enumerate([0.5, None, 1.5])]
    (found,) = agreement(judgments, matched, GROUNDEDNESS)
    assert found.rank_correlation.reason == "label probabilities for only 2 of 3 grades"


def test_perfect_agreement_says_what_it_is() -> None:
    (found,) = paired([(turn, human, human) for turn, human, _ in ITEMS])
    assert (found.kappa.value, found.kappa.reason) == (1.0, "perfect agreement")
    assert (found.weighted_kappa.value, found.weighted_kappa.reason) == (1.0, "perfect agreement")


def test_topics_are_the_judgments_not_what_the_gold_file_says() -> None:
    rows = {f"R{i}": msgspec.structs.replace(gold(f"{i}_1", i % 4), topic_id=f"{i // 2}") for i in range(6)}
    matched = {(response_id, "groundedness"): [row] for response_id, row in rows.items()}
    (found,) = agreement([judgment(f"R{i}", f"{i}_1", 3 - i % 4) for i in range(6)], matched, GROUNDEDNESS)
    assert (found.bias.topics, found.kappa.topics, found.alpha_ordinal.topics) == (6, 6, 6)


def test_gold_off_the_scale_is_refused_row_by_row() -> None:
    matched = {("R1", "groundedness"): [gold("1_1", 4), gold("1_1", -1, "B"), gold("1_1", 3, "C")]}
    with pytest.raises(InputError, match="cannot be compared under groundedness/graded") as caught:
        agreement([judgment("R1", "1_1", 1)], matched, GROUNDEDNESS)
    assert len(caught.value.problems) == 2


def test_judgments_given_twice_or_off_the_scale_are_refused() -> None:
    judgments = [judgment("R1", "1_1", 1), judgment("R1", "1_1", 1), judgment("R2", "1_2", 9)]
    with pytest.raises(InputError) as caught:
        agreement(judgments, {("R1", "groundedness"): [gold("1_1", 1)]}, GROUNDEDNESS)
    assert [(problem.code, problem.message) for problem in caught.value.problems] == [
        ("duplicate_judgment", "R1 by litellm/m is judged twice: expected one judgment"),
        ("off_scale", "grade 9 for R2 by litellm/m: expected one of 0, 1, 2, 3"),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_the_order_of_items_changes_nothing(items: list[tuple[int, int, int]], shuffle: random.Random) -> None:
    matched = {(f"R{i}", "groundedness"): [gold(f"{topic}_1", human)] for i, (topic, human, _) in enumerate(items)}
    judgments = [judgment(f"R{i}", f"{topic}_1", grade) for i, (topic, _, grade) in enumerate(items)]
    found = agreement(judgments, matched, GROUNDEDNESS)
    keys = list(matched)
    shuffle.shuffle(keys)
    shuffle.shuffle(judgments)
    assert agreement(judgments, {key: matched[key] for key in keys}, GROUNDEDNESS) == found


def test_judgments_are_read_back_as_written() -> None:
    judgments = (judgment("R1", "1_1", 1, expected=1.25), judgment("R2", "1_2", 0, unable=True))
    stored = b"".join(msgspec.json.encode(one) + b"\n" for one in judgments)
    assert read_judgments(stored, "judgments.jsonl") == judgments


def test_every_line_that_is_no_judgment_is_named() -> None:
    good = msgspec.json.encode(judgment("R1", "1_1", 1))
    wrong = b'{"kind":"failure"}'
    stored = b"\n".join([good, b"{", b"", wrong, b"\xff\xfe", good[:50], b"7"])
    with pytest.raises(InputError, match=r"j\.jsonl: 5 lines are no judgments") as caught:
        read_judgments(stored, "j.jsonl")
    assert [problem.path for problem in caught.value.problems] == ["line 2", "line 4", "line 5", "line 6", "line 7"]


def write_output(
    folder: Path, items: Sequence[tuple[str, int, int]], judge: str = "litellm/m", variant: str = "graded"
) -> None:
    """An output folder and, beside it, gold.jsonl from (turn_id, human, judge) items."""
    digest = find_criterion(f"groundedness/{variant}").digest
    runs = (RunEntry("x", 1, "used", "0" * 64),)
    tokens = TokenCount(1, 1, 1, None)
    pool = Pool(
        tuple(
            PooledResponse(f"R{i:05}", turn, topic_of(turn), f"text {i}", (), tokens, False, runs)
            for i, (turn, _, _) in enumerate(items)
        ),
        {},
        (),
    )
    folder.mkdir(exist_ok=True)
    (folder / "pool.jsonl").write_bytes(pool_jsonl(pool))
    (folder / "passages.jsonl").write_bytes(passages_jsonl(pool))
    judgments = [
        judgment(f"R{i:05}", turn, grade, judge=judge, variant=variant, digest=digest)
        for i, (turn, _, grade) in enumerate(items)
    ]
    (folder / "judgments.jsonl").write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in judgments))
    rows = [
        {"turn_id": turn, "topic_id": topic_of(turn), "criterion": "groundedness", "grade": human, "assessor": "A",
         "response_id": f"R{i:05}"}
        for i, (turn, human, _) in enumerate(items)
    ]  # fmt: skip
    (folder.parent / "gold.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        "calibrate",
        "--gold",
        str(folder.parent / "gold.jsonl"),
        "--judgments",
        str(folder / "judgments.jsonl"),
        *more,
    ]


def test_the_command_prints_one_line_a_judge_and_the_caution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_output(tmp_path / "a", ITEMS[:6], judge="server/one")
    write_output(tmp_path / "b", ITEMS[:6], judge="server/two")
    assert main([*arguments(tmp_path / "a"), str(tmp_path / "b" / "judgments.jsonl")]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[1] == "groundedness/graded"
    assert lines[3].split()[:5] == ["server/one", "A", "6/6", "0.67", "0.50"]
    assert lines[4].split()[:3] == ["server/two", "A", "6/6"]
    assert "Gold on 3 topics gives kappa no interval (5 needed)" in lines[-1]
    assert "quadratic weights" in err


def test_the_command_prints_intervals_where_topics_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(tmp_path / "a", ITEMS)
    assert main(arguments(tmp_path / "a")) == 0
    (found,) = paired(ITEMS)
    weighted = found.weighted_kappa
    out = capsys.readouterr().out
    assert f"{weighted.value:.2f} [{weighted.low:.2f}, {weighted.high:.2f}]" in out
    assert "Gold on 5 topics leaves wide intervals" in out


def test_json_holds_every_statistic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(tmp_path / "a", ITEMS)
    assert main(arguments(tmp_path / "a", "--json")) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=list[Agreement])
    assert found == list(paired(ITEMS))


def test_gold_of_another_pool_is_counted_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(tmp_path / "a", ITEMS)
    with (tmp_path / "gold.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"turn_id": "9_9", "topic_id": "9", "criterion": "groundedness", "grade": 1, "assessor": "A", ')
        file.write('"response_id": "R99999"}\n')
    assert main(arguments(tmp_path / "a")) == 0
    assert "1 of 11 gold grades are of responses not in its pool" in capsys.readouterr().err


@pytest.mark.parametrize(("grade", "code"), [(0, 0), (1, 2)])
def test_gold_of_each_run_that_gave_a_response_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], grade: int, code: int
) -> None:
    write_output(tmp_path / "a", ITEMS)
    digest = hashlib.sha256(b"text 0").hexdigest()
    with (tmp_path / "gold.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"turn_id": "1_1", "topic_id": "1", "criterion": "groundedness", "assessor": "A", ')
        file.write(f'"run_id": "x", "text_sha256": "{digest}", "grade": {grade}}}\n')
    assert main(arguments(tmp_path / "a")) == code
    out, err = capsys.readouterr()
    if code:
        assert "groundedness grade 1 by A for text" in err
        assert "but 0 for response R00000" in err
    else:
        assert "10/10" in out


def test_a_prompt_that_changed_since_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(tmp_path / "a", ITEMS)
    file = tmp_path / "a" / "judgments.jsonl"
    digest = find_criterion("groundedness/graded").digest
    file.write_text(file.read_text(encoding="utf-8").replace(digest, "0" * 64), encoding="utf-8")
    assert main(arguments(tmp_path / "a")) == 0
    assert "has changed since these judgments were made" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", ["groundedness", "groundedness/graded"])
def test_one_criterion_can_be_picked(tmp_path: Path, capsys: pytest.CaptureFixture[str], wanted: str) -> None:
    write_output(tmp_path / "a", ITEMS)
    assert main(arguments(tmp_path / "a", "--criterion", wanted)) == 0
    assert "groundedness/graded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--criterion", "naturalness"], "no judgment under naturalness/graded, only groundedness/graded"),
        (["--criterion", "groundednes"], "no prompt called 'groundednes'"),
        (["--pool", "nowhere/pool.jsonl"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    write_output(tmp_path / "a", ITEMS)
    assert main(arguments(tmp_path / "a", *more)) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""


def test_gold_that_meets_no_judgment_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_output(tmp_path / "a", ITEMS)
    file = tmp_path / "gold.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("groundedness", "relevance"), encoding="utf-8")
    assert main(arguments(tmp_path / "a")) == 2
    assert "no grade of a pooled response under a criterion that was judged" in capsys.readouterr().err


def test_judgments_under_a_prompt_of_ones_own_ask_for_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_output(tmp_path / "a", ITEMS)
    file = tmp_path / "a" / "judgments.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace('"graded"', '"mine"'), encoding="utf-8")
    assert main(arguments(tmp_path / "a")) == 2
    assert "with --criterion PATH" in capsys.readouterr().err
