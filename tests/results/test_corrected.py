import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.cli.tables import print_corrected
from judge.errors import InputError
from judge.gold.rows import GoldRow
from judge.io.table import records_tsv
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Estimate
from judge.results.corrected import change, corrected
from judge.results.gold import gold_grades
from judge.results.gold_sample import cautions, check_sample
from judge.results.leaderboard import CORRECTED_COLUMNS, IN_FILE, change_text, corrected_markdown, missing_grades
from judge.results.rows import RankingChange, Score, corrected_flag_meanings, flag_lines, flag_meanings
from judge.results.turns import run_turns
from judge.runs.records import Exclusion
from judge.stats.correction import Corrected
from judge.units.response import RESPONSE
from tests.conftest import refused
from tests.report_records import corrected as corrected_score
from tests.results.test_leaderboard import criterion, failure, judgment, pooled


def gold(response: PooledResponse, *grades: int, p: float | None = 0.5, **changes: object) -> list[GoldRow]:
    """A row for each assessor's grade."""
    return [
        GoldRow(
            response.turn_id, response.topic_id, "groundedness", grade, f"A{place}", response.response_id,
            inclusion_probability=p, **changes,
        )
        for place, grade in enumerate(grades)
    ]  # fmt: skip


def correction(
    pool: Pool, results: list, prompt: Criterion, matched: dict, expected: dict | None = None, **options: object
) -> tuple[Score, ...]:
    runs, grades = run_turns(pool, results, prompt, expected), gold_grades(matched, prompt, "gold")
    check_sample(runs, grades, options.get("target", "pool"), options.pop("name", "gold"))
    return corrected(runs, prompt, grades, **options)


def test_an_adjudication_is_the_gold_grade_in_place_of_the_mean() -> None:
    response = pooled("R1", "1_1", ("a", 1))
    rows = [*gold(response, 0, 1), *gold(response, 3, made="adjudicated")]
    graded = gold_grades({("R1", "groundedness"): rows}, criterion(), "gold")["R1"]
    assert (graded.grade, graded.given, graded.probability) == (3, (3,), 0.5)
    assert gold_grades({("R1", "groundedness"): rows[:2]}, criterion(), "gold")["R1"].grade == (0 + 1) / 2


class World:
    """Runs given as (judge's grade, None or a reason; gold grade or None) by turn, two turns a topic."""

    def __init__(self, p: float | None = 0.5, **runs: list[tuple[int | str | None, int | None]]) -> None:
        responses, self.results, self.gold = [], [], {}
        for run_id, turns in runs.items():
            for place, (judged, graded) in enumerate(turns):
                response = pooled(f"R{len(responses):05d}", f"{place // 2}_{place}", (run_id, 1))
                responses.append(response)
                lacks = not isinstance(judged, int)
                result = failure(response, reason=judged or "unreadable") if lacks else judgment(response, judged)
                self.results.append(result)
                if graded is not None:
                    self.gold[response.response_id, "groundedness"] = gold(response, graded, p=p)
        self.pool = Pool(tuple(responses), {}, ())

    def rows(self, polarity: str = "higher", **options: object) -> dict[str, Score]:
        found = correction(self.pool, self.results, criterion(polarity=polarity), self.gold, **options)
        return {row.run_id: row for row in found}

    def cautions(self) -> tuple[str, ...]:
        runs = run_turns(self.pool, self.results, criterion())
        return cautions(runs, gold_grades(self.gold, criterion(), "gold"))


TEN = [(3, 2), (2, 2), (3, 3), (1, 0), (2, 1), (3, 3), (3, 2), (0, 0), (2, 1), (1, 1)]
REST = [(3, None), (2, None), (3, None), (1, None), (2, None), (3, None), (3, None), (0, None), (2, None), (1, None)]


