"""The whole line in one call: what `judge run` does, and its dry run, for use from Python."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from judge.ask.asking import Asking, CallEngine, Judge
from judge.ask.forecast import AskingForecast, JobForecast, ModelForecast
from judge.ask.progress import JobProgress, Progress, job_progress
from judge.ask.records import Failure, Judgment
from judge.ask.results import StoredResults, kinds_of
from judge.ask.returned import certainty_notes, judge_notes, mask_notes
from judge.io.files import json_bytes
from judge.io.folder import FileContent, replace_folder
from judge.io.ids import Cluster, clustering
from judge.io.steps import ProgressLine, Step
from judge.jobs.answers import RESULTS, results_csv
from judge.jobs.filled import Filled, filled
from judge.jobs.folder import INDEX, index_markdown, listed_names, pool_files, result_files
from judge.jobs.folder import Outcome as Outcome
from judge.jobs.manifest import MANIFEST, RECORD, looks, pool_manifest, reported
from judge.jobs.pooling import Pooled
from judge.jobs.recheck import ask_again, expected_again
from judge.jobs.run_inputs import Plan, RunInputs, check_out, open_engine
from judge.results.qrels import graded_rows
from judge.results.tables import result_tables
from judge.results.told import told_results
from judge.results.used import UsedPassages, used_passages
from judge.units import UNITS


def run(
    plan: Plan, report: Callable[[Progress], None] | None = None, *, progress: bool | ProgressLine = False
) -> Outcome:
    """Do the whole line: read, check, pool, judge, write.

    `report`: called after each judgment. `progress`: show a bar in a notebook or on a terminal, elsewhere a line now
    and then; or the line to show it on.
    """
    with job_progress(progress, report) as shown:
        return carry_out(RunInputs(plan, steps=shown.steps), shown)


def carry_out(inputs: RunInputs, progress: JobProgress | None = None) -> Outcome:
    """Ask the judge and write the output folder; where passages are judged too, that of the responses first."""
    plan = inputs.plan
    parts = (inputs,) if inputs.passages is None else (inputs, inputs.passages)
    names = tuple(dict.fromkeys(str(name) for part in parts for name in part.plan.judges))
    # Nothing is asked where one of the folders cannot be written.
    for part in parts:
        check_out(part)
    with (
        reported(inputs.out, RECORD),
        open_engine(plan.engine, plan.address, plan.workers, names, plan.options) as engine,
    ):
        return _carry_out(inputs, progress or JobProgress(), engine)


def _carry_out(inputs: RunInputs, progress: JobProgress, engine: CallEngine | None, spent: float = 0.0) -> Outcome:
    """`spent`: US dollars that went of the budget before."""
    plan = inputs.plan
    out = inputs.out
    pooled = inputs.pooled
    changed = check_out(inputs)
    with Asking(
        place=inputs.place, pool=pooled.pool, turns=pooled.turns, progress=progress, engine=engine, spent=spent
    ) as asking:
        asking.prepare(inputs.judge.models[0])
        files: dict[str, FileContent] = pool_files(pooled)
        options = plan.chosen
        if plan.topics is not None and not options:
            # A report reads the conversations there; a call from Python records no other option.
            options = {"topics": str(plan.topics)}
        manifest = pool_manifest(inputs.configured, pooled.submitted, pooled.pool, plan.argv, options)
        replace_folder(out, {MANIFEST: json_bytes(manifest)} | files, RECORD, more=not changed)
        replies = asking.ask(inputs.judge, inputs.asked)
        outcome = _outcome(inputs, asking, replies)
        manifest_bytes = _manifest(manifest, inputs, outcome, replies)
        progress.steps(Step("writing results"))
        _write_results(outcome, pooled, files, manifest_bytes)
        if inputs.passages is not None:
            # The responses stand in their folder, complete, whatever becomes of the passages.
            passages = _carry_out(inputs.passages, progress, engine, asking.spent)
            used = used_of(outcome, passages, plan.cluster)
            outcome = msgspec.structs.replace(outcome, passages=passages, used=used)
            _write_results(outcome, pooled, files, manifest_bytes)
    return outcome


def used_of(responses: Outcome, passages: Outcome, cluster: Cluster) -> UsedPassages | None:
    """Which of the passages that responses use are relevant, by people where they graded and else by the judge."""
    people: dict[str, dict[str, int]] = {}
    for row in passages.filled.people if passages.filled is not None else ():
        people.setdefault(row.turn_id, {})[row.item_id] = row.grade
    return used_passages(
        responses.pool,
        responses.results,
        responses.criteria,
        listed=passages.pool,
        grades=passages.results,
        relevance=passages.criteria[0],
        people=people,
        cluster=cluster,
    )


def _write_results(outcome: Outcome, pooled: Pooled, pool: Mapping[str, FileContent], manifest: bytes) -> None:
    files = {**pool, **result_files(outcome)}
    tables = pooled.submitted.tables
    if tables is not None and UNITS[outcome.pool.unit].whole_response:
        files[RESULTS] = results_csv(tables.sources, outcome.results, outcome.pool, outcome.criteria)
    files[INDEX] = index_markdown(files, outcome.pool.unit)
    files[MANIFEST] = manifest
    replace_folder(outcome.out, files, RECORD)


def _outcome(inputs: RunInputs, asking: Asking, replies: StoredResults) -> Outcome:
    """What the replies come to, once a part is asked again where the plan says so."""
    plan = inputs.plan
    pool = inputs.pooled.pool
    criteria = inputs.criteria
    jury = inputs.jury
    rechecked = ask_again(inputs, asking, replies)
    asking.progress.steps(Step("computing results"))
    results, notes = jury.decide(replies, inputs.out) if jury is not None else (replies, None)
    both: Filled | None = None
    if plan.fill is not None:
        judged = graded_rows(results, criteria[0], listed_names(pool))
        both = filled(plan.fill, criteria[0], judged, (inputs.pooled.turns or pool.turns).keys())
    tables = result_tables(pool, results, criteria, plan.cluster, looks(inputs.pooled.configured))
    return Outcome(
        out=inputs.out,
        pool=pool,
        criteria=criteria,
        results=told_results(results, pool, inputs.pooled.turns or pool.turns),
        tables=tables,
        statement=inputs.certified(_returned(results), results),
        notes=notes,
        model_notes=(
            *inputs.left_out,
            *asking.model_notes(inputs.judge.models, replies),
            *asking.served_notes(inputs.judge, replies),
        ),
        accounts=asking.accounts,
        rechecked=rechecked,
        label_notes=certainty_notes(replies) if plan.logprobs else (),
        clustered=clustering((response.topic_id for response in pool.responses), plan.cluster),
        judge_notes=judge_notes(replies),
        masked=mask_notes(replies),
        filled=both,
    )


def _manifest(pooled: dict[str, Any], inputs: RunInputs, outcome: Outcome, replies: StoredResults) -> bytes:
    """The manifest of a finished run; a rerun gives the same bytes, because no time of day is recorded."""
    plan = inputs.plan
    judge = inputs.judge
    notes = outcome.notes
    counts = {**pooled["counts"], "results": _counts(outcome.results)}
    rare: dict[str, Any] = {
        "cluster": None if plan.cluster == "topic" else plan.cluster,
        "recheck": outcome.rechecked.recorded() if outcome.rechecked else None,
        "judge_notes": [*outcome.model_notes, *outcome.masked] or None,
    }
    if notes is not None:
        counts["members"] = _counts(notes.said)
        rare["jury"] = {name: notes.about(name) for name in notes.verdicts}
    return json_bytes(
        {
            **pooled, "status": "complete" if plan.limit is None else "trial",
            "asked": {"limit": plan.limit, "judgments": len(inputs.tasks), "max_tokens": plan.options.max_tokens},
            "prices": judge.prices,
            "spending": [{"judge": row.judge, **msgspec.structs.asdict(row.results)} for row in outcome.accounts],
            "certificate": outcome.statement, "counts": counts,
            "models_returned": sorted({kind.model for kind in kinds_of(replies) if kind.model}),
            **{name: value for name, value in rare.items() if value is not None},
        }
    )  # fmt: skip


def _counts(results: Iterable[Judgment | Failure]) -> dict[str, int]:
    """How many judgments there are, and how many are missing, by the reason."""
    counts: Counter[str] = Counter()
    for kind, number in kinds_of(results).items():
        counts[kind.reason or "judgment"] += number
    return counts


def _returned(results: Iterable[Judgment | Failure]) -> dict[str, list[str]]:
    """The models that the provider named, by criterion."""
    models: dict[str, set[str]] = {}
    for kind in kinds_of(results):
        if kind.model:
            models.setdefault(kind.criterion, set()).add(kind.model)
    return {criterion: sorted(names) for criterion, names in models.items()}


def dry_run(inputs: RunInputs) -> JobForecast:
    """Count what carrying out a plan would send to each model beyond what the journals hold.

    Of the counts, `judgments` is the product of the four before it. The calls that are not `rechecked` are what is left
    of the judgments when the four counts after it are taken away; they are fewer where one call has several questions.
    """
    if inputs.out.exists():
        check_out(inputs)
    plan = inputs.plan
    pooled = inputs.pooled
    jury = inputs.jury
    with AskingForecast(inputs.place, pooled.pool, pooled.turns) as forecasts:
        firsts = forecasts.forecast(inputs.judge, inputs.asked)
        again: list[ModelForecast] = []
        for model in inputs.judge.models:
            alone = Judge((model,), plan.options, inputs.judge.settings)
            again += forecasts.forecast(alone, expected_again(inputs, model, inputs.judge.of(model, inputs.asked)))
    prompts = sum(map(len, jury.prompts.values())) if jury else len(inputs.criteria)
    samples = jury.samples if jury else 1
    models = 1 if inputs.judge.parts else len(inputs.judge.models)
    judgments = len(pooled.pool.responses) * prompts * models * samples
    counts = {
        "responses": len(pooled.pool.responses),
        "prompts": prompts,
        "models": models,
        "samples": samples,
        "judgments": judgments,
        "recalled": sum(row.recalled for row in firsts),
        "without_evidence": sum(row.without_evidence for row in firsts),
        "shared": sum(row.shared for row in firsts),
        "left_out": judgments - sum(row.judgments for row in firsts),
        "rechecked": sum(row.expected.calls for row in again),
    }
    return JobForecast(counts, tuple(map(_with_recheck, firsts, again)))


def _with_recheck(first: ModelForecast, again: ModelForecast) -> ModelForecast:
    """What a model is asked, with the calls of its recheck."""
    most = None if first.most is None or again.most is None else first.most + again.most
    return msgspec.structs.replace(first, expected=first.expected + again.expected, most=most)
