"""What a judge is asked about a pool, once more after an unreadable reply, and what the journal answers already."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judge.ask.account import Account, TokenRates, learned_rates, prompt_bytes
from judge.ask.prompt import render, repair
from judge.ask.records import Failure, Judgment, SentenceSupport, Task, Unreadable, Verdict, evidence_gap
from judge.ask.reply import is_cut
from judge.ask.verdict import parse
from judge.errors import OperationalError
from judge.judges.forms import supported_forms
from judge.judges.journal import Journal, JournalView
from judge.judges.journal_store import request_digest
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
    final = request.form == "label" or completion.finish_reason == NO_SCORE
    if final or not isinstance(verdict, Unreadable) or verdict.reason != "unreadable":
        return Answer(verdict, completion, request, repaired=False)
    if verdict.hidden and request.form == "json":
        # The repair has the same schema, and the server would hide its verdict as well.
        return Answer(verdict, completion, request, repaired=False)
    again = repair(request, completion, verdict)
    completion = yield again
    verdict = parse(completion, criterion, request.form, request.sentences)
    return Answer(verdict, completion, again, repaired=True)


def is_filler(completion: Completion, form: AnswerForm) -> bool:
    """Whether a reply to a JSON schema was cut off in white space that makes up most of it.

    Constrained decoding lets a weak model write white space for ever, wherever JSON allows it. Nothing in such a reply
    is a verdict, and the same model may well give one in the text form.

    >>> is_filler(Completion(text='{"rationale":' + " " * 50, finish_reason="length", model=None), "json")
    True
    """
    text = completion.text
    return form == "json" and is_cut(completion) and 2 * len(text.rstrip()) < len(text)


def outcome(task: Task, answer: Answer, judge: str, digest: str) -> Judgment | Failure:
    """The judgment or failure that an inquiry ends with; `digest` is that of its last request."""
    verdict, completion = answer.verdict, answer.completion
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
    return tuple(
        SentenceSupport(tuple(passages[number - 1] for number in numbers), probability)
        for probability, numbers in verdict.support
    )


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


_SAMPLE = 1000
"""Calls of the journal from which estimates are learned."""
_FEW, _SHARE = 3, 0.1
"""With so many replies of white space to the JSON schema, and such a share of all, a judge is asked in text first."""
_FORM, _FILLER = "form:", "filler:"
"""Before a judge's name, the keys of what the journal remembers: that it takes no schema, and its white space."""


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
        self._structured = journal.meta(_FORM + model.name) != "text"
        self._replies = self._filler = 0
        """Replies to the JSON schema, and those of them that were white space."""

    def forms(self, criterion: Criterion) -> list[AnswerForm]:
        """The answer forms to try, the preferred one first: those that both judge and criterion support.

        An OperationalError if they share no form.
        """
        offered = [form for form in self.model.forms if form in supported_forms(criterion)]
        if not self._structured and offered != ["json"]:
            offered = [form for form in offered if form != "json"]
        if self._filler >= max(_FEW, _SHARE * self._replies):
            # Still there for a recording, which holds some answers in this form alone.
            offered.sort(key=lambda form: form == "json")
        if not offered:
            raise OperationalError(f"{self.model.name} cannot be asked {criterion.prompt_id} in any answer form")
        return offered

    def refuse_json(self) -> None:
        """Remember, in the journal too, that the judge takes no JSON schema."""
        if self._structured:
            self._structured = False
            self._remember(_FORM + self.model.name, "text")

    def _remember(self, key: str, value: str) -> None:
        # A view is for those who ask nothing.
        if isinstance(self._journal, Journal):
            self._journal.set_meta(key, value)

    def is_lost(self, answer: Answer) -> bool:
        """Whether white space under the JSON schema cost a judgment, so that the next form is to be tried."""
        self._count(answer)
        lost = is_filler(answer.completion, answer.request.form)
        if lost and self._filler == 1:
            self._remember(_FILLER + self.model.name, "some")
        return lost

    def _count(self, answer: Answer) -> None:
        self._replies += answer.request.form == "json"
        self._filler += is_filler(answer.completion, answer.request.form)

    def first(self, task: Task) -> tuple[str, Request]:
        """Digest and request of the preferred form of a task; equal questions have equal digests."""
        request = self.request(task, self._shared_forms(task)[0])
        return self.digest(request), request

    def request(self, task: Task, form: AnswerForm) -> Request:
        """The first request of a task."""
        return render(task, self._pool.passages, self._turns.get(task.response.turn_id), form)

    def digest(self, request: Request) -> str:
        """The digest of a request, under which the journal keeps its completion."""
        return request_digest(self.model.name, self.model.parameters(request), request)

    def rates(self) -> TokenRates:
        """What the judge's tokens come to, as far as the journal tells."""
        sizes, prompts, replies = [], [], []
        for entry in self._journal.sample(self.model.name, _SAMPLE):
            call = entry.completion
            if call.prompt_tokens and call.completion_tokens:
                sizes.append(prompt_bytes(entry.messages))
                prompts.append(call.prompt_tokens)
                replies.append(call.completion_tokens)
        return learned_rates(len(sizes), sum(sizes), sum(prompts), sum(replies))

    def gap(self, task: Task) -> Failure | None:
        """The failure of a task that lacks the passages that its criterion needs."""
        gap = evidence_gap(task, self._pool)
        return None if gap is None else failure(task, self.model.name, "no_passages", gap)

    def recall(self, task: Task) -> Judgment | Failure | None:
        """The outcome of the task, in any form, if the journal holds every completion that it needs."""
        found = self._found(task)
        if found is None:
            return None
        for answer in found.answers:
            self._count(answer)
        self.account.rest(self.model.name, {digest: completion for digest, (_, completion) in found.calls.items()})
        return outcome(task, found.answers[-1], self.model.name, found.digest)

    def settled(self, tasks: Iterable[Task]) -> Iterator[Judgment | Failure | None]:
        """For each task its outcome where that needs no call; None where it does."""
        for task in tasks:
            yield self.gap(task) or self.recall(task)

    def next_request(self, task: Task) -> tuple[str, Request] | None:
        """Digest and request that the outcome of a task waits for; None if the journal holds every completion it needs.

        That is the first request, the repair of an unreadable reply, or the request in another form after a reply that
        was of no use.
        """
        if self._found(task) is not None:
            return None
        walks = (self._walked(task, form) for form in self.forms(task.criterion))
        return next((walked for walked in walks if not isinstance(walked, _Found)), None)

    def _found(self, task: Task) -> "_Found | None":
        """What the journal holds of a task, up to the first form in which the reply was of use."""
        forms = self._shared_forms(task)
        answers: list[Answer] = []
        calls: dict[str, tuple[Request, Completion]] = {}
        for form in forms if self._journal else ():
            recorded = self._walked(task, form)
            if not isinstance(recorded, _Found):
                continue
            answers.append(recorded.answers[-1])
            calls |= recorded.calls
            if not is_filler(answers[-1].completion, form) or form == forms[-1]:
                return _Found(answers, recorded.digest, calls)
        return None

    def _shared_forms(self, task: Task) -> list[AnswerForm]:
        """The answer forms that judge and criterion support, in the judge's order."""
        return [form for form in self.model.forms if form in supported_forms(task.criterion)]

    def _walked(self, task: Task, form: AnswerForm) -> "_Found | tuple[str, Request]":
        """The end of an inquiry in one form if the journal holds it all, else the first request that it lacks."""
        asked = self.request(task, form)
        talk = inquiry(task.criterion, asked, self.model.parts(asked))
        calls: dict[str, tuple[Request, Completion]] = {}
        try:
            request = next(talk)
            while True:
                digest = self.digest(request)
                completion = self._journal.get(digest)
                if completion is None:
                    return digest, request
                if request.replies is None:
                    calls[digest] = request, completion
                request = talk.send(completion)
        except StopIteration as stop:
            return _Found([stop.value], digest, calls)


class _Found(NamedTuple):
    """What the journal holds of one task."""

    answers: list[Answer]
    """The ends of its inquiries; the last one counts."""
    digest: str
    """Digest of the last request."""
    calls: dict[str, tuple[Request, Completion]]
    """Every request and its completion, by digest."""


def filler_notes(judges: Iterable[str], journal: Journal) -> tuple[str, ...]:
    """A sentence for each judge that answered the JSON schema with white space; the same however often it did."""
    return tuple(
        f"{judge}: replies to the JSON schema were white space up to the token limit; it was asked in the text form "
        "instead."
        for judge in sorted(set(judges))
        if journal.meta(_FILLER + judge) is not None
    )