@pytest.mark.parametrize(
    ("p", "graded", "mean", "gold", "low", "high"),
    [
        # Certain gold of one says nothing of the others: the mean of four, and from (4 + 3) / 8 to (4 + 3 + 3 x 3) / 8.
        (1.0, 1, 1.0, 4, 7 / 8, 16 / 8),
        (1.0, 4, (4 * 1 + 4 * 3) / 8, 8, 2.0, 2.0),
        # A sample is of all eight: the judge's mean 1, and one error of 2 among five of equal weight.
        (0.5, 1, 1 + 2 / 5, 5, pytest.approx(0.183, abs=0.001), pytest.approx(2.617, abs=0.001)),
    ],
)
def test_gold_of_responses_that_the_budget_left_out(p, graded, mean, gold, low, high) -> None:
    row = World(p=p, a=[(1, 1)] * 4 + [("budget", 3 if n < graded else None) for n in range(4)]).rows()["a"]
    assert (row.raw.mean.n, row.counts["gold"], row.mean.value, row.bound) == (
        4,
        gold,
        pytest.approx(mean),
        pytest.approx(mean),
    )
    assert (row.more.get("bound_low"), row.more.get("bound_high")) == (low, high)


def test_a_row_says_what_the_judge_says_and_what_gold_makes_of_it() -> None:
    row = World(a=TEN + REST).rows()["a"]
    f, y = np.array([pair[0] for pair in TEN]), np.array([pair[1] for pair in TEN])
    weight = np.cov(y, f)[0, 1] / np.var(f, ddof=1)
    assert (row.raw.mean.n, missing_grades(row), row.counts["gold"], row.more["method"], row.flags) == (
        20,
        0,
        10,
        "ppi++",
        (),
    )
    assert row.raw.mean.value == f.mean()
    assert (row.raw.mean.n, row.raw.mean.topics) == (20, 10)
    assert row.more["weight"] == pytest.approx(min(weight, 1))
    assert row.mean.value == pytest.approx(row.more["weight"] * f.mean() + (y - row.more["weight"] * f).mean())
    assert (row.mean.n, row.mean.topics, row.mean.reason) == (10, 5, None)
    assert row.more.get("bias") == pytest.approx((f - y).mean())
    assert (row.more.get("bound_low"), row.more.get("bound_high")) == (row.mean.low, row.mean.high)
    assert (row.rank, row.place.low, row.place.high, row.place.letters) == (1, 1, 1, "a")
    assert row.more["effective_n"] > 10


def test_the_best_corrected_run_comes_first_whichever_end_is_good() -> None:
    praised = [(3, 0 if place % 2 else 1) for place in range(10)] + [(3, None)] * 10
    world = World(praised=praised, honest=TEN + REST)
    assert world.rows()["praised"].raw.mean.value > world.rows()["honest"].raw.mean.value
    assert [(run_id, row.rank) for run_id, row in world.rows().items()] == [("honest", 1), ("praised", 2)]
    assert [(run_id, row.rank) for run_id, row in world.rows("lower").items()] == [("praised", 1), ("honest", 2)]


def test_a_shared_response_is_gold_for_every_run_that_gave_it() -> None:
    responses = [pooled(f"R{i}", f"{i}_1", ("x", 1), ("y", 1)) for i in range(9)]
    matched = {(one.response_id, "groundedness"): gold(one, i % 3, p=8 / 9) for i, one in enumerate(responses[:8])}
    results = [judgment(one, i % 4) for i, one in enumerate(responses)]
    x, y = correction(
        Pool(tuple(responses), {}, ()), results, criterion(), matched
    )  # fmt: skip
    assert (x.counts["gold"], y.counts["gold"]) == (8, 8)
    assert x.mean == y.mean
    assert (x.rank, y.rank, x.place.letters, y.place.letters) == (1, 1, "a", "a")


