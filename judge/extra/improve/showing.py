"""Examples as a candidate of the search: which topics give them, and the prompt that shows them.

A judge that was shown an example knows something of its topic, and may be no better on others. And whoever takes items
that a wording gets wrong out of a comparison makes this wording look better. So examples are of topics that chance sets
aside, and these leave the comparison of all candidates.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from judge.ask.prompt_edit import with_examples
from judge.errors import InputError, UsageError
from judge.extra.improve.entries import WordingEntries
from judge.extra.improve.grades import CandidateGrades
from judge.extra.improve.plan import ImprovePlan
from judge.extra.improve.proposers import Proposal
from judge.gold.rows import GoldRow
from judge.io.ids import cluster_of, natural_key
from judge.io.text import count, digest
from judge.jobs.calibration.labels import CalibrationJudges
from judge.jobs.examples import check_shows_examples, chosen_examples, eligible_examples
from judge.jobs.prompt_files import comments_warning
from judge.records import Criterion

FEWEST = 8
"""Fewest dev topics of which some are set aside: with fewer, a comparison cannot do without one."""
_SHARE = 4
"""One topic in so many is set aside at most."""


class DevParts(NamedTuple):
    """The dev rows in two parts; no topic is in both."""

    shown: tuple[GoldRow, ...]
    """Those that examples are chosen from; none where there are too few topics."""
    compared: tuple[GoldRow, ...]


def set_aside(rows: Sequence[GoldRow], criterion: str, plan: ImprovePlan) -> DevParts:
    """As many topics as there are to be examples, but not more than a quarter, by chance: SHA-256 of seed and topic."""
    units = [cluster_of(row.topic_id, plan.cluster) for row in rows]
    graded = {unit for unit, row in zip(units, rows, strict=True) if row.criterion == criterion}
    ordered = sorted(graded, key=lambda unit: digest(f"{plan.resampling_seed}\n{unit}"))
    number = min(plan.k, len(ordered) // _SHARE) if len(ordered) >= FEWEST else 0
    aside = set(ordered[:number])
    shown = tuple(row for unit, row in zip(units, rows, strict=True) if unit in aside)
    compared = tuple(row for unit, row in zip(units, rows, strict=True) if unit not in aside)
    return DevParts(shown, compared)


def showing_examples(
    prompt: Criterion,
    content: str,
    rows: Sequence[GoldRow],
    judges: CalibrationJudges,
    judged: Mapping[tuple[str, str], int | None],
    plan: ImprovePlan,
) -> str:
    """The text of a prompt's file with examples of these rows; `judged`: the judge's grades by turn and response id.

    A UsageError or an InputError if the prompt can show none, or the rows have too few.
    """
    check_shows_examples(prompt)
    name = f"{count(len({row.topic_id for row in rows}), 'dev topic')} set aside"
    own = [row for row in rows if row.criterion == prompt.name]
    eligible = eligible_examples(prompt, own, judges.pool, judges.turns or {}, judged, name)
    chosen = chosen_examples(prompt, eligible, plan.k, plan.resampling_seed, name)
    return with_examples(content, prompt, [candidate.example for candidate in chosen])


def add_examples(plan: ImprovePlan, candidates: WordingEntries, grades: CandidateGrades) -> list[str]:
    """Show examples in the best prompt, as another candidate; their topics leave the comparison of all.

    What is to be known of them, or why there are none, a sentence each.
    """
    judges = grades.judges
    parts = set_aside(judges.dev, candidates.first.name, plan)
    wordings = grades.wordings
    column = wordings.best
    if column is None or not parts.shown:
        why = f"fewer than {FEWEST} dev topics" if column else "no wording has an agreement"
        return [f"No examples: {why}."]
    base = grades.prompt_of(column)
    judged = {}
    for item, code in zip(wordings.panel.items, column.codes.tolist(), strict=True):
        judged[item.turn_id, item.response_id] = None if code < 0 else wordings.panel.grades[code]
    try:
        text = showing_examples(base, candidates.contents[base.variant], parts.shown, judges, judged, plan)
    except (InputError, UsageError) as error:
        return [f"No examples: {error}."]
    proposal = Proposal(text, parent=base.variant, name=f"{base.variant}-examples")
    criterion = candidates.enter(candidates.next_round, proposal, "examples").criterion
    if criterion is None:
        return []
    grades.compare_on(parts.compared)
    grades.ask([criterion], parts.compared)
    topics = sorted({row.topic_id for row in parts.shown}, key=natural_key)
    noun = "topic" if len(topics) == 1 else "topics"
    notes = [f"Examples are of {noun} {', '.join(topics)}, which left the comparison on dev."]
    if warning := comments_warning(criterion.examples, f"candidates/{criterion.variant}.md"):
        notes.append(f"{warning}.")
    return notes
