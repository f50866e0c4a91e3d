"""Passage texts from a Lucene index that Pyserini built, read through Pyserini."""

import os
import shutil
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, UsageError
from judge.io.ids import natural_key
from judge.io.installed import how_to_get
from judge.passages.jsonl import Line, passage_of
from judge.passages.streams import MAX_TEXT
from judge.records import Passage

_NEEDS = f"a Lucene index is read through Pyserini: {how_to_get('lucene')}"


def read_lucene(folder: Path, wanted: Collection[str]) -> dict[str, Passage]:
    """The texts of the wanted passages; an id that the index does not have is absent.

    The text is the `contents` of the stored raw document where that is a passage's JSON, else the stored contents. A
    UsageError if pyserini is not installed, or has no Java. An InputError if the index cannot be opened, or was built
    without `-storeRaw` and `-storeContents`.
    """
    java_error, reader = _open(folder)
    decode = msgspec.json.Decoder(Line).decode
    passages: dict[str, Passage] = {}
    for passage_id in sorted(wanted, key=natural_key):
        try:
            passage_id.encode()
            document = reader.doc(passage_id)
        except UnicodeEncodeError:
            # A lone surrogate is in no string that Java indexed.
            continue
        except java_error as error:
            raise InputError(f"{folder}: the Lucene index cannot be read: {_first_line(error)}") from error
        if document is None:
            continue
        text = _text(document, passage_id, decode)
        if text is None:
            raise InputError(f"{folder}: the Lucene index has no texts: it was built without -storeRaw, -storeContents")
        passages[passage_id] = Passage(passage_id, text[: MAX_TEXT + 1], "collection")
    return passages


def _open(folder: Path) -> tuple[type[BaseException], Any]:
    """The class of Java's exceptions, and Pyserini's reader; its searcher would import a neural framework."""
    # Without Java Pyjnius raises a bare Exception.
    if not (os.environ.get("JAVA_HOME") or shutil.which("javac") or shutil.which("java")):
        raise UsageError(f"no Java is found; {_NEEDS}")
    try:
        # Starts Java, with Pyserini's classes; Pyjnius must not be imported before.
        import_module("pyserini.pyclass")
        java_error: type[BaseException] = import_module("jnius").JavaException
    except (ImportError, OSError, RuntimeError, SystemError, ValueError) as error:
        raise UsageError(f"{_first_line(error)}; {_NEEDS}") from error
    try:
        lucene = import_module("pyserini.index.lucene")
        # Older releases have the second name.
        reader = getattr(lucene, "LuceneIndexReader", None) or lucene.IndexReader
    except (ImportError, java_error) as error:
        raise UsageError(f"{_first_line(error)}; {_NEEDS}") from error
    try:
        return java_error, reader(str(folder))
    except java_error as error:
        raise InputError(f"{folder}: the Lucene index cannot be opened: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _text(document: Any, passage_id: str, decode: Any) -> str | None:
    raw: str | None = document.raw()
    if raw is not None:
        try:
            passage = passage_of(decode(raw))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            passage = None
        if passage is not None and passage[0] == passage_id:
            return passage[1]
    contents: str | None = document.contents()
    return raw if contents is None else contents
