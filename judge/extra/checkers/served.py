"""Checkers behind a server: a classifier, asked as the path of its address says, and a chat model that says Yes or No.

The user's message to a chat model has the form that MiniCheck's models are trained on (Tang et al. 2024, EMNLP;
`minicheck/utils.py` of github.com/Liyan06/MiniCheck): a line `Document: …` and a line `Claim: …`.
"""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from judge.errors import InputError, LogprobsError, RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore, ServedChecker, TextPair, pair_score, text_bytes
from judge.io.files import read_stored
from judge.judges.chat import encoded
from judge.judges.credentials import Address
from judge.judges.forms import TOP_LOGPROBS, label_tokens, opening_probabilities
from judge.judges.http_errors import shorten
from judge.judges.model import (
    ModelOptions,
    SentRequests,
    omitted_by_user,
    refuse_threads,
    sent_parameters,
    set_by_user,
)
from judge.judges.records import NO_SCORE, STOPPED, Completion, Message, Request
from judge.records import Criterion

_BATCH = 32
"""Pairs of one request; text-embeddings-inference takes no more, unless its operator lets it."""
_TAKES = {"/score": (), "/predict": ("supports", "contradicts")}
"""The path of a server to the settings that it takes."""
_ADDRESSES = ", ".join(f"http://localhost:8000{path}" for path in _TAKES)


