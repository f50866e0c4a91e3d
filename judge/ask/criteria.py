"""prompts/<criterion>/<variant>.md → Criterion, checked on load; a new criterion or variant is a new file.

A prompt file is TOML between two `+++` lines, then Markdown under the headings `# System` and `# User`. The variant's
name is the file's; the digest is that of the file's bytes. Every fault of a file is reported at once, with its line.
Where a criterion is named without a variant, `graded` is meant, or the only variant there is.
"""

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from judge.ask.front_matter import (
    Fault,
    KeyLines,
    LevelFields,
    check_front_matter,
    label_of,
    read_front_matter,
)
from judge.ask.prompt import BLOCKS, PLACEHOLDER, PLACEHOLDERS
from judge.errors import InputError, UsageError
from judge.files.bundle import bundled
from judge.files.paths import StrPath, several
from judge.files.stored import read_stored, sha256
from judge.records import Criterion, Level, Problem, Rollup, Scale
from judge.text.ids import natural_key

DEFAULT = "graded"
"""The variant that is meant when none is named."""
_FENCE = "+++"
_SYSTEM, _USER = "# System", "# User"
_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


def load_criterion(path: StrPath) -> Criterion:
    """Read and check one prompt file.

    Raises:
        InputError: The file is missing, or `problems` names everything that is wrong with it, by line.
    """
    path = Path(path)
    stored = read_stored(path)
    folder = bundled("prompts")
    shown = f"prompts/{path.relative_to(folder).as_posix()}" if path.is_relative_to(folder) else str(path)
    found: list[Fault] = []
    criterion = _read(stored, path.stem, shown, found)
    if found or criterion is None:
        raise _bad(shown, found)
    return criterion


def find_criterion(name_or_path: StrPath) -> Criterion:
    """The prompt called `criterion`, `criterion/variant`, or the one in a file of the user's own.

    Raises:
        UsageError: There is neither a bundled prompt nor a file of that name.
        InputError: The file is not a sound prompt.
    """
    return load_criterion(prompt_path(name_or_path))


def choose_prompts(
    names: Sequence[str] | None, prompts: StrPath | Sequence[StrPath], default: Sequence[str]
) -> dict[str, list[Criterion]]:
    """The criteria to judge, by name in order: each with the prompts given for it, else with its default.

    Without names they are those of the prompts, and without these `default`.

    Raises:
        UsageError: An unknown criterion.
    """
    chosen: dict[str, list[Criterion]] = {}
    for prompt in several(prompts):
        criterion = find_criterion(prompt)
        chosen.setdefault(criterion.name, []).append(criterion)
    for name in map(str, several(names)) if names is not None else () if chosen else default:
        if name not in criterion_names():
            raise UsageError(f"no criterion called {name!r}: there are {', '.join(criterion_names())}")
        if name not in chosen:
            chosen[name] = [find_criterion(name)]
    return {name: chosen[name] for name in sorted(chosen)}


def prompt_path(name_or_path: StrPath) -> Path:
    """The file that `find_criterion` would read; a bundled name goes before a path.

    Raises:
        UsageError: There is neither a bundled prompt nor a file of that name.
    """
    name_or_path = os.fspath(name_or_path)
    known = {f"{path.parent.name}/{path.stem}": path for path in _prompt_files(bundled("prompts"))}
    name = default_prompts().get(name_or_path, name_or_path)
    if name in known:
        return known[name]
    if name_or_path in criterion_names():
        raise UsageError(
            f"{name_or_path} has several prompts and no default one: name one of "
            f"{', '.join(one for one in known if one.startswith(f'{name_or_path}/'))}, or rename the file of the one "
            f"that is meant to {DEFAULT}.md"
        )
    if name_or_path.endswith(".md") or Path(name_or_path).is_file():
        return Path(name_or_path)
    near = difflib.get_close_matches(name_or_path, [*known, *criterion_names()], n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"no prompt called {name_or_path!r}.{hint} Expected one of {', '.join(known)}, or the path of a .md file"
    )


def criterion_names() -> tuple[str, ...]:
    """The criteria that have a bundled prompt, sorted; nothing is read but names of files."""
    return tuple(sorted({path.parent.name for path in _prompt_files(bundled("prompts"))}))


def default_prompts() -> dict[str, str]:
    """`criterion/variant` by criterion, of the bundled prompts; a criterion that leaves it open has none."""
    variants: dict[str, list[str]] = {}
    for path in _prompt_files(bundled("prompts")):
        variants.setdefault(path.parent.name, []).append(path.stem)
    return {
        criterion: f"{criterion}/{DEFAULT if DEFAULT in stems else stems[0]}"
        for criterion, stems in variants.items()
        if DEFAULT in stems or len(stems) == 1
    }


def bundled_criteria() -> tuple[Criterion, ...]:
    """Every prompt that comes with this installation, in natural order.

    Raises:
        InputError: Some are not sound; `problems` names the faults of all.
    """
    return load_folder(bundled("prompts"))


def load_folder(folder: StrPath) -> tuple[Criterion, ...]:
    """Every prompt of a folder laid out as `<criterion>/<variant>.md`.

    Raises:
        InputError: Some are not sound, say they belong to another criterion, or share a name.
    """
    folder = Path(folder)
    criteria: dict[str, Criterion] = {}
    problems: list[Problem] = []
    for path in _prompt_files(folder):
        try:
            criterion = load_criterion(path)
        except InputError as error:
            if not error.problems:
                raise
            problems += error.problems
            continue
        if criterion.name != path.parent.name:
            message = f"criterion is {criterion.name!r} but the file lies in the folder {path.parent.name!r}"
            problems.append(_problem(criterion.file, Fault(_criterion_line(path), "prompt_name", message)))
        # Two names that differ only in case are one file on some systems.
        other = criteria.setdefault(criterion.prompt_id.casefold(), criterion)
        if other is not criterion:
            message = f"{criterion.prompt_id!r} is also the name of {other.file}"
            problems.append(_problem(criterion.file, Fault(_criterion_line(path), "prompt_name", message)))
    if problems:
        raise InputError(f"{folder}: {len(problems)} problem(s) in prompt files", problems)
    return tuple(criteria.values())


