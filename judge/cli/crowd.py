"""Turn the labels of many workers into one grade per item, with an audit trail.

`judge crowd cast-regin DIR --out OUT` reads the published resource instead of tables of labels.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.cli.labels import add_label_arguments
from judge.cli.look import columns
from judge.cli.options import amount_or_zero, by_name, pair, positive
from judge.cli.printing import folded_lines, grouped, print_json, print_text, progress, say
from judge.crowd.aggregators import AGGREGATORS, PRIOR, SMOOTHED, AggregatorOptions
from judge.crowd.joint import DIAGNOSTIC
from judge.crowd.outputs import FILTER_MIN
from judge.crowd.study import Study
from judge.crowd.summary import CAREFUL, terminal
from judge.crowd.workers import TOO_FAST
from judge.errors import InputError
from judge.harness.crowd import CrowdPlan, grade_crowd
from judge.records import Problem
from judge.stats.consensus import SHARES, TIES
from judge.stats.worker_models import PRIORS

_SHOWN = 12
"""How many warnings are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("labels", metavar="LABELS", nargs="+", type=Path, help="tables of labels")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.add_argument("--mi-turns", type=Path, metavar="FILE", help="turn ids of the subset qrels, one per line")
    _reading_arguments(parser.add_argument_group("reading labels (CSV, TSV, JSON, JSON Lines, Parquet)"))
    _known_arguments(parser.add_argument_group("known items"))
    _grading_arguments(parser.add_argument_group("grading"))


def _reading_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--scale",
        action="append",
        default=[],
        metavar="[NAME=]LOW-HIGH",
        help="scale of every criterion, e.g. 0-3, or of one; with names, any other criterion is an error",
    )
    group.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt by whose levels was labeled: gives its criterion's scale, and its levels name grades (repeatable)",
    )
    group.add_argument(
        "--criterion",
        action="append",
        default=[],
        metavar="NAME",
        help="take only this criterion (repeatable); a single one names the criterion of tables that name none",
    )
    group.add_argument(
        "--column",
        action="append",
        default=[],
        type=pair,
        metavar="FIELD=COLUMN",
        help="column of worker, turn_id, response_id, task, criterion, label, seconds, or label:NAME of one criterion",
    )
    add_label_arguments(group)
    group.add_argument("--bank", type=Path, metavar="FILE|OUT", help="texts: bank (JSON), pool.jsonl or its folder")
    group.add_argument(
        "--unit", choices=("response", "question"), default="response", help="what was labeled (default response)"
    )


def _known_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--known", type=Path, metavar="FILE", help="table or JSON Lines: turn_id, response_id, criterion, acceptable"
    )
    group.add_argument(
        "--max-fails",
        type=_whole,
        default=0,
        metavar="N",
        help="contradictions that a worker may have in a topic (default 0)",
    )
    group.add_argument(
        "--max-deviation",
        type=_whole,
        default=0,
        metavar="D",
        help="distance that does not count as a contradiction (default 0)",
    )


def _grading_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--aggregator", choices=tuple(AGGREGATORS), default="majority", help="from labels to a grade (default majority)"
    )
    group.add_argument("--majority", choices=tuple(SHARES), help="what a majority is (default plurality)")
    group.add_argument("--tie", choices=tuple(TIES), help="the grade without a majority (default mean-half-up)")
    group.add_argument(
        "--smoothing",
        type=amount_or_zero,
        metavar="N",
        help=f"pseudo-labels of each worker in {', '.join(SMOOTHED)} (default {AggregatorOptions().smoothing:g})",
    )
    group.add_argument(
        "--prior",
        choices=tuple(PRIORS),
        help=f"the grades' probabilities before any label in {', '.join(PRIOR)} (default {AggregatorOptions().prior})",
    )
    group.add_argument(
        "--with-judgments",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="judgments of LLM judges, compared with the workers in one model; this diagnostic changes no grade",
    )
    group.add_argument(
        "--min-labels", type=positive, default=3, metavar="K", help="items with fewer labels are listed (default 3)"
    )
    group.add_argument(
        "--too-fast",
        type=amount_or_zero,
        default=TOO_FAST,
        metavar="SECONDS",
        help=f"a label given in less is too fast (default {TOO_FAST:g})",
    )
    group.add_argument(
        "--filter-min",
        type=_grade,
        default=FILTER_MIN,
        metavar="GRADE",
        help=f"filtered qrels: turns with at least one response of this grade or a higher one (default {FILTER_MIN})",
    )


def main(args: argparse.Namespace) -> int:
    """Grade and summarize; 1 if a criterion has no label left."""
    try:
        with progress("reading labels") as steps:
            outcome = grade_crowd(_plan(args), steps)
    except InputError as error:
        raise InputError(str(error), grouped(error.problems)) from None
    _warn(outcome.warnings)
    if args.json:
        print_json(_summary(outcome.study, outcome.warnings))
    else:
        print(terminal(outcome.study, columns()), end="")
        if args.with_judgments:
            print_text(f"with_judgments.tsv: {DIAGNOSTIC}")
        say(f"written to {args.out}")
    return 1 if outcome.empty else 0


def _plan(args: argparse.Namespace) -> CrowdPlan:
    return CrowdPlan(
        labels=args.labels,
        scales=args.scale,
        prompts=args.prompt,
        out=args.out,
        criteria=args.criterion,
        columns=by_name("--column", args.column),
        words=by_name("--label", args.label),
        table=args.table,
        task=args.task,
        wide=args.wide,
        wide_map=args.wide_map,
        bank=args.bank,
        unit=args.unit,
        known=args.known,
        max_fails=args.max_fails,
        max_deviation=args.max_deviation,
        aggregator=args.aggregator,
        majority=args.majority,
        tie=args.tie,
        smoothing=args.smoothing,
        prior=args.prior,
        with_judgments=args.with_judgments,
        min_labels=args.min_labels,
        too_fast=args.too_fast,
        filter_min=args.filter_min,
        subset_turns=args.mi_turns,
    )


def _summary(graded: Study, warnings: Sequence[Problem]) -> dict[str, Any]:
    """What `--json` prints."""
    audit = graded.audit
    removed = None
    if audit is not None:
        removed = {
            "known_items": audit.known,
            "removals": len(audit.removed),
            "labels_removed": sum(n for topics in audit.labels_removed.values() for n in topics.values()),
            "tolerated": audit.tolerated,
            "unchecked": audit.unchecked,
            "error_rate": audit.error,
            "expected_removals": {
                f"{error:g}": audit.expected(error, graded.settings.max_fails) for error in (CAREFUL, 0.1, 0.2)
            },
        }
    overall = {row.criterion: row.alpha for row in graded.reliability if row.topic is None and row.of == "kept"}
    return {
        "aggregator": graded.settings.aggregator,
        "criteria": {
            name: {
                "rule": grades.rule,
                "items": len(grades.n),
                "labels": int(grades.n.sum()),
                "tied": int(grades.tied.sum()),
                "unvoted": int(grades.unvoted.sum()),
                "few_labels": len(graded.few[name]),
                "without_grade": int((grades.n == 0).sum()),
                "changed_by_filter": graded.changed.get(name),
                "alpha": overall[name],
            }
            for name, grades in graded.aggregated.items()
        },
        "filter": removed,
        "flagged_workers": len({row.worker for row in graded.workers if row.flags}),
        "warnings": list(warnings),
    }


def _warn(warnings: Sequence[Problem]) -> None:
    for line in folded_lines(grouped(warnings), _SHOWN):
        say(f"warning: {line}")


def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of zero or more")
    return int(text)


def _grade(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,3}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a grade")
    return int(text)
