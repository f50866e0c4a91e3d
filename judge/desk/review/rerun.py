"""A new wording asked again on dev items, beside the one that it came from: what it costs, the asking, what came out.

The statistics, the ledger of looks and the journal are those of `judge calibrate`.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from judge.ask.asking import JOURNAL, Asking, JournalPlace, Judge
from judge.ask.opening import open_one
from judge.ask.progress import Progress
from judge.calibrate.disagreements import Disagreement, JudgeGrade
from judge.calibrate.findings import AgreementRow, Calibration, ComparisonRow, Looks
from judge.calibrate.intake import same_grades
from judge.calibrate.report.lookup import SEPARABLE
from judge.desk.review.plan import ReviewPlan
from judge.desk.review.shelf import ShelvedPrompt
from judge.errors import JudgeError, OperationalError, UsageError
from judge.files.folder import write_atomic
from judge.files.paths import file_in
from judge.gold import GOLD_FILES, match, read_unsealed
from judge.gold.rows import GoldRow
from judge.harness.calibration import CalibrationOutcome, CalibrationPlan, calibrate_judges
from judge.harness.calibration.comparison import gold_tasks
from judge.pool.bank import passages_jsonl, pool_jsonl
from judge.pool.conversation import turns_shown
from judge.pool.folder import read_pool_folder
from judge.pool.intake import turns_by_id
from judge.pool.records import Pool
from judge.records import Criterion, Estimate
from judge.runs.topics import read_topics

RERUN, POOL = "rerun", "rerun-pool"
"""The calibration of the last rerun, and the pool of its items where they are not all; in the review's folder."""


class Rewording(NamedTuple):
    """What is asked again."""

    old: ShelvedPrompt
    new: ShelvedPrompt
    model: str
    items: int | None = None
    """How many dev items, evenly spread; None for all."""


class Cost(NamedTuple):
    """What asking would send."""

    items: int
    judgments: int
    """Of both wordings."""
    recalled: int
    """Judgments that are paid for already."""
    calls: int
    dollars: float | None
    """None if the price is not known."""
    most: float | None
    """With the longest replies."""


class ChangedItem(NamedTuple):
    """One item that is graded otherwise than by the assessors, under one of the wordings or both."""

    item: Disagreement
    old: JudgeGrade
    new: JudgeGrade
    kind: Literal["gained", "lost", "moved", "kept"]
    """gained: only the old wording errs. lost: only the new one. moved: both do, with different grades."""


class BeforeAfter(NamedTuple):
    """What a rerun found."""

    old: AgreementRow
    new: AgreementRow
    difference: ComparisonRow | None
    """Of the primary statistic, with the judges in either order; None where both grades are not of the same items."""
    gain: Estimate | None
    """New minus old."""
    changes: tuple[ChangedItem, ...]
    looks: Looks | None
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> Literal["better", "worse", "open", "untested"]:
        """What the items say of the new wording: better or worse only where interval and test both do.

        With few topics an interval may leave 0 out where no exchange of topics could be rare enough.
        """
        if self.difference is None or self.gain is None or self.difference.p_max_t is None:
            return "untested"
        low, high, p = self.gain.low, self.gain.high, self.difference.p
        if low is None or high is None or p is None or p > SEPARABLE or low <= 0 <= high:
            return "open"
        return "better" if low > 0 else "worse"


def dev_rows(plan: ReviewPlan) -> tuple[GoldRow, ...]:
    """The grades that may be asked on.

    Raises:
        InputError: A file cannot be read or has problems.
        UsageError: A file holds grades of a test part.
    """
    files = _gold_files(plan)
    rows = read_unsealed(files, "a prompt is improved on dev grades alone, and `judge calibrate --test` looks once")
    if any(row.split == "test" for row in rows):
        raise UsageError(
            f"{', '.join(map(str, files))}: holds grades of a test part: a prompt is improved on dev grades alone"
        )
    return rows


def _gold_files(plan: ReviewPlan) -> list[Path]:
    return [Path(file_in(path, *GOLD_FILES)) for path in plan.gold]


def cost(plan: ReviewPlan, question: Rewording) -> Cost:
    """What asking would send; nothing is sent or written.

    Raises:
        InputError: Gold, pool or topics cannot be read.
        UsageError: The model cannot be asked, or nothing of the pool has gold under this criterion.
    """
    rows, pool = dev_rows(plan), _pool(plan)
    part = _part(pool, rows, question)
    prompts = _prompts(question)
    model = open_one(question.model, plan.options, prompts, plan.settings, keys=False)
    wanted = gold_tasks(rows, part, prompts, 1, "gold")
    turns = turns_shown(pool, turns_by_id(read_topics(plan.topics)) if plan.topics is not None else None)
    with Asking(JournalPlace(plan.home / RERUN, known=_known(plan)), part, turns, dry=True) as asking:
        (row,) = asking.forecast(Judge((model,), plan.options, plan.settings), wanted).rows
    return Cost(len(part.responses), row.judgments, row.recalled, row.calls, row.cost, row.most)


