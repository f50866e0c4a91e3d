"""AttributionBench: whether the references of a claim support it, from existing sets of human labels.

Y. Li, X. Yue, Z. Liao & H. Sun (2024), AttributionBench: how hard is automatic attribution evaluation?, Findings of
ACL 2024.
"""

from pathlib import Path

import msgspec

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file
from judge.extra.bench.datasets.reading import DatasetReading, read_by, skipped_by
from judge.io.line_stream import decode_lines
from judge.io.stored import read_stored, unpack
from judge.records import Problem

FILE = "dev_all_subset_balanced.jsonl"
LABELS = {"not attributable": 0, "attributable": 1}


class _Claim(msgspec.Struct):
    id: str
    question: str
    claim: str
    references: list[str]
    attribution_label: str


def _fill(folder: Path, reading: DatasetReading) -> None:
    file = find_file(folder, FILE)
    for number, row in decode_lines(unpack(read_stored(file), str(file)), _Claim, str(file), "wrong_type"):
        where = f"line {number}"
        if isinstance(row, Problem):
            reading.problems.append(row)
        elif (grade := reading.grade(file, where, LABELS, row.attribution_label)) is not None:
            response = LabeledResponse(
                item_id=row.id,
                unit=reading.unit(row.question, row.id),
                grade=grade,
                response=row.claim,
                passages=tuple(row.references) or ("",),
                utterance=row.question,
            )
            reading.add(file, where, response)


ATTRIBUTIONBENCH = (
    Dataset(
        name="attributionbench",
        title="AttributionBench, dev: claims of ExpertQA, Stanford-GenSearch, LFQA and AttributedQA",
        criterion="groundedness",
        grades=(0, 1),
        positive=(1,),
        unit="question",
        licence="no licence file; each source has its own",
        source=f"OSU-NLP-Group/AttributionBench: data/{FILE}",
        files=(FILE,),
        rung="middle",
        read=read_by(_fill),
        size=1198,
        skipped=skipped_by(_fill),
    ),
)
