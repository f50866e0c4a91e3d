"""TREC RAG 2024: the labels of citations by NIST's assessors, as gold.

N. Thakur, R. Pradeep, S. Upadhyay, D. Campos, N. Craswell & J. Lin (2025), Support Evaluation for the TREC 2024 RAG
Track, arXiv:2504.15205; the labels are released with webis-de/ir_axioms.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import refuse
from judge.gold.draft import Draft, ImportOptions, SourceContent
from judge.gold.rows import citation_digest
from judge.io.files import numbered_lines
from judge.io.tabular import collected
from judge.io.text import count, shown
from judge.records import Problem, file_problem
from judge.runs.document import decode

GRADES: dict[str, int | None] = {"2": 2, "1": 1, "0": 0, "-1": None, "3": None}
"""Label to grade; -1 and 3 are of citations that nobody judged."""


class _LabeledCitation(msgspec.Struct):
    reference: str
    support: str | int


class _Sentence(msgspec.Struct):
    text: str | float | None
    """Texts may be NaN."""
    citations: list[_LabeledCitation]


class _Line(msgspec.Struct):
    run_id: str | int
    sentences: list[_Sentence]
    topic_id: str | int | None = None
    qid: str | int | None = None
    """What one of the files calls the topic."""


_Citation = tuple[Any, str, int | None]
"""The sentence, the passage and the grade."""


def labels_as_gold(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The labels as gold of citations, named by sentence and passage; unjudged ones and sentences without text go.

    Where several runs have one citation in a topic, its first label counts.
    """
    content = SourceContent(defaults={"criterion": "support", "assessor": "nist"})
    first: dict[tuple[str, str], int] = {}
    left = others = 0
    for path in paths:
        made = "postedit" if "with_prediction" in path.name else "blind"
        rows: dict[str, dict[str, list[_Citation]]] = {}
        with collected(content.problems, "unreadable_file", path):
            rows = _rows(path)
        for run_id, topic, sentence, passage_id, grade in _cited(rows):
            if grade is None or not isinstance(sentence, str) or not sentence.strip():
                left += 1
                continue
            turn_id = f"{topic}_1"
            name = citation_digest(sentence, passage_id)
            if (turn_id, name) in first:
                others += first[turn_id, name] != grade
                continue
            first[turn_id, name] = grade
            about = {"turn_id": turn_id, "text_sha256": name, "grade": grade, "made": made}
            content.drafts.append(Draft(str(path), f"{run_id} {topic}", about))
    if left:
        content.notes.append(f"{count(left, 'citation')} left out: nobody judged them, or their sentence has no text")
    if others:
        content.notes.append(f"{count(others, 'label')} left out: another run's label of the same citation came first")
    if content.drafts and "inclusion_probability" not in options.constants and options.plan is None:
        content.notes.append(
            "the labels do not say how likely each citation was to be labeled, and `judge leaderboard --gold` needs "
            "it: import them with --inclusion 1 where every citation of the runs was labeled in these topics"
        )
    return content


def _cited(rows: Mapping[str, Mapping[str, Sequence[_Citation]]]) -> Iterator[tuple[str, str, Any, str, int | None]]:
    for run_id, topics in rows.items():
        for topic, citations in topics.items():
            for sentence, passage_id, grade in citations:
                yield run_id, topic, sentence, passage_id, grade


def _rows(path: Path) -> dict[str, dict[str, list[_Citation]]]:
    """Run to topic to the citations; an InputError lists every line that is no labeled response."""
    rows: dict[str, dict[str, list[_Citation]]] = {}
    problems: list[Problem] = []

    def add(code: str, number: int, at: str, message: str) -> None:
        problems.append(file_problem(code, path, message, f"line {number}: {at}"))

    for number, text in numbered_lines(path):
        # NaN is no JSON, so that msgspec alone would not read it.
        row, unread = decode(text.encode(), str(path), number)
        if unread is not None:
            problems.append(unread)
            continue
        try:
            line = msgspec.convert(row, _Line)
        except msgspec.ValidationError as error:
            message, _, at = str(error).partition(" - at `")
            add("wrong_type", number, at.rstrip("`") or "$", message)
            continue
        topic = line.topic_id if line.topic_id is not None else line.qid
        if topic is None:
            add("wrong_type", number, "$", "expected `topic_id` or `qid`")
            continue
        wrong = _other_labels(line)
        for at, label in wrong:
            add("wrong_type", number, at, f"expected {', '.join(GRADES)}, found {shown(label)}")
        topics = rows.setdefault(str(line.run_id), {})
        if str(topic) in topics:
            add("duplicate_row", number, "$", f"topic {shown(topic)} of run {shown(line.run_id)} again: expected once")
        else:
            topics[str(topic)] = [] if wrong else _citations(line)
    refuse(problems, "not usable as labels")
    return rows


def _other_labels(line: _Line) -> list[tuple[str, str | int]]:
    """The labels that are none of the track, each with its place."""
    wrong: list[tuple[str, str | int]] = []
    for i, sentence in enumerate(line.sentences):
        for k, cited in enumerate(sentence.citations):
            if str(cited.support) not in GRADES:
                wrong.append((f"$.sentences[{i}].citations[{k}].support", cited.support))
    return wrong


def _citations(line: _Line) -> list[_Citation]:
    citations: list[_Citation] = []
    for sentence in line.sentences:
        for cited in sentence.citations:
            citations.append((sentence.text, cited.reference, GRADES[str(cited.support)]))
    return citations