class ServerChecker(ServedChecker):
    """A classifier behind a server.

    `…/score` is vLLM's for one output: {"model", "text_1": [passage], "text_2": [sentence]} → {"data": [{"index",
    "score"}]}. `…/predict` is that of text-embeddings-inference: {"inputs": [[passage, sentence]]} → [[{"label",
    "score"}]].
    """

    kind = "server"
    takes: tuple[str, ...] = _TAKES["/predict"]
    address_needed = f" with its path, such as {_ADDRESSES}"
    path = ""
    served: Mapping[str, tuple[str, ...]] = _TAKES
    """The path of a server to the settings that it takes."""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse settings that the address does not take, too."""
        super().check(criteria)
        path = _path(self._address())
        if unused := sorted(self._settings.keys() - set(self.served[path])):
            raise UsageError(f"{self._called} at {path} has no use for {', '.join(unused)}")

    def rule(self) -> dict[str, Any]:
        """The model, and the settings that there are."""
        return {"model": self._model, **self._settings}

    def sent(self, request: Request) -> SentRequests:
        """So many pairs make a request; its reply has numbers and no tokens."""
        pairs = self.pairs(request)
        return SentRequests(math.ceil(len(pairs) / _BATCH), sum(map(text_bytes, pairs)), 0)

    async def score(self, pairs: Sequence[TextPair]) -> list[PairScore]:
        """The scores, in as many requests as it takes."""
        path = _path(self._address())
        scores: list[PairScore] = []
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            reply = await self._connected().fetch(encoded(self._written(path, batch)))
            found = read_scores(path, reply.body, self._settings)
            if len(found) != len(batch):
                raise RejectedError(f"{len(found)} scores came back for {len(batch)} pairs")
            scores += found
        return scores

    def _written(self, path: str, pairs: Sequence[TextPair]) -> dict[str, Any]:
        if path == "/predict":
            return {"inputs": pairs}
        passages, sentences = zip(*pairs, strict=True)
        return {"model": self._model, "text_1": passages, "text_2": sentences}

    def _address(self) -> Address:
        address = super()._address()
        if _path(address) not in self.served:
            examples = ", ".join(f"http://localhost:8000{path}" for path in self.served)
            raise UsageError(
                f"--base-url {address.url}: expected an address that says what it serves, such as {examples}"
            )
        return address


def _path(address: Address) -> str:
    return "/" + address.url.rpartition("/")[2]


_Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Scored(msgspec.Struct):
    index: int
    score: _Probability


class _Data(msgspec.Struct):
    data: list[_Scored]


class _Label(msgspec.Struct):
    score: _Probability
    label: str


_REPLIES: dict[str, Any] = {"/score": _Data, "/predict": list[list[_Label]]}
"""The path of a server to the form of its replies."""


def read_scores(path: str, body: bytes, settings: Mapping[str, str]) -> list[PairScore]:
    """The scores in a reply, in the order of the pairs.

    A RejectedError if the body is of another form, or its labels do not tell which class means support.
    """
    try:
        reply = msgspec.json.decode(body, type=_REPLIES[path])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        begins = shorten(body[:100].decode("utf-8", "replace"))
        raise RejectedError(f"the reply cannot be read: {error}; it begins {begins!r}") from error
    if path == "/predict":
        return [pair_score([one.label for one in row], [one.score for one in row], settings) for row in reply]
    rows = sorted(reply.data, key=lambda row: row.index)
    if [row.index for row in rows] != list(range(len(rows))):
        raise RejectedError(f"the scores are not numbered from 0 to {len(rows) - 1}, each once")
    return [PairScore(row.score) for row in rows]


INSTRUCTION = (
    "You are given a document and a claim. Does the document say everything that the claim says? Answer Yes if it "
    "does, and No if any part of the claim is missing from the document or goes against it."
)
"""The system message, where the user names no other."""
NO_INSTRUCTION = "none"
"""The setting that sends no system message."""
_CHAT_VERSION = 2
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
        self.omitted = omitted_by_user(options)
        self.required = set_by_user(options)
        self._top: int | None = TOP_LOGPROBS
        """Of how many tokens the server is asked to tell the probability; None if of none."""

    @functools.cached_property
    def _instruction(self) -> str:
        """The system message; empty if there is none."""
        named = self._settings.get("instruction")
        return read_instruction(named) if named else INSTRUCTION

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse threads, thoughts and a file that holds no instruction, which is an InputError, too."""
        super().check(criteria)
        refuse_threads(self._options, self._called)
        if self._options.thinks:
            raise UsageError(
                f"{self._called} asks for one word, which leaves no room for thoughts: --reasoning-effort none"
            )
        _ = self._instruction

    def rule(self) -> dict[str, Any]:
        """Everything that is sent beside the pair."""
        return {"chat": _CHAT_VERSION, "instruction": self._instruction, **self._sent(TOP_LOGPROBS)}

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Of a pair, what is sent beside its messages; of all pairs together, that and how their labels are made."""
        parameters = self.rule() if _is_pair(request) else super().parameters(request)
        return sent_parameters(parameters, request.omitted)

    def parts(self, request: Request) -> Sequence[Request]:
        """A request for each pair; one that occurs twice is asked once."""
        pair = msgspec.structs.replace(request, form="text", labels=_LABELS, response="", passages=())
        parts = []
        for document, claim in dict.fromkeys(self.pairs(request)):
            asked = f"Document: {document}\nClaim: {claim}"
            messages = [Message("user", asked)]
            if self._instruction and "system" in request.omitted:
                messages = [Message("user", f"{self._instruction}\n\n{asked}")]
            elif self._instruction:
                messages.insert(0, Message("system", self._instruction))
            parts.append(msgspec.structs.replace(pair, messages=tuple(messages)))
        return parts

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

    async def _ask(self, request: Request) -> Completion:
        """The reply to a pair; a server that refuses to tell so many probabilities is asked for fewer."""
        while True:
            top = self._top
            try:
                return await self._connected().post(sent_parameters(self._sent(top), request.omitted), request)
            except LogprobsError as error:
                if top is None:
                    # Nothing was asked of them: the server speaks of this request.
                    raise RejectedError(str(error)) from error
                # Another call may have been refused meanwhile, and asks for fewer already.
                if self._top == top:
                    self._top = _FEWER if top > _FEWER else None

    def _sent(self, top: int | None) -> dict[str, Any]:
        wished = {
            "model": self._model,
            "temperature": self._options.temperature,
            "max_tokens": label_tokens(_LABELS),
            "seed": self._options.seed,
            "reasoning_effort": self._options.reasoning_effort,
            **({} if top is None else {"logprobs": True, "top_logprobs": top}),
        }
        return sent_parameters(wished, ())


def _is_pair(request: Request) -> bool:
    """Whether a request is of one pair; those of whole responses want an object."""
    return request.form == "text"


def _score(reply: Completion) -> PairScore:
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
