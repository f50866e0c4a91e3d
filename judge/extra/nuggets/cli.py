"""Banks of nuggets, the matches of responses with them, and the recall of runs."""

from collections import Counter
from pathlib import Path

from judge.ask.opening import OVERLAP
from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, print_grids, print_json, progress, say
from judge.cli.spending import DryRunOption, asks_again, print_calls, print_forecast, say_accounts
from judge.extra.nuggets import banks, questions, scoring
from judge.extra.nuggets.create import NuggetCreatePlan, NuggetCreation, create_nuggets, forecast_creation
from judge.extra.nuggets.scores import MAIN
from judge.io.text import count


def create(plan: NuggetCreatePlan, trial: DryRunOption, file: FileOfOptions) -> int:
    """Ask a judge for a bank of nuggets: which facts a good response to each turn may state, and which are vital.

    Nuggets are taken from the passages that responses used and from the responses, one call for each. Repeats are left
    out, and another prompt says which nuggets are vital. The same command goes on where an earlier one stopped, and
    pays for nothing twice.
    """
    if plan.qrels is None:
        plan.refuse_unused(["relevant_from"], "it is about the grades of --qrels")
    if trial.dry_run:
        forecast = forecast_creation(plan)
        counts, (row,) = forecast.counts, forecast.models
        of = f"{counts['passages']} passages, {counts['responses']} responses"
        print_calls(row, {"turns": str(counts["turns"]), "sources": f"{row.judgments}: {of}"})
        say("repeats and importance come on top, with two calls or more a turn that depend on these replies")
        print_forecast(forecast)
        return 0
    with progress("reading the pool") as line:
        outcome = create_nuggets(plan, progress=line)
    _say_account(outcome)
    given = Counter(nugget.importance for nugget in outcome.nuggets)
    say(
        f"{count(len(outcome.nuggets), 'nugget')} of {count(outcome.turns, 'turn')} in {plan.out}: "
        f"{given['vital']} vital, {given['okay']} okay"
    )
    if outcome.without:
        say(f"{count(len(outcome.without), 'turn')} without nuggets, see bank.json")
    if outcome.failures:
        say(f"{count(len(outcome.failures), 'answer')} missing, see failures.jsonl")
    if asks_again((failure.reason for failure in outcome.failures), "an answer"):
        return 3
    return 0 if outcome.nuggets else 1


def _say_account(outcome: NuggetCreation | questions.NuggetAnswers) -> None:
    say_accounts((outcome.account,))
    for note in outcome.notes:
        say(f"note: {note}")


def match(plan: questions.NuggetMatchPlan, trial: DryRunOption, file: FileOfOptions) -> int:
    """Ask a judge which nuggets the responses of a pool support, one question for each response and nugget.

    The answers are matches: supports, partly, does_not or contradicts. A question without an answer is a failure, never
    a label. The same command goes on where an earlier one stopped, and pays for nothing twice.
    """
    if trial.dry_run:
        forecast = questions.forecast_nuggets(plan)
        (row,) = forecast.models
        of = ", ".join(f"{number} {name}" for name, number in forecast.counts.items())
        print_calls(row, {"pairs": f"{row.judgments}: {of}"})
        print_forecast(forecast)
        return 0
    with progress("reading the pool") as line:
        outcome = questions.match_nuggets(plan, progress=line)
    _say_account(outcome)
    labels = ", ".join(f"{number} {label}" for label, number in questions.label_counts(outcome.answers).items())
    say(f"{count(len(outcome.answers), 'match', 'matches')} in {plan.out}: {labels}")
    if outcome.failures:
        say(f"{len(outcome.failures)} missing, see failures.jsonl")
    if asks_again((failure.reason for failure in outcome.failures), "a match"):
        return 3
    return 0 if outcome.answers else 1


def convert(plan: banks.NuggetConvertPlan, output: JsonOutput) -> int:
    """Write a bank of nuggets in another form; the form of the given bank is seen from its content.

    A bank is read in judge's own form (JSON Lines), nuggetizer's with the rubrics of RAG 2026, that of RAGTIME and
    AutoJudge, CONE-RAG's, or as the rubric questions of iKAT 2025.
    """
    bank = banks.convert_bank(plan)
    nuggets = bank.nuggets
    turns = len({nugget.turn_id for nugget in nuggets if nugget.turn_id is not None})
    topics = len({nugget.topic_id for nugget in nuggets})
    importance = dict(sorted(Counter(nugget.importance or "without importance" for nugget in nuggets).items()))
    if output.as_json:
        counts = {"nuggets": len(nuggets), "turns": turns, "topics": topics, "importance": importance}
        print_json({"file": str(plan.out), "form": bank.form, **counts})
    held = ", ".join(f"{number} {name}" for name, number in importance.items())
    of_turns = f"{count(turns, 'turn')}, " if turns else ""
    say(f"{plan.out}: {count(len(nuggets), 'nugget')} of {of_turns}{count(topics, 'topic')}: {held}")
    return 0


def agree(plan: scoring.NuggetAgreePlan, output: TableFormat) -> int:
    """How far the matches of a judge agree with those of people of the same pairs, with intervals over topics."""
    with progress("comparing matches"):
        agreement = scoring.compare_matches(plan)
    print_grids(scoring.agreement_grids(agreement), output.format)
    for note in agreement.notes:
        say(f"note: {note}")
    return 0


def score(plan: scoring.NuggetScorePlan, output: TableFormat) -> int:
    """The recall of runs: which share of the nuggets of a turn the responses support, by people's matches or a judge's.

    Names of measures are nuggetizer's. With --gold, the recall by a judge is corrected by people's matches of a part of
    the responses. With --citations, runs have ARGUE's measures too.
    """
    with progress("scoring runs"):
        scored = scoring.score_nuggets(plan)
    print_grids(scored.grids, output.format)
    for note in scored.notes:
        say(f"note: {note}")
    if plan.out is not None:
        say(f"tables in {plan.out}")
    return 0 if any(unit.status == "matched" for unit in scored.units) else 1


def rank_example(folder: Path, out: Path) -> dict[str, int | None]:
    """The ranks of the example's runs by the nuggets that their responses support, matched by word overlap."""
    bank = folder / "examples" / "nuggets.jsonl"
    matches = folder / "nuggets"
    questions.match_nuggets(questions.NuggetMatchPlan(pool=out, bank=bank, model=OVERLAP, out=matches))
    scored = scoring.score_nuggets(
        scoring.NuggetScorePlan(pool=out, bank=bank, matches=(matches,), out=folder / "nugget-scores")
    )
    return {row.run_id: row.rank for row in scored.scores if row.criterion == MAIN}


COMMANDS = {
    "nuggets create": create,
    "nuggets convert": convert,
    "nuggets match": match,
    "nuggets agree": agree,
    "nuggets score": score,
}

EXAMPLES = read_examples(__file__)
