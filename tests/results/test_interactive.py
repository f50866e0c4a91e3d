"""Interactive runs in the leaderboard: topics never reached, both means, and each run on its own turns."""

import msgspec
import pytest

from judge.io.table import records_tsv
from judge.pool.records import Pool, PooledRun
from judge.records import Passage
from judge.report.sections import flag_words
from judge.results.details import TOPICS
from judge.results.leaderboard import leaderboard, leaderboard_markdown
from judge.results.qrels import qrels_text
from judge.results.rows import Score
from judge.results.tables import result_tables
from judge.units.response import RESPONSE
from tests.results.test_leaderboard import criterion, failure, judgment, pooled


def run_of(run_id: str, *turns: str, format: str = "interactive") -> PooledRun:
    return PooledRun(run_id, "interactive", None, format, "", True, turns)


def pool_of(runs: dict[str, tuple[str, ...]], *responses) -> Pool:
    return Pool(responses, {}, (), tuple(run_of(run_id, *turns) for run_id, turns in runs.items()))


# Topic 1 is a conversation of three turns with the grades 3, 2 and 1, topic 2 one of one turn with grade 0.
GULL = [
    (pooled("R0", "1_1~aa", ("gull", 1)), 3),
    (pooled("R1", "1_2~ab", ("gull", 1)), 2),
    (pooled("R2", "1_3~ac", ("gull", 1)), 1),
    (pooled("R3", "2_1~ad", ("gull", 1)), 0),
]
REACHED = ("1_1~aa", "1_2~ab", "1_3~ac", "2_1~ad")


def board(runs: dict[str, tuple[str, ...]], graded, failed=()) -> dict[str, Score]:
    pool = pool_of(runs, *(response for response, _ in graded), *failed)
    results = [*(judgment(response, grade) for response, grade in graded), *map(failure, failed)]
    return {row.run_id: row for row in leaderboard(pool, results, [criterion()])}


@pytest.mark.parametrize(
    ("unreached", "mean", "bound", "unanswered", "flags"),
    [
        ((), 6 / 4, 6 / 4, 0, ()),
        # Of four topics two were reached: 2/4 of 6/4, and 0 for the others.
        (("3_0~unreached", "4_0~unreached"), 6 / 4, (2 * 6 / 4 + 2 * 0) / 4, 2, ("UNREACHED",)),
    ],
)
def test_a_topic_never_reached_is_left_out_of_one_mean_and_the_worst_in_the_other(
    unreached, mean, bound, unanswered, flags
):
    row = board({"gull": (*REACHED, *unreached)}, GULL)["gull"]
    assert (row.mean.value, row.bound, row.counts["unanswered"], row.flags) == (mean, bound, unanswered, flags)
    assert (
        row.counts["turns"]
        == row.counts["n"]
        + row.counts["unable"]
        + row.counts["missing"]
        + row.counts["not_asked"]
        + row.counts["unanswered"]
        == 4 + unanswered
    )


def test_depth_is_the_run_s_own_and_unreached_topics_do_not_weigh_less_for_it():
    deep = [(pooled(f"R{k}", f"1_{k}~a{k}", ("deep", 1)), 3) for k in range(1, 9)]
    flat = [(pooled("R9", "1_1~b1", ("flat", 1)), 3)]
    runs = {"deep": (*(response.turn_id for response, _ in deep), "2_0~unreached"), "flat": ("1_1~b1", "2_0~unreached")}
    rows = board(runs, deep + flat)
    # Eight turns or one, each reached one topic of two.
    assert {run_id: (row.mean.value, row.bound, row.rank) for run_id, row in rows.items()} == {
        "deep": (3.0, 1.5, 1), "flat": (3.0, 1.5, 1),
    }  # fmt: skip


