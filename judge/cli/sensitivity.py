"""Options of `judge leaderboard` about the token limit: one rule's exclusions, or all rules side by side."""

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.cli.options import positive
from judge.cli.tables import print_leaderboard, print_table
from judge.errors import UsageError
from judge.files.folder import make_folder, write_atomic
from judge.records import Criterion, Failure, Judgment, Pool, TokenRule
from judge.results.leaderboard import leaderboard, leaderboard_markdown, leaderboard_tsv
from judge.results.sensitivity import (
    explained,
    sensitivity_cells,
    sensitivity_header,
    sensitivity_markdown,
    sensitivity_tsv,
    token_sensitivity,
    without_over_limit,
)
from judge.runs.tokens import RULES
from judge.text.safe import printable

LIMIT = 250


def add_token_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tokens = parser.add_argument_group("token limit, from the stored lengths; without --gold")
    tokens.add_argument(
        "--over-limit",
        choices=("flag", "truncate", "exclude"),
        help="exclude: as if responses over the limit had been left out; flag: as judged; truncate is another judging",
    )
    tokens.add_argument("--token-rule", choices=RULES, help="what the limit goes by (default: as when judged)")
    tokens.add_argument("--token-limit", type=positive, metavar="N", help="default: as when judged")
    tokens.add_argument(
        "--token-sensitivity",
        action="store_true",
        help="means and ranks with nothing excluded and under each rule, with Kendall's tau-b",
    )


def asks_for_tokens(args: argparse.Namespace, *, with_gold: bool) -> bool:
    """Whether the command is about the token limit.

    Raises:
        UsageError: The options do not go together.
    """
    given = {
        "--token-sensitivity": args.token_sensitivity,
        "--over-limit": args.over_limit is not None,
        "--token-rule": args.token_rule is not None,
        "--token-limit": args.token_limit is not None,
    }
    named = [name for name, is_given in given.items() if is_given]
    if not named:
        return False
    if with_gold:
        raise UsageError(
            f"{named[0]} and --gold do not go together: the correction is of the pool as it was judged; to correct "
            "without the long responses, judge the runs with --over-limit exclude into another folder"
        )
    if args.over_limit == "truncate":
        raise UsageError(
            "a text that is cut is another response, and nobody has judged it: judge the runs with "
            f"`judge run --over-limit truncate --token-rule {args.token_rule or 'bare'} --out OTHER`"
        )
    if args.token_sensitivity and (args.over_limit or args.token_rule):
        raise UsageError("--token-sensitivity shows every rule: give it without --over-limit and --token-rule")
    if not args.token_sensitivity and args.over_limit is None:
        raise UsageError(f"{named[0]} needs --over-limit exclude, or --token-sensitivity")
    if args.out and args.out.suffix not in {".tsv", ".md"}:
        raise UsageError(f"--out {args.out}: expected a file named .tsv or .md")
    return True


def show(
    args: argparse.Namespace,
    pool: Pool,
    results: Sequence[Judgment | Failure],
    criteria: Sequence[Criterion],
    expected: Mapping[str, Collection[str]],
    manifest: Mapping[str, Any],
    banner: str,
    mixed: Collection[str] = (),
) -> None:
    """Compute, write if asked, print."""
    stored_rule, stored_limit = _stored(manifest)
    limit: int = args.token_limit or stored_limit
    already = sum(row.reason == "over_limit" for row in pool.exclusions)
    if already:
        said = f"Warning: {already} responses over the limit were never judged; they are out under every rule"
        print(said, file=sys.stderr)
    if args.token_sensitivity:
        found = token_sensitivity(pool, results, criteria, limit, expected)
        _write(args.out, sensitivity_tsv(found), sensitivity_markdown(found, criteria, banner))
        if args.json:
            _print_json(found)
            return
        print(printable(banner))
        print(f"\n{explained(limit)}")
        for criterion in criteria:
            print(f"\n{criterion.name}, prompt {criterion.prompt_id}")
            print_table(sensitivity_header(limit), sensitivity_cells(found, criterion.name))
        return
    rule: TokenRule = args.token_rule or stored_rule
    note = f"All judged responses, whatever their length (limit {limit} tokens)."
    turns = expected
    if args.over_limit == "exclude":
        before = len(pool.responses)
        pool, by_run = without_over_limit(pool, rule, limit, expected)
        turns = by_run
        out = before - len(pool.responses)
        note = f"Without the {out} of {before} pooled responses of more than {limit} tokens by the {rule} rule."
    rows = leaderboard(pool, results, criteria, expected=turns)
    _write(args.out, leaderboard_tsv(rows, mixed), leaderboard_markdown(rows, banner, criteria, [note]))
    if args.json:
        shown = {"rule": rule, "limit": limit, "over_limit": args.over_limit, "rows": rows}
        _print_json(shown)
    else:
        print_leaderboard(rows, criteria, banner)
        print(f"\n{note}")


def _stored(manifest: Mapping[str, Any]) -> tuple[TokenRule, int]:
    """The rule and the limit of the judging; those of the guidelines where no manifest says it."""
    said = manifest.get("configuration", {}).get("token_rule")
    rule, limit = (said.get("rule"), said.get("limit")) if isinstance(said, dict) else (None, None)
    known: TokenRule = next((one for one in RULES if one == rule), "bare")
    return known, limit if isinstance(limit, int) and limit > 0 else LIMIT


def _write(out: Path | None, tsv: str, markdown: str) -> None:
    if out:
        make_folder(out.parent)
        write_atomic(out, (tsv if out.suffix == ".tsv" else markdown).encode())


def _print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
