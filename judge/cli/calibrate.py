"""Find out which judge can be trusted, and how far: compare judges' labels with gold grades of the same responses.

The labels are read from files (--judgments: judgments.jsonl of `judge run`, qrels, or files of four columns, each a
judge named after its file), or the judges are asked (--prompt and --model, each may be given several times, with
--pool).
"""

import argparse
from pathlib import Path

from judge.calibrate.report.terminal import summary
from judge.cli.asking import (
    ASKING,
    add_cascade_options,
    add_dry_run_option,
    add_judge_arguments,
    add_loop_arguments,
    loop_settings,
    model_options,
)
from judge.cli.config import add_config_arguments
from judge.cli.options import add_cluster_option, add_journal_option, positive, refuse_unused
from judge.cli.printing import columns, print_fact, print_json, progress, say
from judge.cli.spending import print_forecast, say_accounts, say_lacking_log
from judge.harness.calibration import CalibrationPlan, calibrate_judges
from judge.harness.calibration.plan import CalibrationForecast
from judge.harness.calibration.session import forecast_calibration
from judge.text.cells import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--gold", type=Path, nargs="+", required=True, metavar="FILE", help="gold grades: JSONL, or four columns"
    )
    reading.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="sealed test grades of `judge gold split`; only the chosen judge is reported on them, openings are logged",
    )
    reading.add_argument("--seal", type=Path, metavar="FILE", help="their seal (default: seal.json beside --test)")
    reading.add_argument("--judgments", type=Path, nargs="+", metavar="FILE", help="labels of one or more judges")
    reading.add_argument(
        "--pool",
        type=Path,
        metavar="PATH",
        help="folder of `judge run`, or its pool.jsonl, if it is not beside the judgments",
    )
    reading.add_argument(
        "--criterion",
        metavar="NAME|PATH",
        help="only this criterion, or judgments under this prompt; for columns, the criterion of the grades",
    )
    reading.add_argument("--scale", metavar="LOW-HIGH", help="grades of gold and labels in columns, such as 0-3")
    reading.add_argument(
        "--polarity",
        choices=("higher", "lower"),
        default="higher",
        help="which end of --scale is good (default higher)",
    )
    reading.add_argument(
        "--gold-scale",
        metavar="PROMPT",
        help="prompt whose scale the gold is on, if not the judges' scale: grades then count as positive or not",
    )
    reading.add_argument(
        "--off-scale",
        choices=("missing", "error"),
        default="error",
        help="a judge's label off its scale stops the calibration, or counts as a missing judgment (default error)",
    )
    reading.add_argument(
        "--topics",
        type=Path,
        metavar="FILE",
        help="topics, for prompts that show the conversation and for the list of disagreements",
    )
    reading.add_argument("--families", type=Path, metavar="TSV", help="run or judge, tab, family of models behind it")
    asking = parser.add_argument_group("asking")
    asking.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="criterion/variant, or a file of your own; may be repeated",
    )
    asking.add_argument(
        "--model", action="append", default=[], metavar="BACKEND/MODEL", help="a judge; may be repeated"
    )
    add_cascade_options(asking, several=True)
    asking.add_argument(
        "--cascade-grid",
        action="store_true",
        help="compare a grid of other bounds of each cascade with gold too; asks nothing; each counts as a candidate",
    )
    asking.add_argument(
        "--together",
        action="store_true",
        help="ask the prompts also all in one call: what that costs in agreement, and what it saves",
    )
    asking.add_argument(
        "--samples",
        type=positive,
        default=1,
        metavar="N",
        help="ask each question N times, for test-retest (default 1)",
    )
    add_judge_arguments(asking)
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    add_dry_run_option(loop, "judgments")
    deciding = parser.add_argument_group("deciding")
    deciding.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="RULE",
        help="such as 'wkappa.lo>=0.4': exit 1 unless the verdict is TRUSTED; may be repeated",
    )
    deciding.add_argument(
        "--epsilon",
        type=float,
        default=0.2,
        help="epsilon of the alternative annotator test: .2 experts, .15 skilled annotators, .1 crowd (default .2)",
    )
    deciding.add_argument(
        "--margin",
        type=float,
        metavar="M",
        help="also test whether the chosen judge is as good as each other one, and as assessors are among themselves: "
        "whether the primary statistic differs by less than M",
    )
    add_cluster_option(deciding)
    deciding.add_argument(
        "--replicates", type=positive, default=2000, metavar="N", help="bootstrap resamples (default 2000)"
    )
    deciding.add_argument(
        "--permutations", type=positive, default=10_000, metavar="N", help="permutations per comparison (default 10000)"
    )
    deciding.add_argument(
        "--resampling-seed",
        type=int,
        default=2023,
        metavar="N",
        help="seed of resamples and permutations (default 2023)",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--out", type=Path, metavar="DIR", help="write tables, report, plots and certificate here"
    )
    add_journal_option(output)
    output.add_argument("--json", action="store_true", help="print all findings, or what --dry-run counts, as JSON")
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Read, ask if models are given, compare, write, print; 1 if a requirement is not met."""
    if not args.model:
        # Without a folder to write, nothing shows the conversations.
        needless = (*ASKING, "samples", "together", "cascade", "cascade-url", "cascade-grid", "dry-run", "journal")
        needless = (*needless, *(() if args.out else ("topics",)))
        refuse_unused(args, needless, "they are about asking a judge, which --model names")
    if args.scale is None:
        refuse_unused(args, ["polarity"], "it says which end of --scale is good")
    if args.test is None:
        refuse_unused(args, ["seal"], "it is the seal of the grades in --test")
    plan = CalibrationPlan(
        gold=args.gold,
        judgments=args.judgments or (),
        models=args.model,
        prompts=args.prompt,
        together=args.together,
        cascades=args.cascade,
        cascade_url=args.cascade_url,
        cascade_grid=args.cascade_grid,
        pool=args.pool,
        test=args.test,
        seal=args.seal,
        criterion=args.criterion,
        scale=args.scale,
        polarity=args.polarity,
        gold_scale=args.gold_scale,
        off_scale=args.off_scale,
        families=args.families,
        topics=args.topics,
        samples=args.samples,
        options=model_options(args),
        settings=loop_settings(args),
        requirements=args.require,
        epsilon=args.epsilon,
        margin=args.margin,
        cluster=args.cluster,
        replicates=args.replicates,
        permutations=args.permutations,
        seed=args.resampling_seed,
        out=args.out,
        journal=args.journal,
    )
    if args.dry_run:
        with progress("reading gold and labels") as line:
            forecast = forecast_calibration(plan, line)
        _print_forecast(forecast, as_json=args.json)
        return 0
    if args.out:
        say_lacking_log(args.out)
    with progress("reading gold and labels") as line:
        outcome = calibrate_judges(plan, progress=line)
    if args.json:
        print_json(outcome.calibration)
    else:
        print(summary(outcome.calibration, columns()).rstrip("\n"))
    say_accounts(outcome.accounts)
    for missing in outcome.not_drawn:
        say(missing)
    if args.out:
        say(f"everything is in {args.out}; start with calibration.md there, then read disagreements.md")
    return 1 if args.require and not outcome.trusted else 0


def _print_forecast(forecast: CalibrationForecast, *, as_json: bool) -> None:
    if as_json:
        print_json(forecast)
        return
    print_fact("responses", f"{forecast.responses:,} of the pool have gold that is not held out")
    if forecast.unmatched:
        print_fact("not in the pool", count(forecast.unmatched, "gold grade"))
    for row in forecast.by_model:
        print_fact("judge", row.model)
        print_fact("judgments", f"{row.judgments:,}")
        print_fact("  without evidence", f"{row.without_evidence:,}")
        print_fact("  from the journal", f"{row.recalled:,}")
        print_fact("  by a shared call", f"{row.shared:,}")
        print_fact("calls to be made", f"{row.calls:,}")
    if forecast.test_judgments:
        print_fact("test grades", f"at most {count(forecast.test_judgments, 'judgment')} on top, by the chosen judges")
    print_forecast(forecast.by_model)
