"""Recall of runs, and a judge beside people: what `judge nuggets score` and `agree` do, in Python.

People's value of a unit counts where people matched each of its nuggets with each of its responses. Were one
supporting response enough, units would be in the sample because people found support there. The correction is that of
the leaderboard (`judge.stats.correction`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from pydantic import BeforeValidator, Field

from judge.ask.prompt import check_unit
from judge.ask.records import Judgment
from judge.errors import InputError, UsageError
from judge.extra.nuggets import MATCH_LABELS, NuggetBank, argue
from judge.extra.nuggets.forms import read_bank
from judge.extra.nuggets.labels import MATCHED, PairKey, PairLabels, read_labels_of
from judge.extra.nuggets.scores import (
    MAIN,
    MEASURES,
    RECALLS,
    RunUnit,
    aspects_grid,
    bounds_of,
    measures_grid,
    nugget_scores,
    reciting,
    run_units,
    score_grid,
    units_grid,
    value_of,
)
from judge.io.files import read_stored
from judge.io.folder import check_apart, replace_folder
from judge.io.ids import Cluster, cluster_of, clustering, natural_key, topic_of
from judge.io.plan import OneOf, Option, Seed, pairs
from judge.io.table import Cell, Table, fields, records_table
from judge.io.text import count
from judge.jobs.judged import JudgedFolder, read_judged
from judge.jobs.options import ClusterUnit
from judge.pool.bank import ANSWERS, Beside, pool_file, read_pool_folder
from judge.pool.records import Pool, PooledResponse, whole_responses
from judge.records import Estimate, Record
from judge.results.citations import cited_responses
from judge.results.ranked import first_ranked, turns_of_runs
from judge.results.rows import Score, estimate_of, mean_over
from judge.stats.correction import Corrected, correct
from judge.stats.gold_sample import RunGrades
from judge.stats.raters import codes_of, compare_raters
from judge.units import UNITS

STATISTICS_OF_MATCHES = ("percent", "kappa")
"""Of the labels as names, without an order: `contradicts` is not less than `does_not`."""


class MatchAgreement(Record, frozen=True):
    """The agreement of a judge with people."""

    pairs: int
    """Pairs that both matched."""
    only_people: int
    """Pairs that people matched and the judge did not: its failures, and what it was not asked."""
    supported: dict[str, Estimate]
    """Statistic to its value, of `supports` against every other label."""
    labels: dict[str, Estimate]
    """The same of all labels; empty where people used only `supports` and `does_not`."""
    counts: dict[tuple[str, str], int]
    """Label by people and label by the judge to the number of pairs."""
    notes: tuple[str, ...] = ()
    """In words, which of people's matches were not used."""


def match_agreement(people: PairLabels, judge: PairLabels, topics: Mapping[PairKey, str], seed: int) -> MatchAgreement:
    """Compare the labels of the pairs that both matched, with intervals over topics."""
    keys = sorted(
        people.labels.keys() & judge.labels.keys(), key=lambda key: (natural_key(key[0]), natural_key(key[1]))
    )
    clusters = [topics[key] for key in keys]
    units = codes_of(clusters, sorted(set(clusters), key=natural_key))
    a = codes_of([people.labels[key] for key in keys], MATCH_LABELS)
    b = codes_of([judge.labels[key] for key in keys], MATCH_LABELS)
    yes = MATCH_LABELS.index("supports")
    supported = compare_raters(STATISTICS_OF_MATCHES, (a == yes) * 1, (b == yes) * 1, units, range(2), seed)
    labels: dict[str, Estimate] = {}
    if {people.labels[key] for key in keys} - {"supports", "does_not"}:
        labels = compare_raters(STATISTICS_OF_MATCHES, a, b, units, range(len(MATCH_LABELS)), seed).statistics
    return MatchAgreement(
        pairs=len(keys),
        only_people=len(people.labels) - len(keys),
        supported=supported.statistics,
        labels=labels,
        counts=dict(Counter((people.labels[key], judge.labels[key]) for key in keys)),
        notes=people.notes,
    )


