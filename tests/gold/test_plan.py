"""Plans: inclusion probabilities as stated, sizes as fixed, no run left short; and each item dealt as it should be."""

import json
import math
from collections import Counter
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.ask.records import Judgment
from judge.errors import InputError, UsageError
from judge.gold import dealing, sampling, strata, uncertainty
from judge.gold import plan as plans
from judge.gold.rows import GoldRow, text_digest
from judge.io.files import jsonl_bytes
from judge.pool.records import Pool, PooledResponse
from tests import calibration_world as world
from tests.calibration_world import judgment

CRITERIA = ("groundedness",)


def pooled(number: int, turn_id: str, *runs: str) -> PooledResponse:
    return world.pooled(f"R{number:05d}", f"text {number}", *runs, turn_id=turn_id)


def grid(topics: int, turns: int, runs: int, skip: int = 0) -> Pool:
    """Every run answers every turn with a text of its own, but the last run only the turns past the first `skip`."""
    turn_ids = [f"{topic}_{turn}" for topic in range(topics) for turn in range(turns)]
    cells = [(t, r) for t in range(len(turn_ids)) for r in range(runs) if r < runs - 1 or t >= skip]
    return Pool(tuple(pooled(n, turn_ids[t], f"run{r}") for n, (t, r) in enumerate(cells)), {}, ())


def judged(
    response: PooledResponse, grade: int = 0, judge: str = "b/m", probabilities: dict[str, float] | None = None
) -> Judgment:
    return judgment(response.turn_id, response.response_id, grade, judge, probabilities=probabilities)


def turns_of(plan) -> set[str]:
    return {row.turn_id for row in plan.rows}


def test_probabilities_follow_the_sizes_and_never_pass_one() -> None:
    # 3 of 4: the large one is certain; 2 of the other three with 2/6, 2/6, 2/6 of the size left.
    assert sampling.inclusion(np.array([9.0, 2, 2, 2]), 3) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3])
    # With 8 certain, 3 is 2 · 3/5 > 1 and certain too; the others share the last draw.
    assert sampling.inclusion(np.array([8.0, 3, 1, 1]), 3) == pytest.approx([1, 1, 0.5, 0.5])
    assert sampling.inclusion(np.ones(4), 4).tolist() == [1, 1, 1, 1]


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.data())
def test_probabilities_add_up_to_the_draws_and_keep_the_order_of_sizes(sizes: list[float], data: st.DataObject) -> None:
    draws = data.draw(st.integers(1, len(sizes)))
    found = sampling.inclusion(np.array(sizes), draws)
    assert found.sum() == pytest.approx(draws)
    assert found.min() > 0 and found.max() <= 1
    assert (np.diff(found[np.argsort(sizes)]) >= -1e-12).all()


def test_a_point_belongs_to_the_interval_that_begins_at_it() -> None:
    half = np.full(4, 0.5)
    assert sampling.systematic(half, 0.0).tolist() == [True, False, True, False]
    assert sampling.systematic(half, 0.5).tolist() == [False, True, False, True]
    assert sampling.systematic(np.array([1.0, 0.25, 0.75]), 0.3).tolist() == [True, False, True]


@given(st.lists(st.floats(0.01, 9), min_size=2, max_size=12), st.data())
def test_a_sample_is_of_fixed_size_for_every_start(sizes: list[float], data: st.DataObject) -> None:
    draws = data.draw(st.integers(1, len(sizes)))
    start = data.draw(st.floats(0, 1, exclude_max=True))
    assert sampling.systematic(sampling.inclusion(np.array(sizes), draws), start).sum() == draws


@given(st.lists(st.integers(1, 9), min_size=2, max_size=8), st.data())
def test_the_fewest_over_all_starts_is_what_trying_starts_finds(sizes: list[int], data: st.DataObject) -> None:
    probabilities = sampling.inclusion(np.array(sizes, dtype=float), data.draw(st.integers(1, len(sizes))))
    pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))
    answers = np.array(data.draw(st.lists(pairs, min_size=len(sizes), max_size=len(sizes))))
    # Between every two places where the sample can change, and at 0.
    places = np.unique(np.concatenate([[0.0, 1.0], (np.cumsum(probabilities) % 1.0).round(9) % 1.0]))
    starts = [0.0, *((places[:-1] + places[1:]) / 2)]
    tried = np.min([answers[sampling.systematic(probabilities, start)].sum(axis=0) for start in starts], axis=0)
    assert sampling.fewest(probabilities, answers).tolist() == tried.tolist()


