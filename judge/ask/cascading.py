"""A cascade as a judge: a checker is asked first, and another judge only what the checker leaves open."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from judge.ask.asking import Asking, Judge, JudgeForecast, ModelForecast
from judge.ask.budget import EVERY_OTHER, price_of
from judge.ask.cascade import Cascade, parse_cascade, rolls_up_support, settled_counts
from judge.ask.opening import open_one
from judge.ask.progress import Progress
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.stored_results import ResultWriter, StoredResults, stored
from judge.ask.tasks import PickedTasks, Task
from judge.errors import UsageError
from judge.models.address import without_credentials
from judge.models.model import FREE, Model, ModelOptions
from judge.models.secrets import scrub
from judge.records import Criterion
from judge.text.steps import Step

CASCADE_URL = "cascade_url"
"""The option of a judge that is the address of its cascade's checker."""
_NOT_ASKED = -1
"""In place of an answer's number, where there is none."""


class OpenCascade(NamedTuple):
    """A cascade whose checker is open, with the prompts that the checker can judge."""

    cascade: Cascade
    checker: Model
    judged: frozenset[str]
    """Digests of these prompts; the other judge is asked all other prompts whole."""
    address: str | None
    """The checker's address, where it has one."""
    settings: Settings
    """How the checker is asked."""

    @property
    def local(self) -> bool:
        """Whether the checker is this code, so that asking it sends nothing."""
        return self.checker.price() == FREE

    def judges(self, criterion: Criterion) -> bool:
        """Whether the checker is asked under this prompt."""
        return criterion.digest in self.judged

    def questions(self, wanted: Sequence[Task]) -> tuple[PickedTasks, "array[int]"]:
        """What the checker is asked of these tasks, and for each task the number of its question; negative if none is.

        Of several samples the checker gives one judgment: where they follow each other, their question stands once.
        """
        places, numbers = array("q"), array("q")
        before: tuple[str, str] | None = None
        for place, task in enumerate(wanted):
            if not self.judges(task.criterion):
                numbers.append(_NOT_ASKED)
                continue
            question = task.response.response_id, task.criterion.digest
            if question != before:
                places.append(place)
            before = question
            numbers.append(len(places) - 1)
        return PickedTasks(wanted, places, sample=0), numbers

    def check(self, asking: Asking, wanted: Sequence[Task]) -> "CheckerAnswers":
        """Ask the checker alone.

        Raises:
            OperationalError: The loop stopped early; every paid completion is in the journal.
        """
        name, steps = self.checker.name, asking.progress.steps

        def counted(progress: Progress) -> None:
            steps(Step(name, progress.done, progress.total, free=progress.recalled))

        once, numbers = self.questions(wanted)
        return CheckerAnswers(asking.ask_model(self.checker, once, self.settings, counted, None), numbers)

    def recalled(self, asking: Asking, wanted: Sequence[Task]) -> "CheckerAnswers":
        """What the journal holds of the checker's answers, without those that it would be asked for."""
        once, numbers = self.questions(wanted)
        said, found = ResultWriter(), array("q")
        for result in asking.questions(self.checker, None).settled(once):
            found.append(_NOT_ASKED if result is None else len(said))
            if result is not None:
                said.add(result)
        known = array("q", (number if number < 0 else found[number] for number in numbers))
        return CheckerAnswers(said.results(), known)

    def forecast(self, asking: Asking, wanted: Sequence[Task], options: ModelOptions) -> ModelForecast:
        """What asking the checker would send; a checker in this process reads no prompt and writes no reply."""
        once, _ = self.questions(wanted)
        row = asking.forecast_model(self.checker, once, self.settings, options, None)
        return msgspec.structs.replace(row, prompt_tokens=0, completion_tokens=0) if self.local else row


class CheckerAnswers(NamedTuple):
    """What the checker of a cascade said of tasks; several tasks may share an answer."""

    answers: StoredResults
    """The answers, each once."""
    numbers: "array[int]"
    """For each task the number of its answer among these; negative where the checker said nothing."""


