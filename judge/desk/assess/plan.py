"""What `judge serve assess` can be told."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from judge.desk.server import PORT
from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath
from judge.gold.deal import DOUBLE
from judge.text.safe import shown

_LONGEST_NAME = 80


class AssessPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge serve assess` can be told; paths may be strings."""

    pool: StrPath
    """Output folder of `judge run` or `judge pool`, or its `pool.jsonl`."""
    store: StrPath
    """The SQLite file that keeps the labels, or a folder for it; made if it is not there."""
    assessors: Sequence[str]
    """Who labels; each gets a link."""
    plan: StrPath | None = None
    """A plan of `judge gold plan`; by default the whole pool is labeled."""
    prompts: Sequence[str] = ()
    """Prompts whose scales are used; by default the default prompts of the plan's criteria, or of groundedness and
    naturalness."""
    topics: StrPath | None = None
    """The topics file, for the conversation."""
    seed: int = 0
    """Seed of the orders, and of what every assessor labels."""
    double: float | None = None
    """Share of the items that every assessor labels; by default DOUBLE where there are several assessors."""
    made: Literal["blind", "postedit"] = "blind"
    """Whether a judge's grade is shown."""
    judgments: StrPath | None = None
    """The judge's grades, for post-edit mode alone."""
    host: str = "127.0.0.1"
    """The network interface to answer at."""
    port: int = PORT
    """The port; 0 takes a free one."""

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
    if plan.made not in ("blind", "postedit"):
        raise UsageError(f"--made {plan.made}: expected blind or postedit")
    if plan.judgments is not None and plan.made == "blind":
        raise UsageError(
            "--judgments: blind assessors see no judge's grade; --made postedit shows it, and marks the rows"
        )
    if plan.made == "postedit" and plan.judgments is None:
        raise UsageError("--made postedit: expected --judgments, whose grades are to be edited")
