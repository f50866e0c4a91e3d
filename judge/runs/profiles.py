"""The limits that a track set for the responses of a year: how long, counted how, with how many citations. Pure.

The pages of a track contradict each other; docs/interactive.md has what each says. A row holds one reading, and options
hold any other.
"""

from typing import Any, NamedTuple

from judge.errors import UsageError
from judge.runs.records import TokenRule
from judge.text.safe import shown


class Profile(NamedTuple):
    """The limits of a track's year."""

    track: str
    year: int
    interactive: bool
    """Whether they are those of interactive runs."""
    token_limit: int
    """Longest response in tokens."""
    token_rule: TokenRule
    """The way of counting that the limit goes by."""
    citation_limit: int | None
    """The most passages that a response may cite or flag as used; None for no limit."""


PROFILES = {
    "cast2022": Profile("CAsT", 2022, False, 250, "bare", None),
    "ikat2023": Profile("iKAT", 2023, False, 250, "bare", None),
    "ikat2024": Profile("iKAT", 2024, False, 250, "bare", None),
    "ikat2025": Profile("iKAT", 2025, False, 250, "bare", None),
    # The interface refuses what is longer, so its way of counting is the one that runs were held to.
    "ikat2025-interactive": Profile("iKAT", 2025, True, 250, "english", 1000),
    "ikat2026-interactive": Profile("iKAT", 2026, True, 512, "bare", 10),
}
"""The profiles by name."""
DEFAULT_PROFILE = "ikat2025"
"""The profile where neither the user nor the topics say which."""


class Limits(NamedTuple):
    """The limits that runs are checked against, and the profile that those not given come from."""

    profile: str
    token_limit: int
    token_rule: TokenRule
    citation_limit: int | None

    @property
    def overridden(self) -> tuple[str, ...]:
        """The fields that are not as the profile has them, because options say otherwise."""
        row = PROFILES[self.profile]
        return tuple(name for name in _WORDS if getattr(self, name) != getattr(row, name))

    def recorded(self) -> dict[str, Any]:
        """The limits as JSON values."""
        return {**self._asdict(), "overridden": list(self.overridden)}


_WORDS = {"token_limit": "token limit", "token_rule": "way of counting", "citation_limit": "citation limit"}
"""Each limit in words."""


def described(limits: Limits) -> str:
    """The limits in words.

    >>> described(limits_of("ikat2026-interactive"))
    '512 tokens by the rule bare, 10 used passages (profile ikat2026-interactive)'
    >>> described(limits_of("ikat2024", token_limit=300))
    '300 tokens by the rule bare, any number of used passages (profile ikat2024, not its token limit)'
    """
    citations = "any number of" if limits.citation_limit is None else f"{limits.citation_limit:,}"
    length = f"{limits.token_limit:,} tokens by the rule {limits.token_rule}"
    other = " or ".join(_WORDS[name] for name in limits.overridden)
    profile = f"profile {limits.profile}, not its {other}" if other else f"profile {limits.profile}"
    return f"{length}, {citations} used passages ({profile})"


def limits_of(
    profile: str | None = None,
    year: int | None = None,
    token_limit: int | None = None,
    token_rule: TokenRule | None = None,
    citation_limit: int | None = None,
) -> Limits:
    """The given limits, and those of a profile for the others.

    Args:
        profile: A key of PROFILES; by default the one of the year.
        year: The year of the topics; None without topics, or for topics of no known year.
        token_limit: Longest response in tokens; the profile's if None.
        token_rule: The way of counting; the profile's if None.
        citation_limit: The most used passages of a response; the profile's if None.

    Raises:
        UsageError: There is no such profile.

    >>> limits_of(year=2024, token_limit=300)
    Limits(profile='ikat2024', token_limit=300, token_rule='bare', citation_limit=None)
    """
    if profile is None:
        of_year = (name for name, row in PROFILES.items() if row.year == year and not row.interactive)
        profile = next(of_year, DEFAULT_PROFILE)
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {shown(profile)}; one of {', '.join(PROFILES)}")
    row = PROFILES[profile]
    return Limits(
        profile,
        row.token_limit if token_limit is None else token_limit,
        token_rule or row.token_rule,
        row.citation_limit if citation_limit is None else citation_limit,
    )
