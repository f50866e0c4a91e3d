"""Batch services, which take files of requests and answer them within a day, and what a backend offers of batches."""

import contextlib
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import tenacity

from judge.errors import MissingKeyError, OperationalError, UsageError
from judge.models.address import read_address, read_key
from judge.models.backends import backend_facts, batch_format, batch_judges
from judge.models.batch.wire import ANTHROPIC, CHAT, GEMINI, OPENAI, WireFormat
from judge.models.http_errors import connection_error, error_for, read_refusal

if TYPE_CHECKING:
    import openai

_TIMEOUT = 600.0
"""Seconds for one request; a file has up to 256 MB."""
_RETRIES = 5
_PASSING = {408, 429, 500, 502, 503, 504, 529}
"""Statuses of refusals that may pass."""
_SLACK = timedelta(minutes=5)
"""By how much the clocks of this machine and the provider may differ."""

_Kind = TypeVar("_Kind")


class SubmittedBatch(msgspec.Struct):
    """One file of requests at its provider."""

    file: str
    judge: str
    requests: int
    file_id: str | None = None
    """What the provider calls the file; None where it is not uploaded."""
    began: datetime | None = None
    """When its submission began."""
    batch_id: str | None = None
    """None where it is not submitted, as far as this folder knows."""
    status: str = "not submitted"
    """In the words of the provider."""
    ended: bool = False
    """Whether nothing more will come."""
    completed: int = 0
    failed: int = 0
    outputs: tuple[str, ...] = ()
    """What can be fetched: ids or addresses of files of lines. A batch may end without any."""
    problems: tuple[str, ...] = ()
    """Why the provider refused the file, in its words."""
    fetched: tuple[str, ...] = ()
    """Files of the folder with the lines that came back."""

    @property
    def lacks_output(self) -> bool:
        """Whether requests are counted as done and nothing that came of them can be fetched."""
        return self.ended and not self.outputs and self.completed + self.failed > 0


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    """Raise an error of the SDK or of httpx as ours, without the key that its own text may hold."""
    import httpx
    import openai

    try:
        yield
    except (openai.APIStatusError, httpx.HTTPStatusError) as error:
        refusal = read_refusal(error.response.status_code, error.response.content)
        raise OperationalError(str(error_for(refusal, error.response.headers, structured=False))) from None
    except (openai.APIConnectionError, httpx.HTTPError) as error:
        raise OperationalError(str(connection_error(error, _TIMEOUT))) from None


class OpenAIBatches:
    """The files and batches below one address, OpenAI's or a gateway's, through OpenAI's SDK.

    Args:
        judge: The judge, whose backend names the variable with the key.
        address: Where the judge is asked; None for the usual address.

    Raises:
        UsageError: The key is missing, or the address holds a user name.
    """

    def __init__(self, judge: str, address: str | None) -> None:
        import openai

        facts = backend_facts(judge)
        variable = facts.key or ""
        key = read_key(variable)
        if key is None and facts.usual_address is not None:
            raise MissingKeyError(f"{judge} needs a key: set the environment variable {variable}")
        # The SDK takes no empty key; a server of one's own may need none.
        self._client = openai.OpenAI(api_key=key or "none", base_url=address, timeout=_TIMEOUT, max_retries=_RETRIES)
        self.close = self._client.close

    def upload(self, path: Path) -> str | None:
        """Bring a file to the provider, which costs nothing yet."""
        with _own_errors(), path.open("rb") as file:
            return self._client.files.create(file=file, purpose="batch").id

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        with _own_errors():
            batches = self._client.with_options(max_retries=0).batches
            return batches.create(
                input_file_id=str(file_id),
                endpoint=CHAT,  # type: ignore[arg-type]  # a literal of the SDK
                completion_window="24h",
                metadata={"file": path.name},
            ).id

    def find(self, batch: SubmittedBatch, known: Collection[str]) -> tuple[str, ...]:
        """The batches that a submission which was cut short may have begun: those of the uploaded file."""
        with _own_errors():
            listed = itertools.islice(self._client.batches.list(limit=100), 500)
            return tuple(each.id for each in listed if each.input_file_id == batch.file_id and each.id not in known)

    def poll(self, batch: SubmittedBatch) -> None:
        """Ask how far a batch is; one that has ended may have an output, a file of errors, both or neither."""
        with _own_errors():
            told = self._client.batches.retrieve(str(batch.batch_id))
        counts, output, errors = told.request_counts, told.output_file_id, told.error_file_id
        batch.status, batch.ended = told.status, told.status in ("completed", "failed", "expired", "cancelled")
        batch.completed, batch.failed = (counts.completed, counts.failed) if counts else (0, 0)
        # Either may be named later than the other; a batch with outputs is never polled again.
        missing = (batch.completed and not output) or (batch.failed and not batch.completed and not errors)
        batch.outputs = () if missing else tuple(name for name in (output, errors) if name)
        batch.problems = tuple(map(_problem, (told.errors.data if told.errors else None) or ()))

    def fetch(self, output: str) -> Iterator[bytes]:
        """The content of an output, piece by piece."""
        with _own_errors(), self._client.files.with_streaming_response.content(output) as answer:
            yield from answer.iter_bytes()


def _problem(error: "openai.types.BatchError") -> str:
    where = None if error.line is None else f"line {error.line}"
    return ": ".join(part for part in (where, error.code, error.message) if part)


