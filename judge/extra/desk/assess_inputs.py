"""What is labeled at a desk: responses of a pool, as a plan has drawn them, under the scales of prompts.

A judge's grades are read in post-edit mode alone. Otherwise nobody at the desk can see one, because none is there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from judge.ask.criteria import choose_prompts, criterion_names
from judge.ask.labels import JUDGMENTS, is_jury
from judge.ask.prompt import needs_turn
from judge.ask.records import Failure
from judge.ask.stored_results import stored_judgments
from judge.ask.subjects import check_unit
from judge.errors import InputError, UsageError
from judge.extra.desk.server import DeskAddress
from judge.extra.desk.store import DeskItem
from judge.gold.plan import DOUBLE, PlanRow, read_plan, shared_items
from judge.gold.rows import parse_gold, response_digest
from judge.gold.seal import SEAL, read_seal
from judge.io.files import file_in, jsonl_bytes, read_stored, sha256, unpack
from judge.io.ids import natural_key
from judge.io.plan import Amount, Option
from judge.io.text import count, shown
from judge.jobs.options import DEFAULT_CRITERIA
from judge.pool.bank import pool_file, read_pool_folder
from judge.pool.conversation import turns_shown
from judge.pool.records import Pool, PooledResponse
from judge.records import Criterion, Problem
from judge.runs.records import Turn
from judge.runs.topics import read_topics, turns_by_id

_LONGEST_NAME = 80


class AssessPlan(DeskAddress, section="what is labeled"):
    """Everything `judge serve assess` can be told."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder or its pool.jsonl."""
    plan: Annotated[Path | None, Option(metavar="FILE")] = None
    """Plan of `judge gold plan` (default: the whole pool)."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt whose scale is used (default: those of the plan's criteria, else groundedness and naturalness)."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, for the conversation."""
    assessors: Annotated[tuple[str, ...], Option("assessor", metavar="NAME", repeat=True, section="who labels")]
    """Who labels; once for each person."""
    double: Annotated[Amount | None, Option(metavar="SHARE")] = None
    """Share of the responses that every assessor labels (default 0.2 with several assessors)."""
    seed: Annotated[int, Option(metavar="S")] = 0
    """Seed of the orders."""
    store: Annotated[Path, Option(metavar="FILE", section="labels")]
    """SQLite file that keeps the labels."""
    made: Literal["blind", "postedit"] = "blind"
    """Whether a judge's grade is shown."""
    judgments: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """The judge's grades for postedit: judgments.jsonl or its folder."""

    @property
    def shared(self) -> float:
        """The share of the items that every assessor labels."""
        if self.double is not None:
            return self.double
        return DOUBLE if len(self.assessors) > 1 else 0.0

    def _check(self) -> None:
        for name in self.assessors:
            if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
                raise UsageError(
                    f"--assessor {shown(name)}: expected a name of 1 to {_LONGEST_NAME} printable characters"
                )
        if twice := [name for name, times in Counter(map(str.casefold, self.assessors)).items() if times > 1]:
            raise UsageError(f"--assessor {', '.join(map(shown, twice))}: given twice; two people need two names")
        if self.shared > 1:
            raise UsageError(f"--double {self.double}: expected a share from 0 to 1")
        if self.double and len(self.assessors) < 2:
            raise UsageError("--double: what every assessor labels needs two assessors or more")
        if self.judgments is not None and self.made == "blind":
            raise UsageError(
                "--judgments: blind assessors see no judge's grade; --made postedit shows it, and marks the rows"
            )
        if self.made == "postedit" and self.judgments is None:
            raise UsageError("--made postedit: expected --judgments, whose grades are to be edited")


class Suggestion(NamedTuple):
    """A judge's grade, for post-edit mode."""

    judge: str
    grade: int | None
    """None if the judge was unable to judge."""


class Work(NamedTuple):
    """What a desk shows."""

    items: tuple[DeskItem, ...]
    responses: tuple[PooledResponse, ...]
    passages: Mapping[str, str]
    turns: Mapping[str, Turn]
    criteria: Mapping[str, Criterion]
    suggestions: Mapping[tuple[str, str], Suggestion]
    """By response id and criterion; empty unless in post-edit mode."""
    settings: Mapping[str, str]
    """What the labels belong to, in words."""


