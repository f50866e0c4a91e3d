import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.ask.records import Failure, Judgment
from judge.cli.tables import print_leaderboard
from judge.io.ids import response_run
from judge.io.table import records_tsv
from judge.pool.records import Pool, PooledResponse, PooledTurn
from judge.records import Criterion, Estimate, Level, Passage
from judge.results.leaderboard import COLUMNS, board, coverage, leaderboard, leaderboard_markdown, share_positive
from judge.results.qrels import qrels_text
from judge.results.reciting import reciting_runs
from judge.results.rows import Score
from judge.runs.records import Exclusion
from judge.stats.separation import Place
from tests import calibration_world as world
from tests.build import pooled, scale
from tests.conftest import put

UNABLE = Level(-1, "unable", "")


def criterion(name: str = "groundedness", variant: str = "graded", **options: object) -> Criterion:
    return Criterion(name, variant, 1, (), "grade", scale(**options, unable=UNABLE), (), None, "", "", "x.md", "c" * 64)


def pool(*responses: PooledResponse, excluded: tuple[Exclusion, ...] = ()) -> Pool:
    return Pool(responses, {}, excluded)


def excluded(run_id: str, turn_id: str, reason: str = "over_limit", rank: int | None = 1) -> Exclusion:
    return Exclusion(run_id, turn_id, rank, reason, "")


def judgment(
    response: PooledResponse, grade: int, *, name: str = "groundedness", variant: str = "graded", **changed: object
) -> Judgment:
    of = (response.turn_id, response.response_id, grade, "litellm/m", f"{name}/{variant}")
    return world.judgment(*of, digest="c" * 64, **changed)


def failure(response: PooledResponse, name: str = "groundedness", reason: str = "unreadable") -> Failure:
    of = (response.turn_id, response.response_id, reason, "litellm/m")
    return world.failure(*of, criterion=name, criterion_digest="c" * 64)


TOLD = "Fully grounded: each statement of it has a passage that says just the same."


def test_a_run_that_recites_the_prompt_is_flagged_with_its_share() -> None:
    """Eight words in a row that neither the passages nor the user said; a run is one in a half of its responses."""
    levels = (Level(0, "0", TOLD), *scale().levels[1:])
    system, levelled = "Grade it by the list below and nothing else:", replace(scale(), levels=levels)
    prompt = replace(criterion(), system=system, scale=levelled)
    for text, others, shares in (
        (f"Yes. {TOLD}", "A lift.", {"a": 0.5, "b": 1.0}),
        ("So grade it, by the LIST below and nothing!", "A lift.", {"a": 0.5, "b": 1.0}),
        # Seven words, those of the passage, and words across two texts are none.
        ("Grade it by the list below and so on", "A lift.", {}),
        (f"Yes. {TOLD}", f"I said: {TOLD}", {}),
        ("Below and nothing else: Fully grounded: each statement of it", "A lift.", {}),
    ):
        two = replace(pooled("R2", "1_2", ("a", 1), ("b", 1)), text=text, passages=("p",))
        of = Pool((pooled("R1", "1_1", ("a", 1)), two), {"p": Passage("p", others, "collection")}, ())
        assert reciting_runs(of, [prompt]) == {"groundedness": shares}
        rows = leaderboard(of, [judgment(each, 2) for each in of.responses], [prompt])
        flags = {row.run_id: row.flags for row in rows}
        assert {run_id for run_id, given in flags.items() if "RECITES" in given} == set(shares)
        page = leaderboard_markdown(rows, "", [prompt])
        assert ("50% recite the prompt; " in page, "\nRECITES: responses share 8 words" in page) == (bool(shares),) * 2
        assert ("50% recite the prompt" in records_tsv(COLUMNS, rows, 4)) is bool(shares)
    # What the user of an interactive run said is no recital, and a pair is of two runs.
    one = replace(pooled("R1", "1_1", ("a", 1)), text=TOLD)
    said = {"1_1": PooledTurn("1_1", "1", TOLD, (), None, None)}
    for turns, shares in (({}, {"a": 1.0}), (said, {})):
        assert reciting_runs(Pool((one,), {}, (), turns=turns), [prompt]) == {"groundedness": shares}
    assert reciting_runs(Pool((one,), {}, ()), [replace(prompt, unit="pair")]) == {}


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcd"), max_size=40))
def test_no_recital_is_overlooked(words: list[str], told: list[str]) -> None:
    """By its definition: the fixed steps, at which words are looked up first, lose none."""
    prompt = replace(criterion(), system=" ".join(told))
    response = replace(pooled("R1", "1_1", ("a", 1)), text=" ".join(words))
    shared = any(words[at : at + 8] == told[of : of + 8] for at in range(len(words) - 7) for of in range(len(told) - 7))
    assert reciting_runs(Pool((response,), {}, ()), [prompt]) == {"groundedness": {"a": 1.0} if shared else {}}


