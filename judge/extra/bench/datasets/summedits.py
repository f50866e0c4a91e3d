"""SummEdits: summaries in which one fact may have been edited, and their consistent twins of the same document.

P. Laban et al. (2023), SummEdits: measuring LLM ability at factual reasoning through the lens of summarization, EMNLP
2023, 9662-9676.
"""

from pathlib import Path
from typing import Literal

import msgspec

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_files
from judge.extra.bench.datasets.reading import DatasetReading, read_by, skipped_by

_PATTERN = "summedits_*.json"


class _Summary(msgspec.Struct):
    id: str
    doc: str
    summary: str
    label: Literal[0, 1] | None


def _fill(folder: Path, reading: DatasetReading) -> None:
    for file in find_files(folder, _PATTERN):
        domain = file.stem.removeprefix("summedits_")
        for where, row in reading.entries(file, "", _Summary):
            if row.label is None:
                reading.skipped["no label"] += 1
                continue
            item_id = f"{domain}/{row.id}"
            response = LabeledResponse(
                item_id=item_id,
                unit=reading.unit(row.doc, item_id),
                grade=row.label,
                response=row.summary,
                passages=(row.doc,),
            )
            reading.add(file, where, response)


SUMMEDITS = (
    Dataset(
        name="summedits",
        title="SummEdits: summaries with and without an edited fact, of every domain that is there",
        criterion="groundedness",
        grades=(0, 1),
        positive=(1,),
        unit="document",
        licence="Apache-2.0",
        source="salesforce/factualNLG: data/summedits/summedits_*.json",
        files=(_PATTERN,),
        rung="hard",
        read=read_by(_fill),
        size=6348,
        skipped=skipped_by(_fill),
    ),
)
