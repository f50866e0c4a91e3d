"""TREC RAG 2024: what assessors' labels of citations and of nuggets make of the track's runs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from math import floor, fsum
from pathlib import Path
from typing import Any, TypeVar

from judge.errors import refuse
from judge.extra.reproduce.published import (
    PublishedNumber,
    ReleasedFile,
    Reproduction,
    beside_ours,
    counted,
    find_released,
    left_out,
    nothing_found,
)
from judge.gold.draft import Draft, ImportOptions, SourceContent
from judge.gold.rows import citation_digest
from judge.io.files import line_problem, numbered_lines
from judge.io.ids import natural_key
from judge.io.table import Table
from judge.io.tabular import collected
from judge.io.text import count, shown
from judge.records import Estimate, Problem
from judge.results.citations import support
from judge.runs.document import decode
from judge.stats.means import mean_interval
from judge.stats.ranking import kendall_tau_b

SOURCE = (
    "N. Thakur, R. Pradeep, S. Upadhyay, D. Campos, N. Craswell & J. Lin (2025), Support Evaluation for the TREC 2024 "
    "RAG Track, arXiv:2504.15205; labels as released with webis-de/ir_axioms, folder data/"
)
_ORIGIN = "the repository webis-de/ir_axioms, folder data/"
FILES = (
    ReleasedFile("post-edited", "final.citation_judgments_with_prediction.20241025.jsonl", _ORIGIN,
        r"\S*citation_judgments_with_prediction\S*\.jsonl(\.gz)?"),
    ReleasedFile("scratch", "final.citation_judgments_without_prediction.20241025.jsonl", _ORIGIN,
        r"\S*citation_judgments_without_prediction\S*\.jsonl(\.gz)?"),
    ReleasedFile("webassess", "webassess.jsonl", _ORIGIN, r"\S*webassess\S*\.jsonl(\.gz)?"),
    ReleasedFile("nuggets", "nugget_assignment.20241108.jl", _ORIGIN, r"nugget_assignment\S*\.(jl|jsonl)(\.gz)?"),
)  # fmt: skip
BEST = "IITD-IRL.ag_rag_gpt35_expansion_rrf_20"
PRINTED = (
    ("rows", "930"),
    ("sentences", "8,163"),
    ("first citations", "6,792"),
    ("topics", "22"),
    ("weighted precision", "0.793074"),
)
NOTES = (
    "A run's score is its mean over all topics of the labels; a topic that the run lacks counts 0.",
    "The printed numbers are those of the labels from scratch, made without a model's proposal.",
    "Labels -1 and 3 are of citations that nobody judged; a response without a judged one counts 0.",
    "Vital nuggets of a topic that has none count 0.",
)
WORTHS = {"weighted": (0.0, 0.5, 1.0), "hard": (0.0, 0.0, 1.0)}
"""What no, partial and full support count for."""
_GRADES: dict[str, int | None] = {"2": 2, "1": 1, "0": 0, "-1": None, "3": None}
_EXPECTED = f"run_id, topic_id and sentences with citations, each with support ({', '.join(_GRADES)})"
_WORTH = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_Part = TypeVar("_Part")
CitationGrades = dict[str, dict[str, list[list[int | None]]]]
"""Run to topic to the grades of each sentence's citations."""


def reproduce(folder: Path) -> Reproduction:
    """Count the labels, and score the runs by them under the track's measures.

    An InputError if the folder has none of the files, or a file is bad; every problem is listed.
    """
    paths = find_released(folder, FILES)
    if not paths:
        raise nothing_found(folder, FILES)
    scratch = {key: paths[key] for key in ("scratch", "webassess") if key in paths}
    from_scratch = _labels(scratch.values()) if scratch else {}
    edited = _labels([paths["post-edited"]]) if "post-edited" in paths else {}
    parts = {"Support by labels from scratch": from_scratch, "Support by post-edited labels": edited}
    beyond = [_support(title, labels) for title, labels in parts.items() if labels]
    if "nuggets" in paths:
        beyond.append(_nuggets(paths["nuggets"], beyond))
    whole = from_scratch if len(scratch) == 2 else {}
    return Reproduction("rag2024", SOURCE, tuple(_counts(whole)), tuple(beyond), (*NOTES, *left_out(FILES, paths)))


