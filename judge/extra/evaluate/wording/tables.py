"""Runs under BLEU and ROUGE: their figures, and these as tables. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from judge.extra.evaluate.scores import MeasuredRun, measured_run
from judge.extra.evaluate.wording.overlap import ROUGES, CorpusBleu, RougeName, corpus_bleu, has_words, rouge_scores
from judge.extra.evaluate.wording.texts import RunTexts
from judge.io.ids import Cluster, natural_key
from judge.io.table import Cell, Table
from judge.records import Record

OverReferences = Literal["references", "answered"]
"""references: every turn with a reference; one that the run did not answer counts as an empty text. answered: those
that the run answered."""
WORTH = (
    "BLEU and ROUGE reward the words of a manual response: a right answer in other words scores low. They were found "
    "to agree weakly or not at all with people's judgments of responses in dialogues (Liu et al., EMNLP 2016)."
)


class WordedRun(Record, frozen=True):
    """A run under BLEU and ROUGE."""

    run_id: str
    answered: int
    """Turns with a reference that the run answered."""
    bleu: CorpusBleu | None
    """None without a turn to measure."""
    rouge: dict[RougeName, MeasuredRun]
    """Mean of F and the value of every turn."""


def worded_run(
    run: RunTexts, references: Mapping[str, Sequence[str]], over: OverReferences, cluster: Cluster = "topic"
) -> WordedRun:
    """Measure a run.

    Args:
        run: The texts of the run.
        references: Turn to its references.
        over: The turns behind the figures.
        cluster: What the intervals are over.
    """
    texts = {turn_id: run.texts[turn_id] for turn_id in references if turn_id in run.texts}
    turns = list(references) if over == "references" else list(texts)
    bleu = corpus_bleu([texts.get(turn, "") for turn in turns], [references[turn] for turn in turns]) if turns else None
    comparable = [turn for turn, given in references.items() if has_words(given)]
    rouge = {
        name: measured_run(
            run.run_id, name, values, comparable, "qrels" if over == "references" else "answered", cluster=cluster
        )
        for name, values in rouge_scores(texts, references).items()
    }
    return WordedRun(run.run_id, len(texts), bleu, rouge)


def wording_grid(
    runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]], notes: Sequence[str]
) -> Table[Any]:
    """A line for each run, best ROUGE-L first."""
    lines: list[tuple[Cell, ...]] = [
        (
            run.run_id,
            None if run.bleu is None else run.bleu.value,
            *(run.rouge[name].estimate for name in ROUGES),
            run.answered,
            len(references),
        )
        for run in sorted(runs, key=lambda run: (-(run.rouge["rougeL"].estimate.value or 0.0), natural_key(run.run_id)))
    ]
    return Table(lines, ("run", "bleu", *ROUGES, "answered", "references"), "Wording", notes, places=3)


def turns_grid(runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]]) -> Table[Any]:
    """A line for each run and turn with a reference; no value where the run did not answer and it does not count."""
    lines: list[tuple[Cell, ...]] = [
        (run.run_id, turn_id, len(given), *(run.rouge[name].turns.get(turn_id) for name in ROUGES))
        for run in sorted(runs, key=lambda run: natural_key(run.run_id))
        for turn_id, given in references.items()
    ]
    return Table(lines, ("run", "turn", "references", *ROUGES), "Turns")
