"""BEGIN: whether responses of knowledge-grounded dialogue models are attributable to their evidence.

N. Dziri, H. Rashkin, T. Linzen & D. Reitter (2022), Evaluating attribution in dialogue systems: the BEGIN benchmark,
TACL 10, 1066-1083.
"""

from pathlib import Path

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file
from judge.extra.bench.datasets.reading import DatasetReading, Fill, read_by, skipped_by
from judge.io.tabular import read_table

LABELS = {"Not fully attributable": 0, "Generic": 0, "Fully attributable": 1}
"""A generic response says nothing that could be attributed, so it counts as not attributable."""


def _fill(name: str) -> Fill:
    def fill(folder: Path, reading: DatasetReading) -> None:
        file = find_file(folder, name)
        needed = ("knowledge", "message", "response", "begin_label")
        for row in read_table(file, reading.problems, needed=needed, quoted=False)[1]:
            where = row.place
            grade = reading.grade(file, where, LABELS, row.cells["begin_label"])
            if grade is not None:
                item_id = f"{file.name}:{row.line}"
                evidence = row.cells["knowledge"]
                reading.add(
                    file,
                    where,
                    LabeledResponse(
                        item_id=item_id,
                        unit=reading.unit(evidence, item_id),
                        grade=grade,
                        response=row.cells["response"],
                        passages=(evidence,),
                        utterance=row.cells["message"],
                    ),
                )

    return fill


def _dataset(name: str, title: str, path: str, size: int, licence: str) -> Dataset:
    file = path.rpartition("/")[2]
    return Dataset(
        name=name,
        title=f"BEGIN, {title}",
        criterion="groundedness",
        grades=(0, 1),
        positive=(1,),
        unit="evidence text",
        licence=licence,
        source=f"google/BEGIN-dataset: {path}",
        files=(file,),
        rung="easy",
        read=read_by(_fill(file)),
        size=size,
        skipped=skipped_by(_fill(file)),
    )


BEGIN = (
    _dataset("begin-wow", "Wizard of Wikipedia, dev", "wow/begin_dev_wow.tsv", 430, "CC-BY 4.0"),
    _dataset("begin-wow-test", "Wizard of Wikipedia, test", "wow/begin_test_wow.tsv", 3607, "CC-BY 4.0"),
    _dataset("begin-cmu", "CMU DoG, dev", "cmu-dog/begin_dev_cmu.tsv", 416, "CC-BY 4.0"),
    _dataset("begin-tc", "Topical Chat, dev", "topicalchat/begin_dev_tc.tsv", 383, "CDLA-Sharing 1.0"),
)
