"""Gold grades: list what is wrong with them, import them, split and seal them, plan what to label next."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from judge.ask.criteria import default_prompts, find_criterion
from judge.ask.labels import read_judgments
from judge.cli.options import amount_or_zero, pair, positive
from judge.cli.tables import SHOWN, problem_lines
from judge.errors import InputError, UsageError
from judge.files.folder import make_folder, write_atomic
from judge.files.stored import read_stored, unpack
from judge.gold import (
    SOURCES,
    Options,
    check_gold,
    gold_jsonl,
    import_gold,
    make_plan,
    plain_scale,
    plan_jsonl,
    read_bank,
    read_gold,
    read_plan,
    typed,
    write_split,
)
from judge.harness.run import DEFAULT_CRITERIA
from judge.pool.bank import passages_jsonl, pool_jsonl, read_pool
from judge.records import GoldRow, Pool, Scale
from judge.text.safe import printable

_MADE = get_args(GoldRow.__annotations__["made"])
_SCALE = re.compile(r"(-?[0-9]{1,3})-(-?[0-9]{1,3})", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="check|import|split|plan")
    _check_arguments(actions.add_parser("check", help="list everything that is wrong with gold files"))
    _import_arguments(actions.add_parser("import", help="make a gold file of grades in other formats"))
    _split_arguments(actions.add_parser("split", help="split gold by topic and put the test part under seal"))
    _plan_arguments(actions.add_parser("plan", help="draw what to label next, with known probabilities"))


def main(args: argparse.Namespace) -> int:
    """Check, import, split or plan; 1 if a check finds an error."""
    match args.action:
        case "check":
            return _check(args)
        case "import":
            _import(args)
        case "split":
            _split(args)
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
    if (args.scale is None) != (args.polarity is None):
        raise UsageError("--scale and --polarity go together: a scale without its good end says nothing")
    other = plain_scale(*args.scale, higher_is_better=args.polarity == "higher") if args.scale else None
    scales = _scales(args.prompt, () if other else tuple(default_prompts()))
    contents = [(str(path), _content(path)) for path in args.files]
    checked = check_gold(contents, scales, _pool(args.pool) if args.pool else None, other=other)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(checked.problems), indent=2).decode())
    else:
        for line in problem_lines(checked.problems, None if args.all else SHOWN):
            print(printable(line))
    errors = sum(problem.severity == "error" for problem in checked.problems)
    _say(
        f"{len(args.files)} files, {len(checked.rows)} sound rows: "
        f"{errors} errors, {len(checked.problems) - errors} warnings"
    )
    if checked.unmatched is None:
        _say("not checked without --pool: not_in_pool, different_grades")
    elif checked.unmatched:
        _say(f"{checked.unmatched} of {len(checked.rows)} rows match no response of the pool")
    return 1 if errors else 0


def _scales(prompts: Sequence[str], defaults: Sequence[str]) -> dict[str, Scale]:
    """Criterion to scale: of the prompts given, then of the default prompts."""
    scales: dict[str, Scale] = {}
    for criterion in map(find_criterion, prompts):
        if scales.setdefault(criterion.name, criterion.scale) != criterion.scale:
            raise UsageError(f"--prompt gives {criterion.name} two scales")
    return {name: find_criterion(name).scale for name in defaults if name not in scales} | scales


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", choices=sorted(SOURCES), help=", ".join(sorted(SOURCES)))
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="file, or for cast-regin the folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="gold file to write")
    parser.add_argument("--pool-out", type=Path, metavar="DIR", help="also write pool.jsonl and passages.jsonl there")
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--bank", type=Path, metavar="FILE", help="JSON object from response id to text")
    texts.add_argument("--pool", type=Path, metavar="OUT|FILE", help="output folder or pool.jsonl with these responses")
    parser.add_argument("--criterion", metavar="NAME", help="what was graded, where the file does not say")
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
        "--generic-as-zero", action="store_true", help="begin: generic responses as grade 0, not left out"
    )


def _import(args: argparse.Namespace) -> None:
    if args.out in args.files:
        raise UsageError(f"{args.out}: would be written over what it is made of")
    plan = read_plan(_content(args.plan), str(args.plan)) if args.plan else None
    options = Options(
        constants=_constants(args),
        columns=dict(args.column),
        bank=read_bank(args.bank) if args.bank else None,
        pool=_pool(args.pool) if args.pool else None,
        plan={(row.turn_id, row.response_id): row for row in plan} if plan is not None else None,
        generic_as_zero=args.generic_as_zero,
    )
    imported = import_gold(args.source, args.files, options, with_pool=args.pool_out is not None)
    if imported.pool is not None:
        contents = {"pool.jsonl": pool_jsonl(imported.pool), "passages.jsonl": passages_jsonl(imported.pool)}
        for name, content in contents.items():
            _refuse_other(args.pool_out / name, content, "holds another pool: choose another --pool-out")
        make_folder(args.pool_out)
        for name, content in contents.items():
            write_atomic(args.pool_out / name, content)
        _say(f"{args.pool_out}: {len(imported.pool.responses)} responses to judge")
    write_atomic(args.out, gold_jsonl(imported.rows))
    for note in imported.notes:
        _say(note)
    counts = Counter(row.criterion for row in imported.rows)
    _say(
        f"{args.out}: {len(imported.rows)} grades: {', '.join(f'{n} of {name}' for name, n in sorted(counts.items()))}"
    )


def _constants(args: argparse.Namespace) -> dict[str, Any]:
    """Fields that the user gives: by options of their own, then by --constant."""
    named = {"criterion": args.criterion, "assessor": args.assessor, "made": args.made}
    constants: dict[str, Any] = {field: value for field, value in named.items() if value is not None}
    if args.inclusion is not None:
        constants["inclusion_probability"] = args.inclusion
    fields = Counter([*constants, *(field for field, _ in args.constant)])
    repeated = sorted(field for field, times in fields.items() if times > 1)
    if repeated:
        raise UsageError(f"given twice: {', '.join(repeated)}")
    return constants | typed(dict(args.constant))


def _split_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="gold file")
    parser.add_argument(
        "--test", type=amount_or_zero, required=True, metavar="SHARE", help="share of the test part, e.g. 0.5"
    )
    parser.add_argument("--seed", type=_seed, required=True, metavar="S", help="seed of the split")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")


def _split(args: argparse.Namespace) -> None:
    seal = write_split(read_gold(args.file), args.test, args.seed, args.out)
    for name, part in (("dev", seal.dev), ("test", seal.test)):
        _say(f"{name}: {len(part.items)} responses, {part.rows} grades, {len(part.topics)} topics")
    _say(f"publish {args.out / 'dev.jsonl'} and {args.out / 'seal.json'}, which has no test grade")
    _say(
        f"keep {args.out / 'test.jsonl'} and {args.out / 'test.salt'} to yourself, and {args.file} too: who has the "
        "salt can try out guesses, and without it the seal can never be opened"
    )


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", type=Path, required=True, metavar="OUT|FILE", help="output folder or its pool.jsonl")
    parser.add_argument("--n", type=positive, required=True, metavar="N", help="responses to label, about")
    parser.add_argument("--seed", type=_seed, required=True, metavar="S", help="seed of the draw")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="plan to write (JSONL)")
    parser.add_argument(
        "--judgments",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="judgments.jsonl: unsure turns are likelier",
    )
    parser.add_argument(
        "--per-run", type=positive, default=10, metavar="K", help="responses that each run gets at least (default 10)"
    )
    parser.add_argument(
        "--criteria",
        nargs="+",
        metavar="CRITERION",
        help=f"what to label for (default: what was judged, else {' '.join(DEFAULT_CRITERIA)})",
    )
    parser.add_argument(
        "--gold",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="grades there are: their responses are not drawn again; as part of the sample they are certain",
    )


def _plan(args: argparse.Namespace) -> None:
    judgments = [one for path in args.judgments for one in read_judgments(_content(path), str(path))]
    plan = make_plan(
        _pool(args.pool),
        args.n,
        args.seed,
        criteria=args.criteria or sorted({one.criterion for one in judgments}) or DEFAULT_CRITERIA,
        judgments=judgments,
        gold=[row for path in args.gold for row in read_gold(path)],
        per_run=args.per_run,
    )
    content = plan_jsonl(plan)
    _refuse_other(args.out, content, "holds another plan, which may be in use: choose another --out")
    write_atomic(args.out, content)
    _say(f"{args.out}: {len(plan.rows)} of {plan.frame} responses, {plan.turns} of {plan.frame_turns} turns")
    if args.judgments and plan.uncertainty == "none":
        _say("the judgments tell no turn from another (no label probabilities, no two judges): all are equally likely")
    if plan.graded:
        _say(f"{plan.graded} responses have grades already; beside this plan their inclusion probability is 1")


def _pool(path: Path) -> Pool:
    """The pool of an output folder, or in a pool.jsonl; its passages are not needed."""
    path = path / "pool.jsonl" if path.is_dir() else path
    return read_pool(_content(path), b"", str(path.parent))


def _content(path: Path) -> bytes:
    return unpack(read_stored(path), str(path))


def _refuse_other(path: Path, content: bytes, message: str) -> None:
    """A file that is there already must be the one that would be written."""
    if path.exists() and read_stored(path) != content:
        raise InputError(f"{path}: {message}")


def _scale(text: str) -> tuple[int, int]:
    found = _SCALE.fullmatch(text)
    if not found or int(found[1]) >= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a scale such as 0-3")
    return int(found[1]), int(found[2])


def _seed(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed: expected an integer of zero or more")
    return int(text)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)
