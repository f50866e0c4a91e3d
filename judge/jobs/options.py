"""Groups of options that several jobs take."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from judge.ask.criteria import criterion_names
from judge.io.ids import Cluster
from judge.io.plan import OneOf, Option, Options, Positive
from judge.runs.formats import FORMATS
from judge.runs.profiles import PROFILES, Limits, limits_of, year_of
from judge.runs.records import TokenRule

DEFAULT_CRITERIA = ("groundedness", "naturalness")
"""The criteria judged by default; their prompts do not show the conversation."""


class RunFiles(Options, section="reading"):
    """Which runs are read, and as what."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH")]
    """Folders of run files, of any formats, .gz too, and run files."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file (iKAT 2023 to 2025, a CAsT 2022 tree, TSV of id and text, or JSON Lines of requests), or ir:NAME."""
    format: Annotated[str | None, OneOf(sorted(FORMATS))] = None
    """Read every file as this format instead of detecting it."""


class NamedRuns(RunFiles, section="reading"):
    """As `RunFiles`; on the command line, runs may stand without --runs."""

    runs: Annotated[tuple[Path, ...], Option(metavar="PATH", place="too")]
    """Folders of run files, of any formats, .gz too, and run files."""


class OwnPrompts(Options):
    """The prompts behind judgments that are read."""

    prompts: Annotated[tuple[Path, ...], Option("prompt", metavar="PATH", repeat=True)] = ()
    """Prompt file of your own that judgments are under, which no folder holds; may be repeated."""


class LengthLimit(Options, section="reading"):
    """How long a response may be."""

    token_limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Longest response in tokens (default: the profile's)."""
    profile: Annotated[str | None, OneOf(PROFILES), Option(metavar="NAME")] = None
    """The track's limits, where no option says otherwise (default: by the year of the topics, else ikat2025)."""

    def limits(self, turn_ids: Collection[str] | None) -> Limits:
        """What responses are held to."""
        return limits_of(self.profile, year_of(turn_ids or ()), self.token_limit)


class ResponseLimits(LengthLimit, section="reading"):
    """What a response is held to."""

    token_rule: TokenRule | None = None
    """What the limit goes by: spaCy's bare Tokenizer, its English rules, white space after NFKC (default: the
    profile's)."""
    citation_limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Most passages that a response may cite or flag as used; more are a warning (default: the profile's)."""

    def limits(self, turn_ids: Collection[str] | None) -> Limits:
        """As for `LengthLimit`."""
        year = year_of(turn_ids or ())
        return limits_of(self.profile, year, self.token_limit, self.token_rule, self.citation_limit)


class JudgedPrompts(Options, section="asking"):
    """What judges are asked."""

    criteria: Annotated[tuple[Annotated[str, OneOf(criterion_names())], ...], Option(metavar="CRITERION")] = ()
    """Criteria, each under its default prompt (default: groundedness naturalness, or the criteria of --prompt)."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt in place of its criterion's default, as criterion/variant or a file of your own; may be repeated."""


class ClusterUnit(Options):
    """What intervals, tests and splits are over."""

    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one."""
