"""The files of a cross-encoder in ONNX: the model, its tokenizer, and what its configuration says of both."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from judge.errors import InputError
from judge.files.stored import read_stored
from judge.models.weights import cached_digest

USUAL_LENGTH = 512
"""Tokens of a pair, where no file says how many the model takes."""
_PLACES = ("model.onnx", "onnx/model.onnx")
"""Where a folder has its model, as the common exporters write it."""
_LONGEST = 1 << 20
"""A larger number of tokens stands for no limit."""
_OFFSET = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "roberta-prelayernorm")
"""Types of models that number positions from 2, so that two of their positions hold no token."""


class ModelFiles(NamedTuple):
    """What the files say."""

    model: Path
    parts: tuple[Path, ...]
    """Files beside the model that hold its weights, if it has them outside."""
    tokenizer: bytes
    labels: tuple[str, ...]
    """The label of each class; empty if the configuration names none."""
    length: int
    """Tokens of a pair, at most."""
    digest: str
    """SHA-256 over the digests of all these files."""


def read_model_files(path: Path) -> ModelFiles:
    """The files of a model.

    Args:
        path: The model, or the folder that holds it with `tokenizer.json` and `config.json`.

    Raises:
        InputError: One of them is missing or cannot be read.
    """
    model = _model(path)
    tokenizer = _beside(model, "tokenizer.json")
    if tokenizer is None:
        raise InputError(f"{model}: there is no tokenizer.json beside it or in the folder above, expected one")
    config_file, limits_file = _beside(model, "config.json"), _beside(model, "tokenizer_config.json")
    if config_file is None:
        raise InputError(f"{model}: there is no config.json beside it or in the folder above, expected one")
    config = _object(config_file)
    limits = _object(limits_file) if limits_file else {}
    parts = tuple(sorted(part for part in model.parent.glob("*") if _holds_weights(part, model)))
    stored = read_stored(tokenizer)
    try:
        digests = [cached_digest(file) for file in (model, *parts)]
    except OSError as error:
        raise InputError(f"{error.filename or model}: cannot be read: {error.strerror}") from error
    digests += [hashlib.sha256(stored).hexdigest(), cached_digest(config_file)]
    # Its limit decides the windows.
    digests += [cached_digest(limits_file)] if limits_file else []
    return ModelFiles(
        model,
        parts,
        stored,
        _labels(config.get("id2label"), config_file),
        _length(config, limits),
        hashlib.sha256(" ".join(digests).encode()).hexdigest(),
    )


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


def _beside(model: Path, name: str) -> Path | None:
    return next((folder / name for folder in (model.parent, model.parent.parent) if (folder / name).is_file()), None)


def _holds_weights(part: Path, model: Path) -> bool:
    """Whether a file is named as exporters name the weights of a model that are kept outside."""
    return part.name in (f"{model.name}_data", f"{model.name}.data", f"{model.stem}.data") and part.is_file()


def _object(path: Path) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(read_stored(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise InputError(f"{path}: expected an object of JSON")
    return read


def _labels(id2label: Any, path: Path) -> tuple[str, ...]:
    if id2label is None:
        return ()
    numbers = [str(number) for number in range(len(id2label))] if isinstance(id2label, dict) else []
    if not numbers or set(id2label) != set(numbers) or not all(isinstance(label, str) for label in id2label.values()):
        raise InputError(f"{path}: $.id2label: expected an object with a label for each class, numbered from 0")
    labels = tuple(id2label[number] for number in numbers)
    if len({label.lower() for label in labels}) < len(labels):
        raise InputError(f"{path}: $.id2label: two classes have the same label")
    return labels


def _length(config: dict[str, Any], limits: dict[str, Any]) -> int:
    """The least of the numbers that the files give."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET:
        positions -= 2
    given = [
        int(number)
        for number in (positions, limits.get("model_max_length"))
        if isinstance(number, int | float) and not isinstance(number, bool) and 0 < number <= _LONGEST
    ]
    return min(given, default=USUAL_LENGTH)
