"""Make one grade an item of the labels of many workers, with an audit trail; or check and remake CAsT-ReGIn.

`judge crowd cast-regin DIR --out OUT` reads the published resource instead of tables of labels.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.labels import read_labels
from judge.cli import crowd_regin
from judge.cli.options import amount_or_zero, pair, positive
from judge.crowd.aggregators import AGGREGATORS, SMOOTHED, VOTING, AggregatorOptions
from judge.crowd.faults import Faults
from judge.crowd.joint import DIAGNOSTIC, diagnostic_tsv, joint_diagnostic
from judge.crowd.known import known_warnings
from judge.crowd.known_file import read_known
from judge.crowd.labels import CrowdLabels, Item
from judge.crowd.outputs import FILTER_MIN, crowd_files, write_crowd
from judge.crowd.regin.resource import read_turns
from judge.crowd.rows import TASK, Scales
from judge.crowd.study import Settings, Study, study
from judge.crowd.summary import terminal
from judge.crowd.tables import MAX_GRADES, read_tables
from judge.crowd.wide import read_questions
from judge.crowd.workers import TOO_FAST
from judge.errors import UsageError
from judge.files.stored import read_stored, unpack
from judge.gold import read_bank
from judge.pool.bank import read_pool
from judge.records import Problem
from judge.stats.consensus import SHARES, TIES
from judge.text.safe import printable

CAST_REGIN = "cast-regin"
"""In place of a table: the published resource."""
_SCALE = re.compile(r"(?:(?P<name>.+)=)?(?P<low>-?[0-9]{1,3})-(?P<high>-?[0-9]{1,3})", re.ASCII)
_SHOWN = 12
"""Warnings that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "labels", metavar="LABELS", nargs="+", type=Path, help=f"tables of labels; or `{CAST_REGIN}` and its folder"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.add_argument("--mi-turns", type=Path, metavar="FILE", help="turn ids of the subset qrels, one a line")
    _reading_arguments(parser.add_argument_group("reading labels (CSV, TSV, JSON Lines, Parquet)"))
    _known_arguments(parser.add_argument_group("known items"))
    _grading_arguments(parser.add_argument_group("grading"))
    regin = parser.add_argument_group(CAST_REGIN)
    regin.add_argument("--runs", type=Path, metavar="DIR", help="submitted runs, to be mapped to bank ids by text")
    regin.add_argument("--evaluate", action="store_true", help="evaluate the runs")


def _reading_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--scale",
        action="append",
        default=[],
        type=_scale,
        metavar="[NAME=]LOW-HIGH",
        help="scale of every criterion, e.g. 0-3, or of one; with names, any other criterion is an error",
    )
    group.add_argument(
        "--criterion",
        action="append",
        default=[],
        metavar="NAME",
        help="take this criterion only (repeatable); one alone names what tables without criteria are about",
    )
    group.add_argument(
        "--column",
        action="append",
        default=[],
        type=pair,
        metavar="FIELD=COLUMN",
        help="column of worker, turn_id, item_id, task, criterion, label, seconds, or label:NAME for one criterion's",
    )
    group.add_argument(
        "--task", default=TASK, metavar="PATTERN", help="groups turn_id and response_id in a task (default TURN/ID)"
    )
    wide = group.add_mutually_exclusive_group()
    wide.add_argument(
        "--wide",
        metavar="PATTERN",
        help="survey with a row a participant: groups turn_id, response_id, criterion in the names of its columns",
    )
    wide.add_argument(
        "--wide-map", type=Path, metavar="FILE", help="the same by a table column, turn_id, response_id, criterion"
    )
    group.add_argument("--bank", type=Path, metavar="FILE|OUT", help="texts: bank (JSON), pool.jsonl or its folder")
    group.add_argument(
        "--unit", choices=("response", "question"), default="response", help="what was labeled (default response)"
    )


