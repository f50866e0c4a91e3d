"""Serve a desk at which assessors label pooled responses in a browser.

Each assessor gets a link, an order of their own and nobody else's labels. No grade of a judge is shown, unless
--made postedit asks for it. Every label is on the disk before the page says so; the same command resumes.
`judge gold import desk` makes gold of the labels.
"""

import argparse
from pathlib import Path

from judge.cli.options import amount_or_zero
from judge.cli.printing import say
from judge.cli.serving import add_address_arguments, say_links
from judge.desk.assess.plan import AssessPlan
from judge.desk.assess.serve import serve_assess
from judge.gold.deal import DOUBLE
from judge.harness.run_inputs import DEFAULT_CRITERIA


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    what = parser.add_argument_group("what is labeled")
    what.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder or its pool.jsonl")
    what.add_argument("--plan", type=Path, metavar="FILE", help="plan of `judge gold plan` (default: the whole pool)")
    what.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help=f"prompt whose scale is used (default: those of the plan's criteria, else {' '.join(DEFAULT_CRITERIA)})",
    )
    what.add_argument("--topics", type=Path, metavar="FILE", help="topics file, for the conversation")
    who = parser.add_argument_group("who labels")
    who.add_argument(
        "--assessor", action="append", required=True, metavar="NAME", help="who labels; once for each person"
    )
    who.add_argument(
        "--double",
        type=amount_or_zero,
        metavar="SHARE",
        help=f"share of the responses that every assessor labels (default {DOUBLE} with several assessors)",
    )
    who.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the orders (default 0)")
    labels = parser.add_argument_group("labels")
    labels.add_argument("--store", type=Path, required=True, metavar="FILE", help="SQLite file that keeps the labels")
    labels.add_argument(
        "--made",
        choices=("blind", "postedit"),
        default="blind",
        help="whether a judge's grade is shown (default blind)",
    )
    labels.add_argument(
        "--judgments", type=Path, metavar="OUT|FILE", help="postedit: the judge's grades, judgments.jsonl or its folder"
    )
    add_address_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    plan = AssessPlan(
        pool=args.pool,
        plan=args.plan,
        prompts=args.prompt,
        topics=args.topics,
        assessors=args.assessor,
        double=args.double,
        seed=args.seed,
        store=args.store,
        made=args.made,
        judgments=args.judgments,
        host=args.host,
        port=args.port,
    )
    for labeled in serve_assess(plan, say_links):
        say(f"{labeled.assessor}: {labeled.labels} of {labeled.tasks} labeled")
    say(f"gold of them: judge gold import desk {args.store} --out gold.jsonl")
    return 0