BY_GRADE = {(0, 0): 8, (1, 0): 2, (0, 1): 5, (1, 1): 5}


# Under independent units 0.9999 of a chi-square with 12 or 32 degrees is below these; fixed size makes it smaller.
@pytest.mark.long
@pytest.mark.parametrize(
    ("errors", "unit", "kinds", "most"), [(None, "turn_id", 7, 39), (BY_GRADE, "response_id", 3, 70)]
)
def test_stated_probabilities_are_those_of_many_draws(errors, unit: str, kinds: int, most: float) -> None:
    # Uneven uncertainty, runs that miss turns: orders are redrawn, and probabilities must stand all the same.
    pool = grid(4, 3, 3, skip=4)
    judgments = [
        judged(response, int(number % 3 == 0), probabilities={"0": 1 - p, "1": p})
        for number, response in enumerate(pool.responses)
        if errors is None or number % 5
        for p in [0.02 + 0.48 * (number % 7) / 6]
    ]
    draws, counts, stated = 3000, Counter(), {}
    for seed in range(draws):
        rows = plans.make_plan(pool, 16, seed, criteria=CRITERIA, judgments=judgments, per_run=2, errors=errors).rows
        drawn = {getattr(row, unit): row.inclusion_probability for row in rows}
        assert len(drawn) == (16 if errors else 6)
        stated |= drawn
        counts.update(drawn.keys())
    assert len(stated) == (32 if errors else 12)
    assert math.fsum(stated.values()) == pytest.approx(16 if errors else 6)
    assert len({round(p, 6) for p in stated.values()}) >= kinds
    assert sum((counts[of] - draws * p) ** 2 / (draws * p * (1 - p)) for of, p in stated.items()) < most


def test_all_runs_have_the_same_turns() -> None:
    plan = plans.make_plan(grid(5, 4, 3), 30, 1, criteria=CRITERIA)
    assert len(plan.rows) == 30
    by_run = {run: {row.turn_id for row in plan.rows if run in row.runs} for run in ("run0", "run1", "run2")}
    assert by_run["run0"] == by_run["run1"] == by_run["run2"]
    assert [row.inclusion_probability for row in plan.rows] == pytest.approx([0.5] * 30)
    assert {row.stratum for row in plan.rows} == {"drawn"}


@pytest.mark.parametrize("seed", range(20))
def test_topics_get_about_their_share(seed: int) -> None:
    # 2.5 of the 5 turns of each topic: systematically 2 or 3.
    turns = turns_of(plans.make_plan(grid(6, 5, 2), 30, seed, criteria=CRITERIA))
    assert set(Counter(turn.partition("_")[0] for turn in turns).values()) <= {2, 3}


# The last run answers 12 of 20 turns: half the turns would give it 6 on average, 5 are asked for; or it answers 2.
@pytest.mark.parametrize(("skip", "n", "asked", "least"), [(8, 16, 5, 5), (18, 38, 10, 2)])
@pytest.mark.parametrize("seed", range(30))
def test_a_run_that_misses_turns_still_gets_its_responses(seed: int, skip: int, n: int, asked: int, least: int) -> None:
    plan = plans.make_plan(grid(4, 5, 2, skip=skip), n, seed, criteria=CRITERIA, per_run=asked)
    assert Counter(run for row in plan.rows for run in row.runs)["run1"] >= least


@pytest.mark.parametrize("skip", [0, 8])
def test_too_few_are_refused_with_a_number_that_would_do(skip: int) -> None:
    pool = grid(4, 5, 3, skip=skip)
    with pytest.raises(
        UsageError, match=r"--n 9 is about 3 of 20 turns, too few for 10 responses of every run"
    ) as caught:
        plans.make_plan(pool, 9, 4, criteria=CRITERIA, per_run=10)
    with pytest.raises(UsageError, match=rf"^--n 9 is about 9 of {len(pool.responses)} responses, too few for 10"):
        plans.make_plan(pool, 9, 4, criteria=CRITERIA, per_run=10, errors={})
    would_do = int(str(caught.value).partition(": --n ")[2].partition(" ")[0])
    assert 30 <= would_do <= 60
    plan = plans.make_plan(pool, would_do, 4, criteria=CRITERIA, per_run=10)
    assert min(Counter(run for row in plan.rows for run in row.runs).values()) >= 10
    assert plan.warnings == ()


