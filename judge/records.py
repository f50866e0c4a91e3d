"""Records: what crosses a stage; frozen, in file-column order. Pure.

Ids are always strings. `turn_id` is `<topic_id>_<turn number>` in every track (`9-1_3`, `132_1-1`).
"""

from collections.abc import Collection
from typing import Literal

import msgspec

Severity = Literal["error", "warning"]
"""error: cannot be judged. warning: judged, but the guideline is broken."""

FailureReason = Literal[
    "unreadable", "refused", "truncated", "content_filter", "context_length",
    "provider_error", "budget", "no_passages",
]  # fmt: skip
ProvenanceRule = Literal["used", "top5", "citations"]
"""How the used passages were found: flagged `used`; the five with the highest scores; the response's citations."""
TokenRule = Literal["bare", "english", "whitespace"]
"""What the token limit goes by: one of two spaCy tokenizers, or the `split()` of the iKAT 2025 validator."""
OverLimit = Literal["flag", "truncate", "exclude"]
"""What becomes of a response over the token limit."""


MissingPassages = Literal["fail", "skip-response", "judge-without"]
"""What becomes of a response of whose used passages some have no text, where a criterion shows the passages."""


_SHOWN = 40
"""Characters of a text that a record shows of it."""


class Record(msgspec.Struct, frozen=True):
    """Base of the records: as text, a record is a line, with texts shortened and what holds others counted."""

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        shown = (f"{name}={_brief(value)}" for name, value in values if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


def _brief(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:_SHOWN]) + ("…" if len(value) > _SHOWN else "")
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(len(value)) if isinstance(value, Collection) else repr(value)


def _bare(text: str) -> str:
    return repr(text[:_SHOWN])[1:-1]


class Problem(Record, frozen=True, omit_defaults=True):
    """One defect of an input file."""

    code: str
    severity: Severity
    file: str
    turn_id: str | None
    path: str
    """JSON path from the root (`$.turns[3].responses[0].rank`), after `line N: ` in a JSONL file."""
    message: str
    count: int = 1
    """How many like it this one stands for."""


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


class Passage(Record, frozen=True):
    """A passage's text, and whose it is."""

    passage_id: str
    text: str
    source: Literal["run", "verified", "collection"]
    """A run's; a run's with the MD5 that the collection has; the collection's."""


class RunEntry(Record, frozen=True):
    """One run's share in a pooled response."""

    run_id: str
    rank: int
    provenance_rule: ProvenanceRule
    text_sha256: str
    """Digest of the exact submitted text, which may differ from the pooled one in outer whitespace or NFC."""


class PooledResponse(Record, frozen=True):
    """A distinct response of a turn with its used passages, judged once for all runs that gave it."""

    response_id: str
    turn_id: str
    topic_id: str
    text: str
    passages: tuple[str, ...]
    """Keys into the pool's passages, in natural order of passage id."""
    tokens: TokenCount
    truncated: bool
    runs: tuple[RunEntry, ...]


class Exclusion(Record, frozen=True):
    """Something submitted that is not judged, and why."""

    run_id: str
    turn_id: str
    rank: int | None
    reason: str
    detail: str


class PooledRun(Record, frozen=True):
    """A run that a pool was made from, and what it had to answer."""

    run_id: str
    run_type: str | None
    team: str | None
    format: str
    digest: str
    selected: bool
    """Whether its responses were to be pooled: not if it was left out, or asked not to be judged."""
    turns: tuple[str, ...] | None
    """Ids of the turns that it had to answer; None where only those count that it answered (a response bank)."""


class Pool(Record, frozen=True):
    """All that is to be judged, and all that is not."""

    responses: tuple[PooledResponse, ...]
    passages: dict[str, Passage]
    """Key to passage: its id, then `#` and 12 hex digits of the text's SHA-256 if a run gave the text."""
    exclusions: tuple[Exclusion, ...]
    runs: tuple[PooledRun, ...] = ()


class Level(Record, frozen=True):
    """One level of a scale; `label` is the word or number that a judge writes for it."""

    grade: int
    label: str
    description: str


class Scale(Record, frozen=True):
    """The allowed grades, which end is good, and which grades count as positive."""

    levels: tuple[Level, ...]
    polarity: Literal["higher", "lower"]
    positive: tuple[int, ...]
    unable: Level | None
    """The value for "unable to judge": never in a mean, not in qrels."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels a judge may write, the unable one last."""
        return tuple(level.label for level in (*self.levels, *((self.unable,) if self.unable else ())))


