"""Scorers behind a server: the path of its address says in which form it is asked."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from judge.errors import OperationalError, RejectedError, UsageError
from judge.models.address import Address, read_address, read_key
from judge.models.connection import KEY, Connection
from judge.models.http_errors import shorten
from judge.models.model import ModelOptions, Price, SentRequests, Unfinished
from judge.models.pair_classes import CONTRADICTS, SUPPORTS, pair_score
from judge.models.scorers import PairScore, ScorerSettings

_BATCH = 32
"""Pairs of one request; text-embeddings-inference takes no more, unless its operator lets it."""
_SEPARATOR = re.compile(r"<[^<>]+>|\[[^\[\]]+\]")
"""A special token of a tokenizer, as it is written: `</s>`, `[SEP]`."""

_Pairs = Sequence[tuple[str, str]]


class ServerScorer:
    """A classifier behind a server.

    `…/score` is vLLM's for one output: {"model", "text_1": [passage], "text_2": [sentence]} → {"data": [{"index",
    "score"}]}. `…/classify` is vLLM's for several classes: {"model", "input": [passage + join + sentence]} → {"data":
    [{"index", "label", "probs"}]}, where the label is that of the likeliest class. `…/predict` is that of
    text-embeddings-inference: {"inputs": [[passage, sentence]]} → [[{"label", "score"}]].
    """

    concurrency: int | None = None
    price: Price | None = None
    unfinished = Unfinished()

    def __init__(self, model: str, options: ModelOptions, settings: ScorerSettings) -> None:
        self._model = model
        self._options = options
        self._settings = settings
        self._connection: Connection | None = None

    def check(self) -> None:
        """Refuse a missing or malformed address, a malformed key, and settings that the address does not take.

        Raises:
            UsageError: There is one of these problems.
        """
        path = _path(self._address())
        form = APIS[path]
        given = {name for name, value in self._settings._asdict().items() if value}
        if missing := [name for name in form.needs if name not in given]:
            example = ",".join(f"{name}={value}" for name, value in form.needs.items())
            raise UsageError(
                f"checker/server/{self._model} at {path} needs {' and '.join(missing)}: the server takes a pair as one "
                f"text and does not name its classes, so the name says both, as in 'checker/server/MODEL#{example}'"
            )
        if unused := sorted(given - form.takes):
            raise UsageError(f"checker/server/{self._model} at {path} has no use for {', '.join(unused)}")
        if path == "/classify":
            for name in ("supports", "contradicts"):
                value = getattr(self._settings, name)
                if value and not (value.isascii() and value.isdecimal()):
                    raise UsageError(
                        f"{name}={value} of checker/server/{self._model}: expected the number of a class, from 0, "
                        "because /classify names no class but the likeliest"
                    )
        read_key(KEY)

    def parameters(self) -> dict[str, Any]:
        """The address without credentials, the model, and the settings that there are."""
        given = {name: value for name, value in self._settings._asdict().items() if value}
        return {"base_url": self._address().url, "model": self._model, **given}

    def sent(self, pairs: _Pairs) -> SentRequests:
        """So many pairs make a request; its reply has numbers and no tokens."""
        size = sum(len(text.encode("utf-8", "replace")) for pair in pairs for text in pair)
        return SentRequests(math.ceil(len(pairs) / _BATCH), size, 0)

    async def score(self, pairs: _Pairs) -> list[PairScore]:
        """The scores, in as many requests as it takes.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        address = self._address()
        form = APIS[_path(address)]
        connection = self._connection = self._connection or Connection(address, self._options, path="")
        scores: list[PairScore] = []
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            reply = await connection.fetch(_encoded(form.write(self._model, batch, self._settings)))
            found = read_scores(form, reply.body, self._settings)
            if len(found) != len(batch):
                raise RejectedError(f"{len(found)} scores came back for {len(batch)} pairs")
            scores += found
        return scores

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    def _address(self) -> Address:
        named = ", ".join(f"http://localhost:8000{path}" for path in APIS)
        if self._options.base_url is None or self._options.replicas:
            raise UsageError(f"checker/server/{self._model} needs one --base-url with its path, such as {named}")
        address = read_address(self._options.base_url)
        if _path(address) not in APIS:
            raise UsageError(f"--base-url {address.url}: expected an address that says what it serves, such as {named}")
        return address


def _path(address: Address) -> str:
    return "/" + address.url.rpartition("/")[2]


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error


