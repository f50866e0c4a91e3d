"""Plugins: what annexes (`judge/extra/`) and other packages add to the core, which imports neither.

A row is named `table.name`. The rows of annexes stand in `ANNEXES`; a folder that is deleted takes its rows and
commands with it. Other packages give rows as entry points of the group `trec_judge.plugins`. The objects behind these
are, by table:

formats      a `Format` of `judge/runs/formats/`, or a module with `RULES`, `sniff`, `read`
judges       a `Backend`: the module that opens judges of the name `NAME/...`, and the facts about them
prompts      a folder of prompt files, `<criterion>/<variant>.md`
statistics   a `Statistic` of agreement
optimizers   a function from a `Round` of `judge improve` to texts of prompt files
"""

import importlib
import os
import sys
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, TypeVar

from judge.errors import UsageError

_Row = TypeVar("_Row")
GROUP = "trec_judge.plugins"
TABLES = {
    "formats": ("RULES", "sniff", "read"),
    "judges": ("module",),
    "prompts": ("is_dir", "glob"),
    "statistics": ("formula", "about", "shown"),
    "optimizers": ("__call__",),
}
"""The tables to which other packages may add, and what each of their rows has."""


class Annex(NamedTuple):
    """A folder of `judge/extra/`."""

    commands: Mapping[str, str]
    """Its commands with a summary each; they are in `COMMANDS` of its module `cli`."""
    rows: Mapping[str, str] = {}
    """Its rows, as `module:object`."""


ANNEXES = {
    "desk": Annex(
        {
            "serve assess": "a desk in the browser at which assessors label pooled responses, blind",
        }
    ),
    "scale": Annex(
        {
            "requests": "write what a run still has to ask as files for batch engines",
            "batch submit": "hand files of requests to a provider's batch API",
            "batch status": "how far such batches are",
            "batch collect": "fetch what batches brought into the journal of a run",
            "completions import": "take what batch engines brought back into the journal of a run",
        },
        {
            "engines.ray": "judge.extra.scale.ray:RayEngine",
            "rounds.requests": "judge.extra.scale:under_way",
        },
    ),
    "checkers": Annex(
        {},
        {
            "judges.checker": "judge.extra.checkers:BACKEND",
        },
    ),
    "decisions": Annex(
        {},
        {
            "judges.decisions": "judge.extra.decisions:DECISIONS",
            "judges.systemone": "judge.extra.decisions:SYSTEMONE",
        },
    ),
    "nuggets": Annex(
        {
            "nuggets create": "ask a judge for a bank of nuggets",
            "nuggets convert": "a bank of nuggets in another form",
            "nuggets match": "ask a judge which nuggets the responses of a pool support",
            "nuggets agree": "a judge's matches against people's of the same pairs",
            "nuggets score": "the recall of runs by matched nuggets, corrected by people's matches",
        },
        {
            "demo.nuggets": "judge.extra.nuggets.cli:rank_example",
            "nuggets.create": "judge.extra.nuggets.create",
            "nuggets.questions": "judge.extra.nuggets.questions",
            "nuggets.scoring": "judge.extra.nuggets.scoring",
        },
    ),
    "evaluate": Annex(
        {
            "evaluate responses": "mean grade and share of positive grades of each run, by topic, depth and PTKB",
            "evaluate passages": "the passages of runs under the measures of the tracks",
            "evaluate statements": "the PTKB statements that runs name, against each assessment",
            "evaluate spans": "spans of dialogues and passages under the measures of RCD-2020",
            "evaluate qrels": "two sets of grades: agreement, rankings of runs, holes and their bounds",
        },
        {
            "sections.breakdowns": "judge.extra.evaluate.report:breakdowns",
            "folders.between": "judge.extra.evaluate.report:between",
            "rankings.passages": "judge.extra.evaluate.ranked:rank_by_qrels",
        },
    ),
    "probe": Annex({"probe": "test a judge itself on altered responses: injections, altered facts, other words"}),
    "improve": Annex({"improve": "better prompts, chosen on dev gold and proven once on sealed gold"}),
    "bench": Annex(
        {
            "bench": "measure a judge on public labels by people, and write its card",
            "bench compare": "judge cards side by side, with paired differences",
            "bench datasets": "which public labels are below a folder, and how to get the others",
        }
    ),
    "citations": Annex(
        {},
        {
            "formats.rag": "judge.extra.citations:RAG",
            "formats.ragtime": "judge.extra.citations:RAGTIME",
            "targets.rag": "judge.extra.citations:TO_RAG",
            "targets.ragtime": "judge.extra.citations:TO_RAGTIME",
            "profiles.rag": "judge.extra.citations.years:RAG_ANY",
            "profiles.rag2024": "judge.extra.citations.years:RAG2024",
            "profiles.rag2025": "judge.extra.citations.years:RAG2025",
            "profiles.rag2026": "judge.extra.citations.years:RAG2026",
            "profiles.longeval2026": "judge.extra.citations.years:LONGEVAL2026",
            "profiles.ragtime": "judge.extra.citations.years:RAGTIME_ANY",
            "profiles.ragtime2025": "judge.extra.citations.years:RAGTIME2025",
            "profiles.ragtime2026": "judge.extra.citations.years:RAGTIME2026",
            "profiles.neuclir2024": "judge.extra.citations.years:NEUCLIR2024",
            "profiles.dragun2025": "judge.extra.citations.years:DRAGUN2025",
        },
    ),
    "autojudge": Annex({}),
    "pyterrier": Annex({}),
    "logs": Annex({}, {"labels.logs": "judge.extra.logs:read_log"}),
    "irdatasets": Annex({}, {"collections.ir": "judge.extra.irdatasets"}),
}
"""The annexes, by the names of their folders."""


