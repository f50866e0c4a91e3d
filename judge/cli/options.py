"""Options that several commands share."""

import argparse
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from judge.errors import UsageError
from judge.harness.manifest import JOURNAL
from judge.models.journal_rows import is_database
from judge.runs.formats import FORMATS
from judge.runs.profiles import DEFAULT_PROFILE, PROFILES
from judge.text.ids import CLUSTERS, Cluster


def add_actions(parser: argparse.ArgumentParser, names: str) -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    """Give a command actions, such as `index|extract`; the one that the user names is in `args.action`."""
    return parser.add_subparsers(dest="action", required=True, metavar=names)


def add_journal_option(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare `--journal`."""
    group.add_argument(
        "--journal",
        type=database,
        metavar="URL",
        help=f"postgresql://USER@HOST/DATABASE: a journal that several processes share (default: {JOURNAL} in --out)",
    )


def database(text: str) -> str:
    """The address of a database, for argparse; no message repeats it, because it may hold a password."""
    if not is_database(text):
        raise argparse.ArgumentTypeError("the address of a shared journal must begin with postgresql://")
    return text


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


def seed(text: str) -> int:
    """An integer of zero or more that starts everything random, for argparse."""
    if not re.fullmatch("[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: expected an integer of zero or more")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    """`FIELD=VALUE`, for argparse."""
    field, sign, value = text.partition("=")
    if not (field and sign and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE")
    return field, value


def refuse_unused(args: argparse.Namespace, options: Sequence[str], reason: str) -> None:
    """Refuse options that the rest of the command leaves without effect.

    Args:
        args: The parsed values.
        options: Names of options, without the hyphens at the front.
        reason: Why they have no effect.

    Raises:
        UsageError: Some of them were given.
    """
    given = getattr(args, "given", ())
    if unused := [f"--{name}" for name in options if name.replace("-", "_") in given]:
        raise UsageError(f"{', '.join(unused)}: without effect here: {reason}")


_Given = TypeVar("_Given")


def by_name(option: str, pairs: Sequence[tuple[str, _Given]]) -> dict[str, _Given]:
    """The values of an option such as `--column FIELD=COLUMN`, by what stands before the sign.

    Raises:
        UsageError: A name is given two values.
    """
    names = Counter(name for name, _ in pairs)
    if repeated := sorted(name for name, times in names.items() if times > 1):
        raise UsageError(f"{option} gives {', '.join(repeated)} twice")
    return dict(pairs)


def add_runs_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare the runs as what a command is about: named alone, by --runs, or both; `given_runs` has all of them."""
    parser.add_argument(
        "runs", nargs="*", action="append", type=Path, metavar="RUNS", help="folders of run files, and run files"
    )
    add_runs_option(parser)


def add_runs_option(parser: argparse._ActionsContainer, *, required: bool = False) -> None:
    """Declare the option for the runs."""
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        required=required,
        metavar="PATH",
        help="folders of run files, of any formats, .gz too, and run files",
    )


def given_runs(args: argparse.Namespace) -> list[Path]:
    """The values of the arguments of `add_runs_arguments`.

    Raises:
        UsageError: There is none.
    """
    if not args.runs:
        raise UsageError("no runs are named: expected folders of run files, or run files")
    return list(args.runs)


def add_output_option(parser: argparse._ActionsContainer, metavar: str, help: str, *, required: bool = False) -> None:
    """Declare where a command writes, under the name that it has everywhere."""
    parser.add_argument("-o", "--out", type=Path, required=required, metavar=metavar, help=help)


def add_own_prompts_option(parser: argparse._ActionsContainer) -> None:
    """Declare the prompt files behind judgments that are read, which no folder holds."""
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="PATH",
        help="prompt file of your own that judgments are under; may be repeated",
    )


def add_cluster_option(parser: argparse._ActionsContainer, *, default: Cluster | None = "topic") -> None:
    """Declare what intervals, tests and splits are over; without a default, it is that of the folder."""
    parser.add_argument(
        "--cluster",
        choices=CLUSTERS,
        default=default,
        help="what counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that "
        f"9-1 and 9-2 are one (default: {default or 'as the folder was made'})",
    )


def add_profile_argument(reading: "argparse._ArgumentGroup | argparse.ArgumentParser") -> None:
    """Declare the option for the limits of a track's year."""
    reading.add_argument(
        "--profile",
        choices=PROFILES,
        metavar="NAME",
        help=f"the track's limits, where no option says otherwise: {', '.join(PROFILES)} (default: by the year of the "
        f"topics, else {DEFAULT_PROFILE})",
    )


def add_input_arguments(parser: argparse.ArgumentParser, *, alone: bool = False) -> None:
    """Declare the options for runs, topics, and the counting of tokens.

    Args:
        parser: The parser of the command.
        alone: Whether runs may be named without --runs.
    """
    reading = parser.add_argument_group("reading")
    if alone:
        add_runs_arguments(reading)
    else:
        add_runs_option(reading, required=True)
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file (iKAT 2023, 2024, 2025 or CAsT 2022 tree)"
    )
    reading.add_argument(
        "--format", choices=sorted(FORMATS), help="read every file as this format instead of detecting it"
    )
    reading.add_argument(
        "--token-rule",
        choices=("bare", "english", "whitespace"),
        help="what the limit goes by: spaCy's bare Tokenizer, its English rules, white space after NFKC (default: the "
        "profile's)",
    )
    reading.add_argument(
        "--token-limit", type=positive, metavar="N", help="longest response in tokens (default: the profile's)"
    )
    reading.add_argument(
        "--citation-limit",
        type=positive,
        metavar="N",
        help="most passages that a response may cite or flag as used; more are a warning (default: the profile's)",
    )
    add_profile_argument(reading)
