"""Notes about a jury for its outputs. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.ask.records import Failure, Judgment
from judge.crowd.jury import Member, Verdicts, member_names
from judge.io.cells import decimals
from judge.records import Estimate


class JuryNotes(msgspec.Struct, frozen=True):
    """Notes about a jury beside its judgments."""

    verdicts: Mapping[str, Verdicts]
    """By criterion."""
    members: Mapping[str, tuple[Member, ...]]
    warnings: tuple[str, ...]
    said: Sequence[Judgment | Failure]
    """The results of all members."""

    @property
    def lines(self) -> tuple[str, ...]:
        """For people: the warnings, then how far the members agree."""
        return (*(f"Warning: {warning}" for warning in self.warnings), *self.agreement)

    @property
    def agreement(self) -> tuple[str, ...]:
        """How many members there are, how far they agree and how their grades become one, a line a criterion."""
        return tuple(
            f"{name}, a jury of {_size(self.members[name])}: {_alpha(verdicts.alpha)} between members; "
            f"{verdicts.ties} ties; grade: {verdicts.rule}"
            for name, verdicts in self.verdicts.items()
        )

    def about(self, criterion: str) -> dict[str, Any]:
        """Members, rule, agreement and warnings as JSON values, for manifest and sidecar."""
        verdicts = self.verdicts[criterion]
        return {
            "members": member_names(self.members[criterion]),
            "rule": verdicts.rule,
            "ties": verdicts.ties,
            "alpha": verdicts.alpha,
            "warnings": self.warnings,
        }


def _size(members: Sequence[Member]) -> str:
    prompts = list(dict.fromkeys(member.prompt for member in members))
    return f"{len(members)} under {' and '.join(prompts)}" if len(prompts) > 1 else str(len(members))


def _alpha(alpha: Estimate) -> str:
    value, low, high = (decimals(number, 3) for number in (alpha.value, alpha.low, alpha.high))
    if not value:
        return f"ordinal alpha is undefined ({alpha.reason})"
    return f"ordinal alpha {value} {f'[{low}, {high}]' if low else f'({alpha.reason})'}"
