"""Options and output of the commands that measure rankings."""

import argparse
from pathlib import Path
from typing import Any

from judge.cli.options import (
    add_cluster_option,
    add_output_option,
    add_runs_option,
    positive,
    refuse_unused,
)
from judge.cli.printing import add_form_option, print_grids, say
from judge.evaluate.paired import TABLES
from judge.evaluate.ranking_tables import named_scores, trec_eval_scores
from judge.evaluate.rankings import CONVENTIONS
from judge.evaluate.scores import ir_measures_lines, trec_eval_lines
from judge.harness.evaluation.measured import RankingsOutcome

LINES = ("trec_eval", "ir_measures")
"""Forms of lines instead of tables."""


def add_ranking_arguments(parser: argparse.ArgumentParser, main: str) -> None:
    """Declare what both commands can be told.

    Args:
        parser: The parser of the command.
        main: The default of --main.
    """
    add_runs_option(parser, required=True)
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file: depths, PTKB, a check of turn ids")
    parser.add_argument(
        "--measure", nargs="+", default=[], metavar="NAME", help="more measures, in the names of ir-measures"
    )
    parser.add_argument(
        "--main",
        default=main,
        metavar="NAME",
        help=f"the measure by which runs are ordered, compared and taken apart (default {main})",
    )
    parser.add_argument(
        "--rel", type=positive, default=1, metavar="N", help="lowest relevant grade, trec_eval's -l (default 1)"
    )
    parser.add_argument(
        "--over",
        choices=CONVENTIONS,
        default="qrels",
        help="means over every turn of the qrels (trec_eval -c; default), or over those that the run answered",
    )
    add_cluster_option(parser)
    parser.add_argument("--by", choices=TABLES, default="run", help="what the table has a line for (default run)")
    add_form_option(parser, *LINES)
    parser.add_argument(
        "--per-turn", action="store_true", help="with --format trec_eval or ir_measures: also the value of every turn"
    )
    add_output_option(parser, "DIR", "folder to write: tables in every form, the value of every turn, pictures")


def plan_fields(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the plan that the options give."""
    return {
        "runs": args.runs,
        "qrels": args.qrels,
        "topics": args.topics,
        "measures": args.measure,
        "main": args.main,
        "relevant": args.rel,
        "over": args.over,
        "cluster": args.cluster,
        "by": args.by,
        "out": args.out,
    }


def print_rankings(args: argparse.Namespace, outcome: RankingsOutcome) -> None:
    """Print warnings, then the tables or lines."""
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if args.format == "trec_eval":
        print(trec_eval_lines(trec_eval_scores(outcome.evaluations), turns=args.per_turn), end="")
    elif args.format == "ir_measures":
        several = len(outcome.evaluations) > 1
        scores = [score for evaluation in outcome.evaluations for score in named_scores(evaluation, several=several)]
        print(ir_measures_lines(scores, turns=args.per_turn), end="")
    else:
        print_grids(outcome.tables(args.by), args.format)


def check_form(args: argparse.Namespace) -> None:
    """Refuse --per-turn where tables are printed, and --by where lines are."""
    if args.format in LINES:
        refuse_unused(args, ["by"], f"--format {args.format} prints lines of whole runs")
    else:
        refuse_unused(args, ["per-turn"], f"it needs --format {' or '.join(LINES)}; --out writes turns.tsv")