def _rows(paths: Iterable[Path], part: Callable[[Any], _Part], expected: str) -> dict[str, dict[str, _Part]]:
    """Run to topic to what `part` finds in each line; an InputError lists every line that is none."""
    found: dict[str, dict[str, _Part]] = defaultdict(dict)
    problems: list[Problem] = []
    for path in paths:
        for number, line in numbered_lines(path):
            # Texts may be NaN, which is no JSON.
            row, unread = decode(line.encode(), str(path), number)
            if unread is None:
                try:
                    of_run, topic = found[str(row["run_id"])], str(row.get("topic_id") or row["qid"])
                    if topic in of_run:
                        unread = line_problem("duplicate_row", path, number, f"a run and topic again: {shown(row)}")
                    else:
                        of_run[topic] = part(row)
                except (AttributeError, KeyError, TypeError):
                    unread = line_problem("wrong_type", path, number, f"expected {expected}, found {shown(row)}")
            problems += [unread] if unread is not None else []
    refuse(problems, "not usable as labels")
    return found


def _grades(row: Any) -> list[list[int | None]]:
    return [[_GRADES[str(each["support"])] for each in sentence["citations"]] for sentence in row["sentences"]]


def _labels(paths: Iterable[Path]) -> CitationGrades:
    return _rows(paths, _grades, _EXPECTED)


def labels_as_gold(paths: Sequence[Path], options: ImportOptions) -> SourceContent:
    """The labels as gold of citations, named by sentence and passage; unjudged ones and sentences without text go.

    Where several runs have one citation in a topic, its first label counts.
    """
    content = SourceContent(defaults={"criterion": "support", "assessor": "nist"})
    first: dict[tuple[str, str], int] = {}
    left = others = 0
    for path in paths:
        made = "postedit" if "with_prediction" in path.name else "blind"
        rows: dict[str, dict[str, Any]] = {}
        with collected(content.problems, "unreadable_file", path):
            rows = _rows([path], _citations, _EXPECTED.replace("each with", "each with reference and"))
        cited = ((run, topic, *of) for run, topics in rows.items() for topic in topics for of in topics[topic])
        for run_id, topic, sentence, passage_id, grade in cited:
            if grade is None or not isinstance(sentence, str) or not sentence.strip():
                left += 1
                continue
            turn_id, name = f"{topic}_1", citation_digest(sentence, passage_id)
            if (turn_id, name) in first:
                others += first[turn_id, name] != grade
                continue
            first[turn_id, name] = grade
            about = {"turn_id": turn_id, "text_sha256": name, "grade": grade, "made": made}
            content.drafts.append(Draft(str(path), f"{run_id} {topic}", about))
    if left:
        content.notes.append(f"{count(left, 'citation')} left out: nobody judged them, or their sentence has no text")
    if others:
        content.notes.append(f"{count(others, 'citation')} of another run with another label left out")
    return content


def _citations(row: Any) -> list[tuple[Any, str, int | None]]:
    return [
        (sentence["text"], _text(each["reference"]), _GRADES[str(each["support"])])
        for sentence in row["sentences"]
        for each in sentence["citations"]
    ]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _counts(labels: CitationGrades) -> Iterator[PublishedNumber]:
    """The printed numbers beside those of all labels from scratch."""
    responses = [of for by_topic in labels.values() for of in by_topic.values()]
    topics = sorted({topic for by_topic in labels.values() for topic in by_topic})
    sentences = [sentence for of in responses for sentence in of]
    judged = sum(sentence[:1] not in ([], [None]) for sentence in sentences)
    counts: dict[str, Sized] = {
        "rows": responses,
        "sentences": sentences,
        "first citations": range(judged),
        "topics": topics,
    }
    ours = {name: counted(len(of), len(responses), len(topics)) for name, of in counts.items()}
    if BEST in labels:
        ours["weighted precision"] = _mean([_scores(labels[BEST].get(topic, ()))[0] for topic in topics], topics)
    for measure, published in PRINTED:
        row = BEST if measure == "weighted precision" else "labels from scratch"
        absent = "both files of labels from scratch are needed"
        yield beside_ours("Release", row, measure, published, ours.get(measure) if labels else None, absent)


