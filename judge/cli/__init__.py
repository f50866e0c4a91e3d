"""Cli: the command line, a thin layer over the Python API; data goes to stdout, messages to stderr."""

import argparse
import atexit
import contextlib
import gc
import importlib
import io
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import ModuleType

from judge.cli.helps import HELP_WORDS, stored_parser
from judge.cli.parser import EXAMPLES, EXIT_CODES, GENERAL, CommandParser, folded_list, help_width, listing
from judge.errors import Interrupted, JudgeError, OperationalError, UsageError
from judge.io.installed import __version__
from judge.plugins import ANNEXES, is_there

MAIN_LINE = {
    "demo": "write the bundled example to a folder and judge it",
    "validate": "list every problem of the runs in a folder; write fixed copies",
    "run": "judge runs: pool, ask, write response qrels and a leaderboard",
    "gold": "plan, label, import, check and split gold grades",
    "calibrate": "find out which judge can be trusted, and how far",
    "leaderboard": "the leaderboard of an output folder, corrected by gold grades",
    "report": "one page on an output folder, for a browser and as Markdown",
    "release": "write what a track may publish: pseudonyms, no licensed texts",
}
"""What takes runs to a published assessment, in its order: a user of `judge run` needs no `judge pool`."""
BESIDE = {
    "pool": "pool the runs of a folder without judging anything",
    "crowd": "from workers' labels to one grade per item",
    **(ANNEXES["desk"].commands if is_there("desk") else {}),
    "doctor": "check this machine and judges before a run",
    "tokens": "what the token limit does under each way of counting",
    "convert": "runs of one format to another, or to TREC runs of passages; judgments to Parquet",
    "passages": "index a collection or its hash list; extract the passages of a pool",
    "prompts": "list, show or check prompt files, or give one examples or cuts",
    "models": "list or fetch the local models",
    "journal": "check, rescue, count, export, join and read again the journals of paid completions",
    "plan": "how many topics, turns and labels the next comparison of runs needs",
    "drift": "how far a judge's grades of the same responses moved between two dates",
    "completion": "print a script that completes commands and options in a shell",
}
PARTS = {
    "from runs to a published assessment": MAIN_LINE,
    "further commands": BESIDE,
    **{name: annex.commands for name, annex in ANNEXES.items() if annex.commands and name != "desk" and is_there(name)},
}
"""The parts of the program to their commands, with a summary each: the main line in its order, then the rest."""
COMMANDS = {name: summary for commands in PARTS.values() for name, summary in commands.items()}
_MODULES = {
    **dict.fromkeys(("validate", "tokens", "convert"), "judge.cli.runs"),
    **dict.fromkeys(("leaderboard", "report", "release", "plan"), "judge.cli.results"),
    "pool": "judge.cli.run",
    "drift": "judge.cli.calibrate",
    **dict.fromkeys(("doctor", "completion"), "judge.cli.start"),
    **{name: f"judge.extra.{annex}.cli" for annex, (commands, _) in ANNEXES.items() for name in commands},
}
"""The module in whose `COMMANDS` a command is, where it is not `judge.cli.COMMAND`."""

OBJECTS_BETWEEN_COLLECTIONS = 500_000
"""How many more objects than before start a search for garbage in cycles.

With Python's 700, a command would search its data again and again, and hardly anything there is in a cycle.
"""
PROBLEMS_SHOWN = 50
"""The most lines about problems under a message."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _settle_streams()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # Python would search everything again before it ends.
    atexit.register(gc.freeze)
    # Products are small here: numpy's threads take many times the CPU, and its sums would depend on their number.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = _dispatch(_general(arguments))
        sys.stdout.flush()
        return code
    except JudgeError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        _tell("judge: interrupted")
        return Interrupted.exit_code
    except MemoryError:
        _tell("judge: not enough memory; a smaller --max-file-size refuses large files before they are read")
        return OperationalError.exit_code
    except BrokenPipeError:
        # The reader closed the pipe, as in `judge ... | head`.
        _silence()
        return 0
    except OSError as error:
        _tell(f"judge: {error.strerror}: {error.filename or 'standard output'}")
        if error.filename is None:
            _silence()
        return OperationalError.exit_code


def _silence() -> None:
    """Drop all further output to stdout, and the buffer that is written when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settle_streams() -> None:
    """Make printing safe where a stream is closed, or where its encoding lacks a character of a run id."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def functions_of(name: str) -> tuple[str, dict[str, Callable[..., int]]]:
    """What a command says of itself, and its functions by action; the action of a command without any is empty."""
    # Imported here, because it would slow down `judge --help`.
    from inspect import getdoc

    module = _module(name)
    found = module.COMMANDS[name]
    return (getdoc(module) or "", found) if isinstance(found, dict) else (getdoc(found) or "", {"": found})


def _module(name: str) -> ModuleType:
    return importlib.import_module(_MODULES.get(name, f"judge.cli.{name}"))


def _general(arguments: list[str]) -> list[str]:
    """Apply the options that every command takes, anywhere in the line, and return the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--max-file-size", metavar="SIZE", action="append")
    try:
        general, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise UsageError(str(error)) from error
    if general.max_file_size:
        if len(general.max_file_size) > 1:
            raise UsageError("--max-file-size is given twice")
        # Imported late, since most calls do not need it and `judge --help` must be quick.
        from judge.io.files import allow_files

        allow_files(general.max_file_size[0])
    return rest


