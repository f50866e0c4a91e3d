"""A chat model as a scorer: it is shown a document and a claim, and answers Yes or No.

The user's message has the form that MiniCheck's models are trained on (Tang et al. 2024, EMNLP; `minicheck/utils.py` of
github.com/Liyan06/MiniCheck): a line `Document: …` and a line `Claim: …`.
"""

import asyncio
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import InputError, LogprobsError
from judge.files.stored import read_stored
from judge.models.address import read_key
from judge.models.chat import read_completion, refuse_threads
from judge.models.checkers import CheckerSettings, NoScore, PairScore, ServedChecker, TextPairs, text_bytes
from judge.models.connection import KEY, Reply
from judge.models.label_probabilities import TOP_LOGPROBS, label_tokens, opening_probabilities
from judge.models.model import ModelOptions, SentRequests, Unfinished
from judge.models.records import Request
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


class ChatChecker(ServedChecker):
    """Asks a chat model behind an OpenAI-compatible server about one pair at a time.

    The score is the probability of Yes against No in the opening of the reply, by its log probabilities. Where the
    server gives none, or too little of them is visible, Yes is 1 and No is 0, and the score says so (`decided`).
    The setting `instruction` is a file with the system message, or `none` for no system message.
    """

    kind = "checker/chat"
    address_needed = ", the address of an OpenAI-compatible server"
    path = "/chat/completions"

    def __init__(self, model: str, options: ModelOptions, settings: CheckerSettings) -> None:
        super().__init__(model, options, settings)
        self._unfinished = Unfinished()
        self._instruction: str | None = None
        self._top: int | None = TOP_LOGPROBS

    @property
    def unfinished(self) -> Unfinished:
        """What was paid for without a completion since the judge was opened or closed."""
        return self._unfinished

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing or malformed address, a malformed key, and a file of instructions that holds none.

        Raises:
            UsageError: There is one of these problems.
            InputError: The file cannot be read.
        """
        super().check(criteria)
        refuse_threads(self._options.threads, self._called)
        read_key(KEY)
        self._read_instruction()
        self._address()

    def rule(self) -> dict[str, Any]:
        """Everything that is sent beside the pair."""
        fixed = {"chat": VERSION, "instruction": self._read_instruction()}
        return fixed | self._sent(TOP_LOGPROBS)

    def sent(self, request: Request) -> SentRequests:
        """A request for each pair, with the instruction."""
        asked = dict.fromkeys(self.pairs(request))
        return SentRequests(len(asked), sum(map(self._size, asked)), len(asked) * label_tokens(_LABELS))

    async def score(self, pairs: TextPairs, call: str = "") -> list[PairScore | NoScore]:
        """The scores, one request after the other, up to the first reply that is no answer.

        TextPairs that were scored before a failure are not asked again when the same call is made again.
        """
        parts = self.parts
        kept = None if parts is None else await asyncio.to_thread(parts.read, call)
        answered = [] if kept is None else msgspec.json.decode(kept, type=list[tuple[PairScore, Unfinished]])
        # TextPairs are asked in their order, so the first ones are those that were answered.
        asked = list(dict.fromkeys(pairs))
        unread: list[NoScore] = []
        for pair in asked[len(answered) :]:
            said, took = await self._ask(pair)
            if isinstance(said, NoScore):
                unread, self._unfinished = [said], self._unfinished.less(took)
                break
            answered.append((said, took))
            if parts is not None:
                await asyncio.to_thread(parts.write, call, msgspec.json.encode(answered).decode())
        # From here on the completion counts them.
        for _, took in answered:
            self._unfinished = self._unfinished.less(took)
        scored = {pair: score for pair, (score, _) in zip(asked, answered, strict=False)}
        return [*(scored[pair] for pair in itertools.takewhile(scored.__contains__, pairs)), *unread]

    async def aclose(self) -> None:
        """Close the connections."""
        await super().aclose()
        self._unfinished = Unfinished()

    def _messages(self, passage: str, sentence: str) -> list[dict[str, str]]:
        instruction = self._read_instruction()
        return [
            *([{"role": "system", "content": instruction}] if instruction else []),
            {"role": "user", "content": f"Document: {passage}\nClaim: {sentence}"},
        ]

    def _size(self, pair: tuple[str, str]) -> int:
        return text_bytes([message["content"] for message in self._messages(*pair)])

    async def _ask(self, pair: tuple[str, str]) -> tuple[PairScore | NoScore, Unfinished]:
        reply, top = await self._reply(self._messages(*pair))
        completion = read_completion(reply.body, reply.headers, structured=False, latency=reply.latency)
        counts = completion.prompt_tokens, completion.completion_tokens
        tokens = None if counts[0] is None or counts[1] is None else (counts[0], counts[1])
        # Counts that cannot be true would make a budget endless.
        counted = tokens is not None and tokens[0] > 0 and tokens[1] >= 0
        took = Unfinished(*tokens) if tokens and counted else Unfinished(0, 0, self._size(pair), label_tokens(_LABELS))
        # An answer that nobody can use is paid for too.
        self._unfinished = self._unfinished.plus(took)
        answer = _ANSWER.match(completion.text)
        if answer is None or completion.finish_reason in ("refusal", "content_filter"):
            return NoScore(completion.text, completion.finish_reason, tokens), took
        found = None if top is None else opening_probabilities(reply.body, _LABELS)
        said = 1.0 if answer[1].lower() == "yes" else 0.0
        return PairScore(said if found is None else found["Yes"], decided=found is None, tokens=tokens), took

    async def _reply(self, messages: list[dict[str, str]]) -> tuple[Reply, int | None]:
        """What the server sends, and of how many tokens it was asked to tell the probability; None if of none."""
        while True:
            top = self._top
            try:
                return await self._fetch({**self._sent(top), "messages": messages}, probable=top is not None), top
            except LogprobsError:
                # Another call may have been refused meanwhile, and asks for fewer already.
                if top is None:
                    raise
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

    def _read_instruction(self) -> str:
        """The system message; empty if there is none."""
        if self._instruction is None:
            named = self._settings.instruction
            self._instruction = read_instruction(named) if named else INSTRUCTION
        return self._instruction


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
