"""Cli: the command line, a thin layer over the Python API; data goes to stdout, messages to stderr."""

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType

from judge.errors import Interrupted, JudgeError, OperationalError
from judge.files.bundle import __version__
from judge.text.safe import printable

ROOMS = {
    "harness": {
        "demo": "write the bundled example to a folder and judge it",
        "run": "judge every run of a folder: pool, LLM judge, response qrels, leaderboard",
    },
    "runs": {
        "validate": "list every problem of the runs in a folder; write fixed copies",
        "tokens": "what the token limit does under each way of counting",
        "convert": "runs of one format to another, or to TREC runs of passages",
    },
    "passages": {"passages": "index a collection or its hash list; extract the passages of a pool"},
    "models": {"models": "list or fetch the local models"},
    "pool": {"pool": "pool the runs of a folder without judging anything"},
    "ask": {"prompts": "list, show or check prompt files"},
    "gold": {"gold": "check, import, split and plan gold grades"},
    "results": {"leaderboard": "the leaderboard of an output folder, corrected by gold grades"},
    "crowd": {
        "crowd": "from workers' labels to one grade per item",
        "crowd cast-regin": "check CAsT-ReGIn, make it again, match and evaluate runs over it",
    },
    "calibrate": {
        "calibrate": "find out which judge can be trusted, and how far",
        "drift": "how far a judge's grades of the same responses moved between two dates",
    },
}
"""Room to its commands, with a summary each; the whole line comes first, then the order of the pipeline.

A command lives in the module of its name in this folder, `crowd cast-regin` in `crowd_cast_regin.py`.
"""
COMMANDS = {name: summary for commands in ROOMS.values() for name, summary in commands.items()}

EXIT_CODES = """\
exit codes:
  0  done
  1  findings: errors in runs or prompts, nothing that could be judged, or a gate that is not met
  2  the command or its input is bad; no result was written
  3  something outside failed or was interrupted; the same command resumes
"""
PROBLEMS_SHOWN = 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _settle_streams()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except JudgeError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("judge: interrupted", file=sys.stderr)
        return Interrupted.exit_code
    except BrokenPipeError:
        # The reader closed the pipe, as in `judge ... | head`.
        _silence()
        return 0
    except OSError as error:
        print(printable(f"judge: {error.strerror}: {error.filename or 'standard output'}"), file=sys.stderr)
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


def command_module(name: str) -> ModuleType:
    """The module behind a command: its docstring, `add_arguments(parser)` and `main(args)`."""
    return importlib.import_module(f"judge.cli.{re.sub('[ -]', '_', name)}")


def _dispatch(arguments: list[str]) -> int:
    length = next((n for n in (2, 1) if " ".join(arguments[:n]) in COMMANDS), 0)
    if length:
        name = " ".join(arguments[:length])
        module = command_module(name)
        parser = argparse.ArgumentParser(
            prog=f"judge {name}",
            description=module.__doc__,
            epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(parser)
        code: int = module.main(parser.parse_args(arguments[length:]))
        return code
    listing = "\n".join(
        f"  {room if not place else '':<10} {name:<16} {summary}"
        for room, commands in ROOMS.items()
        for place, (name, summary) in enumerate(commands.items())
    )
    parser = argparse.ArgumentParser(
        prog="judge",
        description="Assess the responses of conversational-search runs (TREC iKAT, CAsT).",
        epilog=f"commands:\n{listing}\n\n`judge COMMAND --help` tells more.\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"judge {__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=sorted(COMMANDS), help="one of those below")
    parser.parse_args(arguments)
    return 2


def _complain(error: JudgeError) -> None:
    print(printable(f"judge: {error}"), file=sys.stderr)
    problems = getattr(error, "problems", ())
    for problem in problems[:PROBLEMS_SHOWN]:
        where = " ".join(part for part in (problem.turn_id, problem.path) if part)
        line = f"{problem.file}: {problem.code}{f' at {where}' if where else ''}: {problem.message}"
        print(f"  {printable(line)}", file=sys.stderr)
    if len(problems) > PROBLEMS_SHOWN:
        print(f"  … and {len(problems) - PROBLEMS_SHOWN} more", file=sys.stderr)
