"""A chat model as a scorer: it is shown a document and a claim, and answers Yes or No.

The user's message has the form that MiniCheck's models are trained on (Tang et al. 2024, EMNLP; `minicheck/utils.py` of
github.com/Liyan06/MiniCheck): a line `Document: …` and a line `Claim: …`.
"""

import asyncio
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, LogprobsError, RejectedError
from judge.files.stored import read_stored
from judge.models.chat import encoded, refuse_threads
from judge.models.checkers import PairScore, ServedChecker, TextPair, text_bytes
from judge.models.journal_rows import request_digest
from judge.models.label_probabilities import TOP_LOGPROBS, label_tokens, opening_probabilities
from judge.models.model import ModelOptions, SentRequests, Unfinished
from judge.models.records import NO_SCORE, Completion, Message, Request
from judge.records import Criterion

INSTRUCTION = (
    "You are given a document and a claim. Does the document say everything that the claim says? Answer Yes if it "
    "does, and No if any part of the claim is missing from the document or goes against it."
)
"""The system message, where the user names no other."""
NO_INSTRUCTION = "none"
"""The setting that sends no system message."""
VERSION = 1
"""Goes up whenever the same reply may get another score."""

_FEWER = 5
"""Likeliest tokens asked for where a server refuses more: what several servers allow at most."""
_LABELS = ("Yes", "No")
_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_STOPPED = ("refusal", "content_filter")
"""Finish reasons of replies that the provider stopped."""


class ChatChecker(ServedChecker):
    """Asks a chat model behind an OpenAI-compatible server about one pair at a time.

    The score is the probability of Yes against No in the opening of the reply, by its log probabilities. Where the
    server gives none, or too little of them is visible, Yes is 1 and No is 0, and the score says so (`decided`).
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
        refuse_threads(self._options.threads, self._called)
        _ = self._instruction

    def rule(self) -> dict[str, Any]:
        """Everything that is sent beside the pair."""
        return {"chat": VERSION, "instruction": self._instruction, **self._sent(TOP_LOGPROBS)}

    def sent(self, request: Request) -> SentRequests:
        """A request for each pair, with the instruction."""
        asked = dict.fromkeys(self.pairs(request))
        return SentRequests(len(asked), sum(map(self._size, asked)), len(asked) * label_tokens(_LABELS))

    async def answer(self, request: Request, pairs: Sequence[TextPair]) -> tuple[Completion, Sequence[PairScore]]:
        """The scores, one request after the other, up to the first reply that is no answer.

        Pairs that were scored before a failure are not asked again when the same call is made again.
        """
        parts, call = self._parts, request_digest(self.name, self.parameters(request), request)
        kept = None if parts is None else await asyncio.to_thread(parts.read, call)
        answered = [] if kept is None else msgspec.json.decode(kept, type=list[tuple[PairScore, Unfinished]])
        completion = Completion(text="", finish_reason="stop", model=self.name)
        # Pairs are asked in their order, so the first ones are those that were answered; one that occurs twice is asked
        # once.
        asked = list(dict.fromkeys(pairs))
        paid = [took for _, took in answered]
        for pair in asked[len(answered) :]:
            reply = await self._ask(pair, request)
            paid.append(self._took(pair, reply))
            self.unfinished = self.unfinished.plus(paid[-1])
            score = _score(reply)
            if score is None:
                reason = reply.finish_reason if reply.finish_reason in _STOPPED else NO_SCORE
                completion = msgspec.structs.replace(completion, text=reply.text, finish_reason=reason)
                break
            answered.append((score, paid[-1]))
            if parts is not None:
                await asyncio.to_thread(parts.write, call, msgspec.json.encode(answered).decode())
        # From here on the completion counts them.
        total = functools.reduce(Unfinished.plus, paid, Unfinished())
        self.unfinished = self.unfinished.less(total)
        if total.prompt_tokens and not total.uncounted_reply:
            prompt, told = total.prompt_tokens, total.reply_tokens
            completion = msgspec.structs.replace(completion, prompt_tokens=prompt, completion_tokens=told)
        scored = {pair: score for pair, (score, _) in zip(asked, answered, strict=False)}
        return completion, [scored[pair] for pair in itertools.takewhile(scored.__contains__, pairs)]

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        self.unfinished = Unfinished()

    def _messages(self, pair: TextPair) -> tuple[Message, ...]:
        system = (Message("system", self._instruction),) if self._instruction else ()
        return (*system, Message("user", f"Document: {pair[0]}\nClaim: {pair[1]}"))

    def _size(self, pair: TextPair) -> int:
        return text_bytes(message.content for message in self._messages(pair))

    def _took(self, pair: TextPair, reply: Completion) -> Unfinished:
        """What a reply took; counts that cannot be true would make a budget endless."""
        if (reply.prompt_tokens or 0) > 0 and reply.completion_tokens is not None:
            return Unfinished(reply.prompt_tokens or 0, reply.completion_tokens)
        return Unfinished(0, 0, self._size(pair), label_tokens(_LABELS))

    async def _ask(self, pair: TextPair, request: Request) -> Completion:
        """The reply to a pair; a server that refuses to tell so many probabilities is asked for fewer."""
        messages = self._messages(pair)
        asked = msgspec.structs.replace(request, form="text", messages=messages)
        while True:
            top = self._top
            try:
                return await self._connected().post(encoded({**self._sent(top), "messages": messages}), asked)
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


def _score(reply: Completion) -> PairScore | None:
    """The score in a reply; None if it answers neither Yes nor No."""
    answer = _ANSWER.match(reply.text)
    if answer is None or reply.finish_reason in _STOPPED:
        return None
    found = opening_probabilities((reply.raw or "").encode(), _LABELS)
    if found is None:
        return PairScore(1.0 if answer[1].lower() == "yes" else 0.0, decided=True)
    return PairScore(found["Yes"])


def read_instruction(named: str) -> str:
    """The system message that a setting names; empty if it asks for none.

    Args:
        named: The path of a file, or NO_INSTRUCTION.

    Raises:
        InputError: The file cannot be read, is not UTF-8, or is empty.
    """
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
