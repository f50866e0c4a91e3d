"""The judgments of an output folder as Parquet files: what `judge convert --to parquet` does, for use from Python."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from judge.ask.records import Failure, Judgment
from judge.ask.results import FAILURES, JUDGMENTS, MEMBER_FAILURES, MEMBERS
from judge.errors import InputError, OperationalError, refuse
from judge.io.files import LineStream, decode_rows, too_many
from judge.io.folder import check_apart, check_own_folder, make_folder, remove_files, temporary_name
from judge.io.installed import need_extra
from judge.io.plan import Options
from judge.io.steps import Step, Steps, quiet
from judge.io.tabular import SUFFIX, Schema, write_parquet
from judge.records import Problem, file_problem

PARQUET = "parquet"
"""The name of the form."""
_KINDS: dict[str, type[Judgment | Failure]] = {
    JUDGMENTS: Judgment,
    FAILURES: Failure,
    MEMBERS: Judgment,
    MEMBER_FAILURES: Failure,
}
_LEAST, _MOST = -(2**63), 2**63 - 1
"""What a column of integers holds."""
_TOO_LARGE = f"an integer that no column holds: expected {_LEAST} to {_MOST}"


class ResultsConvertPlan(Options):
    """Everything `judge convert --to parquet` can be told."""

    folder: Path
    """Output folder of `judge run`."""
    out: Path
    """The folder for the Parquet files."""


def convert_results(plan: ResultsConvertPlan, steps: Steps = quiet) -> dict[Path, int]:
    """Write the judgments and failures of an output folder as Parquet files; the rows of each. One line is in memory.

    A column is a field of the JSON lines, under its name; `kind` has none, since the file says it. Label probabilities
    are a list of `label` and `probability`. A UsageError if polars is not installed, or `out` is the output folder or
    holds other files. An InputError if the folder has no judgments, lines are none or hold an integer of more than 64
    bits, or a folder stands where a table has to be. An OperationalError if the disk cannot be written.
    """
    folder = plan.folder
    out = plan.out
    need_extra("crowd", f"--to {PARQUET}")
    if not (folder / JUDGMENTS).is_file():
        raise InputError(f"{folder}: no {JUDGMENTS} there: expected an output folder of `judge run`")
    check_apart(out, [folder])
    names = {name: _parquet(name) for name in _KINDS}
    check_own_folder(out, set(names.values()), names[JUDGMENTS])
    if folders := [str(out / name) for name in names.values() if (out / name).is_dir()]:
        raise InputError(f"{', '.join(folders)}: a folder where a file has to be")
    present = [name for name in names if (folder / name).is_file()]
    with _own(out) as waiting:
        rows = {
            out / names[name]: write_parquet(
                waiting / names[name],
                _schema(_KINDS[name]),
                _rows(folder / name, _KINDS[name], steps),
                told=out / names[name],
            )
            for name in present
        }
        for name in present:
            (waiting / names[name]).replace(out / names[name])
        remove_files(out, [names[name] for name in names if name not in present])
    return rows


@contextlib.contextmanager
def _own(out: Path) -> Iterator[Path]:
    """A folder in `out` where tables wait until all are made; without success, no folder that was made for it stays."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    # In `out`, which may be on another disk than the folder around it. Its name is one that `check_own_folder` knows.
    waiting = out / temporary_name(_parquet(JUDGMENTS))
    try:
        make_folder(out)
        shutil.rmtree(waiting, ignore_errors=True)
        waiting.mkdir()
        try:
            yield waiting
        finally:
            shutil.rmtree(waiting, ignore_errors=True)
    except BaseException as error:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise OperationalError(f"{out}: cannot be written: {error.strerror}") from error
        raise


def _parquet(name: str) -> str:
    return Path(name).stem + SUFFIX


def _rows(path: Path, kind: type[Judgment | Failure], steps: Steps) -> Iterator[tuple[Any, ...]]:
    """The values of each line of a file, as its columns take them."""
    code = f"not_a_{kind.__name__.lower()}"
    problems: list[Problem] = []
    lines = LineStream(path)
    with lines.file:
        for number, record in decode_rows(lines, kind, str(path), code, problems):
            steps(Step(f"converting {path.name}", number))
            values = {name: getattr(record, name) for name in kind.__struct_fields__}
            for name, value in values.items():
                if isinstance(value, int) and not _LEAST <= value <= _MOST:
                    problems.append(file_problem(code, path, _TOO_LARGE, f"line {number}: $.{name}"))
            if not problems:
                yield tuple(map(_value, values.values()))
            if too_many(problems, str(path), number):
                break
    refuse(problems, f"{path}: not usable as results")


def _value(value: object) -> object:
    if isinstance(value, dict):
        return [{"label": label, "probability": probability} for label, probability in value.items()]
    return value if value is None or isinstance(value, str | int | float) else msgspec.to_builtins(value)


def _schema(kind: type[msgspec.Struct]) -> Schema:
    return {field.name: _column(field.type) for field in msgspec.structs.fields(kind)}


def _column(kind: Any) -> Any:
    """The polars type of a field; every column may be null."""
    import polars as pl

    plain = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    if kind in plain:
        return plain[kind]
    parts = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) in (Union, UnionType):
        return _column(parts[0])
    if get_origin(kind) is Literal:
        return pl.String
    if get_origin(kind) is tuple:
        return pl.List(_column(parts[0]))
    if get_origin(kind) is dict:
        return pl.List(pl.Struct({"label": pl.String, "probability": pl.Float64}))
    return pl.Struct(_schema(kind))
