"""Dialogues of runs: what was said, in turns that the run lacks too, and pools in which each is one item."""

import json

import pytest

from judge.errors import UsageError
from judge.io.files import jsonl_bytes
from judge.pool.admission import by_topic
from judge.pool.bank import passages_jsonl, pool_jsonl, pool_lines, read_pool
from judge.pool.conversation import turns_shown
from judge.pool.intake import make_pool, read_runs
from judge.pool.runs import with_runs
from judge.pool.selection import PassageRelevance, Selection
from judge.runs.records import Exchange, PtkbStatement, Topic, Turn
from tests.conftest import refused
from tests.pool.test_conversation import THEN, TIDE, TODAY, automatic, folder_of, talk

DIALOGUES = Selection(unit="dialogue")
TOLD = (PtkbStatement("1", "You swim."),)


def topic(topic_id, *utterances):
    turns = []
    for number, utterance in enumerate(utterances, 1):
        context = tuple(Exchange(earlier.utterance, "canonical") for earlier in turns)
        turns.append(Turn(f"{topic_id}_{number}", topic_id, utterance, None, context, TOLD))
    return Topic(topic_id, None, TOLD, tuple(turns))


TOPICS = (topic("1-1", "Is it deep?", "And cold?", "And today?"), topic("2-1", "Hello?", "Anybody?"))
TURNS = {turn.turn_id: turn for each in TOPICS for turn in each.turns}


def run_of(run_id, **texts):
    """A run with the given texts of turns such as `t1_1_2`, for `1-1_2`."""
    turns = []
    for name, text in texts.items():
        first, second, number = name[1:].split("_")
        turns += automatic(run_id, f"{first}-{second}_{number}", text)["turns"]
    return {"run_name": run_id, "run_type": "automatic", "eval_response": True, "turns": turns}


def pooled(folder, topics=TOPICS, **runs):
    submitted = read_runs(folder_of(folder, **runs), topics, selection=DIALOGUES)
    turns = {turn.turn_id: turn for each in topics for turn in each.turns} if topics is not None else None
    return with_runs(submitted, make_pool(submitted), turns, DIALOGUES, None)


def shown(pool, response):
    turn = turns_shown(pool, None)[response.turn_id]
    return [*((said.utterance, said.response) for said in turn.context), (turn.utterance, response.text)]


FULL = {"t1_1_1": "Three meters.", "t1_1_2": "It is.", "t1_1_3": "Twelve degrees."}


def test_a_dialogue_is_all_of_a_topic_with_the_users_words_of_the_topics(tmp_path):
    pool = pooled(tmp_path / "runs", gull=run_of("gull", **FULL, t2_1_1="Hello."))
    one, two = pool.responses
    assert pool.unit == "dialogue"
    assert [(r.topic_id, r.passages, r.unit) for r in pool.responses] == [
        ("1-1", (), "dialogue"),
        ("2-1", (), "dialogue"),
    ]
    assert shown(pool, one) == [
        ("Is it deep?", "Three meters."),
        ("And cold?", "It is."),
        ("And today?", "Twelve degrees."),
    ]
    # The user's last words stand there without an answer.
    assert shown(pool, two) == [("Hello?", "Hello."), ("Anybody?", "")]
    assert [turn.ptkb for turn in pool.turns.values()] == [("You swim.",), (), (), ("You swim.",), ()]
    assert pool_lines(pool) == "1-1 Q0 R00000 1 0.0 judge\n2-1 Q0 R00001 1 0.0 judge\n"


def test_a_turn_without_a_response_stays_in_the_dialogue_and_strange_turns_do_not(tmp_path):
    pool = pooled(tmp_path / "runs", gull=run_of("gull", t1_1_1="  ", t1_1_3="Twelve.", t1_1_7="Of no topic."))
    (one,) = pool.responses
    assert shown(pool, one) == [("Is it deep?", "  "), ("And cold?", ""), ("And today?", "Twelve.")]
    assert {(row.turn_id, row.reason) for row in pool.exclusions} == {
        ("1-1_7", "turn_number_too_high"),
        ("2-1_1", "missing_turn"),
        ("2-1_2", "missing_turn"),
        ("2-1_0~unreached", "unreached_topic"),
    }


def test_equal_dialogues_are_one_item_and_each_run_has_one_expected_item_a_topic(tmp_path):
    other = FULL | {"t1_1_2": "No."}
    pool = pooled(
        tmp_path / "runs",
        gull=run_of("gull", **FULL, t2_1_2="Me."),
        tern=run_of("tern", **FULL),
        auk=run_of("auk", **other),
    )
    # The order is that of the digests of what was said.
    assert {(r.topic_id, tuple(entry.run_id for entry in r.runs)) for r in pool.responses} == {
        ("1-1", ("auk",)),
        ("1-1", ("gull", "tern")),
        ("2-1", ("gull",)),
    }
    items = {(entry.run_id, r.topic_id): r.turn_id for r in pool.responses for entry in r.runs}
    assert {run.run_id: run.turns for run in pool.runs} == {
        "auk": (items["auk", "1-1"], "2-1_0~unreached"),
        "gull": (items["gull", "1-1"], items["gull", "2-1"]),
        "tern": (items["tern", "1-1"], "2-1_0~unreached"),
    }


