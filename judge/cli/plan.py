"""How many topics the next comparison of runs needs, with a judged folder as the pilot.

Prints why grades differ (variance components of run, topic and turn), and for numbers of topics how wide intervals
are, which difference of two runs is found with probability .8, and how reliable the order of the runs is. With --gold
the same for the assessors' grades, topics against labels of a response, and how far judge and assessors disagree.
"""

from judge.cli.declared import JsonOutput
from judge.cli.printing import print_json, print_table, print_text, progress, say
from judge.io.cells import count, decimals, interval, number
from judge.jobs.planning import TopicsPlan, plan_topics
from judge.results.planning import Pilot, PlannedDesign, TopicsNeeded
from judge.stats.tables import Undefined

COMPONENTS = ("source", "variance", "share")
DESIGNS = ("topics", "labels", "grades", "mean +-", "difference +-", "found", "E rho2", "phi")


def main(plan: TopicsPlan, output: JsonOutput) -> int:
    """Take apart, plan, print."""
    with progress("planning"):
        outcome = plan_topics(plan)
    for warning in outcome.warnings:
        say(f"Warning: {warning}")
    if output.as_json:
        print_json(outcome)
        return 0
    for place, pilot in enumerate(outcome.pilots):
        print("\n" if place else "", end="")
        _print(pilot)
    return 0


def _print(pilot: Pilot) -> None:
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
    print_table(DESIGNS, [_cells(design) for design in pilot.designs], words=0)
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
