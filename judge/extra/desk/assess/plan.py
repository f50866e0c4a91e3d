"""What `judge serve assess` can be told."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from judge.errors import UsageError
from judge.extra.desk.server import DeskAddress
from judge.gold.sampling import DOUBLE
from judge.io.plan import Amount, Option
from judge.io.safe import shown

_LONGEST_NAME = 80


class AssessPlan(DeskAddress, section="what is labeled"):
    """Everything `judge serve assess` can be told."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder or its pool.jsonl."""
    plan: Annotated[Path | None, Option(metavar="FILE")] = None
    """Plan of `judge gold plan` (default: the whole pool)."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt whose scale is used (default: those of the plan's criteria, else groundedness and naturalness)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for the conversation."""
    assessors: Annotated[tuple[str, ...], Option("assessor", metavar="NAME", repeat=True, section="who labels")]
    """Who labels; once for each person."""
    double: Annotated[Amount | None, Option(metavar="SHARE")] = None
    """Share of the responses that every assessor labels (default 0.2 with several assessors)."""
    seed: Annotated[int, Option(metavar="S")] = 0
    """Seed of the orders."""
    store: Annotated[Path, Option(metavar="FILE", section="labels")]
    """SQLite file that keeps the labels."""
    made: Literal["blind", "postedit"] = "blind"
    """Whether a judge's grade is shown."""
    judgments: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """The judge's grades for postedit: judgments.jsonl or its folder."""

    @property
    def shared(self) -> float:
        """The share of the items that every assessor labels."""
        if self.double is not None:
            return self.double
        return DOUBLE if len(self.assessors) > 1 else 0.0


def check_assess_plan(plan: AssessPlan) -> None:
    """Refuse what cannot be done.

    Raises:
        UsageError: An assessor has no usable name, or options contradict each other.
    """
    if not plan.assessors:
        raise UsageError("no assessor: expected --assessor NAME, once for each person who labels")
    for name in plan.assessors:
        if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
            raise UsageError(f"--assessor {shown(name)}: expected a name of 1 to {_LONGEST_NAME} printable characters")
    if twice := [name for name, times in Counter(map(str.casefold, plan.assessors)).items() if times > 1]:
        raise UsageError(f"--assessor {', '.join(map(shown, twice))}: given twice; two people need two names")
    if not 0 <= plan.shared <= 1:
        raise UsageError(f"--double {plan.double}: expected a share from 0 to 1")
    if plan.double and len(plan.assessors) < 2:
        raise UsageError("--double: what every assessor labels needs two assessors or more")
    if plan.judgments is not None and plan.made == "blind":
        raise UsageError(
            "--judgments: blind assessors see no judge's grade; --made postedit shows it, and marks the rows"
        )
    if plan.made == "postedit" and plan.judgments is None:
        raise UsageError("--made postedit: expected --judgments, whose grades are to be edited")