def test_missing_responses_widen_the_bounds_by_the_ends_of_the_scale_or_their_gold() -> None:
    missing, few = [(None, 2), (None, None), (None, None)], [(3, 2), *[(3, None)] * 18, (1, None), (None, 1)]
    rows = World(a=TEN + REST + missing, b=few + [(None, None)] * 2).rows()
    row = rows["a"]
    assert (row.raw.mean.n, missing_grades(row), row.counts["gold"], row.flags) == (20, 3, 10, ("MISSING",))
    assert row.more.get("bound_low") == pytest.approx((20 * row.mean.low + 2 + 2 * 0) / 23)
    assert row.more.get("bound_high") == pytest.approx((20 * row.mean.high + 2 + 2 * 3) / 23)
    # They have bounds without an interval too.
    row = rows["b"]
    assert (row.flags, row.mean.low) == (("UNCORRECTED", "MISSING"), None)
    assert row.more.get("bound_low") == pytest.approx((19 * 3 + 1 + 1 + 2 * 0) / 23)
    assert row.more.get("bound_high") == pytest.approx((19 * 3 + 1 + 1 + 2 * 3) / 23)
    unjudged = World(a=TEN + REST, b=[(None, None)] * 20).rows()["b"]
    assert (unjudged.more["bound_low"], unjudged.more["bound_high"]) == (0, 3)


def test_unable_unanswered_and_excluded_turns_are_missing_grades() -> None:
    world = World(a=TEN + REST)
    more = pooled("R9", "90_1", ("a", 1))
    other = pooled("R8", "91_1", ("b", 1))
    world.pool = Pool((*world.pool.responses, more, other), {}, (Exclusion("b", "91_2", 1, "over_limit", ""),))
    world.results += [judgment(more, -1, unable=True), judgment(other, 3)]
    rows = world.rows()
    assert (rows["a"].raw.mean.n, missing_grades(rows["a"])) == (20, 1 + 1)
    assert (rows["b"].raw.mean.n, missing_grades(rows["b"])) == (1, 20 + 1)
    assert missing_grades(world.rows(expected={"a": (), "b": ["91_1", "91_2"]})["b"]) == 1


def test_a_run_that_asked_not_to_be_judged_has_no_row() -> None:
    world = World(a=TEN + REST)
    world.pool = msgspec.structs.replace(
        world.pool, exclusions=(Exclusion("b", "0_0", None, "eval_response_false", ""),)
    )
    assert list(world.rows()) == ["a"]


def test_only_the_response_ranked_first_stands_for_a_run() -> None:
    first, second = pooled("R0", "1_1", ("a", 1)), pooled("R1", "1_1", ("a", 2))
    pool = Pool((first, second), {}, ())
    (row,) = correction(
        pool, [judgment(first, 1), judgment(second, 3)], criterion(),
        {("R1", "groundedness"): gold(second, 3)},
    )  # fmt: skip
    assert (row.raw.mean.value, row.raw.mean.n, row.counts["gold"]) == (1.0, 1, 0)


def test_too_little_gold_corrects_nothing_and_ranks_nothing() -> None:
    rows = World(a=TEN + REST, b=[(3, 3), (3, 2), *[(3, None)] * 18], c=[(1, None)] * 20).rows()
    assert list(rows) == ["a", "b", "c"]
    assert [(row.mean.value, row.more["method"], row.place, row.flags) for row in list(rows.values())[1:]] == [
        (None, "raw", None, ("UNCORRECTED",)),
        (None, "raw", None, ("UNCORRECTED",)),
    ]
    assert rows["b"].mean.reason == "fewer than 3 gold grades"
    assert (rows["b"].more.get("bias"), rows["c"].more.get("bias"), rows["c"].more.get("bound_low")) == (
        1 / 2,
        None,
        None,
    )
    # The two that are not corrected may stand before it or behind.
    assert (rows["a"].place.low, rows["a"].place.high) == (1, 3)


