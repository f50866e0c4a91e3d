"""The order in which judgments are asked for. Pure."""

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.ask.tasks import Task
from judge.text.ids import natural_key


def in_order(wanted: Sequence[Task], numbers: Iterable[int]) -> NDArray[np.int64]:
    """The numbers of tasks by prompt, turn and passages, equal ones in the order given.

    Neighbors share the start of their prompt, which prompt caches compute only once. The sorting is done on numbers,
    because millions of keys would fill the memory.

    Args:
        wanted: All tasks.
        numbers: The numbers of those that are asked.
    """
    prompts: dict[str, int] = {}
    evidence: dict[tuple[str, tuple[str, ...]], int] = {}
    kept, prompt, place = array("q"), array("q"), array("q")
    for number in numbers:
        task = wanted[number]
        shown = task.response.turn_id, task.response.passages
        kept.append(number)
        prompt.append(prompts.setdefault(task.criterion.prompt_id, len(prompts)))
        place.append(evidence.setdefault(shown, len(evidence)))
    turns = {turn_id: at for at, turn_id in enumerate(sorted({turn_id for turn_id, _ in evidence}, key=natural_key))}
    by_evidence = sorted(evidence, key=lambda shown: (turns[shown[0]], shown[1]))
    order = np.lexsort(
        (_ranks(by_evidence, evidence)[np.asarray(place)], _ranks(sorted(prompts), prompts)[np.asarray(prompt)])
    )
    return np.asarray(kept, dtype=np.int64)[order]


def _ranks(ordered: Sequence[Hashable], numbered: Mapping[Any, int]) -> NDArray[np.int64]:
    """The rank of each number."""
    ranks = np.empty(len(ordered), dtype=np.int64)
    ranks[[numbered[each] for each in ordered]] = np.arange(len(ordered))
    return ranks
