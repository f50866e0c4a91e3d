"""The leaderboard of a judged folder under another token rule: what `judge leaderboard --over-limit` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import model_validator

from judge.ask.returned import settled_notes
from judge.errors import UsageError
from judge.io.folder import make_folder, write_atomic
from judge.io.plan import Option, Options, Positive
from judge.io.table import records_tsv
from judge.jobs.judged import JudgedFolder
from judge.results.leaderboard import COLUMNS, leaderboard, leaderboard_markdown
from judge.results.rows import LeaderboardRow
from judge.results.sensitivity import (
    Sensitivity,
    sensitivity_markdown,
    sensitivity_tsv,
    token_sensitivity,
    without_over_limit,
)
from judge.runs.records import TokenRule
from judge.runs.tokens import RULES

LIMIT = 250
"""The guidelines' limit in tokens, used where no manifest gives one."""


class TokenView(Options, section="token limit, from the stored lengths; without --gold"):
    """Under which token rule a leaderboard is looked at."""

    over_limit: Literal["flag", "truncate", "exclude"] | None = None
    """Exclude: without responses over the limit; flag: as judged; truncate needs another judging."""
    token_rule: TokenRule | None = None
    """How tokens are counted (default: as when judged)."""
    token_limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Limit in tokens (default: as when judged)."""
    token_sensitivity: bool = False
    """Means and ranks with nothing excluded and under each rule, with Kendall's tau-b."""

    @property
    def first(self) -> str:
        """The first of the options that is given, as the command line writes it; empty without one."""
        names = ("token_sensitivity", "over_limit", "token_rule", "token_limit")
        return next((f"--{name.replace('_', '-')}" for name in names if getattr(self, name)), "")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.over_limit == "truncate":
            raise UsageError(
                "a text that is cut is another response, and nobody has judged it: judge the runs with "
                f"`judge run --over-limit truncate --token-rule {self.token_rule or 'bare'} --out OTHER`"
            )
        if self.token_sensitivity and (self.over_limit or self.token_rule):
            raise UsageError("--token-sensitivity shows every rule: give it without --over-limit and --token-rule")
        if self.first and not self.token_sensitivity and self.over_limit is None:
            raise UsageError(f"{self.first} needs --over-limit exclude, or --token-sensitivity")
        return self


class UnderTokenRule(msgspec.Struct, frozen=True):
    """A leaderboard with or without the responses over the limit."""

    rule: TokenRule
    limit: int
    over_limit: str
    rows: tuple[LeaderboardRow, ...]
    note: str
    """What was left out, in words."""


def under_token_rule(judged: JudgedFolder, view: TokenView, out: Path | None = None) -> UnderTokenRule:
    """The leaderboard as judged (`flag`), or as if responses over the limit had been left out (`exclude`)."""
    _check(judged, out)
    stored_rule, stored_limit = _stored(judged.manifest)
    rule, limit = view.token_rule or stored_rule, view.token_limit or stored_limit
    note = f"All judged responses, whatever their length (limit {limit} tokens)."
    pool, expected = judged.pool, None
    if view.over_limit == "exclude":
        pool, expected = without_over_limit(pool, rule, limit)
        excluded = len(judged.pool.responses) - len(pool.responses)
        note = (
            f"Without the {excluded} of {len(judged.pool.responses)} pooled responses of more than {limit} tokens by "
            f"the {rule} rule."
        )
    rows = leaderboard(pool, judged.results, judged.criteria, expected=expected, cluster=judged.cluster)
    notes = [note, *settled_notes(judged.results), *(f"{line}." for line in judged.clustered)]
    _write(out, records_tsv(COLUMNS, rows, 4), leaderboard_markdown(rows, judged.banner, judged.criteria, notes))
    return UnderTokenRule(rule, limit, view.over_limit or "flag", rows, note)


def under_each_token_rule(
    judged: JudgedFolder, limit: int | None = None, out: Path | None = None
) -> tuple[Sensitivity, int]:
    """Means and ranks with nothing excluded and under each rule, and the limit used."""
    _check(judged, out)
    limit = limit or _stored(judged.manifest)[1]
    sensitivity = token_sensitivity(judged.pool, judged.results, judged.criteria, limit)
    _write(out, sensitivity_tsv(sensitivity), sensitivity_markdown(sensitivity, judged.criteria, judged.banner))
    return sensitivity, limit


def _check(judged: JudgedFolder, out: Path | None) -> None:
    if out is not None and out.suffix not in {".tsv", ".md"}:
        raise UsageError(f"--out {out}: expected a file named .tsv or .md")
    if judged.pool.unit == "dialogue":
        raise UsageError(f"{judged.path}: dialogues were judged there, and the token limit is one of single responses")


def _stored(manifest: Mapping[str, Any]) -> tuple[TokenRule, int]:
    """The rule and the limit of the judging; those of the guidelines where no manifest gives them."""
    stored = manifest.get("configuration", {}).get("token_rule")
    rule, limit = (stored.get("rule"), stored.get("limit")) if isinstance(stored, dict) else (None, None)
    known: TokenRule = next((known for known in RULES if known == rule), "bare")
    return known, limit if isinstance(limit, int) and limit > 0 else LIMIT


def _write(out: Path | None, table: str, report: str) -> None:
    if out is not None:
        make_folder(out.parent)
        write_atomic(out, (table if out.suffix == ".tsv" else report).encode())
