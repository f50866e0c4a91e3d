"""A small public dataset, and a judge that answers by a rule, for the tests of `judge bench`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import UsageError
from judge.extra.bench.datasets import Dataset, DatasetReading, LabeledResponse, Rung
from judge.judges.model import Model, Price
from judge.judges.records import AnswerForm, Completion, Request
from judge.records import Criterion

WORDS = ("trains", "ramps", "stations", "platforms", "doors", "seats", "tickets", "timetables")


def fill(name: str, folder: Path, reading: DatasetReading) -> None:
    """Read lines of LabeledResponse."""
    for line in (folder / f"{name}.jsonl").read_bytes().splitlines():
        row = msgspec.json.decode(line, type=LabeledResponse)
        reading.responses[row.item_id] = row


def dataset(
    name: str = "tiny",
    *,
    criterion: str = "groundedness",
    grades: tuple[int, ...] = (0, 1),
    positive: tuple[int, ...] = (1,),
    rung: Rung | None = "hard",
    stored: Mapping[str, Mapping[str, float]] | None = None,
    runs: bool = False,
) -> Dataset:
    """A dataset in the file of its name."""
    return Dataset(
        name=name,
        title=f"The {name} dataset",
        criterion=criterion,
        grades=grades,
        positive=positive,
        unit="document",
        licence="CC0",
        source=f"example/{name}",
        files=(f"{name}.jsonl",),
        rung=rung,
        runs=runs,
        published="Same .5 (A 2026)." if runs else "",
        fill=partial(fill, name),
        stored=(lambda folder: stored) if stored is not None else None,
    )


def items(units: int = 10, *, grades: Sequence[int] = (0, 1), texts: bool = True) -> list[LabeledResponse]:
    """Four items a unit, their grades in turn; a response is copied from its evidence, whatever its grade."""
    return [
        LabeledResponse(
            item_id=f"{unit}-{place}",
            unit=f"doc {unit}",
            grade=grades[(unit + place) % len(grades)],
            response=f"The {WORDS[unit % 8]} have {WORDS[(unit + place) % 8]}, number {unit}." if texts else None,
            passages=(f"Number {unit}: {WORDS[unit % 8]} and {WORDS[(unit * 3 + 1) % 8]}.",) if texts else (),
        )
        for unit in range(units)
        for place in range(4)
    ]


def write(folder: Path, rows: Iterable[LabeledResponse], name: str = "tiny") -> Path:
    """Write the file of a dataset; gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    (folder / f"{name}.jsonl").write_bytes(lines)
    return folder


class Ruled(Model):
    """A judge with a rule from a request to a label, or to the probabilities of labels."""

    forms: tuple[AnswerForm, ...] = ("label",)
    max_concurrency = 1
    returned = "ruled-1"

    def __init__(self, rule: Callable[[Request], str | dict[str, float]], name: str = "server/ruled") -> None:
        self.name = name
        self.rule = rule
        self.calls = 0

    def check(self, criteria: Sequence[Criterion]) -> None:
        if any(criterion.name == "naturalness" for criterion in criteria):
            raise UsageError(f"{self.name} has no ear")

    def parameters(self, request: Request) -> Mapping[str, Any]:
        return {}

    def price(self) -> Price:
        return Price(1e-6, 2e-6)

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        said = self.rule(request)
        text = said if isinstance(said, str) else max(said, key=lambda label: said[label])
        return Completion(
            text=text,
            finish_reason="stop",
            model=self.returned,
            prompt_tokens=10,
            completion_tokens=1,
            probabilities=None if isinstance(said, str) else said,
        )

    async def aclose(self) -> None:
        pass
