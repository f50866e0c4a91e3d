from judge.ask.order import in_order
from judge.ask.tasks import tasks
from tests.ask.test_loop import criterion, pool

WANTED = tasks(pool(["a", "b", "c", "d", "e"]), [criterion("naturalness"), criterion("groundedness")])


def test_neighbors_follow_each_other() -> None:
    """By prompt and turn, whatever the order of the numbers."""
    assert in_order(WANTED, [4, 0, 9, 2, 5]).tolist() == [5, 9, 0, 2, 4]
