"""The figures of `off_passage` in `docs/pooling.md`: words on responses that people labelled.

    python -m bench.off_passage BEGIN_FOLDER CANONICAL_JSONL

BEGIN's responses are fully attributable to their evidence, generic, or not attributable (`begin_dev_*.tsv`); the
canonical responses of iKAT 2023 (`canonical_with_provenance_train.jsonl`) were written by experts. A flag on the first
and the last is wrong.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path

from judge.io.words import share_known, without_stop_words, words_of
from judge.pool.screen import DEFAULTS, FEWEST_CONTENT_WORDS


def share(text: str, passages: Sequence[str]) -> float | None:
    content = without_stop_words(words_of(text))
    known = frozenset().union(*(words_of(passage) for passage in passages))
    return share_known(content, known) if len(content) >= FEWEST_CONTENT_WORDS else None


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


def show(groups: dict[str, list[tuple[str, list[str]]]]) -> None:
    print(f"flagged below {DEFAULTS.off_passage:g}")
    for group, rows in groups.items():
        values = [value for row in rows if (value := share(*row)) is not None]
        flagged = sum(value < DEFAULTS.off_passage for value in values)
        lowest = " ".join(f"{value:.3f}" for value in sorted(values)[:3])
        print(f"  {group:40} n {len(rows):3}  measured {len(values):3}  flagged {flagged:3}  lowest {lowest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("begin", type=Path)
    parser.add_argument("canonical", type=Path)
    args = parser.parse_args()
    show(responses(args.begin, args.canonical))


if __name__ == "__main__":
    main()
