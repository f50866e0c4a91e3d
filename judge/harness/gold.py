"""Gold checked, imported, split under seal and planned: what `judge gold` does, for use from Python."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from judge.ask.criteria import default_prompts, find_criterion
from judge.ask.labels import JUDGMENTS
from judge.ask.stored_results import StoredResults, stored_judgments
from judge.ask.subjects import check_unit
from judge.crowd.layout import TASK
from judge.crowd.wide import read_questions
from judge.errors import InputError, UsageError
from judge.files.extras import need_extra
from judge.files.folder import make_folder, write_atomic
from judge.files.paths import JobPlan, StrPath, in_folders
from judge.files.stored import read_stored, unpack
from judge.gold import (
    GOLD_FILES,
    SOURCES,
    CheckedGold,
    Imported,
    ImportOptions,
    LabelingPlan,
    Seal,
    check_gold,
    gold_jsonl,
    import_gold,
    make_plan,
    plain_scale,
    plan_jsonl,
    read_bank,
    read_gold,
    read_plan,
    typed,
    write_split,
)
from judge.gold.grades import GradeMeanings
from judge.harness.gold_labels import CROWD, label_source
from judge.harness.run_inputs import DEFAULT_CRITERIA
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.folder import read_pool_folder
from judge.pool.records import Pool
from judge.records import Scale
from judge.text.ids import Cluster, check_cluster

GOLD_SOURCES = tuple(sorted({*SOURCES, CROWD}))
"""What gold is imported from."""


class GoldCheckPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge gold check` can be told; paths may be strings."""

    files: Sequence[StrPath]
    """Gold files; several are one set of gold."""
    pool: StrPath | None = None
    """Output folder or `pool.jsonl` of the responses."""
    prompts: Sequence[str] = ()
    """Prompts that give their criteria's scales; by default each criterion's default prompt."""
    scale: tuple[int, int] | None = None
    """Lowest and highest grade of criteria without a prompt."""
    polarity: Literal["higher", "lower"] | None = None
    """Which end of `scale` is good."""


class GoldImportPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge gold import` can be told; paths may be strings."""

    source: str
    """One of GOLD_SOURCES."""
    files: Sequence[StrPath]
    """Files of the source, or its folders."""
    out: StrPath
    """The gold file to write."""
    pool_out: StrPath | None = None
    """A folder for the graded responses as a pool; one that holds another pool is refused."""
    bank: StrPath | None = None
    """JSON object from response id to text."""
    pool: StrPath | None = None
    """Output folder or `pool.jsonl` with these responses."""
    criterion: str | None = None
    """The criterion that was graded, where the files do not say."""
    assessor: str | None = None
    """Who graded, where the files do not say."""
    made: str | None = None
    """How the grades came about."""
    inclusion: float | None = None
    """Probability with which each response was drawn."""
    plan: StrPath | None = None
    """The plan that the responses were drawn by."""
    columns: Mapping[str, str] = {}
    """Field to the column of a table that holds it."""
    constants: Sequence[tuple[str, str]] = ()
    """Fields and their values, where the files do not say."""
    generic_as_zero: bool = False
    """Grade BEGIN's generic responses 0; by default they are left out."""
    words: Mapping[str, int] = {}
    """Texts that stand for a grade, beside the names of the levels of the criteria's prompts."""
    prompts: Sequence[StrPath] = ()
    """Prompts by whose levels was labeled; by default each criterion's default prompt names its levels."""
    table: str | None = None
    """What the tables of a crowd are, one of KINDS; None to see it from their columns."""
    task: str = TASK
    """Regular expression with groups `turn_id` and `response_id`, for a crowd's column of tasks."""
    wide: str | None = None
    """Regular expression for the column names of a survey that has a row per participant."""
    wide_map: StrPath | None = None
    """In place of `wide`, a table with the columns column, turn_id, response_id, criterion."""


class GoldSplitPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge gold split` can be told; paths may be strings."""

    file: StrPath
    """The gold file."""
    share: float
    """About which share of the responses goes to the test part, between 0 and 1."""
    seed: int
    """Seed of the split."""
    out: StrPath
    """The folder to write; one that holds another split is refused."""
    cluster: Cluster = "topic"
    """What goes to one part as a whole: each topic, or each theme."""


class GoldDrawPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge gold plan` can be told; paths may be strings."""

    pool: StrPath
    """Output folder or its `pool.jsonl`."""
    n: int
    """About how many responses to label."""
    seed: int
    """Seed of the draw."""
    out: StrPath
    """The file to write; one that holds another plan is refused."""
    judgments: Sequence[StrPath] = ()
    """Judgments of the responses: turns on which the judges are unsure are drawn more often."""
    per_run: int = 10
    """Responses that each run gets at least."""
    criteria: Sequence[str] = ()
    """Criteria to label; by default those of the judgments, else DEFAULT_CRITERIA."""
    gold: Sequence[StrPath] = ()
    """Gold files with existing grades: their responses are not drawn again."""