def row(run_id: str, *, rank: int | None = 1, **changes: Any) -> Score:
    """A score, with changes of its fields, its counts and what it says beside."""
    counts = {
        "turns": 84, "n": 73, "unable": 3, "missing": 4, "harness": 1, "not_asked": 0, "unanswered": 4, "positive": 65,
    }  # fmt: skip
    more = {"expected_mean": 2.4375, "share_of_turns": 65 / 218}
    fields: dict[str, Any] = {
        "criterion": "groundedness", "mean": Estimate(2.5, 2.25, 2.75, 73, 23), "bound": 2.1726,
        "reasons": {"provider_error": 1, "refused": 3}, "flags": ("MISSING", "HARNESS"),
        "place": None if rank is None else Place(rank=rank, low=None, high=None, letters=""),
    }  # fmt: skip
    for name, value in changes.items():
        next(values for values in (counts, more, fields) if name in values)[name] = value
    return Score(run_id=run_id, counts=counts, more=more, **fields)


def test_a_shared_response_counts_for_every_run_that_gave_it() -> None:
    a = pooled("R0", "1_1", ("x", 1), ("y", 1))
    b, c = pooled("R1", "2_1", ("x", 1)), pooled("R2", "2_1", ("y", 1))
    rows = leaderboard(pool(a, b, c), [judgment(a, 3), judgment(b, 2), judgment(c, 0)], [criterion()])
    assert [(one.run_id, one.mean.value, one.counts["n"], one.mean.topics) for one in rows] == [
        ("x", (3 + 2) / 2, 2, 2),
        ("y", (3 + 0) / 2, 2, 2),
    ]
    assert [(one.counts["positive"], share_positive(one)) for one in rows] == [(2, 2 / 2), (1, 1 / 2)]


def test_what_is_missing_or_unable_is_counted_and_in_no_mean() -> None:
    responses = [pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(6)]
    results = [
        judgment(responses[0], 3),
        judgment(responses[1], 1),
        judgment(responses[2], -1, unable=True),
        failure(responses[3]),
        failure(responses[4]),
    ]
    (found,) = leaderboard(pool(*responses), results, [criterion()])
    assert (
        found.counts["turns"],
        found.counts["n"],
        found.counts["unable"],
        found.counts["missing"],
        found.counts["not_asked"],
    ) == (6, 2, 1, 2, 1)
    assert found.mean.value == (3 + 1) / 2
    assert coverage(found) == (2 + 1) / 6
    assert (found.counts["positive"], share_positive(found)) == (1, 1 / 2)


def test_a_level_below_zero_is_in_the_mean_where_it_is_no_unable() -> None:
    a, b, c = (pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(3))
    results = [judgment(a, -1), judgment(b, 3), judgment(c, 1)]
    (found,) = leaderboard(pool(a, b, c), results, [criterion(grades=range(-1, 4), positive=(2, 3))])
    # A value of 1 is the middle of the scale, so the interval is as long on either side and stays inside.
    assert found.mean.value == (-1 + 3 + 1) / 3
    assert -1 < found.mean.low < -0.95
    assert found.mean.low + found.mean.high == pytest.approx(2)


def test_a_turn_without_a_response_is_unanswered() -> None:
    a, b = pooled("R0", "1_1", ("x", 1), ("y", 1)), pooled("R1", "1_2", ("y", 1))
    rows = leaderboard(pool(a, b), [judgment(a, 3), judgment(b, 0)], [criterion()])
    assert [
        (one.run_id, one.mean.value, one.counts["turns"], one.counts["n"], one.counts["unanswered"], coverage(one))
        for one in rows
    ] == [
        ("x", 3.0, 2, 1, 1, 1 / 2),
        ("y", 1.5, 2, 2, 0, 2 / 2),
    ]


