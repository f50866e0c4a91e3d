"""The candidates of a search: every prompt that was proposed, and why some are not tried."""

from functools import cached_property

from judge.ask.prompt import defuse
from judge.extra.improve.plan import MOST_TRIED
from judge.extra.improve.proposers import Proposal
from judge.extra.improve.rewriting import RefusedWordingError, checked_wording
from judge.gold.rows import response_digest
from judge.io.ids import topic_of
from judge.io.text import count, examples
from judge.jobs.calibration.labels import CalibrationJudges
from judge.pool.build import normalize
from judge.records import Criterion

_NUMBERED = "{}-{}-{}"
"""The name of a candidate that has none: the first variant's, the round, and the place in the round."""


class WordingEntry:
    """One prompt that was proposed."""

    def __init__(self, variant: str, number: int, proposal: Proposal, by: str) -> None:
        self.variant = variant
        self.round = number
        """0 for the first prompt."""
        self.parent = proposal.parent
        self.by = by
        self.refused = proposal.refused
        """Why it is not tried; empty if it is."""
        self.criterion: Criterion | None = None
        """None where it is refused."""


class WordingEntries:
    """The first prompt and all that were proposed beside it, in their order; `proposer` is who writes wordings."""

    def __init__(self, judges: CalibrationJudges, first: Criterion, content: str, proposer: str) -> None:
        self.first = first
        self.contents = {first.variant: content}
        """The text of the file of each that was tried, by variant."""
        entry = WordingEntry(first.variant, 0, Proposal(content), "")
        entry.criterion = first
        self.entries = [entry]
        self.proposer = proposer
        self._judges = judges
        self._graded = judges.dev
        """All rows of dev, those that are shown as examples too."""
        self._tried = {first.variant: first}

    @property
    def tried(self) -> frozenset[str]:
        """The variants of those that were tried."""
        return frozenset(self._tried)

    @property
    def next_round(self) -> int:
        """The number of a round after all that there were."""
        return 1 + max(entry.round for entry in self.entries)

    @cached_property
    def _material(self) -> tuple[tuple[str, str], ...]:
        """The responses that have grades, and what assessors wrote of them: no wording may quote these."""
        seal = self._judges.seal
        sealed = seal.test.items if seal else ()
        graded = {row.turn_id for row in self._graded} | {item.turn_id for item in sealed}
        material = []
        for response in self._judges.pool.responses:
            if response.turn_id in graded:
                material.append((f"a response to {response.turn_id}", response.text))
        for row in self._graded:
            if row.comment is not None:
                material.append((f"a comment on {row.turn_id}", row.comment))
        return tuple(material)

    @cached_property
    def _tested(self) -> dict[str, str]:
        """The digests and the texts of responses of the test part to their turns, without those that dev has, too."""
        tested: dict[str, str] = {}
        others: set[str] = set()
        for response in self._judges.pool.responses:
            names = (response_digest(response), normalize(defuse(response.text)))
            if response.topic_id in self._tested_topics:
                tested.update(dict.fromkeys(names, response.turn_id))
            else:
                others.update(names)
        return {name: turn_id for name, turn_id in tested.items() if name and name not in others}

    @cached_property
    def _tested_topics(self) -> frozenset[str]:
        """The topics of the test part, sealed or not."""
        seal = self._judges.seal
        sealed = seal.test.topics if seal else ()
        return frozenset([*sealed, *(row.topic_id for row in self._judges.inputs.gold.rows if row.split == "test")])

    def _tested_turns(self, criterion: Criterion) -> list[str]:
        """The turns of the test part that examples of a prompt are of, also where they bear another name."""
        turns = []
        for example in criterion.examples:
            texts = [normalize(defuse(text)) for _, shown in example.shown for text in shown]
            if topic_of(example.turn_id) in self._tested_topics:
                turns.append(example.turn_id)
            elif name := next((name for name in (example.response_sha256, *texts) if name in self._tested), None):
                turns.append(self._tested[name])
        return turns

    def enter(self, number: int, proposal: Proposal, by: str) -> WordingEntry:
        """Enter a proposal of a round, and check it."""
        place = sum(entry.round == number for entry in self.entries) + 1
        variant = proposal.name
        while not variant or variant in self._tried:
            variant = _NUMBERED.format(self.first.variant, number, place)
            place += 1
        entry = WordingEntry(variant, number, proposal, by)
        self.entries.append(entry)
        if by == self.proposer and len(self._tried) > MOST_TRIED:
            entry.refused = f"{MOST_TRIED} wordings were tried already"
        if entry.refused:
            return entry
        try:
            criterion = checked_wording(proposal.content, variant, self.first, self._tried, self._material)
        except RefusedWordingError as refused:
            entry.refused = str(refused)
            return entry
        if turns := self._tested_turns(criterion):
            entry.refused = f"it shows {count(len(turns), 'example')} of the test part ({examples(turns, 3)})"
            return entry
        entry.criterion = criterion
        self._tried[variant] = criterion
        self.contents[variant] = proposal.content
        self._judges.inputs.prompts[criterion.prompt_id] = criterion
        return entry
