"""What the judge said under the candidates of a search, beside the grades of people."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as changed_record

from judge.ask.asking import Asking
from judge.ask.records import Failure, Judgment
from judge.ask.results import Labels
from judge.calibrate.panel import JudgeColumn, Panel
from judge.extra.improve import Wordings
from judge.extra.improve.proposers import refuse_spent
from judge.gold.rows import GoldRow
from judge.jobs.calibration.inputs import make_comparison
from judge.jobs.calibration.labels import CalibrationJudges
from judge.records import Criterion


class CandidateGrades:
    """Asks the judge of a search about graded items, and compares what it said."""

    def __init__(self, judges: CalibrationJudges, asking: Asking, first: Criterion) -> None:
        self.judges = judges
        self.results: list[Judgment | Failure] = []
        self.cut: Labels | None = None
        """The grades of dev under cuts, of each topic by cuts of the others."""
        self._asking = asking
        self._first = first
        self._compared: Wordings | None = None

    def ask(self, criteria: Sequence[Criterion], rows: Sequence[GoldRow]) -> Sequence[Judgment | Failure]:
        """What the judge says of graded items under prompts; an OperationalError where the budget ends before."""
        (judge,) = self.judges.judges
        results = self._asking.ask(judge, self.judges.tasks(rows, criteria))
        self.results.extend(results)
        self._compared = None
        refuse_spent(results)
        return results

    def compare_on(self, rows: tuple[GoldRow, ...]) -> None:
        """Compare candidates on these rows of dev from now on."""
        self.judges.dev = rows
        inputs = self.judges.inputs
        kept = set(rows)
        inputs.gold = changed_record(
            inputs.gold, rows=tuple(row for row in inputs.gold.rows if row.split == "test" or row in kept)
        )
        self._compared = None

    def add_cut(self, labels: Labels) -> None:
        """Compare the grades under cuts, too."""
        self.cut = labels
        self._compared = None

    def labels(self) -> tuple[Labels, ...]:
        """What the judge said; on dev, the grades under cuts are those by cuts of other topics."""
        several = self.judges.sources(self.results)
        cut = self.cut
        if cut is None:
            return several
        others = [labels for labels in several if labels.prompt_digest != cut.prompt_digest]
        on_test = [label for labels in several if labels.prompt_digest == cut.prompt_digest for label in labels.labels]
        return (*others, changed_record(cut, labels=(*cut.labels, *on_test)))

    @property
    def wordings(self) -> Wordings:
        """All candidates on dev."""
        if self._compared is None:
            panels, _ = make_comparison(self.judges.inputs, self.judges.dev, self.labels())
            (panel,) = panels
            panel = self.first_in_front(panel)
            self._compared = Wordings(panel, "dev" if panel.split[0] == "dev" else "all", self._first.prompt_id)
        return self._compared

    def first_in_front(self, panel: Panel) -> Panel:
        """The panel with the first prompt before the others, so that of equals it is the one that stays."""
        columns = sorted(panel.columns, key=lambda column: column.prompt != self._first.prompt_id)
        return replace(panel, columns=tuple(columns))

    def prompt_of(self, column: JudgeColumn) -> Criterion:
        """The candidate that a column is under."""
        return self.judges.inputs.prompts[column.prompt or ""]

    @property
    def chosen(self) -> Criterion:
        """The candidate that agrees best on dev; the first prompt where none agrees better."""
        best = self.wordings.best
        return self._first if best is None else self.prompt_of(best)
