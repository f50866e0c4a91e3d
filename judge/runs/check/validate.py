"""Checks of a run: every problem at once, and the run without what its errors take out. Pure.

Readers report the form of a file (JSON, fields, types), this module the rules of the field: ids, ranks, scores, limits,
evidence, PTKB, and turns compared with the topics. An error takes a response, a turn or a run out of the judging, each
with its reason; a warning takes nothing out.
"""

from collections.abc import Mapping, Sequence
from unicodedata import normalize

import msgspec

from judge.io.ids import natural_key
from judge.io.safe import MAX_ID, printable_id, shown
from judge.records import Problem
from judge.runs.check.codes import NEEDS_HASHES, NEEDS_TOPICS, problem
from judge.runs.check.entries import check_conversation, check_ptkb
from judge.runs.check.rules import (
    check_citations,
    check_evidence,
    check_known,
    check_passages,
    check_text,
    check_topics,
    check_turn,
    rank_of,
)
from judge.runs.check.sheet import CollectionHashes, Sheet, detail_of
from judge.runs.check.year import Trace, trace_of
from judge.runs.formats import rules_of
from judge.runs.formats.shape import TurnPlace
from judge.runs.records import Exclusion, Run, RunTurn, Turn
from judge.runs.tokens import TokenCounter


class Validated(msgspec.Struct, frozen=True):
    """A run without what its errors take out, its problems and its exclusions."""

    run: Run | None
    """The part that can be judged; None if nothing can."""
    problems: tuple[Problem, ...]
    """In the order of the file, those of its reader included."""
    exclusions: tuple[Exclusion, ...]
    """`turn_id` is `*` where the whole run is out and `?` where a turn has no readable id."""
    unchecked: tuple[str, ...]
    """Codes of the checks that were not made, because they need topics or hashes."""
    trace: Trace
    """What tells the year of the run."""


def validate_run(
    run: Run,
    turns: Mapping[str, Turn] | None,
    tokens: TokenCounter | None,
    *,
    problems: Sequence[Problem] = (),
    places: Sequence[TurnPlace] = (),
    hashes: CollectionHashes | None = None,
    citation_limit: int | None = None,
) -> Validated:
    """Check one run against the rules of its format.

    `problems` and `places` are those of the run's reader; without places the file is taken to be one JSON document, or
    one turn a line, that was read completely. Without the turns of the topics, the token limit of a response, the MD5s
    of the collection or the most passages that a response may cite, the checks that need them are not made.
    """
    sheet = Sheet(run, problems, places)
    _check_head(sheet)
    unchecked: tuple[str, ...] = NEEDS_TOPICS if turns is None else ()
    trace = trace_of(run, places, turns)
    if turns is not None and not check_topics(sheet, trace.against):
        # Otherwise every turn would be unknown and every turn of the topics missing.
        turns = None
    if sheet.rules.passages is not None:
        if hashes is not None:
            sheet.open_collection(hashes)
            check_evidence(sheet)
        unchecked += NEEDS_HASHES if hashes is None else () if hashes.same_text else ("passage_text_differs",)
    highest = _highest(turns) if turns is not None else {}
    first: dict[str, str] = {}
    for i, turn in enumerate(run.turns):
        sheet.log.turn_id = printable_id(turn.turn_id) or None
        check_turn(sheet, i, turn, first)
        known = None if turns is None else check_known(sheet, i, turn.turn_id, turns, highest)
        for j, response in enumerate(turn.responses):
            if run.eval_response:
                check_text(sheet, i, j, response, tokens)
            check_passages(sheet, i, j, response)
            if citation_limit is not None:
                check_citations(sheet, i, j, response, citation_limit)
            check_ptkb(sheet, i, j, response, known)
            sheet.log.close_lists()
    if sheet.rules.own_turns:
        check_conversation(sheet)
    if turns is not None and sheet.rules.all_turns:
        for turn_id in sorted(turns.keys() - first.keys(), key=natural_key):
            sheet.log.turn_id = turn_id
            message = "the topics have this turn, the run has not"
            sheet.log.add("missing_turn", sheet.rules.turns, message)
    return _result(sheet, tuple(sorted(unchecked)), trace)


