"""Prompt files that are made from gold: what they are made of, and how they are written."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from judge.ask.prompt_file import parse_criterion
from judge.ask.results import Labels
from judge.errors import UsageError
from judge.gold.seal import refuse_other
from judge.io.folder import write_atomic
from judge.io.text import count, examples
from judge.records import Criterion, Example


def only_judge(columns: Sequence[Labels], source: str, prompts: str) -> Labels:
    """The labels of the one judge that was asked under some prompts, which are named in words.

    A UsageError if there is none, or there are several.
    """
    if len(columns) != 1:
        found = examples([f"{labels.judge} under {labels.prompt}" for labels in columns]) or "none"
        raise UsageError(f"{source}: expected the grades of one judge under {prompts} (--judge NAME), found {found}")
    return columns[0]


def write_prompt(path: Path, text: str) -> Criterion:
    """Write the text of a prompt file, once it is found to be one; a UsageError if another prompt is there."""
    content = text.encode()
    criterion = parse_criterion(content, path.stem, str(path))
    refuse_other(path, content, "there already, with another content; a prompt is never replaced: name another file")
    write_atomic(path, content)
    return criterion


def comments_warning(shown: Iterable[Example], file: str) -> str:
    """That examples have comments, which somebody should read before they go anywhere; empty where none has one."""
    comments = sum(example.comment is not None for example in shown)
    if not comments:
        return ""
    return (
        f"{count(comments, 'example')} with an assessor's comment, which may name people: read `comment` in {file} "
        "before it is sent or published"
    )
