"""Compare judgments with gold grades of the same responses: how far may a judge be believed?

Judgments are looked for with their pool beside them, as `judge run` writes them. The statistics are about the
responses that both the judge and the assessor graded.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from judge.bank import read_pool
from judge.calibrate import Agreement, agreement, read_judgments
from judge.cli.tables import print_table
from judge.criteria import find_criterion
from judge.errors import UsageError
from judge.files import read_stored, unpack
from judge.gold import match, read_gold
from judge.records import Criterion, Judgment
from judge.stats.agreement import FEWEST_TOPICS
from judge.text import printable

HEADER = ("judge", "assessor", "judged", "same", "constant", "kappa", "weighted kappa", "bias", "rank corr.")
LEGEND = """\
judged: grades that the judge gave too, of those the assessor gave
same: share of identical grades; constant: that share for always giving the assessor's commonest grade
weighted kappa: quadratic weights, 95 % interval; bias: judge minus assessor
rank corr.: of the expected grade, where the judge gives label probabilities"""
_MANY_TOPICS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--gold", type=Path, required=True, metavar="FILE", help="gold grades (JSONL)")
    parser.add_argument(
        "--judgments",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="judgments.jsonl of one or more output folders",
    )
    parser.add_argument(
        "--pool",
        type=Path,
        metavar="FILE",
        help="pool.jsonl, with its passages.jsonl, if it is not beside the judgments",
    )
    parser.add_argument(
        "--criterion",
        metavar="NAME|PATH",
        help="only this criterion, or only judgments under this prompt (criterion/variant, or a file)",
    )
    parser.add_argument("--json", action="store_true", help="print every statistic, as JSON")


def main(args: argparse.Namespace) -> int:
    """Match, compare, print."""
    gold = read_gold(args.gold)
    found: list[Agreement] = []
    for path in args.judgments:
        judgments = read_judgments(unpack(read_stored(path), str(path)), str(path))
        pool_path = args.pool or path.with_name("pool.jsonl")
        passages = read_stored(pool_path.with_name("passages.jsonl"))
        pool = read_pool(read_stored(pool_path), passages, str(pool_path.parent))
        matched, unmatched = match(gold, pool, str(args.gold))
        if unmatched:
            _say(f"{path}: {len(unmatched)} of {len(gold)} gold grades are of responses not in its pool")
        for criterion in _criteria(judgments, args.criterion, path):
            found += agreement(judgments, matched, criterion)
    if not found:
        raise UsageError(f"{args.gold}: no grade of a pooled response under a criterion that was judged")
    found.sort(key=lambda record: record.prompt)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return 0
    for prompt, group in groupby(found, key=lambda record: record.prompt):
        print(f"\n{printable(prompt)}")
        print_table(HEADER, [_cells(record) for record in group])
    print(f"\n{_caution(found)}")
    _say(LEGEND)
    return 0


def _criteria(judgments: Sequence[Judgment], wanted: str | None, path: Path) -> list[Criterion]:
    """The prompts behind the judgments, or the wanted one; a warning where a file has changed since."""
    digests = {f"{one.criterion}/{one.variant}": one.criterion_digest for one in judgments}
    names = {prompt.partition("/")[0] for prompt in digests}
    if wanted is None or wanted in names:
        prompts = sorted(prompt for prompt in digests if wanted in (None, prompt.partition("/")[0]))
        try:
            criteria = [find_criterion(prompt) for prompt in prompts]
        except UsageError as error:
            raise UsageError(f"{path}: {error}; give the prompt of your own with --criterion PATH") from error
    else:
        criteria = [find_criterion(wanted)]
    for criterion in criteria:
        if criterion.prompt_id not in digests:
            raise UsageError(f"{path}: no judgment under {criterion.prompt_id}, only {', '.join(sorted(digests))}")
        if digests[criterion.prompt_id] != criterion.digest:
            _say(f"{path}: {criterion.file} has changed since these judgments were made")
    return criteria


def _cells(record: Agreement) -> tuple[str, ...]:
    weighted = _decimals(record.weighted_kappa.value)
    if record.weighted_kappa.low is not None:
        weighted += f" [{_decimals(record.weighted_kappa.low)}, {_decimals(record.weighted_kappa.high)}]"
    return (
        record.judge,
        record.assessor,
        f"{record.judged}/{record.gold}",
        _decimals(record.percent.value),
        _decimals(record.constant_percent),
        _decimals(record.kappa.value),
        weighted,
        "-" if record.bias.value is None else f"{record.bias.value:+.2f}",
        _decimals(record.rank_correlation.value),
    )


def _decimals(number: float | None) -> str:
    return "-" if number is None else f"{round(number, 2) + 0.0:.2f}"


def _caution(found: Sequence[Agreement]) -> str:
    """What the number of topics lets one conclude."""
    topics = max(record.percent.topics for record in found)
    if topics < FEWEST_TOPICS:
        return f"Gold on {topics} topics gives kappa no interval ({FEWEST_TOPICS} needed): trust no judge on this."
    if topics < _MANY_TOPICS:
        return f"Gold on {topics} topics leaves wide intervals; {_MANY_TOPICS} and 100 grades are the least."
    return f"Intervals are over {topics} topics; what counts is their lower end."


def _say(text: str) -> None:
    print(text, file=sys.stderr)