def agreement_grids(agreement: MatchAgreement) -> tuple[Table[Any], ...]:
    """The statistics, and the labels of people against those of the judge."""
    rows: list[tuple[Cell, ...]] = []
    for of, values in (("supports or not", agreement.supported), ("all labels", agreement.labels)):
        if values:
            rows.append((of, *(values[name] for name in STATISTICS_OF_MATCHES)))
    notes = (
        f"{agreement.pairs} pairs of response and nugget that both matched; {agreement.only_people} more that people "
        "matched and the judge did not. The interval is over topics.",
    )
    lines: list[tuple[Cell, ...]] = []
    for first in MATCH_LABELS:
        lines.append((first, *(agreement.counts.get((first, second), 0) for second in MATCH_LABELS)))
    return (
        Table(rows, ("of", *STATISTICS_OF_MATCHES), "Agreement", notes, places=3),
        Table(lines, ("people", *MATCH_LABELS), "Labels", ("Rows: people. Columns: the judge.",)),
    )


def corrected_recall(
    judged: Sequence[RunUnit],
    people: Sequence[RunUnit],
    gold: PairLabels,
    measure: str,
    name: str,
    inclusion: float | None = None,
    cluster: Cluster = "topic",
) -> tuple[Score, ...]:
    """Correct the recall of every run, best corrected mean first, then runs without one.

    The mean before is over the turns that the judge matched; the counts are those of them that people matched too;
    `more` has how it was corrected, and the mean of the judge minus people, where both matched.
    `gold` are people's matches, with what they matched and how probably, and `name` is their file in messages.
    `inclusion` is the probability with which a unit was drawn for people, where the rows do not say it.
    """
    by_run = _twins(judged, people, gold, measure, inclusion)
    bounds = bounds_of(judged, MEASURES[measure])
    twins = [twin for of_run in by_run.values() for twin in of_run]
    census = all(not math.isnan(twin.people) for twin in twins)
    unknown = [twin.unit for twin in twins if not math.isnan(twin.people) and math.isnan(twin.inclusion)]
    if unknown and not census:
        several = sum(len(unit.responses) > 1 for unit in unknown)
        raise InputError(
            f"{name}: without the probability with which responses were drawn for people, corrected means can be far "
            f"off; it is unknown for {count(len(unknown), 'unit')}, the first {unknown[0].run_id} "
            f"in {unknown[0].scope}: give `inclusion_probability` in the rows, or --inclusion P"
            + (f"; {several} of several responses, for which only --inclusion P tells it" if several else "")
        )
    topics: dict[str, int] = defaultdict(lambda: len(topics))
    scopes: dict[str, int] = defaultdict(lambda: len(scopes))
    samples = [
        RunGrades(
            judged=np.array([twin.judged for twin in of_run], dtype=np.float64),
            gold=np.array([twin.people for twin in of_run], dtype=np.float64),
            inclusion=np.array([1.0 if census else twin.inclusion for twin in of_run], dtype=np.float64),
            topics=np.array([topics[cluster_of(twin.unit.topic_id, cluster)] for twin in of_run], dtype=np.int64),
            turns=np.array([scopes[twin.unit.scope] for twin in of_run], dtype=np.int64),
        )
        for of_run in by_run.values()
    ]
    try:
        corrections = correct(samples, target="pool", bounds=bounds)
    except ValueError as error:
        raise InputError(
            f"{name}: every response that people matched was drawn with probability 1, but people did not match all: "
            "expected less than 1"
        ) from error
    scores = []
    for (run_id, of_run), correction in zip(by_run.items(), corrections, strict=True):
        scores.append(_corrected_score(run_id, measure, of_run, correction, cluster, bounds))
    return tuple(sorted(scores, key=lambda score: (score.mean.value is None, -(score.mean.value or 0))))


