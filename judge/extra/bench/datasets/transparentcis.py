"""TransparentCIS: responses to ten questions of CAsT, each graded by 16 workers on many dimensions.

W. Łajewska, D. Spina, J. Trippas & K. Balog (2024), Explainability for transparent conversational information-seeking,
SIGIR 2024, 1040-1050.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec

from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file
from judge.extra.bench.datasets.reading import DatasetReading, Fill, read_by, skipped_by
from judge.io.tabular import read_table
from judge.stats.means import consensus

LONG, WIDE = "judgments_long.tsv", "output_processed.csv"
FILES = f"{LONG}|{WIDE}"
ITEMS = "items.json"
"""The texts beside the table with a label a row."""
GRADES = {str(grade): grade for grade in (1, 2, 3, 4)}
_LIST = re.compile(r"\['[^']*'(?:, '[^']*')*\]")


class _Item(msgspec.Struct):
    question: str
    response: str


def _fill(dimension: str) -> Fill:
    def fill(folder: Path, reading: DatasetReading) -> None:
        file = find_file(folder, FILES)
        if file.name == LONG:
            _fill_long(file, reading, dimension)
        else:
            _fill_wide(file, reading, dimension)

    return fill


def _fill_wide(file: Path, reading: DatasetReading, dimension: str) -> None:
    """The authors' table: a response a row, with a list of the workers' labels in each dimension's cell."""
    needed = ("questions_ids", "answers_ids", "questions", "answers", dimension)
    for row in read_table(file, reading.problems, needed=needed)[1]:
        cell = row.cells[dimension]
        where = row.place
        if not _LIST.fullmatch(cell):
            reading.problem("wrong_label", file, where, f"{dimension}: expected a list of labels such as ['3', '4']")
            continue
        item = _Item(row.cells["questions"], row.cells["answers"])
        item_id = f"Q{row.cells['questions_ids']}_{row.cells['answers_ids']}"
        _add(file, where, reading, item_id, item, cell[2:-2].split("', '"))


def _fill_long(file: Path, reading: DatasetReading, dimension: str) -> None:
    """A label a row, and the texts in a file beside it."""
    texts = file.with_name(ITEMS)
    items: Mapping[str, _Item] = reading.members(texts, _Item)
    labels: dict[str, list[str]] = defaultdict(list)
    for row in read_table(file, reading.problems, needed=("item_id", "dimension", "label"))[1]:
        if row.cells["dimension"] == dimension:
            labels[row.cells["item_id"]].append(row.cells["label"])
    for item_id, given in labels.items():
        if item_id in items:
            _add(file, f"item {item_id}", reading, item_id, items[item_id], given)
        else:
            reading.problem("unknown_item", file, f"item {item_id}", f"not in {texts}")


def _add(file: Path, where: str, reading: DatasetReading, item_id: str, item: _Item, labels: list[str]) -> None:
    grades = [reading.grade(file, where, GRADES, label) for label in labels]
    known = tuple(grade for grade in grades if grade is not None)
    if len(known) == len(grades):
        response = LabeledResponse(
            item_id=item_id,
            unit=item_id.partition("_")[0],
            grade=consensus(known),
            grades=known,
            response=item.response,
            utterance=item.question,
        )
        reading.add(file, where, response)


def _dataset(dimension: str, criterion: str) -> Dataset:
    return Dataset(
        name=f"transparentcis-{dimension}",
        title=f"TransparentCIS, {dimension}: 16 workers a response",
        criterion=criterion,
        grades=tuple(GRADES.values()),
        # Workers seldom give less than 3, so 3 tells responses apart as little as all of them do.
        positive=(4,),
        unit="question",
        licence="no licence file",
        source=f"iai-group/sigir2024-transparentCIS: results/user_study_output/{WIDE}",
        files=(FILES,),
        rung=None,
        read=read_by(_fill(dimension)),
        size=100,
        skipped=skipped_by(_fill(dimension)),
    )


TRANSPARENTCIS = (
    _dataset("relevance", "relevance"),
    _dataset("completeness", "completeness"),
    _dataset("conciseness", "conciseness"),
    _dataset("readability", "naturalness"),
)
