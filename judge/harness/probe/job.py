"""A probe from its plan to its files: what `judge probe` does, for use from Python."""

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judge.ask.account import JudgeAccount
from judge.ask.asking import ModelForecast
from judge.ask.opening import judging_options
from judge.ask.progress import Progress, job_progress
from judge.ask.records import Failure, Judgment
from judge.calibrate.certificate import Certificate
from judge.calibrate.probe.card import CARD, PROBE_LAYOUT, ProbeCard, probe_json, probe_tsv
from judge.calibrate.probe.page import probe_markdown
from judge.calibrate.probe.pairs import ProbePair
from judge.calibrate.probe.pictures import probe_pictures
from judge.calibrate.probe.records import KINDS
from judge.draw.drawable import undrawn
from judge.files.bundle import __version__
from judge.files.folder import replace_folder
from judge.files.jsonl import json_bytes, jsonl_bytes
from judge.files.progress import ProgressLine
from judge.files.stored import sha256
from judge.harness.manifest import MANIFEST, SCHEMA, UNFINISHED, check_folder
from judge.harness.probe.asking import Answered, ask_probe, overlap_answers, pairs_of, probed_judges
from judge.harness.probe.bound import check_bound, with_probe
from judge.harness.probe.plan import ProbeInputs, ProbePlan, read_probe
from judge.models.model import Model
from judge.records import Record
from judge.text.steps import Step, Steps, quiet

PROBE_RECORD = "probe.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
CERTIFICATE = "certificate.json"
PROBED = "probed"
"""Status of a folder with a finished probe."""
_GROWING = frozenset({"items", "kinds", "margin", "certificate"})
"""Keys of a configuration that a later call may change: the same twins are asked about, or more of them."""


class ProbeOutcome(Record, frozen=True):
    """What a probe found."""

    card: ProbeCard
    """Everything, by judge and prompt."""
    pairs: tuple[ProbePair, ...]
    """The grades of each item and its twin."""
    certificate: Certificate | None
    """The certificate with the probe in it; None without one, or where it is of another judge."""
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    """A sentence each."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to each model took."""

    @property
    def fails(self) -> bool:
        """Whether some judge fails a probe."""
        return any(row.word == "fails" for of in self.card.judges for row in of.rows)


class ProbeForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    items: int
    twins: int
    """Twins under all prompts."""
    judges: tuple[ModelForecast, ...]
    """What each model would be asked, and what that costs."""


def probe_judges(
    plan: ProbePlan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> ProbeOutcome:
    """Ask judges about responses and altered copies of them, and write what moved their grades.

    Args:
        plan: What to do.
        report: Called after each judgment.
        progress: Show bars in a notebook or on a terminal, elsewhere lines now and then; or the line to show them on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        inputs = _inputs(plan, steps=shown.steps)
        out, changed = Path(plan.out), _check_out(inputs)
        with inputs.asking(shown) as asking:
            replace_folder(out, {MANIFEST: _manifest(inputs, UNFINISHED)}, PROBE_RECORD, more=not changed)
            answered = ask_probe(inputs, asking)
            notes = asking.notes(inputs.judge.models, _results(answered))
        shown.steps(Step("making tables and pictures"))
        return _outcome(inputs, answered, notes, asking.accounts)


def forecast_probe(plan: ProbePlan, steps: Steps = quiet) -> ProbeForecast:
    """Count what `probe_judges` would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the output folder would be refused.
    """
    inputs = _inputs(plan, keys=False, steps=steps)
    if Path(plan.out).exists():
        _check_out(inputs)
    with inputs.asking(dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    return ProbeForecast(
        items=len(inputs.items),
        twins=len(inputs.tasks) - len(inputs.items) * len(inputs.criteria),
        judges=forecast.rows,
    )


def _inputs(plan: ProbePlan, *, keys: bool = True, steps: Steps = quiet) -> ProbeInputs:
    inputs = read_probe(plan, keys=keys, steps=steps)
    if inputs.certificate is not None:
        models = inputs.judge.models
        options = {model.name: judging_options(plan.options, (model,)) for model in models}
        check_bound(inputs.certificate, models, inputs.criteria, options)
    return inputs


def _check_out(inputs: ProbeInputs) -> bool:
    """Refuse a folder with other results; whether it holds a probe of another configuration."""
    out, replace = Path(inputs.plan.out), inputs.plan.replace
    return check_folder(out, inputs.configured, trial=False, replace=replace, may_differ=_GROWING, record=PROBE_RECORD)


def _results(answered: Sequence[tuple[Model, Answered]]) -> list[Judgment | Failure]:
    """What all judges said."""
    return [result for _, answers in answered for result in answers.values()]


def _outcome(
    inputs: ProbeInputs,
    answered: Sequence[tuple[Model, Answered]],
    notes: tuple[str, ...],
    accounts: tuple[JudgeAccount, ...],
) -> ProbeOutcome:
    """What the answers come to; the files are written."""
    plan = inputs.plan
    overlap = overlap_answers(inputs)
    kinds = tuple(kind for kind in KINDS if kind in plan.kinds)
    pairs: list[ProbePair] = []
    judges = []
    for model, answers in answered:
        mine = pairs_of(inputs, model.name, answers, overlap)
        pairs += mine
        judges += probed_judges(inputs, model, answers, mine, kinds)
    card = ProbeCard(
        schema=PROBE_LAYOUT,
        judge_version=__version__,
        seed=plan.seed,
        margin=plan.margin,
        items=len(inputs.items),
        topics=len({item.response.topic_id for item in inputs.items}),
        pooled=len(inputs.drawn_from.responses),
        incomplete=inputs.incomplete,
        judges=tuple(judges),
    )
    files = {
        CARD: probe_json(card),
        "probe.tsv": probe_tsv(card),
        "probe.md": probe_markdown(card),
        "twins.jsonl": jsonl_bytes(pairs),
        **probe_pictures(card),
    }
    certificate = None
    if inputs.certificate is not None:
        certificate, unbound = with_probe(inputs.certificate, card, sha256(files[CARD]), inputs.criteria)
        notes += unbound
        if certificate is not None:
            files[CERTIFICATE] = json_bytes(certificate)
    files[MANIFEST] = _manifest(inputs, PROBED)
    replace_folder(Path(plan.out), files, PROBE_RECORD, last=CERTIFICATE)
    notes += tuple(undrawn("pictures of the shifts"))
    failures = tuple(result for result in _results(answered) if isinstance(result, Failure))
    return ProbeOutcome(card, tuple(pairs), certificate, failures, notes, accounts)


def _manifest(inputs: ProbeInputs, status: str) -> bytes:
    """How the other files came about; a rerun gives the same bytes, because no time is recorded."""
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "judge_version": __version__,
        "python": platform.python_version(),
        "status": status,
        "configuration": inputs.configured,
    }
    return json_bytes(manifest)
