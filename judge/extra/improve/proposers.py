"""Who proposes wordings: a model, prepared files, or an optimizer of another package.

An optimizer is a row `optimizers.NAME`: a function that gets a `Round` and returns the texts of prompt files. It may
ask about wordings of its own first (`Round.ask`).
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from judge.ask.account import Settings
from judge.ask.asking import Asking, Judge
from judge.ask.opening import open_one
from judge.ask.records import Failure, Judgment
from judge.errors import InputError, JudgeError, MissingKeyError, OperationalError, UsageError
from judge.extra.improve.plan import MOST_TRIED, ImprovePlan
from judge.extra.improve.rewriting import (
    Parent,
    RefusedWordingError,
    WordingQuestions,
    rewriting_prompt,
    wording_of,
    wording_task,
)
from judge.io.files import read_stored
from judge.io.ids import natural_key
from judge.io.text import shorten
from judge.judges.backends import options_beside
from judge.judges.model import Model, ModelOptions
from judge.plugins import OpenTable
from judge.records import Record

ROOM = 4096
"""Fewest tokens that a proposer's reply may have."""


class DevItem(Record, frozen=True):
    """One graded item of dev, under the wording that agrees best so far."""

    turn_id: str
    topic_id: str
    response_id: str
    gold: tuple[int, ...]
    """The grades of the assessors."""
    grade: int | None
    """The grade of the judge; None where there is none."""
    text: str


class Tried(NamedTuple):
    """What came of a wording that was asked on dev."""

    agreement: float | None
    """The primary statistic; None where it is undefined."""
    grades: dict[str, int | None]
    """The judge's grades by response id."""


class Round(NamedTuple):
    """What a proposer is told."""

    number: int
    variants: int
    """How many wordings are wanted."""
    shown: int
    """How many items a model is shown for each."""
    kept: tuple[Parent, ...]
    """The wordings that may be the best, the best first."""
    items: tuple[DevItem, ...]
    """The items of dev."""
    ask: Callable[[str], Tried]
    """Asks the judge on dev under the text of a prompt file; it counts as tried. An InputError if it is refused."""


class Proposal(NamedTuple):
    """A wording to try, or why there is none."""

    content: str
    """The text of a prompt file; empty where it is refused."""
    parent: str = ""
    """The variant that it was made from."""
    name: str = ""
    """The variant's name; by default a number."""
    refused: str = ""


class Proposer(Protocol):
    """Gives proposals for each round."""

    name: str

    def propose(self, told: Round) -> Iterable[Proposal]:
        """The proposals of a round."""


OPTIMIZERS: OpenTable[Callable[[Round], Iterable[str]]] = OpenTable("optimizers", {})
"""The optimizers of annexes and of other packages, by name."""


