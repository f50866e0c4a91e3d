"""The whole line in one call: what `judge run` does, for use from Python."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from judge.ask.account import Account, JudgeAccount
from judge.ask.cascade import cascade_notes
from judge.ask.cascading import ask_cascade
from judge.ask.certainty import certainty_notes
from judge.ask.progress import FetchReporter, Progress, Reporter
from judge.ask.questions import filler_notes
from judge.ask.records import Failure, Judgment
from judge.ask.returned import alone_notes, model_notes, server_notes
from judge.ask.several import ask
from judge.ask.stored_results import StoredResults
from judge.calibrate.certificate import CertificateStatement
from judge.crowd.notes import JuryNotes
from judge.files.content import FileContent
from judge.files.folder import replace_folder
from judge.files.progress import ProgressLine
from judge.harness.cascade import cascade_manifest
from judge.harness.engine import open_engine
from judge.harness.folder import UNCALIBRATED, pool_files, result_files
from judge.harness.index import INDEX, index_markdown
from judge.harness.judged import compared
from judge.harness.manifest import JOURNAL, MANIFEST, RECORD, UNFINISHED, manifest_bytes
from judge.harness.prepared import Plan, Prepared, check_out, prepare
from judge.harness.recheck import Rechecked, ask_again
from judge.harness.reported import reported
from judge.models.backends import backend_facts
from judge.models.journal import Journal, looked_ahead, open_journal
from judge.models.records import Completion
from judge.pool.build import lacking_texts
from judge.pool.records import Pool
from judge.records import Criterion, Record
from judge.results.details import details
from judge.results.leaderboard import leaderboard
from judge.results.rows import LeaderboardRow, RunDifference
from judge.text.steps import Step, Steps, quiet
from judge.text.table import Table


class Outcome(Record, frozen=True):
    """What the whole line gave: the pool, the results and the leaderboard."""

    out: Path
    pool: Pool
    criteria: tuple[Criterion, ...]
    results: StoredResults
    leaderboard: Table[LeaderboardRow]
    differences: Table[RunDifference]
    """Every two runs."""
    statement: CertificateStatement | None = None
    """What the certificate says, where there is one."""
    notes: JuryNotes | None = None
    """How far the members of a jury agree, and what each of them said; None without a jury."""

    model_notes: tuple[str, ...] = ()
    """In words, where the provider answered with another model than the one asked or with several, or where the judge
    could not be asked under a JSON schema."""
    accounts: tuple[JudgeAccount, ...] = ()
    """What the calls to each model took."""
    rechecked: Rechecked | None = None
    """What the second answers say; None without a recheck."""
    label_notes: tuple[str, ...] = ()
    """In words, how many judgments have label probabilities and how sure these are, where they were asked for."""
    clustered: tuple[str, ...] = ()
    """In words, over what the intervals are if it is not topics."""
    cascade_notes: tuple[str, ...] = ()
    """In words, how many judgments of each criterion the checker of a cascade settled; empty without a cascade."""

    @property
    def banner(self) -> str:
        """What stands over every output."""
        return self.statement.banner if self.statement else UNCALIBRATED

    @property
    def failures(self) -> Table[Failure]:
        """The judgments that are missing."""
        return Table(result for result in self.results if isinstance(result, Failure))


def carry_out(
    prepared: Prepared,
    report: Callable[[Progress], None] | None = None,
    fetching: Callable[[str, int, int], None] | None = None,
    steps: Steps = quiet,
) -> Outcome:
    """Ask the judge and write the output folder.

    Args:
        prepared: From `prepare`.
        report: Called after each judgment.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        steps: Called as the results are computed and written.

    Raises:
        InputError: The output folder cannot be used or holds results of another configuration.
        OperationalError: The run stopped early; the same call goes on from there.
    """
    plan, out, jury = prepared.plan, prepared.out, prepared.jury
    pooled, criteria, pool = prepared.pooled, prepared.criteria, prepared.pooled.pool
    changed = check_out(prepared)
    patience = plan.settings.max_wait
    with (
        reported(out, RECORD),
        open_journal(out / JOURNAL, plan.journal, patience) as journal,
        open_engine(plan.engine, plan.address, plan.workers, prepared.names, plan.options) as engine,
    ):
        if plan.extend is not None and not prepared.in_place and (Path(plan.extend) / JOURNAL).exists():
            journal.adopt(Path(plan.extend) / JOURNAL)
        prepared.models[0].prepare(fetching or (lambda what, done, total: None))
        files: dict[str, FileContent] = pool_files(pooled)
        unfinished = manifest_bytes(
            plan.argv, prepared.configured, UNFINISHED, pooled.submitted, pool, options=plan.chosen
        )
        replace_folder(out, {MANIFEST: unfinished} | files, RECORD, more=not changed)
        spent, account = 0.0, Account()

        def watched(progress: Progress) -> None:
            nonlocal spent
            spent = progress.cost
            if report is not None:
                report(progress)

        if prepared.cascade is None:
            replies = ask(
                prepared.models,
                prepared.asked,
                journal,
                pool,
                turns=pooled.turns,
                settings=plan.settings,
                report=watched,
                fetching=fetching,
                account=account,
                folder=out,
                engine=engine,
            )
        else:
            checker = prepared.cascade.checker.name
            replies = ask_cascade(
                prepared.cascade,
                prepared.models[0],
                prepared.asked,
                journal,
                pool,
                turns=pooled.turns,
                settings=plan.settings,
                checking=lambda progress: steps(Step(checker, progress.done, progress.total, free=progress.recalled)),
                report=watched,
                fetching=fetching,
                account=account,
                folder=out,
            )
        if plan.recheck is not None:
            steps(Step("asking a part again"))
        rechecked = ask_again(prepared, replies, journal, spent, report, account, engine)
        steps(Step("computing results"))
        results, notes = jury.decide(replies, out) if jury is not None else (replies, None)
        rows = leaderboard(pool, results, criteria, cluster=plan.cluster)
        certified = prepared.certified(_returned(results))
        pairs = compared(pool, results, criteria, cluster=plan.cluster)
        beside = details(pool, results, criteria, cluster=plan.cluster)
        said = (*model_notes(replies), *filler_notes((model.name for model in prepared.models), journal))
        if any(backend_facts(name).checker for name in prepared.judges):
            # A reply that several judgments share is one.
            once = {reply.request_digest: reply for reply in replies if isinstance(reply, Judgment)}
            said += alone_notes(_recorded(journal, once.values()))
        if prepared.servers:
            said += server_notes(_recorded(journal, replies))
        outcome = Outcome(
            *(out, pool, criteria, results, rows, pairs, certified, notes, said, account.rows()),
            rechecked=rechecked,
            label_notes=certainty_notes(replies) if plan.options.logprobs else (),
            clustered=prepared.clustered,
            cascade_notes=cascade_notes(replies),
        )
        partial = _on_partial_evidence(pool, results, criteria)
        told = (*outcome.cascade_notes, *outcome.model_notes, *outcome.label_notes)
        files |= result_files(
            results, criteria, rows, outcome.banner, notes, partial, told, pairs, outcome.clustered, beside
        )
        files |= rechecked.files() if rechecked else {}
        steps(Step("writing results"))
        asked = {"limit": plan.limit, "judgments": len(prepared.tasks)}
        status = "complete" if plan.limit is None else "trial"
        files[INDEX] = index_markdown(files, pool.unit)
        files[MANIFEST] = manifest_bytes(
            plan.argv,
            prepared.configured,
            status,
            pooled.submitted,
            pool,
            results,
            asked,
            certified,
            notes,
            prices=prepared.prices,
            spending=[row.results for row in outcome.accounts],
            options=plan.chosen,
            cluster=plan.cluster,
            recheck=rechecked.recorded() if rechecked else None,
            servers=prepared.servers,
            cascade=cascade_manifest(prepared.cascade, replies) if prepared.cascade else None,
        )
        replace_folder(out, files, RECORD)
    return outcome


def run(plan: Plan, report: Callable[[Progress], None] | None = None, *, progress: bool = False) -> Outcome:
    """Do the whole line: read, check, pool, judge, write.

    Args:
        plan: What to do.
        report: Called after each judgment.
        progress: Show a bar in a notebook or on a terminal, elsewhere a line now and then.

    Raises:
        JudgeError: `prepare` or `carry_out` failed; they say how.
    """
    if not progress:
        return carry_out(prepare(plan), report)
    with ProgressLine(sys.stderr) as line:
        prepared = prepare(plan, steps=line)
        with Reporter(prepared.judge, line, report) as reporter:
            return carry_out(prepared, reporter, FetchReporter(line), line)


def _recorded(journal: Journal, replies: Iterable[Judgment | Failure]) -> Iterator[tuple[str, Completion]]:
    """The judge and the completion of every judgment."""
    for reply in looked_ahead(replies, journal, lambda reply: filter(None, [reply.request_digest])):
        completion = journal.get(reply.request_digest) if isinstance(reply, Judgment) else None
        if completion is not None:
            yield reply.judge, completion


def _returned(results: Iterable[Judgment | Failure]) -> dict[str, list[str]]:
    """The models that the provider named, by criterion."""
    models: dict[str, set[str]] = {}
    for result in results:
        if isinstance(result, Judgment) and result.model:
            models.setdefault(result.criterion, set()).add(result.model)
    return {criterion: sorted(names) for criterion, names in models.items()}


def _on_partial_evidence(
    pool: Pool, results: Iterable[Judgment | Failure], criteria: Sequence[Criterion]
) -> dict[str, int]:
    """How many grades rest on some of the used passages only, by criterion whose prompt shows passages."""
    shown = {criterion.name for criterion in criteria if "passages" in criterion.inputs}
    partly = {response.response_id for response in pool.responses if lacking_texts(response, pool)}
    return Counter(
        result.criterion
        for result in results
        if isinstance(result, Judgment) and result.criterion in shown and result.response_id in partly
    )
