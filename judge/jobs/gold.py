"""Gold checked, imported, split under seal and planned: what `judge gold` does, for use from Python."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from pydantic import BeforeValidator, Field

from judge.ask.criteria import choose_prompts, criterion_names, default_prompts, find_criterion
from judge.ask.records import Failure, Judgment
from judge.ask.results import JUDGMENTS, StoredResults, stored_judgments
from judge.crowd.layout import LAST_COUNTS, LabelProblems, Layout
from judge.crowd.sheets import TRUE
from judge.crowd.tables import field_columns, in_order, label_rows
from judge.errors import InputError, UsageError
from judge.gold import GradeMeanings
from judge.gold.check import CheckedGold, check_gold, plain_scale
from judge.gold.draft import Draft, ImportOptions, SourceContent, read_bank
from judge.gold.plan import LabelingPlan, can_be_labeled, make_plan, no_texts, read_plan
from judge.gold.rows import ADJUDICATED, GoldRow, finder, gold_jsonl, read_gold
from judge.gold.seal import GOLD_FILES, Seal, refuse_other, write_split
from judge.gold.sheets import GoldSheet, make_sheet
from judge.gold.sheets.kinds import LARGEST_CELL, SHEETS, SheetOptions, long_cells
from judge.gold.sources import SOURCES, Imported, import_gold, typed
from judge.io.files import StrPath, jsonl_bytes, read_content
from judge.io.folder import make_folder, replace_folder, write_atomic
from judge.io.ids import Cluster
from judge.io.installed import need_extra
from judge.io.plan import Amount, OneOf, Option, Options, Pairs, Positive, Seed, in_folders, scale_bounds
from judge.io.tabular import read_table
from judge.io.text import count, shown
from judge.jobs.crowd import LabelTables
from judge.jobs.options import criteria_of_pool
from judge.jobs.parts import check_part
from judge.pool.bank import passages_jsonl, pool_file, pool_jsonl, read_pool_folder
from judge.pool.conversation import turns_shown
from judge.pool.pairs import one_each
from judge.pool.records import Pool
from judge.records import JudgedUnit, Problem, Scale, file_problem
from judge.results.pairs import agreed
from judge.runs.topics import topic_turns
from judge.units import UNITS

if TYPE_CHECKING:
    import polars as pl

CROWD = "crowd"
"""The name of the source of tables of labels."""
_COUNTED = ("judge", "prompt", "criterion", "human", "judge_grade", "count")
_COUNTS = re.compile("-?[0-9]{1,9} -?[0-9]{1,9} [0-9]{1,9}")
_FIELDS = {
    "assessor": "worker",
    "turn_id": "turn_id",
    "response_id": "response_id",
    "criterion": "criterion",
    "grade": "label",
}
"""Field of a gold row to what a table of labels calls it."""
_OF_TABLES = ("table", "task", "workers", "wide", "wide_map", "repeated")
GOLD_SOURCES = tuple(sorted({*SOURCES, CROWD}))
"""What gold is imported from."""


def _bounds(scale: Any) -> Any:
    """`LOW-HIGH` as two grades."""
    if not isinstance(scale, str):
        return scale
    if (bounds := scale_bounds(scale)) is None:
        raise ValueError(f"{scale!r} is not a scale such as 0-3 or -2-2")
    return bounds


class GoldCheckPlan(Options):
    """Everything `judge gold check` can be told."""

    files: Annotated[tuple[Path, ...], Option(metavar="FILE", place="only")]
    """Gold file; several are one set of gold."""
    pool: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """Output folder or pool.jsonl of the responses."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt whose scale its criterion has (default: the criterion's default prompt)."""
    scale: Annotated[tuple[int, int] | None, BeforeValidator(_bounds), Option(metavar="LOW-HIGH")] = None
    """Scale of criteria without --prompt, e.g. 0-3."""
    polarity: Literal["higher", "lower"] | None = None
    """Which end of --scale is good."""

    def _check(self) -> None:
        if (self.scale is None) != (self.polarity is None):
            raise UsageError("--scale and --polarity go together: a scale without its good end says nothing")


