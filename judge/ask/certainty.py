"""How sure a judge is of its labels, by the label probabilities of its judgments. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence

from judge.ask.records import Failure, Judgment
from judge.text.cells import decimals


def entropy(probabilities: Mapping[str, float]) -> float:
    """-Σ p log₂ p in bits: 0 for a judge that is sure of one label, log₂ k where all k labels are alike.

    >>> entropy({"0": 0.5, "1": 0.25, "2": 0.25, "3": 0.0})
    1.5
    """
    total = math.fsum(probabilities.values())
    return math.fsum(-p / total * math.log2(p / total) for p in probabilities.values() if p > 0)


def certainty_notes(results: Iterable[Judgment | Failure]) -> tuple[str, ...]:
    """For each judge and prompt a sentence: how many judgments have label probabilities, and their mean entropy."""
    groups: dict[tuple[str, str, str], list[Judgment]] = {}
    for result in results:
        if isinstance(result, Judgment):
            groups.setdefault((result.judge, result.criterion, result.variant), []).append(result)
    return tuple(_note(judge, f"{name}/{variant}", found) for (judge, name, variant), found in groups.items())


def _note(judge: str, prompt: str, judgments: Sequence[Judgment]) -> str:
    told = [judgment.probabilities for judgment in judgments if judgment.probabilities]
    said = f"{judge} under {prompt}: {len(told)} of {len(judgments)} judgments have label probabilities"
    if not told:
        return said
    mean = math.fsum(map(entropy, told)) / len(told)
    most = math.log2(max(map(len, told)))
    return f"{said}, with a mean entropy of {decimals(mean, 2)} bits (0 is sure, {most:.2f} is no idea)"
