"""Measure a judge on public labels by people, and write its card.

The datasets are read from a folder that you fill yourself; nothing is downloaded, and `judge bench datasets` says what
there is and how to get it. The judge is asked under the default prompt of each criterion, or --prompt. --stored
measures the judges whose labels were released with the data, and asks nobody.
"""

import argparse
from pathlib import Path
from typing import Any

from judge.ask.asking import ModelForecast
from judge.cli.asking import (
    ASKING,
    add_dry_run_option,
    add_judge_arguments,
    add_loop_arguments,
    add_prompt_option,
    loop_settings,
    model_options,
)
from judge.cli.config import add_config_arguments
from judge.cli.options import add_journal_option, add_output_option, positive, refuse_unused
from judge.cli.printing import add_form_option, print_fact, print_grids, progress, say
from judge.cli.spending import asks_again, print_forecast, say_accounts, say_lacking_log
from judge.errors import UsageError
from judge.evaluate.cards.card import JudgeCard
from judge.evaluate.cards.comparison import ReadCard, judge_grids
from judge.evaluate.cards.page import card_grids, verdict
from judge.harness.evaluation.bench import SEED, BenchInputs, BenchOutcome, BenchPlan, bench_judges, forecast_bench
from judge.models.backends import backend_facts
from judge.text.cells import count
from judge.text.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder with the datasets, or clones of their releases"
    )
    reading.add_argument(
        "--dataset", nargs="+", default=[], metavar="NAME", help="only these datasets (default: all that are there)"
    )
    reading.add_argument(
        "--limit", type=positive, metavar="N", help="judge only N items of each dataset, drawn at random"
    )
    reading.add_argument(
        "--resampling-seed",
        type=int,
        default=SEED,
        metavar="N",
        help=f"seed of the draw of --limit and of resamples (default {SEED})",
    )
    asking = parser.add_argument_group("asking")
    asking.add_argument("--model", metavar="BACKEND/MODEL", help="the judge")
    asking.add_argument(
        "--stored", action="store_true", help="the judges whose labels were released with the data, in place of --model"
    )
    add_prompt_option(asking)
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    add_dry_run_option(loop, "judgments")
    add_output_option(parser, "DIR", "folder for card, items and journal", required=True)
    add_journal_option(parser)
    add_form_option(parser)
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Ask, measure, write, print; 3 if asking again may bring missing answers, 1 if there is no answer."""
    if bool(args.model) == args.stored:
        raise UsageError("expected either a judge to ask (--model) or those whose labels are there (--stored)")
    if args.stored:
        refuse_unused(args, (*ASKING, "prompt", "dry-run", "journal"), "they are about asking a judge (--model)")
    plan = BenchPlan(
        data=args.data,
        out=args.out,
        journal=args.journal,
        model=args.model,
        datasets=args.dataset,
        prompts=args.prompt,
        options=model_options(args),
        settings=loop_settings(args),
        limit=args.limit,
        seed=args.resampling_seed,
    )
    if args.dry_run:
        _print_forecast(*forecast_bench(plan))
        return 0
    if not args.stored:
        say_lacking_log(args.out)
    with progress("reading datasets") as line:
        outcome = bench_judges(plan, progress=line)
    print_grids(_grids(outcome), args.format)
    return _close(outcome, args.out)


def _grids(outcome: BenchOutcome) -> tuple[Table[Any], ...]:
    if len(outcome.cards) == 1:
        return card_grids(outcome.cards[0])
    return judge_grids([ReadCard(card, None) for card in outcome.cards])


def _close(outcome: BenchOutcome, out: Path) -> int:
    say_accounts(outcome.accounts)
    for card in outcome.cards:
        _say_verdict(card)
    say(f"{count(len(outcome.cards), 'judge card')} in {out}")
    answered = any(dataset.answered for card in outcome.cards for dataset in card.datasets)
    if asks_again(failure.reason for failure in outcome.failures):
        return 3
    return 0 if answered else 1


def _say_verdict(card: JudgeCard) -> None:
    for note in card.notes:
        say(f"note: {note}")
    if card.rungs and not backend_facts(card.judge).baseline:
        say(f"{card.judge}: {verdict(card)}")


def _print_forecast(inputs: BenchInputs, counts: ModelForecast) -> None:
    print_fact("judge", inputs.judge.name)
    of_datasets = ", ".join(f"{len(drawn.items)} of {drawn.dataset.name}" for drawn, _ in inputs.sets)
    print_fact("judgments", f"{counts.judgments}: {of_datasets}")
    print_fact("  from the journal", str(counts.recalled))
    print_fact("  without evidence", str(counts.without_evidence))
    print_fact("  by a shared call", str(counts.shared))
    print_fact("calls to be made", str(counts.calls))
    for note in inputs.notes:
        say(f"note: {note}")
    print_forecast([counts])
