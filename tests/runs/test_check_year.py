"""The year of a run, whether runs are of one year, and whether a run is for the topics that it comes with."""

import itertools
import json
from functools import cache
from pathlib import Path

import msgspec
import pytest

from judge.errors import InputError
from judge.io.table import Table
from judge.pool.intake import Submitted, leave_out, make_pool, read_runs
from judge.pool.records import PooledRun
from judge.runs.check.year import Trace, between, mixed_years
from judge.runs.profiles import TURNS, possible_years, year_of
from judge.runs.records import Topic
from judge.runs.topics import read_topics
from tests.conftest import PROJECT, put

EXAMPLES = PROJECT / "examples"


def ids(topic: str, turns: int) -> frozenset[str]:
    return frozenset(f"{topic}_{number}" for number in range(1, turns + 1))


def turns_of(year: int) -> frozenset[str]:
    return frozenset().union(*(ids(topic, last or 3) for topic, last in TURNS[year].items()))


def trace(run_id: str, turn_ids, format: str = "ikat2024", **more) -> Trace:
    return Trace(f"{run_id}.json", run_id, format, frozenset(turn_ids), year=year_of(turn_ids), **more)


@pytest.mark.parametrize("year", [2022, 2023, 2024, 2025])
def test_the_year_of_a_run_is_that_of_its_turns(year):
    assert year_of(turns_of(year)) == year
    # A run that stopped after 60 % of the topics is still of the year.
    topics = sorted(TURNS[year])[: -(-len(TURNS[year]) * 6 // 10)]
    assert year_of([turn_id for turn_id in turns_of(year) if turn_id.rpartition("_")[0] in topics]) == year


@pytest.mark.parametrize(
    ("turn_ids", "year"),
    [
        ([], None),
        (["9-1_1"], None),
        # The 16 turns that stand in 2023 and in 2025.
        (ids("9-1", 6) | ids("9-2", 10), None),
        # The example's own three topics, whose ids 2025 has too: 3 of 17 topics are no year.
        (ids("1-1", 6) | ids("2-1", 5) | ids("3-1", 5), None),
        ([f"{topic}_1" for topic in range(500, 540)], None),
        (["x", "", "_", "9-1_", "9-1_0", "9-1_x"], None),
    ],
)
def test_turns_of_several_years_or_of_few_topics_tell_no_year(turn_ids, year):
    assert year_of(turn_ids) == year


def test_the_years_that_are_possible_for_some_turns():
    assert possible_years(ids("9-1", 6)) == {2023, 2025}
    # 2025 has 9-2_1 to 9-2_10: twelve turns are all of 2023, ten of them of 2025. Only the form of 2023 settles it.
    assert possible_years(ids("9-2", 12)) == {2023, 2025}
    assert possible_years(ids("9-2", 12), 2023) == {2023}
    assert possible_years(ids("9-2", 12), 2025) == {2023, 2025}
    # One turn that another year has is a slip.
    assert possible_years(ids("9-2", 11), 2023) == {2023, 2025}


STATEMENTS = {"9-1": frozenset({"I am a vegan.", "I own two dogs.", "I live in Graz."})}
OTHERS = {"9-1": frozenset({"My bike is old.", "I have a garage.", "I ride to work.", "I like tools."})}
MORE = {"9-1": frozenset({"I am a vegan.", "I play chess.", "I have a cat."})}
FULL23, FULL25 = turns_of(2023), turns_of(2025)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        # Years that the turns tell, whatever the format.
        (trace("a", FULL23), trace("b", FULL25), True),
        (trace("a", FULL23, "ikat2025"), trace("b", FULL25, "ikat2023"), True),
        (trace("a", ids("0", 3)), trace("b", FULL25), True),
        # The same turns in several formats.
        (trace("a", FULL25, "ikat2023"), trace("b", FULL25, "ikat2025"), False),
        (trace("a", FULL25, "ikat2024"), trace("b", ids("9-1", 3), "ikat2023"), False),
        # Years that no table knows: the turns overlap in part only.
        (trace("a", ids("7-9", 30) | ids("8-9", 5)), trace("b", ids("8-9", 5) | ids("9-9", 30)), True),
        (trace("a", ids("7-9", 30) | ids("8-9", 25)), trace("b", ids("8-9", 25)), False),
        # Nineteen turns may be any part of a year.
        (trace("a", ids("7-9", 19)), trace("b", ids("9-9", 30)), False),
        (trace("a", ids("7-9", 20)), trace("b", ids("9-9", 30)), True),
        # The same turns, other users.
        (trace("a", ids("9-1", 6), statements=STATEMENTS), trace("b", ids("9-1", 6), statements=OTHERS), True),
        (trace("a", ids("9-1", 6), statements=STATEMENTS), trace("b", ids("9-1", 6), statements=MORE), False),
        (trace("a", ids("9-1", 6), statements=STATEMENTS), trace("b", ids("9-1", 6), statements=STATEMENTS), False),
        (trace("a", ids("9-1", 6), statements=STATEMENTS), trace("b", ids("9-1", 6)), False),
        # What the topics have confirmed needs no comparison.
        (trace("a", ids("7-9", 30), of_topics=True), trace("b", ids("9-9", 30), of_topics=True), False),
        (trace("a", ids("9-1", 6), of_topics=True), trace("b", ids("9-1", 6), of_topics=False), True),
    ],
)  # fmt: skip
def test_two_runs_are_apart_only_where_something_shows_it(one, other, apart):
    assert (between(one, other) is not None) is apart
    assert (between(other, one) is not None) is apart


