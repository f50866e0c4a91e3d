"""A probe from its plan to its files: what `judge probe` does, for use from Python.

An item's twins are the same whichever other items are drawn.
"""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.ask import opening
from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.criteria import choose_prompts
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.options import AskingOptions
from judge.ask.progress import Progress, job_progress
from judge.ask.prompt import RENDERER_VERSION, check_unit, unit_of
from judge.ask.records import JOURNAL, Failure, Judgment, Task
from judge.ask.verdict import PARSER_VERSION
from judge.calibrate.certificate import Certificate, Match, certificate_digest, match_run, read_certificate
from judge.calibrate.certified import Certified, CertifiedProbe, CertifiedRow
from judge.errors import InputError, UsageError
from judge.extra.probe import card as cards
from judge.extra.probe.alterations import ProbeItem, Twin
from judge.extra.probe.probes import KINDS, Probe, ProbeKind, ProbePair, probes_of, standing, why_missing
from judge.extra.probe.twins import draw_items, is_complete, make_twin, passages_of, twin_response
from judge.io.files import file_in, json_bytes, jsonl_bytes, sha256
from judge.io.folder import check_apart, replace_folder
from judge.io.installed import __version__, undrawn
from judge.io.plan import AboveZero, Option, Positive, Seed
from judge.io.steps import ProgressLine, Step, Steps, quiet
from judge.jobs.manifest import MANIFEST, SCHEMA, UNFINISHED, OutputFolder, check_folder, job_manifest
from judge.jobs.options import JudgedPrompts, TrackYear, criteria_of_pool, usual_criteria
from judge.jobs.pooling import Pooling, pool_runs
from judge.judges.backends import backend_facts
from judge.judges.model import Model
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool
from judge.records import Criterion, JudgedUnit, Record
from judge.runs.records import Turn
from judge.runs.sources import find_sources
from judge.runs.topics import stored_topics, topic_turns
from judge.stats.tables import Undefined
from judge.units import UNITS


class ProbedResponses(TrackYear, section="reading"):
    """What responses are drawn from."""

    folder: Annotated[Path | None, Option(metavar="FOLDER", place="only")] = None
    """Output folder of `judge run` or `judge pool`: its pool is drawn from, and its journal used."""
    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """Folders of run files, of any formats, .gz too, and run files."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for prompts with the conversation."""
    passages: Annotated[tuple[Path, ...], Option(metavar="PATH")] = ()
    """With --runs: the collection's passages."""


class ProbedJudges(JudgedPrompts, section="asking"):
    """Who is asked, and what."""

    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """The judge (default: JUDGE_MODEL, else local/qwen2.5-1.5b); may be repeated."""


class ProbePlan(
    ProbedResponses,
    ProbedJudges,
    AskingOptions,
    section="probing",
    main="runs topics passages criteria prompt model base-url kinds items out dry-run max-cost",
):
    """Everything `judge probe` can be told."""

    items: Annotated[Positive, Option(metavar="N")] = 30
    """Responses that are drawn."""
    kinds: Annotated[tuple[ProbeKind, ...], Option(metavar="KIND")] = KINDS
    """Kinds of alterations (default all)."""
    margin: Annotated[AboveZero, Option(metavar="M")] = cards.MARGIN
    """The shift, in levels of the scale, that does not matter."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of the draw and of the alterations."""
    out: Annotated[Path, Option(short="o", metavar="DIR", section="output")]
    """Folder for tables, picture, twins and journal."""
    certificate: Annotated[Path | None, Option(metavar="FILE")] = None
    """The certificate (`certificate.json`) of this very judge; a copy that tells of the probe is written into --out."""
    replace: bool = False
    """Write over results of another configuration in --out."""

    def _check(self) -> None:
        if bool(self.runs) == (self.folder is not None):
            raise UsageError("expected either an output folder of `judge run` or `judge pool`, or runs (--runs)")
        if self.folder is not None and self.passages:
            raise UsageError("--passages is about runs (--runs): the folder has the passages of its pool")
        if self.folder is not None and self.profile is not None:
            raise UsageError("--profile is about runs (--runs): the folder has runs that were read")


