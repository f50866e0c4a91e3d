"""What a judge is asked about a pool, once more after an unreadable reply, and what the journal answers already."""

import functools
import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judge.ask.account import Account
from judge.ask.answers import Asked, CallSample, RecordedAnswers, is_filler
from judge.ask.dialect import Dialect, dialect_notes
from judge.ask.endpoint import Endpoint, remembered_dialect
from judge.ask.prompt import render, repair, without_system
from judge.ask.records import Failure, Judgment, SentenceSupport, Task, Unreadable, Verdict, evidence_gap
from judge.ask.verdict import cut_by_expected, parse
from judge.judges.journal import Journal, JournalView
from judge.judges.model import Model
from judge.judges.records import NO_SCORE, STOPPED, AnswerForm, Completion, Request, provider_name
from judge.pool.records import Pool
from judge.records import Criterion, FailureReason
from judge.runs.records import Turn


class Answer(NamedTuple):
    """The end of an inquiry: the last request, its completion, and what the completion says."""

    verdict: Verdict | Unreadable
    completion: Completion
    request: Request
    repaired: bool


Inquiry = Generator[Request, Completion, Answer]


def inquiry(criterion: Criterion, request: Request, parts: Sequence[Request] | None = None) -> Inquiry:
    """Yield a request and receive its completion; after an unreadable reply, do so once more, with a repair.

    Its parts, where it has some, come before it, up to the first reply without an answer.

    There is no repair of a label, nor of a checker's reply: a checker reads no messages.
    """
    if parts is not None:
        replies: list[Completion] = []
        for part in parts:
            replies.append((yield part))
            if replies[-1].finish_reason in STOPPED:
                break
        request = msgspec.structs.replace(request, replies=tuple(replies))
    completion = yield request
    verdict = parse(completion, criterion, request.form, request.sentences)
    final = request.form in ("label", "decision") or completion.finish_reason == NO_SCORE
    if final or not isinstance(verdict, Unreadable) or verdict.reason != "unreadable":
        # Cuts come after the repair: asked again, the judge would give no probabilities either.
        return Answer(cut_by_expected(verdict, criterion), completion, request, repaired=False)
    if verdict.hidden and request.form == "json":
        # The repair has the same schema, and the server would hide its verdict as well.
        return Answer(verdict, completion, request, repaired=False)
    again = repair(request, completion, verdict)
    completion = yield again
    verdict = parse(completion, criterion, request.form, request.sentences)
    return Answer(cut_by_expected(verdict, criterion), completion, again, repaired=True)


def outcome(task: Task, answer: Answer, judge: str, digest: str) -> Judgment | Failure:
    """The judgment or failure that an inquiry ends with; `digest` is that of its last request."""
    verdict = answer.verdict
    completion = answer.completion
    if isinstance(verdict, Unreadable):
        return failure(
            task, judge, verdict.reason, verdict.detail, raw=completion.text or completion.raw, digest=digest
        )
    return Judgment(
        response_id=task.response.response_id,
        turn_id=task.response.turn_id,
        topic_id=task.response.topic_id,
        criterion=task.criterion.name,
        variant=task.criterion.variant,
        grade=verdict.grade,
        unable=verdict.unable,
        expected=verdict.expected,
        probabilities=completion.probabilities,
        rationale=verdict.rationale,
        sentences=verdict.sentences,
        judge=judge,
        model=provider_name(completion.model),
        criterion_digest=task.criterion.digest,
        request_digest=digest,
        form=answer.request.form,
        repaired=answer.repaired,
        sample=task.sample,
        support=_support(verdict, task.response.passages) if verdict.support else (),
        nuggets=verdict.nuggets,
    )


def _support(verdict: Verdict, passages: Sequence[str]) -> tuple[SentenceSupport, ...]:
    """The support of each sentence by keys of passages; empty if a number is none of a passage."""
    if any(number > len(passages) for _, numbers in verdict.support for number in numbers):
        return ()
    support: list[SentenceSupport] = []
    for probability, numbers in verdict.support:
        support.append(SentenceSupport(tuple(passages[number - 1] for number in numbers), probability))
    return tuple(support)


def failure(
    task: Task, judge: str, reason: FailureReason, detail: str, *, raw: str | None = None, digest: str | None = None
) -> Failure:
    """The record of a missing judgment, with the full reply and the digest of the last request where there was one."""
    return Failure(
        response_id=task.response.response_id,
        turn_id=task.response.turn_id,
        topic_id=task.response.topic_id,
        criterion=task.criterion.name,
        variant=task.criterion.variant,
        reason=reason,
        detail=detail,
        raw=raw,
        judge=judge,
        criterion_digest=task.criterion.digest,
        request_digest=digest,
        sample=task.sample,
    )


