"""A page for each command, from its parser: what to type, arguments, options, defaults, examples, exit codes."""

import argparse
import re
from collections.abc import Iterator, Mapping

from docs.site.docstrings import markdown
from docs.site.markdown import cell, code, fenced, table
from docs.site.pages import relative, subjects, title
from judge.cli import COMMANDS, PARTS, command_parser
from judge.cli.parser import EXAMPLES, EXIT_CODES, GENERAL

_WIDTH = 84


def command_pages(written: Mapping[str, str]) -> dict[str, str]:
    """The pages of all commands, and the list of them by room.

    Args:
        written: The pages that people wrote; those that name a command most often are linked.
    """
    pages = {page_of(command): _page(command, written) for command in COMMANDS}
    parts = "".join(
        f"## {part.capitalize()}\n\n"
        + table(
            ("command", "what it does"),
            [
                (f"[`judge {name}`]({relative(page_of(name), FIRST)})", cell(summary))
                for name, summary in commands.items()
            ],
        )
        + "\n\n"
        for part, commands in PARTS.items()
    )
    opening = "# Commands\n\nThe commands of an assessment come first, in their order.\n\n"
    ending = "## For every command\n\n" + fenced(GENERAL.partition("\n")[2]) + "\n\n" + exit_codes() + "\n"
    return {FIRST: opening + parts + ending} | pages


FIRST = "reference/commands/index.md"


def page_of(command: str) -> str:
    """The place of a command's page."""
    return f"reference/commands/{command.replace(' ', '-')}.md"


def exit_codes() -> str:
    """The exit codes, which are the same for every command."""
    rows = [(number, cell(meaning)) for number, meaning in re.findall(r"^  (\d)  (.+)$", EXIT_CODES, re.MULTILINE)]
    return "## Exit codes\n\n" + table(("code", "meaning"), rows)


def actions(command: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser of a command and those of its actions, each with what a user types after `judge`."""
    pending: list[tuple[str, argparse.ArgumentParser]] = [(command, command_parser(command))]
    while pending:
        typed, parser = pending.pop(0)
        yield typed, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                pending = [(f"{typed} {name}", sub) for name, sub in action.choices.items()] + pending


def _page(command: str, written: Mapping[str, str]) -> str:
    parts: list[str] = []
    described = _described(command, written)
    for typed, parser in actions(command):
        level = "#" if typed == command else "##"
        parts += [f"{level} judge {typed}", markdown(parser.description or "")]
        parts += [fenced(_usage(parser)), *_tables(parser)]
        if EXAMPLES.get(typed):
            parts += [f"{level}# Examples", fenced("\n".join(EXAMPLES[typed]), "sh")]
    parts.append(exit_codes())
    if described:
        links = [f"- [{title(written[name])}]({relative(name, page_of(command))})" for name in described]
        parts.append("## Described in\n\n" + "\n".join(links))
    return "\n\n".join(part for part in parts if part) + "\n"


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(prog=parser.prog, width=_WIDTH)
    formatter.add_usage(None, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip()


def _tables(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The arguments, and the options, each with its meaning."""
    formatter = parser._get_formatter()
    kept = [
        action
        for action in parser._actions
        if action.dest != "help" and not isinstance(action, argparse._SubParsersAction)
    ]
    for header, shown in (
        ("argument", [action for action in kept if not action.option_strings]),
        ("option", [action for action in kept if action.option_strings]),
    ):
        if shown:
            yield table((header, "meaning"), [(_name(action), _meaning(formatter, action)) for action in shown])


def _meaning(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    said = cell(formatter._expand_help(action)) if action.help else ""
    if action.choices and not action.metavar:
        said += f" ({', '.join(code(str(choice)) for choice in action.choices)})"
    return said


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(str(action.metavar or action.dest))
    value = "" if action.nargs == 0 else " " + _value(action)
    *short, last = action.option_strings
    return ", ".join(map(code, [*short, last + value]))


def _value(action: argparse.Action) -> str:
    metavar = str(action.metavar or action.dest.upper().replace("_", "-"))
    return f"{metavar} ..." if action.nargs in ("+", "*") else metavar


def _described(command: str, written: Mapping[str, str]) -> list[str]:
    """The pages about a subject that name a command most often."""
    typed = re.compile(rf"(?:`|^)judge {re.escape(command)}(?![\w-]| [a-z]+-)", re.MULTILINE)
    found = [(-len(typed.findall(written[name])), name) for name in subjects()]
    return [name for count, name in sorted(found) if count][:3]
