"""The text of a prompt file with examples or cuts added. Pure."""

import re
from collections.abc import Sequence

from judge.ask.prompt import EXAMPLES
from judge.errors import UsageError
from judge.io.plan import toml_text
from judge.records import Criterion, Example

_FENCE = "+++"
_USER = "# User"
_INPUTS = re.compile(r"^([ \t]*inputs[ \t]*=[ \t]*\[)")
_CUTS = re.compile(r"[ \t]*cuts[ \t]*=[ \t]*\[[^\]]*\][ \t]*(#.*)?$")
_SHOWN = ("Graded examples:", f"{{{{{EXAMPLES}}}}}", "", "The one to grade:")
"""What is put below the heading of the user's message in a prompt without a place for examples."""


def with_examples(text: str, criterion: Criterion, examples: Sequence[Example]) -> str:
    """The text of a prompt's file with examples at the end of its front matter.

    A prompt that does not show examples yet shows them at the beginning of the user's message. A UsageError if the file
    has examples already, or it cannot be told where its inputs are.
    """
    if criterion.examples:
        raise UsageError(f"{criterion.file}: has examples already: name the prompt that they were added to")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    first, last = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    front = lines[first + 1 : last]
    body = lines[last:]
    if EXAMPLES not in criterion.inputs:
        front = _declared(front, criterion)
        heading = next(number for number, line in enumerate(body) if line.rstrip() == _USER)
        below = body[heading + 1 :]
        while below and not below[0].strip():
            below.pop(0)
        body = [*body[: heading + 1], "", *_SHOWN, *below]
    return "\n".join([*lines[: first + 1], *front, *map(_table, examples), *body])


def with_cuts(text: str, criterion: Criterion, cuts: Sequence[float]) -> str:
    """The text of a prompt's file with these cuts in place of any others; a UsageError if those cannot be found."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    first, last = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    # Levels may be tables within a line, and then no table of its own begins before the end.
    table = next((number for number in range(first + 1, last) if lines[number].lstrip().startswith("[")), last)
    before = lines[first + 1 : table]
    front = [line for line in before if not _CUTS.match(line)]
    if bool(criterion.cuts) != (len(front) < len(before)):
        raise UsageError(f"{criterion.file}: write its `cuts` on one line before the first table")
    while front and not front[-1].strip():
        front.pop()
    front += toml_text({"cuts": cuts}).splitlines()
    if table < last:
        front.append("")
    return "\n".join([*lines[: first + 1], *front, *lines[table:]])


def _declared(front: Sequence[str], criterion: Criterion) -> list[str]:
    """The lines of a front matter with examples among the inputs."""
    places = [number for number, line in enumerate(front) if _INPUTS.match(line)]
    if len(places) != 1:
        raise UsageError(
            f'{criterion.file}: write "{EXAMPLES}" into its `inputs` and {{{{{EXAMPLES}}}}} below `{_USER}`'
        )
    (place,) = places
    return [*front[:place], _INPUTS.sub(rf'\1"{EXAMPLES}", ', front[place]), *front[place + 1 :]]


def _table(example: Example) -> str:
    """An example as lines of a front matter."""
    named = toml_text({"turn_id": example.turn_id, "response_sha256": example.response_sha256, "grade": example.grade})
    if example.comment is not None:
        named += toml_text({"comment": example.comment})
    return f"\n[[example]]\n{named}[example.shown]\n{toml_text(dict(example.shown))}".rstrip("\n")
