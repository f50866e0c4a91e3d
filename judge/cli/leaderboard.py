"""The leaderboard of a folder that `judge run` wrote; with --gold, corrected by grades that people gave.

With --over-limit exclude or --token-sensitivity, it leaves out the responses over the token limit.

Gold for a random part of the responses is enough: the judge's grades carry it over to the others. The gold has to say
how that part was drawn: `judge gold plan` records it, `judge gold import --inclusion P` declares it. --test opens
sealed grades and logs the opening.
"""

import argparse
import sys
from pathlib import Path

from judge.cli.options import add_cluster_option, add_own_prompts_option, refuse_unused
from judge.cli.printing import USUAL, columns, print_json, print_text, progress, say
from judge.cli.sensitivity import add_token_arguments, asks_for_tokens, show
from judge.cli.tables import print_leaderboard
from judge.errors import UsageError
from judge.harness.correction import CorrectionOutcome, CorrectionPlan, correct_leaderboard
from judge.harness.judged import read_judged
from judge.results.corrected_tables import change_text, corrected_lines
from judge.results.leaderboard import reading
from judge.results.rows import CORRECTED_FLAGS, flag_lines, folder_unit
from judge.text.cells import fold

SCHEMA = 2
"""Version of what --gold --json prints."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="OUT", help="output folder of `judge run`")
    parser.add_argument("--gold", type=Path, nargs="+", default=[], metavar="FILE", help="gold grades (JSONL)")
    parser.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="sealed test grades of `judge gold split`, used together with --gold; each opening is logged",
    )
    parser.add_argument("--seal", type=Path, metavar="FILE", help="their seal (default: seal.json beside --test)")
    parser.add_argument(
        "--criterion",
        metavar="NAME|PATH",
        help="only this criterion; a prompt file of your own if the judgments are under one",
    )
    add_own_prompts_option(parser)
    parser.add_argument(
        "--target",
        choices=("pool", "topics"),
        default="pool",
        help="corrected means of these responses (default), or of the runs on topics like these",
    )
    parser.add_argument(
        "--families", type=Path, metavar="TSV", help="run or judge, tab, family of models behind it: flags SELF"
    )
    parser.add_argument(
        "--fallback", choices=("family",), help="correct runs with fewer than 3 gold grades by their family's error"
    )
    add_cluster_option(parser, default=None)
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="PATH",
        help="write the corrected leaderboard, to a folder or to a file named .tsv or .md; without --gold, write the "
        "leaderboard under a token rule to such a file",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, with --gold also the cautions")
    add_token_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Read, correct if there is gold, print."""
    with_gold = bool(args.gold) or args.test is not None
    about_tokens = asks_for_tokens(args, with_gold=with_gold)
    if with_gold or args.seal is not None:
        _correct(args)
        return 0
    if (args.out and not about_tokens) or args.fallback or args.target != "pool":
        raise UsageError("--out, --fallback and --target are about a correction, which needs --gold")
    refuse_unused(args, ["families"], "they are about a correction, which needs --gold")
    with progress("reading judgments"):
        judged = read_judged(args.folder, args.criterion, args.cluster, args.prompt)
    for warning in judged.warnings:
        say(warning)
    if about_tokens:
        show(args, judged)
    elif args.json:
        print_json(judged.leaderboard)
    else:
        tables = judged.tables
        print_leaderboard(tables.leaderboard, judged.criteria, judged.banner, tables.differences, judged.clustered)
    return 0


def _correct(args: argparse.Namespace) -> None:
    with progress("correcting means by gold"):
        outcome = correct_leaderboard(
            CorrectionPlan(
                folder=args.folder,
                gold=args.gold,
                test=args.test,
                seal=args.seal,
                criterion=args.criterion,
                prompts=args.prompt,
                target=args.target,
                families=args.families,
                fallback=args.fallback,
                cluster=args.cluster,
                out=args.out,
            )
        )
    for warning in outcome.warnings:
        say(warning)
    if not args.json:
        _print(outcome)
        if args.out is not None:
            say(f"the corrected leaderboard is in {args.out}")
        return
    for caution in outcome.cautions:
        say(f"Warning: {caution}")
    seal = {} if outcome.seal is None else {"seal": outcome.seal}
    clustered = {"clustered": outcome.clustered} if outcome.clustered else {}
    head = {"schema": SCHEMA, "target": args.target, "gold": outcome.gold, **seal, **clustered}
    print_json({**head, "cautions": outcome.cautions, "rows": outcome.rows})


def _print(outcome: CorrectionOutcome) -> None:
    for caution in outcome.cautions:
        print_text(f"! {caution}", "warning")
    for line in outcome.clustered:
        print()
        print_text(line)
    for criterion in outcome.criteria:
        rows = [row for row in outcome.rows if row.criterion == criterion.name]
        print()
        print_text(reading(criterion), "heading")
        print("\n".join(corrected_lines(rows, columns())))
        print_text(change_text(outcome.changes[criterion.name]))
    flags = flag_lines(outcome.rows, folder_unit(outcome.criteria), CORRECTED_FLAGS)
    print("\n".join(["", *(line for text in flags for line in fold(text, USUAL))]), file=sys.stderr)