def test_turns_without_a_grade_and_unreached_topics_count_each_in_its_way():
    failed = pooled("R3", "2_1~ad", ("gull", 1))
    row = board({"gull": (*REACHED, "3_0~unreached")}, GULL[:3], [failed])["gull"]
    # (3 + 2 + 1 + 0) / 4 turns, of two topics in three.
    assert (row.mean.value, row.bound) == (6 / 3, 6 / 4 * 2 / 3)
    assert row.flags == ("MISSING", "UNREACHED")


def talk(run_id: str, grade: int, *depths: int):
    """A conversation of so many turns in topic 1, topic 2 and so on, each turn with the grade."""
    return [
        (pooled(f"R{run_id}{topic}{turn}", f"{topic}_{turn}~{run_id}", (run_id, 1)), grade)
        for topic, depth in enumerate(depths, 1)
        for turn in range(1, depth + 1)
    ]


def test_turns_that_a_short_conversation_lacks_count_as_unanswered():
    easy, long, deep = talk("ea", 3, 1, 1, 1), talk("c", 2, 3, 2, 1), talk("d", 2, 4, 2)
    runs = {one[0][0].runs[0].run_id: tuple(response.turn_id for response, _ in one) for one in (easy, long, deep)}
    rows = board({**runs, "mute": ("1_0~unreached",)}, easy + long + deep)
    # 3 turns are below two thirds of the 3 + 2 turns that both others have in topics 1 and 2, and the 1 that the only
    # other has in topic 3, of which none is lacking. So 9 of 3 turns become 9 of 6.
    found = [
        (row.run_id, row.more.get("turns_per_topic"), row.mean.value, row.bound, row.counts["n"], row.counts["turns"])
        for row in rows.values()
    ]
    assert found == [
        ("c", 2, 2, 2, 6, 6), ("d", 3, 2, 2, 6, 6), ("ea", 1, 3, 9 / 6, 3, 6),
        ("mute", None, None, 0, 0, 1),
    ]  # fmt: skip
    assert [row.flags for row in rows.values()] == [(), (), ("MISSING", "SHORT"), ("UNREACHED",)]
    text = leaderboard_markdown([*rows.values()], "", [criterion()])
    assert "1.0 turns a topic; MISSING SHORT" in text and "2.0 turns a topic |" in text
    pool = pool_of(runs, *(response for response, _ in easy + long + deep))
    results = [judgment(response, grade) for response, grade in easy + long + deep]
    topics = [row for row in result_tables(pool, results, [criterion()]).topics if row.run_id == "ea"]
    assert [(row.part, row.counts["turns"], row.mean.n, row.bound) for row in topics] == [
        ("1", 3, 1, 1), ("2", 2, 1, 1.5), ("3", 1, 1, 3), ("all", 6, 3, (1 + 1.5 + 3) / 3),
    ]  # fmt: skip
    # One longer run alone costs no other its rank, and three quarters of its turns are no flag.
    for others, flags in ((long, ("SHORT",)), (talk("c", 2, 2, 1, 1), ())):
        rows = board({"ea": runs["ea"], "c": tuple(response.turn_id for response, _ in others)}, easy + others)
        assert (rows["ea"].bound, rows["ea"].flags) == (3, flags)


def test_many_short_runs_do_not_make_short_conversations_usual():
    honest = [talk(name, 2, 5, 4) for name in ("a", "b")]
    easy = [talk(f"e{number}", 3, 1, 1) for number in range(5)]
    conversations = [*honest, *easy]
    runs = {one[0][0].runs[0].run_id: tuple(response.turn_id for response, _ in one) for one in conversations}
    rows = board(runs, [pair for one in conversations for pair in one])
    # Two others have 5 and 4 turns: 2 are below two thirds of 9, and 7 of 9 count as the worst grade, 3 · 2 / 9.
    for name, row in rows.items():
        short = name.startswith("e")
        assert (row.bound, row.flags) == ((6 / 9, ("MISSING", "SHORT")) if short else (2, ()))
    assert {rows[name].rank for name in ("a", "b")} == {1}
    assert {rows[f"e{number}"].rank for number in range(5)} == {3}


