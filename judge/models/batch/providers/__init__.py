"""Providers: the batch APIs that requests can be handed to.

A new provider is a module with an `open_provider` and a row in `PROVIDERS`.
"""

from collections.abc import Callable

from judge.errors import UsageError
from judge.models.backends import batch_format, batch_judges
from judge.models.batch.providers import anthropic, openai
from judge.models.batch.providers.provider import Provider
from judge.models.batch.records import OpenQuestion

PROVIDERS: dict[str, Callable[[OpenQuestion], Provider]] = {
    "openai": openai.open_provider,
    "server": openai.open_provider,
    "anthropic": anthropic.open_provider,
}
"""The batch format of a judge to what opens the API of its batches."""


def open_for(question: OpenQuestion) -> Provider:
    """The API that takes the batches of a question's judge.

    Raises:
        UsageError: No such API is known here, or its key is missing.
    """
    opened = PROVIDERS.get(batch_format(question.judge) or "")
    if opened is not None:
        return opened(question)
    raise UsageError(
        f"{question.judge}: batches can be submitted for {batch_judges(PROVIDERS)}; hand the "
        "files over yourself, and `judge completions import` takes what comes back"
    )
