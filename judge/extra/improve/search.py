"""The search for a better prompt on dev: rounds of wordings until one gains nothing, then examples and cuts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from judge.ask.asking import Asking
from judge.calibrate.disagreements import disagreements
from judge.calibrate.panel import JudgeColumn
from judge.errors import InputError, OperationalError
from judge.extra.improve import Wordings, improves
from judge.extra.improve.cutting import add_cuts
from judge.extra.improve.entries import WordingEntries
from judge.extra.improve.grades import CandidateGrades
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import DevItem, Proposal, Proposer, Round, Tried
from judge.extra.improve.rewriting import Parent
from judge.extra.improve.showing import add_examples
from judge.gold.rows import deciding
from judge.io.steps import Step, Steps
from judge.jobs.calibration.labels import CalibrationJudges
from judge.records import Criterion


class WordingSearch:
    """A search of one job: its candidates, and the judge's grades under them."""

    def __init__(
        self,
        plan: ImprovePlan,
        judges: CalibrationJudges,
        asking: Asking,
        *,
        first: Criterion,
        content: str,
        proposer: Proposer | None,
    ) -> None:
        self.judges = judges
        self.first = first
        self.candidates = WordingEntries(judges, first, content, "" if proposer is None else proposer.name)
        self.grades = CandidateGrades(judges, asking, first)
        self.stopped = ""
        """Why there is no further round."""
        self.notes: list[str] = []
        """A sentence for each way that could not be tried, and on what examples took from dev."""
        self._plan = plan
        self._proposer = proposer
        self._failed: OperationalError | None = None
        """What ended an optimizer's question; the search ends with it where the optimizer does not."""
        self._asked_now: set[str] = set()
        """The texts that an optimizer has asked about in this round."""

    def run(self, steps: Steps) -> None:
        """Ask under the first prompt, then round by round under others, and fit cuts to the best."""
        steps(Step("asking under the first prompt"))
        self.grades.ask([self.first], self.judges.dev)
        if self._proposer is not None:
            self._rewrite(self._proposer, steps)
        if "examples" in self._plan.ways:
            steps(Step("asking with examples"))
            self.notes += add_examples(self._plan, self.candidates, self.grades)
        if "cuts" in self._plan.ways:
            steps(Step("fitting cuts"))
            self.notes += add_cuts(self._plan, self.candidates, self.grades)

    def _rewrite(self, proposer: Proposer, steps: Steps) -> None:
        """Rounds of other wordings."""
        for number in range(1, self._plan.rounds + 1):
            before = self.candidates.tried
            self._asked_now.clear()
            steps(Step(f"round {number} of {self._plan.rounds}"))
            begun = len(self.candidates.entries)
            proposals = list(proposer.propose(self._round(number)))
            if self._failed is not None:
                raise self._failed
            self._take(number, proposals)
            if len(self.candidates.entries) == begun:
                self.stopped = "there were no more proposals"
                return
            if not self._gained(self.grades.wordings, before):
                self.stopped = f"round {number} gained nothing"
                return
        self.stopped = f"round {self._plan.rounds} was the last one asked for"

    def _gained(self, wordings: Wordings, before: frozenset[str]) -> bool:
        """Whether a wording agrees better than all that there were before."""
        best: dict[bool, float | None] = {False: None, True: None}
        for prompt, column in wordings.columns.items():
            old = prompt.partition("/")[2] in before
            value = wordings.value(column)
            if improves(best[old], value):
                best[old] = value
        return improves(best[True], best[False])

    def _take(self, number: int, proposals: Sequence[Proposal]) -> None:
        """Enter the proposals of a round, and ask under those that are prompts to try."""
        new = []
        for proposal in proposals:
            if proposal.content and proposal.content in self._asked_now:
                continue
            entry = self.candidates.enter(number, proposal, self.candidates.proposer)
            if entry.criterion is not None:
                new.append(entry.criterion)
        if new:
            self.grades.ask(new, self.judges.dev)

    def _round(self, number: int) -> Round:
        """What the proposer is told."""
        wordings = self.grades.wordings
        seed = self._plan.resampling_seed
        parents = [self._parent(wordings, column) for column in wordings.kept(seed)]
        best = wordings.best
        return Round(
            number=number,
            variants=self._plan.variants,
            shown=self._plan.shown,
            kept=tuple(parents),
            items=() if best is None else tuple(self._items(wordings, best)),
            ask=lambda text: self._ask_now(number, text),
        )

    def _parent(self, wordings: Wordings, column: JudgeColumn) -> Parent:
        criterion = self.grades.prompt_of(column)
        alone = replace(wordings.panel, columns=(column,))
        return Parent(
            criterion=criterion,
            content=self.candidates.contents[criterion.variant],
            agreement=wordings.value(column),
            worst=disagreements((alone,), self.judges.pool, self.judges.turns),
        )

    def _items(self, wordings: Wordings, column: JudgeColumn) -> Iterable[DevItem]:
        """The items of dev with people's grades and those of the judge under a wording."""
        texts = {response.response_id: response.text for response in self.judges.pool.responses}
        panel = wordings.panel
        for item, rows, inside, code in zip(
            panel.items, panel.gold, panel.within(wordings.split).tolist(), column.codes.tolist(), strict=True
        ):
            if inside:
                yield DevItem(
                    turn_id=item.turn_id,
                    topic_id=item.topic_id,
                    response_id=item.response_id,
                    gold=tuple(row.grade for row in deciding(rows)),
                    grade=None if code < 0 else panel.grades[code],
                    text=texts.get(item.response_id, ""),
                )

    def _ask_now(self, number: int, text: str) -> Tried:
        """What an optimizer asks; it is a candidate like those that it returns."""
        self._asked_now.add(text)
        entry = self.candidates.enter(number, Proposal(text), self.candidates.proposer)
        criterion = entry.criterion
        if criterion is None:
            raise InputError(f"{entry.variant}: {entry.refused}")
        try:
            self.grades.ask([criterion], self.judges.dev)
        except OperationalError as error:
            self._failed = error
            raise
        wordings = self.grades.wordings
        column = wordings.columns[criterion.prompt_id]
        grades = {item.response_id: item.grade for item in self._items(wordings, column)}
        return Tried(wordings.value(column), grades)
