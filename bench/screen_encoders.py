"""The figures of `off_passage` in `docs/pooling.md`: words and encoders on responses that people labelled.

    python -m bench.screen_encoders BEGIN_FOLDER CANONICAL_JSONL [--encoder minilm]

BEGIN's responses are fully attributable to their evidence, generic, or not attributable (`begin_dev_*.tsv`); the
canonical responses of iKAT 2023 (`canonical_with_provenance_train.jsonl`) were written by experts. A flag on the first
and the last is wrong.
"""

import argparse
import csv
import json
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.io.words import share_known, without_stop_words, words_of
from judge.pool.encoder import Similarity, default_thresholds, open_encoder

Score = Callable[[str, Sequence[str]], float | None]
FEWEST = 5
"""Content words of the shortest response that words measure."""


def by_words(text: str, passages: Sequence[str]) -> float | None:
    content = without_stop_words(words_of(text))
    known = frozenset().union(*(words_of(passage) for passage in passages))
    return share_known(content, known) if len(content) >= FEWEST else None


def responses(begin: Path, canonical: Path) -> dict[str, list[tuple[str, list[str]]]]:
    groups: dict[str, list[tuple[str, list[str]]]] = {}
    for file in sorted(begin.glob("begin_dev_*.tsv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                groups.setdefault(f"{file.stem}: {row['begin_label']}", []).append(
                    (row["response"], [row["knowledge"]])
                )
    for line in canonical.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if passages := [passage["text"] for passage in row["provenance"] if passage.get("text")]:
            groups.setdefault("canonical", []).append((row["response"], passages))
    return groups


def show(name: str, score: Score, threshold: float, groups: dict[str, list[tuple[str, list[str]]]]) -> None:
    start = time.perf_counter()
    print(f"\n{name}, flagged below {threshold:g}")
    for group, rows in groups.items():
        values = [value for row in rows if (value := score(*row)) is not None]
        flagged = sum(value < threshold for value in values)
        lowest = " ".join(f"{value:.3f}" for value in sorted(values)[:3])
        print(f"  {group:40} n {len(rows):3}  measured {len(values):3}  flagged {flagged:3}  lowest {lowest}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {time.perf_counter() - start:.1f} s, peak {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("begin", type=Path)
    parser.add_argument("canonical", type=Path)
    parser.add_argument("--encoder", action="append", default=[])
    args = parser.parse_args()
    groups = responses(args.begin, args.canonical)
    show("words", by_words, default_thresholds(None).off_passage, groups)
    for name in args.encoder:
        show(name, Similarity(open_encoder(name)), default_thresholds(name).similarity, groups)


if __name__ == "__main__":
    main()
