"""From a plan to its command line: the parser that its fields declare, and the plan that arguments and files make.

In a file of options, a key is the name of an option without its hyphens at the front. The command line wins over the
file, and both win over what the extended folder was made with.
"""

import argparse
import functools
import inspect
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, create_model
from pydantic.fields import FieldInfo

from judge.cli.parser import CommandParser
from judge.cli.printing import say
from judge.errors import InputError, UsageError
from judge.io.files import LARGEST_TOML, read_stored
from judge.io.folder import write_atomic
from judge.io.plan import Call, Option, Options, OptionsRefused, Shape, groups_of, option_of, shape_of, toml_text
from judge.io.text import count, did_you_mean
from judge.jobs.manifest import MANIFEST, OutputFolder
from judge.judges.credentials import holds_key, without_credentials
from judge.records import Problem, file_problem

NOT_TAKEN = frozenset({"runs", "format", "out", "extend", "replace", "limit", "dry-run", "json", "max-cost"})
"""What is about one call, and so is not taken from the folder of --extend."""


class JsonOutput(Options, section="output"):
    """How the outcome is printed."""

    as_json: Annotated[bool, Option("json")] = False
    """Print the outcome as JSON."""


class FileOfOptions(Options, section="options in a file"):
    """Where options come from that the command line does not give."""

    config: Annotated[Path | None, Option(metavar="FILE")] = None
    """TOML with options as keys, such as depth = 2; the command line wins."""
    save_config: Annotated[Path | None, Option(metavar="FILE")] = None
    """Write the options that are not the default as TOML, and stop."""


class _Field(NamedTuple):
    """A field as the command line has it, under a heading."""

    name: str
    field: FieldInfo
    option: Option
    title: str


Functions = Mapping[str, Callable[..., int]]
"""The functions of a command by action, each with plans and options as its parameters; a command without
actions has one, ""."""


class _Alone(Options):
    """An option that is a parameter of a function, where pydantic need not search sources for docstrings."""

    model_config = ConfigDict(use_attribute_docstrings=False)


def declare(parser: CommandParser, functions: Functions) -> None:
    """Give a parser the options of a command: those of the plans that its functions take."""
    if "" in functions:
        _declare_plans(parser, functions[""])
        return
    actions = parser.add_actions(functions)
    for name, function in functions.items():
        about = inspect.getdoc(function) or ""
        # The exit code follows in the help of the action.
        line = about.partition("\n")[0].partition(";")[0].rstrip(".")
        below = actions.add_parser(name, help=line[:1].lower() + line[1:], description=about)
        _declare_plans(below, function)


def parsed_call(parser: CommandParser, functions: Functions, words: Sequence[str]) -> "functools.partial[int]":
    """What a command line does, as a function to call."""
    if {word.partition("=")[0] for word in words} & {"--config", "--save-config", "--extend"}:
        for argument in parser._actions:
            # A file may give it.
            argument.required = False
    line = vars(parser.parse_args(words))
    argv = (*parser.prog.split()[1:], *words)
    action = line.pop("action", "")
    for argument in parser._actions if action else ():
        if isinstance(argument, argparse._SubParsersAction):
            parser = argument.choices[action]
    kinds = _plans_of(functions[action])
    plans = _plans_from(parser, kinds, line)
    chosen = _chosen(kinds, plans)
    if line.get("save_config") is not None:
        return functools.partial(_save, Path(line["save_config"]), parser.prog, chosen)
    call = {"argv": argv, "chosen": chosen}
    return functools.partial(functions[action], *(_argument(plan, call) for plan in plans))


def _argument(plan: Options, call: Mapping[str, Any]) -> Any:
    if isinstance(plan, _Alone):
        return getattr(plan, *type(plan).model_fields)
    return plan.with_values(**call) if isinstance(plan, Call) else plan


@functools.cache
def _plans_of(function: Callable[..., int]) -> list[type[Options]]:
    return list(map(_plan_of, inspect.signature(function).parameters.values()))


