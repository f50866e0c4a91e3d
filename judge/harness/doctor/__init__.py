"""This machine and some judges checked before a run: what `judge doctor` does, for use from Python."""

from collections.abc import Sequence
from pathlib import Path

from judge.ask.own_loop import finish
from judge.errors import Interrupted, UsageError
from judge.files.paths import JobPlan, StrPath
from judge.harness.doctor.examined import ExaminedJudge
from judge.harness.doctor.findings import CheckFinding as CheckFinding
from judge.harness.doctor.findings import CheckReport as CheckReport
from judge.harness.doctor.judges import JUDGE_CHECKS
from judge.harness.doctor.machine import MACHINE_CHECKS
from judge.text.steps import Step, Steps, quiet


class DoctorPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge doctor` can be told."""

    models: Sequence[str] = ()
    """Judges as `backend/model`; each that runs elsewhere is asked three or four small questions."""
    base_url: str | None = None
    """The address of those that run elsewhere."""
    folder: StrPath = "."
    """Where results would be written: its disk is checked."""


def examine(plan: DoctorPlan, steps: Steps = quiet) -> CheckReport:
    """Check this machine, and ask each judge of the plan; without judges, nothing is sent.

    Args:
        plan: What to check.
        steps: Called as judges are examined.

    Raises:
        UsageError: There is no such judge, or an address without one.
        InputError: A recording to replay cannot be read.
        Interrupted: The user stopped the examination.
    """
    if plan.base_url is not None and not plan.models:
        raise UsageError("--base-url is the address of a judge, and none is named (--model)")
    judges = [ExaminedJudge(name, plan.base_url) for name in dict.fromkeys(plan.models)]
    findings = [check(Path(plan.folder)) for check in MACHINE_CHECKS]
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
