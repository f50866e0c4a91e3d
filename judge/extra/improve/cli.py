"""The command `judge improve`."""

from judge.cli.declared import FileOfOptions
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, print_fact, print_grids, print_text, progress, say, say_all
from judge.cli.spending import DryRunOption, print_calls, print_forecast, say_accounts
from judge.extra.improve.job import forecast_improvement, improve_prompt
from judge.extra.improve.page import candidates_table, outcome_table, sentences
from judge.extra.improve.plan import ImprovePlan


def main(plan: ImprovePlan, trial: DryRunOption, output: TableFormat, file: FileOfOptions) -> int:
    """Search for a better prompt on gold, and prove its gain once on sealed gold.

    In each round a proposer sees the wordings that agree best with assessors, and where they do not, and writes others.
    Each is asked on the dev part. The scale, the inputs and the answer form stay. A round that gains nothing is the
    last one. Then the best wording is asked with graded responses of dev as examples, and where the judge gives label
    probabilities, cut points are fitted, without a call. At the end the sealed test is opened once: GAINED if the 95 %
    interval of the paired gain over the first prompt, over topics, lies above 0; NOT GAINED if none of it does; else
    INCONCLUSIVE. Without --test, or with fewer than 5 topics in it, the word is UNPROVEN. Exit code 0 only for GAINED,
    3 where answers on the test failed, which keep it closed. The same command goes on where an earlier one stopped, and
    pays for nothing twice.
    """
    if trial.dry_run:
        with progress("reading gold") as line:
            forecast = forecast_improvement(plan, line)
        print_fact("dev", f"{forecast.counts['items']:,} judgments under each wording")
        others = forecast.counts["wordings"]
        print_fact("wordings", f"the first and at most {others:,} others" if others else "the first alone")
        if forecast.counts["with_examples"]:
            print_fact("with examples", f"{forecast.counts['with_examples']:,} judgments in the best wording")
        if "cuts" in plan.ways:
            print_fact("cuts", "of the best wording, without a call")
        judge, *proposer = forecast.models
        print_calls(judge, {"requests at most": f"{judge.judgments:,}"})
        for row in proposer:
            print_calls(row, {"wordings at most": f"{row.judgments:,}"})
        if forecast.counts["test_judgments"]:
            print_fact("test grades", f"at most {forecast.counts['test_judgments']:,} judgments on top")
        for note in forecast.notes:
            print_fact("no proof", note)
        print_forecast(forecast)
        return 0
    with progress("reading gold") as line:
        outcome = improve_prompt(plan, progress=line)
    grids = [candidates_table(outcome.ledger)]
    if output.format != "table":
        grids.append(outcome_table(outcome))
    print_grids(grids, output.format)
    if output.format == "table":
        print()
        for sentence in sentences(outcome):
            print_text(sentence)
    say_all(outcome.warnings, "Warning: ")
    say_accounts(outcome.accounts)
    say(f"the prompt: {outcome.prompt}; everything else is beside it; start with improve.md there")
    if outcome.is_unfinished:
        return 3
    return 0 if outcome.word == "GAINED" else 1


COMMANDS = {"improve": main}

EXAMPLES = read_examples(__file__)
