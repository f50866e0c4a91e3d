"""What judged folders say: leaderboards, reports, bundles, and the next collection planned by them."""

import math
import sys
from functools import partial
from typing import Annotated

from pydantic import Field

from judge.calibrate.report.lookup import basis
from judge.cli.declared import JsonOutput
from judge.cli.printing import USUAL, print_json, print_table, print_text, progress, say, say_all, show
from judge.cli.tables import print_corrected, print_leaderboard, print_ratings
from judge.errors import UsageError
from judge.io.text import count, decimals, fold, interval, number, printable
from judge.jobs.judged import read_judged
from judge.jobs.leaderboard import (
    CorrectionOutcome,
    CorrectionPlan,
    TopicsPlan,
    correct_leaderboard,
    plan_certified,
    plan_topics,
)
from judge.jobs.release import ReleasePlan, release_folder
from judge.report.job import ReportPlan, summary_text, write_report
from judge.results.citations import headlines_of, refuse_listed
from judge.results.leaderboard import change_text, reading
from judge.results.planning import Pilot, PlannedDesign, TopicsNeeded
from judge.results.rows import corrected_flag_meanings, flag_lines, folder_unit
from judge.stats.tables import Undefined

SCHEMA = 3
"""Version of what --gold --json prints."""


def leaderboard(plan: CorrectionPlan, output: JsonOutput) -> int:
    """The leaderboard of a folder that `judge run` wrote; with --gold, corrected by grades that people gave.

    Gold for a random part of the responses is enough: the judge's grades carry it over to the others. The gold has to
    say how that part was drawn: `judge gold plan` records it, `judge gold import --inclusion P` or a column
    inclusion_probability of a table declares it. --test opens sealed grades and logs the opening.
    """
    with_gold = bool(plan.gold) or plan.test is not None
    if with_gold or plan.seal is not None:
        _correct(plan, output)
        return 0
    if plan.out or plan.fallback or plan.target != "pool":
        raise UsageError("--out, --fallback and --target are about a correction, which needs --gold")
    plan.refuse_unused(["families", "columns"], "they are about a correction, which needs --gold")
    with progress("reading judgments"):
        judged = read_judged(plan.folder, plan.criterion, plan.cluster, plan.prompts)
    refuse_listed(judged.pool)
    say_all(judged.warnings)
    if output.as_json:
        print_json(judged.leaderboard)
    else:
        tables = judged.tables
        rated = partial(print_ratings, tables)
        print_leaderboard(
            tables.leaderboard, judged.criteria, judged.banner, tables.differences, judged.clustered, rated
        )
    return 0


def _correct(plan: CorrectionPlan, output: JsonOutput) -> None:
    with progress("correcting means by gold"):
        outcome = correct_leaderboard(plan)
    say_all(outcome.notes)
    say_all(outcome.warnings)
    if not output.as_json:
        _print_corrected(outcome, plan.target)
        if plan.out is not None:
            say(f"the corrected leaderboard is in {plan.out}")
        return
    say_all(outcome.cautions, "Warning: ")
    seal = {} if outcome.seal is None else {"seal": outcome.seal}
    clustered = {"clustered": outcome.clustered} if outcome.clustered else {}
    head = {"schema": SCHEMA, "target": plan.target, "gold": outcome.gold, **seal, **clustered}
    print_json({**head, "cautions": outcome.cautions, "rows": outcome.rows})


_INTERVALS = {
    "pool": "corrected: what people would give these {responses}; its interval is about these alone, and there is none "
    "where they graded every one (--target topics: over topics)",
    "topics": "corrected: what people would give such {responses} on topics like these; its interval is over topics",
}
"""What a corrected mean and its interval are about, by target."""


def _print_corrected(outcome: CorrectionOutcome, target: str) -> None:
    for caution in outcome.cautions:
        print_text(f"! {caution}", "warning")
    for line in outcome.clustered:
        print()
        print_text(line)
    headlines = headlines_of(outcome.criteria)
    more = len(outcome.criteria) - len(headlines)
    for criterion in headlines:
        rows = [row for row in outcome.rows if row.criterion == criterion.name]
        print()
        name = f"{criterion.name}: " if more else ""
        print_text(f"{name}{reading(criterion)}", "heading")
        print_corrected(rows)
        print_text(change_text(outcome.changes[criterion.name]))
    if more:
        print_text(f"{more} more measures: --out DIR")
    print(file=sys.stderr)
    nouns = folder_unit(outcome.criteria).nouns
    about = _INTERVALS[target].format(responses=nouns.responses)
    for text in (about, *flag_lines(outcome.rows, corrected_flag_meanings(nouns))):
        for line in fold(text, USUAL):
            print(line, file=sys.stderr)


_SUMMARY = "Print the verdicts and the leaderboards alone, as Markdown for the summary of a build, and write no report."


def report(plan: ReportPlan, summary: Annotated[bool, Field(description=_SUMMARY)] = False) -> int:
    """Write a report on output folders: one page to open in a browser, and the same as Markdown with pictures.

    OUT is a folder of `judge run` or `judge calibrate`; several are set side by side. The page needs no network and
    asks for nothing. With --gold, people's grades stand beside the judge's: agreement and corrected means.
    """
    if summary and plan.out is not None:
        raise UsageError("--summary prints and writes no report, so it takes no --out")
    with progress("reading folders") as steps:
        if summary:
            print(summary_text(plan, steps), end="")
            return 0
        outcome = write_report(plan, steps)
    say_all(outcome.warnings, "warning: ")
    print(outcome.page)
    more = len(outcome.files) - 1
    if more:
        say(f"and {count(more, 'file')} beside it; report.sha256 lists them")
    return 0


