"""The leaderboard of a judged folder under another token rule: what `judge leaderboard --over-limit` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from judge.ask.returned import settled_notes
from judge.errors import UsageError
from judge.files.folder import make_folder, write_atomic
from judge.files.paths import StrPath
from judge.harness.judged import JudgedFolder
from judge.results.leaderboard import leaderboard, leaderboard_markdown, leaderboard_tsv
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


class UnderTokenRule(msgspec.Struct, frozen=True):
    """A leaderboard with or without the responses over the limit."""

    rule: TokenRule
    limit: int
    over_limit: Literal["flag", "exclude"]
    rows: tuple[LeaderboardRow, ...]
    note: str
    """What was left out, in words."""


def under_token_rule(
    judged: JudgedFolder,
    over_limit: Literal["flag", "exclude"],
    rule: TokenRule | None = None,
    limit: int | None = None,
    out: StrPath | None = None,
) -> UnderTokenRule:
    """The leaderboard as judged (`flag`), or as if responses over the limit had been left out (`exclude`).

    Args:
        judged: From `read_judged`.
        over_limit: `flag` keeps responses over the limit, `exclude` leaves them out.
        rule: How tokens are counted; by default the rule of the judging.
        limit: In tokens; by default that of the judging.
        out: A file named .tsv or .md to write.

    Raises:
        UsageError: `out` is named otherwise, or dialogues were judged.
    """
    _check_unit(judged)
    stored_rule, stored_limit = _stored(judged.manifest)
    rule, limit = rule or stored_rule, limit or stored_limit
    note = f"All judged responses, whatever their length (limit {limit} tokens)."
    pool, expected = judged.pool, None
    if over_limit == "exclude":
        pool, expected = without_over_limit(pool, rule, limit)
        excluded = len(judged.pool.responses) - len(pool.responses)
        note = (
            f"Without the {excluded} of {len(judged.pool.responses)} pooled responses of more than {limit} tokens by "
            f"the {rule} rule."
        )
    rows = leaderboard(pool, judged.results, judged.criteria, expected=expected, cluster=judged.cluster)
    notes = [note, *settled_notes(judged.results), *(f"{line}." for line in judged.clustered)]
    _write(out, leaderboard_tsv(rows), leaderboard_markdown(rows, judged.banner, judged.criteria, notes))
    return UnderTokenRule(rule, limit, over_limit, rows, note)


def under_each_token_rule(
    judged: JudgedFolder, limit: int | None = None, out: StrPath | None = None
) -> tuple[Sensitivity, int]:
    """Means and ranks with nothing excluded and under each rule, and the limit used.

    Args:
        judged: From `read_judged`.
        limit: In tokens; by default that of the judging.
        out: A file named .tsv or .md to write.

    Raises:
        UsageError: `out` is named otherwise, or dialogues were judged.
    """
    _check_unit(judged)
    limit = limit or _stored(judged.manifest)[1]
    sensitivity = token_sensitivity(judged.pool, judged.results, judged.criteria, limit)
    _write(out, sensitivity_tsv(sensitivity), sensitivity_markdown(sensitivity, judged.criteria, judged.banner))
    return sensitivity, limit


def _check_unit(judged: JudgedFolder) -> None:
    if judged.pool.unit == "dialogue":
        raise UsageError(f"{judged.path}: dialogues were judged there, and the token limit is one of single responses")


def _stored(manifest: Mapping[str, Any]) -> tuple[TokenRule, int]:
    """The rule and the limit of the judging; those of the guidelines where no manifest gives them."""
    stored = manifest.get("configuration", {}).get("token_rule")
    rule, limit = (stored.get("rule"), stored.get("limit")) if isinstance(stored, dict) else (None, None)
    known: TokenRule = next((known for known in RULES if known == rule), "bare")
    return known, limit if isinstance(limit, int) and limit > 0 else LIMIT


def _write(out: StrPath | None, table: str, report: str) -> None:
    if out is None:
        return
    out = Path(out)
    if out.suffix not in {".tsv", ".md"}:
        raise UsageError(f"--out {out}: expected a file named .tsv or .md")
    make_folder(out.parent)
    write_atomic(out, (table if out.suffix == ".tsv" else report).encode())