Posed = tuple[Criterion, ProbeItem, Sequence[tuple[Probe, Twin | Undefined]]]
"""A prompt, an item, and each probe of the prompt with what it makes of the item."""


AskedKey = tuple[str, str, str | None]
"""Digest of the prompt, response id of the item, and the name of the probe: None for the item as it is."""


class ProbeInputs:
    """A plan with its inputs read, its items drawn and their twins made; nothing has been written or sent.

    A dry run needs no `keys`.
    """

    def __init__(self, plan: ProbePlan, *, keys: bool = True, steps: Steps = quiet) -> None:
        check_apart(plan.out, filter(None, [plan.folder]), plan.runs)
        self.plan = plan
        self.kinds = kinds = tuple(kind for kind in KINDS if kind in plan.kinds)
        """The kinds of probes, in the order of the tables."""
        chosen = choose_prompts(plan.criteria, plan.prompts, _usual(plan))
        self.criteria = tuple({prompt.digest: prompt for several in chosen.values() for prompt in several}.values())
        _check_criteria(self.criteria, kinds)
        names = tuple(dict.fromkeys(plan.models)) or opening.default_models()[-1:]
        self.judge = opening.open_judge(
            names, plan.options, self.criteria, plan.settings, keys=keys and not opening.recalls(plan.out)
        )
        self.certificate = _certificate(plan, self.judge, self.criteria)
        pool, self.turns = _read(plan, unit_of(self.criteria), steps)
        self.drawn_from = pool
        check_unit(self.criteria, pool.unit)
        steps(Step("drawing items and altering them"))
        with_passages = any("passages" in criterion.inputs for criterion in self.criteria)
        seed = plan.resampling_seed
        self.items = draw_items(pool, plan.items, seed, with_passages=with_passages, turns=self.turns)
        if not self.items:
            raise InputError(
                f"{plan.folder or ', '.join(map(str, plan.runs))}: no {UNITS[pool.unit].nouns.response} can be drawn"
                + ("; --passages FILE gives the texts of the passages" if with_passages and pool.responses else "")
            )
        turn_ids = {item.response.turn_id for item in self.items}
        opening.check_turns(self.criteria, turn_ids, self.turns or {}, plan.topics)
        self.posed: list[Posed] = []
        self.asked: dict[AskedKey, Task] = {}
        """What each model is asked: about every item, and about the twins that there are."""
        twins: list[Twin] = []
        for criterion in self.criteria:
            probes = probes_of(criterion, kinds)
            for item in self.items:
                made = [(probe, make_twin(probe, item, criterion, seed)) for probe in probes]
                self.posed.append((criterion, item, made))
                self.asked[_key_of(criterion, item)] = Task(item.response, criterion)
                for probe, twin in made:
                    if isinstance(twin, Twin):
                        twins.append(twin)
                        altered = twin_response(item, twin, probe.name.replace(" ", "-"))
                        self.asked[_key_of(criterion, item, probe)] = Task(altered, criterion)
        self.tasks = tuple(self.asked.values())
        self.pool = Pool((), {**pool.passages, **passages_of(twins)}, ())
        """The passages of items and twins."""
        self.incomplete = 0
        if with_passages:
            self.incomplete = sum(not is_complete(response, pool) for response in pool.responses)
        """Responses that could not be drawn, because a used passage has no text."""
        self.known = () if plan.folder is None else (plan.folder / JOURNAL,)
        """The journal of the judged folder, whose answers need not be paid for again."""
        self.configured = self._configured()
        """Everything that determines the results, for the manifest."""

    def _configured(self) -> dict[str, Any]:
        plan = self.plan
        pool = self.drawn_from
        return {
            **({} if plan.topics is None else {"topics": sha256(stored_topics(plan.topics))}),
            "pool": sha256(pool_jsonl(pool)),
            "passages": sha256(passages_jsonl(pool)),
            "criteria": {prompt.prompt_id: prompt.digest for prompt in self.criteria},
            "judge": [model.name for model in self.judge.models],
            "options": opening.judging_options(plan.options, self.judge.models),
            "parser": PARSER_VERSION,
            "renderer": RENDERER_VERSION,
            "kinds": list(self.kinds),
            "items": plan.items,
            "margin": plan.margin,
            "seed": plan.resampling_seed,
            "certificate": self.certificate.digest if self.certificate is not None else None,
        }