def read_scores(form: "ScoreApi", body: bytes, settings: ScorerSettings) -> list[PairScore]:
    """The scores in the body of a reply.

    Args:
        form: The form in which the server was asked: a value of APIS.
        body: The body of the reply.
        settings: Which classes mean support and contradiction.

    Raises:
        RejectedError: The body is no such reply.
        OperationalError: The settings do not go with the model.
    """
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RejectedError(
            f"the reply is not JSON: it begins {shorten(body[:100].decode('utf-8', 'replace'))!r}"
        ) from error
    return list(form.read(reply, settings))


def _ask_score(model: str, pairs: _Pairs, settings: ScorerSettings) -> dict[str, Any]:
    return {"model": model, "text_1": [passage for passage, _ in pairs], "text_2": [sentence for _, sentence in pairs]}


def _read_score(reply: Any, settings: ScorerSettings) -> Iterable[PairScore]:
    for row in _rows(reply, "score"):
        yield PairScore(_probability(row.get("score")))


def _ask_classify(model: str, pairs: _Pairs, settings: ScorerSettings) -> dict[str, Any]:
    return {"model": model, "input": [joined(passage, sentence, settings.join) for passage, sentence in pairs]}


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


def _read_classify(reply: Any, settings: ScorerSettings) -> Iterable[PairScore]:
    for row in _rows(reply, "probs"):
        probabilities = row.get("probs")
        if not isinstance(probabilities, list) or not probabilities:
            raise RejectedError('a row of the reply has no list "probs"')
        numbers = [str(number) for number in range(len(probabilities))]
        for name in ("supports", "contradicts"):
            if (value := getattr(settings, name)) and value not in numbers:
                raise OperationalError(
                    f"the model has {len(numbers)} classes, so {name}={value} names none: expected a number from 0 to "
                    f"{numbers[-1]}"
                )
        values = [_probability(value) for value in probabilities]
        _check_name(row.get("label"), str(max(range(len(values)), key=lambda place: values[place])), settings)
        yield pair_score(numbers, values, settings)


def _check_name(label: Any, number: str, settings: ScorerSettings) -> None:
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


def _rows(reply: Any, wanted: str) -> list[dict[str, Any]]:
    """The rows of a reply of vLLM, in the order of the pairs."""
    rows = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("index"), int) for row in rows
    ):
        raise RejectedError(f'the reply has no list "data" of objects with "index" and "{wanted}"')
    rows = sorted(rows, key=lambda row: int(row["index"]))
    if [row["index"] for row in rows] != list(range(len(rows))):
        raise RejectedError(f"the scores are not numbered from 0 to {len(rows) - 1}, each once")
    return rows


def _ask_predict(model: str, pairs: _Pairs, settings: ScorerSettings) -> dict[str, Any]:
    return {"inputs": [list(pair) for pair in pairs]}


def _read_predict(reply: Any, settings: ScorerSettings) -> Iterable[PairScore]:
    if not isinstance(reply, list) or not all(isinstance(row, list) for row in reply):
        raise RejectedError("the reply is no list of lists of labels")
    for row in reply:
        if not all(isinstance(entry, dict) for entry in row):
            raise RejectedError('a label of the reply is no object with "label" and "score"')
        labels = [str(entry.get("label")) for entry in row]
        yield pair_score(labels, [_probability(entry.get("score")) for entry in row], settings)


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RejectedError(f"found score {shorten(repr(value))}, expected a probability from 0 to 1")
    return float(value)


class ScoreApi(NamedTuple):
    """A form in which servers are asked."""

    write: Callable[[str, _Pairs, ScorerSettings], dict[str, Any]]
    read: Callable[[Any, ScorerSettings], Iterable[PairScore]]
    needs: Mapping[str, str] = MappingProxyType({})
    """Settings without which nobody can tell what the reply means, each with an example."""
    takes: frozenset[str] = frozenset()
    """Settings that change something."""


_CLASSES = frozenset(("supports", "contradicts"))
APIS = {
    "/score": ScoreApi(_ask_score, _read_score),
    "/classify": ScoreApi(_ask_classify, _read_classify, {"supports": "0", "join": "[SEP]"}, _CLASSES | {"join"}),
    "/predict": ScoreApi(_ask_predict, _read_predict, takes=_CLASSES),
}
"""Path to how a server is asked and how its reply is read."""
