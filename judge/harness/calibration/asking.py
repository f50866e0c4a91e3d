"""Asking models about the responses that have gold, under one budget."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from judge.ask.account import Account
from judge.ask.cascading import OpenCascade, ask_checker
from judge.ask.checked import CheckerAnswers
from judge.ask.loop import assess
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment
from judge.ask.several import Fetching, open_one
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import Task
from judge.gold import match
from judge.gold.rows import GoldRow
from judge.harness.calibration.plan import CalibrationPlan
from judge.models.journal import Journal
from judge.models.model import Model
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn
from judge.text.ids import natural_key

ProgressReport = Callable[[Progress], None]


class Asking:
    """The models of a plan, and the cost of all their calls so far."""

    def __init__(
        self,
        plan: CalibrationPlan,
        report: Callable[[str], ProgressReport],
        fetching: Fetching | None,
        *,
        keys: bool = True,
    ) -> None:
        self._plan = plan
        self.keys = keys
        """Whether a model without its key is refused; a forecast needs none."""
        self._report = report
        self._fetching = fetching
        self._spent = 0.0
        self.account = Account()
        """What the calls took."""
        self._named: dict[str, str] = {}
        self.endpoints: dict[str, str] = {}
        """Judge to the address to which the environment moves it."""

    def open(self, name: str, prompts: Sequence[Criterion]) -> Model:
        """Open a model that can be asked the prompts.

        Raises:
            UsageError: The model cannot be asked them, or its price is unknown and there is a budget.
        """
        model = open_one(name, self._plan.options, prompts, self._plan.settings, keys=self.keys)
        # A recording answers under the recorded judge's name, by which it could not be opened again.
        self._named[model.name] = name
        if model.endpoint is not None:
            self.endpoints[model.name] = model.endpoint
        return model

    def again(self, judge: str, prompts: Sequence[Criterion]) -> Model:
        """Open the model behind a judge of this plan once more."""
        return self.open(self._named[judge], prompts)

    def ask(
        self, model: Model, wanted: Sequence[Task], journal: Journal, pool: Pool, turns: Mapping[str, Turn] | None
    ) -> StoredResults:
        """Ask the model every task, within the rest of the budget.

        Raises:
            OperationalError: No further call can succeed; what was paid for is in the journal.
        """
        model.prepare(self._fetching or (lambda what, done, total: None))
        settings, report, before = self._plan.settings, self._report(model.name), self._spent
        if settings.max_cost is not None:
            settings = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - before))

        def counted(progress: Progress) -> None:
            self._spent = before + progress.cost
            report(progress)

        return assess(
            *(wanted, model, journal, pool),
            turns=turns,
            settings=settings,
            report=counted,
            account=self.account,
            folder=self._plan.out,
        )

    def check(self, opened: OpenCascade, wanted: Sequence[Task], journal: Journal, pool: Pool) -> CheckerAnswers:
        """Ask the checker of a cascade what it can judge, within the rest of the budget.

        Returns:
            What it said, by the places of tasks.

        Raises:
            OperationalError: No further call can succeed; what was paid for is in the journal.
        """
        most = self._plan.settings.max_cost
        said, cost = ask_checker(
            *(opened, wanted, journal, pool, None if most is None else max(0.0, most - self._spent)),
            report=self._report(opened.checker.name),
            fetching=self._fetching,
            account=self.account,
        )
        self._spent += cost
        return said


def gold_tasks(
    rows: Sequence[GoldRow], pool: Pool, prompts: Sequence[Criterion], samples: int, name: str
) -> tuple[Task, ...]:
    """A task for each response with gold, prompt of its criterion and sample."""
    matched, _ = match(rows, pool, name)
    return tuple(
        Task(response, prompt, sample)
        for prompt in prompts
        for response in pool.responses
        if (response.response_id, prompt.name) in matched
        for sample in range(samples)
    )


def results_jsonl(results: Sequence[Judgment | Failure], kind: type[Judgment] | type[Failure]) -> bytes:
    """The judgments or the failures as JSON Lines, sorted by judge and prompt."""
    kept = [result for result in results if isinstance(result, kind)]
    kept.sort(key=lambda result: (natural_key(result.judge), natural_key(f"{result.criterion}/{result.variant}")))
    return b"".join(msgspec.json.encode(result) + b"\n" for result in kept)