def test_the_caller_says_which_turns_a_run_had_to_answer() -> None:
    a, b = pooled("R0", "1_1", ("x", 1), ("part", 1)), pooled("R1", "9_9", ("part", 1))
    wanted = {"x": ["1_1", "1_2", "1_3"], "part": (), "silent": ["1_1", "1_2"], "none": ()}
    rows = leaderboard(pool(a, b), [judgment(a, 3), judgment(b, 3)], [criterion()], expected=wanted)
    assert [(one.run_id, one.counts["turns"], one.counts["n"], one.counts["unanswered"]) for one in rows] == [
        ("part", 2, 2, 0),
        ("x", 3, 1, 2),
        ("silent", 2, 0, 2),
    ]


def test_a_run_that_is_not_named_had_to_answer_every_turn_known() -> None:
    a = pooled("R0", "1_1", ("old", 1))
    rows = leaderboard(pool(a), [judgment(a, 3)], [criterion()], expected={"new": ["1_2", "1_3"]})
    assert [(one.run_id, one.counts["turns"], one.counts["unanswered"]) for one in rows] == [
        ("old", 3, 2),
        ("new", 2, 2),
    ]


def test_a_run_whose_responses_were_all_excluded_has_a_row() -> None:
    a = pooled("R0", "1_1", ("x", 1))
    here = pool(a, excluded=(excluded("long", "1_1"), excluded("shy", "1_1", "eval_response_false", None)))
    rows = leaderboard(here, [judgment(a, 3)], [criterion()], expected={"shy": ["1_1"]})
    assert [
        (one.run_id, one.counts["turns"], one.counts["n"], one.counts["unanswered"], coverage(one)) for one in rows
    ] == [
        ("x", 1, 1, 0, 1.0),
        ("long", 1, 0, 1, 0.0),
    ]
    assert rows[1].mean == Estimate(None, None, None, 0, 0, "no grades")


def test_a_trial_calls_what_was_not_asked_not_missing() -> None:
    a, b, c = (pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(3))
    results = [failure(a), judgment(b, 3)]
    (found,) = leaderboard(pool(a, b, c), results, [criterion()])
    assert (found.counts["n"], found.counts["missing"], found.counts["not_asked"], found.counts["unanswered"]) == (
        1,
        1,
        1,
        0,
    )
    (found,) = leaderboard(pool(a, b, c), results, [criterion(variant="other")])
    assert (found.counts["n"], found.counts["missing"], found.counts["not_asked"]) == (0, 0, 3)


@pytest.mark.parametrize(
    ("graded", "left_out", "means"),
    [
        # The best ranked one.
        ([(0, ("x", 2), ("y", 1)), (3, ("x", 1), ("y", 2))], [], {"x": 3.0, "y": 0.0}),
        # Of two with one rank, the one pooled first.
        ([(0, ("x", 1)), (3, ("x", 1))], [], {"x": 0.0}),
        # An excluded one with the rank of a pooled one takes nothing from it.
        ([(3, ("x", 1))], [excluded("x", "1_1", "duplicate_rank")], {"x": 3.0}),
        # The best of a run that ranks from two, whatever else is excluded.
        (
            [(0, ("x", 3)), (3, ("x", 2))],
            [excluded("x", "1_1", "duplicate_rank", 2), excluded("x", "1_1", "no", 4)],
            {"x": 3.0},
        ),
        # No lower one takes the place of the first; y counts its ranks from 0, so that 1 is its second choice.
        (
            [(3, ("x", 2), ("y", 1))],
            [excluded("x", "1_1"), excluded("y", "1_1", "bad_rank", 0)],
            {"x": None, "y": None},
        ),
    ],
)
def test_one_response_of_a_turn_stands_for_the_run(
    graded: list[Any], left_out: list[Exclusion], means: dict[str, float | None]
) -> None:
    responses = [pooled(f"R{number}", "1_1", *runs) for number, (_, *runs) in enumerate(graded)]
    judgments = [judgment(response, grade) for response, (grade, *_) in zip(responses, graded, strict=True)]
    rows = leaderboard(pool(*responses, excluded=tuple(left_out)), judgments, [criterion()])
    assert {one.run_id: one.mean.value for one in rows} == means
    for one in rows:
        answered = means[one.run_id] is not None
        assert (one.counts["n"], one.counts["unanswered"]) == (int(answered), int(not answered))