def _key_of(criterion: Criterion, item: ProbeItem, probe: Probe | None = None) -> AskedKey:
    return criterion.digest, item.response.response_id, None if probe is None else probe.name


def _check_criteria(criteria: Sequence[Criterion], kinds: tuple[ProbeKind, ...]) -> None:
    """Refuse two prompts of one name, which no table could tell apart, and a prompt that no probe is for."""
    first: dict[str, Criterion] = {}
    for criterion in criteria:
        if not probes_of(criterion, kinds):
            raise UsageError(f"{criterion.prompt_id}: no probe of the kind {' or '.join(kinds)} is for it")
        other = first.setdefault(criterion.prompt_id, criterion)
        if other is not criterion:
            raise UsageError(f"{other.file} and {criterion.file} are both called {criterion.prompt_id}: rename one")


def _certificate(plan: ProbePlan, judge: Judge, criteria: Sequence[Criterion]) -> Certificate | None:
    """The certificate of a plan; one of another judge is refused before anything is asked."""
    if plan.certificate is None:
        return None
    certificate = read_certificate(file_in(plan.certificate, "certificate.json"))
    differing: list[str] = []
    for model in judge.models:
        options = opening.judging_options(plan.options, (model,))
        for criterion in criteria:
            different = different_items(match_run(certificate, [criterion], model.name, options))
            if not different:
                return certificate
            differing.append(f"{criterion.prompt_id} by {model.name}: {different}")
    raise UsageError(f"the certificate is of another judge ({'. '.join(differing)})")


def different_items(matches: Sequence[Match]) -> str:
    """What a certificate says otherwise than what is found here, in words; empty if nothing."""
    return "; ".join(f"{m.item}: {m.certified} certified, {m.found} here" for m in matches if not m.same)


def _usual(plan: ProbePlan) -> tuple[str, ...]:
    """What judges are probed for where the user names no criteria."""
    if plan.criteria or plan.prompts:
        return ()
    if plan.folder is not None:
        return criteria_of_pool(OutputFolder(plan.folder).pool.unit)
    return usual_criteria(find_sources(plan.runs), plan.profile)


def _read(plan: ProbePlan, unit: JudgedUnit, steps: Steps) -> tuple[Pool, dict[str, Turn] | None]:
    if plan.folder is None:
        pooling = Pooling(
            runs=plan.runs,
            topics=plan.topics,
            profile=plan.profile,
            unit=unit,
            passages=plan.passages or None,
            screen="off",
        )
        pooled = pool_runs(pooling, steps)
        if not pooled.pool.responses:
            raise InputError(UNITS[unit].words.none_left, pooled.submitted.problems)
        return pooled.pool, pooled.turns
    pool = OutputFolder(plan.folder).pool
    return pool, turns_shown(pool, topic_turns(plan.topics))


PROBE_RECORD = "probe.sha256"
CERTIFICATE = "certificate.json"
PROBED = "probed"
_GROWING = frozenset({"items", "kinds", "margin", "certificate"})
"""Keys of a configuration that a later call may change: the same twins are asked about, or more of them."""


