"""Which graded responses become examples of a prompt, and that comparisons leave them out."""

import pytest
from msgspec.structs import replace

from judge.ask.criteria import find_criterion
from judge.errors import UsageError
from judge.gold.examples import ExampleCandidate, choose_examples, without_examples
from judge.gold.rows import GoldRow, text_digest
from judge.io.ids import topic_of
from judge.io.text import digest
from judge.pool.records import Pool
from judge.records import Criterion, Example
from tests import build

MOST = 1000


def candidate(turn_id: str, text: str, grade: int, judged: int | None = None) -> ExampleCandidate:
    example = Example(turn_id=turn_id, response_sha256=text_digest(text), grade=grade, shown=(("response", (text,)),))
    return ExampleCandidate(example=example, topic_id=topic_of(turn_id), judged=judged)


# Name: turn, text, the people's grade, the judge's.
TABLE = {
    "a": candidate("1_1", "aaaa", 0, 0),
    "b": candidate("1_2", "bbbb", 0, 2),
    "c": candidate("2_1", "cccc", 3, 3),
    "d": candidate("1_3", "dddd", 3, 3),
    "e": candidate("2_2", "eeee", 1, None),
    "f": candidate("1_4", "ffff" * 50, 2, 0),
}
NAMES = {one.example.response_sha256: name for name, one in TABLE.items()}


def chosen(k: int, seed: int = 1, most: int = MOST, rows: str = "abcdef") -> str:
    table = [TABLE[name] for name in rows]
    return "".join(NAMES[one.example.response_sha256] for one in choose_examples(table, k, seed, most))


@pytest.mark.parametrize(
    ("k", "names"),
    [
        # Grade 0 first, where the judge gave b another; then 3, of topic 2, which has no example yet.
        (1, "b"),
        (2, "bc"),
        # Then inwards: e has no grade of the judge, f is the only one of grade 2.
        (3, "bce"),
        (4, "bcef"),
        # The second round.
        (5, "bcefa"),
        (6, "bcefad"),
        # There are no more.
        (9, "bcefad"),
    ],
)
def test_grades_take_turns_and_disagreements_come_first(k: int, names: str) -> None:
    assert chosen(k) == names
    assert chosen(k, rows="fedcba") == names


def test_texts_have_a_bound_together() -> None:
    # The text of f has 200 characters.
    assert chosen(6, most=199) == "bcead"
    assert chosen(6, most=12) == "bce"
    assert chosen(6, most=3) == ""


def test_one_text_is_no_example_twice() -> None:
    twice = [candidate("1_1", "same", 0), candidate("2_1", "same", 3)]
    assert [one.example.grade for one in choose_examples(twice, 2, 1, MOST)] == [0]


def test_the_seed_decides_among_equals() -> None:
    equals = [candidate(f"{n}_1", f"text {n}", 0) for n in range(1, 6)]
    drawn = {choose_examples(equals, 1, seed, MOST)[0].example.turn_id for seed in range(20)}
    assert len(drawn) > 2
    first = min(equals, key=lambda one: digest(f"7\n{one.example.turn_id}\n{one.example.response_sha256}"))
    assert choose_examples(equals, 1, 7, MOST) == (first,)


def prompt(*shown: ExampleCandidate) -> Criterion:
    criterion = find_criterion("groundedness/graded")
    return replace(criterion, examples=tuple(one.example for one in shown), variant="mine", digest="m" * 64)


def graded(turn_id: str, text: str | None, criterion: str = "groundedness", **more: object) -> GoldRow:
    return GoldRow(
        turn_id=turn_id, topic_id=topic_of(turn_id), criterion=criterion, grade=1, assessor="ann",
        text_sha256=None if text is None else text_digest(text), **more,
    )  # type: ignore[arg-type] # fmt: skip


ROWS = (
    graded("1_1", "aaaa"),
    graded("1_1", "aaaa", "naturalness"),
    graded("5_1", " aaaa "),
    graded("1_2", "bbbb"),
    graded("9_1", "other"),
)


def test_a_comparison_leaves_out_what_was_shown_wherever_the_text_stands() -> None:
    left = without_examples(ROWS, [prompt(TABLE["a"])], None)
    assert left.rows == (ROWS[1], ROWS[3], ROWS[4])
    assert left.warnings == (
        "groundedness: 2 gold responses left out for every judge, shown as examples by groundedness/mine",
    )


def test_a_prompt_without_examples_leaves_out_nothing() -> None:
    assert without_examples(ROWS, [find_criterion("groundedness/graded")], None) == (ROWS, ())
    assert without_examples(ROWS[4:], [prompt(TABLE["a"])], None) == (ROWS[4:], ())


def test_a_row_that_names_its_response_by_id_needs_the_pool() -> None:
    row = graded("1_1", None, response_id="R1")
    pool = Pool((build.pooled("R1", "1_1", "run", text="aaaa"), build.pooled("R2", "1_1", "run", text="b")), {}, ())
    assert without_examples([row], [prompt(TABLE["a"])], pool).rows == ()
    assert without_examples([row], [prompt(TABLE["b"])], pool).rows == (row,)
    with pytest.raises(UsageError, match="R1 by its id: --pool is needed"):
        without_examples([row], [prompt(TABLE["a"])], None)


def test_an_example_of_a_test_topic_is_refused() -> None:
    with pytest.raises(UsageError, match=r"shows 1 example of the test part \(1_1\)"):
        without_examples([graded("1_9", "z", split="test")], [prompt(TABLE["a"], TABLE["c"])], None)
    with pytest.raises(UsageError, match=r"shows 1 example of the test part \(2_1\)"):
        without_examples(ROWS, [prompt(TABLE["a"], TABLE["c"])], None, ["2"])