def ungradable(reason: str, *, honest: int = 2) -> tuple[Pool, list[Judgment | Failure]]:
    """A run with one response of the top grade and 15 failures, beside a run with 16 equal grades."""
    items, results = [], []
    for turn in range(16):
        own = pooled(f"R{turn}", f"{turn // 2}_{turn}", ("own", 1))
        other = pooled(f"R{turn + 16}", f"{turn // 2}_{turn}", ("honest", 1))
        items += [own, other]
        results += [failure(own, reason=reason) if turn else judgment(own, 3), judgment(other, honest)]
    return pool(*items), results


@pytest.mark.parametrize(
    "reason",
    ["unreadable", "refused", "truncated", "content_filter", "context_length", "no_passages", "provider_error"],
)
def test_a_run_gains_nothing_by_responses_that_nobody_can_grade(reason: str) -> None:
    rows = leaderboard(*ungradable(reason), [criterion()])
    assert [(one.rank, one.run_id, one.mean.value, one.bound, one.flags[:1]) for one in rows] == [
        (1, "honest", 2.0, 2.0, ()),
        (2, "own", 3.0, 3 / 16, ("MISSING",)),
    ]
    assert (rows[1].counts["missing"], rows[1].reasons) == (15, {reason: 15})
    assert rows[1].counts["harness"] == (15 if reason == "provider_error" else 0)
    lower = leaderboard(*ungradable(reason, honest=1), [criterion(polarity="lower")])
    assert [(one.rank, one.run_id, one.bound) for one in lower] == [(1, "honest", 1.0), (2, "own", (3 + 15 * 3) / 16)]


def test_unanswered_and_unable_turns_count_against_a_run_too() -> None:
    a, b, c = (pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(3))
    (found,) = leaderboard(
        pool(a, b), [judgment(a, 3), judgment(b, -1, unable=True)], [criterion()], expected={"x": ["0_1", "1_1", "2_1"]}
    )
    assert (found.mean.value, found.bound, found.flags) == (3.0, 3 / 3, ("MISSING",))
    (found,) = leaderboard(pool(a, b, c), [failure(a), failure(b), failure(c)], [criterion()])
    assert (found.mean.value, found.bound, found.rank) == (None, 0.0, 1)


def test_a_spent_budget_counts_against_nobody() -> None:
    here, results = ungradable("budget")
    rows = leaderboard(here, results, [criterion()])
    assert [(one.rank, one.run_id, one.bound, one.flags) for one in rows] == [
        (1, "own", 3.0, ("HARNESS",)),
        (2, "honest", 2.0, ()),
    ]


def test_a_provider_that_fails_on_every_response_of_a_turn_counts_against_nobody() -> None:
    turns = [[pooled(f"{run}{turn}", f"{turn}_1", (run, 1)) for run in "xy"] for turn in range(2)]
    (x0, y0), (x1, y1) = turns
    here = pool(x0, y0, x1, y1)
    down = [failure(x1, reason="provider_error"), failure(y1, reason="provider_error")]
    rows = leaderboard(here, [judgment(x0, 3), judgment(y0, 2), *down], [criterion()])
    assert [(one.run_id, one.bound, one.flags) for one in rows] == [("x", 3.0, ("HARNESS",)), ("y", 2.0, ("HARNESS",))]
    # Where another run's response of the turn was judged, the response itself may be to blame.
    rows = leaderboard(here, [judgment(x0, 3), judgment(y0, 2), down[0], judgment(y1, 2)], [criterion()])
    assert [(one.run_id, one.bound, one.flags) for one in rows] == [
        ("y", 2.0, ()),
        ("x", 3 / 2, ("MISSING", "HARNESS")),
    ]


