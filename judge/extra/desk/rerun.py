"""The prompts of a review, the wordings that are saved there, and one asked again on dev items beside the old one.

The statistics and the journal of a rerun are those of `judge calibrate`.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from judge.ask.asking import JobForecast
from judge.ask.criteria import bundled_criteria, load_criterion, prompt_path
from judge.ask.options import AskingOptions
from judge.ask.progress import Progress
from judge.ask.prompt_file import parse_criterion
from judge.ask.records import JOURNAL
from judge.calibrate.disagreements import Disagreement, JudgeGrade
from judge.calibrate.findings import AgreementRow, Calibration, ComparisonRow
from judge.calibrate.intake import same_grades
from judge.calibrate.report.lookup import SEPARABLE
from judge.calibrate.selection import turned
from judge.errors import InputError, JudgeError, OperationalError, UsageError
from judge.extra.desk.app import DeskAddress
from judge.gold.rows import GoldRow, match
from judge.gold.seal import GOLD_FILES, read_unsealed
from judge.io.files import StrPath, file_in, read_stored
from judge.io.folder import write_atomic
from judge.io.ids import natural_key
from judge.io.plan import Option
from judge.io.text import shown, storable
from judge.jobs.calibration import CalibrationPlan, calibrate_judges, forecast_calibration
from judge.pool.bank import read_pool_folder
from judge.pool.records import Pool
from judge.records import Criterion, Estimate

_CONTEXT = 2
"""Lines that both have, shown beside each change."""


class ShelvedPrompt(NamedTuple):
    """A prompt with the text of its file."""

    criterion: Criterion
    path: Path
    text: str
    own: bool
    """Whether it was saved at this desk; any other file is never written."""

    @property
    def name(self) -> str:
        """`criterion/variant`."""
        return self.criterion.prompt_id


class Shelf:
    """The prompts of a review.

    New wordings become `<criterion>/<variant>.md` in `home`; `wanted` are the prompts behind the judges, `given` names
    and files of the user's own prompts.
    """

    def __init__(self, home: Path, wanted: Iterable[str], given: Iterable[StrPath]) -> None:
        self.home = home
        self._known: dict[str, ShelvedPrompt] = {}
        for path in map(prompt_path, given):
            self._add(path)
        bundled = {prompt.prompt_id for prompt in bundled_criteria()}
        for name in wanted:
            # By name only: a file of disagreements must not make judge read some other path.
            if name in bundled and name not in self._known:
                self._add(prompt_path(name))

    def _add(self, path: Path) -> None:
        prompt = _shelved(path, own=False)
        known = self._known.setdefault(prompt.name, prompt)
        if known.criterion.digest != prompt.criterion.digest:
            raise UsageError(f"{path} and {known.path} are both called {prompt.name}: rename one of the files")

    def prompts(self) -> tuple[dict[str, ShelvedPrompt], tuple[str, ...]]:
        """Every prompt by name, and what is wrong with files that were saved here and changed since."""
        found, problems = dict(self._known), []
        for path in sorted(self.home.glob("*/*.md")):
            try:
                prompt = _shelved(path, own=True)
            except InputError as error:
                problems.append(str(error))
                continue
            if found.setdefault(prompt.name, prompt) is not prompt:
                problems.append(f"{path}: {prompt.name} is the name of {found[prompt.name].criterion.file} too")
        return dict(sorted(found.items(), key=lambda pair: natural_key(pair[0]))), tuple(problems)

    def save(self, base: ShelvedPrompt, variant: str, text: str, *, replace: bool = False) -> ShelvedPrompt:
        """Save a wording as a prompt file of its own.

        `replace` writes over a wording of this name that was saved here.
        """
        text = text.replace("\r\n", "\n").strip("\n") + "\n"
        if not storable(text):
            raise UsageError("The text holds a NUL or half of a character.")
        content = text.encode()
        criterion = parse_criterion(content, variant, f"{variant}.md")
        if criterion.name != base.criterion.name:
            raise UsageError(
                f"criterion is {shown(criterion.name)}: expected {shown(base.criterion.name)}, as the grades are of it"
            )
        # Names that differ only in case are one file on some systems.
        known = {name.casefold(): prompt for name, prompt in self.prompts()[0].items()}
        bundled = {prompt.prompt_id.casefold() for prompt in bundled_criteria()}
        name = criterion.prompt_id
        earlier = known.get(name.casefold())
        if (earlier is not None and not earlier.own) or name.casefold() in bundled:
            raise UsageError(f"{name} is a prompt that this desk does not write over: give another name")
        path = self.home / criterion.name / f"{variant}.md"
        if path.exists() and not replace and read_stored(path) != content:
            raise UsageError(f"{name} is saved here already: give another name, or choose to replace it")
        write_atomic(path, content)
        return ShelvedPrompt(load_criterion(path), path, text, own=True)

    def free_name(self, base: ShelvedPrompt) -> str:
        """A variant's name that no prompt has: the base's with the next number."""
        stem = base.criterion.variant.rpartition("-v")[0] if base.own else base.criterion.variant
        taken = {name.casefold() for name in self.prompts()[0]}
        number = 2
        while f"{base.criterion.name}/{stem}-v{number}".casefold() in taken:
            number += 1
        return f"{stem}-v{number}"


def _shelved(path: Path, *, own: bool) -> ShelvedPrompt:
    return ShelvedPrompt(load_criterion(path), path, read_stored(path).decode("utf-8-sig"), own)


def diff_lines(old: str, new: str) -> tuple[tuple[str, str], ...]:
    r"""The kinds of the lines of both texts, each with its line; a gap stands for lines that both have.

    >>> diff_lines("a\nb\nc", "a\nB\nc")
    (('same', 'a'), ('old', 'b'), ('new', 'B'), ('same', 'c'))
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[tuple[str, str]] = []
    shown = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if group[0][1] > shown:
            lines.append(_gap(group[0][1] - shown))
        for tag, i, j, k, m in group:
            lines += [("same" if tag == "equal" else "old", line) for line in before[i:j]]
            lines += [("new", line) for line in after[k:m] if tag != "equal"]
        shown = group[-1][2]
    if lines and shown < len(before):
        lines.append(_gap(len(before) - shown))
    return tuple(lines)


