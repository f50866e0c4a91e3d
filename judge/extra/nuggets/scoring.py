"""Recall and precision of runs, and a judge beside people: what `judge nuggets score` and `agree` do, in Python."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from judge.ask.records import Judgment
from judge.ask.subjects import check_unit
from judge.errors import UsageError
from judge.extra.nuggets.forms import read_bank
from judge.extra.nuggets.labels import PairLabels, read_claims_of, read_labels_of
from judge.extra.nuggets.people import (
    CorrectedRecall,
    MatchAgreement,
    corrected_grid,
    corrected_recall,
    match_agreement,
)
from judge.extra.nuggets.precision import (
    ClaimUnit,
    NuggetPrecision,
    ReportShares,
    argue_grid,
    claim_units,
    claims_grid,
    nugget_precision,
    precision_grid,
    precision_names,
    report_shares,
)
from judge.extra.nuggets.records import NuggetBank
from judge.extra.nuggets.scores import (
    MAIN,
    RECALLS,
    NuggetScore,
    RunUnit,
    aspects_grid,
    measures_grid,
    nugget_scores,
    run_units,
    score_grid,
    units_grid,
)
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import cluster_of, clustering, topic_of
from judge.io.plan import OneOf, Option, Seed, pairs
from judge.io.table import Table
from judge.io.text import count
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.options import ClusterUnit
from judge.pool.bank import Beside, pool_file, read_pool_folder
from judge.pool.records import Pool
from judge.records import Record
from judge.results.citations import cited_responses
from judge.results.turns import first_ranked, turns_of_runs


class NuggetMatches(ClusterUnit):
    """Matches of the responses of a pool with a bank."""

    pool: Annotated[Path, Option(metavar="OUT|FILE")]
    """Output folder with the pool."""
    bank: Annotated[Path, Option(metavar="FILE|DIR")]
    """Bank of nuggets in any form, or its folder."""
    matches: Annotated[tuple[Path, ...], Option(metavar="FILE|DIR")]
    """Folders of `judge nuggets match`, or files of matches; of several judges the majority counts."""
    renamed: Annotated[dict[str, str], BeforeValidator(pairs), Option("rename", metavar="NAME=RUN", repeat=True)] = (
        Field(default_factory=dict)
    )
    """The run of the pool that the matches call NAME; may be repeated."""


class NuggetScorePlan(NuggetMatches):
    """Everything `judge nuggets score` can be told."""

    claims: Annotated[tuple[Path, ...], Option(metavar="FILE|DIR")] = ()
    """Labels of claims, or folders of `judge nuggets claims`: precision, and F with strict recall."""
    citations: Annotated[Path | None, Option(metavar="DIR")] = None
    """Output folder of `judge run` under the criterion support: ARGUE's measures of sentences and citations, and F."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """People's matches of a part of the responses, to correct the recall by a judge."""
    inclusion: Annotated[float | None, Field(gt=0, le=1), Option(metavar="P")] = None
    """Probability with which units were drawn for --gold, where its rows do not say it."""
    main: Annotated[str, OneOf(RECALLS)] = MAIN
    """Recall that runs are ranked by."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for the tables."""


class NuggetScores(Record, frozen=True):
    """The recall of every run, and the precision where claims are labeled."""

    scores: Table[NuggetScore]
    """One row for each run and measure."""
    units: Table[RunUnit]
    """Every turn, or topic, that a run had to answer."""
    corrected: Table[CorrectedRecall]
    """Empty without people's matches beside those of a judge."""
    precision: Table[NuggetPrecision]
    """Empty without labels of claims."""
    claims: Table[ClaimUnit]
    """What carries the claims of every unit; empty without labels of claims."""
    grids: tuple[Table[Any], ...]
    """The tables for people."""
    notes: tuple[str, ...]
    """A sentence each."""


def score_nuggets(plan: NuggetScorePlan) -> NuggetScores:
    """Measure runs by the nuggets that their responses support, and write the tables if the plan names a folder."""
    bank, pool = read_bank(plan.bank), read_pool_with_runs(plan.pool)
    files = [*plan.matches, *plan.gold, *plan.claims]
    if plan.out is not None:
        check_apart(plan.out, [pool_file(plan.pool), plan.bank, *files, *filter(None, [plan.citations])])
    known = read_labels_of(plan.matches, bank, pool, plan.renamed)
    units = run_units(pool, bank, known)
    if not units:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    scores = nugget_scores(units, plan.cluster)
    notes = _notes(pool, bank, known, units)
    notes += clustering((response.topic_id for response in pool.responses), plan.cluster)
    grids = {"runs": score_grid(scores, plan.main), "measures": measures_grid(scores)}
    corrected: tuple[CorrectedRecall, ...] = ()
    if plan.gold:
        corrected = _corrected(plan, pool, bank, known, units)
        grids["corrected"] = corrected_grid(corrected, plan.main)
    precision: tuple[NuggetPrecision, ...] = ()
    claims: tuple[ClaimUnit, ...] = ()
    if plan.citations is not None:
        grids["argue"] = argue_grid(_reports(units, read_judged(plan.citations, "support")), plan.cluster)
    lines = {"units": units_grid(units)}
    if any(nugget.aspect for nugget in bank.nuggets):
        lines["aspects"] = aspects_grid(units, plan.main, plan.cluster)
    if plan.claims:
        carried = read_claims_of(plan.claims, bank, pool)
        names, claims = precision_names(carried), claim_units(units, carried)
        precision = nugget_precision(claims, names, plan.cluster)
        grids["precision"] = precision_grid(precision, names)
        lines["claims"] = claims_grid(claims, names)
        if carried.outside:
            notes += (f"{count(carried.outside, 'row')} of claims of responses that are not in the pool",)
    if plan.out is not None:
        written = {name: content for stem, grid in grids.items() for name, content in grid.files(stem).items()}
        written |= {f"{stem}.tsv": grid.files(stem)[f"{stem}.tsv"] for stem, grid in lines.items()}
        replace_folder(plan.out, written, "scores.sha256", inputs=files)
    shown = tuple(grids.values())
    return NuggetScores(Table(scores), Table(units), Table(corrected), Table(precision), Table(claims), shown, notes)