class _Twin(NamedTuple):
    """A unit's recall by the judge and by people, who matched it whole; NaN where they did not, or nobody knows."""

    unit: RunUnit
    judged: float
    people: float
    inclusion: float
    """The probability with which people were to match it."""


def _twins(
    judged: Sequence[RunUnit], people: Sequence[RunUnit], gold: PairLabels, measure: str, inclusion: float | None
) -> dict[str, list[_Twin]]:
    """What the judge matched of each run, in natural order of the runs."""
    whole = [unit for unit in people if unit.responses and gold.labels.keys() >= _pairs(unit)]
    by_people = {(unit.run_id, unit.scope): value_of(unit, MEASURES[measure]) for unit in whole}
    by_run: dict[str, list[_Twin]] = {}
    for run in sorted({unit.run_id for unit in judged}, key=natural_key):
        by_run[run] = []
    for unit in judged:
        value = value_of(unit, MEASURES[measure])
        truth = by_people.get((unit.run_id, unit.scope))
        if unit.status == "matched" and value is not None:
            probability = None if truth is None else _probability(unit, gold, inclusion)
            twin = _Twin(
                unit=unit,
                judged=value,
                people=math.nan if truth is None else truth,
                inclusion=math.nan if probability is None else probability,
            )
            by_run[unit.run_id].append(twin)
    return by_run


def _corrected_score(
    run_id: str,
    measure: str,
    twins: Sequence[_Twin],
    correction: Corrected,
    cluster: Cluster,
    bounds: tuple[float, float],
) -> Score:
    raw = mean_over(((twin.unit.topic_id, twin.judged) for twin in twins), cluster, bounds, "turns")
    with_people = {cluster_of(twin.unit.topic_id, cluster) for twin in twins if not math.isnan(twin.people)}
    return Score(
        run_id=run_id,
        criterion=measure,
        mean=estimate_of(correction, topics=len(with_people)),
        counts={"people": correction.n},
        more={"method": correction.method, "bias": correction.bias},
        raw=Score(run_id=run_id, criterion=measure, mean=raw),
    )


def _pairs(unit: RunUnit) -> set[PairKey]:
    pairs: set[tuple[str, str]] = set()
    for response_id in unit.responses:
        pairs.update((response_id, nugget.nugget_id) for nugget in unit.nuggets)
    return pairs


def _probability(unit: RunUnit, gold: PairLabels, inclusion: float | None) -> float | None:
    """The probability with which people were to match a whole unit, by its rows or as given; None if nobody knows.

    Rows say the probability of one response. That of several together does not follow from it, unless each is 1.
    """
    said = {gold.inclusion.get(key) for key in _pairs(unit)}
    if len(unit.responses) == 1:
        said.discard(None)
    known = len(said) == 1 and (len(unit.responses) == 1 or said == {1.0})
    return said.pop() if known else inclusion


def corrected_grid(rows: Sequence[Score], measure: str) -> Table[Any]:
    """The runs with their recall by the judge, and corrected."""
    notes = (
        f"{measure}, by the judge and corrected by people's matches; means over the turns that the judge matched.",
        "bias: the judge minus people, where both matched.",
    )
    columns = fields("run=run_id judge=raw.mean people=counts.people corrected=mean method=more.method bias=more.bias")
    return records_table(columns, rows, "Corrected", notes, places=3)


