"""Rules on runs: every problem at once, and what is left to judge. Pure.

Readers report the form of a file (JSON, fields, types), this module the rules of the field: ids, ranks, scores, limits,
evidence, PTKB, and what only the topics can tell. An error takes a response, a turn or a run out of the judging, each
with its reason; a warning takes nothing out.
"""

from collections.abc import Callable, Mapping, Sequence
from unicodedata import normalize

import msgspec

from judge.records import Exclusion, Problem, Run, RunTurn, TokenCount, TokenRule, Turn
from judge.runs.check.codes import NEEDS_HASHES, NEEDS_TOPICS
from judge.runs.check.rules import (
    Sheet,
    check_passages,
    check_ptkb,
    check_text,
    check_topics,
    check_turn,
    check_unknown,
    detail_of,
    rank_of,
)
from judge.runs.fields import usable_turn_id
from judge.runs.formats import rules_of
from judge.runs.formats.shape import TurnPlace
from judge.text.ids import natural_key
from judge.text.safe import MAX_ID, printable_id, shown


class Validated(msgspec.Struct, frozen=True):
    """What of a run can be judged, all that is wrong with it, and what was taken out."""

    run: Run | None
    """None when nothing can be judged."""
    problems: tuple[Problem, ...]
    """In the order of the file, those of its reader included."""
    exclusions: tuple[Exclusion, ...]
    """`turn_id` is `*` where the whole run is out and `?` where a turn has no readable id."""
    unchecked: tuple[str, ...] = ()
    """Codes of the checks that were not made for want of topics or hashes."""


def validate_run(
    run: Run,
    turns: Mapping[str, Turn] | None,
    count_tokens: Callable[[str], TokenCount | None],
    *,
    limit: int,
    rule: TokenRule,
    found: Sequence[Problem] = (),
    places: Sequence[TurnPlace] = (),
    hashes: Callable[[Sequence[str]], Sequence[bytes | None]] | None = None,
    same_text: Callable[[str, bytes], bool] | None = None,
) -> Validated:
    """Check one run against the rules of its format and, if given, the turns of the topics.

    `count_tokens` may give None for a text within the limit: `TokenCounter.over` needs spaCy only for the others.
    `found` and `places` are a reader's `problems` and `places`; without places the run is taken to be in one JSON
    document (or one turn a line) from which nothing is missing. `hashes` gives the MD5 that the collection has for
    each of some passage ids, None for an id that it has not, and is called once; `same_text` tells whether a text has
    an MD5.
    """
    sheet = Sheet(run, found, places)
    _check_head(sheet)
    unchecked: tuple[str, ...] = NEEDS_TOPICS if turns is None else ()
    if turns is not None and not check_topics(sheet, turns):
        # Every turn would be unknown and every turn of the topics missing, which says no more.
        turns = None
    if sheet.rules.passages is not None:
        unchecked += _open_collection(sheet, hashes, same_text)
    highest = _highest(turns) if turns is not None else {}
    first: dict[str, str] = {}
    for i, turn in enumerate(run.turns):
        sheet.findings.turn_id = printable_id(turn.turn_id) or None
        check_turn(sheet, i, turn, first)
        topic_turn = None
        if turns is not None:
            topic_turn = turns.get(turn.turn_id)
            if topic_turn is None and usable_turn_id(turn.turn_id):
                check_unknown(sheet, i, turn.turn_id, highest)
        for j, response in enumerate(turn.responses):
            if run.eval_response:
                check_text(sheet, i, j, response, count_tokens, limit, rule)
            check_passages(sheet, i, j, response)
            check_ptkb(sheet, i, j, response, topic_turn)
            sheet.findings.close_lists()
    if turns is not None and sheet.rules.all_turns:
        for turn_id in sorted(turns.keys() - first.keys(), key=natural_key):
            sheet.findings.turn_id = turn_id
            message = "the topics have this turn, the run has not"
            sheet.findings.add("error", "missing_turn", sheet.rules.turns, message)
    return _result(sheet, tuple(sorted(unchecked)))


