"""Support: how far the sentences of a response rest on what they cite, by the measures of the TREC RAG track."""

from collections.abc import Sequence
from math import fsum

WEIGHTED, HARD = (0.0, 0.5, 1.0), (0.0, 0.0, 1.0)
"""What no, partial and full support count for."""


def support(
    sentences: Sequence[Sequence[int | None]], *, scores: Sequence[float] = WEIGHTED, every: bool = False
) -> tuple[float, float]:
    """Precision and recall of a response, given the grades (0 to 2) of each sentence's citations.

    A sentence scores the mean of its judged citations, of which only the first is looked at unless `every`; None is a
    citation that nobody judged. Precision is over sentences with a judged citation; recall is over all but those whose
    citations nobody judged, so a sentence without citation scores 0. Either is 0 over nothing.

    Full, then none and partial, then uncited, then unjudged:

    >>> support([[2], [0, 1], [], [None]]), support([[2], [0, 1], [], [None]], every=True)
    ((0.5, 0.3333333333333333), (0.625, 0.4166666666666667))
    """
    looked_at = [grades if every else grades[:1] for grades in sentences]
    judged = [[scores[grade] for grade in grades if grade is not None] for grades in looked_at]
    total = fsum(fsum(of) / len(of) for of in judged if of)
    cited = sum(map(bool, judged))
    uncited = sum(not grades for grades in looked_at)
    return total / max(1, cited), total / max(1, cited + uncited)
