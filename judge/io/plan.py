"""Plans: the options of a job, declared once for Python, the command line, files of options and the documents.

A field is an option: its type says what values it takes, its docstring what it means. A class with a `section` groups
options; a plan inherits the groups that it takes.
"""

import inspect
import json
import os
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from judge.errors import UsageError
from judge.io.files import file_in, several
from judge.io.text import did_you_mean, shown

_SCALE = re.compile(r"(-?[0-9]{1,8})-(-?[0-9]{1,8})", re.ASCII)


class Option(NamedTuple):
    """How the command line writes a field, where name and type do not say it."""

    name: str = ""
    """Without the hyphens; by default the field's."""
    short: str = ""
    """One letter that stands for the name."""
    metavar: str = ""
    """What stands for the value in the help."""
    repeat: bool = False
    """Of several values, each follows the name anew; by default all may follow one name."""
    place: Literal["", "only", "too"] = ""
    """Whether the place in the line says what the value is, without a name or beside it."""
    hidden: bool = False
    """Python alone has it."""
    section: str = ""
    """The heading of this field and of those after it, if it is another than before."""


class OneOf:
    """The texts that a field takes; `also` says of a text that is not listed whether it is taken too."""

    def __init__(self, names: Iterable[str], also: Callable[[str], bool] = lambda _: False) -> None:
        self.names = tuple(names)
        self.also = also

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Refuse any other text."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: str | None) -> str | None:
        if value is not None and value not in self.names and not self.also(value):
            raise ValueError(no_choice(value, self.names))
        return value


def no_choice(value: object, known: Collection[str]) -> str:
    """What is said of a value that is not among the known ones."""
    return f"invalid choice: {value!r}{did_you_mean(str(value), known)} (choose from {', '.join(known)})"


def pairs(value: Any) -> Any:
    """Texts such as `FIELD=VALUE` as a mapping; the value follows the first sign."""
    return _mapping(value, str.partition, "FIELD=VALUE")


def graded_texts(value: Any) -> Any:
    """Texts such as `TEXT=GRADE` as a mapping; the grade follows the last sign."""
    return _mapping(value, str.rpartition, "TEXT=GRADE")


def _mapping(value: Any, split: Callable[[str, str], tuple[str, str, str]], form: str) -> Any:
    if isinstance(value, Mapping):
        return value
    values: dict[str, str] = {}
    for text in map(str, value):
        name, _, said = split(text, "=")
        if not (name.strip() and said.strip()):
            raise ValueError(f"{text!r} is not {form}")
        if name.strip() in values:
            raise ValueError(f"{name.strip()} is given twice")
        values[name.strip()] = said
    return values


def scale_bounds(text: str) -> tuple[int, int] | None:
    """The lowest and the highest grade of a scale such as `0-3`; None of any other text.

    >>> scale_bounds("0-3"), scale_bounds("-2-2"), scale_bounds("-5--1"), scale_bounds("3-0")
    ((0, 3), (-2, 2), (-5, -1), None)
    """
    match = _SCALE.fullmatch(text)
    bounds = (int(match[1]), int(match[2])) if match else (0, 0)
    return bounds if bounds[0] < bounds[1] else None


Pairs = Annotated[dict[str, str], BeforeValidator(pairs)]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=10**18)]


