"""Gold grades: check them, import them, split and seal them, plan what to label next, write sheets for it."""

from collections import Counter
from typing import Annotated

from pydantic import Field

from judge.cli.declared import JsonOutput
from judge.cli.printing import SHOWN, print_json, problem_lines, progress, say, say_all, show
from judge.gold.check import AssessorCount, assessor_counts
from judge.io.ids import cluster_of
from judge.io.plan import Option
from judge.io.printout import Printout
from judge.io.text import count, examples, printable
from judge.jobs import gold
from judge.units import UNITS

_MOST_PEOPLE = 20
"""Assessors that a check tells of."""
LEAST_SAVING = 0.05
"""A smaller saving does not pay."""
SAVED = ("corrected_means", "exact_agreement")
_More = Annotated[
    bool, Field(description="List more than 5 problems of one code and file."), Option("all", section="output")
]


def check(plan: gold.GoldCheckPlan, output: JsonOutput, more: _More = False) -> int:
    """List every problem of gold files; 1 if one is an error."""
    checked = gold.check_gold_files(plan)
    errors = sum(problem.severity == "error" for problem in checked.problems)
    rows = count(len(checked.rows), "row")
    notes = [
        f"{count(len(plan.files), 'file')}, {count(len(checked.rows), 'valid row')}: "
        f"{count(errors, 'error')}, {count(len(checked.problems) - errors, 'warning')}"
    ]
    if checked.unmatched is None:
        notes.append("not checked without --pool: not_in_pool, different_grades")
    elif checked.unmatched:
        notes.append(f"of {rows}, {checked.unmatched} without a match in the pool")
    people = assessor_counts(checked.rows)
    if any(person.shared or person.adjudications for person in people):
        notes += map(_person, people[:_MOST_PEOPLE])
        if len(people) > _MOST_PEOPLE:
            notes.append(f"and {count(len(people) - _MOST_PEOPLE, 'more assessor')}")
    printout = Printout(
        data=checked.problems,
        parts=(tuple(problem_lines(checked.problems, None if more else SHOWN)),),
        notes=tuple(notes),
        exit=1 if errors else 0,
    )
    return show(printout, as_json=output.as_json)


def _person(person: AssessorCount) -> str:
    """What one assessor did, in words."""
    parts = [count(person.labels, "label")] if person.labels else []
    if person.shared:
        parts.append(f"{person.shared} of what others labeled too, of which {person.differing} differ")
    if person.upheld or person.overruled:
        parts.append(f"adjudicated {person.upheld} for and {person.overruled} against")
    if person.adjudications:
        parts.append(f"{count(person.adjudications, 'adjudication')} given")
    return f"{printable(person.assessor)}: {', '.join(parts)}"


def import_grades(plan: gold.GoldImportPlan) -> int:
    """Make a gold file from grades in other formats."""
    with progress("reading grades"):
        imported = gold.import_gold_files(plan)
    if imported.pool is not None:
        say(f"{plan.pool_out}: {count(len(imported.pool.responses), 'response')} to judge")
    say_all(imported.notes)
    counts = Counter(row.criterion for row in imported.rows)
    criteria = examples((f"{n} of {name}" for name, n in sorted(counts.items())), 20)
    say(f"{plan.out}: {count(len(imported.rows), 'grade')}: {criteria}")
    return 0


def split(plan: gold.GoldSplitPlan) -> int:
    """Split gold by topic or theme and put the test part under seal."""
    seal = gold.split_gold_file(plan)
    noun = UNITS[gold.unit_of_gold(plan)].nouns.response
    if not plan.comments and (comments := gold.comments_of_gold(plan)):
        say(f"{count(comments, 'comment')} left out, because comments may name people; --comments keeps them")
    for name, part in (("dev", seal.dev), ("test", seal.test)):
        counts = [(len(part.items), noun), (part.rows, "grade"), (len(part.topics), "topic")]
        if seal.cluster == "theme":
            counts.append((len({cluster_of(topic_id, seal.cluster) for topic_id in part.topics}), "theme"))
        say(f"{name}: {', '.join(count(*counted) for counted in counts)}")
    say(f"publish {plan.out / 'dev.jsonl'} and {plan.out / 'seal.json'}, which holds no test grade")
    say(
        f"keep {plan.out / 'test.jsonl'} and {plan.out / 'test.salt'} to yourself, and {plan.file} too: the salt "
        "lets anyone test guesses of the grades, and without it the seal can never be opened"
    )
    return 0


def draw(plan: gold.GoldDrawPlan, output: JsonOutput) -> int:
    """Draw what to label next, with known probabilities."""
    drawn = gold.draw_gold_plan(plan)
    if output.as_json:
        print_json(
            {
                "file": str(plan.out),
                "responses": {"drawn": len(drawn.rows), "of": drawn.frame, "graded": drawn.graded},
                "turns": {"drawn": drawn.turns, "of": drawn.frame_turns},
                "uncertainty": drawn.uncertainty,
                **({"saving": dict(zip(SAVED, drawn.saving, strict=True))} if drawn.saving else {}),
            }
        )
    say(
        f"{plan.out}: {len(drawn.rows)} of {count(drawn.frame, drawn.unit)}, "
        f"{drawn.turns} of {count(drawn.frame_turns, 'turn')}"
    )
    say_all(drawn.warnings, "warning: ")
    if drawn.without_text:
        say(f"{count(drawn.without_text, drawn.unit)} not drawn: no text of the passage")
    if drawn.saving:
        means, same = drawn.saving
        say(
            f"predicted by {plan.confusion}: at equal width {means:.0%} fewer labels than {drawn.unit}s drawn alike "
            f"for corrected means, {same:.0%} for exact agreement"
        )
        if means < LEAST_SAVING:
            say("it does not pay for corrected means, which use the judge's grade already")
    elif plan.stratify:
        say("without --confusion no saving is predicted: each grade has its share, which saves corrected means nothing")
    elif plan.judgments and drawn.uncertainty == "none":
        say(
            "the judgments do not distinguish the turns (no label probabilities, no two judges): all are equally likely"
        )
    if drawn.graded:
        have = "has" if drawn.graded == 1 else "have"
        graded = f"{count(drawn.graded, drawn.unit)} {have} grades already"
        say(f"{graded}; together with this plan the inclusion probability of each is 1")
    return 0


def sheet(plan: gold.GoldSheetPlan) -> int:
    """Write sheets to label what was drawn elsewhere."""
    outcome = gold.write_gold_sheet(plan)
    say(
        f"{count(outcome.responses, outcome.unit)}, {count(outcome.labels, 'label')} to give: "
        f"{', '.join(outcome.criteria)}"
    )
    say_all(outcome.notes)
    say(f"{plan.out}: {', '.join(outcome.files)}")
    return 0


COMMANDS = {"gold": {"check": check, "import": import_grades, "split": split, "plan": draw, "sheet": sheet}}
