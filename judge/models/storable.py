"""Completions as the journal can hold them, without facts about a reply that make no sense. Pure."""

import math

import msgspec

from judge.models.records import Completion

_MOST_TOKENS = 2**53
"""Above this, a count is no count."""


def storable(completion: Completion) -> Completion:
    """The completion with None for each fact that no provider can have meant, and with text that UTF-8 can hold.

    A reply is paid for whatever it says of itself: a count of 1.5 tokens or a probability of nan costs no grade.
    """
    prompt, cached = _count(completion.prompt_tokens), _count(completion.cached_tokens)
    return msgspec.structs.replace(
        completion,
        text=_text(completion.text) or "",
        finish_reason=_text(completion.finish_reason),
        model=_text(completion.model),
        system_fingerprint=_text(completion.system_fingerprint),
        prompt_tokens=prompt,
        completion_tokens=_count(completion.completion_tokens),
        # Of a prompt, no more than all of it is cached.
        cached_tokens=None if prompt is not None and cached is not None and cached > prompt else cached,
        cost=_amount(completion.cost),
        latency=_amount(completion.latency),
        probabilities=_probabilities(completion.probabilities),
        endpoint=_text(completion.endpoint),
        raw=_text(completion.raw),
    )


def _text(value: object) -> str | None:
    # A reply cut within an emoji ends in a lone surrogate.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS and value == int(value) else None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _probabilities(values: object) -> dict[str, float] | None:
    if not isinstance(values, dict):
        return None
    amounts = {label: _amount(value) for label, value in values.items() if isinstance(label, str)}
    # Part of the labels would be another distribution.
    return amounts if len(amounts) == len(values) and None not in amounts.values() else None  # type: ignore[return-value]