@pytest.mark.parametrize(("n", "least", "topics"), [(9, 3, 3), (6, 2, 2), (1, 1, 1)])
def test_without_a_number_for_each_run_less_is_drawn_and_told(n: int, least: int, topics: int) -> None:
    """Three runs of 4 topics with 5 turns each: each turn that is drawn gives each run a response."""
    plan = plans.make_plan(grid(4, 5, 3), n, 4, criteria=CRITERIA)
    few, *others = plan.warnings
    assert f"too few for 10 responses of every run, so each has at least {least}; --n 30 suffices for 10" in few
    assert len({row.topic_id for row in plan.rows}) == topics
    told = "with fewer than 3, nothing that is estimated from them has an interval"
    assert [other.partition(": ")[2] for other in others] == ([told] if topics < 3 else [])


def test_asked_for_more_than_there_is_everything_is_certain() -> None:
    plan = plans.make_plan(grid(2, 3, 2), 1000, 0, criteria=CRITERIA)
    assert len(plan.rows) == plan.frame == 12
    assert {(row.inclusion_probability, row.stratum) for row in plan.rows} == {(1.0, "certain")}


def test_a_row_names_the_response_and_what_to_label() -> None:
    pool = Pool((pooled(7, "9-1_2", "a", "b"),), {}, ())
    (row,) = plans.make_plan(pool, 1, 0, criteria=("groundedness", "naturalness"), per_run=1).rows
    assert json.loads(msgspec.json.encode(row)) == {
        "turn_id": "9-1_2", "topic_id": "9-1", "response_id": "R00007", "text_sha256": text_digest("text 7"),
        "runs": ["a", "b"], "criteria": ["groundedness", "naturalness"], "inclusion_probability": 1.0,
        "stratum": "certain",
    }  # fmt: skip


def gold(response: PooledResponse, criterion: str = "groundedness") -> GoldRow:
    return GoldRow(response.turn_id, response.topic_id, criterion, 1, "ann", text_sha256=text_digest(response.text))


def test_graded_responses_are_left_out_and_count_for_their_runs() -> None:
    pool = grid(4, 5, 2)
    done = [gold(response) for response in pool.responses[:16]]
    # 8 turns are graded, so that 2 more give each run its 10.
    plan = plans.make_plan(pool, 4, 0, criteria=CRITERIA, gold=done)
    assert (plan.frame, plan.frame_turns, plan.graded, plan.turns) == (24, 12, 16, 2)
    assert {row.response_id for row in plan.rows}.isdisjoint(r.response_id for r in pool.responses[:16])


def test_only_the_criteria_without_a_grade_are_planned() -> None:
    pool = grid(1, 2, 1)
    plan = plans.make_plan(
        pool, 2, 0, criteria=("groundedness", "naturalness"), gold=[gold(pool.responses[0])], per_run=1
    )
    assert [row.criteria for row in plan.rows] == [("naturalness",), ("groundedness", "naturalness")]


def test_a_pool_with_nothing_left_is_refused() -> None:
    pool = grid(1, 2, 1)
    with pytest.raises(UsageError, match="the judgments have no grade of a response that is left to label"):
        plans.make_plan(pool, 2, 0, criteria=CRITERIA, errors=BY_GRADE)
    for here, done in ((pool, [gold(r) for r in pool.responses]), (Pool((), {}, ()), [])):
        with pytest.raises(InputError, match="nothing is left to label"):
            plans.make_plan(here, 2, 0, criteria=CRITERIA, gold=done)


def test_uncertainty_is_the_normal_entropy_of_the_labels() -> None:
    a, b, c = grid(1, 3, 1).responses
    even, sure = {"0": 0.5, "1": 0.5}, {"0": 1.0, "1": 0.0}
    judgments = [judged(a, probabilities=even), judged(b, probabilities=sure)]
    shares, kind = uncertainty.turn_uncertainty(judgments, [a.turn_id, b.turn_id, c.turn_id], CRITERIA)
    # 1, 0, and for the turn without judgments their mean ½: thirds of 1.5.
    assert (shares.tolist(), kind) == (pytest.approx([2 / 3, 0, 1 / 3]), "entropy")


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"),
    # Variances 1 and ¼; of one judgment, or of equal ones, there is none.
    [([0, 2], [1, 2], ([0.8, 0.2], "variance")), *((of_a, [], ([0.5, 0.5], "none")) for of_a in ([], [0], [1, 1]))],
)
def test_without_label_probabilities_uncertainty_is_the_variance_between_judges(of_a, of_b, expected) -> None:
    a, b = grid(1, 2, 1).responses
    judgments = [judged(of, grade, f"j{n}") for of, given in ((a, of_a), (b, of_b)) for n, grade in enumerate(given)]
    shares, kind = uncertainty.turn_uncertainty(judgments, [a.turn_id, b.turn_id], CRITERIA)
    assert (pytest.approx(shares.tolist()), kind) == expected


