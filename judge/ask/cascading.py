"""Asks the checker of a cascade first, and another judge only what the checker leaves open."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from judge.ask.account import Account
from judge.ask.budget import EVERY_OTHER
from judge.ask.cascade import Cascade, rolls_up_support
from judge.ask.checked import NOT_ASKED, CheckerAnswers, SettledJudgments
from judge.ask.progress import Progress
from judge.ask.questions import Questions
from judge.ask.records import Failure, Judgment
from judge.ask.settings import Settings
from judge.ask.several import Fetching, ask, open_one
from judge.ask.stored_results import ResultWriter, StoredResults, stored
from judge.ask.tasks import PickedTasks, Task
from judge.errors import UsageError
from judge.models.journal import Journal, JournalView
from judge.models.model import FREE, Model, ModelOptions
from judge.pool.records import Pool
from judge.records import Criterion
from judge.runs.records import Turn


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
                numbers.append(NOT_ASKED)
                continue
            question = task.response.response_id, task.criterion.digest
            if question != before:
                places.append(place)
            before = question
            numbers.append(len(places) - 1)
        return PickedTasks(wanted, places, sample=0), numbers

    def settled(self, wanted: Sequence[Task], said: Mapping[int, Judgment | Failure], model: str) -> SettledJudgments:
        """The judgments of the checker that stand, as judgments of the cascade.

        Args:
            wanted: All tasks.
            said: What the checker said, by the places of tasks.
            model: The judge that is asked the rest.
        """
        return SettledJudgments(
            *(said, self.cascade.settles),
            lambda place, judgment: self.cascade.settled(judgment, model, wanted[place].sample),
        )

    def named(
        self, task: Task, result: Judgment | Failure, model: str, said: Judgment | Failure | None
    ) -> Judgment | Failure:
        """A result of the other judge, as one of the cascade where the checker was asked too.

        Args:
            task: What was asked.
            result: What the other judge said.
            model: The other judge.
            said: What the checker said; None where it was not asked.
        """
        if task.criterion.digest not in self.judged:
            return result
        failed = said.reason if isinstance(said, Failure) and said.reason != "no_passages" else None
        return msgspec.structs.replace(result, cascade=self.cascade.judge(model), checker_failed=failed)


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


def ask_cascade(
    opened: OpenCascade,
    model: Model,
    wanted: Sequence[Task],
    journal: Journal,
    pool: Pool,
    *,
    turns: Mapping[str, Turn] | None,
    settings: Settings,
    checking: Callable[[Progress], None] | None = None,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    account: Account | None = None,
    folder: Path | None = None,
) -> StoredResults:
    """Ask the checker everything it can judge, then the other judge what is left, under one budget.

    Args:
        opened: The cascade.
        model: The other judge; the caller has prepared it.
        wanted: The judgments to make.
        journal: Holds every completion of both.
        pool: The pool of the responses.
        turns: The turns by id, for criteria that show the conversation.
        settings: Limits on calls and cost; the budget is for both judges together.
        checking: Called with the progress of the checker.
        report: Called with the progress over all judgments; those that are settled count as recalled.
        fetching: Called while a checker is being fetched.
        account: Where calls and completions are entered.
        folder: As for `assess`.

    Returns:
        Judgments and failures, in the order of `wanted`; a failure of the checker is none of them.

    Raises:
        OperationalError: A loop stopped early; every paid completion is in the journal.
    """
    said, spent = ask_checker(
        *(opened, wanted, journal, pool, settings.max_cost),
        report=checking,
        fetching=fetching,
        account=account,
        folder=folder,
    )
    settled = opened.settled(wanted, said, model.name)
    before = Progress(len(settled), len(wanted), len(settled), 0, spent)

    def counted(progress: Progress) -> None:
        if report is not None:
            report(
                progress._replace(
                    done=before.done + progress.done,
                    total=before.total,
                    recalled=before.recalled + progress.recalled,
                    cost=before.cost + progress.cost,
                )
            )

    left = PickedTasks(wanted, array("q", (place for place in range(len(wanted)) if place not in settled)))
    if not left and report is not None:
        report(before)
    if settings.max_cost is not None:
        settings = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - spent))
    asked = ((model,), left, journal, pool)
    rest = iter(ask(*asked, turns=turns, settings=settings, report=counted, account=account, folder=folder))
    results = (
        settled[place] if place in settled else opened.named(task, next(rest), model.name, said.get(place))
        for place, task in enumerate(wanted)
    )
    return stored(results, folder)


def ask_checker(
    opened: OpenCascade,
    wanted: Sequence[Task],
    journal: Journal,
    pool: Pool,
    most: float | None = None,
    *,
    report: Callable[[Progress], None] | None = None,
    fetching: Fetching | None = None,
    account: Account | None = None,
    folder: Path | None = None,
) -> tuple[CheckerAnswers, float]:
    """Ask the checker alone.

    Args:
        opened: The cascade.
        wanted: All tasks.
        journal: Holds every completion.
        pool: The pool of the responses.
        most: US dollars that may be spent; None without a budget.
        report: Called after each judgment.
        fetching: Called while a checker is being fetched.
        account: Where calls and completions are entered.
        folder: As for `assess`.

    Returns:
        What the checker said, by the places of tasks, and the US dollars that it cost.

    Raises:
        OperationalError: The loop stopped early; every paid completion is in the journal.
    """
    spent = 0.0

    def counted(progress: Progress) -> None:
        nonlocal spent
        spent = progress.cost
        if report is not None:
            report(progress)

    opened.checker.prepare(fetching or (lambda what, done, total: None))
    settings = msgspec.structs.replace(opened.settings, max_cost=most)
    once, numbers = opened.questions(wanted)
    said = ask(
        *((opened.checker,), once, journal, pool),
        turns=None,
        settings=settings,
        report=counted,
        account=account,
        folder=folder,
    )
    return CheckerAnswers(said, numbers), spent


def recalled(opened: OpenCascade, wanted: Sequence[Task], journal: Journal | JournalView, pool: Pool) -> CheckerAnswers:
    """What a journal holds of the checker's answers, by the places of tasks, without those that it would be asked."""
    once, numbers = opened.questions(wanted)
    said, found = ResultWriter(), array("q")
    questions = Questions(opened.checker, journal, pool, None)
    for result in questions.settled(once, lambda: None):
        found.append(NOT_ASKED if result is None else len(said))
        if result is not None:
            said.add(result)
    return CheckerAnswers(said.results(), (number if number < 0 else found[number] for number in numbers))