def test_a_trial_ranks_by_its_sample_and_keeps_the_share_of_unanswered_turns() -> None:
    """Of 8 turns x answered 6; 2 were asked about, with 3 and a failure: (6 · 3/2 + 2 · 0) / 8."""
    responses = [pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(6)]
    silent = pooled("R9", "0_1", ("unasked", 1))
    expected = {"x": [f"{i}_1" for i in range(8)], "unasked": ["0_1"]}
    rows = leaderboard(
        pool(*responses, silent), [judgment(responses[0], 3), failure(responses[1])], [criterion()], expected=expected
    )
    assert [(one.rank, one.run_id, one.bound, one.flags) for one in rows] == [
        (1, "x", 6 * (3 / 2) / 8, ("MISSING", "TRIAL")),
        (None, "unasked", None, ("TRIAL",)),
    ]


def test_every_format_shows_both_means_and_the_flag() -> None:
    rows = leaderboard(*ungradable("no_passages"), [criterion()])
    line = [line.split("\t") for line in records_tsv(COLUMNS, rows, 4).splitlines()][2]
    assert {"3.0000", "0.1875", "15 no_passages", "MISSING"} <= set(line)
    markdown = leaderboard_markdown(rows, "banner", [criterion()])
    assert "| 2 | own | 3.000 |" in markdown
    assert "| 0.188 |" in markdown
    assert "| 15 missing (no_passages) | MISSING |" in markdown
    assert (rows.to_dicts()[1]["bound"], rows.to_dicts()[1]["flags"]) == (3 / 16, ["MISSING"])
    assert "<td>[&#x27;MISSING&#x27;]</td>" in rows._repr_html_()


def test_the_terminal_shows_both_means_and_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    print_leaderboard(leaderboard(*ungradable("no_passages"), [criterion()]), [criterion()], "UNCALIBRATED\x1b[2J")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "UNCALIBRATED\\x1b[2J"
    place = next(place for place, line in enumerate(lines) if line.startswith("2     own"))
    assert {"3.000", "0.188", "1/16"} <= set(lines[place].split())
    assert lines[place + 1] == "      15 missing (no_passages); MISSING"
    assert any(line.startswith("MISSING: turns without a grade count against the run") for line in lines)


def test_the_share_of_all_turns_is_that_of_trec_eval_from_the_published_files(tmp_path: Path) -> None:
    """Oracle: P(rel=2)@1 of ir-measures, which averages over all turns of the qrels as `trec_eval -c` does."""
    import ir_measures

    draw = random.Random(7)
    items, results = [], []
    for turn in range(12):
        for place, run_id in enumerate(("a", "b", "deep")):
            if draw.random() < 0.3:
                continue
            for rank in range(1, 3 if run_id == "deep" else 2):
                one = pooled(f"R{turn:02}{place}{rank}", f"{turn}_1", (run_id, rank))
                items.append(one)
                if draw.random() < 0.8:
                    results.append(judgment(one, draw.choice([0, 1, 2, 3])))
    # The first choice of a run is excluded, so that a lower one stands first in its file.
    here = pool(*(one for one in items if one.response_id != "R0021"), excluded=(excluded("deep", "0_1"),))
    results = [one for one in results if one.response_id != "R0021"]
    rows = {one.run_id: one for one in leaderboard(here, results, [criterion()])}
    qrels = put(tmp_path / "x.qrel", qrels_text(results, criterion()))
    measure = ir_measures.P(rel=2) @ 1
    for run_id, found in rows.items():
        entries = [(r.turn_id, r.response_id, e.rank) for r in here.responses for e in r.runs if e.run_id == run_id]
        file = put(tmp_path / f"{run_id}.run", response_run(run_id, entries))
        read = list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(file)))
        assert found.more["share_of_turns"] == pytest.approx(ir_measures.calc_aggregate([measure], *read)[measure])
        assert 0 < found.more["share_of_turns"] < share_positive(found)


def test_runs_stand_best_bound_first_then_in_natural_order_and_the_unjudged_last() -> None:
    responses = [pooled(f"R{i}", "1_1", (run_id, 1)) for i, run_id in enumerate(["run10", "run2", "top", "none"])]
    results = [judgment(responses[0], 2), judgment(responses[1], 2), judgment(responses[2], 3), failure(responses[3])]
    order = [one.run_id for one in leaderboard(pool(*responses), results, [criterion()])]
    assert order == ["top", "run2", "run10", "none"]
    # A run without any grade has the worst bound, 3 where lower is better, and shares it with `top`.
    order = [(one.rank, one.run_id) for one in leaderboard(pool(*responses), results, [criterion(polarity="lower")])]
    assert order == [(1, "run2"), (1, "run10"), (3, "none"), (3, "top")]


