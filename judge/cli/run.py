"""Judge every run of a folder: check, pool, ask a judge, write response qrels and a leaderboard.

Without --model (or the environment's JUDGE_MODEL) a small local model is used; it needs no key, and its grades are
a demonstration, not a measurement. Relevance, completeness and conciseness look at the conversation and need --topics.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from judge.ask.criteria import criterion_names
from judge.ask.loop import Forecast
from judge.ask.progress import FetchReporter, Reporter
from judge.calibrate.certificate import CertificateStatement
from judge.cli.asking import add_judge_arguments, add_loop_arguments, loop_settings, model_options
from judge.cli.options import positive
from judge.cli.pooling import add_pooling_arguments, pooling_options
from judge.cli.tables import print_leaderboard, print_pooled, print_problems, print_table
from judge.crowd.aggregators import JURIES
from judge.harness.run import (
    DEFAULT_CRITERIA,
    DEFAULT_MODEL,
    DEFAULT_OUT,
    Outcome,
    Plan,
    Prepared,
    carry_out,
    forecast,
    prepare,
)
from judge.models.model import Model
from judge.text.safe import printable

ASK_AGAIN = {"provider_error", "budget"}
"""Failures that the same command may cure."""
_SHOWN = 28
"""Characters of a certificate's value that the terminal shows."""
_TYPICAL_REPLY = 150
"""Tokens of a usual reply with its reasons, for the cost forecast."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_pooling_arguments(parser)
    asking = parser.add_argument_group("asking")
    asking.add_argument(
        "--criteria",
        nargs="+",
        choices=criterion_names(),
        metavar="CRITERION",
        help=f"{', '.join(criterion_names())} (default {' '.join(DEFAULT_CRITERIA)})",
    )
    asking.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt for its criterion, as criterion/variant or a file of your own; may be repeated",
    )
    asking.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="BACKEND/MODEL",
        help=f"the judge (default: JUDGE_MODEL, else {DEFAULT_MODEL}); may be repeated for a jury",
    )
    add_judge_arguments(asking)
    jury = parser.add_argument_group("a jury: each model under each prompt, as one judge")
    jury.add_argument("--jury", choices=JURIES, help="from the members' grades to one")
    jury.add_argument(
        "--samples", type=positive, default=1, metavar="N", help="ask every member N times, each a voice of its own"
    )
    jury.add_argument(
        "--families", type=Path, metavar="TSV", help="run or judge, tab, family of models behind it: warns of kin"
    )
    loop = parser.add_argument_group("the loop")
    add_loop_arguments(loop)
    loop.add_argument(
        "--limit", type=positive, metavar="N", help="judge only N responses a criterion, spread over the pool"
    )
    loop.add_argument("--dry-run", action="store_true", help="count judgments, tokens and cost; send and write nothing")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", type=Path, metavar="DIR", help=f"output folder (default {DEFAULT_OUT}, or that of --extend)"
    )
    output.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="certificate.json of `judge calibrate`; every output says whether this run is what it certifies",
    )
    output.add_argument("--replace", action="store_true", help="write over results of another configuration in --out")


def main(args: argparse.Namespace, argv: Sequence[str] | None = None) -> int:
    """Run the whole line."""
    plan = Plan(
        **pooling_options(args),
        out=args.out,
        criteria=args.criteria,
        prompts=args.prompt,
        model=args.model[-1] if args.model else None,
        jury=args.jury,
        models=args.model if args.jury else (),
        samples=args.samples,
        families=args.families,
        options=model_options(args),
        settings=loop_settings(args),
        limit=args.limit,
        replace=args.replace,
        certificate=args.certificate,
        argv=tuple(sys.argv[1:] if argv is None else argv),
    )
    prepared = prepare(plan)
    print_problems(prepared.pooled.submitted.problems, checked_topics=args.topics is not None)
    with contextlib.suppress(BrokenPipeError):
        print_pooled(prepared.pooled)
    if prepared.expectation is not None:
        _print_matches(prepared.expectation)
    for warning in prepared.jury.warnings if prepared.jury else ():
        _say(f"warning: {warning}")
    if args.dry_run:
        _print_forecast(prepared, args.max_tokens)
        return 0
    with FetchReporter(sys.stderr) as fetching, Reporter(prepared.judge, sys.stderr) as reporter:
        outcome = carry_out(prepared, report=reporter, fetching=fetching)
    print_leaderboard(outcome.leaderboard, outcome.criteria, outcome.banner)
    for line in outcome.notes.agreement if outcome.notes else ():
        print(f"\n{printable(line)}")
    return _close(outcome)


def _print_matches(said: CertificateStatement) -> None:
    """The certificate item by item, before anything is asked."""
    rows = [
        (one.criterion, one.item, "same" if one.same else "DIFFERS", _brief(one.certified), _brief(one.found))
        for one in said.matches
    ]
    print_table(("criterion", "item", "", "certified", "here"), rows, words=5)
    if not all(one.same for one in said.matches):
        _say("the certificate is for something else: this run may not be called calibrated")


def _brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _close(outcome: Outcome) -> int:
    _say(f"\nresults are in {outcome.out}; manifest.json there says how they were made")
    failures = outcome.failures
    if failures:
        reasons = ", ".join(sorted({one.reason for one in failures}))
        _say(f"{len(failures)} of {len(outcome.results)} judgments are missing ({reasons}), see failures.jsonl")
    if len(failures) == len(outcome.results):
        lacking = all(one.reason == "no_passages" for one in failures)
        _say(f"nothing was judged{'; --passages FILE gives the texts of the passages' if lacking else ''}")
    mute = outcome.notes.failures if outcome.notes else ()
    if mute:
        reasons = ", ".join(sorted({one.reason for one in mute}))
        _say(f"{len(mute)} judgments of members are missing ({reasons}), see member_failures.jsonl")
    if any(one.reason in ASK_AGAIN for one in (*failures, *mute)):
        _say("the same command asks again for those that failed in passing")
        return 3
    return 1 if len(failures) == len(outcome.results) else 0


def _print_forecast(prepared: Prepared, max_tokens: int) -> None:
    asked = forecast(prepared)
    counts = Forecast(*map(sum, zip(*(one for _, one in asked), strict=True)))
    unpriced = [model.name for model, _ in asked if model.price() is None]
    print(f"judge               {prepared.judge}")
    if prepared.jury is not None:
        for name, members in prepared.jury.members.items():
            print(f"  members           {len(members)} under {name}")
    print(f"judgments           {counts.judgments}")
    print(f"  from the journal  {counts.recalled}")
    print(f"  without evidence  {counts.without_evidence}")
    print(f"calls to be made    {counts.calls}")
    print(f"prompt tokens       about {counts.prompt_tokens} (at 4 characters a token)")
    if unpriced:
        print(f"cost                unknown: no price for {', '.join(unpriced)} here")
    else:
        usual, most = (_cost(asked, reply) for reply in (_TYPICAL_REPLY, max_tokens))
        print(f"cost                about ${usual:.2f} ({_TYPICAL_REPLY} tokens a reply), at most ${most:.2f}")
    _say("nothing was sent and nothing was written")


def _cost(asked: Sequence[tuple[Model, Forecast]], reply: int) -> float:
    """US dollars for prompts and replies of so many tokens; what has no price counts nothing."""
    return sum(
        counts.prompt_tokens * price.prompt + counts.calls * reply * price.completion
        for model, counts in asked
        if (price := model.price()) is not None
    )


def _say(text: str) -> None:
    # Talk that nobody listens to any more is no reason to stop a paid run.
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)
