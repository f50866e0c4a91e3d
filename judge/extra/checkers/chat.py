"""A chat model as a scorer: it is shown a document and a claim, and answers Yes or No.

The user's message has the form that MiniCheck's models are trained on (Tang et al. 2024, EMNLP; `minicheck/utils.py` of
github.com/Liyan06/MiniCheck): a line `Document: …` and a line `Claim: …`.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, LogprobsError, RejectedError
from judge.extra.checkers.checkers import PairScore, ServedChecker, TextPair, text_bytes
from judge.io.stored import read_stored
from judge.judges.chat import encoded
from judge.judges.label_probabilities import TOP_LOGPROBS, label_tokens, opening_probabilities
from judge.judges.model import ModelOptions, SentRequests, refuse_options
from judge.judges.records import NO_SCORE, STOPPED, Completion, Message, Request
from judge.records import Criterion

INSTRUCTION = (
    "You are given a document and a claim. Does the document say everything that the claim says? Answer Yes if it "
    "does, and No if any part of the claim is missing from the document or goes against it."
)
"""The system message, where the user names no other."""
NO_INSTRUCTION = "none"
"""The setting that sends no system message."""
VERSION = 2
"""Goes up whenever the same reply may get another score."""

_FEWER = 5
"""Likeliest tokens asked for where a server refuses more: what several servers allow at most."""
_LABELS = ("Yes", "No")
_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


class ChatChecker(ServedChecker):
    """Asks a chat model behind an OpenAI-compatible server about one pair at a time.

    The score is the probability of Yes against No in the opening of the reply, by its log probabilities. Where the
    server gives none, or too little of them is visible, Yes is 1 and No is 0, and the score says so (`decided`).
    Every pair is a request of its own, so the journal keeps each reply.
    The setting `instruction` is a file with the system message, or `none` for no system message.
    """

    kind = "chat"
    takes = ("instruction",)
    address_needed = ", the address of an OpenAI-compatible server"
    path = "/chat/completions"

    def __init__(self, model: str, options: ModelOptions, settings: Mapping[str, str]) -> None:
        super().__init__(model, msgspec.structs.replace(options, logprobs=True), settings)
        self._top: int | None = TOP_LOGPROBS
        """Of how many tokens the server is asked to tell the probability; None if of none."""

    @functools.cached_property
    def _instruction(self) -> str:
        """The system message; empty if there is none."""
        named = self._settings.get("instruction")
        return read_instruction(named) if named else INSTRUCTION

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a number of threads and a file that holds no instruction, which is an InputError, too."""
        super().check(criteria)
        refuse_options(self._options, self._called, "threads")
        _ = self._instruction

    def rule(self) -> dict[str, Any]:
        """Everything that is sent beside the pair."""
        return {"chat": VERSION, "instruction": self._instruction, **self._sent(TOP_LOGPROBS)}

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Of a pair, what is sent beside its messages."""
        return self.rule() if _is_pair(request) else super().parameters(request)

    def parts(self, request: Request) -> Sequence[Request]:
        """A request for each pair; one that occurs twice is asked once."""
        pair = msgspec.structs.replace(request, form="text", labels=_LABELS, response="", passages=(), nuggets=())
        return [
            msgspec.structs.replace(pair, messages=self._messages(*each)) for each in dict.fromkeys(self.pairs(request))
        ]

    def sent(self, request: Request) -> SentRequests:
        """A request for each pair, with the instruction."""
        asked = [request] if _is_pair(request) else self.parts(request)
        size = text_bytes(message.content for pair in asked for message in pair.messages)
        return SentRequests(len(asked), size, len(asked) * label_tokens(_LABELS))

    async def complete(self, request: Request) -> Completion:
        """The reply to a pair, with the probabilities of its answer; or the labels of all sentences, of the replies."""
        if not _is_pair(request):
            return await super().complete(request)
        reply = await self._ask(request)
        if reply.finish_reason in STOPPED:
            return msgspec.structs.replace(reply, raw=None)
        if _ANSWER.match(reply.text) is None:
            return msgspec.structs.replace(reply, finish_reason=NO_SCORE, raw=None)
        found = opening_probabilities((reply.raw or "").encode(), _LABELS)
        return msgspec.structs.replace(reply, probabilities=found, raw=None)

    async def answer(self, request: Request, pairs: Sequence[TextPair]) -> tuple[Completion, Sequence[PairScore]]:
        """The scores, if each pair has a reply; the replies count their tokens themselves."""
        replies = request.replies or ()
        whole = Completion(
            text="", finish_reason="stop", model=self.name, prompt_tokens=0, completion_tokens=0, cost=0.0, attempts=0
        )
        if replies and replies[-1].finish_reason in STOPPED:
            last = replies[-1]
            return msgspec.structs.replace(whole, text=last.text, finish_reason=last.finish_reason), ()
        scores = dict(zip(dict.fromkeys(pairs), map(_score, replies), strict=True))
        return whole, [scores[pair] for pair in pairs]

    def _messages(self, document: str, claim: str) -> tuple[Message, ...]:
        system = (Message("system", self._instruction),) if self._instruction else ()
        return (*system, Message("user", f"Document: {document}\nClaim: {claim}"))

    async def _ask(self, request: Request) -> Completion:
        """The reply to a pair; a server that refuses to tell so many probabilities is asked for fewer."""
        while True:
            top = self._top
            try:
                body = encoded(self._sent(top), request)
                return await self._connected().post(body, request)
            except LogprobsError as error:
                if top is None:
                    # Nothing was asked of them: the server speaks of this request.
                    raise RejectedError(str(error)) from error
                # Another call may have been refused meanwhile, and asks for fewer already.
                if self._top == top:
                    self._top = _FEWER if top > _FEWER else None

    def _sent(self, top: int | None) -> dict[str, Any]:
        return {
            "model": self._model,
            "temperature": self._options.temperature,
            "max_tokens": label_tokens(_LABELS),
            **({} if self._options.seed is None else {"seed": self._options.seed}),
            **({} if top is None else {"logprobs": True, "top_logprobs": top}),
        }


def _is_pair(request: Request) -> bool:
    """Whether a request is of one pair; those of whole responses want an object."""
    return request.form == "text"


def _score(reply: Completion) -> PairScore:
    """The score in a reply that answers Yes or No."""
    if reply.probabilities is not None:
        return PairScore(reply.probabilities["Yes"])
    answer = _ANSWER.match(reply.text)
    return PairScore(1.0 if answer and answer[1].lower() == "yes" else 0.0, decided=True)


def read_instruction(named: str) -> str:
    """The system message in the file that a setting names; empty if it is NO_INSTRUCTION."""
    if named == NO_INSTRUCTION:
        return ""
    path = Path(named)
    try:
        text = read_stored(path).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8: {error.reason}") from error
    if not text:
        raise InputError(f"{path}: is empty, expected the instruction of a checker (instruction=none sends none)")
    return text
