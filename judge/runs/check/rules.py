"""The rules of the field on one turn, response or passage list of a run. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter

import msgspec

from judge.io.ids import topic_of
from judge.io.safe import has_content, shown, storable
from judge.runs.check.entries import check_entries
from judge.runs.check.sheet import Owner, Sheet
from judge.runs.fields import member, usable_turn_id
from judge.runs.ranking import TOP_PASSAGES, absent_evidence, has_scores, used_provenance
from judge.runs.records import Provenance, Response, RunTurn, Turn
from judge.runs.tokens import MAX_CHARS, TokenCounter

MAX_RANK = 1_000_000
_ID, _TEXT = attrgetter("passage_id"), attrgetter("text")


def check_turn(sheet: Sheet, i: int, turn: RunTurn, first: dict[str, str]) -> None:
    """Check a turn's id and its responses' ranks; `first` maps each id seen to the path of its first turn."""
    place = sheet.places[i]
    owner = (i, None)
    path = _below(place.path, sheet.rules.turn_id)
    if not usable_turn_id(turn.turn_id):
        message = f"{shown(turn.turn_id)} is not a turn id such as 9-1_3, 0_3 or 132_1-3"
        sheet.add(owner, "malformed_turn_id", path, message)
    elif turn.turn_id in first:
        message = f"{turn.turn_id} was already at {first[turn.turn_id]}; only the first counts"
        sheet.add(owner, "duplicate_turn", path, message)
    # Where users led the conversations, another run's turn does not take the place of this run's.
    if not (sheet.rules.own_turns and i in sheet.of_others):
        first.setdefault(turn.turn_id, place.path)
    if not turn.responses:
        sheet.add(owner, "no_response", _below(place.path, ".responses"), "the turn has no response")
    ranks: set[int] = set()
    last = 0
    known = True
    for j, response in enumerate(turn.responses):
        path = _below(place.responses[j].path, ".rank")
        rank = response.rank
        if not 1 <= rank <= MAX_RANK:
            sheet.add((i, j), "bad_rank", path, f"rank {shown(rank)}, expected 1 to {MAX_RANK:,}")
            known = False
            continue
        if rank in ranks:
            message = f"rank {rank} was already given in this turn; only the first response with it counts"
            sheet.add((i, j), "duplicate_rank", path, message)
        elif rank < last:
            sheet.add((i, j), "ranks_not_increasing", path, f"rank {rank} after rank {last}")
        ranks.add(rank)
        last = rank
    if ranks and 1 not in ranks and known:
        sheet.add(owner, "no_rank_one", _below(place.path, ".responses"), f"the best rank is {min(ranks)}")


def check_known(
    sheet: Sheet, i: int, turn_id: str, turns: Mapping[str, Turn], highest: Mapping[str, int | None]
) -> Turn | None:
    """The turn of the topics that a run's turn is; if the topics cannot have it, a problem is reported.

    `highest` is the number of each topic's last turn. Where users led the conversations, any turn of a topic may be.
    """
    topic_id, number = topic_of(turn_id), turn_id.rpartition("_")[2]
    turn = None if sheet.rules.own_turns else turns.get(turn_id)
    if turn is not None or not usable_turn_id(turn_id) or (sheet.rules.own_turns and topic_id in highest):
        return turn
    path, last = _below(sheet.places[i].path, sheet.rules.turn_id), highest.get(topic_id)
    if last is not None and re.fullmatch("[0-9]{1,9}", number) and int(number) > last:
        message = f"topic {topic_id} has {last} turns, so there is no turn {number}"
        sheet.add((i, None), "turn_number_too_high", path, message)
    else:
        known = "has no such turn" if topic_id in highest else "is not in the topics"
        sheet.add((i, None), "unknown_turn", path, f"{shown(turn_id)}: topic {shown(topic_id)} {known}")
    return None


def check_topics(sheet: Sheet, reason: str | None) -> bool:
    """Whether the run is for the topics; if a `reason` is against it, one problem is reported for the whole run."""
    if reason is None:
        return True
    message = f"{reason}, so the topics are of another year or the run is; nothing else was compared with them"
    sheet.add(None, "wrong_topics", sheet.rules.turns or _below(sheet.places[0].path, sheet.rules.turn_id), message)
    return False


def check_text(
    sheet: Sheet,
    i: int,
    j: int,
    response: Response,
    tokens: TokenCounter | None,
) -> None:
    """Check that a response has a text that can be judged; with `tokens`, check its length."""
    place = sheet.places[i].responses[j]
    path = _below(place.path, f".{place.names.text}")
    text = response.text
    if not has_content(text):
        content = "empty" if not text else "only characters that cannot be seen" if text.strip() else "only white space"
        sheet.add((i, j), "empty_text", path, f"the text is {content}")
    elif len(text) > MAX_CHARS:
        message = f"{len(text):,} characters, which is over {MAX_CHARS:,}"
        sheet.add((i, j), "text_too_long", path, message)
    elif not storable(text):
        message = "the text has a NUL or a lone surrogate, so it cannot be sent or stored"
        sheet.add((i, j), "unusable_text", path, message)
    elif tokens is not None:
        counts = tokens.over(text)
        if counts is not None and counts.cut is not None:
            by_rule = f"bare {counts.bare}, english {counts.english}, whitespace {counts.whitespace}"
            n = getattr(counts, tokens.rule)
            message = f"{n} tokens by the {tokens.rule} rule, limit {tokens.limit} ({by_rule})"
            sheet.add((i, j), "over_token_limit", path, message)


def check_evidence(sheet: Sheet) -> None:
    """Check that most of the evidence that the run names exists in the collection, which is open."""
    turns = []
    for turn in sheet.run.turns:
        if turn.responses:
            used, _ = used_provenance(min(turn.responses, key=attrgetter("rank")), sheet.run.format)
            turns.append((sum(sheet.md5s.get(passage.passage_id) is None for passage in used), len(used)))
    if message := absent_evidence(turns, "is not in the collection"):
        sheet.add(None, "absent_evidence", sheet.rules.turns, message)


def check_passages(sheet: Sheet, i: int, j: int, response: Response) -> None:
    """Check the evidence that a response names."""
    rules, passages = sheet.rules, response.provenance
    if rules.passages is None:
        return
    turn, place = sheet.places[i], sheet.places[i].responses[j]
    base = f"{(turn if rules.keyed else place).path}.{rules.passages}"
    own = f"{place.path}.{place.names.citations}" if rules.keyed else base
    if not passages:
        at = own if rules.own_turns else base
        sheet.add((i, j), "no_provenance", at, "no passage, so groundedness cannot be judged")
        return
    # One cheap loop keeps few entries: a run may have 300,000.
    marked = [passage for passage in passages if passage.used is not False or passage.text is not None]
    if rules.flags_used:
        _check_used(sheet, (i, j), base, own, passages, marked)
    shared = len(passages) - place.extra
    if not rules.keyed:
        _check_entries(sheet, (i, j), base, passages)
    elif j == 0:
        # All responses of a turn share its references: they are checked once.
        _check_entries(sheet, (i, None), base, passages[:shared])
    if place.extra:
        _check_entries(sheet, (i, j), own, passages[shared:])
    if any(passage.text for passage in marked):
        _check_passage_texts(sheet, (i, j), base, response, marked)


def check_citations(sheet: Sheet, i: int, j: int, response: Response, limit: int) -> None:
    """Check that a response cites no more passages than the guidelines of its year allow."""
    rules, place = sheet.rules, sheet.places[i].responses[j]
    cited = sum(passage.used is True for passage in response.provenance)
    if cited > limit:
        path = f"{place.path}.{place.names.citations if rules.keyed else rules.passages}"
        sheet.add((i, j), "too_many_citations", path, f"{cited} used passages, at most {limit} are allowed")


def _check_used(
    sheet: Sheet, owner: Owner, base: str, own: str, passages: Sequence[Provenance], marked: Sequence[Provenance]
) -> None:
    """Check the `used` marks of a list; `marked` has at least the passages that are not marked as unused."""
    absent = any(passage.used is None for passage in marked)
    used = any(passage.used for passage in marked)
    if (used and not absent) or _unreadable_flag(sheet, base, passages):
        return
    if not used:
        which = "with the highest scores" if has_scores(passages) else "first of the list, where scores are missing,"
        message = f"no passage is marked as used, so the {TOP_PASSAGES} {which} count as used"
        sheet.add(owner, "no_used_passage", own, message)
    else:
        for k in (k for k, passage in enumerate(passages) if passage.used is None):
            message = "not said whether it was used, while others of the list are marked; it counts as not used"
            sheet.add_entry(owner, base, "missing_used", f"{base}[{k}].used", message)


def _unreadable_flag(sheet: Sheet, base: str, passages: Sequence[Provenance]) -> bool:
    """Whether the reader reported a mark of the list; such a mark is neither present nor absent."""
    silent = sheet.log.silent
    if not silent:
        return False
    unread = (k for k, passage in enumerate(passages) if passage.used is None)
    # `[*]` stands for problems that were only counted; one of them may be a mark.
    return any(path in silent for k in unread for path in (f"{base}[{k}]", f"{base}[{k}].used", f"{base}[*]"))


def _check_entries(sheet: Sheet, owner: Owner, base: str, passages: Sequence[Provenance]) -> None:
    check_entries(sheet.rules, sheet.run.run_type, base, passages, partial(sheet.add_entry, owner, base))
    if sheet.md5s:
        _check_collection(sheet, owner, base, passages)


def _check_collection(sheet: Sheet, owner: Owner, base: str, passages: Sequence[Provenance]) -> None:
    """Check that the collection has each passage, and that a run's text of a passage is the collection's."""
    rules, same_text = sheet.rules, sheet.same_text
    # Lists without a problem are passed in C: a run may have 300,000 entries.
    if sheet.unknown.isdisjoint(map(_ID, passages)) and not any(map(_TEXT, passages)):
        return
    for k, passage in enumerate(passages):
        passage_id, text, md5 = passage.passage_id, passage.text, sheet.md5s.get(passage.passage_id)
        path = member(base, passage_id) if rules.keyed else f"{base}[{k}].id"
        if md5 is None:
            # An id of another form has a problem of its own, or was not looked up.
            if passage_id in sheet.unknown and (rules.passage_id is None or rules.passage_id.fullmatch(passage_id)):
                message = f"the collection has no passage {shown(passage_id)}"
                sheet.add_entry(owner, base, "unknown_passage", path, message)
        elif text and same_text is not None and (not storable(text) or not same_text(text, md5)):
            message = f"not the collection's text of {shown(passage_id)}, so it is not shown to a judge as evidence"
            sheet.add_entry(owner, base, "passage_text_differs", f"{base}[{k}].text", message)


def _check_passage_texts(
    sheet: Sheet, owner: Owner, base: str, response: Response, marked: Sequence[Provenance]
) -> None:
    """Check the texts of the used passages, which a request would quote; `marked` as in `_check_used`."""
    among = response
    if any(passage.used for passage in marked):
        # None of the others is used, and a list may have thousands of them.
        among = msgspec.structs.replace(response, provenance=tuple(marked))
    used, _ = used_provenance(among, sheet.run.format)
    for passage in used:
        text = passage.text or ""
        if len(text) > MAX_CHARS:
            code, message = "text_too_long", f"{len(text):,} characters, which is over {MAX_CHARS:,}"
        elif not storable(text):
            code = "unusable_text"
            message = "the passage has a NUL or a lone surrogate, so it cannot be sent or stored"
        else:
            continue
        k = next(k for k, listed in enumerate(response.provenance) if listed is passage)
        sheet.add(owner, code, f"{base}[{k}].text", message)


def _below(path: str, field: str) -> str:
    """The path of a field, or the path itself where a format has lines instead of fields."""
    return path + field if "$" in path else path


def rank_of(response: Response) -> int | None:
    """A response's rank for an exclusion; None where its size exceeds `MAX_RANK`."""
    return response.rank if abs(response.rank) <= MAX_RANK else None
