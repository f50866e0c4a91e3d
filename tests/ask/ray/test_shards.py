import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.ask.ray.shards import ShardLine, part_of
from judge.ask.tasks import tasks
from tests.ask.test_loop import criterion, pool

TASKS = tasks(pool(list("abcdefghij")), [criterion(), criterion("relevance")])
"""Ten turns with two tasks each: task n and task n + 10 are of turn n."""


def test_the_tasks_of_a_turn_stay_together() -> None:
    line = ShardLine(TASKS, range(20), workers=1, least=1)
    # A fourth of the 20 tasks are 5, which three turns have.
    assert line.take() == ((0, 10), (1, 11), (2, 12))
    # A fourth of the other 14 are 3.
    assert line.take() == ((3, 13), (4, 14))
    assert (len(line), line.turns) == (10, 5)


def test_a_shard_has_enough_to_keep_its_calls_in_flight() -> None:
    assert ShardLine(TASKS, range(20), workers=5, least=4).take() == ((0, 10), (1, 11))


def test_turns_are_in_natural_order_and_only_what_is_open_is_there() -> None:
    many = tasks(pool([str(number) for number in range(12)]), [criterion()])
    line = ShardLine(many, [10, 9, 2], workers=1, least=3)
    assert line.take() == ((2,), (9,), (10,))
    assert line.take() == ()


def test_a_shard_that_comes_back_is_the_next_one() -> None:
    line = ShardLine(TASKS, range(20), workers=2, least=4)
    first = line.take()
    line.put_back(first)
    assert (len(line), line.take()) == (20, first)


@given(st.sets(st.integers(0, 19)), st.integers(1, 7), st.integers(1, 9), st.lists(st.booleans(), max_size=9))
def test_every_task_is_in_one_shard(numbers: set[int], workers: int, least: int, lost: list[bool]) -> None:
    line = ShardLine(TASKS, sorted(numbers), workers, least)
    done: list[int] = []
    while shard := line.take():
        if lost and lost.pop():
            line.put_back(shard)
            continue
        assert len({TASKS[number].response.turn_id for turn in shard for number in turn}) == len(shard)
        done += [number for turn in shard for number in turn]
    assert (sorted(done), len(line)) == (sorted(numbers), 0)


@pytest.mark.parametrize(("whole", "parts"), [(16, 3), (2, 2), (600, 7)])
def test_parts_make_the_whole(whole: int, parts: int) -> None:
    several = [part_of(whole, number, parts) for number in range(parts)]
    assert sum(several) == whole
    assert max(several) - min(several) <= 1