def test_half_of_a_size_is_the_same_for_all_turns() -> None:
    pool = grid(1, 4, 1)
    judgments = [judged(pool.responses[0], probabilities={"0": 0.5, "1": 0.5})]
    judgments += [judged(response, probabilities={"0": 1.0, "1": 0.0}) for response in pool.responses[1:]]
    stated = {}
    for seed in range(40):
        for row in plans.make_plan(pool, 1, seed, criteria=CRITERIA, judgments=judgments, per_run=1).rows:
            stated[row.turn_id] = row.inclusion_probability
    # ½·¼ + ½·1 and three times ½·¼.
    assert stated == {"0_0": pytest.approx(0.625), **{f"0_{n}": pytest.approx(0.125) for n in (1, 2, 3)}}


@settings(max_examples=20)
@given(st.permutations(list(grid(3, 3, 2).responses)), st.integers(0, 5))
def test_the_pools_order_changes_nothing(responses: list[PooledResponse], seed: int) -> None:
    plan = plans.make_plan(Pool(tuple(responses), {}, ()), 8, seed, criteria=CRITERIA, per_run=1)
    again = plans.make_plan(grid(3, 3, 2), 8, seed, criteria=CRITERIA, per_run=1)
    assert turns_of(plan) == turns_of(again)


def test_a_plan_survives_being_written() -> None:
    plan = plans.make_plan(grid(3, 3, 2), 8, 0, criteria=CRITERIA, per_run=1)
    assert plans.read_plan(jsonl_bytes(plan.rows), "p") == plan.rows


PLAN = jsonl_bytes(plans.make_plan(grid(1, 1, 1), 1, 0, criteria=CRITERIA, per_run=1).rows)
WRONG = [PLAN.replace(b"1.0", probability) for probability in (b"0", b"1.5", b"-1", b"1e-310")]


@pytest.mark.parametrize("content", [b"{}\n", *WRONG])
def test_what_is_no_plan_is_an_input_error(content: bytes) -> None:
    assert plans.read_plan(PLAN, "p")
    with pytest.raises(InputError, match="not usable as a plan"):
        plans.read_plan(content, "p")


GPT = ((559, 1460, 319), (56, 1162, 434), (45, 847, 1860))
"""GPT-5.5's support grades (columns) of 6,742 citations of TREC RAG 2024, and people's (rows): castorini/RAGDoll."""


def test_the_saving_of_gpt_is_what_its_published_matrix_gives() -> None:
    errors = {(human, judge): n for human, row in enumerate(GPT) for judge, n in enumerate(row)}
    of = np.array([strata.by_grade(errors, range(3))[grade] for (_, grade), n in errors.items() for _ in range(n)])
    judged, means, same, variances, unlike = of.T
    # 660, 3,469 and 2,613 citations have grades 0, 1 and 2, of which people share 559, 1,162 and 1,860: .847, .335 and
    # .712, in all .531. (660 · .847 · .153 + 3469 · .335 · .665 + 2613 · .712 · .288) / 6742 = .2068 is 17 % less than
    # .531 · .469 = .2490. Of a thousandth, a thousandth less is saved.
    about = np.full(len(of), 0.001), judged.astype(int), np.ones(len(of))
    assert strata.saving(*about, same, unlike) == pytest.approx(0.999 * (1 - 0.2068 / 0.2490), abs=0.001)
    # 27 % of the variance of people's grades is between the judge's, nearly all of it on a line, which λ takes.
    assert strata.saving(*about, means, variances) == pytest.approx(0.27, abs=0.005)
    assert strata.saving(*about, means, variances, judged) == pytest.approx(0.0024, abs=0.001)


