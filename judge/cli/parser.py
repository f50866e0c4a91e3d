"""The parser of every command: no argument is dropped, a mistake is answered in two lines, help ends with examples."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

EXIT_CODES = """\
exit codes:
  0  done
  1  findings: errors in runs or prompts, nothing that could be judged, or a gate that is not met
  2  the command or its input is bad; no result was written
  3  something outside failed or was interrupted; the same command resumes
"""
GENERAL = """\
for every command:
  --max-file-size SIZE  the most bytes of content of a file that is read, unpacked or not: 2G, 800M (default 512M)
"""


_NEGATIVE = re.compile(r"-[0-9]+(?:--?[0-9]+)?$|-[0-9]*\.[0-9]+$")
"""A negative number or a scale such as `-2-2`, whole."""


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fold paragraphs to the width of the terminal; one with indented lines is a list, and stays as it is."""
        parts = text.split("\n\n")
        return "\n\n".join(
            part if "\n " in part else super(_Formatter, self)._fill_text(part, width, "") for part in parts
        )


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of one of its actions.

    An option of several values accumulates when it is repeated, and any other one is refused. An option that is not
    given leaves no value.
    """

    def __init__(self, *, lists: str = "options", examples: Sequence[str] = (), **settings: Any) -> None:
        fixed: dict[str, Any] = {"formatter_class": _Formatter, "allow_abbrev": False}
        super().__init__(**fixed | settings)
        self.lists = lists
        self.epilog = settings.get("epilog") or _epilog(examples or EXAMPLES.get(self.prog.removeprefix("judge "), ()))
        self.register("action", None, _Once)
        # A scale that begins below zero is a value, and no option.
        self._negative_number_matcher = _NEGATIVE

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse; an unknown option is said first, because it is often the one that seems to be missing."""
        if args is not None and self._subparsers is None:
            self._refuse(_unknown_options(args, self._option_string_actions))
        known, unknown = super().parse_known_args(args, namespace)
        self._refuse(unknown)
        return known, unknown

    def _refuse(self, unknown: Sequence[str]) -> None:
        if unknown:
            option = unknown[0].partition("=")[0]
            from judge.io.text import did_you_mean

            hint = did_you_mean(option, self._option_string_actions) if option.startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        also = vars(action).get("also") or (lambda _: False)
        if action.choices is not None and value not in action.choices and not also(value):
            # It would slow down `judge --help`.
            from judge.io.plan import no_choice

            raise argparse.ArgumentError(action, no_choice(value, list(map(str, action.choices))))

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, without credentials, and where the options are listed; exit code 2."""
        # They would slow down `judge --help`.
        from judge.io.text import printable
        from judge.judges.credentials import redact

        self.exit(2, f"{self.prog}: {printable(redact(message))}\n`{self.prog} --help` lists the {self.lists}\n")


def _epilog(examples: Sequence[str]) -> str:
    lines = "".join(f"  {example}\n" for example in examples)
    end = f"{GENERAL}\n{EXIT_CODES}"
    return f"examples:\n{lines}\n{end}" if examples else end


def _unknown_options(args: Sequence[str], known: Iterable[str]) -> list[str]:
    """The words that look like an option and are none; as for argparse, a word with a space is a value."""
    names = set(known)
    before = args[: args.index("--")] if "--" in args else args
    return [
        word for word in before if word.startswith("--") and " " not in word and word.partition("=")[0] not in names
    ]


class _Once(argparse.Action):
    """Takes one value, or the values of a positional argument."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if self.option_strings and hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "given more than once: it takes one value")
        setattr(namespace, self.dest, values)


def read_examples(module: str) -> dict[str, list[str]]:
    """The examples in `examples.txt` beside the file of a module, by command or action, for the end of its help."""
    path = os.path.join(os.path.dirname(module), "examples.txt")  # noqa: PTH118, PTH120 - pathlib slows down `judge --help`
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - likewise
        blocks = (block.splitlines() for block in file.read().split("\n\n"))
    return {name.rstrip(":"): [line.strip() for line in lines] for name, *lines in blocks}


EXAMPLES = read_examples(__file__)
"""Those of the core."""
