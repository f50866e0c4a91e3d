"""Runs to pool: what is judged, with which passages, under which id (pure).

A pooled response is a distinct (turn, normalized text, set of used passages). Its id depends on that content
and on the pool being extended, never on the order of files, runs or turns.
"""

import functools
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Literal, TypeVar

import msgspec

from judge.errors import InputError, UsageError
from judge.ids import natural_key, topic_of
from judge.records import (
    Exclusion,
    Passage,
    Pool,
    PooledResponse,
    Problem,
    Provenance,
    ProvenanceRule,
    Response,
    Run,
    RunEntry,
    TokenCount,
)

TOP_PASSAGES = 5
"""How many passages count as used when a response flags none (TREC iKAT guidelines)."""

OverLimit = Literal["flag", "truncate", "exclude"]

_Row = TypeVar("_Row")


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


_Distinct = tuple[str, str, tuple[str, ...]]
"""Turn id, normalized text, passage keys: what makes a response distinct."""


def normalize(text: str) -> str:
    r"""The text as compared between runs: Unicode NFC without outer white space, nothing else.

    >>> normalize(" cafe\u0301  au lait\n")
    'café  au lait'
    """
    return unicodedata.normalize("NFC", text).strip()


def used_provenance(response: Response, format: str) -> tuple[tuple[Provenance, ...], ProvenanceRule]:
    """The passages a response rests on, and the rule that found them.

    Those flagged `used` (in iKAT 2025 the citations); if none is, the first five different ones by falling
    score, or in the order of the list where a score is missing or not finite. A passage listed twice counts once.
    """
    flagged = [passage for passage in response.provenance if passage.used]
    if flagged:
        return _distinct(flagged), "citations" if format == "ikat2025" else "used"
    scores = [passage.score for passage in response.provenance]
    ranked: Sequence[Provenance] = response.provenance
    if all(score is not None and math.isfinite(score) for score in scores):
        ranked = sorted(response.provenance, key=lambda passage: -(passage.score or 0.0))
    return _distinct(ranked)[:TOP_PASSAGES], "top5"


def _distinct(provenance: Sequence[Provenance]) -> tuple[Provenance, ...]:
    first: dict[str, Provenance] = {}
    for passage in provenance:
        first.setdefault(passage.passage_id, passage)
    return tuple(first.values())


def candidates(run: Run, *, depth: int = 1) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """The `depth` best-ranked responses of each turn, and a row for each response that is left out.

    A response without text uses up its place: the next one in rank does not move up.
    """
    if depth < 1:
        raise UsageError(f"the pool depth must be 1 or more, not {depth}")
    kept: list[Candidate] = []
    excluded: list[Exclusion] = []
    for turn in run.turns:
        if not run.eval_response:
            detail = "the run says eval_response: false"
            excluded.append(Exclusion(run.run_id, turn.turn_id, None, "eval_response_false", detail))
            continue
        for place, response in enumerate(sorted(turn.responses, key=lambda response: response.rank), 1):
            if place > depth:
                reason, detail = "below_depth", f"number {place} by rank, pool depth {depth}"
            elif not response.text.strip():
                reason, detail = "empty_text", "the response has no text"
            else:
                used, rule = used_provenance(response, run.format)
                kept.append(Candidate(run.run_id, turn.turn_id, response.rank, response.text, used, rule))
                continue
            excluded.append(Exclusion(run.run_id, turn.turn_id, response.rank, reason, detail))
    return tuple(kept), tuple(excluded)


