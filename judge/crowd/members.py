"""The members of a jury: models, prompts and samples, asked one by one, and their results aggregated."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from judge.ask.asking import Judge
from judge.ask.opening import MOST_SAMPLES
from judge.ask.records import Failure, Judgment
from judge.ask.stored_results import StoredResults
from judge.ask.tasks import Tasks
from judge.crowd.aggregators import JURIES
from judge.crowd.jury import JuryNotes, Member, cautions, consensus, jury_criterion, jury_name
from judge.errors import UsageError
from judge.io.ids import natural_key
from judge.judges.model import Model
from judge.records import Criterion


class Jury(Judge):
    """Every model of a judge under every prompt of a criterion, each asked `samples` times, as one judge.

    Args:
        aggregator: A key of JURIES.
        judge: The models.
        prompts: The prompts by criterion, in natural order.
        samples: How often each model is asked each question.
        warnings: A sentence each.
    """

    def __init__(
        self,
        aggregator: str,
        judge: Judge,
        prompts: Mapping[str, tuple[Criterion, ...]],
        samples: int,
        warnings: tuple[str, ...],
    ) -> None:
        super().__init__(judge.models, judge.options, judge.settings, jury_name(aggregator))
        self.aggregator, self.prompts, self.samples, self.warnings = aggregator, prompts, samples, warnings
        self.members = _members(self.models, prompts, samples)
        """By criterion."""
        self.criteria = tuple(jury_criterion(variants, self.members[name]) for name, variants in prompts.items())
        """The criteria as the jury judges them."""

    def tasks(self, wanted: Tasks) -> Tasks:
        """The tasks of one model, for the tasks of the jury."""
        return wanted.varied(
            lambda criterion: tuple(
                (prompt, sample) for prompt in self.prompts[criterion.name] for sample in range(self.samples)
            )
        )

    def configuration(self) -> dict[str, object]:
        """The members as JSON values; a jury of other members has another configuration."""
        members = {name: list(map(msgspec.to_builtins, members)) for name, members in self.members.items()}
        return {"jury": {"aggregator": self.aggregator, "members": members}}

    def decide(
        self, collected: Sequence[Judgment | Failure], folder: Path | None = None
    ) -> tuple[StoredResults, JuryNotes]:
        """Aggregate the results of all members to the jury's results, with notes for the outputs.

        Args:
            collected: The results of all members.
            folder: As for `ResultWriter`.
        """
        verdicts = {
            criterion.name: consensus(criterion, self.members[criterion.name], collected, self.aggregator, folder)
            for criterion in self.criteria
        }
        results = StoredResults.joined(verdict.results for verdict in verdicts.values())
        return results, JuryNotes(verdicts, self.members, self.warnings, collected)


def make_jury(
    aggregator: str,
    judge: Judge,
    prompts: Mapping[str, Sequence[Criterion]],
    samples: int,
    families: Mapping[str, str],
    runs: Iterable[str],
) -> Jury:
    """Make a jury of the models of a judge and of prompts, whose order does not matter.

    Raises:
        UsageError: There is no such aggregator, the jury has one member, prompts differ in scale, or members are equal.
    """
    if aggregator not in JURIES:
        raise UsageError(f"no jury called {aggregator!r}: there are {', '.join(JURIES)} (--jury)")
    if not 1 <= samples <= MOST_SAMPLES:
        raise UsageError(f"{samples} samples: expected 1 to {MOST_SAMPLES} (--samples)")
    judges = [model.name for model in judge.models]
    if twice := list(dict.fromkeys(name for name in judges if judges.count(name) > 1)):
        raise UsageError(f"{', '.join(twice)}: named twice; --samples N asks every model N times")
    ordered = {
        name: tuple(sorted(prompts[name], key=lambda prompt: natural_key(prompt.prompt_id))) for name in sorted(prompts)
    }
    for variants in ordered.values():
        _check_distinct(variants)
    members = _members(judge.models, ordered, samples)
    for name, jury in members.items():
        if len(jury) == 1:
            raise UsageError(
                f"{name}: one member is no jury: give several --model, several --prompt of {name}, or --samples"
            )
    warnings = cautions(aggregator, members, families, runs, judge.options.temperature)
    return Jury(aggregator, judge, ordered, samples, warnings)


def _members(
    models: Sequence[Model], prompts: Mapping[str, Sequence[Criterion]], samples: int
) -> dict[str, tuple[Member, ...]]:
    """The members by criterion: every model under every prompt, as often as it is asked."""
    return {
        name: tuple(
            Member(model.name, prompt.prompt_id, prompt.digest, sample)
            for model in models
            for prompt in variants
            for sample in range(samples)
        )
        for name, variants in prompts.items()
    }


def _check_distinct(prompts: Sequence[Criterion]) -> None:
    """Refuse prompts that records could not distinguish."""
    for place, prompt in enumerate(prompts):
        for later in prompts[place + 1 :]:
            if prompt.digest == later.digest or prompt.prompt_id == later.prompt_id:
                raise UsageError(
                    f"{prompt.file} and {later.file} are the same prompt or are both called {prompt.prompt_id}: "
                    "give each once, or rename one of the files"
                )
