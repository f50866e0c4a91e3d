"""The options of a calibration, and the check that they go together."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from judge.ask.opening import MOST_SAMPLES
from judge.ask.options import AskingOptions, JournalOption
from judge.calibrate.intake import OffScale
from judge.errors import UsageError
from judge.gold import seal_of
from judge.io.ids import Cluster
from judge.io.plan import Option, Options, Seed
from judge.plugins import need

ASKING = "asking needs --prompt, --pool (the responses that the gold is of) and --out (for the journal)"


class ComparedJudges(Options, section="reading"):
    """What is compared with what: labels and judges that are asked."""

    gold: Annotated[tuple[Path, ...], Option(metavar="FILE")]
    """Gold grades: JSONL, or four columns."""
    test: Annotated[Path | None, Option(metavar="FILE")] = None
    """Sealed test grades of `judge gold split`; only the chosen judge is reported on them, openings are logged."""
    seal: Annotated[Path | None, Option(metavar="FILE")] = None
    """Their seal (default: seal.json beside --test)."""
    judgments: Annotated[tuple[Path, ...], Option(metavar="FILE")] = ()
    """Labels of one or more judges; if there are none, --model is asked."""
    pool: Annotated[Path | None, Option(metavar="PATH")] = None
    """Folder of `judge run`, or its pool.jsonl, if it is not beside the judgments."""
    criterion: Annotated[str | Path | None, Option(metavar="NAME|PATH")] = None
    """Only this criterion, or judgments under this prompt; for columns, the criterion of the grades."""
    scale: Annotated[str | None, Option(metavar="LOW-HIGH")] = None
    """Grades of gold and labels in columns, such as 0-3."""
    polarity: Literal["higher", "lower"] = "higher"
    """Which end of --scale is good."""
    gold_scale: Annotated[str | Path | None, Option(metavar="PROMPT")] = None
    """Prompt whose scale the gold is on, if not the judges' scale: grades then count as positive or not."""
    off_scale: OffScale = "error"
    """A judge's label off its scale stops the calibration, or counts as a missing judgment."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics, for prompts that show the conversation and for the list of disagreements."""
    families: Annotated[Path | None, Option(metavar="TSV")] = None
    """Run or judge, tab, family of models behind it."""
    prompts: Annotated[
        tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True, section="asking")
    ] = ()
    """Prompt, as criterion/variant or a file of your own, also one that judgments are under; may be repeated."""
    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """A judge; may be repeated."""
    cascades: Annotated[tuple[str, ...], Option("cascade", metavar="CHECKER@LOW:HIGH", repeat=True)] = ()
    """Let a checker judge groundedness by sentences first, and keep what it is sure of: every sentence is supported
    with a probability of at most LOW or at least HIGH; the model is asked the rest; compared with the model alone; may
    be repeated."""
    cascade_url: Annotated[str | None, Option(metavar="URL")] = None
    """Address of that checker, where it is behind a server."""
    cascade_grid: bool = False
    """Compare a grid of other bounds of each cascade with gold too; asks nothing; each counts as a candidate."""
    together: bool = False
    """Ask the prompts also all in one call: what that costs in agreement, and what it saves."""
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES), Option(metavar="N")] = 1
    """Ask each question N times, for test-retest."""


Draws = Annotated[int, Field(ge=200, le=1_000_000)]
"""A number of resamples; with fewer, the verdict would depend on the seed."""


class CalibrationPlan(ComparedJudges, AskingOptions, JournalOption, section="deciding"):
    """Everything `judge calibrate` can be told."""

    requirements: Annotated[tuple[str, ...], Option("require", metavar="RULE", repeat=True)] = ()
    """Such as 'wkappa.lo>=0.4': exit 1 unless the verdict is TRUSTED; may be repeated."""
    epsilon: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Epsilon of the alternative annotator test: .2 experts, .15 skilled annotators, .1 crowd."""
    margin: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, Option(metavar="M")] = None
    """Also test whether the chosen judge is as good as each other one, and as assessors are among themselves: whether
    the primary statistic differs by less than M."""
    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme, the part of a topic id before the hyphen, so that 9-1 and
    9-2 are one."""
    replicates: Annotated[Draws, Option(metavar="N")] = 2000
    """Bootstrap resamples."""
    permutations: Annotated[Draws, Option(metavar="N")] = 10_000
    """Permutations per comparison."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of resamples and permutations."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR", section="output")] = None
    """Write tables, report, plots and certificate here."""


def check_plan(plan: CalibrationPlan) -> None:
    """Refuse options that do not go together, before anything is read or paid for.

    Raises:
        UsageError: An option is missing, out of range, or given with another that excludes it.
    """
    if bool(plan.judgments) == bool(plan.models):
        raise UsageError("expected either existing judgments (--judgments) or models to ask (--model)")
    if plan.models and not (plan.prompts and plan.pool and plan.out):
        raise UsageError(ASKING)
    if plan.together and not plan.models:
        raise UsageError("asking together is about models to ask (--together goes with --model)")
    if plan.cascades and not plan.models:
        raise UsageError("a cascade is about models to ask (--cascade goes with --model)")
    if plan.cascade_grid and not plan.cascades:
        raise UsageError("a grid of bounds is about a cascade (--cascade-grid goes with --cascade)")
    if plan.journal is not None and not plan.models:
        raise UsageError("a journal is for models to ask (--journal goes with --model)")
    for cascade in plan.cascades or (None,) * (plan.cascade_url is not None):
        need("cascades.run", "--cascade").check_cascade(cascade, plan.cascade_url)
    seal_of(plan.test, plan.seal)
