"""`local/NAME` or `local/PATH.gguf`: a small LLM in this process, on this machine's CPU; nothing is sent anywhere.

One request is computed at a time, on all free cores; the start that its prompt shares with the last prompt is not
computed again. Completions in the label form come with the probability of every label.
"""

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judge.errors import OperationalError, UsageError
from judge.io.installed import need_extra
from judge.io.processes import usable_cores
from judge.io.text import did_you_mean
from judge.judges.catalog import CATALOG, ModelWeights
from judge.judges.chat import chat_messages, response_format
from judge.judges.engine import Engine, engine_version, load_engine, start, trained_context
from judge.judges.model import Model, ModelOptions
from judge.judges.records import AnswerForm, Completion, Request
from judge.judges.weights import cached_digest, ensure, is_here, weights_file
from judge.records import Criterion

_CONTEXT, _NOT_SENT = 8192, frozenset({"weights", "engine", "n_ctx"})
"""Tokens of prompt and completion together, fewer where a model was trained on fewer; and the parameters that are fixed
when the engine is loaded."""


class _File(NamedTuple):
    path: Path
    sha256: str
    context: int


class LocalModel(Model):
    """A judge in this process.

    Its calls cannot be cut short, so they have no time limit.
    """

    forms: tuple[AnswerForm, ...] = ("label", "json", "text")
    max_concurrency = 1
    uses_cores = True
    free = True

    def __init__(self, source: ModelWeights | Path, options: ModelOptions) -> None:
        # The name goes into every record and must not depend on the folder of the file.
        self.name = f"local/{source.name}"
        self._source = source
        self._options = options
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a machine without the engine, and a file that holds no model."""
        need_extra("llama", self.name)
        load_engine()
        if isinstance(self._source, Path):
            trained_context(self._source)

    def prepare(self, report: Callable[[str, int, int], None]) -> None:
        """Fetch the weights if they are missing, and load them."""
        if isinstance(self._source, ModelWeights):
            ensure(self._source, report)
        with self._lock:
            if self._engine is None:
                self._engine = self._open()

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything beside the messages and the machine (its processor, the threads) that can change a completion."""
        return {
            "weights": self._file.sha256,
            "engine": engine_version(),
            "n_ctx": self._file.context,
            "temperature": self._options.temperature,
            "seed": (self._options.seed or 0) + request.sample,
            **self._form(request),
        }

    async def complete(self, request: Request) -> Completion:
        """Ask once, in a thread."""
        return await asyncio.to_thread(self._complete, request)

    async def aclose(self) -> None:
        """Unload the weights."""
        await asyncio.to_thread(self._close)

    def _complete(self, request: Request) -> Completion:
        sent = {name: value for name, value in self.parameters(request).items() if name not in _NOT_SENT}
        messages = chat_messages(request)
        with self._lock:
            if self._engine is None:
                self._engine = self._open()
            started = time.perf_counter()
            reply = self._engine.ask(messages, sent)
            latency = time.perf_counter() - started
        return Completion(
            text=reply.text,
            # A whole label is complete even where the token limit ended it, see `_form`.
            finish_reason="stop" if request.form == "label" and reply.text in request.labels else reply.finish_reason,
            model=f"{self._file.path.stem}@{self._file.sha256[:8]}",
            system_fingerprint=engine_version(),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=0.0,
            latency=round(latency, 3),
            probabilities=label_probabilities(reply.first_tokens, request.labels) if request.form == "label" else None,
        )

    def _form(self, request: Request) -> dict[str, Any]:
        if request.form == "label":
            # A token has at least one byte, so the longest label needs no more tokens than it has bytes.
            return {"labels": list(request.labels), "max_tokens": max(len(label.encode()) for label in request.labels)}
        if request.form == "text":
            return {"max_tokens": self._options.max_tokens}
        schema = response_format(request)["response_format"]["json_schema"]["schema"]
        return {"max_tokens": self._options.max_tokens, "schema": schema}

    @functools.cached_property
    def _file(self) -> _File:
        source = self._source
        if isinstance(source, ModelWeights):
            return _File(weights_file(source), source.sha256, _CONTEXT)
        return _File(source, cached_digest(source), min(_CONTEXT, trained_context(source) or _CONTEXT))

    def _open(self) -> Engine:
        file, again = self._file, ""
        if isinstance(self._source, ModelWeights):
            pull = f"; `judge models pull {self._source.name}` fetches them"
            if not is_here(self._source):
                raise OperationalError(f"{self.name}: the weights are not here{pull}")
            again = f"{pull} anew"
        try:
            sha256 = cached_digest(file.path)
        except OSError as error:
            raise OperationalError(f"{file.path}: cannot be read: {error.strerror}") from error
        if sha256 != file.sha256:
            # Every record names the digest of the weights, so no others may answer.
            raise OperationalError(
                f"{file.path}: these are not the weights of {self.name}: SHA-256 {sha256}, "
                f"expected {file.sha256}{again}"
            )
        # Above temperature 0 a prompt is asked again for each sample, and its last token would be computed alone.
        reuse = self._options.temperature == 0
        return start(file.path, file.context, self._options.threads or usable_cores(), reuse=reuse)

    def _close(self) -> None:
        with self._lock:
            self._engine = None


def label_probabilities(tokens: Iterable[tuple[str, float]], labels: Sequence[str]) -> dict[str, float] | None:
    """Probability of each label, from the unconstrained distribution of the first token, normalized over the labels.

    A token counts for a label if that label begins with it and no other label does; outer whitespace and case are
    ignored. Probabilities have six significant digits; the result is None if no token counts.

    >>> label_probabilities([("Yes", 0.4), ("no", 0.1), (" yes", 0.1), ("The", 0.4)], ["yes", "no"])
    {'yes': 0.833333, 'no': 0.166667}
    """
    masses = dict.fromkeys(labels, 0.0)
    for token, probability in tokens:
        prefix = token.strip().casefold()
        matching = [label for label in labels if prefix and label.casefold().startswith(prefix)]
        if len(matching) == 1:
            masses[matching[0]] += probability
    total = sum(masses.values())
    if total <= 0:
        return None
    return {label: float(f"{mass / total:.6g}") for label, mass in masses.items()}


def open_model(model: str, options: ModelOptions) -> LocalModel:
    """A model of the catalog by its name, or any GGUF file by its path."""
    if options.base_url is not None:
        raise UsageError(f"--base-url is for judges that run elsewhere; local/{model} runs here")
    if model in CATALOG:
        return LocalModel(CATALOG[model], options)
    if not model.endswith(".gguf"):
        raise UsageError(
            f"no local model called {model!r}{did_you_mean(model, CATALOG)} (there are {', '.join(CATALOG)}, or "
            "local/PATH for a file PATH.gguf)"
        )
    return LocalModel(Path(model).expanduser(), options)
