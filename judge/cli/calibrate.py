"""Judges against gold, and against themselves at another date."""

from judge.ask.forecast import JobForecast
from judge.calibrate.recheck import Drift
from judge.calibrate.report.pages import summary
from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.printing import columns, print_fact, print_json, print_table, progress, say, say_all
from judge.cli.spending import DryRunOption, print_forecast, say_accounts
from judge.io.text import count, interval, number
from judge.jobs.calibration import CalibrationPlan, calibrate_judges, forecast_calibration
from judge.jobs.calibration.inputs import NEEDLESS
from judge.jobs.drift import DriftPlan, compare_dates


def calibrate(plan: CalibrationPlan, trial: DryRunOption, output: JsonOutput, file: FileOfOptions) -> int:
    """Find out which judge can be trusted, and how far: compare judges' labels with gold grades of the same responses.

    A table with people's and a judge's grades in columns is enough. Otherwise the labels are read from files
    (--judgments: judgments.jsonl of `judge run`, qrels, or files of four columns, each a judge named after its
    file), or the judges are asked (--prompt and --model, each may be given several times, with --pool). With
    --certificate, it says whether the agreement that was certified on other topics carries to these.
    """
    if not plan.models:
        trial.refuse_unused(["dry_run"], NEEDLESS)
    if trial.dry_run:
        with progress("reading gold and labels") as line:
            forecast = forecast_calibration(plan, line)
        _print_forecast(forecast, as_json=output.as_json)
        return 0
    with progress("reading gold and labels") as line:
        outcome = calibrate_judges(plan, progress=line)
    say_all(outcome.notes)
    if output.as_json:
        print_json(outcome.calibration)
    else:
        whole = "calibration.md" if plan.out else "--json"
        print(summary(outcome.calibration, columns(), whole).rstrip("\n"))
    say_accounts(outcome.accounts)
    say_all(outcome.not_drawn)
    if plan.out:
        say(f"everything is in {plan.out}; start with calibration.md there, then read disagreements.md")
    untrusted = bool(plan.requirements) and not outcome.trusted
    return 0 if outcome.carries and not untrusted else 1


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
        print_fact("calls to be made", f"{row.expected.calls:,}")
    if counts["test_judgments"]:
        print_fact("test grades", f"at most {count(counts['test_judgments'], 'judgment')} on top, by the chosen judges")
    print_forecast(forecast)


HEADER = (
    *("judge", "prompt", "verdict", "change [95 %]", "n/topics", "[90 %]", "unchanged [95 %]"),
    *("higher", "lower", "lost", "gained"),
)


def drift(plan: DriftPlan, output: JsonOutput) -> int:
    """Compare a judge's grades of the same responses at two dates.

    Says how far the mean grade moved, with its interval over topics, and how many grades are unchanged. STEADY: two
    one-sided tests at 5 % find a change smaller than the margin. MOVED: a change beyond it. Where all grades moved
    alike, or none, an exact bound over topics decides. Exit code 1 unless all is STEADY.
    """
    with progress("comparing two dates"):
        outcome = compare_dates(plan)
    say_all(outcome.warnings, "Warning: ")
    if output.as_json:
        print_json({"warnings": outcome.warnings, "rows": outcome.rows})
    else:
        without = [
            f"{row.after}: no interval of the change ({row.within.reason})"
            for row in outcome.rows
            if row.within.low is None
        ]
        print_table(HEADER, [_cells(row) for row in outcome.rows], words=3, keys=2, below=without, whole="--json")
    return 0 if outcome.steady else 1


def _cells(row: Drift) -> tuple[str, ...]:
    low, high = (number(end, signed=True) for end in (row.within.low, row.within.high))
    return (
        row.after, row.prompt or "-", row.word, interval(row.change, signed=True), f"{row.n}/{row.topics}",
        "-" if row.within.low is None else f"[{low}, {high}]", interval(row.unchanged),
        *map(str, (row.higher, row.lower, row.lost, row.gained)),
    )  # fmt: skip


COMMANDS = {"calibrate": calibrate, "drift": drift}
