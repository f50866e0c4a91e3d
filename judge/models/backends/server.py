"""`server/<model>`: any OpenAI-compatible server (vLLM, llama.cpp, Ollama, …), or several, straight on aiohttp."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from judge.errors import RejectedError, StructureUnsupported, UsageError
from judge.models.address import Address, read_address, read_key
from judge.models.chat import refuse_threads, response_format
from judge.models.connection import KEY, Connection
from judge.models.failover import Failover
from judge.models.forms import label_grammar
from judge.models.label_probabilities import asked_logprobs
from judge.models.model import Model, ModelOptions
from judge.models.records import AnswerForm, Completion, Request
from judge.records import Criterion


class ServerModel(Model):
    """A judge at one address, or at several that serve the same model; the key comes from JUDGE_API_KEY."""

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.name = f"server/{model}"
        self._model = model
        self._options = options
        self.forms: tuple[AnswerForm, ...] = ("label", "json", "text") if options.logprobs else ("json", "text")
        self._parameters: dict[tuple[object, ...], dict[str, Any]] = {}
        self._opened: Connection | Failover | None = None

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing, malformed or repeated address and a malformed key.

        Raises:
            UsageError: There is one of these problems.
        """
        refuse_threads(self._options.threads, self.name)
        urls = [address.url for address in self._addresses()]
        if repeated := sorted({url for url in urls if urls.count(url) > 1}):
            raise UsageError(f"--base-url names {', '.join(repeated)} more than once")
        read_key(KEY)

    def parameters(self, request: Request) -> Mapping[str, Any]:
        """Everything that is sent beside the messages, and the first address without credentials."""
        key = (request.form, request.labels, request.sentences, request.together, request.lists_nuggets)
        parameters = self._parameters.get(key)
        if parameters is None:
            parameters = {
                "base_url": self._addresses()[0].url,
                "model": self._model,
                "temperature": self._options.temperature,
                "max_tokens": self._options.max_tokens,
                **({} if self._options.seed is None else {"seed": self._options.seed}),
                **response_format(request),
                **(asked_logprobs(request) | _one_label(request) if self._options.logprobs else {}),
            }
            self._parameters[key] = parameters
        return parameters

    async def complete(self, request: Request) -> Completion:
        """Ask once; where there are several servers, one after the other until one answers.

        Raises:
            CallError: This call failed; TransientError if asking again may help.
            OperationalError: No call can succeed until the user fixes something.
        """
        sent = {**self.parameters(request), "messages": request.messages}
        del sent["base_url"]
        try:
            body = msgspec.json.encode(sent)
        except UnicodeEncodeError as error:
            raise RejectedError(f"the request cannot be sent: {error.reason} at character {error.start}") from error
        opened = self._opened or self._open()
        try:
            return await opened.post(body, request)
        except StructureUnsupported:
            if request.form == "label":
                # A server that cannot be held to the labels is asked in other forms from now on.
                self.forms = ("json", "text")
            raise
        finally:
            # Of several servers, each has limits of its own.
            self.limits = opened.limits if isinstance(opened, Connection) else None

    async def aclose(self) -> None:
        """Close all connections; they are opened again if the judge is asked again."""
        if self._opened is not None:
            await self._opened.aclose()

    def _open(self) -> Connection | Failover:
        options = self._options
        connections = {address.url: Connection(address, options) for address in self._addresses()}
        if len(connections) > 1:
            self._opened = several = Failover(connections)
            self.servers = several.servers
        else:
            self._opened = next(iter(connections.values()))
        return self._opened

    def _addresses(self) -> tuple[Address, ...]:
        if self._options.base_url is None:
            raise UsageError(f"{self.name} needs --base-url, the address of an OpenAI-compatible server")
        return tuple(map(read_address, (self._options.base_url, *self._options.replicas)))


def _one_label(request: Request) -> dict[str, Any]:
    """The parameters that hold a reply to one label: that of vLLM, and that of llama.cpp's server.

    Each of the two ignores the parameter of the other.
    """
    if request.form != "label":
        return {}
    return {"structured_outputs": {"choice": list(request.labels)}, "grammar": label_grammar(request.labels)}


def open_model(model: str, options: ModelOptions) -> ServerModel:
    """The model that a server calls `model`."""
    return ServerModel(model, options)