class CascadeJudge(Judge):
    """A checker that judges first, and the judge that is asked what the checker is not sure of.

    Args:
        opened: The cascade with its checker.
        rest: The other judge.
    """

    def __init__(self, opened: OpenCascade, rest: Judge) -> None:
        super().__init__(rest.models, rest.options, rest.settings, rest.name)
        self.opened, self.rest = opened, rest
        self.whole = opened.cascade.judge(rest.name)
        """The name of the cascade with its other judge."""

    @property
    def asked(self) -> tuple[Model, ...]:
        """All models that are asked, the checker first."""
        return (self.opened.checker, *self.rest.asked)

    @property
    def prices(self) -> dict[str, dict[str, float] | None]:
        """US dollars per million tokens of each model, as far as they are known; the checker comes last."""
        checker, known = self.opened.checker, self.opened.settings.known_prices
        price = price_of(checker, known)
        return {**self.rest.prices, checker.name: None if price is None else price.per_million()}

    def configuration(self) -> dict[str, object]:
        """Checker and bounds."""
        return {"cascade": self.opened.cascade.recorded(published_address(self.opened.address))}

    def described(self, criterion: Criterion, options: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        """The name of the cascade where its checker judges the criterion; else that of the other judge."""
        if not self.opened.judges(criterion):
            return self.rest.described(criterion, options)
        return self.whole, {**options, **address_option(self.opened.address)}

    def recorded(self, results: Iterable[Judgment | Failure]) -> dict[str, Any]:
        """What a manifest says: checker and bounds, and how many judgments of each criterion the checker settled."""
        counts = [
            {
                "criterion": row.criterion,
                "settled": row.settled,
                "asked": row.asked,
                "without_evidence": row.without_evidence,
                "checker_failed": row.checker_failed,
            }
            for row in settled_counts(results)
        ]
        return {**self.opened.cascade.recorded(published_address(self.opened.address)), "counts": counts}

    def settled(self, said: CheckerAnswers) -> bytearray:
        """For each task, whether an answer of the checker stands."""
        stands = bytearray(map(self.opened.cascade.settles, said.answers))
        return bytearray(number >= 0 and stands[number] for number in said.numbers)

    def left(self, wanted: Sequence[Task], settled: bytearray) -> PickedTasks:
        """What the other judge is asked."""
        return PickedTasks(wanted, array("q", (place for place, stands in enumerate(settled) if not stands)))

    def results(
        self, wanted: Sequence[Task], said: CheckerAnswers, settled: bytearray, rest: Iterable[Judgment | Failure]
    ) -> Iterator[Judgment | Failure]:
        """The results of the cascade, in the order of `wanted`.

        Args:
            wanted: All tasks.
            said: What the checker said.
            settled: From `settled`.
            rest: What the other judge said of the tasks that are `left`.
        """
        others = iter(rest)
        for task, number, stands in zip(wanted, said.numbers, settled, strict=True):
            checked = said.answers[number] if number >= 0 else None
            if stands and isinstance(checked, Judgment):
                yield self.opened.cascade.settled(checked, self.rest.name, task.sample)
            else:
                yield self._named(task, next(others), checked)

    def _named(self, task: Task, result: Judgment | Failure, checked: Judgment | Failure | None) -> Judgment | Failure:
        """A result of the other judge, as one of the cascade where the checker was asked too."""
        if not self.opened.judges(task.criterion):
            return result
        failed = checked.reason if isinstance(checked, Failure) and checked.reason != "no_passages" else None
        return msgspec.structs.replace(result, cascade=self.whole, checker_failed=failed)

    def ask(self, asking: Asking, wanted: Sequence[Task], report: Callable[[Progress], None]) -> StoredResults:
        """Ask the checker everything that it can judge, then the other judge what is left; the results of both.

        In the progress, what the checker settles counts as recalled. A failure of the checker is no result.
        """
        before = asking.spent
        said = self.opened.check(asking, wanted)
        settled = self.settled(said)
        first = Progress(sum(settled), len(wanted), sum(settled), 0, asking.spent - before)
        left = self.left(wanted, settled)
        if not left:
            report(first)
        rest = self.rest.ask(asking, left, lambda progress: report(first.plus(progress)))
        return stored(self.results(wanted, said, settled, rest), asking.place.out)

    def forecast(self, asking: Asking, wanted: Sequence[Task]) -> JudgeForecast:
        """What asking both would send; a checker in this process is asked here, because that sends nothing."""
        if self.opened.local:
            with asking.in_memory() as memory:
                said = self.opened.check(memory, wanted)
        else:
            said = self.opened.recalled(asking, wanted)
        left = self.left(wanted, self.settled(said))
        unchecked = sum(self.opened.judges(task.criterion) for task in wanted) - sum(n >= 0 for n in said.numbers)
        checking = (self.opened.forecast(asking, wanted, self.options),)
        return self.rest.forecast(asking, left)._replace(left=left, checking=checking, unchecked=unchecked)


def check_cascade(cascade: str | None, address: str | None, *, jury: bool, together: bool) -> Cascade | None:
    """The cascade of a plan, None where it has none.

    Args:
        cascade: `CHECKER@LOW:HIGH`.
        address: The checker's address.
        jury: Whether the plan has several models, or one under several prompts or asked several times.
        together: Whether the plan asks for several criteria in one call.

    Raises:
        UsageError: It cannot be read, goes with none of the other options, or is missing where it has an address.
    """
    if cascade is None:
        if address is not None:
            raise UsageError("--cascade-url is the address of a cascade's checker, which --cascade names")
        return None
    if jury:
        raise UsageError("--cascade asks one model what its checker leaves open, so it does not go with a jury")
    if together:
        raise UsageError(
            "--cascade does not go with --together: a settled criterion would still be asked with the others"
        )
    return parse_cascade(cascade)


def open_cascade(
    cascade: Cascade,
    address: str | None,
    criteria: Sequence[Criterion],
    options: ModelOptions,
    settings: Settings,
    *,
    keys: bool = True,
) -> OpenCascade:
    """Open the checker of a cascade, and find what it can judge.

    Args:
        cascade: The cascade.
        address: The checker's address; None for one that needs no server.
        criteria: The prompts.
        options: How the other judge is called; the checker shares the time limit.
        settings: The budget and prices; a price for all models is not the checker's.
        keys: As for `open_one`.

    Raises:
        UsageError: There is no such checker, it cannot be asked, it can judge none of the prompts, or it has an address
            that it does not need.
    """
    own = msgspec.structs.replace(
        settings,
        prices={name: price for name, price in settings.prices.items() if name != EVERY_OTHER},
        price_table={name: price for name, price in settings.price_table.items() if name != EVERY_OTHER},
    )
    called = ModelOptions(base_url=address, timeout=options.timeout, threads=options.threads)
    able: list[Criterion] = []
    checker: Model | None = None
    refusal: UsageError | None = None
    # What is wrong with a prompt that labels sentences is said before what is wrong with one that does not.
    for criterion in sorted(criteria, key=rolls_up_support, reverse=True):
        try:
            opened = open_one(cascade.first, called, [criterion], own, keys=keys)
        except UsageError as error:
            refusal = refusal or error
            continue
        if rolls_up_support(criterion):
            checker = opened
            able.append(criterion)
    if checker is None:
        told = str(refusal or "no prompt grades by the share of supported sentences")
        raise UsageError(f"--cascade {cascade}: {told.replace('--base-url', '--cascade-url')}")
    # Records name the files of a checker by their digest, not by the path that the user gave.
    title = checker.name if cascade.first == cascade.checker else checker.name.rpartition("@")[0]
    cascade = msgspec.structs.replace(cascade, checker=title)
    found = OpenCascade(cascade, checker, frozenset(criterion.digest for criterion in able), address, own)
    if address is not None and found.local:
        raise UsageError(f"--cascade-url goes with a checker behind a server, and {cascade.checker} needs none")
    return found


def address_option(address: str | None) -> dict[str, str]:
    """The address of a cascade's checker as an option of the judge; empty where there is none."""
    url = published_address(address)
    return {} if url is None else {CASCADE_URL: url}


def published_address(address: str | None) -> str | None:
    """An address as records show it."""
    return None if address is None else scrub(without_credentials(address))