@pytest.mark.parametrize(
    ("own", "others", "lacking"),
    [
        # Two others have 6 turns: 3 are half of that. Of those with 4 or more the shortest has 5.
        (3, (9, 6, 5, 3, 1), 2),
        # Two thirds are enough.
        (4, (9, 6, 5, 3, 1), 0),
        # One long conversation is not usual.
        (3, (30, 4, 4), 0),
        (2, (30, 4), 2),
        (1, (30,), 0),
    ],
)
def test_turns_are_lacking_as_two_other_conversations_of_the_topic_have_them(own, others, lacking):
    conversations = [talk("x", 3, own), *(talk(f"o{number}", 2, n) for number, n in enumerate(others))]
    runs = {one[0][0].runs[0].run_id: tuple(response.turn_id for response, _ in one) for one in conversations}
    row = board(runs, [pair for one in conversations for pair in one])["x"]
    assert (row.counts["turns"], row.counts["unanswered"]) == (own + lacking, lacking)
    assert ("SHORT" in row.flags) == (lacking > 0 or others == (30,))


def test_a_conversation_is_compared_with_those_of_its_own_topic():
    # The run reached one topic, about which nobody says much; the others are long elsewhere.
    brief = talk("brief", 2, 2)
    others = [talk(name, 2, 2, 9) for name in ("a", "b")]
    conversations = [brief, *others]
    runs = {one[0][0].runs[0].run_id: tuple(response.turn_id for response, _ in one) for one in conversations}
    rows = board(runs, [pair for one in conversations for pair in one])
    assert rows["brief"].flags == ()


def test_grades_by_passage_texts_of_the_run_s_own_are_flagged():
    shown = msgspec.structs.replace(criterion(), inputs=("passages", "response"))
    texts = {"p#0": Passage("p", "planted", "run"), "p": Passage("p", "true", "collection")}
    a, b = (
        msgspec.structs.replace(pooled(f"R{key}", "1_1", (run_id, 1)), passages=(key,))
        for run_id, key in (("planted", "p#0"), ("honest", "p"))
    )
    for prompt, flags in ((shown, ("OWNTEXT",)), (criterion(), ())):
        rows = leaderboard(Pool((a, b), texts, ()), [judgment(a, 3), judgment(b, 2)], [prompt])
        assert [(row.run_id, row.flags) for row in rows] == [("planted", flags), ("honest", ())]
    rows = leaderboard(Pool((a, b), texts, ()), [failure(a), judgment(b, 2)], [shown])
    assert [row.flags for row in rows] == [(), ("MISSING",)]


def test_a_run_that_reached_nothing_has_the_worst_grade():
    row = board({"gull": REACHED, "mute": ("1_0~unreached", "2_0~unreached")}, GULL)["mute"]
    assert (row.mean.value, row.bound, row.counts["turns"], row.counts["unanswered"], row.rank) == (None, 0.0, 2, 2, 2)


def test_a_scale_on_which_lower_is_better_has_its_own_worst_grade():
    down = criterion(polarity="lower", positive=(0,))
    pool = pool_of({"gull": (*REACHED, "3_0~unreached")}, *(response for response, _ in GULL))
    results = [judgment(response, grade) for response, grade in GULL]
    (row,) = leaderboard(pool, results, [down])
    assert row.bound == (2 * 6 / 4 + 3) / 3


def test_no_run_has_to_answer_another_run_s_turns():
    auto = pooled("R9", "1_1", ("auto", 1))
    pool = Pool(
        (*(response for response, _ in GULL), auto), {}, (),
        (run_of("gull", *REACHED), run_of("auto", "1_1", format="ikat2025")),
    )  # fmt: skip
    results = [*(judgment(response, grade) for response, grade in GULL), judgment(auto, 2)]
    rows = leaderboard(pool, results, [criterion()])
    assert {row.run_id: (row.counts["turns"], row.bound) for row in rows} == {"gull": (4, 1.5), "auto": (1, 2.0)}
    # Also where nothing says which turns a run had to answer.
    rows = leaderboard(Pool(pool.responses, {}, ()), results, [criterion()])
    assert {row.run_id: row.counts["turns"] for row in rows} == {"gull": 5, "auto": 1}


