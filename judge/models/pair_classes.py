"""Which class of a classifier means that a passage supports a sentence, and which that it contradicts it. Pure."""

from collections.abc import Sequence

from judge.errors import RejectedError
from judge.models.http_errors import shorten
from judge.models.scorers import PairScore, ScorerSettings

SUPPORTS = frozenset(("entailment", "entails", "supported", "supports", "consistent", "grounded", "yes", "true"))
"""Labels that mean support, in lower case."""
CONTRADICTS = frozenset(("contradiction", "contradicts", "contradicted", "refuted", "refutes"))
"""Labels that mean contradiction, in lower case."""


def pair_score(labels: Sequence[str], probabilities: Sequence[float], settings: ScorerSettings) -> PairScore:
    """The score of a pair, from the probability of each class.

    The only class of a classifier means support, whatever it is called.

    >>> pair_score(["Entailment", "neutral", "contradiction"], [0.7, 0.2, 0.1], ScorerSettings())[:2]
    (0.7, 0.1)
    >>> pair_score(["LABEL_0", "LABEL_1"], [0.2, 0.8], ScorerSettings(supports="1"))[:2]
    (0.8, 0.0)

    Args:
        labels: The label of each class.
        probabilities: The probability of each class.
        settings: The labels or numbers of the classes, where the words of the labels do not tell them.

    Raises:
        RejectedError: None or several of the labels mean support, or a label of the settings is not there.
    """
    if len(labels) == 1 and not settings.supports:
        return PairScore(probabilities[0])
    names = [label.lower() for label in labels]
    supports = _places(names, settings.supports) if settings.supports else _known(names, SUPPORTS)
    contradicts = _places(names, settings.contradicts) if settings.contradicts else _known(names, CONTRADICTS)
    if len(supports) != 1:
        raise RejectedError(
            f"none or several of the model's labels mean support: {shorten(', '.join(names))}; expected one of "
            f"{', '.join(sorted(SUPPORTS))}, or the label after the model's name, as in #supports=LABEL_1"
        )
    if settings.contradicts and len(contradicts) != 1:
        raise RejectedError(f"the model has no class {settings.contradicts!r}: {shorten(', '.join(names))}")
    against = [probabilities[place] for place in contradicts if place not in supports]
    return PairScore(probabilities[supports[0]], max(against, default=0.0))


def _known(names: Sequence[str], words: frozenset[str]) -> list[int]:
    return [place for place, name in enumerate(names) if name in words]


def _places(names: Sequence[str], wanted: str) -> list[int]:
    """The places of a class: that of its label, or of `label_N` where N is wanted."""
    name = wanted.lower()
    return _known(names, frozenset((name, f"label_{name}") if name.isdecimal() else (name,)))
