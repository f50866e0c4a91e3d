"""`server/<model>`: any OpenAI-compatible server (vLLM, llama.cpp, Ollama, …), straight on aiohttp."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge.errors import MissingKeyError
from judge.judges.chat import KEY, Connection, response_format
from judge.judges.credentials import Address, read_address, read_key
from judge.judges.forms import asked_logprobs, label_grammar
from judge.judges.model import (
    Model,
    ModelOptions,
    omitted_by_user,
    refuse_threads,
    room_of,
    sent_parameters,
    set_by_user,
)
from judge.judges.records import Completion, Request
from judge.records import Criterion


class ServerModel(Model):
    """A judge at an address; each call is one HTTP request."""

    backend = "server"
    variable = KEY
    """The environment variable with the key."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.name = f"{self.backend}/{model}"
        self._model = model
        self._options = options
        self._base_url = options.base_url
        self.forms = ("label", "json", "text") if options.logprobs else ("json", "text", "label")
        self.omitted = omitted_by_user(options)
        self.required = set_by_user(options)
        self.room = room_of(options)
        self.counts_longest = ".azure." in (self._base_url or "")
        self._parameters: dict[tuple[object, ...], dict[str, Any]] = {}
        self._connection: Connection | None = None

    @property
    def address(self) -> str | None:
        """The address; None for the usual one of the backend."""
        return None if self._base_url is None else read_address(self._base_url).url

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a malformed key, and a malformed or missing address."""
        refuse_threads(self._options, self.name)
        read_key(KEY)
        if self._base_url is None:
            raise MissingKeyError(f"{self.name} needs --base-url, the address of an OpenAI-compatible server")
        read_address(self._base_url)

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages."""
        key = (request.form, request.labels, request.sentences, request.lists_nuggets, request.omitted, request.room)
        if key not in self._parameters:
            wished = {
                "model": self._model,
                "temperature": self._options.temperature,
                "max_tokens": self._longest(request),
                "seed": self._options.seed,
                "reasoning_effort": self._options.reasoning_effort,
                **response_format(request),
                **self._one_label(request),
                **(asked_logprobs(request) if self._options.logprobs else {}),
            }
            self._parameters[key] = sent_parameters(wished, request.omitted)
        return self._parameters[key]

    async def complete(self, request: Request) -> Completion:
        """Ask once."""
        if self._connection is None:
            self.check([])
            self._connection = Connection(
                self._address(), self._options, variable=self.variable, headers=self._headers()
            )
        try:
            return await self._connection.post(self.parameters(request), request)
        finally:
            self.limits = self._connection.limits

    async def aclose(self) -> None:
        """Close the connections; they are opened again if the judge is asked again."""
        if self._connection is not None:
            await self._connection.aclose()

    def _address(self) -> Address:
        return read_address(self._base_url or "")

    def _headers(self) -> dict[str, str]:
        """Further headers of each request."""
        return {}

    def _longest(self, request: Request) -> int:
        """Most tokens of the reply."""
        return request.room or self._options.max_tokens

    def _one_label(self, request: Request) -> dict[str, Any]:
        """The parameters that hold a reply to one label: that of vLLM, and that of llama.cpp's server.

        Each of the two ignores the parameter of the other.
        """
        if request.form != "label":
            return {}
        return {"structured_outputs": {"choice": list(request.labels)}, "grammar": label_grammar(request.labels)}


open_model = ServerModel