def _known_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--known", type=Path, metavar="FILE", help="table or JSON Lines: turn_id, response_id, criterion, acceptable"
    )
    group.add_argument(
        "--max-fails", type=_whole, default=0, metavar="N", help="contradictions a worker may have in a topic (0)"
    )
    group.add_argument(
        "--max-deviation", type=_whole, default=0, metavar="D", help="distance that is no contradiction (0)"
    )


def _grading_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--aggregator", choices=tuple(AGGREGATORS), default="majority", help="from labels to a grade (default majority)"
    )
    group.add_argument("--majority", choices=tuple(SHARES), help="what a majority is (default plurality)")
    group.add_argument("--tie", choices=tuple(TIES), help="the grade where there is none (default mean-half-up)")
    group.add_argument(
        "--smoothing",
        type=amount_or_zero,
        metavar="N",
        help=f"pseudo-labels of each worker in {', '.join(SMOOTHED)} (default {AggregatorOptions().smoothing:g})",
    )
    group.add_argument(
        "--with-judgments",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="judgments of LLM judges, set beside the workers in one model: a diagnostic that changes no grade",
    )
    group.add_argument(
        "--min-labels", type=positive, default=3, metavar="K", help="items with fewer labels are listed (default 3)"
    )
    group.add_argument(
        "--too-fast", type=amount_or_zero, default=TOO_FAST, metavar="SECONDS", help=f"(default {TOO_FAST:g})"
    )
    group.add_argument(
        "--filter-min",
        type=_grade,
        default=FILTER_MIN,
        metavar="GRADE",
        help=f"filtered qrels: turns with this grade or more at least once (default {FILTER_MIN})",
    )


def main(args: argparse.Namespace) -> int:
    """Read everything, compute everything, and only then write; 1 if a criterion has no label left."""
    if args.labels[0] == Path(CAST_REGIN):
        return _cast_regin(args)
    _check_options(args)
    warnings: list[Problem] = []
    known_file = read_known(args.known) if args.known else None
    by_item, turns = _bank(args.bank) if args.bank else ({}, None)
    labels = read_tables(
        args.labels,
        columns=dict(args.column),
        scales=_scales(args.scale),
        wide=read_questions(args.wide_map) if args.wide_map else args.wide,
        criteria=args.criterion,
        task=args.task,
        turns=turns,
        beside=known_file.criteria if known_file else (),
        repeatable=known_file.items if known_file else (),
        warnings=warnings,
    )
    scales = {name: one.grades for name, one in labels.items()}
    more = Faults()
    known = known_file.known(scales, more, only=_only(args)) if known_file else ()
    fails = args.max_fails, args.max_deviation
    settings = Settings(args.aggregator, _voting(args), *fails, args.min_labels, args.too_fast)
    found = study(labels, known, settings, wanted=args.criterion or None)
    if found.audit is not None:
        more += known_warnings(found.audit, str(args.known))
    texts = _texts(found.labels.values(), by_item, str(args.bank), more) if args.bank else None
    empty = _empty(found)
    warnings += [*more, *more.rest(), *empty]
    subset = read_turns(args.mi_turns) if args.mi_turns else None
    files = crowd_files(found, unit=args.unit, texts=texts, turns=subset, filter_min=args.filter_min)
    files |= _joint(args.with_judgments, found)
    inputs = [*args.labels, *args.with_judgments]
    inputs += [path for path in (args.known, args.wide_map, args.mi_turns) if path]
    inputs += [_pool_file(args.bank)] if args.bank else []
    used = {name: scales[name] for name in found.labels}
    write_crowd(args.out, files, inputs, _options(args, used))
    _warn(warnings)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(_summary(found, warnings)), indent=2).decode())
    else:
        print(terminal(found), end="")
        if args.with_judgments:
            print(f"with_judgments.tsv: {DIAGNOSTIC}")
        _say(f"written to {args.out}")
    return 1 if empty else 0


