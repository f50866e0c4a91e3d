"""Judge every run of a folder: check, pool, ask a judge, write response qrels and a leaderboard.

Without --model (or the environment's JUDGE_MODEL) a small local model is used; it needs no key, and its grades are
a demonstration, not a measurement. Relevance, completeness and conciseness look at the conversation and need --topics.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from judge.assess import Settings
from judge.cli.options import add_input_arguments, amount_or_zero, positive, positive_amount
from judge.cli.progress import FetchReporter, Reporter
from judge.cli.tables import print_leaderboard, print_problems
from judge.criteria import DEFAULT_VARIANTS
from judge.harness import (
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
from judge.models import ModelOptions

ASK_AGAIN = {"provider_error", "budget"}
"""Failures that the same command may cure."""
_TYPICAL_REPLY = 150
"""Tokens of a usual reply with its reasons, for the cost forecast."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input_arguments(parser)
    pooling = parser.add_argument_group("pooling")
    pooling.add_argument(
        "--passages",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the collection's passages (JSONL, .gz too); if given, only their texts count as evidence",
    )
    pooling.add_argument(
        "--depth", type=positive, default=1, metavar="K", help="responses per turn and run (default 1)"
    )
    pooling.add_argument(
        "--over-limit",
        choices=("flag", "truncate", "exclude"),
        default="flag",
        help="what to do with a response over the token limit (default flag)",
    )
    pooling.add_argument(
        "--extend",
        type=Path,
        metavar="OUT",
        help="add to the pool of an earlier output folder, keeping its ids",
    )
    asking = parser.add_argument_group("asking")
    asking.add_argument(
        "--criteria",
        nargs="+",
        choices=sorted(DEFAULT_VARIANTS),
        metavar="CRITERION",
        help=f"{', '.join(sorted(DEFAULT_VARIANTS))} (default {' '.join(DEFAULT_CRITERIA)})",
    )
    asking.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt for its criterion, as criterion/variant or a file of your own; may be repeated",
    )
    asking.add_argument(
        "--model", metavar="BACKEND/MODEL", help=f"the judge (default: JUDGE_MODEL, else {DEFAULT_MODEL})"
    )
    asking.add_argument("--base-url", metavar="URL", help="endpoint of server/… (or another for openai/…, litellm/…)")
    asking.add_argument("--temperature", type=amount_or_zero, default=0.0, help="sampling temperature (default 0)")
    asking.add_argument(
        "--max-tokens",
        type=positive,
        default=1024,
        metavar="N",
        help="longest reply in tokens (default 1024)",
    )
    asking.add_argument("--seed", type=int, metavar="N", help="sampling seed, where the provider takes one")
    asking.add_argument(
        "--timeout", type=positive_amount, default=120.0, metavar="SECONDS", help="for one attempt (default 120)"
    )
    asking.add_argument(
        "--threads", type=positive, metavar="N", help="CPU threads of a local model (default: the free cores)"
    )
    loop = parser.add_argument_group("the loop")
    loop.add_argument("--concurrency", type=positive, default=16, metavar="N", help="calls in flight (default 16)")
    loop.add_argument(
        "--attempts", type=positive, default=6, metavar="N", help="per call, for passing failures (default 6)"
    )
    loop.add_argument(
        "--max-cost", type=amount_or_zero, metavar="USD", help="spend no more than this in this invocation"
    )
    loop.add_argument(
        "--limit", type=positive, metavar="N", help="judge only N responses a criterion, spread over the pool"
    )
    loop.add_argument("--dry-run", action="store_true", help="count judgments, tokens and cost; send and write nothing")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", type=Path, metavar="DIR", help=f"output folder (default {DEFAULT_OUT}, or that of --extend)"
    )
    output.add_argument("--replace", action="store_true", help="write over results of another configuration in --out")


def main(args: argparse.Namespace, argv: Sequence[str] | None = None) -> int:
    """Run the whole line."""
    plan = Plan(
        runs=args.runs,
        out=args.out,
        topics=args.topics,
        passages=args.passages,
        criteria=args.criteria,
        prompts=args.prompt,
        model=args.model,
        options=ModelOptions(
            base_url=args.base_url,
            temperature=args.temperature,
            max_tokens=args.max_tokens,
            seed=args.seed,
            timeout=args.timeout,
            threads=args.threads,
        ),
        settings=Settings(concurrency=args.concurrency, attempts=args.attempts, max_cost=args.max_cost),
        format=args.format,
        depth=args.depth,
        token_rule=args.token_rule,
        token_limit=args.token_limit,
        over_limit=args.over_limit,
        extend=args.extend,
        limit=args.limit,
        replace=args.replace,
        argv=tuple(sys.argv[1:] if argv is None else argv),
    )
    prepared = prepare(plan)
    submitted, pool = prepared.submitted, prepared.pool
    print_problems(submitted.problems, checked_topics=args.topics is not None)
    _say(
        f"pooled {len(pool.responses)} distinct responses of {len(submitted.runs)} runs; "
        f"{len(pool.exclusions)} excluded"
    )
    if args.dry_run:
        _print_forecast(prepared, args.max_tokens)
        return 0
    with FetchReporter(sys.stderr) as fetching, Reporter(prepared.model.name, sys.stderr) as reporter:
        outcome = carry_out(prepared, report=reporter, fetching=fetching)
    print_leaderboard(outcome.leaderboard, outcome.criteria)
    return _close(outcome)


def _close(outcome: Outcome) -> int:
    _say(f"\nresults are in {outcome.out}; manifest.json there says how they were made")
    failures = outcome.failures
    if failures:
        reasons = ", ".join(sorted({one.reason for one in failures}))
        _say(f"{len(failures)} of {len(outcome.results)} judgments are missing ({reasons}), see failures.jsonl")
    if len(failures) == len(outcome.results):
        lacking = all(one.reason == "no_passages" for one in failures)
        _say(f"nothing was judged{'; --passages FILE gives the texts of the passages' if lacking else ''}")
    if any(one.reason in ASK_AGAIN for one in failures):
        _say("the same command asks again for those that failed in passing")
        return 3
    return 1 if len(failures) == len(outcome.results) else 0


def _print_forecast(prepared: Prepared, max_tokens: int) -> None:
    counts, price = forecast(prepared), prepared.model.price()
    print(f"judge               {prepared.model.name}")
    print(f"judgments           {counts.judgments}")
    print(f"  from the journal  {counts.recalled}")
    print(f"  without evidence  {counts.without_evidence}")
    print(f"calls to be made    {counts.calls}")
    print(f"prompt tokens       about {counts.prompt_tokens} (at 4 characters a token)")
    if price is None:
        print(f"cost                unknown: no price for {prepared.model.name} here")
    else:
        usual, most = (
            counts.prompt_tokens * price.prompt + counts.calls * reply * price.completion
            for reply in (_TYPICAL_REPLY, max_tokens)
        )
        print(f"cost                about ${usual:.2f} ({_TYPICAL_REPLY} tokens a reply), at most ${most:.2f}")
    _say("nothing was sent and nothing was written")


def _say(text: str) -> None:
    # Talk that nobody listens to any more is no reason to stop a paid run.
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)
