"""Runs of RCD-2020 under its measures: what `judge evaluate spans` does, for use from Python."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.errors import InputError, UsageError
from judge.extra.evaluate.scores import Over
from judge.extra.evaluate.spans.files import (
    MERGINGS,
    MergedRun,
    Merging,
    merged_qrels,
    merged_run,
    ranks_passages,
    read_groups,
    read_ranking,
    read_spans,
    run_name,
    topics_of,
)
from judge.extra.evaluate.spans.overlap import (
    Conversations,
    ScriptFigures,
    SpanLine,
    SpanScore,
    script_figures,
    span_score,
)
from judge.extra.evaluate.spans.tables import group_grid, span_grids
from judge.io.cells import count
from judge.io.draw.drawable import can_draw
from judge.io.draw.intervals import interval_plot
from judge.io.extras import need_extra
from judge.io.folder import replace_folder
from judge.io.ids import natural_key
from judge.io.line_stream import text_of
from judge.io.plan import Option, Options
from judge.io.safe import printable_id, shown
from judge.io.steps import Steps, counted, quiet
from judge.io.table import Table
from judge.io.trec import QrelRow, parse_qrels

RECORD = "spans.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
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

    spans: tuple[SpanScore, ...]
    script: tuple[ScriptFigures, ...]
    passages: tuple[MergedRun, ...]
    notes: tuple[str, ...]
    """What was skipped or left out, a sentence each."""

    @property
    def grids(self) -> dict[str, Table[Any]]:
        """The tables by the names of their files."""
        return span_grids(self.spans, self.script, self.passages, self.notes)


def evaluate_spans(plan: SpansPlan, steps: Steps = quiet) -> SpansOutcome:
    """Measure the runs, and write the tables if a folder is named.

    Raises:
        UsageError: A file that a run needs is not named, one that is named is not needed, or two runs have one name.
        InputError: An input is bad; every problem of it is listed.
    """
    need_extra("rouge", "the stems of words in spans")
    names = [run_name(path) for path in plan.runs]
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise UsageError(f"--run: two runs are named {shown(twice)}; rename a file")
    of_passages = {path: ranks_passages(path) for path in plan.runs}
    _check_needed(plan, [of_passages[path] for path in plan.runs])
    groups = read_groups(plan.equivalence) if plan.equivalence is not None else None
    runs = list(zip(plan.runs, names, strict=True))
    notes: list[str] = []
    spans: list[SpanScore] = []
    script: list[ScriptFigures] = []
    if plan.gold is not None:
        gold = read_spans(plan.gold, gold=True)
        span_groups = _groups(groups, topics_of(gold), "the gold", notes)
        notes += _partial(span_groups, topics_of(gold), str(plan.equivalence))
        for path, name in counted("measuring spans", runs, len(runs), steps):
            if not of_passages[path]:
                lines = read_spans(path)
                spans += _span_scores(path, name, lines, gold, span_groups, notes)
                script += script_figures(name, lines, gold, span_groups)
    passages: list[MergedRun] = []
    if plan.qrels is not None:
        rows = parse_qrels(text_of(plan.qrels), str(plan.qrels))
        qrel_groups = _groups(groups, dict.fromkeys(row.turn_id for row in rows), "the qrels", notes)
        for path, name in counted("measuring passages", runs, len(runs), steps):
            if of_passages[path]:
                mergings = MERGINGS if groups is not None else MERGINGS[:1]
                passages += _passage_scores(path, name, rows, qrel_groups, mergings, notes)
    outcome = SpansOutcome(tuple(spans), tuple(script), tuple(passages), tuple(notes))
    if plan.out is not None:
        given = (plan.gold, plan.qrels, plan.equivalence, *plan.runs)
        _write(plan.out, outcome, [path for path in given if path is not None])
    return outcome


def _check_needed(plan: SpansPlan, of_passages: Sequence[bool]) -> None:
    """Refuse a plan whose files do not fit each other."""
    for given, option, needed, kind in (
        (plan.gold, "--gold", not all(of_passages), "spans (`topic<TAB>span`)"),
        (plan.qrels, "--qrels", any(of_passages), "passages (`topic Q0 passage rank score name`)"),
    ):
        if needed and given is None:
            raise UsageError(f"a run of {kind} needs {option}")
        if given is not None and not needed:
            raise UsageError(f"{option} is of no use here: no run of {kind} is given")


def _groups(groups: Conversations | None, known: Mapping[str, object], name: str, notes: list[str]) -> Conversations:
    """The groups, or a group for each topic; what is special about them is noted."""
    if groups is None:
        notes.append(f"Without --equivalence, every topic of {name} is a group of its own.")
        return [(topic_id,) for topic_id in sorted(known, key=natural_key)]
    listed = {topic_id for topics in groups for topic_id in topics}
    if left := [topic_id for topic_id in known if topic_id not in listed]:
        notes.append(f"{count(len(left), 'topic')} of {name} in no group, so in no mean: {_list(left)}.")
    return groups


def _partial(groups: Conversations, gold: Mapping[str, str], name: str) -> list[str]:
    """What is said of groups that the gold does not hold whole.

    Raises:
        InputError: It holds none of them whole.
    """
    lacking = {topics: [topic_id for topic_id in topics if topic_id not in gold] for topics in groups}
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
    lines: Sequence[SpanLine],
    gold_lines: Sequence[SpanLine],
    groups: Conversations,
    notes: list[str],
) -> list[SpanScore]:
    """A run's scores: over the groups it answered, and over all groups of the gold where these are more."""
    predicted, gold = topics_of(lines), topics_of(gold_lines)
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
    scores = [span_score(name, predicted, gold, groups)]
    if len(scores[0].groups) < len(complete):
        scores.append(span_score(name, predicted, gold, groups, "qrels"))
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
    groups: Conversations,
    mergings: Sequence[Merging],
    notes: list[str],
) -> list[MergedRun]:
    """A run's scores, by each way of merging; over all topics of the qrels too where these are more."""
    ranking = read_ranking(path)
    graded = {row.turn_id for row in rows}
    if strange := [topic_id for topic_id in ranking if topic_id not in graded]:
        notes.append(f"{name}: {count(len(strange), 'topic')} not in the qrels: {_list(strange)}.")
    scores: list[MergedRun] = []
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
    """The first topics by name."""
    named = sorted(topic_ids, key=natural_key)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(map(printable_id, named[:_NAMED])) + more


def _write(out: Path, outcome: SpansOutcome, inputs: Sequence[Path]) -> None:
    grids = outcome.grids | ({"groups": group_grid(outcome.spans)} if outcome.spans else {})
    files = {name: content for stem, grid in grids.items() for name, content in grid.files(stem).items()}
    overlaps = [(score.run_id, score.overlap) for score in outcome.spans if score.over == "answered"]
    precisions = [
        (run.run_id, run.scores[0].estimate)
        for run in outcome.passages
        if (run.merging, run.over) == ("merged", "answered")
    ]
    for stem, rows, axis, heading, unit in (
        ("spans", overlaps, "overlap", "Weighted overlap of spans", "groups"),
        ("passages", precisions, "AP", "Average precision of passages", "topics"),
    ):
        if rows and can_draw():
            svg, png = interval_plot(rows, axis, heading, unit)
            files |= {f"{stem}.svg": svg, f"{stem}.png": png}
    replace_folder(out, files, RECORD, inputs=inputs)
