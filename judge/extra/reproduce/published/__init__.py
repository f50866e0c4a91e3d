"""Published: what a paper printed beside what its released files give, one module for each publication.

A module has `reproduce(folder)`, which reads the folder as it was released, and its row in `PUBLICATIONS`. Here stands
what they share: numbers, the files of a release, found by their names in a folder or below it, and lengths.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from judge.errors import InputError, refuse
from judge.io.files import distinct, files_below
from judge.io.ids import topic_of
from judge.io.table import Cell, Table
from judge.io.text import printable, shown
from judge.records import Estimate, Problem, Record, file_problem
from judge.runs.tokens import RULES, TokenCounter
from judge.stats.means import mean_interval


class PublishedNumber(Record, frozen=True):
    """One number of a publication beside ours."""

    table: str
    """Where it is printed: `Table 7`."""
    row: str
    """The run or judge, as the publication names it."""
    measure: str
    published: str | None
    """As printed; None where only we have it."""
    ours: Estimate | None
    """None where the released files cannot give it."""
    difference: float | None
    """Ours, rounded as printed, less the published number; 0 where both are equal."""
    reason: str = ""
    """Why they differ, as far as it is known."""


class Reproduction(Record, frozen=True):
    """A publication made again from its released files."""

    name: str
    source: str
    """The publication, to cite."""
    numbers: tuple[PublishedNumber, ...]
    beyond: tuple[Table[Any], ...]
    """What the publication does not show."""
    notes: tuple[str, ...]
    """A sentence each."""


PUBLICATIONS: dict[str, str] = {
    "ikat2023": "the iKAT 2023 overview: GPT-4's labels of responses (Table 7), the test collection (Table 1)",
    "cone-rag": "CONE-RAG on iKAT 2024: counts of nuggets and answers, lengths of the released responses",
    "llmjudge": "LLMJudge: agreement of LLM judges with NIST's assessors (Tables 3 and 4)",
    "rag2024": "TREC RAG 2024: assessors' labels of citations and nuggets, and the runs' scores by them",
    "cast-regin": "CAsT-ReGIn: what its README says of the released grades, and their counts",
}
"""Name on the command line to what is made again; the module has the name with underscores for hyphens."""


def beside_ours(
    table: str, row: str, measure: str, published: str, ours: Estimate | None, reason: str = ""
) -> PublishedNumber:
    """A published number beside ours, which is rounded to as many decimals as are printed.

    Thousands may have commas. The reason why they differ, or why there is nothing of ours, goes where they are equal.

    >>> beside = beside_ours("Table 7", "a", "groundedness", "0.67", Estimate(0.68493, None, None, 73, 23), "why")
    >>> beside.difference, beside.reason
    (0.01, 'why')
    """
    if ours is None or ours.value is None:
        return PublishedNumber(table, row, measure, published, ours, None, reason)
    printed = Decimal(published.replace(",", ""))
    rounded = Decimal(repr(float(ours.value))).quantize(printed, ROUND_HALF_UP)
    difference = float(rounded - printed)
    return PublishedNumber(table, row, measure, published, ours, difference, reason if difference else "")


def counted(number: float, n: int, topics: int) -> Estimate:
    """A count or a ratio of counts, which has no interval."""
    return Estimate(float(number), None, None, n, topics, "counted, not sampled")


def reproduce_publication(name: str, folder: Path) -> Reproduction:
    """Make a publication again from its released files.

    An InputError if a file is absent or bad; every problem is listed.
    """
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    reproduce: Callable[[Path], Reproduction] = module.reproduce
    return reproduce(folder)


DEEPEST = 8
"""How many folders below the given one are looked into."""
MOST = 100_000
"""The most files and folders that are looked at."""


class ReleasedFile(Record, frozen=True):
    """A file as it was released."""

    key: str
    """What the file is called here."""
    name: str
    """The name under which it was released."""
    origin: str
    """Where to get it."""
    pattern: str = ""
    """A regular expression of all names that it may have, upper or lower case; by default its own, also with .gz."""
    needed: bool = False


def find_released(folder: Path, wanted: Sequence[ReleasedFile]) -> dict[str, Path]:
    """The path of each file of a release that is in a folder or below it, by its key.

    Copies of one file are one file. An InputError if there is no such folder, a needed file is absent, or a name is
    that of several different files; one error says all of it.
    """
    found: dict[str, list[Path]] = {file.key: [] for file in wanted}
    own = {file.key: rf"{re.escape(file.name)}(\.gz)?" for file in wanted}
    names = [(file.key, re.compile(file.pattern or own[file.key], re.IGNORECASE)) for file in wanted]
    for path in files_below(folder, DEEPEST, MOST):
        for key, pattern in names:
            if pattern.fullmatch(path.name):
                found[key].append(path)
    problems: list[Problem] = []
    for file in wanted:
        places = distinct(found[file.key])
        if len(places) > 1:
            listed = ", ".join(shown(str(path.relative_to(folder))) for path in places[:5])
            message = f"{len(places)} different files could be {file.name}: {listed}; name the folder of one of them"
            problems.append(file_problem("ambiguous_file", folder, message))
        elif not places and file.needed:
            message = f"looked for {file.name} here and in the folders below; it comes from {file.origin}"
            problems.append(file_problem("missing_file", folder, message))
    refuse(problems, f"{printable(str(folder))}: the released files cannot be told")
    return {key: paths[0] for key, paths in found.items() if paths}


def left_out(wanted: Sequence[ReleasedFile], paths: Mapping[str, Path]) -> tuple[str, ...]:
    """A sentence about the files of a release that are not there; none if all are."""
    absent = ", ".join(file.name for file in wanted if file.key not in paths)
    return (f"Not in the folder, so left out: {absent}.",) if absent else ()


def nothing_found(folder: Path, wanted: Sequence[ReleasedFile]) -> InputError:
    """The error for a folder in which a publication has none of its files, each of which it could do without."""
    problems = [
        file_problem("missing_file", folder, f"looked for {file.name}; it comes from {file.origin}") for file in wanted
    ]
    return InputError(f"{printable(str(folder))}: none of the released files is here or in the folders below", problems)


LIMIT = 250
"""The most tokens of a response, by the guidelines of iKAT 2023 to 2025."""


def lengths_grid(runs: Mapping[str, Mapping[str, str]]) -> Table[Any]:
    """The responses of each run over LIMIT, by each rule; texts are countable (`judge.runs.tokens.countable`)."""
    count_tokens = TokenCounter(limit=LIMIT)
    lines: list[tuple[Cell, ...]] = []
    for run_id, texts in runs.items():
        lengths = [count_tokens(text) for text in texts.values()]
        topics = list(map(topic_of, texts))
        for rule in RULES:
            tokens = [getattr(length, rule) for length in lengths]
            over = [float(number > LIMIT) for number in tokens]
            share = mean_interval(over, topics, bounds=(0.0, 1.0), what="responses")
            exactly = sum(number == LIMIT for number in tokens)
            lines.append((run_id, rule, len(tokens), int(sum(over)), exactly, max(tokens, default=None), share))
    columns = ("run", "rule", "responses", "over", "at_limit", "longest", "share_over")
    notes = (
        f"over: responses of more than {LIMIT} tokens; share_over: their share, with the interval over topics. bare: "
        "spacy.tokenizer.Tokenizer, which the guidelines name; english: the tokenizer of spaCy's English; whitespace: "
        "what the validator of iKAT 2025 counts.",
    )
    return Table(lines, columns, "Lengths", notes)
