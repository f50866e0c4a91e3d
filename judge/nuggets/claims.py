"""The claims of responses: its sentences, and what carries each. Files of labels, joined to a pool and a bank."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from judge.errors import InputError
from judge.files.jsonl import jsonl_bytes
from judge.files.stored import read_stored, unpack
from judge.gold.rows import text_digest
from judge.nuggets.label_lines import label_lines, missing_lines
from judge.nuggets.records import Nugget, NuggetBank
from judge.pool.records import Pool, PooledResponse
from judge.records import FailureReason, Problem, Record
from judge.text.cells import count
from judge.text.safe import digest
from judge.text.sentences import split_sentences

CLAIMS, CLAIM_FAILURES = "claims.jsonl", "failures.jsonl"
"""The files of a folder that `judge nuggets claims` wrote."""

ClaimLabel = Literal["none", "no_claim", "passage", "nugget"]
"""What carries a sentence.

nugget: nuggets of its turn or topic say what it claims. passage: they do not, but the passages that its response used
do. none: neither does. no_claim: it claims nothing.
"""
CLAIM_LABELS: tuple[ClaimLabel, ...] = get_args(ClaimLabel)
"""From worst to best for the response."""


class ResponseClaims(Record, frozen=True, omit_defaults=True):
    """What one judge or one assessor says of the sentences of a response."""

    turn_id: str
    response_id: str
    labels: tuple[ClaimLabel, ...]
    """One for each sentence of the response, in order."""
    passages: bool = False
    """Whether the passages of the response were shown, so that they may carry a sentence."""
    text_sha256: str | None = None
    """SHA-256 of the response's text in NFC without outer white space, as in gold."""
    nuggets_sha256: str | None = None
    """`nuggets_digest` of the nuggets that were shown."""
    assessor: str | None = None
    """Who labeled; None where a judge did."""
    judge: str | None = None
    """`backend/model`; None where a person labeled."""
    rationale: str | None = None
    model: str | None = None
    """The model, as the provider names it."""
    prompt: str | None = None
    """`criterion/variant`."""
    prompt_digest: str | None = None
    """SHA-256 of the prompt file."""
    request_digest: str | None = None
    repaired: bool = False
    """Whether the first reply was unreadable and the judge was asked again."""


class ClaimFailure(Record, frozen=True, omit_defaults=True):
    """A response whose sentences have no labels, and why; never the label `none`."""

    turn_id: str
    response_id: str
    reason: FailureReason
    detail: str
    judge: str
    raw: str | None = None
    """The full reply, if there was one."""
    request_digest: str | None = None


class KnownClaims(NamedTuple):
    """What is known of the sentences of responses."""

    labels: dict[str, tuple[ClaimLabel, ...]]
    """Response id to the labels of its sentences."""
    failures: dict[str, ClaimFailure]
    """Response id to why labels are missing."""
    passages: bool
    """Whether passages may carry a sentence."""
    outside: int
    """Rows of responses that the pool does not have."""


class _Line(ResponseClaims, frozen=True, forbid_unknown_fields=True):
    """A line of a file of claims."""

    topic_id: str | None = None


