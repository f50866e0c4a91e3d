"""From tables of workers' labels to a folder of grades: what `judge crowd` does, for use from Python."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field

from judge.ask.criteria import bundled_criteria, find_criterion
from judge.ask.results import JUDGMENTS, Labels, read_labels
from judge.crowd.joint import joint_tsv
from judge.crowd.known import KnownFile
from judge.crowd.labels import AGGREGATORS, TOO_FAST, CrowdSettings, Item
from judge.crowd.layout import TASK, LabelProblems, Layout, Scales
from judge.crowd.outputs import FILTER_MIN, ItemGrade, crowd_files, item_grades, write_crowd
from judge.crowd.platforms import read_questions
from judge.crowd.sheets import frame_digest
from judge.crowd.study import Study, cautions, study
from judge.crowd.tables import KINDS, MAX_GRADES, read_tables
from judge.crowd.workers import WorkerRow
from judge.errors import UsageError
from judge.gold import Words, folded, level_words, value_key
from judge.gold.draft import banked, banked_digest, read_bank
from judge.gold.rows import response_digest
from judge.io.installed import need_extra
from judge.io.plan import (
    Amount,
    NotNegative,
    OneOf,
    Option,
    Options,
    Pairs,
    Positive,
    graded_texts,
    in_folders,
    scale_bounds,
)
from judge.io.steps import Step, Steps, quiet
from judge.io.table import Table
from judge.io.text import shown
from judge.pool.bank import pool_file, read_pool_folder
from judge.pool.lists import read_turns
from judge.pool.pairs import other_orders
from judge.pool.records import PooledResponse, both
from judge.records import Criterion, Problem, file_problem
from judge.stats.consensus import SHARES, TIES
from judge.stats.worker_models import PRIORS
from judge.units import UNITS

_READING = "reading labels (CSV, TSV, JSON, JSON Lines, Parquet)"


class LabelTables(Options, section=_READING):
    """How a table of people's labels is read."""

    words: Annotated[
        dict[str, int], BeforeValidator(graded_texts), Option("label", metavar="TEXT=GRADE", repeat=True)
    ] = Field(default_factory=dict)
    """The grade that a text stands for (repeatable), beside the names of the levels in the criterion's prompt."""
    missing: Annotated[tuple[str, ...], Option(metavar="VALUE")] = ()
    """Values that stand for no label, beside NA, N/A, nan, None, null, -, Unsure and Skip, and beside -1, -2 and 99
    where the scale does not have them."""
    table: Annotated[str | None, OneOf(KINDS)] = None
    """What the tables are (default: seen from their columns)."""
    task: Annotated[str, Option(metavar="PATTERN")] = TASK
    """Groups turn_id and response_id in a task (default TURN/ID)."""
    workers: Annotated[tuple[str, ...], Option(metavar="COLUMN")] = ()
    """Columns that hold the labels of one worker each, or patterns of their names such as 'annotator_*'."""
    wide: Annotated[str | None, Option(metavar="PATTERN")] = None
    """Survey with a row per participant: groups turn_id, response_id, criterion in the names of its columns."""
    wide_map: Annotated[Path | None, Option(metavar="FILE")] = None
    """In place of --wide, a table with columns column, turn_id, response_id, criterion."""
    repeated: Literal["refuse", "last"] = "refuse"
    """Another label by one worker for the same response and criterion: refuse it (default), or let the last one count,
    by Label Studio's annotation ids, else by the order of rows."""

    @property
    def reading(self) -> dict[str, Any]:
        """The same as values of a layout."""
        wide = read_questions(self.wide_map) if self.wide_map is not None else self.wide
        return {
            "kind": self.table,
            "task": self.task,
            "workers": self.workers,
            "wide": wide,
            "last": self.repeated == "last",
        }

    def _check(self) -> None:
        stated = set(map(value_key, self.missing))
        if both := [text for text in self.words if value_key(text) in stated]:
            raise UsageError(f"--label gives {', '.join(map(shown, both))} a grade, and --missing says it is no label")


