"""Look at a journal of paid completions, check it, keep what is sound in a damaged one, export it, or join several.

PATH is a journal, or the folder of `judge run` or `judge calibrate` that holds one. No action asks a judge, and none
changes a journal or writes over a file.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_fact, print_json, print_listed, print_table, print_text, say, say_all
from judge.io.plan import Option
from judge.io.text import count, printable
from judge.jobs.manifest import JOURNAL
from judge.jobs.reparsing import ReparsePlan, reparse
from judge.judges import journal_tools


def _place(path: Path) -> Path:
    """A journal, that of a folder that holds one."""
    return path / JOURNAL if path.is_dir() else path


_Place = Annotated[Path, AfterValidator(_place)]


_PATH = Option(metavar="PATH", place="only")
_Journal = Annotated[_Place, Field(description="A journal, or a folder with its journal.sqlite."), _PATH]
_Journals = Annotated[tuple[_Place, ...], Field(description="Journals, their folders or exports."), _PATH]
_New = Annotated[Path, Field(description="The new journal."), Option(short="o", metavar="NEW")]
_Export = Annotated[
    Path | None,
    Field(description="A new file (default, as with -: standard output)."),
    Option(short="o", metavar="FILE"),
]


def verify(path: _Journal, output: JsonOutput) -> int:
    """List the completions that are not what was recorded; 1 if there is one."""
    report = journal_tools.verify_journal(path)
    _print_report(report, as_json=output.as_json)
    if report.problems:
        say(f"`judge journal salvage {path} -o NEW` keeps what is sound")
    return 1 if report.problems else 0


def salvage(path: _Journal, out: _New, output: JsonOutput) -> int:
    """Write what is sound into a new journal; 1 if something is not."""
    report = journal_tools.salvage_journal(path, out)
    _print_report(report, as_json=output.as_json)
    say(f"what is sound is in {out}; in place of {path}, it lets the same command go on")
    if (log := Path(f"{path}-wal")).exists():
        say(f"remove {log} too: it belongs to the old journal, and what is sound in it is in the new one")
    return 1 if report.problems else 0


def _print_report(report: journal_tools.JournalReport, *, as_json: bool) -> None:
    if as_json:
        problems = [{"digest": digest or None, "message": why} for digest, why in report.problems]
        print_json({"sound": report.sound, "problems": problems})
        return
    _print_facts({"sound": report.sound, "problems": len(report.problems)})
    for digest, why in report.problems:
        print_listed(f"  {digest or 'the file'}: {why}")


def _print_facts(facts: Mapping[str, object]) -> None:
    for name, fact in facts.items():
        print_fact(name, str(fact))


def stats(path: _Journal, output: JsonOutput) -> int:
    """Say what each judge took: calls, tokens, money, time."""
    spending = journal_tools.read_spending(path)
    if output.as_json:
        print_json(spending)
        return 0
    for row in spending:
        print_text(row.judge, "heading")
        _print_facts({f"  {name}": text for name, text in _facts(row).items()})
    if not spending:
        say(f"{path}: holds no completion")
    return 0


def _facts(row: journal_tools.JournalSpending) -> dict[str, str]:
    spent = row.spending
    tokens = "unknown"
    cost = "unknown"
    seconds = "unknown"
    if spent.counted:
        tokens = f"{spent.prompt_tokens:,} in, {spent.cached_tokens:,} of them cached; {spent.completion_tokens:,} out"
        if spent.thought_tokens:
            tokens += f", {spent.thought_tokens:,} of them hidden thoughts"
        tokens += _unknown(spent.calls - spent.counted)
    if spent.priced:
        cost = f"${spent.cost:,.4f}{_unknown(spent.calls - spent.priced)}"
    if row.seconds_p50 is not None:
        seconds = f"{row.seconds_p50:.2f} in the median, {row.seconds_p95:.2f} at 95 %; {spent.seconds:,.0f} in all"
    return {
        "calls": f"{spent.calls:,}",
        "attempts": f"{spent.attempts:,}",
        "tokens": tokens,
        "cost": cost,
        "seconds": seconds,
        "recorded": f"{row.first} to {row.last}",
    }


def _unknown(number: int) -> str:
    return f"; unknown for {number:,}" if number else ""


def export(path: _Journal, out: _Export = None) -> int:
    """Write the completions as JSON lines, without keys."""
    if out not in (None, Path("-")):
        number = journal_tools.export_journal(path, out)
        say(f"{count(number, 'completion')} in {out}")
        return 0
    for line in journal_tools.exported_lines(path):
        text = line.decode()
        # A terminal is not to be controlled by what strangers wrote; a file or a program gets the bytes as they are.
        sys.stdout.write(f"{printable(text.rstrip())}\n" if sys.stdout.isatty() else text)
    return 0


def reparse_replies(plan: ReparsePlan, output: JsonOutput) -> int:
    """Read every reply again, and list what would change; 1 if something would."""
    outcome = reparse(plan)
    say_all(outcome.warnings, "warning: ")
    if output.as_json:
        print_json(outcome)
    else:
        changed = len(outcome.changes)
        _print_facts({"read again": outcome.read, "without a reply": outcome.without_reply, "changed": changed})
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


def merge(paths: _Journals, out: _New, output: JsonOutput) -> int:
    """Write several journals into a new one, of which the first answer stays; 1 if answers are in conflict."""
    completions, repeated, conflicts = journal_tools.merge_journals(paths, out)
    facts = {"completions": completions, "repeated": repeated}
    if output.as_json:
        print_json({**facts, "conflicts": conflicts})
        return 1 if conflicts else 0
    _print_facts({**facts, "conflicts": len(conflicts)})
    for one in conflicts:
        about = f"{one['digest']}: {one['response_id']} of {one['turn_id']}, {one['criterion']}"
        print_listed(f"  {about}: another answer in {one['path']} is left out")
    return 1 if conflicts else 0


_ACTIONS = {"verify": verify, "salvage": salvage, "stats": stats, "export": export, "reparse": reparse_replies}
COMMANDS = {"journal": {**_ACTIONS, "merge": merge}}
