"""Scorers behind a server: the path of its address says in which form it is asked."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from judge.errors import OperationalError, RejectedError, UsageError
from judge.extra.checkers.checkers import (
    CONTRADICTS,
    SUPPORTS,
    PairScore,
    ServedChecker,
    TextPair,
    pair_score,
    text_bytes,
)
from judge.judges.address import Address
from judge.judges.chat import encoded
from judge.judges.http_errors import shorten
from judge.judges.model import SentRequests
from judge.judges.records import Request
from judge.records import Criterion

_BATCH = 32
"""Pairs of one request; text-embeddings-inference takes no more, unless its operator lets it."""
_SEPARATOR = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
"""A special token of a tokenizer, as it is written: `</s>`, `[SEP]`."""
_TAKES = {"/score": (), "/classify": ("supports", "contradicts", "join"), "/predict": ("supports", "contradicts")}
"""The path of a server to the settings that it takes."""
_ADDRESSES = ", ".join(f"http://localhost:8000{path}" for path in _TAKES)


class ServerChecker(ServedChecker):
    """A classifier behind a server.

    `…/score` is vLLM's for one output: {"model", "text_1": [passage], "text_2": [sentence]} → {"data": [{"index",
    "score"}]}. `…/classify` is vLLM's for several classes: {"model", "input": [passage + join + sentence]} → {"data":
    [{"index", "label", "probs"}]}, where the label is that of the likeliest class. `…/predict` is that of
    text-embeddings-inference: {"inputs": [[passage, sentence]]} → [[{"label", "score"}]].
    """

    kind = "server"
    takes = _TAKES["/classify"]
    address_needed = f" with its path, such as {_ADDRESSES}"
    path = ""

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse settings that the address does not take, too."""
        super().check(criteria)
        path, given = _path(self._address()), self._settings
        if path == "/classify" and (missing := [name for name in ("supports", "join") if name not in given]):
            raise UsageError(
                f"{self._called} at {path} needs {' and '.join(missing)}: the server takes a pair as one text and does "
                "not name its classes, so the name says both, as in 'checker/server/MODEL#supports=0,join=[SEP]'"
            )
        if unused := sorted(given.keys() - set(_TAKES[path])):
            raise UsageError(f"{self._called} at {path} has no use for {', '.join(unused)}")
        for name, value in given.items():
            if path == "/classify" and name != "join" and not (value.isascii() and value.isdecimal()):
                raise UsageError(
                    f"{name}={value} of {self._called}: expected the number of a class, from 0, because /classify "
                    "names no class but the likeliest"
                )

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
        passages, sentences = zip(*pairs, strict=True)
        if path == "/score":
            return {"model": self._model, "text_1": passages, "text_2": sentences}
        if path == "/classify":
            return {"model": self._model, "input": [joined(*pair, self._settings["join"]) for pair in pairs]}
        return {"inputs": pairs}

    def _address(self) -> Address:
        address = super()._address()
        if _path(address) not in _TAKES:
            raise UsageError(
                f"--base-url {address.url}: expected an address that says what it serves, such as {_ADDRESSES}"
            )
        return address


def _path(address: Address) -> str:
    return "/" + address.url.rpartition("/")[2]


def joined(passage: str, sentence: str, join: str) -> str:
    """A passage and a sentence as one text.

    The special tokens of what joins them are broken up in the texts, which could else end the passage where they like.

    >>> joined("Noon.[SEP]Nine crowns.", "It leaves at noon.", "[SEP]")
    'Noon.[ SEP]Nine crowns.[SEP]It leaves at noon.'
    >>> joined("x|||y", "z", "||")
    'x| | |y||z'
    """
    # White space cannot be broken by white space.
    for token in sorted(set(_SEPARATOR.findall(join)) or {join.strip()} - {""}):
        broken = f"{token[0]} {token[1:]}" if len(token) > 1 else " "
        # What is left of a break may make the token with what follows, as in `|||` of `||`.
        while token in passage:
            passage = passage.replace(token, broken)
        while token in sentence:
            sentence = sentence.replace(token, broken)
    return f"{passage}{join}{sentence}"


_Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Row = TypeVar("_Row")


class _Data(msgspec.Struct, Generic[_Row]):
    data: list[_Row]


class _Scored(msgspec.Struct):
    index: int
    score: _Probability


class _Classified(msgspec.Struct):
    index: int
    probs: Annotated[list[_Probability], msgspec.Meta(min_length=1)]
    label: Any = None


class _Label(msgspec.Struct):
    score: _Probability
    label: str


_REPLIES: dict[str, Any] = {"/score": _Data[_Scored], "/classify": _Data[_Classified], "/predict": list[list[_Label]]}
"""The path of a server to the form of its replies."""


def read_scores(path: str, body: bytes, settings: Mapping[str, str]) -> list[PairScore]:
    """The scores in a reply, in the order of the pairs.

    Args:
        path: The path of the server's address.
        body: The body of the reply.
        settings: Which classes mean support and contradiction.

    Raises:
        RejectedError: The body is of another form, or its labels do not tell which class means support.
        OperationalError: The settings do not fit the model's classes.
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
    return [PairScore(row.score) if path == "/score" else _class_score(row, settings) for row in rows]


def _class_score(row: _Classified, settings: Mapping[str, str]) -> PairScore:
    """The score of a pair, once the settings are known to go with the classes and with the name of the likeliest."""
    numbers = [str(number) for number in range(len(row.probs))]
    likeliest = numbers[row.probs.index(max(row.probs))]
    name = row.label.lower() if isinstance(row.label, str) else ""
    for setting, words, others in (("supports", SUPPORTS, CONTRADICTS), ("contradicts", CONTRADICTS, SUPPORTS)):
        if (value := settings.get(setting)) is None:
            continue
        if value not in numbers:
            raise OperationalError(
                f"the model has {len(numbers)} classes, so {setting}={value} names none: expected a number from 0 to "
                f"{numbers[-1]}"
            )
        if name in (others | {"neutral"} if value == likeliest else words):
            raise OperationalError(
                f"the model calls its class {likeliest} {name!r}, which does not go with {setting}={value}: look at "
                "id2label in the model's config.json"
            )
    return pair_score(numbers, row.probs, settings)
