"""Runs by grades of people, a crowd or a judge, and two sets of grades by each other."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import structs

from judge.cli.declared import JsonOutput
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, print_grids, print_json, progress, say, say_all
from judge.errors import UsageError
from judge.extra.evaluate import BOARDS, Over, board_lines, measured, rankings, read_board
from judge.extra.evaluate.graded import RESPONSE_MEASURES, EvaluatedCriterion
from judge.extra.evaluate.qrels import QrelsPlan, compare_qrels
from judge.extra.evaluate.responses import ResponsesPlan, evaluate_responses
from judge.extra.evaluate.spans import SpansPlan, evaluate_spans
from judge.io.installed import undrawn
from judge.io.plan import OneOf, Option
from judge.io.table import FORMS
from judge.io.text import count, number
from judge.results.rows import Score
from judge.stats.ranking import kendall_tau_b
from judge.stats.tables import Undefined


class TableOrLines(TableFormat, section="output"):
    """How tables are printed, or the values in the form of another tool."""

    format: Annotated[str, OneOf(("table", *FORMS, *BOARDS))] = "table"
    """How the tables are printed."""
    board: Annotated[Path | None, Option(metavar="FILE")] = None
    """Also say how the runs of this board, in the form of --format, are ordered by each measure: Kendall's tau-b."""

    def _check(self) -> None:
        if self.format not in BOARDS:
            self.refuse_unused(["board"], f"it needs --format {' or '.join(BOARDS)}")


class RankingFormat(TableOrLines, section="output"):
    """How rankings are printed."""

    per_turn: bool = False
    """With --format trec_eval, ir_measures, tot or jsonl: also the value of every turn."""


def responses(plan: ResponsesPlan, output: TableOrLines) -> int:
    """Evaluate runs of responses by grades of people, a crowd or a judge.

    Per run and criterion the mean grade and the share of positive grades, over all turns of the qrels (an unanswered
    turn counts 0, as under `trec_eval -c`) and over the answered turns alone, with intervals over topics and letters
    that runs share which cannot be told apart. --by shows the same by topic, by depth of the turn, and for turns that
    depend on statements of the user's PTKB against those that do not.
    """
    lines = output.format in BOARDS
    if lines and (plan.by != "run" or plan.over == "worst"):
        raise UsageError(f"--format {output.format}: is of whole runs, over qrels or answered turns")
    outcome = _evaluated("grades", evaluate_responses, plan.with_values(single=lines))
    if lines:
        scores = _in_tool(outcome.criteria[0], output.format, "answered" if plan.over == "answered" else "qrels")
        _print_board(output, scores)
    else:
        print_grids([outcome.table(plan.by)], output.format)
    return 0


def _print_board(output: TableOrLines, scores: Sequence[Score], *, turns: bool = False) -> None:
    """The scores as a board, and the agreement of its rankings with those of another one, by measure."""
    theirs = read_board(output.board, output.format) if output.board is not None else {}
    print(board_lines(output.format, scores, turns=turns), end="")
    for measure in dict.fromkeys(score.criterion for score in scores) if theirs else ():
        ours = {score.run_id: score.mean.value for score in scores if score.criterion == measure}
        both = [(value, other) for run_id, value in ours.items() if value is not None
                and (other := theirs.get((run_id, measure, "all"))) is not None]  # fmt: skip
        tau = kendall_tau_b([value for value, _ in both], [other for _, other in both])
        told = tau.reason if isinstance(tau, Undefined) else number(tau, 3)
        say(f"{output.board}: {measure}: tau-b {told} over {count(len(both), 'run')}")


def _in_tool(of: EvaluatedCriterion, form: str, over: Over) -> list[Score]:
    """The scores with the measures' names in a tool."""
    level = of.qrels.level
    share = "positive" if level is None else "P"
    if form == "trec_eval":
        measures = {"mean": "grade_1", "positive": f"{share}_1"}
    else:
        measures = {"mean": "grade@1", "positive": f"{share}@1" if level is None else f"P(rel={level})@1"}
    scores: list[Score] = []
    for run in of.runs:
        for measure in RESPONSE_MEASURES:
            if (score := run.scores.get((measure, over))) is not None:
                scores.append(structs.replace(score, criterion=measures[measure]))
    return scores


