"""Checks of a run: every problem at once, and the run without what its errors take out.

Readers report the form of a file (JSON, fields, types), this module the rules of the field: ids, ranks, scores, limits,
evidence, PTKB, and turns compared with the topics. An error takes a response, a turn or a run out of the judging, each
with its reason; a warning takes nothing out.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import normalize

import msgspec

from judge.io.ids import natural_key
from judge.io.text import printable_id, shown
from judge.records import Problem
from judge.runs.check import NEEDS_HASHES, NEEDS_TOPICS, problem
from judge.runs.check.problems import FileReport, file_report, token_summary
from judge.runs.check.responses import CollectionHashes, ResponseCheck
from judge.runs.check.rules import RunCheck, check_conversation, detail_of, rank_of
from judge.runs.check.year import Trace, trace_of
from judge.runs.document import file_name
from judge.runs.formats import read_run, rules_of
from judge.runs.formats.shape import ReadRun
from judge.runs.profiles import PROFILES, Limits
from judge.runs.records import Exclusion, Run, RunTurn, Turn
from judge.runs.tokens import TokenCounter


class Validated(msgspec.Struct, frozen=True):
    """A run without what its errors take out, its problems and its exclusions."""

    run: Run | None
    """The part that can be judged; None if nothing can."""
    problems: tuple[Problem, ...]
    """In the order of the file, those of its reader included."""
    exclusions: tuple[Exclusion, ...] = ()
    """`turn_id` is `*` where the whole run is out and `?` where a turn has no readable id."""
    unchecked: tuple[str, ...] = ()
    """Codes of the checks that were not made, because they need topics or hashes."""
    trace: Trace | None = None
    """What tells the year of the run; None where no run could be read."""


def validate_run(
    read: ReadRun,
    turns: Mapping[str, Turn] | None,
    tokens: TokenCounter | None,
    *,
    hashes: CollectionHashes | None = None,
    limits: Limits | None = None,
) -> Validated:
    """Check one run, as it was read, against the rules of its format and the limits of a track's year.

    Without the turns of the topics, a counter of tokens, the MD5s of the collection or limits, the checks that need
    them are not made.
    """
    run = read.run
    if run is None:
        return Validated(None, read.problems)
    if limits is not None:
        limits = limits.of_format(run.format)
        tokens = None if tokens is None else tokens.held_to(limits)
    profile = PROFILES[limits.profile] if limits is not None else None
    check = RunCheck(read, run, profile.errors if profile is not None else ())
    if limits is not None and (message := limits.against(run)) is not None:
        check.add("wrong_profile", check.rules.run_id, message)
        return _result(check, (), trace_of(run, read.places, turns))
    check.head()
    unchecked: tuple[str, ...] = NEEDS_TOPICS if turns is None else ()
    if check.rules.passages is not None and check.rules.form != "table" and hashes is None:
        unchecked += NEEDS_HASHES
    trace = trace_of(run, read.places, turns)
    if trace.against is not None:
        # Otherwise every turn would be unknown and every turn of the topics missing.
        check.wrong_topics(trace.against)
        turns = None
    responses = ResponseCheck(check, hashes)
    responses.collection()
    highest = _highest(turns) if turns is not None else {}
    for i, turn in enumerate(run.turns):
        check.at(i)
        check.turn(i, turn)
        known = None if turns is None else check.known_turn(i, turn.turn_id, turns, highest)
        for j, response in enumerate(turn.responses):
            place = read.places[i].responses[j]
            check.at(i, j)
            if run.eval_response:
                responses.text(place, response.text, tokens)
            responses.passages(i, j, response, limits.citation_limit if limits is not None else None)
            responses.ptkb(place, response, known)
            check.log.close_lists()
    if profile is not None and profile.check is not None:
        profile.check(check, turns)
    if check.rules.own_turns:
        check_conversation(check)
    if turns is not None and check.rules.all_turns:
        check.missing_turns(turns)
    return _result(check, tuple(sorted(unchecked)), trace)


Checked = tuple[FileReport, Run | None, Trace | None]
"""What is wrong with one file; its run without the turns, and what tells the year of the run."""


class FileCheck(msgspec.Struct, frozen=True):
    """Checks one file after the other, of which one run at a time is in memory; a helper process needs no plan."""

    format: str | None
    turns: Mapping[str, Turn] | None
    tokens: TokenCounter
    limits: Limits
    hashes: CollectionHashes | None
    lengths: bool
    """Whether to count the tokens of every text in every way."""
    teams: Mapping[str, str]
    """Run id to team, where runs do not name theirs."""

    def __call__(self, source: Path | ReadRun) -> Checked:
        """Check a file, or a run of a table."""
        read = source if isinstance(source, ReadRun) else read_run(source, self.format)
        run = read.run
        if run is None:
            name = file_name(source) if isinstance(source, Path) else "runs"
            return file_report(name, None, read.problems), None, None
        found = validate_run(read, self.turns, self.tokens, hashes=self.hashes, limits=self.limits)
        tokens = self.tokens.held_to(self.limits.of_format(run.format))
        lengths = token_summary(run, tokens, tokens.limit) if self.lengths else ()
        year = found.trace.year if found.trace else None
        report = file_report(run.file, run, found.problems, found.exclusions, found.unchecked, lengths, year)
        if team := self.teams.get(run.run_id):
            report = msgspec.structs.replace(report, team=team)
        # Without its turns a run is small enough to be kept until all are read.
        return report, msgspec.structs.replace(run, turns=()), found.trace


def validate_together(runs: Sequence[Run]) -> tuple[Problem, ...]:
    """The problems between runs: two runs with one id, or ids that look alike."""
    problems = []
    named = [run for run in runs if run.run_id]
    # Without case, outer white space and the composition of characters.
    looks = {run.run_id: normalize("NFKC", normalize("NFKC", run.run_id).strip().casefold()) for run in named}
    for run in named:
        where = rules_of(run.format).run_id
        others = [named_run for named_run in named if named_run is not run]
        same = [other.file for other in others if other.run_id == run.run_id]
        if same:
            message = f"the run id {shown(run.run_id)} is also that of {', '.join(same)}"
            problems.append(problem("duplicate_run_id", run.file, where, message))
        look = looks[run.run_id]
        like = [other for other in others if other.run_id != run.run_id and looks[other.run_id] == look]
        if like:
            names = ", ".join(f"{shown(other.run_id)} of {other.file}" for other in like)
            message = f"the run id {shown(run.run_id)} cannot be told apart by eye from {names}"
            problems.append(problem("similar_run_ids", run.file, where, message))
    return tuple(problems)


def _result(check: RunCheck, unchecked: tuple[str, ...], trace: Trace) -> Validated:
    """The result: the run without its excluded turns and responses."""
    problems = tuple(sorted(check.log.problems, key=lambda problem: natural_key(problem.path)))
    run_id = printable_id(check.run.run_id)
    if check.whole is not None:
        reason, detail = check.whole
        whole = Exclusion(run_id=run_id, turn_id="*", rank=None, reason=reason, detail=detail)
        return Validated(
            run=None,
            problems=problems,
            exclusions=(whole,),
            unchecked=unchecked,
            trace=trace,
        )
    kept: list[RunTurn] = []
    exclusions: list[Exclusion] = []
    for i, turn in enumerate(check.run.turns):
        turn_id = printable_id(turn.turn_id) or "?"
        if (i, None) in check.out:
            reason, detail = check.out[i, None]
            exclusions.append(Exclusion(run_id=run_id, turn_id=turn_id, rank=None, reason=reason, detail=detail))
            continue
        for j, response in enumerate(turn.responses):
            if (i, j) in check.out:
                reason, detail = check.out[i, j]
                rank = rank_of(response)
                exclusions.append(Exclusion(run_id=run_id, turn_id=turn_id, rank=rank, reason=reason, detail=detail))
        left = tuple(response for j, response in enumerate(turn.responses) if (i, j) not in check.out)
        if left:
            kept.append(turn if len(left) == len(turn.responses) else msgspec.structs.replace(turn, responses=left))
    for lost in (*check.lost, *(missing for missing in problems if missing.code == "missing_turn")):
        exclusions.append(
            Exclusion(
                run_id=run_id,
                turn_id=lost.turn_id or "?",
                rank=None,
                reason=lost.code,
                detail=detail_of(lost.path, lost.message),
            )
        )
    run = msgspec.structs.replace(check.run, turns=tuple(kept)) if kept else None
    return Validated(run=run, problems=problems, exclusions=tuple(exclusions), unchecked=unchecked, trace=trace)


def _highest(turns: Mapping[str, Turn]) -> dict[str, int | None]:
    """The number of each topic's last turn; None where turn numbers are not plain numbers."""
    highest: dict[str, int | None] = {}
    for turn_id, turn in turns.items():
        number = turn_id.rpartition("_")[2]
        last = highest.get(turn.topic_id, 0)
        highest[turn.topic_id] = max(last, int(number)) if number.isdecimal() and last is not None else None
    return highest