def validate_together(runs: Sequence[Run]) -> tuple[Problem, ...]:
    """What is wrong between runs: one id for two of them, or ids that look alike."""
    problems = []
    named = [run for run in runs if run.run_id]
    looks = {run.run_id: _look(run.run_id) for run in named}
    for run in named:
        where = rules_of(run.format).run_id
        others = [other for other in named if other is not run]
        same = [other.file for other in others if other.run_id == run.run_id]
        if same:
            message = f"the run id {shown(run.run_id)} is also that of {', '.join(same)}"
            problems.append(Problem("duplicate_run_id", "error", run.file, None, where, message))
        look = looks[run.run_id]
        like = [one for one in others if one.run_id != run.run_id and looks[one.run_id] == look]
        if like:
            names = ", ".join(f"{shown(one.run_id)} of {one.file}" for one in like)
            message = f"the run id {shown(run.run_id)} cannot be told apart by eye from {names}"
            problems.append(Problem("similar_run_ids", "error", run.file, None, where, message))
    return tuple(problems)


def _look(run_id: str) -> str:
    """What of a run id can be seen: not its case, its outer white space or how its characters are composed."""
    return normalize("NFKC", normalize("NFKC", run_id).strip().casefold())


def _open_collection(
    sheet: Sheet,
    hashes: Callable[[Sequence[str]], Sequence[bytes | None]] | None,
    same_text: Callable[[str, bytes], bool] | None,
) -> tuple[str, ...]:
    """Look up every passage of the run whose id can be one; gives the codes that cannot be checked."""
    if hashes is None:
        return NEEDS_HASHES
    every = (response.provenance for turn in sheet.run.turns for response in turn.responses)
    distinct = dict.fromkeys(passage.passage_id for passages in every for passage in passages)
    ids = [passage_id for passage_id in distinct if 0 < len(passage_id) <= MAX_ID and passage_id.isprintable()]
    sheet.md5s = dict(zip(ids, hashes(ids), strict=True)) if ids else {}
    sheet.unknown = frozenset(passage_id for passage_id, md5 in sheet.md5s.items() if md5 is None)
    sheet.same_text = same_text
    return () if same_text is not None else ("passage_text_differs",)


def _check_head(sheet: Sheet) -> None:
    run, rules = sheet.run, sheet.rules
    # In JSON Lines the first line stands for the run.
    prefix = sheet.places[0].path.rpartition("$")[0] if sheet.places else ""
    if not run.run_id.strip():
        sheet.error(None, "empty_run_id", prefix + rules.run_id, "the run has no name")
    elif not run.run_id.isprintable() or len(run.run_id) > MAX_ID:
        message = f"{shown(run.run_id)} has unprintable characters or more than {MAX_ID} characters"
        sheet.error(None, "unusable_run_id", prefix + rules.run_id, message)
    expected = "one of " + ", ".join(rules.run_types)
    if rules.run_type is not None and not run.run_type:
        sheet.warn("empty_run_type", prefix + rules.run_type, f"missing or empty, expected {expected}")
    elif rules.run_type is not None and run.run_type not in rules.run_types:
        message = f"{shown(run.run_type)} is not {expected}"
        sheet.warn("unknown_run_type", prefix + rules.run_type, message)
    if not run.turns:
        sheet.error(None, "no_turns", rules.turns, "the run has no turns")


def _result(sheet: Sheet, unchecked: tuple[str, ...]) -> Validated:
    """The run without what is out."""
    problems = tuple(sorted(sheet.findings.problems, key=lambda problem: natural_key(problem.path)))
    run_id = printable_id(sheet.run.run_id)
    if sheet.whole is not None:
        return Validated(None, problems, (Exclusion(run_id, "*", None, *sheet.whole),), unchecked)
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
            kept.append(turn if len(left) == len(turn.responses) else RunTurn(turn.turn_id, left))
    for problem in (*sheet.lost, *(one for one in problems if one.code == "missing_turn")):
        detail = detail_of(problem.path, problem.message)
        exclusions.append(Exclusion(run_id, problem.turn_id or "?", None, problem.code, detail))
    run = msgspec.structs.replace(sheet.run, turns=tuple(kept)) if kept else None
    return Validated(run, problems, tuple(exclusions), unchecked)


def _highest(turns: Mapping[str, Turn]) -> dict[str, int | None]:
    """The number of each topic's last turn; None where turn numbers are not plain numbers."""
    highest: dict[str, int | None] = {}
    for turn_id, turn in turns.items():
        number = turn_id.rpartition("_")[2]
        last = highest.get(turn.topic_id, 0)
        highest[turn.topic_id] = max(last, int(number)) if number.isdecimal() and last is not None else None
    return highest
