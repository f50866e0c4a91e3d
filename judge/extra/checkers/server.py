"""A classifier behind a server, asked in the form that the path of its address names."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from judge.errors import RejectedError, UsageError
from judge.extra.checkers.checkers import PairScore, ServedChecker, TextPair, pair_score, text_bytes
from judge.judges.address import Address
from judge.judges.chat import encoded
from judge.judges.http_errors import shorten
from judge.judges.model import SentRequests
from judge.judges.records import Request
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
    takes = _TAKES["/predict"]
    address_needed = f" with its path, such as {_ADDRESSES}"
    path = ""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse settings that the address does not take, too."""
        super().check(criteria)
        path = _path(self._address())
        if unused := sorted(self._settings.keys() - set(_TAKES[path])):
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
        """The body of a request."""
        if path == "/predict":
            return {"inputs": pairs}
        passages, sentences = zip(*pairs, strict=True)
        return {"model": self._model, "text_1": passages, "text_2": sentences}

    def _address(self) -> Address:
        address = super()._address()
        if _path(address) not in _TAKES:
            raise UsageError(
                f"--base-url {address.url}: expected an address that says what it serves, such as {_ADDRESSES}"
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

    Raises:
        RejectedError: The body is of another form, or its labels do not tell which class means support.
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
