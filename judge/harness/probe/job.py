"""A probe from its plan to its files: what `judge probe` does, for use from Python."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JobForecast
from judge.ask.opening import ask_free, judging_options, takes
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import Certificate, Match, certificate_digest, match_run
from judge.calibrate.certified import Certified
from judge.calibrate.probe.card import CARD, PROBE_LAYOUT, ProbeCard, ProbedJudge, probe_json, probe_tsv
from judge.calibrate.probe.certified import certified_probe
from judge.calibrate.probe.measured import canary_rows, probe_row
from judge.calibrate.probe.page import probe_markdown
from judge.calibrate.probe.pairs import ProbePair, standing, steps_of, why_missing
from judge.calibrate.probe.pictures import probe_pictures
from judge.calibrate.probe.probes import probes_of
from judge.calibrate.probe.records import KINDS, Inapplicable, ProbeKind
from judge.draw.drawable import undrawn
from judge.errors import UsageError
from judge.evaluate.cards.card import OVERLAP
from judge.files.bundle import __version__
from judge.files.folder import replace_folder
from judge.files.jsonl import json_bytes, jsonl_bytes
from judge.files.progress import ProgressLine
from judge.files.stored import sha256
from judge.harness.manifest import MANIFEST, SCHEMA, UNFINISHED, check_folder
from judge.harness.probe.plan import Posed, ProbeInputs, ProbePlan, read_probe, task_of
from judge.models.backends import backend_facts, open_model
from judge.models.model import Model
from judge.records import Criterion, Record
from judge.text.steps import Step, Steps, quiet


def check_bound(
    certificate: Certificate,
    models: Sequence[Model],
    criteria: Sequence[Criterion],
    options: Mapping[str, Mapping[str, Any]],
) -> None:
    """Refuse a certificate of another judge before anything is asked.

    Args:
        certificate: What was calibrated.
        models: The judges of the probe.
        criteria: Its prompts.
        options: Name of a model to its options.

    Raises:
        UsageError: No judge under no prompt is what the certificate certifies.
    """
    differing: list[str] = []
    for model in models:
        for criterion in criteria:
            different = _different(match_run(certificate, [criterion], model.name, options[model.name]))
            if not different:
                return
            differing.append(f"{criterion.prompt_id} by {model.name}: {different}")
    raise UsageError(f"the certificate is of another judge ({'. '.join(differing)})")


def with_probe(
    certificate: Certificate, card: ProbeCard, digest: str, criteria: Sequence[Criterion]
) -> tuple[Certificate | None, tuple[str, ...]]:
    """The certificate with the probe in the entries that it is of, and a sentence for each entry that it is not of.

    Args:
        certificate: What was calibrated.
        card: What the probe found.
        digest: SHA-256 of `probe.json`.
        criteria: The prompts of the probe.

    Returns:
        The new certificate, or None if the probe is of none of its entries; the sentences.
    """
    by_digest = {criterion.digest: criterion for criterion in criteria}
    entries: list[Certified] = []
    notes: list[str] = []
    bound = False
    for entry in certificate.certified:
        found = [
            _same(certificate, of, by_digest[of.prompt_digest]) for of in card.judges if of.criterion == entry.criterion
        ]
        of = next((judge for judge in found if isinstance(judge, ProbedJudge)), None)
        if of is not None:
            entries.append(msgspec.structs.replace(entry, probed=certified_probe(card, of, digest)))
            bound = True
            continue
        entries.append(entry)
        reasons = "; ".join(each for each in found if isinstance(each, str)) or "the criterion was not probed"
        notes.append(f"the probe is not in the certificate's entry of {entry.criterion}: {reasons}")
    made = msgspec.structs.replace(certificate, certified=tuple(entries))
    return (msgspec.structs.replace(made, digest=certificate_digest(made)) if bound else None), tuple(notes)


def _same(certificate: Certificate, of: ProbedJudge, criterion: Criterion) -> ProbedJudge | str:
    """The probed judge if the certificate's entry is of it, else what differs."""
    returned = {criterion.name: of.models_returned}
    different = _different(match_run(certificate, [criterion], of.judge, of.options, returned))
    return different or of


def _different(matches: Sequence[Match]) -> str:
    return "; ".join(f"{m.item}: {m.certified} certified, {m.found} here" for m in matches if not m.same)


Given = Judgment | Failure
Answered = Mapping[int, Given]
"""Place in `posed` to the answer; places without a twin have none."""


def ask_probe(inputs: ProbeInputs, asking: Asking) -> list[tuple[Model, Answered]]:
    """Ask every judge for what the journal does not answer.

    Raises:
        OperationalError: The loop stopped early; every paid completion is in the journal.
    """
    tasks = inputs.tasks
    results = asking.ask(inputs.judge, tasks)
    return [
        (model, _placed(inputs.posed, results[number * len(tasks) : (number + 1) * len(tasks)]))
        for number, model in enumerate(inputs.judge.models)
    ]


