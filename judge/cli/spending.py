"""What asking a judge will cost, and what it took: facts of a dry run, and a table after the asking."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.ask.account import JudgeAccount
from judge.ask.forecast import JobForecast, ModelForecast
from judge.cli.printing import columns, print_fact, print_table, say, say_all
from judge.io.layout import table_lines
from judge.io.plan import Options
from judge.io.text import count, dollars, lasting, printable
from judge.judges.prices import Spending

GIVES_PRICE = "--price IN/OUT or a file (--prices) gives one"

ASK_AGAIN = {"provider_error", "prompt_cut", "budget"}
"""Failures that another call of the same command may end."""
_TOOK = ("judge", "calls", "attempts", "prompt", "cached", "reply", "thoughts", "cost", "time")
_EXPECTED = ("model", "calls", "prompt tokens", "reply tokens", "cost", "at most", "calls counted")


class DryRunOption(Options, section="the loop"):
    """Whether anything is asked."""

    dry_run: bool = False
    """Count what would be asked, tokens and cost; send and write nothing."""


def asks_again(reasons: Iterable[str], what: str = "a judgment") -> bool:
    """Whether the same command asks again for what is missing for these reasons; if so, say it."""
    again = any(reason in ASK_AGAIN for reason in reasons)
    if again:
        say(f"the same command asks again where a passing failure or the budget stopped {what}")
    return again


def print_calls(row: ModelForecast, facts: Mapping[str, str]) -> None:
    """Print what a model would be asked in a dry run."""
    for name, fact in {
        "judge": row.model,
        **facts,
        "  from the journal": f"{row.recalled:,}",
        "  by a shared call": f"{row.shared:,}",
    }.items():
        print_fact(name, fact)
    print_beside(row.judgments - row.recalled - row.without_evidence - row.shared - row.expected.calls)
    print_fact("calls to be made", f"{row.expected.calls:,}")


def print_beside(questions: int) -> None:
    """Print how many questions go out in the call of another one, for a judge that takes several in a call."""
    if questions:
        print_fact("  in the same call", str(questions))


def print_forecast(forecast: JobForecast) -> None:
    """Print what the calls of a dry run come to: in all, what the estimate rests on, and for each of several models."""
    rows = forecast.models
    expected = forecast.expected
    if expected.attempts > expected.calls:
        print_fact("requests", f"{expected.attempts:,} in all")
    print_fact("prompt tokens", f"about {expected.prompt_tokens:,}")
    print_fact("reply tokens", f"about {expected.completion_tokens:,}")
    if unpriced := [row.model for row in rows if row.most is None]:
        print_fact("cost", f"unknown: no price for {', '.join(unpriced)} here ({GIVES_PRICE})")
    elif forecast.most:
        print_fact("cost", f"about {_money(expected.cost)}, at most {_money(forecast.most)}")
    else:
        print_fact("cost", "nothing")
    bases = dict.fromkeys(map(_basis, rows))
    print_fact("estimated by", "; ".join(bases) if len(bases) == 1 else "each model's own calls, as far as counted")
    if len(rows) > 1:
        print()
        print_table(_EXPECTED, [_expected(row) for row in rows], whole="--json")
    say("nothing was sent and nothing was written")


def _basis(row: ModelForecast) -> str:
    rates = f"{row.bytes_per_token:.3g} bytes a token and {row.tokens_per_reply:.0f} tokens a reply"
    counted = f"as counted in {count(row.counted_calls, 'call')}" if row.counted_calls else "our own guess"
    return f"{rates}, {counted}; none from a cache"


def _expected(row: ModelForecast) -> tuple[str, ...]:
    expected = row.expected
    return (
        row.model,
        f"{expected.calls:,}",
        f"{expected.prompt_tokens:,}",
        f"{expected.completion_tokens:,}",
        _money(expected.whole_cost),
        _money(row.most),
        f"{row.counted_calls:,}" if row.counted_calls else "-",
    )


def say_accounts(accounts: Sequence[JudgeAccount]) -> None:
    """Say on stderr what each judge's calls took, beside the estimate; nothing of free judges that count no tokens."""
    shown = [account for account in accounts if _is_of_interest(account.results) or _is_of_interest(account.asked)]
    if not shown:
        return
    rows: list[tuple[str, ...]] = []
    for account in shown:
        rows.extend(_rows(account))
    if len(shown) > 1:
        rows.extend(_rows(in_all(shown)))
    headings: tuple[str, ...] = _TOOK
    if not any(account.results.thought_tokens or account.asked.thought_tokens for account in shown):
        place = _TOOK.index("thoughts")
        headings = _TOOK[:place] + _TOOK[place + 1 :]
        rows = [row[:place] + row[place + 1 :] for row in rows]
    say("")
    say_all(table_lines(headings, rows, columns(), keys=1, whole="manifest.json"))
    say_all(_notes(shown))


