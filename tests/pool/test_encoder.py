import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from judge.errors import UsageError
from judge.pool.encoder import Similarity, open_encoder


def test_without_the_extra_the_user_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"pip install 'judge\[encoder\]'"):
        open_encoder("any")


class Transformer:
    """Stands for SentenceTransformer: one dimension, the length of the text."""

    def __init__(self, name: str) -> None:
        if name == "nowhere":
            raise OSError("nowhere is not a folder\nand not a name")

    def encode(
        self, texts: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> np.ndarray:
        assert isinstance(texts, list)
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
def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"--encoder 'nowhere' cannot be loaded: nowhere is not a folder$"):
        open_encoder("nowhere")


@pytest.mark.slow
def test_the_library_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, judge.pool.encoder, judge.pool.screen; sys.exit('sentence_transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.filterwarnings("default")
def test_a_model_of_the_real_library(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="the extra `encoder` is not installed")
    modules = importlib.import_module("sentence_transformers.models")
    words = modules.BoW(vocab=["ferry", "noon", "quantum"])
    library.SentenceTransformer(modules=[words]).save(str(tmp_path / "model"))
    similar = Similarity(open_encoder(str(tmp_path / "model")))
    assert similar("ferry noon", ["ferry noon"]) == pytest.approx(1)
    assert similar("quantum", ["ferry noon"]) == pytest.approx(0)
