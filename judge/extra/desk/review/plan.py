"""The options of a review desk, and the check that they go together."""

from pathlib import Path
from typing import Annotated

from judge.ask.options import AskingOptions
from judge.errors import UsageError
from judge.extra.desk.server import DeskAddress
from judge.io.plan import Option

ASKING_AGAIN = "asking again needs --gold (dev grades), --pool (the responses that they are of) and --model"


class ReviewPlan(AskingOptions, DeskAddress):
    """Everything `judge serve review` can be told."""

    folder: Annotated[Path, Option(metavar="OUT", place="only")]
    """Output folder of `judge calibrate`."""
    prompts: Annotated[tuple[str | Path, ...], Option("prompt", metavar="NAME|PATH", repeat=True)] = ()
    """Prompt to edit beside those of the calibration; the file of one of your own."""
    out: Annotated[Path | None, Option(short="o", metavar="DIR")] = None
    """Folder for new wordings and reruns (default: OUT-review)."""
    gold: Annotated[tuple[Path, ...], Option(metavar="FILE", section="asking again")] = ()
    """Dev grades to ask again on; no test grades."""
    pool: Annotated[Path | None, Option(metavar="PATH")] = None
    """Folder of `judge run`, or its pool.jsonl: the responses that the grades are of."""
    models: Annotated[tuple[str, ...], Option("model", metavar="BACKEND/MODEL", repeat=True)] = ()
    """A judge to ask; may be repeated."""
    topics: Annotated[Path | None, Option(metavar="FILE")] = None
    """Topics, for prompts that show the conversation."""
    gold_scale: Annotated[str | Path | None, Option(metavar="PROMPT")] = None
    """Prompt whose scale the gold is on (default: the wording before)."""

    @property
    def home(self) -> Path:
        """The folder for new wordings and reruns."""
        return self.out or self.folder.with_name(f"{self.folder.resolve().name}-review")

    @property
    def asks(self) -> bool:
        """Whether a wording may be asked again."""
        return bool(self.models)


def check_review(plan: ReviewPlan) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: Some of what asking again needs is given, and some is not.
    """
    given = (bool(plan.gold), plan.pool is not None, bool(plan.models))
    if any(given) and not all(given):
        raise UsageError(ASKING_AGAIN)