def test_flags_say_why_a_row_is_special() -> None:
    few = [(3, 2), (2, 2), (1, 0), (3, 3), *[(2, None)] * 4]
    same = [(3, 3)] * 10 + [(3, None)] * 10
    families = {"own": "gpt", "few": "llama", "other": "qwen", "litellm/m": "gpt"}
    three = [(3, 3)] * 3 + [(3, None)] * 3
    world = World(own=TEN + REST, few=few, same=same, other=TEN + REST, three=three)
    # A run of any family in a jury is of the judges.
    rows = world.rows(families=families, judge_families={"gpt", "llama"})
    assert {run_id: (row.flags, row.more["method"], row.more.get("family")) for run_id, row in rows.items()} == {
        "own": (("SELF",), "ppi++", "gpt"),
        "few": (("SELF", "MISSING", "FEWGOLD"), "ppi++ pooled", "llama"),
        "same": (("DEGENERATE",), "gold only", None),
        "other": ((), "ppi++", "qwen"),
        "three": (("DEGENERATE", "MISSING", "FEWGOLD"), "gold only", None),
    }
    assert "gold minus judge" in flag_meanings(RESPONSE.nouns)["DEGENERATE"]


def test_a_family_stands_in_for_its_runs() -> None:
    runs = {f"r{i}": [(3, 2) if k == i else (2, 2) if k == i + 1 else (3, None) for k in range(8)] for i in range(4)}
    world = World(0.25, **runs)
    rows = world.rows(families=dict.fromkeys(runs, "gpt"), fallback="family")
    assert {(row.more["method"], row.flags) for row in rows.values()} == {("family", ("FAMILY",))}
    assert [row.mean.value for row in rows.values()] == pytest.approx([(7 * 3 + 2) / 8 - 1 / 2] * 4)
    assert {row.flags for row in world.rows(families=dict.fromkeys(runs, "gpt")).values()} == {("UNCORRECTED",)}


def test_a_census_is_exact_up_to_what_the_judge_did_not_grade() -> None:
    row = World(1.0, a=[*TEN, (None, 3), (None, None)]).rows()["a"]
    mean = sum(graded for _, graded in TEN) / 10
    assert (row.more["method"], row.mean.value, row.mean.low, row.mean.high) == ("census", mean, mean, mean)
    assert row.more.get("bound_low") == pytest.approx((10 * mean + 3 + 0) / 12)
    assert row.more.get("bound_high") == pytest.approx((10 * mean + 3 + 3) / 12)
    # A turn that people graded counts with their grade.
    assert (row.bound, row.raw.bound) == (pytest.approx((10 * mean + 3 + 0) / 12), pytest.approx(20 / 12))


def test_several_assessors_count_by_their_mean() -> None:
    world = World(1.0, a=[(3, 0), (2, 0), (2, 0)])
    for response, grades in zip(world.pool.responses, [(3, 1, 3), (0, 1), (2, 2, 2)], strict=True):
        world.gold[response.response_id, "groundedness"] = gold(response, *grades, p=1.0)
    # Not rounded: a tie of 0 and 1 is .5, and neither assessor's board.
    assert world.rows()["a"].mean.value == pytest.approx((7 / 3 + 1 / 2 + 2) / 3)


def test_intervals_for_new_topics_are_wider() -> None:
    clustered = [(pair[0], pair[1]) for pair in sorted(TEN)] + REST
    pool, topics = (World(a=clustered).rows(target=target)["a"].mean for target in ("pool", "topics"))
    assert pool.value == topics.value
    assert topics.high - topics.low > pool.high - pool.low


def test_gold_of_unknown_origin_is_refused_row_by_row() -> None:
    world = World(None, a=TEN + REST)
    with pytest.raises(InputError, match="judge gold import --inclusion P") as error:
        world.rows(name="gold.jsonl")
    assert len(error.value.problems) == 10
    first = error.value.problems[0]
    assert (first.file, first.turn_id, first.path) == ("gold.jsonl", "0_0", "$.inclusion_probability")
    assert "A0 for response R00000" in first.message


def test_unknown_probabilities_do_not_matter_where_the_gold_is_not_used() -> None:
    world = World(a=TEN + REST)
    unjudged = pooled("R9", "90_1", ("a", 1))
    world.pool = Pool((*world.pool.responses, unjudged), {}, ())
    world.gold["R9", "groundedness"] = gold(unjudged, 2, p=None)
    world.gold["R0", "completeness"] = gold(unjudged, 2, p=None)
    assert world.rows()["a"].counts["gold"] == 10


