"""Grades of relevance, naturalness and other criteria: LLMJudge, CAsT-ReGIn, USR and TransparentCIS.

H. A. Rahmani et al. (2024), LLMJudge: LLMs for relevance judgments, arXiv:2408.08896; the label files of the
challenge's judges are those of arXiv:2502.13908. S. Mehri & M. Eskenazi (2020), USR: an unsupervised and reference free
evaluation metric for dialog generation, ACL 2020, 681-707. W. Łajewska, D. Spina, J. Trippas & K. Balog (2024),
Explainability for transparent conversational information-seeking, SIGIR 2024, 1040-1050.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from judge.errors import InputError
from judge.extra.bench.datasets import Dataset, DatasetReading, LabeledResponse, find_file, find_files, is_there
from judge.io.files import text_of
from judge.io.ids import groups_of, parse_qrels
from judge.io.tabular import read_table
from judge.records import Problem
from judge.runs.topics import read_topics, turns_by_id
from judge.stats.means import consensus

QRELS = "llmjudge_test_qrel_idx.txt|llmjudge_test.qrel"
_LABELS = ("judges/*-*.txt", "submissions/scores/*-*.txt", "data/*-*.txt")
"""Where a judge's labels are, in the benchmark's repository and in a folder of label files."""


def _llmjudge(folder: Path, reading: DatasetReading) -> None:
    """Grades of passages for queries by assessors of NIST."""
    file = find_file(folder, QRELS)
    for row in parse_qrels(text_of(file), str(file), LLMJUDGE.grades):
        reading.add(file, "", LabeledResponse(f"{row.turn_id}/{row.item_id}", row.turn_id, row.grade))


def _llmjudge_judges(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """The labels of each judge, of all pairs that have a grade."""
    known = LLMJUDGE.read(folder).responses
    labels: dict[str, dict[str, float]] = {}
    problems: list[Problem] = []
    for pattern in _LABELS:
        for file in find_files(folder, pattern) if is_there(folder, (pattern,)) else ():
            text = text_of(file)
            columns = text.split(maxsplit=3)
            if len(columns) < 3 or f"{columns[0]}/{columns[2]}" not in known:
                # Another repository's file: a judge's labels begin with a pair of the qrels.
                continue
            try:
                rows = parse_qrels(text, str(file))
            except InputError as error:
                problems += error.problems
                continue
            pairs = {f"{row.turn_id}/{row.item_id}": float(row.grade) for row in rows}
            given = {item_id: label for item_id, label in pairs.items() if item_id in known}
            if labels.setdefault(file.stem, given) != given:
                raise InputError(f"{file}: another file has other labels of {file.stem}; keep one of them")
    if problems:
        raise InputError(f"{problems[0].file}: labels of a judge that cannot be read", problems)
    return labels


LLMJUDGE = Dataset(
    name="llmjudge", title="LLMJudge, test: passages of queries, without texts", criterion="relevance",
    grades=(0, 1, 2, 3), positive=(2, 3), unit="topic",
    licence="MIT for the judges' labels; none is named for the qrels",
    source="llm4eval/LLMJudge: data/llmjudge_test_qrel_idx.txt; labels: llm4eval/LLMJudge-benchmark", files=(QRELS,),
    fill=_llmjudge, stored=_llmjudge_judges, size=4423,
)  # fmt: skip

JUDGMENTS = "qrels/response_judgments.json"
TOPICS = "2022_evaluation_topics_tree_v1.0.json"


_Grade = Annotated[int, msgspec.Meta(ge=0, le=3)]


class _JudgedResponse(msgspec.Struct):
    item_id: str = msgspec.field(name="Response ID")
    text: str = msgspec.field(name="Response Text")
    relevance: _Grade = msgspec.field(name="Relevance")
    naturalness: _Grade = msgspec.field(name="Naturalness")
    conciseness: _Grade = msgspec.field(name="Conciseness")


class _JudgedTurn(msgspec.Struct):
    responses: list[_JudgedResponse] = msgspec.field(name="Responses")


def _cast_regin(criterion: str, folder: Path, reading: DatasetReading) -> None:
    """The crowd's grades of responses of CAsT 2022, with the conversations before them."""
    file = find_file(folder, JUDGMENTS)
    topics = find_file(folder, TOPICS)
    turns = turns_by_id(read_topics(topics))
    for turn_id, judged in reading.members(file, _JudgedTurn).items():
        where = f"turn {turn_id}"
        turn = turns.get(turn_id)
        if turn is None:
            reading.problems.add("unknown_turn", where, f"not among the turns of {topics}", file=file)
            continue
        context = tuple((earlier.utterance, earlier.response) for earlier in turn.context)
        for row in judged.responses:
            item_id = f"{turn_id}/{row.item_id}"
            grade = getattr(row, criterion)
            response = LabeledResponse(
                item_id=item_id,
                unit=turn.topic_id,
                grade=grade,
                grades=(),
                response=row.text,
                passages=(),
                utterance=turn.utterance,
                context=context,
            )
            reading.add(file, where, response)


