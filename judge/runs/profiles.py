"""The years of the tracks: the limits that each set for its responses, and the year of a run. Pure.

The pages of a track contradict each other; docs/interactive.md has what each says. A row holds one reading, and options
hold any other.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, NamedTuple

from judge.errors import UsageError
from judge.io.ids import topic_of
from judge.io.text import shown
from judge.plugins import OpenTable
from judge.runs.records import Run, TokenRule

UNLIMITED = 1_000_000
"""A token limit that no response reaches which is judged at all."""


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
    formats: tuple[str, ...] = ()
    """The formats of its runs, which no other profile suits; empty for runs of conversations."""
    errors: frozenset[str] = frozenset()
    """Codes of warnings that are errors here."""
    criteria: tuple[str, ...] = ()
    """What is judged by default; empty for the usual criteria."""
    check: Callable[..., None] | None = None
    """Reports what else is wrong, given a `judge.runs.check.rules.RunCheck` and the turns of the topics, if any."""


PROFILES: OpenTable[Profile] = OpenTable(
    "profiles",
    {
        "cast2022": Profile(
            track="CAsT", year=2022, interactive=False, token_limit=250, token_rule="bare", citation_limit=None
        ),
        "ikat2023": Profile(
            track="iKAT", year=2023, interactive=False, token_limit=250, token_rule="bare", citation_limit=None
        ),
        "ikat2024": Profile(
            track="iKAT", year=2024, interactive=False, token_limit=250, token_rule="bare", citation_limit=None
        ),
        "ikat2025": Profile(
            track="iKAT", year=2025, interactive=False, token_limit=250, token_rule="bare", citation_limit=None
        ),
        # The interface refuses what is longer, so its way of counting is the one that runs were held to.
        "ikat2025-interactive": Profile(
            track="iKAT", year=2025, interactive=True, token_limit=250, token_rule="english", citation_limit=1000
        ),
        "ikat2026-interactive": Profile(
            track="iKAT", year=2026, interactive=True, token_limit=512, token_rule="bare", citation_limit=10
        ),
        "table": Profile(
            track="any",
            year=0,
            interactive=False,
            token_limit=UNLIMITED,
            token_rule="bare",
            citation_limit=None,
            formats=("table",),
        ),
    },
)
"""The profiles by name."""
DEFAULT_PROFILE = "ikat2025"
"""The profile where neither the user nor the topics nor the format of the runs say which."""


class Limits(NamedTuple):
    """The limits that runs are checked against, and the profile that those not given come from."""

    profile: str
    token_limit: int
    token_rule: TokenRule
    citation_limit: int | None
    named: bool = True
    """Whether the user named the profile."""
    options: tuple[int | None, TokenRule | None, int | None] = (None, None, None)
    """The token limit, the token rule and the citation limit that the user gave."""

    def of_format(self, format: str) -> "Limits":
        """What runs of a format are held to: its own profile's limits, if it has one and the user named none."""
        own = format in PROFILES and format in PROFILES[format].formats
        return limits_of(format, None, *self.options)._replace(named=False) if own and not self.named else self

    @property
    def overridden(self) -> tuple[str, ...]:
        """The fields that are not as the profile has them, because options say otherwise."""
        row = PROFILES[self.profile]
        return tuple(name for name in _WORDS if getattr(self, name) != getattr(row, name))

    def against(self, run: Run) -> str | None:
        """Why the profile does not suit the format of a run, and which ones do; None where it does."""
        row = PROFILES[self.profile]
        suited = [name for name, other in PROFILES.items() if run.format in other.formats]
        if self.profile in suited or not (suited or row.formats):
            return None
        suited = suited or [name for name, other in PROFILES.items() if not other.formats]
        named = suited[0] if len(suited) == 1 else f"{', '.join(suited[:-1])} or {suited[-1]}"
        return f"a run of the format {run.format} needs the profile {named} (--profile), not {self.profile}"

    def recorded(self) -> dict[str, Any]:
        """The limits as JSON values."""
        return {**{name: getattr(self, name) for name in ("profile", *_WORDS)}, "overridden": list(self.overridden)}


_WORDS = {"token_limit": "token limit", "token_rule": "way of counting", "citation_limit": "citation limit"}
"""Each limit in words."""


