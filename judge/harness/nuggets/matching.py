"""A judge asked which nuggets responses support: what `judge nuggets match` does, for use from Python."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from judge.ask.account import JudgeAccount
from judge.ask.progress import Progress
from judge.ask.several import Fetching
from judge.ask.subjects import NUGGET
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
from judge.nuggets.matches import MATCH_FAILURES, MATCHES, matches_jsonl
from judge.nuggets.pairs import NuggetPair, check_prompt, label_counts, matched, nugget_pairs, pair_task, spread_evenly
from judge.nuggets.records import MatchedNugget, MatchFailure
from judge.records import Record
from judge.text.table import Table

RECORD = "matches.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""


class NuggetMatchPlan(NuggetAskPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets match` can be told; a question is about a pair of response and nugget."""

    prompt: StrPath = NUGGET


class PreparedMatching(Record, frozen=True):
    """What is to be asked; nothing has been written or sent."""

    asking: NuggetAsking
    pairs: tuple[NuggetPair, ...]


class NuggetMatching(Record, frozen=True):
    """The matches of a judge, and what they took."""

    matches: Table[MatchedNugget]
    failures: Table[MatchFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


class NuggetForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    nuggets: int
    forecast: ModelForecast


def prepare_matching(plan: NuggetMatchPlan, *, keys: bool = True) -> PreparedMatching:
    """Read everything a plan names.

    Args:
        plan: What to do.
        keys: Refuse a model without its key; a dry run needs none.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has matches of something else; every problem is listed.
    """
    asking = open_asking(plan, check_prompt, keys=keys)
    pairs = nugget_pairs(asking.pool, asking.bank)
    check_asking(asking, {pair.response.turn_id for pair in pairs}, "matches", "judge nuggets match")
    return PreparedMatching(asking, spread_evenly(pairs, plan.limit))


def match_nuggets(
    plan: NuggetMatchPlan,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    *,
    progress: bool = False,
) -> NuggetMatching:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    Args:
        plan: What to do.
        report: Called after each match.
        fetching: Called while a model is fetched, with its name, the bytes fetched and the bytes in all.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then, in place of the two before.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    prepared = prepare_matching(plan)
    if not progress:
        return _match(prepared, report, fetching)
    return with_progress(
        prepared.asking.model.name, report, lambda reporter, fetcher: _match(prepared, reporter, fetcher)
    )


def forecast_matching(plan: NuggetMatchPlan) -> NuggetForecast:
    """Count what `match_nuggets` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    prepared = prepare_matching(plan, keys=False)
    return NuggetForecast(
        len({pair.response.response_id for pair in prepared.pairs}),
        len({pair.nugget.nugget_id for pair in prepared.pairs}),
        forecast_asking(prepared.asking, [pair_task(pair, prepared.asking.prompt) for pair in prepared.pairs]),
    )


def _match(
    prepared: PreparedMatching, report: Callable[[Progress], None] | None, fetching: Fetching | None
) -> NuggetMatching:
    asking, plan = prepared.asking, prepared.asking.plan
    tasks = [pair_task(pair, asking.prompt) for pair in prepared.pairs]
    answers = answers_of(asking, tasks, _manifest(prepared, "unfinished"), RECORD, report, fetching)
    matches, failures = matched(prepared.pairs, answers.results, asking.prompt)
    status = "complete" if plan.limit is None else "trial"
    files = {
        MATCHES: matches_jsonl(matches),
        MATCH_FAILURES: matches_jsonl(failures),
        NUGGETS: _manifest(
            prepared,
            status,
            labels=label_counts(matches),
            missing=Counter(failure.reason for failure in failures),
            models=sorted({match.model for match in matches if match.model}),
        ),
    }
    replace_folder(Path(plan.out), files, RECORD)
    return NuggetMatching(Table(matches), Table(failures), answers.account, answers.notes)


def _manifest(
    prepared: PreparedMatching, status: str, labels: Any = None, missing: Any = None, models: Any = None
) -> bytes:
    facts = {"pairs": len(prepared.pairs), "labels": labels, "missing": missing, "models": models}
    return asking_manifest(prepared.asking, status, facts)