@pytest.mark.parametrize("seed", range(5))
# With one more label, spread as all are, people say 1 to 2.35 of 11 at grade 0 and to 5.35 of 11 at grade 1: spreads of
# √(2.35 · 8.65) : √(5.35 · 5.65) = .820 : 1, so of 30 from 40 and 40 come 13.52 and 16.48. Else each has its share.
@pytest.mark.parametrize(("errors", "shares"), [(BY_GRADE, (0.338, 0.412)), ({}, (0.375, 0.375))])
def test_each_run_and_grade_has_its_share_and_more_where_people_differ(errors, shares, seed: int) -> None:
    judgments = [judged(response, int(n % 4 < 2)) for n, response in enumerate(grid(8, 5, 2).responses)]
    plan = plans.make_plan(grid(8, 5, 2), 30, seed, criteria=CRITERIA, judgments=judgments, errors=errors)
    share = dict(zip(("grade 0", "grade 1"), shares, strict=True))
    assert {row.stratum: row.inclusion_probability for row in plan.rows} == pytest.approx(share, abs=0.001)
    cells = Counter((row.runs, row.stratum) for row in plan.rows)
    assert len(cells) == 4 and all(abs(n - 20 * share[grade]) < 1 for (_, grade), n in cells.items())
    assert plan.saving is None if not errors else plan.saving[1] > 0


def test_citations_of_a_response_and_of_those_that_share_one_are_drawn_together() -> None:
    shown = [pooled(1, "1_1", "a"), pooled(2, "1_1", "a", "b"), pooled(3, "1_1", "b"), pooled(4, "1_1", "c")]
    shown += [pooled(5, "2_1", "a"), pooled(6, "2_1", "b"), pooled(7, "2_1", "c")]
    pool = Pool(tuple(msgspec.structs.replace(each, unit="citation") for each in shown), {}, ())
    sets = {
        frozenset(int(row.response_id[1:]) for row in plan.rows)
        for plan in (plans.make_plan(pool, 1, seed, criteria=CRITERIA, per_run=0, errors={}) for seed in range(30))
    }
    assert sets == {frozenset(of) for of in ((1, 2, 3), (4,), (5,), (6,), (7,))}
    # What is drawn is a response with all its citations; one of five is not of all three runs.
    few = plans.make_plan(pool, 1, 1, criteria=CRITERIA, errors={}).warnings[0]
    told = "is about 1 of 5 responses, too few for 10 responses of every run, so some may have none"
    assert told in few
    with pytest.raises(UsageError, match="too few for 1 response of every run"):
        plans.make_plan(pool, 1, 1, criteria=CRITERIA, per_run=1, errors={})


NAMES = [f"R{number:05}" for number in range(1, 41)]


@pytest.mark.parametrize(
    ("share", "assessors", "together", "each"),
    [
        # 40 items: 8 are everybody's, 32 go round.
        (0.2, ["ann", "bob"], 8, [8 + 16, 8 + 16]),
        (0.2, ["ann", "bob", "cem"], 8, [8 + 11, 8 + 11, 8 + 10]),
        (0.0, ["ann"], 0, [40]),
        (0.0, ["ann", "bob"], 0, [20, 20]),
        (1.0, ["ann", "bob"], 40, [40, 40]),
        # .0125 of 40 is half an item.
        (0.0125, ["ann", "bob"], 1, [1 + 20, 1 + 19]),
    ],
)
def test_every_item_is_dealt_to_one_or_to_all(share, assessors, together, each) -> None:
    shared = dealing.shared_items(NAMES, share, 7)
    dealt = dealing.deal(NAMES, assessors, share, 7)
    assert len(shared) == together
    assert [len(own) for own in dealt] == each
    assert all(len(set(own)) == len(own) for own in dealt)
    assert set().union(*dealt) == set(range(40))
    for first, second in combinations(dealt, 2):
        assert set(first) & set(second) == shared


def test_orders_are_random_and_differ_by_assessor_and_seed() -> None:
    ann, bob = dealing.deal(NAMES, ["ann", "bob"], 1.0, 7)
    (other,) = dealing.deal(NAMES, ["ann"], 0.0, 8)
    assert len({ann, bob, other, tuple(range(40))}) == 4
    assert dealing.deal(NAMES, ["ann", "bob"], 1.0, 7) == (ann, bob)


def test_what_everybody_labels_is_spread_over_an_order() -> None:
    shared = dealing.shared_items(NAMES, 0.2, 7)
    places = [place for place, item in enumerate(dealing.deal(NAMES, ["ann", "bob"], 0.2, 7)[0]) if item in shared]
    assert places[0] < 8 and places[-1] >= 16
