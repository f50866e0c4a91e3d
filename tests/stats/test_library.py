"""Statistics that no command calls are there for readers of docs/calibration.md, or not at all."""

import ast
import importlib
import re

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.long

DOCUMENTED = dict(
    re.findall(
        r"^\| `(\w+)` \| `(judge\.stats\.\w+)` \|",
        (PROJECT / "docs" / "calibration.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)


def test_every_function_without_a_caller_is_documented_and_no_other() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (PROJECT / "judge").rglob("*.py")}
    imported = {
        (node.module, alias.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    # `consensus.majority` and the like: modules of statistics that are used as a whole.
    attributes = {node.attr for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    idle = {}
    for path, tree in trees.items():
        if path.parent.name != "stats":
            continue
        module = f"judge.stats.{path.stem}"
        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        whole = ("judge.stats", path.stem) in imported
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                used = (module, node.name) in imported or node.name in named or (whole and node.name in attributes)
                idle |= {} if used else {node.name: module}
    assert idle == DOCUMENTED


def test_documented_functions_have_a_worked_example() -> None:
    for name, module in DOCUMENTED.items():
        assert ">>> " in getattr(importlib.import_module(module), name).__doc__, name
