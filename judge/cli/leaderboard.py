"""The leaderboard of a folder that `judge run` wrote; with --gold, the same corrected by grades that people gave.

Gold of a random part of the responses is enough: the judge's grades carry it to the others. How that part was drawn
has to be known: `judge gold plan` says it, `judge gold import --inclusion P` declares it.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import numpy as np

from judge.cli.tables import print_leaderboard
from judge.corrected import Change, cautions, change, corrected
from judge.criteria import find_criterion
from judge.errors import InputError, UsageError
from judge.files import make_folder, read_stored, write_atomic
from judge.findings import CorrectedRow
from judge.gold import match, read_gold
from judge.labels import read_failures, read_judgments
from judge.leaderboard import leaderboard
from judge.manifest import read_manifest
from judge.outputs import UNCALIBRATED, read_previous_pool
from judge.records import Criterion, Failure, GoldRow, Judgment, Pool
from judge.report.cells import fold
from judge.report.corrected import (
    WIDTH,
    change_text,
    corrected_lines,
    corrected_markdown,
    corrected_tsv,
    flag_lines,
    reading,
)
from judge.runs import rules_of
from judge.text import printable
from judge.topics import read_topics
from judge.trial import read_families

SEED = 2023
_Results = tuple[Judgment | Failure, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="OUT", help="output folder of `judge run`")
    parser.add_argument("--gold", type=Path, nargs="+", metavar="FILE", help="gold grades (JSONL)")
    parser.add_argument(
        "--criterion",
        metavar="NAME|PATH",
        help="only this criterion; a prompt file of your own if the judgments are under one",
    )
    parser.add_argument(
        "--target",
        choices=("pool", "topics"),
        default="pool",
        help="corrected means of these responses (default), or of the runs on topics like these",
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="topics file: every turn that had to be answered")
    parser.add_argument(
        "--families", type=Path, metavar="TSV", help="run or judge, tab, family of models behind it: flags SELF"
    )
    parser.add_argument(
        "--fallback", choices=("family",), help="correct runs with fewer than 3 gold grades by their family's error"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, metavar="N", help=f"of the rank intervals' resampling (default {SEED})"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="write the corrected leaderboard: a folder for all of it, or a file named .tsv or .md",
    )
    parser.add_argument("--json", action="store_true", help="print the rows, as JSON")


def main(args: argparse.Namespace) -> int:
    """Read, correct if there is gold, write, print."""
    if args.gold is None and (args.out or args.fallback or args.target != "pool"):
        raise UsageError("--out, --fallback and --target are about a correction, which needs --gold")
    if args.fallback and not args.families:
        raise UsageError("--fallback family needs --families, which says what family a run is of")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: expected a number of 0 or more")
    pool, results = _read(args.folder)
    criteria = _criteria(results, args.criterion, args.folder)
    expected = _expected(args.folder, pool, args.topics)
    if args.gold is None:
        rows = leaderboard(pool, results, criteria, expected=expected)
        if args.json:
            _print_json(rows)
        else:
            print_leaderboard(rows, criteria, _banner(args.folder))
        return 0
    criteria, found, warnings = _correct(args, pool, results, criteria, expected)
    changes = {
        one.name: change(
            [row for row in found if row.criterion == one.name], higher_is_better=one.scale.polarity == "higher"
        )
        for one in criteria
    }
    if args.out:
        markdown = corrected_markdown(found, criteria, changes, target=args.target, cautions=warnings)
        _write(args.out, found, markdown)
    if args.json:
        _print_json(found)
    else:
        _print(found, criteria, changes, warnings)
    return 0


def _read(folder: Path) -> tuple[Pool, _Results]:
    judgments, failures = folder / "judgments.jsonl", folder / "failures.jsonl"
    if not judgments.exists():
        raise InputError(f"{folder}: no judgments.jsonl there: expected an output folder of `judge run`")
    pool = read_previous_pool(folder)
    results = read_judgments(read_stored(judgments), str(judgments))
    seen = Counter((one.criterion, one.variant, one.response_id) for one in results)
    if twice := [key for key, count in seen.items() if count > 1]:
        criterion, variant, response_id = twice[0]
        raise InputError(f"{judgments}: two judgments of {response_id} under {criterion}/{variant}: expected one")
    return pool, (*results, *(read_failures(read_stored(failures), str(failures)) if failures.exists() else ()))


def _criteria(results: _Results, wanted: str | None, folder: Path) -> tuple[Criterion, ...]:
    """The prompts behind the results, or the wanted one; a warning where a file has changed since."""
    digests: dict[str, set[str]] = {}
    for one in results:
        digests.setdefault(f"{one.criterion}/{one.variant}", set()).add(one.criterion_digest)
    names = {prompt.partition("/")[0] for prompt in digests}
    if not digests:
        raise InputError(f"{folder}: nothing was judged there")
    if wanted is None or wanted in names:
        prompts = [prompt for prompt in sorted(digests) if wanted in (None, prompt.partition("/")[0])]
        try:
            criteria = tuple(find_criterion(prompt) for prompt in prompts)
        except UsageError as error:
            raise UsageError(f"{folder}: {error}; give the prompt of your own with --criterion PATH") from error
    else:
        criteria = (find_criterion(wanted),)
    for criterion in criteria:
        if criterion.prompt_id not in digests:
            raise UsageError(f"{folder}: no judgment under {criterion.prompt_id}, only {', '.join(sorted(digests))}")
        if digests[criterion.prompt_id] != {criterion.digest}:
            _say(f"{folder}: {criterion.file} has changed since these judgments were made")
    return criteria


def _expected(folder: Path, pool: Pool, topics: Path | None) -> dict[str, Collection[str]]:
    """The turns that each run had to answer, as in `judge run`; a response bank's, its own."""
    every = {turn.turn_id for topic in read_topics(topics) for turn in topic.turns} if topics else set()
    every = every or {response.turn_id for response in pool.responses}
    manifest = read_manifest(folder)
    runs = manifest.get("runs") if manifest else None
    known = [one for one in runs if isinstance(one, dict)] if isinstance(runs, list) else []
    found: dict[str, Collection[str]] = {entry.run_id: every for one in pool.responses for entry in one.runs}
    found |= {one["run_id"]: () for one in known if not rules_of(one["format"]).all_turns}
    return found


