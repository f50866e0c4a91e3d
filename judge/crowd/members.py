"""Who judges a run as a jury: models, prompts and samples, asked one by one, and their answers brought together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from judge.ask.loop import Task
from judge.ask.records import Failure, Judgment
from judge.ask.several import MOST_SAMPLES, Results
from judge.crowd.aggregators import JURIES
from judge.crowd.jury import Member, cautions, consensus, jury_criterion, jury_name
from judge.crowd.notes import JuryNotes
from judge.errors import UsageError
from judge.models.model import Model
from judge.records import Criterion
from judge.text.ids import natural_key


class Jury(msgspec.Struct, frozen=True):
    """Every model under every prompt of a criterion, each asked `samples` times, as one judge."""

    aggregator: str
    prompts: dict[str, tuple[Criterion, ...]]
    """By criterion, in natural order."""
    members: dict[str, tuple[Member, ...]]
    """By criterion."""
    criteria: tuple[Criterion, ...]
    """As the jury judges them."""
    samples: int
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """How records name the judge."""
        return jury_name(self.aggregator)

    def tasks(self, wanted: Iterable[Task]) -> tuple[Task, ...]:
        """What one model is asked, given what the jury is."""
        return tuple(
            Task(task.response, prompt, sample)
            for task in wanted
            for prompt in self.prompts[task.criterion.name]
            for sample in range(self.samples)
        )

    def configuration(self) -> dict[str, Any]:
        """The members as JSON values: a jury of other members is another configuration."""
        return {
            "aggregator": self.aggregator,
            "members": {name: list(map(msgspec.to_builtins, members)) for name, members in self.members.items()},
        }

    def decide(self, answers: Sequence[Judgment | Failure]) -> tuple[Results, JuryNotes]:
        """The jury's results by criterion, and what is to be said of them, from the answers of all its members."""
        by_criterion: dict[str, Results] = {criterion.name: [] for criterion in self.criteria}
        for one in answers:
            by_criterion[one.criterion].append(one)
        verdicts = {
            one.name: consensus(one, self.members[one.name], by_criterion[one.name], self.aggregator)
            for one in self.criteria
        }
        results = [one for verdict in verdicts.values() for one in verdict.results]
        return results, JuryNotes(verdicts, self.members, self.warnings, tuple(answers))


def make_jury(
    aggregator: str,
    models: Sequence[Model],
    prompts: Mapping[str, Sequence[Criterion]],
    samples: int,
    families: Mapping[str, str],
    runs: Iterable[str],
    temperature: float,
) -> Jury:
    """A jury of models, as `open_models` orders them, and prompts, whose order makes no other jury.

    Raises:
        UsageError: No such aggregator, a jury of one, prompts on several scales, or members that are one.
    """
    if aggregator not in JURIES:
        raise UsageError(f"no jury called {aggregator!r}: there are {', '.join(JURIES)} (--jury)")
    if not 1 <= samples <= MOST_SAMPLES:
        raise UsageError(f"{samples} samples: expected 1 to {MOST_SAMPLES} (--samples)")
    judges = [model.name for model in models]
    if twice := list(dict.fromkeys(judge for judge in judges if judges.count(judge) > 1)):
        raise UsageError(f"{', '.join(twice)}: named twice; --samples N asks every model N times")
    ordered = {
        name: tuple(sorted(prompts[name], key=lambda prompt: natural_key(prompt.prompt_id))) for name in sorted(prompts)
    }
    for several in ordered.values():
        _check_distinct(several)
    members = {
        name: tuple(
            Member(judge, prompt.prompt_id, prompt.digest, sample)
            for judge in judges
            for prompt in several
            for sample in range(samples)
        )
        for name, several in ordered.items()
    }
    for name, jury in members.items():
        if len(jury) == 1:
            raise UsageError(
                f"{name}: one member is no jury: give several --model, several --prompt of {name}, or --samples"
            )
    return Jury(
        aggregator=aggregator,
        prompts=ordered,
        members=members,
        criteria=tuple(jury_criterion(several, members[name]) for name, several in ordered.items()),
        samples=samples,
        warnings=cautions(aggregator, members, families, runs, temperature),
    )


def _check_distinct(prompts: Sequence[Criterion]) -> None:
    """Prompts that records could not tell apart are refused."""
    for at, one in enumerate(prompts):
        for other in prompts[at + 1 :]:
            if one.digest == other.digest or one.prompt_id == other.prompt_id:
                raise UsageError(
                    f"{one.file} and {other.file} are the same prompt or are both called {one.prompt_id}: give each "
                    "once, or rename one of the files"
                )