def build_pool(
    candidates: Iterable[Candidate],
    collection: Mapping[str, Passage] | None,
    count_tokens: Callable[[str], TokenCount],
    *,
    over_limit: OverLimit,
    limit: int,
    rule: Literal["bare", "english"],
    previous: Pool | None = None,
    excluded: Iterable[Exclusion] = (),
) -> Pool:
    """Group candidates into pooled responses and number them.

    With a `collection` only its texts are evidence; without one, the texts that the runs gave. A passage
    without text keeps its key in the response and has no entry in the pool's passages. `excluded` are the rows
    found before this stage; they join the pool's own.

    `previous` is the pool to extend: its responses keep id, text and passages, even those that no run holds
    any more, so that an id never changes its meaning. A run of `previous` that is here again is replaced whole.

    Raises:
        InputError: A passage of `previous` has another text now.
    """
    exclusions = list(excluded)
    current = {row.run_id for row in exclusions}
    passages = dict(previous.passages) if previous else {}
    changed: set[str] = set()
    groups: dict[_Distinct, list[_Member]] = {}
    for candidate in candidates:
        current.add(candidate.run_id)
        judged = _within_limit(candidate.text, count_tokens, over_limit)
        if judged is None:
            exclusions.append(_over_limit(candidate, count_tokens(candidate.text), limit, rule))
            continue
        text, tokens = judged
        keys: set[str] = set()
        for provenance in candidate.used:
            key, passage = _evidence(provenance, collection)
            keys.add(key)
            if passage and passages.setdefault(key, passage).text != passage.text:
                changed.add(key)
        digest = hashlib.sha256(candidate.text.encode()).hexdigest()
        entry = RunEntry(candidate.run_id, candidate.rank, candidate.provenance_rule, digest)
        distinct = (candidate.turn_id, normalize(text), tuple(sorted(keys, key=_natural)))
        groups.setdefault(distinct, []).append(_Member(text, tokens, text != candidate.text, entry))
    if changed:
        raise InputError(
            "passages have other texts than in the pool that is to be extended; pool into a new folder",
            [_changed(key) for key in sorted(changed, key=_natural)],
        )

    kept = {_distinct_key(response): response for response in previous.responses} if previous else {}
    responses = [_merge(response, groups.get(key, ()), current) for key, response in kept.items()]
    first = max((int(response.response_id[1:]) + 1 for response in kept.values()), default=0)
    for number, distinct in enumerate(sorted(groups.keys() - kept.keys(), key=_canonical), first):
        responses.append(_pooled(f"R{number:05d}", distinct, groups[distinct]))
    if previous:
        exclusions.extend(row for row in previous.exclusions if row.run_id not in current)
    return Pool(
        responses=tuple(sorted(responses, key=lambda r: (*_natural(r.turn_id), *_natural(r.response_id)))),
        passages={key: passages[key] for key in sorted(passages, key=_natural)},
        exclusions=tuple(sorted(exclusions, key=_exclusion_order)),
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
    # What is left may count differently on its own, hence the loop; each round shortens the text.
    while tokens.cut is not None:
        text = text[: tokens.cut]
        tokens = count_tokens(text)
    return (text, tokens) if text.strip() else None


def _natural(text: str) -> tuple[object, str]:
    """Sort key: natural order, then the text itself, since `01` and `1` are equal in natural order."""
    return natural_key(text), text


def _canonical(key: _Distinct) -> tuple[object, ...]:
    turn_id, text, passages = key
    return (*_natural(turn_id), text, tuple(map(_natural, passages)))


def _exclusion_order(row: Exclusion) -> tuple[object, ...]:
    rank = -1 if row.rank is None else row.rank
    return (*_natural(row.run_id), *_natural(row.turn_id), rank, row.reason, row.detail)


def _entry_order(entry: RunEntry) -> tuple[object, ...]:
    return (*_natural(entry.run_id), entry.rank, entry.provenance_rule, entry.text_sha256)


def _run_key(passage_id: str, text: str) -> str:
    return f"{passage_id}#{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _evidence(provenance: Provenance, collection: Mapping[str, Passage] | None) -> tuple[str, Passage | None]:
    """The key of a used passage, and the passage if there is text to judge against."""
    passage_id, text = provenance.passage_id, provenance.text
    if collection is not None:
        found = collection.get(passage_id)
        return passage_id, found if found and found.text.strip() else None
    if text is None or not text.strip():
        return passage_id, None
    return _run_key(passage_id, text), Passage(passage_id, text, "run")


def _over_limit(candidate: Candidate, tokens: TokenCount, limit: int, rule: str) -> Exclusion:
    detail = (
        f"over {limit} tokens by the {rule} rule: "
        f"bare {tokens.bare}, english {tokens.english}, whitespace {tokens.whitespace}"
    )
    return Exclusion(candidate.run_id, candidate.turn_id, candidate.rank, "over_limit", detail)


def _changed(key: str) -> Problem:
    message = f"the text of passage {key} is not the one that the pool holds"
    return Problem("passage_changed", "error", "passages.jsonl", None, "$", message)


def _distinct_key(response: PooledResponse) -> _Distinct:
    return response.turn_id, normalize(response.text), response.passages


def _pooled(response_id: str, key: _Distinct, members: Sequence[_Member]) -> PooledResponse:
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


def pool_jsonl(pool: Pool) -> bytes:
    """`pool.jsonl`: one pooled response a line, fields in the order of the record."""
    return b"".join(msgspec.json.encode(response) + b"\n" for response in pool.responses)


def pool_lines(pool: Pool, tag: str = "judge") -> str:
    """`pool.txt`: the TREC pool of CAsT-ReGIn, with single spaces."""
    return "".join(f"{r.turn_id} Q0 {r.response_id} 1 0.0 {tag}\n" for r in pool.responses)


def bank_json(pool: Pool) -> bytes:
    """`bank.json`: response id to text, in the form of the CAsT-ReGIn response bank."""
    bank = {r.response_id: r.text for r in sorted(pool.responses, key=lambda r: _natural(r.response_id))}
    return json.dumps(bank, indent=4, ensure_ascii=False).encode() + b"\n"


class _PassageLine(msgspec.Struct, frozen=True):
    """One line of `passages.jsonl`; the first two names are those of the iKAT collection."""

    id: str
    contents: str
    key: str
    source: Literal["run", "collection"]


def passages_jsonl(pool: Pool) -> bytes:
    """`passages.jsonl`: every passage text that the pool's requests may quote, a line each, by key."""
    lines = (_PassageLine(p.passage_id, p.text, key, p.source) for key, p in pool.passages.items())
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


_EXCLUDED_HEADER = "run_id\tturn_id\trank\treason\tdetail"
_UNSAFE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)")
_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_LONG = {short[1]: char for char, short in _SHORT.items()}


