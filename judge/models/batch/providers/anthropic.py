"""Message Batches of Anthropic."""

import contextlib
import os
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
import tenacity

from judge.errors import MissingKeyError, OperationalError
from judge.models.address import read_address, read_key
from judge.models.batch.providers.provider import BatchStatus
from judge.models.batch.records import OpenQuestion
from judge.models.http_errors import connection_error, error_for, read_refusal

KEY = "ANTHROPIC_API_KEY"  # the name of a variable, not its value
_USUAL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_TIMEOUT = 600.0
_ATTEMPTS = 6
_LISTED = 100
_AGAIN = {408, 429, 500, 502, 503, 504, 529}


_Kind = TypeVar("_Kind")


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0


class _Batch(msgspec.Struct):
    id: str
    processing_status: str
    request_counts: _Counts
    created_at: datetime
    results_url: str | None = None


class _Batches(msgspec.Struct):
    data: list[_Batch]


class _PassingError(Exception):
    """A refusal that may pass."""


class AnthropicBatches:
    """The batches below one address.

    Args:
        base_url: The address.
        key: The key.
    """

    def __init__(self, base_url: str, key: str) -> None:
        import httpx

        self._url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages/batches"
        headers = {"x-api-key": key, "anthropic-version": _VERSION}
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT)

    def upload(self, path: Path) -> None:
        """Nothing: a batch brings its own lines."""

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        lines = [msgspec.Raw(line) for line in path.read_bytes().splitlines()]
        body = msgspec.json.encode({"requests": lines})
        with _told():
            return self._read(self._asked("POST", self._url, body), _Batch).id

    def find(self, file_id: str | None, lines: int, since: datetime, known: Collection[str]) -> tuple[str, ...]:
        """The batches of as many requests since then, because Anthropic keeps no name of ours."""
        batches = self._read(self._patiently(f"{self._url}?limit={_LISTED}"), _Batches).data
        return tuple(
            batch.id
            for batch in batches
            if batch.id not in known
            and batch.created_at >= since
            and sum(msgspec.structs.astuple(batch.request_counts)) == lines
        )

    def look(self, batch_id: str) -> BatchStatus:
        """How far a batch is."""
        batch = self._read(self._patiently(f"{self._url}/{batch_id}"), _Batch)
        counts, ended = batch.request_counts, batch.processing_status == "ended"
        failed = counts.errored + counts.canceled + counts.expired
        outputs = (f"{self._url}/{batch_id}/results",) if ended and batch.results_url else ()
        return BatchStatus(batch.processing_status, ended, counts.succeeded, failed, outputs)

    def fetch(self, output: str, path: Path) -> None:
        """Write the results of a batch to a file."""
        with _told(), self._client.stream("GET", output) as answer:
            if answer.status_code != 200:
                refusal = read_refusal(answer.status_code, answer.read())
                raise OperationalError(str(error_for(refusal, answer.headers, structured=False)))
            with path.open("wb") as file:
                for part in answer.iter_bytes():
                    file.write(part)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _patiently(self, url: str) -> bytes:
        """What the API says, asked again while a refusal may pass; only for requests that change nothing."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_PassingError),
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=tenacity.wait_random_exponential(max=30),
            reraise=True,
        )
        with _told():
            return retrying(self._asked, "GET", url)

    def _asked(self, method: str, url: str, body: bytes | None = None) -> bytes:
        answer = self._client.request(method, url, content=body, headers={"content-type": "application/json"})
        if answer.status_code == 200:
            return answer.content
        error = error_for(read_refusal(answer.status_code, answer.content), answer.headers, structured=False)
        if answer.status_code in _AGAIN:
            raise _PassingError(str(error))
        raise OperationalError(str(error))

    @staticmethod
    def _read(body: bytes, kind: type[_Kind]) -> _Kind:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise OperationalError(f"no reply as Anthropic's batches give it: {error}") from error


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn an error of the connection into ours."""
    import httpx

    try:
        yield
    except httpx.HTTPError as error:
        raise OperationalError(str(connection_error(error, _TIMEOUT))) from None
    except _PassingError as error:
        raise OperationalError(str(error)) from None


def open_provider(question: OpenQuestion) -> AnthropicBatches:
    """The API at the address of a question's judge.

    Raises:
        UsageError: The key is missing.
    """
    key = read_key(KEY)
    if key is None:
        raise MissingKeyError(f"{question.judge} needs a key: set the environment variable {KEY}")
    moved = question.parameters.get("environment", {})
    url = question.parameters.get("api_base") or moved.get("ANTHROPIC_API_BASE") or moved.get("ANTHROPIC_BASE_URL")
    return AnthropicBatches(read_address(str(url)).url if url else os.environ.get("ANTHROPIC_BASE_URL", _USUAL), key)