def _cast_regin(args: argparse.Namespace) -> int:
    """Hook of `judge crowd cast-regin DIR`: hand over to `crowd_regin`, which declares these options too."""
    if len(args.labels) != 2:
        raise UsageError(f"expected one folder after {CAST_REGIN}")
    idle = [
        name
        for name in ("scale", "criterion", "column", "wide", "wide_map", "bank", "known", "with_judgments")
        if getattr(args, name)
    ]
    if idle:
        raise UsageError(f"{', '.join(f'--{name}'.replace('_', '-') for name in idle)}: not about {CAST_REGIN}")
    names = ("out", "json", "mi_turns", "runs", "evaluate")
    own = {"folder": args.labels[1], **{name: getattr(args, name) for name in names}}
    return crowd_regin.main(argparse.Namespace(**own))


def _joint(paths: Sequence[Path], found: Study) -> dict[str, bytes]:
    """The table of workers and judges under one model, if judgments are given; it changes nothing else."""
    if not paths:
        return {}
    judges = [one for path in paths for one in read_labels(path)]
    diagnostics = []
    for criterion, labels in found.labels.items():
        about = [one for one in judges if one.prompt is None or one.prompt.partition("/")[0] == criterion]
        if about:
            diagnostics.append(joint_diagnostic(labels, about))
    if not diagnostics:
        raise UsageError(f"--with-judgments: no judgment is about {', '.join(found.labels)}")
    return {"with_judgments.tsv": diagnostic_tsv(diagnostics).encode()}


def _check_options(args: argparse.Namespace) -> None:
    if args.runs or args.evaluate:
        raise UsageError(f"--runs and --evaluate are about {CAST_REGIN}")
    if not args.scale:
        raise UsageError("--scale is needed: which labels there are, e.g. --scale 0-3")
    if args.aggregator not in VOTING and (args.majority or args.tie):
        raise UsageError(f"--majority and --tie are about {' and '.join(VOTING)}, not about {args.aggregator}")
    if args.aggregator not in SMOOTHED and args.smoothing is not None:
        raise UsageError(f"--smoothing is about {', '.join(SMOOTHED)}, not about {args.aggregator}")
    if (args.wide or args.wide_map) and args.task != TASK:
        raise UsageError("--task is about a column of tasks, which a survey read by --wide has not")
    if not args.known and (args.max_fails or args.max_deviation):
        raise UsageError("--max-fails and --max-deviation need --known")
    repeated = sorted({field for field, _ in args.column if [one for one, _ in args.column].count(field) > 1})
    if repeated:
        raise UsageError(f"--column gives {', '.join(repeated)} twice")


def _only(args: argparse.Namespace) -> str | None:
    """The criterion that is meant where none is named."""
    return args.criterion[0] if len(args.criterion) == 1 else None


def _voting(args: argparse.Namespace) -> AggregatorOptions:
    """What a majority and a tie are, and the smoothing, as said or as usual."""
    usual = AggregatorOptions()
    smoothing = usual.smoothing if args.smoothing is None else args.smoothing
    return AggregatorOptions(majority=args.majority or usual.majority, tie=args.tie or usual.tie, smoothing=smoothing)


def _empty(found: Study) -> list[Problem]:
    """A warning for each criterion of which no label is left: its qrels are empty."""
    message = "no label is left: all were of known items or of workers who were removed"
    return [
        Problem("no_label_left", "warning", name, None, "", message)
        for name, one in found.labels.items()
        if not len(one.item)
    ]


def _scales(given: Sequence[tuple[str | None, tuple[int, ...]]]) -> Scales:
    """The one scale of all criteria, or the scales by name."""
    named = {name: grades for name, grades in given if name is not None}
    if len(given) == 1 and not named:
        return given[0][1]
    if len(named) < len(given):
        raise UsageError("--scale: give one scale for all criteria, or one by name for each")
    return named


