"""A plan about responses and about the passages of the same runs, as a plan for each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from judge.ask.criteria import find_criterion, own_name
from judge.ask.prompt import check_unit
from judge.errors import UsageError
from judge.io.plan import option_of
from judge.jobs.pooling import JudgedPool
from judge.pool.bank import pool_file
from judge.pool.records import Pool
from judge.pool.run_choice import RUN_RULES
from judge.records import Criterion
from judge.units import UNITS

PASSAGES = "passages"
"""The folder of the passages, in the folder of the responses."""
_OF_PASSAGES = ("depth", *UNITS["passage"].own_options)
"""The options that go to the passages where both are judged."""
_OF_RESPONSES = (*UNITS["passage"].unfit, "min_relevance", "max_rank", "measure", "teams")
"""The options that go to the responses, since they say nothing about passages."""
_Plan = TypeVar("_Plan", bound=JudgedPool)


def parts_of(plan: _Plan, out: Path) -> tuple[_Plan, _Plan | None]:
    """A plan about passages and about something else as two, that of the passages second; any other plan as it is.

    Each is a plan as a user could give it, and the folder of the passages stands in `out`.
    """
    prompts = [(given, find_criterion(given)) for given in plan.prompts]
    named = {prompt.name: prompt for _, prompt in prompts}
    criteria = [(given, named.get(own_name(given)) or find_criterion(own_name(given))) for given in plan.criteria]
    listed = tuple(given for given, criterion in criteria if UNITS[criterion.unit].listed)
    units = {criterion.unit for _, criterion in (*criteria, *prompts) if UNITS[criterion.unit].listed}
    listed_prompts = tuple(given for given, prompt in prompts if UNITS[prompt.unit].listed)
    others = tuple(given for given, _ in criteria if given not in listed)
    other_prompts = tuple(given for given, _ in prompts if given not in listed_prompts)
    if plan.unit is not None or not (listed or listed_prompts) or not (others or other_prompts):
        return plan, None
    first = plan.with_values(criteria=others, prompts=other_prompts, **dict.fromkeys(_OF_PASSAGES))
    fields = type(plan).model_fields
    left = {name: fields[name].get_default(call_default_factory=True) for name in _OF_RESPONSES}
    if plan.select_runs in RUN_RULES:
        left["select_runs"] = None
    values: dict[str, Any] = {
        "criteria": listed,
        "prompts": listed_prompts,
        "provenance": plan.provenance or "both",
    }
    second = plan.with_values(
        **left,
        **values,
        unit=units.pop(),
        out=out / PASSAGES,
        extend=None if plan.extend is None else plan.extend / PASSAGES,
        chosen=with_chosen(plan, {**dict.fromkeys(left), **values, "out": str(out / PASSAGES)}),
    )
    return first, second


def check_part(criteria: Sequence[Criterion], pool: Pool, place: Path) -> None:
    """Refuse prompts about another unit than that of a pool, as a UsageError that says where the passages are.

    `place`: the folder of the pool, or its file.
    """
    try:
        check_unit(criteria, pool.unit)
    except UsageError as error:
        passages = pool_file(place).with_name(PASSAGES)
        if any(UNITS[criterion.unit].listed for criterion in criteria) and pool_file(passages).exists():
            raise UsageError(f"{error}; the passages are in {passages}") from None
        raise


def with_chosen(plan: JudgedPool, changed: dict[str, Any]) -> dict[str, Any]:
    """The options that a manifest records, with other values of some fields; None and empty ones are left out."""
    if not plan.chosen:
        return {}
    options = dict(plan.chosen)
    for name, value in changed.items():
        written = option_of(name, type(plan).model_fields[name]).name
        options.pop(written, None)
        if value:
            options[written] = [*map(str, value)] if isinstance(value, tuple) else value
    return options
