"""How the judgments were made: versions, options, digests of everything that was read, and what it cost. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from judge.io.table import Cell, Column, Table
from judge.io.text import count, dollars, lasting, printable
from judge.judges.journal_tools import JournalSpending
from judge.judges.prices import Spending
from judge.report import Facts, Folded, ReportPart, Said, Section
from judge.report.folders import RunFolder


def made(folder: RunFolder) -> Iterator[Section]:
    """The manifest, folded away; no section where there is none."""
    manifest = folder.judged.manifest
    if not manifest:
        return
    configuration = manifest["configuration"]
    said = (
        "Everything that these numbers depend on. The same inputs, options and journal give the same files again, byte "
        "for byte; manifest.json holds this in full."
    )
    parts: list[Said | Facts | Table[Any]] = [Said(said)]
    argv = manifest.get("argv")
    if words := " ".join(printable(str(word)) for word in argv) if isinstance(argv, list) else "":
        parts.append(Facts((("Command", f"judge {words}"),)))
    parts.append(Facts(tuple(_facts(manifest, configuration))))
    for key, columns, title, note in (
        ("runs", ("run", "SHA-256 of its file"), "The runs", "The files as they were read."),
        ("options", ("option", "value"), "How the judge was asked", "The same for every question."),
    ):
        if isinstance(named := configuration.get(key), dict) and named:
            lines = ((printable(name), _plain(value)) for name, value in named.items())
            parts.append(Table(lines, columns, title, [note]))
    yield Section("made", "How it was made", (Folded("Versions, options and digests", tuple(parts)),))


def _facts(manifest: dict[str, Any], configuration: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Version of judge", f"{manifest.get('judge_version')} on Python {manifest.get('python')}"
    returned = manifest.get("models_returned")
    if isinstance(returned, list) and returned:
        yield "The provider's own name of the model", ", ".join(printable(str(name)) for name in returned)
    criteria = configuration.get("criteria")
    for name, prompt in criteria.items() if isinstance(criteria, dict) else ():
        if isinstance(prompt, dict):
            yield f"Prompt of {printable(name)}", f"{prompt.get('prompt')}, SHA-256 {prompt.get('sha256')}"
    for key, name in (("topics", "Topics file"), ("pool", "Pool"), ("passages", "Passages")):
        if isinstance(digest := configuration.get(key), str):
            yield name, f"SHA-256 {digest}"
    yield "How replies are read", f"parser {configuration.get('parser')}, renderer {configuration.get('renderer')}"
    counts = manifest.get("counts")
    if isinstance(counts, dict) and isinstance(counts.get("runs"), int):
        yield "Runs", count(counts["runs"], "run")


def _plain(value: Any) -> str:
    if value is None:
        return "not set"
    return printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())


_KEPT = (
    "in the journal of this folder, also those of an earlier configuration: what was paid for once is never asked again"
)
_THOUGHTS = Column("of them thoughts", about="hidden thoughts, paid for as any token of a reply")
_COLUMNS = (
    Column("judge"),
    Column("calls kept", about=_KEPT),
    Column("tokens in"),
    Column("of them cached"),
    Column("tokens out"),
    _THOUGHTS,
    Column("cost"),
    Column("time of calls", about="calls that ran at the same time count each"),
    Column("first call", about="in UTC"),
    Column("last call", about="in UTC"),
)


def spent(folder: RunFolder) -> Iterator[Section]:
    """The section; it says so where the journal is missing."""
    yield Section("cost", "Cost, tokens and time", tuple(_parts(folder.spending)))


def in_all(spending: Sequence[JournalSpending]) -> str:
    """The money in all, as far as it is known."""
    total = sum((row.spending for row in spending), Spending())
    cost = dollars(total.cost)
    if unknown := total.calls - total.priced:
        return f"{f'at least {cost}; ' if total.priced else ''}unknown for {count(unknown, 'call')}"
    return cost


def _parts(spending: Sequence[JournalSpending] | str) -> Iterator[ReportPart]:
    if isinstance(spending, str):
        yield Said(f"What the judging took is not known: {spending}.")
        return
    total = sum((row.spending for row in spending), Spending())
    lines = [_line(row) for row in spending]
    table = Table(lines, _COLUMNS, "What each judge took", ["A line for each model that was asked."])
    if not total.thought_tokens:
        table = table.pick(name for name in table.names if name != _THOUGHTS.name)
    yield table
    # A free judge that counts no tokens has none, such as word overlap.
    without_tokens = sum(row.spending.calls for row in spending if _is_free(row.spending) and not row.spending.counted)
    missing_tokens = total.calls - total.counted - without_tokens
    unknown = [f"the tokens of {count(missing_tokens, 'call')}"] if missing_tokens else []
    unknown += [
        f"the {what} of {count(missing, 'call')}"
        for what, known in (("price", "priced"), ("duration", "timed"))
        if (missing := total.calls - getattr(total, known))
    ]
    if unknown:
        yield Said(f"The sums leave out what is not known: {', '.join(unknown)}.")
    repeated = total.attempts - total.calls
    if repeated:
        yield Said(f"{count(repeated, 'attempt')} failed before a call came through.")


def _is_free(spent: Spending) -> bool:
    return spent.priced == spent.calls and spent.cost == 0


def _line(row: JournalSpending) -> tuple[Cell, ...]:
    spent = row.spending
    return (
        printable(row.judge),
        spent.calls,
        f"{spent.prompt_tokens:,}" if spent.counted else None,
        f"{spent.cached_tokens:,}" if spent.counted else None,
        f"{spent.completion_tokens:,}" if spent.counted else None,
        f"{spent.thought_tokens:,}" if spent.counted else None,
        dollars(spent.cost) if spent.priced else None,
        lasting(spent.seconds) if spent.timed else None,
        # `2025-01-31 12:00` of a recorded time.
        *(recorded[:16].replace("T", " ") for recorded in (row.first, row.last)),
    )
