"""Limits that no waiting of a run can outlast: spending, credit, and quotas of a day."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

_REGAIN = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) utc")
_PAY = "add credit to the account at the provider, and give the same command again then"


class _Exhausted(NamedTuple):
    """One way in which a provider says that an account can do nothing more; any of the three marks is enough."""

    codes: frozenset[str]
    """Machine-readable words of the refusal, in lower case."""
    words: str
    """An expression that the message holds, in lower case."""
    quota: str
    """A part of the id of a quota."""
    then: str
    """What to do, and when to come back; `{month}` is the time that the message names, else the next month's first."""


EXHAUSTED: tuple[_Exhausted, ...] = (
    # Anthropic: the pause ends with the month, https://platform.claude.com/docs/en/api/rate-limits.
    _Exhausted(
        frozenset({"enforced_spend_limit_reached"}),
        r"reached your (?:specified )?(?:workspace )?api usage limits",
        "",
        "raise the spend limit at the provider, or give the same command again after {month}",
    ),
    _Exhausted(
        frozenset({"contract_spend_limit_reached"}),
        "",
        "",
        "the contract's spend limit is used up; give the same command again once it is raised or renewed",
    ),
    # Google: quotas of a day begin anew at midnight in California, https://ai.google.dev/gemini-api/docs/rate-limits.
    _Exhausted(
        frozenset(),
        "",
        "PerDay",
        "the quota of the day is used up; give the same command again after midnight Pacific time (08:00 UTC, or 07:00 "
        "UTC in summer), or raise the quota at the provider",
    ),
    # Not "exceeded your current quota": Gemini says this of a limit per minute too.
    _Exhausted(
        frozenset(
            {
                "insufficient_quota",
                "credit_balance_exhausted",
                "billing_hard_limit_reached",
                "billing_not_active",
                "billing_error",
            }
        ),
        r"credit balance is too low|insufficient balance|insufficient_quota",
        "",
        _PAY,
    ),
)
"""How providers say it, one row for each way."""


def advice(status: int, codes: frozenset[str], words: str, quotas: tuple[str, ...]) -> str | None:
    """What to do about a refusal that no waiting outlasts, and when to come back; None for every other refusal.

    Args:
        status: The status of the reply.
        codes: Its machine-readable words, in lower case.
        words: Its message, in lower case.
        quotas: The ids of the quotas that are used up.
    """
    if status < 500:
        for row in EXHAUSTED:
            if (
                codes & row.codes
                or (row.words and re.search(row.words, words))
                or (row.quota and any(row.quota in quota for quota in quotas))
            ):
                named = _REGAIN.search(words)
                return row.then.format(month=f"{named[1]} {named[2]} UTC" if named else _next_month(datetime.now(UTC)))
    return _PAY if status == 402 else None


def _next_month(now: datetime) -> str:
    """The beginning of the next month, as people write it.

    >>> _next_month(datetime(2025, 12, 31, tzinfo=UTC)), _next_month(datetime(2026, 2, 1, tzinfo=UTC))
    ('2026-01-01 00:00 UTC', '2026-03-01 00:00 UTC')
    """
    year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
    return f"{year}-{month:02}-01 00:00 UTC"
