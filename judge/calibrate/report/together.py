"""Criteria asked together against the same criteria asked alone: in a table, in the report and in a line. Pure."""

from collections.abc import Iterator

from judge.calibrate.findings import Calibration, GroupCost
from judge.calibrate.report.lookup import label, of
from judge.text.cells import count, interval, number, p_value
from judge.text.markup import name_of, table
from judge.text.safe import printable


def asked_together(calibration: Calibration, criterion: str) -> Iterator[str]:
    """What asking together changes in agreement with the assessors, under one criterion."""
    rows = of(calibration.together, criterion)
    if not rows:
        return
    yield "### Asked together with other criteria"
    yield (
        f"{label(rows[0].statistic)} of the same judge on the same items, with the criterion asked alone and together "
        "with others in one call. The difference is together minus alone. A small difference with a wide interval does "
        "not say that asking together costs nothing: the low end of the interval says how much it may cost."
    )
    yield table(
        ["judge", "asked as", "alone", "together", "difference [95 %]", "n/topics", "p", "p max-T"],
        (
            [
                *(name_of(row.judge), name_of(row.together), number(row.value_alone), number(row.value_together)),
                interval(row.difference, signed=True),
                f"{row.difference.n}/{row.difference.topics}",
                *(p_value(p) for p in (row.p, row.p_max_t)),
            ]
            for row in rows
        ),
    )


def group_costs(calibration: Calibration) -> Iterator[str]:
    """What asking together saves, over all criteria."""
    if not calibration.group_costs:
        return
    yield "## What asking together saves"
    yield (
        "The calls behind the grades of the same responses, each criterion in a call of its own and all in one. Second "
        "calls after unreadable replies count too."
    )
    yield table(
        [
            "judge",
            "criteria",
            "calls alone",
            "together",
            "prompt tokens alone",
            "together",
            "reply tokens alone",
            "together",
        ],
        (
            [
                *(name_of(cost.judge), ", ".join(map(name_of, cost.prompts))),
                *(str(cost.calls_alone), str(cost.calls_together)),
                *(str(cost.prompt_tokens_alone), str(cost.prompt_tokens_together)),
                *(str(cost.reply_tokens_alone), str(cost.reply_tokens_together)),
            ]
            for cost in calibration.group_costs
        ),
    )


def group_cost(cost: GroupCost) -> str:
    """What asking together saves for one judge, in a sentence."""
    return (
        f"asked together, {printable(cost.judge)} needs {count(cost.calls_together, 'call')} in place of "
        f"{cost.calls_alone}, {cost.prompt_tokens_together} prompt tokens in place of {cost.prompt_tokens_alone}, and "
        f"{cost.reply_tokens_together} tokens of replies in place of {cost.reply_tokens_alone}"
    )
