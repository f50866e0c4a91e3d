"""This machine and judges, checked before a run."""

import sys
from collections.abc import Sequence

from judge.cli.declared import JsonOutput
from judge.cli.printing import columns, print_json, progress, styled
from judge.io.cells import fold
from judge.io.safe import printable
from judge.jobs.doctor import CheckFinding, DoctorPlan, examine
from judge.judges.secrets import redact

_HEAD = 21
"""Columns of the state and the name of a check."""


def doctor(plan: DoctorPlan, output: JsonOutput) -> int:
    """Check this machine and some judges before a run: a line for each check says ok, warning or fails.

    Without --model, nothing is sent. With it, each judge that runs elsewhere is asked for its list of models, which is
    free, and three or four small questions, which its provider bills: about 1,500 tokens each. Keys are named and never
    shown. Exit code 1 if something fails.
    """
    with progress("checking") as steps:
        report = examine(plan, steps)
    if output.as_json:
        print_json(report.findings)
    else:
        _print(report.findings)
    return 0 if report.sound else 1


def _print(findings: Sequence[CheckFinding]) -> None:
    about: str | None = None
    for finding in findings:
        if finding.model != about:
            about = finding.model
            print(f"\n{printable(redact(about or ''))}")
        advice = f" -> {finding.advice}" if finding.advice else ""
        first, *rest = fold(printable(redact(finding.found + advice)), columns() - _HEAD, "")
        state = f"{finding.state:<9}"
        if finding.state != "ok":
            state = styled(state, "error" if finding.state == "fails" else "warning", sys.stdout)
        print(f"{state}{finding.check:<{_HEAD - 9}}{first}")
        for line in rest:
            print(" " * _HEAD + line)


COMMANDS = {"doctor": doctor}
