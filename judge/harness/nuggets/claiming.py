"""A judge asked what carries the claims of responses: what `judge nuggets claims` does, for use from Python."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judge.ask.account import JudgeAccount
from judge.ask.progress import Progress
from judge.ask.several import Fetching
from judge.ask.subjects import NUGGET_PRECISION
from judge.files.folder import replace_folder
from judge.files.paths import StrPath
from judge.harness.dry_run import ModelForecast
from judge.harness.nuggets.asking import (
    NUGGETS,
    NuggetAsking,
    NuggetAskPlan,
    answers_of,
    asking_manifest,
    check_asking,
    forecast_asking,
    open_asking,
    with_progress,
)
from judge.nuggets.claim_tasks import (
    ClaimQuestion,
    check_claim_prompt,
    claim_counts,
    claim_questions,
    claim_task,
    claimed,
)
from judge.nuggets.claims import CLAIM_FAILURES, CLAIMS, ClaimFailure, ResponseClaims, claims_jsonl
from judge.nuggets.pairs import spread_evenly
from judge.records import Record
from judge.text.table import Table

RECORD = "claims.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class NuggetClaimsPlan(NuggetAskPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets claims` can be told; a question is about the sentences of a response."""

    prompt: StrPath = NUGGET_PRECISION


class PreparedClaims(Record, frozen=True):
    """What is to be asked; nothing has been written or sent."""

    asking: NuggetAsking
    questions: tuple[ClaimQuestion, ...]


class NuggetClaims(Record, frozen=True):
    """What carries the sentences of responses by a judge, and what it took to ask."""

    claims: Table[ResponseClaims]
    failures: Table[ClaimFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


class ClaimsForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    nuggets: int
    forecast: ModelForecast


def prepare_claims(plan: NuggetClaimsPlan, *, keys: bool = True) -> PreparedClaims:
    """Read everything a plan names.

    Args:
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
    """
    asking = open_asking(plan, check_claim_prompt, keys=keys, beside=("passages.jsonl",))
    questions = claim_questions(asking.pool, asking.bank)
    check_asking(asking, {asked.response.turn_id for asked in questions}, "claims", "judge nuggets claims")
    return PreparedClaims(asking, spread_evenly(questions, plan.limit))


def label_claims(
    plan: NuggetClaimsPlan,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    *,
    progress: bool = False,
) -> NuggetClaims:
    """Ask a judge what carries each sentence of every response whose turn or topic has nuggets, and write the labels.

    Args:
        plan: What to do.
        report: Called after each response.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    prepared = prepare_claims(plan)
    if not progress:
        return _label(prepared, report, fetching)
    return with_progress(
        prepared.asking.model.name, report, lambda reporter, fetcher: _label(prepared, reporter, fetcher)
    )


def forecast_claims(plan: NuggetClaimsPlan) -> ClaimsForecast:
    """Count what `label_claims` would send beyond what the journal in the output folder holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prepared = prepare_claims(plan, keys=False)
    return ClaimsForecast(
        len(prepared.questions),
        len({nugget.nugget_id for asked in prepared.questions for nugget in asked.nuggets}),
        forecast_asking(prepared.asking, [claim_task(asked, prepared.asking.prompt) for asked in prepared.questions]),
    )


def _label(
    prepared: PreparedClaims, report: Callable[[Progress], None] | None, fetching: Fetching | None
) -> NuggetClaims:
    asking, plan = prepared.asking, prepared.asking.plan
    tasks = [claim_task(asked, asking.prompt) for asked in prepared.questions]
    answers = answers_of(asking, tasks, _manifest(prepared, "unfinished"), RECORD, report, fetching)
    claims, failures = claimed(prepared.questions, answers.results, asking.prompt)
    status = "complete" if plan.limit is None else "trial"
    files = {
        CLAIMS: claims_jsonl(claims),
        CLAIM_FAILURES: claims_jsonl(failures),
        NUGGETS: _manifest(
            prepared,
            status,
            labels=claim_counts(claims),
            missing=Counter(failure.reason for failure in failures),
            models=sorted({row.model for row in claims if row.model}),
        ),
    }
    replace_folder(Path(plan.out), files, RECORD)
    return NuggetClaims(Table(claims), Table(failures), answers.account, answers.notes)


def _manifest(
    prepared: PreparedClaims, status: str, labels: Any = None, missing: Any = None, models: Any = None
) -> bytes:
    facts = {"responses": len(prepared.questions), "labels": labels, "missing": missing, "models": models}
    return asking_manifest(prepared.asking, status, facts)
