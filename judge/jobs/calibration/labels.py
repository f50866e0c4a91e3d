"""The labels that a calibration sets beside gold, read from files or given by the models it asks."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from judge.ask.account import JudgeAccount
from judge.ask.asking import Asking, JournalPlace, Judge
from judge.ask.criteria import bundled_criteria
from judge.ask.forecast import AskingForecast, JobForecast
from judge.ask.opening import check_prices, check_turns, open_one, recalls
from judge.ask.progress import JobProgress
from judge.ask.prompt import check_unit
from judge.ask.records import Failure, Judgment, Task
from judge.ask.results import FAILURES, JUDGMENTS, Labels, is_jury, labels_of
from judge.calibrate.certificate import Certificate, certified_options
from judge.calibrate.intake import in_pool, read_sources
from judge.calibrate.panel import JudgeColumn
from judge.calibrate.selection import choose
from judge.errors import InputError, OperationalError, UsageError
from judge.gold.examples import without_examples
from judge.gold.rows import GoldRow, match
from judge.gold.seal import Seal, read_sealed, seal_of
from judge.io.files import jsonl_bytes, published, sha256
from judge.io.ids import natural_key, own_turn_id
from judge.io.text import examples, shown
from judge.jobs.calibration.inputs import ASKING, CalibrationInputs, CalibrationPlan, gold_tasks, make_comparison
from judge.jobs.calibration.look import LookRecord, check_dev, check_sealed, open_test
from judge.jobs.manifest import MANIFEST
from judge.judges.model import Model, recorded_options
from judge.pool.bank import read_pool_folder
from judge.pool.conversation import turns_shown
from judge.records import Criterion


class LabeledGold(NamedTuple):
    """Gold rows and the labels of the same responses; the fields with a default are of calibrations that ask models."""

    rows: tuple[GoldRow, ...]
    labels: tuple[Labels, ...]
    """The labels, those of the baseline last."""
    record: LookRecord | None
    """The record of the look at sealed grades; None without any."""
    warnings: tuple[str, ...]
    files: Mapping[str, bytes] = {}
    """The files of what the models said, by name."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to each model took."""
    endpoints: Mapping[str, str] = {}
    """Judge to the address to which the environment moves it."""


def stored_labels(
    inputs: CalibrationInputs, now: datetime, check: Callable[[Sequence[Labels]], None] = lambda _: None
) -> LabeledGold:
    """The gold rows, and the labels of the plan's files together with the baseline.

    `check` refuses labels before any sealed grade is looked at.
    """
    plan = inputs.plan
    prompts = inputs.prompts
    pool = plan.pool
    # Where labels off the scale count as missing, files of columns are read with all of their grades.
    scale = inputs.scale if plan.off_scale == "error" else None
    # The list of disagreements alone shows rationales, and it has no item of a sealed part.
    explained = {row.turn_id for row in inputs.gold.rows}
    read = inputs.beside
    if read is None:
        read = read_sources(plan.judgments, pool, scale, explained=explained, off_scale=plan.off_scale)
    columns = _wanted(inputs, read)
    _check_turns(inputs, columns)
    check(columns)
    warnings = tuple(_find_prompts(prompts, columns))
    for labels in columns:
        if labels.pool is not None and labels.prompt:
            check_unit([prompts[labels.prompt]], labels.pool.unit)
    asked = {
        "gold": inputs.gold.digest,
        "labels": sorted(
            [labels.digest, labels.judge, labels.prompt or "", labels.prompt_digest or ""] for labels in columns
        ),
        "criterion": inputs.only,
        "scale": [plan.scale, plan.polarity, plan.gold_scale and os.fspath(plan.gold_scale)],
        "off_scale": plan.off_scale,
        **_decided_by(plan, inputs.certificate),
    }
    rows, everything, record = open_test(inputs, now, asked, columns, lambda rows: columns)
    return LabeledGold(rows, everything, record, warnings)


def _check_turns(inputs: CalibrationInputs, columns: Sequence[Labels]) -> None:
    """Refuse files of labels about other turns than the gold; of a pool it is known which turns it lacks."""
    if any(labels.pool is not None for labels in columns):
        return
    graded = {own_turn_id(row.turn_id) for row in inputs.gold.rows}
    judged = {own_turn_id(label.turn_id) for labels in columns for label in labels.labels}
    if graded and judged and graded.isdisjoint(judged):
        gold, labels = (examples(sorted(turns, key=natural_key), 3) for turns in (graded, judged))
        sources = ", ".join(dict.fromkeys(column.source for column in columns))
        raise InputError(
            f"{inputs.plan.gold[0]}: grades of other turns than the labels of {sources}: it has {gold}, the labels "
            f"{labels}"
        )


