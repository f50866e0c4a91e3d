"""The command `judge probe`."""

from judge.cli.declared import FileOfOptions
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, print_fact, print_grids, print_text, progress, say, say_all
from judge.cli.spending import DryRunOption, asks_again, print_calls, print_forecast, say_accounts
from judge.extra.probe.card import probe_grids, probe_notes
from judge.extra.probe.job import ProbeOutcome, ProbePlan, forecast_probe, probe_judges
from judge.io.text import count


def main(plan: ProbePlan, trial: DryRunOption, output: TableFormat, file: FileOfOptions) -> int:
    """Test a judge itself: does its grade move as it must when a response is altered?

    Draws responses of a pool and makes altered copies of each. Copies with a text that speaks to the judge must not
    gain by it. Copies with less support (a number, a name or a negation altered, a sentence invented, passages swapped)
    must lose. Copies in other words, longer or formatted must keep their grade. Word overlap is measured beside the
    judge. The exit code is 1 if a probe fails or none holds, 3 if asking again may help.
    """
    if trial.dry_run:
        with progress("reading the pool") as line:
            forecast = forecast_probe(plan, line)
        print_fact("items", str(forecast.counts["items"]))
        print_fact("twins", f"{forecast.counts['twins']}, under all prompts")
        for row in forecast.models:
            print_calls(row, {"judgments": str(row.judgments)})
        print_forecast(forecast)
        return 0
    with progress("reading the pool") as line:
        outcome = probe_judges(plan, progress=line)
    print_grids(probe_grids(outcome.card), output.format)
    if output.format == "table":
        print()
        for note in probe_notes(outcome.card):
            print_text(note)
    return _close(plan, outcome)


def _close(plan: ProbePlan, outcome: ProbeOutcome) -> int:
    say_all(outcome.notes, "note: ")
    say_accounts(outcome.accounts)
    say(f"tables, picture and every altered response: {plan.out}")
    if outcome.failures:
        reasons = ", ".join(sorted({failure.reason for failure in outcome.failures}))
        say(f"missing: {count(len(outcome.failures), 'judgment')} ({reasons}), see twins.jsonl")
    if asks_again(failure.reason for failure in outcome.failures):
        return 3
    return 1 if outcome.fails or outcome.shows_nothing else 0


COMMANDS = {"probe": main}

EXAMPLES = read_examples(__file__)
