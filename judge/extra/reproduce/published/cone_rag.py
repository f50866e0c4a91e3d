"""CONE-RAG: the counts of iKAT 2024's gold nuggets and answers, and what the released responses and matches hold."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.crowd.released import NuggetMatch, read_study, repeated_keys
from judge.errors import refuse
from judge.extra.reproduce import published as tables
from judge.io.files import text_of
from judge.io.ids import QrelRow, groups_of, natural_key, parse_qrels, topic_of
from judge.io.table import Cell, Table
from judge.io.text import count, has_content, shown
from judge.records import Estimate
from judge.runs.document import open_document
from judge.runs.fields import ProblemLog, member, usable_turn_id
from judge.runs.tokens import countable
from judge.runs.topics import read_topics
from judge.stats.means import mean_interval

SOURCE = (
    "Z. Abbasiantaeb, S. Lupart, L. Azzopardi, J. Dalton & M. Aliannejadi (2025), Conversational Gold: Evaluating "
    "Personalized Conversational Search System using Gold Nuggets, arXiv:2503.09902"
)
_RESOURCES = "the repository irlabamsterdam/CONE-RAG, folder resources/{}/"
_HUMAN, _PARTICIPANTS = _RESOURCES.format("human_resources"), _RESOURCES.format("participant_resources")
FILES = (
    tables.ReleasedFile("topics", "2024_test_topics.json", "the repository irlabamsterdam/iKAT, folder 2024/data/"),
    tables.ReleasedFile(
        "passages", "2024_test_qrels.trec", "the page trec.nist.gov/data/ikat2024.html",
        r"2024[_-](test[_-])?qrels\S*\.(trec|txt)(\.gz)?",
    ),
    tables.ReleasedFile("nuggets", "gold_nuggets_human.json", _HUMAN),
    tables.ReleasedFile("answers", "gold_response_and_nuggets_human.json", _HUMAN),
    tables.ReleasedFile("matches", "human-study-matching-labels.txt", _HUMAN),
    tables.ReleasedFile(
        "responses", "automatic_responses.json", _PARTICIPANTS, r"automatic_responses(_2024)?\.json(\.gz)?"
    ),
)  # fmt: skip
NOTES = (
    "The published numbers are those of the abstract; results of runs need GPT-4o's matches of nuggets, which are not "
    "in the release.",
    "The released responses come without the passages that they used, so their groundedness cannot be judged.",
)

_OTHER = "not known: the complete release gives the published number"


def reproduce(folder: Path) -> tables.Reproduction:
    """Count again what the abstract counts, and say what the released responses and matches hold.

    An InputError if the folder has none of the files, or a file is bad; every problem is listed.
    """
    paths = tables.find_released(folder, FILES)
    if not paths:
        raise tables.nothing_found(folder, FILES)
    grades = parse_qrels(text_of(paths["passages"]), str(paths["passages"]), range(5)) if "passages" in paths else None
    beyond: list[Table[Any]] = []
    if grades is not None:
        beyond.append(_grades(grades))
    if "matches" in paths:
        beyond.append(matches_grid(read_study(paths["matches"])))
    if "responses" in paths:
        beyond.append(tables.lengths_grid(_responses(paths["responses"])))
    return tables.Reproduction(
        "cone-rag", SOURCE, tuple(_counts(paths, grades)), tuple(beyond), (*NOTES, *tables.left_out(FILES, paths))
    )


def _counts(paths: Mapping[str, Path], grades: tuple[QrelRow, ...] | None) -> list[tables.PublishedNumber]:
    ours: dict[str, Estimate] = {}
    if "topics" in paths:
        topics = read_topics(paths["topics"])
        ours["topics"] = tables.counted(len(topics), sum(len(topic.turns) for topic in topics), len(topics))
    if grades is not None:
        ours["passages"] = tables.counted(len(grades), len(grades), len({topic_of(row.turn_id) for row in grades}))
    if "nuggets" in paths:
        nuggets = _object(paths["nuggets"])
        ours["nuggets"] = tables.counted(
            sum(map(len, nuggets.values())), len(nuggets), len(set(map(topic_of, nuggets)))
        )
    if "answers" in paths:
        answers = _answers(paths["answers"])
        ours["answers"] = tables.counted(len(answers), len(answers), len(set(map(topic_of, answers))))
    printed = (
        ("topics", "conversations", "17"),
        ("passages", "passage assessments", "20,575"),
        ("nuggets", "gold nuggets", "2,279"),
        ("answers", "gold answers", "62"),
    )
    absent = {file.key: f"{file.name} is not in the folder; it comes from {file.origin}" for file in FILES}
    return [
        tables.beside_ours(
            "Abstract", "iKAT 2024", measure, published, ours.get(key), _OTHER if key in ours else absent[key]
        )
        for key, measure, published in printed
    ]


def _grades(rows: tuple[QrelRow, ...]) -> Table[Any]:
    times = Counter(row.grade for row in rows)
    lines = tuple((grade, times[grade], times[grade] / len(rows)) for grade in range(5))
    turns = len({row.turn_id for row in rows})
    notes = (f"{count(len(rows), 'assessment')} of {count(turns, 'turn')}.",)
    return Table(lines, ("grade", "passages", "share"), "Grades", notes)


def _responses(path: Path) -> dict[str, dict[str, str]]:
    log = ProblemLog(str(path), most=1_000)
    runs: dict[str, dict[str, str]] = defaultdict(dict)
    for turn_id, texts in _object(path).items():
        for run_id, text in texts.items():
            place = member(member("$", turn_id), run_id)
            if not isinstance(text, str):
                log.add("wrong_type", place, f"expected the text of a response, found {shown(text)}")
            elif has_content(text) and not countable(text):
                log.add("wrong_type", place, "expected a text that can be stored, of at most 1,000,000 characters")
            elif has_content(text):
                runs[run_id][turn_id] = text
    refuse(log.problems, f"{path}: not usable as responses")
    return {run_id: runs[run_id] for run_id in sorted(runs, key=natural_key)}


def _answers(path: Path) -> dict[str, str]:
    """Turn to the assessor's answer; an empty one is none."""
    log = ProblemLog(str(path), most=1_000)
    answers: dict[str, str] = {}
    for turn_id, entry in _object(path).items():
        manual = entry.get("manual")
        text = manual.get("response") if isinstance(manual, dict) else None
        if not isinstance(text, str):
            log.add("wrong_type", f"{member('$', turn_id)}.manual.response", f"expected a text, found {shown(text)}")
        elif has_content(text):
            answers[turn_id] = text
    refuse(log.problems, f"{path}: not usable as gold answers")
    return answers


