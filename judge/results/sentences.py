"""What becomes of the sentences of each run, label by label: contradicted is not the same as unsupported. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from judge.ask.records import Failure, Judgment
from judge.pool.records import Pool
from judge.records import Criterion, Estimate, Record
from judge.results.rows import noted
from judge.results.turns import RunTurns, run_turns
from judge.stats.means import mean_interval
from judge.text.cells import decimals, markdown_cell
from judge.text.ids import Cluster, cluster_of
from judge.text.table import Table, sequence
from judge.text.tsv import tsv

COLUMNS = (
    *("run_id", "criterion", "label", "responses", "with_label", "sentences", "share", "low", "high", "topics", "note"),
)


class SentenceRow(Record, frozen=True):
    """One label in the responses of one run."""

    run_id: str
    criterion: str
    label: str
    responses: int
    """Graded responses whose sentences have labels."""
    with_label: int
    """Responses of these with at least one such sentence."""
    sentences: int
    """Such sentences in all of them."""
    share: Estimate | None
    """The share of a response's sentences that have the label, on average; sentences that do not count towards the
    grade are left out, and their own label has None."""
    cluster: Cluster = "topic"
    """What the interval is over, and what is counted as topics."""


def sentence_rows(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    *,
    expected: Mapping[str, Collection[str]] | None = None,
    cluster: Cluster = "topic",
) -> Table[SentenceRow]:
    """A row for each criterion that labels sentences, run and label: runs in natural order, labels as in the prompt.

    A response that claims nothing has no share, as it has no grade. A run without labels has no row. A cascade has none
    either, because its two judges do not use the same labels: a checker may never say that a sentence is contradicted.

    Args:
        pool: As for `leaderboard`.
        results: As for `leaderboard`.
        criteria: As for `leaderboard`; those that ask for one grade are left out.
        expected: As for `leaderboard`.
        cluster: What the intervals are over.
    """
    results = sequence(results)
    return Table(
        row
        for criterion in criteria
        if criterion.answer == "sentences"
        for run in run_turns(pool, results, criterion, expected)
        for row in _of_run(run, criterion, cluster)
    )


def _of_run(run: RunTurns, criterion: Criterion, cluster: Cluster) -> Iterable[SentenceRow]:
    labeled = [(response, given) for response, given in run.graded if given.sentences and given.cascade is None]
    ignored = criterion.rollup.ignored if criterion.rollup else None
    for label in [level.label for level in criterion.sentence_levels] if labeled else ():
        counts = [given.sentences.count(label) for _, given in labeled]
        share = None
        if label != ignored:
            counted = [sum(one != ignored for one in given.sentences) for _, given in labeled]
            share = mean_interval(
                [n / of for n, of in zip(counts, counted, strict=True) if of],
                [
                    cluster_of(response.topic_id, cluster)
                    for (response, _), of in zip(labeled, counted, strict=True)
                    if of
                ],
                bounds=(0, 1),
                what="shares",
            )
        yield SentenceRow(
            run_id=run.run_id,
            criterion=criterion.name,
            label=label,
            responses=len(labeled),
            with_label=sum(n > 0 for n in counts),
            sentences=sum(counts),
            share=share,
            cluster=cluster,
        )


def sentences_tsv(rows: Iterable[SentenceRow]) -> str:
    """All rows under one header, four decimals, undefined numbers empty with the reason as `note`."""
    lines = []
    for row in rows:
        share = row.share or Estimate(None, None, None, 0, 0, "does not count towards the grade")
        lines.append(
            (
                *(row.run_id, row.criterion, row.label, row.responses, row.with_label, row.sentences, share.value),
                *(share.low, share.high, share.topics if row.share else None, noted(share.reason, row.cluster)),
            )
        )
    return tsv(COLUMNS, lines, 4)


def sentences_markdown(rows: Sequence[SentenceRow]) -> str:
    """A table for each criterion; empty if there are no rows."""
    parts: list[str] = []
    for criterion in dict.fromkeys(row.criterion for row in rows):
        group = [row for row in rows if row.criterion == criterion]
        labels = list(dict.fromkeys(row.label for row in group if row.share is not None))
        head = ("run", "responses", *labels)
        parts.append(f"\n## {markdown_cell(criterion)}: sentences\n\n{READING}\n\n")
        lines = [head, ("---", "---:", *("---:" for _ in labels))]
        for run_id, by_label in by_run(group).items():
            responses = next(iter(by_label.values())).responses
            lines.append((markdown_cell(run_id), str(responses), *(share_text(by_label[label]) for label in labels)))
        parts += ["| " + " | ".join(cells) + " |\n" for cells in lines]
    return "".join(parts)


READING = (
    "The share of a response's sentences with each label, on average, and in how many responses the label occurs at "
    "all. Sentences that claim nothing are left out."
)


def by_run(rows: Iterable[SentenceRow]) -> dict[str, dict[str, SentenceRow]]:
    """Run to label to row, of the rows of one criterion."""
    runs: dict[str, dict[str, SentenceRow]] = {}
    for row in rows:
        runs.setdefault(row.run_id, {})[row.label] = row
    return runs


def share_text(row: SentenceRow) -> str:
    """A share as text: `0.25 (in 3)`, a quarter of the sentences, and some in 3 responses."""
    return f"{decimals(row.share.value if row.share else None, 2) or '-'} (in {row.with_label})"


class LabelCounts:
    """For each label of a criterion its sentences, and the responses with at least one; `unable` ones included."""

    def __init__(self, criterion: Criterion) -> None:
        self._labels = [level.label for level in criterion.sentence_levels]
        self._sentences: Counter[str] = Counter()
        self._responses: Counter[str] = Counter()

    def add(self, judgment: Judgment) -> None:
        """Count the sentences of a response."""
        self._sentences.update(judgment.sentences)
        self._responses.update(set(judgment.sentences))

    def counted(self) -> dict[str, dict[str, int]]:
        """The counts by label."""
        return {
            label: {"sentences": self._sentences[label], "responses": self._responses[label]} for label in self._labels
        }