class GoldImportPlan(
    LabelTables,
    main="out pool bank pool-out criterion plan inclusion column label assessor",
):
    """Everything `judge gold import` can be told."""

    source: Annotated[str, OneOf(GOLD_SOURCES), Option(metavar="SOURCE", place="only")]
    """What the grades come from."""
    files: Annotated[tuple[Path, ...], Option(metavar="FILE", place="only")]
    """File, or for cast-regin the folder."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """Gold file to write."""
    pool_out: Annotated[Path | None, Option(metavar="DIR")] = None
    """Also write pool.jsonl and passages.jsonl there."""
    bank: Annotated[Path | None, Option(metavar="FILE")] = None
    """JSON object from response id to text."""
    pool: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """Output folder or pool.jsonl with these responses."""
    criterion: Annotated[str | None, Option(metavar="NAME")] = None
    """Criterion that was graded, where the file does not say."""
    assessor: Annotated[str | None, Option(metavar="NAME")] = None
    """Who graded, where the file does not say."""
    made: Annotated[str | None, OneOf(get_args(GoldRow.__annotations__["made"]))] = None
    """How the grades came about (default blind)."""
    inclusion: Annotated[float | None, Option(metavar="P")] = None
    """Probability with which each response was drawn."""
    plan: Annotated[Path | None, Option(metavar="FILE")] = None
    """Plan that the responses were drawn by."""
    columns: Annotated[Pairs, Option("column", metavar="FIELD=COLUMN", repeat=True)] = Field(default_factory=dict)
    """Which column of a table holds a field."""
    constants: Annotated[Pairs, Option("constant", metavar="FIELD=VALUE", repeat=True)] = Field(default_factory=dict)
    """A field's value, where the file does not say."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt by whose levels was labeled; other grades are refused (default: the criterion's default prompt)."""
    generic_as_zero: bool = False
    """Give generic responses of begin grade 0 (default: leave them out)."""

    def _check(self) -> None:
        if self.bank is not None and self.pool is not None:
            raise UsageError("--bank and --pool: give one of them")
        if self.inclusion is not None and self.plan is not None:
            raise UsageError("--inclusion and --plan: give one of them")
        super()._check()
        if self.source != CROWD:
            self.refuse_unused(_OF_TABLES, f"they are about tables of a crowd, not about {self.source}")
        if self.source not in (CROWD, "csv"):
            self.refuse_unused(("missing",), f"it is about tables, not about {self.source}")
        if self.out in self.files:
            raise UsageError(f"{self.out}: would be written over what it is made of")


class GoldSplitPlan(Options):
    """Everything `judge gold split` can be told."""

    file: Annotated[Path, Option(metavar="FILE", place="only")]
    """Gold file."""
    share: Annotated[Amount, Option("test", metavar="SHARE")]
    """Share of the test part, e.g. 0.5."""
    seed: Annotated[Seed, Option(metavar="S")]
    """Seed of the split."""
    cluster: Cluster = "topic"
    """What goes to one part as a whole: each topic, or each theme, the part of a topic id before the hyphen."""
    comments: bool = False
    """Keep the assessors' comments, which may name people (default: leave them out, since dev.jsonl is published)."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder to write."""


class GoldDrawPlan(Options):
    """Everything `judge gold plan` can be told."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder or its pool.jsonl."""
    n: Annotated[Positive, Option(metavar="N")]
    """About how many responses, or what else is pooled, to label."""
    seed: Annotated[Seed, Option(metavar="S")]
    """Seed of the draw."""
    out: Annotated[Path, Option(short="o", metavar="FILE")]
    """Plan to write (JSONL)."""
    judgments: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Draw turns on which the judges of these judgments.jsonl are unsure more often."""
    stratify: Literal["judge"] | None = None
    """Draw single responses, pairs or passages by the grade in the judgments, a response's citations together, and not
    turns."""
    confusion: Annotated[Path | None, Option(metavar="FILE")] = None
    """confusion.tsv of the judge on other gold: draw the grades at which people differ more, and predict the saving."""
    per_run: Annotated[Positive | None, Option(metavar="K")] = None
    """Responses that each run gets at least (default: 10, or with a warning as many as --n allows)."""
    criteria: Annotated[tuple[str, ...], Option(metavar="CRITERION")] = ()
    """Criteria to label (default: those of the judgments, else the one that such a pool is judged by, of responses
    groundedness and naturalness)."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Existing grades: their responses are not drawn again, and count as certain part of the sample."""

    def _check(self) -> None:
        if self.stratify and not self.judgments:
            raise UsageError("--stratify judge: by whose grades? Give --judgments")
        if not self.stratify:
            self.refuse_unused(("confusion",), "turns are drawn without --stratify judge")