class NuggetMatches(ClusterUnit):
    """Matches of the responses of a pool with a bank."""

    pool: Annotated[Path | None, Option(metavar="OUT|FILE")] = None
    """Output folder with the pool (default: the one that was matched)."""
    bank: Annotated[Path | None, Option(metavar="FILE|DIR")] = None
    """Bank of nuggets in any form, or its folder (default: the one that was matched)."""
    matches: Annotated[tuple[Path, ...], Option(metavar="FILE|DIR")]
    """Folders of `judge nuggets match`, or files of matches; of several judges the majority counts."""
    renamed: Annotated[dict[str, str], BeforeValidator(pairs), Option("rename", metavar="NAME=RUN", repeat=True)] = (
        Field(default_factory=dict)
    )
    """The run of the pool that the matches call NAME; may be repeated."""

    def matched_pool(self) -> Path:
        """The pool that is named, or that the matches are of."""
        return self.pool or self._matched("pool")

    def matched_bank(self) -> Path:
        """The bank that is named, or that the matches are of."""
        return self.bank or self._matched("bank")

    def _matched(self, name: Literal["pool", "bank"]) -> Path:
        """An input of `judge nuggets match`, as the first folder of matches tells it."""
        for folder in self.matches:
            path = folder / MATCHED
            if path.is_file():
                try:
                    inputs = msgspec.json.decode(read_stored(path), type=dict[str, Any]).get("inputs")
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    raise InputError(f"{path}: not as `judge nuggets match` writes it ({error})") from error
                if isinstance(inputs, dict) and isinstance(inputs.get(name), str):
                    there = Path(inputs[name]).expanduser()
                    if not there.exists():
                        raise UsageError(f"{path}: the {name} was {there}, which is not there: name it with --{name}")
                    return there
        raise UsageError(f"no folder of `judge nuggets match` says of which {name} the matches are: give --{name}")


class NuggetScorePlan(NuggetMatches):
    """Everything `judge nuggets score` can be told."""

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
    """The recall of every run."""

    scores: Table[Score]
    """One row for each run and measure."""
    units: Table[RunUnit]
    """Every turn, or topic, that a run had to answer."""
    corrected: Table[Score]
    """Empty without people's matches beside those of a judge."""
    grids: tuple[Table[Any], ...]
    """The tables for people."""
    notes: tuple[str, ...]
    """A sentence each."""


def score_nuggets(plan: NuggetScorePlan) -> NuggetScores:
    """Measure runs by the nuggets that their responses support, and write the tables if the plan names a folder."""
    matched_bank = plan.matched_bank()
    matched_pool = plan.matched_pool()
    bank = read_bank(matched_bank)
    pool = read_pool_with_runs(matched_pool)
    files = [*plan.matches, *plan.gold]
    if plan.out is not None:
        check_apart(plan.out, [pool_file(matched_pool), matched_bank, *files, *filter(None, [plan.citations])])
    known = read_labels_of(plan.matches, bank, pool, plan.renamed)
    units = run_units(pool, bank, known)
    if not units:
        raise UsageError(f"{matched_bank}: no nugget is of a turn or topic of {matched_pool}")
    scores = nugget_scores(units, plan.cluster)
    notes = _notes(pool, bank, known, units)
    notes += clustering((response.topic_id for response in pool.responses), plan.cluster)
    grids = {"runs": score_grid(scores, plan.main, reciting(units)), "measures": measures_grid(scores)}
    corrected: tuple[Score, ...] = ()
    if plan.gold:
        corrected = _corrected(plan, pool, bank, known, units)
        grids["corrected"] = corrected_grid(corrected, plan.main)
    if plan.citations is not None:
        grids["argue"] = argue.argue_grid(_reports(units, read_judged(plan.citations, "support")), plan.cluster)
    lines = {"units": units_grid(units)}
    if any(nugget.aspect for nugget in bank.nuggets):
        lines["aspects"] = aspects_grid(units, plan.main, plan.cluster)
    if plan.out is not None:
        written: dict[str, bytes] = {}
        for stem, grid in grids.items():
            written.update(grid.files(stem))
        written |= {f"{stem}.tsv": grid.files(stem)[f"{stem}.tsv"] for stem, grid in lines.items()}
        replace_folder(plan.out, written, "scores.sha256", inputs=files)
    return NuggetScores(
        scores=Table(scores),
        units=Table(units),
        corrected=Table(corrected),
        grids=tuple(grids.values()),
        notes=notes,
    )


