"""The replies of a judged folder, read again by today's parser: what `judge journal reparse` does, from Python."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.ask.answers import is_filler
from judge.ask.criteria import find_criterion
from judge.ask.endpoint import remembered_rooms
from judge.ask.questions import inquiry
from judge.ask.records import Failure, Judgment, Unreadable, in_a_word
from judge.errors import UsageError
from judge.io.plan import Option
from judge.io.printout import Part, Printout
from judge.io.table import Table
from judge.io.words import split_sentences
from judge.jobs.manifest import JOURNAL, OutputFolder
from judge.jobs.options import OwnPrompts
from judge.judges.forms import answer_labels
from judge.judges.journal import JournalView
from judge.judges.journal_store import Recorded, request_digest
from judge.judges.records import LIMITS, Request
from judge.pool.records import PooledResponse
from judge.records import Criterion

ASKED_AGAIN = "asked again"
"""What becomes of a judgment whose next request the journal does not answer."""


class ReparsePlan(OwnPrompts):
    """Everything `judge journal reparse` can be told."""

    folder: Annotated[Path, Option(metavar="OUT", place="only")]
    """Output folder of `judge run`."""


class Reread(msgspec.Struct, frozen=True):
    """One judgment that would be another today, by grade, `unable`, or the reason why it is missing; or ASKED_AGAIN."""

    response_id: str
    turn_id: str
    criterion: str
    variant: str
    judge: str
    sample: int
    before: str
    after: str


def reparse(plan: ReparsePlan) -> Printout:
    """Read every reply behind the judgments of a folder again; nothing is asked and nothing is written.

    Of `data`, `read` counts the judgments and failures whose replies the journal holds, `without_reply` those that rest
    on no recorded reply, such as calls that failed.
    """
    path = plan.folder / JOURNAL
    folder = OutputFolder(plan.folder)
    results = folder.replies
    prompts, warnings = _prompts(results, plan.prompts)
    responses = {response.response_id: response for response in folder.pool.responses}
    changes = list[Reread]()
    read = 0
    with JournalView([path]) as journal:
        for result in results:
            first = _first(journal, result.request_digest) if result.request_digest else None
            response = responses.get(result.response_id)
            if first is None or response is None:
                continue
            read += 1
            before = in_a_word(result)
            after = _read_again(first, prompts[f"{result.criterion}/{result.variant}"], response, journal)
            if before != after:
                change = Reread(
                    response_id=result.response_id,
                    turn_id=result.turn_id,
                    criterion=result.criterion,
                    variant=result.variant,
                    judge=result.judge,
                    sample=result.sample,
                    before=before,
                    after=after,
                )
                changes.append(change)
    without_reply = len(results) - read
    parts: list[Part] = [{"read again": read, "without a reply": without_reply, "changed": len(changes)}]
    if changes:
        parts.append(_counts(changes))
        parts.append(tuple(map(_line, changes)))
    takes_over = "the same `judge run` command takes this over, with --replace where the parser's version has changed"
    return Printout(
        data={"read": read, "without_reply": without_reply, "changes": changes, "warnings": warnings},
        parts=tuple(parts),
        warnings=tuple(f"warning: {warning}" for warning in warnings),
        notes=(takes_over,) if changes else (),
        exit=1 if changes else 0,
    )


def _counts(changes: Sequence[Reread]) -> Table[Any]:
    """How many judgments change, by criterion and by before and after in words."""
    counts = Counter((change.criterion, f"{change.before} → {change.after}") for change in changes)
    lines = ((criterion, change, number) for (criterion, change), number in sorted(counts.items()))
    return Table(rows=lines, columns=("criterion", "before → after", "n"))


def _line(change: Reread) -> str:
    whose = f"{change.response_id} of {change.turn_id}, {change.criterion}/{change.variant}"
    sample = f", sample {change.sample}" if change.sample else ""
    return f"  {whose} by {change.judge}{sample}: {change.before} → {change.after}"


def _first(journal: JournalView, digest: str) -> Recorded | None:
    """The first completion of the inquiry whose last request has this digest; None if it is not there."""
    last = journal.find(digest)
    if last is None or not any(message.role == "assistant" for message in last.messages):
        return last
    # A repair shows the first reply and asks once more.
    return _found(journal, last, msgspec.structs.replace(last, messages=last.messages[:-2]))


def _found(journal: JournalView, like: Recorded, asked: Request | Recorded) -> Recorded | None:
    """What the journal holds of a request that went out with the parameters of another; None if it holds nothing.

    The longest reply may be another, since a reply that was cut off was asked for again with more room.
    """
    named = next((name for name in LIMITS if name in like.parameters), None)
    rooms = [] if named is None else sorted(remembered_rooms(journal, like.judge))
    found = None
    for parameters in [{**like.parameters, str(named): room} for room in rooms] or [like.parameters]:
        entry = journal.find(request_digest(like.judge, parameters, asked))
        if entry is not None:
            found = entry
            if not entry.completion.is_cut:
                break
    return found


def _prompts(
    results: Sequence[Judgment | Failure], own: Sequence[Path]
) -> tuple[dict[str, Criterion], tuple[str, ...]]:
    """The prompts behind the results by `criterion/variant`, and a warning for each that has changed since."""
    given = {prompt.prompt_id: prompt for prompt in map(find_criterion, own)}
    digests: dict[str, set[str]] = defaultdict(set)
    for result in results:
        digests[f"{result.criterion}/{result.variant}"].add(result.criterion_digest)
    try:
        prompts = {name: given.get(name) or find_criterion(name) for name in sorted(digests)}
    except UsageError as error:
        raise UsageError(f"{error}; give the prompt of your own with --prompt PATH") from error
    for name in given.keys() - digests.keys():
        raise UsageError(f"no judgment is under {name}, only under {', '.join(sorted(digests))}")
    changed = [prompt.file for name, prompt in prompts.items() if digests[name] != {prompt.digest}]
    return prompts, tuple(f"{file} has changed since these judgments were made" for file in changed)


def _read_again(first: Recorded, criterion: Criterion, response: PooledResponse, journal: JournalView) -> str:
    """What today's parser makes of an inquiry whose first completion is this one."""
    asked = Request(
        response_id=response.response_id,
        turn_id=response.turn_id,
        criterion=criterion.name,
        form=first.form,
        messages=first.messages,
        scale=criterion.scale,
        labels=answer_labels(criterion),
        sentences=len(split_sentences(response.text)) if criterion.answer == "sentences" else 0,
        response=response.text,
        passages=(),
        sample=first.sample,
    )
    talk = inquiry(criterion, asked)
    try:
        asked = next(talk)
        while True:
            entry = _found(journal, first, asked)
            if entry is None:
                return ASKED_AGAIN
            asked = talk.send(entry.completion)
    except StopIteration as stop:
        verdict = stop.value.verdict
        completion = stop.value.completion
    return ASKED_AGAIN if isinstance(verdict, Unreadable) and is_filler(completion, first.form) else in_a_word(verdict)
