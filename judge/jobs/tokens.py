"""How long responses are by every way of counting tokens: what `judge tokens` does, for use from Python."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import msgspec

from judge.io.plan import Option, Positive
from judge.io.printout import Printout
from judge.io.steps import Steps, quiet, stepped
from judge.io.table import Cell, Column, Table, tsv
from judge.io.text import printable
from judge.jobs.options import LengthLimit, NamedRuns
from judge.runs.check.validate import validate_run
from judge.runs.formats import read_run
from judge.runs.profiles import UNLIMITED
from judge.runs.records import Run, RunTurn, TokenRule
from judge.runs.tokens import RULES, RuleEffect, TokenCounter, rule_effect
from judge.runs.topics import topic_turns

COLUMNS = (
    *("run_id", "file", "eval_response", "rule", "limit", "turns", "responses"),
    *("over", "at_limit", "longest", "tokens_lost", "emptied", "unanswered"),
)
LENGTHS = ("rule", "responses", "over", "at limit", "longest", "cut", "emptied", "unanswered")
"""The columns of the terminal after the name of the run."""
_CUT = "many suggest that the team cut its texts by this rule."


class LengthsPlan(NamedRuns, LengthLimit):
    """Everything `judge tokens` can be told."""

    depth: Annotated[Positive, Option(metavar="K")] = 1
    """Responses per turn and run, by rank."""


class RunLengths(msgspec.Struct, frozen=True):
    """The lengths of one run's responses under each rule."""

    run_id: str
    file: str
    eval_response: bool
    """Whether the team asks for its responses to be judged."""
    limit: int
    """Longest response in tokens."""
    turns: int
    """The run's turns."""
    responses: int
    """Responses with text, to the depth of the plan."""
    rules: tuple[RuleEffect, ...]
    """What each rule says of these responses."""


def count_lengths(plan: LengthsPlan, steps: Steps = quiet) -> Printout:
    """Read the runs one after the other and count; `data` has the RunLengths."""
    sources = plan.sources()
    turns = topic_turns(plan.topics)
    limits = plan.limits(turns)
    counters: dict[int, dict[TokenRule, TokenCounter]] = {}
    lengths: list[RunLengths] = []
    unusable: list[str] = []
    reads = stepped("counting tokens", sources.files, steps)
    of_tables = () if sources.tables is None else sources.tables.runs
    for name, read in chain(
        ((path.name, read_run(path, plan.format)) for path in reads), (("runs", read) for read in of_tables)
    ):
        run = validate_run(read, turns, None).run
        if run is None:
            unusable.append(name)
            continue
        limit = limits.of_format(run.format).token_limit
        by_rule = counters.setdefault(limit, {rule: TokenCounter(rule, limit) for rule in RULES})
        lengths.append(_lengths(run, by_rule, plan.depth))
    bounds = [str(limit) for limit in sorted(counters) or (limits.token_limit,) if limit != UNLIMITED]
    limit_words = " or ".join(bounds) or "none"
    declined = [run.run_id for run in lengths if not run.eval_response]
    legend = (
        "",
        f"limit {limit_words}. over: responses that --over-limit flag marks, truncate shortens and exclude leaves out.",
        *([f"at limit: responses of exactly {limit_words} tokens; {_CUT}"] if bounds else []),
        "cut, emptied: tokens that truncate cuts, and responses that it leaves without text. unanswered: turns",
        "that exclude leaves without the run's first response.",
        *([f"not judged at all (eval_response: false): {', '.join(declined)}"] if declined else []),
    )
    return Printout(
        data=tuple(lengths),
        parts=(_table(lengths),),
        warnings=tuple(f"{name}: holds nothing that can be judged; `judge validate` says why" for name in unusable),
        legend=legend,
        exit=int(bool(unusable) or any(problem.severity == "error" for problem in sources.problems)),
    )


def _table(runs: Sequence[RunLengths]) -> Table[Any]:
    """A line for each run and rule; the name of a run stands once."""
    lines: list[tuple[Cell, ...]] = []
    for run in runs:
        name = printable(run.run_id)
        for effect in run.rules:
            lines.append((name, effect.rule, run.responses, *_numbers(effect)))
            name = ""
    return Table(rows=lines, columns=(Column("run", empty="", safe=True), *LENGTHS))


def _numbers(effect: RuleEffect) -> tuple[int, ...]:
    return (effect.over, effect.at_limit, effect.longest, effect.tokens_lost, effect.emptied, effect.unanswered)


def lengths_tsv(runs: Sequence[RunLengths]) -> str:
    """A line for each run and rule, with the columns COLUMNS."""
    lines: list[tuple[object, ...]] = []
    for run in runs:
        for effect in run.rules:
            about = (run.run_id, run.file, run.eval_response, effect.rule, run.limit, run.turns, run.responses)
            lines.append((*about, *_numbers(effect)))
    return tsv(COLUMNS, lines)


def _lengths(run: Run, counters: Mapping[TokenRule, TokenCounter], depth: int) -> RunLengths:
    texts = [_texts(turn, depth) for turn in run.turns]
    return RunLengths(
        run_id=run.run_id,
        file=run.file,
        eval_response=run.eval_response,
        limit=counters["bare"].limit,
        turns=len(texts),
        responses=sum(map(len, texts)),
        rules=tuple(rule_effect(texts, counter, counters["bare"]) for counter in counters.values()),
    )


def _texts(turn: RunTurn, depth: int) -> list[str]:
    """The texts that pooling would take from a turn, best rank first."""
    best = sorted(turn.responses, key=lambda response: response.rank)[:depth]
    return [response.text for response in best if response.text.strip()]
