"""Which responses and runs are pooled, and the files that say so."""

import contextlib
import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judge.errors import InputError, UsageError
from judge.io.ids import own_turn_id
from judge.pool.build import Candidate
from judge.pool.lists import read_relevance, read_run_ids, read_teams, read_turns
from judge.pool.records import Pool, PooledResponse, RunEntry
from judge.pool.run_choice import RUN_RULES, RunRule, RunScore, choose_runs
from judge.pool.selection import PassageRelevance, Selection, candidates, draw_turns, read_draw
from judge.results.ranked import first_ranked
from judge.runs.formats import read_run
from judge.runs.records import Exclusion, Provenance, Response, Run, RunTurn
from tests import calibration_world as world
from tests.conftest import put, refused


def psg(passage_id: str, score: float | None = None, used: bool | None = None) -> Provenance:
    return Provenance(passage_id, score, used, None)


# Candidates


def run_of(*turns: tuple[str, list[tuple[int, str]]], eval_response: bool = True) -> Run:
    made = tuple(RunTurn(turn, tuple(Response(rank, text, ()) for rank, text in given)) for turn, given in turns)
    return Run("r", "automatic", None, "ikat2024", "r.json", "d", eval_response, made)


TWO = (("1_1", [(1, "a"), (2, "b")]), ("1_2", [(1, "c")]))
"""Two turns, one of them with two responses."""


def rows(found: tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]) -> tuple[list[Any], list[Any]]:
    return (
        [(one.turn_id, one.rank, one.text) for one in found[0]],
        [(row.turn_id, row.rank, row.reason) for row in found[1]],
    )


@pytest.mark.parametrize(
    ("depth", "kept", "below"),
    [
        (1, [(1, "b")], [(2, "d"), (3, "a"), (3, "c")]),
        (2, [(1, "b"), (2, "d")], [(3, "a"), (3, "c")]),
        (3, [(1, "b"), (2, "d"), (3, "a")], [(3, "c")]),  # equal ranks in file order
        (9, [(1, "b"), (2, "d"), (3, "a"), (3, "c")], []),
    ],
)
def test_depth_takes_the_smallest_ranks(depth: int, kept: list[Any], below: list[Any]) -> None:
    run = run_of(("1_1", [(3, "a"), (1, "b"), (3, "c"), (2, "d")]))
    found, excluded = rows(candidates(run, Selection(depth=depth)))
    assert found == [("1_1", rank, text) for rank, text in kept]
    assert excluded == [("1_1", rank, "below_depth") for rank, _ in below]


@pytest.mark.parametrize(
    ("run", "turns", "kept", "excluded"),
    [
        # The next rank does not move up.
        (run_of(("1_1", [(1, " \n\u00a0"), (2, "second")]), ("1_2", [(1, "")]), ("1_3", [])), None, [],
         [("1_1", 1, "empty_text"), ("1_1", 2, "below_depth"), ("1_2", 1, "empty_text")]),
        # One row stands for a turn of a run that asks not to be judged, and for one that is not selected.
        (run_of(*TWO, eval_response=False), None, [], [(turn, None, "eval_response_false") for turn in ("1_1", "1_2")]),
        (run_of(*TWO), frozenset({"1_2", "7_7"}), [("1_2", 1, "c")], [("1_1", None, "not_selected_turn")]),
    ],
)  # fmt: skip
def test_what_is_left_out_has_its_reason(run: Run, turns, kept: list[Any], excluded: list[Any]) -> None:
    assert rows(candidates(run, Selection(turns=turns))) == (kept, excluded)


def test_a_candidate_keeps_only_what_it_used() -> None:
    provenance = tuple(psg(f"p{n}", -n) for n in range(1000))
    run = Run("r", None, None, "ikat2024", "r.json", "d", True, (RunTurn("1_1", (Response(1, "t", provenance),)),))
    (found,), _ = candidates(run, Selection())
    assert (found.used, found.provenance_rule) == (provenance[:5], "top5")


