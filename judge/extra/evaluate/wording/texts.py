"""The text of a run's first response in each turn, and the references: manual responses of the same turns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from judge.errors import InputError
from judge.extra.evaluate.wording.overlap import rouge_words
from judge.io.cells import count
from judge.io.ids import natural_key
from judge.io.paths import StrPath
from judge.io.safe import shown
from judge.io.steps import Steps, quiet, stepped
from judge.records import Problem, Record
from judge.runs.formats import find_runs, read_run, rules_of
from judge.runs.records import Topic

LONGEST = 4000
"""The most words of a text; the longest common subsequence of two takes time and memory by their product."""


class RunTexts(Record, frozen=True):
    """A run as one text a turn."""

    run_id: str
    file: str
    texts: dict[str, str]
    """Turn to the text of the response that the run ranks first; turns without a text are left out."""
    remarks: tuple[str, ...] = ()
    """What was passed over, a sentence each."""


def run_texts(
    given: StrPath | Sequence[StrPath], problems: list[Problem], leave: Iterable[Path] = (), steps: Steps = quiet
) -> Iterator[RunTexts | str]:
    """The runs of folders and files, one at a time, or why a file is left out.

    Args:
        given: Folders of run files, and run files.
        problems: Receives what cannot be read; the caller refuses the whole if there is any error among it.
        leave: Files that are no runs to measure.
        steps: Called as the runs are asked for.

    Raises:
        InputError: A folder is missing or holds no run.
    """
    files, beside = find_runs(given)
    problems += beside
    left = {path.resolve() for path in leave}
    named: dict[str, str] = {}
    for path in stepped("measuring runs", files, steps):
        if path.resolve() in left:
            yield f"{path}: is a reference, so it is not measured"
            continue
        try:
            run = read_texts(path)
        except InputError as error:
            problems += error.problems
            if not any(problem.severity == "error" for problem in error.problems):
                message = str(error).removeprefix(f"{path}: ")
                problems.append(Problem("unreadable_run", "error", str(path), None, "", message))
            continue
        if run is None:
            yield f"{path}: an interactive run, whose turns are its own, so no manual response is of them"
        elif not run.run_id.strip():
            problems.append(Problem("missing_run_id", "error", run.file, None, "", "the run has no name"))
        elif run.run_id in named:
            message = f"the run id {shown(run.run_id)} is also that of {named[run.run_id]}"
            problems.append(Problem("duplicate_run_id", "error", run.file, None, "", message))
        else:
            named[run.run_id] = run.file
            problems += too_long(run.texts, run.file)
            yield run


def read_texts(path: Path) -> RunTexts | None:
    """The texts of one run file; None for an interactive run.

    Raises:
        InputError: The file is no run.
    """
    read = read_run(path)
    if read.run is None:
        raise InputError(f"{path}: not a run", read.problems)
    if rules_of(read.run.format).own_turns:
        return None
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for turn in read.run.turns:
        if turn.turn_id in seen:
            continue
        seen.add(turn.turn_id)
        first = min(turn.responses, key=lambda response: response.rank, default=None)
        if first is not None and first.text.strip():
            texts[turn.turn_id] = first.text
    errors = sum(problem.count for problem in read.problems if problem.severity == "error")
    twice = len(read.run.turns) - len(seen)
    remarks = (
        *((f"{count(errors, 'error')} of form, which `judge validate` lists",) if errors else ()),
        *((f"{count(twice, 'turn')} given again, of which the first counts",) if twice else ()),
    )
    return RunTexts(read.run.run_id, str(path), texts, remarks)


def read_references(
    files: Sequence[Path], topics: Sequence[Topic], topics_name: str
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Turn to its manual responses, in natural order: those of the files in their order, then that of the topics.

    Args:
        files: Manual runs, in any format of the tracks.
        topics: Topics whose canonical responses are references too.
        topics_name: The topics file, for messages.

    Returns:
        The references, and what was passed over, a sentence each.

    Raises:
        InputError: A file is no run or is an interactive one, a text is too long, or no turn has a reference.
    """
    found: dict[str, list[str]] = {}
    problems: list[Problem] = []
    remarks: list[str] = []
    sources: list[tuple[str, Mapping[str, str]]] = []
    for path in files:
        try:
            run = read_texts(path)
        except InputError as error:
            message = str(error).removeprefix(f"{path}: ")
            problems += error.problems or (Problem("unreadable_run", "error", str(path), None, "", message),)
            continue
        if run is None:
            message = "an interactive run: its turns are its own, so they are no references for other runs"
            problems.append(Problem("interactive_reference", "error", str(path), None, "", message))
            continue
        remarks += [f"{path}: {remark}" for remark in run.remarks]
        sources.append((str(path), run.texts))
    canonical = {
        turn.turn_id: turn.response
        for topic in topics
        for turn in topic.turns
        if turn.response and turn.response.strip()
    }
    sources.append((topics_name, canonical))
    for name, texts in sources:
        problems += too_long(texts, name)
        for turn_id, text in texts.items():
            found.setdefault(turn_id, []).append(text)
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise InputError(f"not usable as references: {count(len(errors), 'problem')}", errors)
    if not found:
        named = ", ".join([*map(str, files), *([topics_name] if topics_name else [])])
        raise InputError(f"{named}: no turn has a manual response: expected a manual run, or topics with responses")
    return {turn_id: tuple(found[turn_id]) for turn_id in sorted(found, key=natural_key)}, tuple(remarks)


def too_long(texts: Mapping[str, str], file: str) -> list[Problem]:
    """A problem for each text with more than LONGEST words."""
    return [
        Problem("text_too_long", "error", file, turn_id, "", f"{words} words: expected at most {LONGEST}")
        for turn_id, text in texts.items()
        if (words := len(rouge_words(text))) > LONGEST
    ]
