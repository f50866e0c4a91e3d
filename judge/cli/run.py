"""Judge every run of a folder: check, pool, ask a judge, write response qrels and a leaderboard.

Without --model (or the environment variable JUDGE_MODEL), a small local model judges; it needs no key, and its grades
are a demonstration, not a measurement. Relevance, completeness and conciseness look at the conversation and need
--topics. So do the criteria of whole dialogues (usefulness, coherence, attentiveness, clarification), which are judged
in a run of their own.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from judge.ask.opening import DEFAULT_MODEL
from judge.ask.progress import job_progress
from judge.ask.stored_results import failure_counts
from judge.calibrate.certificate import CertificateStatement
from judge.cli.asking import (
    add_cascade_options,
    add_criteria_option,
    add_dry_run_option,
    add_judge_arguments,
    add_loop_arguments,
    add_prompt_option,
    add_together_option,
    loop_settings,
    model_options,
)
from judge.cli.config import add_config_arguments
from judge.cli.options import add_cluster_option, add_journal_option, positive
from judge.cli.pooling import add_pooling_arguments, pooling_options
from judge.cli.printing import print_fact, print_json, print_table, print_text, progress, say
from judge.cli.spending import asks_again, print_forecast, say_accounts, say_lacking_log
from judge.cli.tables import name_results, print_leaderboard, print_pooled, print_problems, print_rechecked
from judge.crowd.aggregators import JURIES
from judge.harness.engine import ENGINES
from judge.harness.requests import under_way
from judge.harness.run import Outcome, carry_out, dry_run
from judge.harness.run_inputs import DEFAULT_OUT, Plan, RunInputs, read_run
from judge.text.cells import count

_SHOWN = 28
"""Longest value of a certificate that the terminal shows, in characters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_run_arguments(parser, asks=True, printed="the leaderboard's rows")


def add_run_arguments(parser: argparse.ArgumentParser, *, asks: bool, printed: str) -> None:
    """Declare the options of a plan of `judge run`.

    Args:
        parser: Where they go.
        asks: Whether the command asks the judge itself. If not, the options are left out that say where the calls are
            made, what judges first, and what is asked again.
        printed: What --json prints.
    """
    add_pooling_arguments(parser)
    asking = parser.add_argument_group("asking")
    add_criteria_option(asking)
    add_prompt_option(asking)
    asking.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="BACKEND/MODEL",
        help=f"the judge (default: JUDGE_MODEL, else {DEFAULT_MODEL}); may be repeated for a jury",
    )
    if asks:
        add_cascade_options(asking)
    add_together_option(asking)
    add_judge_arguments(asking)
    jury = parser.add_argument_group("a jury: each model under each prompt, as one judge")
    jury.add_argument("--jury", choices=JURIES, help="from the members' grades to one")
    jury.add_argument(
        "--samples", type=positive, default=1, metavar="N", help="ask every member N times, each with a vote of its own"
    )
    jury.add_argument(
        "--families",
        type=Path,
        metavar="TSV",
        help="run or judge, tab, family of models behind it: warns of members that share one or judge their own",
    )
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    if asks:
        _add_engine_options(loop)
    loop.add_argument(
        "--limit", type=positive, metavar="N", help="judge only N responses per criterion, spread over the pool"
    )
    if asks:
        _add_recheck_option(loop)
    else:
        parser.set_defaults(cascade=None, cascade_url=None, engine=None, address=None, workers=None, recheck=None)
    add_dry_run_option(loop, "judgments")
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--out", type=Path, metavar="DIR", help=f"output folder (default {DEFAULT_OUT}, or that of --extend)"
    )
    add_journal_option(output)
    output.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="certificate.json of `judge calibrate`; every output says whether this run is what it certifies",
    )
    add_cluster_option(output)
    output.add_argument("--replace", action="store_true", help="write over results of another configuration in --out")
    output.add_argument("--json", action="store_true", help=f"print {printed}, or what --dry-run counts, as JSON")
    add_config_arguments(parser)


def _add_engine_options(loop: argparse._ArgumentGroup) -> None:
    loop.add_argument(
        "--engine",
        choices=ENGINES,
        help="where the calls are made (default: in this process); ray: by workers of a Ray cluster, which share all "
        "of these limits; results are the same",
    )
    loop.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="head of the Ray cluster (default: RAY_ADDRESS, else a cluster on this machine for this run)",
    )
    loop.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="workers at once (default: one per CPU of the cluster; one per node for a model that computes there)",
    )


def _add_recheck_option(loop: argparse._ArgumentGroup) -> None:
    loop.add_argument(
        "--recheck",
        metavar="PART",
        help="ask a part of the judgments a second time and say how many differ: a share such as 2%%, or a number, of "
        "those under each prompt",
    )