def check_gold_files(plan: GoldCheckPlan) -> CheckedGold:
    """List everything that is wrong with gold files.

    Raises:
        UsageError: The plan gives a scale without its good end, or a criterion two scales.
        InputError: A file, a prompt or the pool cannot be read.
    """
    if (plan.scale is None) != (plan.polarity is None):
        raise UsageError("--scale and --polarity go together: a scale without its good end says nothing")
    default_scale = plain_scale(*plan.scale, higher_is_better=plan.polarity == "higher") if plan.scale else None
    scales = _scales(plan.prompts, () if default_scale else tuple(default_prompts()))
    plan = in_folders(plan, files=GOLD_FILES)
    contents = [(str(path), _content(path)) for path in map(Path, plan.files)]
    pool = read_pool_folder(Path(plan.pool)) if plan.pool is not None else None
    checked = check_gold(contents, scales, pool, other=default_scale)
    if pool is not None:
        _check_units({row.criterion for row in checked.rows}, plan.prompts, pool, mixed=True)
    return checked


def import_gold_files(plan: GoldImportPlan) -> Imported:
    """Make a gold file of grades in another format, and a pool of the graded responses if the plan names its folder.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad, or `pool_out` holds another pool; nothing is written.
    """
    if plan.source not in GOLD_SOURCES:
        raise UsageError(f"no source called {plan.source!r}: there are {', '.join(GOLD_SOURCES)}")
    if plan.source == CROWD:
        need_extra("crowd", "reading workers' labels")
    elif plan.table or plan.task != TASK or plan.wide or plan.wide_map:
        raise UsageError(f"--table, --task, --wide and --wide-map are about tables of a crowd, not about {plan.source}")
    plan = in_folders(plan, bank=("bank.json", "response_bank.json"), plan=("plan.jsonl",))
    out, files = Path(plan.out), list(map(Path, plan.files))
    if out in files:
        raise UsageError(f"{out}: would be written over what it is made of")
    drawn = read_plan(_content(Path(plan.plan)), str(plan.plan)) if plan.plan is not None else None
    prompts = tuple(map(find_criterion, plan.prompts))
    _scales(plan.prompts, ())
    options = ImportOptions(
        constants=_constants(plan),
        columns=plan.columns,
        bank=read_bank(Path(plan.bank)) if plan.bank is not None else None,
        pool=read_pool_folder(Path(plan.pool)) if plan.pool is not None else None,
        plan={(row.turn_id, row.response_id): row for row in drawn} if drawn is not None else None,
        meanings=GradeMeanings(plan.words, prompts),
        generic_as_zero=plan.generic_as_zero,
    )
    read = None
    if plan.source == CROWD:
        wide = read_questions(Path(plan.wide_map)) if plan.wide_map is not None else plan.wide
        labeled = {prompt.name for prompt in prompts} or {name for row in drawn or () for name in row.criteria}
        read = label_source(plan.table, plan.task, wide, sorted(labeled))
    imported = import_gold(plan.source, files, options, with_pool=plan.pool_out is not None, read=read)
    if options.pool is not None:
        _check_units({row.criterion for row in imported.rows}, plan.prompts, options.pool)
    if plan.pool_out is not None and imported.pool is not None:
        folder = Path(plan.pool_out)
        contents = {"pool.jsonl": pool_jsonl(imported.pool), "passages.jsonl": passages_jsonl(imported.pool)}
        for name, content in contents.items():
            _refuse_other(folder / name, content, "holds another pool: choose another --pool-out")
        make_folder(folder)
        for name, content in contents.items():
            write_atomic(folder / name, content)
    write_atomic(out, gold_jsonl(imported.rows))
    return imported