class _Batch(msgspec.Struct):
    id: str
    processing_status: str
    request_counts: dict[str, int]
    created_at: datetime
    results_url: str | None = None


class _Batches(msgspec.Struct):
    data: list[_Batch]


def _may_pass(error: BaseException) -> bool:
    import httpx

    return isinstance(error, httpx.HTTPStatusError) and error.response.status_code in _PASSING


class AnthropicBatches:
    """The Message Batches below one address; the methods are those of OpenAIBatches.

    Raises:
        UsageError: The key is missing.
    """

    def __init__(self, judge: str, address: str | None) -> None:
        import httpx

        key = read_key("ANTHROPIC_API_KEY")
        if key is None:
            raise MissingKeyError(f"{judge} needs a key: set the environment variable ANTHROPIC_API_KEY")
        usual = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
        base_url = read_address(address).url if address else usual
        self._url = f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages/batches"
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json"}
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT)
        self.close = self._client.close

    def upload(self, path: Path) -> str | None:
        """Nothing: a batch brings its own lines."""
        return None

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        body = msgspec.json.encode({"requests": [msgspec.Raw(line) for line in path.read_bytes().splitlines()]})
        with _own_errors():
            return _read(self._client.post(self._url, content=body).raise_for_status().content, _Batch).id

    def find(self, batch: SubmittedBatch, known: Collection[str]) -> tuple[str, ...]:
        """The batches of as many requests since the submission began, because Anthropic keeps no name of ours."""
        return tuple(
            each.id
            for each in _read(self._get(f"{self._url}?limit=100"), _Batches).data
            if each.id not in known
            and (batch.began is None or each.created_at >= batch.began - _SLACK)
            and sum(each.request_counts.values()) == batch.requests
        )

    def poll(self, batch: SubmittedBatch) -> None:
        """Ask how far a batch is."""
        told = _read(self._get(f"{self._url}/{batch.batch_id}"), _Batch)
        batch.status, batch.ended = told.processing_status, told.processing_status == "ended"
        batch.completed = told.request_counts.get("succeeded", 0)
        batch.failed = sum(told.request_counts.get(name, 0) for name in ("errored", "canceled", "expired"))
        batch.outputs = (f"{self._url}/{batch.batch_id}/results",) if batch.ended and told.results_url else ()

    def fetch(self, output: str) -> Iterator[bytes]:
        """The results of a batch, piece by piece."""
        with _own_errors(), self._client.stream("GET", output) as answer:
            if not answer.is_success:
                answer.read()
            yield from answer.raise_for_status().iter_bytes()

    @_own_errors()
    @tenacity.retry(
        retry=tenacity.retry_if_exception(_may_pass),
        stop=tenacity.stop_after_attempt(1 + _RETRIES),
        wait=tenacity.wait_random_exponential(max=30),
        reraise=True,
    )
    def _get(self, url: str) -> bytes:
        """The reply to a request that changes nothing, and that is sent again while a refusal may pass."""
        return self._client.get(url).raise_for_status().content


def _read(body: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OperationalError(f"no reply as Anthropic's batches give it: {error}") from error


BatchService = OpenAIBatches | AnthropicBatches


class BatchOffer(NamedTuple):
    """How the requests of a judge are handed over in batches."""

    wire: WireFormat
    most_lines: int
    """Most lines of a file."""
    share: float | None = None
    """What a request costs, as a share of the list price; None where nobody bills."""
    service: Callable[[str, str | None], BatchService] | None = None
    """From judge and address to the service; None where the user hands the files over."""


OFFERS = {
    "openai": BatchOffer(OPENAI, 50_000, 0.5, OpenAIBatches),
    # `vllm run-batch` writes nothing before its last line, and one bad line ends the file.
    "server": BatchOffer(OPENAI, 5_000, None, OpenAIBatches),
    "anthropic": BatchOffer(ANTHROPIC, 100_000, 0.5, AnthropicBatches),
    "gemini": BatchOffer(GEMINI, 1_000_000, 0.5),
    "litellm": BatchOffer(OPENAI, 50_000, 0.5),
}
"""By the batch format that the row of a backend names."""


def offer_of(judge: str) -> BatchOffer:
    """How the requests of a judge are handed over.

    Raises:
        UsageError: The judge runs in this process, so there is nothing to hand over.
    """
    name = batch_format(judge)
    if name is None:
        raise UsageError(
            f"{judge} is asked in this process, so there are no requests to hand over; `judge run` asks it "
            f"(requests are written for {batch_judges(OFFERS)})"
        )
    return OFFERS[name]


def bare_model(parameters: Mapping[str, Any], judge: str) -> str:
    """The model as its API names it: without the provider, by which litellm finds the API."""
    model = str(parameters["model"])
    return model.partition("/")[2] or model if backend_facts(judge).names_provider else model


def open_service(judge: str, address: str | None) -> BatchService:
    """The service of a judge, at its address; None for the usual one.

    Raises:
        UsageError: No service is known here, or its key is missing.
    """
    opened = offer_of(judge).service
    if opened is None:
        raise UsageError(
            f"{judge}: `judge batch` knows no service for it; hand the files over yourself, and `judge completions "
            "import` takes what comes back"
        )
    return opened(judge, address)
