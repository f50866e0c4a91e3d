"""What is installed: folders with the program, its version, and the extras.

An extra is a large package that a plain installation leaves out: a row here and a line in pyproject.toml. Where it is
needed, `need_extra` stops before any work.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from judge.errors import JudgeError, UsageError

__version__ = "1.0.0rc1"
DISTRIBUTION = "trec-judge"
"""The name for pip; `judge` is another's package."""

_LONGEST_REASON = 300
_PACKAGE = Path(__file__).parent.parent


def bundled(name: str) -> Path:
    """The folder `name` (`prompts`, `gold` or `examples`): inside the wheel, or beside the package in a checkout."""
    inside = _PACKAGE / "_bundled" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


EXTRAS = {
    "crowd": "polars",
    "llama": "openvino-genai",
    "pictures": "matplotlib",
    "rouge": "rouge-score",
    "ray": "ray",
    "onnx": "onnxruntime",
    "ir": "ir_datasets",
    "autojudge": "autojudge-base",
}
"""Each extra with its package, as pip calls it."""
_BESIDE = {"autojudge": ", and NLTK's stop words"}
"""What pip cannot install with an extra."""


def module_of(package: str) -> str:
    """The name in Python of the package of an extra."""
    return package.partition("[")[0].replace("-", "_")


def has_extra(name: str) -> bool:
    """Whether the package of an extra is installed; it is not imported."""
    try:
        spec = find_spec(module_of(EXTRAS[name]))
    except ValueError:
        # The module is loaded, and nothing says from where.
        return True
    # A folder of this name without a module in it is no package.
    return spec is not None and spec.has_location


def how_to_get(name: str) -> str:
    """The command that installs an extra, and what is needed beside it.

    >>> how_to_get("crowd")
    "`pip install 'trec-judge[crowd]'`"
    """
    return f"`pip install '{DISTRIBUTION}[{name}]'`{_BESIDE.get(name, '')}"


def need_extra(name: str, what: str) -> None:
    """Stop with a UsageError where an extra is not installed; `what`: what needs it, a subject."""
    if not has_extra(name):
        raise UsageError(f"{what} needs {EXTRAS[name]}, which is not installed: {how_to_get(name)}")


@contextmanager
def package_errors(kind: type[JudgeError], what: str) -> Iterator[None]:
    """Whatever a package raises or, in Rust, panics with, is an error of this kind: `what`, and its first line."""
    try:
        yield
    except BaseException as error:
        # A panic is no Exception, and no module has its class.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().partition("\n")[0][:_LONGEST_REASON] or type(error).__name__
        raise kind(f"{what}: {reason}") from error


def undrawn(pictures: str) -> tuple[str, ...]:
    """A warning that `pictures`, a plural subject, are not drawn; none where they can be."""
    if has_extra("pictures"):
        return ()
    return (f"{pictures} are not drawn, because matplotlib is not installed: {how_to_get('pictures')}",)
