"""The outputs that the pages show: their blocks carried out in order, and compared with what is printed under them.

    python -m docs.site.page_outputs docs/tutorial.md

Writes the blocks of output anew; a test fails where a page shows another output. A block of output is the block `text`
right after a block `sh` or `python`. A line `…` in it stands for any lines; such a block is compared, never written.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from judge.cli import main
from judge.cli.demo import write_example

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
UNSTEADY = ((re.compile(r"\d+(\.\d+)?/s\b"), "N/s"), (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DATE"))
"""What differs from call to call."""
OPERATORS = {"|", ">", "2>&1", "&&"}
ELSEWHERE = ("judge serve ", "judge models ", "make ", "pip ")
"""Commands that wait for somebody, or fetch something; tested elsewhere."""


def steps(text: str) -> Iterator[tuple[str, str, re.Match[str] | None]]:
    """Each block of commands or Python: its language, its text, and the block of output behind it."""
    found = list(BLOCK.finditer(text))
    for place, block in enumerate(found):
        behind = found[place + 1] if place + 1 < len(found) else None
        shown = behind if behind and behind[1] == "text" and not text[block.end() : behind.start()].strip() else None
        if block[1] in ("sh", "python"):
            yield block[1], block[2], shown


def carry_out(commands: str, skip: Callable[[str], bool]) -> str:
    """What the commands of a block print, as a terminal shows it.

    Raises:
        ValueError: A command failed.
    """
    printed = ""
    for command in commands.splitlines():
        if not command or command.startswith(ELSEWHERE) or skip(command):
            continue
        words = shlex.split(command, comments=True)
        if words[0] == "cd":
            os.chdir(words[1])
        elif words[0] == "judge" and not OPERATORS & set(words):
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
                code = main(words[1:])
            printed += stream.getvalue()
            if code not in (0, 1):
                raise ValueError(f"{command}: exit code {code}: {stream.getvalue()}")
        else:
            program = f'judge() {{ {shlex.quote(sys.executable)} -m judge "$@"; }}\n{command}'
            done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)  # noqa: S607 - the shell of the reader
            if done.returncode:
                raise ValueError(f"{command}: exit code {done.returncode}: {done.stderr}")
            printed += done.stdout + done.stderr
    return printed


def differs(shown: str, printed: str) -> str:
    """The first line that is shown and not printed, or the first one printed that is not shown; else nothing."""
    wanted, have = _lines(shown), _lines(printed)
    free = False
    while wanted:
        line = wanted.pop(0)
        if line == "…":
            free = True
        elif free and line in have:
            have, free = have[have.index(line) + 1 :], False
        elif have and have[0] == line:
            have.pop(0)
        else:
            return f"shown, not printed: {line!r}; printed next: {have[:1]}"
    return "" if free or not have else f"printed, not shown: {have[0]!r}"


def _lines(text: str) -> list[str]:
    for pattern, name in UNSTEADY:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def play(text: str, skip: Callable[[str], bool] = lambda command: False) -> Iterator[tuple[re.Match[str], str]]:
    """Carry out a page in the current folder; each block of output that it shows, with what was printed."""
    if not any("judge demo" in block for _, block, _ in steps(text)):
        write_example(Path())
    namespace: dict[str, object] = {}
    for language, block, shown in steps(text):
        if language == "python":
            stream = io.StringIO()
            with contextlib.redirect_stdout(stream):
                exec(compile(block, "a block of Python", "exec"), namespace)  # noqa: S102 - of a page of ours
            printed = stream.getvalue()
        else:
            printed = carry_out(block, skip)
        if shown:
            yield shown, printed


def written(text: str) -> str:
    """The page with its outputs as they are printed now."""
    new, end = "", 0
    for shown, printed in play(text):
        if "\n…\n" in f"\n{shown[2]}":
            if problem := differs(shown[2], printed):
                print(f"a shortened output differs: {problem}", file=sys.stderr)
        elif differs(shown[2], printed):
            new += text[end : shown.start(2)] + "\n".join(_raw(printed)) + "\n"
            end = shown.end(2)
    return new + text[end:]


def _raw(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for name in sys.argv[1:]:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
