"""Batches of OpenAI, and of gateways with its interface, through OpenAI's SDK."""

import contextlib
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.errors import MissingKeyError, OperationalError, UsageError
from judge.models.address import read_address, read_key
from judge.models.backends import backend_facts
from judge.models.batch.forms.openai import URL
from judge.models.batch.providers.provider import BatchStatus
from judge.models.batch.records import OpenQuestion
from judge.models.http_errors import connection_error, error_for, read_refusal

if TYPE_CHECKING:
    import openai

_ENDED = {"completed", "failed", "expired", "cancelled"}
_TIMEOUT = 600.0
"""Seconds for one request; a file has up to 200 MB."""
_RETRIES = 5
_LISTED = 500
"""Batches that are looked through for one that a submission may have begun."""


class OpenAIBatches:
    """The files and batches below one address.

    Args:
        base_url: The address; None means OpenAI's.
        key: The key.
    """

    def __init__(self, base_url: str | None, key: str) -> None:
        import openai

        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=_TIMEOUT, max_retries=_RETRIES)

    def upload(self, path: Path) -> str:
        """Bring a file to the provider."""
        with _told(), path.open("rb") as file:
            return str(self._client.files.create(file=file, purpose="batch").id)

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        with _told():
            batches = self._client.with_options(max_retries=0).batches
            made = batches.create(
                input_file_id=str(file_id),
                endpoint=URL,  # type: ignore[arg-type]  # a literal of the SDK
                completion_window="24h",
                metadata={"file": path.name},
            )
            return str(made.id)

    def find(self, file_id: str | None, lines: int, since: datetime, known: Collection[str]) -> tuple[str, ...]:
        """The batches of the uploaded file."""
        with _told():
            found = []
            for number, batch in enumerate(self._client.batches.list(limit=100), 1):
                if batch.input_file_id == file_id and batch.id not in known:
                    found.append(batch.id)
                if number == _LISTED:
                    break
            return tuple(found)

    def look(self, batch_id: str) -> BatchStatus:
        """How far a batch is; one that has ended may have an output, a file of errors, both or neither."""
        with _told():
            batch = self._client.batches.retrieve(batch_id)
        counts = batch.request_counts
        completed, failed = (counts.completed, counts.failed) if counts else (0, 0)
        # Either may be named later than the other; what is fetched is never looked for again.
        missing = (completed and not batch.output_file_id) or (failed and not completed and not batch.error_file_id)
        outputs = tuple(name for name in (batch.output_file_id, batch.error_file_id) if name)
        return BatchStatus(
            batch.status,
            batch.status in _ENDED,
            completed,
            failed,
            () if missing else outputs,
            tuple(_problem(error) for error in (batch.errors.data if batch.errors else None) or ()),
        )

    def fetch(self, output: str, path: Path) -> None:
        """Write the lines of a file to a file."""
        with _told(), self._client.files.with_streaming_response.content(output) as answer:
            answer.stream_to_file(path)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _problem(error: "openai.types.BatchError") -> str:
    where = "" if error.line is None else f"line {error.line}: "
    return f"{where}{error.code or ''}{': ' if error.code else ''}{error.message or ''}"


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn an error of the SDK into ours, without the key that its own text may hold."""
    import httpx
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        response: Any = error.response
        refusal = read_refusal(response.status_code, response.content)
        raise OperationalError(str(error_for(refusal, response.headers, structured=False))) from None
    except (openai.APIConnectionError, httpx.HTTPError) as error:
        raise OperationalError(str(connection_error(error, _TIMEOUT))) from None


def open_provider(question: OpenQuestion) -> OpenAIBatches:
    """The API at the address of a question's judge.

    Raises:
        UsageError: The key is missing, or the address holds a user name.
    """
    facts = backend_facts(question.judge)
    name = facts.key or ""
    url = question.parameters.get("base_url")
    if url is not None and read_address(url).user is not None:
        raise UsageError(f"{question.judge}: batches need an address without a user name; the key is that of {name}")
    key = read_key(name)
    if key is None and facts.usual_address is not None:
        raise MissingKeyError(f"{question.judge} needs a key: set the environment variable {name}")
    # The SDK takes no empty key; a server of one's own may need none.
    return OpenAIBatches(url, key or "none")