class CrowdPlan(
    LabelTables,
    main="scale known pool unit column label aggregator tie min-labels too-fast max-fails out",
):
    """Everything `judge crowd` can be told."""

    labels: Annotated[tuple[Path | Any, ...], Option(metavar="LABELS", place="only")]
    """Tables of labels; from Python, data frames of polars or pandas too."""
    out: Annotated[Path, Option(short="o", metavar="DIR")]
    """Folder to write."""
    subset_turns: Annotated[Path | None, Option("mi-turns", metavar="FILE")] = None
    """Turn ids of the subset qrels, one per line."""
    scales: Annotated[tuple[str, ...], Option("scale", metavar="[NAME=]LOW-HIGH", repeat=True, section=_READING)] = ()
    """Scale of every criterion, e.g. 0-3, or of one; with names, any other criterion is an error."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt by whose levels was labeled: gives its criterion's scale, and its levels name grades (repeatable)."""
    criteria: Annotated[tuple[str, ...], Option("criterion", metavar="NAME", repeat=True)] = ()
    """Take only this criterion (repeatable); a single one names the criterion of tables that name none."""
    columns: Annotated[Pairs, Option("column", metavar="FIELD=COLUMN", repeat=True)] = Field(default_factory=dict)
    """Column of worker, turn_id, response_id, second_id (of a pair), task, criterion, label, seconds, or label:NAME of
    one criterion."""
    bank: Annotated[Path | None, Option(metavar="FILE")] = None
    """JSON object from response id to text."""
    pool: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """Output folder or pool.jsonl with the labeled responses: their texts, and turns for tables without."""
    unit: Literal["response", "question"] = "response"
    """What was labeled."""
    known: Annotated[Path | None, Option(metavar="FILE", section="known items")] = None
    """Table or JSON Lines: turn_id, response_id, criterion, acceptable."""
    max_fails: Annotated[NotNegative, Option(metavar="N")] = 0
    """Contradictions that a worker may have in a topic."""
    max_deviation: Annotated[NotNegative, Option(metavar="D")] = 0
    """Distance that does not count as a contradiction."""
    aggregator: Annotated[str, OneOf(AGGREGATORS), Option(section="grading")] = "majority"
    """From labels to a grade."""
    majority: Annotated[str | None, OneOf(SHARES)] = None
    """What a majority is (default plurality)."""
    tie: Annotated[str | None, OneOf(TIES)] = None
    """The grade without a majority (default mean-half-up)."""
    smoothing: Annotated[Amount | None, Option(metavar="N")] = None
    """Pseudo-labels of each worker, for aggregators that weigh workers (default 0.5)."""
    prior: Annotated[str | None, OneOf(PRIORS)] = None
    """The grades' probabilities before any label, for aggregators that model them (default estimated)."""
    with_judgments: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Judgments of LLM judges, compared with the workers in one model; this diagnostic changes no grade."""
    min_labels: Annotated[Positive, Option(metavar="K")] = 3
    """Items with fewer labels are listed."""
    too_fast: Annotated[Amount, Option(metavar="SECONDS")] = TOO_FAST
    """A label given in less is too fast."""
    filter_min: Annotated[int, Option(metavar="GRADE")] = FILTER_MIN
    """Filtered qrels: turns with at least one response of this grade or a higher one."""

    def _check(self) -> None:
        super()._check()
        if not self.scales and not self.prompts:
            raise UsageError("--scale is needed: the lowest and the highest label, e.g. --scale 0-3; or --prompt")
        aggregator = AGGREGATORS[self.aggregator]
        if (self.majority or self.tie) and not aggregator.votes:
            takers = " and ".join(name for name, row in AGGREGATORS.items() if row.votes)
            raise UsageError(f"--majority and --tie belong to {takers}, not to {self.aggregator}")
        if self.smoothing is not None and not aggregator.smoothed:
            takers = ", ".join(name for name, row in AGGREGATORS.items() if row.smoothed)
            raise UsageError(f"--smoothing belongs to {takers}, not to {self.aggregator}")
        if self.prior and not aggregator.priors:
            takers = ", ".join(name for name, row in AGGREGATORS.items() if row.priors)
            raise UsageError(f"--prior belongs to {takers}, not to {self.aggregator}")
        if (least := aggregator.least_smoothing) > _settings(self).smoothing:
            why = "without pseudo-labels a worker who always agrees would weigh infinitely much"
            raise UsageError(f"--smoothing {self.smoothing:g}: {self.aggregator} needs {least:g} or more; {why}")
        if self.wide and self.wide_map:
            raise UsageError("--wide and --wide-map: give one of them")
        if (self.wide or self.wide_map) and self.task != TASK:
            raise UsageError("--task is about a column of tasks; a survey read by --wide has none")
        if self.bank is not None and self.pool is not None:
            raise UsageError("--bank and --pool: give one of them")
        if self.known is None and (self.max_fails or self.max_deviation):
            raise UsageError("--max-fails and --max-deviation need --known")


class CrowdOutcome(msgspec.Struct, frozen=True):
    """A crowd's grades, and the warnings to read with them."""

    study: Study
    """The grades, the workers and the reliability of the labels."""
    warnings: tuple[Problem, ...]
    """Problems that did not stop the grading."""
    empty: bool
    """Whether a criterion has no label left, so that its qrels are empty."""

    @property
    def grades(self) -> Table[ItemGrade]:
        """The grade of each item, as in `items.tsv`; `to_dicts` makes rows for a data frame."""
        return Table(item_grades(self.study))

    @property
    def workers(self) -> Table[WorkerRow]:
        """Each worker under each criterion, as in `workers.tsv`."""
        return Table(self.study.workers)