def passages(plan: rankings.PassagesPlan, output: RankingFormat) -> int:
    """The passages of runs under the measures of the tracks, by qrels: nDCG, P, recall, MAP, MRR, and the share judged.

    Runs may be in any format of the tracks, or TREC runs of six columns. The first 1,000 passages of a turn count, each
    once. --by shows nDCG@5, or the measure of --main, by topic, by depth of the turn, or by dependence on the PTKB.
    --gold corrects the measures by a judge's grades with people's grades of whole turns, or of single passages.
    """
    return _rankings(plan, output, rankings.evaluate_passages)


def statements(plan: rankings.StatementsPlan, output: RankingFormat) -> int:
    """The PTKB statements that runs name, as rankings and as sets, by each assessment: nDCG, P, recall, MRR, F1, MAP.

    Without --qrels, the statements that the topics link to a turn are the relevant ones. Several files of qrels stand
    side by side. Runs that name statements by text need --topics.
    """
    return _rankings(plan, output, rankings.evaluate_statements)


def _rankings(
    plan: rankings.RankingsPlan, output: RankingFormat, evaluate: Callable[..., rankings.RankingsOutcome]
) -> int:
    if output.format in BOARDS:
        plan.refuse_unused(["by", "gold"], f"--format {output.format} prints lines of whole runs")
    else:
        output.refuse_unused(["per_turn"], f"it needs --format {' or '.join(BOARDS)}; --out writes turns.tsv")
    outcome = _evaluated("grades", evaluate, plan)
    if output.format in BOARDS:
        scores = measured.tool_scores(outcome.evaluations, trec_eval=output.format == "trec_eval")
        _print_board(output, scores, turns=output.per_turn)
    else:
        print_grids(outcome.tables(plan.by), output.format)
    return 0


def spans(plan: SpansPlan, output: TableFormat, whole: JsonOutput) -> int:
    """Measure runs of RCD-2020: spans that need context (task 1), and passages about them (task 2).

    For spans, the weighted overlap of character n-grams, which the track calls BLEU, and the Jaccard overlap of words,
    with the figures that the organizers' own script prints. For passages, AP, P@5 and RR with the relevant passages of
    the topics of a conversation put together.
    """
    outcome = _evaluated("spans", evaluate_spans, plan)
    if plan.out is not None:
        say_all(undrawn("pictures of the intervals"))
    if whole.as_json:
        print_json(outcome)
    else:
        print_grids(list(outcome.grids.values()), output.format)
    return 0


def qrels(plan: QrelsPlan, output: TableFormat, whole: JsonOutput) -> int:
    """Compare two sets of grades: of the same items, and as what they make of the runs.

    A and B are qrels of responses or passages, label files of four columns, `judgments.jsonl`, or output folders of
    `judge run`. Printed are the agreement of the grades that both gave, and, with runs, of the two rankings: which
    pairs of runs swap, which of their differences are significant, and how far the items that only one set graded
    could move it all.
    """
    outcome = _evaluated("grades", compare_qrels, plan)
    if whole.as_json:
        print_json(outcome)
    else:
        print_grids(tuple(outcome.grids.values()), output.format)
    return 0


def _evaluated(what: str, evaluate: Callable[..., Any], plan: Any) -> Any:
    with progress(f"reading {what}") as steps:
        outcome = evaluate(plan, steps)
    say_all(getattr(outcome, "warnings", ()), "Warning: ")
    return outcome


COMMANDS = {
    "evaluate responses": responses,
    "evaluate passages": passages,
    "evaluate statements": statements,
    "evaluate spans": spans,
    "evaluate qrels": qrels,
}

EXAMPLES = read_examples(__file__)
