"""What prompts are about: responses, dialogues, citations; and nuggets, of which commands of their own ask. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from judge.errors import UsageError
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
OF_DIALOGUES = (DIALOGUE, "ptkb")
"""The inputs that a prompt about dialogues may have."""


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
