"""Scorers behind a server: the path of its address says in which form it is asked."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from judge.errors import OperationalError, RejectedError, UsageError
from judge.models.address import Address, read_key
from judge.models.checkers import (
    CONTRADICTS,
    SUPPORTS,
    CheckerSettings,
    PairScore,
    ServedChecker,
    TextPairs,
    pair_score,
    text_bytes,
)
from judge.models.connection import KEY
from judge.models.http_errors import shorten
from judge.models.model import SentRequests
from judge.models.records import Request
from judge.records import Criterion

_BATCH = 32
"""TextPairs of one request; text-embeddings-inference takes no more, unless its operator lets it."""
_SEPARATOR = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
"""A special token of a tokenizer, as it is written: `</s>`, `[SEP]`."""

_ADDRESSES = "http://localhost:8000/score, http://localhost:8000/classify, http://localhost:8000/predict"
_Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ScoreApi(NamedTuple):
    """A form in which servers are asked."""

    write: Callable[[str, TextPairs, CheckerSettings], dict[str, Any]]
    """The body of a request, from the model and the pairs."""
    read: Callable[[bytes, CheckerSettings], Iterable[PairScore]]
    """The scores in the body of a reply; raises RejectedError, or OperationalError where the settings do not fit."""
    needs: Mapping[str, str] = MappingProxyType({})
    """Settings without which nobody can tell what the reply means, each with an example."""
    takes: frozenset[str] = frozenset()
    """Settings that change something."""


class ServerChecker(ServedChecker):
    """A classifier behind a server.

    `…/score` is vLLM's for one output: {"model", "text_1": [passage], "text_2": [sentence]} → {"data": [{"index",
    "score"}]}. `…/classify` is vLLM's for several classes: {"model", "input": [passage + join + sentence]} → {"data":
    [{"index", "label", "probs"}]}, where the label is that of the likeliest class. `…/predict` is that of
    text-embeddings-inference: {"inputs": [[passage, sentence]]} → [[{"label", "score"}]].
    """

    kind = "checker/server"

    address_needed = f" with its path, such as {_ADDRESSES}"

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing or malformed address, a malformed key, and settings that the address does not take.

        Raises:
            UsageError: There is one of these problems.
        """
        super().check(criteria)
        path, form = self._form()
        given = self._settings.named()
        if missing := [name for name in form.needs if name not in given]:
            example = ",".join(f"{name}={value}" for name, value in form.needs.items())
            raise UsageError(
                f"{self._called} at {path} needs {' and '.join(missing)}: the server takes a pair as one "
                f"text and does not name its classes, so the name says both, as in 'checker/server/MODEL#{example}'"
            )
        if unused := sorted(given.keys() - form.takes):
            raise UsageError(f"{self._called} at {path} has no use for {', '.join(unused)}")
        for name, value in given.items():
            if path == "/classify" and name != "join" and not (value.isascii() and value.isdecimal()):
                raise UsageError(
                    f"{name}={value} of {self._called}: expected the number of a class, from 0, because /classify "
                    "names no class but the likeliest"
                )
        read_key(KEY)

    def rule(self) -> dict[str, Any]:
        """The model, and the settings that there are."""
        return {"model": self._model, **self._settings.named()}

    def sent(self, request: Request) -> SentRequests:
        """So many pairs make a request; its reply has numbers and no tokens."""
        pairs = self.pairs(request)
        return SentRequests(math.ceil(len(pairs) / _BATCH), sum(map(text_bytes, pairs)), 0)

    async def score(self, pairs: TextPairs, call: str = "") -> list[PairScore]:
        """The scores, in as many requests as it takes."""
        _, form = self._form()
        scores: list[PairScore] = []
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            reply = await self._fetch(form.write(self._model, batch, self._settings))
            found = list(form.read(reply.body, self._settings))
            if len(found) != len(batch):
                raise RejectedError(f"{len(found)} scores came back for {len(batch)} pairs")
            scores += found
        return scores

    def _form(self) -> tuple[str, ScoreApi]:
        path = _path(self._address())
        return path, APIS[path]

    def _address(self) -> Address:
        address = super()._address()
        if _path(address) not in APIS:
            raise UsageError(
                f"--base-url {address.url}: expected an address that says what it serves, such as {_ADDRESSES}"
            )
        return address


