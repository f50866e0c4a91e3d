"""Models of a crowd's workers: who is reliable, and how the labels of each are to be weighed.

The aggregators here have a parameter for each worker and are rows of `AGGREGATORS`.

joint    judges and workers in one model, as a diagnostic only
workers  each worker's agreement with the rest and signs of spam
"""

from collections.abc import Callable
from typing import Any

from judge.crowd.labels import Aggregator, CrowdGrades, CrowdLabels, CrowdSettings, graded
from judge.stats import consensus, worker_models
from judge.stats.worker_models import PRIORS, Posterior, Votes, glad, ordinal


def _dawid_skene(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    words = "Dawid and Skene's model, a confusion matrix for each worker"
    return _modeled(worker_models.dawid_skene, words, labels, settings, smoothing=settings.smoothing)


def _one_coin(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    words = "the one-coin model, an accuracy for each worker"
    return _modeled(worker_models.one_coin, words, labels, settings, smoothing=settings.smoothing)


def _mace(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    words = f"MACE, a probability of spamming and habits for each worker, {PRIORS[settings.prior]}"
    of_mace = {"prior": settings.prior, "smoothing": settings.smoothing}
    return _modeled(worker_models.mace, words, labels, settings, **of_mace)


def _glad(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    return _modeled(glad, "GLAD, an ability for each worker and a difficulty for each item", labels, settings)


def _ordinal(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
    words = "the ordinal model, a bias, a spread and attention for each worker"
    return _modeled(ordinal, words, labels, settings, grades=labels.grades, smoothing=settings.smoothing)


def _modeled(
    model: Callable[..., Posterior], words: str, labels: CrowdLabels, settings: CrowdSettings, **options: Any
) -> CrowdGrades:
    """The most probable grades under a model of workers, with its options beside those that every model has."""
    votes = Votes(labels.worker, labels.item, labels.code, (len(labels.workers), len(labels.items), len(labels.grades)))
    fit = model(votes, **options, tolerance=settings.tolerance, max_iterations=settings.max_iterations)
    smoothed = f", {settings.smoothing:g} pseudo-labels" if "smoothing" in options else ""
    end = "converged" if fit.converged else "NOT converged"
    rule = (
        f"the most probable grade of {words}{smoothed} ({end} after {fit.iterations} iterations); of equally probable "
        "ones the nearest to the mean of all labels, the higher of two as near"
    )
    code = consensus.majority(labels.counts, labels.grades, tie="nearest-mode", votes=fit.p)
    return graded(labels, code, rule, fit.worker, fit)


DAWID_SKENE = Aggregator(aggregate=_dawid_skene, smoothed=True, weighs=True, jury=True)
ONE_COIN = Aggregator(aggregate=_one_coin, smoothed=True, weighs=True, jury=True)
MACE = Aggregator(aggregate=_mace, smoothed=True, priors=True, weighs=True)
GLAD = Aggregator(aggregate=_glad, weighs=True)
ORDINAL = Aggregator(aggregate=_ordinal, smoothed=True, weighs=True)