class OptionsRefused(UsageError):
    """Options that cannot be used, each with the reason."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = dict(reasons)
        """By the name of the option, without hyphens."""


class Shape(NamedTuple):
    """What values a field takes."""

    of: Any
    """The type of one value."""
    many: bool
    choices: tuple[str, ...] = ()
    also: Callable[[str], bool] | None = None
    """Whether a text is taken that is none of the choices."""


_Plan = TypeVar("_Plan", bound="Options")


class Options(BaseModel):
    """Base of plans and of groups of options; a path may be a string, and one value may stand where several may.

    An OptionsRefused if values are not those of their options; all of them are listed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, use_attribute_docstrings=True)
    section: ClassVar[str] = "options"
    main_options: ClassVar[tuple[str, ...]] = ()
    """The options of a command that matter most, by name; empty where it has few, and `--help` shows them all."""

    def __init_subclass__(cls, section: str = "", main: str = "", **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.section = section or "options"
        cls.main_options = tuple(main.split())

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        fields: dict[str, FieldInfo] = {}
        for _, group in groups_of(cls):
            for name, field in group.items():
                fields[name] = field
        told = "".join(f"\n    {name}: {' '.join((field.description or '').split())}" for name, field in fields.items())
        cls.__doc__ = f"{cls.__doc__ or ''}\n\nArgs:{told}"
        cls.__signature__ = inspect.Signature([_parameter(name, field) for name, field in fields.items()])

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise OptionsRefused(_reasons(type(self), error)) from None

    @field_validator("*", mode="before")
    @classmethod
    def _take(cls, value: Any, info: ValidationInfo) -> Any:
        shape = shape_of(cls.model_fields[info.field_name or ""])
        if shape.many and not isinstance(value, Mapping):
            values = tuple(_path(one, shape) for one in several(() if value is None else value))
            if not values and cls.model_fields[info.field_name or ""].is_required():
                raise ValueError("expected a value, found none")
            return values
        return _path(value, shape)

    @model_validator(mode="after")
    def _as_a_whole(self) -> Self:
        self._check()
        return self

    def _check(self) -> None:
        """Refuse, as a UsageError, values that do not go together; a plan that refuses some says which."""

    def with_values(self: _Plan, **values: Any) -> _Plan:
        """The plan with other values."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | values)

    def part(self, group: "type[Options]") -> dict[str, Any]:
        """The values of the options that a group has too."""
        return {name: getattr(self, name) for name in group.model_fields if name in type(self).model_fields}

    def refuse_unused(self, names: Iterable[str], reason: str) -> None:
        """Refuse, as a UsageError, options that are given and for this reason have no effect."""
        given = [name for name in names if name in self.model_fields_set]
        # From Python, a value may say that an option is not given.
        given = [name for name in given if not any(getattr(self, name) is nothing for nothing in (None, False, ()))]
        if unused := [f"--{option_of(name, type(self).model_fields[name]).name}" for name in given]:
            raise UsageError(f"{', '.join(unused)}: without effect here: {reason}")


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _path(value: Any, shape: Shape) -> Any:
    if shape.of is bool and not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {shown(value)}")
    if isinstance(value, bool) and shape.of is not bool:
        raise ValueError(f"expected a text or a number, found {str(value).lower()}")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("expected a text without NUL")
    # Pydantic takes no text with bytes of a file name that are no UTF-8.
    no_utf8 = shape.of is str and isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)
    is_path = isinstance(value, os.PathLike) or (shape.of is Path and isinstance(value, str))
    return Path(value) if is_path or no_utf8 else value


def _reasons(plan: type[Options], error: ValidationError) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for each in error.errors(include_url=False):
        name = str(each["loc"][0]) if each["loc"] else ""
        field = plan.model_fields.get(name)
        written = option_of(name, field).name if field else name.replace("_", "-")
        if field is None:
            # Only Python can name it, and there options have the names of fields.
            reasons.setdefault(written, f"no such option{did_you_mean(name, plan.model_fields)}")
        else:
            reasons.setdefault(written, _reason(each["type"], each.get("ctx", {}), each["input"], each["msg"], field))
    return reasons


_WANTED = {"int": "an integer", "float": "a number", "finite": "a finite number", "string": "a text", "path": "a path"}


def _reason(kind: str, limits: Mapping[str, Any], value: Any, message: str, field: FieldInfo) -> str:
    if kind == "missing":
        return "a value is required"
    if kind == "literal_error":
        return no_choice(value, shape_of(field).choices)
    if kind == "value_error":
        return str(limits["error"])
    if (what := _WANTED.get(kind.split("_")[0])) is not None:
        return f"expected {what}, found {shown(value)}"
    bounds = {
        "greater_than_equal": "{ge:,.10g} or more",
        "greater_than": "a number above {gt:,.10g}",
        "less_than_equal": "{le:,.10g} or less",
        "less_than": "a number below {lt:,.10g}",
        "too_long": "at most {max_length} values",
    }
    if kind in bounds:
        return f"expected {bounds[kind].format(**limits)}, found {shown(value)}"
    return message


def option_of(name: str, field: FieldInfo) -> Option:
    """How the command line writes a field."""
    option = next((each for each in field.metadata if isinstance(each, Option)), Option())
    return option if option.name else option._replace(name=name.replace("_", "-"))


def shape_of(field: FieldInfo) -> Shape:
    """What values a field takes, None apart."""
    known = next((each for each in field.metadata if isinstance(each, OneOf)), OneOf(()))
    return _shape(field.annotation, known)


def _shape(annotation: Any, known: OneOf) -> Shape:
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if origin is Annotated:
        inside = next((each for each in parts[1:] if isinstance(each, OneOf)), known)
        return _shape(parts[0], inside)
    if origin in (Union, types.UnionType):
        kinds = [part for part in parts if part is not types.NoneType]
        return _shape(kinds[0], known)
    if origin is tuple and parts[-1] is not ...:
        return Shape(str, False, known.names, known.also)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Shape(str, True)
    if origin is tuple:
        return _shape(parts[0], known)._replace(many=True)
    if origin is Literal:
        return Shape(str, False, tuple(map(str, parts)))
    return Shape(annotation, False, known.names, known.also)


def groups_of(plan: type[Options]) -> Iterator[tuple[str, dict[str, FieldInfo]]]:
    """The options of a plan under their headings, in the order of the classes that it inherits, its own last."""
    seen: set[str] = set()
    for group in _groups(plan):
        names = [name for name in inspect.get_annotations(group) if name in plan.model_fields and name not in seen]
        seen.update(names)
        title = group.section
        fields = dict[str, FieldInfo]()
        for name in names:
            if (new := option_of(name, plan.model_fields[name]).section) and fields:
                yield title, fields
                fields = {}
            title, fields[name] = new or title, plan.model_fields[name]
        yield title, fields


def _groups(plan: type[Options]) -> Iterator[type[Options]]:
    for base in plan.__bases__:
        if issubclass(base, Options) and base is not Options:
            yield from _groups(base)
    yield plan


class Call(Options):
    """What the manifest records of the call that made a plan."""

    argv: Annotated[tuple[Any, ...], Option(hidden=True)] = ()
    """The command line, whose words may be no UTF-8."""
    chosen: Annotated[dict[str, Any], Option(hidden=True)] = Field(default_factory=dict)
    """The options that are not the default, by their names on the command line; `--extend` takes them over."""


def toml_text(options: Mapping[str, Any]) -> str:
    r"""Keys of letters and hyphens with texts, numbers, booleans or lists of these, in the given order.

    Raises:
        ValueError: A text has no UTF-8, such as the name of a file in another encoding.

    >>> print(toml_text({"runs": ["a", 'b"c'], "depth": 2, "strict": True}), end="")
    runs = ["a", "b\"c"]
    depth = 2
    strict = true
    """
    text = "".join(f"{key} = {_value(value)}\n" for key, value in options.items())
    text.encode()
    return text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_value, value))}]"
    # JSON escapes all that TOML wants escaped, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def in_folders(plan: _Plan, /, **names: Sequence[str]) -> _Plan:
    """The plan with files for folders that its fields name: the first of these names there; an InputError without."""
    changed: dict[str, object] = {}
    for field, wanted in names.items():
        given = getattr(plan, field)
        if given is not None:
            files = tuple(file_in(path, *wanted) for path in several(given))
            changed[field] = files if isinstance(given, tuple) else files[0]
    return plan.with_values(**changed)
