"""From a folder of runs to a pool: read, check, keep what may be judged, one file in memory at a time."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from judge.errors import InputError, UsageError, refuse
from judge.io.files import StrPath, paths
from judge.io.ids import groups_of, run_turn_id
from judge.io.processes import mapped, processes_for
from judge.io.steps import Step, Steps, counted, quiet
from judge.io.table import Table
from judge.passages import check_texts, listed, read_passages, same_text
from judge.passages.hashes import Hashes
from judge.pool.admission import Admitted, Submission, admit
from judge.pool.build import Candidate, LengthRule, Screen, build_pool, evidence_of, exclusion_order, normalize
from judge.pool.conversation import storable_text
from judge.pool.records import OverLimit, Pool, PooledTurn
from judge.pool.selection import Selection
from judge.records import JudgedUnit, Passage, Problem, Record
from judge.runs.check.validate import validate_together
from judge.runs.check.year import Trace, mixed_years
from judge.runs.fields import usable_turn_id
from judge.runs.formats.shape import ReadRun
from judge.runs.formats.table import Tables
from judge.runs.profiles import Limits, limits_of, year_of
from judge.runs.records import Exclusion, Provenance, Run, Topic
from judge.runs.sources import Sources, find_sources
from judge.runs.tokens import TokenCounter
from judge.runs.topics import turns_by_id
from judge.units import UNITS


class Submitted(Record, frozen=True):
    """The candidates of a folder of runs, the exclusions, and every problem of its files."""

    runs: Table[Submission]
    candidates: tuple[Candidate, ...]
    exclusions: Table[Exclusion]
    problems: Table[Problem]
    count_tokens: TokenCounter
    limits: Limits
    """What the responses were held to."""
    names: dict[str, str]
    """Run id by file, for every file that could be read, even where the run has errors."""
    left_out: frozenset[str] = frozenset()
    """Files of runs that are not selected."""
    traces: tuple[Trace, ...] = ()
    """What tells the year of each run that could be read, even where the run has errors."""
    turns: tuple[PooledTurn, ...] = ()
    """The turns of interactive runs and of dialogues."""
    unit: JudgedUnit = "response"
    """What a candidate stands for."""
    tables: Tables | None = None
    """The tables that the runs stand in."""
    counters: dict[str, TokenCounter] = msgspec.field(default_factory=dict)
    """The counters of runs, by id, whose format has other limits than `limits`."""
    answers: tuple[Candidate, ...] = ()
    """The whole responses, where the candidates are parts of them."""
    other_limits: dict[str, Limits] = msgspec.field(default_factory=dict)
    """The limits of formats that have others than `limits`."""

    def without_candidates(self) -> "Submitted":
        """What is left of the submissions once they are pooled."""
        return msgspec.structs.replace(self, candidates=(), answers=(), traces=())

    @property
    def unusable(self) -> tuple[Problem, ...]:
        """The errors that take a whole run out, so that a leaderboard would miss it."""
        fine = {run.file for run in self.runs} | self.left_out
        return tuple(problem for problem in self.problems if problem.severity == "error" and problem.file not in fine)


def read_runs(
    runs: StrPath | Sequence[StrPath] | Sources,
    topics: Sequence[Topic] | None = None,
    *,
    format: str | None = None,
    selection: Selection | None = None,
    limits: Limits | None = None,
    hashes: Hashes | None = None,
    measured: Callable[[Run], None] | None = None,
    steps: Steps = quiet,
) -> Submitted:
    """Read and check every run of folders and files, one at a time, keeping only what may be judged.

    Args:
        runs: Folders of run files, run files and tables, one or several; or the sources that these are.
        topics: The topics that turn ids and PTKB statements are checked against; None skips these checks, but for
            tables, which have their own.
        format: Read every file as this format instead of detecting it.
        selection: The responses to be pooled; by default each run's first-ranked response for every turn.
        limits: What the responses are held to, from `limits_of`; by default the limits of the topics' year.
        hashes: The collection's passage ids and MD5s, against which the runs' passages are checked.
        measured: Called with each usable run while its passages are still in memory.
        steps: Called as the runs are read.

    Raises:
        InputError: A folder is missing or holds no run.
    """
    selection = selection or Selection()
    sources = runs if isinstance(runs, Sources) else find_sources(paths(runs), format=format)
    files: Sequence[Path | ReadRun] = sources.files
    if sources.tables is not None:
        files = sources.tables.runs
        topics = topics or sources.tables.topics
    turns = turns_by_id(topics) if topics is not None else None
    held = limits or limits_of(year=year_of(turns or ()))
    count_tokens = TokenCounter(rule=held.token_rule, limit=held.token_limit)
    take = partial(
        admit,
        format=format,
        turns=turns,
        count_tokens=count_tokens,
        limits=limits,
        selection=selection,
        hashes=hashes,
        measured=measured,
    )
    # The list of hashes is open here, and the measure is kept here.
    processes = processes_for(sources.files) if hashes is None and measured is None else 1
    admitted: list[Admitted] = []
    with closing(mapped(take, files, processes)) as taken:
        for read in counted("reading and checking runs", taken, len(files), steps):
            admitted.append(read)
            # The tokens are counted while other processes read on; the counter remembers them.
            if processes > 1 and read.header is not None:
                counter = count_tokens.held_to(held.of_format(read.header.format))
                for candidate in read.candidates:
                    counter(normalize(candidate.text))
    return _submitted(admitted, sources, count_tokens, held, selection.unit)


def _submitted(
    admitted: Sequence[Admitted],
    sources: Sources,
    count_tokens: TokenCounter,
    limits: Limits,
    unit: JudgedUnit,
) -> Submitted:
    headers = [run.header for run in admitted if run.header is not None]
    formats = {head.format for head in headers}
    if len(of_format := {limits.of_format(format) for format in formats}) == 1:
        limits = of_format.pop()
        count_tokens = count_tokens.held_to(limits)
    counters = {head.run_id: count_tokens.held_to(limits.of_format(head.format)) for head in headers}
    other_limits = {
        format: limits.of_format(format) for format in sorted(formats) if limits.of_format(format) != limits
    }
    together = validate_together(headers)
    clashing = {problem.file for problem in together if problem.severity == "error"}
    submissions = (run.submission for run in admitted if run.submission is not None)
    return Submitted(
        runs=Table(run for run in submissions if run.file not in clashing),
        candidates=tuple(candidate for run in admitted for candidate in run.candidates),
        answers=tuple(answer for run in admitted for answer in run.answers),
        exclusions=Table(exclusion for run in admitted for exclusion in run.exclusions),
        problems=Table((*sources.problems, *(problem for run in admitted for problem in run.problems), *together)),
        count_tokens=count_tokens,
        limits=limits,
        names={head.file: head.run_id for head in headers},
        traces=tuple(run.trace for run in admitted if run.trace is not None),
        turns=(*(turn for run in admitted for turn in run.turns), *_asked(sources.tables)),
        unit=unit,
        tables=None if sources.tables is None else sources.tables.without_runs(),
        counters={run_id: counter for run_id, counter in counters.items() if counter is not count_tokens},
        other_limits=other_limits,
    )


def _asked(tables: Tables | None) -> Iterator[PooledTurn]:
    """The questions of tables, in a conversation each after the one before."""
    for topic in (tables.topics or ()) if tables is not None else ():
        previous: str | None = None
        for turn in topic.turns:
            linked = previous if turn.context else None
            yield PooledTurn(
                turn_id=turn.turn_id,
                topic_id=turn.topic_id,
                utterance=storable_text(turn.utterance),
                ptkb=(),
                previous=linked,
                answer=None if linked is None else storable_text(turn.context[-1].response),
                references=tuple(map(storable_text, turn.references)),
            )
            previous = turn.turn_id


def leave_out(submitted: Submitted, chosen: Collection[str], reasons: Mapping[str, str]) -> Submitted:
    """The submissions with only the chosen runs selected; each turn of another run is an exclusion with its reason."""
    others = {run_id for run_id in submitted.names.values() if run_id not in chosen}
    turns = {(candidate.run_id, candidate.turn_id) for candidate in submitted.candidates}
    turns |= {(row.run_id, row.turn_id) for row in submitted.exclusions}
    rows = [
        Exclusion(run_id=run_id, turn_id=turn_id, rank=None, reason="not_selected_run", detail=reasons[run_id])
        for run_id, turn_id in turns
        if run_id in others
    ]
    kept = (row for row in submitted.exclusions if row.run_id not in others)
    return msgspec.structs.replace(
        submitted,
        runs=Table(msgspec.structs.replace(run, selected=run.run_id in chosen) for run in submitted.runs),
        candidates=tuple(candidate for candidate in submitted.candidates if candidate.run_id in chosen),
        answers=tuple(answer for answer in submitted.answers if answer.run_id in chosen),
        exclusions=Table(sorted((*kept, *rows), key=exclusion_order)),
        names={file: run_id for file, run_id in submitted.names.items() if run_id in chosen},
        left_out=frozenset(file for file, run_id in submitted.names.items() if run_id not in chosen),
    )


def make_pool(
    submitted: Submitted,
    passages: StrPath | Sequence[StrPath] | None = None,
    *,
    over_limit: OverLimit = "flag",
    previous: Pool | None = None,
    hashes: Hashes | None = None,
    screen: Screen | None = None,
    steps: Steps = quiet,
) -> Pool:
    """Pool the candidates of the submitted runs.

    Args:
        submitted: The runs, from `read_runs`.
        passages: Files of the collection. Their texts are the only evidence; without them the runs' own texts are.
        over_limit: What becomes of a response over the token limit.
        previous: The pool to extend.
        hashes: The collection's hash list. Without `passages`, a run's text counts only if it has the listed MD5. With
            `passages`, a passage that is not listed is no evidence, and one with another text is an error.
        screen: Excludes low-quality responses.
        steps: Called as the files of the collection are read.

    Raises:
        InputError: The runs are of several years, a run cannot be used, a passage file cannot be read, or its texts
            are not those of the hash list.
    """
    check_years(submitted, previous)
    refuse(submitted.unusable, "runs that cannot be judged")
    if submitted.tables is not None and (passages is not None or hashes is not None):
        raise UsageError("the passages of a table are its evidence: --passages and --passage-hashes have no effect")
    collection: Mapping[str, Passage] | None = None
    pooled = submitted.candidates
    answers = submitted.answers
    if passages is not None:
        wanted = {passage.passage_id for candidate in pooled for passage in candidate.used}
        files = paths(passages)
        collection = read_passages(files, wanted, steps)
        if hashes is not None:
            problems = check_texts(collection, hashes.find, ", ".join(map(str, files)))
            refuse(problems, "the passages are not those of the hash list")
            collection = listed(collection, hashes.find)
    elif hashes is not None:
        pooled = _verified(pooled, hashes)
        answers = _verified(answers, hashes)
    steps(Step("pooling"))
    evidence = evidence_of(
        collection, verified=hashes is not None, source="run" if submitted.tables is None else "table"
    )
    pool = build_pool(
        pooled,
        evidence,
        LengthRule(submitted.count_tokens, over_limit, submitted.counters),
        screen=screen,
        previous=previous,
        excluded=submitted.exclusions,
        turns=submitted.turns,
        unit=submitted.unit,
    )
    if not UNITS[submitted.unit].part_of_response:
        return pool
    # What has no label of its own is shown whatever its length.
    whole = build_pool(
        answers,
        evidence,
        LengthRule(submitted.count_tokens, "flag", submitted.counters),
        previous=None if previous is None else Pool(previous.answers, previous.passages, ()),
    )
    return msgspec.structs.replace(pool, answers=whole.responses)


def check_years(submitted: Submitted, previous: Pool | None = None) -> None:
    """Refuse selected runs of several years, `previous` ones included: one turn id would stand for different turns.

    An InputError if the runs, or the runs and the pool, are of several years.
    """
    traces = [trace for trace in submitted.traces if trace.file not in submitted.left_out]
    if message := mixed_years([*traces, *_earlier(previous, traces)] if previous else traces):
        raise InputError(message)


def _earlier(previous: Pool, traces: Sequence[Trace]) -> Iterator[Trace]:
    """The runs of an earlier pool, with the turns that they have there; those that are replaced are left out."""
    lacked = ("missing_turn", "unreached_topic")
    had = [(entry.run_id, response.turn_id) for response in previous.responses for entry in response.runs]
    had += ((row.run_id, row.turn_id) for row in previous.exclusions if row.reason not in lacked)
    turns = groups_of((run_id, run_turn_id(turn_id)) for run_id, turn_id in had)
    # Topics are the same as before, or the pool is not extended.
    of_topics = True if any(trace.of_topics is not None for trace in traces) else None
    new = {trace.run_id for trace in traces}
    for run in previous.runs:
        if run.run_id not in new:
            turn_ids = frozenset(turn_id for turn_id in turns.get(run.run_id, ()) if usable_turn_id(turn_id))
            yield Trace("", run.run_id, run.format, turn_ids, year=run.year, of_topics=of_topics)


def _verified(pooled: Sequence[Candidate], hashes: Hashes) -> tuple[Candidate, ...]:
    """The candidates, without the passage texts that are not the collection's."""
    given = [passage for candidate in pooled for passage in candidate.used if passage.text]
    ids = list(dict.fromkeys(passage.passage_id for passage in given))
    listed = dict(zip(ids, hashes.find(ids), strict=True))

    def checked(passage: Provenance) -> Provenance:
        md5 = listed.get(passage.passage_id)
        if passage.text and not (md5 and same_text(passage.text, md5)):
            return msgspec.structs.replace(passage, text=None)
        return passage

    return tuple(msgspec.structs.replace(candidate, used=tuple(map(checked, candidate.used))) for candidate in pooled)
