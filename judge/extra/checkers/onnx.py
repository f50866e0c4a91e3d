"""A cross-encoder from a file as a scorer, through onnxruntime, on this machine's CPU."""

import asyncio
import functools
import hashlib
import json
import math
import string
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from judge.errors import CallError, ContextLengthError, InputError, RejectedError, UsageError
from judge.extra.checkers.checkers import Checker, PairScore, TextPair, pair_score
from judge.io.files import json_of, read_stored
from judge.io.installed import need_extra, package_errors
from judge.io.processes import usable_cores
from judge.judges.http_errors import shorten
from judge.judges.model import ModelOptions
from judge.judges.weights import cached_digest
from judge.records import Criterion

VERSION = 1
"""Goes up whenever the same logits may give another score."""

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_USUAL_LENGTH, _LONGEST = 512, 1 << 20
"""Tokens of a pair where no file says how many the model takes; a larger number than the last stands for no limit."""
_OVERLAP = 8
"""A window shares a part of its tokens with the next: the tokens of a pair, divided by this."""
_TRIAL = "".join(sign * 40 for sign in "a1 .\n") + string.printable
"""A passage on which most regular expressions that may take too many steps do; it holds what they may look for."""
_PLACES = ("model.onnx", "onnx/model.onnx")
"""Where a folder has its model, as the common exporters write it."""
_OFFSET = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm")
"""Types of models that number positions from 2, so that two of their positions hold no token."""


