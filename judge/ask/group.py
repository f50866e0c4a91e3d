"""Groups: criteria that one request asks for together, and the names of the prompts that this makes. Pure.

A prompt that is asked together with others is a prompt of its own. Its name lists the others and its digest covers
all of them, so that no certificate, calibration or folder mixes its grades with those of the prompt asked alone:
`groundedness/graded` asked together with `naturalness/graded` is `groundedness/graded+naturalness`.
"""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from judge.errors import UsageError
from judge.io.files import sha256
from judge.records import Criterion

GROUP_VERSION = 2
"""Goes up whenever the same prompts, asked together, may give other messages or be read differently than before."""
DEFAULT = "graded"
"""The variant that a criterion's name alone means."""
_JOINT, _OF = "+", "."
"""`variant+criterion` and `variant+criterion.variant`: no file's variant has the first, no criterion the second."""


def combine(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """The same criteria, one prompt of each, asked together in one request, by name.

    A UsageError if there are fewer than two, two are of one criterion, one labels sentences, or one is asked together
    with others already.
    """
    parts = tuple(sorted(criteria, key=lambda criterion: criterion.name))
    for part in parts:
        if part.answer == "sentences":
            raise UsageError(f"{part.prompt_id} labels every sentence, so it cannot be asked together with others")
        if part.together:
            raise UsageError(f"{part.prompt_id} is asked together with others already")
    if len({part.unit for part in parts}) > 1:
        raise UsageError(f"one request is about one response or one dialogue, not both: {_listed(parts)} (--together)")
    for part, later in pairwise(parts):
        if part.name == later.name:
            raise UsageError(
                f"{part.prompt_id} and {later.prompt_id}: one request asks for each criterion under one prompt "
                "(--together)"
            )
    if len(parts) < 2:
        raise UsageError(f"asking together needs two criteria or more, found {_listed(parts)} (--together)")
    return tuple(_joined(part, parts) for part in parts)


def _listed(parts: Sequence[Criterion]) -> str:
    return ", ".join(part.prompt_id for part in parts) or "none"


def _joined(own: Criterion, parts: tuple[Criterion, ...]) -> Criterion:
    others = [part for part in parts if part is not own]
    digests = [part.digest for part in parts]
    return msgspec.structs.replace(
        own,
        variant=_JOINT.join([own.variant, *map(_short, others)]),
        # Members of a group ask the same, but each is a prompt of its own.
        digest=sha256(msgspec.json.encode(["together", GROUP_VERSION, own.name, digests])),
        file=" with ".join([own.file, *(part.file for part in others)]),
        together=parts,
    )


def _short(part: Criterion) -> str:
    return part.name if part.variant == DEFAULT else f"{part.name}{_OF}{part.variant}"


def group_members(prompt_id: str) -> tuple[str, ...]:
    """The prompts of a group as `criterion/variant`, the one that is graded first; empty if it is asked alone.

    >>> group_members("groundedness/graded+naturalness+relevance.ikat")
    ('groundedness/graded', 'naturalness/graded', 'relevance/ikat')
    >>> group_members("groundedness/graded")
    ()
    """
    own, *others = prompt_id.split(_JOINT)
    if not others or "/" not in own:
        return ()
    named = (other.partition(_OF) for other in others)
    return (own, *(f"{name}/{variant or DEFAULT}" for name, _, variant in named))
