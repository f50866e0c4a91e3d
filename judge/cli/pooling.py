"""Options of the commands that pool, and the values given."""

import argparse
from pathlib import Path
from typing import Any

from judge.cli.options import add_input_arguments, positive
from judge.cli.screening import add_screen_arguments, thresholds_of
from judge.pool.effectiveness import DEFAULT_MEASURE
from judge.pool.selection import RUN_RULES


def add_pooling_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for runs, evidence, pooling and the screen."""
    add_input_arguments(parser)
    evidence = parser.add_argument_group("passages")
    evidence.add_argument(
        "--passages",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="the collection's passages: JSONL, TREC-web, folders of them, .gz .bz2 .zst too, an index of "
        "`judge passages index`, a Lucene index; if given, only their texts count as evidence",
    )
    evidence.add_argument(
        "--passage-hashes",
        type=Path,
        metavar="FILE",
        help="the collection's list of passage MD5s, or an index of it: no other text counts as evidence",
    )
    evidence.add_argument(
        "--missing-passages",
        choices=("fail", "skip-response", "judge-without"),
        default="skip-response",
        help="where a used passage has no text: stop, leave the response without a grade (default), or judge it by "
        "the passages that have one",
    )
    pooling = parser.add_argument_group("pooling")
    pooling.add_argument(
        "--depth", type=positive, default=1, metavar="K", help="responses per turn and run (default 1)"
    )
    pooling.add_argument(
        "--over-limit",
        choices=("flag", "truncate", "exclude"),
        default="flag",
        help="what to do with a response over the token limit (default flag)",
    )
    pooling.add_argument("--turns", type=Path, metavar="FILE", help="pool only these turns, one id per line")
    pooling.add_argument(
        "--passage-qrels",
        type=Path,
        metavar="FILE",
        help="pool only responses with a relevant used passage, by these grades of passages",
    )
    pooling.add_argument("--min-relevance", type=positive, metavar="N", help="lowest relevant grade (default 1)")
    pooling.add_argument(
        "--max-rank",
        type=positive,
        metavar="N",
        help="last rank looked at for a relevant passage (default --depth; CAsT 2022: at least 3)",
    )
    pooling.add_argument(
        "--select-runs",
        metavar="FILE|RULE",
        help=f"pool only the runs of this file, one id per line, or those that a rule chooses: {', '.join(RUN_RULES)}",
    )
    pooling.add_argument(
        "--measure",
        help=f"measure by which the rules compare runs, as ir-measures names it (default {DEFAULT_MEASURE})",
    )
    pooling.add_argument(
        "--teams", type=Path, metavar="TSV", help="run, tab, team, where the runs do not name their team"
    )
    pooling.add_argument(
        "--extend",
        type=Path,
        metavar="OUT",
        help="add to the pool of an earlier output folder, keeping its ids",
    )
    add_screen_arguments(parser)


def pooling_options(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of `Pooling`, by name.

    Raises:
        UsageError: Options contradict each other.
    """
    return {
        "runs": args.runs,
        "topics": args.topics,
        "format": args.format,
        "passages": args.passages,
        "passage_hashes": args.passage_hashes,
        "missing_passages": args.missing_passages,
        "depth": args.depth,
        "token_rule": args.token_rule,
        "token_limit": args.token_limit,
        "citation_limit": args.citation_limit,
        "profile": args.profile,
        "over_limit": args.over_limit,
        "only_turns": args.turns,
        "passage_qrels": args.passage_qrels,
        "min_relevance": args.min_relevance,
        "max_rank": args.max_rank,
        "select_runs": args.select_runs,
        "measure": args.measure,
        "teams": args.teams,
        "screen": args.screen,
        "thresholds": thresholds_of(args),
        "encoder": args.encoder,
        "extend": args.extend,
    }