def _object(path: Path) -> dict[str, dict[str, Any]]:
    """A JSON object of objects whose keys are turn ids, none of them twice."""
    document = open_document(path)
    log = ProblemLog(document.file, most=1_000)
    log.problems += [problem for problem in document.problems if problem.severity == "error"]
    value = document.value
    if not log.problems:
        log.problems += repeated_keys(document.content, document.file)
    if not log.problems and not isinstance(value, dict):
        log.add("wrong_type", "$", f"expected an object with turn ids as keys, found {shown(value)}")
    if not log.problems:
        for turn_id, entry in value.items():
            if not usable_turn_id(turn_id):
                log.add("wrong_type", member("$", turn_id), "expected a turn id such as 0_2")
            elif not isinstance(entry, dict):
                log.add("wrong_type", member("$", turn_id), f"expected an object, found {shown(entry)}")
    refuse(log.problems, f"{document.file}: not usable")
    return dict(value)


def matches_grid(matches: Sequence[NuggetMatch]) -> Table[Any]:
    """The share of labels by which people found the nugget in the response: each run, and all together."""
    found = [(run_id, (turn_id, yes)) for _, turn_id, _, run_id, yes in matches]
    by_run = groups_of(found)
    groups = [
        *((run_id, by_run[run_id]) for run_id in sorted(by_run, key=natural_key)),
        ("all", [of for _, of in found]),
    ]
    lines: list[tuple[Cell, ...]] = []
    for name, of in groups:
        values, turn_ids = [float(yes) for _, yes in of], [turn_id for turn_id, _ in of]
        share = mean_interval(values, list(map(topic_of, turn_ids)), bounds=(0.0, 1.0), what="labels")
        lines.append((name, len(set(turn_ids)), len(of), sum(yes for _, yes in of), share))
    notes = ("A label is of a gold nugget and a response; yes: people found it there. The interval is over topics.",)
    return Table(lines, ("run", "turns", "labels", "yes", "share"), "Matches", notes)
