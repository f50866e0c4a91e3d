"""What a calibration can be told, and what of it cannot be done."""

from collections.abc import Iterable, Sequence
from typing import Literal

from judge.ask.loop import Settings
from judge.ask.several import MOST_SAMPLES
from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath
from judge.models.model import ModelOptions
from judge.records import Criterion

ASKING = "asking needs --prompt, --pool (the responses that the gold is of) and --out (for the journal)"
_FEWEST_DRAWS, _MOST_DRAWS = 200, 1_000_000
"""Fewer resamples would make a verdict a matter of the seed."""


class CalibrationPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge calibrate` can be told; paths may be strings, and one may stand where several may."""

    gold: Sequence[StrPath]
    judgments: Sequence[StrPath] = ()
    """Labels that are there; or nothing, and `models` are asked."""
    models: Sequence[str] = ()
    prompts: Sequence[StrPath] = ()
    """What to ask, or the files of prompts of your own behind the judgments."""
    pool: StrPath | None = None
    test: StrPath | None = None
    """Sealed test grades."""
    seal: StrPath | None = None
    criterion: StrPath | None = None
    scale: str | None = None
    polarity: Literal["higher", "lower"] = "higher"
    """Which end of `scale` is good."""
    gold_scale: StrPath | None = None
    """The prompt whose scale the gold is on, if not the judges'."""
    families: StrPath | None = None
    topics: StrPath | None = None
    samples: int = 1
    options: ModelOptions = ModelOptions()
    settings: Settings = Settings()
    requirements: Sequence[str] = ()
    epsilon: float = 0.2
    replicates: int = 2000
    permutations: int = 10_000
    seed: int = 2023
    out: StrPath | None = None


def check_plan(plan: CalibrationPlan) -> None:
    """Refuse what nothing can be done with before anything is read or paid for.

    Raises:
        UsageError: What is wrong.
    """
    if bool(plan.judgments) == bool(plan.models):
        raise UsageError("expected either judgments that are there (--judgments) or models to ask (--model)")
    if plan.models and not (plan.prompts and plan.pool and plan.out):
        raise UsageError(ASKING)
    if not 0 <= plan.epsilon < 1:
        raise UsageError(f"epsilon {plan.epsilon}: expected a number from 0 to below 1 (--epsilon)")
    if not 1 <= plan.samples <= MOST_SAMPLES:
        raise UsageError(f"{plan.samples} samples: expected 1 to {MOST_SAMPLES} (--samples)")
    for what, number in (("replicates", plan.replicates), ("permutations", plan.permutations)):
        if not _FEWEST_DRAWS <= number <= _MOST_DRAWS:
            raise UsageError(f"{number} {what}: expected {_FEWEST_DRAWS} to {_MOST_DRAWS} (--{what})")
    if plan.seed < 0:
        raise UsageError(f"seed {plan.seed}: expected a number of zero or more (--resampling-seed)")


def by_id(prompts: Iterable[Criterion]) -> dict[str, Criterion]:
    """Prompts by `criterion/variant`; two different ones of one name could not be told apart."""
    found: dict[str, Criterion] = {}
    for one in prompts:
        other = found.setdefault(one.prompt_id, one)
        if other.digest != one.digest:
            raise UsageError(f"{one.file} and {other.file} are both called {one.prompt_id}: rename one of the files")
    return found
