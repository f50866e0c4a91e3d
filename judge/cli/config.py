"""Options that come from elsewhere than the command line: a file of --config, the folder of --extend.

A key is the name of an option without its hyphens at the front. The command line wins over the file, and both win over
what the extended folder was made with.
"""

import argparse
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from judge.cli.parser import CommandParser
from judge.cli.printing import say
from judge.errors import InputError, UsageError
from judge.files.folder import write_atomic
from judge.files.limits import LARGEST_TOML
from judge.files.stored import read_stored
from judge.files.toml import toml_text
from judge.harness.earlier import earlier_options
from judge.harness.manifest import MANIFEST
from judge.models.address import without_credentials
from judge.models.secrets import holds_key
from judge.records import Problem
from judge.text.cells import count
from judge.text.hints import did_you_mean
from judge.text.safe import shown

NOT_OPTIONS = frozenset({"help", "config", "save_config"})
NOT_TAKEN = frozenset({"runs", "format", "out", "extend", "replace", "limit", "dry_run", "json", "max_cost"})
"""What is about one call, and so is not taken from the folder of --extend."""


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for a file of options."""
    group = parser.add_argument_group("options in a file")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML with options as keys, such as depth = 2; the command line wins",
    )
    group.add_argument(
        "--save-config", type=Path, metavar="FILE", help="write the options that are not the default as TOML, and stop"
    )


def parse(parser: CommandParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line together with the files that it names.

    Returns:
        The values; `chosen` has those that are not the default by the names of their options, for the record, and
        `taken` the names of those that come from the folder of --extend.

    Raises:
        UsageError: A key of the file is no option, or its value is none of the option's.
        InputError: The file or the extended folder cannot be read.
    """
    options = _options(parser)
    if not options.keys() >= {"config", "save-config"}:
        return parser.parse_args(arguments)
    defaults = {name: action.default for name, action in options.items()}
    ahead = _ahead(parser, arguments)
    settled: dict[str, Any] = {}
    if ahead.config is not None:
        settled = _read(parser, ahead.config)
    extended = ahead.extend if ahead.extend is not None else settled.get("extend")
    taken: dict[str, Any] = {}
    if extended is not None and "extend" in options:
        recorded = earlier_options(Path(extended))
        known = {key: value for key, value in recorded.items() if key in options and options[key].dest not in NOT_TAKEN}
        taken = _values(parser, known, str(Path(extended) / MANIFEST), lambda key: f"$.options.{key}")
    for action in options.values():
        if action.dest in taken | settled or ahead.save_config is not None:
            action.required = False
    parser.set_defaults(**taken | settled)
    args = parser.parse_args(arguments)
    args.given |= frozenset(settled)
    args.taken = {name for name, action in options.items() if action.dest in taken.keys() - args.given}
    args.chosen = {
        name: _plain(getattr(args, action.dest))
        for name, action in options.items()
        if action.dest not in NOT_OPTIONS and getattr(args, action.dest) != defaults[name]
    }
    return args


def announce(prog: str, args: argparse.Namespace) -> bool:
    """Write the file of --save-config, or say what was taken from the folder of --extend.

    Returns:
        Whether the file was written, so that the command is done.

    Raises:
        UsageError: The file is there with another content, or an option has no text in UTF-8.
    """
    path: Path | None = getattr(args, "save_config", None)
    if path is not None:
        _save(path, args.chosen)
        say(f"{path}: {count(len(args.chosen), 'option')}, to be given as `{prog} --config {path}`")
        return True
    if taken := getattr(args, "taken", None):
        say(f"as {args.extend} was made: {' '.join(sorted(f'--{name}' for name in taken))}")
    return False


def _save(path: Path, chosen: Mapping[str, Any]) -> None:
    if keyed := sorted(name for name, value in chosen.items() if holds_key(str(value))):
        raise UsageError(f"--save-config: not written: --{', --'.join(keyed)} holds a key; keys belong into variables")
    try:
        content = toml_text(chosen).encode()
    except ValueError as error:
        raise UsageError(f"--save-config: an option has no text in UTF-8, as TOML needs it: {error}") from error
    if path.exists() and (not path.is_file() or read_stored(path) != content):
        raise UsageError(f"{path}: there already, with another content; name another file")
    write_atomic(path, content)


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a parser by their long name."""
    return {
        name.removeprefix("--"): action
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--")
    }


def _ahead(parser: CommandParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options that name where others come from; the parser itself says what is wrong with them."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("--config", "--save-config", "--extend"):
        finder.add_argument(name, nargs="?", type=Path)
    return finder.parse_known_args(arguments)[0]


def _read(parser: CommandParser, path: Path) -> dict[str, Any]:
    """The values in a file of options, by the names that the parser gives them."""
    stored = read_stored(path)
    if len(stored) > LARGEST_TOML:
        raise InputError(f"{path}: {len(stored):,} bytes: a file of options has at most {LARGEST_TOML:,}")
    try:
        text = stored.decode("utf-8-sig")
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    return _values(parser, table, str(path), lambda key: _line(text, key))


def _line(text: str, key: str) -> str:
    """Where a key of a file stands; the key itself if that cannot be told."""
    written = re.compile(rf"""\s*\[*["']?{re.escape(key)}["']?\s*[=\]]""")
    lines = enumerate(text.splitlines(), 1)
    return next((f"line {number}" for number, line in lines if written.match(line)), key)


def _values(parser: CommandParser, table: Mapping[str, Any], file: str, place: Callable[[str], str]) -> dict[str, Any]:
    """What the parser makes of options by key.

    Raises:
        InputError: Some keys or values are not the parser's; all of them are listed.
    """
    options = {name: action for name, action in _options(parser).items() if action.dest not in NOT_OPTIONS}
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in table.items():
        try:
            if key not in options:
                raise _Refused("unknown_option", f"{parser.prog} has no option {key!r}{did_you_mean(key, options)}")
            values[options[key].dest] = _converted(options[key], key, value)
        except _Refused as error:
            problems.append(Problem(error.code, "error", file, None, place(key), error.message))
    if problems:
        raise InputError(f"{file}: {count(len(problems), 'option')} that cannot be used", problems)
    return values


class _Refused(Exception):
    """A key that is no option, or a value that is none of its option's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Checker(CommandParser):
    """Reads the value of one option."""

    def error(self, message: str) -> NoReturn:
        """Refuse the value."""
        raise _Refused("bad_value", message.removeprefix("argument --"))


def _converted(action: argparse.Action, key: str, value: Any) -> Any:
    """What an option makes of a value of TOML or JSON."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise _Refused("bad_value", f"{key}: expected true or false, found {shown(value)}")
        return value
    words = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise _Refused("bad_value", f"{key}: expected a text, a number or a list of them, found {shown(value)}")
    if not words or any("\0" in str(word) for word in words):
        raise _Refused("bad_value", f"{key}: expected a value{' without NUL' if words else ', found an empty list'}")
    checker = _Checker(prog="", add_help=False)
    checker._add_action(action)
    required, action.required = action.required, False
    try:
        return getattr(checker.parse_args([f"--{key}={word}" for word in words]), action.dest)
    finally:
        action.required = required


def _plain(value: Any) -> Any:
    """A value as TOML and JSON hold it, without credentials."""
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, tuple):
        return "=".join(map(str, value))
    if isinstance(value, bool | int | float):
        return value
    return without_credentials(str(value))
