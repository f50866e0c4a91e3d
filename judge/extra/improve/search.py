"""The search for a better prompt on dev: rounds of wordings until one gains nothing, then examples and cuts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from msgspec.structs import replace as changed_record

from judge.ask.asking import Asking
from judge.ask.prompt_edit import with_cuts
from judge.ask.records import Failure, Judgment
from judge.ask.results import Labels
from judge.calibrate.cuts import cross_fitted, why_no_cuts
from judge.calibrate.disagreements import disagreements
from judge.calibrate.panel import JudgeColumn, Panel
from judge.errors import InputError, OperationalError, UsageError
from judge.extra.improve import Wordings, improves
from judge.extra.improve.page import Ledger, LedgerLine
from judge.extra.improve.plan import MOST_TRIED, ImprovePlan
from judge.extra.improve.proposers import DevItem, Proposal, Proposer, Round, Tried, refuse_spent
from judge.extra.improve.rewriting import Parent, RefusedWordingError, checked_wording
from judge.extra.improve.showing import FEWEST, set_aside, showing_examples
from judge.gold.rows import GoldRow, deciding
from judge.io.ids import natural_key
from judge.io.steps import Step, Steps
from judge.jobs.calibration.inputs import make_comparison
from judge.jobs.calibration.labels import CalibrationJudges
from judge.jobs.prompt_files import comments_warning
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
        proposer: Proposer | None,
    ) -> None:
        self.judges = judges
        self.first = first
        self.contents = {first.variant: content}
        """The text of the file of each wording that was tried, by variant."""
        self.results: list[Judgment | Failure] = []
        self.entries: list[WordingEntry] = []
        self.stopped = ""
        """Why there is no further round."""
        self.notes: list[str] = []
        """A sentence for each way that could not be tried, and on what examples took from dev."""
        self._plan = plan
        self._asking = asking
        self._proposer = proposer
        self._by = "" if proposer is None else proposer.name
        self._graded = judges.dev
        """All rows of dev, those that are shown as examples too."""
        self._tried = {first.variant: first}
        self._compared: Wordings | None = None
        self._results_compared = 0
        """How many results there were when wordings were last compared."""
        self._cut: Labels | None = None
        """The grades of dev under cuts, of each topic by cuts of the others."""
        self._failed: OperationalError | None = None
        """What ended an optimizer's question; the search ends with it where the optimizer does not."""
        self._asked_now: set[str] = set()
        """The texts that an optimizer has asked about in this round."""

    @cached_property
    def _material(self) -> tuple[tuple[str, str], ...]:
        """The responses that have grades, and what assessors wrote of them: no wording may quote these."""
        dev = self._graded
        sealed = self.judges.seal.test.items if self.judges.seal else ()
        graded = {row.turn_id for row in dev} | {item.turn_id for item in sealed}
        material = []
        for response in self.judges.pool.responses:
            if response.turn_id in graded:
                material.append((f"a response to {response.turn_id}", response.text))
        for row in dev:
            if row.comment is not None:
                material.append((f"a comment on {row.turn_id}", row.comment))
        return tuple(material)

    @property
    def wordings(self) -> Wordings:
        """All wordings on dev."""
        if self._compared is not None and self._results_compared == len(self.results):
            return self._compared
        panels, _ = make_comparison(self.judges.inputs, self.judges.dev, self.labels())
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

    def labels(self) -> tuple[Labels, ...]:
        """What the judge said; on dev, the grades under cuts are those by cuts of other topics."""
        several = self.judges.sources(self.results)
        cut = self._cut
        if cut is None:
            return several
        others = [labels for labels in several if labels.prompt_digest != cut.prompt_digest]
        on_test = [label for labels in several if labels.prompt_digest == cut.prompt_digest for label in labels.labels]
        return (*others, changed_record(cut, labels=(*cut.labels, *on_test)))

    def run(self, steps: Steps) -> None:
        """Ask under the first prompt, then round by round under others, and fit cuts to the best."""
        steps(Step("asking under the first prompt"))
        entry = WordingEntry(self.first.variant, 0, Proposal(""), "")
        entry.criterion = self.first
        self.entries.append(entry)
        self.ask([self.first], self.judges.dev)
        if self._proposer is not None:
            self._rewrite(self._proposer, steps)
        if "examples" in self._plan.ways:
            steps(Step("asking with examples"))
            self._add_examples()
        if "cuts" in self._plan.ways:
            steps(Step("fitting cuts"))
            self._add_cuts()

    def _rewrite(self, proposer: Proposer, steps: Steps) -> None:
        """Rounds of other wordings."""
        for number in range(1, self._plan.rounds + 1):
            before = frozenset(self._tried)
            self._asked_now.clear()
            steps(Step(f"round {number} of {self._plan.rounds}"))
            begun = len(self.entries)
            proposals = list(proposer.propose(self._round(number)))
            if self._failed is not None:
                raise self._failed
            self._take(number, proposals)
            if len(self.entries) == begun:
                self.stopped = "there were no more proposals"
                return
            if not self._gained(self.wordings, before):
                self.stopped = f"round {number} gained nothing"
                return
        self.stopped = f"round {self._plan.rounds} was the last one asked for"

    @property
    def _next_round(self) -> int:
        return 1 + max(entry.round for entry in self.entries)

    def _add_examples(self) -> None:
        """Show examples in the best wording, as another candidate; their topics leave the comparison of all."""
        parts = set_aside(self.judges.dev, self.first.name, self._plan)
        wordings = self.wordings
        column = wordings.best
        if column is None or not parts.shown:
            why = f"fewer than {FEWEST} dev topics" if column else "no wording has an agreement"
            self.notes.append(f"No examples: {why}.")
            return
        base = self.judges.inputs.prompts[column.prompt or ""]
        judged = {}
        for item, code in zip(wordings.panel.items, column.codes.tolist(), strict=True):
            judged[item.turn_id, item.response_id] = None if code < 0 else wordings.panel.grades[code]
        try:
            text = showing_examples(base, self.contents[base.variant], parts.shown, self.judges, judged, self._plan)
        except (InputError, UsageError) as error:
            self.notes.append(f"No examples: {error}.")
            return
        proposal = Proposal(text, parent=base.variant, name=f"{base.variant}-examples")
        criterion = self._enter(self._next_round, proposal, "examples").criterion
        if criterion is None:
            return
        self._compare_on(parts.compared)
        self.ask([criterion], parts.compared)
        topics = sorted({row.topic_id for row in parts.shown}, key=natural_key)
        noun = "topic" if len(topics) == 1 else "topics"
        self.notes.append(f"Examples are of {noun} {', '.join(topics)}, which left the comparison on dev.")
        if warning := comments_warning(criterion.examples, f"candidates/{criterion.variant}.md"):
            self.notes.append(f"{warning}.")

    def _compare_on(self, rows: tuple[GoldRow, ...]) -> None:
        """Compare candidates on these rows of dev from now on."""
        self.judges.dev = rows
        inputs = self.judges.inputs
        kept = set(rows)
        inputs.gold = changed_record(
            inputs.gold, rows=tuple(row for row in inputs.gold.rows if row.split == "test" or row in kept)
        )
        self._compared = None

    def _add_cuts(self) -> None:
        """Fit cuts to the best wording, as another candidate; the judge is asked nothing on dev."""
        wordings = self.wordings
        column = wordings.best
        if column is None or column.origin is None:
            self.notes.append("No cuts: no wording has an agreement.")
            return
        panel = wordings.panel
        inside = panel.within(wordings.split)
        if reason := why_no_cuts(panel, column, inside):
            self.notes.append(f"No cuts: {reason}.")
            return
        seed = self._plan.resampling_seed
        found = cross_fitted(panel, column, seed, inside)
        base = self.judges.inputs.prompts[column.prompt or ""]
        try:
            text = with_cuts(self.contents[base.variant], base, found.cuts)
        except UsageError as error:
            self.notes.append(f"No cuts: {error}.")
            return
        entry = self._enter(self._next_round, Proposal(text, parent=base.variant, name=f"{base.variant}-cuts"), "cuts")
        criterion = entry.criterion
        if criterion is None:
            return
        labels = []
        for label, code in zip(column.first, found.codes.tolist(), strict=True):
            if label is None:
                continue
            if code >= 0:
                labels.append(changed_record(label, grade=panel.grades[code]))
            else:
                labels.append(changed_record(label, grade=None, reason=label.reason or "unreadable"))
        self._cut = changed_record(
            column.origin,
            prompt=criterion.prompt_id,
            prompt_digest=criterion.digest,
            labels=tuple(labels),
        )
        self._compared = None

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
            entry = self._enter(number, proposal, self._by)
            if entry.criterion is not None:
                new.append(entry.criterion)
        if new:
            self.ask(new, self.judges.dev)

    def _enter(self, number: int, proposal: Proposal, by: str) -> WordingEntry:
        """Enter a proposal, and check it."""
        place = sum(entry.round == number for entry in self.entries) + 1
        variant = proposal.name
        while not variant or variant in self._tried:
            variant = _NUMBERED.format(self.first.variant, number, place)
            place += 1
        entry = WordingEntry(variant, number, proposal, by)
        self.entries.append(entry)
        if by == self._by and len(self._tried) > MOST_TRIED:
            entry.refused = f"{MOST_TRIED} wordings were tried already"
        if entry.refused:
            return entry
        try:
            criterion = checked_wording(proposal.content, variant, self.first, self._tried, self._material)
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
        entry = self._enter(number, Proposal(text), self._by)
        criterion = entry.criterion
        if criterion is None:
            raise InputError(f"{entry.variant}: {entry.refused}")
        try:
            self.ask([criterion], self.judges.dev)
        except OperationalError as error:
            self._failed = error
            raise
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
        nested = self._nested(wordings)
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
                    nested=nested[entry.round] if criterion else None,
                    reason=entry.refused or (wordings.why_missing(column) if column else None) or None,
                )
            )
        return Ledger(
            statistic=wordings.statistic,
            judge=self.judges.judges[0].name,
            stopped=self.stopped,
            notes=tuple(self.notes),
            nested=nested[max(nested)],
            openings=seen,
            lines=tuple(lines),
        )

    def _nested(self, wordings: Wordings) -> dict[int, float | None]:
        """The agreement of the choice among all candidates up to each round, on topics that it was not made on."""
        seed = self._plan.resampling_seed
        nested = {}
        for number in sorted({entry.round for entry in self.entries}):
            columns = []
            cut = False
            for entry in self.entries:
                if entry.criterion is None or entry.round > number:
                    continue
                if self._cut is not None and entry.criterion.digest == self._cut.prompt_digest:
                    cut = True
                elif (column := wordings.columns.get(entry.criterion.prompt_id)) is not None:
                    columns.append(column)
            choose = wordings.nested_with_cuts if cut else wordings.nested
            nested[number] = choose(columns, seed)
        return nested
