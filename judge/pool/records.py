"""The records of a pool. Pure."""

import re
from textwrap import indent
from typing import Literal

import msgspec

from judge.records import JudgedUnit, Passage, Record
from judge.runs.records import Exclusion, ProvenanceRule, TokenCount
from judge.units import UNITS

_OF_RUN = re.compile("#[0-9a-f]{64}$")
"""What a passage key has after the id, where a run gave the text."""

OverLimit = Literal["flag", "truncate", "exclude"]
"""What becomes of a response over the token limit."""


MissingPassages = Literal["fail", "skip-response", "judge-without"]
"""What becomes of a response with a used passage that has no text, where a criterion shows the passages."""


ProvenanceSource = Literal["ranked", "used", "both"]
"""Which passages of a turn are judged, where passages are: the first that it lists; the first of those that its
responses use; or the first that it lists, and all that the response ranked first uses."""


LeftOut = Literal[
    "eval_response_false", "not_selected_run", "not_selected_turn", "turn_not_judged", "below_depth",
    "no_relevant_passage", "empty_text", "over_limit", "unreached_topic", "uncited_sentence", "not_drawn",
    "equal_responses", "graded_by_people", "unusable_id",
]  # fmt: skip
"""Why the pool leaves out a response, beside the flags of the screen and the errors of a run."""


class RunEntry(Record, frozen=True, gc=False, omit_defaults=True):
    """One run's share in a pooled response."""

    run_id: str
    rank: int
    """The rank of the response or passage; of a citation the number of its sentence, of a response in a pair its place,
    from 1."""
    provenance_rule: ProvenanceRule
    text_sha256: str
    """Digest of the exact submitted text, which may differ from the pooled one in outer whitespace or NFC."""
    citation: int = 0
    """The place of a citation in its sentence, from 1; 0 where no citations are pooled."""


class PooledResponse(Record, frozen=True, gc=False, omit_defaults=True):
    """A distinct response of a turn with its used passages, judged once for all runs that gave it.

    In a pool of dialogues it stands for a dialogue: the response is the last one, and its turn holds all that was said
    before. In a pool of citations it is one sentence of a response with one passage that the sentence cites; in a pool
    of pairs two responses, of which `text` is shown first; in a pool of passages one passage, and no text.
    """

    response_id: str
    turn_id: str
    topic_id: str
    text: str
    passages: tuple[str, ...]
    """Keys into the pool's passages, in natural order of passage id."""
    tokens: TokenCount
    truncated: bool
    runs: tuple[RunEntry, ...]
    unit: JudgedUnit = "response"
    """What is judged: the response, the dialogue that ends with it, one citation, two responses, or a passage."""
    second: str = ""
    """The response of a pair that is shown second."""

    @property
    def shown(self) -> str:
        """The text for people; of a pair both."""
        return both(self.text, self.second) if UNITS[self.unit].orders > 1 else self.text

    @property
    def listed_under(self) -> str:
        """The id under which qrels and response runs list it: its turn, or the topic of a dialogue."""
        return self.topic_id if UNITS[self.unit].by_topic else self.turn_id

    @property
    def listed_as(self) -> str:
        """The id by which qrels and response runs list it: its own, or that of the passage."""
        return passage_id_of(self.passages[0]) if UNITS[self.unit].listed else self.response_id


def passage_id_of(key: str) -> str:
    """The id of a passage, whose key has a digest after it where a run gave the text."""
    return _OF_RUN.sub("", key)


def both(first: str, second: str) -> str:
    """Two texts for people, indented, so that no line of theirs looks like a heading."""
    return f"First:\n{indent(first, '  ')}\n\nSecond:\n{indent(second, '  ')}"


class PooledRun(Record, frozen=True):
    """A run of a pool, and the turns that it had to answer."""

    run_id: str
    run_type: str | None
    team: str | None
    format: str
    digest: str
    selected: bool
    """Whether its responses may be pooled; False if it was left out or asked not to be judged."""
    turns: tuple[str, ...] | None
    """Ids of the turns that it had to answer; None for a response bank, of which only the answered turns count."""
    year: int | None = None
    """The year of the topics that it is for; None for no known year."""
    brings_texts: bool = False
    """Whether it had to bring the texts of its passages, since it was pooled without a file of the collection."""


class PooledTurn(Record, frozen=True, gc=False, omit_defaults=True):
    """A turn of an interactive run, of a dialogue or of a table: what the user said, and where in the conversation."""

    turn_id: str
    """The run's own id, `~` and 16 digits of the digest of the conversation up to here; of a table without these."""
    topic_id: str
    utterance: str
    ptkb: tuple[str, ...]
    """PTKB statements that the user told here and not before."""
    previous: str | None
    """Id of the turn before; None of the first one."""
    answer: str | None
    """What the run answered to the turn before, empty for no answer; None of the first one."""
    references: tuple[str, ...] = ()
    """Reference answers of a table, any of which is right."""


class Pool(Record, frozen=True):
    """The responses to be judged with their passages, and every exclusion."""

    responses: tuple[PooledResponse, ...]
    passages: dict[str, Passage]
    """Key to passage: its id, then `#` and the text's SHA-256 in hexadecimal if a run gave the text."""
    exclusions: tuple[Exclusion, ...]
    runs: tuple[PooledRun, ...] = ()
    turns: dict[str, PooledTurn] = msgspec.field(default_factory=dict)
    """The turns of interactive runs, of dialogues and of tables by id: those of the responses, and those that led to
    them."""
    answers: tuple[PooledResponse, ...] = ()
    """The whole responses that the parts stand in; empty where whole responses are pooled."""

    @property
    def unit(self) -> JudgedUnit:
        """What a judgment of the pool is about; a pool without responses is one of responses."""
        return self.responses[0].unit if self.responses else "response"


def whole_responses(pool: Pool) -> Pool:
    """A pool of citations as one of the responses that they stand in; any other pool as it is."""
    if not UNITS[pool.unit].part_of_response or not pool.answers:
        return pool
    # The rank of these is the number of a sentence.
    exclusions = tuple(row for row in pool.exclusions if row.reason != "uncited_sentence")
    return msgspec.structs.replace(pool, responses=pool.answers, exclusions=exclusions, answers=())


def pool_places(pool: Pool) -> dict[str, int]:
    """Response id to its place in the pool."""
    return {response.response_id: place for place, response in enumerate(pool.responses)}


def is_new(response_id: str, seen: bytearray, places: dict[str, int]) -> bool:
    """Note a response in `seen`, a byte for each place, and say whether it is new there.

    A set of ids would take a hundred times the memory. An id without a place in `places`, those of `pool_places`, gets
    the next one.
    """
    place = places.setdefault(response_id, len(places))
    seen.extend(bytes(len(places) - len(seen)))
    new, seen[place] = not seen[place], 1
    return new
