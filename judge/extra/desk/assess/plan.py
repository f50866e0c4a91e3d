"""What `judge serve assess` can be told."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import model_validator

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

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.assessors:
            if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
                raise UsageError(
                    f"--assessor {shown(name)}: expected a name of 1 to {_LONGEST_NAME} printable characters"
                )
        if twice := [name for name, times in Counter(map(str.casefold, self.assessors)).items() if times > 1]:
            raise UsageError(f"--assessor {', '.join(map(shown, twice))}: given twice; two people need two names")
        if self.shared > 1:
            raise UsageError(f"--double {self.double}: expected a share from 0 to 1")
        if self.double and len(self.assessors) < 2:
            raise UsageError("--double: what every assessor labels needs two assessors or more")
        if self.judgments is not None and self.made == "blind":
            raise UsageError(
                "--judgments: blind assessors see no judge's grade; --made postedit shows it, and marks the rows"
            )
        if self.made == "postedit" and self.judgments is None:
            raise UsageError("--made postedit: expected --judgments, whose grades are to be edited")
        return self
