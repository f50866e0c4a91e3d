"""iKAT 2025: what the public files allow, which are the topics and the runs that teams have published."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from judge.errors import InputError
from judge.extra.reproduce.published import PublishedNumber, Reproduction, beside_ours, counted
from judge.extra.reproduce.published.release import ReleasedFile, find_all, find_released, lengths_grid, nothing_found
from judge.io.cells import count
from judge.io.safe import shown
from judge.io.table import Cell, Table
from judge.records import Problem
from judge.runs.check.codes import CODES
from judge.runs.check.validate import Validated, validate_run
from judge.runs.document import read_head
from judge.runs.formats import read_run
from judge.runs.records import Run, Topic, Turn
from judge.runs.tokens import TokenCounter, countable
from judge.runs.topics import read_topics

SOURCE = (
    "TREC iKAT, Datasets and Resources, Topics for iKAT Year 3 (2025), https://www.trecikat.com/data; runs: "
    "https://github.com/gyeozai/CFDA-TREC-iKAT2025"
)
FORMAT = "ikat2025"
PASSAGES = "116,838,987"
"""The number of passages of the collection that the page prints."""

_TOPICS = ReleasedFile(
    "topics",
    "2025_test_topics.json",
    r"2025_test_topics\.json(\.gz)?",
    "the repository irlabamsterdam/iKAT, folder 2025/data/",
    needed=False,
)
_RUNS = ReleasedFile(
    "runs", "a run in the format of iKAT 2025 (*.jsonl)", r".*\.jsonl(\.gz)?", "a team, such as CFDA", needed=False
)
_COLLECTION = (
    "the collection and its list of MD5s need a login of the track; `judge passages index --hashes` counts the list"
)
NOTES = (
    "Of iKAT 2025 this command knows no published result, only the track's page of resources; it counts what the "
    "public topics hold and checks the runs that teams have published.",
)


class _Submitted(NamedTuple):
    run: Run
    validated: Validated


def reproduce(folder: Path) -> Reproduction:
    """Count what the public files hold, and check the runs as the track's validator does and beyond.

    Raises:
        InputError: The folder has neither topics nor runs, or a file is bad; every problem is listed.
    """
    topics_path = find_released(folder, (_TOPICS,)).get("topics")
    # The lines of other files, such as passages, have neither of these names at their beginning.
    paths = find_all(folder, _RUNS.pattern, _looks_like_run)
    if topics_path is None and not paths:
        raise nothing_found(folder, (_TOPICS, _RUNS))
    topics = read_topics(topics_path) if topics_path is not None else None
    runs = _runs(paths, None if topics is None else {turn.turn_id: turn for topic in topics for turn in topic.turns})
    numbers = [beside_ours("resources page", "passage collection", "passages", PASSAGES, None, _COLLECTION)]
    notes = list(NOTES)
    if topics is None:
        notes.append(f"Without {_TOPICS.name} in the folder, checks that need topics are not made.")
    else:
        numbers += _topic_counts(topics)
    if not runs:
        notes.append("No run is in the folder.")
    beyond = (_table(runs, topics), _problems(runs), lengths_grid({each.run.run_id: _texts(each) for each in runs}))
    return Reproduction("ikat2025", SOURCE, tuple(numbers), beyond if runs else (), tuple(notes))


def _looks_like_run(path: Path) -> bool:
    try:
        head = read_head(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    # Runs of other citation tracks name a topic or a narrative where these name a turn.
    other = b'"topic_id"' in head or b'"narrative_id"' in head
    return b'"team_id"' in head and (b'"references"' in head or b'"citations"' in head) and not other


def _runs(paths: Sequence[Path], turns: dict[str, Turn] | None) -> list[_Submitted]:
    """The runs by run id, as they are submitted and as they can be judged."""
    runs: dict[str, _Submitted] = {}
    problems: list[Problem] = []
    tokens = TokenCounter()
    for path in paths:
        read = read_run(path, FORMAT)
        if read.run is None:
            problems += read.problems
            continue
        first = runs.get(read.run.run_id)
        if first is not None:
            message = f"run {shown(read.run.run_id)} is also in {first.run.file}, with other content"
            problems.append(Problem("duplicate_run_id", "error", read.run.file, None, "$.metadata.run_id", message))
            continue
        validated = validate_run(read, turns, tokens)
        runs[read.run.run_id] = _Submitted(read.run, validated)
    if problems:
        raise InputError(f"the runs cannot be used: {count(len(problems), 'problem')}", problems)
    return list(runs.values())


def _topic_counts(topics: Sequence[Topic]) -> list[PublishedNumber]:
    """What no page prints; the row says which file it was counted in."""
    turns = [turn for topic in topics for turn in topic.turns]
    cited = sum(bool(turn.passage_ids) for turn in turns)
    rows = (("topics", len(topics)), ("turns", len(turns)), ("turns whose response cites passages", cited))
    return [
        PublishedNumber("not printed", _TOPICS.name, measure, None, counted(number, len(turns), len(topics)), None)
        for measure, number in rows
    ]


def _table(runs: Sequence[_Submitted], topics: Sequence[Topic] | None) -> Table[Any]:
    expected = None if topics is None else {turn.turn_id for topic in topics for turn in topic.turns}
    lines: list[tuple[Cell, ...]] = []
    for run, validated in runs:
        answered = {turn.turn_id for turn in run.turns}
        responses = [response for turn in run.turns for response in turn.responses]
        numbers = Counter(problem.severity for problem in validated.problems for _ in range(problem.count))
        lines.append(
            (
                *(run.run_id, run.team, run.run_type, len(answered)),
                None if expected is None else len(expected - answered),
                len(responses),
                median([len(response.provenance) for response in responses]) if responses else None,
                median([sum(bool(entry.used) for entry in response.provenance) for response in responses])
                if responses
                else None,
                *(numbers["error"], numbers["warning"]),
            )
        )
    columns = ("run", "team", "type", "turns", "missing", "responses", "references", "citations", "errors", "warnings")
    notes = ("missing: turns of the topics without a response. references, citations: the median of a response.",)
    return Table(lines, columns, "Runs", notes, places=1)


def _problems(runs: Sequence[_Submitted]) -> Table[Any]:
    lines: list[tuple[Cell, ...]] = []
    for run, validated in runs:
        codes: Counter[str] = Counter()
        for problem in validated.problems:
            codes[problem.code] += problem.count
        for code, times in sorted(codes.items()):
            row = CODES[code]
            lines.append((run.run_id, code, row.severity, row.official[2] or "not applicable", row.meaning, times))
    columns = ("run", "code", "severity", "official", "meaning", "times")
    notes = ("official: what the track's validator of 2025 makes of it: E error, W warning, – nothing.",)
    return Table(lines, columns, "Problems", notes)


def _texts(submitted: _Submitted) -> dict[str, str]:
    """Turn to the response of the best rank, as pooling would take it."""
    run = submitted.validated.run
    best = {
        turn.turn_id: min(turn.responses, key=lambda response: response.rank).text
        for turn in (() if run is None else run.turns)
        if turn.responses
    }
    return {turn_id: text for turn_id, text in best.items() if countable(text)}
