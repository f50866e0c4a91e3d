"""Splits gold by topic or theme into a dev part, to choose a judge on, and a test part, written under a seal."""

import hashlib
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Literal

import msgspec

from judge.errors import InputError, UsageError
from judge.gold.rows import GoldRow, gold_jsonl, row_order
from judge.gold.seal import Seal, SealedItem, item_of, read_salt, salted, side
from judge.io.folder import make_folder, write_atomic
from judge.io.ids import Cluster, cluster_of, natural_key
from judge.io.line_stream import json_bytes
from judge.io.stored import read_stored

DRAWS = 500
"""Random splits to try; the best balanced one is taken (rerandomization: Morgan & Rubin 2012)."""

_Counts = Counter[tuple[str, int] | None]
"""(criterion, grade) to the number of rows; None to the number of items."""


def split_topics(rows: Iterable[GoldRow], share: float, seed: int, cluster: Cluster = "topic") -> frozenset[str]:
    """Choose the topics of the test part: about `share` of the items, with similar grades under each criterion.

    Many random orders of the topics are tried. Each is cut where the test part is nearest to its share of items. The
    split is taken whose counts of items and grades differ least from their expectation, as chi-square measures it.
    The orders come from SHA-256 of seed and topic, so neither the order of rows nor a library's version changes them.

    Args:
        rows: The gold rows.
        share: The share of the items that the test part should have, above 0 and below 1.
        seed: The seed of the random orders.
        cluster: What is never cut: a topic, or a theme with all of its topics.

    Raises:
        InputError: There are fewer than two topics, or themes.
        UsageError: The share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise UsageError(f"the share of the test part must lie between 0 and 1, not {share:g}")
    rows = tuple(rows)
    counts = _counts(rows, cluster)
    if len(counts) < 2:
        raise InputError(
            f"expected two {cluster}s or more, since a split never cuts a {cluster}; found {', '.join(counts)}"
        )
    topics = sorted(counts, key=natural_key)
    total: _Counts = sum(counts.values(), Counter())
    splits = [_cut(_shuffled(topics, seed, draw), counts, share * total[None]) for draw in range(DRAWS)]
    test = min(splits, key=lambda test: _imbalance(test, counts, total, share))
    return frozenset(row.topic_id for row in rows if cluster_of(row.topic_id, cluster) in test)


def write_split(rows: Sequence[GoldRow], share: float, seed: int, out: Path, cluster: Cluster = "topic") -> Seal:
    """Split gold and write `dev.jsonl`, `test.jsonl`, `test.salt` and `seal.json`; a second call writes the same bytes.

    Args:
        rows: The gold rows.
        share: As for `split_topics`.
        seed: As for `split_topics`.
        out: The folder to write.
        cluster: As for `split_topics`.

    Raises:
        InputError: Rows are split already, there is only one topic or theme, or the folder holds another split.
        UsageError: The share is not between 0 and 1.
        OperationalError: The disk is full or the folder cannot be written.
    """
    if any(row.split for row in rows):
        raise InputError("some rows have a `split` already: leave the field out to split them anew")
    test_topics = split_topics(rows, share, seed, cluster)
    ordered = sorted(rows, key=row_order)
    dev = _part(ordered, "dev", {row.topic_id for row in rows} - test_topics)
    test = _part(ordered, "test", test_topics)
    make_folder(out)
    salt_path = out / "test.salt"
    salt = read_salt(salt_path) if salt_path.exists() else secrets.token_hex(32).encode()
    test_bytes = gold_jsonl(test)
    seal = Seal(
        schema="judge-seal/1",
        # Salted too: who has the dev rows could guess a few test grades by a plain digest of all rows.
        source=salted(salt, gold_jsonl(ordered)),
        seed=seed,
        share=share,
        dev=side(dev),
        test=side(test),
        commitment=salted(salt, test_bytes),
        cluster=cluster,
    )
    # The seal is written last, so that every file it describes exists once it does.
    contents = {
        "test.salt": salt + b"\n",
        "dev.jsonl": gold_jsonl(dev),
        "test.jsonl": test_bytes,
        "seal.json": json_bytes(seal),
    }
    for name, content in contents.items():
        _refuse_other(out / name, content)
    for name, content in contents.items():
        write_atomic(out / name, content)
    return seal


def _counts(rows: Iterable[GoldRow], cluster: Cluster) -> dict[str, _Counts]:
    """By topic or theme, the number of its items, and of its rows with each criterion and grade."""
    counts: dict[str, _Counts] = defaultdict(Counter)
    items: dict[str, set[SealedItem]] = defaultdict(set)
    for row in rows:
        unit = cluster_of(row.topic_id, cluster)
        counts[unit][row.criterion, row.grade] += 1
        items[unit].add(item_of(row))
    for topic, graded in items.items():
        counts[topic][None] = len(graded)
    return counts


def _shuffled(topics: Sequence[str], seed: int, draw: int) -> list[str]:
    def place(topic: str) -> bytes:
        return hashlib.sha256(f"{seed}:{draw}:{topic}".encode()).digest()

    return sorted(topics, key=place)


def _cut(topics: Sequence[str], counts: Mapping[str, _Counts], wanted: float) -> frozenset[str]:
    """The first topics, as many as come nearest to the wanted number of items; at least one, and not all."""
    best, items = (float("inf"), 1), 0
    for number, topic in enumerate(topics[:-1], start=1):
        items += counts[topic][None]
        best = min(best, (abs(items - wanted), number))
    return frozenset(topics[: best[1]])


def _imbalance(test: Set[str], counts: Mapping[str, _Counts], total: _Counts, share: float) -> tuple[float, list[str]]:
    """Chi-square distance of the test part's counts from their share of all counts; the topics break ties."""
    test_counts: _Counts = Counter()
    # In a fixed order: rounding must not depend on the order of a set.
    for topic in sorted(test):
        test_counts.update(counts[topic])
    keys = sorted(total, key=lambda key: key or ("", 0))
    distance = sum((test_counts[key] - share * total[key]) ** 2 / total[key] for key in keys)
    return round(distance, 9), sorted(test, key=natural_key)


def _part(rows: Iterable[GoldRow], name: Literal["dev", "test"], topics: Set[str]) -> tuple[GoldRow, ...]:
    return tuple(msgspec.structs.replace(row, split=name) for row in rows if row.topic_id in topics)


def _refuse_other(path: Path, content: bytes) -> None:
    """Refuse to replace a file that has other content."""
    if path.exists() and read_stored(path) != content:
        raise InputError(
            f"{path}: belongs to another split, and a sealed split is not replaced: choose another folder, "
            "or the gold, share, seed and cluster that it was made with"
        )