def validate_together(runs: Sequence[Run]) -> tuple[Problem, ...]:
    """The problems between runs: two runs with one id, or ids that look alike."""
    problems = []
    named = [run for run in runs if run.run_id]
    looks = {run.run_id: _look(run.run_id) for run in named}
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


def _look(run_id: str) -> str:
    """A run id without its case, its outer white space and the composition of its characters."""
    return normalize("NFKC", normalize("NFKC", run_id).strip().casefold())


def _check_head(sheet: Sheet) -> None:
    run, rules = sheet.run, sheet.rules
    # Where every turn names the run, the first one stands for it.
    first = sheet.places[0].path if sheet.places else "$"
    top = first if rules.form == "entries" else first.rpartition("$")[0] + "$"

    def path(member: str) -> str:
        return top + member.removeprefix("$") if member.startswith("$") else member

    if not run.run_id.strip():
        sheet.add(None, "empty_run_id", path(rules.run_id), "the run has no name")
    elif not run.run_id.isprintable() or len(run.run_id) > MAX_ID:
        message = f"{shown(run.run_id)} has unprintable characters or more than {MAX_ID} characters"
        sheet.add(None, "unusable_run_id", path(rules.run_id), message)
    expected = "one of " + ", ".join(rules.run_types)
    if rules.run_type is not None and not run.run_type:
        sheet.add(None, "empty_run_type", path(rules.run_type), f"missing or empty, expected {expected}")
    elif rules.run_type is not None and run.run_type not in rules.run_types:
        message = f"{shown(run.run_type)} is not {expected}"
        sheet.add(None, "unknown_run_type", path(rules.run_type), message)
    if not run.turns:
        sheet.add(None, "no_turns", rules.turns, "the run has no turns")


def _result(sheet: Sheet, unchecked: tuple[str, ...], trace: Trace) -> Validated:
    """The result: the run without its excluded turns and responses."""
    problems = tuple(sorted(sheet.log.problems, key=lambda problem: natural_key(problem.path)))
    run_id = printable_id(sheet.run.run_id)
    if sheet.whole is not None:
        return Validated(None, problems, (Exclusion(run_id, "*", None, *sheet.whole),), unchecked, trace)
    kept: list[RunTurn] = []
    exclusions: list[Exclusion] = []
    for i, turn in enumerate(sheet.run.turns):
        turn_id = printable_id(turn.turn_id) or "?"
        if (i, None) in sheet.out:
            exclusions.append(Exclusion(run_id, turn_id, None, *sheet.out[i, None]))
            continue
        for j, response in enumerate(turn.responses):
            if (i, j) in sheet.out:
                exclusions.append(Exclusion(run_id, turn_id, rank_of(response), *sheet.out[i, j]))
        left = tuple(response for j, response in enumerate(turn.responses) if (i, j) not in sheet.out)
        if left:
            kept.append(turn if len(left) == len(turn.responses) else msgspec.structs.replace(turn, responses=left))
    for lost in (*sheet.lost, *(missing for missing in problems if missing.code == "missing_turn")):
        exclusions.append(Exclusion(run_id, lost.turn_id or "?", None, lost.code, detail_of(lost.path, lost.message)))
    run = msgspec.structs.replace(sheet.run, turns=tuple(kept)) if kept else None
    return Validated(run, problems, tuple(exclusions), unchecked, trace)


def _highest(turns: Mapping[str, Turn]) -> dict[str, int | None]:
    """The number of each topic's last turn; None where turn numbers are not plain numbers."""
    highest: dict[str, int | None] = {}
    for turn_id, turn in turns.items():
        number = turn_id.rpartition("_")[2]
        last = highest.get(turn.topic_id, 0)
        highest[turn.topic_id] = max(last, int(number)) if number.isdecimal() and last is not None else None
    return highest
