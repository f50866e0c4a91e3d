"""Sheets to label drawn responses elsewhere."""

import argparse
from pathlib import Path

from judge.cli.options import add_output_option, amount_or_zero, positive, seed
from judge.cli.printing import say
from judge.gold.deal import DOUBLE
from judge.gold.sheets import SHEETS
from judge.harness.gold_sheet import GoldSheetPlan, write_gold_sheet
from judge.text.cells import count


def add_sheet_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `judge gold sheet`."""
    parser.add_argument(
        "plan", metavar="PLAN", nargs="?", type=Path, help="plan of what to label (default: all responses of the pool)"
    )
    parser.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder or its pool.jsonl")
    parser.add_argument("--to", choices=tuple(SHEETS), required=True, help="what the assessors work with")
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file, to show the conversation")
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt whose levels are shown (default: the criterion's default prompt)",
    )
    parser.add_argument(
        "--assessor", action="append", default=[], metavar="NAME", help="csv, html: who labels; each gets a sheet"
    )
    parser.add_argument(
        "--double",
        type=amount_or_zero,
        metavar="SHARE",
        help=f"csv, html: share of the responses that every assessor labels (default {DOUBLE} with several assessors)",
    )
    parser.add_argument(
        "--items-per-task", type=positive, default=1, metavar="K", help="mturk: responses on one page (default 1)"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="seed of the orders (default 0)")
    add_output_option(parser, "DIR", "folder to write", required=True)


def write_sheet(args: argparse.Namespace) -> None:
    """Write the sheets and say what is in them."""
    outcome = write_gold_sheet(
        GoldSheetPlan(
            pool=args.pool,
            to=args.to,
            out=args.out,
            plan=args.plan,
            prompts=args.prompt,
            topics=args.topics,
            assessors=args.assessor,
            double=args.double,
            items_per_task=args.items_per_task,
            seed=args.seed,
        )
    )
    say(
        f"{count(outcome.responses, 'response')}, {count(outcome.labels, 'label')} to give: "
        f"{', '.join(outcome.criteria)}"
    )
    for note in outcome.notes:
        say(note)
    say(f"{outcome.out}: {', '.join(outcome.files)}")
