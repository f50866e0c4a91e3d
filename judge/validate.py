"""Rules on runs: every problem at once, and what is left to judge. Pure.

Readers report the form of a file (JSON, fields, types), this module the rules of the field: ids, ranks, scores, limits,
evidence, PTKB, and what only the topics can tell. An error takes a response, a turn or a run out of the judging, each
with its reason; a warning takes nothing out.
"""

from collections.abc import Callable, Mapping, Sequence
from unicodedata import normalize

import msgspec

from judge.checks import (
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
from judge.ids import natural_key
from judge.records import Exclusion, Problem, Run, RunTurn, Severity, TokenCount, TokenRule, Turn
from judge.runs import rules_of
from judge.runs.fields import usable_turn_id
from judge.runs.shape import TurnPlace
from judge.text import MAX_ID, printable_id, shown

NEEDS_TOPICS = (
    "missing_turn", "ptkb_text_differs", "turn_number_too_high", "unknown_ptkb_id", "unknown_turn", "wrong_topics",
)  # fmt: skip
"""Codes of the checks that are not made without topics."""
NEEDS_HASHES = ("passage_text_differs", "unknown_passage")
"""Codes of the checks that are not made without the collection's hash list."""


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


CODES: dict[str, tuple[Severity, str]] = {
    # the folder
    "hidden_file": ("warning", "a file whose name begins with a dot is not read as a run"),
    "not_a_run_file": ("warning", "a file that is neither JSON nor a pool is not read as a run"),
    "subfolder": ("warning", "only files directly in the folder are read"),
    "unreadable_file": ("error", "the file cannot be opened"),
    # the bytes
    "byte_order_mark": ("warning", "the file begins with a byte order mark"),
    "damaged_gzip": ("error", "the gzip file is damaged or cut short"),
    "empty_file": ("error", "there is nothing in the file"),
    "not_json": ("error", "the text is not JSON"),
    "packed_otherwise": ("error", "packed or archived, but not as gzip"),
    "python_literal": ("error", "True, False or None where JSON has true, false, null"),
    "too_many_values": ("error", "more JSON values than any run has, so not read"),
    "truncated_json": ("error", "the file or line ends in the middle of the JSON"),
    "unknown_format": ("error", "JSON, but not a run in a known format"),
    "wrong_encoding": ("error", "the text is not UTF-8"),
    # the form
    "coerced_value": ("warning", "a number in another form, such as a string"),
    "inconsistent_metadata": ("warning", "lines of one run give different metadata"),
    "missing_field": ("error", "a mandatory field is not there"),
    "several_runs": ("error", "a line belongs to another run than the first"),
    "too_many_responses": ("error", "more responses than a turn or a run may have, so not read"),
    "too_many_turns": ("error", "more turns than a run may have, so not read"),
    "unknown_field": ("warning", "the format has no such field"),
    "unusable_text": ("error", "NUL or a lone surrogate in a text or name"),
    "wrong_type": ("error", "a value of another type than the format's"),
    # pools and banks
    "duplicate_response_id": ("error", "a pool names a response twice for a turn"),
    "malformed_line": ("error", "a line of a pool has not six columns"),
    "missing_bank": ("error", "a pool without its bank"),
    "missing_pool": ("error", "a bank without its pool, or with several"),
    "not_in_bank": ("error", "the bank has no text for a response id"),
    # the run
    "duplicate_run_id": ("error", "two runs have the same id"),
    "empty_run_id": ("error", "the run has no name"),
    "empty_run_type": ("warning", "the run has no type"),
    "empty_team": ("warning", "the run has no team"),
    "no_turns": ("error", "the run has no turns"),
    "similar_run_ids": ("error", "run ids that only case, outer white space or Unicode form tells apart"),
    "unknown_run_type": ("warning", "the format has no such run type"),
    "unusable_run_id": ("error", "a run id with unprintable characters or of excessive length"),
    # turns
    "duplicate_turn": ("error", "a turn id was already given; only the first counts"),
    "malformed_turn_id": ("error", "not of the form topic_turn"),
    "missing_turn": ("error", "a turn of the topics is not in the run"),
    "no_response": ("error", "a turn without a response"),
    "turn_number_too_high": ("error", "the topic has fewer turns"),
    "unknown_turn": ("error", "the topics have no such turn"),
    "wrong_topics": ("error", "no turn of the run is of a topic of the topics file"),
    # responses
    "bad_rank": ("error", "a rank that is not between 1 and 1,000,000"),
    "duplicate_rank": ("error", "a rank was already given in the turn; only the first counts"),
    "empty_text": ("error", "no text, or only white space"),
    "no_rank_one": ("warning", "no response of the turn has rank 1"),
    "over_token_limit": ("warning", "more tokens than allowed"),
    "ranks_not_increasing": ("warning", "a rank below that of the response before"),
    "text_too_long": ("error", "too long to be judged at all"),
    # passages
    "citation_not_in_references": ("warning", "a cited passage is not among the turn's references"),
    "duplicate_passage": ("warning", "a passage is twice in a list"),
    "equal_scores": ("warning", "a passage has the score of the one before"),
    "malformed_passage_id": ("warning", "not of the form of the collection's ids"),
    "missing_score": ("warning", "a passage without a score"),
    "missing_used": ("warning", "some passages of a list are marked as used, others have no mark at all"),
    "no_provenance": ("warning", "a response without passages"),
    "no_used_passage": ("warning", "no passage is marked as used; five count, by score or by the list"),
    "passage_text_differs": ("warning", "the run's text of a passage is not the collection's, so no judge is shown it"),
    "score_not_finite": ("warning", "a score that is NaN or infinite"),
    "scores_not_decreasing": ("warning", "a passage has a higher score than the one before"),
    "too_many_passages": ("warning", "more than 1000 passages"),
    "unknown_passage": ("warning", "the collection has no such passage"),
    "unusable_passage_id": ("error", "an empty, overlong or unprintable passage id"),
    # PTKB
    "duplicate_ptkb": ("warning", "a statement is twice in a list"),
    "empty_ptkb": ("warning", "a statement without text"),
    "invalid_ptkb_id": ("warning", "not the number of a statement"),
    "missing_ptkb_score": ("warning", "a statement without a score, in the format that gives them one"),
    "no_ptkb": ("warning", "a response without PTKB statements"),
    "ptkb_scores_not_decreasing": ("warning", "a statement's score is not below that of the one before"),
    "ptkb_text_differs": ("warning", "a statement's text is not the topic's"),
    "unknown_ptkb_id": ("warning", "the topic has no such statement"),
    # topics files
    "broken_parent": ("error", "a node's parent is not in its tree, or is below it"),
    "duplicate_topic": ("error", "two topics have the same number"),
    "unknown_statement": ("error", "a turn names a PTKB statement that its topic has not"),
}
"""Code to severity and meaning: every problem that readers and validation report. Codes are stable."""