def test_two_probabilities_of_one_response_are_refused() -> None:
    world = World(a=TEN + REST)
    response = world.pool.responses[0]
    world.gold["R00000", "groundedness"] = [*gold(response, 2), *gold(response, 2, 2, p=0.25)[1:]]
    assert "0.25, but 0.5 in another row" in refused(world.rows)[0].message
    # So is certainty that left responses out.
    problems = refused(World(1.0, a=TEN + REST).rows)
    assert "probability 1 for all 10 gold grades, but 20 responses" in problems[0].message


def test_a_run_whose_gold_happens_to_be_certain_has_a_mean_and_no_interval() -> None:
    world = World(a=TEN + REST, b=[(3, 2), (2, 2), (1, 0), *[(2, None)] * 17])
    for response in world.pool.responses[20:23]:
        (graded,) = world.gold[response.response_id, "groundedness"]
        world.gold[response.response_id, "groundedness"] = [msgspec.structs.replace(graded, inclusion_probability=1.0)]
    row = world.rows()["b"]
    assert row.mean.value == pytest.approx((6 + 17 * 2) / 20 - 2 / 3)
    assert (row.mean.low, row.flags) == (None, ("FEWGOLD",))
    assert row.mean.reason is not None
    assert "chosen for certain" in row.mean.reason


def split(world: World, *parts: str | None) -> None:
    """The gold as parts of a split, in turn."""
    for place, (key, rows) in enumerate(world.gold.items()):
        world.gold[key] = [msgspec.structs.replace(row, split=parts[place % len(parts)]) for row in rows]


def test_one_part_of_a_split_says_nothing_of_the_topics_of_the_other() -> None:
    world = World(a=TEN + REST)
    split(world, "dev")
    with pytest.raises(InputError, match="give both parts of the split") as error:
        world.rows(name="dev.jsonl")
    assert "only the dev part" in str(error.value)
    assert world.rows(target="topics")["a"].mean.value is not None
    (found,) = world.cautions()
    assert (
        found == "the gold is only the dev part of a split and has no grade in 5 of the topics judged (5, 6, 7, 8, 9)"
    )
    split(world, "dev", "test")
    assert world.rows()["a"].mean.value is not None
    assert world.cautions() == ()
    # One part that covers every topic is used, with a caution.
    world = World(a=[pair for both in zip(TEN, REST, strict=True) for pair in both])
    split(world, "test")
    assert world.rows()["a"].mean.value is not None
    (found,) = world.cautions()
    assert found == "the gold is only the test part of a split, though it has grades in every topic judged"


def test_gold_off_the_scale_is_refused() -> None:
    with pytest.raises(InputError, match="not on the scale") as error:
        World(a=[*TEN, (2, 7), *REST]).rows()
    assert [one.code for one in error.value.problems] == ["off_scale"]


def test_strata_count_where_every_row_has_one() -> None:
    world = World(a=[(0, 0), (3, 3)] * 3 + [(0, 1), (3, 2)] * 2 + REST)
    plain = world.rows()["a"].mean
    for response in world.pool.responses[:10]:
        (row,) = world.gold[response.response_id, "groundedness"]
        side = "even" if int(response.response_id[1:]) % 2 else "odd"
        world.gold[response.response_id, "groundedness"] = [msgspec.structs.replace(row, stratum=side)]
    assert world.rows()["a"].mean != plain
    response = world.pool.responses[0]
    world.gold[response.response_id, "groundedness"] = gold(response, 0)
    assert world.rows()["a"].mean == plain


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[Corrected]:
    seen: list[Corrected] = []
    monkeypatch.setattr("judge.results.corrected.places", lambda runs, **_: seen.extend(runs) or [None] * len(runs))
    return seen


def test_gold_drawn_by_grade_is_drawn_by_response_and_not_by_turn(placed: list[Corrected]) -> None:
    for stratum, together in (("drawn", 10), ("grade 2", 0)):
        world = World(a=TEN + REST, b=TEN + REST)
        for key, (row,) in world.gold.items():
            world.gold[key] = [msgspec.structs.replace(row, stratum=stratum)]
        world.rows()
        a, b = (run.influence != 0 for run in placed[-2:])
        assert (a.sum(), b.sum(), (a & b).sum()) == (10, 10, together)


