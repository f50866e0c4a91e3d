"""What a journal holds of the requests to one judge: their completions, and what its calls took."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from judge.ask.account import TokenRates, learned_rates, prompt_bytes
from judge.ask.endpoint import Endpoint
from judge.ask.prompt_cut import PromptReading
from judge.judges.journal import Journal, JournalView
from judge.judges.journal_store import Recorded, request_digest
from judge.judges.model import Model
from judge.judges.records import AnswerForm, Completion, Request


def is_filler(completion: Completion, form: AnswerForm) -> bool:
    """Whether a reply to a JSON schema was cut off in white space that makes up most of it.

    Constrained decoding lets a weak model write white space for ever, wherever JSON allows it. Nothing in such a reply
    is a verdict, and the same model may well give one in the text form.

    >>> is_filler(Completion(text='{"rationale":' + " " * 50, finish_reason="length", model=None), "json")
    True
    """
    text = completion.text
    return form == "json" and completion.is_cut and 2 * len(text.rstrip()) < len(text)


class Asked(NamedTuple):
    """A request as the judge is sent it, and its completion; None where the journal does not hold it."""

    digest: str
    request: Request
    completion: Completion | None
    cut: Mapping[str, Completion] = {}
    """Completions to the same request that ended at a lower token limit, by digest."""


class RecordedAnswers:
    """The answers of a journal to the requests to one judge, each with the room that its reply needed."""

    def __init__(self, model: Model, journal: Journal | JournalView, endpoint: Endpoint) -> None:
        self._model = model
        self._journal = journal
        self._endpoint = endpoint

    def digest(self, request: Request) -> str:
        """The digest of a request, under which the journal keeps its completion."""
        return request_digest(self._model.name, self._model.parameters(request), request)

    def look_up(self, request: Request, digest: str | None = None) -> Asked:
        """A request, and what the journal holds of it; `digest` is its digest, where that is known.

        A reply that did not end at its token limit answers the request under any limit. One that did is asked for again
        with more room, where the present limits have more.
        """
        usual = digest or self.digest(request)
        room = self._room(request)
        if room is None:
            return Asked(usual, request, self._journal.get(usual))
        asked = Asked(usual, request, None)
        cut: dict[str, Completion] = {}
        for other in sorted({room, *self._endpoint.rooms}):
            sized, digest = (request, usual) if other == room else self._sized(request, other)
            completion = self._journal.get(digest)
            if completion is None:
                continue
            asked = Asked(digest, sized, completion, dict(cut))
            if not self._lacks_room(sized, completion):
                return asked
            cut[digest] = completion
        while asked.completion is not None:
            more = self.with_more_room(asked)
            if more is None:
                break
            asked = more._replace(completion=self._journal.get(more.digest))
        return asked

    def with_more_room(self, asked: Asked) -> Asked | None:
        """The same request with more room, if its reply ended at its token limit; None if it did not.

        None, too, if it had twice the usual room already, or the endpoint refuses such a request.
        """
        usual = self._room(asked.request)
        if usual is None or asked.completion is None or not self._lacks_room(asked.request, asked.completion):
            return None
        had = asked.request.room or usual
        more = next((room for room in (usual, 2 * usual) if room > had), None)
        if more is None:
            return None
        sized, digest = self._sized(asked.request, more)
        if self._endpoint.has_failed(digest):
            return None
        return Asked(digest, sized, None, {**asked.cut, asked.digest: asked.completion})

    def _room(self, request: Request) -> int | None:
        """The most tokens of the reply where these may be raised; a label needs no more than it has."""
        return None if request.form == "label" or request.replies is not None else self._model.room

    def _sized(self, request: Request, room: int) -> tuple[Request, str]:
        """The same request with so much room, and its digest."""
        sized = msgspec.structs.replace(request, room=None if room == self._model.room else room)
        return sized, self.digest(sized)

    def _lacks_room(self, request: Request, completion: Completion) -> bool:
        return completion.is_cut and not is_filler(completion, request.form)


_SAMPLE = 1000
"""Calls of the journal from which estimates are learned."""


class CallSample:
    """Calls of a judge that a journal holds, from which others are estimated."""

    def __init__(self, model: Model, journal: Journal | JournalView) -> None:
        self._calls: list[Recorded] = journal.sample(model.name, _SAMPLE)

    def rates(self) -> TokenRates:
        """What the judge's tokens come to, as far as the journal tells."""
        sizes = []
        prompts = []
        replies = []
        for entry in self._calls:
            call = entry.completion
            if entry.form == "decision":
                # Its tokens are a share of those of a call, and how many questions this had nobody knows.
                continue
            if call.prompt_tokens and call.completion_tokens:
                sizes.append(prompt_bytes(entry.messages))
                prompts.append(call.prompt_tokens)
                replies.append(call.completion_tokens)
        return learned_rates(len(sizes), sum(sizes), sum(prompts), sum(replies))

    def reading(self) -> PromptReading:
        """What the judge's server is known to read of prompts."""
        return PromptReading((entry.messages, entry.completion) for entry in self._calls)
