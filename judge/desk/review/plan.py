"""The options of a review desk, and the check that they go together."""

from collections.abc import Sequence
from pathlib import Path

from judge.ask.settings import Settings
from judge.desk.server import PORT
from judge.errors import UsageError
from judge.files.paths import JobPlan, StrPath
from judge.models.model import ModelOptions

ASKING_AGAIN = "asking again needs --gold (dev grades), --pool (the responses that they are of) and --model"


class ReviewPlan(JobPlan, frozen=True, kw_only=True):
    """Everything `judge serve review` can be told; paths may be strings, and one may stand where several may."""

    folder: StrPath
    """The output folder of `judge calibrate`."""
    gold: Sequence[StrPath] = ()
    """Dev grades to ask again on; no test grades."""
    pool: StrPath | None = None
    """Folder of `judge run`, or its `pool.jsonl`: the responses that the grades are of."""
    topics: StrPath | None = None
    """The topics file, for prompts that show the conversation."""
    models: Sequence[str] = ()
    """Judges that may be asked again, as `backend/model`."""
    prompts: Sequence[StrPath] = ()
    """Prompts to edit beside those of the calibration; the files of your own prompts."""
    gold_scale: StrPath | None = None
    """The prompt whose scale the gold is on; by default the wording that another is compared with."""
    options: ModelOptions = ModelOptions()
    """How each model is called."""
    settings: Settings = Settings()
    """How many calls run at once, how often one is tried, and what one rerun may spend."""
    out: StrPath | None = None
    """The folder for new wordings and reruns; by default the calibration's folder with `-review` after its name."""
    host: str = "127.0.0.1"
    """The network interface to answer at."""
    port: int = PORT
    """The port to answer at; 0 takes a free one."""

    @property
    def home(self) -> Path:
        """The folder for new wordings and reruns."""
        folder = Path(self.folder)
        return Path(self.out) if self.out is not None else folder.with_name(f"{folder.resolve().name}-review")

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