def main(args: argparse.Namespace, argv: Sequence[str] | None = None) -> int:
    """Run the whole line; 3 if asking again may bring missing judgments, 1 if nothing was judged."""
    plan = read_plan(args, argv)
    with progress("reading and checking runs") as steps:
        inputs = read_run(plan, keys=not args.dry_run, steps=steps)
    print_problems(inputs.pooled, checked_topics=args.topics is not None)
    print_pooled(inputs.pooled)
    if (expectation := inputs.certified()) is not None:
        _print_matches(expectation, table=not args.json)
    for warning in inputs.jury.warnings if inputs.jury else ():
        say(f"warning: {warning}")
    say_lacking_log(inputs.out)
    if args.dry_run:
        print_dry_run(inputs, as_json=args.json)
        return 0
    for folder, number in under_way(inputs.out):
        say(f"warning: nothing came back yet for the {count(number, 'request')} of {folder}; they are asked here too")
    with progress("") as bar, job_progress(bar) as shown:
        outcome = carry_out(inputs, shown)
    if args.json:
        print_json(outcome.leaderboard)
    else:
        print_leaderboard(outcome.leaderboard, outcome.criteria, outcome.banner, outcome.differences, outcome.clustered)
        for line in outcome.notes.agreement if outcome.notes else ():
            print()
            print_text(line)
    for line in outcome.settled_notes:
        say(line)
    print_rechecked(outcome.rechecked, table=not args.json)
    for line in outcome.label_notes:
        say(line)
    for line in outcome.model_notes:
        say(f"warning: {line}")
    code = _close(outcome)
    name_results(outcome)
    return code


def read_plan(args: argparse.Namespace, argv: Sequence[str] | None = None) -> Plan:
    """The plan that the options describe."""
    return Plan(
        **pooling_options(args),
        out=args.out,
        journal=args.journal,
        criteria=args.criteria,
        prompts=args.prompt,
        together=args.together,
        model=args.model[0] if len(args.model) == 1 else None,
        jury=args.jury,
        models=args.model if args.jury or len(args.model) > 1 else (),
        cascade=args.cascade,
        cascade_url=args.cascade_url,
        samples=args.samples,
        families=args.families,
        options=model_options(args),
        settings=loop_settings(args),
        limit=args.limit,
        engine=args.engine,
        address=args.address,
        workers=args.workers,
        recheck=args.recheck,
        replace=args.replace,
        certificate=args.certificate,
        cluster=args.cluster,
        argv=tuple(sys.argv[1:] if argv is None else argv),
        chosen=args.chosen,
    )


def _print_matches(expectation: CertificateStatement, *, table: bool) -> None:
    """Compare the plan with the certificate item by item, before any model is asked."""
    rows = [
        (match.criterion, match.item, "same" if match.same else "DIFFERS", _brief(match.certified), _brief(match.found))
        for match in expectation.matches
    ]
    if table:
        print_table(("criterion", "item", "", "certified", "here"), rows, words=5)
    if not all(match.same for match in expectation.matches):
        say("the certificate is for something else: this run may not be called calibrated")


def _brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _close(outcome: Outcome) -> int:
    say_accounts(outcome.accounts)
    say("")
    failures, judgments = failure_counts(outcome.results), len(outcome.results)
    missing = failures.total()
    if missing:
        say(f"missing: {missing} of {count(judgments, 'judgment')} ({', '.join(sorted(failures))}), see failures.jsonl")
    if missing == judgments:
        lacking = set(failures) <= {"no_passages"}
        say(f"nothing was judged{'; --passages FILE gives the texts of the passages' if lacking else ''}")
    of_members = failure_counts(outcome.notes.said if outcome.notes else ())
    if of_members:
        are = "is" if of_members.total() == 1 else "are"
        said = f"{count(of_members.total(), 'judgment')} of members {are} missing"
        say(f"{said} ({', '.join(sorted(of_members))}), see member_failures.jsonl")
    if asks_again((*failures, *of_members)):
        return 3
    return 1 if missing == judgments else 0


def print_dry_run(inputs: RunInputs, *, as_json: bool) -> None:
    """Print what a plan would send."""
    counts = dry_run(inputs)
    if as_json:
        print_json({"judge": inputs.judge.name, **msgspec.structs.asdict(counts)})
        return
    factors = [
        (counts.responses, "response"),
        (counts.prompts, "prompt"),
        (counts.models, "model"),
        (counts.samples, "sample"),
    ]
    product = " × ".join(count(number, name) for number, name in factors)
    print_fact("judge", inputs.judge.name)
    if inputs.jury is not None:
        for name, members in inputs.jury.members.items():
            print_fact("  members", f"{len(members)} under {name}")
    print_fact("judgments", f"{counts.judgments} = {product}")
    print_fact("  from the journal", str(counts.recalled))
    print_fact("  without evidence", str(counts.without_evidence))
    print_fact("  by a shared call", str(counts.shared))
    print_fact("  beyond the limit", str(counts.left_out))
    if inputs.judge.first is not None:
        told = f"; {counts.unchecked} are not checked yet, and count as calls" if counts.unchecked else ""
        print_fact("  settled", f"{counts.settled} by {inputs.judge.first.name}{told}")
    print_fact("calls to be made", str(counts.calls))
    if counts.rechecked:
        print_fact("to be asked again", f"{counts.rechecked} on top (--recheck {inputs.plan.recheck})")
    print_forecast(counts.by_model)
