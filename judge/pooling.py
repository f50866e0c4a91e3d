"""From a folder of runs to a pool with everything a track may ask of it: selection, integrity, screening."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from judge.effectiveness import DEFAULT_MEASURE, Effectiveness
from judge.encoder import open_encoder
from judge.errors import InputError, UsageError
from judge.files import read_stored, sha256, write_atomic
from judge.ids import natural_key
from judge.intake import Submitted, leave_out, make_pool, read_runs, turns_by_id
from judge.manifest import POOLED, check_folder, earlier_runs, pool_configuration, write_manifest
from judge.outputs import read_previous_pool, write_pool
from judge.passages.hashes import open_hashes
from judge.pool import exclusion_order
from judge.provenance_run import ranking
from judge.records import Exclusion, MissingPassages, OverLimit, Pool, PooledResponse, Problem, Run, TokenRule, Turn
from judge.runs import rules_of
from judge.screen import ScreenRow, Thresholds, screen_pool, screen_tsv
from judge.selection import RUN_RULES, RunRule, RunScore, Selection, choice_tsv, choose_runs
from judge.selection_files import read_relevance, read_run_ids, read_teams, read_turns, teams_of
from judge.topics import read_topics
from judge.trec import column

Screening = Literal["off", "flag", "exclude"]
"""Whether low-quality responses are looked for, and whether those found are judged all the same."""


class Pooling(msgspec.Struct, frozen=True, kw_only=True):
    """What is pooled of what was submitted; paths may be strings."""

    runs: Path | str
    """Folder of run files, or one file."""
    topics: Path | str | None = None
    format: str | None = None
    passages: Sequence[Path | str] | None = None
    """The collection's passages; if given, only their texts count as evidence."""
    passage_hashes: Path | str | None = None
    """The collection's list of MD5s or an index of it: texts that differ from it are no evidence."""
    missing_passages: MissingPassages = "skip-response"
    depth: int = 1
    token_rule: TokenRule = "bare"
    token_limit: int = 250
    over_limit: OverLimit = "flag"
    only_turns: Path | str | None = None
    """A file of turn ids: no other turn is pooled."""
    passage_qrels: Path | str | None = None
    """Grades of passages: only a response with a relevant used passage is pooled."""
    min_relevance: int = 1
    max_rank: int | None = None
    """How far down such a response is looked for; by default 3 in CAsT 2022, else `depth`."""
    select_runs: str | None = None
    """A file of run ids, or a key of RUN_RULES."""
    measure: str = DEFAULT_MEASURE
    """What the rules compare runs by, as ir-measures names it."""
    teams: Path | str | None = None
    """Run, a tab and its team, where the runs do not say it themselves."""
    screen: Screening = "flag"
    thresholds: Thresholds = Thresholds()
    encoder: str | None = None
    """Name or folder of a sentence-transformers model that compares responses with their passages."""
    extend: Path | str | None = None
    """An earlier output folder whose pool is added to."""


class Pooled(msgspec.Struct, frozen=True):
    """A pool, and what led to it."""

    submitted: Submitted
    pool: Pool
    turns: dict[str, Turn] | None
    """Those of the topics."""
    expected: frozenset[str]
    """Ids of the turns that a run had to answer: those selected of the topics', else of the pool's."""
    screened: tuple[ScreenRow, ...] | None
    """None if nothing was looked for."""
    choice: str | None
    """Which runs a rule chose and why, as a table."""
    configured: dict[str, Any]
    """All that determines the pool, for the manifest."""


