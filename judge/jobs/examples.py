"""A prompt with graded responses as examples: what `judge prompts examples` does, for use from Python."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import multimode
from typing import Annotated, NamedTuple

import msgspec

from judge.ask.criteria import prompt_path
from judge.ask.opening import check_turns
from judge.ask.prompt import EXAMPLES, check_unit, defuse, example_texts
from judge.ask.prompt_edit import with_examples
from judge.ask.prompt_file import LONGEST_EXAMPLE, LONGEST_EXAMPLES, parse_criterion, why_no_examples
from judge.ask.records import Task
from judge.ask.results import JUDGMENTS, read_labels
from judge.errors import InputError, UsageError, refuse
from judge.gold.examples import ExampleCandidate, choose_examples
from judge.gold.rows import GoldRow, check_scale, deciding, match, response_digest
from judge.gold.seal import GOLD_FILES, read_unsealed
from judge.io.files import read_stored
from judge.io.plan import Option, Options, Positive, Seed, in_folders
from judge.io.text import count
from judge.jobs.prompt_files import comments_warning, only_judge, write_prompt
from judge.pool.bank import read_pool_folder
from judge.pool.build import lacking_texts
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool
from judge.records import Criterion, Example
from judge.runs.records import Turn
from judge.runs.topics import topic_turns

UNSPLIT = (
    "the gold has no split: keep the examples out of every later comparison; `judge gold split` seals a part that no "
    "example can come from"
)


class ExamplesPlan(Options, main="gold pool topics judgments k seed out"):
    """Everything `judge prompts examples` can be told."""

    prompt: Annotated[str, Option(metavar="NAME|PATH", place="only")]
    """Criterion, criterion/variant, or a prompt file, which is not changed."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")]
    """Gold grades (JSONL), of whose dev part the examples are."""
    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder or pool.jsonl of the responses."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics, for prompts that show the conversation."""
    judgments: Annotated[Path | None, Option(metavar="FILE")] = None
    """Judgments of the same pool: what their judge grades otherwise than people comes first."""
    judge: Annotated[str | None, Option(metavar="NAME")] = None
    """Which judge of --judgments, where there are several."""
    k: Annotated[Positive, Option(metavar="K")] = 4
    """How many examples."""
    seed: Annotated[Seed, Option(metavar="S")] = 1
    """Decides among equals."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """Prompt file to write, such as mine.md."""

    def _check(self) -> None:
        if self.judgments is None:
            self.refuse_unused(["judge"], "it is about --judgments")


class ChosenExamples(msgspec.Struct, frozen=True):
    """A prompt with examples, and what they are."""

    criterion: Criterion
    disagreements: int
    """How many of the examples the judge graded otherwise."""
    eligible: int
    """How many responses of the gold could be examples."""
    warnings: tuple[str, ...] = ()


class EligibleExamples(NamedTuple):
    """The responses that may be examples, and why the others may not, each reason with its number."""

    candidates: tuple[ExampleCandidate, ...]
    others: Counter[str]


def add_examples(plan: ExamplesPlan) -> ChosenExamples:
    """Choose examples of dev gold and write a prompt file that shows them; an existing other file is refused."""
    plan = in_folders(plan, gold=GOLD_FILES, judgments=(JUDGMENTS,))
    path = prompt_path(plan.prompt)
    stored = read_stored(path)
    prompt = parse_criterion(stored, path.stem, str(path), without_examples=True)
    check_shows_examples(prompt)
    rows = read_unsealed(plan.gold, "an example is of a dev topic: give dev.jsonl")
    eligible = _eligible(plan, prompt, [row for row in rows if row.criterion == prompt.name])
    chosen = chosen_examples(prompt, eligible, plan.k, plan.seed, ", ".join(map(str, plan.gold)))
    text = with_examples(stored.decode("utf-8-sig"), prompt, [candidate.example for candidate in chosen])
    criterion = write_prompt(plan.out, text)
    unsplit = "" if all(row.split for row in rows) else UNSPLIT
    warnings = filter(None, [unsplit, comments_warning(criterion.examples, str(plan.out))])
    return ChosenExamples(
        criterion=criterion,
        disagreements=sum(one.judged not in (None, one.example.grade) for one in chosen),
        eligible=len(eligible.candidates),
        warnings=tuple(warnings),
    )


def check_shows_examples(prompt: Criterion) -> None:
    """Refuse a prompt that cannot show examples, whatever they are."""
    shown = [name for name in prompt.inputs if name != EXAMPLES]
    if reasons := why_no_examples(prompt.unit, prompt.answer, shown):
        raise UsageError(f"{prompt.file}: {'; '.join(reasons)}")


def chosen_examples(
    prompt: Criterion, eligible: EligibleExamples, k: int, seed: int, name: str
) -> tuple[ExampleCandidate, ...]:
    """The `k` examples of a prompt; an InputError if there are fewer. `name` is that of the gold."""
    chosen = choose_examples(eligible.candidates, k, seed, LONGEST_EXAMPLES)
    if len(chosen) == k:
        return chosen
    others = Counter(eligible.others)
    if len(eligible.candidates) > len(chosen):
        beyond = f"the same text again, or beyond {LONGEST_EXAMPLES:,} characters in all"
        others[beyond] = len(eligible.candidates) - len(chosen)
    refused = "; ".join(f"{why}: {number}" for why, number in sorted(others.items()))
    raise InputError(
        f"{name}: expected {count(k, 'response')} that can be an example of {prompt.name}, found {len(chosen)}"
        f"{refused and f'; {refused}'}"
    )


def _eligible(plan: ExamplesPlan, prompt: Criterion, rows: list[GoldRow]) -> EligibleExamples:
    """What of the gold of a prompt's criterion may be an example."""
    name = ", ".join(map(str, plan.gold))
    dev = [row for row in rows if row.split != "test"]
    if not dev:
        kind = "test grades alone" if rows else "no grade"
        raise InputError(f"{name}: {kind} of {prompt.name}: expected some of dev topics, for examples")
    refuse(check_scale(dev, prompt.scale, name), f"{name}: grades off the scale of {prompt.prompt_id}")
    pool = read_pool_folder(plan.pool, "passages.jsonl")
    check_unit((prompt,), pool.unit)
    turns = turns_shown(pool, topic_turns(plan.topics)) or {}
    matched, _ = match(dev, pool, name)
    check_turns((prompt,), {row.turn_id for group in matched.values() for row in group}, turns, plan.topics)
    return eligible_examples(prompt, dev, pool, turns, _judged(plan, prompt), name)


