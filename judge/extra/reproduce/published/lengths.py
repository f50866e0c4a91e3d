"""How many responses are over the limit of a track, by each way of counting its tokens."""

from collections.abc import Mapping
from typing import Any

from judge.io.ids import topic_of
from judge.io.table import Cell, Table
from judge.runs.tokens import RULES, TokenCounter
from judge.stats.means import mean_interval

LIMIT = 250
"""The most tokens of a response, by the guidelines of iKAT 2023 to 2025."""


def lengths_grid(runs: Mapping[str, Mapping[str, str]]) -> Table[Any]:
    """The responses of each run over LIMIT, by each rule.

    Args:
        runs: Run to turn to the text of its response; every text must be countable (`judge.runs.tokens.countable`).
    """
    count_tokens = TokenCounter(limit=LIMIT)
    lines: list[tuple[Cell, ...]] = []
    for run_id, texts in runs.items():
        lengths = [count_tokens(text) for text in texts.values()]
        topics = list(map(topic_of, texts))
        for rule in RULES:
            tokens = [getattr(length, rule) for length in lengths]
            over = [float(number > LIMIT) for number in tokens]
            share = mean_interval(over, topics, bounds=(0.0, 1.0), what="responses")
            exactly = sum(number == LIMIT for number in tokens)
            lines.append((run_id, rule, len(tokens), int(sum(over)), exactly, max(tokens, default=None), share))
    columns = ("run", "rule", "responses", "over", "at_limit", "longest", "share_over")
    notes = (
        f"over: responses of more than {LIMIT} tokens; share_over: their share, with the interval over topics. bare: "
        "spacy.tokenizer.Tokenizer, which the guidelines name; english: the tokenizer of spaCy's English; whitespace: "
        "what the validator of iKAT 2025 counts.",
    )
    return Table(lines, columns, "Lengths", notes)
