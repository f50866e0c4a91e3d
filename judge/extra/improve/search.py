"""The search for a better wording: rounds of proposals, each asked on dev, until a round gains nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from judge.ask.asking import Asking
from judge.ask.records import Failure, Judgment
from judge.calibrate.disagreements import disagreements
from judge.calibrate.panel import JudgeColumn, Panel
from judge.errors import InputError, OperationalError
from judge.extra.improve import Wordings, improves
from judge.extra.improve.page import Ledger, LedgerLine
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import DevItem, Proposal, Proposer, Round, Tried
from judge.extra.improve.rewriting import Parent, RefusedWordingError, checked_wording
from judge.gold.rows import GoldRow, deciding
from judge.io.steps import Step, Steps
from judge.jobs.calibration.inputs import make_comparison
from judge.jobs.calibration.labels import CalibrationJudges
from judge.records import Criterion

_NUMBERED = "{}-{}-{}"
"""The name of a wording that has none: the first variant's, the round, and the place in the round."""


class WordingEntry:
    """One wording of the ledger."""

    def __init__(self, variant: str, number: int, proposal: Proposal, by: str) -> None:
        self.variant = variant
        self.round = number
        self.parent = proposal.parent
        self.by = by
        self.refused = proposal.refused
        self.criterion: Criterion | None = None
        self.nested: float | None = None
        """The agreement of the choice among all wordings up to its round, on topics that it was not made on."""


