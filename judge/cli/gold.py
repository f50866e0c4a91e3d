"""Gold grades: check them, import them, split and seal them, plan what to label next, write sheets for it."""

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import get_args

from judge.cli.gold_sheet import add_sheet_arguments, write_sheet
from judge.cli.labels import add_label_arguments
from judge.cli.options import (
    add_actions,
    add_cluster_option,
    amount_or_zero,
    by_name,
    pair,
    positive,
    seed,
)
from judge.cli.printing import SHOWN, print_json, print_listed, problem_lines, progress, say
from judge.gold.rows import GoldRow
from judge.harness.gold import (
    GOLD_SOURCES,
    GoldCheckPlan,
    GoldDrawPlan,
    GoldImportPlan,
    GoldSplitPlan,
    check_gold_files,
    draw_gold_plan,
    import_gold_files,
    split_gold_file,
)
from judge.harness.run_inputs import DEFAULT_CRITERIA
from judge.text.cells import count
from judge.text.ids import cluster_of

_MADE = get_args(GoldRow.__annotations__["made"])
_SCALE = re.compile(r"(-?[0-9]{1,3})-(-?[0-9]{1,3})", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = add_actions(parser, "check|import|split|plan|sheet")
    _check_arguments(actions.add_parser("check", help="list every problem of gold files"))
    _import_arguments(actions.add_parser("import", help="make a gold file from grades in other formats"))
    _split_arguments(actions.add_parser("split", help="split gold by topic or theme and put the test part under seal"))
    _plan_arguments(actions.add_parser("plan", help="draw what to label next, with known probabilities"))
    add_sheet_arguments(actions.add_parser("sheet", help="write sheets to label what was drawn elsewhere"))


def main(args: argparse.Namespace) -> int:
    """Check, import, split, plan or write sheets; 1 if a check finds an error."""
    match args.action:
        case "check":
            return _check(args)
        case "import":
            _import(args)
        case "split":
            _split(args)
        case "sheet":
            write_sheet(args)
        case _:
            _plan(args)
    return 0


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="gold file; several are one set of gold")
    parser.add_argument("--pool", type=Path, metavar="OUT|FILE", help="output folder or pool.jsonl of the responses")
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt whose scale its criterion has (default: the criterion's default prompt)",
    )
    parser.add_argument("--scale", type=_scale, metavar="LOW-HIGH", help="scale of criteria without --prompt, e.g. 0-3")
    parser.add_argument("--polarity", choices=("higher", "lower"), help="which end of --scale is good")
    parser.add_argument("--json", action="store_true", help="print all problems as one JSON list")
    parser.add_argument("--all", action="store_true", help=f"list more than {SHOWN} problems of one code and file")


def _check(args: argparse.Namespace) -> int:
    checked = check_gold_files(
        GoldCheckPlan(files=args.files, pool=args.pool, prompts=args.prompt, scale=args.scale, polarity=args.polarity)
    )
    if args.json:
        print_json(checked.problems)
    else:
        for line in problem_lines(checked.problems, None if args.all else SHOWN):
            print_listed(line)
    errors = sum(problem.severity == "error" for problem in checked.problems)
    say(
        f"{count(len(args.files), 'file')}, {count(len(checked.rows), 'valid row')}: "
        f"{count(errors, 'error')}, {count(len(checked.problems) - errors, 'warning')}"
    )
    if checked.unmatched is None:
        say("not checked without --pool: not_in_pool, different_grades")
    elif checked.unmatched:
        say(f"of {count(len(checked.rows), 'row')}, {checked.unmatched} without a response of the pool")
    return 1 if errors else 0


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", choices=GOLD_SOURCES, help=", ".join(GOLD_SOURCES))
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="file, or for cast-regin the folder")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="gold file to write")
    parser.add_argument("--pool-out", type=Path, metavar="DIR", help="also write pool.jsonl and passages.jsonl there")
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--bank", type=Path, metavar="FILE", help="JSON object from response id to text")
    texts.add_argument("--pool", type=Path, metavar="OUT|FILE", help="output folder or pool.jsonl with these responses")
    parser.add_argument("--criterion", metavar="NAME", help="criterion that was graded, where the file does not say")
    parser.add_argument("--assessor", metavar="NAME", help="who graded, where the file does not say")
    parser.add_argument("--made", choices=_MADE, help="how the grades came about (default blind)")
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument("--inclusion", type=float, metavar="P", help="probability with which each response was drawn")
    drawn.add_argument("--plan", type=Path, metavar="FILE", help="plan that the responses were drawn by")
    for option, metavar, meaning in (
        ("--column", "FIELD=COLUMN", "which column of a table holds a field"),
        ("--constant", "FIELD=VALUE", "a field's value, where the file does not say"),
    ):
        parser.add_argument(option, action="append", default=[], type=pair, metavar=metavar, help=meaning)
    parser.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="prompt by whose levels was labeled; other grades are refused (default: the criterion's default prompt "
        "names its levels)",
    )
    add_label_arguments(parser, "crowd: ")
    parser.add_argument(
        "--generic-as-zero", action="store_true", help="begin: grade generic responses 0 (default: leave them out)"
    )


