"""Recall of runs by matched nuggets: what `judge nuggets score` does, for use from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.errors import UsageError
from judge.files.folder import check_apart, replace_folder
from judge.files.paths import JobPlan, StrPath, file_in
from judge.nuggets.corrected import CorrectedRecall, corrected_grid, corrected_recall
from judge.nuggets.forms import read_bank
from judge.nuggets.matches import MATCH_FAILURES, MATCHES, PairLabels, join, read_match_failures, read_matches
from judge.nuggets.measures import MAIN, RECALLS
from judge.nuggets.records import MatchedNugget, MatchFailure, NuggetBank
from judge.nuggets.scores import NuggetScore, measures_grid, nugget_scores, score_grid, units_grid
from judge.nuggets.units import RunUnit, run_units, runs_to_score
from judge.pool.folder import Beside, pool_file, read_pool_folder
from judge.pool.records import Pool
from judge.records import Record
from judge.text.cells import count
from judge.text.grid import Grid, grid_files
from judge.text.hints import did_you_mean
from judge.text.ids import Cluster, check_cluster, clustering
from judge.text.table import Table

RECORD = "scores.sha256"
"""The list of the files of the folder, for `sha256sum -c`."""
UNITS = "units.tsv"


class NuggetScorePlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge nuggets score` can be told; paths may be strings, and one may stand where several may."""

    pool: StrPath
    """The output folder with the pool."""
    bank: StrPath
    """The bank of nuggets."""
    matches: Sequence[StrPath]
    """Files of matches or folders of `judge nuggets match`; of several judges the majority counts."""
    gold: Sequence[StrPath] = ()
    """People's matches of a part of the responses, to correct those of judges by."""
    inclusion: float | None = None
    """The probability with which units were drawn for people, where the rows do not say it."""
    renamed: Mapping[str, str] = {}
    """Name of a run in the matches to its id in the pool."""
    main: str = MAIN
    """The recall that runs are ranked by and that is corrected."""
    cluster: Cluster = "topic"
    """What the intervals are over."""
    out: StrPath | None = None
    """The folder for the tables; None to write none."""


class NuggetScores(Record, frozen=True):
    """The recall of every run."""

    scores: Table[NuggetScore]
    """One row for each run and measure."""
    units: Table[RunUnit]
    """Every turn, or topic, that a run had to answer."""
    corrected: Table[CorrectedRecall]
    """Empty without people's matches beside those of a judge."""
    grids: tuple[Grid, ...]
    """The tables for people."""
    notes: tuple[str, ...]
    """A sentence each."""


def score_nuggets(plan: NuggetScorePlan) -> NuggetScores:
    """Measure runs by the nuggets that their responses support, and write the tables if the plan names a folder.

    Raises:
        UsageError: The plan asks for what cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    check_cluster(plan.cluster)
    if plan.main not in RECALLS:
        hint = did_you_mean(plan.main, RECALLS)
        raise UsageError(f"no recall called {plan.main!r}{hint} (there are {', '.join(RECALLS)})")
    if plan.inclusion is not None and not 0 < plan.inclusion <= 1:
        raise UsageError(f"--inclusion {plan.inclusion}: expected a probability above 0 and at most 1")
    folder = Path(plan.pool)
    bank = read_bank(plan.bank)
    pool = read_pool_with_runs(folder)
    files = [*map(Path, plan.matches), *map(Path, plan.gold)]
    if plan.out is not None:
        check_apart(Path(plan.out), [pool_file(folder), Path(plan.bank), *files])
    known = read_labels_of(plan.matches, bank, pool, plan.renamed)
    units = run_units(pool, bank, known)
    if not units:
        raise UsageError(f"{plan.bank}: no nugget is of a turn or topic of {plan.pool}")
    scores = nugget_scores(units, plan.cluster)
    notes = _notes(pool, bank, known, units)
    notes += clustering((response.topic_id for response in pool.responses), plan.cluster)
    grids = [score_grid(scores, plan.main), measures_grid(scores)]
    corrected: tuple[CorrectedRecall, ...] = ()
    if plan.gold:
        if known.people:
            raise UsageError("--gold corrects the matches of a judge, and --matches has those of people")
        gold = read_labels_of(plan.gold, bank, pool, plan.renamed)
        if not gold.people:
            raise UsageError("--gold: expected people's matches, with `assessor` in every row")
        name = ", ".join(map(str, plan.gold))
        people = run_units(pool, bank, gold)
        corrected = corrected_recall(units, people, gold, plan.main, name, plan.inclusion, plan.cluster)
        grids.append(corrected_grid(corrected, plan.main))
    if plan.out is not None:
        written = {**grid_files("runs", grids[0]), **grid_files("measures", grids[1])}
        written |= grid_files("corrected", grids[2]) if plan.gold else {}
        written |= {UNITS: grid_files("units", units_grid(units))[UNITS]}
        replace_folder(Path(plan.out), written, RECORD, inputs=files)
    return NuggetScores(Table(scores), Table(units), Table(corrected), tuple(grids), notes)


def read_pool_with_runs(path: Path) -> Pool:
    """A pool with its runs and exclusions, as far as they stand beside it, and without passages.

    Raises:
        InputError: The pool is missing or damaged.
    """
    beside: tuple[Beside, ...] = ("excluded.tsv", "runs.jsonl")
    return read_pool_folder(path, *(name for name in beside if pool_file(path).with_name(name).exists()))


def read_labels_of(given: Sequence[StrPath], bank: NuggetBank, pool: Pool, renamed: Mapping[str, str]) -> PairLabels:
    """The labels of files and folders of matches, joined to a bank and a pool.

    Raises:
        InputError: A file is bad or of another bank or pool; every problem is listed.
    """
    rows: list[MatchedNugget] = []
    failures: list[MatchFailure] = []
    for path in map(Path, given):
        rows += read_matches(file_in(path, MATCHES))
        failures += read_match_failures(path / MATCH_FAILURES) if path.is_dir() else ()
    return join(rows, failures, bank, pool, ", ".join(map(str, given)), renamed)


def _notes(pool: Pool, bank: NuggetBank, known: PairLabels, units: Sequence[RunUnit]) -> tuple[str, ...]:
    turns = {response.turn_id for response in pool.responses}
    scopes = turns | {response.topic_id for response in pool.responses}
    strange = [nugget for nugget in bank.nuggets if nugget.scope not in scopes]
    notes = []
    if strange:
        notes.append(
            f"{count(len(strange), 'nugget')} of turns or topics without a pooled response, the first of "
            f"{strange[0].scope}"
        )
    covered = {nugget.scope for nugget in bank.nuggets}
    bare = [turn for turn in turns if turn not in covered and turn.rpartition("_")[0] not in covered]
    if bare:
        notes.append(f"{count(len(bare), 'turn')} of the pool without nuggets: they count in no score")
    scored = {unit.run_id for unit in units}
    if unscored := [run_id for run_id in runs_to_score(pool) if run_id not in scored]:
        notes.append(
            f"the bank has no nugget of a turn or topic of {count(len(unscored), 'run')}, so no table has "
            f"{'it' if len(unscored) == 1 else 'them'}: {', '.join(unscored)}"
        )
    if known.outside:
        notes.append(f"{count(known.outside, 'match', 'matches')} of responses that are not in the pool")
    if not any(nugget.importance for nugget in bank.nuggets):
        notes.append("the bank says of no nugget how important it is, so there is no vital_score")
    return tuple(notes)