def pool_runs(pooling: Pooling) -> Pooled:
    """Read, check, select, pool and screen.

    Raises:
        UsageError: What is asked for cannot be done.
        InputError: An input is bad; every problem is listed.
    """
    topics = read_topics(Path(pooling.topics)) if pooling.topics is not None else None
    turns = turns_by_id(topics) if topics is not None else None
    selection = _selection(pooling, turns)
    hashes = open_hashes(Path(pooling.passage_hashes)) if pooling.passage_hashes is not None else None
    encoder = open_encoder(pooling.encoder) if pooling.encoder is not None and pooling.screen != "off" else None
    rule = _RunChoice(pooling, selection) if pooling.select_runs in RUN_RULES else None
    submitted = read_runs(
        pooling.runs,
        topics,
        format=pooling.format,
        selection=selection,
        token_rule=pooling.token_rule,
        token_limit=pooling.token_limit,
        hashes=hashes,
        measured=rule.measure if rule else None,
    )
    if rule is not None:
        submitted = rule.applied(submitted)
    elif pooling.select_runs is not None:
        file = Path(pooling.select_runs)
        chosen = read_run_ids(file, [run.run_id for run in submitted.runs])
        reason = f"not in {file.name}"
        submitted = leave_out(submitted, chosen, {run.run_id: reason for run in submitted.runs})
    earlier = Path(pooling.extend) if pooling.extend is not None else None
    pool = make_pool(
        submitted,
        pooling.passages,
        over_limit=pooling.over_limit,
        previous=read_previous_pool(earlier) if earlier is not None else None,
        hashes=hashes,
    )
    screened = None
    if pooling.screen != "off":
        screened = screen_pool(pool, pooling.thresholds, encoder)
        if pooling.screen == "exclude":
            pool = without(pool, screened)
    return Pooled(
        submitted=submitted,
        pool=pool,
        turns=turns,
        expected=selection.wanted_turns(turns or {response.turn_id for response in pool.responses}),
        screened=screened,
        choice=rule.table if rule else None,
        configured=pool_configuration(
            submitted,
            pool,
            _settings(pooling),
            Path(pooling.topics) if pooling.topics is not None else None,
            earlier_runs(earlier) if earlier is not None else {},
        ),
    )


class _RunChoice:
    """A rule that chooses runs by a measure of their passages."""

    def __init__(self, pooling: Pooling, selection: Selection) -> None:
        if selection.relevance is None:
            raise UsageError(f"the rule {pooling.select_runs} compares runs by passage qrels (--passage-qrels)")
        self._rule: RunRule = next(rule for rule in RUN_RULES if rule == pooling.select_runs)
        self._measure = Effectiveness(pooling.measure, selection.relevance.grades)
        self._teams = read_teams(Path(pooling.teams)) if pooling.teams is not None else {}
        self._scores: dict[str, RunScore] = {}
        self.table: str | None = None

    def measure(self, run: Run) -> None:
        """Take a run's value before its passages are forgotten."""
        team = teams_of({run.run_id: run.team}, self._teams)[run.run_id]
        # CAsT 2022 runs do not say how they were made.
        automatic = run.run_type == "automatic" or rules_of(run.format).run_type is None
        self._scores[run.run_id] = RunScore(run.run_id, team, automatic, self._measure.of(ranking(run)))

    def applied(self, submitted: Submitted) -> Submitted:
        """What was submitted, less the runs that the rule does not choose."""
        chosen, reasons = choose_runs(self._rule, self._scores)
        self.table = choice_tsv(self._measure.name, self._scores, chosen, reasons)
        return leave_out(submitted, chosen, reasons)


def _selection(pooling: Pooling, turns: dict[str, Turn] | None) -> Selection:
    relevance = None
    if pooling.passage_qrels is not None:
        relevance = read_relevance(
            Path(pooling.passage_qrels), minimum=pooling.min_relevance, max_rank=pooling.max_rank, known=turns
        )
    elif pooling.max_rank is not None:
        raise UsageError("responses are looked for down to a rank only where passages decide (--passage-qrels)")
    only = read_turns(Path(pooling.only_turns), turns) if pooling.only_turns is not None else None
    return Selection(depth=pooling.depth, turns=only, relevance=relevance)


