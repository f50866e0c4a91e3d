"""The parser of every command: no argument is dropped, a mistake is answered in two lines, help ends with examples."""

import argparse
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

EXIT_CODES = """\
exit codes:
  0  done
  1  findings: errors in runs or prompts, nothing to judge, or a gate not met
  2  the command or its input is bad; no result was written
  3  something outside failed or was interrupted; the same command resumes
"""
GENERAL = """\
for every command:
  --max-file-size SIZE  refuse a file of more, unpacked: 2G, 800M (default 512M)
"""


_NEGATIVE = re.compile(r"-[0-9]+(?:--?[0-9]+)?$|-[0-9]*\.[0-9]+$")
"""A negative number or a scale such as `-2-2`, whole."""


_ENTRY = re.compile(r"  \S.*?  +")
"""The name of an entry of a list and the space behind it."""
_EXAMPLES = "examples:\n"
_CHOICES = 40
"""The most columns of choices behind the name of an option."""


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fold paragraphs to the width of the terminal; one with indented lines is a list, folded line by line."""
        folded: list[str] = []
        for part in text.split("\n\n"):
            listed = "\n " in part
            folded.append(folded_list(part, width) if listed else super()._fill_text(part, width, ""))
        return "\n\n".join(folded)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """The lines of an option's help; a name such as mean-half-up stays whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = f"{action.help} (required)" if action.required and action.option_strings else action.help
        return f"{text}: {_choices(action)}" if _has_many_choices(action) else text

    def _metavar_formatter(self, action: argparse.Action, default_metavar: str) -> Any:
        """The choices, unless they are more than a line holds: then the help names them, which is folded."""
        if not _has_many_choices(action):
            return super()._metavar_formatter(action, default_metavar)
        return lambda size: (default_metavar,) * size


def _choices(action: argparse.Action) -> str:
    return ", ".join(map(str, action.choices or ()))


def _has_many_choices(action: argparse.Action) -> bool:
    return action.metavar is None and len(_choices(action)) > _CHOICES


def folded_list(text: str, width: int) -> str:
    """A list in lines of the terminal's width, each entry under its beginning; examples stay whole, to be copied."""
    if text.startswith(_EXAMPLES):
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        name = _ENTRY.match(line)
        hanging = " " * name.end() if name else ""
        lines += textwrap.wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def help_width() -> int:
    """The columns of a help, as argparse has them."""
    return shutil.get_terminal_size().columns - 2


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of one of its actions.

    An option of several values accumulates when it is repeated, and any other one is refused. An option that is not
    given leaves no value. `--help` shows the main options where a command has many, `--help all` every option.
    """

    main: Sequence[str] = ()
    """The options that matter most, by name and in order; empty for a command of few options."""

    def __init__(self, *, lists: str = "options", examples: Sequence[str] = (), **settings: Any) -> None:
        fixed: dict[str, Any] = {"formatter_class": _Formatter, "allow_abbrev": False}
        super().__init__(**fixed | settings | {"add_help": False})
        self._positionals.title = "arguments"
        if settings.get("add_help", True):
            self.add_argument("-h", "--help", action=_Help, nargs="?", help="show this help")
        self.lists = lists
        self.epilog = settings.get("epilog") or _epilog(examples or EXAMPLES.get(self.prog.removeprefix("judge "), ()))
        self.register("action", None, _Once)
        # A scale that begins below zero is a value, and no option.
        self._negative_number_matcher = _NEGATIVE

    def add_actions(self, names: Iterable[str]) -> "argparse._SubParsersAction[CommandParser]":
        """Let a word choose between actions with options of their own."""
        return self.add_subparsers(dest="action", required=True, title="actions", metavar="|".join(names))

    def format_help(self, *, whole: bool = False) -> str:
        """What the command does and its options: the main ones, or all of them under their headings."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        named = {name.lstrip("-"): action for action in self._actions for name in action.option_strings}
        if self.main and not whole:
            arguments = [action for action in self._actions if not action.option_strings]
            chosen = [named[name] for name in self.main]
            _add_section(formatter, "arguments", arguments)
            _add_section(formatter, "main options", chosen)
            rest = len(self._actions) - len(arguments) - len(chosen) - 1
            formatter.add_text(f"`{self.prog} --help all` shows {rest} more options.")
        else:
            for group in self._action_groups:
                _add_section(formatter, str(group.title), group._group_actions)
        formatter.add_text(self.epilog)
        return formatter.format_help()

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

        self.exit(2, f"{self.prog}: {printable(redact(message))}\n`{self.prog} --help all` lists the {self.lists}\n")


def _add_section(formatter: argparse.HelpFormatter, title: str, actions: Iterable[argparse.Action]) -> None:
    formatter.start_section(title)
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            formatter.add_arguments(action._choices_actions)
        elif not isinstance(action, _Help):
            formatter.add_argument(action)
    formatter.end_section()


class _Help(argparse.Action):
    """Shows the help and ends; `--help all` shows every option."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> NoReturn:
        if isinstance(parser, CommandParser):
            print(parser.format_help(whole=values == "all"), end="")
        parser.exit()


def listing(entries: Mapping[str, str]) -> str:
    """Names with what each is, in lines of the terminal's width."""
    formatter = _Formatter(prog="", max_help_position=24)
    formatter.start_section(None)
    for name, summary in entries.items():
        formatter.add_argument(argparse.Action([], dest=name, help=summary))
    formatter.end_section()
    return formatter.format_help().strip("\n")


def _epilog(examples: Sequence[str]) -> str:
    lines = "".join(f"  {example}\n" for example in examples)
    end = f"{GENERAL}\n{EXIT_CODES}"
    return f"{_EXAMPLES}{lines}\n{end}" if examples else end


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
    examples: dict[str, list[str]] = {}
    for name, *lines in blocks:
        examples[name.rstrip(":")] = [line.strip() for line in lines]
    return examples


EXAMPLES = read_examples(__file__)
"""Those of the core."""
