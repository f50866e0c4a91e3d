"""From a folder of runs to a pool: read, check, keep what may be judged, one file in memory at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from judge.errors import InputError
from judge.passages import read_passages
from judge.pool import Candidate, build_pool, candidates
from judge.records import Exclusion, OverLimit, Passage, Pool, Problem, Run, TokenRule, Topic, Turn
from judge.runs import find_runs, read_run
from judge.tokens import TokenCounter
from judge.validate import validate_run, validate_together


class Submission(msgspec.Struct, frozen=True):
    """What is kept of one run file once its responses are candidates."""

    run_id: str
    run_type: str | None
    team: str | None
    format: str
    file: str
    digest: str
    eval_response: bool
    turns: int


class Submitted(msgspec.Struct, frozen=True):
    """All that a folder of runs offers for judging, and all that is wrong with it."""

    runs: tuple[Submission, ...]
    candidates: tuple[Candidate, ...]
    exclusions: tuple[Exclusion, ...]
    problems: tuple[Problem, ...]
    count_tokens: TokenCounter

    @property
    def unusable(self) -> tuple[Problem, ...]:
        """The errors that take a whole run out, so that a leaderboard without it would be a lie."""
        usable = {run.file for run in self.runs}
        return tuple(problem for problem in self.problems if problem.severity == "error" and problem.file not in usable)


def turns_by_id(topics: Sequence[Topic]) -> dict[str, Turn]:
    """The turns of all topics by turn id."""
    return {turn.turn_id: turn for topic in topics for turn in topic.turns}


def read_runs(
    runs: Path | str,
    topics: Sequence[Topic] | None = None,
    *,
    format: str | None = None,
    depth: int = 1,
    token_rule: TokenRule = "bare",
    token_limit: int = 250,
) -> Submitted:
    """Read and check every run of a folder (or one run file), one at a time, keeping only what may be judged.

    Raises:
        InputError: The folder is missing or holds no run.
    """
    runs = Path(runs)
    paths, problems = find_runs(runs)
    turns = turns_by_id(topics) if topics is not None else None
    count_tokens = TokenCounter(rule=token_rule, limit=token_limit)
    submissions: list[Submission] = []
    headers: list[Run] = []
    pooled: list[Candidate] = []
    exclusions: list[Exclusion] = []
    found: list[Problem] = list(problems)
    for path in paths:
        read = read_run(path, format)
        if read.run is None:
            found.extend(read.problems)
            continue
        checked = validate_run(
            read.run,
            turns,
            count_tokens,
            limit=token_limit,
            rule=token_rule,
            found=read.problems,
            places=read.places,
        )
        found.extend(checked.problems)
        exclusions.extend(checked.exclusions)
        headers.append(msgspec.structs.replace(read.run, turns=()))
        if checked.run is None:
            continue
        submissions.append(
            Submission(
                run_id=checked.run.run_id,
                run_type=checked.run.run_type,
                team=checked.run.team,
                format=checked.run.format,
                file=checked.run.file,
                digest=checked.run.digest,
                eval_response=checked.run.eval_response,
                turns=len(checked.run.turns),
            )
        )
        kept, dropped = candidates(checked.run, depth=depth)
        pooled.extend(kept)
        exclusions.extend(dropped)
    together = validate_together(headers)
    found.extend(together)
    clashing = {problem.file for problem in together if problem.severity == "error"}
    return Submitted(
        runs=tuple(run for run in submissions if run.file not in clashing),
        candidates=tuple(pooled),
        exclusions=tuple(exclusions),
        problems=tuple(found),
        count_tokens=count_tokens,
    )


def make_pool(
    submitted: Submitted,
    passages: Sequence[Path | str] | None = None,
    *,
    over_limit: OverLimit = "flag",
    previous: Pool | None = None,
) -> Pool:
    """Pool what was submitted; with `passages` only the collection's texts count as evidence.

    Raises:
        InputError: A run cannot be used, or a passage file is bad.
    """
    if submitted.unusable:
        raise InputError("runs that cannot be judged", submitted.unusable)
    collection: Mapping[str, Passage] | None = None
    if passages is not None:
        wanted = {passage.passage_id for one in submitted.candidates for passage in one.used}
        collection = read_passages([Path(path) for path in passages], wanted)
    return build_pool(
        submitted.candidates,
        collection,
        submitted.count_tokens,
        over_limit=over_limit,
        limit=submitted.count_tokens.limit,
        rule=submitted.count_tokens.rule,
        previous=previous,
        excluded=submitted.exclusions,
    )
