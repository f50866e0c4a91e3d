import pytest

from judge.ask.line import TaskLine
from judge.ask.tasks import tasks
from tests.ask.test_loop import criterion, pool

WANTED = tasks(pool(["a", "b", "c", "d", "e"]), [criterion()])


def taken(line: TaskLine, *far: bool) -> list[tuple[int, bool]]:
    return [tuple(line.take(far=each)) for each in far]


def test_neighbors_follow_each_other_and_a_far_task_is_from_the_other_end() -> None:
    line = TaskLine(WANTED, [4, 0, 2, 3], lambda task: False)
    assert len(line) == 4
    assert taken(line, False, True, False) == [(0, False), (4, True), (2, False)]
    # The last one has no neighbors left.
    assert taken(line, False) == [(3, True)]
    assert not line
    with pytest.raises(IndexError):
        line.take()


def test_suspects_are_last() -> None:
    line = TaskLine(WANTED, range(5), lambda task: task.response.text in "ae")
    assert taken(line, False, True, False, False, True) == [(1, False), (3, True), (2, True), (0, True), (4, True)]


def test_what_other_processes_ask_is_behind_all_others() -> None:
    line = TaskLine(WANTED, [0, 1, 2], lambda task: task.response.text == "c")
    assert taken(line, False) == [(0, False)]
    line.leave(0)
    assert (len(line), line.only_elsewhere) == (3, False)
    assert taken(line, False, False) == [(1, True), (2, True)]
    assert line.only_elsewhere
    # It says nothing about the judge, so it is not far from what came before.
    assert taken(line, True) == [(0, False)]
    assert not line.only_elsewhere