def described(limits: Limits) -> str:
    """The limits in words.

    >>> described(limits_of("ikat2026-interactive"))
    '512 tokens by the rule bare, 10 used passages (profile ikat2026-interactive)'
    >>> described(limits_of("ikat2024", token_limit=300))
    '300 tokens by the rule bare, any number of used passages (profile ikat2024, not its token limit)'
    """
    row = PROFILES[limits.profile]
    if limits.token_limit == UNLIMITED:
        length = "any length" if row.check is None else "any length that the topic allows"
    elif limits.token_rule == "whitespace":
        length = f"{limits.token_limit:,} words"
    else:
        length = f"{limits.token_limit:,} tokens by the rule {limits.token_rule}"
    passages = "used passages" if row.check is None else "cited passages"
    if limits.citation_limit is not None:
        rest = f"{limits.citation_limit:,} {passages}"
    elif row.check is None or not row.year:
        rest = f"any number of {passages}"
    else:
        rest = f"the other rules of {row.track} {row.year}"
    other = " or ".join(_WORDS[name] for name in limits.overridden)
    profile = f"profile {limits.profile}, not its {other}" if other else f"profile {limits.profile}"
    return f"{length}, {rest} ({profile})"


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

    >>> limits_of(year=2024, token_limit=300)[:4]
    ('ikat2024', 300, 'bare', None)
    """
    named = profile is not None
    if profile is None:
        of_year = (name for name, row in PROFILES.items() if row.year == year and not (row.interactive or row.formats))
        profile = next(of_year, DEFAULT_PROFILE)
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {shown(profile)}; one of {', '.join(PROFILES)}")
    row = PROFILES[profile]
    return Limits(
        profile,
        row.token_limit if token_limit is None else token_limit,
        token_rule or row.token_rule,
        row.citation_limit if citation_limit is None else citation_limit,
        named,
        (token_limit, token_rule, citation_limit),
    )


def possible_years(turn_ids: Collection[str], format_year: int | None = None) -> frozenset[int]:
    """The known years that have at least half of the turns.

    Where the year of the run's format has all of them, years that lack two or more are out: one may be a slip.
    """
    # Of a large table, one of a kind, the ids would be kept for nothing.
    held_of = _held if len(turn_ids) <= _REMEMBERED else _held.__wrapped__
    held = held_of(frozenset(turn_ids))
    total = len(turn_ids)
    fewest = total - 1 if format_year is not None and held.get(format_year) == total else total / 2
    return frozenset(year for year, n in held.items() if n and n >= fewest)


def year_of(turn_ids: Collection[str]) -> int | None:
    """The year whose turns these are, and of whose topics half or more are among theirs; None for any other turns.

    >>> year_of([f"{topic}_1" for topic in range(17)]), year_of(["0_1", "1_1"])
    (2024, None)
    """
    topics = set(map(topic_of, turn_ids))
    years = {year for year in possible_years(turn_ids) if 2 * len(topics & TURNS[year].keys()) >= len(TURNS[year])}
    return years.pop() if len(years) == 1 else None


@lru_cache(8)
def _held(turn_ids: frozenset[str]) -> dict[int, int]:
    """How many of the turns each year has; runs of one year mostly have the same turns."""
    topics = frozenset().union(*TURNS.values())
    parts = (turn_id.rpartition("_") for turn_id in turn_ids)
    known = [(topic_id, number) for topic_id, _, number in parts if topic_id in topics]
    return {year: sum(_has(year, topic_id, number) for topic_id, number in known) for year in TURNS}


def _has(year: int, topic_id: str, number: str) -> bool:
    """Whether the topics of a year have a turn; any turn of a tree, whose size is not known here."""
    last = TURNS[year].get(topic_id, 0)
    return last is None or (number.isdecimal() and len(number) < 4 and 1 <= int(number) <= last)


_REMEMBERED = 10_000
"""The most turns of a run that is likely to come again, as runs of tracks do."""
TURNS: dict[int, dict[str, int | None]] = {
    2022: {str(topic): None for topic in range(132, 150)},
    2023: {"9-1": 6, "9-2": 12, "10-1": 21, "10-2": 15, "10-3": 10, "11-1": 9, "11-2": 11, "12-1": 12, "12-2": 12,
        "13-1": 8, "14-1": 19, "14-2": 12, "15-1": 15, "15-2": 11, "16-1": 14, "16-2": 13, "17-1": 12, "17-2": 16,
        "17-3": 18, "18-1": 16, "18-2": 13, "19-1": 18, "20-1": 13, "20-2": 16, "21-1": 10},
    2024: {"0": 12, "1": 11, "2": 14, "3": 9, "4": 17, "5": 16, "6": 17, "7": 16, "8": 13, "9": 13, "10": 13, "11": 13,
        "12": 10, "13": 11, "14": 11, "15": 11, "16": 11},
    2025: {"1-1": 12, "1-2": 11, "2-1": 14, "2-2": 11, "3-1": 11, "3-2": 10, "4-1": 12, "4-2": 11, "5-1": 10, "5-2": 10,
        "6-1": 14, "6-2": 9, "7-1": 13, "8-1": 10, "8-2": 9, "9-1": 11, "9-2": 10},
}  # fmt: skip
"""Year to its topics, each with the number of the last turn; None for a tree of conversations."""
