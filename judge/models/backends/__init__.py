"""Backends, one file for each: `open_model("backend/model")` returns the judge of that name."""

import importlib

from judge.errors import UsageError
from judge.models.address import without_credentials
from judge.models.catalog import CATALOG
from judge.models.model import Model, ModelOptions
from judge.models.records import AnswerForm as AnswerForm
from judge.models.records import Completion as Completion
from judge.models.records import Request as Request
from judge.models.secrets import holds_key
from judge.records import Criterion as Criterion
from judge.text.hints import did_you_mean

BACKENDS = {
    "baseline": "judge.models.backends.baseline",
    "checker": "judge.models.backends.checker",
    "litellm": "judge.models.backends.litellm",
    "local": "judge.models.backends.local",
    "openai": "judge.models.backends.openai",
    "replay": "judge.models.backends.replay",
    "server": "judge.models.backends.server",
}
"""Backend name to module; each module has `open_model(model: str, options: ModelOptions) -> Model`."""


def open_model(name: str, options: ModelOptions | None = None) -> Model:
    """The judge called `backend/model`; if the first part is no backend of ours, litellm gets the whole name.

    Raises:
        UsageError: The name has no backend, or the backend refuses the model or the options.
    """
    if holds_key(name) or without_credentials(name) != name:
        raise UsageError(
            "the model's name holds a key, which every output would show: a key belongs into the provider's variable, "
            "such as OPENAI_API_KEY"
        )
    if not name.isprintable():
        raise UsageError(f"model name {name!r} has characters that no model has")
    backend, slash, model = name.partition("/")
    if not slash or not model:
        raise UsageError(
            f"model name {name!r} has no backend{did_you_mean(name, [f'local/{weights}' for weights in CATALOG])} "
            f"(expected backend/model, with backend one of {', '.join(sorted(BACKENDS))} or a litellm provider)"
        )
    if backend not in BACKENDS:
        backend, model = "litellm", name
    module = importlib.import_module(BACKENDS[backend])
    opened: Model = module.open_model(model, options or ModelOptions())
    return opened