def read_work(plan: AssessPlan) -> Work:
    """Read what is to be labeled."""
    drawn = _drawn(file_in(plan.plan, "plan.jsonl")) if plan.plan is not None else None
    criteria = _criteria(plan, drawn)
    pool = _pool(plan.pool, criteria)
    check_unit(tuple(criteria.values()), pool.unit)
    responses = _responses(pool, drawn, str(plan.plan))
    shared = shared_items([response.response_id for response in responses], plan.shared, plan.seed)
    items = tuple(
        _item(response, row, tuple(name for name in criteria if row is None or name in row.criteria), place in shared)
        for place, (response, row) in enumerate(responses.items())
    )
    suggestions = _suggestions(plan, {item.response_id: item.turn_id for item in items}, criteria)
    # What the assessors see, and what the labels will say about it.
    digest = sha256(jsonl_bytes([(item, each.passages) for item, each in zip(items, responses, strict=True)]))
    if not any(item.criteria for item in items):
        raise UsageError(f"{plan.plan}: plans no label of {', '.join(criteria)}")
    return Work(
        items=items,
        responses=tuple(responses),
        passages={key: passage.text for key, passage in pool.passages.items()},
        turns=_turns(plan, pool, items, criteria),
        criteria=criteria,
        suggestions=suggestions,
        settings={
            "assessors": ", ".join(plan.assessors),
            "prompts": ", ".join(f"{prompt.prompt_id} ({prompt.digest[:12]})" for prompt in criteria.values()),
            "items": f"{count(len(items), 'response')} ({digest[:12]})",
            "double": f"{plan.shared:g}",
            "seed": str(plan.seed),
            "made": plan.made if plan.judgments is None else f"{plan.made} of {next(iter(suggestions.values())).judge}",
        },
    )


def _drawn(path: Path) -> tuple[PlanRow, ...]:
    content = unpack(read_stored(path), str(path))
    try:
        rows: Sequence[PlanRow] = read_plan(content, str(path))
        named = {(row.turn_id, name) for row in rows for name in (row.response_id, row.text_sha256)}
    except InputError:
        try:
            gold = parse_gold(content, str(path))
        except InputError:
            gold = ()
        if not gold:
            raise
        rows, named = (), {(row.turn_id, row.text_sha256 or row.response_id or "") for row in gold}
    seal = path.with_name(SEAL)
    if seal.exists() and any((item.turn_id, item.response) in named for item in read_seal(seal).test.items):
        raise UsageError(
            f"{path}: holds sealed test items, says {seal}: whoever labels or tunes prompts with them in sight spoils "
            "the test; label before `judge gold split`, or plan others (`judge gold plan --gold`)"
        )
    if not rows:
        raise UsageError(f"{path}: grades, not a plan: expected what `judge gold plan` writes")
    return tuple(rows)


def _criteria(plan: AssessPlan, drawn: Sequence[PlanRow] | None) -> dict[str, Criterion]:
    planned = sorted({name for row in drawn or () for name in row.criteria})
    default = [name for name in planned if name in criterion_names()] if drawn is not None else DEFAULT_CRITERIA
    chosen = choose_prompts((), plan.prompts, default)
    for name, (first, *others) in chosen.items():
        if others:
            raise UsageError(f"--prompt: {first.prompt_id} and {others[0].prompt_id} are two scales of {name}")
        if drawn is not None and name not in planned:
            raise UsageError(f"{plan.plan}: plans no label of {name}, only of {', '.join(planned)}")
    if not chosen:
        raise UsageError(f"{plan.plan}: plans labels of {', '.join(planned)}: expected a --prompt for each")
    return {name: prompts[0] for name, prompts in chosen.items()}


def _pool(path: Path, criteria: Mapping[str, Criterion]) -> Pool:
    needed = any({"passages", "sentences"} & set(criterion.inputs) for criterion in criteria.values())
    there = pool_file(path).with_name("passages.jsonl").exists()
    return read_pool_folder(path, *(("passages.jsonl",) if needed or there else ()))