def test_cautions_name_gold_that_was_not_given_blind_and_gold_that_does_not_add_up() -> None:
    world = World(a=TEN + REST)
    assert world.cautions() == ()
    response = world.pool.responses[0]
    world.gold[response.response_id, "groundedness"] = gold(response, 2, made="postedit")
    (found,) = world.cautions()
    assert found.startswith("1 of 10 gold grades were not given blind (1 postedit)")
    world = World(0.1, a=TEN + REST)
    (found,) = world.cautions()
    assert "stands for 100 responses, but 20 were judged" in found


def test_a_tenth_of_the_gold_that_went_missing_is_named() -> None:
    """Of 10 responses drawn with probability 1/2 out of 20 one has no grade: 18 for 20, 1 : 1.11."""
    world = World(a=TEN + REST)
    del world.gold[world.pool.responses[7].response_id, "groundedness"]
    (found,) = world.cautions()
    assert "stands for 18 responses, but 20 were judged: is a part of what was drawn without a grade" in found


def test_turns_of_unequal_size_stand_for_more_or_fewer_responses_by_chance() -> None:
    """Turns of 1 and of 9 responses: 3 of 10 turns stand for 20 responses of 46 where chance picked small ones."""
    sizes, small = [1] * 5 + [9] * 4 + [1], (0, 1, 5)
    responses = [
        pooled(f"R{place:02}{turn}", f"{turn}_1", (f"run{place}", 1))
        for turn, size in enumerate(sizes)
        for place in range(size)
    ]
    drawn = {
        (response.response_id, "groundedness"): gold(response, 2, p=0.3)
        for response in responses
        if response.topic_id in map(str, small)
    }
    runs = run_turns(Pool(tuple(responses), {}, ()), [judgment(response, 2) for response in responses], criterion())
    # 11 of 46 responses have gold and stand for 36.7: 1 : 1.25, with a standard error of 22.
    assert cautions(runs, gold_grades(drawn, criterion(), "gold")) == ()


