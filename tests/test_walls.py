"""The house keeps its walls: imports point down, pure modules stay pure, and starting up stays light."""

import ast
import contextlib
import functools
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from judge.judges.backends import BACKENDS

PACKAGE = Path(__file__).parent.parent / "judge"

DOORS = [
    "records", "units", "errors", "plugins", "stats", "io", "runs", "passages", "judges", "pool", "ask", "gold",
    "results", "crowd", "calibrate", "jobs", "report", "cli", "extra",
]  # fmt: skip
"""The rooms at the top of the package, in the order of the pipeline; a room imports only what stands above it."""

PURE_ROOMS = {"records", "units", "errors", "stats", "results"}
"""Rooms without input or output. Elsewhere a module says so at the end of its docstring's first paragraph: `Pure.`"""
IMPURE = {"asyncio", "datetime", "io", "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess",
          "sys", "tempfile", "threading", "time", "urllib", "uuid", "sqlite3", "aiohttp", "httpx"}  # fmt: skip
HARMLESS = ("pathlib.PurePath", "urllib.parse")
"""Of those modules, what touches neither disk nor network."""
ASYNC = {*("ask.loop", "ask.calls", "ask.running", "ask.attempts", "ask.line", "ask.together", "ask.immediate")}
ASYNC |= {"judges", "extra"}
"""Where asyncio may be: calls of the loop are made in `ask.calls`, wait there for money, and in `ask.line` for their
turn; in `ask.together` questions of one call wait for each other; `ask.immediate` lets a signal in between answers that
need no call; the journal's writer wakes the loop that waits for it; the workers of a Ray cluster make calls, and the
driver waits for them."""

MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent != PACKAGE or path.stem not in ("__init__", "__main__")
}


def room(module: str) -> str:
    return module.split(".")[0]


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


STATEMENT = re.compile(r"^[ \t]*((?:from [\w.]+ import (?:\([^)]*\)|[^(\n]+)|import [^\n]+))$", re.MULTILINE)


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports anywhere, inside functions too.

    Its statements alone are parsed: the syntax of all files takes longer than all other fast tests of the house.
    """
    names: set[str] = set()
    for statement in STATEMENT.findall(text_of(path)):
        # A sentence of a docstring is no statement.
        with contextlib.suppress(SyntaxError):
            for node in ast.parse(statement).body:
                if isinstance(node, ast.Import):
                    names |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def called(path: Path, names: Collection[str]) -> set[str]:
    """Which of these names a file calls."""
    if not re.search(rf"\b(?:{'|'.join(names)})\(", text_of(path)):
        return set()
    calls = (node.func for node in ast.walk(syntax(path)) if isinstance(node, ast.Call))
    return {getattr(function, "id", "") for function in calls} & {*names}


def says_pure(path: Path) -> bool:
    docstring = text_of(path).split('"""')[1]
    return docstring.split("\n\n")[0].rstrip().endswith("Pure.")


def test_the_top_of_the_package_is_the_list_of_doors() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.name not in ("__pycache__", "_bundled")}
    rooms = {name if (PACKAGE / name).is_dir() else f"{name}.py" for name in DOORS}
    assert there == rooms | {"__init__.py", "__main__.py", "py.typed"}


def test_imports_point_up_the_list_of_doors() -> None:
    for module, name in ((module, name) for module, path in MODULES.items() for name in imported(path)):
        assert name != "judge", f"{module} imports the package that holds it"
        if name.startswith("judge."):
            assert DOORS.index(name.split(".")[1]) <= DOORS.index(room(module)), f"{module} imports {name}"


