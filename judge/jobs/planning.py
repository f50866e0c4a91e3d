"""A judged folder as the pilot of the next collection: what `judge plan` does, for use from Python."""

from pathlib import Path
from typing import Annotated

import msgspec

from judge.errors import UsageError
from judge.gold.rows import match
from judge.gold.seal import GOLD_FILES, read_unsealed
from judge.io.plan import AboveZero, Option, Positive, in_folders
from judge.jobs.judged import read_judged
from judge.jobs.options import OwnPrompts
from judge.results.citations import refuse_citations
from judge.results.planning import Goals, Pilot, pilots, warnings


class TopicsPlan(OwnPrompts):
    """Everything `judge plan` can be told."""

    folder: Annotated[Path, Option(metavar="OUT", place="only")]
    """Output folder of `judge run`: the pilot."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Gold grades (JSONL)."""
    criterion: Annotated[str | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion; a prompt file of your own if the judgments are under one."""
    half_width: Annotated[AboveZero | None, Option(metavar="H")] = None
    """Topics for a 95 % interval of a difference of two runs of +-H."""
    difference: Annotated[AboveZero | None, Option(metavar="D")] = None
    """Topics that find a true difference D with probability .8."""
    turns: Annotated[Positive | None, Option(metavar="N")] = None
    """Turns of a topic (default: as in the pilot)."""


class TopicsOutcome(msgspec.Struct, frozen=True):
    """The pilots, and what limits them."""

    pilots: tuple[Pilot, ...]
    """For each criterion the judge's grades; with gold the assessors' grades and the differences of the two."""
    warnings: tuple[str, ...]
    """A sentence each."""


def plan_topics(plan: TopicsPlan) -> TopicsOutcome:
    """Take the grades of a judged folder apart, and plan topics by them; sealed gold is refused."""
    plan = in_folders(plan, gold=GOLD_FILES)
    judged = read_judged(plan.folder, plan.criterion, prompts=plan.prompts)
    refuse_citations(judged.pool)
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