class ModelProposer:
    """A model that writes wordings, each from another wording that is kept or other items."""

    def __init__(self, model: Model, options: ModelOptions, settings: Settings) -> None:
        self.model = model
        self.name = model.name
        self.asking: Asking | None = None
        self.judge = Judge((model,), options, settings)
        self._rewriting = rewriting_prompt()

    def propose(self, told: Round) -> Iterable[Proposal]:
        """Ask for the wordings of a round at once, and read them."""
        if self.asking is None or not told.kept:
            return []
        tasks = []
        parents: list[Parent] = []
        for number in range(told.variants):
            parent = told.kept[number % len(told.kept)]
            # Wordings from one parent are each made from other items, the worst for the first.
            items = parent.worst[number // len(told.kept) :: -(-told.variants // len(told.kept))]
            tasks.append(wording_task(self._rewriting, parent, items[: told.shown], number + 1, told.variants))
            parents.append(parent)
        report = self.asking.progress.of(self.name)
        results = self.asking.ask_model(self.model, tasks, self.judge.settings, report, WordingQuestions)
        refuse_spent(results)
        proposals: list[Proposal] = []
        for result, parent in zip(results, parents, strict=True):
            variant = parent.criterion.variant
            if isinstance(result, Failure):
                proposals.append(Proposal("", variant, refused=f"no reply: {result.reason}: {result.detail}"))
                continue
            try:
                proposals.append(Proposal(wording_of(result.rationale or "", parent), variant))
            except RefusedWordingError as refused:
                proposals.append(Proposal("", variant, refused=str(refused)))
        return proposals


def refuse_spent(results: Iterable[Judgment | Failure]) -> None:
    """Refuse to go on where something was not asked to the end because the budget was spent: nothing is chosen then."""
    if any(isinstance(result, Failure) and result.reason == "budget" for result in results):
        raise OperationalError(
            "the budget is spent before the search is at its end: the test grades stay closed; the same command with "
            "more --max-cost goes on from here"
        )


class PreparedWordings:
    """Prompt files that somebody wrote, all of them in the first round: none is made from another one."""

    def __init__(self, path: Path) -> None:
        files = sorted(path.glob("*.md"), key=lambda file: natural_key(file.name)) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path}: no prompt file (*.md) to propose")
        if len(files) > MOST_TRIED:
            raise InputError(f"{path}: {len(files)} prompt files to propose, at most {MOST_TRIED}")
        self.name = "file"
        self.proposals = [Proposal(_text(file), name=file.stem) for file in files]

    def propose(self, told: Round) -> Iterable[Proposal]:
        """All files, once."""
        return self.proposals if told.number == 1 else []


def _text(file: Path) -> str:
    try:
        return read_stored(file).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8") from None


class OptimizerProposer:
    """An optimizer of a package."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._optimize = OPTIMIZERS[name]

    def propose(self, told: Round) -> Iterable[Proposal]:
        """What the optimizer returns, which must be texts."""
        best = told.kept[0].criterion.variant if told.kept else ""
        try:
            texts: Any = self._optimize(told)
            if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
                raise UsageError(f"the optimizer {self.name} returned no texts of prompt files, but {type(texts)}")
            # A generator may never end.
            texts = list(islice(texts, MOST_TRIED + 1))
        except JudgeError:
            raise
        except Exception as error:  # whatever it raises is told in words, and the calls so far are kept
            message = f"the optimizer {self.name} failed: {type(error).__name__}: {shorten(str(error), 200)}"
            raise OperationalError(message) from error
        return [
            Proposal(text, best) if isinstance(text, str) else Proposal("", best, refused="not the text of a prompt")
            for text in texts
        ]


def open_proposer(plan: ImprovePlan, *, keys: bool) -> Proposer | None:
    """The proposer of a plan: prepared prompt files, an optimizer, or a model that writes texts; None without rewrites.

    `keys`: refuse a model without its key.
    """
    if "rewrites" not in plan.ways:
        return None
    name = plan.proposer or plan.model
    if isinstance(name, Path) or (isinstance(name, str) and (name.endswith(".md") or Path(name).is_dir())):
        return PreparedWordings(Path(name))
    if isinstance(name, str) and name in OPTIMIZERS:
        return OptimizerProposer(name)
    try:
        own = options_beside(name, plan.options)
        own = msgspec.structs.replace(own, form="text", logprobs=False, max_tokens=max(own.max_tokens, ROOM))
        return ModelProposer(open_one(name, own, (), plan.settings, keys=keys), own, plan.settings)
    except MissingKeyError:
        raise
    except UsageError as error:
        known = f" or an optimizer ({', '.join(sorted(OPTIMIZERS))})" if OPTIMIZERS else ""
        raise UsageError(
            f"{error}; --proposer is a model that writes texts, a prompt file (*.md), a folder of them{known}; "
            "--ways examples cuts needs none"
        ) from error


def models_of(proposer: Proposer | None) -> tuple[Model, ...]:
    """The model that a proposer asks, if it asks one."""
    return (proposer.model,) if isinstance(proposer, ModelProposer) else ()
