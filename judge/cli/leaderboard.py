"""The leaderboard of a folder that `judge run` wrote; with --gold, the same corrected by grades that people gave.

With --over-limit exclude or --token-sensitivity: as it would be without the responses over the token limit.

Gold of a random part of the responses is enough: the judge's grades carry it to the others. How that part was drawn
has to be known: `judge gold plan` says it, `judge gold import --inclusion P` declares it. Sealed grades are opened with
--test, which puts the look at them on record.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from judge.ask.criteria import find_criterion
from judge.ask.labels import is_jury, read_failures, read_judgments
from judge.cli.sensitivity import add_token_arguments, asks_for_tokens, show
from judge.cli.tables import print_leaderboard
from judge.errors import InputError, UsageError
from judge.files.folder import make_folder, write_atomic
from judge.files.stored import read_stored, sha256
from judge.gold import match, open_sealed, read_gold, read_seal, sealed_beside
from judge.harness.folder import UNCALIBRATED, read_previous_pool
from judge.harness.manifest import read_manifest
from judge.harness.mixed import as_asked, mixed_banner
from judge.models.families import read_families
from judge.records import Criterion, Failure, GoldRow, Judgment, Pool
from judge.results.corrected import cautions, change, corrected
from judge.results.corrected_tables import (
    WIDTH,
    change_text,
    corrected_lines,
    corrected_markdown,
    corrected_tsv,
    flag_lines,
    reading,
)
from judge.results.leaderboard import had_to_answer, leaderboard
from judge.results.rows import Change, CorrectedRow
from judge.text.cells import fold
from judge.text.safe import printable

SEED = 2023
SCHEMA = 1
"""Version of what --gold --json prints."""
_Results = tuple[Judgment | Failure, ...]


class _Folder(msgspec.Struct, frozen=True):
    """What `judge run` wrote."""

    path: Path
    pool: Pool
    results: _Results
    expected: dict[str, Collection[str]]
    manifest: dict[str, Any]


class _Found(msgspec.Struct, frozen=True):
    """The criteria that there is gold for, their rows, and what to know before reading them."""

    criteria: tuple[Criterion, ...]
    rows: tuple[CorrectedRow, ...]
    cautions: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, metavar="OUT", help="output folder of `judge run`")
    parser.add_argument("--gold", type=Path, nargs="+", metavar="FILE", help="gold grades (JSONL)")
    parser.add_argument(
        "--test",
        type=Path,
        metavar="FILE",
        help="sealed test grades of `judge gold split`, as gold beside --gold; each look is logged",
    )
    parser.add_argument("--seal", type=Path, metavar="FILE", help="their seal (default: seal.json beside --test)")
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
        help="write the corrected leaderboard: a folder for all of it, or a file named .tsv or .md; or, to a file, "
        "that under a token rule",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the rows, with --gold also what to know of them, as JSON"
    )
    add_token_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Read, correct if there is gold, write, print."""
    with_gold = args.gold is not None or args.test is not None
    about_tokens = asks_for_tokens(args, with_gold=with_gold)
    if not with_gold and ((args.out and not about_tokens) or args.fallback or args.target != "pool"):
        raise UsageError("--out, --fallback and --target are about a correction, which needs --gold")
    if args.seal and not args.test:
        raise UsageError("--seal is that of the sealed grades in --test")
    if args.fallback and not args.families:
        raise UsageError("--fallback family needs --families, which says what family a run is of")
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: expected a number of 0 or more")
    pool, results = _read(args.folder)
    manifest = read_manifest(args.folder) or {}
    origins = _mixed(manifest)
    criteria = _criteria(results, _current(results, manifest), args.criterion, args.folder)
    if origins:
        if with_gold:
            raise UsageError(f"{args.folder}: {mixed_banner(origins)} Gold corrects the grades of one judge and prompt")
        results = tuple(as_asked(results, criteria))
        if args.json or args.out:
            _say(f"Warning: {mixed_banner(origins)}")
    folder = _Folder(args.folder, pool, results, had_to_answer(pool), manifest)
    if about_tokens:
        mixed = {one["criterion"] for one in origins}
        show(args, pool, results, criteria, folder.expected, manifest, _banner(manifest), mixed)
        return 0
    if not with_gold:
        rows = leaderboard(pool, results, criteria, expected=folder.expected)
        if args.json:
            _print_json(rows)
        else:
            print_leaderboard(rows, criteria, _banner(manifest))
        return 0
    if args.out:
        make_folder(args.out.parent if _is_file(args.out) else args.out)
    gold = _gold(args.gold or ())
    digest = sha256(b"\n".join(sorted(sha256(read_stored(path)).encode() for path in args.gold or ())))
    opened = _opened(args, folder, criteria, gold, digest) if args.test else ((), ())
    found = _correct(args, folder, criteria, (*gold, *opened[0]), opened[1])
    changes = {
        one.name: change(
            [row for row in found.rows if row.criterion == one.name], higher_is_better=one.scale.polarity == "higher"
        )
        for one in found.criteria
    }
    if args.out:
        markdown = corrected_markdown(found.rows, found.criteria, changes, target=args.target, cautions=found.cautions)
        _write(args.out, found.rows, markdown)
    # On a terminal they stand above the table.
    if args.json or not (sys.stdout.isatty() and sys.stderr.isatty()):
        for caution in found.cautions:
            _say(f"Warning: {caution}")
    if args.json:
        shown = {"schema": SCHEMA, "target": args.target, "seed": args.seed, "gold": digest}
        # The salted one: with a plain digest of sealed grades guesses could be tried.
        sealed = {"seal": read_seal(_seal(args)).commitment} if args.test else {}
        _print_json({**shown, **sealed, "cautions": found.cautions, "rows": found.rows})
    else:
        _print(found, changes)
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


