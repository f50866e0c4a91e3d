"""From a plan to the sheets that assessors fill in: what `judge gold sheet` does, for use from Python."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from judge.ask.criteria import choose_prompts, default_prompts
from judge.ask.subjects import check_unit
from judge.errors import UsageError
from judge.gold.plan import read_plan
from judge.gold.sheets import GoldSheet, make_sheet
from judge.gold.sheets.kinds import LARGEST_CELL, SHEETS, SheetOptions, long_cells
from judge.io.files import read_stored, unpack
from judge.io.folder import replace_folder
from judge.io.plan import Amount, OneOf, Option, Options, Positive, Seed, in_folders
from judge.io.text import count
from judge.jobs.options import DEFAULT_CRITERIA
from judge.pool.bank import pool_file, read_pool_folder
from judge.pool.conversation import turns_shown
from judge.runs.topics import topic_turns


class GoldSheetPlan(Options):
    """Everything `judge gold sheet` can be told."""

    plan: Annotated[Path | None, Option(metavar="PLAN", place="only")] = None
    """Plan of what to label (default: all responses of the pool)."""
    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder or its pool.jsonl."""
    to: Annotated[str, OneOf(SHEETS)]
    """What the assessors work with."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file, to show the conversation."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt whose levels are shown (default: the criterion's default prompt)."""
    assessors: Annotated[tuple[str, ...], Option("assessor", metavar="NAME", repeat=True)] = ()
    """Who labels sheets of csv and html; each gets one."""
    double: Annotated[Amount | None, Option(metavar="SHARE")] = None
    """Share of the responses of csv and html that every assessor labels (default 0.2 with several assessors)."""
    items_per_task: Annotated[Positive, Option(metavar="K")] = 1
    """Responses on one page of mturk."""
    seed: Annotated[Seed, Option(metavar="S")] = 0
    """Seed of the orders."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder to write."""

    def _check(self) -> None:
        if self.items_per_task > 1 and self.to != "mturk":
            raise UsageError("--items-per-task: a number of one or more, with --to mturk")


class SheetOutcome(msgspec.Struct, frozen=True):
    """What was written."""

    files: tuple[str, ...]
    """Names in the folder, beside the record."""
    responses: int
    labels: int
    """Labels to give: responses times their criteria."""
    criteria: tuple[str, ...]
    notes: tuple[str, ...]
    """What assessors will not see."""


def write_gold_sheet(plan: GoldSheetPlan) -> SheetOutcome:
    """Write the sheets of a plan's responses, or of a whole pool; nothing if one of them cannot hold an input."""
    plan = in_folders(plan, plan=("plan.jsonl",))
    inputs = [pool_file(plan.pool)] + [Path(path) for path in (plan.plan, plan.topics) if path is not None]
    rows = None
    if plan.plan is not None:
        path = plan.plan
        rows = read_plan(unpack(read_stored(path), str(path)), str(path))
    planned = sorted({name for row in rows for name in row.criteria}) if rows is not None else None
    chosen = choose_prompts((), plan.prompts, ())
    if several := [name for name, prompts in chosen.items() if len(prompts) > 1]:
        raise UsageError(f"--prompt gives {', '.join(several)} two scales")
    prompts = {name: given for name, (given,) in chosen.items()}
    # What the plan asks for and no --prompt explains is explained by the default prompt.
    others = [name for name in planned or (() if prompts else DEFAULT_CRITERIA) if name not in prompts]
    known = [name for name in others if name in default_prompts()]
    prompts |= {name: given for name, (given,) in choose_prompts(known, (), ()).items()}
    turns = topic_turns(plan.topics)
    pool = read_pool_folder(plan.pool, "passages.jsonl")
    check_unit(tuple(prompts.values()), pool.unit)
    # The conversation of an interactive run is in the pool, so it is shown without topics too.
    if turns is not None or any(row.turn_id in pool.turns for row in (pool.responses if rows is None else rows)):
        turns = turns_shown(pool, turns)
    sheet = make_sheet(pool, prompts, rows, turns)
    options = SheetOptions(tuple(plan.assessors), plan.double, plan.items_per_task, plan.seed)
    files = SHEETS[plan.to](sheet, options)
    replace_folder(plan.out, files, "sheet.sha256", inputs=inputs)
    return SheetOutcome(
        tuple(files),
        len(sheet.items),
        sum(len(item.criteria) for item in sheet.items),
        tuple(rubric.criterion for rubric in sheet.rubrics),
        tuple(_notes(sheet, plan.to)),
    )


def _notes(sheet: GoldSheet, to: str) -> Iterator[str]:
    if sheet.without_text:
        yield f"{count(sheet.without_text, 'response')} with passages that have no text: `judge passages` finds texts"
    if to == "csv" and (n := long_cells(sheet)):
        yield f"{count(n, 'text')} longer than {LARGEST_CELL:,} characters, which spreadsheets cut: --to html shows all"