def test_a_depth_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="must be 1 or more, not 0"):
        Selection(depth=0)


# Turns and runs


def test_the_widest_reason_is_named() -> None:
    given = [("1_1", [(1, "a")])]
    nothing = Selection(turns=frozenset(), relevance=PassageRelevance({}))
    assert rows(candidates(run_of(*given, eval_response=False), nothing))[1] == [("1_1", None, "eval_response_false")]
    assert rows(candidates(run_of(*given), nothing))[1] == [("1_1", None, "not_selected_turn")]


# Relevant passages


def cited(*responses: tuple[int, str, str], format: str = "ikat2024", turn_id: str = "1_1") -> Run:
    """A run of one turn: (rank, text, ids of its passages); those in capitals are used."""
    made = tuple(
        Response(rank, text, tuple(psg(one.lower(), used=one.isupper()) for one in passages))
        for rank, text, passages in responses
    )
    return Run("r", "automatic", None, format, "r.json", "d", True, (RunTurn(turn_id, made),))


GRADES = {"1_1": {"g": 2, "m": 1, "z": 0, "n": -1}}
"""g is good, m is mediocre, z is not relevant; x is not graded."""


@pytest.mark.parametrize(
    ("responses", "options", "kept", "reasons"),
    [
        ([(1, "a", "Z"), (2, "b", "G")], {"max_rank": 3}, [2], [(1, "no_relevant_passage")]),
        # Only the used passages count: that g was retrieved helps nothing.
        ([(1, "a", "Zg"), (2, "b", "XG")], {"max_rank": 3}, [2], [(1, "no_relevant_passage")]),
        # None flagged: the first five stand for the used.
        ([(1, "a", "zzzxg")], {}, [1], []),
        ([(1, "a", "zxmng")], {"minimum": 2}, [1], []),
        ([(1, "a", "M")], {"minimum": 2}, [], [(1, "no_relevant_passage")]),
        ([(1, "a", "XZ")], {"minimum": 0}, [1], []),
        # Not graded is not graded -1, nor 0.
        ([(1, "a", "X")], {"minimum": -1}, [], [(1, "no_relevant_passage")]),
        # The first relevant one is the one: later ones are below the depth, not without relevance.
        ([(3, "c", "G"), (1, "a", "G"), (2, "b", "Z")], {"max_rank": 3}, [1], [(2, "below_depth"), (3, "below_depth")]),
        ([(1, "a", "Z"), (2, "b", "G"), (3, "c", "Z"), (4, "d", "G"), (5, "e", "G")], {"max_rank": 4, "depth": 2},
            [2, 4], [(1, "no_relevant_passage"), (3, "no_relevant_passage"), (5, "below_depth")]),
        # Relevant, but looked for no further than rank 3.
        ([(1, "a", "Z"), (2, "b", "X"), (3, "c", ""), (4, "d", "G")], {"max_rank": 3}, [],
            [(1, "no_relevant_passage"), (2, "no_relevant_passage"), (3, "no_relevant_passage"), (4, "below_depth")]),
        # Without a largest rank: the depth.
        ([(1, "a", "Z"), (2, "b", "G")], {}, [], [(1, "no_relevant_passage"), (2, "below_depth")]),
        # A response without text uses up its place if it would have been pooled, and only then.
        ([(1, " ", "G"), (2, "b", "G")], {"max_rank": 3}, [], [(1, "empty_text"), (2, "below_depth")]),
        ([(1, " ", "Z"), (2, "b", "G")], {"max_rank": 3}, [2], [(1, "no_relevant_passage")]),
        # Places count, not the numbers that a run writes.
        ([(7, "a", "Z"), (9, "b", "G")], {"max_rank": 2}, [9], [(7, "no_relevant_passage")]),
    ],
)  # fmt: skip
def test_only_responses_with_a_relevant_used_passage_are_pooled(responses, options, kept, reasons) -> None:
    depth = options.pop("depth", 1)
    found, excluded = candidates(
        cited(*responses), Selection(depth=depth, relevance=PassageRelevance(GRADES, **options))
    )
    assert [one.rank for one in found] == kept
    assert [(row.rank, row.reason) for row in excluded] == reasons


