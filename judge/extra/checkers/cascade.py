"""A cascade as a judge: a checker settles the items that it is sure of, and another judge is asked the rest.

Those of a calibration: what they save against asking their judges alone, and what other bounds would give.
"""

import itertools
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from judge.ask.account import EVERY_OTHER, Settings, estimated_call, price_of
from judge.ask.asking import Asking, JournalPlace, Judge, JudgeForecast, ModelForecast
from judge.ask.opening import address_option, open_one
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment, PickedTasks, Task
from judge.ask.results import StoredResults, stored
from judge.ask.returned import settled_counts
from judge.calibrate.findings import CascadeBounds, CascadeCost, Split
from judge.calibrate.panel import Panel
from judge.calibrate.selection import common_tables, common_values, settled_items
from judge.errors import UsageError
from judge.extra.checkers.checkers import SUPPORTED, THRESHOLD, is_checkable, probability
from judge.io.steps import Step
from judge.io.text import printable
from judge.jobs.calibration.inputs import CalibrationPlan
from judge.jobs.calibration.labels import PaidCall, calls_of, prompt_tokens_of, reply_tokens_of
from judge.judges.backends import backend_facts, judges_in
from judge.judges.credentials import scrub, without_credentials
from judge.judges.model import FREE, Model, ModelOptions
from judge.records import Criterion, Record
from judge.stats.agreement import primary_statistic
from judge.stats.comparison import compare

_WRITTEN = re.compile(r"(?P<checker>.+)@(?P<low>[^@:/]+):(?P<high>[^@:/]+)")
_COUNTS = ("criterion", "settled", "asked", "without_evidence", "checker_failed")


class Cascade(Record, frozen=True, order=True):
    """A checker with two bounds of the probability that a passage supports a sentence.

    An item is settled if the highest probability of each of its sentences is at most `low` or at least `high`. The
    grade is then the same at every threshold above `low` and up to `high`.
    """

    checker: str
    """The checker's name, without a threshold."""
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.checker}@{self.low:.12g}:{self.high:.12g}"

    @property
    def threshold(self) -> float:
        """The threshold that the checker labels sentences by: its usual one where that lies between the bounds."""
        return THRESHOLD if self.low < THRESHOLD <= self.high else self.high

    @property
    def first(self) -> str:
        """How the checker is opened, and how records name it as a judge."""
        return self.checker if self.threshold == THRESHOLD else f"{self.checker}@{self.threshold:.12g}"

    def settles(self, answer: Judgment | Failure | None) -> bool:
        """Whether what the checker said of an item stands: it is sure of every sentence that claims something."""
        if not isinstance(answer, Judgment):
            return False
        told = [
            (support.probability, label)
            for support, label in zip(answer.support, answer.sentences, strict=False)
            if support.probability is not None
        ]
        # Probabilities are rounded in records, so the label says on which side of the threshold one lies.
        return bool(told) and all(
            probability >= self.high if label == SUPPORTED else probability <= self.low for probability, label in told
        )


def parse_cascade(text: str) -> Cascade:
    """Read `CHECKER@LOW:HIGH`; a UsageError if it has another form, a threshold, or bounds that are none."""
    found = _WRITTEN.fullmatch(text)
    low, high = (probability(found[name]) if found else -1.0 for name in ("low", "high"))
    if found is None or not backend_facts(found["checker"]).checker or not 0 <= low < high <= 1:
        raise UsageError(
            f"cascade {printable(text)!r}: expected a checker and two probabilities, the lower one first, such as "
            "checker/overlap@0.1:0.8 (--cascade)"
        )
    # An `@` before a `/` is part of a path.
    before, at, last = found["checker"].rpartition("@")
    if at and probability(last) >= 0:
        raise UsageError(
            f"cascade {printable(text)!r}: the bounds say which threshold the checker labels by, so leave out "
            f"{printable('@' + last)!r} and write {printable(f'{before}@{low:.12g}:{high:.12g}')} (--cascade)"
        )
    return Cascade(found["checker"], low, high)


def check_cascade(cascade: str | None, address: str | None, *, jury: bool = False, together: bool = False) -> None:
    """Refuse a cascade that cannot be read, and options that do not go with it.

    `jury`: the plan has several models, or one under several prompts or asked several times.
    """
    if cascade is None:
        if address is not None:
            raise UsageError("--cascade-url is the address of a cascade's checker, which --cascade names")
        return
    if jury:
        raise UsageError("--cascade asks one model what its checker leaves open, so it does not go with a jury")
    if together:
        raise UsageError(
            "--cascade does not go with --together: a settled criterion would still be asked with the others"
        )
    parse_cascade(cascade)


