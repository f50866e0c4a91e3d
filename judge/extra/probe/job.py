"""A probe from its plan to its files: what `judge probe` does, for use from Python."""

import itertools
import platform
from collections.abc import Callable, Iterator, Sequence

import msgspec

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JobForecast
from judge.ask.opening import OVERLAP, ask_free, judging_options, takes
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION
from judge.ask.records import Failure, Judgment
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import Certificate, certificate_digest, match_run
from judge.calibrate.certified import Certified, CertifiedProbe, CertifiedRow
from judge.extra.probe.alterations import Inapplicable, Twin
from judge.extra.probe.card import (
    CARD,
    PROBE_LAYOUT,
    ProbeCard,
    ProbedJudge,
    canary_rows,
    probe_markdown,
    probe_pictures,
    probe_row,
    probe_tsv,
)
from judge.extra.probe.inputs import ProbeInputs, ProbePlan, different_items, read_probe
from judge.extra.probe.probes import ProbePair, probes_of, standing, why_missing
from judge.io.files import json_bytes, jsonl_bytes, sha256
from judge.io.folder import replace_folder
from judge.io.installed import __version__, undrawn
from judge.io.steps import ProgressLine, Step, Steps, quiet
from judge.jobs.manifest import MANIFEST, SCHEMA, UNFINISHED, check_folder, job_manifest
from judge.judges.backends import backend_facts
from judge.judges.model import Model
from judge.records import Criterion, Record

PROBE_RECORD = "probe.sha256"
CERTIFICATE = "certificate.json"
PROBED = "probed"
_GROWING = frozenset({"items", "kinds", "margin", "certificate"})
"""Keys of a configuration that a later call may change: the same twins are asked about, or more of them."""


class ProbeOutcome(Record, frozen=True):
    """What a probe found."""

    card: ProbeCard
    pairs: tuple[ProbePair, ...]
    certificate: Certificate | None
    """The certificate with the probe in it; None without one, or where it is of another judge."""
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    accounts: tuple[JudgeAccount, ...] = ()

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
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    with job_progress(progress, report) as shown:
        inputs = read_probe(plan, steps=shown.steps)
        changed = _check_out(inputs)
        with Asking.of(plan, inputs.pool, inputs.turns, shown, known=inputs.known) as asking:
            unfinished = {MANIFEST: _manifest(inputs, UNFINISHED)}
            replace_folder(plan.out, unfinished, PROBE_RECORD, more=not changed)
            results = asking.ask(inputs.judge, inputs.tasks)
            notes = asking.notes(inputs.judge.models, results)
        shown.steps(Step("making tables and pictures"))
        return _outcome(inputs, results, notes, asking.accounts)


def forecast_probe(plan: ProbePlan, steps: Steps = quiet) -> JobForecast:
    """Count what `probe_judges` would send beyond what the journals hold."""
    inputs = read_probe(plan, keys=False, steps=steps)
    if plan.out.exists():
        _check_out(inputs)
    with Asking.of(plan, inputs.pool, inputs.turns, known=inputs.known, dry=True) as asking:
        forecast = asking.forecast(inputs.judge, inputs.tasks)
    twins = len(inputs.tasks) - len(inputs.items) * len(inputs.criteria)
    return JobForecast({"items": len(inputs.items), "twins": twins}, forecast.rows)


def _check_out(inputs: ProbeInputs) -> bool:
    """Refuse a folder with other results; whether it holds a probe of another configuration."""
    out, replace = inputs.plan.out, inputs.plan.replace
    return check_folder(out, inputs.configured, trial=False, replace=replace, may_differ=_GROWING, record=PROBE_RECORD)


