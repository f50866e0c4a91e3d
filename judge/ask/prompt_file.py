"""The bytes of a prompt file → Criterion, or every problem with its line. Pure.

A prompt file is TOML between two `+++` lines, then Markdown under the headings `# System` and `# User`. The variant's
name is the file's; the digest is that of the file's bytes.
"""

import re
from collections.abc import Sequence

from judge.ask.blocks import BLOCKS
from judge.ask.front_matter import (
    KeyLines,
    LevelFields,
    LineProblem,
    check_front_matter,
    label_of,
    read_front_matter,
)
from judge.ask.prompt import PLACEHOLDER, PLACEHOLDERS
from judge.errors import InputError
from judge.files.stored import sha256
from judge.records import Criterion, Level, Problem, Rollup, Scale
from judge.text.cells import count

_FENCE = "+++"
_SYSTEM, _USER = "# System", "# User"
_VARIANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


def parse_criterion(stored: bytes, variant: str, name: str) -> Criterion:
    """Check the bytes of a prompt file.

    Args:
        stored: The bytes.
        variant: The name of the variant, which is that of the file without `.md`.
        name: The file, as messages name it.

    Raises:
        InputError: There are problems; `problems` lists all of them, by line.
    """
    problems: list[LineProblem] = []
    criterion = _read(stored, variant, name, problems)
    if problems or criterion is None:
        raise _bad(name, problems)
    return criterion


def _bad(file: str, line_problems: Sequence[LineProblem]) -> InputError:
    problems = [prompt_problem(file, problem) for problem in sorted(set(line_problems))]
    return InputError(f"{file}: not a usable prompt, {count(len(problems), 'problem')}", problems)


def prompt_problem(file: str, problem: LineProblem) -> Problem:
    """The problem with its file."""
    return Problem(problem.code, "error", file, None, f"line {problem.line}", problem.message)


def _read(stored: bytes, variant: str, file: str, problems: list[LineProblem]) -> Criterion | None:
    """The criterion in a file's bytes; useless if anything was added to `problems`."""
    try:
        text = stored.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = stored.count(b"\n", 0, error.start) + 1
        problems.append(LineProblem(line, "prompt_syntax", f"not UTF-8: {error.reason} at byte {error.start}"))
        return None
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    if len(fences) < 2 or fences[0]:
        message = "expected TOML front matter between a first line `+++` and a second line `+++`"
        problems.append(LineProblem(1, "prompt_syntax", message))
        return None
    if not _VARIANT.fullmatch(variant):
        message = f"file name {variant!r} cannot name a variant: letters, digits, `_`, `-` and `.` only"
        problems.append(LineProblem(1, "prompt_name", message))
    front_lines = lines[1 : fences[1]]
    front = read_front_matter(front_lines, problems)
    keys = KeyLines(front_lines)
    inputs = front.inputs if front else None
    system, user = _body(lines, fences[1] + 1, inputs, keys.of("inputs"), problems)
    if front is None:
        return None
    check_front_matter(front, keys, problems)
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
        # The label of a sentence has no grade of its own; its place in the file takes that field.
        sentence_levels=tuple(
            Level(place, fields.label, _flat(fields.description)) for place, fields in enumerate(front.sentence_level)
        ),
        rollup=Rollup(front.rollup.label, tuple(front.rollup.cuts), front.rollup.ignored) if front.rollup else None,
        system=system,
        user=user,
        file=file,
        digest=sha256(stored),
        unit=front.unit,
    )


def _level(fields: LevelFields) -> Level:
    return Level(fields.grade, label_of(fields), _flat(fields.description))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _body(
    lines: Sequence[str], start: int, inputs: Sequence[str] | None, inputs_line: int, problems: list[LineProblem]
) -> tuple[str, str]:
    """The system and the user part of the body, with their headings and placeholders checked.

    Args:
        lines: The whole file.
        start: The index of the first line of the body.
        inputs: The declared inputs; None if they could not be read.
        inputs_line: The number of the line that declares them.
        problems: The list that problems are added to.
    """
    parts: dict[str, list[str]] = {}
    used: set[str] = set()
    part: str | None = None

    def note(number: int, code: str, message: str) -> None:
        problems.append(LineProblem(number, code, message))

    for number, line in enumerate(lines[start:], start + 1):
        heading = line.rstrip()
        if heading in (_SYSTEM, _USER):
            if heading in parts or (heading == _SYSTEM and parts):
                note(number, "prompt_heading", f"`{heading}` is repeated or out of order")
            part = heading
            parts.setdefault(part, [])
            continue
        if part is not None:
            parts[part].append(line)
        elif heading:
            note(number, "prompt_heading", f"text before the heading `{_SYSTEM}`")
        for name in PLACEHOLDER.findall(line):
            used.add(name)
            if name not in PLACEHOLDERS:
                expected = ", ".join(PLACEHOLDERS)
                note(number, "prompt_placeholder", f"unknown placeholder {{{{{name}}}}}, expected one of {expected}")
            elif name in BLOCKS and inputs is not None and name not in inputs:
                note(number, "prompt_input", f"{{{{{name}}}}} is used but not declared in `inputs`")
            if name in BLOCKS and part == _SYSTEM:
                note(number, "prompt_placeholder", f"{{{{{name}}}}} is material to assess: it belongs under `{_USER}`")
        rest = PLACEHOLDER.sub("", line)
        if "{{" in rest or "}}" in rest:
            note(number, "prompt_placeholder", "`{{` or `}}` without its partner or a name")
    texts = {heading: "\n".join(part_lines).strip() for heading, part_lines in parts.items()}
    for heading in (_SYSTEM, _USER):
        if not texts.get(heading):
            note(len(lines), "prompt_heading", f"there is no text under a heading `{heading}`")
    for name in ("levels", "answer"):
        if name not in used:
            note(len(lines), "prompt_placeholder", f"the text ends without {{{{{name}}}}}")
    for name in inputs or ():
        if name in BLOCKS and name not in used:
            note(inputs_line, "prompt_input", f"input {name!r} is declared but {{{{{name}}}}} is not in the text")
    return texts.get(_SYSTEM, ""), texts.get(_USER, "")