def _wanted(inputs: CalibrationInputs, columns: Sequence[Labels]) -> tuple[Labels, ...]:
    """The labels under the criterion that the plan names, or under its very prompt."""
    if inputs.only is None:
        return tuple(columns)
    of_criterion = os.fspath(inputs.plan.criterion or "") == inputs.only
    return tuple(
        labels
        for labels in columns
        if labels.prompt is None
        or (labels.prompt.partition("/")[0] == inputs.only if of_criterion else labels.prompt in inputs.prompts)
    )


def _find_prompts(prompts: dict[str, Criterion], columns: Sequence[Labels]) -> list[str]:
    """Add the prompts behind labels to the known ones; a warning for each prompt file that has changed since."""
    warnings: list[str] = []
    # By name only: a file of judgments must not make judge read some other path.
    bundled = {prompt.prompt_id: prompt for prompt in bundled_criteria()}
    for labels in columns:
        if labels.prompt is None:
            continue
        if labels.prompt not in prompts:
            known = bundled | prompts
            if labels.prompt not in known:
                raise UsageError(
                    f"{labels.source}: no prompt called {shown(labels.prompt)} comes with judge: give the file "
                    "of a prompt of your own with --prompt PATH"
                )
            prompts[labels.prompt] = known[labels.prompt]
        prompt = prompts[labels.prompt]
        if prompt.digest != labels.prompt_digest and not is_jury(labels.judge):
            # Warnings are published with the findings.
            warnings.append(published(f"{labels.source}: {prompt.file} has changed since these judgments were made"))
    return warnings


def resampling(plan: CalibrationPlan) -> dict[str, int | str]:
    """The options that the intervals depend on, besides the data."""
    options: dict[str, int | str] = {
        "seed": plan.resampling_seed,
        "replicates": plan.replicates,
        "permutations": plan.permutations,
    }
    return options if plan.cluster == "topic" else {**options, "cluster": plan.cluster}


def _decided_by(plan: CalibrationPlan, certificate: Certificate | None = None) -> dict[str, Any]:
    """The options of the verdict, as far as they are part of what is asked of the gold."""
    decided: dict[str, Any] = {
        "margin": plan.margin,
        "resampling": resampling(plan),
        "requirements": sorted(plan.requirements),
    }
    if certificate is not None:
        decided["margin"] = plan.carrying_margin
        decided["certificate"] = certificate.digest
    return decided


class CalibrationJudges:
    """The judges of a plan, open, and what they are asked about; what would stop it after calls stops it here."""

    def __init__(self, inputs: CalibrationInputs, *, dry: bool = False, beside: Sequence[Model] = ()) -> None:
        """Open the judges; `beside` are models that are asked something else, and may be priced too."""
        plan = inputs.plan
        gold = inputs.gold.rows
        if plan.pool is None or plan.out is None:
            raise UsageError(ASKING)
        self.inputs = inputs
        out = plan.out
        pool = read_pool_folder(plan.pool, "passages.jsonl")
        self.prompts = tuple(prompt for prompt in inputs.prompts.values() if inputs.only in (None, prompt.name))
        check_unit(self.prompts, pool.unit)
        path = seal_of(plan.test, plan.seal)
        self.seal: Seal | None = None
        """The seal of the test grades."""
        if plan.test is not None and path is not None:
            check_dev(gold)
            self.seal, _ = read_sealed(plan.test, path)
            check_sealed(plan.test, self.seal, gold, pool)
        graded = {row.turn_id for row in gold} | {item.turn_id for item in (self.seal.test.items if self.seal else ())}
        turns = turns_shown(pool, inputs.topics)
        pooled = {response.turn_id for response in pool.responses}
        check_turns(self.prompts, graded & pooled, turns or (), plan.topics)
        # All models are opened first, so that one that cannot be asked stops the job before another is paid.
        keys = not dry and not recalls(out)
        options = plan.options
        settings = plan.settings
        models = [open_one(name, options, self.prompts, settings, keys=keys) for name in dict.fromkeys(plan.models)]
        self.judges = tuple(Judge((model,), options, settings) for model in models)
        """A judge for each model."""
        priced = [*models, *beside]
        check_prices([model.name for model in priced], priced, settings)
        self.dev = tuple(row for row in gold if row.split != "test")
        """The gold that is not held out."""
        unjudged = (
            Labels(
                judge=str(plan.models[0]),
                prompt=prompt.prompt_id,
                prompt_digest=prompt.digest,
                source="",
                digest="",
                labels=(),
            )
            for prompt in self.prompts
        )
        make_comparison(inputs, self.dev, in_pool(tuple(unjudged), pool))
        if out.exists() and not out.is_dir():
            raise InputError(f"{out}: cannot be used as an output folder: it is none")
        if (out / MANIFEST).exists():
            raise InputError(
                f"{out}: holds the results of `judge run`, which asking would write over: choose another --out"
            )
        self.place = JournalPlace(out)
        self.pool = pool
        self.turns = turns

    def tasks(self, rows: Sequence[GoldRow], prompts: Sequence[Criterion]) -> tuple[Task, ...]:
        """What is asked about responses with gold, those left out that a prompt of the plan or of these shows."""
        plan = self.inputs.plan
        kept = without_examples(rows, (*self.prompts, *prompts), self.pool).rows
        return gold_tasks(kept, self.pool, prompts, plan.samples, str(plan.gold[0]))

    def sources(self, results: Sequence[Judgment | Failure]) -> tuple[Labels, ...]:
        """What models said, as labels."""
        return in_pool(labels_of(results, str(self.place.out), sha256(b"")), self.pool)