def _plan_of(parameter: inspect.Parameter) -> type[Options]:
    if isinstance(parameter.annotation, type):
        return parameter.annotation
    field: Any = parameter.annotation, ... if parameter.default is parameter.empty else parameter.default
    return create_model(parameter.name, __base__=_Alone, **{parameter.name: field})


def _fields(plans: Iterable[type[Options]]) -> Iterator[_Field]:
    for plan in plans:
        for title, fields in groups_of(plan):
            for name, field in fields.items():
                option = option_of(name, field)
                if not option.hidden:
                    yield _Field(name, field, option, title)


def _declare_plans(parser: CommandParser, function: Callable[..., int]) -> None:
    """Declare the fields of a function's plans; an option that is not given leaves no value."""
    parser.main = [name for plan in _plans_of(function) for name in plan.main_options]
    sections: dict[str, argparse._ActionsContainer] = {"options": parser}
    for entry in _fields(_plans_of(function)):
        if entry.title not in sections:
            sections[entry.title] = parser.add_argument_group(entry.title)
        _declare(sections[entry.title], entry)


def _declare(container: argparse._ActionsContainer, entry: _Field) -> None:
    option = entry.option
    shape = shape_of(entry.field)
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(entry.field, option, shape)}
    if shape.of is bool:
        settings["action"] = "store_true"
    else:
        settings["metavar"] = option.metavar or None
        settings["choices"] = shape.choices or None
        settings |= {"action": "append"} if option.repeat else {"action": "extend", "nargs": "+"} if shape.many else {}
    required = entry.field.is_required()
    if option.place:
        number = ("+" if required and option.place == "only" else "*") if shape.many else None if required else "?"
        action = container.add_argument(entry.name, **settings | {"action": None, "nargs": number})
        vars(action)["also"] = shape.also
    if option.place != "only":
        names = [f"-{option.short}"] if option.short else []
        action = container.add_argument(
            *names, f"--{option.name}", dest=entry.name, required=required and not option.place, **settings
        )
        vars(action)["also"] = shape.also


def _help(field: FieldInfo, option: Option, shape: Shape) -> str:
    """What a field means, as the end of a line of help: `Longest reply.` becomes `longest reply (default 1024)`."""
    text = (field.description or "").replace("%", "%%").rstrip(".").replace("\n", " ")
    text = text if text[1:2].isupper() or text[:1] == "`" else text[:1].lower() + text[1:]
    if option.metavar and shape.choices:
        text = f"{text}: {', '.join(shape.choices)}"
    default = field.get_default(call_default_factory=True) if not field.is_required() else None
    if "default" in text or isinstance(default, bool) or default is None or default == () or default == {}:
        return text
    return f"{text} (default {default:g})" if isinstance(default, float) else f"{text} (default {default})"


def _plans_from(parser: CommandParser, kinds: Sequence[type[Options]], line: Mapping[str, Any]) -> list[Options]:
    """The plans of the values on a line, with those of the files that it names."""
    fields = {entry.option.name: entry for entry in _fields(kinds) if entry.option.place != "only"}
    table: dict[str, Any] = {}
    places: dict[str, tuple[str, str]] = {}
    if line.get("config") is not None:
        table, places = _read(Path(line["config"]))
    taken: dict[str, Any] = {}
    if "extend" in fields and (extended := line.get("extend", table.get("extend"))) is not None:
        recorded = OutputFolder(str(extended)).options
        taken = {name: recorded[name] for name in fields.keys() & recorded if name not in NOT_TAKEN}
        places = {**{name: (f"{extended}/{MANIFEST}", f"$.options.{name}") for name in taken}, **places}
    values = {fields[name].name: value for name, value in {**taken, **table}.items() if name in fields}
    if line.get("save_config") is not None:
        kinds = [_without_required(kind) for kind in kinds]
    plans, reasons = _made(kinds, {**values, **line})
    typed = {name: reason for name, reason in reasons.items() if name not in places or fields[name].name in line}
    _refuse(parser, fields, places, {name: reason for name, reason in reasons.items() if name not in typed})
    if typed:
        parser.error("; ".join(f"argument --{name}: {reason}" for name, reason in typed.items()))
    if alone := [name for name in taken if fields[name].name not in line and name not in table]:
        say(f"as {extended} was made: {' '.join(sorted(f'--{name}' for name in alone))}")
    return plans