def _banner(folder: Path) -> str:
    """What `judge run` said of its judge."""
    manifest = read_manifest(folder)
    said = manifest.get("certificate") if manifest else None
    return str(said["banner"]) if isinstance(said, dict) and "banner" in said else UNCALIBRATED


def _correct(
    args: argparse.Namespace,
    pool: Pool,
    results: _Results,
    criteria: Sequence[Criterion],
    expected: dict[str, Collection[str]],
) -> tuple[tuple[Criterion, ...], tuple[CorrectedRow, ...], tuple[str, ...]]:
    """The criteria that there is gold for, their rows, and what to know before reading them."""
    families = read_families(args.families) if args.families else {}
    name = ", ".join(map(str, args.gold))
    gold: list[GoldRow] = [row for path in args.gold for row in read_gold(path)]
    matched, unmatched = match(gold, pool, name)
    with_gold = tuple(one for one in criteria if any(what == one.name for _, what in matched))
    if not with_gold:
        raise UsageError(f"{name}: no grade of a pooled response under {', '.join(one.name for one in criteria)}")
    warnings = [f"{len(unmatched)} of {len(gold)} gold grades are of responses not in the pool"] if unmatched else []
    without = [one.name for one in criteria if one not in with_gold]
    warnings += [f"no gold under {', '.join(without)}, so nothing is said of it here"] if without else []
    rows: list[CorrectedRow] = []
    for criterion in with_gold:
        judges = {one.judge for one in results if (one.criterion, one.variant) == (criterion.name, criterion.variant)}
        warnings += [f"{criterion.name}: {text}" for text in cautions(pool, results, criterion, matched)]
        rows += corrected(
            pool,
            results,
            criterion,
            matched,
            target=args.target,
            families=families,
            judge_family=next((families[judge] for judge in sorted(judges) if judge in families), None),
            fallback=args.fallback,
            expected=expected,
            rng=np.random.default_rng(args.seed),
            name=name,
        )
    return with_gold, tuple(rows), tuple(warnings)


def _write(out: Path, rows: Sequence[CorrectedRow], markdown: str) -> None:
    if out.suffix in {".tsv", ".md"} and not out.is_dir():
        make_folder(out.parent)
        write_atomic(out, (corrected_tsv(rows) if out.suffix == ".tsv" else markdown).encode())
        return
    from judge.report.plots import raw_vs_corrected

    make_folder(out)
    svg, png = raw_vs_corrected(rows)
    write_atomic(out / "corrected.tsv", corrected_tsv(rows).encode())
    write_atomic(out / "corrected.md", markdown.encode())
    write_atomic(out / "corrected.svg", svg)
    write_atomic(out / "corrected.png", png)


def _print(
    rows: Sequence[CorrectedRow], criteria: Sequence[Criterion], changes: dict[str, Change], warnings: Sequence[str]
) -> None:
    for warning in warnings:
        print("\n".join(fold(f"! {printable(warning)}", WIDTH)))
    for criterion in criteria:
        its = [row for row in rows if row.criterion == criterion.name]
        print("\n".join(["", *fold(printable(reading(criterion)), WIDTH), *corrected_lines(its)]))
        print("\n".join(fold(change_text(changes[criterion.name]), WIDTH)))
    _say("\n".join(["", *(line for text in flag_lines(rows) for line in fold(text, WIDTH))]))


def _print_json(rows: Sequence[object]) -> None:
    print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())


def _say(text: str) -> None:
    print(printable(text) if "\n" not in text else text, file=sys.stderr)