def check_gold_files(plan: GoldCheckPlan) -> CheckedGold:
    """List everything that is wrong with gold files; a UsageError if the plan gives a criterion two scales."""
    default_scale = plain_scale(*plan.scale, higher_is_better=plan.polarity == "higher") if plan.scale else None
    scales = _scales(plan.prompts, () if default_scale else tuple(default_prompts()))
    plan = in_folders(plan, files=GOLD_FILES)
    contents = [(str(path), read_content(path)) for path in plan.files]
    pool = read_pool_folder(plan.pool) if plan.pool is not None else None
    checked = check_gold(contents, scales, pool, other=default_scale)
    if pool is not None and plan.pool is not None:
        _check_units({row.criterion for row in checked.rows}, plan.prompts, pool, plan.pool, mixed=True)
    return checked


def import_gold_files(plan: GoldImportPlan) -> Imported:
    """Make a gold file of grades in another format, and a pool of the responses if the plan names its folder."""
    if plan.source == CROWD:
        need_extra("crowd", "reading workers' labels")
    plan = in_folders(plan, bank=("bank.json", "response_bank.json"), plan=("plan.jsonl",))
    drawn = read_plan(read_content(plan.plan), str(plan.plan)) if plan.plan is not None else None
    prompts = tuple(map(find_criterion, plan.prompts))
    _scales(plan.prompts, ())
    options = ImportOptions(
        constants=_constants(plan),
        columns=plan.columns,
        bank=read_bank(plan.bank) if plan.bank is not None else None,
        pool=read_pool_folder(plan.pool) if plan.pool is not None else None,
        plan={(row.turn_id, row.response_id): row for row in drawn} if drawn is not None else None,
        meanings=GradeMeanings(plan.words, prompts, plan.missing),
        generic_as_zero=plan.generic_as_zero,
    )
    read = None
    if plan.source == CROWD:
        labeled = {prompt.name for prompt in prompts} or {name for row in drawn or () for name in row.criteria}
        read = partial(read_label_tables, criteria=sorted(labeled), **plan.reading)
    imported = import_gold(plan.source, plan.files, options, with_pool=plan.pool_out is not None, read=read)
    if options.pool is not None and plan.pool is not None:
        _check_units({row.criterion for row in imported.rows}, plan.prompts, options.pool, plan.pool)
    if plan.pool_out is not None and imported.pool is not None:
        folder = plan.pool_out
        contents = {"pool.jsonl": pool_jsonl(imported.pool), "passages.jsonl": passages_jsonl(imported.pool)}
        for name, content in contents.items():
            refuse_other(folder / name, content, "holds another pool: choose another --pool-out")
        make_folder(folder)
        for name, content in contents.items():
            write_atomic(folder / name, content)
    write_atomic(plan.out, gold_jsonl(imported.rows))
    return imported


def split_gold_file(plan: GoldSplitPlan) -> Seal:
    """Split gold by topic or theme, put the test part under seal, and return the seal."""
    plan = in_folders(plan, file=("gold.jsonl",))
    rows = read_gold(plan.file)
    if not plan.comments:
        rows = tuple(msgspec.structs.replace(row, comment=None) for row in rows)
    return write_split(rows, plan.share, plan.seed, plan.out, plan.cluster)


def comments_of_gold(plan: GoldSplitPlan) -> int:
    """How many rows to split have a comment."""
    plan = in_folders(plan, file=("gold.jsonl",))
    return sum(row.comment is not None for row in read_gold(plan.file))


def unit_of_gold(plan: GoldSplitPlan) -> JudgedUnit:
    """What the rows to split grade, as far as the default prompts of their criteria tell; else responses."""
    plan = in_folders(plan, file=("gold.jsonl",))
    criteria = {row.criterion for row in read_gold(plan.file)}
    units = {find_criterion(name).unit if name in default_prompts() else "response" for name in criteria}
    return units.pop() if len(units) == 1 else "response"


