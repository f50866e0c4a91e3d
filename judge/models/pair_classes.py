"""Which class of a classifier means that a passage supports a sentence, and which that it contradicts it. Pure."""

from collections.abc import Sequence

from judge.errors import RejectedError
from judge.models.http_errors import shorten
from judge.models.scorers import PairScore, ScorerSettings

SUPPORTS = frozenset(("entailment", "entails", "supported", "supports", "consistent", "grounded", "yes", "true"))
"""Labels that mean support, in lower case."""
CONTRADICTS = frozenset(("contradiction", "contradicts", "contradicted", "refuted", "refutes"))
"""Labels that mean contradiction, in lower case."""


def pair_score(
    labels: Sequence[str], probabilities: Sequence[float], settings: ScorerSettings, *, ordered: bool = False
) -> PairScore:
    """The score of a pair, from the probability of each class.

    The only class of a classifier means support, whatever it is called.

    >>> pair_score(["Entailment", "neutral", "contradiction"], [0.7, 0.2, 0.1], ScorerSettings())[:2]
    (0.7, 0.1)
    >>> pair_score(["no", "so so", "sure"], [0.2, 0.1, 0.7], ScorerSettings(supports="2"), ordered=True)[:2]
    (0.7, 0.0)

    Args:
        labels: The label of each class.
        probabilities: The probability of each class.
        settings: The labels or numbers of the classes, where the words of the labels do not tell them.
        ordered: Whether the classes stand in the order of their numbers; else a number N is that of `LABEL_N`.

    Raises:
        RejectedError: None or several of the labels mean support, or a class of the settings is not there.
    """
    if len(labels) == 1 and not settings.supports:
        return PairScore(probabilities[0])
    names = [label.lower() for label in labels]
    supports = _places(names, settings.supports, SUPPORTS, ordered)
    if len(supports) != 1:
        raise RejectedError(
            f"none or several of the model's labels mean support: {shorten(', '.join(names))}; expected one of "
            f"{', '.join(sorted(SUPPORTS))}, or the label after the model's name, as in #supports=LABEL_1"
        )
    against = [probabilities[place] for place in _places(names, settings.contradicts, CONTRADICTS, ordered)]
    return PairScore(probabilities[supports[0]], max(against, default=0.0))


def _places(names: Sequence[str], wanted: str, words: frozenset[str], ordered: bool) -> list[int]:
    """The places of a class that the settings want, or of the classes whose labels are among some words.

    Raises:
        RejectedError: The class that is wanted is not there.
    """
    name = wanted.lower()
    if name and name not in names:
        place = int(name) if name.isascii() and name.isdecimal() else len(names)
        if ordered and place < len(names):
            return [place]
        name = f"label_{name}"
        if name not in names:
            raise RejectedError(f"the model has no class {wanted!r}: its classes are {shorten(', '.join(names))}")
    return [place for place, known in enumerate(names) if (known == name if name else known in words)]
