"""Encoders for the screen: those of ENCODERS by name, and any model of sentence-transformers by name or folder.

Their packages are extras, imported on first use. sentence-transformers downloads a named model on first use.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.errors import UsageError
from judge.files.extras import need_extra
from judge.files.paths import StrPath
from judge.pool.minilm import open_minilm
from judge.pool.screen import DEFAULTS, Thresholds
from judge.pool.similarity import Encoder
from judge.text.safe import shown

_BATCH = 64


class NamedEncoder(NamedTuple):
    """An encoder that an extra brings."""

    extra: str
    """A key of EXTRAS."""
    open: Callable[[], Encoder]
    similarity: float
    """The screen flags a response below this similarity; docs/pooling.md has the reason."""


ENCODERS = {"minilm": NamedEncoder("encoder", open_minilm, 0.25)}
"""The encoders by name."""


def open_encoder(name: StrPath) -> Encoder:
    """The encoder of this name in ENCODERS, or the sentence-transformers model of this name or folder.

    Raises:
        UsageError: Its package is not installed, or there is no such model.
    """
    name = os.fspath(name)
    if name not in ENCODERS:
        return _open_transformer(name)
    need_extra(ENCODERS[name].extra, f"--encoder {name}")
    return ENCODERS[name].open()


def default_thresholds(encoder: StrPath | None) -> Thresholds:
    """Where the screen flags a response by this encoder, or by words, unless the user says otherwise."""
    known = ENCODERS.get(os.fspath(encoder)) if encoder is not None else None
    return replace(DEFAULTS, similarity=known.similarity) if known else DEFAULTS


def _open_transformer(model: str) -> Encoder:
    need_extra("sentence-transformers", f"--encoder {shown(model)} is not one of {', '.join(ENCODERS)}, so it")
    try:
        from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise UsageError(f"--encoder needs sentence-transformers, which cannot be loaded here: {error}") from error
    try:
        transformer = SentenceTransformer(model)
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise UsageError(f"--encoder {shown(model)} cannot be loaded: {reason}") from error

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = transformer.encode(
            list(texts), batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False
        )
        return vectors

    return encode