def _path(address: Address) -> str:
    return "/" + address.url.rpartition("/")[2]


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


_Row = TypeVar("_Row", _Scored, _Classified)
_T = TypeVar("_T")


class _Data(msgspec.Struct, Generic[_Row]):
    data: list[_Row]


def _decoded(body: bytes, kind: type[_T]) -> _T:
    """The body of a reply, which must be of its form."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        begins = shorten(body[:100].decode("utf-8", "replace"))
        raise RejectedError(f"the reply cannot be read: {error}; it begins {begins!r}") from error


def _rows(body: bytes, kind: type[_Data[_Row]]) -> list[_Row]:
    """The rows of a reply of vLLM, in the order of the pairs."""
    rows = sorted(_decoded(body, kind).data, key=lambda row: row.index)
    if [row.index for row in rows] != list(range(len(rows))):
        raise RejectedError(f"the scores are not numbered from 0 to {len(rows) - 1}, each once")
    return rows


def _read_score(body: bytes, settings: CheckerSettings) -> Iterable[PairScore]:
    return (PairScore(row.score) for row in _rows(body, _Data[_Scored]))


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
        passage, sentence = _broken(passage, token, broken), _broken(sentence, token, broken)
    return f"{passage}{join}{sentence}"


def _broken(text: str, token: str, broken: str) -> str:
    # What is left of a break may make the token with what follows, as in `|||` of `||`.
    while token in text:
        text = text.replace(token, broken)
    return text


def _read_classify(body: bytes, settings: CheckerSettings) -> Iterable[PairScore]:
    for row in _rows(body, _Data[_Classified]):
        numbers = [str(number) for number in range(len(row.probs))]
        for name in ("supports", "contradicts"):
            if (value := getattr(settings, name)) and value not in numbers:
                raise OperationalError(
                    f"the model has {len(numbers)} classes, so {name}={value} names none: expected a number from 0 to "
                    f"{numbers[-1]}"
                )
        _check_name(row.label, numbers[row.probs.index(max(row.probs))], settings)
        yield pair_score(numbers, row.probs, settings)


def _check_name(label: Any, number: str, settings: CheckerSettings) -> None:
    """Refuse settings that the name of the likeliest class contradicts."""
    name = label.lower() if isinstance(label, str) else ""
    for setting, words, others in (
        ("supports", SUPPORTS, CONTRADICTS | {"neutral"}),
        ("contradicts", CONTRADICTS, SUPPORTS | {"neutral"}),
    ):
        value = getattr(settings, setting)
        if value and (name in others if value == number else name in words):
            raise OperationalError(
                f"the model calls its class {number} {name!r}, which does not go with {setting}={value}: look at "
                "id2label in the model's config.json"
            )


def _read_predict(body: bytes, settings: CheckerSettings) -> Iterable[PairScore]:
    for row in _decoded(body, list[list[_Label]]):
        yield pair_score([entry.label for entry in row], [entry.score for entry in row], settings)


_CLASSES = frozenset(("supports", "contradicts"))
APIS = {
    "/score": ScoreApi(
        lambda model, pairs, settings: {
            "model": model,
            "text_1": [passage for passage, _ in pairs],
            "text_2": [sentence for _, sentence in pairs],
        },
        _read_score,
    ),
    "/classify": ScoreApi(
        lambda model, pairs, settings: {"model": model, "input": [joined(*pair, settings.join) for pair in pairs]},
        _read_classify,
        needs={"supports": "0", "join": "[SEP]"},
        takes=_CLASSES | {"join"},
    ),
    "/predict": ScoreApi(
        lambda model, pairs, settings: {"inputs": [list(pair) for pair in pairs]}, _read_predict, takes=_CLASSES
    ),
}
"""Path to how a server is asked and how its reply is read."""
