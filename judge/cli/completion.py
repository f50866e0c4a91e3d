"""Print a script that completes commands, options and choices in a shell.

bash: put `eval "$(judge completion bash)"` into ~/.bashrc. zsh: the same with zsh into ~/.zshrc, after compinit. fish:
`judge completion fish > ~/.config/fish/completions/judge.fish`. The script is made once and starts no process; print it
anew after an upgrade.
"""

import argparse
from collections.abc import Iterator
from typing import Annotated, Literal

from judge.cli import COMMANDS, command_parser
from judge.files.plan import Option, Plan

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_judge() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" place="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{place:+$place }}$word" in
            {places}) place="${{place:+$place }}$word" ;;
        esac
    done
    case "$place $prev" in
{choices}
    esac
    if [[ -z "$words" && "$cur" == -* ]]; then
        case "$place" in
{options}
        esac
    elif [[ -z "$words" && "$prev" != -* ]]; then
        case "$place" in
{names}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _judge judge
"""


class CompletionArguments(Plan):
    """The argument."""

    shell: Annotated[Literal["bash", "zsh", "fish"], Option(metavar="SHELL", place="only")]
    """Bash, zsh or fish."""


def main(args: CompletionArguments) -> int:
    """Print the script."""
    parsers = dict(_parsers())
    match args.shell:
        case "bash":
            print(_bash(parsers), end="")
        case "zsh":
            print(f"autoload -U +X bashcompinit && bashcompinit\n{_bash(parsers)}", end="")
        case _:
            print("\n".join(_fish(parsers)))
    return 0


def _parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """What a user types after `judge`, and its parser, for every command, action, and word that introduces commands."""
    for name in COMMANDS:
        group = name.partition(" ")[0]
        if group not in COMMANDS:
            yield group, argparse.ArgumentParser()
        parser = command_parser(name)
        yield name, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from ((f"{name} {sub}", its_parser) for sub, its_parser in action.choices.items())


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _below(place: str, parsers: dict[str, argparse.ArgumentParser]) -> list[str]:
    """The words that may follow a place: commands or actions, and choices of a positional argument."""
    words = [name.rpartition(" ")[2] for name in parsers if name.rpartition(" ")[0] == place]
    for action in parsers[place]._actions if place else ():
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            words += map(str, action.choices or ())
    return words


def _bash(parsers: dict[str, argparse.ArgumentParser]) -> str:
    def case(pattern: str, words: list[str]) -> str:
        return f'        "{pattern}") words="{" ".join(words)}" ;;'

    choices = [
        case(f"{place} {option}", list(map(str, action.choices)))
        for place, parser in parsers.items()
        for action in _options(parser)
        for option in action.option_strings
        if action.choices
    ]
    options = [
        case(place, [option for action in _options(parser) for option in action.option_strings])
        for place, parser in parsers.items()
    ]
    names = [case(place, words) for place in ("", *parsers) if (words := _below(place, parsers))]
    return _BASH.format(
        places="|".join(f'"{place}"' for place in parsers),
        choices="\n".join(choices),
        options="\n".join(options),
        names="\n".join(names),
    )


def _fish(parsers: dict[str, argparse.ArgumentParser]) -> Iterator[str]:
    def condition(place: str) -> str:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in place.split())
        return f"-n '{seen or '__fish_use_subcommand'}'"

    for place in ("", *parsers):
        for word in _below(place, parsers):
            yield f"complete -c judge {condition(place)} -a {word}"
    for place, parser in parsers.items():
        for action in _options(parser):
            names = " ".join(
                f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in action.option_strings
            )
            takes = "" if action.nargs == 0 else " -r"
            if action.choices:
                takes = f" -x -a '{' '.join(map(str, action.choices))}'"
            yield f"complete -c judge {condition(place)} {names}{takes}"
