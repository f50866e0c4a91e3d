"""Check a journal of paid completions, or keep what is sound in a damaged one.

`judge journal verify` checks every completion of a journal, or of the folder of `judge run` or `judge calibrate` that
holds one; nothing is changed. `judge journal salvage` writes what is sound into a new journal and lists the rest, which
the next run asks again.
"""

import argparse
from pathlib import Path

from judge.cli.options import add_actions
from judge.cli.printing import print_fact, print_json, print_listed, say
from judge.harness.manifest import JOURNAL
from judge.models.journal_check import JournalReport, salvage_journal, verify_journal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    commands = add_actions(parser, "verify|salvage")
    verify = commands.add_parser("verify", help="list the completions that are not what was recorded")
    salvage = commands.add_parser("salvage", help="write what is sound into a new journal")
    for action in (verify, salvage):
        action.add_argument("path", type=Path, metavar="PATH", help=f"a journal, or a folder with its {JOURNAL}")
        action.add_argument("--json", action="store_true", help="print the counts and the problems as JSON")
    salvage.add_argument("-o", "--out", type=Path, required=True, metavar="NEW", help="the new journal")


def main(args: argparse.Namespace) -> int:
    """Verify or salvage; 1 if something is not sound."""
    path = args.path / JOURNAL if args.path.is_dir() else args.path
    if args.action == "verify":
        report = verify_journal(path)
        _print(report, as_json=args.json)
        if report.problems:
            say(f"`judge journal salvage {path} -o NEW` keeps what is sound")
    else:
        report = salvage_journal(path, args.out)
        _print(report, as_json=args.json)
        say(f"what is sound is in {args.out}; in place of {path}, it lets the same command go on")
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            say(f"remove {log} too: it belongs to the old journal, and what is sound in it is in the new one")
    return 1 if report.problems else 0


def _print(report: JournalReport, *, as_json: bool) -> None:
    if as_json:
        problems = [{"digest": digest or None, "message": why} for digest, why in report.problems]
        print_json({"sound": report.sound, "without_checksum": report.unsealed, "problems": problems})
        return
    print_fact("sound", str(report.sound))
    print_fact("  without checksum", str(report.unsealed))
    print_fact("problems", str(len(report.problems)))
    for digest, why in report.problems:
        print_listed(f"  {digest or 'the file'}: {why}")
