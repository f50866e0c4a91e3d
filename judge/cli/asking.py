"""Options of the commands that ask a judge."""

import argparse
from pathlib import Path

from judge.ask.budget import EVERY_OTHER
from judge.ask.criteria import criterion_names
from judge.ask.settings import Settings
from judge.cli.options import amount_or_zero, positive, positive_amount
from judge.cli.parser import OneOrMore
from judge.harness.options import DEFAULT_CRITERIA
from judge.models.model import ModelOptions, Price
from judge.models.prices import read_prices

ASKING = (
    *("base-url", "temperature", "max-tokens", "seed", "timeout", "threads", "logprobs"),
    *("concurrency", "attempts", "rpm", "tpm", "max-wait", "max-cost", "price", "prices"),
)
"""The options below, which have no effect where nobody is asked."""


def add_judge_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options for how a judge is asked."""
    group.add_argument(
        "--base-url",
        action=OneOrMore,
        metavar="URL",
        help="address of server/…, or another than the usual one for openai/… and litellm/…; repeated for several "
        "servers of one model (server/… only)",
    )
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
        "--timeout", type=positive_amount, default=120.0, metavar="SECONDS", help="of one attempt (default 120)"
    )
    group.add_argument(
        "--threads", type=positive, metavar="N", help="CPU threads of a local model (default: the free cores)"
    )
    group.add_argument(
        "--logprobs",
        action="store_true",
        help="ask for one label without reasons, and for the probability of every label",
    )


def add_criteria_option(group: argparse._ArgumentGroup) -> None:
    """Declare the option that names criteria."""
    group.add_argument(
        "--criteria",
        nargs="+",
        choices=criterion_names(),
        default=(),
        metavar="CRITERION",
        help=f"{', '.join(criterion_names())} (default {' '.join(DEFAULT_CRITERIA)})",
    )


def add_prompt_option(group: argparse._ArgumentGroup) -> None:
    """Declare the option that names prompts, one for each criterion."""
    group.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt for its criterion, as criterion/variant or a file of your own; may be repeated",
    )


def add_dry_run_option(group: argparse._ArgumentGroup, what: str) -> None:
    """Declare the option that only counts.

    Args:
        group: Where it stands.
        what: What is asked.
    """
    group.add_argument("--dry-run", action="store_true", help=f"count {what}, tokens and cost; send and write nothing")


def add_together_option(group: argparse._ArgumentGroup) -> None:
    """Declare the option that asks for several criteria in one call."""
    group.add_argument(
        "--together",
        action="store_true",
        help="ask for all criteria of a response in one call; each is then a prompt of its own, with a calibration of "
        "its own",
    )


def add_cascade_options(group: argparse._ArgumentGroup, *, several: bool = False) -> None:
    """Declare the options for a checker that judges first.

    Args:
        group: Where they are listed.
        several: Whether several cascades can be compared.
    """
    group.add_argument(
        "--cascade",
        action="append" if several else "store",
        default=[] if several else None,
        metavar="CHECKER@LOW:HIGH",
        help="let a checker judge groundedness by sentences first, and keep what it is sure of: every sentence is "
        "supported with a probability of at most LOW or at least HIGH; the model is asked the rest"
        + ("; compared with the model alone; may be repeated" if several else ""),
    )
    group.add_argument("--cascade-url", metavar="URL", help="address of that checker, where it is behind a server")


def add_loop_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options for calls in flight, attempts, pace and cost."""
    group.add_argument(
        "--concurrency",
        type=positive,
        default=16,
        metavar="N",
        help="calls in flight, at all addresses together (default 16)",
    )
    group.add_argument(
        "--attempts",
        type=positive,
        default=6,
        metavar="N",
        help="most attempts of a call whose failure may pass (default 6)",
    )
    group.add_argument("--rpm", type=positive, metavar="N", help="requests a minute at most, for each judge")
    group.add_argument("--tpm", type=positive, metavar="N", help="tokens a minute at most, by judge's own estimate")
    group.add_argument(
        "--max-wait",
        type=positive_amount,
        default=300.0,
        metavar="SECONDS",
        help="longest wait for a rate limit; a provider that asks for more ends the run (default 300)",
    )
    group.add_argument(
        "--max-cost", type=amount_or_zero, metavar="USD", help="spend no more than this in this invocation"
    )
    group.add_argument(
        "--price",
        type=_price,
        action="append",
        default=[],
        metavar="[MODEL=]IN/OUT",
        help="US dollars per million tokens of prompts and of replies, for one model or for all; IN/CACHED/OUT also "
        "gives that of cached tokens; may be repeated",
    )
    group.add_argument(
        "--prices", type=Path, metavar="FILE", help="TOML or JSON with prices by model; --price wins over it"
    )


def model_options(args: argparse.Namespace) -> ModelOptions:
    """The values of the options of `add_judge_arguments`."""
    given = args.base_url if isinstance(args.base_url, list) else [args.base_url]
    return ModelOptions(
        base_url=given[0],
        replicas=tuple(given[1:]),
        temperature=args.temperature,
        max_tokens=args.max_tokens,
        seed=args.seed,
        timeout=args.timeout,
        threads=args.threads,
        logprobs=args.logprobs,
    )


def loop_settings(args: argparse.Namespace) -> Settings:
    """The values of the options of `add_loop_arguments`."""
    return Settings(
        concurrency=args.concurrency,
        attempts=args.attempts,
        max_cost=args.max_cost,
        prices=dict(args.price),
        price_table={} if args.prices is None else read_prices(args.prices),
        rpm=args.rpm,
        tpm=args.tpm,
        max_wait=args.max_wait,
    )


def _price(text: str) -> tuple[str, Price]:
    """`IN/OUT` or `IN/CACHED/OUT`, either after `MODEL=`, for argparse."""
    model, named, amounts = text.rpartition("=")
    parts = amounts.split("/")
    if len(parts) not in (2, 3) or (named and not model):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not IN/OUT or IN/CACHED/OUT, such as 0.40/1.60, nor one of them after MODEL="
        )
    prompt, *cached, reply = (amount_or_zero(part) / 1e6 for part in parts)
    return model or EVERY_OTHER, Price(prompt, reply, *cached)
