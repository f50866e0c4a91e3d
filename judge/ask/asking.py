"""The one way to ask a judge: `Asking` has all that the calls of a job share, and a `Judge` says what is called.

Nothing else opens a journal to ask, calls the loop, keeps a budget over several loops, or counts what asking will cost.
"""

import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from judge.ask.account import Account, JudgeAccount, Settings, price_of
from judge.ask.loop import Loop
from judge.ask.progress import JobProgress, Progress
from judge.ask.questions import Questions, failure, refused_notes
from judge.ask.records import JOURNAL, Failure, Judgment, PickedTasks, Task
from judge.ask.results import StoredResults, stored
from judge.ask.returned import by_criterion, form_notes, mask_notes, model_notes
from judge.errors import Interrupted, OperationalError
from judge.io.folder import make_folder
from judge.io.text import count
from judge.judges.journal import Journal
from judge.judges.model import Model, ModelOptions
from judge.judges.records import Completion
from judge.pool.records import Pool
from judge.runs.records import Turn

CallEngine = Callable[[Model, int, Callable[[str], None]], Model]
"""Gives the same model with calls that are made elsewhere, so many at once; the function is told what they wait for."""


class Judge:
    """One that judges: a model, or several models that are asked one after the other.

    `name` is how records name the judge; by default as its models. `parts` is criterion to the name of the model that
    judges it, in the order of the criteria; empty where each model judges all.
    """

    def __init__(
        self,
        models: Sequence[Model],
        options: ModelOptions | None = None,
        settings: Settings | None = None,
        name: str | None = None,
        parts: Mapping[str, str] | None = None,
    ) -> None:
        self.models = tuple(models)
        self.options = options or ModelOptions()
        self.settings = settings or Settings()
        self.parts = parts or {}
        self.name = name or ", ".join(by_criterion(self.parts) if parts else (model.name for model in models))

    @property
    def prices(self) -> dict[str, dict[str, float] | None]:
        """US dollars per million tokens of each model, as far as they are known."""
        known = {model.name: price_of(model, self.settings.known_prices) for model in self.models}
        return {name: None if price is None else price.per_million() for name, price in known.items()}

    def of(self, model: Model, wanted: Sequence[Task]) -> Sequence[Task]:
        """Those of the tasks that a model is asked."""
        if not self.parts:
            return wanted
        own = (place for place, task in enumerate(wanted) if self.parts[task.criterion.name] == model.name)
        return PickedTasks(wanted, array("q", own))


class JournalPlace(NamedTuple):
    """Where the answers of a job are kept."""

    out: Path | None
    """The folder with the journal; None for a journal in memory."""
    known: tuple[Path, ...] = ()
    """Journals that hold paid answers to the same questions; what they hold is taken over."""

    @property
    def earlier(self) -> tuple[Path, ...]:
        """The other journals that are there."""
        own = () if self.out is None else (self.out.resolve() / JOURNAL,)
        return tuple(path for path in self.known if path.exists() and path.resolve() not in own)

    @property
    def journals(self) -> list[Path]:
        """The journals that are there; the first one that holds an answer gives it."""
        own = [] if self.out is None else [self.out / JOURNAL]
        return [*(path for path in own if path.exists()), *self.earlier]


