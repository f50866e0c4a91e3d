"""From candidates to a pool: distinct responses, each with its passages and an id. Pure.

A pooled response is a distinct (turn, normalized text, set of used passages). Its id depends on that content
and on the pool that is extended, never on the order of files, runs or turns. A turn of an interactive run or of a
dialogue is told from others by its conversation (`judge.pool.conversation`), so equal texts in unlike conversations are
two responses.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from judge.errors import InputError
from judge.io.ids import groups_of, natural_key, topic_of, with_counted_digits
from judge.io.text import digest
from judge.pool.conversation import joined, with_earlier
from judge.pool.records import OverLimit, Pool, PooledResponse, PooledTurn, RunEntry
from judge.records import JudgedUnit, Passage, file_problem
from judge.runs.records import Exclusion, Provenance, ProvenanceRule
from judge.runs.tokens import TokenCounter, truncated
from judge.units import UNITS


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One response of a run that may be judged, with its used provenance only."""

    run_id: str
    turn_id: str
    rank: int
    text: str
    used: tuple[Provenance, ...]
    provenance_rule: ProvenanceRule
    citation: int = 0


class _WholeKey(str):
    """A passage key that is compared in natural order."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return natural_key(str(self)) < natural_key(str(other))


Screen = Callable[[str, Sequence[str], bool], tuple[str, str] | None]
"""Takes a response's text, the texts of its used passages, and whether every used passage has a text.

Returns the reason and the detail of an exclusion; None for a response that is pooled."""


_Member = tuple[bool, RunEntry]
"""Whether a candidate's text was cut, and its share in a pooled response."""
Distinct = tuple[str, str, tuple[str, ...]]
"""Turn id, normalized text and passage keys: two responses that share all three are one pooled response.

The second text of a pair stands in place of the passages."""


def normalize(text: str) -> str:
    r"""The text by which responses are compared: in Unicode NFC, without outer white space, otherwise unchanged.

    >>> normalize(" cafe\u0301  au lait\n")
    'café  au lait'
    """
    return unicodedata.normalize("NFC", text).strip()


class LengthRule(NamedTuple):
    """How long a response may be, and what becomes of a longer one."""

    count_tokens: TokenCounter
    over_limit: OverLimit = "flag"
    of_runs: Mapping[str, TokenCounter] = MappingProxyType({})
    """The counters of runs that are held to other limits."""

    def counter(self, run_id: str) -> TokenCounter:
        """What counts the tokens of a run."""
        return self.of_runs.get(run_id, self.count_tokens)

    def within(self, text: str, run_id: str) -> str | None:
        """The text of a run that will be judged; None if the response is excluded."""
        count_tokens = self.counter(run_id)
        if self.over_limit == "flag" or count_tokens(text).cut is None:
            return text
        if self.over_limit == "exclude":
            return None
        text, _ = truncated(text, count_tokens)
        return text if text.strip() else None

    def exclusion(self, candidate: Candidate) -> Exclusion:
        """The exclusion of a response that is too long."""
        count_tokens = self.counter(candidate.run_id)
        tokens = count_tokens(normalize(candidate.text))
        detail = (
            f"over {count_tokens.limit} tokens by the {count_tokens.rule} rule: "
            f"bare {tokens.bare}, english {tokens.english}, whitespace {tokens.whitespace}"
        )
        return Exclusion(
            run_id=candidate.run_id, turn_id=candidate.turn_id, rank=candidate.rank, reason="over_limit", detail=detail
        )


Evidence = Callable[[Provenance], tuple[str, Passage | None]]
"""From a used passage to its key, and to the passage if it has a text."""


