"""Variances of many runs moderated toward a common one, for runs with few observations each.

With s_g² of d_g degrees of freedom, s_g² ~ s0² F(d_g, d0) describes variances that differ from run to run, and
(d0 s0² + d_g s_g²) / (d0 + d_g) is the moderated variance, with d0 + d_g degrees of freedom.
G. K. Smyth (2004), Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments, Statistical Applications in Genetics and Molecular Biology 3(1), article 3.
"""

import math
from typing import NamedTuple

import numpy as np

from judge.stats.tables import Floats

FEWEST_VARIANCES = 3
"""Fewest variances that show how much they differ."""


class Prior(NamedTuple):
    """What the variances have in common."""

    df: float
    """d0: 0 if nothing is shared, infinite if the variances differ no more than by chance."""
    variance: float
    """s0²."""

    def moderate(self, variances: Floats, df: Floats) -> Floats:
        """The moderated variances (G,).

        >>> Prior(4.0, 1.0).moderate(np.array([2.5]), np.array([8.0])).tolist(), (4 * 1.0 + 8 * 2.5) / (4 + 8)
        ([2.0], 2.0)
        """
        if math.isinf(self.df):
            return np.full(len(variances), self.variance)
        moderated: Floats = (self.df * self.variance + df * variances) / (self.df + df)
        return moderated


def fit_prior(variances: Floats, df: Floats) -> Prior:
    """d0 and s0² from the mean and the spread of log s² (Smyth 2004, section 6.2).

    Where log s² spreads no more than by chance, d0 is infinite and s0² the mean of s² by degrees of freedom. Fewer than
    FEWEST_VARIANCES share nothing.

    Args:
        variances: s² (G,), all above 0.
        df: d (G,), all above 0.
    """
    from scipy.special import digamma, polygamma

    if len(variances) < FEWEST_VARIANCES:
        return Prior(0.0, 0.0)
    e = np.log(variances) - digamma(df / 2) + np.log(df / 2)
    excess = float(e.var(ddof=1) - polygamma(1, df / 2).mean())
    if excess <= 0:
        return Prior(math.inf, float(df @ variances / df.sum()))
    d0 = 2 * inverse_trigamma(excess)
    return Prior(d0, math.exp(float(e.mean() + digamma(d0 / 2)) - math.log(d0 / 2)))


def inverse_trigamma(y: float) -> float:
    """The x > 0 with ψ'(x) = y, by the Newton iteration of Smyth (2004), appendix.

    >>> f"{inverse_trigamma(math.pi**2 / 6):.9f}"
    '1.000000000'
    """
    from scipy.special import polygamma

    # Beyond these y the iteration would lose its digits, and ψ'(x) is 1/√x or 1/x.
    if y > 1e7:
        return 1 / math.sqrt(y)
    if y < 1e-6:
        return 1 / y
    x = 0.5 + 1 / y
    step = -math.inf
    while -step / x > 1e-8:
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / y) / float(polygamma(2, x))
        x += step
    return x
