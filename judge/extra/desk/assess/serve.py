"""A desk for assessors, from the files to the last label of the day: what `judge serve assess` does."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from judge.extra.desk.assess.desk import AssessDesk
from judge.extra.desk.assess.inputs import read_work
from judge.extra.desk.assess.plan import AssessPlan
from judge.extra.desk.assess.store import LabelStore
from judge.extra.desk.guard import Seat
from judge.extra.desk.server import Listener, listen, serve_desk
from judge.gold.sampling import deal
from judge.records import Record


class Labeled(Record, frozen=True):
    """How far an assessor is."""

    assessor: str
    labels: int
    tasks: int


@contextmanager
def open_assess_desk(plan: AssessPlan) -> Iterator[tuple[AssessDesk, LabelStore]]:
    """Open a desk and its store, which are closed at the end; `.app()` of the desk is an ASGI application.

    Raises:
        UsageError: The plan asks for what cannot be done, or for sealed test items.
        InputError: A file is bad, or the store belongs to another plan.
        OperationalError: Another process has the store open.
    """
    work = read_work(plan)
    dealt = deal([item.response_id for item in work.items], plan.assessors, plan.shared, plan.seed)
    with LabelStore(plan.store, work.settings, work.items, plan.assessors, dealt) as store:
        yield AssessDesk(work, store), store


def serve_assess(
    plan: AssessPlan, ready: Callable[[Listener, Sequence[Seat]], None] = lambda listener, seats: None
) -> tuple[Labeled, ...]:
    """Let assessors label until Ctrl-C; every label is on the disk before the page says that it was saved.

    Args:
        plan: What is labeled, by whom, and where.
        ready: Called with the address and the seats when the desk can be visited.

    Returns:
        How far each assessor is.

    Raises:
        UsageError: The plan asks for what cannot be done, or for sealed test items.
        InputError: A file is bad, or the store belongs to another plan.
        OperationalError: Another process has the store open, or answers at the address.
    """
    with open_assess_desk(plan) as (desk, store):
        listener = listen(plan.host, plan.port)
        serve_desk(desk.app(listener.hosts, listener.port), listener, lambda: ready(listener, store.seats))
        return tuple(
            Labeled(seat.name, len(store.labeled(seat.path)), len(store.tasks(seat.path))) for seat in store.seats
        )
