"""How the commands that serve a desk take its address, and say where it is."""

import argparse
import re
from collections.abc import Sequence

from judge.cli.printing import say
from judge.desk.guard import Seat
from judge.desk.server import PORT, Listener
from judge.text.safe import printable


def add_address_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the desk answers."""
    group = parser.add_argument_group("address")
    group.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="NAME",
        help="network interface to answer at (default 127.0.0.1: this machine alone)",
    )
    group.add_argument(
        "--port", type=_port, default=PORT, metavar="N", help=f"port to answer at; 0 takes a free one (default {PORT})"
    )


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


def _port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text, re.ASCII) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)
