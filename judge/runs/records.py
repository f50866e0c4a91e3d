"""What a submission and its topics consist of; frozen, in file-column order. Pure."""

from typing import Literal

from judge.records import Record

ProvenanceRule = Literal["used", "top5", "citations"]
"""How the used passages were found: flagged `used`; the five with the highest scores; the response's citations."""


TokenRule = Literal["bare", "english", "whitespace"]
"""What the token limit goes by: one of two spaCy tokenizers, or the `split()` of the iKAT 2025 validator."""


class PtkbStatement(Record, frozen=True):
    """One statement of the user's personal text knowledge base."""

    ptkb_id: str
    text: str


class Exchange(Record, frozen=True):
    """One earlier exchange of a conversation, as shown in a context."""

    utterance: str
    response: str


class Turn(Record, frozen=True):
    """One user turn of a topic with all that came before it."""

    turn_id: str
    topic_id: str
    utterance: str
    resolved_utterance: str | None
    context: tuple[Exchange, ...]
    ptkb: tuple[PtkbStatement, ...]
    ptkb_provenance: tuple[str, ...] = ()
    """Ids of the statements that the topic's author linked to this turn."""
    response: str | None = None
    """The canonical response, where the topics file has one."""
    passage_ids: tuple[str, ...] = ()
    """The canonical response's passages."""


class Topic(Record, frozen=True):
    """One conversation (in CAsT 2022 one tree of conversations)."""

    topic_id: str
    title: str | None
    ptkb: tuple[PtkbStatement, ...]
    turns: tuple[Turn, ...]


class Provenance(Record, frozen=True, gc=False, forbid_unknown_fields=True, rename={"passage_id": "id"}):
    """One passage that a response names; `used` and `text` are None where the format or the run has none.

    In JSON it is an entry of a run's list of passages, so that a run's 300,000 are decoded without a detour.
    """

    passage_id: str
    score: float | None = None
    used: bool | None = None
    text: str | None = None


class Response(Record, frozen=True):
    """One response of a run for a turn; provenance in the run's own order."""

    rank: int
    text: str
    provenance: tuple[Provenance, ...]
    ptkb_provenance: tuple[str, ...] = ()


class RunTurn(Record, frozen=True):
    """What a run returned for one turn."""

    turn_id: str
    responses: tuple[Response, ...]


class Run(Record, frozen=True):
    """One submission; `digest` is the SHA-256 of the file's bytes as stored."""

    run_id: str
    run_type: str | None
    team: str | None
    format: str
    file: str
    digest: str
    eval_response: bool
    turns: tuple[RunTurn, ...]


class TokenCount(Record, frozen=True):
    """Lengths of one text under the three ways in use, and where the limit falls."""

    bare: int
    english: int
    whitespace: int
    cut: int | None
    """Offset of the end of the last token within the limit under the chosen rule; None if not over it."""


class Exclusion(Record, frozen=True):
    """Something submitted that is not judged, and why."""

    run_id: str
    turn_id: str
    rank: int | None
    reason: str
    detail: str