def _bank(path: Path) -> tuple[Mapping[str | Item, str], Mapping[str, str] | None]:
    """Texts by id or, from a pool, by turn and id; and from a pool the turn of each id."""
    file = _pool_file(path)
    if not (path.is_dir() or file.name.removesuffix(".gz").endswith(".jsonl")):
        by_id: dict[str | Item, str] = dict(read_bank(path).items())
        return by_id, None
    pool = read_pool(unpack(read_stored(file), str(file)), b"", str(file.parent))
    texts: dict[str | Item, str] = {Item(one.turn_id, one.response_id): one.text for one in pool.responses}
    return texts, {one.response_id: one.turn_id for one in pool.responses}


def _pool_file(path: Path) -> Path:
    return path / "pool.jsonl" if path.is_dir() else path


def _texts(
    labels: Iterable[CrowdLabels], by_item: Mapping[str | Item, str], bank: str, warnings: Faults
) -> dict[Item, str]:
    """The texts of the labeled items; items without one go to the warnings."""
    texts: dict[Item, str] = {}
    for item in dict.fromkeys(item for one in labels for item in one.items):
        text = by_item.get(item, by_item.get(item.item_id))
        if text is None:
            message = f"{item.item_id} has no text in the bank"
            warnings.append(Problem("not_in_bank", "warning", bank, item.turn_id, "", message))
        else:
            texts[item] = text
    return texts


def _options(args: argparse.Namespace, scales: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """All that decides the output beside the files, as JSON values."""
    names = (
        *("aggregator", "max_fails", "max_deviation", "min_labels", "too_fast", "filter_min"),
        *("unit", "criterion", "task", "wide"),
    )
    values = {name: getattr(args, name) for name in names}
    options = _voting(args)
    if args.aggregator in VOTING:
        values |= {"majority": options.majority, "tie": options.tie}
    if args.aggregator in SMOOTHED:
        values["smoothing"] = options.smoothing
    return {**values, "column": dict(args.column), "scales": {name: list(grades) for name, grades in scales.items()}}


def _summary(found: Study, warnings: Sequence[Problem]) -> dict[str, Any]:
    """What `--json` prints."""
    audit = found.audit
    removed = None
    if audit is not None:
        removed = {
            "known_items": audit.known,
            "removals": len(audit.removed),
            "labels_removed": sum(n for topics in audit.labels_removed.values() for n in topics.values()),
            "tolerated": audit.tolerated,
            "unchecked": audit.unchecked,
        }
    overall = {row.criterion: row.alpha for row in found.reliability if row.topic is None and row.of == "kept"}
    return {
        "aggregator": found.settings.aggregator,
        "criteria": {
            name: {
                "rule": one.rule,
                "items": len(one.n),
                "labels": int(one.n.sum()),
                "tied": int(one.tied.sum()),
                "unvoted": int(one.unvoted.sum()),
                "few_labels": len(found.few[name]),
                "without_grade": int((one.n == 0).sum()),
                "changed_by_filter": found.changed.get(name),
                "alpha": overall[name],
            }
            for name, one in found.aggregated.items()
        },
        "filter": removed,
        "flagged_workers": len({row.worker for row in found.workers if row.flags}),
        "warnings": list(warnings),
    }


def _warn(warnings: Sequence[Problem]) -> None:
    for problem in warnings[:_SHOWN]:
        where = " ".join(part for part in (problem.turn_id, problem.path) if part)
        _say(f"warning: {problem.file}: {problem.code}{f' at {where}' if where else ''}: {problem.message}")
    if len(warnings) > _SHOWN:
        _say(f"  … and {len(warnings) - _SHOWN} more warnings")


def _scale(text: str) -> tuple[str | None, tuple[int, ...]]:
    found = _SCALE.fullmatch(text)
    if not found or not 0 < int(found["high"]) - int(found["low"]) < MAX_GRADES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a scale such as 0-3 or relevance=0-3")
    return found["name"], tuple(range(int(found["low"]), int(found["high"]) + 1))


def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of zero or more")
    return int(text)


def _grade(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,3}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a grade")
    return int(text)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)
