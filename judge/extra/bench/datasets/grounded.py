"""Labels of whether responses keep to their evidence: BEGIN, AttributionBench, FaithBench and SummEdits.

N. Dziri, H. Rashkin, T. Linzen & D. Reitter (2022), Evaluating attribution in dialogue systems: the BEGIN benchmark,
TACL 10, 1066-1083. Y. Li, X. Yue, Z. Liao & H. Sun (2024), AttributionBench: how hard is automatic attribution
evaluation?, Findings of ACL 2024. F. S. Bao et al. (2025), FaithBench: a diverse hallucination benchmark for
summarization by modern LLMs, NAACL 2025. P. Laban et al. (2023), SummEdits: measuring LLM ability at factual reasoning
through the lens of summarization, EMNLP 2023, 9662-9676.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from judge.extra.bench.datasets import Dataset, DatasetReading, LabeledResponse, find_file, find_files
from judge.io.files import numbered_lines
from judge.io.tabular import read_table
from judge.io.text import shown
from judge.passages import read_passages
from judge.runs.document import decode

BEGIN_LABELS = {"Not fully attributable": 0, "Generic": 0, "Fully attributable": 1}
"""A generic response says nothing that could be attributed, so it counts as not attributable."""


def _begin(name: str, folder: Path, reading: DatasetReading) -> None:
    file = find_file(folder, name)
    needed = ("knowledge", "message", "response", "begin_label")
    for row in read_table(file, reading.problems, needed=needed, quoted=False)[1]:
        grade = reading.grade(file, row.place, BEGIN_LABELS, row.cells["begin_label"])
        if grade is not None:
            item_id = f"{file.name}:{row.line}"
            evidence = row.cells["knowledge"]
            unit = reading.unit(evidence, item_id)
            text = row.cells["response"]
            utterance = row.cells["message"]
            reading.add(
                file,
                row.place,
                LabeledResponse(
                    item_id=item_id,
                    unit=unit,
                    grade=grade,
                    grades=(),
                    response=text,
                    passages=(evidence,),
                    utterance=utterance,
                ),
            )


def _begin_part(name: str, title: str, path: str, size: int, licence: str = "CC-BY 4.0") -> Dataset:
    file = path.rpartition("/")[2]
    return Dataset(
        name=name, title=f"BEGIN, {title}", unit="evidence text", licence=licence,
        source=f"google/BEGIN-dataset: {path}", files=(file,), rung="easy", fill=partial(_begin, file), size=size,
    )  # fmt: skip


CLAIMS = "dev_all_subset_balanced.jsonl"
CLAIM_LABELS = {"not attributable": 0, "attributable": 1}


class _Claim(msgspec.Struct):
    id: str
    question: str
    claim: str
    references: list[str]
    attribution_label: str


def _attributionbench(folder: Path, reading: DatasetReading) -> None:
    file = find_file(folder, CLAIMS)
    for where, row in reading.lines(file, _Claim):
        if (grade := reading.grade(file, where, CLAIM_LABELS, row.attribution_label)) is not None:
            unit = reading.unit(row.question, row.id)
            passages = tuple(row.references) or ("",)
            reading.add(
                file,
                where,
                LabeledResponse(
                    item_id=row.id,
                    unit=unit,
                    grade=grade,
                    grades=(),
                    response=row.claim,
                    passages=passages,
                    utterance=row.question,
                ),
            )


BATCHES = "batch_*[0-9].json"
SPAN_LABELS = {"Unwanted": 0, "Unwanted.Intrinsic": 0, "Unwanted.Extrinsic": 0, "Questionable": 1, "Benign": 2}
CONSISTENT = 3
"""The grade of a summary in which nobody marked anything."""
DETECTORS = (
    "hhemv1", "hhem-2.1", "hhem-2.1-english", "trueteacher", "true_nli", "gpt-3.5-turbo", "gpt-4-turbo", "gpt_4o",
)  # fmt: skip
"""Fields of a sample with what a detector said: 1, or near 1, for consistent."""


class _Annotation(msgspec.Struct):
    label: list[str]


class _Sample(msgspec.Struct):
    sample_id: int
    source: str
    summary: str
    annotations: list[_Annotation]
    metadata: dict[str, Any]


def _faithbench(folder: Path, reading: DatasetReading) -> None:
    """The grade is that of the worst label of any span, the first rule of the authors' script."""
    for file, where, item_id, sample in _samples(folder, reading):
        labels: list[str] = []
        for annotation in sample.annotations:
            labels.extend(annotation.label)
        grades = [reading.grade(file, where, SPAN_LABELS, label) for label in labels]
        if None not in grades:
            unit = reading.unit(sample.source, item_id)
            grade = min((grade for grade in grades if grade is not None), default=CONSISTENT)
            reading.add(
                file,
                where,
                LabeledResponse(
                    item_id=item_id,
                    unit=unit,
                    grade=grade,
                    grades=(),
                    response=sample.summary,
                    passages=(sample.source,),
                ),
            )