class Rollup(Record, frozen=True):
    """From sentence labels to a grade: the highest grade whose minimum share of `label` is reached."""

    label: str
    cuts: tuple[tuple[float, int], ...]
    """(minimum share, grade), from the highest share to 0."""
    ignored: str | None = None
    """Sentences with this label do not count; if none is left, the grade is the unable one."""


class Criterion(Record, frozen=True):
    """One prompt file: what is asked, on which scale, in which words."""

    name: str
    variant: str
    version: int
    inputs: tuple[str, ...]
    answer: Literal["grade", "sentences"]
    scale: Scale
    sentence_levels: tuple[Level, ...]
    rollup: Rollup | None
    system: str
    user: str
    file: str
    digest: str

    @property
    def prompt_id(self) -> str:
        """`criterion/variant`, as on the command line."""
        return f"{self.name}/{self.variant}"


AnswerForm = Literal["json", "text", "label"]
"""json: an object by schema; text: reasons, then one verdict line; label: one label, decoding constrained."""


class Message(Record, frozen=True):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(Record, frozen=True):
    """One question to a model about one pooled response."""

    response_id: str
    turn_id: str
    criterion: str
    form: AnswerForm
    messages: tuple[Message, ...]
    scale: Scale
    labels: tuple[str, ...]
    """What may be written: the scale's labels, or the labels of a sentence."""
    sentences: int
    """How many numbered sentences must be labelled; 0 when one grade is asked."""
    response: str
    passages: tuple[str, ...]
    """The raw texts behind the messages, for judges that need no prompt; not part of the digest."""
    sample: int = 0


class Completion(Record, frozen=True):
    """What came back for one request, as recorded in the journal."""

    text: str
    finish_reason: str | None
    model: str | None
    """The model as the provider named it."""
    system_fingerprint: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    """US dollars; None when the price is unknown."""
    latency: float | None = None
    """Seconds of the successful attempt."""
    attempts: int = 1
    probabilities: dict[str, float] | None = None
    """Label probabilities, renormalised over the labels."""


class Verdict(Record, frozen=True):
    """What one completion says."""

    grade: int
    rationale: str | None
    sentences: tuple[str, ...] = ()
    expected: float | None = None
    """Mean of the grades under the label probabilities."""
    unable: bool = False


class Unreadable(Record, frozen=True):
    """A completion that says no grade, and why not."""

    reason: Literal["unreadable", "refused", "truncated", "content_filter"]
    detail: str


class Judgment(Record, frozen=True, tag="judgment", tag_field="kind"):
    """One grade by one judge for one pooled response."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    grade: int
    unable: bool
    expected: float | None
    probabilities: dict[str, float] | None
    rationale: str | None
    sentences: tuple[str, ...]
    judge: str
    """`backend/model`."""
    model: str | None
    criterion_digest: str
    request_digest: str
    form: AnswerForm
    repaired: bool
    sample: int

    def __repr__(self) -> str:
        grade = "unable" if self.unable else self.grade
        return f"Judgment({_bare(self.response_id)} {_bare(self.criterion)}={grade} by {_bare(self.judge)})"


class Failure(Record, frozen=True, tag="failure", tag_field="kind"):
    """A judgment that is missing, and why; never a grade."""

    response_id: str
    turn_id: str
    topic_id: str
    criterion: str
    variant: str
    reason: FailureReason
    detail: str
    raw: str | None
    """The full raw reply where there was one."""
    judge: str
    criterion_digest: str
    request_digest: str | None
    sample: int

    def __repr__(self) -> str:
        return f"Failure({_bare(self.response_id)} {_bare(self.criterion)}: {self.reason} by {_bare(self.judge)})"


class GoldRow(Record, frozen=True):
    """One expert grade for one response."""

    turn_id: str
    topic_id: str
    criterion: str
    grade: int
    assessor: str
    response_id: str | None = None
    text_sha256: str | None = None
    """SHA-256 of the response text after NFC and outer trimming; the link where ids differ between pools."""
    run_id: str | None = None
    made: Literal["blind", "postedit", "construction", "synthetic"] = "blind"
    inclusion_probability: float | None = None
    stratum: str | None = None
    split: Literal["dev", "test"] | None = None
    distribution: dict[str, float] | None = None
    """Soft label: the probability of each grade, where the grade is a crowd's consensus."""


class Estimate(Record, frozen=True):
    """A reported number with its interval; None with a `reason` where it is undefined."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    topics: int
    reason: str | None = None
