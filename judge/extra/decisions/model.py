"""A judge that decides: all questions about a material go out in one call, and each has a completion of its own."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.ask.prompt_cut import PromptReading
from judge.errors import CallError, UsageError
from judge.extra.decisions.contracts import Contract, counts_of
from judge.extra.decisions.questions import VERSION, completion_of, questions_of, shares
from judge.judges.backends.server import ServerModel
from judge.judges.chat import Connection, Reply, encoded, error_of_reply, read_json, without_secrets
from judge.judges.credentials import known_secrets
from judge.judges.model import ModelOptions, SentRequests, set_by_user
from judge.judges.records import Completion, Message, Request
from judge.records import Criterion


class DecisionModel(ServerModel):
    """A judge of one of the contracts; a request is a question about what its user's message shows."""

    contract: Contract
    """How it is asked."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, options)
        self.forms = ("decision",)
        # None of the parameters is sent that an endpoint may refuse.
        self.omitted = ()
        self.required = ()
        self.room = None
        self._reading = PromptReading()

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse what no decision takes, and what any judge at an address refuses."""
        if names := set_by_user(self._options):
            told = " and ".join(f"--{name}" for name in names)
            raise UsageError(f"{self.name} writes nothing, so it takes no {told}")
        super().check(criteria)

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """The model, and how a question of the request is written, without its words."""
        (question, *_) = questions_of(request)
        written = self.contract.written(question._replace(instructions=""))
        return {"version": VERSION, "model": self._model, "question": written}

    def sent(self, request: Request) -> SentRequests:
        """One call with all questions of the request."""
        size = len(material_of(request).encode("utf-8", "replace"))
        return SentRequests(1, size + sum(question.size for question in questions_of(request)), 0)

    def questions_in(self, request: Request) -> int:
        """One, or one for each of its sentences."""
        return max(1, request.sentences)

    async def complete(self, request: Request) -> Completion:
        """Ask once."""
        (reply,) = await self.complete_together([request])
        if isinstance(reply, CallError):
            raise reply
        return reply

    async def complete_together(self, requests: Sequence[Request]) -> list[Completion | CallError]:
        """Ask all in one call."""
        if self._connection is None:
            self.check([])
            self._connection = Connection(
                self._address(), self._options, self.contract.path, variable=self.variable, headers=self._headers()
            )
        asked = [questions_of(request) for request in requests]
        questions = list(itertools.chain.from_iterable(asked))
        body = self.contract.body(self._model, material_of(requests[0]), questions)
        try:
            reply = await self._connection.fetch(encoded(body))
        finally:
            self.limits = self._connection.limits
        said = read_json(reply.body)
        answers = self.contract.answers(said, questions)
        if answers is None:
            raise error_of_reply(reply.body, reply.headers, "answers", structured=False)
        address = self._address()
        secrets = known_secrets(address.whole)
        counts = counts_of(said)
        cut = self._cut(requests[0], counts.prompt, reply)
        numbers = [len(each) for each in asked]
        prompts, replies, cached = (shares(count, numbers) for count in counts)
        remaining = iter(answers)
        completions: list[Completion | CallError] = []
        for index, request in enumerate(requests):
            own = list(itertools.islice(remaining, numbers[index]))
            completion = msgspec.structs.replace(
                completion_of(request, own, cut),
                model=said.get("model"),
                prompt_tokens=prompts[index],
                completion_tokens=replies[index],
                cached_tokens=cached[index],
                # So that the durations of all completions add up to that of the call.
                latency=reply.latency / len(requests),
                endpoint=address.url,
            )
            completions.append(without_secrets(completion, secrets))
        return completions

    def _cut(self, request: Request, tokens: int | None, reply: Reply) -> str | None:
        """Why the material of a call was not read to its end; None if nothing in the reply speaks for it."""
        whole = Completion(
            text="", finish_reason=None, model=None, prompt_tokens=tokens, raw=reply.body.decode("utf-8", "replace")
        )
        return self._reading.cut((Message("user", material_of(request)),), whole)


def material_of(request: Request) -> str:
    """What a request shows."""
    return "\n\n".join(message.content for message in request.messages if message.role == "user")
