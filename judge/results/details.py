"""The tables that only some results have: sentences, citations, topics of interactive runs. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from judge.ask.records import Failure, Judgment
from judge.pool.records import Pool
from judge.records import Criterion
from judge.results.citations import CitationRow, citation_rows, citations_tsv
from judge.results.interactive import TopicRow, interactive_tsv, topic_rows
from judge.results.sentences import SentenceRow, sentence_rows, sentences_tsv
from judge.text.ids import Cluster
from judge.text.table import Table, sequence


class Details(NamedTuple):
    """The rows of each table; a table without rows is not written."""

    sentences: Table[SentenceRow]
    """Where a prompt labels sentences."""
    citations: Table[CitationRow]
    """Where the judge is a checker."""
    topics: tuple[TopicRow, ...]
    """Of interactive runs."""

    def files(self) -> dict[str, bytes]:
        """The tables that have rows, by the names of their files."""
        return {name: write(self).encode() for name, (has, write) in TABLES.items() if has(self)}


def details(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    *,
    expected: Mapping[str, Collection[str]] | None = None,
    cluster: Cluster = "topic",
) -> Details:
    """The rows of every table; the arguments are those of `leaderboard`."""
    results = sequence(results)
    return Details(
        sentence_rows(pool, results, criteria, expected=expected, cluster=cluster),
        citation_rows(pool, results, criteria, expected=expected, cluster=cluster),
        # A dialogue is all of its topic, so the leaderboard says of its topics what there is to say.
        topic_rows(pool, results, criteria, expected) if pool.unit == "response" else (),
    )


TABLES: dict[str, tuple[Callable[[Details], object], Callable[[Details], str]]] = {
    "sentences.tsv": (lambda found: found.sentences, lambda found: sentences_tsv(found.sentences)),
    "citations.tsv": (lambda found: found.citations, lambda found: citations_tsv(found.citations)),
    "interactive.tsv": (lambda found: found.topics, lambda found: interactive_tsv(found.topics)),
}
"""File to its rows and to what writes them."""