class Questions:
    """The requests of one judge about one pool, and their answers in one journal; calls are entered in the account."""

    def __init__(
        self,
        model: Model,
        journal: Journal | JournalView,
        pool: Pool,
        turns: Mapping[str, Turn] | None,
        account: Account | None = None,
    ) -> None:
        self.model = model
        self._journal = journal
        self._pool = pool
        self._turns = turns or {}
        self.account = account or Account()
        self.endpoint = Endpoint(model, journal)
        self.answers = RecordedAnswers(model, journal, self.endpoint)

    @functools.cached_property
    def sample(self) -> CallSample:
        """Calls of the judge that the journal holds."""
        return CallSample(self.model, self._journal)

    def first(self, task: Task) -> tuple[str, Request]:
        """Digest and first request of a task; equal questions have equal digests."""
        request = self.request(task, self.endpoint.forms(task.criterion)[0])
        return self.answers.digest(request), request

    def request(self, task: Task, form: AnswerForm, dialect: Dialect | None = None) -> Request:
        """A first request of a task, as the endpoint takes it."""
        request = self.rendered(task, form)
        omitted = {*self.model.omitted, *(dialect or self.endpoint.dialect).omitted}
        if not omitted:
            return request
        if "system" in omitted:
            request = without_system(request)
        return msgspec.structs.replace(request, omitted=tuple(sorted(omitted)))

    def rendered(self, task: Task, form: AnswerForm) -> Request:
        """A first request of a task, as its prompt says it."""
        return render(task, self._pool.passages, self._turns.get(task.response.turn_id), form)

    def inquiry(self, task: Task, request: Request) -> Inquiry:
        """What is asked about a task, beginning with a request."""
        return inquiry(task.criterion, request, self.model.parts(request))

    def gap(self, task: Task) -> Failure | None:
        """The failure of a task that lacks the passages that its criterion needs."""
        gap = evidence_gap(task, self._pool)
        return None if gap is None else failure(task, self.model.name, "no_passages", gap)

    def recall(self, task: Task) -> Judgment | Failure | None:
        """The outcome of the task if the journal holds every completion that it needs."""
        found = self._walked(task) if self._journal else None
        if not isinstance(found, _Found):
            return None
        if self.model.changeable and isinstance(found.answer.verdict, Unreadable):
            if isinstance(self._journal, Journal):
                self._journal.forget(found.completions)
            return None
        self.account.rest(self.model.name, found.completions)
        return outcome(task, found.answer, self.model.name, found.digest)

    def settled(self, tasks: Iterable[Task]) -> Iterator[Judgment | Failure | None]:
        """For each task its outcome where that needs no call; None where it does."""
        for task in tasks:
            yield self.gap(task) or self.recall(task)

    def next_request(self, task: Task) -> tuple[str, Request] | None:
        """Digest and request that the outcome of a task waits for; None if the journal holds every completion it needs.

        That is the first request, the same one with more room, the repair of an unreadable reply, or the request in
        another form after a reply of white space.
        """
        walked = self._walked(task)
        return None if isinstance(walked, _Found) else (walked.digest, walked.request)

    def _walked(self, task: Task) -> "_Found | Asked":
        """The end of what was asked about a task if the journal holds it all, else the request that it lacks.

        The next form counts where a reply was white space, or the request failed for itself.
        """
        criterion = task.criterion
        forms = self.endpoint.forms(criterion)
        for form in forms:
            request = self.request(task, form)
            walked = self._walk(task, request)
            if isinstance(walked, _Found):
                if not is_filler(walked.answer.completion, form):
                    return walked
            elif not self.endpoint.has_failed(self.answers.digest(request)):
                break
        # What was answered before a form was given up is in that form.
        for form in self.endpoint.offered(criterion):
            if form not in forms and not self.endpoint.dialect.takes(form, criterion.answer):
                earlier = self._walk(task, self.request(task, form))
                if isinstance(earlier, _Found) and not is_filler(earlier.answer.completion, form):
                    return earlier
        return walked

    def _walk(self, task: Task, request: Request) -> "_Found | Asked":
        """The same for an inquiry that begins with this request."""
        talk = self.inquiry(task, request)
        completions: dict[str, Completion] = {}
        try:
            following = next(talk)
            while True:
                asked = self.answers.look_up(following)
                if asked.completion is None:
                    return asked
                if following.replies is None:
                    completions |= {**asked.cut, asked.digest: asked.completion}
                following = talk.send(asked.completion)
        except StopIteration as stop:
            return _Found(stop.value, asked.digest, completions)


class _Found(NamedTuple):
    """What the journal holds of one task."""

    answer: Answer
    digest: str
    """Digest of the last request."""
    completions: dict[str, Completion]
    """By the digests of their requests."""


def refused_notes(judges: Iterable[str], journal: JournalView) -> tuple[str, ...]:
    """What the endpoints of judges refuse of what is usually sent, a sentence each."""
    notes = (dialect_notes(judge, remembered_dialect(journal, judge)) for judge in sorted(set(judges)))
    return tuple(itertools.chain.from_iterable(notes))