def _mixed(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How judgments were made that the folder carries over from another configuration."""
    origins: list[dict[str, Any]] = manifest.get("configuration", {}).get("mixed", [])
    return origins


def _current(results: _Results, manifest: Mapping[str, Any]) -> dict[str, set[str]]:
    """Digests by prompt: of the results, where some are carried over those that the folder was asked under."""
    digests: dict[str, set[str]] = {}
    if _mixed(manifest):
        for one in manifest["configuration"]["criteria"].values():
            digests[one["prompt"]] = {one["sha256"]}
        return digests
    for result in results:
        digests.setdefault(f"{result.criterion}/{result.variant}", set()).add(result.criterion_digest)
    return digests


def _criteria(
    results: _Results, digests: Mapping[str, set[str]], wanted: str | None, folder: Path
) -> tuple[Criterion, ...]:
    """The prompts behind the results, or the wanted one; a warning where a file has changed since."""
    juries = all(is_jury(one.judge) for one in results)
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
        if digests[criterion.prompt_id] != {criterion.digest} and not juries:
            _say(f"{folder}: {criterion.file} has changed since these judgments were made")
    return criteria


def _banner(manifest: Mapping[str, Any]) -> str:
    """What `judge run` said of its judge."""
    if origins := _mixed(manifest):
        return f"{mixed_banner(origins)} {UNCALIBRATED}"
    said = manifest.get("certificate")
    return str(said["banner"]) if isinstance(said, dict) and "banner" in said else UNCALIBRATED


def _gold(paths: Sequence[Path]) -> tuple[GoldRow, ...]:
    """The rows of gold files; sealed grades are refused."""
    gold: list[GoldRow] = []
    for path in paths:
        rows = read_gold(path)
        if sealed_beside(path, rows):
            raise UsageError(f"{path}: sealed test grades: they are opened with --test, which puts it on record")
        gold += rows
    return tuple(gold)


def _seal(args: argparse.Namespace) -> Path:
    seal: Path = args.seal or args.test.with_name("seal.json")
    return seal


def _opened(
    args: argparse.Namespace, folder: _Folder, criteria: Sequence[Criterion], gold: tuple[GoldRow, ...], digest: str
) -> tuple[tuple[GoldRow, ...], tuple[str, ...]]:
    """The sealed grades, and a warning where they had been looked at before."""
    question = {
        "gold": digest,
        "target": args.target,
        "fallback": args.fallback,
        "criteria": [(one.prompt_id, one.digest) for one in criteria],
        "judgments": sha256(read_stored(folder.path / "judgments.jsonl")),
    }

    def check(rows: tuple[GoldRow, ...]) -> None:
        try:
            _correct(args, folder, criteria, (*gold, *rows))
        except InputError as error:
            if not error.problems:
                raise
            codes = ", ".join(sorted({problem.code for problem in error.problems}))
            raise InputError(
                f"{args.test}: {len(error.problems)} faults of the gold, the sealed grades included ({codes}); the "
                "seal was not opened"
            ) from None

    rows, opening = open_sealed(
        args.test,
        _seal(args),
        sha256(msgspec.json.encode(question, order="sorted")),
        datetime.now(UTC).isoformat(timespec="seconds"),
        check=check,
    )
    if opening.number < 2:
        return rows, ()
    return rows, (
        f"the sealed test grades have been opened for {opening.number} different questions; what is reported on them "
        "is no longer held out",
    )


def _correct(
    args: argparse.Namespace,
    folder: _Folder,
    criteria: Sequence[Criterion],
    gold: Sequence[GoldRow],
    warnings: Sequence[str] = (),
) -> _Found:
    families = read_families(args.families) if args.families else {}
    name = ", ".join(str(path) for path in (*(args.gold or ()), args.test) if path)
    matched, unmatched = match(gold, folder.pool, name)
    with_gold = tuple(one for one in criteria if any(what == one.name for _, what in matched))
    if not with_gold:
        raise UsageError(f"{name}: no grade of a pooled response under {', '.join(one.name for one in criteria)}")
    said = list(warnings)
    if unmatched:
        said.append(f"{len(unmatched)} of {len(gold)} gold grades are of responses not in the pool")
    if without := [one.name for one in criteria if one not in with_gold]:
        said.append(f"no gold under {', '.join(without)}, so nothing is said of it here")
    rows: list[CorrectedRow] = []
    for criterion in with_gold:
        judges = _judges(folder, criterion)
        if families and judges and all(map(is_jury, judges)):
            said.append(f"{criterion.name}: no manifest says who the jury's members are, so no run is flagged SELF")
        said += [f"{criterion.name}: {text}" for text in cautions(folder.pool, folder.results, criterion, matched)]
        rows += corrected(
            folder.pool,
            folder.results,
            criterion,
            matched,
            target=args.target,
            families=families,
            judge_families={families[judge] for judge in judges if judge in families},
            fallback=args.fallback,
            expected=folder.expected,
            rng=np.random.default_rng(args.seed),
            name=name,
        )
    return _Found(with_gold, tuple(rows), tuple(said))


def _judges(folder: _Folder, criterion: Criterion) -> set[str]:
    """Who gave the grades: the judge, and the members of a jury as the manifest has them."""
    found = {one.judge for one in folder.results if (one.criterion, one.variant) == (criterion.name, criterion.variant)}
    if any(map(is_jury, found)):
        jury = folder.manifest.get("configuration", {}).get("jury")
        members = jury.get("members", {}).get(criterion.name, ()) if isinstance(jury, dict) else ()
        if not all(isinstance(one, dict) and isinstance(one.get("judge"), str) for one in members):
            raise InputError("manifest.json: the jury's members are not as `judge run` writes them")
        found |= {one["judge"] for one in members}
    return found


def _is_file(out: Path) -> bool:
    return out.suffix in {".tsv", ".md"} and not out.is_dir()


def _write(out: Path, rows: Sequence[CorrectedRow], markdown: str) -> None:
    if _is_file(out):
        write_atomic(out, (corrected_tsv(rows) if out.suffix == ".tsv" else markdown).encode())
        return
    from judge.calibrate.report.plots import raw_vs_corrected

    svg, png = raw_vs_corrected(rows)
    write_atomic(out / "corrected.tsv", corrected_tsv(rows).encode())
    write_atomic(out / "corrected.md", markdown.encode())
    write_atomic(out / "corrected.svg", svg)
    write_atomic(out / "corrected.png", png)


def _print(found: _Found, changes: Mapping[str, Change]) -> None:
    for caution in found.cautions:
        print("\n".join(fold(f"! {printable(caution)}", WIDTH)))
    for criterion in found.criteria:
        its = [row for row in found.rows if row.criterion == criterion.name]
        print("\n".join(["", *fold(printable(reading(criterion)), WIDTH), *corrected_lines(its)]))
        print("\n".join(fold(change_text(changes[criterion.name]), WIDTH)))
    _say("\n".join(["", *(line for text in flag_lines(found.rows) for line in fold(text, WIDTH))]))


def _print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _say(text: str) -> None:
    print(printable(text) if "\n" not in text else text, file=sys.stderr)
