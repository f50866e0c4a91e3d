"""The prompts of a review: those of the calibration, read only, and the wordings that are saved here."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal, NamedTuple

from judge.ask.criteria import bundled_criteria, load_criterion, prompt_path
from judge.ask.prompt_file import parse_criterion
from judge.errors import InputError, UsageError
from judge.io.folder import write_atomic
from judge.io.ids import natural_key
from judge.io.paths import StrPath
from judge.io.safe import shown, storable
from judge.io.stored import read_stored
from judge.records import Criterion

_CONTEXT = 2
"""Lines that both have, shown beside each change."""


class ShelvedPrompt(NamedTuple):
    """A prompt with the text of its file."""

    criterion: Criterion
    path: Path
    text: str
    own: bool
    """Whether it was saved at this desk; any other file is never written."""

    @property
    def name(self) -> str:
        """`criterion/variant`."""
        return self.criterion.prompt_id


class Shelf:
    """The prompts of a review.

    New wordings become `<criterion>/<variant>.md` in `home`; `wanted` are the prompts behind the judges, `given` names
    and files of the user's own prompts.
    """

    def __init__(self, home: Path, wanted: Iterable[str], given: Iterable[StrPath]) -> None:
        self.home = home
        self._known: dict[str, ShelvedPrompt] = {}
        for path in map(prompt_path, given):
            self._add(path)
        bundled = {prompt.prompt_id for prompt in bundled_criteria()}
        for name in wanted:
            # By name only: a file of disagreements must not make judge read some other path.
            if name in bundled and name not in self._known:
                self._add(prompt_path(name))

    def _add(self, path: Path) -> None:
        prompt = _shelved(path, own=False)
        known = self._known.setdefault(prompt.name, prompt)
        if known.criterion.digest != prompt.criterion.digest:
            raise UsageError(f"{path} and {known.path} are both called {prompt.name}: rename one of the files")

    def prompts(self) -> tuple[dict[str, ShelvedPrompt], tuple[str, ...]]:
        """Every prompt by name, and what is wrong with files that were saved here and changed since."""
        found, problems = dict(self._known), []
        for path in sorted(self.home.glob("*/*.md")):
            try:
                prompt = _shelved(path, own=True)
            except InputError as error:
                problems.append(str(error))
                continue
            if found.setdefault(prompt.name, prompt) is not prompt:
                problems.append(f"{path}: {prompt.name} is the name of {found[prompt.name].criterion.file} too")
        return dict(sorted(found.items(), key=lambda pair: natural_key(pair[0]))), tuple(problems)

    def save(self, base: ShelvedPrompt, variant: str, text: str, *, replace: bool = False) -> ShelvedPrompt:
        """Save a wording as a prompt file of its own.

        `replace` writes over a wording of this name that was saved here.
        """
        text = text.replace("\r\n", "\n").strip("\n") + "\n"
        if not storable(text):
            raise UsageError("The text holds a NUL or half of a character.")
        content = text.encode()
        criterion = parse_criterion(content, variant, f"{variant}.md")
        if criterion.name != base.criterion.name:
            raise UsageError(
                f"criterion is {shown(criterion.name)}: expected {shown(base.criterion.name)}, as the grades are of it"
            )
        # Names that differ only in case are one file on some systems.
        known = {name.casefold(): prompt for name, prompt in self.prompts()[0].items()}
        bundled = {prompt.prompt_id.casefold() for prompt in bundled_criteria()}
        name = criterion.prompt_id
        earlier = known.get(name.casefold())
        if (earlier is not None and not earlier.own) or name.casefold() in bundled:
            raise UsageError(f"{name} is a prompt that this desk does not write over: give another name")
        path = self.home / criterion.name / f"{variant}.md"
        if path.exists() and not replace and read_stored(path) != content:
            raise UsageError(f"{name} is saved here already: give another name, or choose to replace it")
        write_atomic(path, content)
        return ShelvedPrompt(load_criterion(path), path, text, own=True)

    def free_name(self, base: ShelvedPrompt) -> str:
        """A variant's name that no prompt has: the base's with the next number."""
        stem = base.criterion.variant.rpartition("-v")[0] if base.own else base.criterion.variant
        taken = {name.casefold() for name in self.prompts()[0]}
        number = 2
        while f"{base.criterion.name}/{stem}-v{number}".casefold() in taken:
            number += 1
        return f"{stem}-v{number}"


def _shelved(path: Path, *, own: bool) -> ShelvedPrompt:
    criterion = load_criterion(path)
    return ShelvedPrompt(criterion, path, read_stored(path).decode("utf-8-sig"), own)


class DiffLine(NamedTuple):
    """One line of a difference; `gap` stands for lines that both have and that are not shown."""

    kind: Literal["same", "old", "new", "gap"]
    text: str


def diff_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    r"""The lines of both texts with their kinds; lines that both have are shown near changes only.

    >>> [f"{line.kind}: {line.text}" for line in diff_lines("a\nb\nc", "a\nB\nc")]
    ['same: a', 'old: b', 'new: B', 'same: c']
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[DiffLine] = []
    shown = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if group[0][1] > shown:
            lines.append(_gap(group[0][1] - shown))
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [DiffLine("same", line) for line in before[i:j]]
            else:
                lines += [DiffLine("old", line) for line in before[i:j]]
                lines += [DiffLine("new", line) for line in after[k:m]]
        shown = group[-1][2]
    if lines and shown < len(before):
        lines.append(_gap(len(before) - shown))
    return tuple(lines)


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", f"{lines} line{'s' * (lines > 1)} that both have")