def command_parser(name: str) -> CommandParser:
    """The parser of a command, with those of its actions."""
    # Imported here, because it would slow down `judge --help`.
    from judge.cli.declared import declare

    about, functions = functions_of(name)
    examples = () if name in EXAMPLES else _module(name).EXAMPLES[name]
    parser = CommandParser(prog=f"judge {name}", description=about, examples=examples)
    declare(parser, functions)
    return parser


def call(name: str, words: Sequence[str]) -> int:
    """Do what a command line says; errors are raised."""
    if (stored := stored_parser(name, words)) is not None:
        print(stored.format_help(whole=words[-1] == "all"), end="")
        return 0
    from judge.cli.declared import parsed_call

    return parsed_call(command_parser(name), functions_of(name)[1], words)()


def _dispatch(arguments: list[str]) -> int:
    match arguments:
        case [] | ["help"] | ["-h" | "--help"]:
            print(_first_screen())
            return 0
        case ["help" | "-h" | "--help", "all"]:
            print(_every_command())
            return 0
        case ["help", *words]:
            return _dispatch([*words[:-1], "--help", "all"] if words[-1] == "all" else [*words, "--help"])
    length = next((n for n in (2, 1) if " ".join(arguments[:n]) in COMMANDS), 0)
    if length:
        return call(" ".join(arguments[:length]), arguments[length:])
    if arguments[0] in _groups():
        return _dispatch_group(arguments)
    parser = CommandParser(prog="judge", lists="commands")
    parser.add_argument("--version", action="version", version=f"judge {__version__}")
    parser.add_argument(
        "command", metavar="COMMAND", choices=sorted({"help", *(name.partition(" ")[0] for name in COMMANDS)})
    )
    # What follows a word that is no command is not looked at.
    parser.parse_args(arguments[:1])
    return 2


_ABOUT = (
    "Assess the responses of conversational-search runs (TREC iKAT, CAsT), and tables of questions and answers, by LLM "
    "judges and by people."
)


def _about() -> str:
    """What the program is, in lines that are easy to read."""
    return textwrap.fill(_ABOUT, min(help_width(), 78))


def _first_screen() -> str:
    """The main line, each command with an example."""
    examples = dict(zip(MAIN_LINE, EXAMPLES["first screen"], strict=True))
    entries = ""
    for name, example in examples.items():
        entries += folded_list(f"  {name:<13}{MAIN_LINE[name]}", help_width()) + f"\n{'':17}{example}\n"
    more = folded_list("All commands: `judge help all`. Options: `judge COMMAND --help`.", help_width())
    return f"{_about()}\n\n{entries}\n{more}"


def _every_command() -> str:
    """All commands by part, with what holds for each of them."""
    parts = "\n\n".join(f"{part}:\n{listing(commands)}" for part, commands in PARTS.items())
    ending = folded_list(f"{GENERAL}\n{EXIT_CODES}", help_width())
    return f"{_about()}\n\n{parts}\n\n`judge COMMAND --help` shows what a command takes.\n\n{ending}".rstrip()


def _groups() -> frozenset[str]:
    """First words that only introduce commands of two words."""
    return frozenset(name.partition(" ")[0] for name in COMMANDS) - COMMANDS.keys()


def _dispatch_group(arguments: list[str]) -> int:
    """List the commands of a group; only such a command does anything."""
    group, *rest = arguments
    commands = {name.split()[1]: summary for name, summary in COMMANDS.items() if name.startswith(f"{group} ")}
    if rest and rest[0] in HELP_WORDS:
        print(f"actions:\n{listing(commands)}\n\n`judge {group} ACTION --help` shows what an action takes.")
        return 0
    parser = CommandParser(prog=f"judge {group}", lists="actions")
    parser.add_argument("action", metavar="ACTION", choices=list(commands))
    parser.parse_args(rest[:1])
    return 2


def _tell(line: str) -> None:
    # Imported here, because `judge --help` needs none of it.
    from judge.cli.printing import marked
    from judge.io.text import printable
    from judge.judges.credentials import redact

    # The terminal may be gone, which is often why a command ends; its exit code must not be lost with it.
    with contextlib.suppress(OSError):
        print(marked(printable(redact(line)), "error"), file=sys.stderr, flush=True)


def _complain(error: JudgeError) -> None:
    _tell(f"judge: {error}")
    problems = getattr(error, "problems", ())
    if problems:
        from judge.cli.printing import folded_lines

        for line in folded_lines(problems, PROBLEMS_SHOWN):
            _tell(f"  {line}")
