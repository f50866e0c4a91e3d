"""A judge asked what carries the claims of responses: what `judge nuggets claims` does, for use from Python."""

from collections.abc import Callable

from judge.ask.account import JudgeAccount
from judge.ask.progress import Progress
from judge.ask.subjects import NUGGET_PRECISION
from judge.files.paths import StrPath
from judge.files.progress import ProgressLine
from judge.harness.nuggets.questions import (
    NuggetAskPlan,
    NuggetCommand,
    NuggetForecast,
    ask_questions,
    forecast_questions,
)
from judge.nuggets.claim_tasks import check_claim_prompt, claim_counts, claim_questions, claim_task, claimed
from judge.nuggets.claims import CLAIM_FAILURES, CLAIMS, ClaimFailure, ResponseClaims, claims_jsonl
from judge.records import Record
from judge.text.table import Table

CLAIMING = NuggetCommand(
    command="judge nuggets claims",
    what="claims",
    counted="responses",
    check=check_claim_prompt,
    questions=claim_questions,
    nuggets=lambda asked: asked.nuggets,
    task=claim_task,
    read=claimed,
    labels=claim_counts,
    jsonl=claims_jsonl,
    answers_file=CLAIMS,
    missing_file=CLAIM_FAILURES,
    record="claims.sha256",
    beside=("passages.jsonl",),
)


class NuggetClaimsPlan(NuggetAskPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets claims` can be told; a question is about the sentences of a response."""

    prompt: StrPath = NUGGET_PRECISION


class NuggetClaims(Record, frozen=True):
    """What carries the sentences of responses by a judge, and what it took to ask."""

    claims: Table[ResponseClaims]
    failures: Table[ClaimFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def label_claims(
    plan: NuggetClaimsPlan,
    report: Callable[[Progress], None] | None = None,
    *,
    progress: bool | ProgressLine = False,
) -> NuggetClaims:
    """Ask a judge what carries each sentence of every response whose turn or topic has nuggets, and write the labels.

    Args:
        plan: What to do.
        report: Called after each response.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then; or the line to show it on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has answers to something else; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    said = ask_questions(CLAIMING, plan, report, progress)
    return NuggetClaims(Table(said.answers), Table(said.missing), said.account, said.notes)


def forecast_claims(plan: NuggetClaimsPlan) -> NuggetForecast:
    """Count what `label_claims` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    return forecast_questions(CLAIMING, plan)
