"""A judge asked which nuggets responses support: what `judge nuggets match` does, for use from Python."""

from collections.abc import Callable

from judge.ask.account import JudgeAccount
from judge.ask.progress import Progress
from judge.ask.subjects import NUGGET
from judge.files.paths import StrPath
from judge.files.progress import ProgressLine
from judge.harness.nuggets.questions import (
    NuggetAskPlan,
    NuggetCommand,
    NuggetForecast,
    ask_questions,
    forecast_questions,
)
from judge.nuggets.matches import MATCH_FAILURES, MATCHES, matches_jsonl
from judge.nuggets.pairs import check_prompt, label_counts, matched, nugget_pairs, pair_task
from judge.nuggets.records import MatchedNugget, MatchFailure
from judge.records import Record
from judge.text.table import Table

MATCHING = NuggetCommand(
    command="judge nuggets match",
    what="matches",
    counted="pairs",
    check=check_prompt,
    questions=nugget_pairs,
    nuggets=lambda pair: (pair.nugget,),
    task=pair_task,
    read=matched,
    labels=label_counts,
    jsonl=matches_jsonl,
    answers_file=MATCHES,
    missing_file=MATCH_FAILURES,
    record="matches.sha256",
)


class NuggetMatchPlan(NuggetAskPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets match` can be told; a question is about a pair of response and nugget."""

    prompt: StrPath = NUGGET


class NuggetMatching(Record, frozen=True):
    """The matches of a judge, and what they took."""

    matches: Table[MatchedNugget]
    failures: Table[MatchFailure]
    account: JudgeAccount
    notes: tuple[str, ...]
    """A sentence each."""


def match_nuggets(
    plan: NuggetMatchPlan,
    report: Callable[[Progress], None] | None = None,
    *,
    progress: bool | ProgressLine = False,
) -> NuggetMatching:
    """Ask a judge about every response and nugget of its turn or topic, and write the matches.

    Args:
        plan: What to do.
        report: Called after each match.
        progress: Show a bar in a notebook or on a terminal, elsewhere lines now and then; or the line to show it on.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or the folder has matches of something else; every problem is listed.
        OperationalError: Asking stopped early; the same call goes on from there.
    """
    said = ask_questions(MATCHING, plan, report, progress)
    return NuggetMatching(Table(said.answers), Table(said.missing), said.account, said.notes)


def forecast_matching(plan: NuggetMatchPlan) -> NuggetForecast:
    """Count what `match_nuggets` would send beyond what its journal holds.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    return forecast_questions(MATCHING, plan)
