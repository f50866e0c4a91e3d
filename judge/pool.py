"""Runs to pool: what is judged, with which passages, under which id (pure).

A pooled response is a distinct (turn, normalized text, set of used passages). Its id depends on that content
and on the pool being extended, never on the order of files, runs or turns.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import msgspec

from judge.errors import InputError
from judge.ids import natural_key, topic_of
from judge.records import (
    Exclusion,
    OverLimit,
    Passage,
    Pool,
    PooledResponse,
    Problem,
    Provenance,
    ProvenanceRule,
    RunEntry,
    TokenCount,
    TokenRule,
)
from judge.text import digest
from judge.tokens import truncated


class Candidate(msgspec.Struct, frozen=True):
    """One response that may be judged, without the provenance that it did not use."""

    run_id: str
    turn_id: str
    rank: int
    text: str
    used: tuple[Provenance, ...]
    provenance_rule: ProvenanceRule


class _Member(msgspec.Struct, frozen=True):
    """One candidate of a group, with its text as it will be judged."""

    text: str
    tokens: TokenCount
    truncated: bool
    entry: RunEntry


Distinct = tuple[str, str, tuple[str, ...]]
"""Turn id, normalized text, passage keys: what makes a response distinct."""


def normalize(text: str) -> str:
    r"""The text as compared between runs: Unicode NFC without outer white space, nothing else.

    >>> normalize(" cafe\u0301  au lait\n")
    'café  au lait'
    """
    return unicodedata.normalize("NFC", text).strip()


def build_pool(
    candidates: Iterable[Candidate],
    collection: Mapping[str, Passage] | None,
    count_tokens: Callable[[str], TokenCount],
    *,
    over_limit: OverLimit,
    limit: int,
    rule: TokenRule,
    verified: bool = False,
    previous: Pool | None = None,
    excluded: Iterable[Exclusion] = (),
) -> Pool:
    """Group candidates into pooled responses and number them.

    With a `collection` only its texts are evidence; without one, the texts that the runs gave, which if `verified`
    are known to be the collection's too. A passage without text keeps its key in the response and has no entry in the
    pool's passages. `excluded` are the rows found before this stage; they join the pool's own.

    `previous` is the pool to extend: its responses keep id, text and passages, even those that no run holds
    any more, so that an id never changes its meaning. A run of `previous` that is here again is replaced whole.

    Raises:
        InputError: A passage of `previous` has another text now.
    """
    exclusions = list(excluded)
    current = {row.run_id for row in exclusions}
    passages = dict(previous.passages) if previous else {}
    changed: set[str] = set()
    groups: dict[Distinct, list[_Member]] = {}
    for candidate in candidates:
        current.add(candidate.run_id)
        judged = _within_limit(candidate.text, count_tokens, over_limit)
        if judged is None:
            exclusions.append(_over_limit(candidate, count_tokens(candidate.text), limit, rule))
            continue
        text, tokens = judged
        keys: set[str] = set()
        for provenance in candidate.used:
            key, passage = _evidence(provenance, collection, verified)
            keys.add(key)
            if passage and passages.setdefault(key, passage).text != passage.text:
                changed.add(key)
        entry = RunEntry(candidate.run_id, candidate.rank, candidate.provenance_rule, digest(candidate.text))
        distinct = (candidate.turn_id, normalize(text), tuple(sorted(keys, key=natural_key)))
        groups.setdefault(distinct, []).append(_Member(text, tokens, text != candidate.text, entry))
    if changed:
        raise InputError(
            "passages have other texts than in the pool that is to be extended; pool into a new folder",
            [_changed(key) for key in sorted(changed, key=natural_key)],
        )

    kept = {distinct_key(response): response for response in previous.responses} if previous else {}
    responses = [_merge(response, groups.get(key, ()), current) for key, response in kept.items()]
    first = max((int(response.response_id[1:]) + 1 for response in kept.values()), default=0)
    for number, distinct in enumerate(sorted(groups.keys() - kept.keys(), key=_canonical), first):
        responses.append(_pooled(f"R{number:05d}", distinct, groups[distinct]))
    if previous:
        exclusions.extend(row for row in previous.exclusions if row.run_id not in current)
    return Pool(
        responses=tuple(sorted(responses, key=lambda r: (natural_key(r.turn_id), natural_key(r.response_id)))),
        passages={key: passages[key] for key in sorted(passages, key=natural_key)},
        exclusions=tuple(sorted(exclusions, key=exclusion_order)),
    )


def _within_limit(
    text: str, count_tokens: Callable[[str], TokenCount], over_limit: OverLimit
) -> tuple[str, TokenCount] | None:
    """The text as it will be judged with its lengths, None if it is not to be judged."""
    tokens = count_tokens(text)
    if tokens.cut is None or over_limit == "flag":
        return text, tokens
    if over_limit == "exclude":
        return None
    text, tokens = truncated(text, count_tokens)
    return (text, tokens) if text.strip() else None


def _canonical(key: Distinct) -> tuple[object, ...]:
    turn_id, text, passages = key
    return natural_key(turn_id), text, tuple(map(natural_key, passages))


def exclusion_order(row: Exclusion) -> tuple[object, ...]:
    """Sort key of exclusions: run, turn, rank."""
    rank = -1 if row.rank is None else row.rank
    return natural_key(row.run_id), natural_key(row.turn_id), rank, row.reason, row.detail


def _entry_order(entry: RunEntry) -> tuple[object, ...]:
    return (natural_key(entry.run_id), entry.rank, entry.provenance_rule, entry.text_sha256)


def run_key(passage_id: str, text: str) -> str:
    """The key of a passage whose text a run gave."""
    return f"{passage_id}#{digest(text)[:12]}"


def _evidence(
    provenance: Provenance, collection: Mapping[str, Passage] | None, verified: bool
) -> tuple[str, Passage | None]:
    """The key of a used passage, and the passage if there is text to judge against."""
    passage_id, text = provenance.passage_id, provenance.text
    if collection is not None:
        found = collection.get(passage_id)
        return passage_id, found if found and found.text.strip() else None
    if text is None or not text.strip():
        return passage_id, None
    if verified:
        # Texts that differ in outer white space may share an MD5 of the list: one of them is the passage.
        return passage_id, Passage(passage_id, text.strip(), "verified")
    return run_key(passage_id, text), Passage(passage_id, text, "run")


def _over_limit(candidate: Candidate, tokens: TokenCount, limit: int, rule: str) -> Exclusion:
    detail = (
        f"over {limit} tokens by the {rule} rule: "
        f"bare {tokens.bare}, english {tokens.english}, whitespace {tokens.whitespace}"
    )
    return Exclusion(candidate.run_id, candidate.turn_id, candidate.rank, "over_limit", detail)


def _changed(key: str) -> Problem:
    message = f"the text of passage {key} is not the one that the pool holds"
    return Problem("passage_changed", "error", "passages.jsonl", None, "$", message)


def distinct_key(response: PooledResponse) -> Distinct:
    """What tells a pooled response from all others."""
    return response.turn_id, normalize(response.text), response.passages


def _pooled(response_id: str, key: Distinct, members: Sequence[_Member]) -> PooledResponse:
    turn_id, _, passages = key
    # The least of the texts that differ in outer white space or NFC: a choice that no file order can change.
    shown = min(members, key=lambda member: member.text)
    bare = PooledResponse(response_id, turn_id, topic_of(turn_id), shown.text, passages, shown.tokens, False, ())
    return _merge(bare, members, frozenset())


def _merge(response: PooledResponse, members: Sequence[_Member], current: Set[str]) -> PooledResponse:
    """The response with the members' runs, less the earlier entries of the runs in `current`."""
    entries = {entry for entry in response.runs if entry.run_id not in current}
    entries.update(member.entry for member in members)
    return msgspec.structs.replace(
        response,
        truncated=response.truncated or any(member.truncated for member in members),
        runs=tuple(sorted(entries, key=_entry_order)),
    )
