"""Look at a journal of paid completions, check it, keep what is sound in a damaged one, export it, or join several.

PATH is a journal, the folder of `judge run` or `judge calibrate` that holds one, or the address of the database of a
shared one. No action asks a judge, and none changes a journal or writes over a file.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from judge.cli.options import add_actions
from judge.cli.printing import print_fact, print_json, print_listed, print_table, print_text, say
from judge.files.paths import StrPath
from judge.harness.manifest import JOURNAL
from judge.harness.reparsing import ReparsePlan, reparse
from judge.models.address import without_credentials
from judge.models.journal_rows import is_database
from judge.models.journal_tools import (
    JournalReport,
    JournalSpending,
    export_journal,
    exported_lines,
    merge_journals,
    read_spending,
    salvage_journal,
    verify_journal,
)
from judge.text.cells import count
from judge.text.safe import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    commands = add_actions(parser, "verify|salvage|stats|export|reparse|merge")
    verify = commands.add_parser("verify", help="list the completions that are not what was recorded")
    salvage = commands.add_parser("salvage", help="write what is sound into a new journal")
    stats = commands.add_parser("stats", help="say what each judge took: calls, tokens, money, time")
    export = commands.add_parser("export", help="write the completions as JSON lines or Parquet, without keys")
    reread = commands.add_parser("reparse", help="read every reply again, and list what would change")
    merge = commands.add_parser("merge", help="write several journals into a new one; the first answer stays")
    for action in (verify, salvage, stats, export):
        action.add_argument(
            "path", type=_place, metavar="PATH", help=f"a journal, a folder with its {JOURNAL}, or postgresql://…"
        )
    merge.add_argument(
        "paths", type=_place, nargs="+", metavar="PATH", help="journals, their folders or exports, or postgresql://…"
    )
    reread.add_argument("path", type=Path, metavar="OUT", help="output folder of `judge run`")
    reread.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="PATH",
        help="prompt file of your own that judgments are under; may be repeated",
    )
    for action in (verify, salvage, stats, reread, merge):
        action.add_argument("--json", action="store_true", help="print the same as JSON")
    for action in (salvage, merge):
        action.add_argument("-o", "--out", type=Path, required=True, metavar="NEW", help="the new journal")
    export.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="FILE",
        help="a new file, Parquet if it is named .parquet (default, as with -: JSON lines to standard output)",
    )


def main(args: argparse.Namespace) -> int:
    """Carry out an action; 1 if something is not sound, not the same or in conflict."""
    return _ACTIONS[args.action](args)


def _place(text: str) -> StrPath:
    """A path, or the address of a shared journal's database, for argparse."""
    return text if is_database(text) else Path(text)


def _journal(place: StrPath) -> StrPath:
    return place / JOURNAL if isinstance(place, Path) and place.is_dir() else place


def _verify(args: argparse.Namespace) -> int:
    path = _journal(args.path)
    report = verify_journal(path)
    _print_report(report, as_json=args.json)
    if report.problems and not is_database(path):
        say(f"`judge journal salvage {path} -o NEW` keeps what is sound")
    return 1 if report.problems else 0


def _salvage(args: argparse.Namespace) -> int:
    path = _journal(args.path)
    report = salvage_journal(path, args.out)
    _print_report(report, as_json=args.json)
    if report.repeated:
        say(f"{count(report.repeated, 'completion')} repeated, asked the same at unlike addresses: the first one stays")
    say(f"what is sound is in {args.out}; in place of {without_credentials(str(path))}, it lets the same command go on")
    if not is_database(path) and (log := Path(f"{path}-wal")).exists():
        say(f"remove {log} too: it belongs to the old journal, and what is sound in it is in the new one")
    return 1 if report.problems else 0


def _print_report(report: JournalReport, *, as_json: bool) -> None:
    if as_json:
        problems = [{"digest": digest or None, "message": why} for digest, why in report.problems]
        print_json({"sound": report.sound, "without_checksum": report.unsealed, "problems": problems})
        return
    print_fact("sound", str(report.sound))
    print_fact("  without checksum", str(report.unsealed))
    print_fact("problems", str(len(report.problems)))
    for digest, why in report.problems:
        print_listed(f"  {digest or 'the file'}: {why}")


