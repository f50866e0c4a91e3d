"""Check this machine and some judges before a run: a line for each check says ok, warning or fails.

Without --model, nothing is sent. With it, each judge that runs elsewhere is asked for its list of models, which is
free, and three or four small questions, which its provider bills: about 1,500 tokens each. Keys are named and never
shown. Exit code 1 if something fails.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from judge.cli.look import columns, styled
from judge.cli.printing import print_json, progress
from judge.harness.doctor import CheckFinding, DoctorPlan, examine
from judge.models.secrets import redact
from judge.text.cells import fold
from judge.text.safe import printable

_HEAD = 21
"""Columns of the state and the name of a check."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--model", action="append", default=[], metavar="BACKEND/MODEL", help="a judge to check; may be repeated"
    )
    parser.add_argument("--base-url", metavar="URL", help="the address of judges that run elsewhere, as in `judge run`")
    parser.add_argument(
        "-o", "--out", type=Path, default=Path(), metavar="DIR",
        help="the folder whose disk is checked (default: the working folder); nothing stays there",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the checks as a JSON list")


def main(args: argparse.Namespace) -> int:
    """Check and print; 1 if something fails."""
    with progress("checking") as steps:
        report = examine(DoctorPlan(models=args.model, base_url=args.base_url, folder=args.out), steps)
    if args.json:
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