def overlap_answers(inputs: ProbeInputs) -> Answered:
    """The same of word overlap, for the prompts that it can grade under; it costs nothing."""
    model = open_model(OVERLAP)
    graded = {criterion.digest for criterion in inputs.criteria if takes(model, criterion)}
    posed = {place: each for place, each in enumerate(inputs.posed) if each.criterion.digest in graded}
    wanted = {place: task for place, each in posed.items() if (task := task_of(each)) is not None}
    return dict(zip(wanted, ask_free(model, tuple(wanted.values()), inputs.pool, inputs.turns), strict=True))


def pairs_of(inputs: ProbeInputs, judge: str, answers: Answered, overlap: Answered) -> list[ProbePair]:
    """The pairs of one judge, in the order of the prompts, the items and the probes."""
    pairs: list[ProbePair] = []
    clean = 0
    beside = {} if backend_facts(judge).baseline else overlap
    for place, posed in enumerate(inputs.posed):
        if posed.probe is None:
            clean = place
            continue
        pairs.append(_pair(posed, judge, answers[clean], answers.get(place), (beside.get(clean), beside.get(place))))
    return pairs


def _pair(
    posed: Posed, judge: str, clean: Given, altered: Given | None, overlap: tuple[Given | None, Given | None]
) -> ProbePair:
    scale, response, twin = posed.criterion.scale, posed.item.response, posed.twin
    steps = [_steps(result, posed.criterion) for result in overlap]
    absent = isinstance(twin, Inapplicable)
    return ProbePair(
        prompt=posed.criterion.prompt_id,
        judge=judge,
        probe=posed.probe.name if posed.probe is not None else "",
        response_id=response.response_id,
        turn_id=response.turn_id,
        topic_id=response.topic_id,
        canary=None if twin is None or isinstance(twin, Inapplicable) else twin.canary,
        wants=None if twin is None or isinstance(twin, Inapplicable) else twin.wants,
        change=None if twin is None or isinstance(twin, Inapplicable) else twin.change,
        inapplicable=twin.reason if isinstance(twin, Inapplicable) else None,
        clean=standing(clean, scale),
        altered=standing(altered, scale) if altered is not None else None,
        missing=None if absent else why_missing(clean, altered),
        overlap_clean=steps[0],
        overlap_altered=steps[1],
    )


def probed_judges(
    inputs: ProbeInputs, model: Model, answers: Answered, pairs: Sequence[ProbePair], kinds: Iterable[ProbeKind]
) -> list[ProbedJudge]:
    """What the pairs of one judge say under each prompt."""
    judges = []
    for criterion in inputs.criteria:
        mine = [pair for pair in pairs if pair.prompt == criterion.prompt_id]
        steps = steps_of(criterion.scale)
        by_probe: dict[str, list[ProbePair]] = {}
        for pair in mine:
            by_probe.setdefault(pair.probe, []).append(pair)
        judges.append(
            ProbedJudge(
                criterion=criterion.name,
                prompt=criterion.prompt_id,
                prompt_digest=criterion.digest,
                judge=model.name,
                options=judging_options(inputs.plan.options, (model,)),
                models_returned=_returned(answers.values(), criterion),
                parser=PARSER_VERSION,
                renderer=RENDERER_VERSION,
                levels=steps + 1,
                rows=tuple(
                    probe_row(probe, by_probe[probe.name], steps, inputs.plan.margin)
                    for probe in probes_of(criterion, tuple(kinds))
                ),
                canaries=canary_rows(mine, steps),
            )
        )
    return judges


def _placed(posed: Sequence[Posed], results: Sequence[Given]) -> Answered:
    asked = [place for place, one in enumerate(posed) if task_of(one) is not None]
    return dict(zip(asked, results, strict=True))


def _returned(results: Iterable[Given], criterion: Criterion) -> tuple[str, ...]:
    """The models as the provider names them."""
    return tuple(
        sorted(
            {
                result.model
                for result in results
                if isinstance(result, Judgment) and result.model and result.criterion_digest == criterion.digest
            }
        )
    )


def _steps(result: Given | None, criterion: Criterion) -> float | None:
    found = standing(result, criterion.scale) if result is not None else None
    return None if found is None else float(found.step) if found.expected is None else found.expected


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
        with Asking.of(plan, inputs.pool, inputs.turns, shown, known=inputs.known) as asking:
            replace_folder(out, {MANIFEST: _manifest(inputs, UNFINISHED)}, PROBE_RECORD, more=not changed)
            answered = ask_probe(inputs, asking)
            notes = asking.notes(inputs.judge.models, _results(answered))
        shown.steps(Step("making tables and pictures"))
        return _outcome(inputs, answered, notes, asking.accounts)


def forecast_probe(plan: ProbePlan, steps: Steps = quiet) -> JobForecast:
    """Count what `probe_judges` would send beyond what the journals hold.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the output folder would be refused.
    """
    inputs = _inputs(plan, keys=False, steps=steps)
    if Path(plan.out).exists():
        _check_out(inputs)
    with Asking.of(plan, inputs.pool, inputs.turns, known=inputs.known, dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    twins = len(inputs.tasks) - len(inputs.items) * len(inputs.criteria)
    return JobForecast({"items": len(inputs.items), "twins": twins}, forecast.rows)


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
