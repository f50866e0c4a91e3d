"""What prompts are about, nuggets too, of which commands of their own ask; and which are asked together. Pure.

A prompt that is asked together with others is a prompt of its own. Its name lists the others and its digest covers
all of them, so that no certificate, calibration or folder mixes its grades with those of the prompt asked alone:
`groundedness/graded` asked together with `naturalness/graded` is `groundedness/graded+naturalness`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from judge.errors import UsageError
from judge.io.files import sha256
from judge.records import Criterion, JudgedUnit

NUGGET, NUGGET_PRECISION = "nugget", "nugget_precision"
NUGGET_CREATION, NUGGET_MERGING, NUGGET_IMPORTANCE = "nugget_creation", "nugget_merging", "nugget_importance"


class OfNuggets(NamedTuple):
    """What the prompts of a criterion show that no response alone tells, and the command that asks it."""

    inputs: tuple[str, ...]
    """The inputs that they all have; other criteria have none of them."""
    command: str


OF_NUGGETS: Mapping[str, OfNuggets] = {
    NUGGET: OfNuggets(("nugget",), "judge nuggets match"),
    NUGGET_PRECISION: OfNuggets(("nuggets",), "judge nuggets claims"),
    NUGGET_CREATION: OfNuggets(("source",), "judge nuggets create"),
    NUGGET_MERGING: OfNuggets(("known", "candidates"), "judge nuggets create"),
    NUGGET_IMPORTANCE: OfNuggets(("candidates",), "judge nuggets create"),
}
"""The criteria about nuggets; one is a row."""

DIALOGUE = "dialogue"
"""The input that shows all that was said; prompts about dialogues show it, and no others do."""
PAIR = "pair"
"""The input that shows two responses; prompts about pairs show it, and no others do."""
SHOWN: Mapping[JudgedUnit, tuple[str, ...]] = {
    "dialogue": (DIALOGUE, "ptkb"),
    "pair": (PAIR, "context", "ptkb", "utterance", "resolved_utterance"),
}
"""The inputs that a prompt about a unit may have; it must have the first one, which no other prompt has."""


def only_asked_by(criterion: Criterion) -> str:
    """Why `judge run` cannot ask a criterion of OF_NUGGETS, as a message."""
    inputs, command = OF_NUGGETS[criterion.name]
    shown = "a nugget" if inputs == ("nugget",) else " and ".join(f"`{name}`" for name in inputs)
    return f"{criterion.prompt_id}: shows {shown}, so only `{command}` can ask it"


def check_unit(criteria: Sequence[Criterion], unit: JudgedUnit) -> None:
    """Refuse prompts about another unit than the one that is judged, as a UsageError that names all of them."""
    other = [criterion for criterion in criteria if criterion.unit != unit]
    if other:
        names = ", ".join(criterion.prompt_id for criterion in other)
        raise UsageError(f"{names}: about {other[0].unit}s, but {unit}s are judged here")


def unit_of(criteria: Sequence[Criterion]) -> JudgedUnit:
    """What prompts that go together are about; a UsageError if they are about several units."""
    units: dict[JudgedUnit, list[str]] = {}
    for criterion in criteria:
        units.setdefault(criterion.unit, []).append(criterion.prompt_id)
    if len(units) > 1:
        told = "; ".join(f"{', '.join(units[unit])}: about {unit}s" for unit in sorted(units))
        raise UsageError(f"{told}; judge {' and '.join(f'{unit}s' for unit in sorted(units))} into a folder each")
    return next(iter(units), "response")


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
