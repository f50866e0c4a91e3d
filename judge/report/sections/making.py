"""How the judgments were made: versions, options, and digests of everything that was read. Pure."""

from collections.abc import Iterator
from typing import Any

import msgspec

from judge.report.folders import RunFolder
from judge.report.parts import Facts, Folded, ReportTable, Said, Section
from judge.text.cells import count
from judge.text.safe import printable
from judge.text.table import Table


def made(folder: RunFolder) -> Iterator[Section]:
    """The manifest, folded away; no section where there is none."""
    manifest = folder.manifest
    if not manifest:
        return
    configuration = manifest.get("configuration", {})
    parts: list[Said | Facts | ReportTable] = [Facts(tuple(_facts(manifest, configuration)))]
    runs = configuration.get("runs")
    if isinstance(runs, dict) and runs:
        lines = tuple((printable(str(run_id)), printable(str(digest))) for run_id, digest in runs.items())
        parts.append(
            ReportTable(Table(lines, ("run", "SHA-256 of its file"), "The runs"), "The files as they were read.")
        )
    options = configuration.get("options")
    if isinstance(options, dict) and options:
        lines = tuple((printable(name), _plain(value)) for name, value in options.items())
        parts.append(
            ReportTable(Table(lines, ("option", "value"), "How the judge was asked"), "The same for every question.")
        )
    argv = manifest.get("argv")
    words = " ".join(printable(str(word)) for word in argv) if isinstance(argv, list) else ""
    said = Said(
        "Everything that these numbers depend on. The same inputs, options and journal give the same files again, byte "
        "for byte; manifest.json holds this in full."
    )
    parts = [said, *([Facts((("Command", f"judge {words}"),))] if words else []), *parts]
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
