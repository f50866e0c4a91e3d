"""Evaluate runs of responses by grades of people, a crowd or a judge.

Per run and criterion the mean grade and the share of positive grades, over all turns of the qrels (an unanswered turn
counts 0, as under `trec_eval -c`) and over the answered turns alone, with intervals over topics and letters that runs
share which cannot be told apart. --by shows the same by topic, by depth of the turn, and for turns that depend on
statements of the user's PTKB against those that do not.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from judge.cli.options import add_cluster_option, add_output_option
from judge.cli.printing import add_form_option, print_grids, progress, say
from judge.errors import UsageError
from judge.evaluate.paired import TABLES
from judge.evaluate.responses.graded import RESPONSE_MEASURES
from judge.evaluate.responses.tables import EvaluatedCriterion
from judge.evaluate.scores import Over, ir_measures_lines, trec_eval_lines
from judge.harness.evaluation.responses import ResponsesPlan, evaluate_responses

TOOLS: dict[str, Callable[..., str]] = {"trec_eval": trec_eval_lines, "ir_measures": ir_measures_lines}
"""The forms of other tools."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "folder", nargs="?", type=Path, metavar="OUT", help="output folder of `judge run` or `judge pool`"
    )
    reading.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="in place of OUT: TREC runs over response ids, or folders of them",
    )
    reading.add_argument(
        "--qrels", type=Path, nargs="+", default=[], metavar="FILE", help="response qrels (default: those of OUT)"
    )
    reading.add_argument(
        "--topics", type=Path, metavar="FILE", help="topics file: depth of turns, and which depend on the PTKB"
    )
    grades = parser.add_argument_group("grades")
    grades.add_argument(
        "--criterion",
        metavar="NAME|PATH",
        help="only this criterion of OUT; of qrels that do not say it, the criterion or prompt whose scale they have",
    )
    grades.add_argument("--scale", metavar="LOW-HIGH", help="scale of qrels that do not say it, such as 0-3")
    grades.add_argument("--polarity", choices=("higher", "lower"), help="which end of --scale is good (default higher)")
    grades.add_argument(
        "--positive",
        type=int,
        metavar="N",
        help="grades of N and better are positive, as with trec_eval -l N (default: as the scale says)",
    )
    parser.add_argument(
        "--over",
        choices=("qrels", "answered", "worst"),
        help="the turns behind breakdowns, comparisons and letters: all of the qrels, an unanswered one 0 (qrels), or "
        "the worst grade (worst), or the answered ones (default qrels, or worst where lower grades are better)",
    )
    add_cluster_option(parser)
    parser.add_argument("--by", choices=TABLES, default="run", help="what the table has a line for (default run)")
    add_form_option(parser, *TOOLS)
    add_output_option(parser, "DIR", "folder for all tables in all forms, pictures, and the values of all turns")


def main(args: argparse.Namespace) -> int:
    """Evaluate and print."""
    if args.format in TOOLS and (args.by != "run" or args.over == "worst"):
        raise UsageError(f"--format {args.format}: is of whole runs, over qrels or answered turns")
    with progress("reading grades") as steps:
        outcome = evaluate_responses(
            ResponsesPlan(
                folder=args.folder,
                runs=args.runs,
                qrels=args.qrels,
                topics=args.topics,
                criterion=args.criterion,
                scale=args.scale,
                polarity=args.polarity,
                positive=args.positive,
                over=args.over,
                cluster=args.cluster,
                by=args.by,
                single=args.format in TOOLS,
                out=args.out,
            ),
            steps,
        )
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if args.format in TOOLS:
        sys.stdout.write(_in_tool(outcome.criteria[0], args.format, "answered" if args.over == "answered" else "qrels"))
    else:
        print_grids([outcome.table(args.by)], args.format)
    return 0


def _in_tool(of: EvaluatedCriterion, form: str, over: Over) -> str:
    """The scores with the measures' names in a tool."""
    level = of.qrels.level
    share = "positive" if level is None else "P"
    if form == "trec_eval":
        measures = {"mean": "grade_1", "positive": f"{share}_1"}
    else:
        measures = {"mean": "grade@1", "positive": f"{share}@1" if level is None else f"P(rel={level})@1"}
    scores = [
        structs.replace(score, measure=measures[measure])
        for run in of.runs
        for measure in RESPONSE_MEASURES
        if (score := run.scores.get((measure, over))) is not None
    ]
    return TOOLS[form](scores)
