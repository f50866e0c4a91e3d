"""The cascades of a calibration, what they and groups of criteria save, and what other bounds would give."""

import math
from collections.abc import Callable, Iterable, Sequence

from judge.ask.asking import Asking, Judge, ModelForecast
from judge.ask.budget import price_of
from judge.ask.estimates import BYTES_PER_TOKEN, estimated_call, estimated_tokens
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import PickedTasks, Task
from judge.calibrate.findings import CascadeBounds, CascadeCost, GroupCost
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.extra.checkers.calibration import cascade_bounds, tried_bounds
from judge.extra.checkers.cascade import Cascade, CascadeJudge, open_first, parse_cascade
from judge.jobs.calibration.plan import CalibrationPlan
from judge.judges.model import Model
from judge.judges.records import Completion, Request
from judge.records import Criterion

_Call = tuple[Request, Completion]


class PlannedCascades:
    """The cascades of a plan, each with every judge of the plan but its own checker.

    Args:
        plan: The options of the calibration.
        prompts: What is asked.
        judges: Who is asked.
        keys: Refuse a checker without its key.

    Raises:
        UsageError: A checker cannot be asked, it can judge none of the prompts, or no other judge is asked.
    """

    def __init__(
        self, plan: CalibrationPlan, prompts: Sequence[Criterion], judges: Sequence[Judge], *, keys: bool
    ) -> None:
        self._seed = plan.resampling_seed
        self.judges: dict[str, CascadeJudge] = {}
        """The cascades with their other judges, by name."""
        self.costs: dict[tuple[str, str], CascadeCost] = {}
        """What the calls of a cascade took, by its name and the prompt."""
        self._said: dict[str, StoredResults] = {}
        """What each checker said, by its name."""
        options, settings = plan.options, plan.settings
        for cascade in dict.fromkeys(map(parse_cascade, plan.cascades)):
            first = open_first(cascade, plan.cascade_url, prompts, options, settings, keys=keys)
            made = [CascadeJudge(cascade, first, judge) for judge in judges if judge.name != first.name]
            if not made:
                raise UsageError(f"--cascade {cascade}: no other --model is asked what its checker leaves open")
            self.judges |= {each.whole: each for each in made}

    def forecast(self, asking: Asking, wanted: Sequence[Task]) -> tuple[ModelForecast, ...]:
        """What asking each checker would send."""
        each = {cascade.first.name: cascade for cascade in self.judges.values()}
        return tuple(row for cascade in each.values() for row in cascade.forecast_first(asking, wanted))

    def beside(
        self, asking: Asking, judge: Judge, wanted: Sequence[Task], answers: Sequence[Judgment | Failure]
    ) -> list[Judgment | Failure]:
        """The results of each cascade with a judge that was asked everything.

        Args:
            asking: Asks the checkers.
            judge: The judge.
            wanted: What it was asked.
            answers: Its judgments and failures.
        """
        results: list[Judgment | Failure] = []
        for cascade in self._before(judge):
            if cascade.first.name not in self._said:
                self._said[cascade.first.name] = cascade.check(asking, wanted)
            results += self._results(cascade, wanted, answers)
            self._count(asking, cascade, wanted)
        return results

    def bounds(
        self,
        judge: Judge,
        wanted: Sequence[Task],
        answers: Sequence[Judgment | Failure],
        panels: Callable[[Sequence[Judgment | Failure]], Iterable[Panel]],
    ) -> tuple[CascadeBounds, ...]:
        """What other bounds would give; nothing is asked.

        Args:
            judge: The judge.
            wanted: What it was asked.
            answers: Its judgments and failures.
            panels: From results to gold and labels side by side.
        """
        rows: list[CascadeBounds] = []
        for name, first in {each.first.name: each.first for each in self._before(judge)}.items():
            tried: dict[str, Cascade] = {}
            results = list(answers)
            same = [each.cascade for each in self._before(judge) if each.first.name == name]
            for bounds in sorted({bounds for each in same for bounds in tried_bounds(each)}):
                cascade = CascadeJudge(bounds, first, judge)
                tried[cascade.whole] = bounds
                results += self._results(cascade, wanted, answers)
            for panel in panels(results):
                rows += cascade_bounds(panel, tried, self._seed)
        return tuple(rows)

    def _before(self, judge: Judge) -> list[CascadeJudge]:
        """The cascades that a judge is the second judge of."""
        return [cascade for cascade in self.judges.values() if cascade.rest is judge]

    def _results(
        self, cascade: CascadeJudge, wanted: Sequence[Task], answers: Sequence[Judgment | Failure]
    ) -> list[Judgment | Failure]:
        """The results of a cascade, from those of a judge that was asked everything, where the checker judges too."""
        said = self._said[cascade.first.name]
        results = cascade.results(wanted, said, map(answers.__getitem__, cascade.left(wanted, said)))
        return [result for result in results if result.cascade is not None]

    def _count(self, asking: Asking, cascade: CascadeJudge, wanted: Sequence[Task]) -> None:
        """Count the calls for the tasks of each prompt: to the judge alone, to it in a cascade, and to the checker."""
        (model,), (checker,) = cascade.rest.models, cascade.first.models
        questions, of_checker = asking.questions(model), asking.questions(checker)
        left = PickedTasks(wanted, cascade.left(wanted, self._said[cascade.first.name]))
        checked = cascade.questions(wanted)
        for prompt in dict.fromkeys(task.criterion.prompt_id for task in checked):
            alone, rest, first = (
                calls_of(asked, (task for task in tasks if task.criterion.prompt_id == prompt))
                for asked, tasks in ((questions, wanted), (questions, left), (of_checker, checked))
            )
            of_rest = _dollars(rest, model, cascade.settings)
            of_first = _dollars(first, checker, cascade.first.settings)
            self.costs[cascade.whole, prompt] = CascadeCost(
                calls_alone=len(alone),
                calls_cascade=len(rest),
                calls_checker=len(first),
                prompt_tokens_alone=sum(map(prompt_tokens_of, alone)),
                prompt_tokens_cascade=sum(map(prompt_tokens_of, rest)),
                reply_tokens_alone=sum(map(reply_tokens_of, alone)),
                reply_tokens_cascade=sum(map(reply_tokens_of, rest)),
                cost_alone=_dollars(alone, model, cascade.settings),
                cost_cascade=None if of_rest is None or of_first is None else round(of_rest + of_first, 9),
            )


