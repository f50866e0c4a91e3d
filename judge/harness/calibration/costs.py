"""The cascades of a calibration, what they and groups of criteria save, and what other bounds would give."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from judge.ask.asking import Asking, Judge
from judge.ask.budget import price_of
from judge.ask.cascade import Cascade, parse_cascade
from judge.ask.cascading import CascadeJudge, CheckerAnswers, OpenCascade, open_cascade
from judge.ask.estimates import BYTES_PER_TOKEN, estimated_call, estimated_tokens
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.tasks import Task
from judge.calibrate.cascades import cascade_bounds, tried_bounds
from judge.calibrate.findings import CascadeBounds, CascadeCost, GroupCost
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.harness.calibration.plan import CalibrationPlan
from judge.models.model import Model, Price
from judge.models.records import Completion, Request
from judge.records import Criterion


class PlannedCascades:
    """The cascades of a plan, each with every judge of the plan.

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
        self._seed = plan.seed
        self.opened = tuple(
            open_cascade(cascade, plan.cascade_url, prompts, plan.options, plan.settings, keys=keys)
            for cascade in dict.fromkeys(map(parse_cascade, plan.cascades))
        )
        for opened in self.opened:
            if all(judge.name == opened.checker.name for judge in judges):
                raise UsageError(f"--cascade {opened.cascade}: no other --model is asked what its checker leaves open")
        self.judges: dict[str, CascadeJudge] = {}
        """The cascades with their other judges, by name."""
        self.costs: dict[tuple[str, str], CascadeCost] = {}
        """What the calls of a cascade took, by its name and the prompt."""
        self._said: dict[str, CheckerAnswers] = {}

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
        for opened in self._before(judge):
            cascade = CascadeJudge(opened, judge)
            self.judges[cascade.whole] = cascade
            name = opened.checker.name
            if name not in self._said:
                self._said[name] = opened.check(asking, wanted)
            settled = cascade.settled(self._said[name])
            results += _results(cascade, wanted, self._said[name], answers)
            places = [place for place, task in enumerate(wanted) if opened.judges(task.criterion)]
            for prompt in dict.fromkeys(wanted[place].criterion.prompt_id for place in places):
                under = [place for place in places if wanted[place].criterion.prompt_id == prompt]
                alone = [wanted[place] for place in under]
                left = [wanted[place] for place in under if not settled[place]]
                self.costs[cascade.whole, prompt] = _cost(asking, cascade, alone, left)
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
        for opened in {opened.checker.name: opened for opened in self._before(judge)}.values():
            tried: dict[str, Cascade] = {}
            results = list(answers)
            same = [other.cascade for other in self.opened if other.checker.name == opened.checker.name]
            for bounds in sorted({bounds for each in same for bounds in tried_bounds(each)}, key=_low_and_high):
                cascade = CascadeJudge(opened._replace(cascade=bounds), judge)
                tried[cascade.whole] = bounds
                results += _results(cascade, wanted, self._said[opened.checker.name], answers)
            for panel in panels(results):
                rows += cascade_bounds(panel, tried, self._seed)
        return tuple(rows)

    def _before(self, judge: Judge) -> list[OpenCascade]:
        """The cascades that a judge can be the second judge of: all but those of its own."""
        return [opened for opened in self.opened if opened.checker.name != judge.name]


def _results(
    cascade: CascadeJudge, wanted: Sequence[Task], said: CheckerAnswers, answers: Sequence[Judgment | Failure]
) -> list[Judgment | Failure]:
    """The results of a cascade, from those of a judge that was asked everything, where the checker judges too."""
    settled = cascade.settled(said)
    left = (answer for answer, stands in zip(answers, settled, strict=True) if not stands)
    results = zip(wanted, cascade.results(wanted, said, settled, left), strict=True)
    return [result for task, result in results if cascade.opened.judges(task.criterion)]


def _low_and_high(cascade: Cascade) -> tuple[float, float]:
    return cascade.low, cascade.high


