"""`openai/<model>`: OpenAI's API, or another one at `--base-url`, straight on aiohttp."""

import functools
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from judge.errors import UsageError
from judge.judges.backends.server import ServerModel
from judge.judges.credentials import Address, needed_key, read_address, refuse_unrecorded, without_credentials
from judge.judges.forms import label_tokens
from judge.judges.model import ModelOptions, Price, refuse_threads
from judge.judges.records import Request
from judge.records import Criterion

USUAL = "https://api.openai.com/v1"
_PAYERS = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
"""Variable to the header that says who pays."""


class OpenAIModel(ServerModel):
    """A judge of OpenAI."""

    backend = "openai"
    variable = "OPENAI_API_KEY"

    def __init__(self, model: str, options: ModelOptions) -> None:
        super().__init__(model, options)
        # As OpenAI's own library does.
        self._base_url = options.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.endpoint = None if options.base_url else self._base_url and without_credentials(self._base_url)
        self.counts_longest = ".azure." in (self._base_url or "")

    def check(self, criteria: Sequence[Criterion]) -> None:
        """Refuse a missing key and a malformed address."""
        refuse_threads(self._options, self.name)
        refuse_unrecorded(os.environ)
        source = "--base-url" if self._options.base_url else "OPENAI_BASE_URL"
        if self._base_url is not None and read_address(self._base_url, source).user is not None:
            raise UsageError(f"{source} must hold no user name: the key of OPENAI_API_KEY is sent")
        needed_key(self.name, self.variable)

    def price(self) -> Price | None:
        """OpenAI's list price from litellm's data file; None at another address."""
        return list_price(self._model) if self._base_url is None else None

    def _address(self) -> Address:
        return read_address(self._base_url or USUAL)

    def _headers(self) -> dict[str, str]:
        return payers()

    def _longest(self, request: Request) -> int:
        # Thoughts come before the label, and need their room.
        if request.form == "label" and not self._options.thinks:
            return label_tokens(request.labels)
        return super()._longest(request)

    def _one_label(self, request: Request) -> dict[str, Any]:
        return {}


def payers() -> dict[str, str]:
    """The headers that say who pays, as the environment names them."""
    named = {header: os.environ.get(name, "").strip() for name, header in _PAYERS.items()}
    return {header: value for header, value in named.items() if value}


class _Entry(msgspec.Struct, gc=False):
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None


@functools.cache
def list_price(model: str) -> Price | None:
    """The price in litellm's data file, or None; read without importing litellm, because that takes seconds."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).with_name("model_prices_and_context_window_backup.json")
    try:
        entries = msgspec.json.decode(file.read_bytes(), type=dict[str, _Entry])
    except (OSError, msgspec.DecodeError):
        return None
    entry = entries.get(model, _Entry())
    if entry.input_cost_per_token is None or entry.output_cost_per_token is None:
        return None
    return Price(entry.input_cost_per_token, entry.output_cost_per_token, entry.cache_read_input_token_cost)


open_model = OpenAIModel