def test_of_a_cast_run_three_responses_are_looked_at() -> None:
    responses = [(1, "a", "z"), (2, "b", "z"), (3, "c", "g"), (4, "d", "g")]
    found, excluded = candidates(cited(*responses, format="cast2022"), Selection(relevance=PassageRelevance(GRADES)))
    assert [one.rank for one in found] == [3]
    assert excluded[-1].detail == "number 4 by rank, pool depth 1 reached by better-ranked ones"
    found, _ = candidates(cited(*responses, format="cast2022"), Selection(depth=4, relevance=PassageRelevance(GRADES)))
    assert [one.rank for one in found] == [3, 4]


def test_a_turn_without_graded_passages_is_not_judged() -> None:
    relevance = PassageRelevance(GRADES)
    run = cited((1, "a", "G"), turn_id="1_2")
    assert rows(candidates(run, Selection(relevance=relevance))) == ([], [("1_2", None, "turn_not_judged")])


def test_details_say_what_was_looked_for() -> None:
    _, excluded = candidates(
        cited((1, "a", "ZX"), (2, "b", "G")), Selection(relevance=PassageRelevance(GRADES, minimum=2))
    )
    assert [row.detail for row in excluded] == [
        "none of its 2 used passages has grade 2 or more",
        "number 2 by rank, of which the first 1 are looked at",
    ]


def test_a_largest_rank_below_the_depth_is_refused() -> None:
    with pytest.raises(UsageError, match="of the first 2 responses by rank no 3 can be pooled"):
        Selection(depth=3, relevance=PassageRelevance(GRADES, max_rank=2))
    with pytest.raises(UsageError, match="of the first 0"):
        Selection(relevance=PassageRelevance(GRADES, max_rank=0))


def test_turns_are_drawn_by_topic_up_to_a_number_of_responses() -> None:
    sizes = {f"{topic}_{turn}": 3 for topic in range(1, 5) for turn in range(1, 4)}
    for seed in range(20):
        drawn = draw_turns(sizes, 17, seed)
        assert sorted(Counter(turn[0] for turn in drawn).values()) == [1, 1, 1, 2]
        assert draw_turns(sizes, 12, seed) < drawn == draw_turns(dict(reversed(sizes.items())), 17, seed)
    assert len({draw_turns(sizes, 12, seed) for seed in range(20)}) > 10
    assert draw_turns(sizes, 36) == sizes.keys()
    for wrong in ("0", "x", "5@", "-1", "٣"):
        with pytest.raises(UsageError, match="--draw"):
            read_draw(wrong)


def test_wanted_turns_are_the_selected_and_judged() -> None:
    turns = ["1_1", "1_2", "1_3"]
    assert Selection().wanted_turns(turns) == {"1_1", "1_2", "1_3"}
    assert Selection(turns=frozenset({"1_2", "9_9"})).wanted_turns(turns) == {"1_2"}
    assert Selection(relevance=PassageRelevance(GRADES)).wanted_turns(turns) == {"1_1"}
    assert not Selection(turns=frozenset({"1_2"}), relevance=PassageRelevance(GRADES)).wanted_turns(turns)


@given(
    st.lists(
        st.tuples(st.integers(-1, 6), st.sampled_from(["text", " "]), st.text("gGmMzZxX", max_size=7)), max_size=6
    ),
    st.integers(1, 4),
    st.none() | st.integers(0, 3),
    st.sampled_from(["ikat2024", "cast2022"]),
)
def test_every_response_is_pooled_or_left_out_once(responses, depth, extra, format) -> None:
    max_rank = None if extra is None else depth + extra
    selection = Selection(depth=depth, relevance=PassageRelevance(GRADES, max_rank=max_rank))
    found, excluded = candidates(cited(*responses, format=format), selection)
    assert sorted([one.rank for one in found] + [row.rank or 0 for row in excluded]) == sorted(
        rank for rank, _, _ in responses
    )
    assert len(found) + sum(row.reason == "empty_text" for row in excluded) <= depth
    assert all({"g", "m"} & {passage.passage_id for passage in one.used} for one in found)