def _corrected(
    plan: NuggetScorePlan, pool: Pool, bank: NuggetBank, known: PairLabels, units: Sequence[RunUnit]
) -> tuple[CorrectedRecall, ...]:
    if known.people:
        raise UsageError("--gold corrects the matches of a judge, and --matches has those of people")
    gold = read_labels_of(plan.gold, bank, pool, plan.renamed)
    if not gold.people:
        raise UsageError("--gold: expected people's matches, with `assessor` in every row")
    name = ", ".join(map(str, plan.gold))
    people = run_units(pool, bank, gold)
    return corrected_recall(units, people, gold, plan.main, name, plan.inclusion, plan.cluster)


def _reports(units: Sequence[RunUnit], judged: JudgedFolder) -> dict[str, list[tuple[RunUnit, ReportShares]]]:
    """What the reports of the runs whose citations were judged have; a citation is one pooled item of its sentence."""
    prompt, pool = judged.criteria[0], judged.pool
    check_unit((prompt,), "citation")
    of_prompt = (each for each in judged.results if (each.criterion, each.variant) == (prompt.name, prompt.variant))
    borne = {
        each.response_id: each.grade in prompt.scale.positive
        for each in of_prompt
        if isinstance(each, Judgment) and not each.unable
    }
    # A passage without a text has no entry.
    ids = {key: passage.passage_id for key, passage in pool.passages.items()}
    cited, reports = cited_responses(pool), defaultdict[str, list[tuple[RunUnit, ReportShares]]](list)
    for unit in units:
        if unit.run_id in cited and unit.status != "left_out":
            turns = (of for turn, of in cited[unit.run_id].items() if unit.scope in (turn, topic_of(turn)))
            sentences = [
                {ids.get(key, key): borne.get(item.response_id) for item in items for key in item.passages}
                for of in turns
                for items in of
            ]
            reports[unit.run_id].append((unit, report_shares(sentences, unit)))
    return dict(reports)


def read_pool_with_runs(path: Path, *more: Beside) -> Pool:
    """A pool with its runs and exclusions, as far as they stand beside it."""
    beside: tuple[Beside, ...] = ("excluded.tsv", "runs.jsonl")
    there = (name for name in beside if pool_file(path).with_name(name).exists())
    return read_pool_folder(path, *there, *more)


def _notes(pool: Pool, bank: NuggetBank, known: PairLabels, units: Sequence[RunUnit]) -> tuple[str, ...]:
    turns = {response.turn_id for response in pool.responses}
    scopes = turns | {response.topic_id for response in pool.responses}
    covered, scored = {nugget.scope for nugget in bank.nuggets}, {unit.run_id for unit in units}
    notes = []
    if strange := [nugget.scope for nugget in bank.nuggets if nugget.scope not in scopes]:
        notes.append(
            f"{count(len(strange), 'nugget')} of turns or topics without a pooled response, the first of {strange[0]}"
        )
    if bare := [turn for turn in turns if turn not in covered and turn.rpartition("_")[0] not in covered]:
        notes.append(f"{count(len(bare), 'turn')} of the pool without nuggets: they count in no score")
    if unscored := [run_id for run_id in turns_of_runs(pool, first_ranked(pool)) if run_id not in scored]:
        notes.append(
            f"the bank has no nugget of a turn or topic of {count(len(unscored), 'run')}, so no table has "
            f"{'it' if len(unscored) == 1 else 'them'}: {', '.join(unscored)}"
        )
    if known.outside:
        notes.append(f"{count(known.outside, 'match', 'matches')} of responses that are not in the pool")
    if bank.unreferenced:
        notes.append(f"{count(bank.unreferenced, 'answer')} without a reference left out, as in ARGUE")
    if not any(nugget.importance for nugget in bank.nuggets):
        notes.append("the bank says of no nugget how important it is, so there is no vital_score")
    return tuple(notes)


class NuggetAgreePlan(NuggetMatches):
    """Everything `judge nuggets agree` can be told."""

    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")]
    """People's matches."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of the resamples."""


def compare_matches(plan: NuggetAgreePlan) -> MatchAgreement:
    """Compare a judge's matches with people's."""
    bank, pool = read_bank(plan.bank), read_pool_with_runs(plan.pool)
    people = read_labels_of(plan.gold, bank, pool, plan.renamed)
    judge = read_labels_of(plan.matches, bank, pool, plan.renamed)
    if not people.people or judge.people:
        raise UsageError("expected people's matches as --gold, and a judge's as --matches")
    topics = {response.response_id: response.topic_id for response in pool.responses}
    clusters = {key: cluster_of(topics[key[0]], plan.cluster) for key in people.labels}
    if not people.labels.keys() & judge.labels.keys():
        raise UsageError("people and the judge matched no pair in common")
    return match_agreement(people, judge, clusters, plan.resampling_seed)
