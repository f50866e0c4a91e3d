"""Predicted spans against gold spans, as RCD-2020 measured them: character n-grams and words; and the tables. Pure.

Topics that share a conversation are one group: their spans are put together before they are compared. The organizers
call the weighted overlap BLEU, but it is a mean of cosines: nothing is clipped, and there is no brevity penalty.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Literal, get_args

from judge.extra.evaluate import Over
from judge.io.table import Cell, RecordColumns, Table, fields, records_table
from judge.io.words import english_words, standard_words
from judge.records import Estimate, Record
from judge.results.rows import Score
from judge.stats.means import mean_interval

Conversations = Sequence[tuple[str, ...]]
"""The topics of each conversation."""
WordFinder = Callable[[str], list[str]]
AnalyzerName = Literal["english", "standard 5.1", "standard 8.8"]

SIZES = (3, 4, 5)
"""Characters of an n-gram; the weight of a size is its share of their sum."""
ANALYZERS: dict[AnalyzerName, WordFinder] = {
    "english": english_words,
    "standard 5.1": standard_words,
    "standard 8.8": partial(standard_words, stop=False),
}
"""The analyzers of the script's versions. Its page of results has the overlap by the first, the Jaccard by the second;
the script as it is now uses the third.
"""
OVERLAP: AnalyzerName = "english"
JACCARD: AnalyzerName = "standard 5.1"


class SpanLine(Record, frozen=True):
    """One line of a file of spans; all empty where the line is blank."""

    topic_id: str
    text: str
    """Without outer white space."""
    column: str
    """The second column as it stands between tabs."""


class SpanGroup(Record, frozen=True):
    """One conversation: what was compared, and how alike it is."""

    topics: tuple[str, ...]
    predicted: str
    """The analyzed prediction whose n-grams are counted."""
    gold: str
    similarities: tuple[float, ...]
    """The cosine for each of SIZES."""
    overlap: float
    jaccard: float | None
    """None where neither side has a word."""


class SkippedGroup(Record, frozen=True):
    """A conversation that is in no mean."""

    topics: tuple[str, ...]
    reason: str


class SpanScore(Record, frozen=True):
    """A run over its conversations."""

    run_id: str
    over: Over
    overlap: Estimate
    """S = 3/12 S3 + 4/12 S4 + 5/12 S5; intervals are over groups."""
    s3: Estimate
    s4: Estimate
    s5: Estimate
    jaccard: Estimate
    groups: tuple[SpanGroup, ...]
    skipped: tuple[SkippedGroup, ...]


def span_score(
    run_id: str,
    predicted: Mapping[str, str],
    gold: Mapping[str, str],
    groups: Conversations,
    over: Over = "answered",
    *,
    overlap: AnalyzerName = OVERLAP,
    jaccard: AnalyzerName = JACCARD,
) -> SpanScore:
    """Compare a run's spans with the gold spans.

    A topic without a prediction skips its group over `answered`, as in the organizers' script; over `qrels` it has an
    empty one. The analyzers are those before n-grams are counted, and of words.
    """
    used: list[SpanGroup] = []
    skipped: list[SkippedGroup] = []
    for topics in groups:
        lacks = {"gold": [each for each in topics if each not in gold]}
        if over == "answered":
            lacks["run"] = [each for each in topics if each in gold and each not in predicted]
        if any(lacks.values()):
            parts = (f"{', '.join(missing)} not in the {name}" for name, missing in lacks.items() if missing)
            skipped.append(SkippedGroup(topics, "; ".join(parts)))
            continue
        sides = [predicted.get(topic_id, "") for topic_id in topics], [gold[topic_id] for topic_id in topics]
        used.append(_compared(topics, *sides, ANALYZERS[overlap], ANALYZERS[jaccard]))
    s3, s4, s5 = (_mean([group.similarities[place] for group in used]) for place in range(len(SIZES)))
    weighted = _mean([group.overlap for group in used])
    words = _mean([group.jaccard for group in used if group.jaccard is not None])
    return SpanScore(
        run_id=run_id,
        over=over,
        overlap=weighted,
        s3=s3,
        s4=s4,
        s5=s5,
        jaccard=words,
        groups=tuple(used),
        skipped=tuple(skipped),
    )


def _compared(
    topics: tuple[str, ...], predicted: Sequence[str], gold: Sequence[str], overlap: WordFinder, jaccard: WordFinder
) -> SpanGroup:
    left = _merged(predicted, overlap)
    right = _merged(gold, overlap)
    cosines = tuple(_cosine(_grams(left, size), _grams(right, size)) for size in SIZES)
    weighted = sum(size * cosine for size, cosine in zip(SIZES, cosines, strict=True)) / sum(SIZES)
    # The words are found once more, as by the script: a stem may be a stop word.
    standard = ANALYZERS[JACCARD] if jaccard is english_words else jaccard
    a, b = (set(standard(_merged(side, jaccard))) for side in (predicted, gold))
    return SpanGroup(
        topics=topics,
        predicted=left,
        gold=right,
        similarities=cosines,
        overlap=weighted,
        jaccard=len(a & b) / len(a | b) if a | b else None,
    )


def _merged(spans: Sequence[str], words: WordFinder) -> str:
    """The spans analyzed, put together and analyzed again."""
    return " ".join(words(" ".join(word for span in spans for word in words(span))))


def _grams(text: str, size: int) -> Counter[str]:
    """How often each run of characters occurs; spaces count, and a text shorter than the size has none."""
    return Counter(text[start : start + size] for start in range(len(text) - size + 1))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    """The cosine of two vectors of counts; 0 if one of them is empty."""
    squares = math.prod(sum(n * n for n in counts.values()) for counts in (a, b))
    return sum(n * b[gram] for gram, n in a.items()) / math.sqrt(squares) if squares else 0.0


def _mean(values: Sequence[float]) -> Estimate:
    return mean_interval(values, list(map(str, range(len(values)))), bounds=(0.0, 1.0), what="groups")


_BLANK = SpanLine("", "", "")


class ScriptFigures(Record, frozen=True):
    """The figures of one version of the script; None where it stops or divides by zero."""

    run_id: str
    analyzer: AnalyzerName
    overlap: float | None
    s3: float | None
    s4: float | None
    s5: float | None
    jaccard: float | None
    groups: int
    crossed: int
    """Lines whose prediction the script compares with the gold span of another topic, or of none."""
    reason: str | None = None


def script_figures(
    run_id: str, predicted: Sequence[SpanLine], gold: Sequence[SpanLine], groups: Conversations
) -> tuple[ScriptFigures, ...]:
    """The figures under each analyzer, by the script's own pairs.

    Lines are given in their order, blank ones too.
    """
    pairs = list(zip_longest(predicted, gold, fillvalue=_BLANK))
    crossed = sum(line.topic_id != its_gold.topic_id for line, its_gold in pairs if line.topic_id)
    if stop := next((_stop(number, *pair) for number, pair in enumerate(pairs, 1) if _stop(number, *pair)), None):
        return tuple(
            ScriptFigures(
                run_id=run_id,
                analyzer=analyzer,
                overlap=None,
                s3=None,
                s4=None,
                s5=None,
                jaccard=None,
                groups=0,
                crossed=crossed,
                reason=stop,
            )
            for analyzer in ANALYZERS
        )
    texts = {line.topic_id: line.text for line, _ in pairs}
    spans = {line.topic_id: its_gold.column for line, its_gold in pairs}
    figures: list[ScriptFigures] = []
    for analyzer in ANALYZERS:
        score = span_score(run_id, texts, spans, groups, overlap=analyzer, jaccard=analyzer)
        wordless = any(group.jaccard is None for group in score.groups)
        reason = "no group is complete" if not score.groups else "a group has no words" if wordless else None
        overlap, s3, s4, s5 = (each.value for each in (score.overlap, score.s3, score.s4, score.s5))
        jaccard = None if wordless else score.jaccard.value
        figures.append(
            ScriptFigures(
                run_id=run_id,
                analyzer=analyzer,
                overlap=overlap,
                s3=s3,
                s4=s4,
                s5=s5,
                jaccard=jaccard,
                groups=len(score.groups),
                crossed=crossed,
                reason=reason,
            )
        )
    return tuple(figures)


def _stop(number: int, line: SpanLine, gold: SpanLine) -> str | None:
    """Why the script stops at a line; None where it does not."""
    if not gold.column.rstrip("\r"):
        return f"it stops: line {number} has no gold span"
    if "\r" in line.column:
        return f"it stops: line {number} of the run ends in a carriage return"
    # Without a prediction, it takes the first word of the gold span for one.
    if not line.topic_id and " " not in gold.column.rstrip(" \r"):
        return f"it stops: line {number} has no prediction, and its gold span is one word"
    return None


Merging = Literal["merged", "script"]
"""merged: a passage that is relevant to one topic of a conversation is relevant to each of them. script: what the
organizers' script makes of it: it never empties its list between conversations, so a topic also has the relevant
passages of every conversation before it.
"""
MERGINGS: tuple[Merging, ...] = get_args(Merging)


class MergedRun(Record, frozen=True):
    """A run of passages under one set of merged qrels."""

    run_id: str
    merging: Merging
    over: Over
    scores: tuple[Score, ...]
    """In the order of MEASURES."""


SPANS: RecordColumns = {
    **fields("run=run_id over overlap s3=s3.value s4=s4.value s5=s5.value jaccard"),
    "groups": lambda score: len(score.groups),
    "skipped": lambda score: len(score.skipped),
}
SCRIPT = fields("run=run_id analyzer overlap s3 s4 s5 jaccard groups crossed reason")
GROUPS = ("run", "over", "topics", "overlap", "s3", "s4", "s5", "jaccard", "predicted", "gold", "skipped")
PASSAGES = ("run", "qrels", "over", "AP", "P@5", "RR", "topics")


def span_grids(
    scores: Sequence[SpanScore], script: Sequence[ScriptFigures], passages: Sequence[MergedRun], notes: tuple[str, ...]
) -> dict[str, Table[Any]]:
    """The tables that have rows, by the name of their files; the notes stand under the last of those of runs."""
    grids: dict[str, Table[Any]] = {}
    if scores:
        read = (_FIGURES, _interval("group"))
        grids["spans"] = records_table(SPANS, scores, "Spans, by topic id", read)
        grids["script"] = records_table(SCRIPT, script, "Spans, as the organizers' script pairs lines")
    if passages:
        lines = []
        for run in passages:
            lines.append(
                (run.run_id, run.merging, run.over, *(score.mean for score in run.scores), len(run.scores[0].values))
            )
        grids["passages"] = Table(lines, PASSAGES, "Passages", (_interval("conversation"),))
    last = list(grids)[-1]
    grids[last] = grids[last].with_notes(*notes)
    return grids


_FIGURES = (
    "overlap: three, four and five twelfths of s3, s4 and s5, the cosines of the counts of 3, 4 and 5 characters. "
    "jaccard: common words, as a share of all. skipped: groups in no mean."
)


def _interval(unit: str) -> str:
    return f"[ ]: 95 % interval over {unit}s, from 3 {unit}s on; none where all {unit}s have the same value."


def group_grid(scores: Iterable[SpanScore]) -> Table[Any]:
    """A row for each group of each run, those that are skipped too."""
    lines: list[tuple[Cell, ...]] = []
    for score in scores:
        head = (score.run_id, score.over)
        lines += [
            (*head, " ".join(of.topics), of.overlap, *of.similarities, of.jaccard, of.predicted, of.gold, None)
            for of in score.groups
        ]
        lines += [(*head, " ".join(of.topics), *(None,) * 7, of.reason) for of in score.skipped]
    return Table(lines, GROUPS, "Groups", places=6)
