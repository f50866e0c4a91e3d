"""Find out which judge can be trusted, and how far: compare judges' labels with gold grades of the same responses.

The labels are read from files (--judgments: judgments.jsonl of `judge run`, qrels, or files of four columns, each a
judge named after its file), or the judges are asked (--prompt and --model, each may be given several times, with
--pool).
"""

from judge.ask.asking import JobForecast
from judge.calibrate.report.terminal import summary
from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.printing import columns, print_fact, print_json, progress, say
from judge.cli.spending import DryRunOption, print_forecast, say_accounts, say_lacking_log
from judge.io.cells import count
from judge.jobs.calibration import CalibrationPlan, calibrate_judges
from judge.jobs.calibration.inputs import NEEDLESS
from judge.jobs.calibration.session import forecast_calibration


def main(plan: CalibrationPlan, trial: DryRunOption, output: JsonOutput, file: FileOfOptions) -> int:
    """Read, ask if models are given, compare, write, print; 1 if a requirement is not met."""
    if not plan.models:
        trial.refuse_unused(["dry_run"], NEEDLESS)
    if trial.dry_run:
        with progress("reading gold and labels") as line:
            forecast = forecast_calibration(plan, line)
        _print_forecast(forecast, as_json=output.as_json)
        return 0
    if plan.out:
        say_lacking_log(plan.out)
    with progress("reading gold and labels") as line:
        outcome = calibrate_judges(plan, progress=line)
    if output.as_json:
        print_json(outcome.calibration)
    else:
        print(summary(outcome.calibration, columns()).rstrip("\n"))
    say_accounts(outcome.accounts)
    for missing in outcome.not_drawn:
        say(missing)
    if plan.out:
        say(f"everything is in {plan.out}; start with calibration.md there, then read disagreements.md")
    return 1 if plan.requirements and not outcome.trusted else 0


def _print_forecast(forecast: JobForecast, *, as_json: bool) -> None:
    counts = dict(forecast.counts)
    if as_json:
        judgments = counts.pop("test_judgments")
        print_json({**counts, "by_model": forecast.models, "test_judgments": judgments})
        return
    print_fact("responses", f"{counts['responses']:,} of the pool have gold that is not held out")
    if counts["unmatched"]:
        print_fact("not in the pool", count(counts["unmatched"], "gold grade"))
    for row in forecast.models:
        print_fact("judge", row.model)
        print_fact("judgments", f"{row.judgments:,}")
        print_fact("  without evidence", f"{row.without_evidence:,}")
        print_fact("  from the journal", f"{row.recalled:,}")
        print_fact("  by a shared call", f"{row.shared:,}")
        print_fact("calls to be made", f"{row.calls:,}")
    if counts["test_judgments"]:
        print_fact("test grades", f"at most {count(counts['test_judgments'], 'judgment')} on top, by the chosen judges")
    print_forecast(forecast.models)
