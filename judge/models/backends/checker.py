"""`checker/<kind>[#settings][@threshold]`: each sentence of a response against each used passage, or each nugget."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from judge.errors import InputError, UsageError
from judge.models.chat_checker import NO_INSTRUCTION, ChatChecker, read_instruction
from judge.models.checkers import Checker, CheckerSettings, OverlapChecker
from judge.models.model import Model, ModelOptions
from judge.models.onnx_checker import OnnxChecker, read_model_files
from judge.models.server_checker import ServerChecker
from judge.text.hints import did_you_mean
from judge.text.safe import digest as text_digest

DIGITS = 8
"""Of the digest of a file in the name of a judge."""


def open_model(model: str, options: ModelOptions) -> Model:
    """The checker of this name: a row of SCORERS, with `#settings` and `@threshold` or without.

    Raises:
        UsageError: No checker has this name, a setting is none of the scorer's, or the threshold is no probability.
    """
    name, written = split_threshold(model)
    threshold = Checker.threshold if written is None else _threshold(written)
    kind, _, rest = name.partition("/")
    row = SCORERS.get(kind)
    if row is None or bool(row.rest) != bool(rest):
        *names, last = (f"checker/{kind}" + (row.rest and f"/{row.rest}") for kind, row in SCORERS.items())
        raise UsageError(
            f"no checker called {name!r}{did_you_mean(name, SCORERS)} (expected {', '.join(names)} or {last})"
        )
    rest, settings = _settings(rest, kind, row)
    named = settings.named()
    if "instruction" in named:
        named["instruction"] = _instruction_title(named["instruction"])
    # The name goes into every record: it must not depend on a folder, and two files must not share it.
    title = _model_title(rest) if kind == "onnx" else rest
    shown = f"checker/{kind}" + (title and f"/{title}")
    shown += "#" + ",".join(f"{setting}={value}" for setting, value in named.items()) if named else ""
    shown += "" if written is None else f"@{written}"
    checker = row.make(rest, options, settings)
    checker.name, checker.threshold = shown, threshold
    return checker


def split_threshold(name: str) -> tuple[str, str | None]:
    """A checker's name, and the threshold that is written after its last `@`; None if there is none.

    What has a slash is the rest of a path and no threshold.

    >>> split_threshold("checker/overlap@0.6"), split_threshold("checker/onnx/m@v2/x")
    (('checker/overlap', '0.6'), ('checker/onnx/m@v2/x', None))
    """
    before, at, written = name.rpartition("@")
    return (before, written) if at and "/" not in written else (name, None)


def _threshold(written: str) -> float:
    try:
        threshold = float(written)
    except ValueError:
        threshold = -1.0
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {written!r} of a checker: expected a number above 0 and up to 1, as in @0.5")
    return threshold


def _model_title(path: str) -> str:
    """The name of a model's file or folder, with the beginning of the digest of its files."""
    model = Path(path).expanduser()
    return _titled(model.name.removesuffix(".onnx"), lambda: read_model_files(model).digest)


def _instruction_title(path: str) -> str:
    """The name of a file with an instruction, with the beginning of the digest of its text."""
    return path if path == NO_INSTRUCTION else _titled(Path(path).name, lambda: text_digest(read_instruction(path)))


def _titled(name: str, digest: Callable[[], str]) -> str:
    try:
        return f"{name}~{digest()[:DIGITS]}"
    except InputError:
        # The scorer's check says what is wrong with the files, after what is wrong with the installation.
        return name


def _settings(rest: str, kind: str, row: "_Row") -> tuple[str, CheckerSettings]:
    """What stands before the last `#` of a name, and the settings after it, if there are any."""
    before, mark, written = rest.rpartition("#")
    if not mark or "=" not in written:
        return rest, CheckerSettings()
    given: dict[str, str] = {}
    for part in written.split(","):
        key, _, value = part.partition("=")
        if key not in row.settings or not value or key in given:
            raise UsageError(
                f"setting {part!r} of checker/{kind}{did_you_mean(key, row.settings)} (expected settings as in "
                f"#supports=0,contradicts=2, each once; it takes {', '.join(row.settings) or 'none'})"
            )
        given[key] = value
    return before, CheckerSettings(**given)


class _Row(NamedTuple):
    """A kind of scorer."""

    make: Callable[[str, ModelOptions, CheckerSettings], Checker]
    """What makes it of the rest of the name, the options and the settings."""
    rest: str = ""
    """What the rest of the name is; empty if there must be none."""
    settings: tuple[str, ...] = ()
    """The settings that it takes."""


SCORERS = {
    "overlap": _Row(lambda model, options, settings: OverlapChecker()),
    "server": _Row(ServerChecker, "MODEL", ("supports", "contradicts", "join")),
    "chat": _Row(ChatChecker, "MODEL", ("instruction",)),
    "onnx": _Row(OnnxChecker, "PATH", ("supports", "contradicts")),
}
"""Name of a scorer to its row."""
