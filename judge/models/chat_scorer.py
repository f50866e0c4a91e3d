"""A chat model as a scorer: it is shown a document and a claim, and answers Yes or No.

The user's message has the form that MiniCheck's models are trained on (Tang et al. 2024, EMNLP; `minicheck/utils.py` of
github.com/Liyan06/MiniCheck): a line `Document: …` and a line `Claim: …`.
"""

import asyncio
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, LogprobsError, RejectedError, UsageError
from judge.files.stored import read_stored
from judge.models.address import Address, read_address, read_key
from judge.models.call_parts import PartsOfCall
from judge.models.chat import read_completion, refuse_threads
from judge.models.connection import KEY, Connection, Reply
from judge.models.http_errors import shorten
from judge.models.label_probabilities import TOP_LOGPROBS, label_tokens, opening_probabilities
from judge.models.model import ModelOptions, Price, SentRequests, Unfinished
from judge.models.scorers import CallScores, NoScore, PairScore, ScorerSettings

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
_Pair = tuple[str, str]
_LABELS = ("Yes", "No")
_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


class ChatScorer:
    """Asks a chat model behind an OpenAI-compatible server about one pair at a time.

    The score is the probability of Yes against No in the opening of the reply, by its log probabilities. Where the
    server gives none, or too little of them is visible, Yes is 1 and No is 0, and the score says so (`decided`).

    Args:
        model: What the server calls the model.
        options: How it is asked.
        settings: `instruction`: a file with the system message, or `none` for no system message.
    """

    concurrency: int | None = None
    price: Price | None = None

    def __init__(self, model: str, options: ModelOptions, settings: ScorerSettings) -> None:
        self._model = model
        self._options = options
        self._settings = settings
        self._instruction: str | None = None
        self._top: int | None = TOP_LOGPROBS
        self.unfinished = Unfinished()
        self._items: dict[tuple[str, tuple[_Pair, ...]], dict[_Pair, tuple[PairScore, Unfinished]]] = {}
        """Calls with their pairs that are under way or have failed, to the scores of the pairs and what each took."""
        self._connection: Connection | None = None

    def check(self) -> None:
        """Refuse a missing or malformed address, a malformed key, and a file of instructions that holds none.

        Raises:
            UsageError: There is one of these problems.
            InputError: The file cannot be read.
        """
        refuse_threads(self._options.threads, f"checker/chat/{self._model}")
        self._address()
        read_key(KEY)
        self._read_instruction()

    def parameters(self) -> dict[str, Any]:
        """Everything that is sent beside the pair, and the address without credentials."""
        return {
            "chat": VERSION,
            "base_url": self._address().url,
            "instruction": self._read_instruction(),
            **self._sent(),
        }

    def sent(self, pairs: Sequence[_Pair]) -> SentRequests:
        """A request for each pair, with the instruction."""
        asked = dict.fromkeys(pairs)
        size = sum(_size(self._messages(*pair)) for pair in asked)
        return SentRequests(len(asked), size, len(asked) * label_tokens(_LABELS))

    async def score(self, pairs: Sequence[_Pair]) -> list[PairScore]:
        """The scores, one request after the other, of a call that only its pairs name.

        Raises:
            CallError: As for `score_call`, or a reply is no answer.
            OperationalError: As for `score_call`.
        """
        scores, unread = await self.score_call("", pairs, None)
        if unread is not None:
            raise RejectedError(f"the reply begins {shorten(unread.text[:100])!r}, expected Yes or No")
        return scores

    async def score_call(self, call: str, pairs: Sequence[_Pair], parts: PartsOfCall | None) -> CallScores:
        """The scores, one request after the other, up to the first reply that is no answer.

        Pairs that were scored before a failure are not asked again when the same call is made again.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something, or the journal cannot be read or
                written.
        """
        key = call, tuple(pairs)
        asked = dict.fromkeys(pairs)
        if key not in self._items:
            kept = None if parts is None else await asyncio.to_thread(parts.read)
            # Pairs are asked in their order, so the first ones are those that were answered.
            answered = [] if kept is None else msgspec.json.decode(kept, type=list[tuple[PairScore, Unfinished]])
            self._items.setdefault(key, dict(zip(asked, answered, strict=False)))
        scored = self._items[key]
        unread: NoScore | None = None
        for pair in asked:
            if pair not in scored:
                said, took = await self._ask(*pair)
                if isinstance(said, NoScore):
                    unread = said
                    self.unfinished = self.unfinished.less(took)
                    break
                scored[pair] = said, took
                if parts is not None:
                    written = msgspec.json.encode(list(scored.values())).decode()
                    await asyncio.to_thread(parts.write, written)
        # From here on the completion counts them.
        for _, took in self._items.pop(key, {}).values():
            self.unfinished = self.unfinished.less(took)
        return CallScores([scored[pair][0] for pair in itertools.takewhile(scored.__contains__, pairs)], unread)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None
        self._items.clear()
        self.unfinished = Unfinished()

    def _messages(self, passage: str, sentence: str) -> list[dict[str, str]]:
        instruction = self._read_instruction()
        return [
            *([{"role": "system", "content": instruction}] if instruction else []),
            {"role": "user", "content": f"Document: {passage}\nClaim: {sentence}"},
        ]

    async def _ask(self, passage: str, sentence: str) -> tuple[PairScore | NoScore, Unfinished]:
        messages = self._messages(passage, sentence)
        reply, top = await self._reply(messages)
        completion = read_completion(reply.body, reply.headers, structured=False, latency=reply.latency)
        counts = completion.prompt_tokens, completion.completion_tokens
        tokens = None if counts[0] is None or counts[1] is None else (counts[0], counts[1])
        # Counts that cannot be true would make a budget endless.
        counted = tokens is not None and tokens[0] > 0 and tokens[1] >= 0
        took = Unfinished(*tokens) if tokens and counted else Unfinished(0, 0, _size(messages), label_tokens(_LABELS))
        # An answer that nobody can use is paid for too.
        self.unfinished = self.unfinished.plus(took)
        answer = _ANSWER.match(completion.text)
        if answer is None or completion.finish_reason in ("refusal", "content_filter"):
            return NoScore(completion.text, completion.finish_reason, tokens), took
        found = None if top is None else opening_probabilities(reply.body, _LABELS)
        said = 1.0 if answer[1].lower() == "yes" else 0.0
        return PairScore(said if found is None else found["Yes"], decided=found is None, tokens=tokens), took

    async def _reply(self, messages: list[dict[str, str]]) -> tuple[Reply, int | None]:
        """What the server sends, and of how many tokens it was asked to tell the probability; None if of none."""
        while (top := self._top) is not None:
            try:
                return await self._post(messages, top), top
            except LogprobsError:
                # Another call may have been refused meanwhile, and asks for fewer already.
                if self._top == top:
                    self._top = _FEWER if top > _FEWER else None
        return await self._post(messages, None), None

    async def _post(self, messages: list[dict[str, str]], top: int | None) -> Reply:
        sent = {**self._sent(), "messages": messages, "top_logprobs": top}
        if top is None:
            del sent["logprobs"], sent["top_logprobs"]
        try:
            body = msgspec.json.encode(sent)
        except UnicodeEncodeError as error:
            raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error
        connection = self._connection = self._connection or Connection(self._address(), self._options)
        return await connection.fetch(body, probable=top is not None)

    def _sent(self) -> dict[str, Any]:
        return {
            "model": self._model,
            "temperature": self._options.temperature,
            "max_tokens": label_tokens(_LABELS),
            **({} if self._options.seed is None else {"seed": self._options.seed}),
            "logprobs": True,
            "top_logprobs": TOP_LOGPROBS,
        }

    def _read_instruction(self) -> str:
        """The system message; empty if there is none."""
        if self._instruction is None:
            named = self._settings.instruction
            self._instruction = read_instruction(named) if named else INSTRUCTION
        return self._instruction

    def _address(self) -> Address:
        if self._options.base_url is None or self._options.replicas:
            raise UsageError(
                f"checker/chat/{self._model} needs one --base-url, the address of an OpenAI-compatible server"
            )
        return read_address(self._options.base_url)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"].encode("utf-8", "replace")) for message in messages)


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
