"""A probe from its plan to its files: what `judge probe` does, for use from Python."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judge.ask.account import Account, JudgeAccount
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.questions import filler_notes
from judge.ask.records import Failure
from judge.ask.returned import model_notes
from judge.ask.several import Fetching, forecasts
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
from judge.harness.dry_run import ModelForecast, model_forecasts
from judge.harness.manifest import JOURNAL, MANIFEST, SCHEMA, UNFINISHED, check_folder
from judge.harness.prepared import judging_options
from judge.harness.probe.asking import ask_probe, overlap_answers, pairs_of, probed_judges
from judge.harness.probe.bound import check_bound, with_probe
from judge.harness.probe.plan import PreparedProbe, ProbePlan, prepare_probe
from judge.models.journal import JournalView, open_journal, paid_journals
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
    plan: ProbePlan,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    *,
    progress: bool = False,
    steps: Steps = quiet,
) -> ProbeOutcome:
    """Ask judges about responses and altered copies of them, and write what moved their grades.

    Args:
        plan: What to do.
        report: Called after each judgment.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show bars in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.
        steps: Called as inputs are read and tables are made.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    if not progress:
        return _carry_out(_prepared(plan, steps=steps), report, fetching, steps)
    with ProgressLine(sys.stderr) as line:
        prepared = _prepared(plan, steps=line)
        with Reporter(", ".join(model.name for model in prepared.models), line) as reporter:
            return _carry_out(prepared, reporter, FetchReporter(line), line)


def forecast_probe(plan: ProbePlan, steps: Steps = quiet) -> ProbeForecast:
    """Count what `probe_judges` would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the output folder would be refused.
    """
    prepared = _prepared(plan, keys=False, steps=steps)
    out = Path(plan.out)
    if out.exists():
        check_folder(
            out, prepared.configured, trial=False, replace=plan.replace, may_differ=_GROWING, record=PROBE_RECORD
        )
    with JournalView([*paid_journals(out / JOURNAL, plan.journal), *prepared.journals]) as journal:
        counted = forecasts(prepared.models, prepared.tasks, journal, prepared.pool, prepared.turns)
    return ProbeForecast(
        items=len(prepared.items),
        twins=len(prepared.tasks) - len(prepared.items) * len(prepared.criteria),
        judges=model_forecasts(counted, plan.settings, plan.options.max_tokens),
    )


def _prepared(plan: ProbePlan, *, keys: bool = True, steps: Steps = quiet) -> PreparedProbe:
    prepared = prepare_probe(plan, keys=keys, steps=steps)
    if prepared.certificate is not None:
        options = {model.name: judging_options(plan.options, (model,)) for model in prepared.models}
        check_bound(prepared.certificate, prepared.models, prepared.criteria, options)
    return prepared


def _carry_out(
    prepared: PreparedProbe, report: Callable[[Progress], None] | None, fetching: Fetching | None, steps: Steps
) -> ProbeOutcome:
    plan, out = prepared.plan, Path(prepared.plan.out)
    changed = check_folder(
        out, prepared.configured, trial=False, replace=plan.replace, may_differ=_GROWING, record=PROBE_RECORD
    )
    with open_journal(out / JOURNAL, plan.journal, plan.settings.max_wait) as journal:
        for path in prepared.journals:
            journal.adopt(path)
        replace_folder(out, {MANIFEST: _manifest(prepared, UNFINISHED)}, PROBE_RECORD, more=not changed)
        account = Account()
        answered = ask_probe(prepared, journal, account, report, fetching)
        blank = filler_notes((model.name for model in prepared.models), journal)
    steps(Step("making tables and pictures"))
    overlap = overlap_answers(prepared)
    kinds = tuple(kind for kind in KINDS if kind in plan.kinds)
    pairs: list[ProbePair] = []
    judges = []
    for model, answers in answered:
        mine = pairs_of(prepared, model.name, answers, overlap)
        pairs += mine
        judges += probed_judges(prepared, model, answers, mine, kinds)
    card = ProbeCard(
        schema=PROBE_LAYOUT,
        judge_version=__version__,
        seed=plan.seed,
        margin=plan.margin,
        items=len(prepared.items),
        topics=len({item.response.topic_id for item in prepared.items}),
        pooled=len(prepared.drawn_from.responses),
        incomplete=prepared.incomplete,
        judges=tuple(judges),
    )
    files = {
        CARD: probe_json(card),
        "probe.tsv": probe_tsv(card),
        "probe.md": probe_markdown(card),
        "twins.jsonl": jsonl_bytes(pairs),
        **probe_pictures(card),
    }
    results = [result for _, answers in answered for result in answers.values()]
    certificate, notes = None, [*model_notes(results), *blank]
    if prepared.certificate is not None:
        certificate, unbound = with_probe(prepared.certificate, card, sha256(files[CARD]), prepared.criteria)
        notes += unbound
        if certificate is not None:
            files[CERTIFICATE] = json_bytes(certificate)
    files[MANIFEST] = _manifest(prepared, PROBED)
    replace_folder(out, files, PROBE_RECORD, last=CERTIFICATE)
    notes += undrawn("pictures of the shifts")
    failures = tuple(result for result in results if isinstance(result, Failure))
    return ProbeOutcome(card, tuple(pairs), certificate, failures, tuple(notes), account.rows())


def _manifest(prepared: PreparedProbe, status: str) -> bytes:
    """How the other files came about; a rerun gives the same bytes, because no time is recorded."""
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "judge_version": __version__,
        "python": platform.python_version(),
        "status": status,
        "configuration": prepared.configured,
    }
    return json_bytes(manifest)
