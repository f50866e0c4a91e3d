"""Backends, one file for each: `open_model("backend/model")` returns the judge of that name."""

import importlib

import msgspec

from judge.errors import UsageError
from judge.io.text import did_you_mean
from judge.judges.credentials import holds_key, without_credentials
from judge.judges.model import Backend, Model, ModelOptions
from judge.judges.records import AnswerForm as AnswerForm
from judge.judges.records import Completion as Completion
from judge.judges.records import Request as Request
from judge.judges.weights import CATALOG
from judge.plugins import OpenTable, refuse_absent
from judge.records import Criterion as Criterion

_HERE = "judge.judges.backends."
BACKENDS: OpenTable[Backend] = OpenTable("judges", {
    "baseline": Backend(module=f"{_HERE}baseline", local=True, self_named=True, baseline=True,
        ready="a rule of this package; it needs nothing", asked_to_test=False),
    "litellm": Backend(module=f"{_HERE}litellm", names_provider=True, batch={"anthropic/": "anthropic"}),
    "local": Backend(module=f"{_HERE}local", local=True, self_named=True, extra="llama",
        ready="engine and weights are here"),
    "openai": Backend(module=f"{_HERE}openai", key="OPENAI_API_KEY", usual_address="https://api.openai.com/v1",
        batch={"": "openai"}),
    "replay": Backend(module=f"{_HERE}replay", local=True, ready="the recording can be read; nothing is sent",
        asked_to_test=False),
    "server": Backend(module=f"{_HERE}server", key="JUDGE_API_KEY", batch={"": "server"},
        ready="the address can be read"),
})  # fmt: skip
"""Backend name to its row, those of annexes and of other packages with them."""


def backend_facts(judge: str) -> Backend:
    """What holds for a judge by its name alone; the defaults where the name is of no backend."""
    return BACKENDS.get(judge.partition("/")[0], Backend())


def open_model(name: str | Model, options: ModelOptions | None = None) -> Model:
    """The judge called `backend/model`; if the first part is no backend of ours, litellm gets the whole name.

    A judge of one's own, such as a `FunctionJudge`, is opened already.
    """
    if isinstance(name, Model):
        if options is not None:
            name.open(options)
        return name
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
        refuse_absent(f"judges.{backend}", name)
        backend = backend_of_providers()
        model = name
    opened: Model = importlib.import_module(BACKENDS[backend].module).open_model(model, options or ModelOptions())
    return opened


def options_beside(name: str | Model, options: ModelOptions) -> ModelOptions:
    """The options of one of several judges, which takes no address if it computes here, and thinks only if it can."""
    bare = msgspec.structs.replace(options, base_url=None)
    model = open_model(name, bare)
    own = bare if model.uses_cores else options
    return own if "reasoning_effort" in model.required else msgspec.structs.replace(own, reasoning_effort=None)


def backend_of_providers() -> str:
    """The backend that gets a name whose first part is no backend."""
    return next(name for name, row in BACKENDS.items() if row.names_provider)