def _stats(args: argparse.Namespace) -> int:
    spending = read_spending(_journal(args.path))
    if args.json:
        print_json(spending)
        return 0
    for row in spending:
        print_text(row.judge, "heading")
        for name, text in _facts(row).items():
            print_fact(f"  {name}", text)
    if not spending:
        say(f"{without_credentials(str(_journal(args.path)))}: holds no completion")
    return 0


def _facts(row: JournalSpending) -> dict[str, str]:
    unknown = row.completions - row.counted
    tokens = f"{row.prompt_tokens:,} in, {row.cached_tokens:,} of them cached; {row.completion_tokens:,} out"
    facts = {
        "completions": f"{row.completions:,}",
        "attempts": f"{row.attempts:,}",
        "tokens": f"{tokens}{f'; unknown for {unknown:,}' if unknown else ''}" if row.counted else "unknown",
        "cost": "unknown",
        "seconds": "unknown",
        "answer form": _counted(row.forms),
        "finish reason": _counted(row.finish_reasons),
        "model returned": _counted(row.models),
        "fingerprint": _counted(row.fingerprints),
        "recorded": f"{row.first} to {row.last}",
    }
    if row.priced:
        rest = f"; unknown for {row.completions - row.priced:,}" if row.priced < row.completions else ""
        facts["cost"] = f"${row.cost:,.4f}{rest}"
    if row.seconds_p50 is not None and row.seconds_p95 is not None:
        facts["seconds"] = (
            f"{row.seconds_p50:.2f} in the median, {row.seconds_p95:.2f} at 95 %; {row.seconds:,.0f} in all"
        )
    return facts


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word or 'not said'} {number:,}" for word, number in counts.items())


def _export(args: argparse.Namespace) -> int:
    path = _journal(args.path)
    if args.out not in (None, Path("-")):
        number = export_journal(path, args.out)
        say(f"{count(number, 'completion')} in {args.out}")
        return 0
    for line in exported_lines(path):
        text = line.decode()
        # A terminal is not to be controlled by what strangers wrote; a file or a program gets the bytes as they are.
        sys.stdout.write(f"{printable(text.rstrip())}\n" if sys.stdout.isatty() else text)
    return 0


def _reparse(args: argparse.Namespace) -> int:
    outcome = reparse(ReparsePlan(folder=args.path, prompts=args.prompt))
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    if args.json:
        print_json(outcome)
    else:
        print_fact("read again", str(outcome.read))
        print_fact("without a reply", str(outcome.without_reply))
        print_fact("changed", str(len(outcome.changes)))
        if outcome.changes:
            rows = [(criterion, change, str(number)) for (criterion, change), number in outcome.counts.items()]
            print_table(("criterion", "before → after", "n"), rows, words=2)
        for change in outcome.changes:
            whose = f"{change.response_id} of {change.turn_id}, {change.criterion}/{change.variant}"
            sample = f", sample {change.sample}" if change.sample else ""
            print_listed(f"  {whose} by {change.judge}{sample}: {change.before} → {change.after}")
    if outcome.changes:
        say("the same `judge run` command takes this over, with --replace where the parser's version has changed")
    return 1 if outcome.changes else 0


def _merge(args: argparse.Namespace) -> int:
    report = merge_journals([_journal(path) for path in args.paths], args.out)
    if args.json:
        conflicts = [conflict._asdict() for conflict in report.conflicts]
        print_json({"completions": report.taken, "repeated": report.repeated, "conflicts": conflicts})
    else:
        print_fact("completions", str(report.taken))
        print_fact("repeated", str(report.repeated))
        print_fact("conflicts", str(len(report.conflicts)))
        for conflict in report.conflicts:
            about = f"{conflict.response_id} of {conflict.turn_id}, {conflict.criterion}"
            print_listed(f"  {conflict.digest}: {about}: another answer in {conflict.path} is left out")
    return 1 if report.conflicts else 0


_ACTIONS = {
    "verify": _verify,
    "salvage": _salvage,
    "stats": _stats,
    "export": _export,
    "reparse": _reparse,
    "merge": _merge,
}