def _is_of_interest(took: Spending) -> bool:
    return bool(took.counted or took.prompt_tokens or took.cost) or took.priced < took.calls


def _rows(account: JudgeAccount) -> Iterator[tuple[str, ...]]:
    asked = account.asked
    results = account.results
    expected = account.expected
    yield (printable(account.judge), *[""] * (len(_TOOK) - 1))
    if _is_of_interest(asked) or asked.calls:
        tokens = f"{expected.prompt_tokens:,}", "", f"{expected.completion_tokens:,}"
        yield "  estimated", f"{expected.calls:,}", "", *tokens, "", _money(expected.whole_cost), ""
        yield "  asked now", *_cells(asked)
    if results != asked:
        yield "  all results", *_cells(results)


def _cells(took: Spending) -> tuple[str, ...]:
    # Calls that failed count none, and may have been paid for.
    known = bool(took.counted or took.prompt_tokens)
    tokens = (f"{number:,}" if known else "unknown" for number in (took.prompt_tokens, took.cached_tokens))
    least = "" if took.priced == took.calls else "at least "
    return (
        f"{took.calls:,}",
        f"{took.attempts:,}",
        *tokens,
        f"{took.completion_tokens:,}" if known else "unknown",
        f"{took.thought_tokens:,}" if known else "unknown",
        f"{least}{_money(took.cost)}" if took.priced or took.cost else "unknown",
        lasting(took.seconds) if took.timed else "unknown",
    )


def _money(amount: float | None) -> str:
    """An amount with the digits that tell an estimate from what came of it."""
    if amount is None:
        return "unknown"
    return f"${amount:.4f}" if 0.0001 <= amount < 1 else dollars(amount)


def _notes(accounts: Sequence[JudgeAccount]) -> Iterator[str]:
    seconds = sum(account.seconds for account in accounts if account.asked.calls)
    if seconds:
        yield f"asking took {lasting(seconds)}; the times in the table add up calls that ran at once"
    for account in accounts:
        took = account.results if account.results.thought_tokens else account.asked
        if took.thought_tokens and account.price is not None and account.price.completion:
            spent = _money(took.thought_tokens * account.price.completion)
            told = f"{took.thought_tokens:,} tokens of hidden thoughts, {spent} at the price of a reply"
            yield f"{printable(account.judge)}: {told}"
    total = sum((account.results for account in accounts), Spending())
    if uncounted := total.calls - total.counted:
        yield f"the tokens of {count(uncounted, 'call')} were not counted by the provider and are in no sum"
    if unpriced := total.calls - total.priced:
        yield f"the cost is without {count(unpriced, 'call')} that have no price; {GIVES_PRICE}"


def in_all(accounts: Sequence[JudgeAccount]) -> JudgeAccount:
    """What the calls of several judges took together."""
    return JudgeAccount(
        judge="in all",
        expected=sum((row.expected for row in accounts), Spending()),
        basis="; ".join(dict.fromkeys(row.basis for row in accounts)),
        asked=sum((row.asked for row in accounts), Spending()),
        results=sum((row.results for row in accounts), Spending()),
        seconds=sum(row.seconds for row in accounts),
    )