def grade_crowd(plan: CrowdPlan, steps: Steps = quiet) -> CrowdOutcome:
    """Read every input, compute every file, and only then write."""
    need_extra("crowd", "reading workers' labels")
    plan = in_folders(plan, with_judgments=(JUDGMENTS,), bank=("bank.json", "response_bank.json"))
    warnings: list[Problem] = []
    known_file = KnownFile(Path(plan.known)) if plan.known is not None else None
    texts_at = plan.bank or plan.pool
    pool = read_pool_folder(plan.pool) if plan.pool is not None else None
    passages = pool is not None and UNITS[pool.unit].listed
    if passages and plan.unit != "response":
        raise UsageError(f"--unit {plan.unit}: {plan.pool} is a pool of passages")
    pooled = {Item(response.turn_id, response.response_id): response for response in pool.responses} if pool else {}
    bank = read_bank(plan.bank) if plan.bank is not None else None
    others = {pair: other.response_id for pair, other in other_orders(pool).items()} if pool else {}
    stated = tuple(map(find_criterion, plan.prompts))
    steps(Step("reading labels"))
    turns = {item.item_id: item.turn_id for item in pooled} if pool else None
    layout = _layout(plan, stated, known_file, turns, others)
    labels = read_tables(list(plan.labels), layout, warnings)
    scales = {name: table.grades for name, table in labels.items()}
    problems = LabelProblems()
    known = known_file.known(scales, problems, only=layout.only if plan.criteria else None) if known_file else ()
    graded = study(labels, known, _settings(plan), wanted=plan.criteria or None, steps=steps)
    for turn_id, item_id in graded.audit.unlabeled if graded.audit is not None else ():
        message = f"nobody labeled {item_id}"
        problems.append(file_problem("unlabeled_known_item", plan.known, message, turn_id=turn_id, severity="warning"))
    texts: dict[Item, str] | None = None
    digests: dict[Item, str] = {}
    if texts_at is not None:
        passage_texts = _passage_texts(plan.pool) if plan.pool is not None and passages else {}
        texts = {}
        for item in dict.fromkeys(chain.from_iterable(labels.items for labels in graded.labels.values())):
            if (text := _text(item, bank, pooled, passage_texts)) is not None:
                texts[item], digests[item] = text
                continue
            message = f"{item.item_id} has no text in the bank"
            row = file_problem("not_in_bank", str(texts_at), message, turn_id=item.turn_id, severity="warning")
            problems.append(row)
    empty = _empty(graded)
    subset = read_turns(plan.subset_turns) if plan.subset_turns is not None else None
    steps(Step("writing tables"))
    files = crowd_files(
        graded,
        unit="passage" if passages else plan.unit,
        listed={item: response.listed_as for item, response in pooled.items()} if passages else {},
        texts=texts,
        digests=digests,
        turns=subset,
        filter_min=plan.filter_min,
        whole=_whole(graded, pooled, others),
    )
    if plan.with_judgments:
        judges: list[Labels] = []
        for path in plan.with_judgments:
            judges += read_labels(path, grades_only=True)
        files["with_judgments.tsv"] = joint_tsv(graded.labels, judges).encode()
    options = _options(plan, {name: scales[name] for name in graded.labels})
    options["prompt"] = {prompt.prompt_id: prompt.digest for prompt in stated}
    write_crowd(plan.out, files, _inputs(plan), options, _table_digests(plan))
    return CrowdOutcome(
        study=graded,
        warnings=(*warnings, *problems, *problems.rest(), *cautions(graded), *empty),
        empty=bool(empty),
    )


def _layout(
    plan: CrowdPlan,
    prompts: Sequence[Criterion],
    known_file: KnownFile | None,
    turns: Mapping[str, str] | None,
    other_orders: Mapping[str, str],
) -> Layout:
    """How the tables of labels are read; `turns`: those of the pool's responses, by their ids."""
    return Layout(
        columns=plan.columns,
        scales=_scales(plan.scales, prompts),
        criteria=plan.criteria,
        turns=turns,
        other_orders=other_orders,
        beside=known_file.criteria if known_file else (),
        repeatable=known_file.items if known_file else (),
        words=_words(plan.words, {prompt.name: prompt for prompt in prompts}),
        missing=frozenset(map(value_key, plan.missing)),
        **plan.reading,
    )


def _inputs(plan: CrowdPlan) -> list[Path]:
    """The files that the plan names."""
    inputs = [path for path in (*plan.labels, *plan.with_judgments) if isinstance(path, Path)]
    inputs += [path for path in (plan.known, plan.wide_map, plan.subset_turns, plan.bank) if path is not None]
    if plan.pool is not None:
        inputs.append(pool_file(plan.pool))
    return inputs


