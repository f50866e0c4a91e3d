"""Options of `judge leaderboard` about the token limit: one rule's exclusions, or all rules side by side."""

import argparse

from judge.cli.options import positive, refuse_unused
from judge.cli.printing import print_json, print_table, print_text, say
from judge.cli.tables import print_leaderboard
from judge.errors import UsageError
from judge.harness.judged import JudgedFolder
from judge.harness.token_limit import under_each_token_rule, under_token_rule
from judge.results.sensitivity import explained, sensitivity_cells, sensitivity_header
from judge.runs.tokens import RULES


def add_token_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tokens = parser.add_argument_group("token limit, from the stored lengths; without --gold")
    tokens.add_argument(
        "--over-limit",
        choices=("flag", "truncate", "exclude"),
        help="exclude: without responses over the limit; flag: as judged; truncate needs another judging",
    )
    tokens.add_argument("--token-rule", choices=RULES, help="how tokens are counted (default: as when judged)")
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
    if args.token_sensitivity:
        refuse_unused(args, ["cluster"], "--token-sensitivity shows no intervals")
    if args.out and args.out.suffix not in {".tsv", ".md"}:
        raise UsageError(f"--out {args.out}: expected a file named .tsv or .md")
    return True


def show(args: argparse.Namespace, judged: JudgedFolder) -> None:
    """Compute, write if asked, print."""
    never_judged = sum(exclusion.reason == "over_limit" for exclusion in judged.pool.exclusions)
    if never_judged:
        say(f"Warning: {never_judged} responses over the limit were never judged; they are out under every rule")
    if args.token_sensitivity:
        _show_each_rule(args, judged)
        return
    view = under_token_rule(judged, args.over_limit, args.token_rule, args.token_limit, args.out)
    if args.json:
        print_json({"rule": view.rule, "limit": view.limit, "over_limit": view.over_limit, "rows": view.rows})
    else:
        print_leaderboard(view.rows, judged.criteria, judged.banner, clustered=judged.clustered)
        print()
        print_text(view.note)


def _show_each_rule(args: argparse.Namespace, judged: JudgedFolder) -> None:
    sensitivity, limit = under_each_token_rule(judged, args.token_limit, args.out)
    if args.json:
        print_json(sensitivity)
        return
    print_text(judged.banner)
    print()
    print_text(explained(limit))
    for criterion in judged.criteria:
        print()
        print_text(f"{criterion.name}, prompt {criterion.prompt_id}")
        header = sensitivity_header(limit)
        joined = [place for place, name in enumerate(header) if name in ("mean", "rank") and place > 1]
        print_table(header, sensitivity_cells(sensitivity, criterion.name), joined=joined)
