"""Runs of RCD-2020 under its measures: what `judge evaluate spans` does, for use from Python."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.extra.evaluate import Over, measured_run, span_scores
from judge.io.draw import interval_plot
from judge.io.files import MAX_PROBLEMS, line_problem, numbered, numbered_lines, text_of, too_many
from judge.io.folder import replace_folder
from judge.io.ids import QrelRow, groups_of, natural_key, parse_qrels, parse_run
from judge.io.installed import has_extra, need_extra
from judge.io.plan import Option, Options
from judge.io.steps import Steps, counted, quiet
from judge.io.table import Table
from judge.io.text import count, printable_id, shown
from judge.records import Problem
from judge.results.rows import Score, mean_over
from judge.runs.measures import Measures

_COLUMNS = 6
"""Of a run of passages: topic Q0 passage rank score name."""
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_ENDINGS = (".gz", ".tsv", ".txt", ".res", ".run")


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


def read_spans(path: Path, *, gold: bool = False) -> tuple[span_scores.SpanLine, ...]:
    """Every line up to the last that is not blank: `topic<TAB>span`, for a run also with spaces between the two.

    In gold, every topic needs a span after a tab.
    """
    lines: list[span_scores.SpanLine] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for number, line in numbered(text_of(path), str(path)):
        if too_many(problems, str(path), number):
            break
        topic_id, text = [*re.split(r"[ \t]+", line.strip(" \t\r"), maxsplit=1), ""][:2]
        lines.append(span_scores.SpanLine(topic_id, text, "".join(line.split("\t")[1:2])))
        if not topic_id:
            continue
        if first.setdefault(topic_id, number) != number:
            message = f"topic {shown(topic_id)} is already on line {first[topic_id]}"
            problems.append(line_problem("duplicate_topic", path, number, message))
        elif gold and (line.strip(" \t\r").count("\t") != 1 or not text):
            message = f"{shown(line)}: expected a topic, one tab and its span"
            problems.append(line_problem("wrong_columns", path, number, message))
    refuse(problems, f"{path}: not usable as spans: {count(len(problems), 'line')} with problems")
    while lines and not lines[-1].topic_id:
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty: expected lines of a topic, a tab and its span")
    return tuple(lines)


def read_groups(path: Path) -> span_scores.Conversations:
    """The topics of each conversation, a line each."""
    groups: list[tuple[str, ...]] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for number, line in numbered_lines(path):
        groups.append(tuple(re.split(r"[ \t]+", line)))
        twice = [topic_id for topic_id, times in Counter(groups[-1]).items() if topic_id in first or times > 1]
        if twice and len(problems) < MAX_PROBLEMS:
            message = f"topic {shown(twice[0])} is already on line {first.get(twice[0], number)}"
            problems.append(line_problem("duplicate_topic", path, number, message))
        for topic_id in groups[-1]:
            first.setdefault(topic_id, number)
    refuse(problems, f"{path}: not a list of groups: {count(len(problems), 'line')} with problems")
    if not groups:
        raise InputError(f"{path}: the file is empty: expected the topics of a conversation on each line")
    return groups


def topics_of(lines: Iterable[span_scores.SpanLine]) -> dict[str, str]:
    """Topic to its span."""
    return {line.topic_id: line.text for line in lines if line.topic_id}


MEASURES = ("AP", "P@5", "RR")

RelevantPassages = Mapping[str, frozenset[str]]
"""Topic to the ids of its relevant passages."""


def merged_qrels(
    rows: Iterable[QrelRow], groups: Sequence[tuple[str, ...]], merging: span_scores.Merging = "merged"
) -> RelevantPassages:
    """The relevant passages of every topic that has any; a topic in no group is left out.

    A passage is relevant from grade 1 on. The script's order is that of the groups' first topics, as gawk goes through
    the numbers of topics.
    """
    own = groups_of((row.turn_id, row.item_id) for row in rows if row.grade > 0)
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
    merging: span_scores.Merging,
    over: Over,
) -> span_scores.MergedRun:
    """AP, P@5 and RR of a run, with trec_eval's own order of passages: by score, equal scores by falling id.

    Intervals are over conversations, whose topics share their passages; the organizers' mean is over `answered`.
    """
    qrels = {topic_id: dict.fromkeys(sorted(passages), 1) for topic_id, passages in relevant.items()}
    values = Measures(MEASURES, qrels).values({topic_id: [*scores.items()] for topic_id, scores in ranking.items()})
    conversations: dict[str, str] = {}
    for topics in groups:
        for topic_id in topics:
            conversations[topic_id] = topics[0]
    scores: list[Score] = []
    for name in MEASURES:
        score = measured_run(run_id, name, values[name], relevant, over)
        values_of = ((conversations[topic_id], value) for topic_id, value in score.values.items())
        scores.append(msgspec.structs.replace(score, mean=mean_over(values_of, "topic", (0.0, 1.0), "values")))
    return span_scores.MergedRun(run_id, merging, over, tuple(scores))


_NAMED = 10
"""How many topics a note names."""


class SpansPlan(Options):
    """Everything `judge evaluate spans` can be told."""

    runs: Annotated[tuple[Path, ...], Option("run", metavar="FILE")]
    """Runs of spans (topic, tab, span) or of passages (TREC, six columns)."""
    gold: Annotated[Path | None, Option(metavar="FILE")] = None
    """Gold spans: topic, tab, span; for runs of spans."""
    qrels: Annotated[Path | None, Option(metavar="FILE")] = None
    """Passage qrels, for runs of passages."""
    equivalence: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics that share a conversation, a line each (default: each topic alone)."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for the tables, with a row for each group."""


