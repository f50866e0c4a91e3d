"""The options of an improvement."""

from pathlib import Path
from typing import Annotated, Literal

from judge.ask.options import AskingOptions
from judge.errors import UsageError
from judge.io.ids import Cluster
from judge.io.plan import Option, Positive, Seed
from judge.jobs.calibration import CalibrationPlan
from judge.jobs.calibration.inputs import Draws
from judge.judges.model import Model

Way = Literal["rewrites", "examples", "cuts"]
MOST_TRIED = 100
"""Most wordings that one search may try: as many are no search but a lottery."""


class ImprovePlan(
    AskingOptions,
    section="improving",
    main="gold test pool topics prompt model ways proposer out dry-run max-cost",
):
    """Everything `judge improve` can be told."""

    gold: Annotated[tuple[Path, ...], Option(metavar="FILE", section="reading")]
    """Gold grades that wordings are tried on: `dev.jsonl` of `judge gold split`, or its folder."""
    test: Annotated[Path | None, Option(metavar="FILE")] = None
    """Sealed test grades of `judge gold split`: opened once, at the end."""
    seal: Annotated[Path | None, Option(metavar="FILE")] = None
    """Their seal (default: seal.json beside --test)."""
    pool: Annotated[Path, Option(metavar="PATH")]
    """Folder of `judge run` or `judge pool`, or its pool.jsonl: the responses that the gold is of."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics, for prompts that show the conversation, and for what a proposer is shown."""
    prompt: Annotated[str | Path, Option(metavar="NAME|PATH", section="improving")]
    """The prompt to improve, as criterion/variant or a file of your own."""
    model: Annotated[str | Model, Option(metavar="BACKEND/MODEL")]
    """The judge."""
    ways: Annotated[tuple[Way, ...], Option(metavar="WAY")] = ("rewrites", "examples", "cuts")
    """What is tried, by default all: other wordings, graded responses of dev in the best one, and cut points of the
    expected grade, where the judge gives label probabilities."""
    proposer: Annotated[str | Path | Model | None, Option(metavar="BACKEND/MODEL|PATH|NAME")] = None
    """Who writes other wordings: a model (default: the judge), a prompt file or a folder of them that you wrote, or an
    optimizer of another package."""
    variants: Annotated[Positive, Option(metavar="N")] = 4
    """Wordings in each round."""
    rounds: Annotated[Positive, Option(metavar="N")] = 3
    """Rounds at most; a round that gains nothing is the last one."""
    shown: Annotated[Positive, Option(metavar="N")] = 6
    """Disagreements with assessors that a model is shown for each wording."""
    k: Annotated[Positive, Option(metavar="K")] = 4
    """Examples in a prompt; as many topics at most leave the comparison on dev for them."""
    requirements: Annotated[tuple[str, ...], Option("require", metavar="RULE", repeat=True, section="deciding")] = ()
    """For the certificate, such as 'wkappa.lo>=0.4'; may be repeated."""
    cluster: Cluster = "topic"
    """What counts as independent: each topic, or each theme."""
    replicates: Annotated[Draws, Option(metavar="N")] = 2000
    """Bootstrap resamples."""
    permutations: Annotated[Draws, Option(metavar="N")] = 10_000
    """Permutations per comparison."""
    resampling_seed: Annotated[Seed, Option(metavar="N")] = 2023
    """Seed of resamples and permutations."""
    out: Annotated[Path, Option(short="o", metavar="DIR", section="output")]
    """Folder for the prompt, the ledger, the certificate and the journal."""

    def _check(self) -> None:
        if self.variants * self.rounds > MOST_TRIED:
            raise UsageError(f"--variants × --rounds: {self.variants * self.rounds} wordings, at most {MOST_TRIED}")
        if not self.ways:
            raise UsageError("--ways: expected rewrites, examples or cuts")
        if "rewrites" not in self.ways:
            self.refuse_unused(["proposer", "variants", "rounds", "shown"], "no wordings are written (--ways)")
        if "examples" not in self.ways:
            self.refuse_unused(["k"], "no examples are shown (--ways)")
        if self.test is None:
            self.refuse_unused(["seal"], "it is the seal of the grades in --test")

    @property
    def calibration(self) -> CalibrationPlan:
        """The same as a calibration of the first prompt, whose checks hold here too."""
        shared = {name: getattr(self, name) for name in self.model_fields_set & set(CalibrationPlan.model_fields)}
        return CalibrationPlan(**{**shared, "prompts": (self.prompt,), "models": (self.model,)})