def _judges(criterion: Criterion) -> bool:
    """Whether checkers can be asked a prompt whose grade is the share of supported sentences, which bounds decide."""
    return criterion.rollup is not None and criterion.rollup.label == SUPPORTED and is_checkable(criterion)


def _question(task: Task) -> tuple[str, str]:
    return task.response.response_id, task.criterion.digest


class CascadeJudge(Judge):
    """A checker that judges first, and the judge that is asked what the checker is not sure of.

    The name of the checker in `cascade` is taken from `first`, which `open_first` gives; `rest` is the other judge.
    """

    first: Judge

    def __init__(self, cascade: Cascade, first: Judge, rest: Judge) -> None:
        super().__init__(rest.models, rest.options, rest.settings, rest.name)
        self.first, self.rest = first, rest
        # Records name the files of a checker by their digest, not by the path that the user gave. A threshold has no
        # slash, which the rest of a path has.
        name, at, threshold = first.name.rpartition("@")
        title = name if at and "/" not in threshold else first.name
        self.cascade = msgspec.structs.replace(cascade, checker=title)
        self.whole = f"{self.cascade}+{rest.name}"
        """The name of the cascade with its other judge."""

    @property
    def asked(self) -> tuple[Model, ...]:
        """All models that are asked, the checker first."""
        return (*self.first.models, *self.rest.asked)

    @property
    def prices(self) -> dict[str, dict[str, float] | None]:
        """US dollars per million tokens of each model, as far as they are known; the checker comes last."""
        return {**self.rest.prices, **self.first.prices}

    def configuration(self) -> dict[str, object]:
        """Checker and bounds, with the checker's address where it has one."""
        return {"cascade": self._recorded()}

    def _recorded(self) -> dict[str, Any]:
        url = self.first.options.base_url
        address = {} if url is None else {"base_url": scrub(without_credentials(url))}
        return {**msgspec.structs.asdict(self.cascade), **address}

    def described(self, criterion: Criterion, options: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        """The name of the cascade where its checker judges the criterion; else that of the other judge."""
        if not _judges(criterion):
            return self.rest.described(criterion, options)
        return self.whole, {**options, **address_option(self.first.options.base_url)}

    def recorded(self, results: Iterable[Judgment | Failure]) -> dict[str, object]:
        """Checker and bounds, and how many judgments of each criterion the checker settled."""
        counts = [{name: getattr(row, name) for name in _COUNTS} for row in settled_counts(results)]
        return {"cascade": {**self._recorded(), "counts": counts}}

    def questions(self, wanted: Sequence[Task]) -> PickedTasks:
        """What the checker is asked of these tasks; of several samples that follow each other it is asked one."""
        places, place = array("q"), 0
        for _, samples in itertools.groupby(wanted, _question):
            tasks = list(samples)
            if _judges(tasks[0].criterion):
                places.append(place)
            place += len(tasks)
        return PickedTasks(wanted, places, sample=0)

    def beside(
        self, wanted: Iterable[Task], answers: Iterable[Judgment | Failure | None]
    ) -> Iterator[tuple[Task, Judgment | Failure | None]]:
        """Each task with what the checker said of it, given the answers to their `questions`; None where nothing."""
        said = iter(answers)
        for _, samples in itertools.groupby(wanted, _question):
            tasks = list(samples)
            answer = next(said) if _judges(tasks[0].criterion) else None
            yield from ((task, answer) for task in tasks)

    def check(self, asking: Asking, wanted: Sequence[Task]) -> StoredResults:
        """What the checker says to the `questions` of these tasks; it is shown as a step of its own."""

        def counted(progress: Progress) -> None:
            asking.progress.steps(Step(self.first.name, progress.done, progress.total, free=progress.recalled))

        return self.first.ask(asking, self.questions(wanted), counted)

    def left(self, wanted: Sequence[Task], answers: Iterable[Judgment | Failure | None]) -> "array[int]":
        """The places of the tasks that the other judge is asked."""
        beside = enumerate(self.beside(wanted, answers))
        return array("q", (place for place, (_, answer) in beside if not self.cascade.settles(answer)))

    def results(
        self, wanted: Iterable[Task], answers: Iterable[Judgment | Failure], rest: Iterable[Judgment | Failure]
    ) -> Iterator[Judgment | Failure]:
        """The results of the cascade in the order of `wanted`.

        `answers` are the checker's to their `questions`; `rest` are the other judge's, of the tasks that are `left`.
        """
        others = iter(rest)
        for task, answer in self.beside(wanted, answers):
            if isinstance(answer, Judgment) and self.cascade.settles(answer):
                # The models that providers name are those asked the rest.
                yield msgspec.structs.replace(answer, cascade=self.whole, model=None, sample=task.sample)
            elif _judges(task.criterion):
                failed = answer.reason if isinstance(answer, Failure) and answer.reason != "no_passages" else None
                yield msgspec.structs.replace(next(others), cascade=self.whole, checker_failed=failed)
            else:
                yield next(others)

    def ask(self, asking: Asking, wanted: Sequence[Task], report: Callable[[Progress], None]) -> StoredResults:
        """Ask the checker everything that it can judge, then the other judge what is left; the results of both.

        In the progress, what the checker settles counts as recalled. A failure of the checker is no result.
        """
        before = asking.spent
        answers = self.check(asking, wanted)
        left = PickedTasks(wanted, self.left(wanted, answers))
        settled = len(wanted) - len(left)
        first = Progress(settled, len(wanted), settled, 0, asking.spent - before)
        if not left:
            report(first)
        rest = self.rest.ask(asking, left, lambda progress: report(first.plus(progress)))
        return stored(self.results(wanted, answers, rest), asking.place.out)

    def forecast(self, asking: Asking, wanted: Sequence[Task]) -> JudgeForecast:
        """What asking both would send; a checker in this process is asked here, because that sends nothing."""
        answers: Iterable[Judgment | Failure | None]
        if self._local:
            with Asking(JournalPlace(None), asking.pool, asking.turns) as memory:
                answers = self.check(memory, wanted)
        else:
            (checker,) = self.first.models
            answers = asking.questions(checker).settled(self.questions(wanted))
        left, unchecked = array("q"), 0
        for place, (task, answer) in enumerate(self.beside(wanted, answers)):
            unchecked += answer is None and _judges(task.criterion)
            if not self.cascade.settles(answer):
                left.append(place)
        open_tasks = PickedTasks(wanted, left)
        checking = self.forecast_first(asking, wanted)
        return self.rest.forecast(asking, open_tasks)._replace(left=open_tasks, checking=checking, unchecked=unchecked)

    def forecast_first(self, asking: Asking, wanted: Sequence[Task]) -> tuple[ModelForecast, ...]:
        """What asking the checker would send; one in this process reads no prompt and writes no reply."""
        rows = self.first.forecast(asking, self.questions(wanted)).rows
        none = {"prompt_tokens": 0, "completion_tokens": 0} if self._local else {}
        return tuple(msgspec.structs.replace(row, **none) for row in rows)

    @property
    def _local(self) -> bool:
        """Whether the checker is this code, so that asking it sends nothing."""
        return all(checker.price() == FREE for checker in self.first.models)


def open_first(
    cascade: Cascade,
    address: str | None,
    criteria: Sequence[Criterion],
    options: ModelOptions,
    settings: Settings,
    *,
    keys: bool = True,
) -> Judge:
    """Open the checker of a cascade, as a judge; its errors name the options of cascades.

    `options` are those of the other judge: the checker shares the limits of time and of a reply's length. A price for
    all models in `settings` is not the checker's.
    """
    own = msgspec.structs.replace(
        settings,
        prices={name: price for name, price in settings.prices.items() if name != EVERY_OTHER},
        price_table={name: price for name, price in settings.price_table.items() if name != EVERY_OTHER},
    )
    called = ModelOptions(
        base_url=address, timeout=options.timeout, threads=options.threads, max_tokens=options.max_tokens
    )
    able = [criterion for criterion in criteria if _judges(criterion)]
    try:
        checker = open_one(cascade.first, called, able or criteria, own, keys=keys)
        if not able:
            raise UsageError("no prompt grades by the share of supported sentences")
    except UsageError as error:
        raise UsageError(f"--cascade {cascade}: {str(error).replace('--base-url', '--cascade-url')}") from error
    if address is not None and checker.price() == FREE:
        raise UsageError(f"--cascade-url goes with a checker behind a server, and {cascade.checker} needs none")
    return Judge((checker,), called, own)


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