def _corrected(
    plan: NuggetScorePlan, pool: Pool, bank: NuggetBank, known: PairLabels, units: Sequence[RunUnit]
) -> tuple[Score, ...]:
    if known.people:
        raise UsageError("--gold corrects the matches of a judge, and --matches has those of people")
    gold = read_labels_of(plan.gold, bank, pool, plan.renamed, by_people=True)
    if not gold.people:
        raise UsageError("--gold: expected people's matches, with `assessor` in every row")
    name = ", ".join(map(str, plan.gold))
    people = run_units(pool, bank, gold)
    return corrected_recall(units, people, gold, plan.main, name, plan.inclusion, plan.cluster)


def _reports(units: Sequence[RunUnit], judged: JudgedFolder) -> dict[str, list[tuple[RunUnit, argue.ReportShares]]]:
    """What the reports of the runs whose citations were judged have; a citation is one pooled item of its sentence."""
    prompt = judged.criteria[0]
    pool = judged.pool
    check_unit((prompt,), "citation")
    of_prompt = (each for each in judged.results if (each.criterion, each.variant) == (prompt.name, prompt.variant))
    borne = {
        each.response_id: each.grade in prompt.scale.positive
        for each in of_prompt
        if isinstance(each, Judgment) and not each.unable
    }
    # A passage without a text has no entry.
    ids = {key: passage.passage_id for key, passage in pool.passages.items()}
    cited = cited_responses(pool)
    reports = defaultdict[str, list[tuple[RunUnit, argue.ReportShares]]](list)
    for unit in units:
        if unit.run_id in cited and unit.status != "left_out":
            sentences: list[dict[str, bool | None]] = []
            for turn, cited_items in cited[unit.run_id].items():
                if unit.scope in (turn, topic_of(turn)):
                    sentences.extend(_support(items, ids, borne) for items in cited_items)
            reports[unit.run_id].append((unit, argue.report_shares(sentences, unit)))
    return dict(reports)


def _support(
    items: Sequence[PooledResponse], passage_ids: Mapping[str, str], borne: Mapping[str, bool]
) -> dict[str, bool | None]:
    """Whether each passage that a sentence cites bears it; None where nobody judged it."""
    support: dict[str, bool | None] = {}
    for item in items:
        for key in item.passages:
            support[passage_ids.get(key, key)] = borne.get(item.response_id)
    return support


def read_pool_with_runs(path: Path, *more: Beside) -> Pool:
    """A pool of responses, or those of citations, with runs and exclusions as far as they stand beside it."""
    beside: tuple[Beside, ...] = ("excluded.tsv", "runs.jsonl")
    there = (name for name in beside if pool_file(path).with_name(name).exists())
    pool = whole_responses(read_pool_folder(path, *there, *more))
    unit = UNITS[pool.unit]
    if unit.part_of_response:
        raise UsageError(
            f"{path}: a pool of {unit.nouns.responses} without {ANSWERS}, the responses that they stand in; pool the "
            "runs anew (`judge pool`)"
        )
    return pool


def _notes(pool: Pool, bank: NuggetBank, known: PairLabels, units: Sequence[RunUnit]) -> tuple[str, ...]:
    turns = {response.turn_id for response in pool.responses}
    scopes = turns | {response.topic_id for response in pool.responses}
    covered = {nugget.scope for nugget in bank.nuggets}
    scored = {unit.run_id for unit in units}
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
    notes += known.notes
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
    bank = read_bank(plan.matched_bank())
    pool = read_pool_with_runs(plan.matched_pool())
    people = read_labels_of(plan.gold, bank, pool, plan.renamed, by_people=True)
    judge = read_labels_of(plan.matches, bank, pool, plan.renamed)
    if not people.people or judge.people:
        raise UsageError("expected people's matches as --gold, and a judge's as --matches")
    topics = {response.response_id: response.topic_id for response in pool.responses}
    clusters = {key: cluster_of(topics[key[0]], plan.cluster) for key in people.labels}
    if not people.labels.keys() & judge.labels.keys():
        raise UsageError("people and the judge matched no pair in common")
    return match_agreement(people, judge, clusters, plan.resampling_seed)