def test_topics_are_shown_one_by_one():
    pool = pool_of({"gull": (*REACHED, "3_0~unreached")}, *(response for response, _ in GULL))
    results = [judgment(response, grade) for response, grade in GULL[:2]] + [
        failure(GULL[2][0]),
        judgment(GULL[3][0], 1),
    ]
    rows = result_tables(pool, results, [criterion()]).topics
    found = [(row.run_id, row.criterion, row.part, *row.counts.values(), row.mean.n) for row in rows]
    assert found == [
        ("gull", "groundedness", "1", 1, 1, 3, 2),
        ("gull", "groundedness", "2", 1, 1, 1, 1),
        ("gull", "groundedness", "3", 1, 0, 0, 0),
        ("gull", "groundedness", "all", 3, 2, 4, 3),
    ]
    assert [row.mean.value for row in rows] == [5 / 2, 1.0, None, (5 / 2 + 1) / 2]
    assert [row.bound for row in rows] == [5 / 3, 1.0, 0.0, (5 / 3 + 1 + 0) / 3]
    lines = records_tsv(TOPICS, rows, 4).splitlines()
    assert lines[0].split() == "run_id criterion topic_id topics reached turns n mean bound".split()
    assert lines[3] == "gull\tgroundedness\t3\t1\t0\t0\t0\t\t0.0000"
    assert result_tables(Pool((pooled("R0", "1_1", ("auto", 1)),), {}, ()), [], [criterion()]).topics == ()


def test_interactive_runs_are_compared_on_topics_and_with_no_other_run():
    tern = [(pooled("R5", "1_1~ba", ("tern", 1)), 3), (pooled("R6", "2_1~bb", ("tern", 1)), 2)]
    auto = pooled("R9", "1_1", ("auto", 1))
    runs = {"gull": (*REACHED, "3_0~unreached"), "tern": ("1_1~ba", "2_1~bb", "3_0~unreached"), "auto": ("1_1",)}
    pool = pool_of(runs, *(response for response, _ in GULL + tern), auto)
    results = [*(judgment(response, grade) for response, grade in GULL + tern), judgment(auto, 3)]
    rows = result_tables(pool, results, [criterion()]).differences
    found = {(row.run_a, row.run_b): (row.difference.value, row.difference.n) for row in rows}
    # Topic 1: 2 and 3; topic 2: 0 and 2; topic 3: both never reached it.
    assert found == {
        ("auto", "gull"): (None, 0), ("auto", "tern"): (None, 0), ("gull", "tern"): ((2 - 3 + 0 - 2 + 0) / 3, 3),
    }  # fmt: skip


def test_qrels_name_the_turn_of_the_conversation():
    text = qrels_text([judgment(response, grade) for response, grade in GULL], criterion())
    assert text == "1_1~aa 0 R0 3\n1_2~ab 0 R1 2\n1_3~ac 0 R2 1\n2_1~ad 0 R3 0\n"


def test_the_legend_of_a_short_run_is_true_with_one_other_run() -> None:
    """With 1 turn a topic against 6 it is flagged, and as no two others reached a topic, nothing counts against it."""
    ann = talk("ann", 3, 1, 1, 1)
    bob = talk("bob", 2, 6, 6, 6)
    runs = {"ann": tuple(of.turn_id for of, _ in ann), "bob": tuple(of.turn_id for of, _ in bob)}
    rows = board(runs, [*ann, *bob])
    assert (rows["ann"].flags, rows["ann"].counts["unanswered"], rows["ann"].bound) == (("SHORT",), 0, 3.0)
    text = leaderboard_markdown(list(rows.values()), "", [criterion()], ())
    said = (
        "SHORT: less than two thirds of the turns that others have in the same topics; where two or more others reached"
    )
    assert said in text
    assert "where two or more reached a topic" in flag_words(RESPONSE.nouns)["SHORT"]
