"""Groups of options that several jobs take."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from judge.ask.criteria import criterion_names, default_prompts, find_criterion, own_name
from judge.io.ids import Cluster
from judge.io.plan import OneOf, Option, Options, Positive, pairs
from judge.io.rows import is_frame, rows_of
from judge.records import JudgedUnit
from judge.runs.formats import FORMATS
from judge.runs.formats.table_columns import ROLES
from judge.runs.profiles import PROFILES, Limits, limits_of, year_of
from judge.runs.records import TokenRule
from judge.runs.sources import RunSource, Sources, find_sources, own_criteria
from judge.units import UNITS

DEFAULT_CRITERIA = ("groundedness", "naturalness")
"""The criteria judged by default; their prompts do not show the conversation."""


def usual_criteria(sources: Sources, profile: str | None = None, format: str | None = None) -> tuple[str, ...]:
    """What is judged where the user names no criteria: what the track of all the runs asks, else the usual ones.

    The track is that of the profile, or of the formats of the runs; files of no format, which are refused later, are of
    no track. Answers of tables without passages are judged for what needs none.
    """
    if sources.tables is not None:
        return DEFAULT_CRITERIA if sources.tables.evidence else DEFAULT_CRITERIA[1:]
    if profile is not None:
        return PROFILES[profile].criteria or DEFAULT_CRITERIA
    asked: set[tuple[str, ...]] = set()
    for path in sources.files:
        criteria = own_criteria(path, format)
        if criteria is not None:
            asked.add(criteria)
        if len(asked) > 1 or not all(asked):
            return DEFAULT_CRITERIA
    return asked.pop() if asked else DEFAULT_CRITERIA


def criteria_of_pool(unit: JudgedUnit) -> tuple[str, ...]:
    """What a pool is judged for where the user names no criteria: of other things than responses, all that there is.

    >>> criteria_of_pool("citation"), criteria_of_pool("response")
    (('support',), ('groundedness', 'naturalness'))
    """
    if UNITS[unit].whole_response:
        return DEFAULT_CRITERIA
    prompts = [find_criterion(name) for name in criterion_names() if name in default_prompts()]
    return tuple(prompt.name for prompt in prompts if prompt.unit == unit)


class RunFiles(Options, section="reading"):
    """Which runs are read, and as what."""

    runs: Annotated[tuple[RunSource, ...], Option(metavar="PATH")]
    """Folders of run files, of any formats, .gz too, and run files; or tables of questions and answers (CSV, TSV, JSON,
    JSON Lines, Parquet, in Python also data frames and lists of dicts)."""
    columns: Annotated[dict[str, str], BeforeValidator(pairs), Option("column", metavar="ROLE=COLUMN", repeat=True)] = (
        Field(
            default_factory=dict,
            description=f"The column of such a table that is the {', the '.join(ROLES[:-1])} or the {ROLES[-1]}, where "
            "its name is not a usual one; may be repeated. A member of an object is named as outputs.answer.",
        )
    )
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics file (iKAT 2023 to 2025, a CAsT 2022 tree, TSV of id and text, or JSON Lines of requests), or ir:NAME."""
    format: Annotated[str | None, OneOf(sorted(FORMATS))] = None
    """Read every file as this format instead of detecting it."""

    @field_validator("runs", mode="before")
    @classmethod
    def _tables(cls, value: Any) -> Any:
        return tables_in(value)

    def sources(self) -> Sources:
        """The files that are a run each, and the tables, which are read."""
        return find_sources(self.runs, self.columns, self.format)


def tables_in(value: Any) -> Any:
    """Data frames and lists of dicts as tables of rows, one or several; everything else as it is."""
    if is_frame(value):
        return (rows_of(value),)
    if isinstance(value, list | tuple):
        return tuple(rows_of(one, f"data{number}") if is_frame(one) else one for number, one in enumerate(value, 1))
    return value


class NamedRuns(RunFiles, section="reading"):
    """As `RunFiles`; on the command line, runs may stand without --runs."""

    runs: Annotated[tuple[RunSource, ...], Option(metavar="PATH", place="too")]
    """Folders of run files, of any formats, .gz too, and run files; or tables of questions and answers."""


class OwnPrompts(Options):
    """The prompts behind judgments that are read."""

    prompts: Annotated[tuple[Path, ...], Option("prompt", metavar="PATH", repeat=True)] = ()
    """Prompt file of your own that judgments are under, which no folder holds; may be repeated."""


class GoldFiles(Options):
    """People's grades of what was judged."""

    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """People's grades: gold (JSONL), or tables whose rows name responses by id, by run and turn, or by the answer."""
    columns: Annotated[tuple[str, ...], Option("column", metavar="ROLE=COLUMN", repeat=True)] = ()
    """The column of such a table with people's grades (human=COLUMN), or of the question, topic, id, system or answer,
    where its name is not a usual one; may be repeated."""


class TrackYear(Options, section="reading"):
    """Whose rules the runs follow."""

    profile: Annotated[str | None, OneOf(PROFILES), Option(metavar="NAME")] = None
    """The track's limits, where no option says otherwise (default: that of a run's format, if it has one, else by the
    year of the topics, else ikat2025)."""


class LengthLimit(TrackYear, section="reading"):
    """How long a response may be."""

    token_limit: Annotated[Positive | None, Option(metavar="N")] = None
    """Longest response in tokens (default: the profile's)."""

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

    criteria: Annotated[
        tuple[Annotated[str, OneOf(criterion_names(), lambda name: own_name(name) != name)], ...],
        Option(metavar="CRITERION"),
    ] = ()
    """Criteria, each under its default prompt (default: what the track of the runs asks, such as support, else
    groundedness naturalness; or the criteria of --prompt)."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt in place of its criterion's default, as criterion/variant or a file of your own; may be repeated."""


class ClusterUnit(Options):
    """What intervals, tests and splits are over."""

    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one."""
