"""Workers' labels to grades."""

from collections.abc import Sequence
from typing import Any

from judge.cli.declared import JsonOutput
from judge.cli.printing import columns, folded_lines, grouped, print_json, print_text, progress, say, say_all
from judge.crowd.joint import DIAGNOSTIC
from judge.crowd.study import Study
from judge.crowd.summary import CAREFUL, terminal
from judge.errors import InputError
from judge.jobs.crowd import CrowdPlan, grade_crowd
from judge.records import Problem

_SHOWN = 12
"""How many warnings are printed."""


def crowd(plan: CrowdPlan, output: JsonOutput) -> int:
    """Turn the labels of many workers into one grade per item, with an audit trail."""
    try:
        with progress("reading labels") as steps:
            outcome = grade_crowd(plan, steps)
    except InputError as error:
        raise InputError(str(error), grouped(error.problems)) from None
    say_all(folded_lines(grouped(outcome.warnings), _SHOWN), "warning: ")
    if output.as_json:
        print_json(_summary(outcome.study, outcome.warnings))
    else:
        print(terminal(outcome.study, columns()), end="")
        if plan.with_judgments:
            print_text(f"with_judgments.tsv: {DIAGNOSTIC}")
        say(f"written to {plan.out}")
    return 1 if outcome.empty else 0


def _summary(graded: Study, warnings: Sequence[Problem]) -> dict[str, Any]:
    """What `--json` prints."""
    audit = graded.audit
    removed = None
    if audit is not None:
        removed = {
            "known_items": audit.known,
            "removals": len(audit.removed),
            "labels_removed": sum(n for topics in audit.labels_removed.values() for n in topics.values()),
            "tolerated": audit.tolerated,
            "unchecked": audit.unchecked,
            "error_rate": audit.error,
            "expected_removals": {
                f"{error:g}": audit.expected(error, graded.settings.max_fails) for error in (CAREFUL, 0.1, 0.2)
            },
        }
    overall = {row.criterion: row.alpha for row in graded.reliability if row.topic is None and row.of == "kept"}
    return {
        "aggregator": graded.settings.aggregator,
        "criteria": {
            name: {
                "rule": grades.rule, "items": len(grades.n), "labels": int(grades.n.sum()),
                "tied": int(grades.tied.sum()), "unvoted": int(grades.unvoted.sum()),
                "few_labels": len(graded.few[name]), "without_grade": int((grades.n == 0).sum()),
                "changed_by_filter": graded.changed.get(name), "alpha": overall[name],
            }
            for name, grades in graded.grades.items()
        },
        "filter": removed,
        "flagged_workers": len({row.worker for row in graded.workers if row.flags}),
        "warnings": list(warnings),
    }  # fmt: skip


COMMANDS = {"crowd": crowd}
