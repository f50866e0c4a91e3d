"""Options of the commands that ask a judge."""

import argparse

from judge.ask.loop import Settings
from judge.cli.options import amount_or_zero, positive, positive_amount
from judge.models.model import ModelOptions

ASKING = (
    *("base-url", "temperature", "max-tokens", "seed", "timeout", "threads"),
    *("concurrency", "attempts", "max-cost"),
)
"""The options below, which have no effect where nobody is asked."""


def add_judge_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options for how a judge is asked."""
    group.add_argument("--base-url", metavar="URL", help="endpoint of server/… (or another for openai/…, litellm/…)")
    group.add_argument("--temperature", type=amount_or_zero, default=0.0, help="sampling temperature (default 0)")
    group.add_argument(
        "--max-tokens",
        type=positive,
        default=1024,
        metavar="N",
        help="longest reply in tokens (default 1024)",
    )
    group.add_argument("--seed", type=int, metavar="N", help="sampling seed, where the provider takes one")
    group.add_argument(
        "--timeout", type=positive_amount, default=120.0, metavar="SECONDS", help="for one attempt (default 120)"
    )
    group.add_argument(
        "--threads", type=positive, metavar="N", help="CPU threads of a local model (default: the free cores)"
    )


def add_loop_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options for calls in flight, attempts and cost."""
    group.add_argument("--concurrency", type=positive, default=16, metavar="N", help="calls in flight (default 16)")
    group.add_argument(
        "--attempts", type=positive, default=6, metavar="N", help="per call, for passing failures (default 6)"
    )
    group.add_argument(
        "--max-cost", type=amount_or_zero, metavar="USD", help="spend no more than this in this invocation"
    )


def model_options(args: argparse.Namespace) -> ModelOptions:
    """The values of the options of `add_judge_arguments`."""
    return ModelOptions(
        base_url=args.base_url,
        temperature=args.temperature,
        max_tokens=args.max_tokens,
        seed=args.seed,
        timeout=args.timeout,
        threads=args.threads,
    )


def loop_settings(args: argparse.Namespace) -> Settings:
    """The values of the options of `add_loop_arguments`."""
    return Settings(concurrency=args.concurrency, attempts=args.attempts, max_cost=args.max_cost)
