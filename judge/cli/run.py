"""Runs pooled and judged."""

from functools import cache, partial

from msgspec import structs

import judge.cli.tables as tables
from judge.ask.forecast import JobForecast, ModelForecast
from judge.ask.progress import job_progress
from judge.ask.results import failure_counts
from judge.calibrate.certificate import CertificateStatement
from judge.cli.declared import FileOfOptions, JsonOutput
from judge.cli.printing import print_fact, print_json, print_table, print_text, progress, say, say_all
from judge.cli.spending import DryRunOption, asks_again, print_beside, print_forecast, say_accounts
from judge.io.ids import groups_of
from judge.io.text import count
from judge.jobs.folder import check_pool, write_pool
from judge.jobs.parts import PASSAGES, parts_of
from judge.jobs.pooling import PoolPlan, check_complete, pool_runs, pooled_unit
from judge.jobs.run import Outcome, carry_out, dry_run
from judge.jobs.run_inputs import DEFAULT_OUT, Plan, RunInputs
from judge.judges.credentials import secret_names
from judge.plugins import added
from judge.runs.sources import Sources
from judge.units import UNITS


def pool(plan: PoolPlan, output: JsonOutput, file: FileOfOptions) -> int:
    """Pool the runs of a folder without judging anything, for human assessors, a crowd or `judge run`.

    Writes the pool (TREC pool, records, response bank, passages), each run over the pooled responses, and the reason
    for each response left out. `judge run` with the same options and --out continues there.
    """
    out = plan.out or plan.extend or DEFAULT_OUT
    first, passages = parts_of(plan, out)
    with progress("reading and checking runs") as steps:

        @cache
        def read_once() -> Sources:
            # By what is pooled, as far as it is known: of passages, lists in folders are runs too.
            return first.sources() if passages is None else first.sources_beside_lists()

        first = first.with_values(unit=pooled_unit(first, read_once))
        sources = read_once()
        pooled = pool_runs(first, steps, sources)
        parts = [(first, out, pooled)]
        if passages is not None:
            parts.append((passages, out / PASSAGES, pool_runs(passages, steps, beside=pooled)))
    say_all(sources.notes)
    tables.print_problems(pooled, checked_topics=pooled.asks)
    for part, _, of_part in parts:
        if part.missing_passages == "fail":
            check_complete(of_part.pool)
    beside = () if passages is None else (PASSAGES,)
    with progress("writing the pool"):
        # Nothing is written where one of the folders cannot be.
        for part, folder, of_part in parts:
            check_pool(folder, of_part, extended=part.extend, replace=part.replace, beside=beside)
        for part, folder, of_part in parts:
            write_pool(
                folder,
                of_part,
                part.argv,
                extended=part.extend,
                replace=part.replace,
                options=part.chosen,
                beside=beside,
            )
    for _, folder, of_part in parts:
        tables.print_pooled(of_part)
        say(f"the pool is in {folder}")
    if output.as_json:
        counts = [tables.pooled_counts(of_part) for _, _, of_part in parts]
        print_json(counts[0] if passages is None else {**counts[0], "passages": counts[1]})
    return 0 if all(of_part.pool.responses for _, _, of_part in parts) else 1


_GIVES_TEXTS = (
    "no judgment has all texts of its passages; --passages FILE gives them, and `judge passages extract` makes that "
    "file of a collection"
)
_SHOWN, _DIGEST = 24, 13
"""Longest value of a certificate, and longest digest, that the terminal shows, in characters."""


