"""A cross-encoder from a file as a scorer, through onnxruntime, on this machine's CPU."""

import asyncio
import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.errors import CallError, InputError, RejectedError, UsageError
from judge.files.extras import need_extra
from judge.models.chat import refuse_replicas
from judge.models.engine import usable_cores
from judge.models.http_errors import shorten
from judge.models.model import FREE, ModelOptions, Price, Unfinished
from judge.models.onnx_files import ModelFiles, read_model_files
from judge.models.pair_classes import pair_score
from judge.models.pair_tokenizer import PairTokenizer, first_line
from judge.models.scorers import PairScore, ScorerSettings

VERSION = 1
"""Goes up whenever the same logits may give another score."""

_INPUTS = frozenset(("input_ids", "attention_mask", "token_type_ids"))
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


class OnnxScorer:
    """Runs a cross-encoder on (passage, sentence): the passage is the premise, the sentence the hypothesis.

    A passage that is too long is read in windows, and a pair has the highest probabilities of its windows. Every window
    is computed alone and in one thread, so a score depends neither on other pairs nor on the number of threads.

    Args:
        path: The model, or the folder that holds it.
        options: `threads` items are scored at the same time.
        settings: `supports` and `contradicts`, where the labels do not tell the classes.
    """

    price: Price | None = FREE
    unfinished = Unfinished()

    def __init__(self, path: str, options: ModelOptions, settings: ScorerSettings) -> None:
        self._path = Path(path).expanduser()
        self._options = options
        self._settings = settings
        self.concurrency: int | None = options.threads or usable_cores()
        self._files: ModelFiles | None = None
        self._tokenizer: PairTokenizer | None = None
        self._session: Any = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Load the model, and refuse one that cannot be used.

        Raises:
            UsageError: onnxruntime is not installed, or an address is given.
            InputError: The files are missing, are broken or are of another kind of model.
        """
        name = f"checker/onnx/{self._path.name}"
        need_extra("onnx", name)
        refuse_replicas(self._options.replicas, name)
        if self._options.base_url is not None:
            raise UsageError(f"--base-url is for judges that run elsewhere; {name} runs here")
        self._open()
        try:
            # Whether its classes are known shows in the first score, and must not show in the middle of a run.
            self._score("a", "a")
        except CallError as error:
            raise UsageError(f"{name}: {error}") from error

    def parameters(self) -> dict[str, Any]:
        """The digest of the files, the version of onnxruntime, and the settings that there are."""
        import onnxruntime

        given = {name: value for name, value in self._settings._asdict().items() if value}
        return {
            "onnx": VERSION,
            "files": self._read().digest,
            "engine": f"onnxruntime {onnxruntime.__version__}",
        } | given

    def sent(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Nothing is sent."""

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores, one pair after the other.

        Raises:
            ContextLengthError: A sentence leaves no room for the passage.
            RejectedError: The model gives something that is no probability.
        """
        return await asyncio.to_thread(lambda: [self._score(*pair) for pair in pairs])

    async def aclose(self) -> None:
        """Unload the model."""
        with self._lock:
            self._session = self._tokenizer = None

    def _score(self, passage: str, sentence: str) -> PairScore:
        windows = [self._run(window) for window in self._open().windows(passage, sentence)]
        return PairScore(max(window.supports for window in windows), max(window.contradicts for window in windows))

    def _run(self, window: Any) -> PairScore:
        import numpy as np

        values = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        given = {
            entry.name: np.array([values[entry.name]], dtype=_TYPES[entry.type]) for entry in self._session.get_inputs()
        }
        try:
            logits = self._session.run(None, given)[0]
        except Exception as error:  # its classes have no base of their own
            raise RejectedError(f"the model cannot read a pair: {first_line(error)}") from error
        row = np.asarray(logits)
        if row.dtype.kind != "f" or row.ndim != 2 or row.shape[0] != 1 or not row.size or not np.isfinite(row).all():
            raise RejectedError(f"the model gives no finite logits for a pair, but {shorten(str(logits))}")
        probabilities = _probabilities([float(logit) for logit in row[0]])
        # An exporter leaves out labels that say nothing.
        labels = self._read().labels or tuple(f"LABEL_{number}" for number in range(len(probabilities)))
        if len(labels) != len(probabilities):
            raise RejectedError(f"the model gives {len(probabilities)} classes, and its config.json {len(labels)}")
        return pair_score(labels, probabilities, self._settings, ordered=True)

    def _read(self) -> ModelFiles:
        if self._files is None:
            self._files = read_model_files(self._path)
        return self._files

    def _open(self) -> PairTokenizer:
        with self._lock:
            if self._tokenizer is None:
                tokenizer = PairTokenizer(self._read())
                self._session = _session(self._read())
                self._tokenizer = tokenizer
            return self._tokenizer


def _probabilities(logits: Sequence[float]) -> list[float]:
    """The logistic function of one logit, or the shares of several by the softmax.

    >>> _probabilities([0.0]), _probabilities([0.0, 0.0])
    ([0.5], [0.5, 0.5])
    """
    if len(logits) == 1:
        # In this form no number is too large for the exponential function.
        return [0.5 * (1.0 + math.tanh(logits[0] / 2))]
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    return [power / math.fsum(powers) for power in powers]


def _session(files: ModelFiles) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # What goes wrong is said by exceptions.
    options.log_severity_level = 4
    try:
        # Weights outside the model are found by its path; all others are those that were digested.
        source = str(files.model) if files.parts else files.model.read_bytes()
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes have no base of their own
        raise InputError(f"{files.model}: cannot be loaded as ONNX: {first_line(error)}") from error
    inputs = {entry.name: entry.type for entry in session.get_inputs()}
    if not {"input_ids"} <= set(inputs) <= _INPUTS or not set(inputs.values()) <= set(_TYPES):
        found = json.dumps(inputs)
        raise InputError(
            f"{files.model}: has the inputs {shorten(found)}, expected input_ids, and perhaps attention_mask and "
            "token_type_ids, of whole numbers"
        )
    return session