def _outcome(
    inputs: ProbeInputs,
    results: Sequence[Judgment | Failure],
    notes: tuple[str, ...],
    accounts: tuple[JudgeAccount, ...],
) -> ProbeOutcome:
    """What the results come to, by model and then in the order of the tasks; the files are written."""
    plan, overlap, size = inputs.plan, _overlap(inputs), len(inputs.tasks)
    pairs: list[ProbePair] = []
    judges: list[ProbedJudge] = []
    for number, model in enumerate(inputs.judge.models):
        answers = results[number * size : (number + 1) * size]
        mine = [*_pairs(inputs, model.name, iter(answers), iter(overlap))]
        pairs += mine
        judges += _probed_judges(inputs, model, answers, mine)
    items, topics = len(inputs.items), len({item.response.topic_id for item in inputs.items})
    drawn = items, topics, len(inputs.drawn_from.responses), inputs.incomplete
    card = ProbeCard(PROBE_LAYOUT, __version__, plan.resampling_seed, plan.margin, *drawn, tuple(judges))
    files = {
        CARD: json_bytes(card),
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
    replace_folder(plan.out, files, PROBE_RECORD, last=CERTIFICATE)
    notes += tuple(undrawn("pictures of the shifts"))
    failures = tuple(result for result in results if isinstance(result, Failure))
    return ProbeOutcome(card, tuple(pairs), certificate, failures, notes, accounts)


def _manifest(inputs: ProbeInputs, status: str) -> bytes:
    return job_manifest(status, inputs.configured, schema=SCHEMA, python=platform.python_version())


def _overlap(inputs: ProbeInputs) -> list[Judgment | Failure | None]:
    """What word overlap says of each task; None under a prompt that it cannot grade under. It costs nothing."""
    graded = {criterion.digest for criterion in inputs.criteria if takes(OVERLAP, criterion)}
    tasks = [task for task in inputs.tasks if task.criterion.digest in graded]
    results = iter(ask_free(OVERLAP, tasks, inputs.pool, inputs.turns))
    return [next(results) if task.criterion.digest in graded else None for task in inputs.tasks]


def _pairs(
    inputs: ProbeInputs,
    judge: str,
    answers: Iterator[Judgment | Failure],
    overlap: Iterator[Judgment | Failure | None],
) -> Iterator[ProbePair]:
    """The pairs of one judge in the order of the prompts, items and probes, by what it and word overlap answered."""
    if backend_facts(judge).baseline:
        overlap = itertools.repeat(None)
    for posed in inputs.posed:
        scale, response = posed.criterion.scale, posed.item.response
        clean, clean_words = next(answers), standing(next(overlap), scale)
        for probe, made in posed.twins:
            twin = made if isinstance(made, Twin) else None
            altered = next(answers) if twin else None
            words = standing(next(overlap), scale) if twin else None
            yield ProbePair(
                prompt=posed.criterion.prompt_id,
                judge=judge,
                probe=probe.name,
                response_id=response.response_id,
                turn_id=response.turn_id,
                topic_id=response.topic_id,
                canary=twin.canary if twin else None,
                wants=twin.wants if twin else None,
                change=twin.change if twin else None,
                inapplicable=made.reason if isinstance(made, Inapplicable) else None,
                clean=standing(clean, scale),
                altered=standing(altered, scale),
                missing=why_missing(clean, altered) if twin else None,
                overlap_clean=clean_words.exact if clean_words else None,
                overlap_altered=words.exact if words else None,
            )


def _probed_judges(
    inputs: ProbeInputs, model: Model, answers: Sequence[Judgment | Failure], pairs: Sequence[ProbePair]
) -> Iterator[ProbedJudge]:
    for criterion in inputs.criteria:
        mine = [pair for pair in pairs if pair.prompt == criterion.prompt_id]
        steps = len(criterion.scale.levels) - 1
        judgments = (each for each in answers if isinstance(each, Judgment))
        returned = {each.model for each in judgments if each.model and each.criterion_digest == criterion.digest}
        asked = model.name, judging_options(inputs.plan.options, (model,)), tuple(sorted(returned))
        by_probe = (
            (probe, [pair for pair in mine if pair.probe == probe.name]) for probe in probes_of(criterion, inputs.kinds)
        )
        rows = tuple(probe_row(probe, its_pairs, steps, inputs.plan.margin) for probe, its_pairs in by_probe)
        versions = PARSER_VERSION, RENDERER_VERSION, steps + 1
        named = criterion.name, criterion.prompt_id, criterion.digest
        yield ProbedJudge(*named, *asked, *versions, rows, canary_rows(mine, steps))


def with_probe(
    certificate: Certificate, card: ProbeCard, digest: str, criteria: Sequence[Criterion]
) -> tuple[Certificate | None, tuple[str, ...]]:
    """The certificate with the probe in the entries that it is of, and a sentence for each entry that it is not of.

    The certificate is None if the probe is of none of its entries.
    """
    by_digest = {criterion.digest: criterion for criterion in criteria}
    entries: list[Certified] = []
    notes: list[str] = []
    for entry in certificate.certified:
        differing: list[str] = []
        for of in (each for each in card.judges if each.criterion == entry.criterion):
            criterion, returned = by_digest[of.prompt_digest], {of.criterion: of.models_returned}
            different = different_items(match_run(certificate, [criterion], of.judge, of.options, returned))
            if not different:
                entries.append(msgspec.structs.replace(entry, probed=_certified(card, of, digest)))
                break
            differing.append(different)
        else:
            entries.append(entry)
            reasons = "; ".join(differing) or "the criterion was not probed"
            notes.append(f"the probe is not in the certificate's entry of {entry.criterion}: {reasons}")
    if len(notes) == len(entries):
        return None, tuple(notes)
    made = msgspec.structs.replace(certificate, certified=tuple(entries))
    return msgspec.structs.replace(made, digest=certificate_digest(made)), tuple(notes)


def _certified(card: ProbeCard, of: ProbedJudge, digest: str) -> CertifiedProbe:
    rows = tuple(
        CertifiedRow(row.probe, row.expects, row.missing, row.measure, row.moved.value, row.word) for row in of.rows
    )
    canaries = len({row.canary for row in of.canaries})
    return CertifiedProbe(digest, card.items, card.topics, card.seed, card.margin, canaries, rows)
