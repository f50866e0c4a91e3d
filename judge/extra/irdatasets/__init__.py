"""Topics and passages of `ir_datasets`: `ir:NAME` in place of a file, by any name that the package knows (extra `ir`).

A dataset with numbered turns, as CAsT's, is read as trees of turns, any other as topics of one turn. A download that
fails is an OperationalError; the package keeps what it has loaded below IR_DATASETS_HOME.
"""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, Literal

from judge.errors import OperationalError, UsageError
from judge.io.files import json_bytes, jsonl_bytes
from judge.io.installed import need_extra, package_errors
from judge.io.text import did_you_mean, storable


def opened(name: str, kind: Literal["queries", "docs"]) -> Any:
    """A dataset that has `kind`, with texts; else a UsageError, also without the package. Nothing is loaded."""
    need_extra("ir", f"ir:{name}")
    with _loading(name):
        import ir_datasets

        registry = ir_datasets.registry
    try:
        dataset = registry[name]
    except KeyError:
        raise UsageError(f"ir:{name}: ir_datasets has no such dataset{did_you_mean(name, registry)}") from None
    if not dataset.has(kind):
        parts = [f"ir:{each}" for each in registry if each.startswith(f"{name}/") and registry[each].has(kind)]
        raise UsageError(
            f"ir:{name}: the dataset has no {kind}; of its parts have some: {', '.join(parts[:3]) or 'none'}"
        )
    records = getattr(dataset, f"{kind}_cls")()
    if not hasattr(records, "default_text"):
        raise UsageError(f"ir:{name}: ir_datasets does not say what the text of its {kind} is ({records.__name__})")
    return dataset


def topics(name: str) -> bytes:
    """The queries of a dataset as a topics file."""
    dataset = opened(name, "queries")
    with _loading(name):
        queries = [*dataset.queries_iter()]
    if queries and hasattr(queries[0], "turn_number"):
        groups = groupby(queries, key=lambda query: query.topic_number)
        return json_bytes([_tree(str(number), turns) for number, turns in groups])
    return jsonl_bytes({"request_id": each.query_id, "problem_statement": each.default_text()} for each in queries)


def passages(name: str, wanted: Collection[str]) -> dict[str, str]:
    """Passage id to text, of those of the wanted documents that the dataset has."""
    dataset = opened(name, "docs")
    with _loading(name):
        found = dataset.docs_store().get_many([*filter(storable, wanted)])
    return {passage_id: document.default_text() for passage_id, document in found.items()}


def _loading(name: str) -> AbstractContextManager[None]:
    return package_errors(OperationalError, f"ir:{name}: ir_datasets cannot load it")


def _tree(topic_id: str, turns: Iterable[Any]) -> dict[str, Any]:
    """A topic as a CAsT tree; a turn of a dataset without trees follows the one before it."""
    nodes: list[dict[str, Any]] = []
    for turn in turns:
        before = str(nodes[-1]["number"]) if nodes else ""
        parent = (getattr(turn, "parent_id", before) or "").removeprefix(f"{topic_id}_")
        node = {name: getattr(turn, name, None) for name in _TEXTS}
        node |= {
            "participant": getattr(turn, "participant", "User"),
            "number": str(turn.turn_number),
            "parent": parent,
            "utterance": turn.raw_utterance,
        }
        nodes.append({name: value for name, value in node.items() if value})
    return {"number": topic_id, "title": getattr(turn, "topic_title", None), "turn": nodes}


_TEXTS = ("response", "provenance", "manual_rewritten_utterance", "automatic_rewritten_utterance")
"""Fields that a turn may have under the names of a CAsT tree."""
