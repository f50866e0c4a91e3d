"""The parser of every command: no argument is dropped, a mistake is answered in two lines, help ends with examples."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from judge.cli.examples import EXAMPLES
from judge.io.safe import did_you_mean

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


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of one of its actions.

    An option of several values accumulates when it is repeated, and any other one is refused. `given` in the parsed
    values names what was given.
    """

    def __init__(self, *, lists: str = "options", examples: Sequence[str] = (), **settings: Any) -> None:
        fixed: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(**fixed | settings)
        self.lists = lists
        self.epilog = settings.get("epilog") or _epilog(examples or EXAMPLES.get(self.prog.removeprefix("judge "), ()))
        self.register("action", None, _stored)
        self.register("action", "store", _stored)
        self.register("action", "append", _Gathered)
        self.register("action", "store_true", _Flag)
        self.set_defaults(given=frozenset())

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
            hint = did_you_mean(option, self._option_string_actions) if option.startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}{did_you_mean(str(value), choices)} (choose from {', '.join(choices)})",
            )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, without credentials, and where the options are listed; exit code 2."""
        # They would slow down `judge --help`.
        from judge.io.safe import printable
        from judge.judges.secrets import redact

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
        if self.option_strings and self.dest in namespace.given:
            raise argparse.ArgumentError(self, "given more than once: it takes one value")
        _take(namespace, self.dest, values)


class _Gathered(argparse.Action):
    """Takes values, and more of them when it is repeated; the first given one replaces the default."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if values == [] and not self.option_strings:
            return
        before = getattr(namespace, self.dest) if self.dest in namespace.given else ()
        _take(namespace, self.dest, [*before, *(values if isinstance(values, list) else [values])])


class _Flag(argparse._StoreTrueAction):
    """Says yes; saying it twice says no more."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        _take(namespace, self.dest, True)


def _stored(**settings: Any) -> argparse.Action:
    """The action of an argument that names none: several values accumulate."""
    return (_Gathered if settings["option_strings"] and settings.get("nargs") == "+" else _Once)(**settings)


def _take(namespace: argparse.Namespace, name: str, value: Any) -> None:
    setattr(namespace, name, value)
    namespace.given |= {name}
