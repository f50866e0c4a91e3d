"""What the models of a calibration would be asked, counted before anything is sent. Pure."""

from judge.harness.dry_run import ModelForecast
from judge.records import Record


class CalibrationForecast(Record, frozen=True):
    """What carrying out a plan would send."""

    responses: int
    """Pooled responses with gold outside the test part."""
    unmatched: int
    """Gold grades, outside the test part, of responses that are not in the pool."""
    by_model: tuple[ModelForecast, ...]
    """What each model would be asked about these responses, and what that costs; the checkers of cascades come last."""
    test_judgments: int
    """Judgments of responses with test grades, at most. For each criterion only the judge that is chosen is asked, so
    their calls come on top and have no price yet."""
