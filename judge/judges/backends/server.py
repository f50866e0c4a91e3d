"""`server/<model>`: any OpenAI-compatible server (vLLM, llama.cpp, Ollama, …), or several, straight on aiohttp."""

from collections.abc import Mapping, Sequence
from typing import Any

from judge.errors import MissingKeyError, StructureUnsupported, UsageError
from judge.judges.chat import KEY, Connection, encoded, response_format
from judge.judges.credentials import Address, read_address, read_key
from judge.judges.endpoints import Endpoints
from judge.judges.forms import asked_logprobs, label_grammar
from judge.judges.model import Model, ModelOptions, refuse_options
from judge.judges.records import Completion, Request
from judge.records import Criterion


class ServerModel(Model):
    """A judge at one address, or at several that serve the same model; each call is one HTTP request."""

    backend = "server"
    variable = KEY
    """The environment variable with the key."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.name = f"{self.backend}/{model}"
        self._model = model
        self._options = options
        self._base_url = options.base_url
        if options.logprobs:
            self.forms = ("label", "json", "text")
        self.counts_longest = ".azure." in (self._base_url or "")
        self._parameters: dict[tuple[object, ...], dict[str, Any]] = {}
        self._connections: list[Connection] = []
        self._endpoints: Endpoints | None = None

    @property
    def address(self) -> str | None:
        """The first address; None for the usual one of the backend."""
        return None if self._base_url is None else read_address(self._base_url).url

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a malformed key, and a malformed, repeated or missing address."""
        refuse_options(self._options, self.name, "threads")
        read_key(KEY)
        if self._base_url is None:
            raise MissingKeyError(f"{self.name} needs --base-url, the address of an OpenAI-compatible server")
        urls = [address.url for address in self._addresses()]
        if repeated := sorted({url for url in urls if urls.count(url) > 1}):
            raise UsageError(f"--base-url names {', '.join(repeated)} more than once")

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages."""
        key = (request.form, request.labels, request.sentences, request.lists_nuggets)
        if key not in self._parameters:
            self._parameters[key] = {
                "model": self._model,
                **self._sampling(request),
                **({} if self._options.seed is None else {"seed": self._options.seed}),
                **response_format(request),
                **(asked_logprobs(request) | self._one_label(request) if self._options.logprobs else {}),
            }
        return self._parameters[key]

    async def complete(self, request: Request) -> Completion:
        """Ask once; where there are several servers, one after the other until one answers."""
        body = encoded(self.parameters(request), request)
        if not self._connections:
            self._open()
        first, *more = self._connections
        try:
            return await (self._endpoints or first).post(body, request)
        except StructureUnsupported:
            if request.form == "label":
                # A server that cannot be held to the labels is asked in other forms from now on.
                self.forms = ("json", "text")
            raise
        finally:
            # Of several servers, each has limits of its own.
            self.limits = None if more else first.limits

    async def aclose(self) -> None:
        """Close all connections; they are opened again if the judge is asked again."""
        for connection in self._connections:
            await connection.aclose()

    def _open(self) -> None:
        self.check([])
        addresses, headers = self._addresses(), self._headers()
        self._connections = [
            Connection(address, self._options, variable=self.variable, headers=headers) for address in addresses
        ]
        if len(addresses) > 1:
            posts = {address.url: each.post for address, each in zip(addresses, self._connections, strict=True)}
            self._endpoints = Endpoints(posts)
            self.servers = self._endpoints.all

    def _addresses(self) -> list[Address]:
        return [read_address(url) for url in (self._base_url or "", *self._options.replicas)]

    def _headers(self) -> dict[str, str]:
        """Further headers of each request."""
        return {}

    def _sampling(self, request: Request) -> dict[str, Any]:
        """The parameters of how a reply is drawn, and of its length."""
        return {"temperature": self._options.temperature, "max_tokens": self._options.max_tokens}

    def _one_label(self, request: Request) -> dict[str, Any]:
        """The parameters that hold a reply to one label: that of vLLM, and that of llama.cpp's server.

        Each of the two ignores the parameter of the other.
        """
        if request.form != "label":
            return {}
        return {"structured_outputs": {"choice": list(request.labels)}, "grammar": label_grammar(request.labels)}


open_model = ServerModel
