"""The numbers of published tables, made again from the files that were released with them."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from judge.errors import InputError, refuse
from judge.io.files import text_of
from judge.io.ids import cluster_of, parse_qrels, topic_of
from judge.io.tabular import read_table
from judge.io.text import has_content
from judge.records import Estimate, Problem
from judge.results.citations import support
from judge.runs.topics import read_topics
from judge.stats.agreement import point
from judge.stats.means import mean_interval
from judge.stats.tables import confusion

Cells = dict[tuple[str, str, str], float | Estimate]
"""Table, row in lower case, and measure to the number; a number that the files cannot give is left out."""


def find(folder: Path, pattern: str) -> Path | None:
    """The file of this name in a folder or below it, None if there is none; copies of one file are one file."""
    paths = sorted(path for path in folder.rglob(pattern) if path.is_file())
    if len({path.read_bytes() for path in paths}) > 1:
        raise InputError(f"{paths[0]} and {paths[1]} differ: name the folder of one of them")
    return paths[0] if paths else None


def ikat2023(folder: Path) -> Cells:
    """Table 7 and Table 1 of the overview of iKAT 2023.

    A released groundedness label of 1 says that the response has information that its passages lack, so a response is
    grounded where the label is 0. The paper's scale of naturalness has the levels 0, 1, 2, 3 and 3, its scale of
    groundedness 0 to 3; the released labels are 0 to 4, and 0 and 1.

    M. Aliannejadi, Z. Abbasiantaeb, S. Chatterjee, J. Dalton & L. Azzopardi (2024), TREC iKAT 2023: The Interactive
    Knowledge Assistance Track Overview, arXiv:2401.01330.
    """
    cells: Cells = {}
    if groundedness := find(folder, "groundedness_judg*ment-gpt4.*"):
        for run_id, labels in gpt4_labels(groundedness).items():
            grades = [1 - label for label in labels.values()]
            cells["Table 7", run_id, "groundedness"] = _mean(grades, list(labels), 1.0)
            cells["Table 7", run_id, "grounded"] = grades.count(1)
            cells["Table 7", run_id, "not grounded"] = grades.count(0)
    # The released name has a double l.
    if naturalness := find(folder, "natural*ness_judg*ment-gpt4.*"):
        for run_id, labels in gpt4_labels(naturalness).items():
            cells["Table 7", run_id, "naturalness"] = _mean(list(labels.values()), list(labels), 4.0)
    counts: dict[str, float] = {}
    if path := find(folder, "2023_test_topics.json"):
        topics = read_topics(path)
        themes = len({cluster_of(topic.topic_id, "theme") for topic in topics})
        turns = sum(len(topic.turns) for topic in topics)
        counts["Topics"] = themes
        counts["Dialogues"] = len(topics)
        counts["Turns"] = turns
        counts["Avg. dialogue length"] = turns / len(topics)
        counts["Avg. num. of dialogue per topic"] = len(topics) / themes
    if path := find(folder, "2023_test_qrels.*"):
        rows = parse_qrels(text_of(path), str(path), range(5))
        times = Counter(row.grade for row in rows)
        counts["Assessed turns"] = len({row.turn_id for row in rows})
        counts["Passages assessed"] = len(rows)
        for grade, level in enumerate(
            ("Fails to meet", "Slightly meets", "Moderately meets", "Highly meets", "Fully meets")
        ):
            counts[f"{level} ({grade})"] = times[grade]
    for name, who in (("ptkb_rel_nist", "NIST"), ("ptkb_rel_org", "the organizers")):
        if path := find(folder, name):
            rows = parse_qrels(text_of(path), str(path), (0, 1))
            counts[f"PTKB turns assessed by {who}"] = len({row.turn_id for row in rows})
            counts[f"PTKB assessments by {who}"] = len(rows)
            counts[f"Relevant (1) by {who}"] = sum(row.grade for row in rows)
    return cells | {("Table 1", name.lower(), "count"): count for name, count in counts.items()}


def gpt4_labels(path: Path) -> dict[str, dict[str, int]]:
    """Run, in lower case since files spell runs differently, to turn to label; without -1, unable to judge."""
    problems: list[Problem] = []
    header, rows = read_table(path, problems, needed=("turn_id", "run_id"), quoted=False)
    refuse(problems, f"{path}: not usable as labels")
    column = "gpt4-label" if "gpt4-label" in header else "gpt4-score"
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        label = int(row.cells[column])
        if label != -1:
            labels[row.cells["run_id"].lower()][row.cells["turn_id"]] = label
    return dict(labels)


def _mean(grades: list[int], turn_ids: list[str], highest: float) -> Estimate:
    return mean_interval(grades, [topic_of(turn_id) for turn_id in turn_ids], bounds=(0.0, highest))


def cone_rag(folder: Path) -> Cells:
    """The counts of the abstract.

    Results of runs need GPT-4o's matches of nuggets, which are not in the release. The released responses come without
    the passages that they used, so their groundedness cannot be judged.

    Z. Abbasiantaeb, S. Lupart, L. Azzopardi, J. Dalton & M. Aliannejadi (2025), Conversational Gold: Evaluating
    Personalized Conversational Search System using Gold Nuggets, arXiv:2503.09902.
    """
    counts: dict[str, float] = {}
    if path := find(folder, "2024_test_topics.json"):
        counts["conversations"] = len(read_topics(path))
    if path := find(folder, "2024_test_qrels.*"):
        counts["passage assessments"] = len(parse_qrels(text_of(path), str(path), range(5)))
    if path := find(folder, "gold_nuggets_human.json"):
        counts["gold nuggets"] = sum(map(len, json.loads(text_of(path)).values()))
    if path := find(folder, "gold_response_and_nuggets_human.json"):
        # An empty answer is none.
        answers = [entry["manual"]["response"] for entry in json.loads(text_of(path)).values()]
        counts["gold answers"] = sum(map(has_content, answers))
    return {("Abstract", "ikat 2024", name): count for name, count in counts.items()}


def llmjudge(folder: Path) -> Cells:
    """Agreement of LLM judges with NIST's assessors: κ and ordinal α of Table 3, κ of halves of the scale of Table 4.

    Labels off the scale of 0 to 3 count as the nearest grade, as in the authors' notebook; the printed digits of
    RMITIR-llama70B are met by this reading only. The printed α is the ordinal one. The digits of Table 3 come from
    `tests/llm-judge-challenge-metrics.txt` of julianbht/llm-ensemble, with which other quotations of the table agree;
    of Table 4 the best number of each column was at hand.

    H. A. Rahmani, C. Siro, M. Aliannejadi, N. Craswell, C. L. A. Clarke, G. Faggioli, B. Mitra, P. Thomas & E. Yilmaz
    (2025), Judging the Judges: A Collection of LLM-Generated Relevance Judgements, arXiv:2502.13908.
    """
    path = find(folder, "llmjudge_test*.qrel") or find(folder, "llmjudge_test_qrel_idx.txt")
    if path is None:
        raise InputError(f"{folder}: no llmjudge_test_qrel_idx.txt, which comes from llm4eval/LLMJudge-benchmark")
    grades = {(row.turn_id, row.item_id): row.grade for row in parse_qrels(text_of(path), str(path), range(4))}
    cells: Cells = {}
    # A judge is called `team-run`; other texts of the release have no hyphen in their names, or are prompts.
    for file in sorted(folder.rglob("*-*.txt")):
        lines = [line.split() for line in text_of(file).splitlines()]
        if not lines or len(lines[0]) != 4 or (lines[0][0], lines[0][2]) not in grades:
            continue
        labels = [
            (grades[row.turn_id, row.item_id], min(max(row.grade, 0), 3))
            for row in parse_qrels(text_of(file), str(file))
        ]
        judge = file.stem.lower()
        C = confusion(labels, range(4))
        numbers = {
            ("Table 3", judge, "kappa"): point("kappa", C, range(4)),
            ("Table 3", judge, "alpha"): point("alpha_ordinal", C, range(4)),
        }
        for measure, least in (("kappa 0|123", 1), ("kappa 01|23", 2), ("kappa 012|3", 3)):
            halves = [(int(grade >= least), int(label >= least)) for grade, label in labels]
            numbers["Table 4", judge, measure] = point("kappa", confusion(halves, range(2)), range(2))
        cells |= {cell: number for cell, number in numbers.items() if isinstance(number, float)}
    return cells


BEST = "IITD-IRL.ag_rag_gpt35_expansion_rrf_20"
WORTH = {0: 0.0, 1: 0.5, 2: 1.0}
"""What no, partial and full support count for."""


def rag2024(folder: Path) -> Cells:
    """Counts and the best run's weighted precision by labels from scratch, which are in two files.

    N. Thakur, R. Pradeep, S. Upadhyay, D. Campos, N. Craswell & J. Lin (2025), Support Evaluation for the TREC 2024 RAG
    Track, arXiv:2504.15205; labels as released with webis-de/ir_axioms.
    """
    blind = find(folder, "*citation_judgments_without_prediction*.jsonl")
    web = find(folder, "*webassess*.jsonl")
    if blind is None or web is None:
        return {}
    rows = [*support_rows(blind), *support_rows(web)]
    sentences = [sentence["citations"] for row in rows for sentence in row["sentences"]]
    first = [cited[0] for cited in sentences if cited]
    scratch = "labels from scratch"
    return {
        ("Release", scratch, "rows"): len(rows),
        ("Release", scratch, "sentences"): len(sentences),
        # Sentences that cite: the release counts those whose first citation nobody judged (-1) as well.
        ("Release", scratch, "first citations"): len(first),
        ("Release", scratch, "topics"): len({row["topic_id"] for row in rows}),
        ("Release", BEST.lower(), "weighted precision"): weighted_precision(rows, BEST),
    }  # fmt: skip


def support_rows(path: Path) -> list[dict[str, Any]]:
    """The labeled responses of a file; a text may be NaN, which is no JSON but is read as such."""
    return [json.loads(line) for line in text_of(path).splitlines() if line.strip()]


def weighted_precision(rows: list[dict[str, Any]], run_id: str) -> float:
    """The mean over all topics of the labels of a run's precision by first citations.

    A topic that the run lacks counts 0, and so does a response of which nobody judged a citation.
    """
    values = dict.fromkeys((str(row["topic_id"]) for row in rows), 0.0)
    for row in rows:
        if row["run_id"] == run_id:
            worths = [
                [None if (grade := _grade(cited)) is None else WORTH[grade] for cited in sentence["citations"]]
                for sentence in row["sentences"]
            ]
            values[str(row["topic_id"])] = support(worths)[0]
    return sum(values.values()) / len(values)


def _grade(cited: dict[str, Any]) -> int | None:
    """The label of a citation; -1 and 3 are of citations that nobody judged."""
    label = int(cited["support"])
    return label if label in WORTH else None
