"""Options of the screen, for every command that pools."""

import argparse
import math

import msgspec

from judge.errors import UsageError
from judge.pool.encoder import ENCODERS, default_thresholds
from judge.pool.screen import DEFAULTS, Thresholds

_NAMES = Thresholds.__struct_fields__


def add_screen_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    screening = parser.add_argument_group("screen")
    screening.add_argument(
        "--screen",
        choices=("off", "flag", "exclude"),
        default="flag",
        help="empty, repeated, copied, off-passage or non-English responses: list them (default) or leave them out",
    )
    screening.add_argument(
        "--screen-threshold",
        type=_threshold,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"where a response is flagged ({', '.join(f'{name} {getattr(DEFAULTS, name):g}' for name in _NAMES)}; "
        f"similarity with --encoder {', '.join(f'{name} {row.similarity:g}' for name, row in ENCODERS.items())})",
    )
    screening.add_argument(
        "--encoder",
        metavar="NAME|PATH",
        help=f"measure off_passage by sentence embeddings: {', '.join(ENCODERS)} (judge[encoder]), or a model of "
        "sentence-transformers (judge[sentence-transformers])",
    )


def thresholds_of(args: argparse.Namespace) -> Thresholds | None:
    """The thresholds, with the defaults for those not given; None where none is.

    Raises:
        UsageError: A threshold is given twice, or options of the screen are given with the screen off.
    """
    given: list[tuple[str, float]] = args.screen_threshold
    if args.screen == "off" and (given or args.encoder):
        raise UsageError("--screen-threshold and --encoder need the screen: --screen flag or exclude")
    names = [name for name, _ in given]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"--screen-threshold {min(repeated)}: given more than once")
    if args.encoder is None and "similarity" in names:
        raise UsageError("--screen-threshold similarity needs --encoder")
    return msgspec.structs.replace(default_thresholds(args.encoder), **dict(given)) if given else None


def _threshold(text: str) -> tuple[str, float]:
    """`NAME=VALUE` with a name of `Thresholds` and a finite number, for argparse."""
    name, _, number = text.partition("=")
    if name not in _NAMES:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE with one of {', '.join(_NAMES)}")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r}: {number!r} is not a number")
    return name, value
