"""Every table of a judged pool, made of one look at the results of each criterion. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from judge.ask.records import Failure, Judgment
from judge.io.ids import Cluster
from judge.io.table import Table, TsvColumns, records_tsv
from judge.pool.records import Pool
from judge.records import Criterion
from judge.results import details, leaderboard
from judge.results.details import CitationRow, SentenceRow, TopicRow, citation_rows, sentence_rows, topic_rows
from judge.results.differences import COLUMNS, differences, told_apart
from judge.results.leaderboard import leaderboard_markdown, ranked_runs
from judge.results.rows import LeaderboardRow, RunDifference
from judge.results.turns import turns_by_criterion

SEED = 2023
"""Of the tests of differences, so that the same folder has the same p-values."""


class ResultTables(NamedTuple):
    """The rows of each table: criteria as given, runs in natural order or by rank."""

    leaderboard: Table[LeaderboardRow]
    differences: Table[RunDifference]
    sentences: Table[SentenceRow]
    """Where a prompt labels sentences."""
    citations: Table[CitationRow]
    """Where the judge is a checker, precision first."""
    topics: Table[TopicRow]
    """Of interactive runs; a dialogue is all of its topic, so the leaderboard says of its topics what there is to say.
    """

    def files(self, banner: str, criteria: Sequence[Criterion], notes: Iterable[str]) -> dict[str, bytes]:
        """The files of the tables; one of details without rows is left out.

        Args:
            banner: How far to believe the judge.
            criteria: The prompts, for how to read the grades.
            notes: What else to know.
        """
        apart = told_apart(self.differences)
        board = leaderboard_markdown(self.leaderboard, banner, criteria, notes, apart, self.sentences)
        tables: dict[str, tuple[TsvColumns, Table[Any]]] = {
            "leaderboard.tsv": (leaderboard.COLUMNS, self.leaderboard),
            "differences.tsv": (COLUMNS, self.differences),
            "sentences.tsv": (details.SENTENCES, self.sentences),
            "citations.tsv": (details.CITATIONS, self.citations),
            "interactive.tsv": (details.TOPICS, self.topics),
        }
        files = {
            name: records_tsv(columns, rows, 4).encode()
            for name, (columns, rows) in tables.items()
            if rows or name in ("leaderboard.tsv", "differences.tsv")
        }
        return {**files, "leaderboard.md": board.encode()}


def result_tables(
    pool: Pool,
    results: Iterable[Judgment | Failure],
    criteria: Sequence[Criterion],
    cluster: Cluster = "topic",
) -> ResultTables:
    """The rows of every table; the arguments are those of `leaderboard`."""
    rng = np.random.default_rng(SEED)
    board: list[LeaderboardRow] = []
    pairs: list[RunDifference] = []
    sentences: list[SentenceRow] = []
    citations: list[CitationRow] = []
    topics: list[TopicRow] = []
    for criterion, runs in turns_by_criterion(pool, results, criteria):
        board += ranked_runs(runs, criterion, cluster)
        pairs += differences(runs, criterion, cluster, rng)
        for run in runs:
            if criterion.answer == "sentences":
                sentences += sentence_rows(run, criterion, cluster)
                citations += citation_rows(run, criterion, cluster)
            if pool.unit == "response":
                topics += topic_rows(run, criterion)
    return ResultTables(Table(board), Table(pairs), Table(sentences), Table(citations), Table(topics))
