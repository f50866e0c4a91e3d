import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from judge.errors import InputError, UsageError
from judge.passages import read_passages

INDEX_FILES = ("segments_1", "_0.fdt")


class Document:
    def __init__(self, raw: str | None, contents: str | None) -> None:
        self._raw, self._contents = raw, contents

    def raw(self) -> str | None:
        return self._raw

    def contents(self) -> str | None:
        return self._contents


class JavaError(Exception):
    """What Pyjnius raises for an exception in Java."""


class Reader:
    documents: dict[str, Document] = {}  # noqa: RUF012

    def __init__(self, folder: str) -> None:
        if Path(folder, "broken").exists():
            raise JavaError("JVM exception occurred: CorruptIndexException\n\tat java.lang.Thread")

    def doc(self, passage_id: str) -> Document | None:
        passage_id.encode()
        if passage_id == "cut":
            raise JavaError("read past EOF")
        return self.documents.get(passage_id)


def index(folder: Path) -> Path:
    for name in INDEX_FILES:
        (folder / name).touch()
    return folder


@pytest.fixture(params=["LuceneIndexReader", "IndexReader"])
def pyserini(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Document]:
    """Pyserini under the reader's new and old name, and what the index holds."""
    monkeypatch.setenv("JAVA_HOME", "/java")
    documents: dict[str, Document] = {}
    monkeypatch.setattr(Reader, "documents", documents)
    members: dict[str, dict[str, Any]] = {
        "pyserini": {}, "pyserini.index": {}, "pyserini.pyclass": {},
        "pyserini.index.lucene": {request.param: Reader},
    }  # fmt: skip
    for name, content in members.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return documents


@pytest.mark.parametrize(
    ("raw", "contents", "expected"),
    [
        ('{"id": "a", "contents": "x\\u00e9"}', "other", "xé"),
        ('{"id": "a", "contents": "x"}', None, "x"),
        ('{"doc_id": "d", "passage_id": "1", "passage_text": "x"}', "y", "y"),  # another passage's
        ('{"id": "a", "body": "x"}', "y", "y"),
        ("<DOC>x</DOC>", "y", "y"),
        ("plain", None, "plain"),
        ("[" * 100_000, "y", "y"),
        (None, "y", "y"),
        (None, "", ""),
    ],
)
def test_which_text_of_a_document_is_taken(pyserini, tmp_path, raw, contents, expected) -> None:
    pyserini["a"] = Document(raw, contents)
    found = read_passages([index(tmp_path)], ["a", "absent", "\ud800"])
    assert {key: (one.text, one.source) for key, one in found.items()} == {"a": (expected, "collection")}


def test_an_index_without_texts_is_refused(pyserini: dict[str, Document], tmp_path: Path) -> None:
    pyserini["a"] = Document(None, None)
    with pytest.raises(InputError, match="built without -storeRaw"):
        read_passages([index(tmp_path)], ["a"])


def test_what_java_says_about_a_damaged_index_is_one_line(pyserini: dict[str, Document], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: read past EOF$"):
        read_passages([index(tmp_path)], ["cut"])
    (tmp_path / "broken").touch()
    with pytest.raises(InputError, match=r"cannot be opened: JVM exception occurred: CorruptIndexException$"):
        read_passages([index(tmp_path)], ["a"])


@pytest.mark.parametrize("java", ["/java", None])
def test_what_has_to_be_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: str | None) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", java or "")
    monkeypatch.setitem(sys.modules, "pyserini", None)
    with pytest.raises(UsageError, match=r"pip install 'trec-judge\[lucene\]'`, and Java 21") as caught:
        read_passages([index(tmp_path)], ["a"])
    assert ("no Java is found" in str(caught.value)) == (java is None)


@pytest.mark.skipif(find_spec("pyserini") is None or shutil.which("java") is None, reason="needs Pyserini and Java")
def test_an_index_that_pyserini_built(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "d.jsonl").write_text(
        '{"id": "d:0", "contents": "zero \\u00e9 \\ud83d\\ude00"}\n{"id": "d:1", "contents": "one\\ntwo"}\n', "utf-8"
    )
    built = tmp_path / "index"
    options = "--collection JsonCollection --generator DefaultLuceneDocumentGenerator --threads 1 --storeRaw"
    command = [sys.executable, "-m", "pyserini.index.lucene", *options.split()]
    subprocess.run([*command, "--input", str(tmp_path / "in"), "--index", str(built)], check=True, env=os.environ)
    found = read_passages([built], ["d:0", "d:1", "d:2"])
    assert {key: one.text for key, one in found.items()} == {"d:0": "zero é 😀", "d:1": "one\ntwo"}
