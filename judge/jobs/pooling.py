"""From a folder of runs to a pool: responses selected, passages checked, low quality screened."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field

from judge.ask.criteria import choose_prompts
from judge.ask.prompt import check_unit, unit_of
from judge.errors import InputError, UsageError, refuse
from judge.io.files import StrPath, read_stored, sha256
from judge.io.ids import natural_key, run_turn_id
from judge.io.plan import Call, OneOf, Option, Positive, pairs
from judge.io.steps import Step, Steps, quiet
from judge.io.table import Table
from judge.io.text import count, shown
from judge.jobs.manifest import ADDED, LOOKED, OutputFolder, check_extended, pool_configuration
from judge.jobs.options import JudgedPrompts, ResponseLimits, RunFiles, usual_criteria
from judge.passages.hashes import Hashes, open_hashes
from judge.plugins import collection
from judge.pool.build import Screen, lacking_texts
from judge.pool.conversation import turns_shown
from judge.pool.intake import Submitted, check_years, leave_out, make_pool, read_runs
from judge.pool.listed_checks import check_pairs, with_one_text, without_graded
from judge.pool.lists import read_grades, read_relevance, read_turns, told_apart
from judge.pool.pairs import pairs_pool
from judge.pool.records import MissingPassages, OverLimit, Pool, PooledResponse, ProvenanceSource
from judge.pool.run_choice import DEFAULT_MEASURE, RUN_RULES, RunChoice, listed_runs
from judge.pool.runs import with_runs
from judge.pool.screen import DEFAULTS, ScreenRow, Thresholds, screen, screen_pool, without_evidence
from judge.pool.selection import DEFAULT_MINIMUM, Selection, draw_turns, read_draw
from judge.records import JudgedUnit, Problem, Record
from judge.runs.check import problem
from judge.runs.formats import Rules, read_run, rules_of
from judge.runs.formats.trec import MAX_PASSAGES
from judge.runs.records import Topic, Turn
from judge.runs.sources import Sources, find_sources
from judge.runs.topics import read_topics, turns_by_id
from judge.units import UNITS

Screening = Literal["off", "flag", "exclude"]
"""Whether low-quality responses are looked for, and whether they are listed or left out."""


class Pooling(RunFiles, ResponseLimits, section="screen"):
    """Which responses of the runs are pooled, and how."""

    screen: Screening = "flag"
    """Empty, repeated, copied, off-passage or non-English responses: list them (default) or leave them out."""
    thresholds: Annotated[
        dict[Annotated[str, OneOf(Thresholds.__struct_fields__)], Annotated[float, Field(allow_inf_nan=False)]],
        BeforeValidator(pairs),
        Option("screen-threshold", metavar="NAME=VALUE", repeat=True),
    ] = Field(
        default_factory=dict,
        description="Where a response is flagged "
        f"({', '.join(f'{name} {value:g}' for name, value in msgspec.structs.asdict(DEFAULTS).items())}).",
    )
    passages: Annotated[tuple[Path, ...], Option(metavar="PATH", section="passages")] = ()
    """The collection's passages: JSONL, TREC-web, folders of them, .gz .bz2 .zst too, an index of `judge passages
    index`, ir:NAME of ir_datasets; if given, only their texts count as evidence."""
    passage_hashes: Annotated[Path | None, Option(metavar="FILE")] = None
    """The collection's list of passage MD5s, or an index of it: no other text counts as evidence."""
    missing_passages: MissingPassages = "skip-response"
    """Where a used passage has no text: stop, leave the response without a grade (default), or judge it by the passages
    that have one."""
    depth: Annotated[Positive | None, Option(metavar="K", section="pooling")] = None
    """Responses per turn and run, by rank (default 1); or passages (default 10, at most 1,000)."""
    provenance: ProvenanceSource | None = None
    """Of passages: the first that a turn lists (default); the first of those that its responses use; or both, the first
    that it lists and all that the response ranked first uses (default where responses are judged too)."""
    fill: Annotated[Path | None, Option(metavar="QRELS")] = None
    """Of passages: only those that these grades by people lack; the qrels of both are written apart and together."""
    over_limit: OverLimit = "flag"
    """What to do with a response over the token limit."""
    only_turns: Annotated[Path | None, Option("turns", metavar="FILE")] = None
    """Pool only these turns, one id per line."""
    draw: Annotated[str | int | None, Option(metavar="N[@SEED]")] = None
    """Pool at most N responses: those of whole turns, drawn at random by topic (default seed 1). Of pairs, those for at
    most N judgments: runs and turns equally often, and the same ones first whatever N is."""
    passage_qrels: Annotated[Path | None, Option(metavar="FILE")] = None
    """Pool only responses with a relevant used passage, by these grades of passages."""
    min_relevance: Annotated[Positive | None, Option(metavar="N")] = None
    """Lowest relevant grade (default 1)."""
    max_rank: Annotated[Positive | None, Option(metavar="N")] = None
    """Last rank looked at for a relevant passage (default --depth; CAsT 2022: at least 3)."""
    select_runs: Annotated[str | Path | None, Option(metavar="FILE|RULE")] = Field(
        None,
        description="Pool only the runs of this file, one id per line, or those that a rule chooses: "
        f"{', '.join(RUN_RULES)}.",
    )
    measure: str | None = Field(
        None,
        description=f"Measure by which the rules compare runs, as ir-measures names it (default {DEFAULT_MEASURE}).",
    )
    teams: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run, tab, team, where the runs do not name their team."""
    extend: Annotated[Path | None, Option(metavar="OUT")] = None
    """Add to the pool of an earlier output folder, keeping its ids. To judged pairs, a larger --draw adds those of runs
    that their ratings do not tell apart."""
    unit: Annotated[JudgedUnit | None, Option(hidden=True)] = None
    """What is pooled: each response, each run's dialogue of a topic, each citation, pairs of responses, or passages; by
    default as the prompts say, or responses."""

    def sources(self) -> Sources:
        """The files that are a run each, and the tables, which are read."""
        lists = self.unit is not None and UNITS[self.unit].listed
        return find_sources(self.runs, self.columns, self.format, lists=lists)

    def sources_beside_lists(self) -> Sources:
        """The same without lists of passages, which are judged in a part of their own; these, where there is no run."""
        return find_sources(self.runs, self.columns, self.format, lists=True).without_lists

    def _check(self) -> None:
        if self.screen == "off" and self.thresholds:
            raise UsageError("--screen-threshold needs the screen: --screen flag or exclude")
        for path in (self.topics, self.only_turns, self.passage_qrels, self.fill, self.teams):
            if path is not None and path.exists() and not path.is_file():
                raise UsageError(f"{path}: what decides the pool is read again for its digest, so it must be a file")
        for path in self.passages:
            # Before runs are read, which may take minutes.
            if opened := collection(path, "opened"):
                opened("docs")
        if self.unit is not None:
            unit = UNITS[self.unit]
            fields = type(self).model_fields
            usual = {name: fields[name].get_default(call_default_factory=True) for name in unit.unfit}
            names = [name for name in unit.unfit if getattr(self, name) not in (usual[name], "off")]
            if self.depth == unit.depth:
                names = [name for name in names if name != "depth"]
            self.refuse_unused(names, unit.why_unfit)
            for other in UNITS.values():
                if other is not unit:
                    about = f"about {other.nouns.responses}, and {unit.nouns.responses} are judged here"
                    self.refuse_unused(other.own_options, about)
            if unit.listed and self.depth is not None and self.depth > MAX_PASSAGES:
                raise UsageError(f"--depth {self.depth}: a turn lists at most {MAX_PASSAGES} passages that count")
        if self.draw is not None:
            read_draw(str(self.draw))
        if self.passage_qrels is None and (self.max_rank, self.min_relevance) != (None, None):
            raise UsageError("--min-relevance and --max-rank are about graded passages (--passage-qrels)")
        ruled = self.select_runs in RUN_RULES
        if not ruled and (self.measure, self.teams) != (None, None):
            raise UsageError(
                f"--measure and --teams are about the rules for runs (--select-runs {'|'.join(RUN_RULES)})"
            )
        if ruled and self.passage_qrels is None:
            raise UsageError(f"the rule {self.select_runs} compares runs by passage qrels (--passage-qrels)")
        if ruled and self.extend is not None:
            raise UsageError(
                f"the rule {self.select_runs} compares all runs at once: pool them anew, or name runs in a file"
            )


class JudgedPool(Pooling, JudgedPrompts, Call):
    """What is pooled, and what it is judged for."""


class PoolPlan(
    JudgedPool,
    section="output",
    main="runs topics passages column profile criteria depth turns draw screen extend out",
):
    """Everything `judge pool` can be told."""

    unit: JudgedUnit | None = None
    """What is pooled (default: what the criteria are about): each response, for each run and topic the whole dialogue,
    each citation of a sentence, pairs of responses, or the passages that runs list."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Output folder (default judge-out, or that of --extend)."""
    replace: bool = False
    """Write over another pool, or its results, in --out."""


def pooled_unit(plan: PoolPlan, sources: Callable[[], Sources]) -> JudgedUnit:
    """What a plan pools: what it names, what its criteria are about, what an extended pool has, or what is usual.

    `sources`: reads those of the plan, which are looked at only for what is usual.
    """
    names = plan.criteria
    if not (names or plan.prompts):
        if plan.unit is not None:
            return plan.unit
        if plan.extend is not None:
            return OutputFolder(plan.extend).pool.unit
        names = usual_criteria(sources(), plan.profile, plan.format)
    prompts = [*chain.from_iterable(choose_prompts(names, plan.prompts, ()).values())]
    if plan.unit is not None:
        check_unit(prompts, plan.unit)
    return unit_of(prompts)


class Pooled(Record, frozen=True):
    """A pool, and the inputs and choices that led to it."""

    submitted: Submitted
    pool: Pool
    turns: dict[str, Turn] | None
    """The turns of the topics and those of interactive runs, by id; None without either."""
    screened: tuple[ScreenRow, ...] | None
    """The screen's flags of pooled responses; None if the screen was off, and for other units."""
    choice: str | None
    """Which runs a rule chose and why, as a table; None without a rule."""
    configured: dict[str, Any]
    """Everything that determines the pool, for the manifest."""
    asks: bool = False
    """Whether topics or tables say what was asked, so that turn ids are checked."""
    notes: tuple[str, ...] = ()
    """In words, what was taken for what."""


def pool_runs(
    pooling: Pooling, steps: Steps = quiet, sources: Sources | None = None, beside: Pooled | None = None
) -> Pooled:
    """Read, check, select, pool and screen; `sources` are the plan's, where they were read before.

    `beside`: what is pooled of the same runs, whose runs and turns are chosen here too.
    """
    unit = UNITS[pooling.unit or "response"]
    combine = COMBINED.get(unit.name)
    of_file = None if pooling.topics is None else read_topics(pooling.topics)
    sources = sources or pooling.sources()
    topics = topics_of(pooling.topics, of_file, sources)
    turns = turns_by_id(topics) if topics is not None else None
    notes: list[str] = []
    selection = _selection(pooling, sources, turns, notes)
    hashes = open_hashes(pooling.passage_hashes) if pooling.passage_hashes is not None else None
    earlier = OutputFolder(pooling.extend) if pooling.extend is not None else None
    previous = earlier.pool if earlier is not None else None
    if previous is not None and previous.responses and previous.unit != unit.name:
        before = UNITS[previous.unit].nouns.responses
        raise UsageError(f"{pooling.extend}: a pool of {before}, to which no {unit.nouns.responses} are added")
    if previous is not None and sources.tables is not None and turns is not None:
        _check_same_ids(turns, previous, pooling.extend)
    thresholds = _thresholds(pooling)
    screening = partial(_reason_against, thresholds) if pooling.screen == "exclude" else None
    made = partial(
        _made,
        pooling,
        sources,
        topics,
        hashes=hashes,
        previous=previous,
        screening=screening,
        beside=beside,
        steps=steps,
    )
    if pooling.draw is not None and beside is not None:
        drawn = frozenset(run_turn_id(response.turn_id) for response in beside.pool.responses)
        selection = msgspec.structs.replace(selection, turns=drawn)
    elif pooling.draw is not None and combine is None:
        # Added runs are pooled on the turns that were drawn before.
        earlier_ones = previous.responses if previous is not None else ()
        drawn = _drawn(str(pooling.draw), earlier_ones, lambda: made(selection)[2])
        selection = msgspec.structs.replace(selection, turns=drawn)
    submitted, choice, pool = made(selection)
    for counter in (submitted.count_tokens, *submitted.counters.values()):
        counter.forget()
    screened = pooling.screen != "off" and unit.whole_response
    steps(Step("screening" if screened else "pooling"))
    pool = with_runs(submitted, pool, turns, selection, previous, brings_texts=not pooling.passages)
    submitted = _with_absent_evidence(submitted, pool, pooling, hashes)
    configured = pool_configuration(
        submitted,
        pool,
        _settings(pooling, hashes),
        pooling.topics,
        earlier.runs if earlier is not None and combine is None else {},
    )
    if earlier is not None:
        if previous is not None and combine is not None:
            _keep_draws(earlier, configured, more=len(pool.responses) > len(previous.responses))
        check_extended(earlier, configured, _files_of(pooling))
    return Pooled(
        submitted=submitted.without_candidates(),
        pool=pool,
        turns=turns_shown(pool, turns),
        screened=screen_pool(pool, thresholds) if screened else None,
        choice=choice.table if choice else None,
        configured=configured,
        asks=topics is not None,
        notes=tuple(notes),
    )


def _check_same_ids(turns: Mapping[str, Turn], previous: Pool, folder: Path | None) -> None:
    """Refuse a table that asks what an earlier one asks, by ids of which none is the same.

    Every answer of one table would be missing in the other.
    """
    if not turns.keys().isdisjoint(previous.turns):
        return
    before = {turn.utterance: turn.turn_id for turn in previous.turns.values()}
    for turn in turns.values():
        if turn.utterance in before:
            raise InputError(
                f"{shown(turn.utterance)} is the turn {turn.turn_id} here and {before[turn.utterance]} in {folder}: "
                "expected the ids of the earlier table, or none where it has none"
            )


def _drawn(draw: str, earlier: Sequence[PooledResponse], pooled: Callable[[], Pool]) -> frozenset[str]:
    """The turns of the earlier responses or, without any, those that are drawn of what would be pooled.

    A UsageError if the turn that is drawn first has more responses than are wanted.
    """
    if earlier:
        return frozenset(run_turn_id(response.turn_id) for response in earlier)
    sizes = Counter(run_turn_id(response.turn_id) for response in pooled().responses)
    drawn = draw_turns(sizes, *read_draw(draw))
    if sizes and not drawn:
        raise UsageError(f"--draw {draw}: the turn that is drawn first has more responses")
    return drawn


def _files_of(pooling: Pooling) -> dict[str, Path | None]:
    """The files that decide what is pooled, by the options that name them."""
    return {
        "topics": pooling.topics,
        "passage-hashes": pooling.passage_hashes,
        "turns": pooling.only_turns,
        "passage-qrels": pooling.passage_qrels,
        "fill": pooling.fill,
        "teams": pooling.teams,
    }


def topics_of(path: Path | None, topics: Sequence[Topic] | None, sources: Sources) -> Sequence[Topic] | None:
    """The topics of a file, or those of tables; None without either, a UsageError with both."""
    asked = sources.tables.topics if sources.tables is not None else None
    if path is None:
        return asked
    if asked is not None:
        raise UsageError(
            f"{path}: the table has questions, which are the topics; with --topics, give the answers' turn ids in its "
            "column id, and no questions"
        )
    return topics


def _made(
    pooling: Pooling,
    sources: Sources,
    topics: Sequence[Topic] | None,
    selection: Selection,
    hashes: Hashes | None,
    previous: Pool | None,
    screening: Screen | None,
    beside: Pooled | None,
    steps: Steps,
) -> tuple[Submitted, RunChoice | None, Pool]:
    """The runs, read, checked and selected; the rule that chose among them, None without a rule; and their pool."""
    submitted, choice = _chosen(pooling, sources, topics, selection, hashes, previous, steps)
    if beside is not None:
        others = {run.run_id: "its responses were not chosen" for run in beside.submitted.runs if not run.selected}
        submitted = leave_out(submitted, set(submitted.names.values()) - others.keys(), others)
    unit = UNITS[selection.unit]
    if unit.part_of_response:
        _check_rules(submitted, lambda rules: rules.cited is not None, "their formats have no citations of sentences")
    if unit.listed:
        submitted = _listed(submitted, pooling, hashes)
    else:
        lists = "they list passages and have no responses; the passages are judged by --criteria passage_relevance"
        _check_rules(submitted, lambda rules: rules.form != "list", lists)
    if topics is None and unit.by_topic:
        silent = f"{unit.nouns.responses} need a topics file, which says what the user said (--topics)"
        _check_rules(submitted, lambda rules: rules.own_turns, silent)
    elif topics is None:
        _check_turns(selection, submitted, previous)
    steps(Step("pooling"))
    combine = COMBINED.get(unit.name)
    pool = make_pool(
        submitted,
        pooling.passages or None,
        over_limit=pooling.over_limit,
        previous=previous if combine is None else None,
        hashes=hashes,
        screen=screening,
        steps=steps,
    )
    if combine is not None:
        pool = combine(pool, pooling, previous)
    if unit.listed and pooling.passages and pool.responses and not pool.passages:
        raise InputError(_of_another_collection(submitted, pooling))
    return submitted, choice, pool


def _chosen(
    pooling: Pooling,
    sources: Sources,
    topics: Sequence[Topic] | None,
    selection: Selection,
    hashes: Hashes | None,
    previous: Pool | None,
    steps: Steps,
) -> tuple[Submitted, RunChoice | None]:
    """The runs, read and checked, of which a rule or a list chooses some; and the rule, None without one."""
    choice = None
    if pooling.select_runs in RUN_RULES and selection.relevance:
        choice = RunChoice(pooling.select_runs, selection.relevance.grades, pooling.measure, pooling.teams)
    submitted = read_runs(
        sources,
        topics,
        format=pooling.format,
        selection=selection,
        limits=pooling.limits(turns_by_id(topics or ())),
        hashes=hashes,
        measured=choice.measure if choice else None,
        steps=steps,
    )
    if choice is not None:
        check_years(submitted)
        submitted = choice.applied(submitted)
    elif pooling.select_runs is not None:
        submitted = listed_runs(Path(pooling.select_runs), submitted, previous)
    return submitted, choice


def _listed(submitted: Submitted, pooling: Pooling, hashes: Hashes | None) -> Submitted:
    """The passages to be judged, each with one text where the runs have the texts."""
    refuse(submitted.unusable, "runs that cannot be judged")
    if pooling.provenance == "used":
        _check_rules(submitted, lambda rules: rules.form != "list", "they do not say which passages a response uses")
    check_pairs(submitted)
    if pooling.fill is not None:
        answered = {candidate.turn_id for candidate in submitted.candidates}
        submitted = without_graded(submitted, read_grades(pooling.fill, answered), str(pooling.fill))
    return submitted if pooling.passages or hashes is not None else with_one_text(submitted)


def _of_another_collection(submitted: Submitted, pooling: Pooling) -> str:
    """What to say where the collection has none of the passages that runs list."""
    first = submitted.candidates[0]
    file = next(file for file, run_id in submitted.names.items() if run_id == first.run_id)
    return (
        f"{', '.join(map(str, pooling.passages))}: none of the passages that the runs list is there, such as "
        f"{shown(first.used[0].passage_id)} of {file}, turn {first.turn_id}: another collection?"
    )


def _paired(pool: Pool, pooling: Pooling, earlier: Pool | None) -> Pool:
    """The pairs of a pool of responses, those of an earlier pool first."""
    drawn = read_draw(str(pooling.draw)) if pooling.draw is not None else ()
    rated = _ratings(pooling.extend) if pooling.extend is not None else None
    apart = told_apart(rated) if rated is not None else frozenset[tuple[str, str]]()
    return pairs_pool(pool, *drawn, earlier=earlier, apart=apart)


COMBINED: Mapping[JudgedUnit, Callable[[Pool, Pooling, Pool | None], Pool]] = {"pair": _paired}
"""The units that are made and drawn from a whole pool of responses, each from pool, options and earlier pool."""


def _ratings(folder: Path) -> Path | None:
    """The table of the ratings in an output folder; None if nobody has rated runs there."""
    path = folder / "ratings.tsv"
    return path if path.exists() else None


def _keep_draws(earlier: OutputFolder, configured: dict[str, Any], *, more: bool) -> None:
    """Record the draws that led to earlier pairs, and then the one that led to more.

    A draw after a look at ratings stands after a comma, another one after a plus.
    """
    if earlier.runs != configured["runs"]:
        raise UsageError(
            f"{earlier.path}: --extend adds pairs of the same runs; pool pairs of other runs into a new folder"
        )
    manifest = earlier.manifest
    before = manifest["configuration"]["pooling"].get("draw") if manifest else None
    now = configured["pooling"].pop("draw", None)
    if before is not None:
        mark = ADDED if _ratings(earlier.path) is None else LOOKED
        configured["pooling"]["draw"] = f"{before}{mark}{now or 'all'}" if more else before


def _with_absent_evidence(submitted: Submitted, pool: Pool, pooling: Pooling, hashes: Hashes | None) -> Submitted:
    """The submissions with a problem for each run whose evidence mostly does not exist, as far as that can be known."""
    if not pooling.passages and hashes is None:
        return submitted
    exists = None
    if hashes is not None and not pooling.passages:
        keys = sorted({key for response in pool.responses for key in lacking_texts(response, pool)})
        listed = {key for key, md5 in zip(keys, hashes.find(keys), strict=True) if md5 is not None}
        exists = listed.__contains__
    named = without_evidence(pool, exists)
    told = {row.file for row in submitted.problems if row.code == "absent_evidence"}
    rows = [
        problem("absent_evidence", run.file, rules_of(run.format).turns, named[run.run_id])
        for run in submitted.runs
        if run.run_id in named and run.file not in told
    ]
    return msgspec.structs.replace(submitted, problems=Table((*submitted.problems, *rows))) if rows else submitted


def _check_rules(submitted: Submitted, fits: Callable[[Rules], bool], why: str) -> None:
    """Refuse runs whose format has not what the unit needs."""
    other = [run.run_id for run in submitted.runs if run.selected and not fits(rules_of(run.format))]
    if other:
        raise UsageError(f"{', '.join(map(shown, sorted(other, key=natural_key)[:5]))}: {why}")


def _check_turns(selection: Selection, submitted: Submitted, previous: Pool | None) -> None:
    """Refuse selected turns that no run has: without topics, only the runs show a mistyped id."""
    turn_ids = {candidate.turn_id for candidate in submitted.candidates} | {row.turn_id for row in submitted.exclusions}
    if previous:
        turn_ids |= {response.turn_id for response in previous.responses} | {row.turn_id for row in previous.exclusions}
    turn_ids = set(map(run_turn_id, turn_ids))
    absent = sorted((selection.turns or frozenset()) - turn_ids, key=natural_key)
    if absent:
        names = ", ".join(map(shown, absent[:5]))
        raise UsageError(f"no run has the selected turns {names}; --topics FILE tells whether they exist")


def _reason_against(
    thresholds: Thresholds, text: str, passages: Sequence[str], complete: bool
) -> tuple[str, str] | None:
    """Reason and detail of an exclusion by the screen; None if the response stays."""
    flags = screen(text, passages, thresholds, complete=complete)
    return (f"screen_{flags[0].code}", "; ".join(flag.detail for flag in flags)) if flags else None


def _thresholds(pooling: Pooling) -> Thresholds:
    return msgspec.structs.replace(DEFAULTS, **pooling.thresholds)


def _selection(pooling: Pooling, sources: Sources, turns: dict[str, Turn] | None, notes: list[str]) -> Selection:
    relevance = None
    if pooling.passage_qrels is not None:
        answered: set[str] = set()
        if turns is None and sources.files:
            # Without topics, a run says whether the qrels name turns or topics of one turn.
            first = read_run(sources.files[0], pooling.format).run
            answered = {turn.turn_id for turn in first.turns} if first is not None else answered
        relevance = read_relevance(
            pooling.passage_qrels,
            minimum=DEFAULT_MINIMUM if pooling.min_relevance is None else pooling.min_relevance,
            max_rank=pooling.max_rank,
            known=turns,
            answered=answered,
            notes=notes,
        )
    only = read_turns(pooling.only_turns, turns) if pooling.only_turns is not None else None
    unit = pooling.unit or "response"
    return Selection(
        depth=pooling.depth or UNITS[unit].depth,
        turns=only,
        relevance=relevance,
        provenance=pooling.provenance or "ranked",
        unit=unit,
    )


def _settings(pooling: Pooling, hashes: Hashes | None) -> dict[str, Any]:
    """The options that the pool is made with, as JSON values; files are named by their digests."""

    def file(path: StrPath | None) -> str | None:
        return None if path is None else sha256(read_stored(Path(path)))

    ruled = pooling.select_runs in RUN_RULES
    unit = UNITS[pooling.unit or "response"]
    return {
        # A pool of responses names no unit.
        **({} if unit.whole_response else {"unit": unit.name}),
        "depth": pooling.depth or unit.depth,
        **({"provenance": pooling.provenance or "ranked", "fill": file(pooling.fill)} if unit.listed else {}),
        "over_limit": pooling.over_limit,
        "missing_passages": pooling.missing_passages,
        "passage_hashes": hashes.digest if hashes else None,
        "only_turns": file(pooling.only_turns),
        **({"draw": "{}@{}".format(*read_draw(str(pooling.draw)))} if pooling.draw is not None else {}),
        "passage_qrels": file(pooling.passage_qrels),
        "min_relevance": pooling.min_relevance,
        "max_rank": pooling.max_rank,
        # A list of runs grows with the pool, and the configuration names the runs anyway.
        "select_runs": pooling.select_runs if ruled or pooling.select_runs is None else "listed",
        "measure": pooling.measure,
        "teams": file(pooling.teams),
        "screen": pooling.screen,
        "thresholds": None if pooling.screen == "off" else msgspec.to_builtins(_thresholds(pooling)),
    }


def check_complete(pool: Pool) -> None:
    """Refuse a pool in which a used passage has no text."""
    problems = [
        Problem(
            code="missing_passage_text",
            severity="error",
            file="passages",
            turn_id=response.turn_id,
            path=response.response_id,
            message=f"{len(lacking)} of {len(response.passages)} used passages have no text: {', '.join(lacking[:5])}; "
            f"given by {', '.join(sorted({entry.run_id for entry in response.runs}, key=natural_key)[:5])}",
        )
        for response in pool.responses
        if (lacking := lacking_texts(response, pool))
    ]
    refuse(problems, f"used passages without a text: {count(len(problems), 'response')}")
