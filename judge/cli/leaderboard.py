"""The leaderboard of a folder that `judge run` wrote; with --gold, corrected by grades that people gave.

With --over-limit exclude or --token-sensitivity, it leaves out the responses over the token limit.

Gold for a random part of the responses is enough: the judge's grades carry it over to the others. The gold has to say
how that part was drawn: `judge gold plan` records it, `judge gold import --inclusion P` declares it. --test opens
sealed grades and logs the opening.
"""

import sys
from pathlib import Path

from judge.cli.declared import JsonOutput
from judge.cli.printing import USUAL, print_json, print_table, print_text, progress, say
from judge.cli.tables import print_corrected, print_leaderboard
from judge.errors import UsageError
from judge.io.cells import fold
from judge.jobs.correction import CorrectionOutcome, CorrectionPlan, correct_leaderboard
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.token_limit import TokenView, under_each_token_rule, under_token_rule
from judge.results.corrected_tables import change_text
from judge.results.leaderboard import reading
from judge.results.rows import CORRECTED_FLAGS, flag_lines, folder_unit
from judge.results.sensitivity import explained, sensitivity_cells, sensitivity_header

SCHEMA = 2
"""Version of what --gold --json prints."""


def main(plan: CorrectionPlan, view: TokenView, output: JsonOutput) -> int:
    """Read, correct if there is gold, print."""
    with_gold = bool(plan.gold) or plan.test is not None
    if with_gold and view.first:
        raise UsageError(
            f"{view.first} and --gold do not go together: the correction is of the pool as it was judged; to correct "
            "without the long responses, judge the runs with --over-limit exclude into another folder"
        )
    if view.token_sensitivity:
        plan.refuse_unused(["cluster"], "--token-sensitivity shows no intervals")
    if with_gold or plan.seal is not None:
        _correct(plan, output)
        return 0
    if (plan.out and not view.first) or plan.fallback or plan.target != "pool":
        raise UsageError("--out, --fallback and --target are about a correction, which needs --gold")
    plan.refuse_unused(["families"], "they are about a correction, which needs --gold")
    with progress("reading judgments"):
        judged = read_judged(plan.folder, plan.criterion, plan.cluster, plan.prompts)
    for warning in judged.warnings:
        say(warning)
    if view.first:
        _show(judged, view, plan.out, output)
    elif output.as_json:
        print_json(judged.leaderboard)
    else:
        tables = judged.tables
        print_leaderboard(tables.leaderboard, judged.criteria, judged.banner, tables.differences, judged.clustered)
    return 0


def _correct(plan: CorrectionPlan, output: JsonOutput) -> None:
    with progress("correcting means by gold"):
        outcome = correct_leaderboard(plan)
    for warning in outcome.warnings:
        say(warning)
    if not output.as_json:
        _print(outcome)
        if plan.out is not None:
            say(f"the corrected leaderboard is in {plan.out}")
        return
    for caution in outcome.cautions:
        say(f"Warning: {caution}")
    seal = {} if outcome.seal is None else {"seal": outcome.seal}
    clustered = {"clustered": outcome.clustered} if outcome.clustered else {}
    head = {"schema": SCHEMA, "target": plan.target, "gold": outcome.gold, **seal, **clustered}
    print_json({**head, "cautions": outcome.cautions, "rows": outcome.rows})


def _print(outcome: CorrectionOutcome) -> None:
    for caution in outcome.cautions:
        print_text(f"! {caution}", "warning")
    for line in outcome.clustered:
        print()
        print_text(line)
    for criterion in outcome.criteria:
        rows = [row for row in outcome.rows if row.criterion == criterion.name]
        print()
        print_text(reading(criterion), "heading")
        print_corrected(rows)
        print_text(change_text(outcome.changes[criterion.name]))
    flags = flag_lines(outcome.rows, folder_unit(outcome.criteria), CORRECTED_FLAGS)
    print("\n".join(["", *(line for text in flags for line in fold(text, USUAL))]), file=sys.stderr)


def _show(judged: JudgedFolder, view: TokenView, out: Path | None, output: JsonOutput) -> None:
    """The leaderboard under one token rule, or under each."""
    never_judged = sum(exclusion.reason == "over_limit" for exclusion in judged.pool.exclusions)
    if never_judged:
        say(f"Warning: {never_judged} responses over the limit were never judged; they are out under every rule")
    if view.token_sensitivity:
        _show_each_rule(judged, view, out, output)
        return
    seen = under_token_rule(judged, view, out)
    if output.as_json:
        print_json({"rule": seen.rule, "limit": seen.limit, "over_limit": seen.over_limit, "rows": seen.rows})
    else:
        print_leaderboard(seen.rows, judged.criteria, judged.banner, clustered=judged.clustered)
        print()
        print_text(seen.note)


def _show_each_rule(judged: JudgedFolder, view: TokenView, out: Path | None, output: JsonOutput) -> None:
    sensitivity, limit = under_each_token_rule(judged, view.token_limit, out)
    if output.as_json:
        print_json(sensitivity)
        return
    print_text(judged.banner)
    print()
    print_text(explained(limit))
    for criterion in judged.criteria:
        print()
        print_text(f"{criterion.name}, prompt {criterion.prompt_id}")
        header = sensitivity_header(limit)
        joined = [place for place, name in enumerate(header) if name in ("mean", "rank") and place > 1]
        print_table(header, sensitivity_cells(sensitivity, criterion.name), joined=joined)