def _samples(folder: Path, reading: DatasetReading) -> Iterator[tuple[Path, str, str, _Sample]]:
    """File, JSON path, item and sample, in the order of the batches."""
    for file in find_files(folder, BATCHES):
        for where, sample in reading.entries(file, "samples", _Sample):
            yield file, where, f"{file.stem}/{sample.sample_id}", sample


def _detectors(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """What eight detectors said of each usable summary; one that said nothing has no score."""
    usable = FAITHBENCH.read(folder).responses
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    reading = DatasetReading()
    for file, where, item_id, sample in _samples(folder, reading):
        for judge in DETECTORS:
            score = sample.metadata.get(judge)
            if isinstance(score, int | float) and 0 <= score <= 1:
                scores[judge] |= {item_id: float(score)} if item_id in usable else {}
            elif score is not None:
                path = f"{where}.metadata.{judge}"
                reading.problems.add(
                    "wrong_score", path, f"expected a number of 0 to 1, found {shown(score)}", file=file
                )
    reading.responses = usable
    reading.check()
    return scores


DOMAINS = "summedits_*.json"


class _Summary(msgspec.Struct):
    id: str
    doc: str
    summary: str
    label: Literal[0, 1] | None


def _summedits(folder: Path, reading: DatasetReading) -> None:
    """Summaries in which one fact may have been edited, and their consistent twins of the same document."""
    for file in find_files(folder, DOMAINS):
        domain = file.stem.removeprefix("summedits_")
        for where, row in reading.entries(file, "", _Summary):
            if row.label is None:
                reading.skipped["no label"] += 1
                continue
            item_id = f"{domain}/{row.id}"
            unit = reading.unit(row.doc, item_id)
            reading.add(
                file,
                where,
                LabeledResponse(
                    item_id=item_id, unit=unit, grade=row.label, grades=(), response=row.summary, passages=(row.doc,)
                ),
            )


SUPPORT = "*citation_judgments_with_prediction*.jsonl"
SEGMENTS = "segments.jsonl*"
SUPPORT_LABELS = {"0": 0, "1": 1, "2": 2}


def _rag24(folder: Path, reading: DatasetReading) -> None:
    """The first citation of each sentence, as the track looks at it; a text may be NaN, which is no JSON."""
    file = find_file(folder, SUPPORT)
    cited: list[tuple[str, ...]] = []
    for number, line in numbered_lines(file):
        row, problem = decode(line.encode(), str(file), number)
        try:
            for k, sentence in enumerate(row["sentences"]) if problem is None else ():
                where = f"line {number}: $.sentences[{k}]"
                item_id = f"{row['topic_id']}/{row['run_id']}/{k}"
                if not sentence["citations"]:
                    reading.skipped["no citation"] += 1
                    continue
                first = sentence["citations"][0]
                text = sentence["text"]
                ids = row["topic_id"], row["run_id"], first["reference"]
                if not isinstance(text, str | float) or not all(isinstance(each, str) for each in ids):
                    raise TypeError
                told = ids[0], text if isinstance(text, str) else "", ids[2], str(first["support"])
                cited.append((where, item_id, *told))
        except (KeyError, TypeError):
            expected = "expected run_id, topic_id and sentences with text and citations of reference and support"
            reading.problems.add("wrong_type", f"line {number}", f"{expected}, found {shown(row)}", file=file)
        reading.problems += [problem] if problem else []
    texts = read_passages(find_file(folder, SEGMENTS), {reference for *_, reference, _ in cited})
    for where, item_id, topic_id, text, reference, label in cited:
        if reference not in texts:
            reading.skipped["no public text of the passage"] += 1
        elif label in ("-1", "3"):
            reading.skipped["no label"] += 1
        elif (grade := reading.grade(file, where, SUPPORT_LABELS, label)) is not None:
            passages = (texts[reference].text,)
            reading.add(file, where, LabeledResponse(item_id, topic_id, grade, response=text, passages=passages))


ASSIGNMENTS = "nugget_assignment*.j*"
ASSIGNMENT_LABELS = {"not_support": 0, "partial_support": 1, "support": 2}


class _Assigned(msgspec.Struct):
    qid: str
    query: str
    run_id: str
    answer_text: str
    nuggets: list[dict[str, str]]


def _rag24_nuggets(folder: Path, reading: DatasetReading) -> None:
    """Each nugget as a response whose evidence is the answer in which it is looked for."""
    file = find_file(folder, ASSIGNMENTS)
    for line, row in reading.lines(file, _Assigned):
        for k, nugget in enumerate(row.nuggets):
            where = f"{line}: $.nuggets[{k}]"
            label = nugget.get("assignment", "")
            if (grade := reading.grade(file, where, ASSIGNMENT_LABELS, label)) is not None:
                item_id = f"{row.qid}/{row.run_id}/{k}"
                text = nugget.get("text", "")
                answer = (row.answer_text,)
                reading.add(
                    file,
                    where,
                    LabeledResponse(
                        item_id=item_id,
                        unit=row.qid,
                        grade=grade,
                        grades=(),
                        response=text,
                        passages=answer,
                        utterance=row.query,
                    ),
                )


FAITHBENCH = Dataset(
    name="faithbench", title="FaithBench: summaries by ten models, the worst label of any span", grades=(0, 1, 2, 3),
    positive=(2, 3), unit="source document", licence="CC BY-NC-SA 4.0",
    source="vectara/FaithBench: data_for_release/batch_*.json", files=(BATCHES,), rung="hard", fill=_faithbench,
    stored=_detectors, size=750,
)  # fmt: skip

GROUNDED = (
    _begin_part("begin-wow", "Wizard of Wikipedia, dev", "wow/begin_dev_wow.tsv", 430),
    _begin_part("begin-wow-test", "Wizard of Wikipedia, test", "wow/begin_test_wow.tsv", 3607),
    _begin_part("begin-cmu", "CMU DoG, dev", "cmu-dog/begin_dev_cmu.tsv", 416),
    _begin_part("begin-tc", "Topical Chat, dev", "topicalchat/begin_dev_tc.tsv", 383, "CDLA-Sharing 1.0"),
    Dataset(name="attributionbench", unit="question", files=(CLAIMS,), rung="middle", fill=_attributionbench, size=1198,
        title="AttributionBench, dev: claims of ExpertQA, Stanford-GenSearch, LFQA and AttributedQA",
        licence="no licence file; each source has its own", source=f"OSU-NLP-Group/AttributionBench: data/{CLAIMS}"),
    Dataset(name="rag24-support", criterion="support", grades=(0, 1, 2), positive=(2,), unit="topic",
        title="TREC RAG 2024, support: sentences with their first citation, labels that assessors post-edited",
        licence="labels CC-BY 4.0; segments of MS MARCO, for research that is not commercial",
        source=f"webis-de/ir_axioms: data/{SUPPORT[1:]}; texts, as lines of MS MARCO V2.1 segments, in {SEGMENTS}",
        files=(SUPPORT, SEGMENTS), rung="middle", fill=_rag24, size=4165, runs=True,
        published="GPT-4o, from whose labels people made these: same .72 (arXiv 2504.15205). On labels from scratch: "
        "GPT-5.5 on 6,742 first citations of 45 runs (castorini/RAGDoll): same .531, kappa .312, weighted kappa .476, "
        "tau-b .855 by mean grade; word overlap with thresholds from other topics, on 4,055 of them: same .577, "
        "weighted kappa .478, tau-b .64 to .67."),
    Dataset(name="rag24-nuggets", criterion="support", grades=(0, 1, 2), positive=(2,), unit="topic",
        title="TREC RAG 2024, nuggets: whether an answer has a nugget, by assessors", licence="CC-BY 4.0",
        source="webis-de/ir_axioms: data/nugget_assignment.20241108.jl", files=(ASSIGNMENTS,), rung="middle",
        fill=_rag24_nuggets, size=13158, runs=True,
        published="GPT-5.5 on 884 answers to 20 topics (castorini/RAGDoll): tau-b .788 by share of positives, .770 by "
        "that of vital nuggets."),
    FAITHBENCH,
    Dataset(name="summedits", unit="document", licence="Apache-2.0", files=(DOMAINS,), rung="hard", fill=_summedits,
        title="SummEdits: summaries with and without an edited fact, of every domain that is there",
        source="salesforce/factualNLG: data/summedits/summedits_*.json", size=6348),
)  # fmt: skip
"""From the rung on which word overlap does best."""
