"""BLEU and ROUGE of runs against manual responses: what `judge evaluate wording` does, for use from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from judge.errors import InputError, UsageError
from judge.extra.evaluate.wording.overlap import has_words, rouge_settings
from judge.extra.evaluate.wording.tables import WORTH, OverReferences, WordedRun, turns_grid, worded_run, wording_grid
from judge.extra.evaluate.wording.texts import read_references, run_texts
from judge.io.cells import count
from judge.io.extras import need_extra
from judge.io.folder import check_apart, check_outside, replace_folder
from judge.io.ids import clustering, topic_of
from judge.io.plan import Option
from judge.io.steps import Steps, quiet
from judge.io.table import Table
from judge.jobs.options import ClusterUnit
from judge.records import Problem, Record
from judge.runs.formats import find_runs
from judge.runs.topics import read_topics

RECORD = "wording.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class WordingPlan(ClusterUnit):
    """Everything `judge evaluate wording` can be told."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")]
    """Run files, or folders of them, in any format of the tracks."""
    references: Annotated[tuple[Path, ...], Option("reference", metavar="FILE")] = ()
    """Manual runs, whose first response in a turn is a reference; several give a turn several."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, whose canonical responses are references too."""
    over: OverReferences = "references"
    """Turns with a reference, unanswered ones as empty texts, or those answered."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for the table in all forms, and the values of all turns."""


class WordingOutcome(Record, frozen=True):
    """Runs under BLEU and ROUGE."""

    runs: Table[WordedRun]
    references: dict[str, tuple[str, ...]]
    """Turn to its manual responses."""
    grid: Table[Any]
    """The table for people."""
    warnings: tuple[str, ...]
    """What was passed over, a sentence each."""


def evaluate_wording(plan: WordingPlan, steps: Steps = quiet) -> WordingOutcome:
    """Measure the wording of runs against manual responses, and write the tables if the plan names a folder.

    Raises:
        UsageError: A package is not installed, there is no reference, or the folder is that of an input.
        InputError: An input is bad, or a run has no turn with a reference; every problem is listed.
    """
    need_extra("bleu", "BLEU")
    need_extra("rouge", "ROUGE")
    if not plan.references and plan.topics is None:
        raise UsageError("no manual response: expected --reference FILE, or --topics FILE with canonical responses")
    inputs = [*plan.references, *([plan.topics] if plan.topics is not None else [])]
    if plan.out is not None:
        check_outside(plan.out, plan.runs)
        check_apart(plan.out, [*plan.runs, *inputs])
    topics = read_topics(plan.topics) if plan.topics is not None else ()
    references, remarks = read_references(plan.references, topics, str(plan.topics or ""))
    warnings = list(remarks)
    problems: list[Problem] = []
    runs: list[WordedRun] = []
    for run in run_texts(plan.runs, problems, plan.references, steps):
        if isinstance(run, str):
            warnings.append(run)
            continue
        warnings += [f"{run.file}: {remark}" for remark in run.remarks]
        if not references.keys() & run.texts.keys():
            message = "answers no turn that has a manual response"
            problems.append(Problem("no_common_turn", "error", run.file, None, "", message))
        elif not any(problem.severity == "error" for problem in problems):
            runs.append(worded_run(run, references, plan.over, plan.cluster))
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InputError(f"runs that cannot be measured: {count(len(errors), 'problem')}", errors)
    warnings += [f"{problem.file}: {problem.message}" for problem in problems]
    if not runs:
        raise InputError(f"no run is left to measure: {'; '.join(warnings)}")
    grid = wording_grid(runs, references, _notes(plan, runs, references))
    if plan.out is not None:
        files = grid.files("runs")
        files["turns.tsv"] = turns_grid(runs, references).files("turns")["turns.tsv"]
        replace_folder(plan.out, files, RECORD, inputs=[*inputs, *find_runs(plan.runs)[0]])
    return WordingOutcome(Table(runs), references, grid, tuple(warnings))


def _notes(plan: WordingPlan, runs: Sequence[WordedRun], references: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    over = "turns with a manual response"
    if plan.over == "answered":
        over += " that the run answered"
    else:
        over += "; a turn without an answer counts as an empty text"
    signatures = sorted({run.bleu.signature for run in runs if run.bleu is not None})
    mute = [turn_id for turn_id, given in references.items() if not has_words(given)]
    lacking = (
        f"{count(len(mute), 'turn')} without ROUGE, because no manual response there has a word: {', '.join(mute)}."
    )
    return (
        f"Over {over}. bleu: of all turns together, from 0 to 100. rouge1, rouge2, rougeL: means over turns.",
        f"BLEU: {', '.join(signatures)}. ROUGE: {rouge_settings()}.",
        *((lacking,) if mute else ()),
        WORTH,
        *clustering(map(topic_of, references), plan.cluster),
    )
