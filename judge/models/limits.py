"""What a provider says of its rate limits, with every reply. Pure."""

import msgspec


class Allowance(msgspec.Struct, frozen=True):
    """One limit of a provider; None for what it does not say."""

    limit: int | None = None
    """Most in the provider's window, which is a minute at most of them."""
    left: int | None = None
    """What is left of it now."""
    reset: float | None = None
    """Seconds until all of it is there again."""


class RateLimits(msgspec.Struct, frozen=True):
    """The limits that the headers of one reply name."""

    requests: Allowance = Allowance()
    tokens: Allowance = Allowance()
