"""Look at a journal of paid completions, check it, keep what is sound in a damaged one, export it, or join several.

PATH is a journal, or the folder of `judge run` or `judge calibrate` that holds one. No action asks a judge, and none
changes a journal or writes over a file.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_fact, print_json, print_text, say, show
from judge.io.plan import Option
from judge.io.printout import Printout
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
    notes = (f"`judge journal salvage {path} -o NEW` keeps what is sound",) if report.problems else ()
    return show(_printout(report, notes), as_json=output.as_json)


def salvage(path: _Journal, out: _New, output: JsonOutput) -> int:
    """Write what is sound into a new journal; 1 if something is not."""
    report = journal_tools.salvage_journal(path, out)
    notes = [f"what is sound is in {out}; in place of {path}, it lets the same command go on"]
    if (log := Path(f"{path}-wal")).exists():
        notes.append(f"remove {log} too: it belongs to the old journal, and what is sound in it is in the new one")
    return show(_printout(report, notes), as_json=output.as_json)


def _printout(report: journal_tools.JournalReport, notes: Sequence[str]) -> Printout:
    problems = [{"digest": digest or None, "message": why} for digest, why in report.problems]
    lines = tuple(f"  {digest or 'the file'}: {why}" for digest, why in report.problems)
    return Printout(
        data={"sound": report.sound, "problems": problems},
        parts=({"sound": report.sound, "problems": len(report.problems)}, lines),
        notes=tuple(notes),
        exit=1 if report.problems else 0,
    )


def stats(path: _Journal, output: JsonOutput) -> int:
    """Say what each judge took: calls, tokens, money, time."""
    spending = journal_tools.read_spending(path)
    if output.as_json:
        print_json(spending)
        return 0
    for row in spending:
        print_text(row.judge, "heading")
        for name, text in _facts(row).items():
            print_fact(f"  {name}", text)
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
    return show(reparse(plan), as_json=output.as_json)


def merge(paths: _Journals, out: _New, output: JsonOutput) -> int:
    """Write several journals into a new one, of which the first answer stays; 1 if answers are in conflict."""
    completions, repeated, conflicts = journal_tools.merge_journals(paths, out)
    facts = {"completions": completions, "repeated": repeated}
    lines = []
    for conflict in conflicts:
        about = f"{conflict['digest']}: {conflict['response_id']} of {conflict['turn_id']}, {conflict['criterion']}"
        lines.append(f"  {about}: another answer in {conflict['path']} is left out")
    printout = Printout(
        data={**facts, "conflicts": conflicts},
        parts=({**facts, "conflicts": len(conflicts)}, tuple(lines)),
        exit=1 if conflicts else 0,
    )
    return show(printout, as_json=output.as_json)


_ACTIONS = {"verify": verify, "salvage": salvage, "stats": stats, "export": export, "reparse": reparse_replies}
COMMANDS = {"journal": {**_ACTIONS, "merge": merge}}
