"""prompts/<criterion>/<variant>.md → Criterion, by name; a new criterion or variant is a new file.

A criterion named without a variant means the variant `graded`, or the only variant.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from judge.ask.prompt import OF_NUGGETS, only_asked_by
from judge.errors import UsageError
from judge.io.files import StrPath, read_stored, several
from judge.io.ids import groups_of, natural_key
from judge.io.installed import bundled
from judge.io.text import did_you_mean
from judge.plugins import added
from judge.records import Criterion

DEFAULT = "graded"
"""The variant that a criterion's name alone means."""
ALIASES: Mapping[str, str] = {
    "faithfulness": "groundedness",
    "hallucination": "groundedness",
    "answer_relevancy": "relevance",
    "answer_relevance": "relevance",
    "helpfulness": "usefulness",
    "answer_correctness": "correctness",
    "factual_correctness": "correctness",
}
"""What other tools call a criterion, in small letters with `_` between words, to its name here."""


def own_name(name: str) -> str:
    """The name of a criterion here for what other tools call it; any other name as it is.

    >>> own_name("Answer relevancy"), own_name("groundedness")
    ('relevance', 'groundedness')
    """
    return ALIASES.get(_plain(name), name)


def is_opposite(name: str) -> bool:
    """Whether a high grade of what other tools call so is a low one here."""
    return _plain(name) == "hallucination"


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def alias_notes(names: Iterable[str]) -> tuple[str, ...]:
    """What is judged for the names of other tools, a sentence each."""
    notes = []
    for name in dict.fromkeys(names):
        own = own_name(name)
        if own == name:
            continue
        inverse = ": the opposite, so a high grade means no hallucination" if is_opposite(name) else ""
        notes.append(f"{name} is called {own} here{inverse}")
    return tuple(notes)


def load_criterion(path: StrPath) -> Criterion:
    """Read and check one prompt file; an InputError lists all of its problems."""
    # It loads pydantic, which takes longer than a command without prompts may.
    from judge.ask.prompt_file import parse_criterion

    path = Path(path)
    stored = read_stored(path)
    folder = next((folder for folder in _folders() if path.is_relative_to(folder)), None)
    name = f"prompts/{path.relative_to(folder).as_posix()}" if folder is not None else str(path)
    return parse_criterion(stored, path.stem, name)


def find_criterion(name_or_path: StrPath, own: Mapping[str, Criterion] | None = None) -> Criterion:
    """The prompt called `criterion` or `criterion/variant`, or the prompt in a file of the user.

    The user's `own` prompts, by `criterion/variant`, have precedence over bundled ones. A UsageError if there is
    neither a bundled prompt nor a file of that name. An InputError if the file is missing or has problems.
    """
    name = os.fspath(name_or_path)
    if own is not None and name in own:
        return own[name]
    return load_criterion(prompt_path(name))


def choose_prompts(
    names: Sequence[str],
    prompts: StrPath | Sequence[StrPath],
    default: Sequence[str],
    instead: Mapping[str, str] | None = None,
) -> dict[str, list[Criterion]]:
    """The criteria to judge, sorted by name, each with its prompts.

    They are those of `prompts` and, each under its default prompt, those of `names`; without both, `default`. `instead`
    is criterion to the prompt that takes the place of its default one. A UsageError if a criterion or prompt is
    unknown. An InputError if a prompt file has problems.
    """
    chosen: dict[str, list[Criterion]] = {}
    for prompt in several(prompts):
        criterion = find_criterion(prompt)
        if criterion.name in OF_NUGGETS:
            raise UsageError(only_asked_by(criterion))
        chosen.setdefault(criterion.name, []).append(criterion)
    for name in map(own_name, names or (() if chosen else default)):
        if name not in chosen:
            chosen[name] = [find_criterion((instead or {}).get(name, name))]
    return {name: chosen[name] for name in sorted(chosen)}


def prompt_path(name_or_path: StrPath) -> Path:
    """The file that `find_criterion` reads, a bundled prompt before a path; a UsageError if there is neither."""
    name_or_path = os.fspath(name_or_path)
    known = _known()
    name = default_prompts().get(name_or_path, name_or_path)
    if name in known:
        return known[name]
    if name_or_path in criterion_names():
        raise UsageError(
            f"{name_or_path} has several prompts and no default one: name one of "
            f"{', '.join(prompt for prompt in known if prompt.startswith(f'{name_or_path}/'))}, or rename the file of "
            f"the default prompt to {DEFAULT}.md"
        )
    if name_or_path.endswith(".md") or Path(name_or_path).is_file():
        return Path(name_or_path)
    hint = did_you_mean(name_or_path, [*known, *criterion_names()])
    raise UsageError(
        f"no prompt called {name_or_path!r}{hint} (expected one of {', '.join(known)}, or the path of a .md file)"
    )


def criterion_names() -> tuple[str, ...]:
    """The criteria of responses that have a bundled prompt, sorted; only names of files are read.

    The criteria about nuggets are not among them, since a response alone cannot be asked about them.
    """
    return tuple(sorted({path.parent.name for path in _known().values()} - OF_NUGGETS.keys()))


def default_prompts() -> dict[str, str]:
    """Criterion to its default prompt `criterion/variant`; a criterion without a default prompt is left out."""
    variants = groups_of((path.parent.name, path.stem) for path in _known().values())
    return {
        criterion: f"{criterion}/{DEFAULT if DEFAULT in stems else stems[0]}"
        for criterion, stems in variants.items()
        if DEFAULT in stems or len(stems) == 1
    }


def bundled_criteria() -> tuple[Criterion, ...]:
    """Every prompt that comes with this installation, in natural order."""
    return tuple(map(load_criterion, _known().values()))


def _known() -> dict[str, Path]:
    """The files of the installed prompts by `criterion/variant`, in natural order; only names of files are read.

    A UsageError if two packages have a prompt of one name.
    """
    files: dict[str, Path] = {}
    for folder in _folders():
        for path in folder.glob("*/*.md"):
            name = f"{path.parent.name}/{path.stem}"
            if name in files:
                raise UsageError(f"{path}: there is a prompt {name} already, in {files[name]}")
            files[name] = path
    return dict(sorted(files.items(), key=lambda named: natural_key(named[0])))


def _folders() -> tuple[Path, ...]:
    """The folders of installed prompts: our own, and those of other packages."""
    return bundled("prompts"), *added("prompts", ()).values()