def run(plan: Plan, trial: DryRunOption, output: JsonOutput, file: FileOfOptions) -> int:
    """Judge every run of a folder: check, pool, ask a judge, write response qrels and a leaderboard.

    Without --model (or the environment variable JUDGE_MODEL), no key is needed: checker/overlap labels each sentence
    for groundedness by the words of the passages, and a small local model, fetched once, judges the rest. Their grades
    are a demonstration, not a measurement. Relevance, completeness and conciseness look at the conversation and need
    --topics. So do the criteria of whole dialogues (usefulness, coherence, attentiveness, clarification), which are
    judged in a run of their own. With passage_relevance beside criteria of responses, the passages get a folder of
    their own, passages in --out, and the report says which of the used passages are relevant.
    """
    with progress("reading and checking runs") as steps:
        inputs = RunInputs(plan, keys=not trial.dry_run, steps=steps)
    say_all(inputs.notes)
    tables.print_problems(inputs.pooled, checked_topics=inputs.pooled.asks)
    parts = (inputs,) if inputs.passages is None else (inputs, inputs.passages)
    for part in parts:
        tables.print_pooled(part.pooled)
    for part in parts:
        if (expectation := part.certified()) is not None:
            _print_matches(expectation, table=not output.as_json)
    for part in parts:
        say_all(part.jury.warnings if part.jury else (), "warning: ")
    if trial.dry_run:
        return print_dry_run(inputs, as_json=output.as_json)
    for waiting in added("rounds", ()).values():
        for part in parts:
            for folder, number in waiting(part.out):
                requests = count(number, "request")
                say(f"warning: nothing came back yet for the {requests} of {folder}; they are asked here too")
    with progress("") as bar, job_progress(bar) as shown:
        outcome = carry_out(inputs, shown)
    if output.as_json:
        print_json(_as_json(outcome))
    else:
        _print_results(outcome)
    codes: list[int] = []
    for part_outcome in (outcome,) if outcome.passages is None else (outcome, outcome.passages):
        if outcome.passages is not None:
            say("")
            say(f"{UNITS[part_outcome.pool.unit].nouns.responses}, in {part_outcome.out}:")
        say_all(part_outcome.judge_notes)
        tables.print_rechecked(part_outcome.rechecked, table=not output.as_json)
        say_all(part_outcome.label_notes)
        say_all(part_outcome.model_notes, "warning: ")
        codes.append(_close(part_outcome))
    tables.name_results(outcome)
    return max(codes)


def _as_json(outcome: Outcome) -> object:
    """The rows of what was judged; of responses and passages by name."""
    if UNITS[outcome.pool.unit].listed:
        return outcome.tables.grades
    if outcome.passages is None:
        return outcome.leaderboard
    return {
        "leaderboard": outcome.leaderboard,
        "passages": outcome.passages.tables.grades,
        "used_passages": outcome.used.runs if outcome.used is not None else (),
    }


def _print_results(outcome: Outcome) -> None:
    if UNITS[outcome.pool.unit].listed:
        tables.print_grades(outcome.tables.grades, outcome.criteria, outcome.banner)
        return
    rated = partial(tables.print_ratings, outcome.tables)
    tables.print_leaderboard(
        outcome.leaderboard, outcome.criteria, outcome.banner, outcome.differences, outcome.clustered, rated
    )
    for line in outcome.notes.agreement if outcome.notes else ():
        print()
        print_text(line)
    if outcome.used is not None:
        tables.print_used(outcome.used)
    if outcome.passages is not None:
        print()
        _print_results(outcome.passages)


def _print_matches(expectation: CertificateStatement, *, table: bool) -> None:
    for criterion, matches in groups_of((match.criterion, match) for match in expectation.matches).items():
        if table:
            print_text(criterion)
            rows: list[tuple[str, str, str, str]] = []
            for match in matches:
                same = "same" if match.same else "DIFFERS"
                rows.append((match.item, same, _brief(match.certified), _brief(match.found)))
            print_table(("item", "", "certified", "here"), rows, words=4, keys=4)
    unlike = dict.fromkeys(match.criterion for match in expectation.matches if not match.same)
    if unlike:
        say(f"not as certified: {', '.join(unlike)}; this run may not be called calibrated")


def _brief(text: str) -> str:
    most = _DIGEST if len(text) == 64 and text.isalnum() else _SHOWN
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _close(outcome: Outcome) -> int:
    say_accounts(outcome.accounts)
    say("")
    failures = failure_counts(outcome.results)
    judgments = len(outcome.results)
    missing = failures.total()
    if missing:
        say(f"missing: {missing} of {count(judgments, 'judgment')} ({', '.join(sorted(failures))}), see failures.jsonl")
    if missing == judgments:
        say(f"nothing was judged{f': {_GIVES_TEXTS}' if set(failures) <= {'no_passages'} else ''}")
    of_members = failure_counts(outcome.notes.said if outcome.notes else ())
    if of_members:
        are = "is" if of_members.total() == 1 else "are"
        said = f"{count(of_members.total(), 'judgment')} of members {are} missing"
        say(f"{said} ({', '.join(sorted(of_members))}), see member_failures.jsonl")
    say_all(outcome.masked, "warning: ")
    if outcome.masked and (names := secret_names()):
        say(f"the values of these variables are written nowhere: {', '.join(names)}")
    if asks_again((*failures, *of_members)):
        return 3
    return 1 if missing == judgments else 0


