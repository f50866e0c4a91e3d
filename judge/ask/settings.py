"""The limits of asking: calls at once, attempts, money, and rates. Pure."""

from collections.abc import Mapping

import msgspec

from judge.judges.model import Price


class Settings(msgspec.Struct, frozen=True):
    """How many calls and how much money the loop may use."""

    concurrency: int = 16
    """Calls in flight at most."""
    attempts: int = 6
    """Most attempts of one call; only failures that may pass are tried again, and rate limits do not count."""
    max_cost: float | None = None
    """US dollars that this process may spend; judgments left over fail for `budget`."""
    prices: Mapping[str, Price] = {}
    """Prices by the model's name, in place of what is known of it; `*` names every other model."""
    price_table: Mapping[str, Price] = {}
    """Prices as in `prices`, which wins over it; it may name models that are not asked."""
    rpm: int | None = None
    """Requests a minute that one judge is sent at most."""
    tpm: int | None = None
    """Tokens a minute, likewise, by our own estimate."""
    max_wait: float = 300.0
    """Seconds for which a provider may make the loop wait; one that asks for more ends it."""

    @property
    def known_prices(self) -> Mapping[str, Price]:
        """The prices of both."""
        return {**self.price_table, **self.prices}