def _table_digests(plan: CrowdPlan) -> dict[str, str]:
    """The digests of the tables that are no files, by their places."""
    digests: dict[str, str] = {}
    for number, table in enumerate(plan.labels, start=1):
        if not isinstance(table, Path):
            digests[f"table {number}"] = frame_digest(f"table {number}", table)
    return digests


def _words(given: Mapping[str, int], prompts: Mapping[str, Criterion]) -> Callable[[str, Sequence[int]], Words]:
    """What texts of labels stand for: what the user says, else what the levels of the criterion's prompt are called."""
    own_words = {folded(text): grade for text, grade in given.items()}

    def words(criterion: str, grades: Sequence[int]) -> Words:
        stated = prompts.get(criterion)
        return level_words(criterion, grades, [stated] if stated else bundled_criteria()) | own_words

    return words


def _scales(given: Sequence[str], prompts: Collection[Criterion]) -> Scales:
    """The one scale of all criteria, or the scales by name."""
    named: dict[str, tuple[int, ...]] = {}
    for prompt in prompts:
        named[prompt.name] = tuple(sorted(level.grade for level in prompt.scale.levels))
    for text in given:
        name, _, ends = text.rpartition("=")
        bounds = scale_bounds(ends)
        if bounds is None or bounds[1] - bounds[0] >= MAX_GRADES or text.startswith("="):
            raise UsageError(f"--scale {text}: expected a scale such as 0-3, -2-2 or relevance=0-3")
        grades = tuple(range(bounds[0], bounds[1] + 1))
        if name:
            named[name] = grades
        elif len(given) == 1 and not prompts:
            return grades
    if len(named) < len(given) + len(prompts):
        raise UsageError("--scale and --prompt: give one scale for all criteria, or one by name for each")
    return named


def _settings(plan: CrowdPlan) -> CrowdSettings:
    """What the plan says, with the defaults for options not given."""
    given = {name: getattr(plan, name, None) for name in CrowdSettings.__struct_fields__}
    return CrowdSettings(**{name: value for name, value in given.items() if value is not None})


def _empty(graded: Study) -> list[Problem]:
    """A warning for each criterion without a label left: its qrels are empty."""
    message = "no label is left: all were of known items or of workers who were removed"
    names = (name for name, labels in graded.labels.items() if not len(labels.item))
    return [file_problem("no_label_left", name, message, severity="warning") for name in names]


def _whole(graded: Study, pooled: Collection[Item], others: Mapping[str, str]) -> list[str]:
    """The criteria under which every response of the pool has a grade; of a pair, in one of its orders."""
    whole = []
    for name, labels in graded.labels.items():
        has_grade = {item for item, code in zip(labels.items, graded.grades[name].code, strict=True) if code >= 0}
        orders = ((item, Item(item.turn_id, others.get(item.item_id, item.item_id))) for item in pooled)
        if pooled and all(has_grade.intersection(either) for either in orders):
            whole.append(name)
    return whole


def _passage_texts(pool: Path) -> dict[str, str]:
    """The texts of a pool's passages by their keys; none where the pool stands alone."""
    if not pool_file(pool).with_name("passages.jsonl").exists():
        return {}
    return {key: passage.text for key, passage in read_pool_folder(pool, "passages.jsonl").passages.items()}


def _text(
    item: Item,
    bank: Mapping[str, str] | None,
    pooled: Mapping[Item, PooledResponse],
    passages: Mapping[str, str],
) -> tuple[str, str] | None:
    """The text of an item for people and the digest that names it in gold, by the bank or else the pool."""
    if bank is None:
        response = pooled.get(item)
        if response is None:
            return None
        text = passages.get(response.passages[0], "") if UNITS[response.unit].listed else response.shown
        return text, response_digest(response)
    texts = banked(bank, item.item_id)
    if texts is None:
        return None
    return both(*texts) if len(texts) > 1 else texts[0], banked_digest(texts)


def _options(plan: CrowdPlan, scales: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The options that determine the output, as JSON values."""
    names = "aggregator max_fails max_deviation min_labels too_fast filter_min unit task wide"
    values: dict[str, Any] = {name: getattr(plan, name) for name in names.split()}
    settings = _settings(plan)
    aggregator = AGGREGATORS[plan.aggregator]
    if aggregator.votes:
        values |= {"majority": settings.majority, "tie": settings.tie}
    if aggregator.smoothed:
        values["smoothing"] = settings.smoothing
    if aggregator.priors:
        values["prior"] = settings.prior
    scales = {name: list(grades) for name, grades in scales.items()}
    values |= {"label": dict(plan.words), "missing": list(plan.missing), "table": plan.table}
    values |= {"workers": list(plan.workers)} if plan.workers else {}
    values |= {"repeated": plan.repeated} if plan.repeated == "last" else {}
    return {**values, "criterion": list(plan.criteria), "column": dict(plan.columns), "scales": scales}