def _settings(pooling: Pooling) -> dict[str, Any]:
    """How the pool is made beside the runs, as JSON values: files by their digests."""

    def file(path: Path | str | None) -> str | None:
        return None if path is None else sha256(read_stored(Path(path)))

    ruled = pooling.select_runs in RUN_RULES
    return {
        "depth": pooling.depth,
        "over_limit": pooling.over_limit,
        "missing_passages": pooling.missing_passages,
        "passage_hashes": None if pooling.passage_hashes is None else open_hashes(Path(pooling.passage_hashes)).digest,
        "only_turns": file(pooling.only_turns),
        "passage_qrels": file(pooling.passage_qrels),
        "min_relevance": pooling.min_relevance if pooling.passage_qrels is not None else None,
        "max_rank": pooling.max_rank,
        "select_runs": pooling.select_runs if ruled else file(pooling.select_runs),
        "measure": pooling.measure if ruled else None,
        "teams": file(pooling.teams),
        "screen": pooling.screen,
        "thresholds": None if pooling.screen == "off" else msgspec.to_builtins(pooling.thresholds),
        "encoder": pooling.encoder,
    }


def without(pool: Pool, flagged: Sequence[ScreenRow]) -> Pool:
    """The pool without the flagged responses, each an exclusion for every run that gave it."""
    reasons: dict[str, ScreenRow] = {}
    for row in flagged:
        reasons.setdefault(row.response_id, row)
    rows = [
        Exclusion(entry.run_id, one.turn_id, entry.rank, f"screen_{reason.code}", reason.detail)
        for one in pool.responses
        if (reason := reasons.get(one.response_id))
        for entry in one.runs
    ]
    return msgspec.structs.replace(
        pool,
        responses=tuple(one for one in pool.responses if one.response_id not in reasons),
        exclusions=tuple(sorted((*pool.exclusions, *rows), key=exclusion_order)),
    )


def check_complete(pool: Pool) -> None:
    """Refuse a pool in which a used passage has no text.

    Raises:
        InputError: With a problem for each response.
    """
    problems = [
        Problem(
            "missing_passage_text",
            "error",
            "passages",
            response.turn_id,
            response.response_id,
            f"{len(lacking)} of {len(response.passages)} used passages have no text: {', '.join(lacking[:5])}; "
            f"given by {', '.join(sorted({entry.run_id for entry in response.runs}, key=natural_key)[:5])}",
        )
        for response in pool.responses
        if (lacking := _lacking(response, pool.passages))
    ]
    if problems:
        raise InputError(f"{len(problems)} responses have used passages without a text", problems)


def _lacking(response: PooledResponse, texts: Collection[str]) -> list[str]:
    return [key for key in response.passages if key not in texts]


def missing_tsv(pool: Pool) -> bytes:
    """`missing_passages.tsv`: the used passages without a text, a line each."""
    lines = ["response_id\tturn_id\tpassage_id\n"]
    for response in pool.responses:
        lines += [
            f"{response.response_id}\t{column(response.turn_id)}\t{column(key)}\n"
            for key in _lacking(response, pool.passages)
        ]
    return "".join(lines).encode()


def write_pooled(out: Path, pooled: Pooled) -> None:
    """Write what is known before any judge is asked."""
    write_pool(out, pooled.submitted, pooled.pool)
    write_atomic(out / "missing_passages.tsv", missing_tsv(pooled.pool))
    if pooled.screened is not None:
        write_atomic(out / "screen.tsv", screen_tsv(pooled.screened))
    if pooled.choice is not None:
        write_atomic(out / "run_choice.tsv", pooled.choice.encode())


def write_unjudged(out: Path, pooled: Pooled, argv: Sequence[str], *, replace: bool = False) -> None:
    """Write a pool into a folder of its own, which `judge run` with the same options can go on from.

    Raises:
        InputError: The folder cannot be used or holds something else.
    """
    check_folder(out, pooled.configured, trial=False, replace=replace)
    write_pooled(out, pooled)
    write_manifest(out, argv, pooled.configured, POOLED, pooled.submitted, pooled.pool)
