"""Serve a desk at which a prompt is improved: what judges and assessors disagree on, worst first, beside the prompt.

A new wording is saved as a prompt file of its own. With --gold, --pool and --model it is asked again on dev items,
and set beside the old one: the difference of the files, agreement before and after, and the items that changed.
"""

import argparse
from pathlib import Path

from judge.cli.asking import ASKING, add_judge_arguments, add_loop_arguments, loop_settings, model_options
from judge.cli.options import refuse_unused
from judge.cli.printing import say
from judge.cli.serving import add_address_arguments, say_links
from judge.desk.review.desk import serve_review
from judge.desk.review.plan import ReviewPlan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="OUT", help="output folder of `judge calibrate`")
    parser.add_argument(
        "--prompt", action="append", default=[], metavar="NAME|PATH", help="prompt to edit; the file of one of your own"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="DIR", help="folder for new wordings and reruns (default: OUT-review)"
    )
    asking = parser.add_argument_group("asking again")
    asking.add_argument("--gold", type=Path, nargs="+", metavar="FILE", help="dev grades to ask again on")
    asking.add_argument("--pool", type=Path, metavar="PATH", help="folder of `judge run`, or its pool.jsonl")
    asking.add_argument(
        "--model", action="append", default=[], metavar="BACKEND/MODEL", help="a judge to ask; may be repeated"
    )
    asking.add_argument("--topics", type=Path, metavar="FILE", help="topics, for prompts that show the conversation")
    asking.add_argument(
        "--gold-scale", metavar="PROMPT", help="prompt whose scale the gold is on (default: the wording before)"
    )
    add_judge_arguments(asking)
    add_loop_arguments(parser.add_argument_group("the loop"))
    add_address_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if not args.model:
        refuse_unused(args, (*ASKING, "topics", "gold-scale"), "they are about asking a judge, which --model names")
    plan = ReviewPlan(
        folder=args.folder,
        gold=args.gold or (),
        pool=args.pool,
        topics=args.topics,
        models=args.model,
        prompts=args.prompt,
        gold_scale=args.gold_scale,
        options=model_options(args),
        settings=loop_settings(args),
        out=args.out,
        host=args.host,
        port=args.port,
    )
    serve_review(plan, say_links)
    if plan.home.exists():
        say(f"new wordings and reruns are kept in {plan.home}")
    return 0