def nuggets_for(response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> tuple[Nugget, ...]:
    """The nuggets that may carry a claim of a response: those of its turn, then those of its topic.

    Args:
        response: The response.
        scopes: Turn or topic to its nuggets, as `NuggetBank.by_scope` gives them.
    """
    return (*scopes.get(response.turn_id, ()), *scopes.get(response.topic_id, ()))


def nuggets_digest(nuggets: Iterable[Nugget]) -> str:
    """SHA-256 over the texts of nuggets, in order."""
    return digest("\n".join(digest(nugget.text) for nugget in nuggets))


def read_claims(path: Path) -> tuple[ResponseClaims, ...]:
    """The rows of a file of claims, gzipped or not, in its order.

    Raises:
        InputError: The file cannot be read or has problems; every problem is listed.
    """
    return parse_claims(unpack(read_stored(path), str(path)).removeprefix(b"\xef\xbb\xbf"), str(path))


def parse_claims(content: bytes, name: str) -> tuple[ResponseClaims, ...]:
    """The rows in the bytes of a JSONL file of claims.

    Args:
        content: The bytes, not gzipped.
        name: The file's name, for messages.

    Raises:
        InputError: There is no row, or rows have problems; every problem is listed.
    """
    first: dict[tuple[str, str | None, str | None], int] = {}

    def problem_of(line: _Line, number: int) -> str | None:
        key = line.response_id, line.assessor, line.judge
        if (line.assessor is None) == (line.judge is None):
            return "expected `assessor` for a person's labels, or `judge` for a judge's"
        if first.setdefault(key, number) != number:
            who = "judge" if line.judge else "assessor"
            return f"the same response by the same {who} is on line {first[key]}"
        if "passage" in line.labels and not line.passages:
            return 'the label "passage" without `"passages": true`, which says that passages were shown'
        return None

    expected = "the labels of one response or more"
    return label_lines(content, name, _Line, problem_of, code="bad_claims", what="claims", expected=expected)


def read_claim_failures(path: Path) -> tuple[ClaimFailure, ...]:
    """The responses without labels of a file; none if there is no such file.

    Raises:
        InputError: Lines are damaged; each of them is listed.
    """
    return missing_lines(path, ClaimFailure, code="bad_claims", what="claims")


def claims_jsonl(rows: Iterable[ResponseClaims | ClaimFailure]) -> bytes:
    """The bytes of a file of claims; fields that say nothing are left out."""
    return jsonl_bytes(rows)


def join_claims(
    rows: Sequence[ResponseClaims], failures: Sequence[ClaimFailure], bank: NuggetBank, pool: Pool, name: str
) -> KnownClaims:
    """The labels of the sentences of every response that was labeled.

    Where several judges or several people labeled a response, the label that most of them gave a sentence counts; of
    labels that are given equally often, the worse one for the response.

    Args:
        rows: The labels.
        failures: The missing ones.
        bank: The bank.
        pool: The responses.
        name: The files, for messages.

    Raises:
        InputError: Rows are of another text or other nuggets, or have not one label a sentence, or are given twice. Or
            people and judges are mixed, or passages were shown for some rows only, or no row is of a response of the
            pool.
    """
    responses = {response.response_id: response for response in pool.responses}
    scopes = bank.by_scope()
    given: dict[str, list[tuple[ClaimLabel, ...]]] = {}
    voted: set[tuple[str, str | None, str | None]] = set()
    problems: list[Problem] = []
    outside = 0
    for row in rows:
        response = responses.get(row.response_id)
        if response is None or response.turn_id != row.turn_id:
            outside += 1
            continue
        key = row.response_id, row.judge, row.assessor
        message = _mismatch(row, response, scopes)
        if message is None and key in voted:
            message = f"labeled a second time by {row.judge or row.assessor}: expected once"
        voted.add(key)
        if message is None:
            given.setdefault(row.response_id, []).append(row.labels)
        else:
            where = f"response {row.response_id}"
            problems.append(Problem("bad_claims", "error", name, row.turn_id, where, message))
    if problems:
        raise InputError(f"{name}: not claims of this pool and bank: {count(len(problems), 'row')}", problems)
    if len({row.assessor is None for row in rows}) > 1:
        raise InputError(f"{name}: labels of people and of judges: give one kind")
    if len({row.passages for row in rows}) > 1:
        raise InputError(f"{name}: passages were shown for some responses and not for others: give one kind")
    if rows and not given:
        raise InputError(f"{name}: no row is of a response of the pool")
    labels = {response_id: tuple(map(_majority, zip(*votes, strict=True))) for response_id, votes in given.items()}
    missing = {failure.response_id: failure for failure in failures if failure.response_id not in labels}
    return KnownClaims(labels, missing, any(row.passages for row in rows), outside)


def _majority(labels: tuple[ClaimLabel, ...]) -> ClaimLabel:
    """The most frequent label; the first of CLAIM_LABELS of several that are equally frequent."""
    return max(CLAIM_LABELS, key=labels.count)


def _mismatch(row: ResponseClaims, response: PooledResponse, scopes: Mapping[str, Sequence[Nugget]]) -> str | None:
    """Why a row cannot be of this response and these nuggets, or None."""
    nuggets = nuggets_for(response, scopes)
    if not nuggets:
        return "the bank has no nugget of its turn or topic"
    if row.text_sha256 is not None and row.text_sha256 != text_digest(response.text):
        return "the pool has another text: the labels are of another pool"
    if row.nuggets_sha256 is not None and row.nuggets_sha256 != nuggets_digest(nuggets):
        return "the nuggets have changed since its sentences were labeled: label again"
    sentences = len(split_sentences(response.text))
    if len(row.labels) != sentences:
        return f"found {count(len(row.labels), 'label')}, expected one for each of its {count(sentences, 'sentence')}"
    return None