def print_dry_run(inputs: RunInputs, *, as_json: bool) -> int:
    """Print what a plan would send, of responses and passages each and in all; 1 if nothing can be judged."""
    forecast = dry_run(inputs)
    if inputs.passages is None:
        if as_json:
            print_json(_forecast_json(inputs, forecast))
        else:
            _print_counts(inputs, forecast)
            print_forecast(forecast)
        say_all(inputs.left_out, "warning: ")
        return say_lacking(forecast)
    beside = dry_run(inputs.passages)
    models: list[ModelForecast] = []
    for part, of_part in ((inputs, forecast), (inputs.passages, beside)):
        nouns = UNITS[part.pooled.pool.unit].nouns
        models += [structs.replace(row, model=f"{row.model}, {nouns.responses}") for row in of_part.models]
    both = JobForecast(counts={}, models=tuple(models))
    if as_json:
        passages = _forecast_json(inputs.passages, beside)
        in_all = {"expected": both.expected, "most": both.most}
        print_json({**_forecast_json(inputs, forecast), "passages": passages, "in_all": in_all})
    else:
        for part, of_part in ((inputs, forecast), (inputs.passages, beside)):
            print_text(UNITS[part.pooled.pool.unit].nouns.responses, "heading")
            _print_counts(part, of_part)
            print()
        print_text("in all", "heading")
        print_fact("calls to be made", str(both.expected.calls))
        print_forecast(both)
    return max(say_lacking(forecast), say_lacking(beside))


def _forecast_json(inputs: RunInputs, forecast: JobForecast) -> dict[str, object]:
    totals = {"expected": forecast.expected, "most": forecast.most}
    return {"judge": inputs.judge.name, **forecast.counts, **totals, "by_model": forecast.models}


def say_lacking(forecast: JobForecast) -> int:
    """Say so if nothing can be judged, since all texts of passages are lacking; 1 then."""
    counts = forecast.counts
    lacking = counts["without_evidence"] > 0 and not forecast.expected.calls + counts["recalled"]
    if lacking:
        say(f"nothing can be judged: {_GIVES_TEXTS}")
    return int(lacking)


def _print_counts(inputs: RunInputs, forecast: JobForecast) -> None:
    unit = UNITS[inputs.pooled.pool.unit]
    counts = forecast.counts
    responses = counts["responses"]
    factors = [(responses // unit.orders, unit.nouns.response)]
    if unit.orders > 1:
        factors.append((unit.orders, "order"))
    factors += [(counts["prompts"], "prompt"), (counts["models"], "model"), (counts["samples"], "sample")]
    product = " × ".join(count(number, name) for number, name in factors)
    print_fact("judge", inputs.judge.name)
    if inputs.jury is not None:
        for name, members in inputs.jury.members.items():
            print_fact("  members", f"{len(members)} under {name}")
    print_fact("judgments", f"{counts['judgments']:,} = {product}")
    print_fact("  from the journal", f"{counts['recalled']:,}")
    print_fact("  without evidence", f"{counts['without_evidence']:,}")
    print_fact("  by a shared call", f"{counts['shared']:,}")
    print_fact("  beyond the limit", f"{counts['left_out']:,}")
    answered = counts["recalled"] + counts["without_evidence"] + counts["shared"] + counts["left_out"]
    calls = forecast.expected.calls - counts["rechecked"]
    print_beside(counts["judgments"] - answered - calls)
    print_fact("calls to be made", f"{calls:,}")
    if counts["rechecked"]:
        print_fact("to be asked again", f"{counts['rechecked']} on top (--recheck {inputs.plan.recheck})")


COMMANDS = {"pool": pool, "run": run}
