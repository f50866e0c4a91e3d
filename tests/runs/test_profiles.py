import pytest

from judge.errors import UsageError
from judge.runs.formats import FORMATS, rules_of
from judge.runs.profiles import DEFAULT_PROFILE, PROFILES, TURNS, described, limits_of


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({}, ("ikat2025", 250, "bare", None)),
        ({"year": 2022}, ("cast2022", 250, "bare", None)),
        ({"year": 2024}, ("ikat2024", 250, "bare", None)),
        ({"year": 1999}, ("ikat2025", 250, "bare", None)),
        ({"profile": "ikat2025-interactive"}, ("ikat2025-interactive", 250, "english", 1000)),
        # A profile that is named counts more than the year, and an option more than both.
        ({"profile": "ikat2026-interactive", "year": 2024}, ("ikat2026-interactive", 512, "bare", 10)),
        ({"year": 2023, "token_rule": "whitespace"}, ("ikat2023", 250, "whitespace", None)),
        (
            {"profile": "ikat2026-interactive", "token_limit": 40, "token_rule": "english", "citation_limit": 3},
            ("ikat2026-interactive", 40, "english", 3),
        ),
    ],
)
def test_limits(given: dict, limits: tuple) -> None:
    assert limits_of(**given)[:4] == limits


@pytest.mark.parametrize(
    ("given", "overridden", "words"),
    [
        ({}, (), "250 tokens by the rule bare, any number of used passages (profile ikat2025)"),
        # An option that says what the profile says overrides nothing.
        ({"token_limit": 250}, (), "250 tokens by the rule bare, any number of used passages (profile ikat2025)"),
        ({"token_rule": "english", "citation_limit": 3}, ("token_rule", "citation_limit"),
            "250 tokens by the rule english, 3 used passages "
            "(profile ikat2025, not its way of counting or citation limit)"),
    ],
)  # fmt: skip
def test_limits_that_options_set_otherwise_than_the_profile_are_named(given, overridden, words) -> None:
    limits = limits_of(**given)
    assert limits.overridden == overridden and limits.recorded()["overridden"] == list(overridden)
    assert described(limits) == words


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^unknown profile 'ikat1999'; one of cast2022, "):
        limits_of("ikat1999")


def test_every_known_year_and_every_format_of_a_year_has_a_profile() -> None:
    held = {(row.year, row.interactive) for row in PROFILES.values()}
    assert {(year, False) for year in TURNS} <= held
    rules = [rules_of(name) for name in FORMATS]
    assert {(row.year, row.own_turns) for row in rules if row.year is not None} <= held
    assert not PROFILES[DEFAULT_PROFILE].interactive
