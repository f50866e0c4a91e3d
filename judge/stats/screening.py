"""What a filter by known items does to workers who err now and then: binomial arithmetic, no simulation. Pure."""

from math import comb, fsum


def removal_probability(error: float, known: int, max_fails: int = 0) -> float:
    """The probability that a worker fails more known items than allowed, and so is removed.

    Errors are independent: P(X > f) for X binomial with n known items and the worker's error rate.

    >>> round(removal_probability(0.1, 3), 5), round(removal_probability(0.1, 5, max_fails=1), 5)
    (0.271, 0.08146)

    Args:
        error: The probability of failing one known item.
        known: n, the known items that the worker meets.
        max_fails: f, the fails that are allowed.
    """
    return fsum(comb(known, k) * error**k * (1 - error) ** (known - k) for k in range(max_fails + 1, known + 1))