class OnnxChecker(Checker):
    """Runs a cross-encoder on (passage, sentence): the passage is the premise, the sentence the hypothesis.

    A passage that is too long is read in windows, and a pair has the highest probabilities of its windows. Every window
    is computed alone and in one thread, so a score depends neither on other pairs nor on the number of threads. Its
    model is the path of a file, or of the folder that holds it; `threads` items are scored at the same time.
    """

    kind = "onnx"
    model_needed = "PATH"
    takes: tuple[str, ...] = ("supports", "contradicts")
    uses_cores = True
    free = True
    long: Literal["only_first", "only_second"] = "only_first"
    """Which text of a pair is read in windows where it is too long, in the words of tokenizers."""

    def __init__(self, model: str, options: ModelOptions, settings: Mapping[str, str]) -> None:
        super().__init__(model, options, settings)
        self._path = Path(model).expanduser()
        self._called = f"checker/onnx/{self._path.name}"
        self.max_concurrency = options.threads or usable_cores()
        self._opened: tuple[Any, Any] | None = None
        """The tokenizer and the session."""
        self._lock = threading.Lock()

    @functools.cached_property
    def _files(self) -> "ModelFiles":
        return ModelFiles(self._path)

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Load the model, and refuse files that are missing, broken or of another kind of model as an InputError."""
        super().check(criteria)
        need_extra("onnx", self._called)
        if self._options.base_url is not None:
            raise UsageError(f"--base-url is for judges that run elsewhere; {self._called} runs here")
        self._open()
        try:
            # Whether its classes are known shows in the first score, and must not show in the middle of a run.
            self._score(*((_TRIAL, "a") if self.long == "only_first" else ("a", _TRIAL)))
        except CallError as error:
            raise UsageError(f"{self._files.model}: {error}") from error

    def rule(self) -> dict[str, Any]:
        """The digest of the files, the version of onnxruntime, and the settings that there are."""
        import onnxruntime

        engine = f"onnxruntime {onnxruntime.__version__}"
        return {"onnx": VERSION, "files": self._files.digest, "engine": engine, **self._settings}

    async def score(self, pairs: Sequence[TextPair]) -> list[PairScore]:
        """The scores, one pair after the other."""
        return await asyncio.to_thread(lambda: [self._score(*pair) for pair in pairs])

    async def aclose(self) -> None:
        """Unload the model."""
        with self._lock:
            self._opened = None

    def _open(self) -> tuple[Any, Any]:
        with self._lock:
            if self._opened is None:
                self._opened = open_tokenizer(self._files, self.long), _session(self._files)
            return self._opened

    def _score(self, first: str, second: str) -> PairScore:
        tokenizer, session = self._open()
        short = second if self.long == "only_first" else first
        encodings = windows(tokenizer, self._files.length, (first, second), short)
        scores = [self._run(session, encoding) for encoding in encodings]
        return PairScore(max(score.supports for score in scores), max(score.contradicts for score in scores))

    def _run(self, session: Any, window: Any) -> PairScore:
        import numpy as np

        named = dict(zip(_INPUTS, (window.ids, window.attention_mask, window.type_ids), strict=True))
        feed = {entry.name: np.array([named[entry.name]], _TYPES[entry.type]) for entry in session.get_inputs()}
        with package_errors(RejectedError, "the model cannot read a pair"):
            logits = session.run(None, feed)[0]
        row = np.asarray(logits)
        if row.dtype.kind != "f" or row.ndim != 2 or row.shape[0] != 1 or not row.size or not np.isfinite(row).all():
            raise RejectedError(f"the model gives no finite logits for a pair, but {shorten(str(logits))}")
        probabilities = _probabilities([float(logit) for logit in row[0]])
        # An exporter leaves out labels that say nothing.
        labels = self._files.labels or tuple(f"LABEL_{number}" for number in range(len(probabilities)))
        if len(labels) != len(probabilities):
            raise RejectedError(f"the model gives {len(probabilities)} classes, and its config.json {len(labels)}")
        return self.read_classes(labels, probabilities)

    def read_classes(self, labels: Sequence[str], probabilities: Sequence[float]) -> PairScore:
        """The score in the probabilities of the classes; a RejectedError if these are none that it can be read of."""
        return pair_score(labels, probabilities, self._settings, ordered=True)


def _probabilities(logits: Sequence[float]) -> list[float]:
    """The logistic function of one logit, or the shares of several by the softmax.

    >>> _probabilities([0.0]), _probabilities([0.0, 0.0])
    ([0.5], [0.5, 0.5])
    """
    if len(logits) == 1:
        # In this form no number is too large for the exponential function.
        return [0.5 * (1.0 + math.tanh(logits[0] / 2))]
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return [power / math.fsum(powers) for power in powers]


def _session(files: "ModelFiles") -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # What goes wrong is said by exceptions.
    options.log_severity_level = 4
    with package_errors(InputError, f"{files.model}: cannot be loaded as ONNX"):
        # Weights outside the model are found by its path; all others are those that were digested.
        source = str(files.model) if files.parts else files.model.read_bytes()
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    inputs = {entry.name: entry.type for entry in session.get_inputs()}
    if not {"input_ids"} <= set(inputs) <= set(_INPUTS) or not set(inputs.values()) <= set(_TYPES):
        raise InputError(
            f"{files.model}: has the inputs {shorten(json.dumps(inputs))}, expected input_ids, and perhaps "
            "attention_mask and token_type_ids, of whole numbers"
        )
    return session


def open_tokenizer(files: "ModelFiles", long: Literal["only_first", "only_second"]) -> Any:
    """What splits pairs as the file of a tokenizer says."""
    from tokenizers import Tokenizer

    with package_errors(InputError, f"{files.model}: its tokenizer.json cannot be used"):
        tokenizer: Any = Tokenizer.from_str(files.tokenizer.decode())
        # A passage that writes a separator must not end where it likes.
        tokenizer.encode_special_tokens = True
        tokenizer.no_padding()
        tokenizer.enable_truncation(files.length, stride=files.length // _OVERLAP, strategy=long)
    return tokenizer


def windows(tokenizer: Any, length: int, pair: TextPair, short: str) -> list[Any]:
    """A pair as tokens: one encoding, or several where the passage is too long for one.

    A ContextLengthError if the other text, the `short` one, leaves no room. A RejectedError if a text cannot be split.
    """
    # The windows must go on, and a window of a few words says nothing.
    least = 2 * (length // _OVERLAP)
    try:
        "".join(pair).encode()
    except UnicodeEncodeError as error:
        raise RejectedError(f"the pair cannot be read: {error.reason} at character {error.start}") from error
    with package_errors(RejectedError, "its tokenizer.json cannot split a pair"):
        # Only batches let other threads run, so that Ctrl-C is heard in a slow expression.
        (alone,) = tokenizer.encode_batch([short], add_special_tokens=False)
        room = length - len(alone.ids) - tokenizer.num_special_tokens_to_add(True)
        found = tokenizer.encode_batch([pair]) if room > least else ()
    if not found:
        raise ContextLengthError(
            f"the other text leaves {max(room, 0)} of the model's {length} tokens for the passage, expected more "
            f"than {least}"
        )
    return [found[0], *found[0].overflowing]


class _Config(msgspec.Struct):
    """What we read of a configuration; limits of another type are none."""

    id2label: dict[str, str] | None = None
    model_type: Any = None
    max_position_embeddings: Any = None
    model_max_length: Any = None


def _beside(model: Path, name: str) -> Path | None:
    """The file of this name beside a model or in the folder above; None where there is none."""
    for folder in (model.parent, model.parent.parent):
        if (folder / name).is_file():
            return folder / name
    return None


class ModelFiles:
    """The files of a model, given its path or the folder that holds it with `tokenizer.json` and `config.json`."""

    def __init__(self, path: Path) -> None:
        self.model = model = _model(path)
        tokenizer = _beside(model, "tokenizer.json")
        config_file = _beside(model, "config.json")
        limits_file = _beside(model, "tokenizer_config.json")
        if tokenizer is None or config_file is None:
            missing = "tokenizer.json" if tokenizer is None else "config.json"
            raise InputError(f"{model}: there is no {missing} beside it or in the folder above, expected one")
        read = functools.partial(json_of, kind=_Config, otherwise="cannot be read")
        config = read(config_file)
        limits = read(limits_file) if limits_file else _Config()
        # Exporters give these names to weights that are kept outside the model.
        outside = {f"{model.name}_data", f"{model.name}.data", f"{model.stem}.data"}
        self.parts = sorted(part for part in model.parent.glob("*") if part.name in outside and part.is_file())
        # The limits decide the windows.
        files = (model, *self.parts, *(file for file in (tokenizer, config_file, limits_file) if file))
        try:
            digests = " ".join(map(cached_digest, files))
        except OSError as error:
            raise InputError(f"{error.filename or model}: cannot be read: {error.strerror}") from error
        self.digest = hashlib.sha256(digests.encode()).hexdigest()
        """SHA-256 over the digests of all these files."""
        self.labels = _labels(config, config_file)
        """The label of each class; empty if the configuration names none."""
        self.length = _length(config, limits)
        """Tokens of a pair, at most."""
        self.tokenizer = read_stored(tokenizer)


def _model(path: Path) -> Path:
    try:
        if path.is_file():
            return path
        if path.is_dir():
            for place in _PLACES:
                if (path / place).is_file():
                    return path / place
            raise InputError(f"{path}: holds no model, expected {' or '.join(_PLACES)}, or the path of a file .onnx")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    raise InputError(f"{path}: there is no such file or folder, expected a cross-encoder in ONNX")


def _labels(config: _Config, path: Path) -> tuple[str, ...]:
    by_number = config.id2label or {}
    labels = tuple(by_number.get(str(number), "") for number in range(len(by_number)))
    if "" in labels or len({label.lower() for label in labels}) < len(labels):
        raise InputError(f"{path}: $.id2label: expected a label of its own for each class, numbered from 0")
    return labels


def _length(config: _Config, limits: _Config) -> int:
    """The least of the numbers that the files give."""
    positions = config.max_position_embeddings
    if isinstance(positions, int) and config.model_type in _OFFSET:
        positions -= 2
    given = [
        int(number)
        for number in (positions, limits.model_max_length)
        if isinstance(number, int | float) and not isinstance(number, bool) and 0 < number <= _LONGEST
    ]
    return min(given, default=_USUAL_LENGTH)
