"""Write the bundle that a track may publish: a folder of `judge run` without what is private or not ours to give.

Runs and teams get pseudonyms, the same in every file and in every later bundle; a private file beside the bundle says
whose they are. The texts of passages and the judge's own words are left out unless an option says otherwise. Journal,
command line, paths and addresses never go along. A name that is left in a text is refused, with its place.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_output_option
from judge.cli.printing import print_listed, progress, say
from judge.harness.release.job import ReleasePlan, release_folder
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="OUT", help="output folder of `judge run`")
    add_output_option(parser, "DIR", "the folder of the bundle", required=True)
    parser.add_argument(
        "--names",
        type=Path,
        metavar="FILE",
        help="private file of pseudonyms, made or used again (default: DIR.names.json, beside DIR)",
    )
    parser.add_argument("--keep-names", action="store_true", help="publish the names of runs and teams")
    parser.add_argument("--allow-names", action="store_true", help="accept names that are left in texts")
    parser.add_argument(
        "--passage-text", action="store_true", help="publish the texts of passages; their license must allow it"
    )
    parser.add_argument(
        "--rationales", action="store_true", help="publish the judge's own words, which may quote passages"
    )
    parser.add_argument("--license", metavar="TEXT", help="terms of use, for the bundle's README")
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="PATH",
        help="prompt file of your own that judgments are under; may be repeated",
    )


def main(args: argparse.Namespace) -> int:
    """Write the bundle and say what is in it."""
    plan = ReleasePlan(
        folder=args.folder,
        out=args.out,
        names=args.names,
        keep_names=args.keep_names,
        allow_names=args.allow_names,
        passage_text=args.passage_text,
        rationales=args.rationales,
        license=args.license,
        prompts=args.prompt,
    )
    with progress("reading the folder") as steps:
        outcome = release_folder(plan, steps)
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    for problem in outcome.remaining:
        print_listed(f"accepted: {problem.file}: {problem.path}: {problem.message}")
    print(outcome.out)
    say(f"{count(len(outcome.files), 'file')}; {outcome.out / 'README.md'} says what each is")
    if outcome.names is not None:
        say(f"keep {outcome.names} private: it says whose the pseudonyms are, and the next bundle uses it again")
    return 0