class _Calls(NamedTuple):
    """Calls to one judge, and its price where it is known."""

    made: Sequence[tuple[Request, Completion]]
    judge: Model
    price: Price | None

    @property
    def dollars(self) -> float | None:
        """What they cost, by estimated tokens where nothing else is known; None where the cost of one is not known."""
        costs: list[float] = []
        for request, completion in self.made:
            if completion.cost is not None:
                costs.append(completion.cost)
            elif self.price is None:
                return None
            else:
                prompt, reply = estimated_call(self.judge, request, reply_tokens_of((request, completion)))
                costs.append(self.price.cost(completion.prompt_tokens or prompt, 0, reply))
        return round(math.fsum(sorted(costs)), 9)


def _cost(asking: Asking, cascade: CascadeJudge, alone: Sequence[Task], left: Sequence[Task]) -> CascadeCost:
    """What the calls for tasks of one prompt took, to the other judge alone and to a cascade that leaves it some."""
    (model,), opened = cascade.rest.models, cascade.opened
    questions, price = asking.questions(model, asking.turns), price_of(model, cascade.settings.known_prices)
    of_alone, of_left = (_Calls(calls_of(questions, tasks), model, price) for tasks in (alone, left))
    of_checker = asking.questions(opened.checker, None)
    checks = calls_of(of_checker, [task._replace(sample=0) for task in alone])
    checked = _Calls(checks, opened.checker, price_of(opened.checker, opened.settings.known_prices))
    of_rest, of_checks = of_left.dollars, checked.dollars
    return CascadeCost(
        calls_alone=len(of_alone.made),
        calls_cascade=len(of_left.made),
        calls_checker=len(checked.made),
        prompt_tokens_alone=sum(map(prompt_tokens_of, of_alone.made)),
        prompt_tokens_cascade=sum(map(prompt_tokens_of, of_left.made)),
        reply_tokens_alone=sum(map(reply_tokens_of, of_alone.made)),
        reply_tokens_cascade=sum(map(reply_tokens_of, of_left.made)),
        cost_alone=of_alone.dollars,
        cost_cascade=None if of_rest is None or of_checks is None else round(of_rest + of_checks, 9),
    )


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
    return tuple(
        _group_cost(judge, questions, tasks([asked[digest] for digest in digests]), tasks(group))
        for digests, group in groups.items()
        if len(group) == len(digests) and all(digest in asked for digest in digests)
    )


def _group_cost(judge: str, questions: Questions, alone: Sequence[Task], together: Sequence[Task]) -> GroupCost:
    of_alone, of_together = calls_of(questions, alone), calls_of(questions, together)
    return GroupCost(
        judge=judge,
        prompts=tuple(dict.fromkeys(task.criterion.prompt_id for task in alone)),
        calls_alone=len(of_alone),
        calls_together=len(of_together),
        prompt_tokens_alone=sum(map(prompt_tokens_of, of_alone)),
        prompt_tokens_together=sum(map(prompt_tokens_of, of_together)),
        reply_tokens_alone=sum(map(reply_tokens_of, of_alone)),
        reply_tokens_together=sum(map(reply_tokens_of, of_together)),
    )


def calls_of(questions: Questions, tasks: Iterable[Task]) -> list[tuple[Request, Completion]]:
    """Every call behind the outcomes of the tasks, once."""
    calls: dict[str, tuple[Request, Completion]] = {}
    for task in questions.ahead(tasks):
        calls |= questions.calls(task)
    return list(calls.values())


def prompt_tokens_of(call: tuple[Request, Completion]) -> int:
    """The tokens of a call's prompt, estimated where the provider did not count them."""
    request, completion = call
    return completion.prompt_tokens or estimated_tokens(request)


def reply_tokens_of(call: tuple[Request, Completion]) -> int:
    """The tokens of a call's reply, likewise."""
    _, completion = call
    return completion.completion_tokens or math.ceil(len(completion.text.encode()) / BYTES_PER_TOKEN)