@settings(deadline=None)
@given(st.permutations(range(20)), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(order: list[int], random) -> None:
    world = World(a=TEN + REST, b=REST + TEN)
    before = world.rows()
    world.pool = Pool(tuple(world.pool.responses[i] for i in (*order, *range(20, 40))), {}, ())
    random.shuffle(world.results)
    world.gold = dict(sorted(world.gold.items(), key=lambda item: random.random()))
    assert world.rows() == before


def row(run_id: str, raw: float, value: float | None, rank: int | None = 1, **changes: object) -> Score:
    low, high = (None, None) if value is None else (value - 0.25, value + 0.25)
    facts: dict[str, object] = {
        "n": 80, "before": Estimate(raw, raw - 0.1, raw + 0.1, 80, 20), "gold": 20,
        "corrected": Estimate(value, low, high, 20, 10, None if value is not None else "fewer than 3 gold grades"),
        "bound_low": low, "bound_high": high, "weight": 0.8125, "effective_n": 31.5, "bias": 0.25, "rank_high": 2,
    }  # fmt: skip
    return corrected_score(run_id, raw, value, rank, **facts | changes)


RAW = row("raw", 2.0, None, rank=None, weight=None, effective_n=None, bias=None, method="raw", gold=0,
          flags=("UNCORRECTED",))  # fmt: skip


def test_what_correction_changes_in_the_order() -> None:
    rows = [row("a", 3, 1), row("b", 2, 3), row("c", 1, 2), RAW]
    found = change(rows, higher_is_better=True)
    # b c a against a b c: the pairs (a, b) and (a, c) change places, (b, c) does not.
    assert (found.runs, found.flips, found.pairs, found.tau_b) == (3, 2, 3, pytest.approx(-1 / 3))
    # Below a nothing is rightly above b; above c, b is and a is not.
    assert found.tau_ap == pytest.approx(2 / 2 * (0 / 1 + 1 / 2) - 1)
    assert found.rbo == pytest.approx(1 * 0.9**3 + 0.1 / 0.9 * (0 / 1 * 0.9 + 1 / 2 * 0.9**2 + 3 / 3 * 0.9**3))
    assert found.top == {1: 0.0}
    assert change(rows, higher_is_better=False).tau_b == pytest.approx(-1 / 3)
    # One run has no order.
    assert change([row("a", 3, 1), RAW], higher_is_better=True) == RankingChange(1, None, None, None, {}, 0, 0)
    assert change_text(change([RAW], higher_is_better=True)) == "Fewer than two runs have both means."


def test_the_tsv_has_the_announced_columns() -> None:
    assert tuple(CORRECTED_COLUMNS)[1:-1] == tuple(
        "rank rank_lo rank_hi tie run family n missing raw raw_lo raw_hi raw_bound gold_n corrected lo hi bound "
        "bound_lo bound_hi method lambda ess bias flags".split()
    )
    rows = [row("a\tb", 2.5, 2.0, family="gpt", flags=("SELF", "MISSING")), RAW]
    header, first, second = records_tsv(CORRECTED_COLUMNS, rows, 4).splitlines()
    assert header.split("\t") == list(CORRECTED_COLUMNS)
    assert first.split("\t") == [
        "groundedness", "1", "1", "2", "a", r"a\tb", "gpt", "80", "0", "2.5000", "2.4000", "2.6000", "2.5000", "20",
        "2.0000", "1.7500", "2.2500", "2.0000", "1.7500", "2.2500", "ppi++", "0.8125", "31.5000", "0.2500",
        "SELF MISSING", "",
    ]  # fmt: skip
    assert second.split("\t") == [
        "groundedness", "", "", "", "", "raw", "", "80", "0", "2.0000", "1.9000", "2.1000", "2.0000", "0", "", "",
        "", "", "", "", "raw", "", "", "", "UNCORRECTED", "fewer than 3 gold grades",
    ]  # fmt: skip


HOSTILE = "a|b\n<img src=x> [x](y) `c` $m$ \x1b[31m\u202e"


def test_hostile_names_stay_in_their_cells(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(HOSTILE, 2.5, 2.0, missing=3, flags=("MISSING",)), RAW]
    markdown = corrected_markdown(
        rows, [criterion()], {"groundedness": change(rows, higher_is_better=True)}, target="pool",
        cautions=(f"gold {HOSTILE}",),
    )  # fmt: skip
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 2
    assert all(len(line.replace(r"\|", "").split("|")) == len(IN_FILE) + 2 for line in table)
    print_corrected(rows)
    for text in (markdown, capsys.readouterr().out, records_tsv(CORRECTED_COLUMNS, rows, 4)):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<img" not in markdown
    assert "MISSING: " in markdown
    assert "SELF" not in markdown


def test_a_narrow_terminal_shows_the_corrected_mean_beside_many_letters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    one = row("a-run", 2.5, 2.0)
    place = msgspec.structs.replace(one.place, letters="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP")
    print_corrected([msgspec.structs.replace(one, place=place), row("b-run", 2.5, 1.0)])
    lines = capsys.readouterr().out.splitlines()
    assert "corrected [95 %]" in lines[0]
    assert "2.000 [1.750, 2.250]" in lines[1]
    assert lines[-1] == "left out: tie (wider terminal or --json)"


def test_only_flags_that_are_there_are_explained() -> None:
    assert flag_lines([row("a", 1, 1)], corrected_flag_meanings(RESPONSE.nouns)) == []
    assert flag_lines([RAW], corrected_flag_meanings(RESPONSE.nouns)) == [
        "UNCORRECTED: too little gold for a correction"
    ]


def test_undefined_numbers_are_none() -> None:
    for found in World(a=TEN + REST, b=[(1, None)] * 20, c=[(None, None)] * 20).rows().values():
        numbers = [*found.more.values(), found.raw.mean.value]
        assert not any(isinstance(number, float) and math.isnan(number) for number in numbers)


def test_a_run_that_is_mostly_without_a_grade_ranks_by_its_bound() -> None:
    """The mean of one graded turn of 20, with 3, is 3; over all turns it is 3/20."""
    rows = World(1.0, honest=[(2, 2)] * 20, few=[(3, 3)] + [(None, None)] * 19).rows()
    assert [(run_id, row.rank, row.mean.value, row.bound, row.raw.bound) for run_id, row in rows.items()] == [
        ("honest", 1, 2.0, 2.0, 2.0),
        ("few", 2, 3.0, 3 / 20, 3 / 20),
    ]
    # Its grades are of one topic, so it is told apart from no run.
    assert (rows["few"].flags, rows["few"].place.low, rows["few"].place.letters) == (("MISSING",), 1, "a")
    lower = World(1.0, honest=[(2, 2)] * 20, few=[(0, 0)] + [(None, None)] * 19).rows("lower")
    assert [(run_id, row.rank, row.bound) for run_id, row in lower.items()] == [
        ("honest", 1, 2.0),
        ("few", 2, pytest.approx(19 * 3 / 20)),
    ]


def test_runs_are_told_apart_by_no_grade_that_is_missing_through_others() -> None:
    """Both have 2 wherever there is a grade; where every second one is missing, the bound is 16 · 2 / 32."""
    rows = World(1.0, a=[(2, 2)] * 32, b=[(2, 2), ("refused", None)] * 16).rows()
    assert [(row.bound, row.rank, row.place.low, row.place.high, row.place.letters) for row in rows.values()] == [
        (2.0, 1, 1, 2, "a"),
        (1.0, 2, 1, 2, "a"),
    ]
    # A response that names no passage is the run's own doing.
    own = World(1.0, a=[(2, 2)] * 32, b=[(2, 2), ("no_passages", None)] * 16).rows()
    assert [(row.place.low, row.place.high, row.place.letters) for row in own.values()] == [(1, 1, "a"), (2, 2, "b")]
    # So is a grade that people gave, though the judge gave none.
    known = World(1.0, a=[(2, 2)] * 32, b=[(2, 2), ("refused", 0)] * 16).rows()
    assert [(row.bound, row.place.letters) for row in known.values()] == [(2.0, "a"), (1.0, "b")]
    # Better by what is graded, and worse by the bound: (16 · 3) / 32.
    mixed = World(1.0, a=[(2, 2)] * 32, b=[(3, 3), ("refused", None)] * 16).rows()
    assert [(row.bound, row.place.letters) for row in mixed.values()] == [(2.0, "a"), (1.5, "a")]


def test_on_few_topics_nothing_says_that_runs_differ() -> None:
    rows = World(1.0, a=[(3, 3)] * 14, b=[(0, 0)] * 14).rows()
    assert [(row.rank, row.place.low, row.place.high, row.place.letters) for row in rows.values()] == [
        (1, None, None, ""),
        (2, None, None, ""),
    ]
    said = "no run is told apart from another, since that needs 8 topics of equal size; these count as 7.0"
    assert said in records_tsv(CORRECTED_COLUMNS, rows.values(), 4)
    assert [row.place.letters for row in World(1.0, a=[(3, 3)] * 16, b=[(0, 0)] * 16).rows().values()] == ["a", "b"]


def test_the_errors_of_a_bound_shrink_with_the_share_of_turns_behind_it(placed: list[Corrected]) -> None:
    """Half of the turns are without a grade, so the bound is half the mean, and so are its errors."""
    whole = World(a=TEN + REST).rows()["a"]
    half = World(a=TEN + REST + [(None, None)] * 20).rows()["a"]
    assert (half.mean.value, half.bound) == (whole.mean.value, pytest.approx(whole.mean.value / 2))
    assert (placed[1].se, placed[1].scale) == (pytest.approx(placed[0].se / 2), pytest.approx(placed[0].scale / 4))
    assert placed[1].influence @ placed[1].influence == pytest.approx(placed[1].se ** 2)