def _cast_regin_part(criterion: str) -> Dataset:
    return Dataset(
        name=f"cast-regin-{criterion}", title=f"CAsT-ReGIn, {criterion}: one grade of a crowd", criterion=criterion,
        grades=(0, 1, 2, 3), positive=(2, 3), unit="topic",
        licence="no licence file",
        source=f"grill-lab/CAsT-ReGIn: response_evaluation/{JUDGMENTS}; daltonj/treccastweb: 2022/{TOPICS}",
        files=(JUDGMENTS, TOPICS), fill=partial(_cast_regin, criterion), size=2479,
    )  # fmt: skip


NATURAL = (1, 2, 3)
"""The grades of `Natural`: whether the response sounds like what a person would say."""


class _Response(msgspec.Struct):
    response: str
    natural: list[int] = msgspec.field(name="Natural")


class _Dialogue(msgspec.Struct):
    context: str
    responses: list[_Response]


def _usr(name: str, folder: Path, reading: DatasetReading) -> None:
    """Responses in dialogues, each graded by three annotators."""
    file = find_file(folder, name)
    for where, dialogue in reading.entries(file, "", _Dialogue):
        unit = where.strip("$[]")
        context, utterance = _turns(dialogue.context)
        for number, given in enumerate(dialogue.responses):
            path = f"{where}.responses[{number}]"
            if not given.natural:
                reading.skipped["no label"] += 1
            elif not set(given.natural) <= set(NATURAL):
                reading.problems.add(
                    "off_scale", f"{path}.Natural", f"{given.natural}: expected grades of 1 to 3", file=file
                )
            else:
                item_id = f"{unit}/{number}"
                grade = consensus(given.natural)
                grades = tuple(given.natural)
                response = LabeledResponse(
                    item_id=item_id,
                    unit=unit,
                    grade=grade,
                    grades=grades,
                    response=given.response,
                    passages=(),
                    utterance=utterance,
                    context=context,
                )
                reading.add(file, path, response)