def draw_gold_plan(plan: GoldDrawPlan) -> LabelingPlan:
    """Draw what to label next, with known probabilities; a UsageError says which larger `n` would do."""
    plan = in_folders(plan, judgments=(JUDGMENTS,), gold=GOLD_FILES, confusion=("confusion.tsv",))
    judgments: Sequence[Judgment | Failure] = StoredResults.joined(map(stored_judgments, plan.judgments))
    pool = read_pool_folder(plan.pool)
    unit = UNITS[pool.unit]
    criteria = plan.criteria or sorted({judgment.criterion for judgment in judgments})
    if not criteria:
        criteria = criteria_of_pool(pool.unit)
        if len(criteria) > 1 and not unit.whole_response:
            raise UsageError(
                f"{plan.pool}: a pool of {unit.nouns.responses}: name the criteria to label (--criteria "
                f"{' '.join(criteria)})"
            )
    without_text = 0
    if unit.needed_input == "passages" and pool_file(plan.pool).with_name("passages.jsonl").exists():
        pool = read_pool_folder(plan.pool, "passages.jsonl")
        kept = tuple(response for response in pool.responses if can_be_labeled(response, pool))
        without_text = len(pool.responses) - len(kept)
        if without_text and not kept:
            raise no_texts(pool, plan.pool)
        pool = msgspec.structs.replace(pool, responses=kept)
    _check_units(set(criteria), (), pool, plan.pool)
    if plan.stratify and len(criteria) != 1:
        named = ", ".join(criteria) or "no judgment"
        raise UsageError(f"--stratify judge: {named}: expected grades under one criterion (--criteria)")
    if plan.stratify and unit.orders > 1:
        judgments = agreed(pool, judgments, find_criterion(criteria[0]))
    errors = _errors(plan.confusion, criteria[0], judgments) if plan.confusion is not None else {}
    gold: list[GoldRow] = []
    for path in plan.gold:
        gold += read_gold(path)
    shown = {response.response_id for response in map(finder(pool), gold) if response}
    drawn = make_plan(
        one_each(pool, plan.seed, shown),
        plan.n,
        plan.seed,
        criteria=criteria,
        judgments=judgments,
        gold=gold,
        per_run=plan.per_run,
        errors=errors if plan.stratify else None,
    )
    drawn = msgspec.structs.replace(drawn, without_text=without_text)
    out = plan.out
    content = jsonl_bytes(drawn.rows)
    refuse_other(out, content, "holds another plan, which may be in use: choose another --out")
    write_atomic(out, content)
    return drawn


