"""The files of RCD-2020: spans, groups of topics, and ranked passages."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from judge.errors import InputError
from judge.extra.evaluate.scores import MeasuredRun, Over, measured_run
from judge.extra.evaluate.spans.overlap import Conversations, SpanLine
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.io.limits import MAX_PROBLEMS, numbered, stopped
from judge.io.line_stream import line_problem, numbered_lines, text_of
from judge.io.safe import shown
from judge.io.trec import QrelRow, parse_run
from judge.records import Problem, Record
from judge.stats.means import mean_interval

_COLUMNS = 6
"""Of a run of passages: topic Q0 passage rank score name."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_ENDINGS = (".gz", ".tsv", ".txt", ".res", ".run")


PassageScores = dict[str, dict[str, float]]
"""Topic to passage to score."""


def run_name(path: Path) -> str:
    """What a run is called: its file's name, without the ending of a format."""
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending) or name
    return name


def ranks_passages(path: Path) -> bool:
    """Whether a run ranks passages (task 2), by its first line that is not blank; else it predicts spans (task 1)."""
    for _, line in numbered_lines(path):
        fields = re.split(r"[ \t]+", line)
        # A span may be five numbers, but does not begin with Q0.
        unused = fields[1:2] in (["Q0"], ["q0"]) or (fields[1:2] == ["0"] and bool(_NUMBER.fullmatch(fields[-2])))
        return len(fields) == _COLUMNS and unused
    raise InputError(f"{path}: the file is empty: expected `topic<TAB>span` or `topic Q0 passage rank score name`")


def read_spans(path: Path, *, gold: bool = False) -> tuple[SpanLine, ...]:
    """Every line up to the last that is not blank: `topic<TAB>span`, for a run also with spaces between the two.

    Args:
        path: The file.
        gold: Whether every topic needs a span, after a tab.

    Raises:
        InputError: The file cannot be read, a topic is given twice, or a gold line is not two columns.
    """
    lines: list[SpanLine] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for number, line in numbered(text_of(path), str(path)):
        if len(problems) == MAX_PROBLEMS:
            problems.append(stopped(str(path), number))
            break
        topic_id, text = [*re.split(r"[ \t]+", line.strip(" \t\r"), maxsplit=1), ""][:2]
        lines.append(SpanLine(topic_id, text, "".join(line.split("\t")[1:2])))
        if not topic_id:
            continue
        if first.setdefault(topic_id, number) != number:
            message = f"topic {shown(topic_id)} is already on line {first[topic_id]}"
            problems.append(line_problem("duplicate_topic", path, number, message))
        elif gold and (line.strip(" \t\r").count("\t") != 1 or not text):
            message = f"{shown(line)}: expected a topic, one tab and its span"
            problems.append(line_problem("wrong_columns", path, number, message))
    _refuse(path, "usable as spans", problems)
    while lines and not lines[-1].topic_id:
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty: expected lines of a topic, a tab and its span")
    return tuple(lines)


def read_groups(path: Path) -> Conversations:
    """The topics of each conversation, a line each.

    Raises:
        InputError: The file cannot be read or is empty, or a topic is given twice.
    """
    groups: list[tuple[str, ...]] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for number, line in numbered_lines(path):
        groups.append(tuple(re.split(r"[ \t]+", line)))
        counts = Counter(groups[-1])
        twice = [topic_id for topic_id in groups[-1] if topic_id in first or counts[topic_id] > 1]
        if twice and len(problems) < MAX_PROBLEMS:
            message = f"topic {shown(twice[0])} is already on line {first.get(twice[0], number)}"
            problems.append(line_problem("duplicate_topic", path, number, message))
        for topic_id in groups[-1]:
            first.setdefault(topic_id, number)
    _refuse(path, "a list of groups", problems)
    if not groups:
        raise InputError(f"{path}: the file is empty: expected the topics of a conversation on each line")
    return groups


def read_ranking(path: Path) -> PassageScores:
    """The passages of a TREC run; only their scores order them, as in trec_eval.

    Raises:
        InputError: The file is no TREC run, or a passage is given twice for a topic.
    """
    return parse_run(text_of(path), str(path)).scores