def test_criteria_stand_in_the_order_given_and_do_not_mix() -> None:
    a = pooled("R0", "1_1", ("x", 1))
    results = [judgment(a, 3), judgment(a, 1, name="naturalness"), judgment(a, 0, variant="other")]
    rows = leaderboard(pool(a), results, [criterion("naturalness"), criterion()])
    assert [(one.criterion, one.mean.value) for one in rows] == [("naturalness", 1.0), ("groundedness", 3.0)]


def test_the_expected_mean_is_given_only_if_every_graded_response_has_one() -> None:
    a, b, c = (pooled(f"R{i}", f"{i}_1", ("x", 1)) for i in range(3))
    whole = [judgment(a, 3, expected=2.5), judgment(b, 1, expected=1.25), judgment(c, -1, unable=True)]
    (found,) = leaderboard(pool(a, b, c), whole, [criterion()])
    assert found.more.get("expected_mean") == (2.5 + 1.25) / 2
    (found,) = leaderboard(pool(a, b, c), [*whole[:2], judgment(c, 2)], [criterion()])
    assert found.more.get("expected_mean") is None


def test_two_judgments_of_one_response_are_an_error() -> None:
    a = pooled("R0", "1_1", ("x", 1))
    with pytest.raises(ValueError, match="R0 has two judgments under groundedness/graded"):
        leaderboard(pool(a), [judgment(a, 3), judgment(a, 3)], [criterion()])
    with pytest.raises(ValueError, match="two prompts"):
        leaderboard(pool(a), [], [criterion(), criterion(variant="other")])


def test_the_tsv_has_four_decimals_and_empty_fields_where_undefined() -> None:
    undefined = Estimate(None, None, None, 0, 0, "no grades")
    rows = [
        row("x"),
        row(
            "y", mean=undefined, n=0, unable=0, missing=9, not_asked=75, unanswered=0, expected_mean=None, positive=0,
            rank=None, bound=None, share_of_turns=0.0, harness=0, reasons={"unreadable": 9},
            flags=("MISSING", "TRIAL"),
        ),
    ]  # fmt: skip
    head, first, second = (line.split("\t") for line in records_tsv(COLUMNS, rows, 4).splitlines())
    assert tuple(head) == tuple(COLUMNS)
    assert dict(zip(head, first, strict=True)) == {
        "run_id": "x", "criterion": "groundedness", "rank": "1", "turns": "84", "n": "73", "unable": "3",
        "missing": "4", "harness": "1", "not_asked": "0", "unanswered": "4", "coverage": "0.9048",
        "mean": "2.5000", "low": "2.2500", "high": "2.7500", "topics": "23", "bound": "2.1726",
        "expected_mean": "2.4375", "positive": "65", "share_positive": "0.8904", "share_of_turns": "0.2982",
        "reasons": "1 provider_error, 3 refused", "flags": "MISSING HARNESS", "note": "",
    }  # fmt: skip
    assert dict(zip(head, second, strict=True)) == {
        "run_id": "y", "criterion": "groundedness", "rank": "", "turns": "84", "n": "0", "unable": "0",
        "missing": "9", "harness": "0", "not_asked": "75", "unanswered": "0", "coverage": "0.0000",
        "mean": "", "low": "", "high": "", "topics": "0", "bound": "", "expected_mean": "",
        "positive": "0", "share_positive": "", "share_of_turns": "0.0000", "reasons": "9 unreadable",
        "flags": "MISSING TRIAL", "note": "no grades",
    }  # fmt: skip


def test_a_negative_zero_loses_its_sign() -> None:
    assert "-0.0000" not in records_tsv(COLUMNS, [row("x", expected_mean=-0.00001)], 4)


def test_the_share_is_printed_with_positive_and_other_counts() -> None:
    table = board([row("run-4", mean=Estimate(2.5, None, None, 73, 23, "all grades equal"))])
    assert dict(zip(table.names, *table.cells(), strict=True)) == {
        "rank": "1", "run": "run-4", "mean": "2.500", "95 % interval": "all grades equal", "bound": "2.173",
        "positive": "0.89 (65/8)", "all turns": "0.30", "expected": "2.438", "n/turns": "73/84", "coverage": "0.90",
        "no grade": "3 unable, 3 missing (refused), 1 harness (provider_error), 4 unanswered",
        "flags": "MISSING HARNESS",
    }  # fmt: skip