def release(plan: ReleasePlan) -> int:
    """Write the bundle that a track may publish: a folder of `judge run` without what is private or not ours to give.

    Runs and teams get pseudonyms, the same in every file and in every later bundle; a private file beside the bundle
    says whose they are. The texts of passages and the judge's own words are left out unless an option says otherwise.
    Journal, command line, paths and addresses never go along. A name that is left in a text is refused, with its place.
    With --gold, the corrected leaderboard is published, and what the gold says of the judge.
    """
    with progress("reading the folder") as steps:
        printout = release_folder(plan, steps)
    return show(printout)


COMPONENTS = ("source", "variance", "share")
SECOND_YEAR = ("labels a topic", "topics", "labels")
DESIGNS = ("topics", "labels", "grades", "mean +-", "difference +-", "found", "E rho2", "phi")


def plan(plan: TopicsPlan, output: JsonOutput) -> int:
    """How many topics the next comparison of runs needs, with a judged folder as the pilot.

    Prints why grades differ (variance components of run, topic and turn), and for numbers of topics how wide intervals
    are, which difference of two runs is found with probability .8, and how reliable the order of the runs is. With
    --gold the same for the assessors' grades, topics against labels of a response, and how far judge and assessors
    disagree. With --certificate and no folder: how many labels on how many other topics show with probability .8 that
    the certified agreement carries to them, if it has not changed.
    """
    if plan.certificate is not None:
        _plan_second_year(plan, output)
        return 0
    with progress("planning"):
        outcome = plan_topics(plan)
    say_all(outcome.notes)
    say_all(outcome.warnings, "Warning: ")
    if output.as_json:
        print_json(outcome)
        return 0
    for place, pilot in enumerate(outcome.pilots):
        print("\n" if place else "", end="")
        _print_pilot(pilot)
    return 0


def _plan_second_year(plan: TopicsPlan, output: JsonOutput) -> None:
    plans = plan_certified(plan)
    if output.as_json:
        print_json(plans)
        return
    for place, planned in enumerate(plans):
        print("\n" if place else "", end="")
        print_text(
            f"{printable(planned.criterion)}, {printable(planned.judge)}: {planned.statistic} "
            f"{interval(planned.certified)} certified, {basis(planned.certified)}; margin {planned.margin:g}"
        )
        for text in filter(None, (planned.reason, planned.caution)):
            print_text(f"! {text}", "warning")
        rows = [
            (decimals(design.labels, 1), str(design.topics), str(math.ceil(design.topics * design.labels)))
            for design in planned.designs
            if design.topics is not None
        ]
        if rows:
            print_table(SECOND_YEAR, rows, words=0)
        for reason in dict.fromkeys(design.reason for design in planned.designs if design.reason):
            print_text(f"No number of labels is enough: {reason}.")


def _print_pilot(pilot: Pilot) -> None:
    of = pilot.variance
    if isinstance(of, Undefined):
        print_text(f"{pilot.criterion}, {pilot.graders}: {of.reason}")
        return
    counts = ((of.runs, "run"), (of.topics, "topic"), (of.turns, "turn"), (of.grades, "grade"))
    print_text(f"{pilot.criterion}, {pilot.graders}: {', '.join(count(*counted) for counted in counts)}")
    total = sum(row.variance for row in of.components)
    print_table(
        COMPONENTS,
        [(row.source, number(row.variance), f"{decimals(100 * row.variance / total, 0)} %") for row in of.components],
    )
    if pilot.graders == "judge - assessors":
        # What the judge adds to a run on every topic stays, however many topics there are.
        lasting = (2 * of.variance("run")) ** 0.5
        print_text(f"Over any number of topics the judge moves a difference of two runs by {number(lasting)} (one sd).")
        return
    if pilot.reason:
        print_text(f"No plan: {pilot.reason}.")
        return
    print(f"\nPlanned, with {decimals(pilot.turns_per_topic, 1)} turns a topic:")
    print_table(DESIGNS, [_cells(design) for design in pilot.designs], words=0, whole="--json")
    for needed in pilot.needed:
        print_text(_sentence(needed))


def _cells(design: PlannedDesign) -> tuple[str, ...]:
    of = design.reliability
    shares = ("-" if isinstance(share, Undefined) else number(share) for share in (of.relative, of.absolute))
    return (
        *map(str, (design.topics, design.labels, design.grades)),
        *map(number, (design.mean, design.difference, design.detectable)),
        *shares,
    )


def _sentence(needed: TopicsNeeded) -> str:
    goal = "An interval of +-" if needed.goal == "half_width" else "A difference of "
    topics = interval(needed.topics, 0) if needed.topics.value is not None else "no number of topics"
    reason = f" ({needed.topics.reason})" if needed.topics.reason else ""
    return f"{goal}{needed.size:g} with {count(needed.labels, 'label')} a response: topics {topics}{reason}"


COMMANDS = {"leaderboard": leaderboard, "report": report, "release": release, "plan": plan}