class Asking:
    """Asks judges for one job, with one journal, under one budget, into one account.

    `engine` says where the calls are made; None for this process.
    """

    def __init__(
        self,
        place: JournalPlace,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
        progress: JobProgress | None = None,
        engine: CallEngine | None = None,
        spent: float = 0.0,
    ) -> None:
        self.place = place
        self.pool = pool
        self.turns = turns
        self.progress = progress or JobProgress()
        self.spent = spent
        """US dollars that all asking of this job cost, with what was spent before it under the same budget."""
        self.not_judged: tuple[str, ...] = ()
        """In words, what a model was to judge that could not be fetched."""
        self._account = Account()
        self._engine = engine
        self._prepared: list[Model] = []
        self._journal: Journal | None = None
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            out = self.place.out
            if out is None:
                self._journal = opened.enter_context(Journal(None))
            else:
                make_folder(out)
                self._journal = opened.enter_context(Journal(out / JOURNAL))
                for path in self.place.earlier:
                    self._journal.adopt(path)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *exit_info: object) -> None:
        self._opened.close()

    @property
    def journal(self) -> Journal:
        """The journal, while it is open."""
        if self._journal is None:
            raise RuntimeError("the journal of an asking is open only inside its block")
        return self._journal

    @property
    def accounts(self) -> tuple[JudgeAccount, ...]:
        """What the calls to each model took so far."""
        return self._account.rows()

    def prepare(self, model: Model) -> None:
        """Fetch what a model needs, once; an OperationalError if it cannot be fetched now."""
        if not any(model is prepared for prepared in self._prepared):
            model.prepare(self.progress.fetching)
            self._prepared.append(model)

    def ask(self, judge: Judge, wanted: Sequence[Task]) -> StoredResults:
        """The replies of a judge's models, by model and then in the order of `wanted`, within the rest of the budget.

        Where each model judges a part, each has a progress of its own, and one that cannot be fetched now judges
        nothing. An OperationalError if the loop stopped early; every paid completion is in the journal.
        """
        if judge.parts:
            parts = (self._ask_part(model, judge.of(model, wanted), judge.settings) for model in judge.models)
            return StoredResults.joined(list(parts))
        report = self.progress.of(judge.name)
        now = Progress(done=0, total=len(wanted) * len(judge.models), recalled=0, failures=0, cost=0.0)
        replies: list[StoredResults] = []
        for model in judge.models:
            before = now

            def counted(progress: Progress, before: Progress = before) -> None:
                nonlocal now
                now = before.plus(progress)
                report(now)

            replies.append(self.ask_model(model, wanted, judge.settings, counted))
        return StoredResults.joined(replies)

    def ask_model(
        self,
        model: Model,
        wanted: Sequence[Task],
        settings: Settings,
        report: Callable[[Progress], None],
        kind: type[Questions] = Questions,
    ) -> StoredResults:
        """Run the loop once, within the rest of the budget of the job; `kind` of questions: by default, for grades."""
        self.prepare(model)
        before = self.spent
        last = Progress(done=0, total=len(wanted), recalled=0, failures=0, cost=0.0)
        if settings.max_cost is not None:
            settings = msgspec.structs.replace(settings, max_cost=max(0.0, settings.max_cost - before))

        def counted(progress: Progress) -> None:
            nonlocal last
            self.spent = before + progress.cost
            last = progress
            report(progress)

        def waiting(why: str) -> None:
            report(last._replace(limited=why))

        if self._engine is not None:
            model = self._engine(model, min(settings.concurrency, len(wanted)), waiting)
        questions = kind(model=model, journal=self.journal, pool=self.pool, turns=self.turns, account=self._account)
        loop = Loop(questions, self.journal, settings, report=counted, folder=self.place.out)
        results = loop.run_to_end(wanted)
        self.journal.shrink()
        return results

    def _ask_part(self, model: Model, wanted: Sequence[Task], settings: Settings) -> StoredResults:
        """As `ask_model`; if the model cannot be fetched, a failure for each task that the journal cannot settle."""
        try:
            self.prepare(model)
        except Interrupted:
            raise
        except OperationalError as error:
            why = str(error)
            questions = Questions(model, self.journal, self.pool, self.turns)
            settled = list(questions.settled(wanted))
            if missing := settled.count(None):
                criteria = " and ".join(dict.fromkeys(task.criterion.name for task in wanted))
                lacking = f"{criteria}: {missing} of {count(len(wanted), 'judgment')} cannot be made"
                self.not_judged += (f"{lacking}, because {model.name} cannot be fetched: {why}",)
            pairs = zip(wanted, settled, strict=True)
            lost = (known or failure(task, model.name, "provider_error", why) for task, known in pairs)
            return stored(lost, self.place.out)
        return self.ask_model(model, wanted, settings, self.progress.of(model.name))

    def notes(self, models: Iterable[Model], replies: Sequence[Judgment | Failure]) -> tuple[str, ...]:
        """As `model_notes`, and a sentence for each judge whose replies lost a secret."""
        return *self.model_notes(models, replies), *mask_notes(replies)

    def model_notes(self, models: Iterable[Model], replies: Sequence[Judgment | Failure]) -> tuple[str, ...]:
        """A sentence for each judge that cannot be fetched, is another model, or was asked in an unusual way."""
        names = [model.name for model in models]
        return (*self.not_judged, *model_notes(replies), *refused_notes(names, self.journal), *form_notes(replies))

    def served_notes(self, judge: Judge, replies: Sequence[Judgment | Failure]) -> tuple[str, ...]:
        """What the models of a judge say of their replies."""
        models = sorted(judge.models, key=lambda model: model.name)
        return tuple(chain.from_iterable(model.notes(_completions(model, replies, self.journal)) for model in models))


def _completions(model: Model, replies: Sequence[Judgment | Failure], journal: Journal) -> Iterator[Completion]:
    """The completions behind the judgments of a model, each once, though several judgments may share it."""
    own = (reply for reply in replies if isinstance(reply, Judgment) and reply.judge == model.name)
    for digest in dict.fromkeys(reply.request_digest for reply in own):
        completion = journal.get(digest)
        if completion is not None:
            yield completion


def take_over(journal: Path, out: Path) -> None:
    """Take what another journal holds over into that of a folder."""
    make_folder(out)
    with Journal(out / JOURNAL) as own:
        own.adopt(journal)