def _turns(context: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """The exchanges of a dialogue and the utterance that is answered, which is its last line; speakers take turns."""
    *earlier, utterance = context.strip("\n").split("\n")
    # The line before the utterance was said by who answers it; a dialogue may begin with that speaker.
    spoken = earlier if len(earlier) % 2 == 0 else ["", *earlier]
    return tuple(zip(spoken[::2], spoken[1::2], strict=True)), utterance


def _usr_part(name: str, title: str, file: str, size: int) -> Dataset:
    return Dataset(
        name=name, title=f"USR, {title}: naturalness by three annotators", criterion="naturalness", grades=NATURAL,
        positive=(3,), unit="dialogue", licence="none is named", source=f"shikib.com/{file}", files=(file,),
        fill=partial(_usr, file), size=size,
    )  # fmt: skip


LONG = "judgments_long.tsv"
WIDE = "output_processed.csv"
ITEMS = "items.json"
"""The texts beside the table with a label a row."""
LABELS = {str(grade): grade for grade in (1, 2, 3, 4)}
_LIST = re.compile(r"\['[^']*'(?:, '[^']*')*\]")


class _Item(msgspec.Struct):
    question: str
    response: str


def _transparentcis(dimension: str, folder: Path, reading: DatasetReading) -> None:
    """Responses to ten questions of CAsT, each graded by 16 workers on many dimensions."""
    file = find_file(folder, f"{LONG}|{WIDE}")
    rows = _long(file, reading, dimension) if file.name == LONG else _wide(file, reading, dimension)
    for where, item_id, item, labels in rows:
        grades = [reading.grade(file, where, LABELS, label) for label in labels]
        known = tuple(grade for grade in grades if grade is not None)
        if len(known) == len(grades):
            unit = item_id.partition("_")[0]
            grade = consensus(known)
            reading.add(
                file,
                where,
                LabeledResponse(
                    item_id=item_id,
                    unit=unit,
                    grade=grade,
                    grades=known,
                    response=item.response,
                    passages=(),
                    utterance=item.question,
                ),
            )


_Rows = Iterator[tuple[str, str, _Item, list[str]]]
"""Place, item id, texts and labels."""


def _wide(file: Path, reading: DatasetReading, dimension: str) -> _Rows:
    """The authors' table: a response a row, with a list of the workers' labels in each dimension's cell."""
    needed = ("questions_ids", "answers_ids", "questions", "answers", dimension)
    for row in read_table(file, reading.problems, needed=needed)[1]:
        cell = row.cells[dimension]
        if _LIST.fullmatch(cell):
            item_id = f"Q{row.cells['questions_ids']}_{row.cells['answers_ids']}"
            yield row.place, item_id, _Item(row.cells["questions"], row.cells["answers"]), cell[2:-2].split("', '")
        else:
            message = f"{dimension}: expected a list of labels such as ['3', '4']"
            reading.problems.add("wrong_label", row.place, message, file=file)


def _long(file: Path, reading: DatasetReading, dimension: str) -> _Rows:
    """A label a row, and the texts in a file beside it."""
    texts = file.with_name(ITEMS)
    items = reading.members(texts, _Item)
    _, rows = read_table(file, reading.problems, needed=("item_id", "dimension", "label"))
    of_dimension = (row.cells for row in rows if row.cells["dimension"] == dimension)
    for item_id, given in groups_of((cells["item_id"], cells["label"]) for cells in of_dimension).items():
        if item_id in items:
            yield f"item {item_id}", item_id, items[item_id], given
        else:
            reading.problems.add("unknown_item", f"item {item_id}", f"not in {texts}", file=file)


def _transparentcis_part(dimension: str, criterion: str) -> Dataset:
    return Dataset(
        name=f"transparentcis-{dimension}",
        title=f"TransparentCIS, {dimension}: 16 workers a response",
        criterion=criterion,
        grades=tuple(LABELS.values()),
        # Workers seldom give less than 3, so 3 tells responses apart as little as all of them do.
        positive=(4,),
        unit="question",
        licence="no licence file",
        source=f"iai-group/sigir2024-transparentCIS: results/user_study_output/{WIDE}",
        files=(f"{LONG}|{WIDE}",),
        fill=partial(_transparentcis, dimension),
        size=100,
    )


GRADED = (
    LLMJUDGE,
    *map(_cast_regin_part, ("relevance", "naturalness", "conciseness")),
    _usr_part("usr-topical", "Topical Chat", "tc_usr_data.json", 360),
    _usr_part("usr-persona", "PersonaChat", "pc_usr_data.json", 300),
    _transparentcis_part("relevance", "relevance"),
    _transparentcis_part("completeness", "completeness"),
    _transparentcis_part("conciseness", "conciseness"),
    _transparentcis_part("readability", "naturalness"),
)