def topics_of(lines: Iterable[SpanLine]) -> dict[str, str]:
    """Topic to its span."""
    return {line.topic_id: line.text for line in lines if line.topic_id}


def _refuse(path: Path, expected: str, problems: Sequence[Problem]) -> None:
    if problems:
        raise InputError(f"{path}: not {expected}: {count(len(problems), 'line')} with problems", problems)


Merging = Literal["merged", "script"]
"""merged: a passage that is relevant to one topic of a conversation is relevant to each of them. script: what the
organizers' script makes of it: it never empties its list between conversations, so a topic also has the relevant
passages of every conversation before it.
"""
MERGINGS: tuple[Merging, ...] = get_args(Merging)
MEASURES = ("AP", "P@5", "RR")

RelevantPassages = Mapping[str, frozenset[str]]
"""Topic to the ids of its relevant passages."""


class MergedRun(Record, frozen=True):
    """A run of passages under one set of merged qrels."""

    run_id: str
    merging: Merging
    over: Over
    scores: tuple[MeasuredRun, ...]
    """In the order of MEASURES."""


def merged_qrels(
    rows: Iterable[QrelRow], groups: Sequence[tuple[str, ...]], merging: Merging = "merged"
) -> RelevantPassages:
    """The relevant passages of every topic that has any; a topic in no group is left out.

    Args:
        rows: The qrels; a passage is relevant from grade 1 on.
        groups: The topics of each conversation.
        merging: What is put together. The script's order is that of the groups' first topics, as gawk goes through
            the numbers of topics.
    """
    own: dict[str, set[str]] = {}
    for row in rows:
        if row.grade > 0:
            own.setdefault(row.turn_id, set()).add(row.item_id)
    relevant: dict[str, frozenset[str]] = {}
    before: frozenset[str] = frozenset()
    for topics in sorted(groups, key=lambda topics: natural_key(topics[0])):
        together = before.union(*(own.get(topic_id, ()) for topic_id in topics))
        relevant |= dict.fromkeys(topics, together)
        before = together if merging == "script" else before
    return {topic_id: passages for topic_id, passages in relevant.items() if passages}


def merged_run(
    run_id: str,
    ranking: Mapping[str, Mapping[str, float]],
    relevant: RelevantPassages,
    groups: Sequence[tuple[str, ...]],
    merging: Merging,
    over: Over,
) -> MergedRun:
    """AP, P@5 and RR of a run, with trec_eval's own order of passages: by score, equal scores by falling id.

    Args:
        run_id: The run.
        ranking: Topic to the scores of its passages.
        relevant: From `merged_qrels`.
        groups: The topics of each conversation; intervals are over conversations, whose topics share their passages.
        merging: How the qrels were merged.
        over: What the mean is over; the organizers' is `answered`.
    """
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in MEASURES]
    qrels = {topic_id: dict.fromkeys(sorted(passages), 1) for topic_id, passages in relevant.items()}
    run = {topic_id: dict(scores) for topic_id, scores in ranking.items() if scores and topic_id in relevant}
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    # Where a run is empty, ir_measures would refuse it; topics that are not in a run have no value.
    for metric in ir_measures.iter_calc(measures, qrels, run) if run else ():
        if metric.query_id in run:
            values[str(metric.measure)][metric.query_id] = float(metric.value)
    scores = (measured_run(run_id, name, values[name], relevant, over) for name in MEASURES)
    return MergedRun(run_id, merging, over, tuple(_over_groups(score, groups) for score in scores))


def _over_groups(score: MeasuredRun, groups: Sequence[tuple[str, ...]]) -> MeasuredRun:
    conversations = {topic_id: topics[0] for topics in groups for topic_id in topics}
    clusters = [conversations[topic_id] for topic_id in score.turns]
    estimate = mean_interval(list(score.turns.values()), clusters, bounds=(0.0, 1.0), what="values")
    return msgspec.structs.replace(score, estimate=estimate)
