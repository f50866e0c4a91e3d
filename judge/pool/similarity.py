"""How similar a response is to its passages, by the vectors of an encoder. Pure."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from judge.io.words import split_sentences

Encoder = Callable[[Sequence[str]], NDArray[np.float32]]
"""Maps N texts to N vectors (N x D); a vector need not have length one."""


class Similarity:
    """Similarity of a response to its passages; each passage is encoded once.

    It is the mean, over the response's sentences, of the highest cosine with a sentence of the passages.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def __call__(self, text: str, passages: Sequence[str]) -> float | None:
        """The similarity, from -1 to 1; None where the text or all passages have no sentence with a vector."""
        own = self._encode(split_sentences(text))
        known = [vectors for passage in passages if len(vectors := self._passage(passage))]
        if not len(own) or not known:
            return None
        best = np.max([(own @ vectors.T).max(axis=1) for vectors in known], axis=0)
        return float(best.mean())

    def _passage(self, passage: str) -> NDArray[np.float32]:
        vectors = self._vectors.get(passage)
        if vectors is None:
            vectors = self._vectors[passage] = self._encode(split_sentences(passage))
        return vectors

    def _encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """One vector of length one a sentence (N x D); a zero vector stays zero, one that is not finite is dropped."""
        if not sentences:
            return np.zeros((0, 0), dtype=np.float32)
        vectors = np.asarray(self._encoder(sentences), dtype=np.float32)
        vectors = vectors[np.isfinite(vectors).all(axis=1)]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: NDArray[np.float32] = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
        return scaled
