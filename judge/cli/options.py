"""Options that several commands share."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.models.secrets import redact
from judge.runs.formats import FORMATS


class _ActionParser(argparse.ArgumentParser):
    """Reports an unknown option with the usage of its action; argparse would show the usage of the whole command."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(redact(f"unrecognized arguments: {' '.join(unknown)}"))
        return known, unknown


def add_actions(parser: argparse.ArgumentParser, names: str) -> "argparse._SubParsersAction[_ActionParser]":
    """Give a command actions, such as `index|extract`; the one that the user names is in `args.action`."""
    return parser.add_subparsers(dest="action", required=True, metavar=names, parser_class=_ActionParser)


def positive(text: str) -> int:
    """An integer of at least one, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def positive_amount(text: str) -> float:
    """A finite number above zero, for argparse."""
    amount = amount_or_zero(text)
    if amount == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return amount


def amount_or_zero(text: str) -> float:
    """A finite number of zero or more, for argparse."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of zero or more")
    return amount


def pair(text: str) -> tuple[str, str]:
    """`FIELD=VALUE`, for argparse."""
    field, sign, value = text.partition("=")
    if not (field and sign and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE")
    return field, value


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for runs, topics, and the counting of tokens."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--runs", type=Path, required=True, metavar="DIR", help="folder of run files, of any formats, .gz too"
    )
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file (iKAT 2023, 2024, 2025 or CAsT 2022 tree)"
    )
    reading.add_argument(
        "--format", choices=sorted(FORMATS), help="read every file as this format instead of detecting it"
    )
    reading.add_argument(
        "--token-rule",
        choices=("bare", "english", "whitespace"),
        default="bare",
        help="what the limit goes by: spaCy's bare Tokenizer (default), its English rules, white space after NFKC",
    )
    reading.add_argument(
        "--token-limit",
        type=positive,
        default=250,
        metavar="N",
        help="longest response in tokens (default 250)",
    )
