"""Models of a crowd's workers: who is reliable, and how the labels of each are to be weighed.

The aggregators here have a parameter for each worker and are rows of `AGGREGATORS`.

joint    judges and workers in one model, as a diagnostic only
workers  each worker's agreement with the rest and signs of spam
"""

from collections.abc import Callable

from judge.crowd.labels import Aggregator, CrowdGrades, CrowdLabels, CrowdSettings, graded
from judge.stats import consensus
from judge.stats.worker_models import PRIORS, Posterior, Votes, dawid_skene, glad, mace, one_coin, ordinal

_Aggregate = Callable[[CrowdLabels, CrowdSettings], CrowdGrades]


def _by(model: Callable[..., Posterior], words: str, *names: str) -> _Aggregate:
    """Gives the most probable grades under a model of workers, which takes these fields of labels or settings too."""

    def aggregate(labels: CrowdLabels, settings: CrowdSettings) -> CrowdGrades:
        options = {name: getattr(labels if name == "grades" else settings, name) for name in names}
        sizes = len(labels.workers), len(labels.items), len(labels.grades)
        votes = Votes(labels.worker, labels.item, labels.code, sizes)
        fit = model(votes, **options, tolerance=settings.tolerance, max_iterations=settings.max_iterations)
        smoothed = f", {settings.smoothing:g} pseudo-labels" if "smoothing" in names else ""
        end = "converged" if fit.converged else "NOT converged"
        rule = (
            f"the most probable grade of {words.format(prior=PRIORS[settings.prior])}{smoothed} ({end} after "
            f"{fit.iterations} iterations); of equally probable ones the nearest to the mean of all labels, the higher "
            "of two as near"
        )
        code = consensus.majority(labels.counts, labels.grades, tie="nearest-mode", votes=fit.p)
        return graded(labels, code, rule, fit.worker, fit)

    return aggregate


_CONFUSIONS = "Dawid and Skene's model, a confusion matrix for each worker"
DAWID_SKENE = Aggregator(aggregate=_by(dawid_skene, _CONFUSIONS, "smoothing"), smoothed=True, weighs=True, jury=True)
_ACCURACIES = "the one-coin model, an accuracy for each worker"
ONE_COIN = Aggregator(aggregate=_by(one_coin, _ACCURACIES, "smoothing"), smoothed=True, weighs=True, jury=True)
_HABITS = "MACE, a probability of spamming and habits for each worker, {prior}"
MACE = Aggregator(aggregate=_by(mace, _HABITS, "prior", "smoothing"), smoothed=True, priors=True, weighs=True)
_ABILITIES = "GLAD, an ability for each worker and a difficulty for each item"
GLAD = Aggregator(aggregate=_by(glad, _ABILITIES), weighs=True)
_BIASES = "the ordinal model, a bias, a spread and attention for each worker"
ORDINAL = Aggregator(aggregate=_by(ordinal, _BIASES, "grades", "smoothing"), smoothed=True, weighs=True)
