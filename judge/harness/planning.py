"""A judged folder as the pilot of the next collection: what `judge plan` does, for use from Python."""

from collections.abc import Sequence

import msgspec

from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath, in_folders
from judge.gold import GOLD_FILES, match, read_unsealed
from judge.harness.judged import read_judged
from judge.results.planning import Goals, Pilot, pilots, warnings


class TopicsPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge plan` can be told; paths may be strings."""

    folder: StrPath
    """Output folder of `judge run`."""
    gold: Sequence[StrPath] = ()
    """Gold files: the assessors' grades are a pilot too."""
    criterion: str | None = None
    """Only this criterion, or the prompt file that the judgments are under."""
    prompts: Sequence[StrPath] = ()
    """Prompt files of your own that judgments are under."""
    half_width: float | None = None
    """Half the width of the 95 % interval that a difference of two runs is to have."""
    difference: float | None = None
    """A true difference of two runs that is to be found with probability .8."""
    turns: int | None = None
    """Turns of a topic; by default as in the pilot."""


class TopicsOutcome(msgspec.Struct, frozen=True):
    """The pilots, and what limits them."""

    pilots: tuple[Pilot, ...]
    """For each criterion the judge's grades; with gold the assessors' grades and the differences of the two."""
    warnings: tuple[str, ...]
    """A sentence each."""


def plan_topics(plan: TopicsPlan) -> TopicsOutcome:
    """Take the grades of a judged folder apart, and plan topics by them.

    Raises:
        UsageError: A goal is no number above 0, the gold is sealed, or it has no grade of a pooled response.
        InputError: An input is bad; every problem is listed.
    """
    goals = {"--half-width": plan.half_width, "--difference": plan.difference, "--turns": plan.turns}
    for name, size in goals.items():
        if size is not None and not 0 < size < float("inf"):
            raise UsageError(f"{name} {size}: expected a number above 0")
    plan = in_folders(plan, gold=GOLD_FILES)
    judged = read_judged(plan.folder, plan.criterion, prompts=plan.prompts)
    name = ", ".join(map(str, plan.gold))
    gold = read_unsealed(plan.gold, "a plan needs none of them; give the dev part")
    matched, unmatched = match(gold, judged.pool, name)
    names = {criterion.name for criterion in judged.criteria}
    if plan.gold and not any(criterion in names for _, criterion in matched):
        raise UsageError(f"{name}: no grade of a pooled response under {', '.join(sorted(names))}")
    wanted = Goals(plan.half_width, plan.difference, plan.turns)
    found = tuple(
        pilot
        for criterion in judged.criteria
        for pilot in pilots(judged.pool, judged.results, criterion, matched, wanted)
    )
    left = (f"{len(unmatched)} gold grades are of responses not in the pool",) if unmatched else ()
    return TopicsOutcome(found, (*judged.warnings, *left, *warnings(found)))