class ProbeOutcome(Record, frozen=True):
    """What a probe found."""

    card: cards.ProbeCard
    pairs: tuple[ProbePair, ...]
    certificate: Certificate | None
    """The certificate with the probe in it; None without one, or where it is of another judge."""
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    accounts: tuple[JudgeAccount, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether some judge fails a probe."""
        return any(judge.words["fails"] for judge in self.card.judges)

    @property
    def shows_nothing(self) -> bool:
        """Whether some judge holds in no row: nothing that it was probed for is shown."""
        return not all(judge.words["holds"] for judge in self.card.judges)


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
        inputs = ProbeInputs(plan, steps=shown.steps)
        changed = _check_out(inputs)
        with Asking(JournalPlace(plan.out, inputs.known), inputs.pool, inputs.turns, shown) as asking:
            unfinished = {MANIFEST: _manifest(inputs, UNFINISHED)}
            replace_folder(plan.out, unfinished, PROBE_RECORD, more=not changed)
            results = asking.ask(inputs.judge, inputs.tasks)
            notes = asking.notes(inputs.judge.models, results)
        shown.steps(Step("making tables and pictures"))
        return _outcome(inputs, results, notes, asking.accounts)


def forecast_probe(plan: ProbePlan, steps: Steps = quiet) -> JobForecast:
    """Count what `probe_judges` would send beyond what the journals hold."""
    inputs = ProbeInputs(plan, keys=False, steps=steps)
    if plan.out.exists():
        _check_out(inputs)
    with AskingForecast(JournalPlace(plan.out, inputs.known), inputs.pool, inputs.turns) as forecasts:
        forecast = forecasts.forecast(inputs.judge, inputs.tasks)
    twins = len(inputs.tasks) - len(inputs.items) * len(inputs.criteria)
    return JobForecast({"items": len(inputs.items), "twins": twins}, forecast)


def _check_out(inputs: ProbeInputs) -> bool:
    """Refuse a folder with other results; whether it holds a probe of another configuration."""
    out = inputs.plan.out
    replace = inputs.plan.replace
    return check_folder(out, inputs.configured, trial=False, replace=replace, may_differ=_GROWING, record=PROBE_RECORD)


def _outcome(
    inputs: ProbeInputs,
    results: Sequence[Judgment | Failure],
    notes: tuple[str, ...],
    accounts: tuple[JudgeAccount, ...],
) -> ProbeOutcome:
    """What the results come to, by model and then in the order of the tasks; the files are written."""
    plan = inputs.plan
    overlap = _overlap(inputs)
    size = len(inputs.tasks)
    pairs: list[ProbePair] = []
    judges: list[cards.ProbedJudge] = []
    for number, model in enumerate(inputs.judge.models):
        answers = dict(zip(inputs.asked, results[number * size : (number + 1) * size], strict=True))
        beside = {} if backend_facts(model.name).baseline else overlap
        by_judge = [*_pairs(inputs, model.name, answers, beside)]
        pairs += by_judge
        judges += _probed_judges(inputs, model, [*answers.values()], by_judge)
    card = cards.ProbeCard(
        schema=cards.PROBE_LAYOUT,
        judge_version=__version__,
        seed=plan.resampling_seed,
        margin=plan.margin,
        items=len(inputs.items),
        topics=len({item.response.topic_id for item in inputs.items}),
        pooled=len(inputs.drawn_from.responses),
        incomplete=inputs.incomplete,
        judges=tuple(judges),
    )
    files = {
        cards.CARD: json_bytes(card),
        "probe.tsv": cards.probe_tsv(card),
        "probe.md": cards.probe_markdown(card),
        "twins.jsonl": jsonl_bytes(pairs),
        **cards.probe_pictures(card),
    }
    certificate = None
    if inputs.certificate is not None:
        certificate, unbound = with_probe(inputs.certificate, card, sha256(files[cards.CARD]), inputs.criteria)
        notes += unbound
        if certificate is not None:
            files[CERTIFICATE] = json_bytes(certificate)
    files[MANIFEST] = _manifest(inputs, PROBED)
    replace_folder(plan.out, files, PROBE_RECORD, last=CERTIFICATE)
    notes += tuple(undrawn("pictures of the shifts"))
    failures = tuple(result for result in results if isinstance(result, Failure))
    return ProbeOutcome(
        card=card, pairs=tuple(pairs), certificate=certificate, failures=failures, notes=notes, accounts=accounts
    )


def _manifest(inputs: ProbeInputs, status: str) -> bytes:
    return job_manifest(status, inputs.configured, schema=SCHEMA, python=platform.python_version())


def _overlap(inputs: ProbeInputs) -> dict[AskedKey, Judgment | Failure]:
    """What word overlap says of the tasks under the prompts that it can grade under. It costs nothing."""
    graded = {criterion.digest for criterion in inputs.criteria if opening.takes(opening.OVERLAP, criterion)}
    tasks = {key: task for key, task in inputs.asked.items() if task.criterion.digest in graded}
    results = opening.ask_free(opening.OVERLAP, [*tasks.values()], inputs.pool, inputs.turns)
    return dict(zip(tasks, results, strict=True))


def _pairs(
    inputs: ProbeInputs,
    judge: str,
    answers: Mapping[AskedKey, Judgment | Failure],
    overlap: Mapping[AskedKey, Judgment | Failure],
) -> Iterator[ProbePair]:
    """The pairs of one judge in the order of the prompts, items and probes, by what it and word overlap answered."""
    for criterion, item, twins in inputs.posed:
        scale = criterion.scale
        response = item.response
        clean = answers[_key_of(criterion, item)]
        clean_words = standing(overlap.get(_key_of(criterion, item)), scale)
        for probe, made in twins:
            twin = made if isinstance(made, Twin) else None
            altered = answers.get(_key_of(criterion, item, probe))
            words = standing(overlap.get(_key_of(criterion, item, probe)), scale)
            yield ProbePair(
                prompt=criterion.prompt_id,
                judge=judge,
                probe=probe.name,
                response_id=response.response_id,
                turn_id=response.turn_id,
                topic_id=response.topic_id,
                canary=twin.canary if twin else None,
                wants=twin.wants if twin else None,
                change=twin.change if twin else None,
                inapplicable=made.reason if isinstance(made, Undefined) else None,
                clean=standing(clean, scale),
                altered=standing(altered, scale),
                missing=why_missing(clean, altered) if twin else None,
                overlap_clean=clean_words.exact if clean_words else None,
                overlap_altered=words.exact if words else None,
            )


def _probed_judges(
    inputs: ProbeInputs, model: Model, answers: Sequence[Judgment | Failure], pairs: Sequence[ProbePair]
) -> Iterator[cards.ProbedJudge]:
    for criterion in inputs.criteria:
        under_prompt = [pair for pair in pairs if pair.prompt == criterion.prompt_id]
        steps = len(criterion.scale.levels) - 1
        returned: set[str] = set()
        for answer in answers:
            if isinstance(answer, Judgment) and answer.model and answer.criterion_digest == criterion.digest:
                returned.add(answer.model)
        rows = []
        for probe in probes_of(criterion, inputs.kinds):
            by_probe = [pair for pair in under_prompt if pair.probe == probe.name]
            rows.append(cards.probe_row(probe, by_probe, steps, inputs.plan.margin))
        yield cards.ProbedJudge(
            criterion=criterion.name,
            prompt=criterion.prompt_id,
            prompt_digest=criterion.digest,
            judge=model.name,
            options=opening.judging_options(inputs.plan.options, (model,)),
            models_returned=tuple(sorted(returned)),
            parser=PARSER_VERSION,
            renderer=RENDERER_VERSION,
            levels=steps + 1,
            rows=tuple(rows),
            canaries=cards.canary_rows(under_prompt, steps),
        )


def with_probe(
    certificate: Certificate, card: cards.ProbeCard, digest: str, criteria: Sequence[Criterion]
) -> tuple[Certificate | None, tuple[str, ...]]:
    """The certificate with the probe in the entries that it is of, and a sentence for each entry that it is not of.

    The certificate is None if the probe is of none of its entries.
    """
    by_digest = {criterion.digest: criterion for criterion in criteria}
    entries: list[Certified] = []
    notes: list[str] = []
    for entry in certificate.certified:
        differing: list[str] = []
        for judge in card.judges:
            if judge.criterion != entry.criterion:
                continue
            criterion = by_digest[judge.prompt_digest]
            returned = {judge.criterion: judge.models_returned}
            different = different_items(match_run(certificate, [criterion], judge.judge, judge.options, returned))
            if not different:
                entries.append(msgspec.structs.replace(entry, probed=_certified(card, judge, digest)))
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


def _certified(card: cards.ProbeCard, judge: cards.ProbedJudge, digest: str) -> CertifiedProbe:
    rows = tuple(
        CertifiedRow(
            probe=row.probe,
            expects=row.expects,
            missing=row.missing,
            measure=row.measure,
            moved=row.moved.value,
            word=row.word,
        )
        for row in judge.rows
    )
    canaries = len({row.canary for row in judge.canaries})
    return CertifiedProbe(
        card=digest,
        items=card.items,
        topics=card.topics,
        seed=card.seed,
        margin=card.margin,
        canaries=canaries,
        rows=rows,
    )
