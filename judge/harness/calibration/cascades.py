"""The cascades of a calibration: their judgments, what they save, and what other bounds would give."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from judge.ask.budget import price_of
from judge.ask.cascade import Cascade, parse_cascade
from judge.ask.cascading import OpenCascade, open_cascade
from judge.ask.checked import CheckerAnswers
from judge.ask.estimates import estimated_call
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.tasks import Task
from judge.calibrate.cascades import cascade_bounds, tried_bounds
from judge.calibrate.findings import CascadeBounds, CascadeCost, CascadeRow
from judge.calibrate.panel import Panel
from judge.errors import UsageError
from judge.harness.calibration.asking import Asking
from judge.harness.calibration.group_costs import calls_of, prompt_tokens_of, reply_tokens_of
from judge.harness.calibration.plan import CalibrationPlan
from judge.models.journal import Journal
from judge.models.model import Model, Price
from judge.models.records import Completion, Request
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn


class PlannedCascades:
    """The cascades of a plan, each with every model of the plan.

    Args:
        plan: The options of the calibration.
        asking: Asks models and checkers.
        prompts: What is asked.
        models: Who is asked.

    Raises:
        UsageError: A checker cannot be asked, it can judge none of the prompts, or no other judge is asked.
    """

    def __init__(
        self, plan: CalibrationPlan, asking: Asking, prompts: Sequence[Criterion], models: Sequence[Model]
    ) -> None:
        self._asking = asking
        self._seed = plan.seed
        self._prices = plan.settings.known_prices
        cascades = dict.fromkeys(map(parse_cascade, plan.cascades))
        self.opened = tuple(
            open_cascade(cascade, plan.cascade_url, prompts, plan.options, plan.settings, keys=asking.keys)
            for cascade in cascades
        )
        for opened in self.opened:
            if all(model.name == opened.checker.name for model in models):
                raise UsageError(f"--cascade {opened.cascade}: no other --model is asked what its checker leaves open")
        self._by_judge: dict[str, OpenCascade] = {}
        self._said: dict[str, CheckerAnswers] = {}
        self._costs: dict[tuple[str, str], CascadeCost] = {}

    @property
    def checkers(self) -> list[Model]:
        """The checkers."""
        return [opened.checker for opened in self.opened]

    def beside(
        self,
        model: Model,
        wanted: Sequence[Task],
        answers: Sequence[Judgment | Failure],
        questions: Questions,
        journal: Journal,
        pool: Pool,
    ) -> list[Judgment | Failure]:
        """The results of each cascade with a model that was asked everything.

        Args:
            model: The model.
            wanted: What it was asked.
            answers: Its judgments and failures.
            questions: Where its calls are found.
            journal: Holds every completion.
            pool: The pool of the responses.
        """
        results: list[Judgment | Failure] = []
        for opened in self._before(model):
            self._by_judge[opened.cascade.judge(model.name)] = opened
            name = opened.checker.name
            if name not in self._said:
                self._said[name] = self._asking.check(opened, wanted, journal, pool)
            settled = opened.settled(wanted, self._said[name], model.name)
            places = [place for place, task in enumerate(wanted) if opened.judges(task.criterion)]
            of_checker = Questions(opened.checker, journal, pool, None)
            results += [
                settled[place]
                if place in settled
                else opened.named(wanted[place], answers[place], model.name, self._said[name][place])
                for place in places
            ]
            for prompt in dict.fromkeys(wanted[place].criterion.prompt_id for place in places):
                under = [place for place in places if wanted[place].criterion.prompt_id == prompt]
                alone = calls_of(questions, [wanted[place] for place in under])
                rest = calls_of(questions, [wanted[place] for place in under if place not in settled])
                checked = calls_of(of_checker, [wanted[place]._replace(sample=0) for place in under])
                self._costs[opened.cascade.judge(model.name), prompt] = _cost(
                    _Calls(alone, model, price_of(model, self._prices)),
                    _Calls(rest, model, price_of(model, self._prices)),
                    _Calls(checked, opened.checker, price_of(opened.checker, opened.settings.known_prices)),
                )
        return results

    def of(self, judge: str) -> OpenCascade | None:
        """The cascade that a judge is; None if it is none."""
        return self._by_judge.get(judge)

    def ask(
        self,
        opened: OpenCascade,
        model: Model,
        wanted: Sequence[Task],
        journal: Journal,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
    ) -> list[Judgment | Failure]:
        """Ask a cascade as `judge run` does: the model only what the checker leaves open."""
        said = self._asking.check(opened, wanted, journal, pool)
        settled = opened.settled(wanted, said, model.name)
        left = [task for place, task in enumerate(wanted) if place not in settled]
        rest = iter(self._asking.ask(model, left, journal, pool, turns))
        return [
            settled[place] if place in settled else opened.named(task, next(rest), model.name, said.get(place))
            for place, task in enumerate(wanted)
        ]

    def bounds(
        self,
        model: Model,
        wanted: Sequence[Task],
        answers: Sequence[Judgment | Failure],
        panels: Callable[[Sequence[Judgment | Failure]], Iterable[Panel]],
    ) -> tuple[CascadeBounds, ...]:
        """What other bounds would give; nothing is asked.

        Args:
            model: The model.
            wanted: What it was asked.
            answers: Its judgments and failures.
            panels: From results to gold and labels side by side.
        """
        rows: list[CascadeBounds] = []
        for opened in {opened.checker.name: opened for opened in self._before(model)}.values():
            said = self._said[opened.checker.name]
            tried: dict[str, Cascade] = {}
            results = list(answers)
            same = [other.cascade for other in self.opened if other.checker.name == opened.checker.name]
            for cascade in sorted({bounds for one in same for bounds in tried_bounds(one)}, key=_bounds):
                other = opened._replace(cascade=cascade)
                tried[cascade.judge(model.name)] = cascade
                settled = other.settled(wanted, said, model.name)
                results += [
                    settled[place]
                    if place in settled
                    else other.named(wanted[place], answers[place], model.name, said[place])
                    for place in said
                ]
            for panel in panels(results):
                rows += cascade_bounds(panel, tried, self._seed)
        return tuple(rows)

    def _before(self, model: Model) -> list[OpenCascade]:
        """The cascades that a model can be the second judge of: all but those of its own."""
        return [opened for opened in self.opened if opened.checker.name != model.name]

    def with_costs(self, rows: Iterable[CascadeRow]) -> tuple[CascadeRow, ...]:
        """The rows, each with what its calls took where this calibration made them."""
        return tuple(structs.replace(row, cost=self._costs.get((row.judge, row.prompt))) for row in rows)


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


def _cost(alone: _Calls, rest: _Calls, checked: _Calls) -> CascadeCost:
    of_rest, of_checks = rest.dollars, checked.dollars
    return CascadeCost(
        calls_alone=len(alone.made),
        calls_cascade=len(rest.made),
        calls_checker=len(checked.made),
        prompt_tokens_alone=sum(map(prompt_tokens_of, alone.made)),
        prompt_tokens_cascade=sum(map(prompt_tokens_of, rest.made)),
        reply_tokens_alone=sum(map(reply_tokens_of, alone.made)),
        reply_tokens_cascade=sum(map(reply_tokens_of, rest.made)),
        cost_alone=alone.dollars,
        cost_cascade=None if of_rest is None or of_checks is None else round(of_rest + of_checks, 9),
    )


def _bounds(cascade: Cascade) -> tuple[float, float]:
    return cascade.low, cascade.high
