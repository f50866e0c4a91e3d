"""Checkers: judges that give the probability of support and no text.

checkers     what all of them share: questions, grades, their digests
served       those behind a server: a classifier, a chat model
onnx         a cross-encoder from a file
rerankers    grades of passages, by either way

Here are their names: `checker/<kind>[#settings][@threshold]`, which checks each sentence of a response against each
used passage, or each nugget; a reranker, each passage against the question.
"""

from collections.abc import Callable
from pathlib import Path

from judge.errors import InputError, UsageError
from judge.extra.checkers.checkers import THRESHOLD, Checker, OverlapChecker, probability
from judge.extra.checkers.onnx import ModelFiles, OnnxChecker
from judge.extra.checkers.rerankers import OnnxReranker, ServerReranker
from judge.extra.checkers.served import NO_INSTRUCTION, ChatChecker, ServerChecker, read_instruction
from judge.io.text import did_you_mean
from judge.io.text import digest as text_digest
from judge.judges.model import Backend, Model, ModelOptions

BACKEND = Backend(module="judge.extra.checkers", checker=True, ready="options and files can be used")


DIGITS = 8
"""Of the digest of a file in the name of a judge."""
KINDS: dict[str, type[Checker]] = {
    kind.kind: kind for kind in (OverlapChecker, ServerChecker, ChatChecker, OnnxChecker, ServerReranker, OnnxReranker)
}


def open_model(model: str, options: ModelOptions) -> Model:
    """The checker of this name: one of KINDS, with `#settings` and `@threshold` or without."""
    name, at, written = model.rpartition("@")
    if not at or "/" in written:
        # What has a slash is the rest of a path and no threshold.
        name = model
        at = ""
        written = str(THRESHOLD)
    first, _, rest = name.partition("/")
    kind = KINDS.get(first)
    if kind is None or bool(kind.model_needed) != bool(rest):
        *names, last = (f"checker/{kind.kind}/{kind.model_needed}".rstrip("/") for kind in KINDS.values())
        raise UsageError(
            f"no checker called {name!r}{did_you_mean(name, KINDS)} (expected {', '.join(names)} or {last})"
        )
    rest, settings = _settings(rest, kind)
    checker = kind(rest, options, settings)
    checker.threshold = probability(written)
    if not 0 < checker.threshold <= 1:
        raise UsageError(f"threshold {written!r} of a checker: expected a number above 0 and up to 1, as in @0.5")
    # The name goes into every record: it must not depend on a folder, and two files must not share it.
    if issubclass(kind, OnnxChecker):
        path = Path(rest).expanduser()
        rest = _titled(path.name.removesuffix(".onnx"), lambda: ModelFiles(path).digest)
    if (file := settings.get("instruction", NO_INSTRUCTION)) != NO_INSTRUCTION:
        settings = {"instruction": _titled(Path(file).name, lambda: text_digest(read_instruction(file)))}
    shown = ",".join(f"{setting}={value}" for setting, value in settings.items())
    checker.name = f"checker/{first}{rest and f'/{rest}'}{shown and f'#{shown}'}{at and f'@{written}'}"
    return checker


def _titled(name: str, digest: Callable[[], str]) -> str:
    """The name of a file or folder, with the beginning of a digest."""
    try:
        return f"{name}~{digest()[:DIGITS]}"
    except InputError:
        # The checker's check says what is wrong with the files, after what is wrong with the installation.
        return name


def _settings(rest: str, kind: type[Checker]) -> tuple[str, dict[str, str]]:
    """What stands before the last `#` of a name, and the settings after it, if there are any."""
    before, mark, written = rest.rpartition("#")
    if not mark or "=" not in written:
        return rest, {}
    given: dict[str, str] = {}
    for part in written.split(","):
        key, _, value = part.partition("=")
        if key not in kind.takes or not value or key in given:
            raise UsageError(
                f"setting {part!r} of checker/{kind.kind}{did_you_mean(key, kind.takes)} (expected settings as in "
                f"#supports=0,contradicts=2, each once; it takes {', '.join(kind.takes) or 'none'})"
            )
        given[key] = value
    # Names and records have the settings in this order.
    return before, {name: given[name] for name in kind.takes if name in given}