def ask_models(inputs: CalibrationInputs, now: datetime, progress: JobProgress) -> LabeledGold:
    """The gold rows, and what the models said; only the chosen judge is asked about responses with test grades."""
    opened = CalibrationJudges(inputs)
    judges = opened.judges
    wanted = opened.tasks(opened.dev, opened.prompts)
    results: list[Judgment | Failure] = []
    with Asking(opened.place, opened.pool, opened.turns, progress) as asking:
        for judge in judges:
            results += asking.ask(judge, wanted)
        # The judge of each criterion that is chosen by the grades that are not held out.
        panels, _ = make_comparison(inputs, opened.dev, opened.sources(results))
        chosen = [column for panel in panels if (column := choose(panel, "dev" if panel.split[0] == "dev" else "all"))]
        by_name = {judge.name: judge for judge in judges}
        endpoints: dict[str, str] = {}
        for judge in judges:
            endpoints.update((judge.name, model.endpoint) for model in judge.models if model.endpoint)
        asked = question_to_gold(inputs, chosen, endpoints)

        def held_out(rows: tuple[GoldRow, ...]) -> tuple[Labels, ...]:
            for column in chosen if rows else ():
                prompts = [inputs.prompts[column.prompt]] if column.prompt else []
                results.extend(asking.ask(by_name[column.judge], opened.tasks(rows, prompts)))
            return opened.sources(results)

        if opened.seal and any(isinstance(result, Failure) and result.reason == "budget" for result in results):
            raise OperationalError("the budget is spent before a judge is chosen: the test grades stay closed")
        # Asked before the seal is opened, so that the look names the very labels that it compares.
        rows, labels, record = open_test(inputs, now, asked, opened.sources(results), held_out)
        warnings = asking.notes([model for judge in judges for model in judge.models], results)
    return LabeledGold(
        rows=rows,
        labels=labels,
        record=record,
        warnings=warnings,
        files=answer_files(results),
        accounts=asking.accounts,
        endpoints=endpoints,
    )


def question_to_gold(
    inputs: CalibrationInputs, chosen: Sequence[JudgeColumn], endpoints: Mapping[str, str]
) -> dict[str, Any]:
    """What is asked of sealed grades, beside the panels."""
    plan = inputs.plan
    judges = sorted({column.judge for column in chosen} & endpoints.keys())
    moved = {judge: endpoints[judge] for judge in judges}
    return {
        **({"endpoints": moved} if moved else {}),
        "gold": inputs.gold.digest,
        "parameters": certified_options(recorded_options(plan.options)),
        **_decided_by(plan),
    }


def forecast_models(inputs: CalibrationInputs) -> JobForecast:
    """Count what `ask_models` would send; for test grades only the chosen judges, `test_judgments` on top at most."""
    opened = CalibrationJudges(inputs, dry=True)
    plan = inputs.plan
    gold = inputs.gold.rows
    prompts = opened.prompts
    wanted = opened.tasks(opened.dev, prompts)
    with AskingForecast(opened.place, opened.pool, opened.turns) as forecasts:
        rows = tuple(chain.from_iterable(forecasts.forecast(judge, wanted) for judge in opened.judges))
    criteria = {prompt.name: prompt for prompt in prompts}
    if opened.seal is None:
        held_out = len(opened.tasks([row for row in gold if row.split == "test"], tuple(criteria.values())))
    else:
        test = opened.seal.test
        held_out = min(test.rows, len(test.items) * len(criteria)) * plan.samples
    matched, unmatched = match(without_examples(opened.dev, prompts, opened.pool).rows, opened.pool, str(plan.gold[0]))
    counts = {
        "responses": len({response for response, criterion in matched if criterion in criteria}),
        "unmatched": sum(row.criterion in criteria for row in unmatched),
        "test_judgments": held_out,
    }
    return JobForecast(counts, rows)


def answer_files(results: Sequence[Judgment | Failure]) -> dict[str, bytes]:
    """The files of what the models said, by name, each sorted by judge and prompt."""
    ordered = sorted(
        results, key=lambda result: (natural_key(result.judge), natural_key(f"{result.criterion}/{result.variant}"))
    )
    return {
        JUDGMENTS: jsonl_bytes(result for result in ordered if isinstance(result, Judgment)),
        FAILURES: jsonl_bytes(result for result in ordered if isinstance(result, Failure)),
    }