def _responses(pool: Pool, drawn: Sequence[PlanRow] | None, name: str) -> dict[PooledResponse, PlanRow | None]:
    """The responses to label with their rows of the plan, in natural order."""
    if drawn is None:
        found: list[tuple[PooledResponse, PlanRow | None]] = [(response, None) for response in pool.responses]
    else:
        by_id = {response.response_id: response for response in pool.responses}
        problems, found = [], []
        for line, row in enumerate(drawn, 1):
            response = by_id.get(row.response_id)
            if response is None or (response.turn_id, response_digest(response)) != (row.turn_id, row.text_sha256):
                message = f"the pool has no response {row.response_id} of this turn and text: drawn from another pool?"
                problems.append(Problem("not_in_pool", "error", name, row.turn_id, f"line {line}", message))
            else:
                found.append((response, row))
        if problems:
            raise InputError(f"{name}: not a plan of this pool: {count(len(problems), 'problem')}", problems)
    if not found:
        raise InputError("nothing to label: the pool is empty")
    return dict(sorted(found, key=lambda pair: (natural_key(pair[0].turn_id), natural_key(pair[0].response_id))))


def _item(response: PooledResponse, row: PlanRow | None, criteria: tuple[str, ...], shared: bool) -> DeskItem:
    ids = response.turn_id, response.topic_id, response.response_id, response_digest(response)
    # One text may rest on different passages in different runs, so the row names a run.
    run_id = min((entry.run_id for entry in response.runs), key=natural_key, default=None)
    drawn = (row.inclusion_probability, row.stratum) if row else (1.0, "certain")
    return DeskItem(*ids, run_id, *drawn, criteria, shared)


def _turns(
    plan: AssessPlan, pool: Pool, items: Sequence[DeskItem], criteria: Mapping[str, Criterion]
) -> Mapping[str, Turn]:
    shown = ", ".join(prompt.prompt_id for prompt in criteria.values() if needs_turn(prompt))
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None) or {}
    lacking = sorted({item.turn_id for item in items} - turns.keys(), key=natural_key)
    if lacking and plan.topics is not None:
        raise UsageError(f"{plan.topics}: lacks {count(len(lacking), 'turn')} to label: {', '.join(lacking[:5])}")
    if lacking and shown:
        raise UsageError(f"{shown}: shown with the conversation, so a topics file is needed (--topics)")
    return turns


def _suggestions(
    plan: AssessPlan, turns: Mapping[str, str], criteria: Mapping[str, Criterion]
) -> dict[tuple[str, str], Suggestion]:
    """The judge's grades of the responses with these turns; of several samples the first."""
    if plan.judgments is None:
        return {}
    path = file_in(plan.judgments, JUDGMENTS)
    found: dict[tuple[str, str], Suggestion] = {}
    judges: set[str] = set()
    for judgment in stored_judgments(path):
        response_id, prompt = judgment.response_id, criteria.get(judgment.criterion)
        if isinstance(judgment, Failure) or prompt is None or judgment.sample > 0 or response_id not in turns:
            continue
        if judgment.turn_id != turns[response_id]:
            raise UsageError(f"{path}: {response_id} is of turn {judgment.turn_id}: grades of another pool")
        # The digest of a jury covers its members too.
        if judgment.criterion_digest != prompt.digest and not is_jury(judgment.judge):
            other = f"{judgment.criterion}/{judgment.variant} ({judgment.criterion_digest[:12]})"
            own = f"{prompt.prompt_id} ({prompt.digest[:12]})"
            raise UsageError(f"{path}: grades under {other}; the desk asks under {own}")
        judges.add(judgment.whole_judge)
        grade = None if judgment.unable else judgment.grade
        found[response_id, judgment.criterion] = Suggestion(judgment.whole_judge, grade)
    if len(judges) != 1:
        raise UsageError(f"{path}: expected the grades of one judge, found {', '.join(sorted(judges)) or 'none'}")
    return found
