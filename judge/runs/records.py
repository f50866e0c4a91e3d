"""The records of submissions and of topics, frozen, with fields in the order of file columns. Pure."""

from collections.abc import Iterator, Mapping
from typing import Literal

from judge.records import Record

ProvenanceRule = Literal["used", "top5", "citations", "ranked"]
"""How the used passages were determined: flagged `used`; the five with the highest scores; the citations; or, where
passages are judged, the list of the turn."""


TokenRule = Literal["bare", "english", "whitespace"]
"""How tokens are counted for the limit: by one of two spaCy tokenizers, or by `split()` as in iKAT 2025's validator."""


class PtkbStatement(Record, frozen=True, gc=False):
    """One statement of the user's personal text knowledge base."""

    ptkb_id: str
    text: str


class Exchange(Record, frozen=True, gc=False):
    """One earlier exchange of a conversation, as shown in a context."""

    utterance: str
    response: str


class Turn(Record, frozen=True, gc=False):
    """One user turn of a topic with the conversation before it."""

    turn_id: str
    topic_id: str
    utterance: str
    resolved_utterance: str | None
    context: tuple[Exchange, ...]
    ptkb: tuple[PtkbStatement, ...]
    ptkb_provenance: tuple[str, ...] = ()
    """Ids of the statements that the topic's author linked to this turn."""
    references: tuple[str, ...] = ()
    """Reference answers, any of which is right; the canonical response, where the topics file has one."""
    passage_ids: tuple[str, ...] = ()
    """Ids of the canonical response's passages."""
    limit: int | None = None
    """The most characters of a response, after NFKC, where the topic says so."""


class Topic(Record, frozen=True):
    """One conversation (in CAsT 2022 one tree of conversations)."""

    topic_id: str
    title: str | None
    ptkb: tuple[PtkbStatement, ...]
    turns: tuple[Turn, ...]


class Provenance(Record, frozen=True, gc=False, rename={"passage_id": "id"}, forbid_unknown_fields=True):
    """One passage that a response names; `used` and `text` are None where the format or the run has none."""

    passage_id: str
    score: float | None = None
    used: bool | None = None
    text: str | None = None


class Response(Record, frozen=True, gc=False):
    """One response of a run for a turn."""

    rank: int
    text: str
    listed: tuple[Provenance, ...]
    """The passages that the response itself lists, in the order of its provenance."""
    ptkb_provenance: tuple[str, ...] = ()
    references: Mapping[str, float | None] = {}
    """Id and score of the turn's passages, where a response lists those that it cites."""

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        """All passages in the run's own order: the turn's references, and what the response lists beside them.

        Made when asked for, since a run may have 300,000 references.
        """
        if not self.references:
            return self.listed
        cited = {passage.passage_id: passage for passage in self.listed}
        every = {key: cited.get(key) or Provenance(key, score, False) for key, score in self.references.items()}
        return tuple((every | cited).values())


class RunTurn(Record, frozen=True, gc=False):
    """The responses of a run for one turn."""

    turn_id: str
    responses: tuple[Response, ...]
    utterance: str | None = None
    """What the user said, where a run has its own conversations; None where the topics say it."""
    ptkb: tuple[str, ...] = ()
    """PTKB statements that the user of this conversation told in this turn or before, where the run has them."""

    @property
    def passages(self) -> Iterator[Provenance]:
        """The passages of all responses, as the responses list them; the references of the turn only once."""
        for place, response in enumerate(self.responses):
            yield from response.listed if place and response.references else response.provenance


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


class TokenCount(Record, frozen=True, gc=False):
    """Lengths of one text in tokens by the three rules, and where the limit cuts it."""

    bare: int
    english: int
    whitespace: int
    cut: int | None
    """Offset of the end of the last token within the limit under the chosen rule; None for a text within the limit."""


class Exclusion(Record, frozen=True, gc=False):
    """A run, turn or response that is not judged, and why."""

    run_id: str
    turn_id: str
    rank: int | None
    reason: str
    detail: str