def _without_required(kind: type[Options]) -> type[Options]:
    """The fields of a plan, none of them required and without a check of the whole: others may be given later."""
    fields: dict[str, Any] = {name: (field.annotation, copy(field)) for name, field in kind.model_fields.items()}
    for _, field in fields.values():
        if field.is_required():
            field.default = None
    return create_model(kind.__name__, __base__=Options, **fields)


def _made(kinds: Sequence[type[Options]], values: Mapping[str, Any]) -> tuple[list[Options], dict[str, str]]:
    """The plans of values by the names of their fields, and what is wrong with values."""
    plans: list[Options] = []
    reasons: dict[str, str] = {}
    for kind in kinds:
        try:
            plans.append(kind(**{name: values[name] for name in kind.model_fields if name in values}))
        except OptionsRefused as error:
            reasons |= error.reasons
    return plans, reasons


def _chosen(kinds: Sequence[type[Options]], plans: Sequence[Options]) -> dict[str, Any]:
    """The options that are not the default, by name, as TOML and JSON hold them."""
    chosen: dict[str, Any] = {}
    for kind, plan in zip(kinds, plans, strict=True):
        for entry in _fields([kind]):
            value = getattr(plan, entry.name)
            usual = value is None or value == entry.field.get_default(call_default_factory=True)
            if not usual and entry.option.place != "only" and entry.name not in FileOfOptions.model_fields:
                chosen[entry.option.name] = _plain(value)
    return chosen


def _refuse(
    parser: CommandParser, options: Collection[str], places: Mapping[str, tuple[str, str]], reasons: Mapping[str, str]
) -> None:
    names = set(options) - {"config", "save-config"}
    problems: list[Problem] = []
    for name, (file, place) in places.items():
        if name not in names:
            message = f"{parser.prog} has no option {name!r}{did_you_mean(name, names)}"
            problems.append(file_problem("unknown_option", file, message, place))
        elif name in reasons:
            problems.append(file_problem("bad_value", file, f"{name}: {reasons[name]}", place))
    if problems:
        raise InputError(f"{problems[0].file}: {count(len(problems), 'option')} that cannot be used", problems)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """The values of a file of options by their names, and where each stands."""
    stored = read_stored(path)
    if len(stored) > LARGEST_TOML:
        raise InputError(f"{path}: {len(stored):,} bytes: a file of options has at most {LARGEST_TOML:,}")
    try:
        text = stored.decode("utf-8-sig")
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    return table, {key: (str(path), _line(text, key)) for key in table}


def _line(text: str, key: str) -> str:
    """The line on which a key stands; the key itself if that cannot be told."""
    written = re.compile(rf"""\s*\[*["']?{re.escape(key)}["']?\s*[=\]]""")
    lines = enumerate(text.splitlines(), 1)
    return next((f"line {number}" for number, line in lines if written.match(line)), key)


def _plain(value: Any) -> Any:
    """A value as TOML and JSON hold it, without credentials."""
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, Mapping):
        return [f"{name}={member}" for name, member in value.items()]
    if isinstance(value, bool | int | float):
        return value
    return without_credentials(str(value))


def _save(path: Path, prog: str, chosen: Mapping[str, Any]) -> int:
    """Write options as TOML; nothing else is done."""
    if keyed := sorted(name for name, value in chosen.items() if holds_key(str(value))):
        raise UsageError(f"--save-config: not written: --{', --'.join(keyed)} holds a key; keys belong into variables")
    try:
        content = toml_text(chosen).encode()
    except ValueError as error:
        raise UsageError(f"--save-config: an option has no text in UTF-8, as TOML needs it: {error}") from error
    if path.exists() and (not path.is_file() or read_stored(path) != content):
        raise UsageError(f"{path}: there already, with another content; name another file")
    write_atomic(path, content)
    say(f"{path}: {count(len(chosen), 'option')}, to be given as `{prog} --config {path}`")
    return 0
