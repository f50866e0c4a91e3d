"""The command `judge reproduce`."""

from judge.cli.declared import JsonOutput
from judge.cli.printing import TableFormat, print_grids, print_json, progress, say, say_undrawn
from judge.extra.reproduce.cli_cast_regin import cast_regin
from judge.extra.reproduce.job import (
    ReproductionPlan,
    comparison,
    reproduce_published,
    reproduction_object,
    with_intervals,
)
from judge.extra.reproduce.published import Reproduction
from judge.io.cells import count


def main(plan: ReproductionPlan, tables: TableFormat, output: JsonOutput) -> int:
    """Make a published table again from its released files, and print it beside the published one, cell by cell.

    Needs no key and no model. Each published number stands beside ours with the difference and, where the two
    differ, the reason; then comes what the publication does not show, such as intervals and tests of pairs.
    """
    with progress("reading") as steps:
        made = reproduce_published(plan, steps)
    if output.as_json:
        print_json(reproduction_object(made))
    else:
        # For tools, a reason stands beside its number; for people a note has it.
        marks = tables.format not in ("tsv", "json")
        print_grids((comparison(made, marks=marks), *made.beyond), tables.format)
    if plan.out is not None and with_intervals(made):
        say_undrawn("pictures of the intervals")
    say(_totals(made))
    return 0


def _totals(made: Reproduction) -> str:
    printed = [number for number in made.numbers if number.published is not None]
    same = sum(number.difference == 0 for number in printed)
    differ = sum(bool(number.difference) for number in printed)
    lacking = len(printed) - same - differ
    return (
        f"{count(len(printed), 'published number')}: {same} made again, {differ} "
        f"{'differs' if differ == 1 else 'differ'}, {lacking} cannot be made from these files"
    )


COMMANDS = {"reproduce": main, "crowd cast-regin": cast_regin}
EXAMPLES = {
    "crowd cast-regin": (
        "judge crowd cast-regin CAsT-ReGIn/ --out regin/",
        "judge crowd cast-regin CAsT-ReGIn/ --runs runs/ --evaluate --out regin/",
    ),
    "reproduce": (
        "judge reproduce ikat2023 iKAT/2023/",
        "judge reproduce ikat2023 iKAT/2023/evaluation/automatic_eval_results/ --out reproduced/",
        "judge reproduce llmjudge LLMJudge-benchmark/ --json",
    ),
}