# What stands for a run


def pooled(response_id: str, turn_id: str, run_id: str, rank: int) -> PooledResponse:
    made = world.pooled(response_id, "text", turn_id=turn_id, passages=())
    return replace(made, runs=(RunEntry(run_id, rank, "used", "0" * 64),))


@pytest.mark.parametrize(
    ("reason", "rank", "stands"),
    [("no_relevant_passage", 1, True), ("over_limit", 1, False), ("empty_text", 1, False), ("below_depth", 3, True)],
)
def test_a_response_without_relevant_passage_leaves_its_place_to_the_next(reason: str, rank: int, stands: bool) -> None:
    pool = Pool((pooled("R0", "1_1", "x", 2),), {}, (Exclusion("x", "1_1", rank, reason, ""),))
    assert first_ranked(pool) == ({"x": {"1_1": pool.responses[0]}} if stands else {})


# Rules that choose runs


def scores(*given: tuple[str, str | None, bool, float]) -> dict[str, RunScore]:
    return {one[0]: RunScore(*one) for one in given}


SCORES = scores(
    ("a1", "A", True, 0.5),
    ("a2", "A", True, 0.4),
    ("a3", "A", False, 0.9),
    ("b1", "B", True, 0.3),
    ("b2", "B", True, 0.2),
    ("c1", "C", False, 0.35),
)
"""Median of the automatic runs: (0.3 + 0.4) / 2 = 0.35; of all: (0.35 + 0.4) / 2 = 0.375."""


def chosen(rule: RunRule, given: dict[str, RunScore]) -> set[str]:
    found, _ = choose_runs(rule, given, "P@5")
    return {run_id for run_id, (is_chosen, _) in found.items() if is_chosen}


def test_rules_and_their_reasons() -> None:
    assert choose_runs("best-automatic-per-team", SCORES, "P@5")[0] == {
        "a1": (True, "the team's best automatic run, above the median 0.3500 of the 4 automatic runs"),
        "a2": (False, "a1 is the team's best with 0.5000"),
        "a3": (False, "not an automatic run"),
        "b1": (False, "not above the median 0.3500 of the 4 automatic runs"),
        "b2": (False, "b1 is the team's best with 0.3000"),
        "c1": (False, "not an automatic run"),
    }
    assert chosen("best-per-team", SCORES) == {"a3", "b1", "c1"}
    assert chosen("above-median", SCORES) == {"a1", "a2", "a3"}
    assert choose_runs("above-median", SCORES, "P@5")[0]["c1"] == (False, "not above the median 0.3750 of the 6 runs")


def test_a_run_at_the_median_is_not_above_it_and_the_first_of_equals_is_the_best() -> None:
    given = scores(("r10", "A", True, 0.4), ("r2", "A", True, 0.4), ("x", "B", True, 0.3), ("y", "C", True, 0.3))
    assert chosen("best-automatic-per-team", given) == {"r2"}  # median 0.35
    given = scores(("a", "A", True, 0.1), ("b", "B", True, 0.2), ("c", "C", True, 0.3))
    assert chosen("best-automatic-per-team", given) == {"c"}


@pytest.mark.parametrize("rule", ["best-automatic-per-team", "above-median"])
def test_a_rule_that_chooses_no_run_is_refused(rule: RunRule) -> None:
    with pytest.raises(UsageError, match=r"chooses no run: only: not above the median 0\.5000 of the 1"):
        chosen(rule, scores(("only", "A", True, 0.5)))
    with pytest.raises(UsageError, match="chooses no run"):
        chosen(rule, {})
    assert chosen("best-per-team", scores(("only", "A", True, 0.5))) == {"only"}