def _dollars(calls: Iterable[_Call], model: Model, settings: Settings) -> float | None:
    """What calls cost, by estimated tokens where nothing else is known; None where the cost of one is not known."""
    price = price_of(model, settings.known_prices)
    costs: list[float] = []
    for request, completion in calls:
        if completion.cost is not None:
            costs.append(completion.cost)
        elif price is None:
            return None
        else:
            prompt, reply = estimated_call(model, request, reply_tokens_of((request, completion)))
            costs.append(price.cost(completion.prompt_tokens or prompt, 0, reply))
    return round(math.fsum(sorted(costs)), 9)


def group_costs(
    judge: str,
    questions: Questions,
    prompts: Sequence[Criterion],
    tasks: Callable[[Sequence[Criterion]], tuple[Task, ...]],
) -> tuple[GroupCost, ...]:
    """A row for each group whose criteria were all asked together and alone.

    Args:
        judge: The name of the judge.
        questions: What it was asked; the journal holds the answers.
        prompts: All prompts that it was asked.
        tasks: The tasks of some of them.
    """
    asked = {prompt.digest: prompt for prompt in prompts}
    groups: dict[tuple[str, ...], list[Criterion]] = {}
    for prompt in prompts:
        if prompt.together:
            groups.setdefault(tuple(part.digest for part in prompt.together), []).append(prompt)
    rows: list[GroupCost] = []
    for digests, group in groups.items():
        if len(group) < len(digests) or not set(digests) <= asked.keys():
            continue
        parts = [asked[digest] for digest in digests]
        tasks_alone = tasks(parts)
        alone, together = calls_of(questions, tasks_alone), calls_of(questions, tasks(group))
        rows.append(
            GroupCost(
                judge=judge,
                prompts=tuple(dict.fromkeys(task.criterion.prompt_id for task in tasks_alone)),
                calls_alone=len(alone),
                calls_together=len(together),
                prompt_tokens_alone=sum(map(prompt_tokens_of, alone)),
                prompt_tokens_together=sum(map(prompt_tokens_of, together)),
                reply_tokens_alone=sum(map(reply_tokens_of, alone)),
                reply_tokens_together=sum(map(reply_tokens_of, together)),
            )
        )
    return tuple(rows)


def calls_of(questions: Questions, tasks: Iterable[Task]) -> list[_Call]:
    """Every call behind the outcomes of the tasks, once."""
    calls: dict[str, _Call] = {}
    for task in questions.ahead(tasks):
        calls |= questions.calls(task)
    return list(calls.values())


def prompt_tokens_of(call: _Call) -> int:
    """The tokens of a call's prompt, estimated where the provider did not count them."""
    request, completion = call
    return completion.prompt_tokens or estimated_tokens(request)


def reply_tokens_of(call: _Call) -> int:
    """The tokens of a call's reply, likewise."""
    _, completion = call
    return completion.completion_tokens or math.ceil(len(completion.text.encode()) / BYTES_PER_TOKEN)
