"""Desks in a browser: one at which assessors label, and one at which a prompt is improved."""

from collections.abc import Sequence

from judge.ask.options import ASKING
from judge.cli.parser import read_examples
from judge.cli.printing import say
from judge.extra.desk.app import Listener, Seat
from judge.extra.desk.assess import AssessPlan, serve_assess
from judge.extra.desk.rerun import ReviewPlan
from judge.extra.desk.review import serve_review
from judge.io.text import printable


def assess(plan: AssessPlan) -> int:
    """Serve a desk at which assessors label pooled responses in a browser.

    Each assessor gets a link, an order of their own and nobody else's labels. No grade of a judge is shown, unless
    --made postedit asks for it. Every label is on the disk before the page says so; the same command resumes.
    `judge gold import desk` makes gold of the labels.
    """
    for assessor, labels, tasks in serve_assess(plan, say_links):
        say(f"{assessor}: {labels} of {tasks} labeled")
    say(f"gold of them: judge gold import desk {plan.store} --out gold.jsonl")
    return 0


def review(plan: ReviewPlan) -> int:
    """Serve a desk at which a prompt is improved, beside what judges and assessors disagree on, worst first.

    A new wording is saved as a prompt file of its own. With --gold, --pool and --model it is asked again on dev items,
    and set beside the old one: the difference of the files, agreement before and after, and the items that changed.
    """
    if not plan.models:
        plan.refuse_unused((*ASKING, "topics", "gold_scale"), "they are about asking a judge, which --model names")
    serve_review(plan, say_links)
    if plan.home.exists():
        say(f"new wordings and reruns are kept in {plan.home}")
    return 0


def say_links(listener: Listener, seats: Sequence[Seat]) -> None:
    """Print the link of each seat, which is all that a person needs."""
    if not listener.local:
        say(
            "Warning: other machines can reach this desk. What goes to and fro is not encrypted, and whoever has a "
            "link is let in: use a network that you trust, or a tunnel"
        )
    for name, link in listener.links(seats):
        print(f"{printable(name)}: {link}" if len(seats) > 1 else link, flush=True)
    say("Open the link in a browser. Ctrl-C stops the desk")


COMMANDS = {"serve assess": assess, "serve review": review}

EXAMPLES = read_examples(__file__)
