"""What the readers of a judged folder take beside it in `bench/millions.py`: gold grades and labels of workers."""

import csv
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GRADED = 2_000
"""Responses that people have graded, about, however many there are."""
WORKERS = 200


def pooled(folder: Path) -> Iterator[dict[str, Any]]:
    """The responses of the pool of a judged folder."""
    with (folder / "out" / "pool.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def write_gold(folder: Path, path: Path, criterion: str) -> None:
    """Grades by an assessor for responses that were drawn independently."""
    number = sum(1 for _ in pooled(folder))
    probability = min(1.0, GRADED / number)
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for response in pooled(folder):
            if rng.random() < probability:
                row = {
                    **{name: response[name] for name in ("turn_id", "topic_id", "response_id")},
                    "criterion": criterion,
                    "text_sha256": hashlib.sha256(response["text"].encode()).hexdigest(),
                    "grade": rng.randrange(4),
                    "assessor": "ann",
                    "inclusion_probability": probability,
                    "stratum": "drawn",
                }
                file.write(json.dumps(row) + "\n")


def write_labels(folder: Path, path: Path, criteria: tuple[str, ...], each: int) -> None:
    """Labels of workers, `each` for every response and criterion: right at chance for some, mostly right for others."""
    rng = random.Random(2)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("worker", "turn_id", "response_id", "criterion", "label", "seconds"))
        for response in pooled(folder):
            for criterion in criteria:
                grade = rng.randrange(4)
                for worker in rng.sample(range(WORKERS), each):
                    label = grade if rng.random() < 0.3 + worker / WORKERS / 2 else rng.randrange(4)
                    seconds = rng.randrange(5, 90)
                    table.writerow(
                        (f"w{worker}", response["turn_id"], response["response_id"], criterion, label, seconds)
                    )
