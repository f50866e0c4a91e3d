"""Better wordings of a prompt, from gold and a judge to files: what `judge improve` does, for use from Python.

Wordings are tried on dev alone. The sealed test is opened once, at the end, for the first prompt and the chosen one.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace as changed_record

from judge.ask.asking import Asking, Judge
from judge.ask.criteria import find_criterion, prompt_path
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.opening import recalls
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt_file import parse_criterion
from judge.ask.records import Task
from judge.ask.results import FAILURES, JUDGMENTS
from judge.calibrate.certificate import certificate_bytes, make_certificate
from judge.calibrate.findings import Calibration
from judge.calibrate.panel import Panel
from judge.errors import InputError, UsageError
from judge.extra.improve.ledger import make_ledger
from judge.extra.improve.page import (
    CANDIDATES,
    OUTCOME,
    PAGE,
    ImproveOutcome,
    candidates_tsv,
    improve_markdown,
    outcome_tsv,
)
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import ModelProposer, PreparedWordings, models_of, open_proposer
from judge.extra.improve.rewriting import RefusedWordingError, checked_wording, rewriting_prompt, standing, with_variant
from judge.extra.improve.sealed import SealedTest
from judge.extra.improve.search import WordingSearch
from judge.extra.improve.showing import DevParts, set_aside, showing_examples
from judge.gold.rows import GoldRow
from judge.io.files import read_stored
from judge.io.folder import refuse_foreign, replace_folder
from judge.io.steps import ProgressLine, Step, Steps, quiet
from judge.jobs.calibration import CERTIFICATE, compare_labels
from judge.jobs.calibration.certifying import certified
from judge.jobs.calibration.inputs import CalibrationInputs, make_comparison
from judge.jobs.calibration.labels import CalibrationJudges, LabeledGold, answer_files
from judge.records import Criterion

RECORD = "improve.sha256"


def improve_prompt(
    plan: ImprovePlan,
    now: datetime | None = None,
    *,
    report: Callable[[Progress], None] | None = None,
    progress: bool | ProgressLine = False,
) -> ImproveOutcome:
    """Search for a better wording on dev, test it once, and write the output folder.

    `now`: for the certificate and the ledger of sealed grades; by default the clock's time. `report` and `progress`: as
    for `run`. If asking stops early, the same call goes on from there.
    """
    now = now or datetime.now(UTC)
    with job_progress(progress, report) as shown:
        check_folder(plan)
        inputs = CalibrationInputs(plan.calibration, shown.steps)
        first, content = first_prompt(inputs, plan)
        proposer = open_proposer(plan, keys=not recalls(plan.out))
        judges = CalibrationJudges(inputs, beside=models_of(proposer))
        check_dev_topics(judges.dev, first)
        test = SealedTest(plan, judges, first)
        if test.unproven:
            shown.say(f"no gain can be proven: {test.unproven}")
        with Asking(judges.place, judges.pool, judges.turns, shown) as asking:
            if isinstance(proposer, ModelProposer):
                proposer.asking = asking
            search = WordingSearch(plan, judges, asking, first=first, content=content, proposer=proposer)
            search.run(shown.steps)
            labeled = test.label(search, now)
            labeled = labeled._replace(
                warnings=asking.notes(
                    [model for judge in judges.judges for model in judge.models], search.grades.results
                ),
                accounts=asking.accounts,
            )
        return _outcome(plan, search, test, labeled, now, shown.steps)


def check_folder(plan: ImprovePlan) -> None:
    """Refuse an output folder whose files could not be written at the end, when all is paid and the test is open."""
    for path in (prompt_path(plan.prompt), plan.proposer):
        for own in ("candidates", "chosen"):
            if isinstance(path, str | Path) and Path(path).resolve().is_relative_to((plan.out / own).resolve()):
                raise UsageError(f"{path}: is of an earlier search into {plan.out}: choose another --out")
    refuse_foreign(plan.out, (CANDIDATES, OUTCOME, PAGE, JUDGMENTS, FAILURES, CERTIFICATE), RECORD)


def first_prompt(inputs: CalibrationInputs, plan: ImprovePlan) -> tuple[Criterion, str]:
    """The prompt to improve, with the text of its file."""
    first = find_criterion(plan.prompt)
    inputs.prompts[first.prompt_id] = first
    content = read_stored(prompt_path(plan.prompt)).decode("utf-8-sig").replace("\r\n", "\n")
    return first, content


def check_dev_topics(dev: Sequence[GoldRow], first: Criterion) -> None:
    """Refuse gold without an open grade under the criterion."""
    if not any(row.criterion == first.name for row in dev):
        raise InputError(f"no grade of {first.name} that is not held out: `judge gold split` makes a dev part")


def _outcome(
    plan: ImprovePlan, search: WordingSearch, test: SealedTest, labeled: LabeledGold, now: datetime, steps: Steps
) -> ImproveOutcome:
    """What the labels come to; the files are written."""
    inputs = search.judges.inputs
    chosen = search.grades.chosen
    panels, unmatched = make_comparison(inputs, labeled.rows, labeled.labels)
    panels = tuple(search.grades.first_in_front(panel) for panel in panels)
    found = compare_labels(inputs, labeled, panels, unmatched, steps)
    (panel,) = panels
    gain = None
    warnings = found.warnings
    if labeled.record is not None:
        gain, missing = test.gain(panel, chosen)
        warnings += missing
    word, because = test.word(search, gain)
    seal = labeled.record.seal if labeled.record else None
    entries = certified(inputs, panels, found, seal, labeled.endpoints)
    certificate = make_certificate(entries, now.date().isoformat())
    ledger = make_ledger(plan, search, _seen(found, panel))
    outcome = ImproveOutcome(
        word=word,
        because=because,
        ledger=ledger,
        first=search.first.prompt_id,
        chosen=chosen.prompt_id,
        prompt=plan.out / "chosen" / f"{chosen.variant}.md",
        gain=gain,
        certificate=certificate,
        warnings=warnings,
        accounts=labeled.accounts,
    )
    steps(Step("writing"))
    files: dict[str, bytes] = {
        **{f"candidates/{variant}.md": text.encode() for variant, text in search.candidates.contents.items()},
        f"chosen/{chosen.variant}.md": search.candidates.contents[chosen.variant].encode(),
        CANDIDATES: candidates_tsv(ledger),
        OUTCOME: outcome_tsv(outcome),
        PAGE: improve_markdown(outcome),
        **answer_files(search.grades.results),
        CERTIFICATE: certificate_bytes(certificate, plan.out / CERTIFICATE),
    }
    replace_folder(plan.out, files, RECORD, inputs=inputs.plan.gold, last=CERTIFICATE)
    return outcome


def _seen(found: Calibration, panel: Panel) -> int:
    """How many questions the sealed grades have been opened for, this one included."""
    return next((looks.number for looks in found.looks if looks.criterion == panel.criterion), 0)


def forecast_improvement(plan: ImprovePlan, steps: Steps = quiet) -> JobForecast:
    """Count what `improve_prompt` would send at most; sealed grades stay closed.

    Wordings that nobody has written yet count as long as the first prompt.
    """
    check_folder(plan)
    inputs = CalibrationInputs(plan.calibration, steps)
    first, content = first_prompt(inputs, plan)
    proposer = open_proposer(plan, keys=False)
    judges = CalibrationJudges(inputs, dry=True, beside=models_of(proposer))
    check_dev_topics(judges.dev, first)
    test = SealedTest(plan, judges, first)
    most = plan.variants * plan.rounds
    wordings: list[Criterion] = [first]
    if proposer is None:
        pass
    elif isinstance(proposer, PreparedWordings):
        for proposal in proposer.proposals:
            try:
                wordings.append(checked_wording(proposal.content, proposal.name, first, {}))
            except RefusedWordingError:
                continue
    else:
        wordings += [with_variant(first, f"{first.variant}-{number}") for number in range(1, most + 1)]
    parts = set_aside(judges.dev, first.name, plan) if "examples" in plan.ways else DevParts((), judges.dev)
    (judge,) = judges.judges
    with AskingForecast(judges.place, judges.pool, judges.turns) as forecasts:
        wanted = list(judges.tasks(judges.dev, wordings))
        if parts.shown:
            wanted += judges.tasks(parts.compared, [_with_examples(first, content, parts, judges, plan)])
        rows = forecasts.forecast(judge, wanted)
        if isinstance(proposer, ModelProposer):
            rows += forecasts.forecast(*_proposals(proposer, judges, content, plan))
    items = len(judges.tasks(judges.dev, [first]))
    sealed = len(judges.seal.test.items) if judges.seal and not test.unproven else 0
    counts = {
        "items": items,
        "wordings": len(wordings) - 1,
        "with_examples": len(judges.tasks(parts.compared, [first])) if parts.shown else 0,
        "test_judgments": 2 * sealed,
    }
    return JobForecast(counts, rows, (test.unproven,) if test.unproven else ())


def _with_examples(
    first: Criterion, content: str, parts: DevParts, judges: CalibrationJudges, plan: ImprovePlan
) -> Criterion:
    """The first prompt with examples, about as long as those of the search; without, if there are too few."""
    try:
        text = showing_examples(first, content, parts.shown, judges, {}, plan)
    except (InputError, UsageError):
        return with_variant(first, "examples")
    return parse_criterion(text.encode(), f"{first.variant}-examples", first.file)


def _proposals(
    proposer: ModelProposer, judges: CalibrationJudges, content: str, plan: ImprovePlan
) -> tuple[Judge, list[Task]]:
    """A proposer and requests about as long as those for all wordings would be."""
    rewriting = changed_record(rewriting_prompt(), user="{{response}}")
    graded = {row.turn_id for row in judges.dev}
    items = [response.text for response in judges.pool.responses if response.turn_id in graded][: plan.shown]
    text = "\n".join([content, rewriting_prompt().user, *items])
    tasks = []
    for number in range(plan.variants * plan.rounds):
        tasks.append(Task(standing(str(number), f"{number}\n{text}"), rewriting))
    return proposer.judge, tasks