def split_gold_file(plan: GoldSplitPlan) -> Seal:
    """Split gold by topic or theme, put the test part under seal, and return the seal.

    Raises:
        UsageError: The share is not between 0 and 1, or the cluster is unknown.
        InputError: The gold cannot be split, or `out` holds another split.
    """
    check_cluster(plan.cluster)
    plan = in_folders(plan, file=("gold.jsonl",))
    return write_split(read_gold(Path(plan.file)), plan.share, plan.seed, Path(plan.out), plan.cluster)


def draw_gold_plan(plan: GoldDrawPlan) -> LabelingPlan:
    """Draw what to label next, with known probabilities.

    Raises:
        UsageError: `n` is too small; the message says which would do.
        InputError: An input is bad, nothing is left to draw, or `out` holds another plan.
    """
    plan = in_folders(plan, judgments=(JUDGMENTS,), gold=GOLD_FILES)
    judgments = StoredResults.joined(stored_judgments(Path(path)) for path in plan.judgments)
    pool = read_pool_folder(Path(plan.pool))
    criteria = plan.criteria or sorted({judgment.criterion for judgment in judgments})
    if not criteria and pool.unit == "dialogue":
        raise UsageError(f"{plan.pool}: a pool of dialogues: name the criteria to label (--criteria)")
    _check_units(set(criteria), (), pool)
    drawn = make_plan(
        pool,
        plan.n,
        plan.seed,
        criteria=criteria or DEFAULT_CRITERIA,
        judgments=judgments,
        gold=[row for path in plan.gold for row in read_gold(Path(path))],
        per_run=plan.per_run,
    )
    out, content = Path(plan.out), plan_jsonl(drawn)
    _refuse_other(out, content, "holds another plan, which may be in use: choose another --out")
    write_atomic(out, content)
    return drawn


def _check_units(criteria: Collection[str], prompts: Sequence[StrPath], pool: Pool, *, mixed: bool = False) -> None:
    """Refuse criteria about another unit than that of the pool, as far as a prompt tells.

    Args:
        criteria: The criteria.
        prompts: Prompts that are named, in place of their criterion's default.
        pool: The pool.
        mixed: Whether some criteria may be about another unit, as in one file of gold for both.

    Raises:
        UsageError: There are some.
    """
    given = {prompt.name: prompt for prompt in map(find_criterion, prompts)}
    known = [name for name in sorted(criteria) if name not in given and name in default_prompts()]
    found = [*given.values(), *map(find_criterion, known)]
    if not mixed or all(criterion.unit != pool.unit for criterion in found):
        check_unit(found, pool.unit)


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
    fields = [*constants, *(field for field, _ in plan.constants)]
    if repeated := sorted({field for field in fields if fields.count(field) > 1}):
        raise UsageError(f"given twice: {', '.join(repeated)}")
    return constants | typed(dict(plan.constants))


def _content(path: Path) -> bytes:
    return unpack(read_stored(path), str(path))


def _refuse_other(path: Path, content: bytes, message: str) -> None:
    """A file that is there already must be the one that would be written."""
    if path.exists() and read_stored(path) != content:
        raise InputError(f"{path}: {message}")
