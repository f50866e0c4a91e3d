"""Test a judge itself: does its grade move as it must when a response is altered?

Draws responses of a pool and makes altered copies of each. Copies with a text that speaks to the judge must not gain by
it. Copies with less support (a number, a name or a negation altered, a sentence invented, passages swapped) must lose.
Copies in other words, longer or formatted must keep their grade. Word overlap is measured beside the judge.
"""

import argparse
from pathlib import Path

from judge.ask.opening import DEFAULT_MODEL
from judge.calibrate.probe.measured import MARGIN
from judge.calibrate.probe.page import probe_grids, probe_notes
from judge.calibrate.probe.records import KINDS
from judge.cli.asking import (
    add_criteria_option,
    add_dry_run_option,
    add_judge_arguments,
    add_loop_arguments,
    loop_settings,
    model_options,
    say_lacking_log,
)
from judge.cli.config import add_config_arguments
from judge.cli.forms import add_form_option, print_grids
from judge.cli.options import add_journal_option, add_output_option, add_runs_option, positive, positive_amount, seed
from judge.cli.printing import print_fact, print_text, progress, say
from judge.cli.spending import asks_again, print_calls, print_forecast, say_accounts
from judge.harness.probe import ProbeOutcome, forecast_probe, probe_judges
from judge.harness.probe_inputs import ITEMS, SEED, ProbePlan
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="output folder of `judge run` or `judge pool`: its pool is drawn from, and its journal used",
    )
    add_runs_option(reading)
    reading.add_argument("--topics", type=Path, metavar="FILE", help="topics file, for prompts with the conversation")
    reading.add_argument(
        "--passages", type=Path, nargs="+", default=[], metavar="PATH", help="with --runs: the collection's passages"
    )
    probing = parser.add_argument_group("probing")
    probing.add_argument(
        "--items", type=positive, default=ITEMS, metavar="N", help=f"responses that are drawn (default {ITEMS})"
    )
    probing.add_argument(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=list(KINDS),
        metavar="KIND",
        help=f"{', '.join(KINDS)} (default all)",
    )
    probing.add_argument(
        "--margin",
        type=positive_amount,
        default=MARGIN,
        metavar="M",
        help=f"the shift, in levels of the scale, that does not matter (default {MARGIN})",
    )
    probing.add_argument(
        "--resampling-seed",
        type=seed,
        default=SEED,
        metavar="N",
        help=f"seed of the draw and of the alterations (default {SEED})",
    )
    asking = parser.add_argument_group("asking")
    asking.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="BACKEND/MODEL",
        help=f"the judge (default: JUDGE_MODEL, else {DEFAULT_MODEL}); may be repeated",
    )
    add_criteria_option(asking)
    asking.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt, as criterion/variant or a file of your own; may be repeated, also for one criterion",
    )
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    add_dry_run_option(loop, "judgments")
    output = parser.add_argument_group("output")
    add_output_option(output, "DIR", "folder for tables, picture, twins and journal", required=True)
    add_journal_option(output)
    output.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="certificate.json of this very judge; a copy that tells of the probe is written into --out",
    )
    output.add_argument("--replace", action="store_true", help="write over results of another configuration in --out")
    add_form_option(parser)
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Alter, ask, measure, write, print; 1 if a probe fails or nothing was graded, 3 if asking again may help."""
    plan = ProbePlan(
        folder=args.folder,
        runs=args.runs or (),
        topics=args.topics,
        passages=args.passages,
        items=args.items,
        kinds=args.kinds,
        margin=args.margin,
        seed=args.resampling_seed,
        models=args.model,
        criteria=args.criteria,
        prompts=args.prompt,
        options=model_options(args),
        settings=loop_settings(args),
        out=args.out,
        journal=args.journal,
        certificate=args.certificate,
        replace=args.replace,
    )
    if args.dry_run:
        with progress("reading the pool") as line:
            forecast = forecast_probe(plan, line)
        print_fact("items", str(forecast.counts["items"]))
        print_fact("twins", f"{forecast.counts['twins']}, under all prompts")
        for row in forecast.models:
            print_calls(row, {"judgments": str(row.judgments)})
        print_forecast(forecast.models)
        return 0
    say_lacking_log(args.out)
    with progress("reading the pool") as line:
        outcome = probe_judges(plan, progress=line)
    print_grids(probe_grids(outcome.card), args.format)
    if args.format == "table":
        print()
        for note in probe_notes(outcome.card):
            print_text(note)
    return _close(outcome, args.out)


def _close(outcome: ProbeOutcome, out: Path) -> int:
    for note in outcome.notes:
        say(f"note: {note}")
    say_accounts(outcome.accounts)
    say(f"tables, picture and every altered response: {out}")
    if outcome.failures:
        reasons = ", ".join(sorted({failure.reason for failure in outcome.failures}))
        say(f"missing: {count(len(outcome.failures), 'judgment')} ({reasons}), see twins.jsonl")
    if asks_again(failure.reason for failure in outcome.failures):
        return 3
    graded = any(pair.altered is not None for pair in outcome.pairs)
    return 1 if outcome.fails or not graded else 0