def test_missing_teams_are_named_where_the_rule_needs_them() -> None:
    given = scores(
        ("r10", None, True, 0.5), ("r2", "", True, 0.4), ("ok", "A", True, 0.1), ("manual", None, False, 0.2)
    )
    with pytest.raises(UsageError, match="no team is known for r2, r10: name"):
        chosen("best-automatic-per-team", given)
    with pytest.raises(UsageError, match="no team is known for manual, r2, r10: name"):
        chosen("best-per-team", given)
    assert chosen("above-median", given) == {"r10", "r2"}  # median 0.3


def test_the_record_of_a_choice() -> None:
    given = scores(("b\n", "B", True, 1 / 3), ("a", "A", False, 0.25))
    assert choose_runs("best-per-team", given, "nDCG@5")[1] == (
        "run_id\tteam\tautomatic\tmeasure\tvalue\tchosen\treason\n"
        "b\\n\tB\tyes\tnDCG@5\t0.333333\tyes\tthe team's best run\n"
        "a\tA\tno\tnDCG@5\t0.250000\tyes\tthe team's best run\n"
    )


@given(
    st.dictionaries(
        st.text("ab1", min_size=1, max_size=3),
        st.tuples(st.sampled_from(["A", "B"]), st.booleans(), st.sampled_from([0.0, 0.1, 0.2, 0.3])),
        min_size=1,
    ),
    st.sampled_from(RUN_RULES),
    st.randoms(use_true_random=False),
)
def test_a_choice_does_not_depend_on_the_order_of_runs(made: dict[str, Any], rule: RunRule, random: Any) -> None:
    given = scores(*((run_id, *rest) for run_id, rest in made.items()))
    shuffled = dict(random.sample(sorted(given.items()), len(given)))
    try:
        found = choose_runs(rule, given, "P@5")
    except UsageError:
        with pytest.raises(UsageError):
            chosen(rule, shuffled)
        return
    assert found == choose_runs(rule, shuffled, "P@5")
    if rule != "above-median":
        assert len({given[run_id].team for run_id in chosen(rule, given)}) == len(chosen(rule, given))


# Files


def test_turn_ids_in_either_spelling() -> None:
    written = ["9-1-3", "9-1_3", "132_1-1", "0-8", "0_8", "plain", "-", ""]
    assert [own_turn_id(one) for one in written] == ["9-1_3", "9-1_3", "132_1-1", "0_8", "0_8", "plain", "_", ""]


def test_a_file_of_turns(tmp_path: Path) -> None:
    path = put(tmp_path / "turns.txt", b"\xef\xbb\xbf9-1-3\r\n\n  9-1_4\t\n9-1_3\n")
    assert read_turns(path) == {"9-1_3", "9-1_4"}
    assert read_turns(path, ["9-1_3", "9-1_4", "9-1_5"]) == {"9-1_3", "9-1_4"}
    with pytest.raises(InputError, match="1 of 2 turn ids are unknown") as caught:
        read_turns(path, ["9-1_4"])
    (problem,) = caught.value.problems
    assert (problem.code, problem.path, problem.file) == ("unknown_turn", "line 1", str(path))


def test_a_file_of_runs(tmp_path: Path) -> None:
    path = put(tmp_path / "runs.txt", "my run\nrun-2\nrun-10\n")
    assert read_run_ids(path, ["my run", "run-2", "run-10", "more"]) == {"my run", "run-2", "run-10"}
    with pytest.raises(InputError, match="2 of 3 run ids are unknown") as caught:
        read_run_ids(path, ["my run"])
    assert [(one.path, one.message) for one in caught.value.problems] == [
        ("line 2", "'run-2': expected the id of a run that is here"),
        ("line 3", "'run-10': expected the id of a run that is here"),
    ]


