"""The cascades of a calibration: what they save against asking their judges alone, and what other bounds would give."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from judge.ask.account import Settings, estimated_call, price_of
from judge.ask.asking import Asking, Judge, ModelForecast
from judge.ask.records import Failure, Judgment, PickedTasks, Task
from judge.ask.results import StoredResults
from judge.calibrate.findings import CascadeBounds, CascadeCost, Split
from judge.calibrate.panel import Panel
from judge.calibrate.selection import common_tables, common_values, settled_items
from judge.errors import UsageError
from judge.extra.checkers.cascade import Cascade, CascadeJudge, open_first, parse_cascade
from judge.jobs.calibration.inputs import CalibrationPlan
from judge.jobs.calibration.labels import PaidCall, calls_of, prompt_tokens_of, reply_tokens_of
from judge.judges.backends import judges_in
from judge.judges.model import Model
from judge.records import Criterion
from judge.stats.agreement import primary_statistic
from judge.stats.comparison import compare

LOWS, HIGHS = (0.0, 0.1, 0.2, 0.3, 0.4), (0.6, 0.7, 0.8, 0.9, 1.0)
"""The bounds that are tried of the answers that are there."""


class PlannedCascades:
    """The cascades of a plan, each with every judge of the plan but its own checker."""

    def __init__(
        self, plan: CalibrationPlan, prompts: Sequence[Criterion], judges: Sequence[Judge], *, keys: bool
    ) -> None:
        self._seed = plan.resampling_seed
        self.judges: dict[str, CascadeJudge] = {}
        self.costs: dict[tuple[str, str], CascadeCost] = {}
        self._said: dict[str, StoredResults] = {}
        """What each checker said, by its name."""
        options, settings = judges[0].options, judges[0].settings
        for cascade in dict.fromkeys(map(parse_cascade, plan.cascades)):
            first = open_first(cascade, plan.cascade_url, prompts, options, settings, keys=keys)
            made = [CascadeJudge(cascade, first, judge) for judge in judges if judge.name != first.name]
            if not made:
                raise UsageError(f"--cascade {cascade}: no other --model is asked what its checker leaves open")
            self.judges |= {each.whole: each for each in made}
        self.asked = tuple(model for cascade in self.judges.values() for model in cascade.asked)

    def forecast(self, asking: Asking, wanted: Sequence[Task]) -> tuple[ModelForecast, ...]:
        """What asking each checker would send."""
        each = {cascade.first.name: cascade for cascade in self.judges.values()}
        return tuple(row for cascade in each.values() for row in cascade.forecast_first(asking, wanted))

    def beside(
        self, asking: Asking, judge: Judge, wanted: Sequence[Task], answers: Sequence[Judgment | Failure]
    ) -> list[Judgment | Failure]:
        """The results of each cascade with a judge that was asked everything."""
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
        """What other bounds would give; nothing is asked."""
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
            of_both = None if of_rest is None or of_first is None else round(of_rest + of_first, 9)
            prompts = sum(map(prompt_tokens_of, alone)), sum(map(prompt_tokens_of, rest))
            replies = sum(map(reply_tokens_of, alone)), sum(map(reply_tokens_of, rest))
            costs = _dollars(alone, model, cascade.settings), of_both
            calls = len(alone), len(rest), len(first)
            self.costs[cascade.whole, prompt] = CascadeCost(*calls, *prompts, *replies, *costs)


def _dollars(calls: Iterable[PaidCall], model: Model, settings: Settings) -> float | None:
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


def tried_bounds(cascade: Cascade) -> tuple[Cascade, ...]:
    """The same checker with other bounds, those for which its labels hold, and with its own."""
    tried = {(low, high) for low in LOWS for high in HIGHS if low < cascade.threshold <= high}
    tried.add((cascade.low, cascade.high))
    return tuple(Cascade(cascade.checker, *bounds) for bounds in sorted(tried))


def cascade_bounds(panel: Panel, cascades: Mapping[str, Cascade], seed: int) -> tuple[CascadeBounds, ...]:
    """A row for each of these cascades, by their names as judges, among a panel's judges in the panel's order.

    The panel has gold, and labels of the cascades and of the judges that they ask; every item is compared.
    """
    split: Split = panel.split[0]
    statistic = primary_statistic(len(panel.grades))
    named = {(column.judge, column.prompt): column for column in panel.columns}
    beside = [
        (column, named[judges_in(column.judge)[-1], column.prompt])
        for column in panel.columns
        if column.judge in cascades
    ]
    if not beside:
        return ()
    # Only the intervals are wanted, so a single exchange is enough.
    tables, rng = common_tables(panel, beside, "all"), np.random.default_rng(seed)
    compared = compare(tables, statistic, panel.grades, rng, permutations=1)
    rows = []
    for (column, alone), pair in zip(beside, compared.pairs, strict=True):
        cascade = cascades[column.judge]
        judged, settled = settled_items(panel, column, split)
        _, value = common_values(panel, alone, column, split, statistic)
        about = panel.criterion, split, statistic, cascade.checker, alone.judge, str(column.prompt)
        rows.append(CascadeBounds(*about, cascade.low, cascade.high, judged, settled, value, pair.difference))
    return tuple(rows)