@pytest.mark.slow
def test_the_message_names_the_years_the_runs_of_each_and_what_to_do():
    runs = [trace(f"old-{n}", FULL23) for n in range(7)] + [trace("new", FULL25)]
    message = mixed_years(runs)
    assert message is not None
    assert "2023: 7 runs ('old-0', 'old-1', 'old-2', 'old-3', 'old-4' and 2 more); 2025: 1 run ('new'" in message
    assert "16 of its 188 turns are in 'old-0' too" in message
    assert "one call a year, with its --topics" in message
    assert mixed_years(runs[:7]) is None


# On the real data.

YEARS = ("2023", "2024", "2025")
SAMPLES = {
    "2023": ["ikat/2023/sample_run.json", "ikat/2023/sample_run_invalid_scores.json",
             "ikat/2023/sample_run_missing_ptkb_fields.json", "ikat/2023/sample_run_no_ptkb.json",
             "ikat/2023/sample_run_renamed_fields.json"],
    "2024": ["ikat/2024/sample_run.json"],
    "2025": ["ikat/2025/runs/cfda-ikat2025-auto-1.jsonl"],
    "2022": ["cast2022/sample_run.json"],
}  # fmt: skip


@cache
def topics_of(path: Path) -> Table[Topic]:
    return read_topics(path)


def topics_file(shared: Path, year: str) -> Path:
    return shared / "ikat" / year / f"{year}_test_topics.json"


def whole_run(shared: Path, year: str, folder: Path, *, statements: bool = True) -> Path:
    """A run of a year's canonical responses in the form of 2023, which no year but 2023 asks for."""
    turns = []
    for topic in topics_of(topics_file(shared, year)):
        for turn in topic.turns:
            ptkb = [{"id": one.ptkb_id, "text": one.text, "score": 1 / k} for k, one in enumerate(turn.ptkb[:3], 1)]
            passages = [{"id": "clueweb22-en0000-00-00000:0", "text": "A text.", "score": 1.0, "used": True}]
            turns.append({"turn_id": turn.turn_id, "responses": [{
                "rank": 1, "text": next(iter(turn.references), "Yes."), "ptkb_provenance": ptkb if statements else [],
                "passage_provenance": passages}]})  # fmt: skip
    return put(
        folder / f"whole-{year}.json",
        json.dumps({"run_name": f"whole-{year}", "run_type": "automatic", "turns": turns}),
    )


def together(folder: Path, *paths: Path, topics: Path | None = None) -> Submitted:
    runs = folder / "runs"
    runs.mkdir()
    for place, path in enumerate(paths):
        (runs / f"{place}-{path.name}").write_bytes(path.read_bytes())
    return read_runs(runs, topics_of(topics) if topics else None)


def codes(submitted: Submitted) -> set[str]:
    return {problem.code for problem in submitted.problems}