def _import(args: argparse.Namespace) -> None:
    with progress("reading grades"):
        imported = import_gold_files(
            GoldImportPlan(
                source=args.source,
                files=args.files,
                out=args.out,
                pool_out=args.pool_out,
                bank=args.bank,
                pool=args.pool,
                criterion=args.criterion,
                assessor=args.assessor,
                made=args.made,
                inclusion=args.inclusion,
                plan=args.plan,
                columns=by_name("--column", args.column),
                constants=args.constant,
                generic_as_zero=args.generic_as_zero,
                words=by_name("--label", args.label),
                prompts=args.prompt,
                table=args.table,
                task=args.task,
                wide=args.wide,
                wide_map=args.wide_map,
            )
        )
    if imported.pool is not None:
        say(f"{args.pool_out}: {count(len(imported.pool.responses), 'response')} to judge")
    for note in imported.notes:
        say(note)
    counts = Counter(row.criterion for row in imported.rows)
    criteria = ", ".join(f"{n} of {name}" for name, n in sorted(counts.items()))
    say(f"{args.out}: {count(len(imported.rows), 'grade')}: {criteria}")


def _split_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="gold file")
    parser.add_argument(
        "--test", type=amount_or_zero, required=True, metavar="SHARE", help="share of the test part, e.g. 0.5"
    )
    parser.add_argument("--seed", type=seed, required=True, metavar="S", help="seed of the split")
    add_cluster_option(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="folder to write")


def _split(args: argparse.Namespace) -> None:
    plan = GoldSplitPlan(file=args.file, share=args.test, seed=args.seed, out=args.out, cluster=args.cluster)
    seal = split_gold_file(plan)
    for name, part in (("dev", seal.dev), ("test", seal.test)):
        counts = [(len(part.items), "response"), (part.rows, "grade"), (len(part.topics), "topic")]
        if seal.cluster == "theme":
            counts.append((len({cluster_of(topic_id, seal.cluster) for topic_id in part.topics}), "theme"))
        say(f"{name}: {', '.join(count(*counted) for counted in counts)}")
    say(f"publish {args.out / 'dev.jsonl'} and {args.out / 'seal.json'}, which holds no test grade")
    say(
        f"keep {args.out / 'test.jsonl'} and {args.out / 'test.salt'} to yourself, and {args.file} too: the salt "
        "lets anyone test guesses of the grades, and without it the seal can never be opened"
    )


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder or its pool.jsonl")
    parser.add_argument("--n", type=positive, required=True, metavar="N", help="about how many responses to label")
    parser.add_argument("--seed", type=seed, required=True, metavar="S", help="seed of the draw")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="plan to write (JSONL)")
    parser.add_argument(
        "--judgments",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="judgments.jsonl: turns on which the judges are unsure are drawn more often",
    )
    parser.add_argument(
        "--per-run", type=positive, default=10, metavar="K", help="responses that each run gets at least (default 10)"
    )
    parser.add_argument(
        "--criteria",
        nargs="+",
        metavar="CRITERION",
        help=f"criteria to label (default: those of the judgments, else {' '.join(DEFAULT_CRITERIA)})",
    )
    parser.add_argument(
        "--gold",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="existing grades: their responses are not drawn again, and count as certain part of the sample",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object")


def _plan(args: argparse.Namespace) -> None:
    plan = draw_gold_plan(
        GoldDrawPlan(
            pool=args.pool,
            n=args.n,
            seed=args.seed,
            out=args.out,
            judgments=args.judgments,
            per_run=args.per_run,
            criteria=args.criteria or (),
            gold=args.gold,
        )
    )
    if args.json:
        print_json(
            {
                "file": str(args.out),
                "responses": {"drawn": len(plan.rows), "of": plan.frame, "graded": plan.graded},
                "turns": {"drawn": plan.turns, "of": plan.frame_turns},
                "uncertainty": plan.uncertainty,
            }
        )
    say(
        f"{args.out}: {len(plan.rows)} of {count(plan.frame, 'response')}, "
        f"{plan.turns} of {count(plan.frame_turns, 'turn')}"
    )
    if args.judgments and plan.uncertainty == "none":
        say(
            "the judgments do not distinguish the turns (no label probabilities, no two judges): all are equally likely"
        )
    if plan.graded:
        have = "has" if plan.graded == 1 else "have"
        graded = f"{count(plan.graded, 'response')} {have} grades already"
        say(f"{graded}; together with this plan the inclusion probability of each is 1")


def _scale(text: str) -> tuple[int, int]:
    bounds = _SCALE.fullmatch(text)
    if not bounds or int(bounds[1]) >= int(bounds[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a scale such as 0-3")
    return int(bounds[1]), int(bounds[2])