class WordingSearch:
    """The wordings of one job and what the judge said under each."""

    def __init__(
        self,
        plan: ImprovePlan,
        judges: CalibrationJudges,
        asking: Asking,
        *,
        first: Criterion,
        content: str,
        proposer: Proposer,
    ) -> None:
        self.judges = judges
        self.first = first
        self.contents = {first.variant: content}
        """The text of the file of each wording that was tried, by variant."""
        self.results: list[Judgment | Failure] = []
        self.entries: list[WordingEntry] = []
        self.stopped = ""
        """Why there is no further round."""
        self._plan = plan
        self._asking = asking
        self._proposer = proposer
        self._tried = {first.variant: first}
        self._compared: Wordings | None = None
        self._results_compared = 0
        """How many results there were when wordings were last compared."""
        self._asked_now: set[str] = set()
        """The texts that an optimizer has asked about in this round."""

    @property
    def wordings(self) -> Wordings:
        """All wordings on dev."""
        if self._compared is not None and self._results_compared == len(self.results):
            return self._compared
        panels, _ = make_comparison(self.judges.inputs, self.judges.dev, self.judges.sources(self.results))
        (panel,) = panels
        panel = self.first_in_front(panel)
        self._compared = Wordings(panel, "dev" if panel.split[0] == "dev" else "all", self.first.prompt_id)
        self._results_compared = len(self.results)
        return self._compared

    def first_in_front(self, panel: Panel) -> Panel:
        """The panel with the first prompt before the others, so that of equals it is the one that stays."""
        columns = sorted(panel.columns, key=lambda column: column.prompt != self.first.prompt_id)
        return replace(panel, columns=tuple(columns))

    @property
    def chosen(self) -> Criterion:
        """The wording that agrees best on dev; the first prompt where none agrees better."""
        best = self.wordings.best
        return self.first if best is None else self.judges.inputs.prompts[best.prompt or ""]

    def run(self, steps: Steps) -> None:
        """Ask under the first prompt, and then round by round under others."""
        steps(Step("asking under the first prompt"))
        entry = WordingEntry(self.first.variant, 0, Proposal(""), "")
        entry.criterion = self.first
        self.entries.append(entry)
        self.ask([self.first], self.judges.dev)
        for number in range(1, self._plan.rounds + 1):
            before = frozenset(self._tried)
            self._asked_now.clear()
            steps(Step(f"round {number} of {self._plan.rounds}"))
            begun = len(self.entries)
            proposals = list(self._proposer.propose(self._round(number)))
            refuse_spent(self.results)
            self._take(number, proposals)
            if len(self.entries) == begun:
                self.stopped = "there were no more proposals"
                return
            wordings = self.wordings
            nested = wordings.nested(self._plan.resampling_seed)
            for entry in self.entries[begun:]:
                entry.nested = nested
            if not self._gained(wordings, before):
                self.stopped = f"round {number} gained nothing"
                return
        self.stopped = f"round {self._plan.rounds} was the last one asked for"

    def ask(self, criteria: Sequence[Criterion], rows: Sequence[GoldRow]) -> None:
        """Ask the judge about graded items under wordings; an OperationalError where the budget ends before."""
        (judge,) = self.judges.judges
        results = self._asking.ask(judge, self.judges.tasks(rows, criteria))
        self.results.extend(results)
        refuse_spent(results)

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
            entry = self._enter(number, proposal)
            if entry.criterion is not None:
                new.append(entry.criterion)
        if new:
            self.ask(new, self.judges.dev)

    def _enter(self, number: int, proposal: Proposal) -> WordingEntry:
        """Enter a proposal, and check it."""
        place = sum(entry.round == number for entry in self.entries) + 1
        variant = proposal.name
        if not variant or variant in self._tried:
            variant = _NUMBERED.format(self.first.variant, number, place)
        entry = WordingEntry(variant, number, proposal, self._proposer.name)
        self.entries.append(entry)
        if entry.refused:
            return entry
        try:
            criterion = checked_wording(proposal.content, variant, self.first, self._tried)
        except RefusedWordingError as refused:
            entry.refused = str(refused)
            return entry
        entry.criterion = criterion
        self._tried[variant] = criterion
        self.contents[variant] = proposal.content
        self.judges.inputs.prompts[criterion.prompt_id] = criterion
        return entry

    def _round(self, number: int) -> Round:
        """What the proposer is told."""
        wordings = self.wordings
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
        criterion = self.judges.inputs.prompts[column.prompt or ""]
        alone = replace(wordings.panel, columns=(column,))
        return Parent(
            criterion=criterion,
            content=self.contents[criterion.variant],
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
        entry = self._enter(number, Proposal(text))
        criterion = entry.criterion
        if criterion is None:
            raise InputError(f"{entry.variant}: {entry.refused}")
        self.ask([criterion], self.judges.dev)
        wordings = self.wordings
        column = wordings.columns[criterion.prompt_id]
        grades = {item.response_id: item.grade for item in self._items(wordings, column)}
        return Tried(wordings.value(column), grades)

    def ledger(self, seen: int) -> Ledger:
        """A line for every wording, the refused ones too; `seen`: for how many questions the test was opened."""
        wordings = self.wordings
        columns = wordings.columns
        seed = self._plan.resampling_seed
        kept = {column.prompt for column in wordings.kept(seed)}
        chosen = self.chosen
        lines = []
        for entry in self.entries:
            criterion = entry.criterion
            column = columns.get(criterion.prompt_id) if criterion else None
            status = "refused" if criterion is None else "dropped"
            if criterion is not None and criterion.prompt_id in kept:
                status = "kept"
            if criterion is chosen:
                status = "chosen"
            lines.append(
                LedgerLine(
                    candidate=entry.variant,
                    round=entry.round,
                    parent=entry.parent or None,
                    proposer=entry.by or None,
                    prompt_digest=criterion.digest if criterion else None,
                    status=status,
                    agreement=wordings.agreement(column, seed, self._plan.replicates) if column else None,
                    missing=wordings.missing(column) if column else None,
                    gain=wordings.gain(column, seed) if column and criterion is not self.first else None,
                    nested=entry.nested if criterion else None,
                    reason=entry.refused or None,
                )
            )
        return Ledger(
            statistic=wordings.statistic,
            judge=self.judges.judges[0].name,
            proposer=self._proposer.name,
            stopped=self.stopped,
            nested=wordings.nested(seed),
            openings=seen,
            lines=tuple(lines),
        )


def refuse_spent(results: Iterable[Judgment | Failure]) -> None:
    """Refuse to choose among wordings of which some were not asked to the end, because the budget was spent."""
    if any(isinstance(result, Failure) and result.reason == "budget" for result in results):
        raise OperationalError(
            "the budget is spent before a wording is chosen: the test grades stay closed; the same command with a "
            "higher --max-cost goes on from here"
        )