def _gap(lines: int) -> tuple[str, str]:
    return "gap", f"{lines} line{'s' * (lines > 1)} that both have"


RERUN = "rerun"
"""The calibration of the last rerun, in the review's folder."""


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


class Rewording(NamedTuple):
    """What is asked again."""

    old: ShelvedPrompt
    new: ShelvedPrompt
    model: str
    items: int | None = None
    """How many dev items, evenly spread; None for all."""


ItemChange = tuple[Disagreement, JudgeGrade, JudgeGrade]
"""An item, with its grades under the old and the new wording."""


class BeforeAfter(NamedTuple):
    """What a rerun found."""

    old: AgreementRow
    new: AgreementRow
    difference: ComparisonRow | None
    """Of the primary statistic, with the judges in either order; None where both grades are not of the same items."""
    gain: Estimate | None
    """New minus old."""
    changes: Mapping[str, Sequence[ItemChange]]
    """gained: only the old wording errs. lost: only the new one. moved: both do, with other grades. kept: with one."""
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
    """The grades that may be asked on."""
    files = _gold_files(plan)
    rows = read_unsealed(files, "a prompt is improved on dev grades alone, and `judge calibrate --test` looks once")
    if any(row.split == "test" for row in rows):
        raise UsageError(
            f"{', '.join(map(str, files))}: holds grades of a test part: a prompt is improved on dev grades alone"
        )
    return rows


def _gold_files(plan: ReviewPlan) -> list[Path]:
    return [file_in(path, *GOLD_FILES) for path in plan.gold]


def _rerun(plan: ReviewPlan, question: Rewording) -> tuple[CalibrationPlan, Pool]:
    """The calibration of both wordings, and the responses that it asks about."""
    rows, old, new = dev_rows(plan), question.old, question.new
    pool = read_pool_folder(plan.pool or Path(), "passages.jsonl")
    if question.items is not None:
        pool = _spread(pool, rows, old.criterion.name, question.items)
    same_scale = same_grades(old.criterion.scale, new.criterion.scale)
    calibration = CalibrationPlan(
        gold=_gold_files(plan),
        models=[question.model],
        prompts=[old.path, new.path],
        pool=plan.pool,
        topics=plan.topics,
        criterion=old.criterion.name,
        gold_scale=plan.gold_scale or (None if same_scale else old.path),
        out=plan.home / RERUN,
        **plan.part(AskingOptions),
    )
    return calibration, pool


def _spread(pool: Pool, rows: Sequence[GoldRow], criterion: str, items: int) -> Pool:
    """Some of the responses with gold of a criterion, evenly spread."""
    matched, _ = match(rows, pool, "gold")
    graded = [response for response in pool.responses if (response.response_id, criterion) in matched]
    size = min(items, len(graded))
    spread = (graded[number * len(graded) // size] for number in range(size))
    chosen = {(response.turn_id, response.shown) for response in spread}
    # Equal texts stay together: gold that names a text is found only where the pool has all responses with it.
    responses = tuple(response for response in graded if (response.turn_id, response.shown) in chosen)
    return msgspec.structs.replace(pool, responses=responses)


def cost(plan: ReviewPlan, question: Rewording) -> JobForecast:
    """What asking would send; nothing is sent or written."""
    calibration, pool = _rerun(plan, question)
    return forecast_calibration(calibration, pool=pool, known=(plan.folder / JOURNAL,))


def ask_again(plan: ReviewPlan, question: Rewording, report: Callable[[Progress], None]) -> BeforeAfter:
    """Ask both wordings on the items, and compare them."""
    calibration, pool = _rerun(plan, question)
    outcome = calibrate_judges(calibration, report=report, pool=pool, known=(plan.folder / JOURNAL,))
    found = outcome.calibration
    old, new = _row(found, question.old.name), _row(found, question.new.name)
    difference = next((row for row in found.comparisons if {row.a, row.b} == {old.name, new.name}), None)
    gain = difference.difference if difference is not None else None
    if difference is not None and gain is not None and difference.a == old.name:
        gain = turned(gain)
    changes = {kind: list[ItemChange]() for kind in ("gained", "lost", "moved", "kept")}
    for item in outcome.disagreements:
        by_prompt = {judge.prompt: judge for judge in item.judges}
        a, b = by_prompt[question.old.name], by_prompt[question.new.name]
        both = "kept" if a.grade == b.grade else "moved"
        kind = "gained" if b.difference == 0 else "lost" if a.difference == 0 else both
        changes[kind].append((item, a, b))
    return BeforeAfter(old, new, difference, gain, changes, found.warnings)


def _row(found: Calibration, prompt: str) -> AgreementRow:
    row = next((row for row in found.agreement if row.prompt == prompt and not row.baseline), None)
    if row is None:
        raise OperationalError(f"nothing is known about {prompt}: no item has both grades")
    return row


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
        """Begin."""
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
            self.outcome = ask_again(self._plan, question, self._report)
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