def is_there(annex: str) -> bool:
    """Whether the folder of an annex is installed."""
    return os.path.isfile(os.path.join(os.path.dirname(__file__), "extra", annex, "__init__.py"))  # noqa: PTH113, PTH118, PTH120 - pathlib slows down `judge --help`


def added(table: str, known: Collection[str]) -> dict[str, Any]:
    """The rows that annexes and other packages add to a table, by name."""
    rows: dict[str, Any] = {}
    for name, (_, references) in ANNEXES.items():
        for row, reference in references.items() if is_there(name) else ():
            if row.startswith(f"{table}."):
                rows[row.partition(".")[2]] = _load(reference)
    for point in _points() if table in TABLES else ():
        named, _, name = point.name.partition(".")
        if named not in TABLES or not name or (named == table and name in {*known, *rows}):
            tables = f"expected one of {', '.join(TABLES)}, a dot and a name"
            why = "there is one already" if named in TABLES and name else tables
            raise UsageError(f"{_source(point)}: the plugin {point.name!r}: {why}")
        if named == table:
            try:
                rows[name] = point.load()
            except (Exception, SystemExit) as error:
                raise UsageError(f"{_source(point)}: the plugin {point.name!r} cannot be imported: {error}") from error
            if lacking := [part for part in TABLES[table] if getattr(rows[name], part, "") == ""]:
                raise UsageError(f"{_source(point)}: the plugin {point.name!r} has no {', '.join(lacking)}")
    return rows


class OpenTable(UserDict[str, _Row]):
    """A table of the core, which others add to; theirs are imported when it is first used, since they import it."""

    def __init__(self, table: str, ours: dict[str, _Row], *, last: bool = False) -> None:
        self._table = table
        self._ours = ours
        self._last = last

    @cached_property
    def data(self) -> dict[str, _Row]:  # type: ignore[override]
        """All rows."""
        theirs = added(self._table, self._ours)
        return theirs | self._ours if self._last else self._ours | theirs

    @property
    def foreign(self) -> set[str]:
        """The rows that are neither the core's nor an annex's."""
        annexed: set[str] = set()
        for annex in ANNEXES.values():
            annexed.update(annex.rows)
        return {name for name in self.data.keys() - self._ours.keys() if f"{self._table}.{name}" not in annexed}


def need(row: str, what: str) -> Any:
    """A row of an annex."""
    refuse_absent(row, what)
    return _load(next(annex.rows[row] for annex in ANNEXES.values() if row in annex.rows))


def collection(path: str | os.PathLike[str], part: str) -> Callable[..., Any] | None:
    """What gives a part of a path such as `ir:NAME`, which stands in place of a file; None for every other path."""
    scheme, _, name = os.fspath(path).partition(":")
    row = f"collections.{scheme}"
    if not name or not any(row in annex.rows for annex in ANNEXES.values()) or os.path.exists(path):  # noqa: PTH110
        return None
    return partial(getattr(need(row, os.fspath(path)), part), name)


def refuse_absent(row: str, what: str) -> None:
    """Refuse a row of an annex whose folder is not installed; the arguments and errors are those of `need`."""
    for name, annex in ANNEXES.items():
        if row in annex.rows and not is_there(name):
            raise UsageError(f"{what} needs judge/extra/{name}, which is not installed")


def has_foreign() -> bool:
    """Whether another package adds to the tables, as far as the files of the installed packages say.

    It reads them itself, because importing what reads them for good takes longer than a help may.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - pathlib slows down `judge --help`
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - likewise
                        if f"[{GROUP}]" in file.read():
                            return True
                except (OSError, UnicodeDecodeError):
                    continue
    return False


@cache
def _points() -> tuple[Any, ...]:
    # It takes longer than `judge --help` may.
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def _load(reference: str) -> Any:
    module, _, name = reference.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def _source(point: Any) -> str:
    return f"the package {point.dist.name}" if point.dist else "a package"