def test_markdown_has_a_table_a_criterion_under_the_banner() -> None:
    whole = {"n": 84, "unable": 0, "missing": 0, "unanswered": 0, "positive": 84,
             "bound": 2.5, "share_of_turns": 1.0, "harness": 0, "reasons": {}, "flags": ()}  # fmt: skip
    rows = [row("b"), row("a"), row("b", criterion="naturalness", expected_mean=None, **whole)]
    text = leaderboard_markdown(rows, "UNCALIBRATED", [criterion(polarity="lower", positive=(0, 1))])
    table, notes = text[: text.index("\nrank:")], text[text.index("\nrank:") :]
    assert table == (
        "# Leaderboard\n\n**UNCALIBRATED**\n\n## groundedness\n\n"
        "Prompt groundedness/graded, grades 0, 1, 2, 3: lower is better; positive: 0, 1 "
        "(share, then positive and other counts).\n\n"
        "| rank | run | mean | 95 % interval | bound | positive | all turns | expected | n/turns | coverage | no grade "
        "| flags |\n"
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
        "| 1 | b | 2.500 | [2.250, 2.750] | 2.173 | 0.89 (65/8) | 0.30 | 2.438 | 73/84 | 0.90 "
        "| 3 unable, 3 missing (refused), 1 harness (provider_error), 4 unanswered | MISSING HARNESS |\n"
        "| 1 | a | 2.500 | [2.250, 2.750] | 2.173 | 0.89 (65/8) | 0.30 | 2.438 | 73/84 | 0.90 "
        "| 3 unable, 3 missing (refused), 1 harness (provider_error), 4 unanswered | MISSING HARNESS |\n"
        "\n## naturalness\n\n"
        "| rank | run | mean | 95 % interval | bound | positive | all turns | expected | n/turns | coverage | no grade "
        "| flags |\n"
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
        "| 1 | b | 2.500 | [2.250, 2.750] | 2.500 | 1.00 (84/0) | 1.00 | - | 84/84 | 1.00 | - | - |\n"
    )
    assert notes.endswith(
        "\nMISSING: turns without a grade count against the run in its bound and its rank.\n"
        "\nHARNESS: the provider failed, the server cut a prompt or the budget was spent; the same command asks again, "
        "and ranks may change.\n"
    )
    assert "from 3 topics on" in notes
    assert "`9-1` and `9-2`, two personas of one theme, count as two topics" in notes


@pytest.mark.parametrize(
    ("run_id", "shown"),
    [
        ("run_4-GPT_4", "run_4-GPT_4"),
        ("a|b", r"a\|b"),
        ("a\n| evil | 9.9 |", r"a\\n\| evil \| 9.9 \|"),
        ("`x`", r"\`x\`"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("[x](http://evil)", r"\[x\](http\://evil)"),
        ("**best**", r"\*\*best\*\*"),
        ("_best_", r"\_best\_"),
        ("a\u202eb", r"a\\u202eb"),
    ],
)
def test_a_hostile_run_id_shows_as_itself_in_markdown(run_id: str, shown: str) -> None:
    lines = leaderboard_markdown([row(run_id)], "banner").splitlines()
    assert any(line.startswith(f"| 1 | {shown} | 2.500 |") for line in lines)


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.integers(0, 3)), max_size=20),
    st.randoms(use_true_random=False),
)
def test_the_leaderboard_does_not_depend_on_the_order_of_responses_or_results(given_items, shuffle) -> None:
    turns: dict[str, int] = {}
    responses, results = [], []
    for i, (run_id, topic, grade) in enumerate(given_items):
        turns[run_id] = turns.get(run_id, 0) + 1
        responses.append(pooled(f"R{i}", f"{topic}_{turns[run_id]}", (run_id, 1)))
        results.append(judgment(responses[-1], grade))
    rows = leaderboard(pool(*responses), results, [criterion()])
    shuffle.shuffle(responses)
    shuffle.shuffle(results)
    assert leaderboard(pool(*responses), results, [criterion()]) == rows
    assert sum(one.counts["n"] for one in rows) == len(given_items)
    for one in rows:
        assert (
            one.counts["turns"]
            == one.counts["n"]
            + one.counts["unable"]
            + one.counts["missing"]
            + one.counts["not_asked"]
            + one.counts["unanswered"]
        )
        assert one.counts["turns"] == len({response.turn_id for response in responses})


