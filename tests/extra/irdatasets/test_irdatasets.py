"""Datasets of `ir_datasets` as topics and passages; the tests write them and add them to the package's registry."""

from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from judge.cli import main
from judge.passages import read_passages
from judge.runs.records import Exchange
from judge.runs.topics import read_topics
from tests.conftest import PROJECT, on_stderr, put

EXAMPLE = PROJECT / "examples"
POOL = ["pool", "--profile", "rag", "--runs", str(EXAMPLE / "citations" / "runs" / "heron-cites.jsonl"), "--out"]
_OF_2020 = "query_id raw_utterance manual_rewritten_utterance topic_number turn_number default_text"
Linear = namedtuple("Linear", _OF_2020, defaults=["", 31, 1, ""])
_OF_2022 = "query_id parent_id participant raw_utterance response topic_number turn_number default_text"
Node = namedtuple("Node", _OF_2022, defaults=[""])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package with `ours` of the bundled example, `ours/docs`, `cut` without its file, and `bare` without texts."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    package = pytest.importorskip("ir_datasets")
    monkeypatch.setattr(package.registry, "_registered", dict(package.registry._registered))
    formats, local = package.formats, package.util.LocalDownload
    passages = put(tmp_path / "passages.jsonl", (EXAMPLE / "passages.jsonl").read_bytes())
    for name, parts in {
        "ours": [formats.TsvQueries(local(EXAMPLE / "citations" / "topics.tsv"))],
        "ours/docs": [formats.JsonlDocs(local(passages), mapping={"doc_id": "id", "text": "contents"})],
        "cut": [formats.TsvQueries(local(tmp_path / "absent")), formats.TsvDocs(local(tmp_path / "absent"))],
        "bare": [formats.JsonlDocs(local(tmp_path / "absent"), namedtuple("Bare", "doc_id body"))],
    }.items():
        package.registry.register(name, package.Dataset(*parts))
    return package


def test_a_pool_by_names_is_that_by_files(package: Any, tmp_path: Path) -> None:
    files = ["--topics", str(EXAMPLE / "citations" / "topics.tsv"), "--passages", str(tmp_path / "passages.jsonl")]
    named = ["--topics", "ir:ours", "--passages", "ir:ours/docs"]
    for out, inputs in (("files", files), ("named", named), ("named", named)):
        assert main([*POOL, str(tmp_path / out), *inputs]) == 0
    for name in ("pool.jsonl", "passages.jsonl"):
        assert (tmp_path / "named" / name).read_bytes() == (tmp_path / "files" / name).read_bytes()
    wanted = {"clueweb22-en9999-01-00017:0"}
    assert read_passages(["ir:ours/docs"], wanted | {"absent", "\ud800"}).keys() == wanted


def test_numbered_turns_are_a_conversation(package: Any) -> None:
    linear = [Linear("31_1", "a", "A"), Linear("31_2", "b", "B", 31, 2), Linear("32_1", "c", "C", 32, 1)]
    tree = [
        Node("132_1-1", None, "User", "a", None, 132, "1-1"),
        Node("132_1-2", "132_1-1", "System", None, "s", 132, "1-2"),
        Node("132_1-3", "132_1-2", "User", "b", None, 132, "1-3"),
        Node("132_2-1", "132_1-2", "User", "c", None, 132, "2-1"),
    ]
    said = {"linear": [(), (Exchange("a", ""),), ()], "tree": [(), *[(Exchange("a", "s"),)] * 2]}
    for name, rows in {"linear": linear, "tree": tree}.items():
        parts = {
            "queries_iter": lambda self, rows=rows: iter(rows),
            "queries_cls": lambda self, rows=rows: type(rows[0]),
        }
        queries = type("Queries", (package.formats.BaseQueries,), parts)()
        package.registry.register(name, package.Dataset(queries))
        assert [turn.context for topic in read_topics(f"ir:{name}") for turn in topic.turns] == said[name]
    assert [turn.resolved_utterance for topic in read_topics("ir:linear") for turn in topic.turns] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--topics", "our", "ir_datasets has no such dataset; did you mean ours?"),
        ("--passages", "ours", "the dataset has no docs; of its parts have some: ir:ours/docs"),
        ("--topics", "ours/docs", "the dataset has no queries; of its parts have some: none"),
        ("--passages", "bare", "ir_datasets does not say what the text of its docs is (Bare)"),
        ("--topics", "cut", "ir_datasets cannot load it: "),
        ("--passages", "cut", "ir_datasets cannot load it: "),
        ("--turns", "ours", "cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_had_is_one_line(
    package: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, said: str
) -> None:
    text = on_stderr(capsys, main([*POOL, str(tmp_path / "out"), option, f"ir:{name}"]), 3 if name == "cut" else 2)
    assert text.splitlines()[-1] == f"judge: ir:{name}: {said}" + f"{tmp_path / 'absent'}" * (name == "cut")
