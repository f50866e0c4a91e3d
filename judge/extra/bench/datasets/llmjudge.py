"""LLMJudge: grades of passages for queries by assessors of NIST, and the label files of the challenge's judges.

H. A. Rahmani et al. (2024), LLMJudge: LLMs for relevance judgments, arXiv:2408.08896; the label files are those of
arXiv:2502.13908.
"""

from collections.abc import Mapping
from pathlib import Path

from judge.errors import InputError
from judge.extra.bench.datasets import Dataset, LabeledResponse
from judge.extra.bench.datasets.finding import find_file, find_files, is_there
from judge.extra.bench.datasets.reading import DatasetReading, filled, read_by
from judge.io.line_stream import text_of
from judge.io.trec import parse_qrels
from judge.records import Problem

QRELS = "llmjudge_test_qrel_idx.txt|llmjudge_test.qrel"
_LABELS = ("judges/*-*.txt", "submissions/scores/*-*.txt", "data/*-*.txt")
"""Where a judge's labels are, in the benchmark's repository and in a folder of label files."""
GRADES = (0, 1, 2, 3)


def _fill(folder: Path, reading: DatasetReading) -> None:
    file = find_file(folder, QRELS)
    for row in parse_qrels(text_of(file), str(file), GRADES):
        reading.add(
            file, "", LabeledResponse(item_id=_item(row.turn_id, row.item_id), unit=row.turn_id, grade=row.grade)
        )


def _item(query: str, passage: str) -> str:
    return f"{query}/{passage}"


def _stored(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """The labels of each judge, of all pairs that have a grade.

    Raises:
        InputError: A file of labels cannot be read or is no qrels file, or two judges have one name.
    """
    known = filled(_fill, folder).responses
    labels: dict[str, dict[str, float]] = {}
    problems: list[Problem] = []
    for pattern in _LABELS:
        for file in find_files(folder, pattern) if is_there(folder, (pattern,)) else ():
            text = text_of(file)
            columns = text.split(maxsplit=3)
            if len(columns) < 3 or _item(columns[0], columns[2]) not in known:
                # Another repository's file: a judge's labels begin with a pair of the qrels.
                continue
            try:
                rows = parse_qrels(text, str(file))
            except InputError as error:
                problems += error.problems
                continue
            given = {_item(row.turn_id, row.item_id): float(row.grade) for row in rows}
            given = {item_id: label for item_id, label in given.items() if item_id in known}
            if labels.setdefault(file.stem, given) != given:
                raise InputError(f"{file}: another file has other labels of {file.stem}; keep one of them")
    if problems:
        raise InputError(f"{problems[0].file}: labels of a judge that cannot be read", problems)
    return labels


LLMJUDGE = (
    Dataset(
        name="llmjudge",
        title="LLMJudge, test: passages of queries, without texts",
        criterion="relevance",
        grades=GRADES,
        positive=(2, 3),
        unit="topic",
        licence="MIT for the judges' labels; none is named for the qrels",
        source="llm4eval/LLMJudge: data/llmjudge_test_qrel_idx.txt; labels: llm4eval/LLMJudge-benchmark",
        files=(QRELS,),
        rung=None,
        read=read_by(_fill),
        stored=_stored,
        size=4423,
    ),
)
