"""Scorers of (passage, sentence): how likely the passage supports the sentence, and where told, contradicts it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from judge.errors import RejectedError, UsageError
from judge.models.address import Address, read_address, read_key
from judge.models.connection import KEY, Connection
from judge.models.http_errors import shorten
from judge.models.model import ModelOptions
from judge.text.words import containment

_BATCH = 32
"""Pairs of one request; text-embeddings-inference takes no more, unless its operator lets it."""
_SUPPORTS = frozenset(("entailment", "entails", "supported", "supports", "consistent", "grounded", "yes", "true"))
_CONTRADICTS = frozenset(("contradiction", "contradicts", "contradicted", "refuted", "refutes"))


class PairScore(NamedTuple):
    """What a scorer says of one passage and one sentence, each a probability."""

    supports: float
    contradicts: float = 0.0
    """0 where the scorer does not tell contradiction from absence."""


class Scorer(Protocol):
    """Scores pairs of a passage and a sentence."""

    concurrency: int | None
    """More items at a time than this gain nothing; None if there is no such number."""

    def check(self) -> None:
        """Refuse options that can never work, before anything is sent.

        Raises:
            UsageError: There is one.
        """

    def parameters(self) -> dict[str, Any]:
        """What decides the scores beside the texts, as JSON values."""

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores of pairs (passage, sentence), in their order.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """

    async def aclose(self) -> None:
        """Release connections."""


class OverlapScorer:
    """The share of a sentence's content words that the passage holds.

    It sees no negation, no swapped number and no new claim made of old words.
    """

    concurrency: int | None = 1

    def check(self) -> None:
        """Nothing can be wrong: the scorer is this code."""

    def parameters(self) -> dict[str, Any]:
        """The version of the rule; it goes up whenever the same texts may get another score."""
        return {"overlap": 1}

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The shares."""
        return [PairScore(containment(sentence, (passage,))) for passage, sentence in pairs]

    async def aclose(self) -> None:
        """Nothing is released."""


class ServerScorer:
    """A cross-encoder behind a server; the path of its address says in which form it is asked.

    `…/score` is vLLM's: {"model", "text_1": [passage], "text_2": [sentence]} → {"data": [{"index", "score"}]}.
    `…/predict` is that of text-embeddings-inference: {"inputs": [[passage, sentence]]} → [[{"label", "score"}]].
    """

    concurrency: int | None = None

    def __init__(self, model: str, options: ModelOptions) -> None:
        self._model = model
        self._options = options
        self._connection: Connection | None = None

    def check(self) -> None:
        """Refuse a missing or malformed address and a malformed key.

        Raises:
            UsageError: There is one of these problems.
        """
        self._address()
        read_key(KEY)

    def parameters(self) -> dict[str, Any]:
        """The address without credentials, and the model."""
        return {"base_url": self._address().url, "model": self._model}

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
        """The scores, in as many requests as it takes."""
        address = self._address()
        write, read = APIS[_path(address)]
        connection = self._connection = self._connection or Connection(address, self._options, path="")
        scores: list[PairScore] = []
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            reply = await connection.fetch(msgspec.json.encode(write(self._model, batch)))
            found = list(read(_decoded(reply.body)))
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


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RejectedError(
            f"the reply is not JSON: it begins {shorten(body[:100].decode('utf-8', 'replace'))!r}"
        ) from error


def _ask_vllm(model: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"model": model, "text_1": [passage for passage, _ in pairs], "text_2": [sentence for _, sentence in pairs]}


def _read_vllm(reply: Any) -> Iterator[PairScore]:
    rows = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("index"), int) for row in rows
    ):
        raise RejectedError('the reply has no list "data" of objects with "index" and "score"')
    rows = sorted(rows, key=lambda row: int(row["index"]))
    if [row["index"] for row in rows] != list(range(len(rows))):
        raise RejectedError(f"the scores are not numbered from 0 to {len(rows) - 1}, each once")
    for row in rows:
        yield PairScore(_probability(row.get("score")))


def _ask_tei(model: str, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"inputs": [list(pair) for pair in pairs]}


def _read_tei(reply: Any) -> Iterator[PairScore]:
    if not isinstance(reply, list) or not all(isinstance(row, list) for row in reply):
        raise RejectedError("the reply is no list of lists of labels")
    for row in reply:
        if not all(isinstance(entry, dict) for entry in row):
            raise RejectedError('a label of the reply is no object with "label" and "score"')
        labels = {str(entry.get("label")).lower(): _probability(entry.get("score")) for entry in row}
        known = labels if len(labels) == 1 else _SUPPORTS
        supports = [probability for label, probability in labels.items() if label in known]
        if len(supports) != 1:
            raise RejectedError(
                f"none or several of the model's labels mean support: {shorten(', '.join(labels))}; expected one of "
                f"{', '.join(sorted(_SUPPORTS))}"
            )
        yield PairScore(supports[0], max((p for label, p in labels.items() if label in _CONTRADICTS), default=0.0))


def _probability(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RejectedError(f"found score {shorten(repr(value))}, expected a probability from 0 to 1")
    return float(value)


APIS = {"/score": (_ask_vllm, _read_vllm), "/predict": (_ask_tei, _read_tei)}
"""Path to how a server is asked and how its reply is read."""
