"""A review desk from a plan to its end: what `judge serve review` does, for use from Python."""

from collections.abc import Callable, Sequence

from judge.desk.guard import Seat, new_token
from judge.desk.review.desk import Review
from judge.desk.review.plan import ReviewPlan
from judge.desk.server import Listener, listen, serve_desk


def serve_review(
    plan: ReviewPlan, ready: Callable[[Listener, Sequence[Seat]], None] = lambda listener, seats: None
) -> None:
    """Serve a review desk until Ctrl-C; a rerun under way sends no further call then, and keeps what is paid.

    Args:
        plan: What to review.
        ready: Called with the address and the seat when the desk can be visited.

    Raises:
        InputError: The folder, the gold or a prompt cannot be read.
        UsageError: Options do not go together, gold holds grades of a test part, or the host is none of this machine.
        OperationalError: Another process answers at the address.
    """
    seat = Seat("review", "Review", new_token())
    listener = listen(plan.host, plan.port)
    with listener.socket:
        review = Review(plan, seat, listener.hosts, listener.port)
        try:
            serve_desk(review.app, listener, lambda: ready(listener, [seat]))
        finally:
            review.job.stop()
            review.job.wait()
