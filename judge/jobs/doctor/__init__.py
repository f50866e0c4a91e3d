"""This machine and some judges checked before a run: what `judge doctor` does, for use from Python."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import model_validator

from judge.ask.own_loop import finish
from judge.errors import Interrupted, UsageError
from judge.io.plan import Option, Options
from judge.io.steps import Step, Steps, quiet
from judge.jobs.doctor.judges import JUDGE_CHECKS, ExaminedJudge
from judge.jobs.doctor.machine import MACHINE_CHECKS
from judge.jobs.doctor.machine import CheckFinding as CheckFinding
from judge.jobs.doctor.machine import CheckReport as CheckReport


class DoctorPlan(Options):
    """Everything `judge doctor` can be told."""

    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """A judge to check; may be repeated. One that runs elsewhere is asked three or four small questions."""
    base_url: Annotated[str | None, Option(metavar="URL")] = None
    """The address of judges that run elsewhere, as in `judge run`."""
    folder: Annotated[Path, Option("out", short="o", metavar="DIR")] = Path()
    """The folder whose disk is checked (default: the working folder); nothing stays there."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.base_url is not None and not self.models:
            raise UsageError("--base-url is the address of a judge, and none is named (--model)")
        return self


def examine(plan: DoctorPlan, steps: Steps = quiet) -> CheckReport:
    """Check this machine, and ask each judge of the plan; without judges, nothing is sent.

    Args:
        plan: What to check.
        steps: Called as judges are examined.

    Raises:
        UsageError: There is no such judge.
        InputError: A recording to replay cannot be read.
        Interrupted: The user stopped the examination.
    """
    judges = [ExaminedJudge(name, plan.base_url) for name in dict.fromkeys(plan.models)]
    findings = [check(plan.folder) for check in MACHINE_CHECKS]
    for judge in judges:
        steps(Step(f"asking {judge.name}"))
        findings += _examined(judge)
    return CheckReport(tuple(findings))


def _examined(judge: ExaminedJudge) -> list[CheckFinding]:
    findings: list[CheckFinding] = []
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True

    async def whole() -> None:
        try:
            for check in JUDGE_CHECKS:
                finding = None if judge.over or stopped else await check(judge)
                findings.extend([finding] if finding else [])
        finally:
            await judge.model.aclose()

    finish(whole, stop)
    if stopped:
        raise Interrupted("stopped; a check that was under way was finished")
    return findings