def ask_again(plan: ReviewPlan, question: Rewording, report: Callable[[Progress], None]) -> CalibrationOutcome:
    """Ask both wordings on the items, and compare them.

    Args:
        plan: The review.
        question: What is asked.
        report: Called after each judgment.

    Raises:
        InputError: Gold, pool or topics cannot be read.
        UsageError: The model cannot be asked, or nothing of the pool has gold under this criterion.
        OperationalError: Asking stopped early; the same question goes on from there.
    """
    rows, pool = dev_rows(plan), _pool(plan)
    part = _part(pool, rows, question)
    folder = Path(plan.pool or "")
    if question.items is not None:
        folder = plan.home / POOL
        write_atomic(folder / "pool.jsonl", pool_jsonl(part))
        write_atomic(folder / "passages.jsonl", passages_jsonl(part))
    same_scale = same_grades(question.old.criterion.scale, question.new.criterion.scale)
    return calibrate_judges(
        CalibrationPlan(
            gold=_gold_files(plan),
            models=[question.model],
            prompts=[question.old.path, question.new.path],
            pool=folder,
            topics=plan.topics,
            criterion=question.old.criterion.name,
            gold_scale=plan.gold_scale or (None if same_scale else question.old.path),
            options=plan.options,
            settings=plan.settings,
            out=plan.home / RERUN,
        ),
        report=report,
        known=_known(plan),
    )


def before_after(outcome: CalibrationOutcome, question: Rewording) -> BeforeAfter:
    """What a rerun found.

    Raises:
        OperationalError: No judge was compared.
    """
    found = outcome.calibration
    old, new = _row(found, question.old.name), _row(found, question.new.name)
    difference = next((row for row in found.comparisons if {row.a, row.b} == {old.name, new.name}), None)
    gain = difference.difference if difference is not None else None
    if difference is not None and gain is not None and difference.a == old.name:
        low, high = (None if end is None else -end for end in (gain.high, gain.low))
        value = None if gain.value is None else -gain.value
        gain = Estimate(value, low, high, gain.n, gain.topics, gain.reason)
    looks = next(iter(found.looks), None)
    changes = tuple(_change(item, question) for item in outcome.disagreements)
    return BeforeAfter(old, new, difference, gain, changes, looks, found.warnings)


def _row(found: Calibration, prompt: str) -> AgreementRow:
    row = next((row for row in found.agreement if row.prompt == prompt and not row.baseline), None)
    if row is None:
        raise OperationalError(f"nothing is known about {prompt}: no item has both grades")
    return row


def _change(item: Disagreement, question: Rewording) -> ChangedItem:
    old, new = (
        next(judge for judge in item.judges if judge.prompt == prompt.name) for prompt in (question.old, question.new)
    )
    if old.difference != 0 and new.difference != 0:
        return ChangedItem(item, old, new, "kept" if old.grade == new.grade else "moved")
    return ChangedItem(item, old, new, "gained" if new.difference == 0 else "lost")


def _pool(plan: ReviewPlan) -> Pool:
    if plan.pool is None:
        raise UsageError("the responses are needed to ask again (--pool)")
    return read_pool_folder(Path(plan.pool), "passages.jsonl")


def _part(pool: Pool, rows: Sequence[GoldRow], question: Rewording) -> Pool:
    """The responses that are asked about, and no others."""
    criterion = question.old.criterion.name
    matched, _ = match(rows, pool, "gold")
    graded = [response for response in pool.responses if (response.response_id, criterion) in matched]
    if not graded:
        raise UsageError(f"the gold has no grade of {criterion} of a response in the pool")
    size = len(graded) if question.items is None else min(question.items, len(graded))
    chosen = {
        (response.turn_id, response.text)
        for response in (graded[number * len(graded) // size] for number in range(size))
    }
    # Equal texts stay together: gold that names a text is found only where the pool has all responses with it.
    responses = tuple(response for response in graded if (response.turn_id, response.text) in chosen)
    keys = {key for response in responses for key in response.passages}
    return Pool(responses, {key: passage for key, passage in pool.passages.items() if key in keys}, ())


def _prompts(question: Rewording) -> list[Criterion]:
    return [question.old.criterion, question.new.criterion]


def _known(plan: ReviewPlan) -> tuple[Path, ...]:
    """The journal of the calibration that is reviewed, which holds paid answers."""
    return (Path(plan.folder) / JOURNAL,)


class Job:
    """One rerun in the background; a second one waits until it has ended."""

    def __init__(self, plan: ReviewPlan) -> None:
        self._plan = plan
        self._thread: threading.Thread | None = None
        self._stopping = False
        self.question: Rewording | None = None
        self.progress: Progress | None = None
        self.outcome: BeforeAfter | None = None
        self.error: str | None = None
        """Why there is no outcome."""

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, question: Rewording) -> None:
        """Begin.

        Raises:
            UsageError: Another one is under way.
        """
        if self.running:
            raise UsageError("a rerun is under way: wait for its end, or stop it")
        self.question, self.progress, self.outcome, self.error = question, None, None, None
        self._stopping = False
        self._thread = threading.Thread(target=self._work, args=(question,), name="rerun")
        self._thread.start()

    def stop(self) -> None:
        """Send no further call; those in flight are finished, and what they cost is kept."""
        self._stopping = True

    def wait(self) -> None:
        """Wait for the end."""
        if self._thread is not None:
            self._thread.join()

    def _work(self, question: Rewording) -> None:
        try:
            self.outcome = before_after(ask_again(self._plan, question, self._report), question)
        except JudgeError as error:
            problems = [f"{problem.path} {problem.message}" for problem in getattr(error, "problems", ())[:5]]
            self.error = "; ".join([str(error), *problems])
        except Exception as error:  # noqa: BLE001 - the page has to say that the job ended, whatever ended it
            self.error = f"an error of judge itself: {type(error).__name__}: {error}"

    def _report(self, progress: Progress) -> None:
        self.progress = progress
        if self._stopping:
            raise OperationalError(
                f"stopped with {progress.done} of {progress.total} judgments made; what was paid for is kept, and the "
                "same question goes on from there"
            )
