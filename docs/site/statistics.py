"""The statistics of `judge.stats`: formula, source, interval, and the pages where each is shown.

Rows of the tables of statistics say the facts; docstrings hold formulas, citations and worked examples.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import judge.stats
from docs.site.docstrings import markdown, prose
from docs.site.markdown import cell, code, facts, fenced, link
from docs.site.pages import relative, title
from judge.stats import ranking
from judge.stats.agreement import STATISTICS
from judge.stats.discrimination import EXPECTED, PROBABILITY
from judge.stats.ranking import SYSTEM, TIED

PAGE = "reference/statistics.md"
FUNCTIONS = "reference/statistics-functions.md"

INTERVALS = {
    "t": "cluster-robust t interval over topics (`mean_interval`)",
    "fisher": "on Fisher's z, with the bootstrap's or the jackknife's error over topics (`fisher_interval`)",
    "jackknife": "jackknife over topics (`jackknife_interval`)",
}
SCALES = {"nominal": "names", "ordinal": "an order", "interval": "numbers"}
BEST = {"greatest": "the greatest", "least": "the least", "zero": "0; the sign tells the direction"}
SHOWN = {
    "files": "the TSV files",
    "report": "the TSV files and `calibration.md`",
    "summary": "the TSV files, `calibration.md` and the terminal",
}


def statistics_pages(written: Mapping[str, str]) -> dict[str, str]:
    """The page of the named statistics, and that of all functions."""
    return {PAGE: _named(written), FUNCTIONS: _functions()}


def modules() -> Iterator[ModuleType]:
    """The modules of statistics, in the order of their names."""
    for found in pkgutil.iter_modules(judge.stats.__path__):
        yield importlib.import_module(f"judge.stats.{found.name}")


def public_functions(module: ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    """The public functions that a module defines, in the order of its lines."""
    names = [
        node.name
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    return [(name, inspect.unwrap(getattr(module, name))) for name in names]


def _named(written: Mapping[str, str]) -> str:
    parts = [
        "# Statistics\n\nEvery statistic with a name in the tables that commands write. Formulas are those of the "
        f"code; {link('the functions', relative(FUNCTIONS, PAGE))} have worked examples. Topics are the units of every "
        "interval, because turns of one topic are alike.",
        "## Agreement of a judge with assessors",
        "In `agreement.tsv` of `judge calibrate` and of `judge evaluate qrels`. C is the table of counts, with "
        "assessors' grades in rows.",
    ]
    for name, row in STATISTICS.items():
        more = [("grades are taken as", SCALES[row.scale]), ("best value", BEST[row.best]), ("in", SHOWN[row.shown])]
        parts += _entry(name, row.about, row.formula, row.citation, INTERVALS[row.interval], written, more)
    parts.append("## Expected grades")
    for name, expected in EXPECTED.items():
        formula = {"rank_correlation": "spearman", "auc": "auc"}.get(name)
        source = (
            getattr(importlib.import_module("judge.stats.discrimination"), formula) if formula else expected.formula
        )
        parts += _entry(name, expected.about, source, expected.citation, INTERVALS["jackknife"], written)
    parts.append("## Label probabilities")
    for name, of in PROBABILITY.items():
        parts += _entry(name, of.about, of.formula, of.citation, INTERVALS["jackknife"], written)
    parts.append("## Rankings of runs")
    parts.append("In `systems.tsv` of `judge calibrate` and `rankings.tsv` of `judge evaluate qrels`.")
    for name, rank in (SYSTEM | TIED).items():
        parts += _entry(name, f"column {rank.label}", _ranked(name), None, "over resampled topics", written)
    return "\n\n".join(parts) + "\n"


def _ranked(name: str) -> Callable[..., Any] | None:
    """The public function behind a statistic of rankings."""
    names = {"tau_b": "kendall_tau_b", "top_1": "top_k_overlap", "top_3": "top_k_overlap", "top_5": "top_k_overlap"}
    return getattr(ranking, names.get(name, name), (SYSTEM | TIED)[name].formula)


def _entry(
    name: str,
    about: str,
    formula: object,
    citation: str | None,
    interval: str,
    written: Mapping[str, str],
    more: list[tuple[str, str]] | None = None,
) -> list[str]:
    """A statistic: what it is, its formula, and a table of facts."""
    inner = formula.func if isinstance(formula, functools.partial) else formula
    documented = inner if inspect.isroutine(inner) else type(inner)
    text = documented.__doc__ or ""
    pairs = [("source", cell(citation))] if citation else []
    pairs += [("interval", interval), *(more or [])]
    pages = [
        link(title(text_of), relative(page, PAGE))
        for page, text_of in written.items()
        if "/" not in page and re.search(rf"`{re.escape(name)}`", text_of)
    ]
    pairs += [("described in", ", ".join(pages))] if pages else []
    return [f"### {code(name)}", cell(about[0].upper() + about[1:]) + ".", prose(text), facts(pairs)]


def _functions() -> str:
    parts = [
        "# Functions of judge.stats\n\nNumbers in, numbers out: they take arrays of your own, and need no folder. Each "
        "worked example is a test."
    ]
    for module in modules():
        short = module.__name__.removeprefix("judge.")
        functions = public_functions(module)
        if not functions:
            continue
        parts += [f"## {code(short)}", markdown((module.__doc__ or "").replace(" Pure.", ""))]
        for name, function in functions:
            parts += [f"### {code(name)}", signature(name, function), markdown(function.__doc__ or "")]
    return "\n\n".join(parts) + "\n"


def signature(name: str, function: Callable[..., Any]) -> str:
    """A function's signature as its source has it."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function))).body[0]
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return fenced(f"class {name}", "python")
    arguments = ast.unparse(tree.args)
    returned = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    line = f"{name}({arguments}){returned}"
    if len(line) > 96:
        inside = _split(tree.args)
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in inside) + f"){returned}"
    return fenced(line, "python")


def _split(arguments: ast.arguments) -> list[str]:
    """The arguments of a signature, one each."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)

    def shown(arg: ast.arg, default: ast.expr | None) -> str:
        typed = f"{arg.arg}: {ast.unparse(arg.annotation)}" if arg.annotation else arg.arg
        return typed if default is None else f"{typed} = {ast.unparse(default)}"

    parts = [shown(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    if arguments.vararg:
        parts.append(f"*{shown(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [shown(arg, default) for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [*parts, *([f"**{shown(arguments.kwarg, None)}"] if arguments.kwarg else [])]