def test_interactive_runs_need_no_topics_and_share_a_pool_with_others(tmp_path):
    pool = pooled(tmp_path / "runs", None, tern=talk("tern", TIDE, TODAY, THEN))
    (one,) = pool.responses
    assert shown(pool, one) == [
        ("Can I swim here?", "At low tide."),
        ("And today?", "Low tide is at noon."),
        ("And then?", "Rest."),
    ]
    mixed = pooled(tmp_path / "mixed", tern=talk("tern", TIDE, TODAY, THEN), gull=run_of("gull", **FULL))
    assert {run.run_id: len(run.turns) for run in mixed.runs} == {"gull": 2, "tern": 2}
    assert len({response.turn_id for response in mixed.responses}) == 2


def test_of_several_responses_the_best_ranked_one_was_said(tmp_path):
    run = run_of("gull", **FULL)
    run["turns"][0]["responses"].append({**run["turns"][0]["responses"][0], "rank": 2, "text": "Deep."})
    pool = pooled(tmp_path / "runs", gull=run)
    assert shown(pool, pool.responses[0])[0] == ("Is it deep?", "Three meters.")
    (lower,) = [row for row in pool.exclusions if row.reason == "below_depth"]
    assert (lower.turn_id.partition("~")[0], lower.rank) == ("1-1_1", 2)
    # That row is of a turn, and the run had to answer topics.
    assert {run.run_id: run.turns for run in pool.runs} == {"gull": (pool.responses[0].turn_id, "2-1_0~unreached")}


def test_turns_of_interactive_runs_that_are_of_no_topic_are_in_no_dialogue(tmp_path):
    strange = [("9-9_1", "Who are you?", "A gull.", []), ("nowhere", "Where?", "Here.", [])]
    again = ("1-1_2", "And again?", "Not counted.", [])
    pool = pooled(tmp_path / "runs", tern=talk("tern", TIDE, *strange, TODAY, again))
    (one,) = pool.responses
    assert shown(pool, one) == [("Can I swim here?", "At low tide."), ("And today?", "Low tide is at noon.")]
    assert {(row.turn_id, row.reason) for row in pool.exclusions} == {
        ("9-9_1", "unknown_turn"),
        ("nowhere", "malformed_turn_id"),
        ("1-1_2", "duplicate_turn"),
        ("2-1_0~unreached", "unreached_topic"),
    }


def test_a_run_that_asked_not_to_be_judged_has_no_dialogue(tmp_path):
    pool = pooled(
        tmp_path / "runs", gull=run_of("gull", **FULL) | {"eval_response": False}, tern=run_of("tern", **FULL)
    )
    assert [entry.run_id for response in pool.responses for entry in response.runs] == ["tern"]
    assert {row.run_id for row in pool.exclusions if row.reason == "eval_response_false"} == {"gull"}


def test_topics_that_branch_are_refused():
    turns = {
        "1_1": Turn("1_1", "1", "Hi", None, (), ()),
        "1_2": Turn("1_2", "1", "Left?", None, (Exchange("Hi", "x"),), ()),
        "1_3": Turn("1_3", "1", "Right?", None, (Exchange("Hi", "x"),), ()),
    }
    with pytest.raises(UsageError, match="topic '1': turn '1_3' does not follow all turns before it"):
        by_topic(turns)
    assert list(by_topic(TURNS)) == ["1-1", "2-1"]


@pytest.mark.parametrize(
    ("unit", "chosen", "told"),
    [
        ("dialogue", {"depth": 2}, "a dialogue has all turns"),
        ("dialogue", {"turns": frozenset({"1-1_1"})}, "a dialogue has all turns"),
        ("dialogue", {"relevance": PassageRelevance({})}, "a dialogue has all turns"),
        ("citation", {"depth": 2}, "all citations of a response are pooled"),
        ("citation", {"relevance": PassageRelevance({})}, "all citations of a response are pooled"),
    ],
)
def test_nothing_of_a_dialogue_or_of_the_citations_of_a_response_is_selected(unit, chosen, told):
    with pytest.raises(UsageError, match=told):
        Selection(unit=unit, **chosen)


def test_a_pool_of_dialogues_is_read_back_and_holds_no_responses(tmp_path):
    pool = pooled(tmp_path / "runs", gull=run_of("gull", **FULL, t2_1_1="Hello."))
    stored = pool_jsonl(pool)
    back = read_pool(stored, passages_jsonl(pool), "pool", turns=jsonl_bytes(pool.turns.values()))
    assert (back.responses, back.turns, back.unit) == (pool.responses, pool.turns, "dialogue")
    lines = [json.loads(line) for line in stored.splitlines()]
    lines[1].pop("unit")
    mixed = b"\n".join(json.dumps(line).encode() for line in lines)
    problems = refused(read_pool, mixed, b"", "pool", turns=jsonl_bytes(pool.turns.values()))
    assert [problem.message for problem in problems] == ["R00001 is one response, the first line is not"]