def _mean(values: Sequence[float], topics: Sequence[str]) -> Estimate:
    return mean_interval(values, topics, bounds=(0.0, 1.0), what="topics")


def _ranked(
    title: str, columns: Sequence[str], scores: Mapping[str, Mapping[str, tuple[float, ...]]], notes: Sequence[str]
) -> Table[Any]:
    """The mean of each score over all topics for each run, the best first score first."""
    topics = sorted({topic for of in scores.values() for topic in of}, key=natural_key)
    none = (0.0,) * len(columns)
    lines: list[tuple[Any, ...]] = [
        (run_id, len(of), *(_mean([of.get(topic, none)[k] for topic in topics], topics) for k in range(len(columns))))
        for run_id, of in scores.items()
    ]
    lines.sort(key=lambda line: (-line[2].value, natural_key(line[0])))
    responses = f"{sum(map(len, scores.values())):,} responses to {len(topics)} topics."
    return Table(tuple(lines), ("run", "topics", *columns), title, (responses, *notes))


_WAYS = [(kind, view) for view in ("", "_all") for kind in WORTHS]


def _scores(sentences: Sequence[Sequence[int | None]]) -> tuple[float, ...]:
    """Precision and recall of a response in all ways, the track's own first."""
    worths = {
        kind: [[None if grade is None else worth[grade] for grade in grades] for grades in sentences]
        for kind, worth in WORTHS.items()
    }
    return tuple(value for kind, view in _WAYS for value in support(worths[kind], every=bool(view)))


def _support(title: str, labels: CitationGrades) -> Table[Any]:
    """Every measure of support of each run."""
    scores = {run_id: {topic: _scores(of[topic]) for topic in of} for run_id, of in labels.items()}
    columns = [f"{measure}_{kind}{view}" for kind, view in _WAYS for measure in ("precision", "recall")]
    return _ranked(title, columns, scores, ["Without _all, a sentence counts by its first citation."])


def _nugget_scores(row: Any) -> tuple[float, ...]:
    every = [(each["importance"] == "vital", _WORTH[each["assignment"]]) for each in row["nuggets"]]
    groups = [worth for vital, worth in every if vital], [worth for _, worth in every]
    # Strict: a partial match counts nothing.
    return tuple(fsum(map(count, worth)) / max(1, len(worth)) for worth in groups for count in (floor, float))


def _nuggets(path: Path, boards: Sequence[Table[Any]]) -> Table[Any]:
    """Nugget scores of each run, and how they order the runs beside the boards of support."""
    scores = _rows([path], _nugget_scores, "run_id, qid and nuggets, each with importance and assignment")
    columns = ("vital_strict", "vital", "all_strict", "all")
    notes = ["A partial match counts .5, but nothing where it says strict."]
    first = {line[0]: line[2].value for line in _ranked("", columns, scores, ())}
    for board in boards:
        # Labels of nuggets name a run without its team.
        pairs = [(first[name], line[2].value) for line in board if (name := line[0].partition(".")[2]) in first]
        tau = kendall_tau_b(*zip(*pairs, strict=True)) if pairs else None
        if isinstance(tau, float):
            of = f"vital_strict with precision_weighted ({board.title})"
            notes.append(f"Kendall's tau-b of {of}: {tau:.3f}, {len(pairs)} runs.")
    return _ranked("Nuggets", columns, scores, notes)
