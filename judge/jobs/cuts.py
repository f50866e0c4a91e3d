"""A prompt with cut points fitted to gold: what `judge prompts cuts` does, for use from Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from judge.ask.criteria import load_criterion, prompt_path
from judge.ask.prompt_edit import with_cuts
from judge.ask.results import JUDGMENTS, Labels
from judge.calibrate.cuts import FittedCuts, fit_cuts, why_no_cuts
from judge.calibrate.intake import make_panels, read_sources
from judge.errors import InputError, UsageError
from judge.gold.examples import without_examples
from judge.gold.rows import GoldRow
from judge.gold.seal import GOLD_FILES, read_unsealed
from judge.io.files import read_stored
from judge.io.plan import Option, Options, Seed, in_folders
from judge.jobs.prompt_files import only_judge, write_prompt
from judge.records import Criterion

UNSPLIT = "the gold has no split, so nothing is left to measure the cuts on; `judge gold split` seals a part for that"


class CutsPlan(Options, main="gold judgments pool judge seed out"):
    """Everything `judge prompts cuts` can be told."""

    prompt: Annotated[str, Option(metavar="NAME|PATH", place="only")]
    """Prompt that the judgments are under, which is not changed."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")]
    """Gold grades (JSONL), to whose dev part the cuts are fitted."""
    judgments: Annotated[tuple[Path, ...], Option(metavar="FILE")]
    """Judgments with label probabilities."""
    pool: Annotated[Path | None, Option(metavar="PATH")] = None
    """Folder of `judge run`, or its pool.jsonl, if it is not beside the judgments."""
    judge: Annotated[str | None, Option(metavar="NAME")] = None
    """Which judge of --judgments, where there are several."""
    seed: Annotated[Seed, Option(metavar="S")] = 1
    """Orders the topics, which folds take in turn."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """Prompt file to write if the cuts gain anything, such as mine.md."""


class PromptCuts(msgspec.Struct, frozen=True):
    """What cuts gain, and the prompt with them."""

    judge: str
    prompt: str
    """The prompt that the judgments are under."""
    found: FittedCuts
    criterion: Criterion | None
    """The prompt that was written; None if the cuts gain nothing."""
    warnings: tuple[str, ...] = ()


def add_cuts(plan: CutsPlan) -> PromptCuts:
    """Fit cuts to dev gold and write a prompt file with them; if they gain nothing, nothing is written."""
    plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,))
    path = prompt_path(plan.prompt)
    prompt = load_criterion(path)
    rows = read_unsealed(plan.gold, "cuts are fitted to grades of dev topics: give dev.jsonl")
    dev = tuple(row for row in rows if row.criterion == prompt.name and row.split != "test")
    labels = _labels(plan, prompt)
    found, warnings = _fitted(plan, prompt, dev, labels)
    criterion = None
    if found.gains:
        text = with_cuts(read_stored(path).decode("utf-8-sig"), prompt, found.cuts)
        criterion = write_prompt(plan.out, text)
    return PromptCuts(judge=labels.judge, prompt=prompt.prompt_id, found=found, criterion=criterion, warnings=warnings)


def _labels(plan: CutsPlan, prompt: Criterion) -> Labels:
    """What one judge said under the prompt."""
    columns = [
        labels
        for labels in read_sources(plan.judgments, plan.pool, None)
        if labels.prompt == prompt.prompt_id and plan.judge in (None, labels.judge)
    ]
    named = ", ".join(map(str, plan.judgments))
    labels = only_judge(columns, named, prompt.prompt_id)
    if labels.prompt_digest != prompt.digest:
        raise UsageError(f"{named}: {prompt.file} has changed since these judgments were made: judge under it first")
    return labels


def _fitted(
    plan: CutsPlan, prompt: Criterion, dev: Sequence[GoldRow], labels: Labels
) -> tuple[FittedCuts, tuple[str, ...]]:
    """The cuts, and what to know of the gold."""
    name = ", ".join(map(str, plan.gold))
    kept = without_examples(dev, [prompt], labels.pool)
    panels, _ = make_panels(
        kept.rows,
        [labels],
        {prompt.prompt_id: prompt},
        {prompt.name: prompt.scale},
        name,
        only=(prompt.name,),
        units={prompt.name: prompt.unit},
    )
    if not panels:
        raise InputError(f"{name}: no grade of a dev topic of what was judged under {prompt.prompt_id}")
    (panel,) = panels
    (column,) = panel.columns
    if reason := why_no_cuts(panel, column, np.ones(len(panel.items), dtype=np.bool_)):
        raise InputError(f"{labels.source} and {name}: no cuts for {labels.judge}: {reason}")
    warnings = kept.warnings if all(row.split for row in dev) else (*kept.warnings, UNSPLIT)
    return fit_cuts(panel, column, plan.seed), warnings