def eligible_examples(
    prompt: Criterion,
    rows: Sequence[GoldRow],
    pool: Pool,
    turns: Mapping[str, Turn],
    judged: Mapping[tuple[str, str], int | None],
    name: str,
) -> EligibleExamples:
    """The graded responses that may be an example of a prompt.

    `judged`: the grades of the judge by turn and response id. `name` is that of the gold.
    """
    matched, unmatched = match(rows, pool, name)
    responses = {response.response_id: response for response in pool.responses}
    others = Counter[str]()
    if unmatched:
        others["not in the pool"] = len(unmatched)
    candidates: list[ExampleCandidate] = []
    for (response_id, _), group in matched.items():
        response = responses[response_id]
        people = deciding(group)
        grades = multimode(row.grade for row in people)
        if len(grades) > 1:
            others["assessors tie"] += 1
        elif response.truncated or ("passages" in prompt.inputs and lacking_texts(response, pool)):
            others["not all of the text is there"] += 1
        else:
            example = Example(
                turn_id=response.turn_id,
                response_sha256=response_digest(response),
                grade=grades[0],
                comment=next((defuse(row.comment) for row in people if row.comment and row.grade == grades[0]), None),
                shown=example_texts(Task(response, prompt), pool.passages, turns.get(response.turn_id)),
            )
            candidate = ExampleCandidate(
                example=example,
                topic_id=response.topic_id,
                judged=judged.get((response.turn_id, response_id)),
            )
            if example.length > LONGEST_EXAMPLE:
                others[f"longer than {LONGEST_EXAMPLE:,} characters with all that the prompt shows"] += 1
            else:
                candidates.append(candidate)
    return EligibleExamples(tuple(candidates), others)


def _judged(plan: ExamplesPlan, prompt: Criterion) -> dict[tuple[str, str], int | None]:
    """The grades of the judge by turn and response id; empty without judgments."""
    if plan.judgments is None:
        return {}
    columns = [
        labels
        for labels in read_labels(plan.judgments)
        if plan.judge in (None, labels.judge) and (labels.prompt or prompt.prompt_id).partition("/")[0] == prompt.name
    ]
    labels = only_judge(columns, str(plan.judgments), f"one prompt of {prompt.name}")
    grades = {level.grade for level in prompt.scale.levels}
    if alien := sorted({label.grade for label in labels.labels if label.grade is not None} - grades):
        raise UsageError(
            f"{plan.judgments}: grades {', '.join(map(str, alien))} by {labels.judge} are not on the scale of "
            f"{prompt.prompt_id}: expected {', '.join(map(str, sorted(grades)))}"
        )
    return {(label.turn_id, label.response_id): label.grade for label in labels.labels if label.sample == 0}