class SpansOutcome(msgspec.Struct, frozen=True):
    """The figures of every run."""

    spans: tuple[span_scores.SpanScore, ...]
    script: tuple[span_scores.ScriptFigures, ...]
    passages: tuple[span_scores.MergedRun, ...]
    notes: tuple[str, ...]
    """What was skipped or left out, a sentence each."""

    @property
    def grids(self) -> dict[str, Table[Any]]:
        """The tables by the names of their files."""
        return span_scores.span_grids(self.spans, self.script, self.passages, self.notes)


def evaluate_spans(plan: SpansPlan, steps: Steps = quiet) -> SpansOutcome:
    """Measure the runs, and write the tables if a folder is named.

    A UsageError if a file that a run needs is not named, one that is named is not needed, or two runs have one name.
    """
    need_extra("rouge", "the stems of words in spans")
    runs = [(path, run_name(path)) for path in plan.runs]
    if twice := next((name for name, times in Counter(name for _, name in runs).items() if times > 1), None):
        raise UsageError(f"--run: two runs are named {shown(twice)}; rename a file")
    of_passages = {path: ranks_passages(path) for path in plan.runs}
    _check_needed(plan, of_passages.values())
    groups = read_groups(plan.equivalence) if plan.equivalence is not None else None
    notes: list[str] = []
    spans: list[span_scores.SpanScore] = []
    script: list[span_scores.ScriptFigures] = []
    if plan.gold is not None:
        gold = read_spans(plan.gold, gold=True)
        span_groups = _groups(groups, topics_of(gold), "the gold", notes)
        notes += _partial(span_groups, topics_of(gold), str(plan.equivalence))
        for path, name in counted("measuring spans", runs, len(runs), steps):
            if not of_passages[path]:
                lines = read_spans(path)
                spans += _span_scores(path, name, lines, gold, span_groups, notes)
                script += span_scores.script_figures(name, lines, gold, span_groups)
    passages: list[span_scores.MergedRun] = []
    if plan.qrels is not None:
        rows = parse_qrels(text_of(plan.qrels), str(plan.qrels))
        qrel_groups = _groups(groups, dict.fromkeys(row.turn_id for row in rows), "the qrels", notes)
        for path, name in counted("measuring passages", runs, len(runs), steps):
            if of_passages[path]:
                mergings = span_scores.MERGINGS if groups is not None else span_scores.MERGINGS[:1]
                passages += _passage_scores(path, name, rows, qrel_groups, mergings, notes)
    outcome = SpansOutcome(tuple(spans), tuple(script), tuple(passages), tuple(notes))
    if plan.out is not None:
        given = (plan.gold, plan.qrels, plan.equivalence, *plan.runs)
        _write(plan.out, outcome, [path for path in given if path is not None])
    return outcome


def _check_needed(plan: SpansPlan, of_passages: Collection[bool]) -> None:
    for given, option, needed, kind in (
        (plan.gold, "--gold", not all(of_passages), "spans (`topic<TAB>span`)"),
        (plan.qrels, "--qrels", any(of_passages), "passages (`topic Q0 passage rank score name`)"),
    ):
        if needed and given is None:
            raise UsageError(f"a run of {kind} needs {option}")
        if given is not None and not needed:
            raise UsageError(f"{option} is of no use here: no run of {kind} is given")


def _groups(
    groups: span_scores.Conversations | None, known: Mapping[str, object], name: str, notes: list[str]
) -> span_scores.Conversations:
    """The groups, or a group for each topic; what is special about them is noted."""
    if groups is None:
        notes.append(f"Without --equivalence, every topic of {name} is a group of its own.")
        return [(topic_id,) for topic_id in sorted(known, key=natural_key)]
    listed: set[str] = set()
    for topics in groups:
        listed.update(topics)
    if left := [topic_id for topic_id in known if topic_id not in listed]:
        notes.append(f"{count(len(left), 'topic')} of {name} in no group, so in no mean: {_list(left)}.")
    return groups