def test_a_file_of_teams(tmp_path: Path) -> None:
    path = put(tmp_path / "teams.tsv", "run_id\tteam\nr1\tTeam One\n\nmy run\t B \nr1\tTeam One\n")
    assert read_teams(path) == {"r1": "Team One", "my run": "B"}


def test_faults_of_a_file_of_teams_are_all_listed(tmp_path: Path) -> None:
    path = put(tmp_path / "teams.tsv", "r1\tA\nr2\nr3\t\n\tB\nr4\tA\tB\nr1\tC\nrun_id\tteam\n")
    assert [(one.code, one.path) for one in refused(read_teams, path)] == [
        ("wrong_columns", "line 2"),
        ("wrong_columns", "line 3"),
        ("wrong_columns", "line 4"),
        ("wrong_columns", "line 5"),
        ("several_teams", "line 6"),
    ]


def test_passage_qrels(tmp_path: Path) -> None:
    path = put(tmp_path / "qrels", gzip.compress(b"9-1-3 0 a 2\n9-1_3\t0\tb\t0\n132_1-1 0 c -1\n"))
    relevance = read_relevance(path, minimum=2, max_rank=3, known=["9-1_3"])
    grades = {"9-1_3": {"a": 2, "b": 0}, "132_1-1": {"c": -1}}
    assert relevance == PassageRelevance(grades, minimum=2, max_rank=3)
    with pytest.raises(InputError, match="judges no passage of any of the turns"):
        read_relevance(path, known=["9-1_4"])
    with pytest.raises(UsageError, match="no passage has grade 3 or more; the highest is 2"):
        read_relevance(path, minimum=3)


def test_passage_qrels_that_grade_a_passage_under_two_spellings_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "qrels", "9-1-3 0 a 2\n9-1_3 0 a 0\n")
    with pytest.raises(InputError, match="1 passages graded twice") as caught:
        read_relevance(path)
    assert caught.value.problems[0].turn_id == "9-1_3"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = put(tmp_path_factory.mktemp("any") / "file", content)
    for read in (read_turns, read_teams, read_relevance, lambda path: read_run_ids(path, ["r"])):
        with contextlib.suppress(InputError, UsageError):
            read(path)


# Real data


def test_the_sample_run_of_2024_uses_relevant_passages_in_105_of_116_judged_turns(shared: Path) -> None:
    run = read_run(shared / "ikat/2024/sample_run.json").run
    assert run
    relevance = read_relevance(shared / "ikat/qrels/2024_test_qrels.trec", known={turn.turn_id for turn in run.turns})
    selection = Selection(relevance=relevance)
    found, excluded = candidates(run, selection)
    reasons = [row.reason for row in excluded]
    assert (len(found), reasons.count("no_relevant_passage"), reasons.count("turn_not_judged")) == (105, 11, 102)
    assert len(found) + len(excluded) == 218
    assert len(selection.wanted_turns(turn.turn_id for turn in run.turns)) == 116


def test_the_sample_run_of_cast_2022_finds_one_turn_more_at_rank_three_than_at_one(shared: Path) -> None:
    run = read_run(shared / "cast2022/sample_run.json").run
    assert run
    path = shared / "cast2022/cast2022.qrel"
    found, _ = candidates(run, Selection(relevance=read_relevance(path)))
    first, _ = candidates(run, Selection(relevance=read_relevance(path, max_rank=1)))
    assert (len(found), len(first)) == (47, 46)


def test_passage_qrels_of_conversations_need_only_their_topic(tmp_path: Path) -> None:
    path = put(tmp_path / "qrels", "1-1_12~5f2c9a01be42d370 0 a 2\n")
    assert read_relevance(path, known=["1-1_1"]).grades == {"1-1_12~5f2c9a01be42d370": {"a": 2}}
    with pytest.raises(InputError, match="judges no passage of any of the turns"):
        read_relevance(path, known=["2-1_1"])