def _errors(path: Path, criterion: str, judgments: Iterable[Judgment | Failure]) -> dict[tuple[int, int], int]:
    """How many labels there are of each grade of people and of the judge, in a table that calibration wrote.

    Of several judges it is the one of the judgments. An InputError unless that leaves one.
    """
    problems: list[Problem] = []
    counts: dict[tuple[str, str], Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in read_table(path, problems, needed=_COUNTED, quoted=False)[1]:
        judge, prompt, counted, *cells = (row.cells[name] for name in _COUNTED)
        if counted != criterion:
            continue
        text = " ".join(cells)
        if _COUNTS.fullmatch(text):
            human, judged, n = map(int, cells)
            counts[judge, prompt][human, judged] += n
        else:
            message = f"{shown(text)}: expected two grades and a number of labels"
            problems.append(file_problem("wrong_value", path, message, f"{row.place}: $"))
    if len(counts) > 1:
        judges = {(row.judge, f"{criterion}/{row.variant}") for row in judgments if isinstance(row, Judgment)}
        counts = {judge: of_judge for judge, of_judge in counts.items() if judge in judges}
    if problems:
        raise InputError(f"{path}: {count(len(problems), 'problem')}", problems)
    if len(counts) != 1:
        raise InputError(f"{path}: {count(len(counts), 'judge')} of these judgments under {criterion}: expected one")
    (errors,) = counts.values()
    return dict(errors)


def _check_units(
    criteria: Collection[str], prompts: Sequence[StrPath], pool: Pool, place: Path, *, mixed: bool = False
) -> None:
    """Refuse criteria about another unit than that of the pool at this place, as far as a prompt tells."""
    named = {prompt.name: prompt for prompt in map(find_criterion, prompts)}
    for name in sorted(criteria):
        if name not in named and name in default_prompts():
            named[name] = find_criterion(name)
    if not mixed or all(criterion.unit != pool.unit for criterion in named.values()):
        check_part(list(named.values()), pool, place)


def _scales(prompts: Sequence[StrPath], defaults: Sequence[str]) -> dict[str, Scale]:
    """Criterion to scale, from the given prompts, else from the default prompts."""
    scales: dict[str, Scale] = {}
    for criterion in map(find_criterion, prompts):
        if scales.setdefault(criterion.name, criterion.scale) != criterion.scale:
            raise UsageError(f"--prompt gives {criterion.name} two scales")
    return {name: find_criterion(name).scale for name in defaults if name not in scales} | scales


def _constants(plan: GoldImportPlan) -> dict[str, Any]:
    """Values for fields that the files lack: the plan's own fields, then its other constants."""
    named = {
        "criterion": plan.criterion,
        "assessor": plan.assessor,
        "made": plan.made,
        "inclusion_probability": plan.inclusion,
    }
    constants = {field: value for field, value in named.items() if value is not None}
    fields = [*constants, *plan.constants]
    if repeated := sorted({field for field in fields if fields.count(field) > 1}):
        raise UsageError(f"given twice: {', '.join(repeated)}")
    return constants | typed(plan.constants)


def read_label_tables(
    paths: Sequence[Path], options: ImportOptions, *, criteria: Sequence[str] = (), **reading: Any
) -> SourceContent:
    """Labels of workers as gold, one row a label, from the tables and exports that `judge crowd` reads.

    `criteria` are those that were labeled, where a form has other answers too; by default any bundled one. `reading`
    says how tables are read, as values of a `Layout`.
    """
    criterion = options.constants.get("criterion")
    names = (criterion,) if criterion is not None else tuple(criteria) or criterion_names()
    layout = Layout(
        columns=field_columns({_FIELDS.get(field, field): name for field, name in options.columns.items()}),
        # Only the names count: whether a label is on its criterion's scale is looked at when it is a gold row.
        scales=dict.fromkeys(names, (0, 1)),
        **reading,
        turns={row.response_id: row.turn_id for row in options.pool.responses} if options.pool else None,
    )
    problems = LabelProblems()
    rows, sheets = label_rows(paths, layout, problems, remarks=True)
    listed = in_order(problems, sheets)
    content = SourceContent(
        problems=[problem for problem in listed if problem.severity == "error"],
        notes=[f"{problem.file}: {problem.message}" for problem in listed if problem.severity == "warning"],
        gaps=True,
        unstated=True,
        remedy=f"; {LAST_COUNTS}",
    )
    empty = dict.fromkeys((sheet.file for sheet in sheets), 0)
    truths = dict.fromkeys((sheet.file for sheet in sheets), 0)
    assessed = _assessed(rows)
    for row in rows.iter_rows(named=True) if rows is not None else ():
        sheet = sheets[row["file"]]
        cells = {field: row[name] or "" for field, name in _FIELDS.items()} | {"comment": row["comment"]}
        if not cells["grade"] and "grade" not in options.constants:
            empty[sheet.file] += 1
            continue
        place = sheet.place(row["number"], row["column"], row["annotation"])
        drafts: list[dict[str, Any]] = [cells]
        if row["ground_truth"] == TRUE:
            truths[sheet.file] += 1
            drafts = _ground_truth(row, cells, assessed)
        content.drafts += (Draft(sheet.file, place, typed(draft)) for draft in drafts)
    for file, n in truths.items():
        if n:
            content.notes.append(f"{file}: {count(n, 'label')} marked as ground truth: adjudicated")
    content.notes += [f"{file}: {count(n, 'row')} without a label: not labeled" for file, n in empty.items() if n]
    return content


_OF_WORKER = ("worker", "turn_id", "response_id", "criterion")


def _assessed(rows: "pl.DataFrame | None") -> frozenset[tuple[str, ...]]:
    """What workers labeled without a mark of ground truth, and the workers alone; nothing where nothing is marked."""
    if rows is None or TRUE not in rows["ground_truth"]:
        return frozenset()
    given = rows.filter(rows["ground_truth"] != TRUE)
    return frozenset(given.select(_OF_WORKER).iter_rows()) | frozenset((name,) for name in given["worker"].unique())


def _ground_truth(
    row: Mapping[str, Any], cells: dict[str, Any], assessed: Collection[tuple[str, ...]]
) -> list[dict[str, Any]]:
    """The gold that a label is which its platform marks as the ground truth.

    Who has labels without the mark is one of those between whom it decides. Then a marked label is theirs as well,
    unless they gave another one, and how far people agree does not depend on the mark.
    """
    if (row["worker"],) not in assessed:
        return [{**cells, "made": ADJUDICATED}]
    decided = {**cells, "assessor": f"{row['worker']} (ground truth)", "made": ADJUDICATED}
    if tuple(row[name] for name in _OF_WORKER) in assessed:
        return [decided]
    return [cells, {**decided, "comment": ""}]


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
    unit: JudgedUnit
    responses: int
    labels: int
    """Labels to give: responses times their criteria."""
    criteria: tuple[str, ...]
    notes: tuple[str, ...]
    """What assessors will not see."""


def write_gold_sheet(plan: GoldSheetPlan) -> SheetOutcome:
    """Write the sheets of a plan's responses, or of a whole pool; nothing if one of them cannot hold an input."""
    plan = in_folders(plan, plan=("plan.jsonl",))
    inputs = [Path(path) for path in (pool_file(plan.pool), plan.plan, plan.topics) if path is not None]
    rows = None
    if plan.plan is not None:
        rows = read_plan(read_content(plan.plan), str(plan.plan))
    planned = sorted({name for row in rows for name in row.criteria}) if rows is not None else None
    chosen = choose_prompts((), plan.prompts, ())
    if several := [name for name, prompts in chosen.items() if len(prompts) > 1]:
        raise UsageError(f"--prompt gives {', '.join(several)} two scales")
    prompts = {name: prompt for name, (prompt,) in chosen.items()}
    # What the plan asks for and no --prompt explains is explained by the default prompt.
    pool = read_pool_folder(plan.pool, "passages.jsonl")
    others = [name for name in planned or (() if prompts else criteria_of_pool(pool.unit)) if name not in prompts]
    defaults = choose_prompts([name for name in others if name in default_prompts()], (), ())
    prompts |= {name: prompt for name, (prompt,) in defaults.items()}
    turns = topic_turns(plan.topics)
    check_part(tuple(prompts.values()), pool, plan.pool)
    # The conversation of an interactive run is in the pool, so it is shown without topics too.
    if turns is not None or any(row.turn_id in pool.turns for row in (pool.responses if rows is None else rows)):
        turns = turns_shown(pool, turns)
    sheet = make_sheet(one_each(pool, plan.seed) if rows is None else pool, prompts, rows, turns)
    if sheet.not_dealt and not sheet.items:
        raise no_texts(pool, plan.pool)
    options = SheetOptions(
        assessors=tuple(plan.assessors),
        double=plan.double,
        per_task=plan.items_per_task,
        seed=plan.seed,
    )
    files = SHEETS[plan.to](sheet, options)
    replace_folder(plan.out, files, "sheet.sha256", inputs=inputs)
    return SheetOutcome(
        files=tuple(files),
        unit=pool.unit,
        responses=len(sheet.items),
        labels=sum(len(item.criteria) for item in sheet.items),
        criteria=tuple(rubric.criterion for rubric in sheet.rubrics),
        notes=tuple(_notes(sheet, plan.to)),
    )


def _notes(sheet: GoldSheet, to: str) -> Iterator[str]:
    if sheet.not_dealt:
        yield f"{count(sheet.not_dealt, UNITS[sheet.unit].nouns.response)} not dealt: no text of the passage"
    if sheet.without_text:
        yield f"{count(sheet.without_text, 'response')} with passages that have no text: `judge passages` finds texts"
    if to == "csv" and (n := long_cells(sheet)):
        yield f"{count(n, 'text')} longer than {LARGEST_CELL:,} characters, which spreadsheets cut: --to html shows all"
