"""Batch services, which answer files of requests within a day, and how the lines of a batch are written and read."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
import tenacity

from judge.errors import OperationalError, RejectedError, TransientError, UsageError
from judge.io.folder import Pieces, write_atomic
from judge.judges.backends import BACKENDS, backend_facts
from judge.judges.backends.openai import payers
from judge.judges.chat import read_completion, without_secrets
from judge.judges.credentials import needed_key, read_address, read_key
from judge.judges.forms import with_probabilities
from judge.judges.http_errors import Refusal, at, check_redirect, connection_error, error_for, read_refusal
from judge.judges.records import Completion, Message, Request

_CHAT = "/v1/chat/completions"
"""The endpoint that every line of OpenAI's format names."""
_ANTHROPIC_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "refusal"}

BatchLine = dict[str, Any]


def _openai_line(digest: str, model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> BatchLine:
    """A request to OpenAI's Batch API, whose lines Azure, Mistral, vLLM's `run-batch` and most gateways take too."""
    body = {**parameters, "model": model, "messages": messages}
    return {"custom_id": digest, "method": "POST", "url": _CHAT, "body": body}


def _read_openai(line: BatchLine, request: Request) -> Completion:
    """The completion in a line of OpenAI's output.

    A JudgeError if there is none, and why, in the words of the provider; of `_read_anthropic` too.
    """
    response = at(line, dict, "response") or {}
    status = at(response, int, "status_code")
    body = response.get("body")
    reply = msgspec.json.encode(body)
    if isinstance(body, dict) and status in (None, 200):
        completion = read_completion(reply, {}, structured=request.form != "text", latency=None, request=request)
        return with_probabilities(completion, reply, request)
    told = f"status {status}: " if status not in (None, 0, 200) else ""
    why = f"{told}{read_refusal(status or 0, reply).message}" if told else "no response and no error"
    if error := line.get("error"):
        refusal = _refusal(status or 0, error)
        codes = "" if told else "".join(f"{code}: " for code in sorted(refusal.codes))
        why = f"{told}{codes}{refusal.message}"
    raise RejectedError(why)


def _refusal(status: int, error: Any) -> Refusal:
    """What a line says of an error, an object or words."""
    return read_refusal(status, msgspec.json.encode({"error": error} if isinstance(error, str) else error))


def _anthropic_line(digest: str, model: str, parameters: Mapping[str, Any], messages: Sequence[Message]) -> BatchLine:
    """A request to Anthropic's Message Batches."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    schema = parameters.get("response_format", {}).get("json_schema", {}).get("schema")
    sent = {
        "model": model,
        **{name: parameters[name] for name in ("max_tokens", "temperature") if name in parameters},
        **({"system": system} if system else {}),
        "messages": [message for message in messages if message.role != "system"],
        **({"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}),
    }
    return {"custom_id": digest, "params": sent}


def _read_anthropic(line: BatchLine, request: Request) -> Completion:
    """The completion in a line of Anthropic's output, in the words of chat completions."""
    message = at(line, dict, "result", "message")
    error = (at(line, dict, "result") or {}).get("error")
    kind = at(line, str, "result", "type") or "no result"
    if kind != "succeeded" or message is None:
        raise RejectedError(f"{kind}: {_refusal(200, error).message}" if error else kind)
    parts = at(message, list, "content")
    reason = at(message, str, "stop_reason")
    if parts is None:
        raise RejectedError("no message as Anthropic writes it: it has no content")
    # Its thoughts have another type.
    texts = (at(part, str, "text") or "" for part in parts if at(part, str, "type") == "text")
    prompt = at(message, int, "usage", "input_tokens")
    cached = at(message, int, "usage", "cache_read_input_tokens")
    # Anthropic counts what it reads from its cache and writes there beside the other tokens of the prompt.
    beside = (cached or 0) + (at(message, int, "usage", "cache_creation_input_tokens") or 0)
    return without_secrets(
        Completion(
            text="".join(texts),
            finish_reason=_ANTHROPIC_REASONS.get(reason or "", reason),
            model=message.get("model"),
            prompt_tokens=None if prompt is None else prompt + beside,
            completion_tokens=at(message, int, "usage", "output_tokens"),
            cached_tokens=cached,
            thought_tokens=at(message, int, "usage", "output_tokens_details", "thinking_tokens"),
            raw=msgspec.json.encode(message).decode(),
        )
    )


_TIMEOUT = 600.0
"""Seconds for one request."""
_PAGES, _OF_A_PAGE = 50, 100
"""Pages among which a batch is searched for, and the batches of each."""
_OF_AN_ERROR, _OF_AN_ANSWER = 1 << 16, 1 << 24
"""Bytes that are read of a refusal, and most bytes of what a service says of its batches."""
AGAIN = tenacity.Retrying(
    retry=tenacity.retry_if_exception_type(TransientError),
    stop=tenacity.stop_after_attempt(6),
    wait=tenacity.wait_random_exponential(max=30),
    reraise=True,
)
"""Repeats a request that begins no batch, while its refusal may pass."""
_Kind = TypeVar("_Kind")


class SubmittedBatch(msgspec.Struct, forbid_unknown_fields=True):
    """One file of requests at its provider, as far as this folder knows."""

    file: str
    judge: str
    requests: int
    file_id: str | None = None
    """What the provider calls the file; None where it is not uploaded."""
    uploaded: int | None = None
    """When it was uploaded, by the provider's clock in seconds; None where the provider does not say."""
    batch_id: str | None = None
    status: str = "not submitted"
    ended: bool = False
    completed: int = 0
    failed: int = 0
    outputs: tuple[str, ...] = ()
    """Names of what can be fetched. A batch may end without any."""
    problems: tuple[str, ...] = ()
    """Why the provider refused the file, in its words."""
    fetched: tuple[str, ...] = ()
    """Files of the folder with the lines that came back."""
    address: str = ""
    listed: tuple[str, ...] | None = None
    """The latest batches at the provider just before a submission began, while nobody knows what became of it."""
    others: tuple[str, ...] = ()
    """Batches that were taken for this one, and answer other questions."""

    @property
    def lacks_output(self) -> bool:
        """Whether requests are counted as done and nothing that came of them can be fetched."""
        return self.ended and not self.outputs and self.completed + self.failed > 0


class _Service:
    """The batches below one address; whatever it refuses is a JudgeError, without the key."""

    _batches = "/batches"
    names_file = False
    """Whether a batch names the file that it was made of."""

    def __init__(self, address: str, headers: Mapping[str, str], longest: int) -> None:
        import httpx

        self.address = address
        self._longest = longest
        headers = {**headers, "Accept-Encoding": "identity"}
        self._client = httpx.Client(base_url=address, headers=headers, timeout=_TIMEOUT)
        self.close = self._client.close

    def upload(self, path: Path, batch: SubmittedBatch) -> None:
        """Bring a file to the provider, which costs nothing yet; nothing where a batch brings its own lines."""

    def list_latest(self) -> tuple[str, ...]:
        """The ids of the latest batches, later than which a new one will be; none where a batch names its file."""
        return ()

    def _pieces(self, method: str, path: str, most: int = _OF_AN_ANSWER, **content: Any) -> Iterator[bytes]:
        """A reply of at most so many bytes, piece by piece; no redirect is followed."""
        import httpx

        received = 0
        try:
            with self._client.stream(method, path, **content) as answer:
                check_redirect(answer.status_code, str(answer.url), answer.headers.get("location"))
                if not answer.is_success:
                    refusal = read_refusal(answer.status_code, next(answer.iter_bytes(_OF_AN_ERROR), b""))
                    raise error_for(refusal, answer.headers, structured=False)
                for piece in answer.iter_bytes():
                    received += len(piece)
                    if received > most:
                        told = f"{self.address}{path}: longer than {most:,} bytes"
                        raise OperationalError(f"{told}: nobody asked for as much")
                    yield piece
        except httpx.HTTPError as error:
            raise connection_error(error, _TIMEOUT) from None

    def _ask(self, method: str, path: str, **content: Any) -> Any:
        try:
            return msgspec.json.decode(b"".join(self._pieces(method, path, **content)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise OperationalError(f"{self.address}{path}: no reply of a batch service: {error}") from error

    def _need(self, kind: type[_Kind], told: Any, name: str) -> _Kind:
        value = at(told, kind, name)
        if value is None:
            raise OperationalError(f"{self.address}: no reply of a batch service: it has no `{name}`")
        return value

    def _one(self, batch: SubmittedBatch) -> Any:
        return AGAIN(self._ask, "GET", f"{self._batches}/{_quoted(batch.batch_id)}")

    def _latest(self, cursor: str) -> Iterator[Any]:
        """What it says of the latest batches; `cursor` is the parameter that names the last one of the page before."""
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            page = AGAIN(self._ask, "GET", self._batches, params={"limit": str(_OF_A_PAGE), **after})
            data = self._need(list, page, "data")
            yield from data
            if not data or at(page, bool, "has_more") is False:
                return
            after = {cursor: self._need(str, data[-1], "id")}
        told = f"more than {_PAGES * _OF_A_PAGE:,} batches since a submission was cut short"
        raise OperationalError(f"{self.address}: {told}; write the id of its batch as `batch_id` into batches.json")

    def _save(self, path: str, batch: SubmittedBatch, into: Path) -> None:
        """Fetch lines into a file, whole or not at all, and no more of them than the batch can have brought."""
        AGAIN(write_atomic, into, Pieces(functools.partial(self._pieces, "GET", path, batch.requests * self._longest)))


def _counted(told: Any, *states: str) -> int:
    return sum(at(told, int, "request_counts", state) or 0 for state in states)


def _quoted(name: str | None) -> str:
    return quote(name or "", safe="")


class OpenAIBatches(_Service):
    """The files and batches below an address, OpenAI's or a gateway's; a UsageError if it is none or the key lacks."""

    names_file = True

    def __init__(self, judge: str, address: str | None, longest: int) -> None:
        facts = backend_facts(judge)
        variable = str(facts.key)
        key = read_key(variable) if facts.usual_address is None else needed_key(judge, variable)
        headers = payers() | ({} if key is None else {"Authorization": f"Bearer {key}"})
        super().__init__(read_address(address or facts.usual_address or "").url, headers, longest)

    def upload(self, path: Path, batch: SubmittedBatch) -> None:
        """Bring a file to the provider."""
        with path.open("rb") as file:
            sent = {"data": {"purpose": "batch"}, "files": {"file": (path.name, file)}}
            told = AGAIN(self._ask, "POST", "/files", **sent)
        batch.file_id = self._need(str, told, "id")
        batch.uploaded = at(told, int, "created_at")

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        asked = {"input_file_id": file_id, "endpoint": _CHAT, "completion_window": "24h"}
        begun = self._ask("POST", self._batches, json={**asked, "metadata": {"file": path.name}})
        return self._need(str, begun, "id")

    def find(self, batch: SubmittedBatch) -> Iterator[str]:
        """The batch that a submission which was cut short may have begun: that of the uploaded file."""
        for told in self._latest("after"):
            if at(told, str, "input_file_id") == batch.file_id:
                yield self._need(str, told, "id")
                return
            begun = at(told, int, "created_at")
            if begun is not None and batch.uploaded is not None and begun < batch.uploaded:
                # Both by the provider's clock: what is older than the file was not made of it.
                return

    def poll(self, batch: SubmittedBatch) -> None:
        """Ask how far a batch is; one that has ended may have an output, a file of errors, both or neither."""
        told = self._one(batch)
        output = at(told, str, "output_file_id")
        errors = at(told, str, "error_file_id")
        batch.status = self._need(str, told, "status")
        batch.ended = batch.status in ("completed", "failed", "expired", "cancelled")
        batch.completed = _counted(told, "completed")
        batch.failed = _counted(told, "failed")
        # Either may be named later than the other; a batch with outputs is never polled again.
        missing = (batch.completed and not output) or (batch.failed and not batch.completed and not errors)
        batch.outputs = () if missing else tuple(name for name in (output, errors) if name)
        batch.problems = tuple(map(_problem, at(told, list, "errors", "data") or ()))

    def fetch(self, batch: SubmittedBatch, output: str, into: Path) -> None:
        """Bring an output into a file."""
        self._save(f"/files/{_quoted(output)}/content", batch, into)


def _problem(error: Any) -> str:
    line = at(error, int, "line")
    code = at(error, str, "code")
    message = at(error, str, "message")
    return ": ".join(part for part in (line and f"line {line}", code, message) if part)


class AnthropicBatches(_Service):
    """The Message Batches below an address; methods and errors are those of OpenAIBatches."""

    _batches = "/messages/batches"

    def __init__(self, judge: str, address: str | None, longest: int) -> None:
        url = read_address(address or os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com").url
        headers = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
        headers["x-api-key"] = needed_key(judge, "ANTHROPIC_API_KEY")
        super().__init__(f"{url.removesuffix('/v1')}/v1", headers, longest)

    def submit(self, path: Path, file_id: str | None) -> str:
        """Begin a batch; never tried twice here, because the first attempt may have been taken."""
        body = msgspec.json.encode({"requests": [msgspec.Raw(line) for line in path.read_bytes().splitlines()]})
        return self._need(str, self._ask("POST", self._batches, content=body), "id")

    def list_latest(self) -> tuple[str, ...]:
        """The ids of the latest batches; whatever is later was begun after this."""
        page = AGAIN(self._ask, "GET", self._batches, params={"limit": str(_OF_A_PAGE)})
        return tuple(self._need(str, each, "id") for each in self._need(list, page, "data"))

    def find(self, batch: SubmittedBatch) -> Iterator[str]:
        """The batches of as many requests that are later than those listed before the submission.

        Anthropic keeps no name of ours. Only the results say whose a batch is. Neither clock is asked, because two
        machines' clocks differ.
        """
        for each in self._latest("after_id"):
            name = self._need(str, each, "id")
            if name in (batch.listed or ()):
                return
            counts = self._need(dict, each, "request_counts")
            if name not in batch.others and _counted(each, *counts) == batch.requests:
                yield name

    def poll(self, batch: SubmittedBatch) -> None:
        """Ask how far a batch is."""
        told = self._one(batch)
        batch.status = self._need(str, told, "processing_status")
        batch.ended = batch.status == "ended"
        batch.completed = _counted(told, "succeeded")
        batch.failed = _counted(told, "errored", "canceled", "expired")
        address = at(told, str, "results_url")
        batch.outputs = ("results",) if batch.ended and address else ()

    def fetch(self, batch: SubmittedBatch, output: str, into: Path) -> None:
        """Bring the results of a batch into a file."""
        self._save(f"{self._batches}/{_quoted(batch.batch_id)}/results", batch, into)


BatchService = OpenAIBatches | AnthropicBatches


class BatchOffer(NamedTuple):
    """How the requests of a judge are handed over in batches: their wire format, and the most that a file holds."""

    form: str
    line: Callable[[str, str, Mapping[str, Any], Sequence[Message]], BatchLine]
    """From digest, the API's name of the model, parameters and messages to the line of a request."""
    read: Callable[[BatchLine, Request], Completion]
    most_lines: int
    most_bytes: int
    service: Callable[[str, str | None, int], BatchService]
    """From judge, address (the usual one if None) and most bytes of one reply to the service."""
    share: float = 0.5
    """What a request costs, as a share of the list price."""
    probabilities: bool = False
    """Whether label probabilities are read."""
    efforts: bool = False
    """Whether a line can say how much the model is to think."""


_OPENAI = BatchOffer(
    form="openai",
    line=_openai_line,
    read=_read_openai,
    most_lines=50_000,
    most_bytes=200_000_000,
    service=OpenAIBatches,
    probabilities=True,
    efforts=True,
)
OFFERS = {
    "openai": _OPENAI,
    # `vllm run-batch` writes nothing before its last line, and one bad line ends the file.
    "server": _OPENAI._replace(most_lines=5_000, share=1.0),
    "anthropic": BatchOffer(
        form="anthropic",
        line=_anthropic_line,
        read=_read_anthropic,
        most_lines=100_000,
        most_bytes=256_000_000,
        service=AnthropicBatches,
    ),
}
"""By the batch format that the row of a backend names."""


def offer_of(judge: str) -> BatchOffer:
    """How the requests of a judge are handed over; a UsageError if there is no batch format for it."""
    model = judge.partition("/")[2]
    for begins, name in backend_facts(judge).batch.items():
        if model.startswith(begins):
            return OFFERS[name]
    judges = ", ".join(f"{backend}/{begins}…" for backend, row in BACKENDS.items() for begins in row.batch)
    raise UsageError(f"{judge} has no batch format, so `judge run` asks it (requests are written for {judges})")