def _prompt_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.md"), key=lambda path: natural_key(f"{path.parent.name}/{path.stem}"))


def _criterion_line(path: Path) -> int:
    return KeyLines(read_stored(path).decode().splitlines()[1:]).of("criterion")


def _bad(shown: str, found: Sequence[Fault]) -> InputError:
    problems = [_problem(shown, each) for each in sorted(set(found))]
    return InputError(f"{shown}: not a usable prompt, {len(problems)} problem(s)", problems)


def _problem(shown: str, found: Fault) -> Problem:
    return Problem(found.code, "error", shown, None, f"line {found.line}", found.message)


def _read(stored: bytes, variant: str, shown: str, faults: list[Fault]) -> Criterion | None:
    """The criterion in a file's bytes; of no use if anything was added to `faults`."""
    try:
        text = stored.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = stored.count(b"\n", 0, error.start) + 1
        faults.append(Fault(line, "prompt_syntax", f"not UTF-8: {error.reason} at byte {error.start}"))
        return None
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(fences) < 2 or fences[0]:
        message = "expected TOML front matter between a first line `+++` and a second line `+++`"
        faults.append(Fault(1, "prompt_syntax", message))
        return None
    if not _VARIANT.fullmatch(variant):
        message = f"file name {variant!r} cannot name a variant: letters, digits, `_`, `-` and `.` only"
        faults.append(Fault(1, "prompt_name", message))
    front_lines = lines[1 : fences[1]]
    front = read_front_matter(front_lines, faults)
    keys = KeyLines(front_lines)
    inputs = front.inputs if front else None
    system, user = _body(lines, fences[1] + 1, inputs, keys.of("inputs"), faults)
    if front is None:
        return None
    check_front_matter(front, keys, faults)
    return Criterion(
        name=front.criterion,
        variant=variant,
        version=front.version,
        inputs=tuple(front.inputs),
        answer=front.answer,
        scale=Scale(
            levels=tuple(map(_level, front.level)),
            polarity=front.polarity,
            positive=tuple(sorted(front.positive)),
            unable=_level(front.unable) if front.unable else None,
        ),
        # A sentence's label carries no grade of its own; its place in the file stands in.
        sentence_levels=tuple(
            Level(place, each.label, _flat(each.description)) for place, each in enumerate(front.sentence_level)
        ),
        rollup=Rollup(front.rollup.label, tuple(front.rollup.cuts), front.rollup.ignored) if front.rollup else None,
        system=system,
        user=user,
        file=shown,
        digest=sha256(stored),
    )


def _level(fields: LevelFields) -> Level:
    return Level(fields.grade, label_of(fields), _flat(fields.description))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _body(
    lines: Sequence[str], start: int, inputs: Sequence[str] | None, inputs_line: int, faults: list[Fault]
) -> tuple[str, str]:
    """The two parts of the body, their headings and placeholders checked.

    Args:
        lines: The whole file.
        start: Where in it the body begins.
        inputs: The declared inputs; None if they could not be read.
        inputs_line: Where they are declared.
        faults: Takes what is wrong.
    """
    parts: dict[str, list[str]] = {}
    used: set[str] = set()
    part: str | None = None

    def fault(number: int, code: str, message: str) -> None:
        faults.append(Fault(number, code, message))

    for number, line in enumerate(lines[start:], start + 1):
        heading = line.rstrip()
        if heading in (_SYSTEM, _USER):
            if heading in parts or (heading == _SYSTEM and parts):
                fault(number, "prompt_heading", f"`{heading}` is repeated or out of order")
            part = heading
            parts.setdefault(part, [])
            continue
        if part is not None:
            parts[part].append(line)
        elif heading:
            fault(number, "prompt_heading", f"text before the heading `{_SYSTEM}`")
        for name in PLACEHOLDER.findall(line):
            used.add(name)
            if name not in PLACEHOLDERS:
                expected = ", ".join(PLACEHOLDERS)
                fault(number, "prompt_placeholder", f"unknown placeholder {{{{{name}}}}}, expected one of {expected}")
            elif name in BLOCKS and inputs is not None and name not in inputs:
                fault(number, "prompt_input", f"{{{{{name}}}}} is used but not declared in `inputs`")
            if name in BLOCKS and part == _SYSTEM:
                fault(number, "prompt_placeholder", f"{{{{{name}}}}} is material to assess: it belongs under `{_USER}`")
        rest = PLACEHOLDER.sub("", line)
        if "{{" in rest or "}}" in rest:
            fault(number, "prompt_placeholder", "`{{` or `}}` without its partner or a name")
    texts = {heading: "\n".join(part_lines).strip() for heading, part_lines in parts.items()}
    for heading in (_SYSTEM, _USER):
        if not texts.get(heading):
            fault(len(lines), "prompt_heading", f"there is no text under a heading `{heading}`")
    for name in ("levels", "answer"):
        if name not in used:
            fault(len(lines), "prompt_placeholder", f"the text ends without {{{{{name}}}}}")
    for name in inputs or ():
        if name in BLOCKS and name not in used:
            fault(inputs_line, "prompt_input", f"input {name!r} is declared but {{{{{name}}}}} is not in the text")
    return texts.get(_SYSTEM, ""), texts.get(_USER, "")