def build_pool(
    candidates: Iterable[Candidate],
    evidence: Evidence,
    lengths: LengthRule,
    *,
    screen: Screen | None = None,
    previous: Pool | None = None,
    excluded: Iterable[Exclusion] = (),
    turns: Iterable[PooledTurn] = (),
    unit: JudgedUnit = "response",
) -> Pool:
    """Group candidates into pooled responses and number them.

    A passage without text keeps its key in the response and has no entry in the pool's passages. Responses of
    `previous` keep id, text and passages, even where no run holds them any more, so that an id never changes its
    meaning; a run of it that is among the candidates is replaced whole. Responses that the screen excludes get no id.
    The exclusions of earlier stages stand beside the pool's own. An InputError if a passage of `previous` has another
    text now, or two conversations have one id.
    """
    passages = dict(previous.passages) if previous else {}
    groups, too_long = _grouped(candidates, evidence, lengths, passages)
    exclusions = [*excluded, *too_long]
    current = {entry.run_id for members in groups.values() for _, entry in members}
    current |= {row.run_id for row in exclusions}
    kept = {distinct_key(response): response for response in previous.responses} if previous else {}
    responses = [_merge(response, groups.get(key, ()), current) for key, response in kept.items()]
    first = max((int(response.response_id[1:]) + 1 for response in kept.values()), default=0)
    own = joined((*(previous.turns.values() if previous else ()), *turns))
    # One text for all that is about a topic.
    topics = {turn.topic_id: turn.topic_id for turn in own.values()}
    for distinct in _in_canonical_order(distinct for distinct in groups if distinct not in kept):
        turn_id, text, keys = distinct
        topic_id = topic_of(turn_id)
        # A million of them would fill the memory beside the responses.
        members = groups.pop(distinct)
        screened = _screened(screen, distinct, members, passages)
        if screened:
            exclusions += screened
            continue
        response = PooledResponse(
            response_id=f"R{first + len(responses) - len(kept):05d}",
            turn_id=turn_id,
            topic_id=topics.setdefault(topic_id, topic_id),
            text=text,
            passages=keys,
            tokens=lengths.counter(members[0][1].run_id)(text),
            truncated=any(truncated for truncated, _ in members),
            runs=_ordered({entry for _, entry in members}),
            unit=unit,
        )
        responses.append(response)
    wanted = {key for response in responses for key in response.passages if key in passages}
    if previous:
        wanted |= previous.passages.keys()
        exclusions.extend(row for row in previous.exclusions if row.run_id not in current)
    return Pool(
        responses=_by_turn(responses),
        passages={key: passages[key] for key in sorted(wanted, key=passage_order)},
        exclusions=tuple(sorted(exclusions, key=exclusion_order)),
        turns=with_earlier((response.turn_id for response in responses), own),
    )


def _screened(
    screen: Screen | None, distinct: Distinct, members: Sequence[_Member], passages: Mapping[str, Passage]
) -> list[Exclusion]:
    """The exclusions of what the screen does not let into the pool; empty where it does."""
    turn_id, text, keys = distinct
    texts = [passages[key].text for key in keys if key in passages]
    verdict = screen(text, texts, len(texts) == len(keys)) if screen is not None else None
    if verdict is None:
        return []
    reason, detail = verdict
    return [
        Exclusion(run_id=entry.run_id, turn_id=turn_id, rank=entry.rank, reason=reason, detail=detail)
        for _, entry in members
    ]


def _grouped(
    candidates: Iterable[Candidate], evidence: Evidence, lengths: LengthRule, passages: dict[str, Passage]
) -> tuple[dict[Distinct, list[_Member]], list[Exclusion]]:
    """The candidates by what is pooled once, and those that are too long; passages with a text are added."""
    groups: dict[Distinct, list[_Member]] = {}
    too_long: list[Exclusion] = []
    changed: set[str] = set()
    last_text = ""
    last_digest = digest("")
    for candidate in candidates:
        whole = normalize(candidate.text)
        text = lengths.within(whole, candidate.run_id)
        if text is None:
            too_long.append(lengths.exclusion(candidate))
            continue
        keys: set[str] = set()
        for provenance in candidate.used:
            key, passage = evidence(provenance)
            keys.add(key)
            if passage and passages.setdefault(key, passage).text != passage.text:
                changed.add(key)
        if candidate.text != last_text:
            last_text = candidate.text
            last_digest = digest(candidate.text)
        entry = RunEntry(
            run_id=candidate.run_id,
            rank=candidate.rank,
            provenance_rule=candidate.provenance_rule,
            text_sha256=last_digest,
            citation=candidate.citation,
        )
        ordered = tuple(sorted(keys, key=passage_order) if len(keys) > 1 else keys)
        distinct = (candidate.turn_id, normalize(text), ordered)
        groups.setdefault(distinct, []).append((text != whole, entry))
    if changed:
        told = [
            f"the text of passage {key} is not the one that the pool holds"
            for key in sorted(changed, key=passage_order)
        ]
        raise InputError(
            "passages have other texts than in the pool that is to be extended; pool into a new folder",
            [file_problem("passage_changed", "passages.jsonl", message, "$") for message in told],
        )
    return groups, too_long


