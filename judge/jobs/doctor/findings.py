"""What a check found: fine, a warning or a failure, in words, and what to do about it. Pure."""

from typing import Literal

from judge.records import Record

CheckState = Literal["ok", "warning", "fails"]
"""fails: a run would not work, or not as it should. warning: it would work, and something is worth knowing."""


class CheckFinding(Record, frozen=True):
    """One line of `judge doctor`."""

    check: str
    state: CheckState
    found: str
    """What was found."""
    advice: str | None = None
    """What to do; None if there is nothing to do."""
    model: str | None = None
    """`backend/model`; None where the check is about this machine."""


class CheckReport(Record, frozen=True):
    """All that `judge doctor` found."""

    findings: tuple[CheckFinding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing fails."""
        return all(finding.state != "fails" for finding in self.findings)