@pytest.mark.parametrize("statements", [True, False])
@pytest.mark.parametrize(("year", "other"), list(itertools.product(YEARS, YEARS)))
def test_every_year_against_the_topics_of_every_year(shared, tmp_path, year, other, statements):
    path = whole_run(shared, year, tmp_path, statements=statements)
    submitted = read_runs(path, topics_of(topics_file(shared, other)))
    assert ("wrong_topics" in codes(submitted)) is (year != other)
    assert [run.year for run in submitted.runs] == ([int(year)] if year == other else [])


@pytest.mark.parametrize(("year", "other"), list(itertools.product((*YEARS, "2022"), YEARS)))
def test_every_official_sample_against_the_topics_of_every_year(shared, year, other):
    topics = topics_of(topics_file(shared, other))
    for name in SAMPLES[year]:
        submitted = read_runs(shared / name, topics)
        assert ("wrong_topics" in codes(submitted)) is (year != other), name


@pytest.mark.parametrize(("year", "other"), list(itertools.combinations(YEARS, 2)))
@pytest.mark.parametrize("given", [None, *YEARS])
def test_no_two_years_are_pooled_together(shared, tmp_path, year, other, given):
    paths = [whole_run(shared, year, tmp_path), whole_run(shared, other, tmp_path)]
    submitted = together(tmp_path, *paths, topics=topics_file(shared, given) if given else None)
    with pytest.raises(InputError) as refused:
        make_pool(submitted)
    for name in (year, other):
        assert f"{name}: 1 run ('whole-{name}'" in str(refused.value)
    assert "one call a year" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("topics", [True, False])
def test_the_example_mixes_formats_over_the_same_turns(topics):
    submitted = read_runs(EXAMPLES / "runs", topics_of(EXAMPLES / "topics.json") if topics else None)
    assert "wrong_topics" not in codes(submitted)
    assert len({run.format for run in submitted.runs}) == 4
    assert {run.year for run in submitted.runs} == {None}
    assert len(make_pool(submitted).responses) > 70


def test_one_wrong_turn_in_a_good_run_is_a_problem_of_that_turn(shared, tmp_path):
    path = whole_run(shared, "2025", tmp_path)
    run = json.loads(path.read_text())
    run["turns"][0]["turn_id"] = "10-1_1"
    path.write_text(json.dumps(run))
    submitted = read_runs(path, topics_of(topics_file(shared, "2025")))
    assert {"unknown_turn", "missing_turn"} <= codes(submitted)
    assert "wrong_topics" not in codes(submitted)


def test_runs_of_one_year_in_several_formats_are_pooled(shared, tmp_path):
    """A run of 2025 beside a run of the same turns in the form of 2023."""
    paths = [whole_run(shared, "2025", tmp_path), shared / SAMPLES["2025"][0]]
    for topics in (None, topics_file(shared, "2025")):
        (tmp_path / str(topics is None)).mkdir()
        submitted = together(tmp_path / str(topics is None), *paths, topics=topics)
        assert {run.year for run in submitted.runs} == {2025}
        assert make_pool(submitted).responses


def test_a_run_of_another_year_is_not_added_to_a_pool(shared, tmp_path):
    old, new = (whole_run(shared, year, tmp_path) for year in ("2023", "2025"))
    earlier = read_runs(old)
    pool = make_pool(earlier)
    pool = msgspec.structs.replace(pool, runs=tuple(pooled_run(run) for run in earlier.runs))
    with pytest.raises(
        InputError, match="2023: 1 run \\('whole-2023'\\); 2025: 1 run \\('whole-2025': 16 of its 188 turns"
    ):
        make_pool(read_runs(new), previous=pool)
    # The run itself may be replaced.
    assert len(make_pool(earlier, previous=pool).responses) == len(pool.responses)


def pooled_run(run) -> PooledRun:
    return PooledRun(run.run_id, run.run_type, run.team, run.format, run.digest, True, None, run.year)


def test_runs_of_another_year_may_lie_in_the_folder_if_they_are_not_selected(shared, tmp_path):
    submitted = together(tmp_path, *(whole_run(shared, year, tmp_path) for year in ("2023", "2025")))
    chosen = leave_out(submitted, {"whole-2025"}, {"whole-2023": "not listed"})
    assert {response.runs[0].run_id for response in make_pool(chosen).responses} == {"whole-2025"}
