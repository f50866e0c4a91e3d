"""Judges on public labels by people: their cards, cards side by side, and the datasets."""

from itertools import chain

from judge.ask.forecast import JobForecast
from judge.ask.options import ASKING
from judge.cli.declared import FileOfOptions
from judge.cli.parser import read_examples
from judge.cli.printing import TableFormat, print_fact, print_grids, progress, say
from judge.cli.spending import DryRunOption, asks_again, print_forecast, say_accounts
from judge.errors import UsageError
from judge.extra.bench import DatasetsPlan, list_datasets
from judge.extra.bench.job import BenchPlan, bench_judges, forecast_bench
from judge.extra.bench.page import CardsPlan, card_grids, compare_bench, judge_grids
from judge.io.plan import Options
from judge.io.text import count


class StoredJudges(Options, section="asking"):
    """Whether anybody is asked."""

    stored: bool = False
    """The judges whose labels were released with the data, in place of --model."""


def bench(plan: BenchPlan, judges: StoredJudges, trial: DryRunOption, output: TableFormat, file: FileOfOptions) -> int:
    """Measure a judge on public labels by people, and write its card.

    The datasets are read from a folder that you fill yourself; nothing is downloaded, and `judge bench datasets` says
    what there is and how to get it. The judge is asked under the default prompt of each criterion, or --prompt.
    --stored measures the judges whose labels were released with the data, and asks nobody.
    """
    if bool(plan.model) == judges.stored:
        raise UsageError("expected either a judge to ask (--model) or those whose labels are there (--stored)")
    if judges.stored:
        needless = "they are about asking a judge (--model)"
        plan.refuse_unused((*ASKING, "prompts"), needless)
        trial.refuse_unused(["dry_run"], needless)
    if trial.dry_run:
        _print_forecast(forecast_bench(plan))
        return 0
    with progress("reading datasets") as line:
        outcome = bench_judges(plan, progress=line)
    cards = outcome.cards
    grids = card_grids(cards[0]) if len(cards) == 1 else judge_grids(cards)
    print_grids(grids, output.format)
    say_accounts(outcome.accounts)
    for note in dict.fromkeys(chain.from_iterable(card.notes for card in cards)):
        say(f"note: {note}")
    say(f"{count(len(cards), 'judge card')} in {plan.out}")
    if asks_again(failure.reason for failure in outcome.failures):
        return 3
    return 0 if any(dataset.judge.n for card in cards for dataset in card.datasets) else 1


def compare(plan: CardsPlan, output: TableFormat) -> int:
    """Set judge cards side by side: judges by datasets, and paired differences where the answers are beside the cards.

    A card of other data, or under another prompt than the first card, is not compared, and a line says so.
    """
    with progress("comparing cards"):
        compared = compare_bench(plan)
    print_grids(compared, output.format)
    return 0


def datasets(plan: DatasetsPlan, output: TableFormat) -> int:
    """List the public datasets that judges are measured on: which are below a folder, and how to get the others."""
    print_grids([list_datasets(plan)], output.format)
    return 0


COMMANDS = {"bench": bench, "bench compare": compare, "bench datasets": datasets}


def _print_forecast(forecast: JobForecast) -> None:
    (row,) = forecast.models
    of_datasets = ", ".join(f"{number} of {name}" for name, number in forecast.counts.items())
    print_fact("judge", row.model)
    print_fact("judgments", f"{row.judgments}: {of_datasets}")
    print_fact("  from the journal", str(row.recalled))
    print_fact("  without evidence", str(row.without_evidence))
    print_fact("  by a shared call", str(row.shared))
    print_fact("calls to be made", str(row.expected.calls))
    for note in forecast.notes:
        say(f"note: {note}")
    print_forecast(forecast)


EXAMPLES = read_examples(__file__)
