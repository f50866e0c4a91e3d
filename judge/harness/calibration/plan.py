"""The options of a calibration, and the check that they go together."""

from collections.abc import Sequence
from typing import Literal

from judge.ask.asking import ModelForecast
from judge.ask.cascade import check_cascade
from judge.ask.opening import MOST_SAMPLES
from judge.ask.settings import Settings
from judge.calibrate.intake import OffScale
from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath
from judge.gold import seal_of
from judge.models.journal import check_database
from judge.models.model import ModelOptions
from judge.records import Record
from judge.text.ids import Cluster, check_cluster

ASKING = "asking needs --prompt, --pool (the responses that the gold is of) and --out (for the journal)"
_FEWEST_DRAWS, _MOST_DRAWS = 200, 1_000_000
"""The least and the most resamples; with fewer, the verdict would depend on the seed."""


class CalibrationForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    """Pooled responses with gold outside the test part."""
    unmatched: int
    """Gold grades, outside the test part, of responses that are not in the pool."""
    by_model: tuple[ModelForecast, ...]
    """What each model would be asked about these responses, and what that costs; the checkers of cascades come last."""
    test_judgments: int
    """Judgments of responses with test grades, at most. For each criterion only the judge that is chosen is asked, so
    their calls come on top and have no price yet."""


class CalibrationPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge calibrate` can be told; paths may be strings, and one may stand where several may."""

    gold: Sequence[StrPath]
    """Gold files."""
    judgments: Sequence[StrPath] = ()
    """Files of labels that exist already; if empty, `models` are asked."""
    models: Sequence[str] = ()
    """Models to ask, as `backend/model`."""
    prompts: Sequence[StrPath] = ()
    """Prompts to ask, or the files of your own prompts behind the judgments."""
    together: bool = False
    """Ask the prompts also all in one call, so that each is compared with itself asked alone."""
    cascades: Sequence[str] = ()
    """`CHECKER@LOW:HIGH` each: compare every model also as the second judge of this cascade."""
    cascade_url: str | None = None
    """The address of their checkers, where they are behind a server."""
    cascade_grid: bool = False
    """Compare a grid of other bounds with gold too; each counts as a candidate that met the grades."""
    pool: StrPath | None = None
    """Folder of `judge run`, or its `pool.jsonl`, if it is not beside the judgments."""
    test: StrPath | None = None
    """Sealed test grades; each opening is logged."""
    seal: StrPath | None = None
    """Their seal; by default `seal.json` beside them."""
    criterion: StrPath | None = None
    """Only this criterion, or the judgments under this prompt; for columns, the criterion of the grades."""
    scale: str | None = None
    """`LOW-HIGH`: the grades of gold and labels in columns."""
    polarity: Literal["higher", "lower"] = "higher"
    """Which end of `scale` is good."""
    gold_scale: StrPath | None = None
    """The prompt whose scale the gold is on, if it is not the judges' scale."""
    off_scale: OffScale = "error"
    """Whether a judge's label off its scale is a problem of the file, or counts as a missing judgment."""
    families: StrPath | None = None
    """Run or judge, a tab and the family of models behind it."""
    topics: StrPath | None = None
    """The topics file, for prompts that show the conversation and for the list of disagreements."""
    samples: int = 1
    """How often each question is asked, for test-retest agreement."""
    options: ModelOptions = ModelOptions()
    """How each model is called: endpoint, temperature, longest reply, seed, timeout, threads."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what may be spent."""
    requirements: Sequence[str] = ()
    """Rules such as `wkappa.lo>=0.4`, which a judge must meet to be TRUSTED."""
    epsilon: float = 0.2
    """The epsilon of the alternative annotator test: .2 for experts, .15 for skilled annotators, .1 for a crowd."""
    margin: float | None = None
    """The difference of the primary statistic that does not matter, for tests of equivalence; None makes none."""
    cluster: Cluster = "topic"
    """What intervals, tests and resamples are over."""
    replicates: int = 2000
    """Bootstrap resamples."""
    permutations: int = 10_000
    """Permutations per comparison."""
    seed: int = 2023
    """Seed of resamples and permutations."""
    out: StrPath | None = None
    """The folder for tables, report, plots and certificate."""
    journal: str | None = None
    """Address of a database, `postgresql://…`, whose journal several processes share while models are asked; by default
    the journal is a file in `out`."""


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
    check_database(plan.journal)
    for cascade in plan.cascades or (None,):
        check_cascade(cascade, plan.cascade_url)
    seal_of(plan.test, plan.seal)
    check_cluster(plan.cluster)
    if not 0 <= plan.epsilon < 1:
        raise UsageError(f"epsilon {plan.epsilon}: expected a number from 0 to below 1 (--epsilon)")
    if plan.margin is not None and not 0 < plan.margin < 1:
        raise UsageError(f"margin {plan.margin}: expected a number above 0 and below 1 (--margin)")
    if not 1 <= plan.samples <= MOST_SAMPLES:
        raise UsageError(f"{plan.samples} samples: expected 1 to {MOST_SAMPLES} (--samples)")
    for option, number in (("replicates", plan.replicates), ("permutations", plan.permutations)):
        if not _FEWEST_DRAWS <= number <= _MOST_DRAWS:
            raise UsageError(f"{number} {option}: expected {_FEWEST_DRAWS} to {_MOST_DRAWS} (--{option})")
    if plan.seed < 0:
        raise UsageError(f"seed {plan.seed}: expected a number of zero or more (--resampling-seed)")
