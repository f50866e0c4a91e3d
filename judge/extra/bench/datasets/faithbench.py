"""FaithBench: hallucinations in summaries about which detectors disagreed, as spans that annotators marked.

F. S. Bao et al. (2025), FaithBench: a diverse hallucination benchmark for summarization by modern LLMs, NAACL 2025.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_files
from judge.extra.bench.datasets.reading import DatasetReading, filled, read_by, skipped_by
from judge.io.safe import shown

BATCHES = "batch_*[0-9].json"
LABELS = {"Unwanted": 0, "Unwanted.Intrinsic": 0, "Unwanted.Extrinsic": 0, "Questionable": 1, "Benign": 2}
CONSISTENT = 3
"""The grade of a summary in which nobody marked anything."""
JUDGES = (
    "hhemv1", "hhem-2.1", "hhem-2.1-english", "trueteacher", "true_nli", "gpt-3.5-turbo", "gpt-4-turbo", "gpt_4o",
)  # fmt: skip
"""Fields of a sample with what a detector said: 1, or near 1, for consistent."""


class _Annotation(msgspec.Struct):
    label: list[str]


class _Sample(msgspec.Struct):
    sample_id: int
    source: str
    summary: str
    annotations: list[_Annotation]
    metadata: dict[str, Any]


def _fill(folder: Path, reading: DatasetReading) -> None:
    """The grade is that of the worst label of any span, the first rule of the authors' script."""
    for file, where, item_id, sample in _samples(folder, reading):
        labels = [label for annotation in sample.annotations for label in annotation.label]
        grades = [reading.grade(file, where, LABELS, label) for label in labels]
        if None not in grades:
            response = LabeledResponse(
                item_id=item_id,
                unit=reading.unit(sample.source, item_id),
                grade=min((grade for grade in grades if grade is not None), default=CONSISTENT),
                response=sample.summary,
                passages=(sample.source,),
            )
            reading.add(file, where, response)


def _samples(folder: Path, reading: DatasetReading) -> Iterator[tuple[Path, str, str, _Sample]]:
    """File, JSON path, item and sample, in the order of the batches."""
    for file in find_files(folder, BATCHES):
        for where, sample in reading.entries(file, "samples", _Sample):
            yield file, where, f"{file.stem}/{sample.sample_id}", sample


def _stored(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """What eight detectors said of each usable summary; one that said nothing has no score.

    Raises:
        InputError: The files have problems; all of them are listed.
    """
    usable = filled(_fill, folder).responses
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    reading = DatasetReading()
    for file, where, item_id, sample in _samples(folder, reading):
        for judge in JUDGES:
            score = sample.metadata.get(judge)
            if isinstance(score, int | float) and 0 <= score <= 1:
                scores[judge] |= {item_id: float(score)} if item_id in usable else {}
            elif score is not None:
                path = f"{where}.metadata.{judge}"
                reading.problem("wrong_score", file, path, f"expected a number of 0 to 1, found {shown(score)}")
    reading.responses = usable
    reading.check()
    return scores


FAITHBENCH = (
    Dataset(
        name="faithbench",
        title="FaithBench: summaries by ten models, the worst label of any span",
        criterion="groundedness",
        grades=(0, 1, 2, 3),
        positive=(2, 3),
        unit="source document",
        licence="CC BY-NC-SA 4.0",
        source="vectara/FaithBench: data_for_release/batch_*.json",
        files=(BATCHES,),
        rung="hard",
        read=read_by(_fill),
        stored=_stored,
        size=750,
        skipped=skipped_by(_fill),
    ),
)