def excluded_tsv(exclusions: Iterable[Exclusion]) -> bytes:
    r"""`excluded.tsv`: what is not judged and why; what would break a line is escaped (`\t`, `\n`, `\u0000`)."""
    rows = [_EXCLUDED_HEADER]
    for row in sorted(exclusions, key=_exclusion_order):
        rank = "" if row.rank is None else str(row.rank)
        fields = (row.run_id, row.turn_id, rank, row.reason, row.detail)
        rows.append("\t".join(_UNSAFE.sub(_escape, field) for field in fields))
    return ("\n".join(rows) + "\n").encode()


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0], f"\\u{ord(match[0]):04x}")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _LONG.get(code, match[0])


def read_pool(responses: bytes, passages: bytes, name: str, excluded: bytes = b"") -> Pool:
    """The pool behind `pool.jsonl`, `passages.jsonl` and `excluded.tsv` of the folder `name`.

    Raises:
        InputError: Lines are damaged; every one is listed.
    """
    problems: list[Problem] = []
    by_key: dict[str, Passage] = {}
    for line, bad in _decoded(passages, _PassageLine, f"{name}/passages.jsonl", problems):
        if line.key in by_key:
            bad("$.key", f"the key {line.key} is on an earlier line too")
        if line.key != (line.id if line.source == "collection" else _run_key(line.id, line.contents)):
            bad("$.key", f"the key {line.key} does not belong to this id and text")
        by_key[line.key] = Passage(line.id, line.contents, line.source)
    by_id: dict[str, PooledResponse] = {}
    distinct: dict[_Distinct, str] = {}
    for response, bad in _decoded(responses, PooledResponse, f"{name}/pool.jsonl", problems):
        found = response.response_id
        if not re.fullmatch("R[0-9]{5,9}", found):
            bad("$.response_id", f"{found!r} is not R and five digits or more")
        if found in by_id:
            bad("$.response_id", f"{found} is on an earlier line too")
        same = distinct.setdefault(_distinct_key(response), found)
        if same != found:
            bad("$", f"{found} has the turn, the text and the passages of {same}")
        by_id[found] = response
    exclusions = tuple(_read_excluded(excluded, f"{name}/excluded.tsv", problems))
    if problems:
        raise InputError(f"{name}: the files of the pool are damaged", problems)
    return Pool(tuple(by_id.values()), by_key, exclusions)


def _decoded(
    data: bytes, row_type: type[_Row], file: str, problems: list[Problem]
) -> Iterator[tuple[_Row, Callable[[str, str], None]]]:
    """Each readable line of a JSONL file, with a way to add a problem at that line."""
    decoder = msgspec.json.Decoder(row_type)
    for number, line in enumerate(data.split(b"\n"), 1):
        bad = functools.partial(_damaged, problems, file, number)
        if line:
            try:
                row = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                message, _, path = str(error).partition(" - at `")
                bad(path.rstrip("`") or "$", message)
            else:
                yield row, bad


def _damaged(problems: list[Problem], file: str, number: int, path: str, message: str) -> None:
    problems.append(Problem("pool_damaged", "error", file, None, f"line {number}: {path}", message))


def _read_excluded(data: bytes, file: str, problems: list[Problem]) -> Iterator[Exclusion]:
    lines = data.decode(errors="replace").split("\n")
    if data and lines[0] != _EXCLUDED_HEADER:
        _damaged(problems, file, 1, "$", f"expected the header {_EXCLUDED_HEADER!r}")
    for number, line in enumerate(lines[1:], 2):
        fields = [_ESCAPE.sub(_unescape, field) for field in line.split("\t")]
        if len(fields) == 5 and re.fullmatch("(-?[0-9]{1,18})?", fields[2]):
            run_id, turn_id, rank, reason, detail = fields
            yield Exclusion(run_id, turn_id, int(rank) if rank else None, reason, detail)
        elif line:
            _damaged(problems, file, number, "$", "expected five fields between tabs, the third a rank or empty")