def _partial(groups: span_scores.Conversations, gold: Mapping[str, str], name: str) -> list[str]:
    """What is said of groups that the gold does not hold whole."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for topics in groups:
        lacking[topics] = [topic_id for topic_id in topics if topic_id not in gold]
    if all(lacking.values()):
        raise InputError(f"{name}: no group has all its topics in the gold, which has {_list(gold)}")
    notes = [
        f"Group {' '.join(map(printable_id, topics))} is skipped: {_list(missing)} not in the gold."
        for topics, missing in lacking.items()
        if 0 < len(missing) < len(topics)
    ]
    if apart := sum(len(missing) == len(topics) for topics, missing in lacking.items()):
        notes.append(f"{count(apart, 'group')} without a topic of the gold skipped.")
    return notes


def _span_scores(
    path: Path,
    name: str,
    lines: Sequence[span_scores.SpanLine],
    gold_lines: Sequence[span_scores.SpanLine],
    groups: span_scores.Conversations,
    notes: list[str],
) -> list[span_scores.SpanScore]:
    """A run's scores: over the groups it answered, and over all groups of the gold where these are more."""
    predicted = topics_of(lines)
    gold = topics_of(gold_lines)
    if not predicted.keys() & gold.keys():
        raise InputError(f"{path}: none of its {count(len(predicted), 'topic')} is in the gold: {_list(predicted)}")
    if strange := [topic_id for topic_id in predicted if topic_id not in gold]:
        notes.append(f"{name}: {count(len(strange), 'topic')} not in the gold, left out: {_list(strange)}.")
    if empty := [topic_id for topic_id, text in predicted.items() if not text]:
        notes.append(f"{name}: {count(len(empty), 'empty prediction')}: {_list(empty)}.")
    complete = [topics for topics in groups if gold.keys() >= set(topics)]
    if part := [topics for topics in complete if not predicted.keys() >= set(topics)]:
        lacking = _list(topic_id for topics in part for topic_id in topics if topic_id not in predicted)
        notes.append(
            f"{name}: {count(len(part), 'group')} skipped, since the run lacks {lacking}; over `qrels` "
            "a missing prediction is empty."
        )
    scores = [span_scores.span_score(name, predicted, gold, groups)]
    if len(scores[0].groups) < len(complete):
        scores.append(span_scores.span_score(name, predicted, gold, groups, "qrels"))
    if wordless := [" ".join(group.topics) for group in scores[0].groups if not group.gold]:
        notes.append(
            f"{name}: the gold has no words after analysis, so the overlap is 0, and there is no Jaccard where the "
            f"prediction has none either: group {'; '.join(wordless[:_NAMED])}."
        )
    pairs = zip(lines, gold_lines, strict=False)
    if len(lines) != len(gold_lines) or any(line.topic_id != its_gold.topic_id for line, its_gold in pairs):
        notes.append(
            f"{name}: its lines are not those of the gold one by one, so the organizers' script compares predictions "
            "with the spans of other topics (`crossed`); the figures by topic id are the right ones."
        )
    return scores


def _passage_scores(
    path: Path,
    name: str,
    rows: Sequence[QrelRow],
    groups: span_scores.Conversations,
    mergings: Sequence[span_scores.Merging],
    notes: list[str],
) -> list[span_scores.MergedRun]:
    """A run's scores, by each way of merging; over all topics of the qrels too where these are more."""
    # Only scores order passages, as in trec_eval.
    ranking = parse_run(text_of(path), str(path)).scores
    graded = {row.turn_id for row in rows}
    if strange := [topic_id for topic_id in ranking if topic_id not in graded]:
        notes.append(f"{name}: {count(len(strange), 'topic')} not in the qrels: {_list(strange)}.")
    scores: list[span_scores.MergedRun] = []
    for merging in mergings:
        relevant = merged_qrels(rows, groups, merging)
        if not ranking.keys() & relevant.keys():
            raise InputError(
                f"{path}: none of its {count(len(ranking), 'topic')} has a relevant passage in the qrels: "
                f"{_list(ranking)}"
            )
        overs: tuple[Over, ...] = ("answered",) if relevant.keys() <= ranking.keys() else ("answered", "qrels")
        scores += (merged_run(name, ranking, relevant, groups, merging, over) for over in overs)
    return scores


def _list(topic_ids: Iterable[str]) -> str:
    named = sorted(topic_ids, key=natural_key)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(map(printable_id, named[:_NAMED])) + more


def _write(out: Path, outcome: SpansOutcome, inputs: Sequence[Path]) -> None:
    grids = outcome.grids | ({"groups": span_scores.group_grid(outcome.spans)} if outcome.spans else {})
    files: dict[str, bytes] = {}
    for name, grid in grids.items():
        files.update(grid.files(name))
    overlaps = [(score.run_id, score.overlap) for score in outcome.spans if score.over == "answered"]
    answered = [run for run in outcome.passages if (run.merging, run.over) == ("merged", "answered")]
    precisions = [(run.run_id, run.scores[0].mean) for run in answered]
    for stem, rows, axis, heading, unit in (
        ("spans", overlaps, "overlap", "Weighted overlap of spans", "groups"),
        ("passages", precisions, "AP", "Average precision of passages", "topics"),
    ):
        if rows and has_extra("pictures"):
            svg, png = interval_plot(rows, axis, heading, unit)
            files |= {f"{stem}.svg": svg, f"{stem}.png": png}
    replace_folder(out, files, "spans.sha256", inputs=inputs)
