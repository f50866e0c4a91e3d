"""The house keeps its walls: imports point down, pure modules stay pure, and starting up stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "judge"

LAYERS = [
    {"errors", "records", "findings"},
    {"ids", "text", "provenance", "files", "bundle"},
    {"tokens", "reply", "verdict", "prompt", "pool", "stats", "trec"},
    {
        "topics",
        "runs",
        "front_matter",
        "criteria",
        "gold",
        "labels",
        "families",
        "certificate",
        "journal",
        "qrels",
        "bank",
    },
    {"models", "entries", "checks", "validate", "passages", "dialogue", "provenance_run"},
    {"assess", "calibrate", "leaderboard", "corrected", "effectiveness", "encoder", "screen", "selection"},
    {"report", "crowd", "intake", "fix", "convert", "selection_files", "sensitivity"},
    {"run_choice", "manifest", "outputs", "members", "mixed"},
    {"pooling"},
    {"harness", "trial"},
    {"cli"},
]
"""From the ground up; a module may import from its own layer and from below."""

PURE = {
    "records",
    "errors",
    "ids",
    "text",
    "provenance",
    "checks",
    "validate",
    "reply",
    "front_matter",
    "pool",
    "bank",
    "prompt",
    "verdict",
    "leaderboard",
    "qrels",
    "stats",
    "findings",
    "corrected",
    "entries",
    "provenance_run",
    "screen",
    "selection",
    "sensitivity",
}
IMPURE = {"asyncio", "datetime", "io", "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess",
          "sys", "tempfile", "threading", "time", "urllib", "uuid", "sqlite3", "aiohttp", "httpx"}  # fmt: skip
ASYNC = {"assess", "models", "journal"}
"""Where asyncio may be; the journal's writer wakes the loop that waits for it."""


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__main__.py"
    }


def room(module: str) -> str:
    return module.split(".")[0]


def imported(path: Path) -> set[str]:
    """Every module that a file imports anywhere, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def layer(name: str) -> int:
    return next(level for level, names in enumerate(LAYERS) if name in names)


def test_every_room_has_its_layer() -> None:
    rooms = {room(module) for module in modules()} - {"__init__"}
    assert rooms == set().union(*LAYERS)


@pytest.mark.parametrize("module", [module for module in modules() if module != "__init__"])
def test_imports_point_down(module: str) -> None:
    for name in imported(modules()[module]):
        if name.startswith("judge.") and name.split(".")[1] in set().union(*LAYERS):
            assert layer(name.split(".")[1]) <= layer(room(module)), f"{module} imports {name}"


def test_there_is_no_import_cycle_between_rooms() -> None:
    arrows = {
        (room(module), name.split(".")[1])
        for module, path in modules().items()
        if module != "__init__"
        for name in imported(path)
        if name.startswith("judge.")
    }
    rooms = {one for pair in arrows for one in pair}
    below = {one: {target for source, target in arrows if source == one and target != one} for one in rooms}
    while leaves := {one for one, targets in below.items() if not targets & below.keys()}:
        below = {one: targets for one, targets in below.items() if one not in leaves}
    assert not below, f"cycle among {sorted(below)}"


@pytest.mark.parametrize("module", [module for module in modules() if room(module) in PURE])
def test_pure_modules_do_no_io(module: str) -> None:
    touched = {name.split(".")[0] for name in imported(modules()[module])}
    assert not touched & IMPURE
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "print", "input"}


@pytest.mark.parametrize("module", [module for module in modules() if room(module) not in ASYNC])
def test_only_the_loop_and_the_models_are_asynchronous(module: str) -> None:
    assert "asyncio" not in imported(modules()[module])


def test_calibration_does_not_import_the_loop() -> None:
    for path in (PACKAGE / "calibrate").glob("*.py"):
        assert not any(name.startswith("judge.assess") for name in imported(path))


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
             "xllamacpp", "krippendorff", "msgspec", "polars"]  # fmt: skip
    check = f"\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
