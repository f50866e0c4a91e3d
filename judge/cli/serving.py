"""How the commands that serve a desk say where it is."""

from collections.abc import Sequence

from judge.cli.printing import say
from judge.desk.guard import Seat
from judge.desk.server import Listener
from judge.text.safe import printable


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
