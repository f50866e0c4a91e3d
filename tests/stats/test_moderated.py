import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, polygamma

from judge.stats.gold_sample import Prior, fit_prior, inverse_trigamma


def test_variances_of_a_scaled_f_distribution_give_its_parameters_back() -> None:
    rng = np.random.default_rng(3)
    d, d0, s0 = 8.0, 10.0, 0.3
    prior = fit_prior(s0 * rng.f(d, d0, 40_000), np.full(40_000, d))
    assert prior.df == pytest.approx(d0, rel=0.05)
    assert prior.variance == pytest.approx(s0, rel=0.02)


def test_variances_that_differ_by_chance_alone_share_their_mean() -> None:
    variances, df = np.array([1.0, 1.1, 0.9, 1.0]), np.array([8.0, 8.0, 8.0, 16.0])
    prior = fit_prior(variances, df)
    assert prior == (math.inf, pytest.approx((8 * 1.0 + 8 * 1.1 + 8 * 0.9 + 16 * 1.0) / 40))
    assert prior.moderate(variances, df).tolist() == [prior.variance] * 4


def test_two_variances_share_nothing() -> None:
    variances, df = np.array([1.0, 4.0]), np.array([8.0, 8.0])
    assert fit_prior(variances, df) == Prior(0.0, 0.0)
    assert fit_prior(variances, df).moderate(variances, df).tolist() == [1.0, 4.0]


def test_three_variances_by_hand() -> None:
    """Equal degrees of freedom: e = log s² - ψ(d/2) + log(d/2), and ψ'(d0/2) = var e - ψ'(d/2)."""
    logs = np.array([-2.0, 0.0, 2.0])
    prior = fit_prior(np.exp(logs), np.full(3, 4.0))
    assert float(polygamma(1, prior.df / 2)) == pytest.approx(4.0 - float(polygamma(1, 2.0)))
    centre = 0.0 - digamma(2.0) + math.log(2.0)
    assert math.log(prior.variance) == pytest.approx(centre + digamma(prior.df / 2) - math.log(prior.df / 2))


@given(st.floats(1e-8, 1e9))
def test_the_inverse_of_trigamma_is_its_inverse(y: float) -> None:
    assert float(polygamma(1, inverse_trigamma(y))) == pytest.approx(y, rel=1e-3)