def test_ikat_2023_groundedness_has_the_published_order_only_with_its_inverted_polarity(shared: Path) -> None:
    """The released GPT-4 judgments of five runs x 73 turns."""
    file = shared / "ikat" / "2023" / "gpt4_judgments" / "groundedness_judgement-gpt4.txt"
    lines = [line.split("\t")[-3:] for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    responses = [pooled(f"R{i:05}", turn_id, (run_id, 1)) for i, (turn_id, run_id, _) in enumerate(lines)]
    results = [judgment(response, int(grade)) for response, (_, _, grade) in zip(responses, lines, strict=True)]
    rows = leaderboard(pool(*responses), results, [criterion(grades=range(2), polarity="lower", positive=(0,))])
    assert [(one.run_id.lower(), next(board([one]).cells())[5]) for one in rows] == [
        ("run-4-gpt-4", "0.89 (65/8)"),
        ("georgetown_infosense_ikat_run_3", "0.68 (50/23)"),
        ("uot-yahoo_run_llmnoptkb", "0.67 (49/24)"),
        ("run_automatic_dense_monot5", "0.51 (37/36)"),
        ("llama2_only_10_docs", "0.32 (23/50)"),
    ]
    assert [round(share_positive(one), 4) for one in rows] == [0.8904, 0.6849, 0.6712, 0.5068, 0.3151]
    # Topic-bootstrap percentile intervals of the shares; the mean is 1 - share.
    bootstrap = [(0.806, 0.956), (0.577, 0.786), (0.552, 0.774), (0.414, 0.584), (0.186, 0.458)]
    for one, (low, high) in zip(rows, bootstrap, strict=True):
        assert (one.mean.n, one.mean.topics) == (73, 23)
        # On log odds the end near the scale's end reaches farther to the middle than a percentile does: by .024.
        assert (1 - one.mean.high, 1 - one.mean.low) == pytest.approx((low, high), abs=0.025)


def test_a_leaderboard_of_dialogues_is_over_topics_and_says_so() -> None:
    of_dialogues = msgspec.structs.replace(criterion(), unit="dialogue")
    first, second, third = (
        msgspec.structs.replace(pooled(response_id, turn_id, (run_id, 1)), unit="dialogue")
        for response_id, turn_id, run_id in (
            ("R00000", "1-1_2~0123456789abcdef", "a"),
            ("R00001", "1-1_2~fedcba9876543210", "b"),
            ("R00002", "2-1_3~0123456789abcdef", "a"),
        )
    )
    expected = {"a": [first.turn_id, third.turn_id], "b": [second.turn_id, "2-1_0~unreached"]}
    judged = [judgment(first, 3), judgment(second, 3), judgment(third, 0)]
    rows = leaderboard(pool(first, second, third), judged, [of_dialogues], expected=expected)
    # a: (3 + 0) / 2; b: 3 and the worst grade, 0, for the topic in which it said nothing.
    assert [(row.run_id, row.counts["n"], row.counts["turns"], row.mean.value, row.bound) for row in rows] == [
        ("a", 2, 2, 1.5, 1.5),
        ("b", 1, 2, 3.0, 1.5),
    ]
    # One of two topics is positive for each, though the pool has three dialogues.
    assert [row.more.get("share_of_turns") for row in rows] == [0.5, 0.5]
    assert rows[1].flags == ("UNREACHED",)
    text = leaderboard_markdown(rows, "", [of_dialogues])
    assert "| bound | positive | all topics | expected | n/topics |" in text
    assert "with the worst\ngrade for each topic without one; so a run gains nothing by dialogues that nobody" in text
    assert not re.search(r"\b([Tt]urns?|[Rr]esponses?)\b(?! runs)", text)
    text = leaderboard_markdown(rows, "", [criterion()])
    assert "| bound | positive | all turns | expected | n/turns |" in text
    assert "topic without" not in text and "dialogue" not in text