def _in_canonical_order(new: Iterable[Distinct]) -> Iterator[Distinct]:
    """Responses by turn and text; only where responses of a turn have one text, their passages tell.

    One turn is sorted after the other, since the keys of a million passages would fill the memory.
    """
    turns = groups_of((distinct[0], distinct) for distinct in new)
    for turn_id in sorted(turns, key=natural_key):
        of_turn = turns.pop(turn_id)
        if len(of_turn) == 1:
            yield of_turn[0]
            continue
        same = Counter(text for _, text, _ in of_turn)

        def key(distinct: Distinct, same: Counter[str] = same) -> tuple[object, ...]:
            _, text, passages = distinct
            return text, tuple(map(passage_order, passages if same[text] > 1 else ()))

        yield from sorted(of_turn, key=key)


def _by_turn(responses: Iterable[PooledResponse]) -> tuple[PooledResponse, ...]:
    """The responses by turn in natural order, and by the number in their ids."""
    turns = groups_of((response.turn_id, response) for response in responses)
    ordered: list[PooledResponse] = []
    for turn_id in sorted(turns, key=natural_key):
        of_turn = turns[turn_id]
        if len(of_turn) > 1:
            of_turn.sort(key=lambda response: natural_key(response.response_id))
        ordered += of_turn
    return tuple(ordered)


def exclusion_order(row: Exclusion) -> tuple[object, ...]:
    """Sort key of exclusions: run, turn, rank."""
    rank = -1 if row.rank is None else row.rank
    return natural_key(row.run_id), natural_key(row.turn_id), rank, row.reason, row.detail


def run_key(passage_id: str, text: str) -> str:
    """The key of a passage whose text a run gave."""
    return f"{passage_id}#{digest(text)}"


def passage_order(key: str) -> tuple[str, _WholeKey]:
    """Sort key of passage keys: their natural order, of which the digest of a text is looked at only between equals.

    A digest has dozens of runs of digits, and a pool has more passages than anything else.
    """
    head, mark, _ = key.partition("#")
    return with_counted_digits(head + mark), _WholeKey(key)


def evidence_of(
    collection: Mapping[str, Passage] | None = None,
    *,
    verified: bool = False,
    source: Literal["run", "table"] = "run",
) -> Evidence:
    """What a used passage is evidence by: the text of the collection or, without one, the text that the run gave.

    `verified` says that the texts that the runs gave are known to be the collection's, `source` where they stand.
    """

    def evidence(provenance: Provenance) -> tuple[str, Passage | None]:
        passage_id = provenance.passage_id
        text = provenance.text
        if collection is not None:
            passage = collection.get(passage_id)
            return passage_id, passage if passage and passage.text.strip() else None
        if text is None or not text.strip():
            return passage_id, None
        if verified:
            # The hash list accepts a text with or without outer white space: the pool keeps one form.
            return passage_id, Passage(passage_id, text.strip(), "verified")
        return run_key(passage_id, text), Passage(passage_id, text, source)

    return evidence


def lacking_texts(response: PooledResponse, pool: Pool) -> list[str]:
    """The keys of a response's used passages that have no text in the pool."""
    return [key for key in response.passages if key not in pool.passages]


def distinct_key(response: PooledResponse) -> Distinct:
    """The turn, normalized text and passage keys of a pooled response."""
    others = (normalize(response.second),) if UNITS[response.unit].orders > 1 else response.passages
    return response.turn_id, normalize(response.text), others


def _merge(response: PooledResponse, members: Sequence[_Member], current: Set[str]) -> PooledResponse:
    """The response with the members' entries, which replace those of all runs in `current`."""
    entries = {entry for entry in response.runs if entry.run_id not in current}
    entries.update(entry for _, entry in members)
    truncated = response.truncated or any(truncated for truncated, _ in members)
    return msgspec.structs.replace(response, truncated=truncated, runs=_ordered(entries))


def _ordered(entries: Collection[RunEntry]) -> tuple[RunEntry, ...]:
    """The entries by run in natural order, then by the other fields in theirs."""
    if len(entries) == 1:
        return tuple(entries)
    return tuple(sorted(entries, key=lambda entry: (natural_key(entry.run_id), *msgspec.structs.astuple(entry)[1:])))
