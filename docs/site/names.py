"""The public Python API: every name of `judge.__all__`, by room, with signature, fields and docstring."""

import inspect
from typing import Any

import judge
from docs.site.docstrings import fields, markdown
from docs.site.markdown import cell, code, table
from docs.site.statistics import signature

PAGE = "reference/python.md"


def homes() -> dict[str, tuple[str, Any]]:
    """Public name to its module and what it names; names with underscores are left out."""
    found = {}
    for name in judge.__all__:
        if not name.startswith("_"):
            module = judge._public()[name]
            found[name] = (module, getattr(judge, name))
    return found


def names_page() -> dict[str, str]:
    """The page of the public names: jobs first, each a function beside its plan, then the rest, by module."""
    modules: dict[str, list[str]] = {}
    for name, (module, _) in homes().items():
        modules.setdefault(module, []).append(name)
    parts = [
        "# Python\n\nEverything below is a name of the package: `judge.run`, `judge.Plan`. Nothing heavy is imported "
        "before a name is asked for. Each job is a plan and a function that takes it; commands and Python share them.",
        markdown((judge.__doc__ or "").partition("\n\n")[2]),
    ]
    for module, names in sorted(modules.items(), key=lambda each: (not each[0].startswith("judge.jobs"), each[0])):
        parts.append(f"## {code(module)}")
        for name in sorted(names, key=str.lower):
            parts += _entry(name, homes()[name][1])
    return {PAGE: "\n\n".join(part for part in parts if part) + "\n"}


def _entry(name: str, found: Any) -> list[str]:
    text = found.__doc__ or ""
    parts = [f"### {code(name)}"]
    if inspect.isclass(found):
        rows = [
            (code(field), code(kind), code(default) if default else "", cell(about))
            for field, kind, default, about in fields(found)
        ]
        # The table has the arguments of a plan with their types.
        parts += [markdown(text.partition("\nArgs:")[0] if rows else text)]
        parts += [table(("field", "type", "default", "meaning"), rows)] if rows else []
        parts += _methods(found)
    else:
        parts += [signature(name, inspect.unwrap(found)), markdown(text)]
    return parts


def _methods(cls: type[Any]) -> list[str]:
    """The public methods that a class of ours defines itself."""
    rows = []
    for name, member in vars(cls).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        about = inspect.getdoc(member)
        if about:
            shown = name if isinstance(member, property) else f"{name}{_arguments(member)}"
            rows.append((code(shown), cell(about.split("\n\n")[0])))
    return [table(("method or property", "what it does"), rows)] if rows else []


def _arguments(function: Any) -> str:
    return f"({', '.join(name for name in inspect.signature(function).parameters if name != 'self')})"