def test_an_extra_imports_no_other() -> None:
    """So that the folder of each can be deleted alone."""
    for module, path in MODULES.items():
        if module.startswith("extra."):
            beside = {name for name in imported(path) if name.startswith("judge.extra.")}
            assert {name.split(".")[2] for name in beside} <= {module.split(".")[1]}, module


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        # Types and their aliases; constants are in capitals.
        for name in re.findall(r"^(?:class (\w+)\b|([A-Z]\w*) = )", text_of(path), re.MULTILINE):
            if (public := name[0] or name[1])[0].isupper() and not public.isupper():
                homes.setdefault(public, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_there_is_no_import_cycle_between_modules() -> None:
    below = {
        module: {name.removeprefix("judge.") for name in imported(path)} & MODULES.keys() - {module}
        for module, path in MODULES.items()
    }
    while leaves := {module for module, targets in below.items() if not targets & below.keys()}:
        below = {module: targets for module, targets in below.items() if module not in leaves}
    assert not below, f"cycle among {sorted(below)}"


def test_pure_modules_do_no_io() -> None:
    for module, path in MODULES.items():
        if room(module) in PURE_ROOMS or says_pure(path):
            names = {name for name in imported(path) if not name.startswith(HARMLESS)}
            if "pathlib.PurePath" in imported(path):
                names -= {"pathlib"}
            calls = called(path, ("open", "print", "input"))
            assert not {name.split(".")[0] for name in names} & IMPURE | calls, module


def test_only_the_loop_the_models_and_the_desk_are_asynchronous() -> None:
    asynchronous = {module for module, path in MODULES.items() if "asyncio" in imported(path)}
    assert {module for module in asynchronous if not {module, room(module)} & ASYNC} == set()


OPENERS = {"open_model", "Journal", "assess", "forecast"}
OPENS = {"ask.asking", "ask.forecast", "ask.opening", "jobs.doctor", "extra.scale.ray", "extra.scale.batches"}
"""The one way to ask, and what it would send; workers of a cluster, each with a model of its own; the doctor, which
tries judges outside any journal; and completions, which other engines bring."""


def test_nothing_else_opens_a_model_or_a_journal() -> None:
    beside = {module: path for module, path in MODULES.items() if room(module) != "judges"}
    assert {module for module, path in beside.items() if called(path, OPENERS)} == OPENS


def test_every_room_has_fast_tests(request: pytest.FixtureRequest) -> None:
    if request.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        pytest.skip("not all tests were collected")
    folder = Path(__file__).parent
    fast = {item.path.relative_to(folder).parts[0] for item in request.session.items
            if item.path.is_relative_to(folder) and item.get_closest_marker("fast")}  # fmt: skip
    assert {path.parent.name for path in folder.glob("*/test_*.py")} <= fast


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import judge",
        "import contextlib, judge.cli\nwith contextlib.suppress(SystemExit):\n    judge.cli.main(['--help'])",
        "import contextlib, judge.cli\nwith contextlib.suppress(SystemExit):\n    judge.cli.main(['--version'])",
    ],
)
def test_starting_up_loads_nothing_heavy(code: str) -> None:
    heavy = ["litellm", "openai", "spacy", "numpy", "scipy", "matplotlib", "pydantic", "aiohttp", "asyncio", "rich",
             "openvino_genai", "krippendorff", "msgspec", "polars", "starlette", "uvicorn", "jinja2"]  # fmt: skip
    check = f"\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_no_module_compares_the_name_of_a_backend() -> None:
    """Outside of the backends themselves, no string is the name of a backend, alone or as a beginning."""
    names = {name for backend in BACKENDS for name in (backend, f"{backend}/")}

    def compared(node: ast.AST) -> list[ast.expr]:
        match node:
            case ast.Compare(left=left, comparators=right):
                return [left, *right]
            case ast.Call(func=ast.Attribute(attr="startswith" | "removeprefix" | "get"), args=args):
                return args
        return []

    assert not [
        (module, node.lineno)
        for module, path in MODULES.items()
        # Ray's word for this machine; a name of the catalog with the backend before it.
        if module not in ("jobs.run_inputs", "cli.models")
        for node in ast.walk(syntax(path))
        for value in compared(node)
        for part in ast.walk(value)
        if isinstance(part, ast.Constant) and part.value in names
    ]
