"""The desk in a browser, at which assessors label."""

from collections.abc import Sequence

from judge.cli.parser import read_examples
from judge.cli.printing import say
from judge.extra.desk.app import Listener, Seat
from judge.extra.desk.assess import AssessPlan, serve_assess
from judge.io.text import printable


def assess(plan: AssessPlan) -> int:
    """Serve a desk at which assessors label pooled responses in a browser.

    Each assessor gets a link, an order of their own and nobody else's labels. No grade of a judge is shown, unless
    --made postedit asks for it. Every label is on the disk before the page says so; the same command resumes.
    `judge gold import desk` makes gold of the labels. --adjudicate deals what two people differ on to a third.
    """
    for assessor, labels, tasks in serve_assess(plan, say_links, say):
        say(f"{assessor}: {labels} of {tasks} labeled")
    say(f"gold of them: judge gold import desk {plan.store} --out gold.jsonl")
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


COMMANDS = {"serve assess": assess}

EXAMPLES = read_examples(__file__)
